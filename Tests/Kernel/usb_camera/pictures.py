"""What the camera sees: a few pictures that differ, in turn."""

from __future__ import annotations

import functools
import io

from PIL import Image, ImageDraw

COUNT = 8


@functools.lru_cache(maxsize=None)
def jpegs(width: int, height: int) -> list[bytes]:
    """JPEGs without Huffman tables, as many cameras send them: those are the standard's."""
    return [without_tables(encoded(picture(width, height, index))) for index in range(COUNT)]


@functools.lru_cache(maxsize=None)
def yuyv(width: int, height: int) -> list[bytes]:
    """Grey ones: a level for each picture."""
    return [bytes([16 + 24 * index, 128]) * (width * height) for index in range(COUNT)]


@functools.lru_cache(maxsize=32)
def scene(width: int, height: int, is_jpeg: bool, light: float) -> bytes:
    """Dark at the left, bright at the right; in the middle, what a good exposure makes of both together."""
    # What a sensor counts goes in a straight line with the light, and what a picture shows does not.
    shares = [0.02] * 3 + [0.22] * 2 + [1.2] * 3
    levels = [round(255 * min(1.0, share * light) ** (1 / 2.2)) for share in shares]
    columns = bytes(levels[x * len(levels) // width] for x in range(width))
    if is_jpeg:
        return without_tables(encoded(Image.frombytes("L", (width, 1), columns).resize((width, height)).convert("RGB")))
    line = bytes(byte for level in columns for byte in (16 + level * 219 // 255, 128))
    return line * height


def picture(width: int, height: int, index: int) -> Image.Image:
    image = Image.linear_gradient("L").resize((width, height)).convert("RGB")
    left = width * index // COUNT
    ImageDraw.Draw(image).rectangle([left, height // 4, left + width // COUNT, height * 3 // 4], fill=(230, 120, 20))
    return image


def encoded(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    # 4:2:2, as cameras have it, and the standard's tables.
    image.save(buffer, "JPEG", quality=60, subsampling=1)
    return buffer.getvalue()


def without_tables(jpeg: bytes) -> bytes:
    kept, place = jpeg[:2], 2
    while jpeg[place + 1] != 0xDA:
        end = place + 2 + int.from_bytes(jpeg[place + 2 : place + 4], "big")
        if jpeg[place + 1] != 0xC4:
            kept += jpeg[place:end]
        place = end
    return kept + jpeg[place:]
