"""Movies, as both clients ask for them and follow them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any

from camerabus import AsyncClient, BusTimeout, Client, EntryNotFound, NotRecording, PathNotAllowed, ProtocolError
from fake_bus import NO_REPLY, BusTestCase, Refusal

TOPIC = "state/movie/m1/"


class Movies(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.end: dict[str, Any] | None = None
        for name in ("start", "stop", "pause", "resume", "status", "list", "recommendedSettings"):
            self.bus.methods[f"movie.{name}"] = self.recorder(name)
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def recorder(self, name: str) -> Any:
        def serve(params: dict[str, Any]) -> Any:
            self.asked.append((name, params))
            return getattr(self, f"answer_{name}")(params)

        return serve

    def movie(self, **members: Any) -> dict[str, Any]:
        return {
            "id": "m1", "path": "/v/a.mp4", "name": "a.mp4", "state": "recording", "device": "cam0",
            "microphone": "mic0", "take": "t", "part": 1, "frames": 3, "dropped": 0, "recordedDuration": 100,
            "end": self.end, "owner": {"pid": 1}, **members,
        }  # fmt: skip

    def ending(self, reason: str = "stopped", success: bool = True) -> dict[str, Any]:
        return {
            "movie": "m1", "path": "/v/a.mp4", "reason": reason, "success": success, "error": None, "duration": 100,
            "size": 7, "frames": 3, "dropped": 0, "kept": True, "next": None,
        }  # fmt: skip

    def answer_start(self, params: dict[str, Any]) -> Any:
        one = {
            "movie": "m1", "path": "/v/a.mp4", "take": "t", "part": 1, "devices": ["cam0", "mic0"],
            "microphone": "mic0",
        }
        return {"movies": [one, {**one, "movie": "m2"}], "take": "t", "rig": "r"} if "rig" in params else one

    def answer_stop(self, params: dict[str, Any]) -> Any:
        self.end = self.end or self.ending()
        return self.end

    def answer_status(self, params: dict[str, Any]) -> Any:
        if params["movie"] != "m1":
            raise Refusal("notRecording", movie=params["movie"])
        return {"movie": self.movie(state="finished" if self.end else "recording")}

    answer_pause = answer_resume = answer_status

    def answer_list(self, params: dict[str, Any]) -> Any:
        return {"movies": [self.movie()]}

    def answer_recommendedSettings(self, params: dict[str, Any]) -> Any:
        return {"video": {"codec": "h264"}, "audio": None}

    def test_a_server_in_the_place_of_a_file(self) -> None:
        place = {"path": None, "url": "rtsp://a/live", "fileType": None}
        self.bus.methods["movie.start"] = lambda params: self.asked.append(("start", params)) or {
            **self.movie(), "movie": "m1", **place,
        }
        with self.client.record("cam0", url="rtsp://u:p@a/live") as movie:
            self.assertEqual((movie.url, movie.path), ("rtsp://a/live", ""))
        self.assertEqual(self.asked[0], ("start", {"device": "cam0", "url": "rtsp://u:p@a/live"}))

    def test_a_path_that_the_bus_may_not_write_to_gets_its_file_at_the_end(self) -> None:
        answer = self.bus.methods["movie.start"]

        def start(params: dict[str, Any]) -> Any:
            if "path" in params:
                self.asked.append(("start", params))
                raise Refusal("pathNotAllowed", roots=["/v"])
            return answer(params)

        def read(params: dict[str, Any]) -> Any:
            if self.end is None:
                raise Refusal("recordingInProgress", movie="m1")
            raise Refusal("entryNotFound", id="m1")

        self.bus.methods.update({"movie.start": start, "library.read": read})
        folder = Path(tempfile.mkdtemp(prefix="camerabus-movies-"))
        self.addCleanup(shutil.rmtree, folder)
        movie = self.client.record("cam0", path=folder / "a.mkv")
        self.assertEqual(movie.target, str(folder / "a.mkv"))
        self.assertEqual([params.get("path") for name, params in self.asked], [str(folder / "a.mkv"), None])
        self.assertEqual(self.asked[1][1]["fileType"], "mkv")
        # What it is asked for at the end; and what it says of a file that isn't there.
        with self.assertRaises(EntryNotFound) as caught:
            movie.stop()
        self.assertIn("fetch_from_library('m1'", caught.exception.__notes__[0])
        # Nobody would bring that of one that goes on without its program.
        with self.assertRaises(PathNotAllowed):
            self.client.record("cam0", path=folder / "b.mkv", detached=True)

    def test_what_is_asked_for(self) -> None:
        with self.client.record(
            "cam0", microphone="mic0", path=Path("a.mp4"), fragment=0.5, duration=10, min_free=0, resilient=True,
            codec="h264",
        ) as movie:
            self.assertEqual((movie.id, movie.path, movie.start.devices), ("m1", "/v/a.mp4", ("cam0", "mic0")))
            self.assertEqual(movie.pause().frames, 3)
            self.assertEqual(movie.resume().state, "recording")
        self.assertEqual((movie.ending.reason, movie.ending.size, movie.ending.success), ("stopped", 7, True))
        self.assertIs(movie.stop(), movie.ending)
        self.assertEqual(
            self.asked,
            [
                (
                    "start",
                    {
                        "device": "cam0", "microphone": "mic0", "path": os.path.abspath("a.mp4"),
                        "fragmentInterval": 500.0, "maxDuration": 10000, "minFreeDiskSpace": 0,
                        "continueAfterCrash": True, "codec": "h264",
                    },
                ),
                ("pause", {"movie": "m1"}), ("resume", {"movie": "m1"}), ("stop", {"movie": "m1"}),
            ],
        )  # fmt: skip

    def test_how_it_is_to_be_shown(self) -> None:
        self.client.record("cam0", orientation="portrait", mirrored=False)
        self.client.record_rig("r", mirrored=True)
        asked = [params for _, params in self.asked]
        self.assertEqual(
            asked, [{"device": "cam0", "orientation": "portrait", "mirrored": False}, {"rig": "r", "mirrored": True}]
        )

    def test_what_it_lacks(self) -> None:
        self.bus.methods["movie.start"] = lambda _: {
            **self.answer_start({}), "sideCarProblem": "There is a file already.",
        }
        self.bus.methods["movie.status"] = lambda _: {"movie": self.movie(waitingFor=["cam0"])}
        with self.client.record("cam0") as movie:
            self.assertEqual(movie.start.sideCarProblem, "There is a file already.")
            self.assertEqual((movie.status().waitingFor, movie.status().sideCarProblem), (("cam0",), None))
        self.assertIsNone(movie.ending.sideCarProblem)

    def test_what_its_camera_is_set_to_and_what_is_blank(self) -> None:
        wishes = {"smoothAutoFocus": False, "stabilization": "auto", "whenDenied": "blank"}
        done = {"smoothAutoFocus": False, "stabilization": "standard", "blank": ["audio"]}
        self.bus.methods["movie.start"] = lambda params: self.asked.append(("start", params)) or {
            **self.movie(), "movie": "m1", **done,
        }
        with self.client.record("cam0", smooth_focus=False, stabilization="auto", when_denied="blank") as movie:
            self.assertEqual((movie.start.stabilization, movie.start.blank), ("standard", ("audio",)))
        self.assertEqual(self.asked[0], ("start", {"device": "cam0", **wishes}))

    def test_an_error_in_the_block_ends_it_too(self) -> None:
        with self.assertRaises(KeyError), self.client.record("cam0", name="a.mp4"):
            raise KeyError
        self.assertEqual(self.asked, [("start", {"device": "cam0", "name": "a.mp4"}), ("stop", {"movie": "m1"})])

    def test_one_that_is_forgotten_is_no_error_at_the_end_of_the_block(self) -> None:
        self.bus.refuse("movie.stop", "notRecording", movie="m1")
        with self.client.record("cam0") as movie:
            pass
        self.assertIsNone(movie.ending)

    def test_rigs_lists_and_settings(self) -> None:
        movies = self.client.record_rig("r", microphone="mic0", duration=1)
        self.assertEqual([movie.id for movie in movies], ["m1", "m2"])
        self.assertEqual([state.device for state in self.client.movies()], ["cam0"])
        self.assertEqual(
            self.client.recommended_settings("cam0", file_type="mkv"), {"video": {"codec": "h264"}, "audio": None}
        )
        self.assertEqual(self.asked[-1], ("recommendedSettings", {"fileType": "mkv", "device": "cam0"}))
        self.assertEqual(self.client.find_movie("m1").start.devices, ("cam0", "mic0"))
        with self.assertRaises(NotRecording) as caught:
            self.client.find_movie("m9")
        self.assertEqual(caught.exception.movie, "m9")

    def test_a_start_of_a_rig_that_was_given_up_ends_all_of_its_movies(self) -> None:
        def start(params: dict[str, Any]) -> Any:
            self.bus.methods["movie.start"] = self.recorder("start")
            return NO_REPLY

        self.bus.methods["movie.start"] = start
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": False}
        # That one of them can't be ended is no reason to leave the other.
        self.bus.refuse("movie.stop", "notRecording", movie="m1")
        with self.assertRaises(BusTimeout):
            self.client.record_rig("r", timeout=0.05)
        self.assertEqual(self.bus.asked("movie.stop"), [{"movie": "m1"}, {"movie": "m2"}])

    def test_it_is_followed_to_its_end(self) -> None:
        self.bus.set_state(TOPIC, self.movie())
        movie = self.client.record("cam0")
        states = movie.states(timeout=5)
        self.assertEqual(next(states).frames, 3)
        self.bus.set_state(TOPIC, self.movie(frames=4))
        self.assertEqual(next(states).frames, 4)
        self.assertEqual(movie.state.frames, 4)
        self.end = self.ending("diskFull", False)
        self.bus.set_state(TOPIC, None)
        self.assertEqual(list(states), [])
        self.assertEqual((movie.ending.reason, movie.ending.success), ("diskFull", False))
        self.assertEqual(movie.wait(5), movie.ending)

    def test_one_that_ended_while_there_was_no_bus_is_asked_about_in_the_library(self) -> None:
        movie = self.client.record("cam0")
        self.bus.refuse("movie.status", "notRecording", movie="m1")
        entry = {"id": "m1", "path": "/v/a.mp4", "state": "recovered", "duration": 5, "size": 6, "problem": "It died."}
        self.bus.methods["library.get"] = lambda params: {"entry": entry}
        ending = movie.wait(5)
        self.assertEqual(
            (ending.reason, ending.success, ending.kept, ending.duration), ("recorderCrashed", False, True, 5)
        )
        self.assertEqual(ending.error["message"], "It died.")

    def test_one_that_ends_with_its_bus_says_how(self) -> None:
        self.bus.set_state(TOPIC, self.movie())
        movie = self.client.record("cam0")
        states = movie.states(5)
        next(states)
        self.bus.refuse("movie.status", "shuttingDown")
        self.bus.set_state(TOPIC, None)
        self.bus.send_event("event/movie/m1/", "didFinishRecording", **self.ending("shuttingDown"))
        self.bus.end()
        self.assertEqual((list(states), movie.ending.reason, movie.ending.success), ([], "shuttingDown", True))

    def test_one_that_nobody_remembers(self) -> None:
        movie = self.client.record("cam0")
        self.bus.refuse("movie.status", "notRecording", movie="m1")
        self.bus.refuse("library.get", "entryNotFound", id="m1")
        with self.assertRaises(NotRecording):
            movie.wait(5)

    def test_waiting_ends_in_time(self) -> None:
        self.bus.set_state(TOPIC, self.movie())
        movie = self.client.record("cam0")
        with self.assertRaises(BusTimeout):
            movie.wait(0.05)
        self.end = self.ending("maximumDurationReached")
        self.bus.set_state(TOPIC, None)
        self.assertEqual(movie.wait(5).reason, "maximumDurationReached")

    def test_an_answer_without_a_movie(self) -> None:
        self.bus.methods["movie.start"] = lambda params: {}
        with self.assertRaises(ProtocolError):
            self.client.record("cam0")

    def test_the_same_with_asyncio(self) -> None:
        async def record() -> None:
            async with AsyncClient(self.bus.directory, name="test", timeout=5) as client:
                self.bus.set_state(TOPIC, self.movie())
                async with client.record("cam0", duration=2) as movie:
                    async for state in movie.states(timeout=5):
                        self.assertEqual(state.frames, 3)
                        break
                    await movie.pause()
                    await movie.resume()
                self.assertEqual(movie.ending.reason, "stopped")
                plain = await client.record("cam0", detached=True)
                self.assertEqual((await plain.status()).state, "finished")
                self.assertEqual((await plain.wait(5)).reason, "stopped")
                self.assertEqual(len(await client.movies()), 1)
                self.assertEqual((await client.find_movie("m1")).path, "/v/a.mp4")
                self.assertIsNone((await client.recommended_settings("cam0"))["audio"])

        asyncio.run(record())
        self.assertEqual([name for name, _ in self.asked][:4], ["start", "pause", "resume", "stop"])


if __name__ == "__main__":
    unittest.main()
