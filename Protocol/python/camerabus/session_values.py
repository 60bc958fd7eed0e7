# SPDX-License-Identifier: Apache-2.0
"""What the bus says of sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from .formats import FormatDescription
from .values import Holder, _map, _of, _raw, _tuple, read


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDelivery:
    """What an output gets from one of the session's inputs: `rendition` of `device`; None: it has no topic. Where
    `device` is empty the session has no input of its kind, and `why` says what to do.

    Of sound (`mediaType` `audio`), which `Client.sound` gives, `width`, `height` and `frameRate` are None.
    """

    output: str = ""
    type: str = ""
    device: str = ""
    mediaType: str = "video"
    topic: str | None = None
    rendition: str | None = None
    width: int | None = None
    height: int | None = None
    frameRate: float | None = None
    #: Of sound: `s16` or `f32`, or with the rendition `native` the microphone's; None: it is pictures.
    sampleFormat: str | None = None
    rate: int | None = None
    channels: int | None = None
    mirrored: bool = False
    #: What is on at the device, whoever wanted it: `off` or `standard`.
    activeVideoStabilizationMode: str = "off"
    why: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInterruption:
    """Why a session that is wanted does not run, and who has what it needs."""

    reason: str = ""
    device: str | None = None
    by: Any = None
    message: str = ""
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session, as all may see it. `state` is stopped, starting, running, interrupted or waitingForAuthorization."""

    id: str = ""
    name: str | None = None
    owner: Holder | None = _of(Holder)
    detached: bool = False
    since: int = 0
    preset: str = ""
    priority: int = 0
    inputs: tuple[Mapping[str, Any], ...] = _tuple()
    outputs: tuple[Mapping[str, Any], ...] = _tuple()
    connections: tuple[Mapping[str, Any], ...] = _tuple()
    state: str = ""
    wanted: bool = False
    interruption: SessionInterruption | None = _of(SessionInterruption)
    error: Mapping[str, Any] = _map()
    resolved: tuple[SessionDelivery, ...] = _tuple(lambda value: read(SessionDelivery, value))
    #: As in answers; None: it is not started.
    hardwareCost: float | None = None
    explanation: tuple[str, ...] = _tuple()
    raw: Mapping[str, Any] = _raw()

    def format_description(self, device: str | None = None) -> FormatDescription | None:
        """What a camera delivers to the session, of `device` or of the first input that delivers pictures; None: it
        delivers nothing now, or is a microphone.
        """
        for input in self.inputs:
            if device in (None, input.get("device")) and (stated := input.get("formatDescription")):
                return FormatDescription.parse(stated)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    """What a request about a session answers; of one that is not started `resolved` is what it would get."""

    session: str = ""
    state: SessionState | None = _of(SessionState)
    resolved: tuple[SessionDelivery, ...] = _tuple(lambda value: read(SessionDelivery, value))
    #: What part of its bandwidth the fullest USB bus of its cameras has to give, with all that streams beside; above 1
    #: it can't run, 0: none is on USB.
    hardwareCost: float = 0.0
    explanation: tuple[str, ...] = _tuple()
    #: False: it is so, but could not be written to the disk: a bus that is started after this one may have it as it was
    #: before.
    kept: bool = True
    #: Of `switch_camera`: the camera it has now, whether that is another, and options that this one has not.
    active: str | None = None
    switched: bool = False
    dropped: tuple[Mapping[str, Any], ...] = _tuple()
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class CanAdd:
    """Whether an action could be carried out. True in conditions if so; else `why` tells, and `reason` by which
    refusal.
    """

    can: bool = False
    why: str | None = None
    reason: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.can
