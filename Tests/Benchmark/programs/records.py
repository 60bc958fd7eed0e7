# SPDX-License-Identifier: Apache-2.0
"""What the Python programs of the benchmark share: the frames that were seen, and the pace of publishers.

Records are three numbers of 64 bits for each frame: its stamp, when it was in hand (nanoseconds of CLOCK_MONOTONIC), its number.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from array import array
from pathlib import Path
from typing import Callable, Iterator

import numpy


class Over(SystemExit):
    """SIGTERM has come."""


def _end(*_: object) -> None:
    raise Over


class Records:
    """Counts frames until SIGTERM, and then writes them to a file."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.values = array("q")

    def note(self, stamp: int, received: int, sequence: int) -> None:
        self.values.extend((stamp, received, sequence))
        if len(self.values) == 3:
            print("ready", flush=True)

    def run(self, body: Callable[[Records], None]) -> None:
        signal.signal(signal.SIGTERM, _end)
        try:
            body(self)
        except Over:
            pass
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.path.write_bytes(self.values.tobytes())
        sys.stdout.flush()
        # Threads of libraries may not end by themselves.
        os._exit(0)

    def ticks(self, rate: float) -> Iterator[tuple[int, int]]:
        """The stamp and the number of each frame, when it is time to send it."""
        interval = round(1e9 / rate)
        due = time.monotonic_ns() + interval
        sequence = 0
        while True:
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            stamp = time.monotonic_ns()
            self.note(due, stamp, sequence)
            yield stamp, sequence
            sequence += 1
            due += interval


def picture(path: str, shape: str) -> numpy.ndarray:
    """The picture that all publishers send: `1080,1920,2`, or what the file has (`-1`)."""
    return numpy.fromfile(path, numpy.uint8).reshape([int(side) for side in shape.split(",")])
