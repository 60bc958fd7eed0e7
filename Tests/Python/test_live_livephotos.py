"""Live photos on a real bus, in Python and on the command line: what is in the files is read by Pillow and ffprobe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from typing import Any

import camerabus
from camerabus import LivePhotoMovie, PhotoStage
from live import Image, TIMEOUT
from test_live_photos import EXIF_IFD, STAGES, UNIQUE_ID, PhotoTestCase

OUTPUT = {"type": "photo", "livePhotoCaptureEnabled": True, "livePhotoAutoTrimmingEnabled": False}
ALL_STAGES = [*STAGES[:4], "didFinishRecordingLivePhotoMovie", "didFinishProcessingLivePhotoToMovieFile", STAGES[4]]


class LivePhotos(PhotoTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "livePhotos" not in self.client.hello.features:
            self.skipTest("the bus makes no live photos")

    def test_both_files_are_one_live_photo(self) -> None:
        microphone = next(device.id for device in self.client.devices("audio") if device.driver == "virtual")
        told: list[PhotoStage] = []
        with self.client.session(self.first, microphone, preset="inputPriority", outputs=OUTPUT) as session:
            self.assertEqual(session.wait_for_live_photos(TIMEOUT), camerabus.LIVE_PHOTO_REACH)
            command = self.command(session.id)
            capture = self.client.capture_photo(
                session=session.id, live=True, deliver=["reply", "library"], on_stage=told.append
            )
            if command is not None:
                self.assertEqual(command.communicate(timeout=2 * TIMEOUT)[0].split(), ["a.jpg", "a.mov"])
        photo, movie = capture.photo, capture.livePhotoMovie
        assert movie is not None and movie.data is not None and movie.path is not None and photo.path is not None
        self.addCleanup(lambda: os.path.exists(str(photo.path)) and self.client.delete_from_library(str(photo.id)))
        self.assertEqual([stage.event for stage in told], ALL_STAGES)
        self.assertEqual((told[4].duration, told[5].photoDisplayTime), (movie.duration, movie.photoDisplayTime))
        self.assertEqual(len(movie.data), movie.bytes)
        # What was held is in it, and something of what came after.
        self.assertTrue(1.0 < movie.photoDisplayTime < movie.duration, movie)
        self.assertEqual(os.path.splitext(movie.path), (os.path.splitext(photo.path)[0], ".mov"))
        self.judge_movie(movie)
        if Image is not None:
            details = photo.image().getexif().get_ifd(EXIF_IFD)
            self.assertEqual(details[UNIQUE_ID].lower(), movie.contentIdentifier.replace("-", "").lower())
        self.judge_library(str(photo.id), photo.path, movie)
        if command is not None:
            self.assertEqual((self.folder / "a.jpg").read_bytes()[:2], b"\xff\xd8")
            self.assertEqual((self.folder / "a.mov").read_bytes()[4:8], b"ftyp")

    def command(self, session: str) -> subprocess.Popen[str] | None:
        """The command line takes one at the same time."""
        if shutil.which("camerabus") is None:
            return None
        arguments = ["camerabus", "photo", "--session", session, "--live", "-o", "a.jpg"]
        process = subprocess.Popen(arguments, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def judge_movie(self, movie: LivePhotoMovie) -> None:
        if shutil.which("ffprobe") is None:
            return
        movie.save(self.folder / "movie.mov")
        command = [
            "ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(self.folder / "movie.mov"),
        ]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.assertEqual({stream["codec_name"] for stream in found["streams"]}, {"h264", "aac"})
        self.assertEqual(found["format"]["tags"]["com.apple.quicktime.content.identifier"], movie.contentIdentifier)

    def judge_library(self, id: str, path: str, movie: LivePhotoMovie) -> None:
        entry = self.client.library_entry(id)
        self.assertEqual((entry.kind, entry.state, entry.path, entry.movie), ("photo", "finished", path, movie.path))
        assert entry.photo is not None and entry.photo.livePhotoMovie is not None
        self.assertEqual(entry.photo.livePhotoMovie.contentIdentifier, movie.contentIdentifier)
        self.assertEqual(set(self.client.delete_from_library(id)), {path, movie.path})
        self.assertFalse(os.path.exists(path) or os.path.exists(str(movie.path)))

    def test_who_makes_none_says_so(self) -> None:
        with self.client.session(self.first, preset="inputPriority", outputs="photo") as session:
            self.assertEqual(session.wait_for_live_photos(TIMEOUT), 0.0)
            with self.assertRaises(camerabus.InvalidParams):
                self.client.capture_photo(session=session.id, live=True)
        with self.assertRaises(camerabus.InvalidParams):
            self.client.session(self.first, preset="high", outputs=OUTPUT)


if __name__ == "__main__":
    unittest.main()
