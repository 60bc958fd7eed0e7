# SPDX-License-Identifier: Apache-2.0
"""Pictures and sound from another machine: each message is asked for, so that a slow link shows the present, less
often.
"""

from __future__ import annotations

from typing import Iterable

import zmq

from .links import Link
from .steps import Socket

END, NEXT, NEXT_RAW = b"\x00", b"\x01", b"\x02"
#: Messages that are asked for ahead: of pictures, and of sound, of which none is to be missing.
AHEAD, AHEAD_OF_SOUND = 2, 8
MEDIA = ("frame/", "set/", "audio/", "level/")


class CreditSubscription:
    """A connection to a gateway's media port, with the same names as `Subscription`.

    `raw` says that pixels may come as they are.
    """

    def __init__(self, context: zmq.Context[Socket], endpoint: str, topics: Iterable[str], raw: bool = False) -> None:
        self.socket: Socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        # What was asked on a connection that is over counts no more.
        self.socket.setsockopt(zmq.IMMEDIATE, 1)
        self.link = Link(self.socket)
        self._ends = 0
        self._topics = [topic.encode() for topic in topics if topic.startswith(MEDIA)]
        self._ask = NEXT_RAW if raw else NEXT
        # Of this connection: what there was no room for yet.
        self._owed: list[bytes] = []
        self.is_in_force = False
        self.connections = 0
        self.socket.connect(endpoint)

    @property
    def sockets(self) -> tuple[Socket, ...]:
        """What is to be waited for."""
        return (self.socket, self.link.monitor)

    def begin(self) -> bool:
        """Whether what is wanted has been asked for."""
        self._look()
        return self.is_in_force

    def receive(self) -> list[zmq.Frame] | None:
        """The next message, or None; taking it asks for one more."""
        self._look()
        try:
            message = self.socket.recv_multipart(zmq.DONTWAIT, copy=False)
        except zmq.Again:
            return None
        self._send(self._ask + message[0].bytes)
        return message

    def probe(self) -> None:
        """Nothing can come behind what is on its way: what was not asked for does not come."""

    is_probing = False

    def _look(self) -> None:
        link = self.link
        link.look()
        if link.ends != self._ends or link.connections != self.connections:
            # What was asked before goes with the connection, and each begins anew.
            self._owed.clear()
            self._ends = link.ends
            if link.is_up and link.connections != self.connections:
                self.connections = link.connections
                self.is_in_force = True
                for topic in self._topics:
                    self._owed += [self._ask + topic] * (AHEAD_OF_SOUND if topic.startswith(b"audio/") else AHEAD)
        self._pay()

    def _send(self, ask: bytes) -> None:
        self._owed.append(ask)
        self._pay()

    def _pay(self) -> None:
        # Asking for its events makes libzmq take notice of a connection that it has not told the socket of yet.
        while self._owed and int(self.socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
            try:
                self.socket.send(self._owed[0], zmq.DONTWAIT)
            except zmq.Again:
                return
            del self._owed[0]

    def close(self) -> None:
        self.link.close()
        self.socket.close(linger=0)
