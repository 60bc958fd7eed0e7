# SPDX-License-Identifier: Apache-2.0
"""Microphones: their sound piece by piece, and how loud they are."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Generic, Mapping, Sequence, TypeVar

from . import calls
from .core import AsyncOpened, Core, Opened
from .errors import BusEnded, BusTimeout, CaptureError, InvalidParams, ProtocolError, VersionUnsupported
from .following import AsyncFollowing, Feed, Following
from .frame_feed import PASSING
from .permission import lacking, why_refused
from .piece import Sound, is_count, sound_members
from .sequences import SoundContinuity
from .silence import Silence
from .steps import Steps, Wait, deadline, is_over
from .subscription import (
    HEARTBEAT, LAST_WORD, MediaSubscription, Message, Subscription, begin_all, links, subscribe, subscribe_events,
)

ROOM = 1000  # pieces that a subscriber's socket keeps: some seconds


@dataclass(frozen=True, slots=True)
class Level:
    """How loud a microphone was in a tenth of a second: dBFS by channel, 0 at most and -160 at least.

    `average` is the mean power, `peak` the loudest sample; `monotonic` is the end of it.
    """

    device: str
    stream: str
    sequence: int
    monotonic: int
    average: tuple[float, ...]
    peak: tuple[float, ...]
    header: Mapping[str, Any]

    @staticmethod
    def parse(header: bytes) -> Level:
        """Reads a message of a `level/` topic. Raises what stands in it in place of a level."""
        members = sound_members(header, "A level")
        average, peak = members.get("average"), members.get("peak")
        if not isinstance(average, list) or not isinstance(peak, list) or not peak or len(average) != len(peak):
            raise ProtocolError("A level has no usable 'average' or 'peak'.")
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (*average, *peak)):
            raise ProtocolError("A level has no usable 'average' or 'peak'.")
        if not isinstance(members.get("device"), str) or not isinstance(members.get("stream"), str):
            raise ProtocolError("A level has no usable 'device' or 'stream'.")
        if not is_count(members.get("sequence")) or not isinstance(members.get("monotonic"), int):
            raise ProtocolError("A level has no usable 'sequence' or 'monotonic'.")
        return Level(
            members["device"], members["stream"], members["sequence"], members["monotonic"],
            tuple(map(float, average)), tuple(map(float, peak)), members,
        )  # fmt: skip


T = TypeVar("T", Sound, Level)


class _MicrophoneFeed(Feed[T], Generic[T]):
    """What several microphones publish, in the order in which it came."""

    def __init__(
        self, core: Core, devices: Sequence[str], topics: Sequence[str], limit: int | None, timeout: float
    ) -> None:
        self._core = core
        self._devices = tuple(devices)
        self._topics = tuple(topics)
        self._left = math.inf if limit is None else limit
        self._timeout = timeout
        self._subscriptions: list[MediaSubscription] = []
        # Where the bus says that it ends: its workers don't.
        self._bus: Subscription | None = None
        self._silence = Silence(core, lambda: links((*self._subscriptions, self._bus)))
        self._waiting: deque[tuple[int, Message]] = deque()
        self._has_given: set[str] = set()
        #: Why a device gave nothing, the last time that one did not.
        self.last_error: CaptureError | None = None

    def __str__(self) -> str:
        return f"of {', '.join(self._topics)}{'' if self.is_open else ': closed'}"

    @property
    def is_open(self) -> bool:
        return bool(self._subscriptions)

    def open(self) -> Steps[None]:
        """Returns when the subscriptions are in force."""
        core = self._core
        core.hello = hello = yield from core.ask(core.greeting())
        if (status := hello.authorization.get("audio")) in ("denied", "restricted"):
            raise why_refused(hello.you.get("uid", -1), "audio", status)
        for device in self._devices:
            if device not in (hello.endpoints.get("media") or {}):
                yield from core.ask(calls.device(device))
        try:
            self._bus = subscribe_events(core, [LAST_WORD], 2)
            for device, topic in zip(self._devices, self._topics):
                self._subscriptions.append(subscribe(core, device, [topic, HEARTBEAT], ROOM))
            if not (yield from begin_all(self._subscriptions, deadline(self._timeout))):
                late = [name for name, each in zip(self._devices, self._subscriptions) if not each.is_in_force]
                raise (yield from self._explain(late, "did not accept the subscription"))
        except BaseException:
            self.close()
            raise

    def follow(self) -> Steps[T | None]:
        if self._left <= 0:
            self.close()
        return (yield from self._next()) if self.is_open else None

    def _read(self, message: Message, device: str) -> T | None:
        raise NotImplementedError

    def _next(self) -> Steps[T]:
        until = deadline(self._timeout)
        self._silence.heard()
        while True:
            self._take()
            while self._waiting:
                index, message = self._waiting.popleft()
                if (found := self._given(message, self._devices[index])) is not None:
                    self._left -= 1
                    return found
                until = deadline(self._timeout)  # that it says why is a sign of life, too
            if self._bus is not None and self._bus.receive() is not None:
                raise BusEnded(f"The bus at {self._core.place} has ended.")
            if is_over(until):
                raise (yield from self._explain(self._devices, "gave nothing"))
            yield from self._silence.look()
            sockets = [
                socket for each in (*self._subscriptions, self._bus) if each is not None for socket in each.sockets
            ]
            yield Wait(tuple(sockets), min(until, self._silence.until))

    def _take(self) -> None:
        # In turn, and so many of each at most: what waits in the sockets is bounded there.
        for index, subscription in enumerate(self._subscriptions):
            for _ in range(16):
                if len(self._waiting) >= 64 or (message := subscription.receive()) is None:
                    break
                self._silence.heard()
                if message[0].bytes != HEARTBEAT.encode():
                    self._waiting.append((index, message))

    def _given(self, message: Message, device: str) -> T | None:
        """What a message has for the caller; None: the device gives nothing for now, and will again."""
        if len(message) < 2:
            raise ProtocolError(f"A message without a header came from {device}.")
        try:
            found = self._read(message, device)
        except CaptureError as error:
            if isinstance(error, (ProtocolError, VersionUnsupported)):
                raise
            self.last_error = error
            # Who has heard nothing yet wants to know why; later on, that it comes again.
            if device in self._has_given and error.reason in PASSING:
                return None
            raise
        self._has_given.add(device)
        return found

    def _explain(self, devices: Sequence[str], what: str) -> Steps[CaptureError]:
        """Why nothing comes, as far as the bus can tell."""
        if (cut := (yield from self._silence.cut(0))) is not None:
            return cut
        if (refusal := (yield from lacking(self._core, "audio"))) is not None:
            return refusal
        for name in devices:
            try:
                device = yield from self._core.ask(calls.device(name), 1)
            except CaptureError as error:
                return error
            if device.error is not None:
                return device.error
        return BusTimeout(f"Within {self._timeout:g} s {' and '.join(devices)} {what}.")

    def close(self) -> None:
        while self._subscriptions:
            self._subscriptions.pop().close()
        if self._bus is not None:
            self._bus.close()
            self._bus = None


class SoundFeed(_MicrophoneFeed[Sound]):
    def __init__(self, core: Core, devices: Sequence[str], rendition: str, limit: int | None, timeout: float) -> None:
        if not devices:
            raise TypeError("sound() needs the id of at least one microphone")
        devices = tuple(dict.fromkeys(devices))
        super().__init__(core, devices, [f"audio/{device}/{rendition}/" for device in devices], limit, timeout)
        if not rendition or "/" in rendition:
            # No topic could ask for it, so nobody would answer.
            why = "it is empty" if not rendition else "it has a slash"
            raise InvalidParams(f"{rendition!r} is no rendition: {why}.", {"path": "rendition", "why": why})
        self._continuity = {device: SoundContinuity() for device in devices}
        #: Frames missed so far, by device.
        self.lost = dict.fromkeys(devices, 0)

    def _read(self, message: Message, device: str) -> Sound | None:
        payload = message[2].buffer if len(message) > 2 else memoryview(b"")
        sound = Sound.parse(message[0].bytes, message[1].bytes, payload)
        lost = self._continuity[device].receive(sound.stream, sound.sequence, sound.firstFrame, sound.frames)
        if lost is None:
            return None
        self.lost[device] += lost
        return replace(sound, lost=lost) if lost else sound


class LevelFeed(_MicrophoneFeed[Level]):
    def __init__(self, core: Core, devices: Sequence[str], limit: int | None, timeout: float) -> None:
        if not devices:
            raise TypeError("levels() needs the id of at least one microphone")
        devices = tuple(dict.fromkeys(devices))
        super().__init__(core, devices, [f"level/{device}/" for device in devices], limit, timeout)

    def _read(self, message: Message, device: str) -> Level | None:
        return Level.parse(message[1].bytes)


class Sounds(Following[Sound]):
    """An iterator over pieces of sound; `close` or the end of a `with` block ends the subscription."""

    _feed: SoundFeed

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by device."""
        return self._feed.lost

    @property
    def last_error(self) -> CaptureError | None:
        """Why a microphone gave no sound, the last time that one did not; None: that was never so."""
        return self._feed.last_error


class AsyncSounds(AsyncFollowing[Sound]):
    """The same, for asyncio."""

    _feed: SoundFeed

    @property
    def lost(self) -> dict[str, int]:
        return self._feed.lost

    @property
    def last_error(self) -> CaptureError | None:
        return self._feed.last_error


class Levels(Following[Level]):
    """An iterator over levels."""


class AsyncLevels(AsyncFollowing[Level]):
    """The same, for asyncio."""


class SoundCalls(Opened):
    """What `Client` has of it."""

    def sound(
        self, *devices: str, rendition: str = "native", limit: int | None = None, timeout: float = 10.0
    ) -> Sounds:
        """Sound of microphones, piece by piece in its order. When this returns, the subscription is in force.

        `rendition` is `native`, as the microphone is set, or `<s16|f32>[:<rate>x<channels>]`: `f32:16000x1` is what
        most recognisers of speech want. Pieces are kept for some seconds: who is slower than that misses sound, and
        `sound.lost` counts. `limit` ends the loop after so many pieces. A microphone that stops giving sound does not
        end the loop: when it is back, its sound comes again, and meanwhile `last_error` says why there is none. What
        does not pass by itself raises, and so does whatever keeps one from giving its first.
        """
        return Sounds(SoundFeed(self._open, devices, rendition, limit, timeout))

    def levels(self, *devices: str, limit: int | None = None, timeout: float = 10.0) -> Levels:
        """How loud microphones are, ten times a second."""
        return Levels(LevelFeed(self._open, devices, limit, timeout))


class AsyncSoundCalls(AsyncOpened):
    """What `AsyncClient` has of it."""

    def sound(
        self, *devices: str, rendition: str = "native", limit: int | None = None, timeout: float = 10.0
    ) -> AsyncSounds:
        return AsyncSounds(SoundFeed(self._open, devices, rendition, limit, timeout), self._run)

    def levels(self, *devices: str, limit: int | None = None, timeout: float = 10.0) -> AsyncLevels:
        return AsyncLevels(LevelFeed(self._open, devices, limit, timeout), self._run)
