"""Frames: only the newest, with what was lost, of several devices in turn."""

from __future__ import annotations

import json
import threading
import unittest
from typing import Any
from unittest import mock

from camerabus import (
    BusTimeout,
    CaptureError,
    Client,
    DeviceDisconnected,
    DeviceNotFound,
    FormatUnsupported,
    Frame,
    Unauthorized,
    WorkerCrashed,
    errors,
)
from camerabus.steps import run
from camerabus.frame_feed import FrameFeed
from fake_bus import BusTestCase, device_value, frame_header

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


class Part(bytes):
    """A part of a message that no socket has seen."""

    bytes = property(lambda self: self)
    buffer = property(memoryview)


class Frames(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def settled(self) -> None:
        """Returns when all that was published before has reached this process: libzmq keeps order, so ask for an echo
        of it.
        """
        with self.client.frames("cam0", rendition="echo"), self.client.frames("cam1", rendition="echo"):
            pass

    def test_the_subscription_is_in_force_when_the_call_returns(self) -> None:
        with self.client.frames("cam0", timeout=5) as frames:
            self.assertIn(("+", "frame/cam0/native/"), self.bus.subscriptions)
            self.bus.send_frame("cam0", 1, payload=b"0123456789abcdef")
            frame = next(frames)
        self.assertEqual((frame.device, frame.sequence, frame.captureSequence, frame.generation), ("cam0", 1, 2, 3))
        self.assertEqual(
            (frame.format, frame.width, frame.height, frame.mirrored, frame.dropped), ("YUYV", 4, 2, False, 0)
        )
        self.assertEqual((frame.timestamp.realtime, frame.timestamp.source), (1789000000123456789, "startOfExposure"))
        self.assertEqual(bytes(frame.payload), b"0123456789abcdef")
        self.assertIsInstance(frame.payload, memoryview)
        self.assertEqual(bytes(frame.plane(0)), b"0123456789abcdef")
        self.assertIsNone(frame.error)

    def test_pictures_that_build_on_one_another_come_one_after_the_other(self) -> None:
        with self.client.frames("cam0", timeout=5) as frames:
            for sequence in range(4):
                self.bus.send_frame("cam0", sequence, payload=b"0123456789abcdef", keyframe=sequence == 1)
                # One has left before the next: a publisher has room for two.
                self.settled()
            # Not the newest, since each is needed for the next; and not the first, which needs one that came before.
            given = [next(frames) for _ in range(3)]
            self.assertEqual([(frame.sequence, frame.keyframe) for frame in given], [(1, True), (2, False), (3, False)])
            self.assertEqual(frames.lost, {"cam0": 0})

    def test_after_a_loss_they_go_on_with_a_key_frame(self) -> None:
        with self.client.frames("cam0", timeout=5) as frames:
            given = []
            # No more unread than a subscription has room for.
            for sequence in [0, 1, 3, 5, 6]:
                self.bus.send_frame("cam0", sequence, payload=b"0123456789abcdef", keyframe=sequence % 5 == 0)
                if sequence != 3:
                    given.append((next(frames).sequence, frames.lost["cam0"]))
            self.assertEqual(given, [(0, 0), (1, 0), (5, 3), (6, 3)])

    def test_leaving_ends_the_subscription(self) -> None:
        with self.client.frames("cam0"):
            pass
        self.bus.wait_for(lambda: ("-", "frame/cam0/native/") in self.bus.subscriptions)

    def test_so_does_forgetting_the_iterator(self) -> None:
        self.client.frames("cam0")
        self.bus.wait_for(lambda: ("-", "frame/cam0/native/") in self.bus.subscriptions)

    def test_only_the_newest_is_given_and_the_others_counted(self) -> None:
        with self.client.frames("cam0") as frames:
            self.bus.send_frame("cam0", 1)
            self.assertEqual(next(frames).lost, 0)
            for sequence in range(2, 40):
                self.bus.send_frame("cam0", sequence)
            self.bus.send_frame("cam0", 40)
            seen = [next(frames)]
            # The last ones may still be in the socket's buffer when the first of them is read.
            while seen[-1].sequence < 40 and len(seen) < 40:
                self.bus.send_frame("cam0", 40 + len(seen))
                seen.append(next(frames))
            self.assertEqual(sum(frame.lost + 1 for frame in seen), seen[-1].sequence - 1)
            self.assertEqual(frames.lost["cam0"], sum(frame.lost for frame in seen))
            self.assertGreater(frames.lost["cam0"], 0)

    def test_who_does_not_read_gets_no_backlog(self) -> None:
        with self.client.frames("cam0", timeout=2) as frames:
            for sequence in range(60):
                self.bus.send_frame("cam0", sequence, payload=bytes(400_000))
            seen = []
            with self.assertRaises(BusTimeout):
                while True:
                    seen.append(next(frames).sequence)
            # Two here, two at the publisher, and the parts that both are working on. Which frames these are depends on
            # when each side's thread gets the processor; how many does not.
            self.assertLess(len(seen), 20)

    def test_a_hole_is_counted_within_a_stream_only(self) -> None:
        with self.client.frames("cam0") as frames:
            for sequence, stream, lost in ((5, "s1", 0), (6, "s1", 0), (9, "s1", 2), (1, "s2", 0), (3, "s2", 1)):
                self.bus.send_frame("cam0", sequence, stream=stream)
                self.assertEqual((next(frames).lost, sequence), (lost, sequence))
            self.assertEqual(frames.lost, {"cam0": 3})

    def test_two_devices_take_turns(self) -> None:
        with self.client.frames("cam0", "cam1", limit=6) as frames:
            # cam0 always has something new; that does not keep cam1 waiting.
            for sequence in range(1, 4):
                self.bus.send_frame("cam0", sequence)
                self.bus.send_frame("cam1", sequence)
                self.settled()
                self.assertEqual({next(frames).device, next(frames).device}, {"cam0", "cam1"})
                self.bus.send_frame("cam0", sequence * 10)
            self.assertEqual([frame for frame in frames], [])

    def test_the_next_in_turn_goes_first_even_if_another_has_more(self) -> None:
        class Endless:
            def __init__(self, device: str) -> None:
                self.device, self.sequence = device, 0

            def receive(self) -> list[Part]:
                self.sequence += 1
                header = json.dumps(frame_header(self.device, self.sequence)).encode()
                return [Part(b""), Part(header), Part(bytes(16))]

        feed = FrameFeed(self.client._open, ["cam0", "cam1", "cam2"], "native", None, 1, "wait")
        feed._subscriptions = [Endless(name) for name in ("cam0", "cam1", "cam2")]  # type: ignore[misc]
        order = [run(feed.next()).device for _ in range(6)]
        feed._subscriptions.clear()
        self.assertEqual(order, ["cam0", "cam1", "cam2"] * 2)

    def test_a_fast_device_does_not_starve_a_slow_one(self) -> None:
        stop = threading.Event()

        def flood() -> None:
            sequence = 0
            while not stop.is_set():
                sequence += 1
                self.bus.send_frame("cam0", sequence)

        with self.client.frames("cam0", "cam1", timeout=10) as frames:
            flooder = threading.Thread(target=flood)
            self.addCleanup(flooder.join)
            self.addCleanup(stop.set)
            flooder.start()
            next(frames)
            self.bus.send_frame("cam1", 1)
            self.settled()
            devices = [next(frames).device for _ in range(200)]
            stop.set()
        self.assertIn("cam1", devices)

    def test_the_limit_ends_the_loop(self) -> None:
        frames = self.client.frames("cam0", limit=2)
        for sequence in (1, 2, 3):
            self.bus.send_frame("cam0", sequence)
            if sequence == 1:
                self.assertEqual(next(frames).sequence, 1)
        self.assertEqual(len(list(frames)), 1)

    def test_an_error_header_is_raised_and_the_loop_may_go_on(self) -> None:
        with self.client.frames("cam0", rendition="bgr:9999x9999") as frames:
            header = {"v": 1, "device": "cam0", "rendition": "bgr:9999x9999"}
            error = {"reason": "formatUnsupported", "message": "Too large.", "data": {"nearest": "1280x720"}}
            self.bus.send_media("cam0", "frame/cam0/bgr:9999x9999/", {**header, "error": error})
            with self.assertRaises(FormatUnsupported) as caught:
                next(frames)
            self.assertEqual((caught.exception.nearest, str(caught.exception)), ("1280x720", "Too large."))
            self.bus.send_frame("cam0", 1, rendition="bgr:9999x9999")
            self.assertEqual(next(frames).sequence, 1)

    def test_shared_frames_of_a_bus_that_has_none_come_as_usual(self) -> None:
        with self.client.frames("cam0", timeout=5, shared=True) as frames:
            self.assertIn(("+", "frame/cam0/native/"), self.bus.subscriptions)
            self.bus.send_frame("cam0", 1, payload=b"0123456789abcdef")
            frame = next(frames)
            self.assertTrue(frame.is_intact() and frame.copy())
            self.assertEqual(frames.late, {"cam0": 0})

    def test_shared_frames_come_as_usual_where_there_is_no_memory_for_them(self) -> None:
        self.bus.features = ["rings"]
        client = Client(self.bus.directory, timeout=5)
        self.addCleanup(client.close)
        with client.frames("cam0", timeout=5, shared=True) as frames:
            self.assertIn(("+", "buffer/cam0/native/"), self.bus.subscriptions)
            header = {"v": 1, "device": "cam0", "rendition": "native"}
            error: dict[str, Any] = {"reason": "internalError", "message": "Oh."}
            self.bus.send_media("cam0", "buffer/cam0/native/", {**header, "error": error})
            with self.assertRaises(CaptureError):
                next(frames)  # whatever else has failed may be over in a moment
            self.assertNotIn(("-", "buffer/cam0/native/"), self.bus.subscriptions)
            error["data"] = {"missing": "ring"}
            self.bus.send_media("cam0", "buffer/cam0/native/", {**header, "error": error})

            def publish() -> None:
                self.bus.wait_for(lambda: ("+", "frame/cam0/native/") in self.bus.subscriptions)
                self.bus.send_frame("cam0", 1, payload=b"0123456789abcdef")

            publisher = threading.Thread(target=publish)
            publisher.start()
            self.assertEqual(bytes(next(frames).payload), b"0123456789abcdef")
            publisher.join()
            # The subscription's end is a message of its own, which may come behind the frame that was asked for.
            self.bus.wait_for(lambda: ("-", "buffer/cam0/native/") in self.bus.subscriptions)

    def test_an_error_header_may_be_taken_as_a_frame(self) -> None:
        with self.client.frames("cam0", errors="frames") as frames:
            header = {"v": 1, "device": "cam0", "rendition": "native"}
            self.bus.send_media(
                "cam0", "frame/cam0/native/", {**header, "error": {"reason": "workerCrashed", "message": "x"}}
            )
            frame = next(frames)
        self.assertIsInstance(frame.error, WorkerCrashed)
        self.assertEqual((len(frame.payload), frame.planes, frame.device), (0, (), "cam0"))

    def error(self, reason: str, device: str = "cam0") -> None:
        header = {
            "v": 1, "device": device, "rendition": "native",
            "error": {"reason": reason, "message": f"{device}: {reason}"},
        }
        self.bus.send_media(device, f"frame/{device}/native/", header)

    def test_the_loop_survives_a_camera_that_goes_and_comes_back(self) -> None:
        with self.client.frames("cam0", "cam1", limit=10, timeout=10) as frames:
            for sequence, reason in enumerate(("deviceDisconnected", "workerCrashed", "deviceInUse")):
                self.bus.send_frame("cam0", sequence)
                self.assertEqual(next(frames).device, "cam0")
                self.bus.send_frame("cam1", 10 + sequence * 2)
                self.assertEqual(next(frames).device, "cam1")
                self.error(reason)
                self.bus.send_frame("cam1", 11 + sequence * 2)
                self.settled()
                self.assertEqual((next(frames).device, frames.last_error.reason), ("cam1", reason))
            self.bus.send_frame("cam0", 1, stream="s2")
            self.assertEqual([(frame.device, frame.stream, frame.lost) for frame in frames], [("cam0", "s2", 0)])

    def test_a_camera_that_says_why_is_waited_for_longer_than_the_timeout(self) -> None:
        now = 0.0

        class Unplugged:
            sockets = (None,)
            left = 10

            def receive(self) -> list[Part] | None:
                nonlocal now
                self.left -= 1
                if self.left % 2:
                    return None
                now += 9
                error = {"v": 1, "device": "cam0", "rendition": "native", "error": {"reason": "deviceDisconnected"}}
                return [
                    Part(b""), Part(json.dumps(error if self.left else frame_header("cam0", 1)).encode()),
                    Part(bytes(16)),
                ]

        feed = FrameFeed(self.client._open, ["cam0"], "native", None, 10, "wait")
        feed._subscriptions = [Unplugged()]  # type: ignore[list-item]
        feed._has_given.add("cam0")
        steps = feed.next()
        with mock.patch("time.monotonic", lambda: now):
            try:
                while True:
                    next(steps)  # its waits end at once
            except StopIteration as stop:
                self.assertEqual((stop.value.sequence, now), (1, 45))
        feed._subscriptions.clear()

    def test_what_keeps_the_first_frame_from_coming_is_raised(self) -> None:
        with self.client.frames("cam0", "cam1", timeout=10) as frames:
            self.bus.send_frame("cam1", 1)
            next(frames)
            self.error("deviceDisconnected")
            with self.assertRaises(DeviceDisconnected):
                next(frames)

    def test_what_does_not_pass_is_raised_at_any_time(self) -> None:
        with self.client.frames("cam0", timeout=10) as frames:
            self.bus.send_frame("cam0", 1)
            next(frames)
            self.error("formatUnsupported")
            with self.assertRaises(FormatUnsupported):
                next(frames)

    def test_every_error_may_be_raised(self) -> None:
        with self.client.frames("cam0", errors="raise", timeout=10) as frames:
            self.bus.send_frame("cam0", 1)
            next(frames)
            self.error("deviceDisconnected")
            with self.assertRaises(DeviceDisconnected):
                next(frames)
        with self.assertRaisesRegex(ValueError, "errors is one of wait, raise, frames, not 'ignore'"):
            self.client.frames("cam0", errors="ignore")  # type: ignore[arg-type]

    def test_what_is_no_frame_is_an_error_and_the_loop_may_go_on(self) -> None:
        with self.client.frames("cam0") as frames:
            for header, payload in ((7, b""), ({"v": 1}, b""), (frame_header("cam0", 1), b"short")):
                self.bus.send_media("cam0", "frame/cam0/native/", header, payload)
                with self.assertRaises((errors.ProtocolError, errors.VersionUnsupported)):
                    next(frames)
            self.bus.send_frame("cam0", 1)
            self.assertEqual(next(frames).sequence, 1)

    def test_frames_go_on_when_the_worker_was_restarted(self) -> None:
        with self.client.frames("cam0", timeout=10) as frames:
            self.bus.send_frame("cam0", 7)
            next(frames)
            subscribed = self.bus.subscriptions.count(("+", "frame/cam0/native/"))
            self.bus.restart_worker("cam0")

            def send() -> None:
                self.bus.wait_for(lambda: self.bus.subscriptions.count(("+", "frame/cam0/native/")) > subscribed)
                self.bus.send_frame("cam0", 1, stream="s2")

            worker = threading.Thread(target=send)
            worker.start()
            frame = next(frames)
            worker.join()
        self.assertEqual((frame.stream, frame.sequence, frame.lost), ("s2", 1, 0))

    def test_a_worker_that_comes_late_is_waited_for(self) -> None:
        path = self.bus.directory / "media" / "cam0.sock"
        self.bus.do(lambda: self.bus._publishers["cam0"].close(linger=0))
        path.unlink(missing_ok=True)
        asked = len(self.bus.asked("bus.hello"))

        def start() -> None:
            self.bus.wait_for(lambda: len(self.bus.asked("bus.hello")) > asked)
            self.bus.do(lambda: self.bus._publishers.__setitem__("cam0", self.bus._publisher("media/cam0.sock")))

        worker = threading.Thread(target=start)
        worker.start()
        with self.client.frames("cam0", timeout=10) as frames:
            worker.join()
            self.bus.send_frame("cam0", 1)
            self.assertEqual(next(frames).sequence, 1)

    def test_silence_is_explained(self) -> None:
        with self.client.frames("cam0", timeout=2) as frames, self.assertRaises(BusTimeout) as caught:
            next(frames)
        self.assertIn("cam0 delivered no frame (worker running, streaming)", str(caught.exception))

    def test_silence_of_a_device_in_trouble_is_that_trouble(self) -> None:
        error = {"reason": "deviceDisconnected", "message": "cam0 is unplugged."}
        self.bus.methods["device.get"] = lambda params: {"device": {**device_value("cam0"), "error": error}}
        with self.client.frames("cam0", timeout=2) as frames, self.assertRaises(DeviceDisconnected):
            next(frames)

    def test_a_device_that_is_not_there_is_told_at_once(self) -> None:
        with self.assertRaises(DeviceNotFound):
            self.client.frames("nosuch", timeout=60)

    def test_who_may_not_see_is_told_at_once(self) -> None:
        self.bus.authorization["video"] = "denied"
        with self.assertRaises(Unauthorized) as caught:
            self.client.frames("cam0", timeout=60)
        self.assertEqual(caught.exception.status, "denied")

    def test_a_socket_that_answers_nothing_is_not_waited_for_for_ever(self) -> None:
        self.bus.do(lambda: self.bus._publishers["cam0"].close(linger=0))
        with self.assertRaises(BusTimeout) as caught:
            self.client.frames("cam0", timeout=0.1)
        self.assertIn("did not accept the subscription", str(caught.exception))
        self.bus.do(lambda: self.bus._publishers.__setitem__("cam0", self.bus._publisher("media/cam0.sock")))

    def test_a_device_is_asked_for(self) -> None:
        with self.assertRaises(TypeError):
            self.client.frames()

    def test_heartbeats_and_others_topics_are_no_frames(self) -> None:
        with self.client.frames("cam0", timeout=2) as frames:
            self.bus.send_media("cam0", "heartbeat/", {"device": "cam0"})
            self.bus.send_frame("cam0", 1, rendition="jpeg")
            with self.assertRaises(BusTimeout):
                next(frames)


@unittest.skipIf(numpy is None, "NumPy is not there")
class Arrays(unittest.TestCase):
    def frame(self, format: str, width: int, height: int, planes: list[tuple[int, int, int]], size: int) -> Frame:
        header = frame_header("cam0", 1)
        header.update(format=format, width=width, height=height)
        header["planes"] = [dict(zip(("offset", "stride", "bytes"), plane)) for plane in planes]
        return Frame("frame/cam0/native/", header, memoryview(bytes(range(size))))

    def test_padding_is_left_out(self) -> None:
        array = self.frame("BGR3", 2, 2, [(0, 8, 16)], 16).array()
        self.assertEqual(array.tolist(), [[[0, 1, 2], [3, 4, 5]], [[8, 9, 10], [11, 12, 13]]])
        self.assertEqual(self.frame("GREY", 3, 2, [(1, 4, 8)], 9).array().tolist(), [[1, 2, 3], [5, 6, 7]])
        self.assertEqual(self.frame("YUYV", 2, 1, [(0, 4, 4)], 4).array().tolist(), [[[0, 1], [2, 3]]])

    def test_planes_that_lie_together_are_one_picture(self) -> None:
        self.assertEqual(self.frame("NV12", 2, 2, [(0, 2, 4), (4, 2, 2)], 6).array().tolist(), [[0, 1], [2, 3], [4, 5]])
        i420 = self.frame("YU12", 4, 2, [(0, 4, 8), (8, 2, 2), (10, 2, 2)], 12).array()
        self.assertEqual(i420.shape, (3, 4))

    def test_planes_that_do_not_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            self.frame("NV12", 2, 2, [(0, 2, 4), (6, 2, 2)], 8).array()

    def test_compressed_pictures_are_bytes(self) -> None:
        self.assertEqual(self.frame("MJPG", 2, 2, [(0, 0, 5)], 5).array().tolist(), [0, 1, 2, 3, 4])

    def test_samples_of_more_than_8_bits(self) -> None:
        for format in ("Y16", "Y10", "Z16", "RG12", "BYR2"):
            array = self.frame(format, 2, 2, [(2, 6, 12)], 14).array()
            self.assertEqual((array.dtype, array.shape), (numpy.uint16, (2, 2)))
            self.assertEqual(array.tolist(), [[0x0302, 0x0504], [0x0908, 0x0B0A]])
        array = self.frame("Y16 -BE", 2, 1, [(0, 4, 4)], 4).array()
        self.assertEqual(array.tolist(), [[0x0001, 0x0203]])
        with self.assertRaises(ValueError):
            self.frame("Y16", 400, 200, [(0, 800, 8)], 8).array()

    def test_nothing_is_copied(self) -> None:
        frame = self.frame("GREY", 4, 2, [(0, 4, 8)], 8)
        self.assertTrue(numpy.shares_memory(frame.array(), numpy.frombuffer(frame.payload, numpy.uint8)))

    def test_a_picture_that_does_not_fit_is_refused(self) -> None:
        with self.assertRaises((ValueError, TypeError)):
            self.frame("GREY", 400, 200, [(0, 400, 8)], 8).array()
