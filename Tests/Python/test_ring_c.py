"""Protocol/c/camerabus_ring.h, held against the ring vectors: compiled here, and called through ctypes."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import tempfile
import unittest
from typing import Any

import vectors
from camerabus import formats

_SOURCE = """
#include "camerabus_ring.h"
int parse(struct camerabus_ring_plan *plan, const unsigned char *head, uint64_t count, uint64_t memory) {
    return camerabus_ring_parse(plan, head, count, memory);
}
int open_ring(struct camerabus_ring *ring, const void *memory, uint64_t bytes) {
    return camerabus_ring_open(ring, memory, bytes);
}
int poll_ring(struct camerabus_ring *ring, int order, struct camerabus_ring_frame *frame) {
    return camerabus_ring_poll(ring, (enum camerabus_ring_order)order, frame);
}
int is_intact(struct camerabus_ring *ring, const struct camerabus_ring_frame *frame) {
    return camerabus_ring_is_intact(ring, frame);
}
uint32_t closed(struct camerabus_ring *ring) { return camerabus_ring_closed(ring); }
int attach(int fd) {
    struct camerabus_ring ring; int r = camerabus_ring_attach(&ring, fd); camerabus_ring_detach(&ring); return r;
}
"""
_FLAWS = (
    "tooShort magic version slots keep recordBytes tableOffset pixelsOffset slotBytes size text dimensions planes "
    "notSealed kind sound".split()
)
_SOURCES = ("startOfExposure", "endOfFrame", "dequeue")
_CODES = {
    "colorPrimaries": ("primaries", formats._PRIMARIES),
    "transferFunction": ("transfer_function", formats._TRANSFER_FUNCTIONS),
    "yCbCrMatrix": ("matrix", formats._MATRICES),
    "chromaLocation": ("chroma_location", formats._CHROMA_LOCATIONS),
    "alignment": ("alignment", formats._ALIGNMENTS),
}
_u32, _u64, _i64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class Plane(ctypes.Structure):
    _fields_ = [("offset", _u32), ("stride", _u32), ("bytes", _u32)]


class Plan(ctypes.Structure):
    _fields_ = [
        *((name, _u32) for name in ("slots", "keep", "record_bytes", "table", "pixels")),
        *((name, _u64) for name in ("slot_bytes", "size")),
        *(("ring", ctypes.c_char * 17), ("stream", ctypes.c_char * 17)),
        *(("device", ctypes.c_char * 33), ("rendition", ctypes.c_char * 129)),
        *((name, _u32) for name in ("format", "width", "height", "plane_count")),
        ("planes", Plane * 8),
        *((name, ctypes.c_uint8) for name in ("primaries", "transfer_function", "matrix", "is_full_range")),
        *((name, ctypes.c_uint8) for name in ("chroma_location", "bits_per_component", "alignment", "mirrored")),
        *((name, _u32) for name in ("orientation", "pixel_width", "pixel_height")),
        *((name, _u32) for name in ("clean_x", "clean_y", "clean_width", "clean_height")),
        *((name, _u32) for name in ("duration_numerator", "duration_denominator")),
        ("meters_per_step", ctypes.c_double),
        *((name, _u32) for name in ("rate", "channels", "frame_bytes")),
        ("sample_format", ctypes.c_char * 17),
    ]


class RingFrame(ctypes.Structure):
    _fields_ = [
        ("slot", _u32),
        *((name, _u64) for name in ("stamp", "number", "skipped", "sequence", "captureSequence")),
        *((name, _i64) for name in ("monotonic", "realtime", "presentation")),
        *((name, _u64) for name in ("generation", "dropped")),
        *((name, _u32) for name in ("bytes", "source")),
        *((name, ctypes.c_int) for name in ("keyframe", "zoom")),
    ]


class Ring(ctypes.Structure):
    _fields_ = [
        *(("plan", Plan), ("memory", ctypes.c_void_p), ("memory_bytes", _u64), ("last", _u64), ("least_bytes", _u32)),
        *((name, _u64) for name in ("frames", "skipped", "late", "unusable")),
        ("message", ctypes.c_char * 1025),
    ]


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class CReader(unittest.TestCase):
    library: Any

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/ring.c", "w") as file:
                file.write(_SOURCE)
            command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
            include = f"-I{vectors.PROTOCOL / 'c'}"
            subprocess.run([*command, include, "-o", f"{folder}/ring.so", f"{folder}/ring.c"], check=True)
            cls.library = ctypes.CDLL(f"{folder}/ring.so")

    def cases(self, name: str) -> list[dict[str, Any]]:
        return list(json.loads((vectors.PROTOCOL / "vectors" / f"{name}.json").read_bytes())["cases"])

    def test_heads(self) -> None:
        for case in self.cases("ring-heads"):
            with self.subTest(case["name"]):
                head, plan = vectors.frame(case["frames"][0]), Plan()
                result = self.library.parse(ctypes.byref(plan), head, _u64(len(head)), _u64(case["memoryBytes"]))
                if not case["valid"]:
                    self.assertEqual(_FLAWS[-10001 - result], case["expect"]["flaw"])
                    continue
                self.assertEqual(result, 0)
                planes = [{name: getattr(plane, name) for name, _ in Plane._fields_} for plane in plan.planes]
                expect = case["expect"]
                if plan.width:
                    self.check_description(plan, expect)
                self.assertEqual(planes[: plan.plane_count], expect.pop("planes"))
                sound = expect.pop("sound", {"sampleFormat": "", "rate": 0, "channels": 0, "frameBytes": 0})
                self.assertEqual(
                    (plan.sample_format.decode(), plan.rate, plan.channels, plan.frame_bytes), tuple(sound.values())
                )
                renamed = {"recordBytes": "record_bytes", "slotBytes": "slot_bytes"}
                found = {name: getattr(plan, renamed.get(name, name)) for name in expect}
                self.assertEqual({n: v.decode() if isinstance(v, bytes) else v for n, v in found.items()}, expect)

    def check_description(self, plan: Plan, expect: dict[str, Any]) -> None:
        """Takes out of `expect` what the source states of its pictures."""
        words = {name: expect.pop(name, None) for name in _CODES}
        stated = expect.pop("orientation", 0), expect.pop("mirrored", False), expect.pop("colorRange", "video")
        self.assertEqual((plan.orientation, bool(plan.mirrored), ("video", "full")[plan.is_full_range]), stated)
        for name, (member, known) in _CODES.items():
            self.assertEqual(known.get(getattr(plan, member)), words[name], name)
        bits = plan.bits_per_component
        self.assertEqual(bits if 1 <= bits <= 64 else None, expect.pop("bitsPerComponent", None))
        shape = expect.pop("pixelAspectRatio", "1:1")
        self.assertEqual(f"{plan.pixel_width}:{plan.pixel_height}", shape)
        area = [getattr(plan, f"clean_{name}") for name in ("x", "y", "width", "height")]
        self.assertEqual(area, list((expect.pop("cleanAperture", None) or dict.fromkeys("abcd", 0)).values()))
        duration = f"{plan.duration_numerator}/{plan.duration_denominator}"
        self.assertEqual(duration, expect.pop("frameDuration", "0/0"))
        if (meters := expect.pop("metersPerStep", None)) is not None:
            self.assertEqual(plan.meters_per_step, meters)

    def test_readings(self) -> None:
        for case in self.cases("ring-readings"):
            with self.subTest(case["name"]):
                self.read(case)

    def read(self, case: dict[str, Any]) -> None:
        memory = (_u64 * (case["memoryBytes"] // 8))()
        view = memoryview(memory).cast("B")
        head = vectors.frame(case["frames"][0])
        view[: len(head)] = head
        ring, found = Ring(), []
        self.assertEqual(self.library.open_ring(ctypes.byref(ring), memory, _u64(len(view))), 0)
        for step in case["steps"]:
            for write in step.get("write", ()):
                data = bytes.fromhex(write["hex"])
                view[write["at"] : write["at"] + len(data)] = data
            if "read" in step:
                frame = RingFrame()
                one = self.library.poll_ring(ctypes.byref(ring), int(step["read"] == "next"), ctypes.byref(frame))
                self.assertEqual(self.facts(frame, ring.plan.frame_bytes) if one else None, step["expect"], step)
                if one:
                    found.append(frame)
            if "check" in step:
                is_intact = self.library.is_intact(ctypes.byref(ring), ctypes.byref(found[step["check"]]))
                self.assertEqual(bool(is_intact), step["intact"], step)
            if "closed" in step:
                self.assertEqual(self.library.closed(ctypes.byref(ring)), step["closed"])
        if "expect" in case:
            counters = case["expect"]["counters"]
            self.assertEqual({name: getattr(ring, name) for name in counters}, counters)

    def facts(self, frame: RingFrame, sound: int) -> dict[str, Any]:
        facts = {name: getattr(frame, name) for name, _ in RingFrame._fields_ if name != "stamp"}
        if sound:
            for name in ("keyframe", "zoom", "presentation"):
                del facts[name]
            facts["firstFrame"], facts["overruns"] = facts.pop("captureSequence"), facts.pop("dropped")
            return facts | {"frames": frame.bytes // sound, "source": {0: "status", 2: "read"}[frame.source]}
        facts["source"] = _SOURCES[frame.source]
        facts["zoom"] = frame.zoom / 1000
        facts["keyframe"] = None if frame.keyframe < 0 else bool(frame.keyframe)
        return facts

    def test_memory_that_could_become_shorter_is_refused(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(bytes(8192))
            file.flush()
            self.assertEqual(self.library.attach(file.fileno()), -10014)


if __name__ == "__main__":
    unittest.main()
