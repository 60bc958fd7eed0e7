# SPDX-License-Identifier: Apache-2.0
"""The frames of cameras, from their topics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, Sequence, TypeAlias, get_args

import zmq

from . import calls
from .core import Core
from .errors import BusEnded, BusNotRunning, BusTimeout, CaptureError, InvalidParams, ProtocolError
from .following import Feed
from .frame import Frame
from .permission import lacking, why_refused
from .renditions import spelled
from .sequences import FrameContinuity
from .sharing import RingLink
from .silence import Silence
from .steps import Steps, Wait, deadline, is_over
from .subscription import (
    HEARTBEAT,
    LAST_WORD,
    PROBE,
    MediaSubscription,
    Message,
    Subscription,
    begin_all,
    links,
    subscribe,
    subscribe_events,
)

#: Why a device gives no frames for a while: it goes on by itself, and so do its subscribers.
PASSING = frozenset(
    {"deviceDisconnected", "deviceInUse", "workerCrashed", "interrupted", "internalError", "limitExceeded"}
)
FrameErrors: TypeAlias = Literal["wait", "raise", "frames"]
# As a name of a member only: a quotation mark in a text has a backslash in front of it.
_KEYFRAME = b'"keyframe":'


class FrameFeed(Feed[Frame]):
    """The newest frame of each of several devices, in turn."""

    def __init__(
        self,
        core: Core,
        devices: Sequence[str],
        rendition: str | None,
        limit: int | None,
        timeout: float,
        errors: FrameErrors,
        shared: bool = False,
    ) -> None:
        if not devices:
            raise TypeError("frames() needs the id of at least one device")
        if errors not in get_args(FrameErrors):
            raise ValueError(f"errors is one of {', '.join(get_args(FrameErrors))}, not {errors!r}")
        self._core = core
        self._devices = tuple(dict.fromkeys(devices))
        self._rendition = core.place.rendition if rendition is None else spelled(rendition)
        # Who names a rendition is sent it from another machine, too, however large it is.
        self._takes_raw = rendition is not None
        self._left = math.inf if limit is None else limit
        self._timeout = timeout
        self._errors = errors
        self._subscriptions: list[MediaSubscription] = []
        self._is_shared = shared
        self._rings: dict[str, RingLink] = {}
        # Where the bus says that it ends: its workers don't.
        self._bus: Subscription | None = None
        self._silence = Silence(core, lambda: links((*self._subscriptions, self._bus)))
        self._continuity = {device: FrameContinuity() for device in self._devices}
        self._has_given: set[str] = set()
        self._late = dict.fromkeys(self._devices, 0)
        self._turn = 0
        #: Frames missed so far, by device.
        self.lost = dict.fromkeys(self._devices, 0)
        #: Why a device gave no frame, the last time that one did not.
        self.last_error: CaptureError | None = None

    @property
    def late(self) -> dict[str, int]:
        """Frames that were overwritten in shared memory before they were used, or while they were."""
        return {device: self._rings[device].late if device in self._rings else 0 for device in self._devices}

    def __str__(self) -> str:
        return f"of {', '.join(self._devices)}, {self._rendition}{'' if self.is_open else ': closed'}"

    def open(self) -> Steps[None]:
        """Returns when the subscriptions are in force."""
        core = self._core
        if self._is_shared and core.place.is_remote:
            core.tell_not_shared()
        if not self._rendition or "/" in self._rendition:
            # No topic could ask for it, so nobody would answer.
            why = "it is empty" if not self._rendition else "it has a slash"
            raise InvalidParams(f"{self._rendition!r} is no rendition: {why}.", {"path": "rendition", "why": why})
        hello = yield from core.ask(core.greeting())
        core.hello = hello
        if (status := hello.authorization.get("video")) in ("denied", "restricted"):
            raise why_refused(hello.you.get("uid", -1), "video", status)
        for device in self._devices:
            if device not in (hello.endpoints.get("media") or {}):
                yield from core.ask(calls.device(device))
        try:
            self._bus = subscribe_events(core, [LAST_WORD], 2)
            self._is_shared = self._is_shared and "rings" in hello.features
            for device in self._devices:
                endpoint = core.media_endpoint(device)
                topics = [f"{'buffer' if self._is_shared else 'frame'}/{device}/{self._rendition}/", HEARTBEAT]
                self._subscriptions.append(subscribe(core, device, topics, 2, self._takes_raw))
                if self._is_shared:
                    path = endpoint.removeprefix("ipc://").removesuffix(".sock") + ".ring"
                    self._rings[device] = RingLink(path, self._rendition)
                    self._rings[device].connect()
            if not (yield from begin_all(self._subscriptions, deadline(self._timeout))):
                late = [name for name, each in zip(self._devices, self._subscriptions) if not each.is_in_force]
                raise (yield from self._explain(late, "did not accept the subscription"))
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return bool(self._subscriptions)

    def follow(self) -> Steps[Frame | None]:
        if self._left <= 0:
            self.close()
        with self._core.named():
            return (yield from self.next()) if self.is_open else None

    def next(self) -> Steps[Frame]:
        until = deadline(self._timeout)
        self._silence.heard()
        probes, has_probed = False, False
        while True:
            for step in range(len(self._subscriptions)):
                index = (self._turn + step) % len(self._subscriptions)
                if (message := self._newest(self._subscriptions[index])) is not None:
                    self._turn = index + 1
                    told = self.last_error
                    if (frame := self._frame(message, self._devices[index])) is not None:
                        return frame
                    if self.last_error is not told:
                        until, probes = deadline(self._timeout), False  # that it says why is a sign of life, too
                    elif probes:
                        # It was overwritten while this process was stopped
                        until, probes = deadline(self._timeout), False
            if self._bus is not None and self._bus.receive() is not None:
                raise BusEnded(f"The bus at {self._core.place} has ended.")
            if is_over(until) and not has_probed:
                # This process may have been stopped: what has come meanwhile is taken first.
                until, probes, has_probed = deadline(PROBE), True, True
                for each in self._subscriptions:
                    each.probe()
            elif is_over(until) or (probes and not any(each.is_probing for each in self._subscriptions)):
                raise (yield from self._explain(self._devices, "delivered no frame"))
            yield from self._silence.look()
            sockets = [
                socket for each in (*self._subscriptions, self._bus) if each is not None for socket in each.sockets
            ]
            yield Wait(tuple(sockets), min(until, self._silence.until))

    def _newest(self, subscription: MediaSubscription) -> Message | None:
        # Bounded: a publisher that is faster than this loop must not hold it.
        newest = None
        for _ in range(16):
            message = subscription.receive()
            if message is None:
                break
            self._silence.heard()
            if message[0].bytes != HEARTBEAT.encode():
                newest = message
                if len(message) > 1 and _KEYFRAME in message[1].bytes:
                    break  # it builds on others, or others on it: one after the other
        return newest

    def _frame(self, message: Message, device: str) -> Frame | None:
        """What a message has for the caller; None: the device gives no frames for now, and will again."""
        if len(message) < 2:
            raise ProtocolError(f"A message without a header came from {device}.")
        payload = message[2].buffer if len(message) > 2 else memoryview(b"")
        frame = Frame.parse(message[0].bytes, message[1].bytes, payload)
        ring = self._rings.get(device)
        if ring is not None and ring.is_given_up:
            if frame.topic.startswith("buffer/"):
                return None
            ring = None
        if (error := frame.error) is not None:
            if ring is not None and error.reason == "internalError" and error.data.get("missing") == "ring":
                # The worker, or the machine, has no memory for a ring.
                self._fall_back(device, ring)
                return None
            self.last_error = error
            if self._errors == "frames":
                return frame
            # Who has not seen a single frame wants to know why; later on, that they come again.
            if self._errors == "wait" and device in self._has_given and error.reason in PASSING:
                return None
            raise error
        if ring is not None:
            shared = ring.find(frame)
            if shared is None:
                if ring.is_hopeless:
                    self._fall_back(device, ring)
                return None  # what comes next tells that it is lost
            frame = shared
            if ring.late != self._late[device]:
                # What came before could not be used: nor can what builds on it.
                self._late[device] = ring.late
                self._continuity[device].interrupt()
        missed = self._continuity[device].receive(frame.stream, frame.sequence, frame.keyframe)
        if missed is None:
            return None  # after a loss it goes on with the next key frame
        self._has_given.add(device)
        self.lost[device] += missed
        self._left -= 1
        return replace(frame, lost=missed) if missed else frame

    def _fall_back(self, device: str, ring: RingLink) -> None:
        """From now on the pixels come along. That topic has a count of its own."""
        ring.is_given_up = True
        ring.close()
        connection = self._subscriptions[self._devices.index(device)].socket
        connection.setsockopt(zmq.SUBSCRIBE, f"frame/{device}/{self._rendition}/".encode())
        connection.setsockopt(zmq.UNSUBSCRIBE, f"buffer/{device}/{self._rendition}/".encode())
        self._continuity[device] = FrameContinuity()

    def _explain(self, devices: Sequence[str], what: str) -> Steps[CaptureError]:
        """Why nothing comes, as far as the bus can tell."""
        if (cut := (yield from self._silence.cut(0))) is not None:
            return cut
        if (refusal := (yield from lacking(self._core))) is not None:
            return refusal
        known = []
        for name in devices:
            try:
                device = yield from self._core.ask(calls.device(name), 1)
            except CaptureError as error:
                return error
            if device.error is not None:
                return device.error
            if name in self._rings and (problem := self._rings[name].problem) is not None:
                return BusNotRunning(f"The shared memory of {name} is not available ({problem}).")
            worker = device.worker.state if device.worker else "unknown"
            known.append(f"{name} {what} (worker {worker}, {'streaming' if device.isStreaming else 'not streaming'})")
        return BusTimeout(f"Within {self._timeout:g} s {' and '.join(known)}.")

    def close(self) -> None:
        while self._subscriptions:
            self._subscriptions.pop().close()
        for ring in self._rings.values():
            ring.close()
        if self._bus is not None:
            self._bus.close()
            self._bus = None
