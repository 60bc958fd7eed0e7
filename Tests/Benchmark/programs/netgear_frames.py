# SPDX-License-Identifier: Apache-2.0
"""Frames by VidGear's NetGear, PUB/SUB, as they are. It gives readers of this pattern no message, so that stamp and number lie in
the first pixels. Readers bind, each a port of its own, and the publisher connects to all of them.

usage: netgear_frames.py publish ADDRESS READERS RATE PICTURE SHAPE RECORDS | read ADDRESS NUMBER RECORDS
"""

import sys
import time

from records import Records, picture
from vidgear.gears import NetGear


def connect(address: str, port: str | tuple[str, ...], **mode: bool) -> NetGear:
    return NetGear(address=address, port=port, protocol="ipc", pattern=2, logging=False, jpeg_compression=False, **mode)


def publish(records: Records) -> None:
    address, readers, rate, path, shape = sys.argv[2:7]
    # In turn: one that is being sent must not change.
    images = [picture(path, shape) for _ in range(4)]
    ports = tuple(str(number) for number in range(int(readers)))
    server = connect(address, ports, multiclient_mode=True) if len(ports) > 1 else connect(address, ports[0])
    for stamp, sequence in records.ticks(float(rate)):
        image = images[sequence % len(images)]
        image.reshape(-1)[:16].view("int64")[:] = stamp, sequence
        server.send(image)


def read(records: Records) -> None:
    client = connect(sys.argv[2], sys.argv[3], receive_mode=True)
    while (image := client.recv()) is not None:
        received = time.monotonic_ns()
        stamp, sequence = image.reshape(-1)[:16].view("int64").tolist()
        records.note(stamp, received, sequence)


Records(sys.argv[-1]).run({"publish": publish, "read": read}[sys.argv[1]])
