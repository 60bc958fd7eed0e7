# SPDX-License-Identifier: Apache-2.0
"""What the bus tells, as values. Their attributes have the protocol's own names (`device.activeFormat.pixelFormat`).

Members that this library doesn't know are ignored, and stay readable in `raw`; members that are missing are None or
empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

from .errors import CaptureError, ProtocolError
from .formats import FormatDescription

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """Makes one of the values of this module from a JSON object."""
    if not isinstance(value, dict):
        raise ProtocolError(f"The bus sent {value!r:.80} instead of a {kind.__name__}.")
    members: dict[str, Any] = {"raw": value}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name != "raw" and value.get(item.name) is not None:
            convert = item.metadata.get("read")
            members[item.name] = convert(value[item.name]) if convert else value[item.name]
    return kind(**members)


def read_list(kind: type[T], value: Any) -> list[T]:
    """The same for a JSON array of objects."""
    if not isinstance(value, list):
        raise ProtocolError(f"The bus sent no list of {kind.__name__}, but {value!r:.80}.")
    return [read(kind, member) for member in value]


def _of(kind: type[Any]) -> Any:
    return field(default=None, metadata={"read": lambda value: read(kind, value)})


def _tuple(convert: Callable[[Any], Any] = lambda value: value) -> Any:
    return field(default=(), metadata={"read": lambda value: tuple(map(convert, value))})


def _map() -> Any:
    return field(default_factory=dict, hash=False)


def _raw() -> Any:
    return field(default_factory=dict, repr=False, compare=False)


def _fraction(value: Any) -> Fraction:
    try:
        return Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError):
        raise ProtocolError(f"The bus sent {value!r:.40} instead of a fraction.") from None


def _duration() -> Any:
    return field(default=None, metadata={"read": _fraction})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock."""

    pid: int = 0
    uid: int = 0
    gid: int = 0
    name: str = ""
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFormat:
    """The format that a device has now: of a camera its pictures', of a microphone its sound's."""

    id: str = ""
    pixelFormat: str = ""
    width: int = 0
    height: int = 0
    #: Of a microphone: `s16`, `s24`, `s24in32`, `s32` or `f32`, and frames (samples of each channel) a second and at
    #: once.
    sampleFormat: str = ""
    rate: int = 0
    channels: int = 0
    periodFrames: int = 0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLock:
    """Who has a device locked. `id` is not the token."""

    id: str = ""
    holder: Holder | None = _of(Holder)
    fence: int = 0
    since: int = 0
    #: What for; only `who` tells it.
    note: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    """A lock, as all may see it. `id` is not the token; `lease` is in milliseconds, None: it is bound to its process.
    """

    id: str = ""
    devices: tuple[str, ...] = _tuple()
    holder: Holder | None = _of(Holder)
    fence: int = 0
    note: str | None = None
    since: int = 0
    lease: float | None = None
    expires: int | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockWait:
    """Who waits for a lock, and until when (CLOCK_MONOTONIC, nanoseconds)."""

    devices: tuple[str, ...] = _tuple()
    holder: Holder | None = _of(Holder)
    note: str | None = None
    until: int = 0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """The locks there are, in the order they were given, and who waits for one, the first to be served first."""

    locks: tuple[LockState, ...] = field(
        default=(), metadata={"read": lambda value: tuple(read_list(LockState, value))}
    )
    waiting: tuple[LockWait, ...] = field(
        default=(), metadata={"read": lambda value: tuple(read_list(LockWait, value))}
    )
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The process that serves a device."""

    pid: int | None = None
    state: str = ""
    restarts: int = 0
    busySince: int | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRestored:
    """Something of a device's last committed configuration that could not be put back into it."""

    path: str = ""
    wanted: Any = None
    why: str = ""
    raw: Mapping[str, Any] = _raw()

    @property
    def present(self) -> Any:
        """What it is instead (`is` in the protocol, which is no name in Python)."""
        return self.raw.get("is")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPressureState:
    """How hard it is for a device to go on: nominal, fair, serious, critical or shutdown, and what has brought it
    there.
    """

    level: str = "nominal"
    factors: tuple[str, ...] = _tuple(str)
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundDataSource:
    """What a microphone can be told to listen at: the control `data_source` takes its `id`."""

    id: str = ""
    name: str = ""
    #: `front`, `back` or `bottom`; None: not known.
    orientation: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A camera or a microphone. Times are CLOCK_MONOTONIC in nanoseconds, `frameDuration` is in seconds."""

    id: str = ""
    uniqueID: str = ""
    name: str = ""
    mediaType: str = "video"
    type: str = ""
    position: str = "unspecified"
    node: str | None = None
    driver: str = ""
    bus: str = ""
    connected: bool = False
    isOpen: bool = False
    isStreaming: bool = False
    stream: str | None = None
    memory: str | None = None
    activeFormat: ActiveFormat | None = _of(ActiveFormat)
    #: Of a camera: what it states about its pictures in its present format; None: it was not opened yet.
    formatDescription: FormatDescription | None = field(default=None, metadata={"read": FormatDescription.parse})
    frameDuration: Fraction | None = _duration()
    frameRate: float | None = None
    generation: int = 0
    controls: Mapping[str, Any] = _map()
    #: By camera control: False, True, or the words that it takes.
    supports: Mapping[str, Any] = _map()
    #: Of a microphone.
    dataSources: tuple[SoundDataSource, ...] = _tuple(lambda value: read(SoundDataSource, value))
    asOf: int | None = None
    kernelPriority: str | None = None
    notRestored: tuple[NotRestored, ...] = _tuple(lambda value: read(NotRestored, value))
    systemPressureState: SystemPressureState | None = _of(SystemPressureState)
    lock: DeviceLock | None = _of(DeviceLock)
    worker: Worker | None = _of(Worker)
    error: CaptureError | None = field(default=None, metadata={"read": CaptureError.from_header})
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A program that has a device's node open beside the bus."""

    uid: int = 0
    pid: int = 0
    name: str = ""
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A program that gets a device's frames; `renditions` are spelled as it spells them, at most 16."""

    uid: int = 0
    #: 0: a process that the bus can't see.
    pid: int = 0
    name: str = ""
    renditions: tuple[str, ...] = _tuple()
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A program that waits for a lock on all of `devices`."""

    holder: Holder | None = _of(Holder)
    devices: tuple[str, ...] = _tuple()
    note: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Who uses a device. Unless it is `complete`, there may be more foreign programs, of users that the bus can't look
    into.
    """

    device: str = ""
    node: str | None = None
    lock: DeviceLock | None = _of(DeviceLock)
    waiters: tuple[Waiter, ...] = _tuple(lambda value: read(Waiter, value))
    subscribers: tuple[Subscriber, ...] = _tuple(lambda value: read(Subscriber, value))
    foreign: tuple[Process, ...] = _tuple(lambda value: read(Process, value))
    complete: bool = False
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRateRange:
    """From the shortest frame duration (the highest rate) to the longest, in seconds."""

    minFrameDuration: Fraction = field(default=Fraction(0), metadata={"read": _fraction})
    maxFrameDuration: Fraction = field(default=Fraction(0), metadata={"read": _fraction})
    #: Only multiples of this above the shortest; None: any, or just one.
    stepFrameDuration: Fraction | None = _duration()
    #: The same in frames a second.
    minFrameRate: float = 0.0
    maxFrameRate: float = 0.0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a format that has more than one, in pixels."""

    minWidth: int = 0
    maxWidth: int = 0
    stepWidth: int = 1
    minHeight: int = 0
    maxHeight: int = 0
    stepHeight: int = 1
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One row of a device's format table; `width` and `height` are the largest where `sizes` gives a range."""

    id: str = ""
    pixelFormat: str = ""
    title: str = ""
    width: int = 0
    height: int = 0
    sizes: Sizes | None = _of(Sizes)
    frameRates: tuple[FrameRateRange, ...] = _tuple(lambda value: read(FrameRateRange, value))
    # What isn't known is None. Times are in seconds, angles in degrees.
    colorRange: str | None = None
    highResolutionStillImageDimensions: Mapping[str, int] | None = None
    videoFieldOfView: float | None = None
    supportedVideoStabilizationModes: tuple[str, ...] | None = field(default=None, metadata={"read": tuple})
    videoMaxZoomFactor: float | None = None
    videoZoomFactorUpscaleThreshold: float | None = None
    autoFocusSystem: str | None = None
    minISO: float | None = None
    maxISO: float | None = None
    minExposureDuration: float | None = None
    maxExposureDuration: float | None = None
    videoHDRSupported: bool | None = None
    #: Which it is of several rows with one pixel format and size; None: there is no other.
    variant: str | None = None
    # Of a microphone; ranges are {min, max}.
    sampleFormat: str = ""
    channels: Mapping[str, int] | None = None
    rates: tuple[int, ...] = _tuple(int)
    rateRange: Mapping[str, int] | None = None
    periodFrames: Mapping[str, int] | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuItem:
    """What a menu control can be set to, by `index` or by `name`; in an integer menu the item is a `value`."""

    index: int = 0
    name: str | None = None
    value: int | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A knob of a device, with its range and its value (None where it can't be read)."""

    name: str = ""
    title: str = ""
    id: int = 0
    type: str = ""
    minimum: int | None = None
    maximum: int | None = None
    step: int | None = None
    defaultValue: int | None = None
    menu: tuple[MenuItem, ...] = _tuple(lambda value: read(MenuItem, value))
    dimensions: tuple[int, ...] = _tuple()
    #: Of a rectangle: {x, y, width, height} that it lies in, and where it is unless somebody sets it.
    bounds: Mapping[str, int] | None = None
    defaultRectangle: Mapping[str, int] | None = None
    flags: tuple[str, ...] = _tuple()
    aliases: tuple[str, ...] = _tuple()
    category: str = ""
    value: Any = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """What `mode="nearest"`, or a camera for a photo, gave in place of what was asked."""

    #: The camera, of a photo.
    device: str = ""
    path: str = ""
    asked: Any = None
    given: Any = None
    why: str = ""
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What became of a batch of changes: `verdict` is valid or adjusted, `applied` what is set now, by device."""

    verdict: str = ""
    generation: Mapping[str, int] = _map()
    applied: Mapping[str, Any] = _map()
    adjusted: tuple[Adjustment, ...] = _tuple(lambda value: read(Adjustment, value))
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What bus this is, what it can do, and who it takes us for."""

    server: str = ""
    version: str = ""
    protocol: int = 0
    features: tuple[str, ...] = _tuple()
    you: Mapping[str, int] = _map()
    authorization: Mapping[str, str] = _map()
    endpoints: Mapping[str, Any] = _map()
    epoch: str = ""
    sequence: int = 0
    limits: Mapping[str, int] = _map()
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A binary part of a reply."""

    name: str = ""
    contentType: str = ""
    data: memoryview = field(default=memoryview(b""), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a method answered, with what came behind it."""

    result: Any = None
    attachments: tuple[Attachment, ...] = ()


_ENVELOPE = ("epoch", "sequence", "previous", "event")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A message of the events socket.

    On a `state/` topic `value` is the new value (None: it is gone); on an `event/` topic `event` names what happened
    and `body` has the rest. `gap`: messages of this topic before this one were lost on the way to us.
    """

    topic: str
    epoch: str = ""
    sequence: int = 0
    previous: int = 0
    value: Any = None
    event: str | None = None
    gap: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        # What one wants to see of it: <Event event/lock/7f3a/ ended: cause='unlocked', by=None>
        if self.topic.startswith("state/"):
            content = f" = {self.value!r:.400}" if self.value is not None else " is gone"
        else:
            others = {name: value for name, value in self.body.items() if name not in _ENVELOPE}
            members = ", ".join(f"{name}={value!r:.200}" for name, value in others.items())
            content = (f" {self.event}" if self.event else "") + (f": {members}" if members else "")
        return f"<Event {self.topic}{content}{', some before it lost' if self.gap else ''}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a mirrored value; None: it is, or was, not there."""

    topic: str
    value: Any
    before: Any


class Plane(NamedTuple):
    """Where a plane lies in the payload: all in bytes; `stride` is 0 for compressed pictures."""

    offset: int
    stride: int
    bytes: int


class Timestamp(NamedTuple):
    """When a frame was taken, in nanoseconds; `source` says which moment that is. Of H.264 whose pictures come in the
    order in which they are decoded that is when (`decodeTimeStamp`); `Frame.presentation` is when they are shown.
    """

    monotonic: int
    realtime: int
    source: str
