# SPDX-License-Identifier: Apache-2.0
"""What a source states about its pictures: colours, the shape of their pixels, their rate (SPEC.md, section 9.3)."""

from __future__ import annotations

import math
import struct
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Iterable, Mapping

# The words for numbers of ITU-T H.273, as ffprobe prints them.
_PRIMARIES = {
    1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "film", 9: "bt2020", 10: "smpte428",
    11: "smpte431", 12: "smpte432", 22: "ebu3213",
}  # fmt: skip
_TRANSFER_FUNCTIONS = {
    1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "linear", 9: "log100", 10: "log316",
    11: "iec61966-2-4", 12: "bt1361e", 13: "iec61966-2-1", 14: "bt2020-10", 15: "bt2020-12", 16: "smpte2084",
    17: "smpte428", 18: "arib-std-b67",
}  # fmt: skip
_MATRICES = {
    0: "gbr", 1: "bt709", 4: "fcc", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "ycgco", 9: "bt2020nc",
    10: "bt2020c", 14: "ictcp",
}  # fmt: skip
_CHROMA_LOCATIONS = {1: "left", 2: "center", 3: "topleft", 4: "top", 5: "bottomleft", 6: "bottom"}
_ALIGNMENTS = {1: "low", 2: "high"}


@dataclass(frozen=True, slots=True)
class Aperture:
    """The part of a picture that is meant to be seen, in its pixels."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class FormatExtensions:
    """What a source states about its pictures beside their format, size and orientation. None: it does not say."""

    #: `bt709`, `bt2020`, …: the names of ffprobe.
    colorPrimaries: str | None = None
    transferFunction: str | None = None
    #: `smpte170m` is BT.601; `gbr`: the pixels are red, green and blue.
    yCbCrMatrix: str | None = None
    #: `video` (black is 16, white 235) or `full` (0 and 255).
    colorRange: str | None = None
    chromaLocation: str | None = None
    bitsPerComponent: int | None = None
    #: Where the bits of a sample are in a longer word: `low` or `high`.
    alignment: str | None = None
    #: A pixel's width over its height.
    pixelAspectRatio: Fraction = Fraction(1)
    #: None: all of the picture.
    cleanAperture: Aperture | None = None
    #: Seconds from one frame to the next.
    frameDuration: Fraction | None = None
    #: Of depth: how many metres one step is.
    metersPerStep: float | None = None

    def members(self) -> dict[str, Any]:
        """As they stand in a frame's header; what is not said is absent."""
        members = {name: value for name, value in asdict(self).items() if value is not None}
        for name, separator in (("pixelAspectRatio", ":"), ("frameDuration", "/")):
            ratio = members.pop(name, None)
            if ratio is not None and (name, ratio) != ("pixelAspectRatio", 1):
                members[name] = f"{ratio.numerator}{separator}{ratio.denominator}"
        return members

    @staticmethod
    def parse(header: Mapping[str, Any]) -> FormatExtensions:
        """Reads the members of a frame's header. What makes no sense counts as not said."""

        def word(name: str, known: Iterable[str]) -> str | None:
            value = header.get(name)
            return value if isinstance(value, str) and value in known else None

        def number(name: str) -> float | None:
            value = header.get(name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return value if is_number and value > 0 and math.isfinite(value) else None

        bits, area = number("bitsPerComponent"), header.get("cleanAperture")
        try:
            aperture = Aperture(area["x"], area["y"], area["width"], area["height"]) if area else None
        except (KeyError, TypeError):
            aperture = None
        return FormatExtensions(
            word("colorPrimaries", _PRIMARIES.values()),
            word("transferFunction", _TRANSFER_FUNCTIONS.values()),
            word("yCbCrMatrix", _MATRICES.values()),
            word("colorRange", ("video", "full")),
            word("chromaLocation", _CHROMA_LOCATIONS.values()),
            None if bits is None else int(bits),
            word("alignment", _ALIGNMENTS.values()),
            _ratio(header.get("pixelAspectRatio"), ":") or Fraction(1),
            aperture,
            _ratio(header.get("frameDuration"), "/"),
            number("metersPerStep"),
        )


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """What a camera states about the pictures that it delivers."""

    pixelFormat: str = ""
    width: int = 0
    height: int = 0
    #: By how many degrees clockwise they have to be turned to be upright.
    orientation: int = 0
    #: Left and right are exchanged.
    mirrored: bool = False
    #: Colours, shape of the pixels, rate.
    extensions: FormatExtensions = FormatExtensions()

    @staticmethod
    def parse(members: Mapping[str, Any]) -> FormatDescription:
        """Reads the `formatDescription` of a device's or session's state. What makes no sense counts as not said."""

        def number(name: str) -> int:
            value = members.get(name)
            return value if isinstance(value, int) and not isinstance(value, bool) else 0

        return FormatDescription(
            str(members.get("pixelFormat", "")),
            number("width"),
            number("height"),
            number("orientation"),
            members.get("mirrored") is True,
            FormatExtensions.parse(members),
        )


def _ratio(text: Any, separator: str) -> Fraction | None:
    try:
        above, below = (int(part) for part in text.split(separator))
        return Fraction(above, below) if above > 0 and below > 0 else None
    except (AttributeError, ValueError):
        return None


def head_members(head: bytes) -> dict[str, Any]:
    """What a ring's head says of its pictures, as members of a frame's header. What has no meaning here is left out."""
    codes = head[356:364]
    pixel_width, pixel_height, x, y, width, height, above, below = struct.unpack_from("<8I", head, 364)
    (meters,) = struct.unpack_from("<d", head, 400)
    ratio = Fraction(pixel_width, pixel_height) if pixel_width and pixel_height else Fraction(1)
    duration = Fraction(above, below) if above and below else None
    members = {
        "orientation": (codes[7] & 3) * 90,
        "mirrored": bool(codes[7] & 4),
        "colorPrimaries": _PRIMARIES.get(codes[0]),
        "transferFunction": _TRANSFER_FUNCTIONS.get(codes[1]),
        "yCbCrMatrix": _MATRICES.get(codes[2]),
        "colorRange": "full" if codes[3] == 1 else "video",
        "chromaLocation": _CHROMA_LOCATIONS.get(codes[4]),
        "bitsPerComponent": codes[5] if 1 <= codes[5] <= 64 else None,
        "alignment": _ALIGNMENTS.get(codes[6]),
        "pixelAspectRatio": None if ratio == 1 else f"{ratio.numerator}:{ratio.denominator}",
        "cleanAperture": {"x": x, "y": y, "width": width, "height": height} if width and height else None,
        "frameDuration": f"{duration.numerator}/{duration.denominator}" if duration else None,
        "metersPerStep": meters if math.isfinite(meters) and meters > 0 else None,
    }
    return {name: value for name, value in members.items() if value is not None}
