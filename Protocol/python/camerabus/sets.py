# SPDX-License-Identifier: Apache-2.0
"""Matched sets: frames of a rig's cameras that were taken at the same time."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from .core import Call, Core
from .errors import BusEnded, BusTimeout, CaptureError, ProtocolError, RigNotFound, VersionUnsupported
from .following import AsyncFollowing, Feed, Following
from .frame import Frame
from .permission import lacking, why_refused
from .renditions import spelled
from .sequences import FrameContinuity
from .silence import Silence
from .steps import Steps, Wait, deadline, is_over
from .subscription import (
    HEARTBEAT, LAST_WORD, MediaSubscription, Message, Subscription, begin_all, links, subscribe, subscribe_events,
)

@dataclass(frozen=True)
class FrameSet:
    """Frames of one time: `frames` by device, in the order of the rig, the lead first; or one that came after its set
    (`late`).

    All times are nanoseconds. `lost` counts the messages of this topic and stream that this subscriber missed since the
    one before.
    """

    topic: str
    header: Mapping[str, Any]
    frames: Mapping[str, Frame] = field(repr=False)
    #: Why a device has no frame in the set, by device: a reason of the protocol, or `late`: it may still come.
    missing: Mapping[str, str] = field(default_factory=dict)
    #: From the lead's frame to each.
    offsets: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0

    @staticmethod
    def parse(topic: bytes, header: bytes, payloads: Sequence[memoryview], lost: int = 0) -> FrameSet:
        """Reads a message of a `set/` topic. Raises what stands in it in place of a set."""
        try:
            members = json.loads(header)
        except ValueError:
            raise ProtocolError("The header of a set is not valid JSON.") from None
        version = members.get("v") if isinstance(members, dict) else None
        if version != 1:
            raise VersionUnsupported(f"A set came with a header of version {version!r}, not 1.", {"supported": [1]})
        if "error" in members:
            raise CaptureError.from_header(members["error"])
        for name in ("sequence", "number", "monotonic", "spread", "tolerance"):
            if not isinstance(members.get(name), int):
                raise ProtocolError(f"A set came with a header without a usable '{name}'.")
        if not isinstance(members.get("stream"), str) or not isinstance(members.get("late"), bool):
            raise ProtocolError("A set came with a header without a usable 'stream' or 'late'.")
        parts = members.get("frames")
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ProtocolError("A set came with a header without usable 'frames'.")
        frames: dict[str, Frame] = {}
        missing: dict[str, str] = {}
        offsets: dict[str, int] = {}
        for part in parts:
            device = str(part.get("device", ""))
            if "missing" in part:
                why = part["missing"]
                missing[device] = str(why.get("reason", "")) if isinstance(why, dict) else ""
                continue
            place = part.get("payload")
            if not isinstance(place, int) or not 0 <= place < len(payloads) or not isinstance(part.get("offset"), int):
                raise ProtocolError("A frame of a set has no payload.")
            text = f"frame/{device}/{part.get('rendition', '')}/"
            frames[device] = Frame.parse(text.encode(), json.dumps(part).encode(), payloads[place])
            offsets[device] = part["offset"]
        return FrameSet(topic.decode(errors="replace"), members, frames, missing, offsets, lost)

    @property
    def set(self) -> str:
        """The rig's name."""
        return str(self.header.get("set", ""))

    @property
    def rendition(self) -> str:
        return str(self.header.get("rendition", ""))

    @property
    def stream(self) -> str:
        return str(self.header["stream"])

    @property
    def sequence(self) -> int:
        """Counts this topic's messages within `stream`."""
        return int(self.header["sequence"])

    @property
    def number(self) -> int:
        """The set's own; of a late frame that of the set that it belongs to."""
        return int(self.header["number"])

    @property
    def late(self) -> bool:
        return bool(self.header["late"])

    @property
    def monotonic(self) -> int:
        """The time of the lead's frame."""
        return int(self.header["monotonic"])

    @property
    def spread(self) -> int:
        """From the earliest of the frames to the latest."""
        return int(self.header["spread"])

    @property
    def tolerance(self) -> int:
        """How far from the lead's a frame may be."""
        return int(self.header["tolerance"])


class SetFeed(Feed[FrameSet]):
    """The newest sets of a rig, and the frames that came after theirs."""

    def __init__(self, core: Core, rig: str, rendition: str | None, limit: int | None, timeout: float) -> None:
        self._core = core
        self._rig = rig
        self._takes_raw = rendition is not None
        rendition = core.place.rendition if rendition is None else spelled(rendition)
        self._topic = f"set/{rig}/{rendition}/"
        self._left = math.inf if limit is None else limit
        self._timeout = timeout
        self._subscription: MediaSubscription | None = None
        self._bus: Subscription | None = None
        self._silence = Silence(core, lambda: links((self._subscription, self._bus)))
        self._waiting: deque[Message] = deque(maxlen=4)
        self._continuity = FrameContinuity()
        #: Messages missed so far.
        self.lost = 0

    def __str__(self) -> str:
        return f"of {self._topic}{'' if self.is_open else ': closed'}"

    @property
    def is_open(self) -> bool:
        return self._subscription is not None

    def open(self) -> Steps[None]:
        """Returns when the subscription is in force."""
        core = self._core
        hello = yield from core.ask(core.greeting())
        core.hello = hello
        if (status := hello.authorization.get("video")) in ("denied", "restricted"):
            raise why_refused(hello.you.get("uid", -1), "video", status)
        yield from self._require()
        try:
            self._bus = subscribe_events(core, [LAST_WORD], 2)
            self._subscription = subscribe(core, self._rig, [self._topic, HEARTBEAT], 2, self._takes_raw)
            if not (yield from begin_all([self._subscription], deadline(self._timeout))):
                raise (yield from self._explain("did not accept the subscription"))
        except BaseException:
            self.close()
            raise

    def _require(self) -> Steps[None]:
        answer = yield from self._core.ask(Call("rig.list", {}, lambda result: result, True))
        known = [str(rig.get("name")) for rig in (answer.get("rigs") or [])] if isinstance(answer, dict) else []
        if self._rig not in known:
            there = f"Known: {', '.join(known)}." if known else "There are none."
            raise RigNotFound(f"There is no rig '{self._rig}'. {there}", {"rig": self._rig})

    def follow(self) -> Steps[FrameSet | None]:
        if self._left <= 0:
            self.close()
        return (yield from self._next()) if self.is_open else None

    def _explain(self, what: str) -> Steps[CaptureError]:
        if (cut := (yield from self._silence.cut(0))) is not None:
            return cut
        if (refusal := (yield from lacking(self._core))) is not None:
            return refusal
        return BusTimeout(f"The rig {self._rig} {what} within {self._timeout:g} s.")

    def _next(self) -> Steps[FrameSet]:
        until = deadline(self._timeout)
        self._silence.heard()
        while self._subscription is not None:
            # Only so many of what has come are kept: who asks late gets the present.
            for _ in range(16):
                message = self._subscription.receive()
                if message is None:
                    break
                self._silence.heard()
                if message[0].bytes != HEARTBEAT.encode():
                    self._waiting.append(message)
            if self._waiting:
                return self._set(self._waiting.popleft())
            if self._bus is not None and self._bus.receive() is not None:
                raise BusEnded(f"The bus at {self._core.place} has ended.")
            if is_over(until):
                raise (yield from self._explain("gave no set"))
            yield from self._silence.look()
            sockets = [
                socket for each in (self._subscription, self._bus) if each is not None for socket in each.sockets
            ]
            yield Wait(tuple(sockets), min(until, self._silence.until))
        raise ValueError("This subscription is closed.")

    def _set(self, message: Message) -> FrameSet:
        if len(message) < 2:
            raise ProtocolError(f"A message without a header came from {self._rig}.")
        payloads = [part.buffer for part in message[2:]]
        found = FrameSet.parse(message[0].bytes, message[1].bytes, payloads)
        missed = self._continuity.receive(found.stream, found.sequence, None) or 0
        self.lost += missed
        if not found.late:
            self._left -= 1
        return FrameSet(found.topic, found.header, found.frames, found.missing, found.offsets, missed)

    def close(self) -> None:
        for subscription in (self._subscription, self._bus):
            if subscription is not None:
                subscription.close()
        self._subscription = self._bus = None


class FrameSets(Following[FrameSet]):
    """An iterator over matched sets; `close` or the end of a `with` block ends the subscription."""

    _feed: SetFeed

    @property
    def lost(self) -> int:
        """Messages missed so far."""
        return self._feed.lost


class AsyncFrameSets(AsyncFollowing[FrameSet]):
    """The same, for asyncio."""

    _feed: SetFeed

    @property
    def lost(self) -> int:
        return self._feed.lost
