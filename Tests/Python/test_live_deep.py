"""Renditions of 16 bits a sample."""

from __future__ import annotations

import unittest

from camerabus import FormatExtensions
from live import LiveTestCase

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


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
