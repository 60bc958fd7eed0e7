"""Frames of our own as a device."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import time
import unittest
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path

import camerabus
from camerabus import AsyncClient, FormatExtensions
from live import Image, LiveTestCase, RUNTIME_DIR, TIMEOUT

if Image is not None:
    from PIL import ImageChops, ImageStat
try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


class Sources(LiveTestCase):
    def gone(self, device: str) -> bool:
        return device not in [one.id for one in self.client.devices()]

    def test_a_rate_is_frames_per_second(self) -> None:
        for fps in (Fraction(30000, 1001), "30000/1001", 29.97, "29.97", Decimal("29.97")):
            with self.client.create_source("Film", 64, 48, "gray", fps=fps) as source:
                rates = self.client.formats(source.device)[0].frameRates
                self.assertEqual([rate.minFrameDuration for rate in rates], [Fraction(1001, 30000)], fps)
        with self.assertRaisesRegex(ValueError, "30 for a frame duration of 1/30 s"):
            self.client.create_source("Film", 64, 48, "gray", fps="1/30")

    def test_a_name_of_any_script(self) -> None:
        with self.client.create_source("カメラ", 64, 48, "gray") as source:
            device = self.client.device(source.device)
            self.assertEqual((device.name, device.uniqueID), ("カメラ", source.uniqueID))
            self.assertRegex(source.device, "^source-[0-9a-f]{8}$")
            with self.client.frames(source.device, limit=1) as frames:
                self.streaming(source.device)
                self.assertTrue(source.send(bytes(64 * 48)))
                self.assertEqual(next(frames).device, source.device)
            with self.client.create_source("Küche", 64, 48, "gray") as first:
                with self.client.create_source("Kôche", 64, 48, "gray") as second:
                    self.assertEqual(self.client.device(first.device).name, "Küche")
                    self.assertEqual(self.client.device(second.device).name, "Kôche")
        for name in ("---", " ", "\u200b"):
            with self.assertRaises(camerabus.InvalidParams):
                self.client.create_source(name, 64, 48, "gray")

    def test_frames_are_what_was_sent_and_when(self) -> None:
        with self.client.create_source("A test", 64, 48, "gray", fps=25) as source:
            self.assertEqual((source.device, source.uniqueID, source.frame_bytes), ("a-test", "client-A-test", 64 * 48))
            device = self.client.device(source.device)
            self.assertTrue(device.connected)
            self.assertEqual(self.client.formats(source.device)[0].pixelFormat, "GREY")
            with self.client.frames(source.device, limit=1) as frames:
                self.streaming(source.device)
                taken = time.monotonic_ns()
                self.assertTrue(source.send(bytes(range(64)) * 48, timestamp=taken))
                frame = next(frames)
            self.assertEqual(bytes(frame.payload), bytes(range(64)) * 48)
            self.assertEqual((frame.timestamp.monotonic, frame.timestamp.source), (taken, "startOfExposure"))
            self.assertEqual(source.dropped, 0)
        self.assertTrue(self.gone("a-test"))

    def test_a_camera_behind_a_filter(self) -> None:
        with (
            self.client.create_source("filtered", 320, 180) as source,
            self.client.frames(source.device, limit=3) as filtered,
            self.client.frames(self.first, rendition="bgr:320x180", limit=3) as frames,
        ):
            self.streaming(source.device)
            for frame in frames:
                source.send(frame.payload, timestamp=frame.timestamp)
                got = next(filtered)
                self.assertEqual(bytes(got.payload), bytes(frame.payload))
                self.assertEqual(got.timestamp.monotonic, frame.timestamp.monotonic)

    def test_colours_are_those_that_the_source_states(self) -> None:
        weights = {"smpte170m": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020nc": (0.2627, 0.0593)}
        for matrix, (red, blue) in weights.items():
            for color_range in ("video", "full"):
                for color in ((0, 255, 0), (200, 60, 40)):
                    with self.subTest(f"{matrix} {color_range} {color}"):
                        luma = red * color[0] + (1 - red - blue) * color[1] + blue * color[2]
                        chroma = (color[2] - luma) / (2 * (1 - blue)), (color[0] - luma) / (2 * (1 - red))
                        scale, black, reach = (1, 0, 1) if color_range == "full" else (219 / 255, 16, 224 / 255)
                        y, u, v = round(luma * scale + black), *(round(part * reach + 128) for part in chroma)
                        u, v = min(u, 255), min(v, 255)
                        self.check_colour(matrix, color_range, bytes((y, u, y, v)), color, round(luma))

    def check_colour(
        self, matrix: str, color_range: str, pair: bytes, color: tuple[int, int, int], luma: int
    ) -> None:
        stated = FormatExtensions(yCbCrMatrix=matrix, colorRange=color_range, pixelAspectRatio=Fraction(64, 45))
        with self.client.create_source("colours", 64, 48, "yuyv", extensions=stated) as source:
            for rendition, wanted in (("native", None), ("rgb", color), ("gray", (luma,))):
                frame = self.sent_and_seen(source, pair * (32 * 48), rendition)
                self.assertEqual(frame.extensions.pixelAspectRatio, Fraction(64, 45))
                if wanted is None:
                    self.assertEqual(frame.extensions.yCbCrMatrix, matrix)
                    self.assertEqual(frame.extensions.colorRange, color_range)
                else:
                    found = bytes(frame.payload[: len(wanted)])
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted)), 2, (rendition, list(found)))

    def test_the_state_has_what_a_source_states(self) -> None:
        stated = FormatExtensions(
            "bt2020", "bt709", "bt2020nc", "full", "left", pixelAspectRatio=Fraction(64, 45),
            cleanAperture=camerabus.Aperture(4, 0, 56, 48), frameDuration=Fraction(1, 25),
        )  # fmt: skip
        with self.client.create_source(
            "stating", 64, 48, "yuyv", fps=25, extensions=stated, orientation=270, mirrored=True
        ) as source:
            with self.client.session(source.device) as session:
                frame = self.sent_and_seen(source, bytes(64 * 48 * 2), "native")
                state = session.refresh().state
                assert state is not None
                found = state.format_description(source.device)
                device = self.client.device(source.device)
                assert found is not None
                self.assertEqual(found, device.formatDescription)
                self.assertEqual((found.pixelFormat, found.width, found.height), ("YUYV", 64, 48))
                self.assertEqual((found.orientation, found.mirrored), (270, True))
                self.assertEqual(found.extensions, stated)
                self.assertEqual(found.extensions, frame.extensions)
                self.assertIsNone(state.format_description("another"))
        with self.client.create_source(
            "deep", 64, 48, "Z16", extensions=FormatExtensions(metersPerStep=0.001)
        ) as source:
            device = self.client.device(source.device)
            assert device.formatDescription is not None
            self.assertEqual(device.formatDescription.extensions.metersPerStep, 0.001)
            self.assertEqual(device.formatDescription.extensions.bitsPerComponent, 16)

    def test_grey_in_video_range_is_white_on_every_lane(self) -> None:
        stated = FormatExtensions(colorRange="video")
        with self.client.create_source("grey", 64, 48, "gray", extensions=stated) as source:
            for rendition in ("gray", "rgb", "rgb:32x24", "bgr,rotate=90", "gray16", "rgb48"):
                frame = self.sent_and_seen(source, bytes([16, 235]) * (32 * 48), rendition)
                pixels = memoryview(bytes(frame.payload)).cast("H" if frame.format in ("Y16", "RGB6") else "B")
                most = max(pixels)
                if rendition == "rgb:32x24":
                    self.assertAlmostEqual(most, 127, delta=2)
                else:
                    self.assertGreaterEqual(most, 254 * (257 if pixels.format == "H" else 1), rendition)
        for wrong in ("RGGB", "Y10", "gray16", "Z16"):
            with self.assertRaisesRegex(camerabus.InvalidParams, "colorRange"):
                self.client.create_source("grey", 64, 48, wrong, extensions=stated)

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_an_edge_of_colours_stays_where_it_is(self) -> None:
        # Red on the left and blue on the right, with the chroma of BT.601.
        red, blue = (81, 90, 240), (41, 240, 110)
        pairs = {side: bytes((y, u, y, v)) for side, (y, u, v) in (("red", red), ("blue", blue))}
        yuyv = (pairs["red"] * 16 + pairs["blue"] * 16) * 48
        chroma = (bytes(red[1:]) * 16 + bytes(blue[1:]) * 16) * 24
        nv12 = (bytes([red[0]]) * 32 + bytes([blue[0]]) * 32) * 48 + chroma
        for pixels, picture in (("yuyv", yuyv), ("nv12", nv12)):
            with self.client.create_source("edge", 64, 48, pixels) as source:
                whole = self.picture(source, picture, "rgb")
                for x, y in ((16, 10), (17, 10), (20, 11), (21, 11)):
                    part = self.picture(source, picture, f"rgb,crop=16x16+{x}+{y}")
                    self.check_same(part, whole.crop((x, y, x + 16, y + 16)), f"{pixels} at {x},{y}")
                for angle, turn in ((90, Image.Transpose.ROTATE_270), (270, Image.Transpose.ROTATE_90)):
                    self.check_same(self.picture(source, picture, f"rgb,rotate={angle}"), whole.transpose(turn), pixels)

    def picture(self, source: camerabus.Source, picture: bytes, rendition: str) -> Image.Image:
        frame = self.sent_and_seen(source, picture, rendition)
        return Image.frombytes("RGB", (frame.width, frame.height), bytes(frame.payload))

    def check_same(self, found: Image.Image, wanted: Image.Image, what: str) -> None:
        most = max(high for _, high in ImageChops.difference(found, wanted).getextrema())
        self.assertLessEqual(most, 2, what)

    def test_what_is_made_of_a_turned_source_is_upright(self) -> None:
        picture = bytes(64) + bytes([255]) * 64
        with self.client.create_source("turned", 16, 8, "gray", orientation=90, mirrored=True) as source:
            for rendition in ("native", "gray"):
                frame = self.sent_and_seen(source, picture, rendition)
                if rendition == "native":
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width), (90, True, 16))
                else:
                    # Turned clockwise the upper half is on the right, and mirrored then on the left.
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width, frame.height), (0, False, 8, 16))
                    self.assertEqual(bytes(frame.payload[:8]), bytes(4) + bytes([255]) * 4)

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_a_crop_is_that_part_of_the_picture(self) -> None:
        whole = Image.radial_gradient("L").resize((161, 121))
        whole = Image.merge("RGB", (whole, whole.transpose(Image.Transpose.ROTATE_180), whole.point(lambda v: 255 - v)))
        picture = whole.tobytes()
        with self.client.create_source("cropped", 161, 121, "rgb") as source:
            for width, height, x, y in ((161, 121, 0, 0), (64, 48, 32, 24), (33, 27, 101, 71), (1, 1, 160, 120)):
                crop = f"crop={width}x{height}+{x}+{y}"
                wanted = whole.crop((x, y, x + width, y + height))
                with self.subTest(crop):
                    frame = self.sent_and_seen(source, picture, f"rgb,{crop}")
                    self.assertEqual((frame.width, frame.height, frame.rendition), (width, height, f"rgb;{crop}"))
                    self.assertEqual(bytes(frame.payload), wanted.tobytes())
                    # It is turned after it is cut, and one spelling is on the wire.
                    turned = self.sent_and_seen(source, picture, f"rgb,{crop},rotate=90")
                    self.assertEqual(turned.rendition, f"rgb;{crop};rotate=90")
                    self.assertEqual(bytes(turned.payload), wanted.transpose(Image.Transpose.ROTATE_270).tobytes())
                    encoded = self.sent_and_seen(source, picture, f"jpeg;q=95;{crop}")
                    got = Image.open(io.BytesIO(bytes(encoded.payload)))
                    self.assertEqual(got.size, (width, height))
                    self.assertLess(self.far(got, wanted), 3)
            # As ffmpeg cuts and scales.
            filtered = subprocess.run(
                ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "161x121", "-i", "-", "-vf",
                 "crop=100:80:31:21,scale=50:40:flags=area", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                input=picture, capture_output=True, check=True,
            ).stdout
            frame = self.sent_and_seen(source, picture, "rgb:50x40;crop=100x80+31+21")
            self.assertLess(self.far(Image.frombytes("RGB", (50, 40), bytes(frame.payload)),
                                     Image.frombytes("RGB", (50, 40), filtered)), 2)
            with self.assertRaises(camerabus.FormatUnsupported) as refused:
                self.sent_and_seen(source, picture, "rgb;crop=100x80+62+0")
            self.assertEqual(refused.exception.data["nearest"], {"width": 100, "height": 80, "x": 61, "y": 0})

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_a_crop_of_a_jpeg_is_that_part_of_the_picture(self) -> None:
        gradient = Image.radial_gradient("L").resize((160, 120))
        inks = Image.merge("CMYK", (gradient, gradient.rotate(180), gradient.point(lambda v: 255 - v), gradient))
        for whole in (inks, inks.convert("RGB"), gradient):
            with self.subTest(whole.mode), self.client.create_source("pressed", 160, 120, "jpeg") as source:
                file = io.BytesIO()
                whole.save(file, "JPEG", quality=95)
                decoded = Image.open(file).convert("RGB")
                for x, y, size in ((64, 32, ""), (31, 17, ""), (64, 32, ":32x24"), (31, 17, ":33x21")):
                    frame = self.sent_and_seen(source, file.getvalue(), f"rgb{size},crop=64x48+{x}+{y}")
                    wanted = decoded.crop((x, y, x + 64, y + 48)).resize((frame.width, frame.height))
                    got = Image.frombytes("RGB", (frame.width, frame.height), bytes(frame.payload))
                    self.assertLess(self.far(got, wanted), 3, (x, y, size))

    def far(self, one: Image.Image, other: Image.Image) -> float:
        return max(ImageStat.Stat(ImageChops.difference(one.convert("RGB"), other)).mean)

    def test_a_frame_of_another_size_is_refused_here(self) -> None:
        with self.client.create_source("small", 8, 8, "rgb") as source:
            for wrong in (b"", bytes(191), bytes(193)):
                with self.assertRaises(ValueError):
                    source.send(wrong)
            self.assertTrue(source.send(bytearray(192)))
        with self.assertRaises(ValueError):
            source.send(bytes(192))

    def test_an_array_of_another_shape_is_refused_here(self) -> None:
        with self.client.create_source("wide", 16, 8, "rgb") as source:
            pixels = memoryview(bytes(384))
            for wrong in (pixels.cast("B", (16, 8, 3)), pixels.cast("b", (8, 16, 3)), pixels.cast("B", (8, 48))):
                with self.assertRaisesRegex(ValueError, r"the shape \(8, 16, 3\)"):
                    source.send(wrong)
            self.assertTrue(source.send(pixels.cast("B", (8, 16, 3))))

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_samples_of_more_than_8_bits_arrive_as_they_were_sent(self) -> None:
        # Odd sides: none of these pixels share anything.
        samples = (numpy.arange(33 * 17, dtype=numpy.uint32) * 40503 % 65536).astype(numpy.uint16).reshape(17, 33)
        for format, bits in (("gray16", 16), ("Y10", 10), ("Y12", 12), ("Z16", 16), ("RG12", 12), ("GB16", 16)):
            with self.subTest(format), self.client.create_source("deep", 33, 17, format) as source:
                sent = samples >> (16 - bits)
                self.assertEqual(source.frame_bytes, 33 * 17 * 2)
                frame = self.sent_and_seen(source, sent)
                self.assertEqual(frame.format, {"gray16": "Y16"}.get(format, format))
                self.assertEqual(frame.array().dtype, numpy.uint16)
                numpy.testing.assert_array_equal(frame.array(), sent)
                self.assertEqual(frame.extensions.bitsPerComponent, bits)
                self.assertEqual(frame.extensions.alignment, "low" if bits < 16 else None)
                for wrong in (sent.astype(numpy.uint8), sent.astype(numpy.int16), sent[:, 1:], sent.reshape(33, 17)):
                    with self.assertRaisesRegex(ValueError, r"the shape \(17, 33\)"):
                        source.send(wrong)
        with self.client.create_source("deep", 33, 17, "Y16 -BE") as source:
            with self.assertRaises(ValueError):
                source.send(samples)
            numpy.testing.assert_array_equal(self.sent_and_seen(source, samples.astype(">u2")).array(), samples)
        with self.client.create_source("deep", 33, 17, "RGGB") as source:
            numpy.testing.assert_array_equal(
                self.sent_and_seen(source, samples.astype(numpy.uint8)).array(), samples.astype(numpy.uint8)
            )

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_depth_has_its_unit_and_is_matched_with_colour(self) -> None:
        stated = FormatExtensions(metersPerStep=0.001)
        with (
            self.client.create_source("depth", 32, 24, "Z16", fps=30, extensions=stated) as depth,
            self.client.create_source("colour", 64, 48, "bgr", fps=30) as colour,
        ):
            self.client.set_rig("rgbd", "depth", "colour", tolerance=0.25)
            self.addCleanup(self.client.delete_rig, "rgbd")

            def send(number: int, now: int) -> None:
                depth.send(numpy.full((24, 32), number % 256 * 256 + 7, numpy.uint16), timestamp=now)
                colour.send(bytes([number % 256]) * (64 * 48 * 3), timestamp=now)

            with (
                self.client.frame_sets("rgbd", timeout=TIMEOUT) as sets,
                closing(self.while_sending(sets, send)) as coming,
            ):
                # One camera may begin a frame before the other.
                for found in islice((one for one in coming if set(one.frames) == {"depth", "colour"}), 3):
                    near, seen = found.frames["depth"], found.frames["colour"]
                    self.assertEqual(near.timestamp.monotonic, seen.timestamp.monotonic)
                    self.assertEqual((near.format, near.extensions.metersPerStep), ("Z16", 0.001))
                    self.assertIsNone(seen.extensions.metersPerStep)
                    # What was sent together is what comes together.
                    self.assertEqual(int(near.array()[0, 0]) // 256, int(seen.array()[0, 0, 0]))
            # Shown as grey it is no depth any more.
            shown = self.sent_and_seen(depth, numpy.full((24, 32), 0x4040, numpy.uint16), "gray")
            self.assertEqual(set(bytes(shown.payload)), {0x40})
            self.assertIsNone(shown.extensions.metersPerStep)
        with self.assertRaisesRegex(camerabus.InvalidParams, "metersPerStep"):
            self.client.create_source("grey", 32, 24, "gray16", extensions=stated)

    def test_names_are_one_s_own(self) -> None:
        with self.client.create_source("mine", 8, 8, "gray") as source:
            with self.assertRaises(camerabus.DeviceBusy):
                self.client.create_source("mine", 16, 8, "gray")
            # The same again, as if the answer had been lost.
            self.assertEqual(self.client.create_source("mine", 8, 8, "gray").device, source.device)
        with self.assertRaises(camerabus.InvalidParams):
            self.client.create_source("", 8, 8)
        with self.assertRaises(camerabus.LimitExceeded):
            self.client.create_source("huge", 16384, 16384)

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncClient(RUNTIME_DIR) as client:
                async with client.create_source("later", 8, 8, "gray") as source:
                    async with client.frames(source.device, limit=1) as frames:
                        topic = f"state/device/{source.device}/"
                        async with client.mirror(topic) as mirror:
                            await mirror.wait(lambda state: state[topic]["isStreaming"], TIMEOUT)
                        self.assertTrue(await source.send(bytes(range(64))))
                        async for frame in frames:
                            self.assertEqual(bytes(frame.payload), bytes(range(64)))
                source = await client.create_source("later", 8, 8, "gray")
                await source.close()

        asyncio.run(asyncio.wait_for(run(), TIMEOUT))
        self.assertTrue(self.gone("later"))

    def test_the_example(self) -> None:
        example = Path(__file__).resolve().parents[2] / "Protocol" / "python" / "examples" / "filter.py"
        command = [sys.executable, str(example), self.first, "exchanged"]
        with subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True) as program:
            try:
                assert program.stdout is not None
                self.assertIn("exchanged", program.stdout.readline())
                with self.client.frames("exchanged", rendition="jpeg", limit=2, timeout=TIMEOUT) as frames:
                    self.assertEqual({frame.width for frame in frames}, {640})
            finally:
                program.kill()
