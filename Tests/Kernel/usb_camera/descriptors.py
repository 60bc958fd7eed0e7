"""What the camera says of itself: USB 2.0, chapter 9, and the Video Class 1.1's descriptors, chapter 3."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from controls import TERMINAL, UNIT, Controls

OUTPUT_TERMINAL = 3
STATUS_ENDPOINT, VIDEO_ENDPOINT = 2, 1
PACKET = 512
CLOCK = 48_000_000
# MJPEG needs no more for these pictures; the driver's buffers are as large as dwMaxVideoFrameBufferSize.
YUY2 = bytes.fromhex("5955593200001000800000aa00389b71")


@dataclass(frozen=True)
class Size:
    width: int
    height: int
    rates: tuple[int, ...]

    @property
    def intervals(self) -> list[int]:
        """In units of 100 ns, as the Video Class counts."""
        return [10_000_000 // rate for rate in self.rates]

    @property
    def bytes(self) -> int:
        return self.width * self.height * 2


@dataclass(frozen=True)
class Format:
    is_jpeg: bool
    sizes: tuple[Size, ...]


FORMATS = (
    Format(True, (Size(1280, 720, (30, 15, 5)), Size(640, 360, (30, 15, 5)))),
    Format(False, (Size(320, 180, (15, 5)),)),
)


def device(has_serial: bool) -> bytes:
    """1209:0001, class by interface association."""
    return struct.pack(
        "<BBHBBBBHHHBBBB", 18, 1, 0x200, 0xEF, 2, 1, 64, 0x1209, 1, 0x100, 1, 2, 3 if has_serial else 0, 1
    )


def qualifier() -> bytes:
    return struct.pack("<BBHBBBBBB", 10, 6, 0x200, 0xEF, 2, 1, 64, 1, 0)


def string(text: str) -> bytes:
    encoded = text.encode("utf-16le")
    return bytes([2 + len(encoded), 3]) + encoded


def configuration(controls: Controls) -> bytes:
    body = bytes([8, 11, 0, 2, 0x0E, 3, 0, 2]) + control_interface(controls) + streaming_interface()
    return struct.pack("<BBHBBBBB", 9, 2, 9 + len(body), 2, 1, 0, 0x80, 250) + body


def control_interface(controls: Controls) -> bytes:
    terminal = struct.pack("<BBBBHBBHHHB", 18, 0x24, 2, TERMINAL, 0x201, 0, 0, 0, 0, 0, 3)
    terminal += controls.bits(TERMINAL).to_bytes(3, "little")
    unit = (
        struct.pack("<BBBBBHB", 13, 0x24, 5, UNIT, TERMINAL, 0, 3) + controls.bits(UNIT).to_bytes(3, "little") + b"\0\0"
    )
    output = struct.pack("<BBBBHBBB", 9, 0x24, 3, OUTPUT_TERMINAL, 0x101, 0, UNIT, 0)
    total = 13 + len(terminal) + len(unit) + len(output)
    header = struct.pack("<BBBHHIBB", 13, 0x24, 1, 0x110, total, CLOCK, 1, 1)
    # The status interrupt: the class's own descriptor says how long its packets get.
    status = struct.pack("<BBBBHB", 7, 5, 0x80 | STATUS_ENDPOINT, 3, 16, 8) + struct.pack("<BBBH", 5, 0x25, 3, 16)
    return bytes([9, 4, 0, 0, 1, 0x0E, 1, 0, 2]) + header + terminal + unit + output + status


def streaming_interface() -> bytes:
    tables = b"".join(format_tables(index, format) for index, format in enumerate(FORMATS, 1))
    length = 13 + len(FORMATS)
    header = struct.pack(
        "<BBBBHBBBBBBB", length, 0x24, 1, len(FORMATS), length + len(tables), 0x80 | VIDEO_ENDPOINT, 0, OUTPUT_TERMINAL,
        0, 0, 0, 1,
    ) + bytes(len(FORMATS))
    endpoint = struct.pack("<BBBBHB", 7, 5, 0x80 | VIDEO_ENDPOINT, 2, PACKET, 0)
    return bytes([9, 4, 1, 0, 1, 0x0E, 2, 0, 0]) + header + tables + endpoint


def format_tables(index: int, format: Format) -> bytes:
    count = len(format.sizes)
    if format.is_jpeg:
        table = bytes([11, 0x24, 6, index, count, 1, 1, 0, 0, 0, 0])
    else:
        table = bytes([27, 0x24, 4, index, count]) + YUY2 + bytes([16, 1, 0, 0, 0, 0])
    for place, size in enumerate(format.sizes, 1):
        intervals = size.intervals
        table += struct.pack(
            "<BBBBBHHIIIIB", 26 + 4 * len(intervals), 0x24, 7 if format.is_jpeg else 5, place, 0, size.width,
            size.height, size.bytes * 8 * size.rates[-1], size.bytes * 8 * size.rates[0], size.bytes, intervals[0],
            len(intervals),
        ) + struct.pack(f"<{len(intervals)}I", *intervals)
    # Colours: BT.709, sRGB's curve, SMPTE 170M's matrix.
    return table + bytes([6, 0x24, 0x0D, 1, 1, 4])
