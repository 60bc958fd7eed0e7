"""Renditions of 16 bits a sample."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import camerabus
from camerabus import FormatExtensions
from live import LiveTestCase, TIMEOUT

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]
try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]


@unittest.skipUnless(numpy, "there is no NumPy")
class DeepRenditions(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "highBitDepth" not in self.client.hello.features:
            self.skipTest("the bus has 8 bits only")

    def test_samples_of_more_than_8_bits(self) -> None:
        samples = (numpy.arange(40 * 30, dtype=numpy.uint32) * 40503 % 65536).astype(numpy.uint16).reshape(30, 40)
        for format, bits in (("Y10", 10), ("Y12", 12), ("gray16", 16)):
            with self.subTest(format), self.client.create_source("deep", 40, 30, format) as source:
                sent = samples >> (16 - bits)
                wanted = sent if bits == 16 else sent << (16 - bits) | sent >> (2 * bits - 16)
                grey = self.sent_and_seen(source, sent, "gray16")
                self.assertEqual((grey.format, grey.array().dtype), ("Y16", numpy.uint16))
                numpy.testing.assert_array_equal(grey.array(), wanted)
                self.assertEqual(grey.extensions.bitsPerComponent, bits)
                self.assertEqual(grey.extensions.alignment, "high" if bits < 16 else None)
                colour = self.sent_and_seen(source, sent, "rgb48")
                self.assertEqual((colour.format, colour.array().shape), ("RGB6", (30, 40, 3)))
                numpy.testing.assert_array_equal(colour.array(), numpy.repeat(wanted[:, :, None], 3, 2))
                turned = self.sent_and_seen(source, sent, "gray16;rotate=90")
                numpy.testing.assert_array_equal(turned.array(), numpy.rot90(wanted, -1))
                half = self.sent_and_seen(source, sent, "gray16:20x15").array().astype(int)
                mean = wanted.astype(int).reshape(15, 2, 20, 2).mean((1, 3))
                self.assertLessEqual(abs(half - mean).max(), 16)

    def test_8_bits_are_257_times_as_large(self) -> None:
        picture = (numpy.arange(40 * 30 * 3) * 7 % 256).astype(numpy.uint8).reshape(30, 40, 3)
        with self.client.create_source("plain", 40, 30, "rgb") as source:
            colour = self.sent_and_seen(source, picture, "rgb48")
            numpy.testing.assert_array_equal(colour.array(), picture.astype(numpy.uint16) * 257)
            self.assertEqual(colour.extensions.bitsPerComponent, 8)
            grey = self.sent_and_seen(source, picture, "gray16")
            narrow = self.sent_and_seen(source, picture, "gray")
            numpy.testing.assert_array_equal(grey.array(), narrow.array().astype(numpy.uint16) * 257)

    def test_depth_keeps_its_unit(self) -> None:
        depth = numpy.arange(40 * 30, dtype=numpy.uint16).reshape(30, 40)
        stated = FormatExtensions(metersPerStep=0.00025)
        with self.client.create_source("depth", 40, 30, "Z16", extensions=stated) as source:
            frame = self.sent_and_seen(source, depth, "gray16;mirror")
            numpy.testing.assert_array_equal(frame.array(), depth[:, ::-1])
            self.assertEqual(frame.extensions.metersPerStep, 0.00025)

    def test_of_a_camera(self) -> None:
        with self.client.frames(self.first, rendition="rgb48:160x0", limit=2) as frames:
            for frame in frames:
                array = frame.array()
                self.assertEqual((array.dtype, array.shape[1:]), (numpy.uint16, (160, 3)))
                self.assertGreater(int(array.max()), 255)


@unittest.skipUnless(numpy and Image, "there is no NumPy, or no Pillow")
class DeepPhotos(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "highBitDepth" not in self.client.hello.features or "photos" not in self.client.hello.features:
            self.skipTest("the bus takes no such photos")
        self.samples = (numpy.arange(40 * 30, dtype=numpy.uint32) * 40503 % 65536).astype(numpy.uint16).reshape(30, 40)

    def while_sent(self, source: camerabus.Source, take: Any) -> Any:
        def taken() -> Any:
            yield take()

        return next(self.while_sending(taken(), lambda _, now: source.send(self.samples, timestamp=now)))

    def test_photos_keep_16_bits(self) -> None:
        for format in ("gray16", "Z16"):
            with self.client.create_source("deep", 40, 30, format, fps=30) as source:
                for kind in ("png", "tiff"):
                    with self.subTest(format=format, kind=kind):
                        taken = self.while_sent(
                            source, lambda: self.client.capture_photo(source.device, format=kind, timeout=TIMEOUT)
                        )
                        photo = taken.photos[0]
                        self.assertEqual((photo.fileType, photo.width, photo.height), (kind, 40, 30))
                        picture = numpy.array(Image.open(io.BytesIO(photo.data)))
                        numpy.testing.assert_array_equal(picture, self.samples)

    def test_what_has_no_place_in_them_is_refused(self) -> None:
        for settings in ({"quality": 80}, {"thumbnail": True}):
            with self.assertRaises(camerabus.InvalidParams):
                self.client.capture_photo(self.first, format="png", **settings)

    @unittest.skipIf(shutil.which("camerabus") is None, "camerabus is not in the PATH")
    def test_the_command_line_takes_the_format_from_the_name(self) -> None:
        with tempfile.TemporaryDirectory(prefix="camerabus-deep-", dir="/tmp") as folder:
            for ending, kind in (("png", "PNG"), ("tiff", "TIFF"), ("tif", "TIFF")):
                path = Path(folder) / f"x.{ending}"
                subprocess.run(["camerabus", "photo", self.first, "-o", path], check=True, capture_output=True)
                with Image.open(path) as picture:
                    self.assertEqual((picture.format, picture.mode), (kind, "RGB"))
            told = subprocess.run(
                ["exiftool", "-json", "-n", "-Orientation", "-DateTimeOriginal", "-Software", f"{folder}/x.png"],
                capture_output=True, check=True,
            )  # fmt: skip
            words = json.loads(told.stdout)[0]
            self.assertEqual(words["Orientation"], 1)
            self.assertTrue(words["DateTimeOriginal"] and words["Software"].startswith("CameraBus"))
