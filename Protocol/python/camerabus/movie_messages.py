# SPDX-License-Identifier: Apache-2.0
"""What is asked of the bus about movies, and what it answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Mapping, TypeAlias

from .calls import _object
from .core import Call, Core, given
from .errors import ProtocolError
from .rates import FrameRate, wire
from .steps import Steps
from .values import Holder, _map, _of, _raw, _tuple, read, read_list

#: {video: {codec, width, height, bitRate, keyFrameInterval, …} or None, audio: {codec, rate, channels, bitRate} or
#: None}.
MovieSettings: TypeAlias = Mapping[str, Any]

#: Reasons that mean that a movie ended as was asked for.
SUCCESSES = frozenset({
    "stopped", "maximumDurationReached", "maximumFileSizeReached", "minimumFreeDiskSpaceReached", "libraryQuotaReached",
    "ownerGone", "shuttingDown",
})  # fmt: skip
#: The start and the end of a movie: its camera has to give pictures, and its file has to be on the disk. Seconds.
PATIENCE = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovieEnding:
    """How a movie ended: with `success` if as was asked for, by `stopped`, a limit or the end of its program.

    If not, `error` may say more; what was recorded until then is `kept` and plays, unless nothing was. `duration` is in
    milliseconds, `size` in bytes; `next` is the movie that goes on in its place, in another file: `stop()` ends that
    one, too.
    """

    movie: str = ""
    reason: str = ""
    success: bool = False
    error: Mapping[str, Any] = _map()
    path: str = ""
    #: The server that had it, in the place of a file; without a password.
    url: str | None = None
    duration: float = 0.0
    size: int = 0
    frames: int = 0
    dropped: int = 0
    kept: bool = True
    next: str | None = None
    #: Why it has no side-car, or one that is not whole, in a sentence.
    sideCarProblem: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class MovieState:
    """How far a movie is. `state` is starting, recording, paused, finishing or finished; durations are in milliseconds,
    sizes in bytes.
    """

    id: str = ""
    path: str = ""
    #: The server that gets it, in the place of a file; without a password.
    url: str | None = None
    name: str = ""
    state: str = ""
    device: str | None = None
    microphone: str | None = None
    session: str | None = None
    rig: str | None = None
    #: What the movies of a rig, and the parts of one that outlived its recorder, have in common.
    take: str = ""
    part: int = 1
    owner: Holder | None = _of(Holder)
    detached: bool = False
    fileType: str = ""
    video: Mapping[str, Any] = _map()
    audio: Mapping[str, Any] = _map()
    fragmentInterval: float = 0.0
    #: With what waits for the end of its fragment; what outlives a power cut is `synced…`.
    recordedDuration: float = 0.0
    recordedFileSize: int = 0
    syncedDuration: float = 0.0
    syncedFileSize: int = 0
    frames: int = 0
    #: Frames that are missing: lost on the way to the recorder, or left out as there was no time for them.
    dropped: int = 0
    fragments: int = 0
    #: From 0 to 1: what part of the time the encoder works.
    encoderLoad: float = 0.0
    #: Of a rig: milliseconds from the time that all were to begin at to the first frame.
    startOffset: float | None = None
    #: Of a `url`: whether the server is there, and how often it was connected to again.
    connected: bool | None = None
    reconnects: int = 0
    #: What its camera was set to for it.
    smoothAutoFocus: bool = False
    stabilization: str | None = None
    #: `video` is black in it, or `audio` silence, as its user may not have it.
    blank: tuple[str, ...] = _tuple()
    #: Why it has no side-car, or none any more, in a sentence.
    sideCarProblem: str | None = None
    #: {width, height} of the camera's pictures now, which the movie scales; empty: that has not changed.
    source: Mapping[str, Any] = _map()
    #: The movie in whose place it continues.
    follows: str | None = None
    #: Its devices that have given something and give nothing now: it waits for them, and ends when they stay away.
    waitingFor: tuple[str, ...] = _tuple()
    #: Of one that has ended.
    end: MovieEnding | None = _of(MovieEnding)
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class MovieStart:
    """What was answered when a movie began."""

    movie: str = ""
    path: str = ""
    url: str | None = None
    take: str = ""
    part: int = 1
    devices: tuple[str, ...] = _tuple()
    microphone: str | None = None
    fileType: str = ""
    video: Mapping[str, Any] = _map()
    audio: Mapping[str, Any] = _map()
    smoothAutoFocus: bool = False
    stabilization: str | None = None
    blank: tuple[str, ...] = _tuple()
    sideCarProblem: str | None = None
    raw: Mapping[str, Any] = _raw()


def wishes(
    *,
    microphone: str | None,
    path: str | os.PathLike[str] | None,
    name: str | None,
    orientation: str | None,
    mirrored: bool | None,
    file_type: str | None,
    codec: str | None,
    settings: MovieSettings | None,
    fragment: float | None,
    fps: FrameRate | None,
    duration: float | None,
    max_size: int | None,
    min_free: int | None,
    resilient: bool,
    detached: bool,
    take: str | None,
    url: str | None = None,
    smooth_focus: bool = True,
    stabilization: str | None = None,
    when_denied: str | None = None,
    each_camera: bool = False,
    **subject: str | None,
) -> dict[str, Any]:
    """The params of `movie.start`."""
    milliseconds = {
        name: seconds * 1000 for name,
        seconds in (("fragmentInterval", fragment), ("maxDuration", duration)) if seconds is not None
    }
    return {
        **given(
            **subject, microphone=microphone, orientation=orientation,
            path=None if path is None else os.path.abspath(path), name=name, url=url, fileType=file_type, codec=codec,
            settings=None if settings is None else dict(settings), frameRate=None if fps is None else wire(fps),
            maxFileSize=max_size, continueAfterCrash=resilient, detached=detached, take=take,
            stabilization=stabilization, whenDenied=when_denied, eachCamera=each_camera,
        ),  # fmt: skip
        # As the bus has it.
        **({} if smooth_focus else {"smoothAutoFocus": False}),
        **milliseconds,
        **({} if min_free is None else {"minFreeDiskSpace": min_free}),
        **({} if mirrored is None else {"mirrored": mirrored}),
    }


def _state(method: str, id: str) -> Call[MovieState]:
    def answered(result: Any) -> MovieState:
        return read(MovieState, _object(result).get("movie"))

    # Once more does no harm.
    return Call(f"movie.{method}", {"movie": id}, answered, True)


def _stop(id: str) -> Call[MovieEnding]:
    return Call("movie.stop", {"movie": id}, lambda result: read(MovieEnding, result), True)


def _states(method: str, take: str | None, rig: str | None) -> Call[list[MovieState]]:
    def answered(result: Any) -> list[MovieState]:
        return read_list(MovieState, _object(result).get("movies"))

    return Call(f"movie.{method}", _group(take, rig), answered, True)


def _stop_all(take: str | None, rig: str | None) -> Call[list[MovieEnding]]:
    def answered(result: Any) -> list[MovieEnding]:
        return read_list(MovieEnding, _object(result).get("movies"))

    return Call("movie.stop", _group(take, rig), answered, True)


def _group(take: str | None, rig: str | None) -> dict[str, str]:
    if (take is None) == (rig is None):
        raise ValueError("pass either take or rig")
    return given(take=take, rig=rig)


def _from_library(id: str) -> Call[MovieEnding | None]:
    def answered(result: Any) -> MovieEnding | None:
        entry = _object(_object(result).get("entry"))
        if entry.get("state") == "recording":
            return None
        state, reason = entry.get("state"), entry.get("reason") or "recorderCrashed"
        told = {name: entry[name] for name in ("path", "duration", "size", "frames", "dropped") if name in entry}
        error = {"reason": reason, "message": entry["problem"]} if entry.get("problem") else {}
        is_success = state == "finished" and reason in SUCCESSES
        members = {
            "movie": id, "reason": reason, "success": is_success, "kept": state in ("finished", "recovered"),
            "error": error,
        }
        return read(MovieEnding, {**members, **told})

    return Call("library.get", {"id": id}, answered, True)


def _listing() -> Call[list[MovieState]]:
    return Call("movie.list", {}, lambda result: read_list(MovieState, _object(result).get("movies")), True)


def _recommended(
    device: str | None, session: str | None, microphone: str | None, file_type: str
) -> Call[dict[str, Any]]:
    params = {"fileType": file_type, **given(device=device, session=session, microphone=microphone)}
    return Call("movie.recommendedSettings", params, _object, True)


def _started(result: Any) -> list[MovieStart]:
    movies = _object(result).get("movies")
    found = [read(MovieStart, result)] if movies is None else read_list(MovieStart, movies)
    if not found or not all(movie.movie and (movie.path or movie.url) for movie in found):
        raise ProtocolError("The answer of the bus is invalid: it contains no movie.")
    return found


def _start(
    core: Core, params: Mapping[str, Any], timeout: float | None, method: str = "movie.start"
) -> Steps[list[MovieStart]]:
    def undo(made: list[MovieStart]) -> list[Call[Any]]:
        return [_stop(movie.movie) for movie in made]

    call = Call(method, dict(params), _started)
    return (yield from core.ask_for(call, undo, _patience(core, timeout)))


def _patience(core: Core, timeout: float | None) -> float:
    return max(core.timeout, PATIENCE) if timeout is None else timeout
