"""Bytes that are no ZMTP, half a greeting, odd messages at rings; thousands of slow connections; frames too large."""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import time
from contextlib import suppress

from camerabus import CaptureError
from part import Part

GREETING = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + b"\0" * 16 + b"\0" + b"\0" * 31
READY = b"\4\x1a\5READY\x0bSocket-Type\0\0\0\6DEALER"
SOCKETS = (
    "command.sock", "events.sock", "media/cam0.sock", "media/mic0.sock", "internal/workers.sock",
    "internal/recorders.sock",
)  # fmt: skip
RINGS = ("media/cam0.ring", "media/mic0.ring")
RING_MESSAGES = (
    b'{"rendition":"native"}', b"{", b"[]", b'{"rendition":null}', b'{"rendition":"jpeg:1x1"}',
    b'{"rendition":"gray","rendition":"gray"}', b"[" * 1000, b" " * 1024,
    b'{"rendition":"' + b"\xf0\x9f\x92\xa5" * 200 + b'"}',
)  # fmt: skip
#: After so many inputs others are asked whether they are served.
SERVED = 500
#: Connections that send a byte now and then, where there are enough inputs for them.
SLOW = 2000
MEBIBYTE = 1 << 20


def frame(body: bytes, flags: int = 0, length: int | None = None) -> bytes:
    """A frame of ZMTP, which says that it has `length` bytes."""
    length = len(body) if length is None else length
    head = bytes([flags, length]) if length < 256 else bytes([flags | 2]) + struct.pack(">Q", length)
    return head + body


def no_zmtp(dice: random.Random) -> bytes:
    met = GREETING + READY
    subscribing = b"\x09SUBSCRIBE" + dice.randbytes(dice.choice([1, 200, 4000]))
    return dice.choice([
        lambda: dice.randbytes(dice.randrange(1, 5000)),
        lambda: GREETING[: dice.randrange(1, 64)],
        lambda: GREETING + READY[: dice.randrange(len(READY))],
        lambda: GREETING[: dice.randrange(64)] + dice.randbytes(64),
        lambda: met + frame(b"", 1) + frame(dice.randbytes(dice.randrange(1000))),
        lambda: met + frame(b"x", 0, dice.choice([2**63 - 1, 2**64 - 1, 2**40, (16 << 20) + 1])),
        lambda: GREETING + frame(b"\5READY" + dice.randbytes(dice.randrange(200)), 4),
        lambda: met + frame(bytes([dice.choice([9, 6, 4, 1, 255])]) + dice.randbytes(20), 4) * 50,
        lambda: met + frame(b"", 1) * dice.choice([10, 300]) + frame(b"{}"),
        lambda: GREETING + READY.replace(b"DEALER", dice.choice([b"PUB\0\0\0", b"XXXXXX", b"ROUTER"])),
        lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        lambda: met + frame(subscribing, 4) * 20 + frame(b"\1" + dice.randbytes(100)) * 20,
    ])()  # fmt: skip


class Bytes(Part):
    name = "bytes"
    share = 8_000
    arguments = ("--virtual", "1")

    def give(self, first: int, count: int) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for number in range(first, first + count):
            dice = self.dice(number)
            if dice.random() < 0.75:
                self._send_bytes(dice)
            else:
                self._send_ring_messages(dice)
            self.done += 1
            if number % SERVED == 0:
                self._is_served(number)
                if not self.health.check(number - first, count):
                    return
        if count >= SERVED:
            self._be_slow(self.dice(first))
            self._be_large()
        self._is_served(first + count)

    def _is_served(self, number: int | None) -> None:
        """Others are, at once."""
        try:
            with self.bus.client("fuzz", timeout=15) as client:
                client.devices()
                client.call("device.controls", {"device": "cam0"})
        except CaptureError as error:
            self.fail(number, f"another client: {error}")

    def _connect(self, path: str, kind: int = socket.SOCK_STREAM) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, kind)
        connection.settimeout(2)
        try:
            connection.connect(str(self.bus.runtime / path))
            return connection
        except OSError:
            connection.close()
            return None

    def _send_bytes(self, dice: random.Random) -> None:
        path, data, waits = dice.choice(SOCKETS), no_zmtp(dice), dice.random() < 0.3
        if connection := self._connect(path):
            with connection, suppress(OSError):
                connection.sendall(data)
                if waits:
                    connection.settimeout(0.02)
                    connection.recv(1000)

    def _send_ring_messages(self, dice: random.Random) -> None:
        if not (connection := self._connect(dice.choice(RINGS), socket.SOCK_SEQPACKET)):
            return
        with connection, suppress(OSError):
            for _ in range(dice.choice([1, 1, 3, 30])):
                message = dice.choice([dice.randbytes(dice.randrange(1, 1500)), *RING_MESSAGES])
                if dice.random() < 0.2:
                    # Descriptors that nobody asked for.
                    pipe = os.pipe()
                    try:
                        socket.send_fds(connection, [message], [*pipe] * 20)
                    finally:
                        os.close(pipe[0])
                        os.close(pipe[1])
                else:
                    connection.send(message)
            if dice.random() < 0.3:
                connection.settimeout(0.05)
                for descriptor in socket.recv_fds(connection, 65536, 4)[1]:
                    os.close(descriptor)

    def _be_slow(self, dice: random.Random) -> None:
        """Connections that send a byte now and then. While they are there, new ones of this user may be refused."""
        held = [connection for _ in range(SLOW) if (connection := self._connect(dice.choice(SOCKETS[:4])))]
        until = time.monotonic() + 10
        while time.monotonic() < until:
            for connection in dice.sample(held, min(100, len(held))):
                with suppress(OSError):
                    connection.send(GREETING[: dice.randrange(1, 64)])
            # No event: this is how slow they are.
            time.sleep(0.5)
        for connection in held:
            connection.close()
        self.notes.append(f"{len(held)} slow connections")
        self._is_served(None)

    def _be_large(self) -> None:
        """Frames that are larger than is allowed, and many that are begun and do not end."""
        large = b"\2" + struct.pack(">Q", 15 * MEBIBYTE)
        for _ in range(6):
            if connection := self._connect("command.sock"):
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    connection.sendall(GREETING + READY + frame(b"", 1) + large + b" " * 15 * MEBIBYTE)
                    connection.sendall(b"\2" + struct.pack(">Q", 1 << 30))
                    for _ in range(40):
                        connection.sendall(b" " * MEBIBYTE)
                    self.fail(None, "the bus takes a frame of 1 GiB")
        held = [connection for _ in range(60) if (connection := self._connect("command.sock"))]
        for connection in held:
            with suppress(OSError):
                connection.sendall(GREETING + READY + large + b" " * MEBIBYTE)
        self._is_served(None)
        for connection in held:
            connection.close()
