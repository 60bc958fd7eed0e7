"""Movies that have the samples of their source."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path
from typing import Any

import camerabus
from live import LiveTestCase, TIMEOUT

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


@unittest.skipUnless(numpy, "there is no NumPy")
class Lossless(LiveTestCase):
    WIDTH, HEIGHT = 64, 48

    def setUp(self) -> None:
        super().setUp()
        if "highBitDepth" not in self.client.hello.features or "movies" not in self.client.hello.features:
            self.skipTest("the bus records no such movies")
        folder = tempfile.TemporaryDirectory(prefix="camerabus-lossless-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def columns(self) -> Any:
        """Columns of red and blue, a pixel wide each: with shared chroma they would be violet."""
        picture = numpy.zeros((self.HEIGHT, self.WIDTH, 3), numpy.uint8)
        picture[:, ::2, 2] = picture[:, 1::2, 0] = 255
        return picture

    def depths(self, bits: int) -> Any:
        count = self.WIDTH * self.HEIGHT
        samples = (numpy.arange(count, dtype=numpy.uint32) * 40503 % 65536).astype(numpy.uint16)
        return (samples >> (16 - bits)).reshape(self.HEIGHT, self.WIDTH)

    def record(self, source: camerabus.Source, picture: Any, path: Path, codec: str) -> None:
        """Pictures that go on from one to the next by a sample's value, recorded until there are five."""
        largest = int(picture.max())

        def send(number: int, now: int) -> None:
            # What is 0 in the first picture tells how many came before it.
            shown = picture.copy()
            shown.flat[0] = number % (largest + 1)
            source.send(shown, timestamp=now)

        def states() -> Any:
            with self.client.record(source.device, path=path, codec=codec) as movie:
                for state in movie.states(TIMEOUT):
                    if state.frames >= 5:
                        break
            yield movie

        (movie,) = self.while_sending(states(), send)
        self.assertTrue(movie.ending.success, movie.ending)
        self.assertEqual(movie.start.video["codec"], codec)
        with open(f"{path}.frames.jsonl", encoding="utf-8") as lines:
            self.assertEqual(len(lines.readlines()), 1 + movie.ending.frames)

    def decoded(self, path: Path, memory: str) -> bytes:
        command = ["ffmpeg", "-v", "error", "-i", str(path), "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt"]
        made = subprocess.run([*command, memory, "-"], capture_output=True, check=True)
        return made.stdout

    def test_the_shape_of_pixels_is_in_finished_files(self) -> None:
        stated = camerabus.FormatExtensions(pixelAspectRatio=Fraction(4, 3))
        picture = self.columns()
        with self.client.create_source("wide", self.WIDTH, self.HEIGHT, "rgb", fps=30, extensions=stated) as source:
            for codec, ending in (("raw", "mov"), ("ffv1", "mov"), ("ffv1", "mkv")):
                path = self.folder / f"wide-{codec}.{ending}"
                self.record(source, picture, path, codec)
                command = ["ffprobe", "-v", "error", "-show_entries", "stream=sample_aspect_ratio", "-of", "csv=p=0"]
                told = subprocess.run([*command, str(path)], capture_output=True, check=True, text=True).stdout
                self.assertEqual(told.strip(), "4:3", path.name)

    def test_pictures_of_one_line_or_column_are_lossless_too(self) -> None:
        for width, height in ((1, 1), (1, 3), (3, 1), (2, 3)):
            picture = numpy.arange(250, 250 - width * height, -1, numpy.uint8).reshape(height, width)
            with self.client.create_source("line", width, height, "gray", fps=30) as source:
                path = self.folder / f"line-{width}x{height}.mkv"
                self.record(source, picture, path, "ffv1")
                made = numpy.frombuffer(self.decoded(path, "gray"), numpy.uint8).reshape(-1, width * height)
                # The first sample counts.
                self.assertEqual(set(numpy.diff(made[:, 0])), {1}, path.name)
                self.assertTrue((made[:, 1:] == picture.ravel()[1:]).all(), path.name)

    def test_the_shape_of_pixels_is_in_photos_and_pictures(self) -> None:
        stated = camerabus.FormatExtensions(pixelAspectRatio=Fraction(4, 3))
        picture = self.columns()
        # JPEG stays unturned, as its EXIF data say.
        for kind, orientation, across, jpeg, shape in (
            ("square", 0, Fraction(1), Fraction(1), "1:1"), ("wide", 0, Fraction(3, 4), Fraction(3, 4), "4:3"),
            ("wide", 90, Fraction(4, 3), Fraction(3, 4), "3:4"),
        ):
            name = f"shape-{kind}-{orientation}"
            extensions = stated if kind == "wide" else None
            with self.client.create_source(
                name, self.WIDTH, self.HEIGHT, "rgb", extensions=extensions, orientation=orientation
            ) as source:
                for format, tags, expected in (
                    ("png", ("PNG:PixelsPerUnitX", "PNG:PixelsPerUnitY"), across),
                    ("tiff", ("IFD0:XResolution", "IFD0:YResolution"), across),
                    ("jpeg", ("IFD0:XResolution", "IFD0:YResolution"), jpeg),
                ):
                    path = self.folder / f"{name}.{format}"
                    photo = (self.client.capture_photo(source.device, format=format) for _ in range(1))
                    (taken,) = self.while_sending(photo, lambda _, now: source.send(picture, timestamp=now))
                    path.write_bytes(taken.photos[0].data)
                    command = ["exiftool", "-json", "-n", *(f"-{tag}" for tag in tags), str(path)]
                    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]
                    found = Fraction(told[tags[0].split(":")[1]]) / Fraction(told[tags[1].split(":")[1]])
                    self.assertAlmostEqual(found, expected, 3, f"{path.name}: {told}")
                path = self.folder / f"{name}-rendition.jpeg"
                path.write_bytes(bytes(self.sent_and_seen(source, picture, "jpeg").payload))
                command = ["ffprobe", "-v", "error", "-show_entries", "stream=sample_aspect_ratio", "-of", "csv=p=0"]
                told = subprocess.run([*command, str(path)], capture_output=True, check=True, text=True).stdout
                self.assertEqual(told.strip(), shape, path.name)

    def test_a_movie_decodes_to_the_frames_of_its_source(self) -> None:
        for format, picture, memory in (
            ("bgr", self.columns(), "bgr24"), ("gray16", self.depths(16), "gray16le"),
            ("Z16", self.depths(16), "gray16le"), ("Y12", self.depths(12), "gray12le"),
            ("RG10", self.depths(10), "gray10le"),
        ):  # fmt: skip
            with self.client.create_source("deep", self.WIDTH, self.HEIGHT, format, fps=30) as source:
                plain = "mkv" if format == "bgr" else "mov"
                for codec, ending in (("ffv1", "mkv"), ("ffv1", "mov"), ("raw", plain)):
                    with self.subTest(format=format, codec=codec, ending=ending):
                        path = self.folder / f"{format}-{codec}.{ending}"
                        self.record(source, picture, path, codec)
                        if codec == "raw" and memory != "bgr24":  # QuickTime has words alone
                            memory = "gray16le"
                        found = numpy.frombuffer(self.decoded(path, memory), picture.dtype)
                        found = found.reshape(-1, *picture.shape)
                        self.assertGreaterEqual(len(found), 5)
                        first = found.reshape(len(found), -1)[:, 0].astype(int)
                        self.assertGreater(len(set(first)), 1, "each frame is another one")
                        for frame in found:
                            numpy.testing.assert_array_equal(frame.flat[1:], picture.flat[1:])

    def test_mp4_is_refused_and_names_another(self) -> None:
        with self.client.create_source("deep", self.WIDTH, self.HEIGHT, "gray16") as source:
            for codec in ("ffv1", "raw"):
                with self.assertRaisesRegex(camerabus.InvalidParams, "mkv"):
                    self.client.record(source.device, path=self.folder / "a.mp4", codec=codec)
            with self.assertRaisesRegex(camerabus.InvalidParams, "Y16.*mov"):
                self.start_while_sending(source, self.folder / "a.mkv")

    def start_while_sending(self, source: camerabus.Source, path: Path) -> None:
        def start() -> Any:
            yield self.client.record(source.device, path=path, codec="raw")

        list(self.while_sending(start(), lambda _, now: source.send(self.depths(16), timestamp=now)))
