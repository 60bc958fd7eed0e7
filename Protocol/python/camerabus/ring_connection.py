# SPDX-License-Identifier: Apache-2.0
"""The connection that brings rings: frames or sound of one device in shared memory, from ring to ring."""

from __future__ import annotations

import json
import math
import os
import select
import socket
import struct
import time
from dataclasses import replace
from typing import Iterator

from .errors import BusNotRunning, CaptureError, ProtocolError
from .renditions import spelled
from .ring import Order, RingClosed, RingFrame, RingReader, RingSound
from .sequences import FrameContinuity, SoundContinuity

_MESSAGE_BYTES = 65536
# Seconds without a frame after which the connection is looked at.
_PATIENCE = 1.0
# Milliseconds that poll() can wait.
_LONGEST = 2**31 - 1
# Seconds that a worker has for taking the connection: one that was stopped takes none.
_CONNECTING = 10


class _Connection:
    """The connection to `media/<device>.ring`: what is in the rings of one rendition, from ring to ring.

    It counts as a subscription as long as it is open. Blocking: use a thread of its own in an asyncio program.
    """

    def __init__(self, path: str, rendition: str = "native") -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # Of a Unix socket that holds for connect(), too, which waits as long as the queue is full.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", _CONNECTING, 0))
            self._socket.connect(path)
            self._socket.send(json.dumps({"rendition": spelled(rendition)}).encode())
        except OSError as error:
            self._socket.close()
            raise BusNotRunning(f"No process answers at {path}: {error.strerror or error}.") from None
        self._closed = False
        self._wants_ring = True
        self._is_chained = False
        self._late = 0
        #: The ring that frames come from now.
        self.reader: RingReader | None = None

    def _next(self, timeout: float, order: Order) -> RingFrame | RingSound | None:
        until = time.monotonic() + timeout
        while True:
            if self._wants_ring and not self._receive(max(0.0, until - time.monotonic())):
                return None
            assert self.reader is not None
            try:
                wait = max(0.0, min(until - time.monotonic(), _PATIENCE))
                frame = self.reader.wait(wait, "next" if self._is_chained else order)
            except RingClosed:
                self._wants_ring = True
                continue
            if frame is not None:
                return frame
            # A worker that was killed has closed no ring: its end shows at the connection only.
            if not self._receive(0) and time.monotonic() >= until:
                return None

    def _receive(self, timeout: float) -> bool:
        if self._closed:
            raise ValueError("This connection was closed.")
        # Not select.select: a program may have more descriptors than that knows.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(None if timeout == math.inf else min(math.ceil(timeout * 1000), _LONGEST)):
            return False
        try:
            message, descriptors, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 4)
        except ConnectionError:
            # It was killed before it had read what we asked for.
            message, descriptors = b"", []
        try:
            if not message and not descriptors:
                raise BusNotRunning("The worker of the device has ended.")
            if descriptors:
                self.reader = RingReader.attach(descriptors[0])
                self._late = 0
                self._wants_ring = False
                return True
            try:
                error = json.loads(message)["error"]
            except (ValueError, KeyError, TypeError):
                raise ProtocolError("The worker sent neither a ring nor an error.") from None
            raise CaptureError.from_header(error)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def fileno(self) -> int:
        """Readable when a further ring, an error or the end has come."""
        return self._socket.fileno()

    def close(self) -> None:
        self._closed = True
        self._socket.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class RingConnection(_Connection):
    """The connection to `media/<device>.ring` of a camera: frames of one rendition, from ring to ring.

    It counts as a subscription as long as it is open. Blocking: use a thread of its own in an asyncio program.
    """

    def __init__(self, path: str, rendition: str = "native") -> None:
        super().__init__(path, rendition)
        self._continuity = FrameContinuity()

    def next(self, timeout: float = 10, order: Order = "newest") -> RingFrame | None:
        """The next frame, at most so many seconds from now; None: none came.

        Of a format whose frames build on one another (H.264) they come one after the other, whatever the order, and
        after a loss go on with a key frame. Raises the worker's error in place of frames, and BusNotRunning when the
        worker has gone.
        """
        until = time.monotonic() + timeout
        while (frame := self._next(until - time.monotonic(), order)) is not None:
            if not isinstance(frame, RingFrame):
                raise ProtocolError("This ring contains sound. Use SoundRingConnection.")
            if self._admits(frame):
                return frame
        return None

    def _admits(self, frame: RingFrame) -> bool:
        assert self.reader is not None
        late, self._late = self._late, self.reader.late
        if late != self.reader.late:
            self._continuity.interrupt()
        self._is_chained = frame.keyframe is not None
        return self._continuity.receive(frame.stream, frame.sequence, frame.keyframe) is not None

    def __iter__(self) -> Iterator[RingFrame]:
        while True:
            frame = self.next(3600)
            if frame is not None:
                yield frame

    def __enter__(self) -> RingConnection:
        return self


class SoundRingConnection(_Connection):
    """The connection to `media/<device>.ring` of a microphone: its sound piece by piece, from ring to ring.

    It counts as a subscription as long as it is open. Blocking: use a thread of its own in an asyncio program.
    """

    def __init__(self, path: str, rendition: str = "native") -> None:
        super().__init__(path, rendition)
        self._is_chained = True
        self._continuity = SoundContinuity()

    def next(self, timeout: float = 10) -> RingSound | None:
        """The next piece, at most so many seconds from now; None: none came. The first is the newest.

        Pieces stay for two seconds or so: what is lost to who takes longer, `lost` of the next one tells. Raises the
        worker's error in place of sound, and BusNotRunning when the worker has gone.
        """
        until = time.monotonic() + timeout
        while (sound := self._next(until - time.monotonic(), "next")) is not None:
            if not isinstance(sound, RingSound):
                raise ProtocolError("This ring contains pictures. Use RingConnection.")
            lost = self._continuity.receive(sound.stream, sound.sequence, sound.firstFrame, sound.frames)
            if lost is not None:
                return replace(sound, lost=lost) if lost else sound
        return None

    def __iter__(self) -> Iterator[RingSound]:
        while True:
            sound = self.next(3600)
            if sound is not None:
                yield sound

    def __enter__(self) -> SoundRingConnection:
        return self
