# SPDX-License-Identifier: Apache-2.0
"""Frames by pyzmq as one writes it oneself: topic, JSON header and payload, without a copy.

usage: pyzmq_frames.py publish ENDPOINT RATE PICTURE SHAPE RECORDS | read ENDPOINT RECORDS
"""

import json
import sys
import time

import numpy
import zmq
from records import Records, picture


def publish(records: Records) -> None:
    endpoint, rate, path, shape = sys.argv[2:6]
    image = picture(path, shape)
    socket = zmq.Context().socket(zmq.PUB)
    socket.bind(endpoint)
    for stamp, sequence in records.ticks(float(rate)):
        header = {"stamp": stamp, "sequence": sequence, "shape": image.shape, "dtype": str(image.dtype)}
        socket.send_multipart([b"frame/", json.dumps(header).encode(), image], copy=False)


def read(records: Records) -> None:
    socket = zmq.Context().socket(zmq.SUB)
    socket.subscribe(b"frame/")
    socket.connect(sys.argv[2])
    while True:
        _, head, payload = socket.recv_multipart(copy=False)
        header = json.loads(head.bytes)
        numpy.frombuffer(payload.buffer, header["dtype"]).reshape(header["shape"])
        records.note(header["stamp"], time.monotonic_ns(), header["sequence"])


Records(sys.argv[-1]).run({"publish": publish, "read": read}[sys.argv[1]])
