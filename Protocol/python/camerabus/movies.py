# SPDX-License-Identifier: Apache-2.0
"""Movies: cameras and microphones recorded into files by the bus, for both clients.

    with client.record("cam0", microphone="mic0", path="/tmp/take.mp4") as movie:
        …
    print(movie.ending.reason, movie.ending.frames)
"""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, AsyncIterator, Iterator, Mapping, Self

from .bringing import bring
from .closing import first_error
from .core import Core
from .errors import BusEnded, BusGone, BusTimeout, EntryNotFound, NotRecording, ShuttingDown, Unauthorized
from .mirroring import MirrorBase
from .movie_messages import MovieEnding, MovieStart, MovieState, _from_library, _patience, _state, _stop
from .steps import Runner, Steps, deadline, is_over, run
from .values import read


class MovieBase:
    """What both kinds of movie have."""

    def __init__(self, core: Core, start: MovieStart, target: str | None = None) -> None:
        self._core = core
        #: The file here that it comes to from the bus's library when it has ended, as `stop`, `wait`, `states` or the
        #: end of the block find; None: none.
        self.target = target
        self._is_here = False
        #: What was answered when it began.
        self.start = start
        #: How far it was when it was last asked about, or told.
        self.state: MovieState | None = None
        #: How it ended; None: that is not known to have happened.
        self.ending: MovieEnding | None = None

    def __repr__(self) -> str:
        how = self.ending.reason if self.ending else self.state.state if self.state else "recording"
        return f"<{type(self).__name__} {self.id} {self.url or self.path}: {how}>"

    @property
    def id(self) -> str:
        return self.start.movie

    @property
    def path(self) -> str:
        """The file, as the bus sees it, on its machine; empty: a server gets it. Where the bus is another user's, only
        that user can open what is in the library: `fetch_from_library(movie.id, …)` brings it.
        """
        return self.start.path

    @property
    def url(self) -> str | None:
        """The server that gets it, without a password; None: it is written into a file."""
        return self.start.url

    def _learn(self, state: MovieState) -> MovieState:
        self.state = state
        self.ending = state.end or self.ending
        return state

    def _ask(self, method: str, timeout: float | None) -> Steps[MovieState]:
        return self._learn((yield from self._core.ask(_state(method, self.id), timeout)))

    def _end(self, timeout: float | None) -> Steps[MovieEnding]:
        if self.ending is None or self.ending.next is not None:
            self.ending = yield from self._core.ask(_stop(self.id), _patience(self._core, timeout))
        yield from self._come()
        return self.ending

    def _come(self) -> Steps[None]:
        if self.target is not None and not self._is_here and self.ending is not None and self.ending.kept:
            yield from bring(self._core, self.ending.movie or self.id, self.target)
            self._is_here = True

    def _leave(self) -> Steps[None]:
        try:
            yield from self._end(None)
        except NotRecording:
            pass  # so long ago that nobody knows how

    def _mirror(self) -> MovieMirror:
        return MovieMirror(self._core, self)


class MovieMirror(MirrorBase):
    """A movie's state as it changes, to its end."""

    def __init__(self, core: Core, movie: MovieBase) -> None:
        super().__init__(core, f"state/movie/{movie.id}/", f"event/movie/{movie.id}/")
        self._movie = movie
        self._told: Mapping[str, Any] | None = None

    def _receive(self, topic: str, message: Mapping[str, Any]) -> None:
        super()._receive(topic, message)
        # A bus that ends tells it, and then can't be asked any more.
        if topic.startswith("event/movie/") and message.get("event") == "didFinishRecording":
            self._movie.ending = read(MovieEnding, message)

    def next(self, until: float) -> Steps[MovieState | None]:
        """The next state; None: it has ended. Raises `BusTimeout` when nothing changes in time."""
        if self._events.subscription is None and self._movie.ending is None:
            yield from self._open()
        while self._movie.ending is None:
            value = self.get(self.prefix)
            if value is not None and value != self._told:
                self._told = value
                return self._movie._learn(read(MovieState, value))
            if value is None and (yield from self._has_ended()):
                break
            if is_over(until):
                raise BusTimeout(f"The movie {self._movie.id} did not change in time.")
            try:
                yield from self._update(until)
            except BusEnded:
                if self._movie.ending is None:
                    raise
        return None

    def _has_ended(self) -> Steps[bool]:
        try:
            return (yield from self._movie._ask("status", None)).end is not None
        except (BusGone, BusEnded, ShuttingDown):
            return False  # it has told before it ended, or the next bus will
        except NotRecording as error:
            # It may have ended while there was no bus: the library alone knows how. If not, its recorder will tell the
            # new bus.
            try:
                self._movie.ending = yield from self._core.ask(_from_library(self._movie.id))
            except (EntryNotFound, Unauthorized):
                raise error from None
            return self._movie.ending is not None

    def close(self) -> None:
        self._events.close()


class Movie(MovieBase):
    """A movie that the bus records: the end of a `with` block ends it, and waits until its file is on the disk."""

    def stop(self, timeout: float | None = None) -> MovieEnding:
        """Ends it. Answers when the file is closed and on the disk; if it had ended by itself, how it did."""
        return run(self._end(timeout))

    def pause(self, timeout: float | None = None) -> MovieState:
        """Leaves out what comes from now on."""
        return run(self._ask("pause", timeout))

    def resume(self, timeout: float | None = None) -> MovieState:
        """Goes on in the same file, without a hole."""
        return run(self._ask("resume", timeout))

    def status(self, timeout: float | None = None) -> MovieState:
        """How far it is, or came."""
        return run(self._ask("status", timeout))

    def states(self, timeout: float = math.inf) -> Iterator[MovieState]:
        """How far it is, ten times a second, until it has ended: then `ending` says how. `BusTimeout` when nothing
        changes for `timeout`.
        """
        mirror = self._mirror()
        try:
            while (state := run(mirror.next(deadline(timeout)))) is not None:
                yield state
        finally:
            mirror.close()
        run(self._come())

    def wait(self, timeout: float = math.inf) -> MovieEnding:
        """Until it has ended by itself, or `BusTimeout`."""
        until, mirror = deadline(timeout), self._mirror()
        try:
            while run(mirror.next(until)) is not None:
                if is_over(until):
                    raise BusTimeout(f"The movie {self.id} did not end within {timeout:g} s.")
        finally:
            mirror.close()
        run(self._come())
        assert self.ending is not None
        return self.ending

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            run(self._leave())


class AsyncMovie(MovieBase):
    """The same for asyncio."""

    def __init__(self, core: Core, start: MovieStart, runner: Runner, target: str | None = None) -> None:
        super().__init__(core, start, target)
        self._run = runner

    async def stop(self, timeout: float | None = None) -> MovieEnding:
        return await self._run(self._end(timeout))

    async def pause(self, timeout: float | None = None) -> MovieState:
        return await self._run(self._ask("pause", timeout))

    async def resume(self, timeout: float | None = None) -> MovieState:
        return await self._run(self._ask("resume", timeout))

    async def status(self, timeout: float | None = None) -> MovieState:
        return await self._run(self._ask("status", timeout))

    async def states(self, timeout: float = math.inf) -> AsyncIterator[MovieState]:
        mirror = self._mirror()
        try:
            while (state := await self._run(mirror.next(deadline(timeout)))) is not None:
                yield state
        finally:
            mirror.close()
        await self._run(self._come())

    async def wait(self, timeout: float = math.inf) -> MovieEnding:
        until, mirror = deadline(timeout), self._mirror()
        try:
            while await self._run(mirror.next(until)) is not None:
                if is_over(until):
                    raise BusTimeout(f"The movie {self.id} did not end within {timeout:g} s.")
        finally:
            mirror.close()
        await self._run(self._come())
        assert self.ending is not None
        return self.ending

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            await self._run(self._leave())
