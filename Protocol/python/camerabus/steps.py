# SPDX-License-Identifier: Apache-2.0
"""How one implementation serves both clients: what they do is written as generators ("steps") that yield whenever they have to wait.

`run` waits by blocking in zmq_poll, a `Runner` on the event loop; everything else is the same code.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any, Generator, NamedTuple, TypeVar

import zmq

T = TypeVar("T")
Socket = zmq.Socket[bytes]


class Wait(NamedTuple):
    """Until one of the sockets can be read (or for `writable`: written), or the time (of time.monotonic) has come."""

    sockets: tuple[Socket, ...]
    until: float
    writable: tuple[Socket, ...] = ()

    def poller(self) -> zmq.Poller:
        poller = zmq.Poller()
        for socket in self.sockets:
            poller.register(socket, zmq.POLLIN)
        for socket in self.writable:
            poller.register(socket, zmq.POLLOUT)
        return poller


Steps = Generator[Wait, None, T]


def deadline(seconds: float) -> float:
    """That many seconds from now; `math.inf`: never."""
    return time.monotonic() + max(0.0, seconds)


def is_over(until: float) -> bool:
    return time.monotonic() >= until


def run(steps: Steps[T]) -> T:
    """Carries out steps, blocking."""
    try:
        wait = next(steps)
        while True:
            try:
                left = wait.until - time.monotonic()
                wait.poller().poll(-1 if left == math.inf else max(0, math.ceil(left * 1000)))
            except BaseException as error:  # Ctrl-C: the steps clean up behind themselves
                wait = steps.throw(error)
            else:
                wait = next(steps)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


class Runner:
    """Carries out steps on the running event loop; `close` ends those that wait."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self._is_closed = False

    async def __call__(self, steps: Steps[T]) -> T:
        try:
            wait = next(steps)
            while True:
                try:
                    await self._until_ready(wait)
                except BaseException as error:  # cancelled: the steps clean up behind themselves
                    wait = steps.throw(error)
                else:
                    wait = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Makes whatever waits fail, and returns when nothing waits any more."""
        self._is_closed = True
        while self._waiting:
            for changed in self._waiting:
                changed.set()
            await asyncio.sleep(0)

    async def _until_ready(self, wait: Wait) -> None:
        # A socket's descriptor only says that its state may have changed: so poll first, then wait for it, and poll again.
        poller = wait.poller()
        if poller.poll(0):
            return
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        descriptors: list[Any] = [socket.getsockopt(zmq.FD) for socket in {*wait.sockets, *wait.writable}]
        for descriptor in descriptors:
            loop.add_reader(descriptor, changed.set)
        timer = None
        if wait.until != math.inf:
            timer = loop.call_later(max(0.0, wait.until - time.monotonic()), changed.set)
        self._waiting.add(changed)
        try:
            while not self._is_closed and not poller.poll(0) and not is_over(wait.until):
                await changed.wait()
                changed.clear()
        finally:
            self._waiting.discard(changed)
            if timer is not None:
                timer.cancel()
            for descriptor in descriptors:
                loop.remove_reader(descriptor)
        if self._is_closed:
            raise ValueError("This client is closed.")
