"""Protocol/vectors, run by the Python client; what a client has no part in is held against a second reading of the
grammar.
"""

from __future__ import annotations

import dataclasses
import json
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import grammar
import vectors
from camerabus import CaptureError, Frame, FrameSet, PreviewLayout, Reply, Sound, errors, rates, video_orientation
from camerabus.core import decode_reply, encode_request
from camerabus.finding import candidates
from camerabus.formats import FormatExtensions
from camerabus.ring import RingFlaw, RingPlan, RingReader
from camerabus.sequences import Continuity, FrameContinuity, MirrorState, SoundContinuity
from test_ring import ring_frame

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None


@unittest.skipUnless((vectors.PROTOCOL / "vectors").is_dir(), "Protocol/vectors is not there")
class Vectors(unittest.TestCase):
    def test_all(self) -> None:
        for name, file in vectors.files().items():
            runner = getattr(self, f"run_{name.replace('-', '_')}", None)
            self.assertIsNotNone(runner, f"nothing here runs {name}.json")
            for case in file["cases"]:
                with self.subTest(f"{name}: {case['name']}"):
                    runner(case)

    def test_every_reason_is_known(self) -> None:
        for reason in vectors.errors():
            kind = type(CaptureError.of(reason))
            self.assertIsNot(kind, CaptureError, reason)
            self.assertEqual(kind.reason, reason)

    def run_device_ids(self, case: dict[str, Any]) -> None:
        self.assertEqual(grammar.is_device(vectors.frame(case["frames"][0])), case["valid"])

    def run_frame_rates(self, case: dict[str, Any]) -> None:
        if case["valid"]:
            rate = rates.frame_rate(case["rate"])
            self.assertEqual(f"{rate.numerator}/{rate.denominator}", case["expect"]["fraction"])
            self.assertEqual(rates.wire(case["rate"]), case["expect"]["wire"])
            if rate >= 1:
                self.assertEqual(rates.wire(rate), case["expect"]["wire"])
            return
        with self.assertRaises(ValueError) as caught:
            rates.frame_rate(case["rate"])
        for name in case["expect"].get("names", ()):
            self.assertIn(f" {name} for", str(caught.exception))

    def run_renditions(self, case: dict[str, Any]) -> None:
        wish = grammar.rendition(vectors.frame(case["frames"][0]))
        expected = (
            {name: value for name, value in case["expect"].items() if name != "canonical"} if case["valid"] else None
        )
        self.assertEqual(wish, expected)

    def run_points(self, case: dict[str, Any]) -> None:
        for device, video in case.get("orientations", {}).items():
            self.assertEqual(video_orientation(device), video)
        if "view" not in case:
            return
        view, picture = [(case[name]["width"], case[name]["height"]) for name in ("view", "picture")]
        layout = PreviewLayout(view, picture, case["gravity"], case["rotation"], case["mirrored"], case.get("zoom", 1))
        for convert, pairs, given, wanted in (
            (layout.device_point, case["toDevice"], "view", "device"),
            (layout.view_point, case["toView"], "device", "view"),
        ):
            for pair in pairs:
                point, expected = convert(pair[given]["x"], pair[given]["y"]), pair[wanted]
                self.assertEqual(point is None, expected is None, pair)
                if point is not None:
                    self.assertAlmostEqual(point[0], expected["x"], 6, pair)
                    self.assertAlmostEqual(point[1], expected["y"], 6, pair)

    def run_topics(self, case: dict[str, Any]) -> None:
        self.assertEqual(grammar.topic(vectors.frame(case["frames"][0])), case["expect"] if case["valid"] else None)

    def run_envelopes(self, case: dict[str, Any]) -> None:
        """What stands before a request is the bus's to judge (test_live_vectors.py); here only that the case is
        consistent.
        """
        frames = [vectors.frame(frame) for frame in case["frames"]]
        self.assertEqual(case["expect"]["envelope"] + case["expect"]["body"], len(frames))

    def run_requests(self, case: dict[str, Any]) -> None:
        """What a client writes is what the bus reads. Its refusals are tested on a live bus (test_live_vectors.py)."""
        expect = case["expect"]
        if not case["valid"] or type(expect.get("id")) is not int or "for" in expect:
            return
        written = json.loads(encode_request(expect["id"], expect["method"], expect["params"], expect.get("key")))
        self.assertEqual(written, {"jsonrpc": "2.0", **expect})

    def run_responses(self, case: dict[str, Any]) -> None:
        parts = [memoryview(vectors.frame(frame)) for frame in case["frames"]]
        if not case["valid"]:
            with self.assertRaises(errors.ProtocolError):
                decode_reply(parts)
            return
        identifier, outcome = decode_reply(parts)
        expect = case["expect"]
        self.assertEqual(identifier, expect["id"])
        if "error" in expect:
            self.assertEqual(self.error(outcome), expect["error"])
        else:
            assert isinstance(outcome, Reply)
            self.assertEqual(outcome.result, expect["result"])

    def run_frame_sets(self, case: dict[str, Any]) -> None:
        header, *payloads = map(vectors.frame, case["frames"])
        expect = case.get("expect", {})

        def parse() -> FrameSet:
            return FrameSet.parse(b"set/stereo/gray:4x4/", header, [memoryview(each) for each in payloads])

        if not case["valid"] or "error" in expect:
            with self.assertRaises(CaptureError) as caught:
                parse()
            if case["valid"]:
                self.assertEqual(self.error(caught.exception), expect["error"])
            else:
                reason = caught.exception.reason
                self.assertEqual("internalError" if reason == "protocolError" else reason, expect["reason"])
            return
        found = parse()
        self.assertEqual(
            {
                "number": found.number, "late": found.late, "spread": found.spread, "frames": found.offsets,
                "missing": found.missing,
            },
            expect["set"],
        )
        self.assertEqual(list(found.frames), list(found.offsets))

    def run_frame_headers(self, case: dict[str, Any]) -> None:
        header, *rest = map(vectors.frame, case["frames"])
        payload = rest[0] if rest else b""
        expect = case.get("expect", {})
        if not case["valid"]:
            with self.assertRaises(CaptureError) as caught:
                Frame.parse(b"frame/cam0/native/", header, memoryview(payload))
            reason = caught.exception.reason
            # On this side a message that breaks the protocol has a name of its own.
            self.assertEqual("internalError" if reason == "protocolError" else reason, expect["reason"])
            return
        frame = Frame.parse(b"frame/cam0/native/", header, memoryview(payload))
        if "error" in expect:
            self.assertEqual(self.error(frame.error), expect["error"])
            return
        wanted = expect["header"]
        for name in (
            "device", "rendition", "stream", "sequence", "captureSequence", "generation", "format", "width", "height",
        ):
            self.assertEqual(getattr(frame, name), wanted[name])
        times = dict(wanted["timestamp"])
        self.assertEqual(frame.presentation, times.pop("presentation", times["monotonic"]))
        self.assertEqual(frame.timestamp._asdict(), times)
        self.assertEqual([plane._asdict() for plane in frame.planes], wanted["planes"])
        self.assertEqual(
            (frame.orientation, frame.mirrored, frame.dropped),
            (wanted["orientation"], wanted["mirrored"], wanted["dropped"]),
        )
        names = [field.name for field in dataclasses.fields(FormatExtensions)]
        self.assertEqual(frame.extensions.members(), {name: wanted[name] for name in names if name in wanted})
        self.assertEqual(frame.zoom, wanted.get("zoom", 1))
        for name in ("keyframe", "exposure", "buffer"):
            self.assertEqual(frame.header.get(name), wanted.get(name))

    def run_frame_continuity(self, case: dict[str, Any]) -> None:
        continuity = FrameContinuity()
        for step in case["steps"]:
            lost = continuity.receive(step["stream"], step["sequence"], step.get("keyframe"))
            self.assertEqual(lost, step["lost"], step)

    def run_sound_continuity(self, case: dict[str, Any]) -> None:
        continuity = SoundContinuity()
        for step in case["steps"]:
            lost = continuity.receive(step["stream"], step["sequence"], step["firstFrame"], step["frames"])
            self.assertEqual(lost, step["lost"], step)

    def run_sound_headers(self, case: dict[str, Any]) -> None:
        header, *rest = map(vectors.frame, case["frames"])
        expect = case["expect"]

        def parse() -> Sound:
            return Sound.parse(b"audio/mic0/native/", header, memoryview(rest[0] if rest else b""))

        if case["valid"] and "header" in expect:
            sound = parse()
            wanted = expect["header"]
            for name in wanted:
                if name not in ("v", "timestamp"):
                    self.assertEqual(getattr(sound, name), wanted[name], name)
            self.assertEqual(sound.timestamp._asdict(), wanted["timestamp"])
            return
        with self.assertRaises(CaptureError) as caught:
            parse()
        if case["valid"]:
            self.assertEqual(self.error(caught.exception), expect["error"])
        else:
            reason = caught.exception.reason
            self.assertEqual("internalError" if reason == "protocolError" else reason, expect["reason"])

    def run_sound_renditions(self, case: dict[str, Any]) -> None:
        wish = grammar.sound_rendition(vectors.frame(case["frames"][0]))
        expected = (
            {name: value for name, value in case["expect"].items() if name != "canonical"} if case["valid"] else None
        )
        self.assertEqual(wish, expected)

    def run_runtime_directories(self, case: dict[str, Any]) -> None:
        if case["role"] != "client":
            return
        with mock.patch("os.getuid", return_value=case["uid"]):
            if case["valid"]:
                found = candidates(case["flag"], case["environment"])
                self.assertEqual(found, [Path(path) for path in case["expect"]["directories"]])
            else:
                with self.assertRaises(ValueError):
                    candidates(case["flag"], case["environment"])

    def run_params(self, case: dict[str, Any]) -> None:
        if Draft202012Validator is None:
            self.skipTest("python3-jsonschema is not there")
        schema = vectors.methods()
        validator = Draft202012Validator({"$defs": schema["$defs"], **schema["methods"][case["method"]]["params"]})
        self.assertEqual(validator.is_valid(case["params"]), case["valid"])

    def run_state_sequences(self, case: dict[str, Any]) -> None:
        mirror, events = MirrorState(case["subscriptions"]), Continuity()
        for number, step in enumerate(case["steps"]):
            if "snapshot" in step:
                snapshot = step["snapshot"]
                events.start(snapshot["epoch"], snapshot["sequence"])
                action = "inStep" if mirror.adopt(snapshot) else "resynchronize"
            else:
                topic, message = step["receive"]["topic"], step["receive"]["message"]
                if topic.startswith("event/"):
                    lost = events.receive(topic, message["epoch"], message["sequence"], message["previous"])
                    action = "ignored" if lost is None else "eventAfterLoss" if lost else "event"
                else:
                    action = mirror.receive(topic, message)
            self.assertEqual(action, step["then"], f"step {number}")
            self.assertEqual(mirror.needs_snapshot, action in ("kept", "resynchronize") or mirror.epoch is None)
        self.assertEqual(mirror.values, case["expect"]["state"])

    def run_ring_heads(self, case: dict[str, Any]) -> None:
        head, memory = vectors.frame(case["frames"][0]), case["memoryBytes"]
        if not case["valid"]:
            with self.assertRaises(RingFlaw) as caught:
                RingPlan.parse(head, memory)
            self.assertEqual(caught.exception.flaw, case["expect"]["flaw"])
            return
        plan = dataclasses.asdict(RingPlan.parse(head, memory))
        if plan["sound"] is None:
            del plan["sound"]
        plan.update(plan.pop("description"))
        plan["planes"] = [dict(zip(("offset", "stride", "bytes"), plane)) for plane in plan["planes"]]
        self.assertEqual(plan, case["expect"])

    def run_ring_readings(self, case: dict[str, Any]) -> None:
        memory = bytearray(case["memoryBytes"])
        head = vectors.frame(case["frames"][0])
        memory[: len(head)] = head
        reader, found = RingReader(memory), []
        for step in case["steps"]:
            for write in step.get("write", ()):
                data = bytes.fromhex(write["hex"])
                memory[write["at"] : write["at"] + len(data)] = data
            if "read" in step:
                frame = reader.poll(step["read"])
                self.assertEqual(None if frame is None else ring_frame(frame), step["expect"], step)
                if frame is not None:
                    found.append(frame)
            if "check" in step:
                self.assertEqual(found[step["check"]].is_intact(), step["intact"], step)
            if "closed" in step:
                self.assertEqual(reader.closed, step["closed"])
        if "expect" in case:
            counters = {name: getattr(reader, name) for name in case["expect"]["counters"]}
            self.assertEqual(counters, case["expect"]["counters"])

    def test_a_mirror_does_not_remember_all_that_ever_was(self) -> None:
        mirror = MirrorState(["state/"])
        mirror.adopt({"epoch": "e", "sequence": 0, "state": {}})
        for number in range(1, 1000, 2):
            topic = f"state/lock/{number}/"
            self.assertEqual(
                mirror.receive(topic, {"epoch": "e", "sequence": number, "previous": 0, "value": 1}), "applied"
            )
            gone = {"epoch": "e", "sequence": number + 1, "previous": number, "value": None}
            self.assertEqual(mirror.receive(topic, gone), "applied")
        self.assertLess(len(mirror._last), 100)

    def error(self, error: Any) -> dict[str, Any]:
        assert isinstance(error, CaptureError)
        return {"reason": error.reason, "message": error.message, "data": error.data}


if __name__ == "__main__":
    unittest.main()
