#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads which frame a virtual camera's picture is, from the black and white cells at its top.

usage: picture_counter.py PICTURE...

Prints counter, clock (CLOCK_MONOTONIC in microseconds) and camera index of each picture; exit code 1 if one has no
readable band.

The band is 32 cells wide, over the whole width, and 4 high, each 1/24 of the height. The cells are the bits, highest
first and white for 1, of 16 bytes: 0xB2; counter, 4 bytes; microseconds, 8; camera, 1; CRC-16 (CCITT, from 0xFFFF) of
these 13, 2 bytes; all big-endian.
"""

from __future__ import annotations

import binascii
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS, ROWS, HEIGHT_IN_CELLS = 32, 4, 24
MARKER = 0xB2


class PictureCounter(NamedTuple):
    """What a virtual camera's picture says of itself."""

    counter: int
    """captureSequence modulo 2**32."""
    clock: int
    """CLOCK_MONOTONIC at the start of the frame, microseconds."""
    camera: int
    """The camera's number from 0."""


def read_luma(
    luma: bytes | memoryview, width: int, height: int, stride: int | None = None, step: int = 1
) -> PictureCounter | None:
    """Reads the band from pixels in memory; None if there is none or its checksum is wrong.

    stride: bytes from one line to the next; step: bytes from one pixel to the next (2 for YUYV, 3 for BGR or RGB).
    """
    line = width * step if stride is None else stride
    if (
        width <= 0
        or height <= 0
        or line < (width - 1) * step + 1
        or line * (height - 1) + (width - 1) * step >= len(luma)
    ):
        return None

    def middle(cell: int, cells: int, length: int) -> range:
        first = min((4 * cell + 1) * length // (4 * cells), length - 1)
        last = min(max(first, ((4 * cell + 3) * length - 1) // (4 * cells)), length - 1)
        return range(first, last + 1)

    # The mean of the middle of each cell: scaling and compression blur the edges.
    columns = [middle(column, COLUMNS, width) for column in range(COLUMNS)]
    levels: list[float] = []
    for row in range(ROWS):
        lines = middle(row, HEIGHT_IN_CELLS, height)
        for column in columns:
            total = sum(luma[y * line + x * step] for y in lines for x in column)
            levels.append(total / (len(lines) * len(column)))

    marks = [bool(MARKER >> (7 - bit) & 1) for bit in range(8)]
    white = sum(level for level, mark in zip(levels, marks) if mark) / 4
    black = sum(level for level, mark in zip(levels, marks) if not mark) / 4
    if white - black < 40:
        return None
    bits = 0
    for level in levels:
        bits = bits << 1 | (2 * level > white + black)
    data = bits.to_bytes(COLUMNS * ROWS // 8, "big")
    marker, counter, clock, camera, checksum = struct.unpack(">BIQBH", data)
    if marker != MARKER or binascii.crc_hqx(data[1:14], 0xFFFF) != checksum:
        return None
    return PictureCounter(counter, clock, camera)


def read_image(image: Image) -> PictureCounter | None:
    """Reads the band of a Pillow picture of any mode."""
    grey = image.convert("L")
    return read_luma(grey.tobytes(), grey.width, grey.height)


def main(paths: list[str]) -> int:
    from PIL import Image

    if not paths:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    code = 0
    for path in paths:
        with Image.open(path) as image:
            found = read_image(image)
        if found is None:
            print(f"{path}: no readable band", file=sys.stderr)
            code = 1
        else:
            print(*found)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
