"""Waits of tests that are no waits for a time to pass: each has an event, and a deadline."""

from __future__ import annotations

import os
import select
import time
from typing import Callable, Iterable, TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float, every: float = 0.02) -> T:
    """Asks again and again until the condition holds, for `seconds` at most; returns its last value.

    Only for what sends no event, as a process of others that begins.
    """
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(every)
    return value


def wait_for_ends(pids: Iterable[int], seconds: float) -> None:
    """Returns when these processes have ended, after `seconds` at the latest."""
    until = time.monotonic() + seconds
    for pid in pids:
        try:
            ended = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            select.select([ended], [], [], max(0.0, until - time.monotonic()))
        finally:
            os.close(ended)
