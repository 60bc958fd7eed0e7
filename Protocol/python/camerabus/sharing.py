# SPDX-License-Identifier: Apache-2.0
"""The rings that belong to `buffer/` messages: asked for once, followed as they change, and never waited for."""

from __future__ import annotations

import errno
import json
import os
import socket
import time

from .errors import ProtocolError
from .frame import Frame
from .ring import RingFrame, RingReader

_MESSAGE_BYTES = 65536
_RETRY = 1.0  # seconds from one attempt to connect to the next
# Attempts in a row that fail while frames come: a worker that is being started again has its socket sooner
_PATIENCE = 3


class RingLink:
    """A device's connection for rings of one rendition. When its worker has gone it connects again, to the next one."""

    def __init__(self, path: str, rendition: str) -> None:
        self._path = path
        self._request = json.dumps({"rendition": rendition}).encode()
        self._socket: socket.socket | None = None
        self._next_attempt = 0.0
        self._reader: RingReader | None = None
        self._late = self._failures = 0
        #: Its frames come with their pixels by now, because no ring could be had.
        self.is_given_up = False
        #: Why there is no connection, if there is none.
        self.problem: str | None = None

    @property
    def late(self) -> int:
        """Frames that were overwritten before they were used, or while they were."""
        return self._late + (self._reader.late if self._reader else 0)

    @property
    def is_hopeless(self) -> bool:
        """No ring can be had, again and again."""
        return self._failures >= _PATIENCE

    def connect(self) -> None:
        """Connects unless it is connected, or has just tried to. What is wrong is in `problem`."""
        if self._socket is not None or time.monotonic() < self._next_attempt:
            return
        self._next_attempt = time.monotonic() + _RETRY
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)
        try:
            connection.connect(self._path)
            connection.send(self._request)
        except OSError as error:
            connection.close()
            self._failures += 1
            self.problem = f"{self._path}: {error.strerror or error}"
            return
        self._socket, self.problem = connection, None

    def find(self, frame: Frame) -> RingFrame | None:
        """The frame that a message names; None: its ring is not there (yet, or any more), or it was overwritten
        already.
        """
        buffer = frame.header.get("buffer")
        if not isinstance(buffer, dict):
            raise ProtocolError("A frame has no place in shared memory.")
        if self._reader is None or self._reader.plan.ring != buffer["ring"]:
            self._receive()
        if self._reader is None or self._reader.plan.ring != buffer["ring"]:
            return None
        return self._reader.find(frame, buffer["slot"], buffer["offset"], buffer["bytes"], buffer["stamp"])

    def _receive(self) -> None:
        self.connect()
        while self._socket is not None:
            descriptors: list[int] = []
            try:
                message, descriptors, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 4)
                if descriptors:
                    reader = RingReader.attach(descriptors[0])
                    self._late, self._reader, self._failures = self.late, reader, 0
                elif not message:
                    self._disconnect()
                    self.problem = "the worker has ended the connection"
                elif b'"error"' not in message:
                    raise OSError(errno.EMFILE, "a ring has no descriptor: this process can open no more")
                elif b'"ringBytes"' in message:
                    # This user's programs have as much shared memory as one user may.
                    self._failures = _PATIENCE
            except BlockingIOError:
                return
            except (OSError, ProtocolError) as error:
                self._disconnect()
                self._failures += 1
                self.problem = str(error)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        self._disconnect()
