"""Movies of a camera that changes the size of its pictures."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, ContextManager

import camerabus
from live import Image, LiveTestCase, TIMEOUT

Size = tuple[int, int]


@unittest.skipUnless(Image is not None and shutil.which("ffmpeg"), "needs Pillow and ffmpeg")
class SizeChanges(LiveTestCase):
    SMALL, WIDE = (160, 128), (320, 200)
    LEFT, RIGHT = (200, 40, 60), (40, 60, 210)

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="camerabus-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.pictures = {size: self.picture(size) for size in (self.SMALL, self.WIDE)}
        self.size = self.SMALL

    def picture(self, size: Size) -> bytes:
        """Two halves."""
        image, file = Image.new("RGB", size, self.LEFT), io.BytesIO()
        image.paste(self.RIGHT, (size[0] // 2, 0, *size))
        image.save(file, "JPEG", quality=95, subsampling=0)
        return file.getvalue()

    def sending(self) -> ContextManager[str]:
        """A camera whose pictures have `size`."""
        return self.camera("changing", self.SMALL, lambda _: self.pictures[self.size], 25)

    def await_movie(self, movie: str, condition: Callable[[Any], bool]) -> camerabus.MovieState:
        found = self.client.find_movie(movie)
        for state in itertools.chain([found.status()], found.states(TIMEOUT)):
            if condition(state):
                return state
        raise AssertionError(f"it has ended: {found.ending}")

    def streams(self, path: str) -> list[dict[str, Any]]:
        command = ["ffprobe", "-v", "error", "-count_packets", "-show_streams", "-of", "json", path]
        probed = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((probed.returncode, probed.stderr), (0, ""))
        return json.loads(probed.stdout)["streams"]

    def decoded(self, path: str, size: Size) -> list[Image.Image]:
        form = ["-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        command = ["ffmpeg", "-v", "error", "-i", path, *form]
        raw = subprocess.run(command, check=True, capture_output=True).stdout
        count = size[0] * size[1] * 3
        self.assertEqual(len(raw) % count, 0)
        return [Image.frombytes("RGB", size, raw[at : at + count]) for at in range(0, len(raw), count)]

    def assert_colour(self, picture: Image.Image, place: Size, colour: tuple[int, int, int], most: int) -> None:
        found = picture.getpixel(place)
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found, colour)), most, (place, found, colour))

    def side_car(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(path + ".frames.jsonl").read_text().splitlines()]

    def test_an_encoded_movie_keeps_its_size_and_the_shape_of_the_pictures(self) -> None:
        path = str(self.folder / "a.mp4")
        with self.sending() as device:
            with self.client.record(device, path=path, codec="h264") as movie:
                self.await_movie(movie.id, lambda state: state.frames >= 5)
                for self.size in (self.WIDE, self.SMALL):
                    wide = {"width": self.size[0], "height": self.size[1]}
                    changed = self.await_movie(movie.id, lambda state: state.source == wide)
                    self.await_movie(movie.id, lambda state: state.frames >= changed.frames + 5)
            ending = movie.ending
        self.assertEqual((ending.reason, ending.success, ending.next), ("stopped", True, None))
        video = self.streams(path)[0]
        self.assertEqual((video["width"], video["height"]), self.SMALL)
        self.assertEqual(int(video["nb_read_packets"]), ending.frames)
        lines = self.side_car(path)[1:]
        sizes = [(line["source"]["width"], line["source"]["height"]) for line in lines if "source" in line]
        self.assertEqual(sizes, [self.WIDE, self.SMALL])
        frames, (wide, small) = 0, [number for number, line in enumerate(lines) if "source" in line]
        pictures = self.decoded(path, self.SMALL)
        self.assertEqual(len(pictures), len(lines) - 2)
        for number, picture in enumerate(pictures):
            is_wide = wide <= number < small - 1
            for x, colour in ((40, self.LEFT), (120, self.RIGHT)):
                self.assert_colour(picture, (x, 64), colour, 8)
                for y in (4, 123):  # 160x100 in 160x128: 14 lines are black
                    self.assert_colour(picture, (x, y), (0, 0, 0) if is_wide else colour, 8)
                for y in (20, 107):
                    self.assert_colour(picture, (x, y), colour, 8)

    def test_what_is_stored_unchanged_continues_in_another_file(self) -> None:
        with self.sending() as device:
            with self.client.record(device, path=self.folder / "a.mov", codec="passThrough", duration=600) as movie:
                self.await_movie(movie.id, lambda state: state.frames >= 5)
                self.size = self.WIDE
                first = movie.wait(TIMEOUT)
                self.assertEqual((first.reason, first.success, first.kept), ("formatChanged", True, True))
                self.assertEqual(dict(first.error), {})
                second = self.await_movie(first.next, lambda state: state.frames >= 5)
                self.assertEqual((second.part, second.follows, second.take), (2, movie.id, movie.start.take))
                self.assertEqual(second.path, str(self.folder / "a-2.mov"))
            # The end of the block ends what continues the movie.
            last = movie.ending
            self.assertEqual((last.movie, last.reason, last.success), (first.next, "stopped", True))
            self.assertEqual(self.client.movies(), [])
            self.assertEqual(movie.stop().path, last.path)
        for ending, size, follows in ((first, self.SMALL, None), (last, self.WIDE, movie.id)):
            video = self.streams(ending.path)[0]
            self.assertEqual((video["width"], video["height"]), size)
            command = ["ffmpeg", "-v", "error", "-i", ending.path, "-c", "copy", "-f", "mjpeg", "-"]
            stored = subprocess.run(command, check=True, capture_output=True)
            self.assertEqual((stored.stdout, stored.stderr), (self.pictures[size] * ending.frames, b""))
            self.assert_colour(self.decoded(ending.path, size)[0], (4, 4), self.LEFT, 6)
            head = self.side_car(ending.path)[0]
            self.assertEqual((head["follows"], head["take"]), (follows, movie.start.take))

    def test_a_camera_that_changes_all_the_time_ends_the_movie_with_its_reason(self) -> None:
        with self.sending() as device:
            with self.client.record(device, path=self.folder / "a.mkv", codec="passThrough") as movie:
                ending = None
                for self.size in itertools.islice(itertools.cycle((self.WIDE, self.SMALL)), 20):
                    ending = (self.client.find_movie(movie.id if ending is None else ending.next)).wait(TIMEOUT)
                    self.assertTrue(ending.kept)
                    if ending.next is None:
                        break
                    self.await_movie(ending.next, lambda state: state.frames >= 2)
            self.assertEqual((ending.reason, ending.success), ("formatChanged", False))
            self.assertRegex(ending.error["message"], "160x128.*320x200|320x200.*160x128")
            self.assertIn("h264, which scales", ending.error["message"])
        self.assertEqual(len(list(self.folder.glob("*.mkv"))), 9)

    def test_the_command_says_what_happens(self) -> None:
        for codec, said in (("h264", "delivers 320x200 now"), ("passThrough", "continues in another file")):
            self.size = self.SMALL
            with self.sending() as device:
                command = ["camerabus", "record", device, "--codec", codec, "-o", str(self.folder / f"{codec}.mov")]
                with subprocess.Popen(
                    command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                ) as program:
                    self.addCleanup(program.kill)
                    known: set[str] = set()
                    for _ in self.client.watch("state/movie/", timeout=TIMEOUT):
                        known = {state.id for state in self.client.movies() if state.frames >= 5}
                        if known:
                            break
                    self.size = self.WIDE
                    if codec == "h264":
                        self.await_movie(known.pop(), lambda state: state.source.get("width") == 320)
                    else:
                        first = self.client.find_movie(known.pop()).wait(TIMEOUT)
                        self.await_movie(first.next, lambda state: state.frames >= 5)
                    program.send_signal(signal.SIGINT)
                    output, errors = program.communicate(timeout=TIMEOUT)
            self.assertEqual(program.returncode, 0, errors)
            self.assertIn(said, errors)
