# SPDX-License-Identifier: Apache-2.0
"""What a socket's monitor tells of its connection."""

from __future__ import annotations

import time
from contextlib import suppress

import zmq
from zmq.utils.monitor import parse_monitor_message

from .steps import Socket

_EVENTS = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
# Of a monitor that nobody reads for now: libzmq waits where there is no room, and with it all sockets of the context.
_ROOM = 20_000


class Link:
    """The connection of a socket that has one, which libzmq makes again by itself when it has ended."""

    def __init__(self, socket: Socket, tells_attempts: bool = False) -> None:
        """`tells_attempts`: each attempt to connect that failed wakes who waits, too."""
        self._socket = socket
        events = _EVENTS | zmq.EVENT_CONNECT_RETRIED if tells_attempts else _EVENTS
        address = f"inproc://camerabus-{id(self):x}-{time.monotonic_ns()}"
        socket.monitor(address, events)
        #: To be waited for; `look` reads it.
        self.monitor: Socket = socket.context.socket(zmq.PAIR)
        self.monitor.setsockopt(zmq.LINGER, 0)
        self.monitor.setsockopt(zmq.RCVHWM, _ROOM)
        self.monitor.connect(address)
        #: It is connected, and was let in.
        self.is_up = False
        #: How often it has been made, and how often it, or an attempt at it, has ended.
        self.connections = self.ends = 0
        #: Since it was up, somebody has taken connections there, though perhaps let nobody in.
        self.is_answered = False
        #: Since when it is not up (time.monotonic), while it is not.
        self.down_since = time.monotonic()

    def look(self) -> None:
        """Takes in what the monitor tells."""
        while True:
            try:
                message = self.monitor.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            event = parse_monitor_message(message)["event"]
            if event == zmq.EVENT_CONNECTED:
                self.is_answered = True
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.is_up = True
                self.connections += 1
            elif event == zmq.EVENT_DISCONNECTED:
                self.ends += 1
                if self.is_up:
                    self.is_up = self.is_answered = False
                    self.down_since = time.monotonic()

    def close(self) -> None:
        # With its client all of it may have been closed before, or its context may be ending.
        if not self._socket.closed:
            with suppress(zmq.ZMQError):
                self._socket.disable_monitor()
        self.monitor.close(linger=0)
