"""Movies on a real bus."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

import camerabus
from camerabus import AsyncClient
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class Movies(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "movies" not in self.client.hello.features:
            self.skipTest("the bus records no movies")
        folder = tempfile.TemporaryDirectory(prefix="camerabus-movies-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        microphones = self.client.devices("audio")
        self.mic = microphones[0].id if microphones else None
        with self.client.lock(self.first, self.second, wait=TIMEOUT):
            before = {name: self.client.device(name).activeFormat for name in (self.first, self.second)}
            self.client.configure(
                [
                    {"device": name, "activeFormat": {"pixelFormat": "MJPG", "width": 640, "height": 480}}
                    for name in before
                ]
            )
        self.addCleanup(self.restore, before)

    def restore(self, before: dict[str, camerabus.ActiveFormat]) -> None:
        with self.client.lock(*before, wait=TIMEOUT):
            self.client.configure([
                {
                    "device": name,
                    "activeFormat": {"pixelFormat": was.pixelFormat, "width": was.width, "height": was.height},
                }
                for name, was in before.items()
            ])  # fmt: skip

    def streams(self, path: Path | str) -> list[dict[str, str]]:
        """What ffprobe finds in it, with the number of packets of each."""
        command = ["ffprobe", "-v", "error", "-count_packets", "-show_streams", "-of", "json", str(path)]
        probed = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((probed.returncode, probed.stderr), (0, ""))
        return json.loads(probed.stdout)["streams"]

    def test_a_with_block_records(self) -> None:
        path = self.folder / "take.mp4"
        with self.client.record(self.first, microphone=self.mic, path=path, fragment=0.3) as movie:
            self.assertEqual((movie.path, movie.start.video["codec"]), (str(path), "mjpeg"))
            self.assertEqual([state.id for state in self.client.movies()], [movie.id])
            seen = [state for state, _ in zip(movie.states(TIMEOUT), range(8))]
            self.assertEqual({state.state for state in seen}, {"recording"})
            self.assertLessEqual(seen[0].frames, seen[-1].frames)
        self.assertEqual((movie.ending.reason, movie.ending.success, movie.ending.kept), ("stopped", True, True))
        streams = self.streams(path)
        self.assertEqual([stream["codec_type"] for stream in streams], ["video"] + ["audio"] * (self.mic is not None))
        self.assertEqual(int(streams[0]["nb_read_packets"]), movie.ending.frames)
        self.assertEqual(self.client.movies(), [])
        again = self.client.find_movie(movie.id)
        self.assertEqual((again.ending, again.state.state), (movie.ending, "finished"))
        with self.assertRaises(camerabus.InvalidParams):
            self.client.record(self.first, path=path)
        with self.assertRaises(camerabus.NotRecording):
            again.pause()

    def test_a_rate_is_frames_per_second(self) -> None:
        for fps in ("15000/1001", Fraction(15000, 1001)):
            with self.client.record(self.first, path=self.folder / "film.mkv", codec="h264", fps=fps) as movie:
                next(state for state in movie.states(TIMEOUT) if state.frames > 3)
            self.assertEqual(self.streams(movie.path)[0]["avg_frame_rate"], "15000/1001")
            (self.folder / "film.mkv").unlink()

    def test_a_limit_ends_it_and_is_waited_for(self) -> None:
        movie = self.client.record(self.first, path=self.folder / "a.mkv", duration=2)
        with self.assertRaises(camerabus.RecordingInProgress) as caught:
            self.client.record(self.first, path=self.folder / "b.mkv")
        self.assertEqual(caught.exception.movie, movie.id)
        ending = movie.wait(TIMEOUT)
        self.assertEqual((ending.reason, ending.success), ("maximumDurationReached", True))
        self.assertLess(ending.duration, 2050)
        self.assertEqual(movie.stop(), ending)

    def test_pause_and_resume(self) -> None:
        with self.client.record(self.first, path=self.folder / "a.mov") as movie:
            self.assertEqual(movie.pause(TIMEOUT).state, "paused")
            self.assertEqual(movie.pause(TIMEOUT).state, "paused")
            frames = movie.status().frames
            self.assertEqual(movie.resume(TIMEOUT).state, "recording")
            for state in movie.states(TIMEOUT):
                if state.frames > frames + 5:
                    break
        self.assertTrue(movie.ending.success)

    def test_settings_that_are_recommended_are_taken(self) -> None:
        settings = self.client.recommended_settings(self.first, microphone=self.mic, file_type="mov")
        settings["video"]["bitRate"] = 400_000
        with self.client.record(
            self.first, microphone=self.mic, path=self.folder / "a.mov", codec="h264", settings=settings
        ) as movie:
            self.assertEqual(movie.start.video["codec"], "h264")
        self.assertTrue(movie.ending.success)
        self.assertEqual(self.streams(movie.path)[0]["codec_name"], "h264")
        del settings["video"]["width"]
        with self.assertRaises(camerabus.InvalidParams) as caught:
            self.client.record(self.first, path=self.folder / "b.mov", settings=settings)
        self.assertIn("width", str(caught.exception))

    def test_a_rig(self) -> None:
        self.client.set_rig("movies", self.first, self.second)
        self.addCleanup(self.client.delete_rig, "movies")
        movies = self.client.record_rig("movies", microphone=self.mic, path=self.folder / "r.mp4")
        self.assertEqual({state.state for state in self.client.pause_movies(rig="movies")}, {"paused"})
        take = movies[0].start.take
        self.assertEqual([state.id for state in self.client.resume_movies(take=take)], [movie.id for movie in movies])
        endings = self.client.stop_movies(rig="movies")
        self.assertEqual(endings, [movie.stop() for movie in movies])
        with self.assertRaises(camerabus.NotRecording):
            self.client.pause_movies(take=take)
        with self.assertRaises(ValueError):
            self.client.stop_movies()
        self.assertEqual(
            [Path(ending.path).name for ending in endings], [f"r-{self.first}.mp4", f"r-{self.second}.mp4"]
        )
        self.assertEqual(len({movie.start.take for movie in movies}), 1)
        self.assertTrue(all(ending.success for ending in endings))

    def test_a_session_of_several_cameras_and_asyncio(self) -> None:
        async def record() -> list[camerabus.MovieEnding]:
            async with AsyncClient(RUNTIME_DIR) as client:
                async with client.session(self.first, self.second, outputs=["movie"]) as session:
                    movies = await client.record_rig(session=session.id, path=self.folder / "s.mkv")
                    await client.pause_movies(take=movies[0].start.take)
                    await client.resume_movies(take=movies[0].start.take)
                    return await client.stop_movies(take=movies[0].start.take)

        endings = asyncio.run(record())
        self.assertEqual(
            [Path(ending.path).name for ending in endings], [f"s-{self.first}.mkv", f"s-{self.second}.mkv"]
        )

    def test_it_ends_with_its_connection_and_asyncio(self) -> None:
        async def record() -> camerabus.MovieEnding:
            async with AsyncClient(RUNTIME_DIR) as client:
                async with client.record(self.first, path=self.folder / "a.mp4") as movie:
                    async for state in movie.states(TIMEOUT):
                        if state.frames > 5:
                            break
                assert movie.ending is not None
                return movie.ending

        self.assertTrue(asyncio.run(record()).success)
