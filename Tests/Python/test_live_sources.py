"""Frames of our own as a device."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import camerabus
from camerabus import AsyncClient, FormatExtensions
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class Sources(LiveTestCase):
    def gone(self, device: str) -> bool:
        return device not in [one.id for one in self.client.devices()]

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
                with self.client.frames(source.device, rendition=rendition, limit=1) as frames:
                    self.streaming(source.device)
                    while not source.send(pair * (32 * 48)):
                        pass
                    frame = next(frames)
                self.assertEqual(frame.extensions.pixelAspectRatio, Fraction(64, 45))
                if wanted is None:
                    self.assertEqual(frame.extensions.yCbCrMatrix, matrix)
                    self.assertEqual(frame.extensions.colorRange, color_range)
                else:
                    found = bytes(frame.payload[: len(wanted)])
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(found, wanted)), 2, (rendition, list(found)))

    def test_what_is_made_of_a_turned_source_is_upright(self) -> None:
        picture = bytes(64) + bytes([255]) * 64
        with self.client.create_source("turned", 16, 8, "gray", orientation=90, mirrored=True) as source:
            for rendition in ("native", "gray"):
                with self.client.frames(source.device, rendition=rendition, limit=1) as frames:
                    self.streaming(source.device)
                    while not source.send(picture):
                        pass
                    frame = next(frames)
                if rendition == "native":
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width), (90, True, 16))
                else:
                    # Turned clockwise the upper half is on the right, and mirrored then on the left.
                    self.assertEqual((frame.orientation, frame.mirrored, frame.width, frame.height), (0, False, 8, 16))
                    self.assertEqual(bytes(frame.payload[:8]), bytes(4) + bytes([255]) * 4)

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
