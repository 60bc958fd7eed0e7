# SPDX-License-Identifier: Apache-2.0
"""What the bus publishes: connections to its publishers."""

from __future__ import annotations

import json
import uuid
from collections import deque
from typing import Iterable, Sequence, TypeAlias

import zmq

from .core import Core
from .credit import CreditSubscription
from .errors import CaptureError
from .links import Link
from .steps import Socket, Steps, Wait, is_over

PROBE = 1.0  # seconds that an answer may take, when silence is to be told from having been stopped
HEARTBEAT, LAST_WORD = "heartbeat/", "event/bus/"
Message = list[zmq.Frame]


def with_slash(topic: str) -> str:
    """A topic ends in `/`, so that none is the beginning of another."""
    return topic if topic.endswith("/") else topic + "/"


class Subscription:
    """A connection to a publisher.

    A fresh connection gets `welcome/`. Whoever then subscribes `ack/<nonce>/` gets that once, and knows that all that
    was subscribed before is in force. libzmq connects again by itself; then this starts over, and `connections` is one
    more.
    """

    def __init__(
        self, context: zmq.Context[Socket], endpoint: str, topics: Iterable[str], room: int, is_remote: bool = False
    ) -> None:
        self.socket: Socket = context.socket(zmq.SUB)
        #: Of one to another machine.
        self.link = Link(self.socket) if is_remote else None
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, room)
        # Topics beyond it would be lost without a notice. The bus takes 1024 of a connection, and answers further
        # ones with an error.
        self.socket.setsockopt(zmq.SNDHWM, 2000)
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
        return (self.socket,) if self.link is None else (self.socket, self.link.monitor)

    def begin(self) -> bool:
        """Takes in what has come, for later, until this is in force."""
        while not self.is_in_force and (message := self._receive()) is not None:
            self._early.append(message)
        return self.is_in_force

    def receive(self) -> Message | None:
        """The next message, or None."""
        return self._early.popleft() if self._early else self._receive()

    def _receive(self) -> Message | None:
        if self.link is not None:
            self.link.look()
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
                    self._look_for_refusal(message)
                elif topic == self._ack:
                    self._forget_ack()
                    self._look_for_refusal(message)
                    self.is_in_force = True
                    self.connections += 1
            else:
                return message

    @staticmethod
    def _look_for_refusal(message: Message) -> None:
        # There are more subscriptions than one connection may have: the last ones are not in force.
        if len(message) > 1 and b'"error"' in message[1].bytes:
            raise CaptureError.from_header(json.loads(message[1].bytes)["error"])

    def probe(self) -> None:
        """Asks for a word that comes behind all that is on its way: a program that was stopped finds its messages
        before it.
        """
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
        if self.link is not None:
            self.link.close()
        self.socket.close(linger=0)


MediaSubscription: TypeAlias = "Subscription | CreditSubscription"


def subscribe(core: Core, device: str, topics: Iterable[str], room: int, raw: bool = False) -> MediaSubscription:
    """To what a device, or a rig, publishes; `raw`: from another machine, also as pixels that are not compressed."""
    if core.place.is_remote:
        return CreditSubscription(core.context, core.media_endpoint(device), topics, raw)
    return Subscription(core.context, core.media_endpoint(device), topics, room)


def subscribe_events(core: Core, topics: Iterable[str], room: int) -> Subscription:
    """To what the bus itself publishes: its state, and what happens."""
    return Subscription(core.context, core.events_endpoint(), topics, room, core.place.is_remote)


def links(subscriptions: Iterable[MediaSubscription | None]) -> list[Link]:
    """Those that have one."""
    return [each.link for each in subscriptions if each is not None and each.link is not None]


def begin_all(subscriptions: Sequence[MediaSubscription], until: float) -> Steps[bool]:
    """Waits until all are in force; False: not in time."""
    while late := tuple(socket for each in subscriptions if not each.begin() for socket in each.sockets):
        if is_over(until):
            return False
        yield Wait(late, until)
    return True
