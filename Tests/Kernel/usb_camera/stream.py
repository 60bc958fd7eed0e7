"""The camera's pictures: the negotiation of a format, and payloads on a bulk endpoint.

Source: USB Device Class Definition for Video Devices 1.5, sections 2.4.3.3 and 4.3.1.1.
"""

from __future__ import annotations

import struct
from typing import Callable

import pictures
from controls import GET_CUR, GET_DEF, GET_INFO, GET_LEN, GET_MAX, GET_MIN, SET_CUR
from descriptors import CLOCK, FORMATS, Size
from vhci import Port, Transfer

PROBE, COMMIT = 1, 2
PAYLOAD = 16384
END_OF_FRAME, ERROR, END_OF_HEADER = 0x02, 0x40, 0x80
NEGOTIATION_LENGTH = 34


class Stream:
    def __init__(self) -> None:
        self.probing = "right"
        self.is_mute = False
        self.is_halted = False
        self.short = 0
        self.corrupt = 0
        self.negotiated = {PROBE: answer_to(bytes(NEGOTIATION_LENGTH)), COMMIT: answer_to(bytes(NEGOTIATION_LENGTH))}
        self.waiting: list[Transfer] = []
        self.rest = b""
        self.flags = 0
        self.toggle = 0
        self.count = 0
        self.next = 0.0
        self.light: Callable[[], float] | None = None
        """How much of the scene's light gets into a picture, 1 being right for its middle; None: no scene, but pictures
        in turn.
        """

    # Negotiation

    def request(self, request: int, selector: int, data: bytes) -> bytes | None:
        if selector not in (PROBE, COMMIT) or (self.probing == "stall" and request != GET_LEN):
            return None
        if request == SET_CUR:
            if self.probing == "wrong":
                # Another size than the one that was asked for.
                data = data[:3] + bytes([2 if data[3] == 1 else 1]) + data[4:]
            self.negotiated[selector] = answer_to(data)
            return b""
        if request == GET_LEN:
            return NEGOTIATION_LENGTH.to_bytes(2, "little")
        if request == GET_INFO:
            return b"\3"
        if request in (GET_CUR, GET_MIN, GET_MAX, GET_DEF):
            return self.negotiated[selector]
        return None

    @property
    def size(self) -> Size:
        _, format, frame, _ = struct.unpack_from("<HBBI", self.negotiated[COMMIT])
        return FORMATS[format - 1].sizes[frame - 1]

    @property
    def is_jpeg(self) -> bool:
        return FORMATS[self.negotiated[COMMIT][2] - 1].is_jpeg

    @property
    def interval(self) -> float:
        """Seconds from picture to picture."""
        return struct.unpack_from("<I", self.negotiated[COMMIT], 4)[0] / 1e7

    # Pictures

    def forget(self, number: int) -> bool:
        """The kernel takes a transfer back, and with it the picture that was being sent."""
        kept = [transfer for transfer in self.waiting if transfer.number != number]
        was_waiting = len(kept) < len(self.waiting)
        self.waiting, self.rest = kept, b""
        return was_waiting

    def wake(self, now: float) -> float | None:
        """In how many seconds there is something to send."""
        if not self.waiting or (self.is_mute and not self.is_halted and not self.rest):
            return None
        return 0 if self.rest or self.is_halted else max(0, self.next - now)

    def work(self, port: Port, now: float) -> None:
        while self.is_halted and self.waiting:
            port.answer(self.waiting.pop(0), None)
            self.rest = b""
        while self.waiting and (self.rest or (now >= self.next and not self.is_mute)):
            if not self.rest:
                self.begin(now)
            transfer = self.waiting.pop(0)
            part = self.rest[: min(transfer.length, PAYLOAD) - 2]
            self.rest = self.rest[len(part) :]
            header = END_OF_HEADER | self.toggle | self.flags | (0 if self.rest else END_OF_FRAME)
            port.answer(transfer, bytes([2, header]) + part)

    def begin(self, now: float) -> None:
        """The next picture. One that comes late takes no others with it."""
        width, height = self.size.width, self.size.height
        if self.light:
            self.rest = pictures.scene(width, height, self.is_jpeg, round(self.light(), 3))
        else:
            all_of_them = pictures.jpegs(width, height) if self.is_jpeg else pictures.yuyv(width, height)
            self.rest = all_of_them[self.count % len(all_of_them)]
        self.count += 1
        self.toggle ^= 1
        self.next = max(self.next + self.interval, now - self.interval)
        self.flags = 0
        if self.short:
            self.short -= 1
            self.rest = self.rest[: len(self.rest) // 2]
        if self.corrupt:
            self.corrupt -= 1
            self.flags = ERROR


def answer_to(wish: bytes) -> bytes:
    """What the camera offers for what was asked: the nearest that it has."""
    wish = wish.ljust(NEGOTIATION_LENGTH, b"\0")
    _, format, frame, interval = struct.unpack_from("<HBBI", wish)
    format = format if 1 <= format <= len(FORMATS) else 1
    sizes = FORMATS[format - 1].sizes
    frame = frame if 1 <= frame <= len(sizes) else 1
    size = sizes[frame - 1]
    interval = min(size.intervals, key=lambda one: abs(one - interval)) if interval else size.intervals[0]
    offer = bytearray(NEGOTIATION_LENGTH)
    struct.pack_into("<HBBI", offer, 0, 1, format, frame, interval)
    struct.pack_into("<III", offer, 18, size.bytes, PAYLOAD, CLOCK)
    offer[30] = 3
    return bytes(offer)
