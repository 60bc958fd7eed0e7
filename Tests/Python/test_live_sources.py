"""Frames of our own as a device."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import camerabus
from camerabus import AsyncClient
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
