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


#: Frames after which a reader has what it needs, and its publisher too: it is not the beginning any more.
STEADY = 10


class Over(SystemExit):
    """The end was asked for, and what came before has been taken."""


def _end(*_: object) -> None:
    raise Over


class Records:
    """Counts frames until SIGTERM, and then writes them to a file.

    It ends with the first frame from after that, when those from before have come; should there be none, two seconds later.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.values = array("q")
        self._ready_after = STEADY
        self._asked: int | None = None

    def note(self, stamp: int, received: int, sequence: int) -> None:
        self.values.extend((stamp, received, sequence))
        if len(self.values) == 3 * self._ready_after:
            print("ready", flush=True)
        if self._asked is not None and stamp >= self._asked:
            raise Over

    def _ask(self, *_: object) -> None:
        if not self.values:
            raise Over
        if self._asked is None:
            self._asked = time.monotonic_ns()
            signal.alarm(2)

    def run(self, body: Callable[[Records], None]) -> None:
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGALRM, _end)
        try:
            body(self)
        except Over:
            pass
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        self.path.write_bytes(self.values.tobytes())
        sys.stdout.flush()
        # Threads of libraries may not end by themselves.
        os._exit(0)

    def ticks(self, rate: float) -> Iterator[tuple[int, int]]:
        """The stamp and the number of each frame, when it is time to send it."""
        self._ready_after = 1
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
