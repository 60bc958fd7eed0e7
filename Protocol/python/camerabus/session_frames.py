# SPDX-License-Identifier: Apache-2.0
"""The frames of a session's output: they follow the session to another camera, size or rate, and wait while it is
interrupted.
"""

from __future__ import annotations

import math
from typing import Any, Callable

from .core import Call, Core
from .errors import BusTimeout, CaptureError, FormatUnsupported, SessionNotFound, SessionNotRunning, Unauthorized
from .event_feed import EventFeed
from .following import Feed
from .frame import Frame
from .frame_feed import FrameErrors, FrameFeed
from .steps import Steps, Wait, deadline, is_over

#: How long after a frame's error the session may take to say what has become of it.
_NEWS = 2.0


class SessionFeed(Feed[Frame]):
    """A session as its state tells of it, and the frames that its output gets then."""

    def __init__(
        self,
        core: Core,
        id: str,
        choose: Callable[[Any], tuple[str, str]],
        make: Callable[[str, str], FrameFeed],
        limit: int | None,
        timeout: float,
        errors: FrameErrors,
    ) -> None:
        """`choose` returns the device and rendition for a state (None: there is no session any more), or raises the
        reason why none fits; `make` makes their feed.
        """
        self._core = core
        self._id = id
        self._choose = choose
        self._make = make
        self._left = math.inf if limit is None else limit
        self._timeout = timeout
        self._errors = errors
        self._topic = f"state/session/{id}/"
        self._events = EventFeed(core, [self._topic])
        self._connections = 0
        self._state: Any = None
        self._wish: tuple[str, str] | None = None
        self._feed: FrameFeed | None = None
        self._lost: dict[str, int] = {}
        self._late: dict[str, int] = {}
        #: Why a device gave no frame, or the session did not run, the last time that one did not.
        self.last_error: CaptureError | None = None

    def __str__(self) -> str:
        return f"of session {self._id}{'' if self._events.subscription else ': closed'}"

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by device."""
        return _sum(self._lost, self._feed.lost if self._feed else {})

    @property
    def late(self) -> dict[str, int]:
        """Frames that were overwritten in shared memory before they were used, or while they were, by device."""
        return _sum(self._late, self._feed.late if self._feed else {})

    def open(self) -> Steps[None]:
        yield from self._events.open()
        try:
            yield from self._learn()
            until = deadline(self._timeout)
            while self._is("starting") and not is_over(until):
                yield from self._events.wait(until)
                yield from self._learn()
            yield from self._turn(self._choose(self._state))
        except BaseException:
            self.close()
            raise

    def follow(self) -> Steps[Frame | None]:
        if self._left <= 0:
            self.close()
        if self._events.subscription is None:
            return None
        frame = yield from self._next()
        self._left -= 1
        return frame

    def _next(self) -> Steps[Frame]:
        until = deadline(self._timeout)
        while True:
            has_news = yield from self._learn()
            if (has_news or self._feed is None) and ((wish := self._wanted()) != self._wish or self._feed is None):
                self._drop()
                if wish is None:
                    # While it is interrupted nothing comes, however long; it says why, and when that is over.
                    if self._is("starting") and is_over(until):
                        raise BusTimeout(f"Session {self._id} did not start within {self._timeout:g} s.")
                    yield from self._events.wait(until if self._is("starting") else math.inf)
                    continue
                until = deadline(self._timeout)
                yield from self._turn(wish)
            assert self._feed is not None
            steps = self._feed.next()
            try:
                while True:
                    try:
                        wait = next(steps)
                    except StopIteration as stop:
                        return stop.value  # type: ignore[no-any-return]
                    assert self._events.subscription is not None
                    yield Wait((*wait.sockets, *self._events.subscription.sockets), wait.until, wait.writable)
                    if (yield from self._learn()) and self._wanted() != self._wish:
                        self._drop()
                        break
            except FormatUnsupported as error:
                # The camera has another format by now, which the session may tell a moment later.
                self.last_error = error
                yield from self._await_news(error)
            finally:
                steps.close()

    def _await_news(self, error: CaptureError) -> Steps[None]:
        until = deadline(_NEWS)
        while self._wanted() == self._wish:
            if is_over(until):
                raise error
            yield from self._events.wait(until)
            yield from self._learn()
        self._drop()

    def _learn(self) -> Steps[bool]:
        """Takes in what the bus has said of the session; whether it has."""
        has_news = False
        while (message := self._events.take()) is not None:
            topic, body = message
            if topic == self._topic:
                self._state, has_news = body.get("value"), True
        if self._connections != self._events.connections:
            self._connections = self._events.connections
            # A bus that was started anew: what has changed meanwhile was told to nobody.
            call: Call[Any] = Call("session.get", {"session": self._id}, lambda result: result, True)
            self._state, has_news = (yield from self._core.ask(call)).get("state"), True
        return has_news

    def _is(self, state: str) -> bool:
        return isinstance(self._state, dict) and self._state.get("state") == state

    def _wanted(self) -> tuple[str, str] | None:
        """What is to be received now; None: nothing yet. Raises when nothing will be."""
        if self._state is None:
            raise SessionNotFound(f"Session {self._id} has ended.", {"session": self._id})
        if self._is("starting"):
            return None
        try:
            return self._choose(self._state)
        except (SessionNotRunning, Unauthorized) as error:
            self.last_error = error
            goes_on = self._state.get("interruption") or self._is("waitingForAuthorization")
            if self._errors == "raise" or not goes_on:
                raise
            return None

    def _turn(self, wish: tuple[str, str]) -> Steps[None]:
        feed = self._make(*wish)
        yield from feed.open()
        self._feed, self._wish = feed, wish

    def _drop(self) -> None:
        if self._feed is not None:
            self._lost, self._late = self.lost, self.late
            self.last_error = self._feed.last_error or self.last_error
            self._feed.close()
        self._feed = self._wish = None

    def close(self) -> None:
        self._drop()
        self._events.close()


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
