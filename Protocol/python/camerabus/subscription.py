# SPDX-License-Identifier: Apache-2.0
"""What the bus publishes: subscriptions, and the feeds of frames and events made from them."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections import deque
from dataclasses import replace
from typing import Any, Iterable, Literal, Mapping, Sequence, TypeAlias, get_args

import zmq

from . import calls
from .core import Core
from .credit import CreditSubscription
from .errors import BusEnded, BusNotRunning, BusTimeout, CaptureError, InvalidParams, ProtocolError
from .following import Feed
from .frame import Frame
from .permission import lacking, why_refused
from .sequences import Continuity, FrameContinuity
from .sharing import RingLink
from .steps import Socket, Steps, Wait, deadline, is_over
from .values import Event

#: Why a device gives no frames for a while: it goes on by itself, and so do its subscribers.
PASSING = frozenset({"deviceDisconnected", "deviceInUse", "workerCrashed", "interrupted", "internalError", "limitExceeded"})
FrameErrors: TypeAlias = Literal["wait", "raise", "frames"]
SILENCE = 3.0  # seconds without a heartbeat, of which there is one a second, after which nobody is there
PROBE = 1.0  # seconds that an answer may take, when silence is to be told from having been stopped
HEARTBEAT, LAST_WORD = "heartbeat/", "event/bus/"
Message = list[zmq.Frame]
# As a name of a member only: a quotation mark in a text has a backslash in front of it.
_KEYFRAME = b'"keyframe":'


def with_slash(topic: str) -> str:
    """A topic ends in `/`, so that none is the beginning of another."""
    return topic if topic.endswith("/") else topic + "/"


class Subscription:
    """A connection to a publisher.

    A fresh connection gets `welcome/`. Whoever then subscribes `ack/<nonce>/` gets that once, and knows that all that was subscribed
    before is in force. libzmq connects again by itself; then this starts over, and `connections` is one more.
    """

    def __init__(self, context: zmq.Context[Socket], endpoint: str, topics: Iterable[str], room: int) -> None:
        self.socket: Socket = context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, room)
        for topic in ("welcome/", *topics):
            self.socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        self.socket.connect(endpoint)
        self.is_in_force = False
        self.connections = 0
        self._early: deque[Message] = deque(maxlen=room)
        self._ack = self._probe = b""

    @property
    def sockets(self) -> tuple[Socket, ...]:
        """What is to be waited for."""
        return (self.socket,)

    def begin(self) -> bool:
        """Takes in what has come, for later, until this is in force."""
        while not self.is_in_force and (message := self._receive()) is not None:
            self._early.append(message)
        return self.is_in_force

    def receive(self) -> Message | None:
        """The next message, or None."""
        return self._early.popleft() if self._early else self._receive()

    def _receive(self) -> Message | None:
        while True:
            try:
                message = self.socket.recv_multipart(zmq.DONTWAIT, copy=False)
            except zmq.Again:
                return None
            topic = message[0].bytes
            if topic == b"welcome/":
                self._forget_ack()
                self._ack = f"ack/{uuid.uuid4().hex}/".encode()
                self.socket.setsockopt(zmq.SUBSCRIBE, self._ack)
            elif topic.startswith(b"ack/"):
                if topic == self._probe:
                    self._forget_probe()
                elif topic == self._ack:
                    self._forget_ack()
                    self.is_in_force = True
                    self.connections += 1
            else:
                return message

    def probe(self) -> None:
        """Asks for a word that comes behind all that is on its way: a program that was stopped finds its messages before it."""
        self._forget_probe()
        self._probe = f"ack/{uuid.uuid4().hex}/".encode()
        self.socket.setsockopt(zmq.SUBSCRIBE, self._probe)

    @property
    def is_probing(self) -> bool:
        """The word has not come yet."""
        return bool(self._probe)

    def _forget_probe(self) -> None:
        if self._probe:
            self.socket.setsockopt(zmq.UNSUBSCRIBE, self._probe)
            self._probe = b""

    def _forget_ack(self) -> None:
        if self._ack:
            self.socket.setsockopt(zmq.UNSUBSCRIBE, self._ack)
            self._ack = b""

    def close(self) -> None:
        self.socket.close(linger=0)


MediaSubscription: TypeAlias = "Subscription | CreditSubscription"


def subscribe(core: Core, device: str, topics: Iterable[str], room: int, raw: bool = False) -> MediaSubscription:
    """To what a device, or a rig, publishes; `raw`: from another machine, also as pixels that are not compressed."""
    if core.place.is_remote:
        return CreditSubscription(core.context, core.media_endpoint(device), topics, raw)
    return Subscription(core.context, core.media_endpoint(device), topics, room)


def begin_all(subscriptions: Sequence[MediaSubscription], until: float) -> Steps[bool]:
    """Waits until all are in force; False: not in time."""
    while late := tuple(socket for each in subscriptions if not each.begin() for socket in each.sockets):
        if is_over(until):
            return False
        yield Wait(late, until)
    return True


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
        self._rendition = core.place.rendition if rendition is None else rendition
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
        self._heard = 0.0
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
            self._bus = Subscription(core.context, core.events_endpoint(), [LAST_WORD], 2)
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
                raise (yield from self._explain(late, "answered no subscription"))
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return bool(self._subscriptions)

    def follow(self) -> Steps[Frame | None]:
        if self._left <= 0:
            self.close()
        return (yield from self.next()) if self.is_open else None

    def next(self) -> Steps[Frame]:
        until = deadline(self._timeout)
        self._heard = time.monotonic()
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
                        until, probes = deadline(self._timeout), False  # it was overwritten while this process was stopped
            if self._bus is not None and self._bus.receive() is not None:
                raise BusEnded(f"The bus at {self._core.place} has ended.")
            if is_over(until) and not has_probed:
                # This process may have been stopped: what has come meanwhile is taken first.
                until, probes, has_probed = deadline(PROBE), True, True
                for each in self._subscriptions:
                    each.probe()
            elif is_over(until) or (probes and not any(each.is_probing for each in self._subscriptions)):
                raise (yield from self._explain(self._devices, "gave no frame"))
            if is_over(self._heard + SILENCE):
                # Workers outlive their coordinator for a while; when neither gives a sign of life, nobody is there.
                self._heard = time.monotonic()
                if (problem := self._core.place.why_not()) is not None:
                    raise BusNotRunning(f"The bus at {self._core.place} is not running any more ({problem}).")
            sockets = [socket for each in (*self._subscriptions, self._bus) if each is not None for socket in each.sockets]
            yield Wait(tuple(sockets), min(until, self._heard + SILENCE))

    def _newest(self, subscription: MediaSubscription) -> Message | None:
        # Bounded: a publisher that is faster than this loop must not hold it.
        newest = None
        for _ in range(16):
            message = subscription.receive()
            if message is None:
                break
            self._heard = time.monotonic()
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
                return BusNotRunning(f"The shared memory of {name} can't be had ({problem}).")
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


class EventFeed(Feed[Event]):
    """State and events as they go by, without what is not newer."""

    def __init__(self, core: Core, topics: Sequence[str], patience: float = math.inf, room: int = 1000) -> None:
        self._core = core
        self._patience = patience
        self._topics = tuple(map(with_slash, topics)) or ("state/", "event/")
        self._room = room
        self._continuity = Continuity()
        self.subscription: Subscription | None = None
        self._heard = 0.0
        self._has_ended = False
        self._probed_until: float | None = None

    def __str__(self) -> str:
        return f"of {', '.join(self._topics)}{'' if self.subscription else ': closed'}"

    def open(self, timeout: float | None = None) -> Steps[None]:
        """Returns when the subscription is in force."""
        core = self._core
        subscription = Subscription(core.context, core.events_endpoint(), {*self._topics, HEARTBEAT, LAST_WORD}, self._room)
        self.subscription = subscription
        try:
            if not (yield from begin_all([subscription], deadline(core.timeout if timeout is None else timeout))):
                raise BusTimeout(f"The bus at {core.place} answered no subscription.")
            core.hello = yield from core.ask(core.greeting(), timeout)
            self._continuity.start(core.hello.epoch, core.hello.sequence)
        except BaseException:
            self.close()
            raise
        self.rest()

    @property
    def connections(self) -> int:
        return self.subscription.connections if self.subscription else 0

    def rest(self) -> None:
        """Starts the time in which something must be heard anew."""
        self._heard, self._probed_until = time.monotonic(), None

    def follow(self) -> Steps[Event | None]:
        if self.subscription is None:
            return None
        return (yield from self.next(deadline(self._patience)))

    def next(self, until: float) -> Steps[Event | None]:
        """The next event; None: nothing in time."""
        self.rest()
        while True:
            while (read := self.take()) is not None:
                topic, body = read
                if (event := self._event(topic, body)) is not None:
                    return event
            if is_over(until):
                return None
            yield self.wait(until)

    def take(self) -> tuple[str, Mapping[str, Any]] | None:
        """The next message as it came, or None. Raises when the bus has ended; after that it may be asked for what the next one says."""
        if self.subscription is None:
            raise ValueError("This subscription is closed.")
        if self._has_ended:
            self._has_ended = False
            raise BusEnded(f"The bus at {self._core.place} has ended.")
        message = self.subscription.receive()
        if message is None:
            return None
        self.rest()
        try:
            body = json.loads(message[1].bytes)
        except (ValueError, IndexError):
            body = None
        if not isinstance(body, dict):
            raise ProtocolError("An event came that is no JSON object.")
        topic = message[0].bytes.decode(errors="replace")
        if topic == LAST_WORD:
            self._has_ended = True
            if not topic.startswith(self._topics):
                return self.take()
        return topic, body

    def wait(self, until: float) -> Wait:
        """A wait for the next message, unless there is nobody to send one."""
        assert self.subscription is not None
        if is_over(self._heard + SILENCE):
            # This process may have been stopped: what has come meanwhile is taken first.
            if self._probed_until is None:
                self._probed_until = deadline(PROBE)
                self.subscription.probe()
            if self.subscription.is_probing and not is_over(self._probed_until):
                return Wait((self.subscription.socket,), min(until, self._probed_until))
            self.rest()
            problem = self._core.place.why_not()
            if problem is None:
                raise BusTimeout(f"The bus at {self._core.place} has been silent for {SILENCE:g} s.")
            raise BusNotRunning(f"The bus at {self._core.place} is not running any more ({problem}).")
        return Wait((self.subscription.socket,), min(until, self._heard + SILENCE))

    def _event(self, topic: str, body: Mapping[str, Any]) -> Event | None:
        if not topic.startswith(self._topics):
            return None  # a heartbeat that only we wanted
        epoch, sequence, previous = str(body.get("epoch", "")), body.get("sequence", 0), body.get("previous", 0)
        gap = False
        if topic.startswith(("state/", "event/")):
            if not isinstance(sequence, int) or not isinstance(previous, int):
                raise ProtocolError(f"A message without a sequence came on {topic}.")
            lost = self._continuity.receive(topic, epoch, sequence, previous)
            if lost is None:
                return None  # a current value that is repeated for a new subscriber
            gap = lost
        return Event(
            topic=topic, epoch=epoch, sequence=sequence, previous=previous, value=body.get("value"), event=body.get("event"),
            gap=gap, body=body,
        )  # fmt: skip

    def close(self) -> None:
        if self.subscription is not None:
            self.subscription.close()
            self.subscription = None
