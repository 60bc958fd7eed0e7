# SPDX-License-Identifier: Apache-2.0
"""Frames by imagezmq, PUB/SUB. A JPEG that is ready-made goes by its send_jpg.

usage: imagezmq_frames.py publish ENDPOINT RATE PICTURE SHAPE RECORDS | read ENDPOINT SHAPE RECORDS
"""

import sys
import time

import imagezmq
import numpy
from records import Records, picture


def publish(records: Records) -> None:
    endpoint, rate, path, shape = sys.argv[2:6]
    image = picture(path, shape)
    sender = imagezmq.ImageSender(endpoint, REQ_REP=False)
    send = sender.send_jpg if shape == "-1" else sender.send_image
    for stamp, sequence in records.ticks(float(rate)):
        send(f"{stamp} {sequence}", image)


def read(records: Records) -> None:
    endpoint, shape = sys.argv[2:4]
    hub = imagezmq.ImageHub(endpoint, REQ_REP=False)
    while True:
        message, image = hub.recv_jpg() if shape == "-1" else hub.recv_image()
        numpy.frombuffer(image, numpy.uint8)
        received = time.monotonic_ns()
        stamp, sequence = message.split()
        records.note(int(stamp), received, int(sequence))


Records(sys.argv[-1]).run({"publish": publish, "read": read}[sys.argv[1]])
