"""The reader of virtual cameras' pictures, by pictures made here."""

from __future__ import annotations

import binascii
import struct
import unittest

import picture_counter
from picture_counter import PictureCounter, read_luma

WANTED = PictureCounter(counter=0x89ABCDEF, clock=0x0123456789ABCDEF, camera=200)


def picture(
    width: int, height: int, step: int = 1, black: int = 16, white: int = 235, damage: int | None = None
) -> bytes:
    """A picture with a band that says WANTED; `damage` is a cell to turn over."""
    body = struct.pack(">IQB", *WANTED)
    data = bytes([0xB2]) + body + struct.pack(">H", binascii.crc_hqx(body, 0xFFFF))
    cells = [bool(byte >> (7 - bit) & 1) for byte in data for bit in range(8)]
    if damage is not None:
        cells[damage] = not cells[damage]
    result = bytearray()
    for y in range(height):
        row = y * 24 // height
        for x in range(width):
            level = (white if cells[row * 32 + x * 32 // width] else black) if row < 4 else 100
            result += bytes([level] + [128] * (step - 1))
    return bytes(result)


class PictureCounters(unittest.TestCase):
    def test_every_scale_and_step(self) -> None:
        for width, height in [(80, 45), (80, 60), (213, 119), (640, 360), (100, 240)]:
            for step in (1, 2, 3):
                self.assertEqual(read_luma(picture(width, height, step), width, height, step=step), WANTED)

    def test_weak_contrast(self) -> None:
        self.assertEqual(read_luma(picture(320, 240, black=90, white=150), 320, 240), WANTED)
        self.assertIsNone(read_luma(picture(320, 240, black=120, white=130), 320, 240))

    def test_lines_with_padding(self) -> None:
        lines = picture(320, 240)
        padded = b"".join(lines[y * 320 : (y + 1) * 320] + bytes(32) for y in range(240))
        self.assertEqual(read_luma(padded, 320, 240, stride=352), WANTED)

    def test_no_cell_can_be_wrong(self) -> None:
        for cell in range(8, 128):
            self.assertIsNone(read_luma(picture(64, 48, damage=cell), 64, 48))

    def test_what_is_no_picture(self) -> None:
        self.assertIsNone(read_luma(bytes(320 * 240), 320, 240))
        self.assertIsNone(read_luma(bytes(320 * 240 - 1), 320, 240))
        self.assertIsNone(read_luma(b"", 0, 0))

    def test_of_pillow(self) -> None:
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("Pillow is not there")
        image = Image.frombytes("L", (320, 240), picture(320, 240)).convert("RGB")
        self.assertEqual(picture_counter.read_image(image), WANTED)


if __name__ == "__main__":
    unittest.main()
