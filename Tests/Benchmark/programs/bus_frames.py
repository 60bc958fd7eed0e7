# SPDX-License-Identifier: Apache-2.0
"""The bus's own Python client. usage: bus_frames.py frame|shared|ring RUNTIME_DIR DEVICE RENDITION RECORDS"""

import sys
import time

import numpy
from records import Records

from camerabus import Client, RingConnection


def read_frames(records: Records) -> None:
    with Client(runtime, name="benchmark") as client, client.frames(
        device, rendition=rendition, timeout=20, shared=lane == "shared"
    ) as frames:
        for frame in frames:
            numpy.frombuffer(frame.payload, numpy.uint8)
            records.note(frame.timestamp.monotonic, time.monotonic_ns(), frame.sequence)


def read_ring(records: Records) -> None:
    with RingConnection(f"{runtime}/media/{device}.ring", rendition) as ring:
        for frame in ring:
            numpy.frombuffer(frame.payload, numpy.uint8)
            records.note(frame.timestamp.monotonic, time.monotonic_ns(), frame.sequence)


lane, runtime, device, rendition, path = sys.argv[1:]
Records(path).run({"frame": read_frames, "shared": read_frames, "ring": read_ring}[lane])
