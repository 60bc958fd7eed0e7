"""Frames, by message and in shared memory."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
import unittest

import zmq

import camerabus
import vectors
from camerabus import CaptureError
from camerabus.subscription import Subscription
from live import Image, LiveTestCase, read_luma, TIMEOUT


class Frames(LiveTestCase):
    def test_two_cameras(self) -> None:
        seen: dict[str, list[tuple[str, int, int]]] = {self.first: [], self.second: []}
        with self.client.frames(self.first, self.second, timeout=TIMEOUT) as frames:
            until = time.monotonic() + TIMEOUT
            while min(map(len, seen.values())) < 6 or sum(map(len, seen.values())) < 40:
                self.assertLess(time.monotonic(), until)
                frame = next(frames)
                seen[frame.device].append((frame.stream, frame.sequence, frame.timestamp.monotonic))
                self.assertEqual(len(frame.payload), max(plane.offset + plane.bytes for plane in frame.planes))
        for rows in seen.values():
            self.assertEqual(len({stream for stream, _, _ in rows}), 1)
            self.assertEqual(rows, sorted(rows, key=lambda row: row[1]))
            self.assertEqual(sorted({time for _, _, time in rows}), [time for _, _, time in rows])

    def test_renditions(self) -> None:
        shapes = {
            "bgr:320x180": (320 * 3, 1), "gray:320x180": (320, 1), "yuyv:320x180": (640, 1), "nv12:320x180": (320, 2),
            "i420:320x180": (320, 3),
        }
        for rendition, (stride, planes) in shapes.items():
            with (
                self.subTest(rendition),
                self.client.frames(self.first, rendition=rendition, limit=1, timeout=TIMEOUT) as frames,
            ):
                [frame] = frames
                self.assertEqual((frame.width, frame.height, len(frame.planes)), (320, 180, planes))
                self.assertGreaterEqual(frame.planes[0].stride, stride)
                self.assertEqual(frame.topic, f"frame/{self.first}/{rendition}/")

    @unittest.skipIf(Image is None, "Pillow is not there")
    def test_pictures_are_pictures(self) -> None:
        with self.client.frames(self.first, rendition="jpeg:640x360@10;q=70", limit=3, timeout=TIMEOUT) as frames:
            for frame in frames:
                with Image.open(io.BytesIO(frame.payload)) as picture:
                    picture.load()
                    self.assertEqual(picture.size, (640, 360))

    @unittest.skipIf(read_luma is None, "the picture counter's reader is not there")
    def test_the_picture_is_the_one_that_the_header_says(self) -> None:
        cameras: dict[str, set[int]] = {self.first: set(), self.second: set()}
        with self.client.frames(self.first, self.second, rendition="gray:640x0", timeout=TIMEOUT) as frames:
            until, count = time.monotonic() + TIMEOUT, 0
            while count < 20 or not all(cameras.values()):
                self.assertLess(time.monotonic(), until)
                frame, count = next(frames), count + 1
                picture = read_luma(frame.plane(0), frame.width, frame.height, frame.planes[0].stride)
                self.assertIsNotNone(picture)
                self.assertEqual(picture.counter, frame.captureSequence % 2**32)
                self.assertLessEqual(abs(picture.clock - frame.timestamp.monotonic // 1000), 1)
                cameras[frame.device].add(picture.camera)
        self.assertEqual(sorted(map(len, cameras.values())), [1, 1])
        self.assertNotEqual(cameras[self.first], cameras[self.second])

    def test_what_can_t_be_made_is_told(self) -> None:
        with self.assertRaises(camerabus.FormatUnsupported) as caught:
            next(self.client.frames(self.first, rendition="bgr:16384x16384", timeout=TIMEOUT))
        self.assertTrue(caught.exception.nearest)

    def test_a_loop_that_raised_leaves_no_subscription(self) -> None:
        kept: list[BaseException] = []
        for rendition in ("bgr:16384x16384", "gray:64x0"):
            try:
                for frame in self.client.frames(self.first, rendition=rendition, timeout=TIMEOUT):
                    raise ValueError(frame)
            except (CaptureError, ValueError) as error:
                kept.append(error)
        self.assertEqual(len(kept), 2)
        self.assertNothingIsSubscribed(kept)

    def assertNothingIsSubscribed(self, kept: list[BaseException]) -> None:
        until = time.monotonic() + TIMEOUT
        while any(one.pid == os.getpid() for one in self.client.who(self.first).subscribers):
            self.assertLess(time.monotonic(), until, kept)

    def test_a_loop_that_raised_in_asyncio_leaves_no_subscription(self) -> None:
        async def look() -> BaseException:
            async with camerabus.AsyncClient() as client:
                try:
                    async for frame in client.frames(self.first, rendition="bgr:16384x16384", timeout=TIMEOUT):
                        self.fail(frame)
                except CaptureError as error:
                    self.assertNothingIsSubscribed([error])
                    return error
            raise AssertionError("nothing was refused")

        self.assertIsInstance(asyncio.run(look()), camerabus.FormatUnsupported)

    def test_too_many_subscriptions_are_refused_in_words(self) -> None:
        topics = [f"frame/{self.first}/gray:{number}x0/" for number in range(1, 1100)]
        endpoint = self.client._open.media_endpoint(self.first)
        with zmq.Context() as context:
            subscription = Subscription(context, endpoint, [], 2000)
            try:
                while not subscription.begin():
                    subscription.socket.poll(TIMEOUT * 1000)
                for part in (topics[:500], topics[500:]):
                    for topic in part:
                        subscription.socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
                    subscription.probe()
                    begun = asked = time.monotonic()
                    while subscription.is_probing:
                        self.assertLess(time.monotonic(), begun + TIMEOUT)
                        # The answer is lost like any message when frames have filled the queue.
                        if time.monotonic() > asked + 1:
                            subscription.probe()
                            asked = time.monotonic()
                        subscription.socket.poll(1000)
                        subscription.receive()
            except camerabus.LimitExceeded as error:
                self.assertEqual(error.data["limit"], "subscriptions")
            else:
                self.fail("nothing was refused")
            finally:
                subscription.close()

    def test_renditions_that_are_none(self) -> None:
        file = vectors.files().get("renditions") if (vectors.PROTOCOL / "vectors").is_dir() else None
        if file is None:
            self.skipTest("Protocol/vectors is not there")
        for case in file["cases"]:
            text = vectors.frame(case["frames"][0]).decode(errors="replace")
            # The client sends a comma as the bus takes it.
            if case["valid"] or "\N{REPLACEMENT CHARACTER}" in text or "," in text:
                continue
            with self.subTest(case["name"]), self.assertRaises(CaptureError) as caught:
                next(self.client.frames(self.first, rendition=text, timeout=TIMEOUT))
            self.assertEqual(
                (caught.exception.reason, caught.exception.data.get("path")), ("invalidParams", "rendition")
            )

    def test_a_stopped_reader_costs_others_nothing(self) -> None:
        program = (
            "import sys\nfrom camerabus import Client\n"
            "for frame in Client().frames(sys.argv[1], rendition='gray:160x90'): print(frame.sequence, flush=True)"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", program, self.first], env=self.environment(), stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait, TIMEOUT)
        self.addCleanup(reader.kill)
        self.assertTrue(reader.stdout.readline())
        reader.send_signal(signal.SIGSTOP)
        with self.client.frames(self.first, rendition="gray:160x90", limit=60, timeout=TIMEOUT) as frames:
            numbers = [frame.captureSequence for frame in frames]
            self.assertEqual(len(numbers), 60)
        reader.send_signal(signal.SIGCONT)
        self.assertTrue(reader.stdout.readline())

    def test_frames_come_again_when_the_worker_was_killed(self) -> None:
        with self.client.frames(self.first, timeout=TIMEOUT) as frames, self.client.frames(self.second) as others:
            stream, other = next(frames).stream, next(others).stream
            worker = self.client.device(self.first).worker
            assert worker is not None and worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            frame = next(frames)
            while frame.stream == stream:
                frame = next(frames)
            self.assertEqual(next(others).stream, other)


class SharedFrames(LiveTestCase):
    @unittest.skipIf(read_luma is None, "the picture counter's reader is not there")
    def test_the_picture_is_the_one_that_the_header_says(self) -> None:
        with self.client.frames(
            self.first, self.second, rendition="gray:640x0", limit=20, timeout=TIMEOUT, shared=True
        ) as frames:
            for frame in frames:
                picture = read_luma(bytes(frame.plane(0)), frame.width, frame.height, frame.planes[0].stride)
                copy = frame.copy()
                if not frame.is_intact():
                    continue
                self.assertTrue(frame.payload.readonly)
                self.assertEqual(
                    (picture.counter, copy.captureSequence), (frame.captureSequence % 2**32, frame.captureSequence)
                )
                self.assertEqual(frame.topic, f"buffer/{frame.device}/gray:640x0/")
                self.assertTrue(repr(frame).startswith(f"<RingFrame {frame.device} gray:640x0 "), repr(frame))
            self.assertEqual(list(frames.late), [self.first, self.second])

    def test_what_can_t_be_made_is_told(self) -> None:
        with self.assertRaises(camerabus.FormatUnsupported):
            next(self.client.frames(self.first, rendition="bgr:16384x16384", timeout=TIMEOUT, shared=True))

    def test_frames_come_again_in_another_format_and_when_the_worker_was_killed(self) -> None:
        formats = [each for each in self.client.formats(self.second) if each.pixelFormat == "YUYV"]
        with self.client.frames(self.second, timeout=TIMEOUT, shared=True) as frames:
            for chosen in formats[:2]:
                with self.client.lock(self.second):
                    self.client.configure(self.second, activeFormat=chosen.id)
                frame = next(frames)
                while (frame.width, frame.height, frame.format) != (chosen.width, chosen.height, "YUYV"):
                    frame = next(frames)
                self.assertEqual(len(frame.payload), sum(plane.bytes for plane in frame.planes))
            stream, worker = frame.stream, self.client.device(self.second).worker
            assert worker is not None and worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            while frame.stream == stream:
                frame = next(frames)
            self.assertTrue(frame.is_intact() or next(frames).payload)

    def test_a_frame_that_was_overwritten_says_so(self) -> None:
        with self.client.frames(self.first, rendition="gray:64x36", timeout=TIMEOUT, shared=True) as frames:
            old = next(frames)
            while old.is_intact():
                next(frames)
            self.assertIsNone(old.copy())
            self.assertGreaterEqual(frames.late[self.first], 1)

    def test_a_reader_that_was_stopped_says_how_many_it_missed(self) -> None:
        program = (
            "import sys\nfrom camerabus import Client\n"
            "for frame in Client().frames(sys.argv[1], shared=True): print(frame.captureSequence, frame.lost, "
            "flush=True)"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", program, self.first], env=self.environment(), stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait, TIMEOUT)
        self.addCleanup(reader.kill)
        self.assertTrue(reader.stdout.readline())
        with (
            self.client.frames(self.first, timeout=TIMEOUT, shared=True) as shared,
            self.client.frames(self.first, timeout=TIMEOUT) as copied,
            camerabus.RingConnection(f"{self.client.runtime_dir}/media/{self.first}.ring") as ring,
        ):
            begin = next(copied).captureSequence
            reader.send_signal(signal.SIGSTOP)
            end, lost, number = begin, [0, 0], -1
            while end < begin + 90:
                frame, other = next(shared), next(copied)
                self.assertEqual((frame.stream, other.stream), (frame.stream, frame.stream))
                fresh = ring.next(TIMEOUT)
                self.assertIsNotNone(fresh)
                end, lost = other.captureSequence, [lost[0] + frame.lost, lost[1] + other.lost]
            reader.send_signal(signal.SIGCONT)
        missed = 0
        while number < end:
            number, more = map(int, reader.stdout.readline().split())
            missed += more
        self.assertGreater(missed, 60)
        self.assertLess(max(lost), missed, "those who go on get what comes")

    def test_asyncio(self) -> None:
        async def numbers() -> list[int]:
            async with camerabus.AsyncClient(self.client.runtime_dir) as client:
                async with client.frames(
                    self.first, rendition="gray:64x36", limit=5, timeout=TIMEOUT, shared=True
                ) as frames:
                    return [frame.sequence async for frame in frames]

        seen = asyncio.run(numbers())
        self.assertEqual((len(seen), seen), (5, sorted(seen)))
