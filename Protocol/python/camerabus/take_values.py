# SPDX-License-Identifier: Apache-2.0
"""What the bus says of takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

from .values import Holder, _map, _of, _raw, _tuple, read


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeSegment:
    """A finished segment: the movie with that id, in a file of its own. `duration` is in milliseconds."""

    id: str = ""
    path: str = ""
    duration: float = 0.0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeState:
    """How far a take is. `state` is paused, recording, ending (a segment's file is being closed) or finishing (the
    segments are being joined); durations are in milliseconds.
    """

    id: str = ""
    name: str = ""
    state: str = ""
    session: str | None = None
    device: str | None = None
    microphone: str | None = None
    #: Who made it: it is that user's.
    owner: Holder | None = _of(Holder)
    #: Its segments go on when the process has ended that began them.
    detached: bool = False
    #: The one that is recorded; None: none is.
    segment: str | None = None
    #: Those that are finished, in their order.
    segments: tuple[TakeSegment, ...] = _tuple(lambda value: read(TakeSegment, value))
    #: Of the one that is recorded, and of all.
    duration: float = 0.0
    total: float = 0.0
    #: How much can be recorded still; None: as much as you like.
    remaining: float | None = None
    minDuration: float | None = None
    maxDuration: float | None = None
    exportPreset: str | None = None
    video: Mapping[str, Any] = _map()
    audio: Mapping[str, Any] = _map()
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEnding:
    """How a segment ended, `reason` and `success` as of a movie, and how much the take has with it, in milliseconds.
    What is not `kept` is no segment of it.
    """

    segment: str = ""
    path: str = ""
    reason: str = ""
    success: bool = False
    error: Mapping[str, Any] = _map()
    kept: bool = True
    duration: float = 0.0
    total: float = 0.0
    remaining: float | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTake:
    """The movie that the segments were joined into. `cover` is its first frame as JPEG (None: it is sound alone),
    `duration` in milliseconds, `size` in bytes; `encoded`: picture and sound were encoded anew.
    """

    take: str = ""
    path: str = ""
    cover: str | None = None
    duration: float = 0.0
    size: int = 0
    encoded: bool = False
    raw: Mapping[str, Any] = _raw()
