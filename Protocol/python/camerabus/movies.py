# SPDX-License-Identifier: Apache-2.0
"""Movies: cameras and microphones recorded into files by the bus, for both clients.

    with client.record("cam0", microphone="mic0", path="/tmp/take.mp4") as movie:
        …
    print(movie.ending.reason, movie.ending.frames)
"""

from __future__ import annotations

import math
import os
from types import TracebackType
from typing import Any, AsyncIterator, Iterator, Mapping, Self

from .closing import Pending, first_error
from .core import AsyncOpened, Core, Opened
from .errors import BusEnded, BusGone, BusTimeout, EntryNotFound, NotRecording, ShuttingDown, Unauthorized
from .mirroring import MirrorBase
from .movie_messages import (
    MovieEnding, MovieSettings, MovieStart, MovieState, _from_library, _listing, _patience, _recommended, _start, _state, _stop, wishes,
)  # fmt: skip
from .steps import Runner, Steps, deadline, is_over, run
from .values import read


class MovieBase:
    """What both kinds of movie have."""

    def __init__(self, core: Core, start: MovieStart) -> None:
        self._core = core
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
        """The file, as the bus sees it; empty: a server gets it."""
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
        if self.ending is None:
            self.ending = yield from self._core.ask(_stop(self.id), _patience(self._core, timeout))
        return self.ending

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
                raise BusTimeout(f"The movie {self._movie.id} has not changed in time.")
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
            # It may have ended while there was no bus: the library alone knows how. If not, its recorder will tell the new bus.
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
        """How far it is, ten times a second, until it has ended: then `ending` says how. `BusTimeout` when nothing changes for `timeout`."""
        mirror = self._mirror()
        try:
            while (state := run(mirror.next(deadline(timeout)))) is not None:
                yield state
        finally:
            mirror.close()

    def wait(self, timeout: float = math.inf) -> MovieEnding:
        """Until it has ended by itself, or `BusTimeout`."""
        until, mirror = deadline(timeout), self._mirror()
        try:
            while run(mirror.next(until)) is not None:
                if is_over(until):
                    raise BusTimeout(f"The movie {self.id} has not ended within {timeout:g} s.")
        finally:
            mirror.close()
        assert self.ending is not None
        return self.ending

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with first_error(error):
            run(self._leave())


class AsyncMovie(MovieBase):
    """The same for asyncio."""

    def __init__(self, core: Core, start: MovieStart, runner: Runner) -> None:
        super().__init__(core, start)
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

    async def wait(self, timeout: float = math.inf) -> MovieEnding:
        until, mirror = deadline(timeout), self._mirror()
        try:
            while await self._run(mirror.next(until)) is not None:
                if is_over(until):
                    raise BusTimeout(f"The movie {self.id} has not ended within {timeout:g} s.")
        finally:
            mirror.close()
        assert self.ending is not None
        return self.ending

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            await self._run(self._leave())


class MovieCalls(Opened):
    """What `Client` has of movies."""

    def record(
        self,
        device: str | None = None,
        *,
        microphone: str | None = None,
        session: str | None = None,
        path: str | os.PathLike[str] | None = None,
        name: str | None = None,
        url: str | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: float | None = None,
        duration: float | None = None,
        max_size: int | None = None,
        min_free: int | None = None,
        resilient: bool = False,
        smooth_focus: bool = True,
        stabilization: str | None = None,
        when_denied: str | None = None,
        detached: bool = False,
        take: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        timeout: float | None = None,
    ) -> Movie:
        """Records a movie of a camera, with a microphone's sound if one is named; answers when the first frame is in the file.

        It goes into the file `path` (`.mp4`, `.mov` or `.mkv`), or without one into the bus's capture library. Nothing is overwritten. It ends with
        its `with` block, or with this process, unless it is `detached`; and by itself after `duration` seconds, before the file has more than
        `max_size` bytes, or the disk less than `min_free`. A crash or a power cut costs the last `fragment` seconds at most (10).

        JPEG and H.264 of the camera are stored as they come, other pictures as H.264; `codec` says otherwise: `passThrough`, `h264` or `raw`.
        `settings` are those of `recommended_settings`, changed. With `fps` frames are equally far apart, else each has its true time. If
        the process that writes the file dies, a `resilient` movie goes on in a further file with the same `take`.

        As long as it is made the camera focuses smoothly, where it can, and its pictures are stabilized by `stabilization` (`standard`, `cinematic`, `auto`).
        With `when_denied="blank"` a camera or a microphone that this user may not have is black, or silent, in it; `state.blank` says which.

        With `url` a media server gets it instead (`rtsp://`, `srt://` or `rtmp://`, as far as the bus's configuration allows), and H.264 at any rate; one
        that goes away is looked for until the movie ends.

        `orientation` (`portrait`, `portraitUpsideDown`, `landscapeRight`, `landscapeLeft`) and `mirrored` say how it is to be shown; None: as the
        session has it.

        Raises `RecordingInProgress`, `PathNotAllowed` (it has the `roots`), `DiskFull`, `Unauthorized`, `InvalidParams` if the file is there, or the
        server is not.
        """
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            device=device, session=session, microphone=microphone, path=path, name=name, url=url, file_type=file_type,
            codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration, max_size=max_size, min_free=min_free,
            resilient=resilient, detached=detached, take=take, smooth_focus=smooth_focus, stabilization=stabilization,
            when_denied=when_denied,
        )  # fmt: skip
        return Movie(self._open, run(_start(self._open, params, timeout))[0])

    def record_rig(
        self,
        rig: str,
        *,
        microphone: str | None = None,
        path: str | os.PathLike[str] | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: float | None = None,
        duration: float | None = None,
        max_size: int | None = None,
        min_free: int | None = None,
        resilient: bool = False,
        smooth_focus: bool = True,
        stabilization: str | None = None,
        when_denied: str | None = None,
        detached: bool = False,
        take: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        timeout: float | None = None,
    ) -> list[Movie]:
        """Records a movie of each camera of a rig, begun together, all with the sound of one microphone; `state.startOffset` of each says
        how far from the common begin its first frame is. All of them begin, or none."""
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            rig=rig, microphone=microphone, path=path, name=None, file_type=file_type, codec=codec, settings=settings,
            fragment=fragment, fps=fps, duration=duration, max_size=max_size, min_free=min_free, resilient=resilient,
            detached=detached, take=take, smooth_focus=smooth_focus, stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        return [Movie(self._open, start) for start in run(_start(self._open, params, timeout))]

    def movies(self, *, timeout: float | None = None) -> list[MovieState]:
        """Those that are being recorded, in the order in which they were begun."""
        return run(self._open.ask(_listing(), timeout))

    def find_movie(self, id: str, *, timeout: float | None = None) -> Movie:
        """A movie that is being recorded, perhaps for another process, or one of the 64 that ended last."""
        state = run(self._open.ask(_state("status", id), timeout))
        movie = Movie(self._open, _as_started(state))
        movie._learn(state)
        return movie

    def recommended_settings(
        self,
        device: str | None = None,
        *,
        session: str | None = None,
        microphone: str | None = None,
        file_type: str = "mp4",
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Complete settings for a kind of file, of the size and the rate that the camera has now: what `record` takes as `settings`."""
        return run(self._open.ask(_recommended(device, session, microphone, file_type), timeout))


def _as_started(state: MovieState) -> MovieStart:
    devices = tuple(name for name in (state.device, state.microphone) if name)
    return MovieStart(
        movie=state.id, path=state.path, url=state.url, take=state.take, part=state.part, devices=devices, microphone=state.microphone,
        fileType=state.fileType, video=state.video, audio=state.audio, raw=state.raw,
    )  # fmt: skip


class AsyncMovieCalls(AsyncOpened):
    """What `AsyncClient` has of movies."""

    def record(
        self,
        device: str | None = None,
        *,
        microphone: str | None = None,
        session: str | None = None,
        path: str | os.PathLike[str] | None = None,
        name: str | None = None,
        url: str | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: float | None = None,
        duration: float | None = None,
        max_size: int | None = None,
        min_free: int | None = None,
        resilient: bool = False,
        smooth_focus: bool = True,
        stabilization: str | None = None,
        when_denied: str | None = None,
        detached: bool = False,
        take: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        timeout: float | None = None,
    ) -> Pending[AsyncMovie]:
        """To be entered (`async with client.record("cam0") as movie:`) or awaited, which only begins it."""
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            device=device, session=session, microphone=microphone, path=path, name=name, url=url, file_type=file_type,
            codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration, max_size=max_size, min_free=min_free,
            resilient=resilient, detached=detached, take=take, smooth_focus=smooth_focus, stabilization=stabilization,
            when_denied=when_denied,
        )  # fmt: skip
        core = self._open

        async def start() -> AsyncMovie:
            return AsyncMovie(core, (await self._run(_start(core, params, timeout)))[0], self._run)

        return Pending(start)

    async def record_rig(
        self,
        rig: str,
        *,
        microphone: str | None = None,
        path: str | os.PathLike[str] | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: float | None = None,
        duration: float | None = None,
        max_size: int | None = None,
        min_free: int | None = None,
        resilient: bool = False,
        smooth_focus: bool = True,
        stabilization: str | None = None,
        when_denied: str | None = None,
        detached: bool = False,
        take: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        timeout: float | None = None,
    ) -> list[AsyncMovie]:
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            rig=rig, microphone=microphone, path=path, name=None, file_type=file_type, codec=codec, settings=settings,
            fragment=fragment, fps=fps, duration=duration, max_size=max_size, min_free=min_free, resilient=resilient,
            detached=detached, take=take, smooth_focus=smooth_focus, stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        started = await self._run(_start(self._open, params, timeout))
        return [AsyncMovie(self._open, start, self._run) for start in started]

    async def movies(self, *, timeout: float | None = None) -> list[MovieState]:
        return await self._run(self._open.ask(_listing(), timeout))

    async def find_movie(self, id: str, *, timeout: float | None = None) -> AsyncMovie:
        state = await self._run(self._open.ask(_state("status", id), timeout))
        movie = AsyncMovie(self._open, _as_started(state), self._run)
        movie._learn(state)
        return movie

    async def recommended_settings(
        self,
        device: str | None = None,
        *,
        session: str | None = None,
        microphone: str | None = None,
        file_type: str = "mp4",
        timeout: float | None = None,
    ) -> dict[str, Any]:
        return await self._run(self._open.ask(_recommended(device, session, microphone, file_type), timeout))
