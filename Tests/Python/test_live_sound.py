"""Microphones on a real bus."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import struct
import time
from typing import Sequence

import camerabus
from camerabus import AsyncClient
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class Sound(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        microphones = self.client.devices("audio")
        if not microphones or microphones[0].driver != "virtual":
            self.skipTest("the bus has no virtual microphone")
        self.mic = microphones[0].id
        # Tests share one bus, and a session of a camera that looks back has it listen there, also when it is over.
        with self.client.lock(self.mic, wait=TIMEOUT):
            self.client.configure(self.mic, controls={"data_source": "front"})

    def test_sound_is_whole_and_in_its_order(self) -> None:
        device = self.client.device(self.mic)
        self.assertEqual(
            (device.mediaType, device.activeFormat.sampleFormat, device.activeFormat.rate), ("audio", "s16", 48000)
        )
        self.assertEqual([source.id for source in device.dataSources], ["front", "back"])
        with self.client.sound(self.mic, limit=40, timeout=TIMEOUT) as sounds:
            pieces = list(sounds)
        self.assertEqual((len(pieces), sounds.lost), (40, {self.mic: 0}))
        for before, after in zip(pieces, pieces[1:]):
            self.assertEqual(
                (after.firstFrame, after.sequence), (before.firstFrame + before.frames, before.sequence + 1)
            )
            self.assertEqual(after.lost, 0)
            taken = after.timestamp.monotonic - before.timestamp.monotonic
            self.assertLess(abs(taken - before.frames * 1_000_000_000 // before.rate), 2_000_000)
        first = pieces[0]
        self.assertEqual((first.device, first.rendition, first.channels), (self.mic, "native", 2))
        samples = [value for piece in pieces for (value, _) in struct.iter_unpack("<hh", piece.payload)]
        self.assertGreater(self.share(samples, 440, first.rate), 0.08)
        self.assertLess(self.share(samples, 600, first.rate), 0.03)

    def test_sound_in_shared_memory_is_that_of_messages(self) -> None:
        path = f"{self.client.runtime_dir}/media/{self.mic}.ring"
        with camerabus.SoundRingConnection(path) as ring, self.client.sound(self.mic, timeout=TIMEOUT) as sounds:
            read: list[camerabus.Sound] = []
            while len(read) < 40:
                piece = ring.next(TIMEOUT)
                assert piece is not None and (kept := piece.copy()) is not None
                read.append(kept)
            for before, after in zip(read, read[1:]):
                self.assertEqual(
                    (after.firstFrame, after.sequence), (before.firstFrame + before.frames, before.sequence + 1)
                )
                self.assertEqual((after.lost, after.stream), (0, before.stream))
            known = {piece.firstFrame: piece for piece in read}
            message = next(sound for sound in sounds if sound.firstFrame in known)
            same = known[message.firstFrame]
            self.assertEqual(bytes(same.payload), bytes(message.payload))
            self.assertEqual(dict(same.header) | {"sequence": 0}, dict(message.header) | {"sequence": 0})
            assert ring.reader is not None
            self.assertEqual((ring.reader.skipped, ring.reader.late, ring.reader.unusable), (0, 0, 0))

    def share(self, samples: Sequence[float], frequency: float, rate: int) -> float:
        """How much of full scale is of that frequency."""
        step = 2 * math.pi * frequency / rate
        real = sum(value * math.cos(step * index) for index, value in enumerate(samples))
        imaginary = sum(value * math.sin(step * index) for index, value in enumerate(samples))
        return 2 * math.hypot(real, imaginary) / len(samples) / 32768

    def test_a_rendition_is_made_of_it(self) -> None:
        with self.client.sound(self.mic, rendition="f32:16000x1", limit=40, timeout=TIMEOUT) as sounds:
            pieces = list(sounds)
        self.assertEqual((len(pieces), sounds.lost), (40, {self.mic: 0}))
        for before, after in zip(pieces, pieces[1:]):
            self.assertEqual(
                (after.firstFrame, after.sequence), (before.firstFrame + before.frames, before.sequence + 1)
            )
            taken = after.timestamp.monotonic - before.timestamp.monotonic
            self.assertLess(abs(taken - before.frames * 1_000_000_000 // before.rate), 2_000_000)
        first = pieces[0]
        self.assertEqual(
            (first.rendition, first.sampleFormat, first.rate, first.channels), ("f32:16000x1", "f32", 16000, 1)
        )
        samples = [value * 32768 for piece in pieces for (value,) in struct.iter_unpack("<f", piece.payload)]
        for frequency in (440, 880):  # two channels, mixed
            self.assertGreater(self.share(samples, frequency, first.rate), 0.04)
        self.assertLess(self.share(samples, 600, first.rate), 0.02)

    def test_arrays(self) -> None:
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("there is no NumPy")
        with self.client.sound(self.mic, limit=1, timeout=TIMEOUT) as sounds:
            piece = next(sounds)
        self.assertEqual(piece.array().shape, (piece.frames, 2))
        self.assertEqual(piece.array().tobytes(), bytes(piece.payload))

    def test_levels(self) -> None:
        with self.client.levels(self.mic, limit=3, timeout=TIMEOUT) as levels:
            seen = list(levels)
        self.assertEqual([level.sequence - seen[0].sequence for level in seen], [0, 1, 2])
        for level in seen:
            self.assertEqual(len(level.average), 2)
            self.assertTrue(all(-24 < value < 0 for value in (*level.average, *level.peak)), level)

    def test_a_change_under_a_lock_shows_in_the_sound(self) -> None:
        with self.client.sound(self.mic, timeout=TIMEOUT) as sounds:
            self.assertEqual(next(sounds).rate, 48000)
            with self.client.lock(self.mic, wait=TIMEOUT):
                answer = self.client.configure(self.mic, activeFormat={"rate": 16000, "channels": 1})
                self.assertEqual(answer.applied[self.mic]["activeFormat"]["rate"], 16000)
                while (piece := next(sounds)).rate != 16000:
                    pass
                self.assertEqual((piece.channels, piece.lost), (1, 0))
                self.client.configure(self.mic, activeFormat={"rate": 48000, "channels": 2})

    def test_a_session_has_it_beside_a_camera(self) -> None:
        outputs = ["videoData", {"type": "audioData", "format": "f32", "rate": 16000, "channels": 1}]
        microphone = {"device": self.mic, "preferredDataSource": "front"}
        with self.client.session(self.first, microphone, outputs=outputs, preset="640x480") as session:
            self.assertEqual(session.delivery().device, self.first)
            got = session.delivery("audioData")
            self.assertEqual(
                (got.device, got.mediaType, got.rendition, got.width), (self.mic, "audio", "f32:16000x1", None)
            )
            with self.client.sound(got.device, rendition=got.rendition or "", limit=3, timeout=TIMEOUT) as sounds:
                self.assertEqual([(piece.rate, piece.channels) for piece in sounds], [(16000, 1)] * 3)
            with session.frames(limit=1, timeout=TIMEOUT) as frames:
                self.assertEqual(next(frames).device, self.first)

    def test_what_a_microphone_is_not(self) -> None:
        with self.assertRaises(camerabus.FormatUnsupported):
            next(self.client.sound(self.mic, rendition="s16:1000x1", timeout=TIMEOUT))
        with self.assertRaises(camerabus.FormatUnsupported):
            next(self.client.sound(self.first, timeout=TIMEOUT))
        with self.assertRaises(camerabus.ControlUnsupported):
            self.client.focus(self.mic, (0.5, 0.5))
        with self.assertRaises(camerabus.DeviceNotFound):
            self.client.sound("nobody")

    def test_a_worker_that_is_killed(self) -> None:
        with self.client.sound(self.mic, timeout=TIMEOUT) as sounds:
            stream = next(sounds).stream
            os.kill(self.client.device(self.mic).worker.pid, signal.SIGKILL)
            until = time.monotonic() + TIMEOUT
            while next(sounds).stream == stream:
                self.assertLess(time.monotonic(), until)

    def test_asyncio(self) -> None:
        async def listen() -> list[camerabus.Sound]:
            async with AsyncClient(RUNTIME_DIR) as client:
                level = [level async for level in client.levels(self.mic, limit=1, timeout=TIMEOUT)]
                self.assertEqual(len(level), 1)
                return [piece async for piece in client.sound(self.mic, limit=5, timeout=TIMEOUT)]

        pieces = asyncio.run(listen())
        self.assertEqual([piece.lost for piece in pieces], [0] * 5)
