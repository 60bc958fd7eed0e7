"""USB/IP's requests over a socket pair of which the kernel's virtual host controller holds the other end.

Source: Documentation/usb/usbip_protocol.rst and drivers/usb/usbip of Linux.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from dataclasses import dataclass

CONTROLLER = "/sys/devices/platform/vhci_hcd.0"
HIGH_SPEED = 3
SUBMIT, UNLINK, RET_SUBMIT, RET_UNLINK = 1, 2, 3, 4
STALL = -errno.EPIPE


class Unplugged(Exception):
    """The kernel has closed its end."""


@dataclass(frozen=True)
class Transfer:
    """An URB: something to send, or room for something to be sent back."""

    number: int
    endpoint: int
    is_in: bool
    length: int
    setup: bytes
    data: bytes


@dataclass(frozen=True)
class Cancel:
    """The kernel gives a transfer up."""

    number: int
    transfer: int


class Port:
    """One port of the controller, with the device that this program is."""

    def __init__(self, number: int) -> None:
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end in (ours, kernels):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        with kernels, open(f"{CONTROLLER}/attach", "w", encoding="ascii") as attach:
            attach.write(f"{number} {kernels.fileno()} {0x10002 + number} {HIGH_SPEED}")
        self.socket = ours
        self.bytes = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> list[Transfer | Cancel]:
        """The requests that have come."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise Unplugged
        self.bytes += part
        requests: list[Transfer | Cancel] = []
        while len(self.bytes) >= 48:
            command, number, _, is_in, endpoint, *rest = struct.unpack_from(">5I", self.bytes)
            if command == UNLINK:
                requests.append(Cancel(number, struct.unpack_from(">I", self.bytes, 20)[0]))
                self.bytes = self.bytes[48:]
                continue
            length = struct.unpack_from(">i", self.bytes, 24)[0]
            end = 48 + (0 if is_in else length)
            if len(self.bytes) < end:
                break
            setup, data = self.bytes[40:48], self.bytes[48:end]
            requests.append(Transfer(number, endpoint, bool(is_in), length, setup, data))
            self.bytes = self.bytes[end:]
        return requests

    def answer(self, transfer: Transfer, data: bytes | None) -> None:
        """Ends a transfer: with what the kernel reads, or b"" for one that it wrote; None: a stall."""
        status, data = (STALL, b"") if data is None else (0, data[: transfer.length])
        count = len(data) if transfer.is_in or status else transfer.length
        self._send(struct.pack(">5Iiiiii8x", RET_SUBMIT, transfer.number, 0, 0, 0, status, count, 0, 0, 0) + data)

    def cancelled(self, cancel: Cancel, was_waiting: bool) -> None:
        status = -errno.ECONNRESET if was_waiting else 0
        self._send(struct.pack(">5Ii24x", RET_UNLINK, cancel.number, 0, 0, 0, status))

    def _send(self, packet: bytes) -> None:
        try:
            self.socket.sendall(packet)
        except OSError as error:
            raise Unplugged(os.strerror(error.errno or 0)) from error
