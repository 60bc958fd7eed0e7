# SPDX-License-Identifier: Apache-2.0
"""Movies: what clients have to begin and to find them."""

from __future__ import annotations

import os
from typing import Any

from .bringing import begin
from .closing import Pending
from .core import AsyncOpened, Opened
from .movie_messages import (
    MovieEnding, MovieSettings, MovieStart, MovieState, _listing, _patience, _recommended, _state, _states, _stop_all,
    wishes,
)  # fmt: skip
from .movies import AsyncMovie, Movie
from .rates import FrameRate
from .steps import run


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
        fps: FrameRate | None = None,
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
        """Records a movie of a camera, with a microphone's sound if one is named; answers when the first frame is in
        the file.

        It goes into the file `path` (`.mp4`, `.mov` or `.mkv`), or without one into the bus's capture library. Nothing
        is overwritten. It ends with its `with` block, or with this process, unless it is `detached`; and by itself
        after `duration` seconds, before the file has more than `max_size` bytes, or the disk less than `min_free`. A
        crash or a power cut costs the last `fragment` seconds at most (10).

        JPEG and H.264 of the camera are stored as they come, other pictures as H.264; `codec` says otherwise:
        `passThrough`, `h264`, or in `.mkv` and `.mov` the source's own samples, `raw` or `ffv1` (compressed without
        loss). `settings` are those of `recommended_settings`, changed. With `fps` frames are equally far apart, else
        each has its true time. If the process that writes the file dies, a `resilient` movie goes on in a further file
        with the same `take`.

        As long as it is made the camera focuses smoothly, where it can, and its pictures are stabilized by
        `stabilization` (`standard`, `cinematic`, `auto`). With `when_denied="blank"` a camera or a microphone that this
        user may not have is black, or silent, in it; `state.blank` says which.

        With `url` a media server gets it instead (`rtsp://`, `srt://` or `rtmp://`, as far as the bus's configuration
        allows), and H.264 at any rate; one that goes away is looked for until the movie ends.

        Over TCP, and where a bus of another user may not write, it is recorded into the bus's library, and comes to
        `path` here when it has ended, with `stop`, `wait`, `states` or the end of the `with` block; what is cut off
        then goes on with `fetch_from_library`. One that is `detached` has no `path` there.

        `orientation` (`portrait`, `portraitUpsideDown`, `landscapeRight`, `landscapeLeft`) and `mirrored` say how it is
        to be shown; None: as the session has it.

        Raises `RecordingInProgress`, `PathNotAllowed` (one that is `detached`; it has the `roots`), `DiskFull`,
        `Unauthorized`, `InvalidParams` if the file is there (one that comes here `FileExistsError`), or the server is
        not.
        """
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            device=device, session=session, microphone=microphone, path=path, name=name, url=url, file_type=file_type,
            codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration, max_size=max_size,
            min_free=min_free, resilient=resilient, detached=detached, take=take, smooth_focus=smooth_focus,
            stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        return Movie(self._open, *run(begin(self._open, params, timeout))[0])

    def record_rig(
        self,
        rig: str | None = None,
        *,
        session: str | None = None,
        microphone: str | None = None,
        path: str | os.PathLike[str] | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: FrameRate | None = None,
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
        """Records a movie of each camera of a rig, or of a session, begun together, all with the sound of one
        microphone; `state.startOffset` of each says how far from the common begin its first frame is. All of them
        begin, or none. `stop_movies` ends them at one moment.
        """
        params = wishes(
            orientation=orientation, mirrored=mirrored,
            rig=rig, session=session, each_camera=session is not None, microphone=microphone, path=path, name=None,
            file_type=file_type, codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration,
            max_size=max_size, min_free=min_free, resilient=resilient, detached=detached, take=take,
            smooth_focus=smooth_focus, stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        return [Movie(self._open, start, target) for start, target in run(begin(self._open, params, timeout))]

    def stop_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieEnding]:
        """Ends all movies of a take (`movie.start.take`), or of a rig, at one moment: the last frame of each is the
        last that its camera took before. Answers when their files are on the disk, also with those of the take that
        had ended before; without a running one it returns the last take's again. `stop()` of one says the same.
        """
        return run(self._open.ask(_stop_all(take, rig), _patience(self._open, timeout)))

    def pause_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieState]:
        """Leaves out what comes from one moment on, in all movies of a take or rig."""
        return run(self._open.ask(_states("pause", take, rig), timeout))

    def resume_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieState]:
        """Continues all movies of a take or rig at one moment."""
        return run(self._open.ask(_states("resume", take, rig), timeout))

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
        """Complete settings for a kind of file, of the size and the rate that the camera has now: what `record` takes
        as `settings`.
        """
        return run(self._open.ask(_recommended(device, session, microphone, file_type), timeout))


def _as_started(state: MovieState) -> MovieStart:
    devices = tuple(name for name in (state.device, state.microphone) if name)
    return MovieStart(
        movie=state.id, path=state.path, url=state.url, take=state.take, part=state.part, devices=devices,
        microphone=state.microphone, fileType=state.fileType, video=state.video, audio=state.audio, raw=state.raw,
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
        fps: FrameRate | None = None,
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
            codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration, max_size=max_size,
            min_free=min_free, resilient=resilient, detached=detached, take=take, smooth_focus=smooth_focus,
            stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        core = self._open

        async def start() -> AsyncMovie:
            begun, target = (await self._run(begin(core, params, timeout)))[0]
            return AsyncMovie(core, begun, self._run, target)

        return Pending(start)

    async def record_rig(
        self,
        rig: str | None = None,
        *,
        session: str | None = None,
        microphone: str | None = None,
        path: str | os.PathLike[str] | None = None,
        file_type: str | None = None,
        codec: str | None = None,
        settings: MovieSettings | None = None,
        fragment: float | None = None,
        fps: FrameRate | None = None,
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
            rig=rig, session=session, each_camera=session is not None, microphone=microphone, path=path, name=None,
            file_type=file_type, codec=codec, settings=settings, fragment=fragment, fps=fps, duration=duration,
            max_size=max_size, min_free=min_free, resilient=resilient, detached=detached, take=take,
            smooth_focus=smooth_focus, stabilization=stabilization, when_denied=when_denied,
        )  # fmt: skip
        started = await self._run(begin(self._open, params, timeout))
        return [AsyncMovie(self._open, start, self._run, target) for start, target in started]

    async def stop_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieEnding]:
        return await self._run(self._open.ask(_stop_all(take, rig), _patience(self._open, timeout)))

    async def pause_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieState]:
        return await self._run(self._open.ask(_states("pause", take, rig), timeout))

    async def resume_movies(
        self, *, take: str | None = None, rig: str | None = None, timeout: float | None = None
    ) -> list[MovieState]:
        return await self._run(self._open.ask(_states("resume", take, rig), timeout))

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
