# SPDX-License-Identifier: Apache-2.0
"""Sound as it comes over the bus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Mapping

from .errors import CaptureError, ProtocolError, VersionUnsupported
from .values import Timestamp

#: Bytes of a sample.
SAMPLE_BYTES = {"s16": 2, "s24": 3, "s24in32": 4, "s32": 4, "f32": 4}
_COUNTS = ("sequence", "firstFrame", "frames", "rate", "channels", "overruns", "generation")
_WORDS = ("device", "rendition", "stream", "sampleFormat")


@dataclass(frozen=True, slots=True)
class Sound:
    """A piece of sound: `header` as it was sent, `payload` its samples, interleaved, without a copy.

    A *frame* is one sample of each channel. `lost` counts the frames that are missing before it, whether the microphone
    lost them or this subscriber did; it is 0 for the first of each stream.
    """

    topic: str
    header: Mapping[str, Any]
    payload: memoryview
    lost: int = 0

    def __repr__(self) -> str:
        what = f"{self.firstFrame}, {self.frames} frames {self.sampleFormat} {self.rate} Hz x{self.channels}"
        return f"<{type(self).__name__} {self.device} {what}{f', {self.lost} lost before it' if self.lost else ''}>"

    @staticmethod
    def parse(topic: bytes, header: bytes, payload: memoryview, lost: int = 0) -> Sound:
        """Reads a message of an `audio/` topic. Raises what stands in it in place of sound."""
        members = sound_members(header, "Sound")
        for name in _COUNTS:
            if not is_count(members.get(name)):
                raise ProtocolError(f"The header of a sound message has no usable '{name}'.")
        for name in _WORDS:
            if not isinstance(members.get(name), str):
                raise ProtocolError(f"The header of a sound message has no usable '{name}'.")
        clock = members.get("timestamp")
        if not isinstance(clock, dict) or not isinstance(clock.get("source"), str):
            raise ProtocolError("The header of a sound message has no usable 'timestamp'.")
        if not all(isinstance(clock.get(name), int) for name in ("monotonic", "realtime")):
            raise ProtocolError("The header of a sound message has no usable 'timestamp'.")
        if members["rate"] < 1 or members["channels"] < 1:
            raise ProtocolError("The header of a sound message has no usable 'rate' or 'channels'.")
        size = SAMPLE_BYTES.get(members["sampleFormat"])
        if size is not None and len(payload) != size * members["channels"] * members["frames"]:
            raise ProtocolError("A sound message has another length than its header says.")
        return Sound(topic.decode(errors="replace"), members, payload, lost)

    @property
    def device(self) -> str:
        return str(self.header["device"])

    @property
    def rendition(self) -> str:
        return str(self.header["rendition"])

    @property
    def stream(self) -> str:
        """A random id, new with each start of the stream: `sequence` and `firstFrame` count within it."""
        return str(self.header["stream"])

    @property
    def sequence(self) -> int:
        return int(self.header["sequence"])

    @property
    def firstFrame(self) -> int:
        """The number of its first frame within `stream`."""
        return int(self.header["firstFrame"])

    @property
    def frames(self) -> int:
        return int(self.header["frames"])

    @property
    def sampleFormat(self) -> str:
        """`s16`, `s24`, `s24in32`, `s32` or `f32`: little-endian."""
        return str(self.header["sampleFormat"])

    @property
    def rate(self) -> int:
        """Frames a second."""
        return int(self.header["rate"])

    @property
    def channels(self) -> int:
        return int(self.header["channels"])

    @property
    def overruns(self) -> int:
        """How often the microphone lost sound so far, as it was not fetched in time."""
        return int(self.header["overruns"])

    @property
    def generation(self) -> int:
        """That of the device's last committed configuration."""
        return int(self.header["generation"])

    @property
    def timestamp(self) -> Timestamp:
        """When its first frame was taken."""
        clock = self.header["timestamp"]
        return Timestamp(int(clock["monotonic"]), int(clock["realtime"]), str(clock["source"]))

    def array(self) -> Any:
        """The samples as a NumPy array of (frames, channels): int16, int32 or float32, without a copy, but for those of
        24 bits, which become int32.
        """
        try:
            import numpy
        except ImportError:
            message = "Sound.array() needs NumPy (apt install python3-numpy); Sound.payload needs no NumPy."
            raise ImportError(message) from None
        shape = (self.frames, self.channels)
        if self.sampleFormat in ("s16", "s32", "f32"):
            kind = {"s16": "<i2", "s32": "<i4", "f32": "<f4"}[self.sampleFormat]
            return numpy.frombuffer(self.payload, numpy.dtype(kind)).reshape(shape)
        if self.sampleFormat == "s24in32":
            return (numpy.frombuffer(self.payload, numpy.dtype("<i4")) << 8 >> 8).reshape(shape)
        if self.sampleFormat == "s24":
            bytes_ = numpy.frombuffer(self.payload, numpy.uint8).reshape(-1, 3).astype(numpy.int32)
            return ((bytes_[:, 0] | bytes_[:, 1] << 8 | bytes_[:, 2] << 16) << 8 >> 8).reshape(shape)
        raise ValueError(f"Samples of the format {self.sampleFormat} are not known here.")


def sound_members(header: bytes, what: str) -> Mapping[str, Any]:
    """A header's members. Raises what stands in it in place of sound."""
    try:
        members = json.loads(header)
    except ValueError:
        raise ProtocolError(f"{what} came with a header that is no JSON.") from None
    version = members.get("v") if isinstance(members, dict) else None
    if version != 1:
        raise VersionUnsupported(f"{what} came with a header of version {version!r}, not 1.", {"supported": [1]})
    if "error" in members:
        raise CaptureError.from_header(members["error"])
    return members


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
