"""Takes, as both clients make and follow them."""

from __future__ import annotations

import asyncio
import os
import unittest
from typing import Any

from camerabus import AsyncClient, BusTimeout, Client, NotRecording, ProtocolError, RecordingInProgress, TakeNotFound
from fake_bus import NO_REPLY, BusTestCase, Refusal

TOPIC = "state/take/t1/"


class Takes(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.segments: list[dict[str, Any]] = []
        self.segment: str | None = None
        self.is_over = False
        for method, answer in {
            "take.create": lambda params: {"take": self.take()}, "take.list": lambda params: {"takes": [self.take()]},
            "take.get": self.get, "take.record": self.record, "take.pause": self.pause, "take.delete": self.delete,
            "take.finish": self.finish, "take.discard": self.discard, "movie.stop": self.stop,
        }.items():  # fmt: skip
            self.bus.methods[method] = answer
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        requests = [(request["method"], request["params"]) for request in self.bus.requests]
        return [
            (method, params)
            for method, params in requests
            if method.startswith(("take.", "movie.")) and method != "take.get"
        ]

    # What the bus does

    def take(self) -> dict[str, Any]:
        total = sum(segment["duration"] for segment in self.segments)
        return {
            "id": "t1", "name": "belt", "state": "recording" if self.segment else "paused", "session": None,
            "device": "cam0", "microphone": "mic0", "owner": {"pid": 1}, "detached": False, "segment": self.segment,
            "segments": list(self.segments), "duration": 0, "total": total, "remaining": 15000 - total,
            "minDuration": None, "maxDuration": 15000, "exportPreset": None, "video": None, "audio": None,
        }  # fmt: skip

    def get(self, params: dict[str, Any]) -> Any:
        if self.is_over or params["take"] != "t1":
            raise Refusal("takeNotFound", take=params["take"])
        return {"take": self.take()}

    def record(self, params: dict[str, Any]) -> Any:
        if self.segment:
            raise Refusal("recordingInProgress", take="t1")
        part = len(self.segments) + 1
        self.segment = f"m{part}"
        return {
            "movie": self.segment, "path": f"/v/belt-{part}.mp4", "take": "t1", "part": part,
            "devices": ["cam0", "mic0"], "microphone": "mic0",
        }

    def ended(self) -> dict[str, Any]:
        if self.segment:
            self.segments.append({"id": self.segment, "path": f"/v/{self.segment}.mp4", "duration": 2000})
            self.segment = None
        return {
            "path": self.segments[-1]["path"], "reason": "stopped", "success": True, "error": None, "kept": True,
            "duration": 2000,
        }

    def pause(self, params: dict[str, Any]) -> Any:
        self.get(params)
        if not self.segment and not self.segments:
            raise Refusal("notRecording", take="t1")
        ending = self.ended()
        return {
            **ending, "segment": self.segments[-1]["id"], "total": self.take()["total"],
            "remaining": self.take()["remaining"],
        }

    def stop(self, params: dict[str, Any]) -> Any:
        return {**self.ended(), "movie": params["movie"], "size": 7, "frames": 3, "dropped": 0, "next": None}

    def delete(self, params: dict[str, Any]) -> Any:
        self.segments = [segment for segment in self.segments if segment["id"] != params["segment"]]
        return {"take": self.take(), "deleted": ["/v/a.mp4"]}

    def finish(self, params: dict[str, Any]) -> Any:
        self.is_over = True
        return {
            "take": "t1", "path": params.get("path", "/v/belt.mp4"), "cover": "/v/belt.jpg", "duration": 2000,
            "size": 9, "encoded": False,
        }

    def discard(self, params: dict[str, Any]) -> Any:
        self.is_over = True
        return {"take": "t1", "deleted": ["/v/a.mp4"]}

    # The tests

    def test_segments_are_recorded_deleted_and_joined(self) -> None:
        with self.client.take(
            "cam0", microphone="mic0", name="belt", min_duration=3, max_duration=15, preset="1280x720", mirrored=False
        ) as take:
            with take.record() as segment:
                self.assertEqual((segment.id, segment.path, segment.start.part), ("m1", "/v/belt-1.mp4", 1))
                with self.assertRaises(RecordingInProgress) as caught:
                    take.record()
                self.assertEqual(caught.exception.take, "t1")
            # The end of its block has ended it, and the take has it.
            self.assertEqual((segment.ending.reason, [each.id for each in take.segments]), ("stopped", ["m1"]))
            take.record()
            ending = take.pause()
            self.assertEqual(
                (ending.segment, ending.duration, ending.total, ending.remaining, ending.kept),
                ("m2", 2000, 4000, 11000, True),
            )
            self.assertEqual(take.delete(take.segments[0]), ["/v/a.mp4"])
            self.assertEqual([(each.id, each.duration) for each in take.segments], [("m2", 2000)])
            finished = take.finish(path="belt.mp4")
        self.assertEqual(
            (finished.path, finished.cover, finished.encoded), (os.path.abspath("belt.mp4"), "/v/belt.jpg", False)
        )
        self.assertTrue(take.is_over)
        create = {
            "device": "cam0", "microphone": "mic0", "name": "belt", "minDuration": 3000, "maxDuration": 15000,
            "exportPreset": "1280x720", "mirrored": False,
        }
        one = {"take": "t1"}
        self.assertEqual(
            self.asked(),
            [
                ("take.create", create), ("take.record", one), ("take.record", one), ("movie.stop", {"movie": "m1"}),
                ("take.record", one), ("take.pause", one), ("take.delete", {"take": "t1", "segment": "m1"}),
                ("take.finish", {"take": "t1", "path": os.path.abspath("belt.mp4")}),
            ],
        )  # fmt: skip

    def test_the_end_of_the_block_ends_a_segment_and_no_more(self) -> None:
        with self.assertRaises(KeyError), self.client.take("cam0") as take:
            take.record()
            raise KeyError
        self.assertEqual([method for method, _ in self.asked()], ["take.create", "take.record", "take.pause"])
        self.assertEqual(([each.id for each in take.segments], take.is_over), (["m1"], False))
        self.segments = []
        with self.client.find_take("t1") as again:
            self.assertEqual(again.state.device, "cam0")
        with self.assertRaises(NotRecording):
            again.pause()

    def test_one_that_is_over(self) -> None:
        take = self.client.take("cam0")
        self.assertEqual([state.id for state in self.client.takes()], ["t1"])
        self.assertEqual(take.discard(), ["/v/a.mp4"])
        with self.assertRaises(TakeNotFound) as caught:
            take.status()
        self.assertEqual(caught.exception.take, "t1")
        with self.assertRaises(TakeNotFound):
            self.client.find_take("t9")

    def test_it_is_followed_until_it_is_over(self) -> None:
        self.bus.set_state(TOPIC, self.take())
        take = self.client.take("cam0")
        states = take.states(timeout=5)
        self.assertEqual(next(states).state, "paused")
        self.segment = "m1"
        self.bus.set_state(TOPIC, self.take())
        self.assertEqual((next(states).segment, take.state.state), ("m1", "recording"))
        # The first is how it is now; nothing comes behind it.
        with self.assertRaises(BusTimeout):
            list(take.states(timeout=0.05))
        self.is_over = True
        self.bus.set_state(TOPIC, None)
        self.assertEqual((list(states), take.is_over), ([], True))

    def test_one_that_is_made_too_late_is_thrown_away_and_a_segment_ended(self) -> None:
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": False}
        take = self.client.take("cam0")
        for method, make in (
            ("take.create", lambda: self.client.take("cam0", timeout=0.05)),
            ("take.record", lambda: take.record(timeout=0.05)),
        ):
            usual = self.bus.methods[method]

            def late(params: dict[str, Any]) -> Any:
                self.bus.methods[method] = usual
                return NO_REPLY

            self.bus.methods[method] = late
            with self.assertRaises(BusTimeout):
                make()
        self.assertEqual(self.asked()[-1], ("movie.stop", {"movie": "m1"}))
        self.assertEqual(self.bus.asked("take.discard"), [{"take": "t1"}])

    def test_an_answer_without_a_take(self) -> None:
        self.bus.methods["take.create"] = lambda params: {}
        with self.assertRaises(ProtocolError):
            self.client.take("cam0")

    def test_the_same_with_asyncio(self) -> None:
        async def record() -> None:
            async with AsyncClient(self.bus.directory, name="test", timeout=5) as client:
                async with client.take(session="s1", detached=True) as take:
                    async with take.record() as segment:
                        self.assertEqual(segment.id, "m1")
                    self.assertEqual([each.id for each in take.segments], ["m1"])
                    self.bus.set_state(TOPIC, self.take())
                    async for state in take.states(timeout=5):
                        self.assertEqual(state.total, 2000)
                        break
                    self.assertEqual((await (await take.record()).status()).id, "m2")
                    self.assertEqual((await take.pause()).segment, "m2")
                    await take.delete("m1")
                    self.assertEqual((await take.finish(name="a")).path, "/v/belt.mp4")
                self.is_over = False
                self.assertEqual(len(await client.takes()), 1)
                found = await client.find_take("t1")
                self.assertEqual((await found.status()).name, "belt")
                await (await client.take("cam0")).discard()

        self.bus.methods["movie.status"] = lambda params: {"movie": {"id": params["movie"], "state": "recording"}}
        asyncio.run(record())
        self.assertEqual(self.asked()[0], ("take.create", {"session": "s1", "detached": True}))
        self.assertEqual(self.bus.asked("take.finish"), [{"take": "t1", "name": "a"}])


if __name__ == "__main__":
    unittest.main()
