# SPDX-License-Identifier: Apache-2.0
"""How one implementation serves both clients: what they do is written as generators ("steps") that yield whenever they
have to wait.

`run` waits by blocking in zmq_poll, a `Runner` on the event loop; everything else is the same code.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import contextmanager
from typing import Callable, Generator, Iterator, NamedTuple, ParamSpec, TypeVar

import zmq

T = TypeVar("T")
P = ParamSpec("P")
Socket = zmq.Socket[bytes]


class Wait(NamedTuple):
    """Waits until one of the sockets can be read (or for `writable`: written), or until the time (of time.monotonic).
    With a `body` it waits only until that has been carried out.

    What is no socket of ZeroMQ's is named by its descriptor.
    """

    sockets: tuple[Socket | int, ...]
    until: float
    writable: tuple[Socket, ...] = ()
    body: Callable[[], object] | None = None

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


def in_thread(body: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> Steps[T]:
    """Calls what takes its time, as disks do: under asyncio in a thread, so that the event loop goes on."""
    results: list[T] = []
    yield Wait((), math.inf, body=lambda: results.append(body(*arguments, **named)))
    return results[0]


def run(steps: Steps[T]) -> T:
    """Carries out steps, blocking."""
    try:
        wait = next(steps)
        while True:
            try:
                if wait.body is not None:
                    wait.body()
                elif wait.sockets or wait.writable:
                    left = wait.until - time.monotonic()
                    wait.poller().poll(-1 if left == math.inf else max(0, math.ceil(left * 1000)))
                else:
                    time.sleep(max(0.0, wait.until - time.monotonic()))  # pyzmq polls nothing without waiting
            except BaseException as error:  # Ctrl-C: the steps clean up behind themselves
                wait = steps.throw(error)
            else:
                wait = next(steps)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def beside(
    steps: Steps[T], look: Callable[[], object], sockets: tuple[Socket | int, ...] = (),
    until: Callable[[], float] | None = None,
) -> Steps[T]:
    """Carries out steps, and looks after each of their waits, which these sockets and this time end, too. What that
    raises, the steps get.
    """
    try:
        wait = next(steps)
        while True:
            try:
                limit = wait.until if until is None else min(wait.until, until())
                yield Wait((*wait.sockets, *sockets), limit, wait.writable, wait.body)
                look()
            except BaseException as error:
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
        self._is_done = asyncio.Event()
        #: Runners whose steps wait for what ends with this one.
        self.others: list[Runner] = []

    async def __call__(self, steps: Steps[T]) -> T:
        try:
            wait = next(steps)
            while True:
                try:
                    await (self._until_ready(wait) if wait.body is None else self._until_done(wait.body))
                except BaseException as error:  # cancelled: the steps clean up behind themselves
                    wait = steps.throw(error)
                else:
                    wait = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Makes whatever waits fail, and returns when nothing waits any more."""
        self._is_closed = True
        for other in self.others:
            await other.close()
        if self._waiting:
            for changed in self._waiting:
                changed.set()
            await self._is_done.wait()

    async def _until_ready(self, wait: Wait) -> None:
        # A socket's descriptor only says that its state may have changed: so poll first, then wait for it, and poll
        # again.
        poller = wait.poller()
        if poller.poll(0):
            return
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        descriptors = {_descriptor(socket) for socket in (*wait.sockets, *wait.writable)}
        for descriptor in descriptors:
            loop.add_reader(descriptor, changed.set)
        timer = None
        if wait.until != math.inf:
            timer = loop.call_later(max(0.0, wait.until - time.monotonic()), changed.set)
        try:
            with self._counted(changed):
                while not self._is_closed and not poller.poll(0) and not is_over(wait.until):
                    await changed.wait()
                    changed.clear()
        finally:
            if timer is not None:
                timer.cancel()
            for descriptor in descriptors:
                loop.remove_reader(descriptor)
        self._check()

    async def _until_done(self, body: Callable[[], object]) -> None:
        work = asyncio.get_running_loop().run_in_executor(None, body)
        cancelled: asyncio.CancelledError | None = None
        with self._counted(asyncio.Event()):
            # The steps clean up what the thread works on, so not before it has ended, however often this is cancelled.
            while not work.done():
                try:
                    await asyncio.wait([work])
                except asyncio.CancelledError as error:
                    cancelled = error
        failure = work.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure
        self._check()

    @contextmanager
    def _counted(self, waiting: asyncio.Event) -> Iterator[None]:
        self._waiting.add(waiting)
        try:
            yield
        finally:
            self._waiting.discard(waiting)
            if self._is_closed and not self._waiting:
                self._is_done.set()

    def _check(self) -> None:
        if self._is_closed:
            raise ValueError("This client is closed.")


def _descriptor(socket: Socket | int) -> int:
    return socket if isinstance(socket, int) else int(socket.getsockopt(zmq.FD))
