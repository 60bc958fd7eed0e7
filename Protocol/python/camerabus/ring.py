# SPDX-License-Identifier: Apache-2.0
"""Frames and sound in shared memory: a ring as Protocol/RING.md describes it."""

from __future__ import annotations

import fcntl
import mmap
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import CaptureError, ProtocolError
from .formats import head_members
from .frame import Frame
from .futex import WaitWord
from .piece import Sound

HEAD_BYTES = 512
SECOND = 1_000_000_000
Order = Literal["newest", "next"]

_MAGIC = b"CAMBRING"
_COUNT, _NEWEST, _CLOSED = 448 // 4, 452 // 4, 456 // 4
_SOURCES = ("startOfExposure", "endOfFrame", "dequeue")
_SOUND_SOURCES = {0: "status", 2: "read"}
_GET_SEALS, _SEAL_SHRINK = getattr(fcntl, "F_GET_SEALS", 1034), getattr(fcntl, "F_SEAL_SHRINK", 2)


class RingFlaw(ProtocolError):
    """Memory that holds no ring that this library reads; `flaw` is one of the words of RING.md."""

    def __init__(self, flaw: str) -> None:
        super().__init__(f"The shared memory contains no ring that this program can read: {flaw}.")
        self.flaw = flaw


class RingClosed(CaptureError):
    """No frame is left in the ring, and none will come."""


@dataclass(frozen=True, slots=True)
class RingSoundFormat:
    """What periods of sound are made of: `frameBytes` is what one sample of each channel takes."""

    sampleFormat: str
    rate: int
    channels: int
    frameBytes: int


@dataclass(frozen=True, slots=True)
class RingPlan:
    """What a ring says of itself, and what all its frames share."""

    ring: str
    stream: str
    device: str
    rendition: str
    format: int
    width: int
    height: int
    planes: tuple[tuple[int, int, int], ...]
    slots: int
    keep: int
    recordBytes: int
    table: int
    pixels: int
    slotBytes: int
    size: int
    #: None: its frames are pictures.
    sound: RingSoundFormat | None = None
    #: What the source states of its pictures: members of a frame's header.
    description: dict[str, Any] = field(default_factory=dict, hash=False)

    @staticmethod
    def parse(head: bytes, memory_bytes: int) -> RingPlan:
        """Reads a head, and believes nothing unchecked. Raises RingFlaw."""
        if len(head) < HEAD_BYTES or memory_bytes < HEAD_BYTES:
            raise RingFlaw("tooShort")

        def u32(offset: int) -> int:
            return int.from_bytes(head[offset : offset + 4], "little")

        def u64(offset: int, flaw: str) -> int:
            value = int.from_bytes(head[offset : offset + 8], "little")
            _need(value < 1 << 63, flaw)
            return value

        def text(offset: int, room: int) -> str:
            value, _, rest = head[offset : offset + room].partition(b"\0")
            _need(not rest.strip(b"\0"), "text")
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise RingFlaw("text") from None

        _need(head[:8] == _MAGIC, "magic")
        _need(u32(8) == 2, "version")
        _need(u32(352) <= 1, "kind")
        _need(1 <= u32(252) <= 8, "planes")
        plan = RingPlan(
            ring=text(48, 16),
            stream=text(64, 16),
            device=text(80, 32),
            rendition=text(112, 128),
            format=u32(240),
            width=u32(244),
            height=u32(248),
            planes=tuple((u32(at), u32(at + 4), u32(at + 8)) for at in range(256, 256 + 12 * u32(252), 12)),
            slots=u32(12),
            keep=u32(16),
            recordBytes=u32(20),
            table=u32(24),
            pixels=u32(28),
            slotBytes=u64(32, "slotBytes"),
            size=u64(40, "size"),
            sound=RingSoundFormat(text(368, 16), u32(356), u32(360), u32(364)) if u32(352) else None,
            description={} if u32(352) else head_members(head),
        )
        plan._check(memory_bytes)
        return plan

    def _check(self, memory_bytes: int) -> None:
        _need(2 <= self.slots <= 256, "slots")
        _need(1 <= self.keep < self.slots, "keep")
        _need(64 <= self.recordBytes <= 4096 and self.recordBytes % 64 == 0, "recordBytes")
        _need(HEAD_BYTES <= self.table <= 1 << 20 and self.table % 64 == 0, "tableOffset")
        _need(self.pixels % 4096 == 0 and self.pixels >= self.table + self.slots * self.recordBytes, "pixelsOffset")
        _need(0 < self.slotBytes < 1 << 32 and self.slotBytes % 4096 == 0, "slotBytes")
        _need(self.size == self.pixels + self.slots * self.slotBytes, "size")
        _need(len(self.ring.encode()) == 16 and bool(self.stream and self.device and self.rendition), "text")
        if self.sound is None:
            _need(1 <= self.width <= 65536 and 1 <= self.height <= 65536, "dimensions")
        else:
            numbers = (self.sound.rate, self.sound.channels, self.sound.frameBytes)
            _need(bool(self.sound.sampleFormat) and all(1 <= number < 1 << 31 for number in numbers), "sound")
            _need(not self.format and not self.width and not self.height, "sound")
            _need(all(stride == 0 for _, stride, _ in self.planes), "sound")
        _need(all(offset + size <= self.slotBytes for offset, _, size in self.planes), "planes")
        _need(len(self.planes) == 1 or all(stride for _, stride, _ in self.planes), "planes")
        _need(self.size <= memory_bytes, "size")

    @property
    def isCompressed(self) -> bool:
        return self.planes[0][1] == 0

    @property
    def formatName(self) -> str:
        """The four-character code as V4L2 spells it, without blanks at the end."""
        code = (self.format & 0x7FFFFFFF).to_bytes(4, "little").decode("latin-1")
        return (code + ("-BE" if self.format >> 31 else "")).rstrip(" ")


def _need(condition: bool, flaw: str) -> None:
    if not condition:
        raise RingFlaw(flaw)


@dataclass(frozen=True, slots=True, repr=False)
class RingFrame(Frame):
    """A frame whose `payload` lies in the ring, where the device overwrites it after some frames more.

    Use it, then ask `is_intact()`: if that is False, throw away what was made of it. `copy()` is safe to keep.
    """

    slot: int = 0
    number: int = 0
    reader: RingReader | None = field(default=None, repr=False, compare=False)

    def is_intact(self) -> bool:
        """Whether all that was read from it so far is good. A frame that isn't counts as late."""
        return self.reader is not None and self.reader._is_intact(self.slot, self.number * 2)


@dataclass(frozen=True, slots=True, repr=False)
class RingSound(Sound):
    """A piece of sound whose `payload` lies in the ring, where the microphone overwrites it some seconds later.

    Use it, then ask `is_intact()`, as for `RingFrame`; `copy()` is safe to keep.
    """

    slot: int = 0
    number: int = 0
    #: Pieces that this reader left out before it.
    skipped: int = 0
    reader: RingReader | None = field(default=None, repr=False, compare=False)

    def is_intact(self) -> bool:
        """Whether all that was read from it so far is good. A piece that isn't counts as late."""
        return self.reader is not None and self.reader._is_intact(self.slot, self.number * 2)

    def copy(self) -> Sound | None:
        """The same with samples of its own; None if it was overwritten meanwhile."""
        payload = memoryview(bytes(self.payload))
        return Sound(self.topic, self.header, payload, self.lost) if self.is_intact() else None


class RingReader:
    """Reads one ring. Used by one thread at a time; whatever the memory holds, it never reads outside of it."""

    def __init__(self, memory: Any, wait_word: WaitWord | None = None) -> None:
        """`memory`: anything with a buffer, of which the ring is the beginning."""
        if sys.byteorder != "little":
            raise NotImplementedError("Rings can be read only on little-endian machines.")
        view = memoryview(memory).cast("B").toreadonly()
        self.plan = plan = RingPlan.parse(bytes(view[:HEAD_BYTES]), len(view))
        self._view = view
        self._words = view[: plan.pixels].cast("I")
        self._longs = view[: plan.pixels].cast("Q")
        self._records = tuple((plan.table + slot * plan.recordBytes) // 8 for slot in range(plan.slots))
        self._least = 1 if plan.isCompressed else max(offset + size for offset, _, size in plan.planes)
        if plan.sound is not None:
            self._least = plan.sound.frameBytes
        self._wait_word = wait_word
        self._topic = f"{'audio' if plan.sound else 'buffer'}/{plan.device}/{plan.rendition}/"
        self._planes = [{"offset": offset, "stride": stride, "bytes": size} for offset, stride, size in plan.planes]
        self._last = self._last_late = 0
        #: Frames that were taken, left out between them, overwritten while they were used, and that made no sense.
        self.frames = self.skipped = self.late = self.unusable = 0

    @classmethod
    def attach(cls, descriptor: int) -> RingReader:
        """Maps the ring behind a descriptor, which the caller closes."""
        try:
            seals = fcntl.fcntl(descriptor, _GET_SEALS)
        except OSError:
            seals = 0
        if not seals & _SEAL_SHRINK:
            message = "The shared memory is not sealed. If it were truncated, reading it would end this process."
            raise ProtocolError(message)
        size = os.fstat(descriptor).st_size
        if size < HEAD_BYTES:
            raise RingFlaw("tooShort")
        memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ)
        return cls(memory, WaitWord.make(descriptor, HEAD_BYTES, _COUNT))

    @property
    def closed(self) -> int:
        """0, or why no more frames come: 1 another ring takes its place, 2 nothing streams any more. Of a permission
        that was taken back the connection tells.
        """
        return self._words[_CLOSED]

    def poll(self, order: Order = "newest") -> RingFrame | RingSound | None:
        """A frame that is newer than the last one, if there is one now: the newest, or the next that is left."""
        for _ in range(4):
            slot = self._find(order)
            if slot is None:
                return None
            at = self._records[slot]
            stamp = self._longs[at]
            _fence()
            number = stamp >> 1
            if stamp & 1 or number <= self._last:
                continue
            record = self._longs[at : at + 8].tolist()
            _fence()
            if self._longs[at] != stamp:
                continue
            skipped = number - self._last - 1 if self._last else 0
            self._last = number
            size, flags = record[7] & 0xFFFFFFFF, record[7] >> 32
            if not self._is_usable(size, flags & 3):
                self.unusable += 1
                continue
            self.frames += 1
            self.skipped += skipped
            make = self._frame if self.plan.sound is None else self._sound
            return make(slot, number, skipped, record, size, flags)
        return None

    def _is_usable(self, size: int, source: int) -> bool:
        if not self._least <= size <= self.plan.slotBytes:
            return False
        return source < 3 if self.plan.sound is None else source in _SOUND_SOURCES and size % self._least == 0

    def wait(self, timeout: float, order: Order = "newest") -> RingFrame | RingSound | None:
        """Waits for a frame, at most so many seconds; None: none came. Raises RingClosed when none will come."""
        until = time.monotonic_ns() + int(timeout * SECOND)
        while True:
            count, closed = self._words[_COUNT], self.closed
            _fence()
            if (frame := self.poll(order)) is not None:
                return frame
            if closed:
                raise RingClosed("The ring was closed.")
            if time.monotonic_ns() >= until:
                return None
            if self._wait_word is None:
                message = "Python has no access to futexes on this machine. Wait for buffer/ messages instead."
                raise NotImplementedError(message)
            self._wait_word.wait(count, until)

    def find(self, frame: Frame, slot: int, offset: int, size: int, stamp: int) -> RingFrame | None:
        """The frame that a message names; None: it was overwritten already, and counts as late. Raises
        ProtocolError.
        """
        plan = self.plan
        if (
            not slot < plan.slots
            or offset != plan.pixels + slot * plan.slotBytes
            or not self._least <= size <= plan.slotBytes
        ):
            raise ProtocolError("A message names an invalid place in its ring.")
        if stamp & 1 or not self._is_intact(slot, stamp):
            return None
        self.frames += 1
        return RingFrame(
            frame.topic, frame.header, self._view[offset : offset + size], frame.lost, slot, stamp >> 1, self
        )

    def _find(self, order: Order) -> int | None:
        newest = self._words[_NEWEST]
        if newest >= self.plan.slots:
            return None
        _fence()
        wants_newest = order == "newest" or not self._last
        stamp = self._longs[self._records[newest]]
        if not stamp & 1 and stamp >> 1 > self._last and (wants_newest or stamp >> 1 == self._last + 1):
            return newest
        stamps = ((self._longs[at], slot) for slot, at in enumerate(self._records))
        numbers = [(stamp >> 1, slot) for stamp, slot in stamps if not stamp & 1 and stamp >> 1 > self._last]
        return (max if wants_newest else min)(numbers)[1] if numbers else None

    def _frame(self, slot: int, number: int, skipped: int, record: list[int], size: int, flags: int) -> RingFrame:
        plan = self.plan
        header: dict[str, Any] = {
            "v": 1,
            "device": plan.device,
            "rendition": plan.rendition,
            "stream": plan.stream,
            "format": plan.formatName,
            "width": plan.width,
            "height": plan.height,
            "planes": [{"offset": 0, "stride": 0, "bytes": size}] if plan.isCompressed else self._planes,
            **plan.description,
            "sequence": record[1],
            "captureSequence": record[2],
            "generation": record[5],
            "timestamp": {
                "monotonic": _signed(record[3]), "realtime": _signed(record[4]), "source": _SOURCES[flags & 3],
            },
            "dropped": record[6],
        }
        if flags & 32:
            header["keyframe"] = bool(flags & 64)
            if flags >> 8:
                header["timestamp"]["presentation"] = _signed(record[3]) + (flags >> 8) * 1000
        elif (zoom := flags >> 8 & 0x1FFFF) > 1000:
            header["zoom"] = zoom / 1000
        start = plan.pixels + slot * plan.slotBytes
        return RingFrame(self._topic, header, self._view[start : start + size], skipped, slot, number, self)

    def _sound(self, slot: int, number: int, skipped: int, record: list[int], size: int, flags: int) -> RingSound:
        plan = self.plan
        assert plan.sound is not None
        header: dict[str, Any] = {
            "v": 1,
            "device": plan.device,
            "rendition": plan.rendition,
            "stream": plan.stream,
            "sampleFormat": plan.sound.sampleFormat,
            "rate": plan.sound.rate,
            "channels": plan.sound.channels,
            "sequence": record[1],
            "firstFrame": record[2],
            "frames": size // plan.sound.frameBytes,
            "overruns": record[6],
            "generation": record[5],
            "timestamp": {
                "monotonic": _signed(record[3]), "realtime": _signed(record[4]), "source": _SOUND_SOURCES[flags & 3]
            },
        }  # fmt: skip
        start = plan.pixels + slot * plan.slotBytes
        return RingSound(self._topic, header, self._view[start : start + size], 0, slot, number, skipped, self)

    def _is_intact(self, slot: int, stamp: int) -> bool:
        _fence()
        if self._longs[self._records[slot]] == stamp:
            return True
        if stamp != self._last_late:
            self._last_late = stamp
            self.late += 1
        return False


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


if platform.machine() in ("x86_64", "AMD64", "i686"):

    def _fence() -> None:
        """Loads are not moved before other loads on these machines."""

else:
    _lock = threading.Lock()

    def _fence() -> None:
        # Taking a lock and giving it back orders what lies before and behind.
        with _lock:
            pass
