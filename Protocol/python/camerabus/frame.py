# SPDX-License-Identifier: Apache-2.0
"""A picture as it comes over the bus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping

from .errors import CaptureError, ProtocolError, VersionUnsupported
from .formats import FormatExtensions
from .values import Plane, Timestamp

_INTERLEAVED = {"BGR3": 3, "RGB3": 3, "YUYV": 2, "UYVY": 2}
_COUNTS = ("sequence", "captureSequence", "generation", "width", "height", "orientation", "dropped")
_WORDS = ("device", "rendition", "stream", "format")
#: One byte for each pixel.
SINGLE = {"GREY", "BA81", "GBRG", "GRBG", "RGGB"}
#: One sample of up to 16 bits for each pixel, in the low bits of a word: grey, depth, Bayer.
DOUBLE = {
    "Y10", "Y12", "Y14", "Y16", "Z16", "BG10", "GB10", "BA10", "RG10", "BG12", "GB12", "BA12", "RG12", "BG14", "GB14",
    "GR14", "RG14", "BYR2", "GB16", "GR16", "RG16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: `header` as it was sent, `payload` its pixels without a copy.

    `lost` counts the frames of this topic and stream that this subscriber missed since the frame it got before; it is 0
    for the first of each stream (Protocol/spec/frames.md).
    """

    topic: str
    header: Mapping[str, Any]
    payload: memoryview
    lost: int = 0

    def __repr__(self) -> str:
        if (error := self.error) is not None:
            return f"<{type(self).__name__} {self.device} {self.rendition}: none, {error.reason}: {error}>"
        what = f"{self.sequence}, {self.width}x{self.height} {self.format}, {len(self.payload)} bytes"
        return (
            f"<{type(self).__name__} {self.device} {self.rendition} "
            f"{what}{f', {self.lost} lost before it' if self.lost else ''}>"
        )

    @staticmethod
    def parse(topic: bytes, header: bytes, payload: memoryview, lost: int = 0) -> Frame:
        """Reads a message of a `frame/` topic. An error header makes a frame whose `error` is set and whose payload is
        empty.
        """
        try:
            members = json.loads(header)
        except ValueError:
            raise ProtocolError("The header of a frame is not valid JSON.") from None
        version = members.get("v") if isinstance(members, dict) else None
        if version != 1:
            raise VersionUnsupported(f"The header of a frame has version {version!r}, not 1.", {"supported": [1]})
        frame = Frame(topic.decode(errors="replace"), members, payload, lost)
        if "error" not in members:
            _check(members, len(payload))
        return frame

    def is_intact(self) -> bool:
        """Whether all that was read from `payload` so far is good. It always is, but for frames in shared memory
        (`RingFrame`).
        """
        return True

    def copy(self) -> Frame | None:
        """The frame with pixels of its own; None for one in shared memory that was overwritten meanwhile."""
        payload = memoryview(bytes(self.payload))
        return Frame(self.topic, self.header, payload, self.lost) if self.is_intact() else None

    @property
    def error(self) -> CaptureError | None:
        """Why there is no picture; None if there is one."""
        return CaptureError.from_header(self.header["error"]) if "error" in self.header else None

    @property
    def device(self) -> str:
        return str(self.header.get("device", ""))

    @property
    def rendition(self) -> str:
        return str(self.header.get("rendition", ""))

    @property
    def stream(self) -> str:
        """A random id, new with each start of the stream: `sequence` and `captureSequence` count within it."""
        return str(self.header.get("stream", ""))

    @property
    def sequence(self) -> int:
        return int(self.header.get("sequence", 0))

    @property
    def captureSequence(self) -> int:
        return int(self.header.get("captureSequence", 0))

    @property
    def generation(self) -> int:
        """That of the device's last committed configuration."""
        return int(self.header.get("generation", 0))

    @property
    def timestamp(self) -> Timestamp:
        time = self.header.get("timestamp") or {}
        return Timestamp(int(time.get("monotonic", 0)), int(time.get("realtime", 0)), str(time.get("source", "")))

    @property
    def presentation(self) -> int:
        """When the picture is shown (`presentationTimeStamp`), in nanoseconds on the clock of `timestamp.monotonic`,
        which differs only for H.264 whose pictures come in the order in which they are decoded.
        """
        time = self.header.get("timestamp") or {}
        return int(time.get("presentation", time.get("monotonic", 0)))

    @property
    def format(self) -> str:
        """The pixels' four-character code as V4L2 spells it: `MJPG`, `BGR3`, `YUYV`, …"""
        return str(self.header.get("format", ""))

    @property
    def width(self) -> int:
        return int(self.header.get("width", 0))

    @property
    def height(self) -> int:
        return int(self.header.get("height", 0))

    @property
    def planes(self) -> tuple[Plane, ...]:
        return tuple(Plane(plane["offset"], plane["stride"], plane["bytes"]) for plane in self.header.get("planes", ()))

    @property
    def orientation(self) -> int:
        """Degrees clockwise that the picture has to be turned to be upright. If it is `mirrored`, left and right have
        to be exchanged after that.
        """
        return int(self.header.get("orientation", 0))

    @property
    def mirrored(self) -> bool:
        return bool(self.header.get("mirrored", False))

    @property
    def extensions(self) -> FormatExtensions:
        """What the source states about its pictures: their colours, the shape of their pixels, their rate."""
        return FormatExtensions.parse(self.header)

    @property
    def keyframe(self) -> bool | None:
        """Whether it builds on no frame before it; None where each frame stands for itself."""
        keyframe = self.header.get("keyframe")
        return keyframe if isinstance(keyframe, bool) else None

    @property
    def zoom(self) -> float:
        """How many times the middle of the device's picture is enlarged here, where the bus zooms; 1: it is the whole
        picture.
        """
        zoom = self.header.get("zoom")
        return max(1.0, float(zoom)) if isinstance(zoom, (int, float)) and not isinstance(zoom, bool) else 1.0

    @property
    def dropped(self) -> int:
        """Frames that the publisher left out of this rendition so far."""
        return int(self.header.get("dropped", 0))

    def plane(self, index: int) -> memoryview:
        """The bytes of one plane, without a copy."""
        offset, _, size = self.planes[index]
        return self.payload[offset : offset + size]

    def array(self) -> Any:
        """The picture as a NumPy array, without a copy.

        (height, width, 3) for BGR and RGB, of `uint16` for `rgb48`; (height, width, 2) for YUYV and UYVY; (height,
        width) for grey, depth and Bayer, of `uint16` if a sample has more than 8 bits; (height × 3/2, width) for NV12
        and I420, as OpenCV takes them; one dimension of bytes for all else (JPEG).
        """
        try:
            import numpy
        except ImportError:
            message = "Frame.array() needs NumPy (apt install python3-numpy); Frame.payload needs no NumPy."
            raise ImportError(message) from None
        planes, width, height = self.planes, self.width, self.height
        if not planes:
            raise ValueError("This frame has no picture.")
        offset, stride, _ = planes[0]
        shape: tuple[int, ...]
        strides: tuple[int, ...]
        if self.format == "RGB6":
            return numpy.ndarray((height, width, 3), "<u2", self.payload, offset, (stride, 6, 2))
        if self.format in _INTERLEAVED:
            depth = _INTERLEAVED[self.format]
            shape, strides = (height, width, depth), (stride, depth, 1)
        elif self.format in SINGLE:
            shape, strides = (height, width), (stride, 1)
        elif self.format in DOUBLE or self.format == "Y16 -BE":
            order = ">" if self.format.endswith("-BE") else "<"
            return numpy.ndarray((height, width), f"{order}u2", self.payload, offset, (stride, 2))
        elif self.format in ("NV12", "420f", "YU12"):
            if not _is_one_block(self.format, planes, width, height):
                raise ValueError(
                    f"The planes of this {self.format} picture are not contiguous; use plane(0), plane(1), …"
                )
            shape, strides = (height * 3 // 2, width), (stride, 1)
        else:
            return numpy.frombuffer(self.plane(0), numpy.uint8)
        return numpy.ndarray(shape, numpy.uint8, self.payload, offset, strides)


def _is_one_block(format: str, planes: tuple[Plane, ...], width: int, height: int) -> bool:
    if width % 2 or height % 2 or len(planes) != (3 if format == "YU12" else 2):
        return False
    joined = all(after.offset == before.offset + before.bytes for before, after in zip(planes, planes[1:]))
    if format != "YU12":
        return joined and planes[0].stride == planes[1].stride and planes[0].bytes == planes[0].stride * height
    return joined and [plane.stride for plane in planes] == [width, width // 2, width // 2]


def _check(header: Mapping[str, Any], payload: int) -> None:
    # A number that isn't there or doesn't fit would only show later, as something stranger.
    for name in _COUNTS:
        if not _is_count(header.get(name)):
            raise ProtocolError(f"The header of a frame has no usable '{name}'.")
    for name in _WORDS:
        if not isinstance(header.get(name), str):
            raise ProtocolError(f"The header of a frame has no usable '{name}'.")
    time, planes = header.get("timestamp"), header.get("planes")
    if not isinstance(time, dict) or not isinstance(time.get("source"), str):
        raise ProtocolError("The header of a frame has no usable 'timestamp'.")
    if not all(isinstance(time.get(clock), int) for clock in ("monotonic", "realtime")):
        raise ProtocolError("The header of a frame has no usable 'timestamp'.")
    if not isinstance(header.get("mirrored"), bool) or not isinstance(planes, list):
        raise ProtocolError("The header of a frame has no usable 'mirrored' or 'planes'.")
    if "buffer" in header and not payload:
        buffer = header["buffer"]
        if not isinstance(buffer, dict) or not isinstance(buffer.get("ring"), str):
            raise ProtocolError("A frame has an invalid place in shared memory.")
        if not all(_is_count(buffer.get(name)) for name in ("slot", "offset", "bytes", "stamp")):
            raise ProtocolError("A frame has an invalid place in shared memory.")
        payload = buffer["bytes"]
    for plane in planes:
        if not isinstance(plane, dict) or not all(_is_count(plane.get(name)) for name in ("offset", "stride", "bytes")):
            raise ProtocolError("A frame has an invalid plane.")
        if plane["offset"] + plane["bytes"] > payload:
            raise ProtocolError("A plane of a frame is longer than its payload.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
