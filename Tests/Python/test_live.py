"""Against a real bus with two virtual cameras: run by Tests/Python/with_bus.py, or by hand with $CAMERABUS_RUNTIME_DIR set.

Every reply is held against Protocol/schema on the way. Only virtual devices are changed.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Mapping
from unittest import mock

import zmq

import camerabus
import vectors
from camerabus import AsyncClient, CaptureError, Client, Device, DeviceBusy, LockLost, LockRequired, find_bus
from camerabus.core import Core, Reply
from camerabus.steps import Steps

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None
try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]
try:
    from picture_counter import read_luma
except ImportError:
    read_luma = None

RUNTIME_DIR = os.environ.get("CAMERABUS_RUNTIME_DIR", "")
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 30.0

HOLDER = """
import signal, sys
from camerabus import Client
client = Client(name="holder")
lock = client.lock(*sys.argv[1:])
print("held", flush=True)
signal.pause()
"""


class Checker:
    """Holds replies against the schemas of their methods."""

    ANY = {"invalidParams", "unauthorized", "limitExceeded", "internalError", "shuttingDown", "methodNotFound"}

    def __init__(self) -> None:
        has_schema = (vectors.PROTOCOL / "schema" / "methods.json").is_file() and Draft202012Validator is not None
        schema = vectors.methods() if has_schema else {"$defs": {}, "methods": {}}
        self.methods = schema["methods"]
        self.validators = {
            name: Draft202012Validator({"$defs": schema["$defs"], **method["result"]}) for name, method in self.methods.items()
        }
        self.shapes = {name: Draft202012Validator({"$defs": schema["$defs"], **shape}) for name, shape in schema["$defs"].items()}
        self.reasons = {name: Draft202012Validator(shape) for name, shape in vectors.errors().items()} if has_schema else {}
        self.problems: list[str] = []
        self._request = Core._request

    def request(
        self, core: Core, method: str, params: Mapping[str, Any] | None, until: float, key: str | None
    ) -> Steps[Reply]:
        try:
            reply = yield from self._request(core, method, params, until, key)
        except CaptureError as error:
            known = self.ANY | set(self.methods.get(method, {}).get("errors", []))
            if method in self.methods and not isinstance(error, camerabus.ClientError):
                if error.reason not in known:
                    self.problems.append(f"{method} refused with {error.reason}, which its schema does not name")
                if error.reason in self.reasons:
                    data = {**error.data, "reason": error.reason}
                    found = self.reasons[error.reason].iter_errors(data)
                    self.problems += [f"{method}, {error.reason}: {each.json_path}: {each.message}" for each in found]
            raise
        if method in self.validators:
            self.problems += [f"{method}: {each.json_path}: {each.message}" for each in self.validators[method].iter_errors(reply.result)]
        return reply

    def check(self, shape: str, value: Any) -> None:
        if shape in self.shapes:
            self.problems += [f"{shape}: {each.json_path}: {each.message}" for each in self.shapes[shape].iter_errors(value)]


@unittest.skipUnless(RUNTIME_DIR, "no bus is named by $CAMERABUS_RUNTIME_DIR")
class LiveTestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.checker = checker = Checker()
        patch = mock.patch.object(Core, "_request", lambda core, *arguments: checker.request(core, *arguments))
        patch.start()
        self.addCleanup(lambda: self.assertEqual(checker.problems, []))
        self.addCleanup(patch.stop)
        self.client = Client(name="test_live", timeout=TIMEOUT)
        self.addCleanup(self.client.close)
        self.cameras = [device.id for device in self.client.devices("video") if device.driver == "virtual"]
        if len(self.cameras) < 2:
            self.skipTest("the bus has no two virtual cameras")
        self.first, self.second = self.cameras[:2]

    def environment(self) -> dict[str, str]:
        package = str(ROOT / "Protocol" / "python")
        return {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}"}

    def holder(self, *devices: str) -> subprocess.Popen[str]:
        """Another process that holds a lock until it is killed."""
        command = [sys.executable, "-c", HOLDER, *devices]
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, TIMEOUT)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    def without_lock(self, *devices: str) -> list[Device]:
        return [self.client.device(name) for name in devices]


class Devices(LiveTestCase):
    def test_the_bus_knows_us(self) -> None:
        hello = self.client.hello
        self.assertEqual((hello.server, hello.protocol, hello.you["pid"], hello.you["uid"]), ("CameraBus", 1, os.getpid(), os.getuid()))

    def test_devices_have_formats_and_controls(self) -> None:
        for name in self.cameras:
            device = self.client.device(name)
            self.assertTrue(device.connected)
            formats = self.client.formats(name)
            self.assertTrue(formats)
            for format in formats:
                for rates in format.frameRates:
                    self.assertGreaterEqual(rates.maxFrameRate, rates.minFrameRate)
            self.assertTrue(self.client.controls(name))

    def test_who_uses_a_device(self) -> None:
        with self.client.frames(self.first, rendition="gray:64x0") as frames:
            next(frames)
            [subscriber] = [one for one in self.client.who(self.first).subscribers if one.pid == os.getpid()]
            self.assertEqual((subscriber.uid, subscriber.renditions), (os.getuid(), ("gray:64x0",)))

    def test_a_device_that_is_not_there(self) -> None:
        with self.assertRaises(camerabus.DeviceNotFound):
            self.client.device("no-such-device")

    def test_the_methods_are_those_of_the_schema(self) -> None:
        if not self.checker.methods:
            self.skipTest("Protocol/schema is not there")
        for method in self.client.call("bus.methods")["methods"]:
            self.assertEqual(method, self.checker.methods.get(method["name"]))

    def test_metrics(self) -> None:
        self.client.call("bus.metrics")

    def test_snapshot_and_its_shapes(self) -> None:
        with self.client.lock(self.first, note="for the snapshot"):
            snapshot = self.client.call("bus.snapshot")
        for topic, value in snapshot["state"].items():
            shape = topic.split("/")[1].capitalize()
            self.checker.check(shape, value)
        self.assertIn(f"state/device/{self.first}/", snapshot["state"])
        [lock] = [value for topic, value in snapshot["state"].items() if topic.startswith("state/lock/")]
        self.assertEqual((lock["devices"], lock["note"]), ([self.first], "for the snapshot"))


class Locks(LiveTestCase):
    def test_the_second_is_told_who_has_it_and_gets_it_when_that_one_is_killed(self) -> None:
        holder = self.holder(self.first, self.second)
        with self.assertRaises(DeviceBusy) as caught:
            self.client.lock(self.second)
        self.assertEqual((caught.exception.holder["pid"], caught.exception.holder["name"]), (holder.pid, "holder"))
        with self.assertRaises(camerabus.LockTimeout) as late:
            self.client.lock(self.second, wait=0.05)
        self.assertEqual(late.exception.holder["pid"], holder.pid)
        with self.assertRaises(DeviceBusy):
            self.client.set(self.first, brightness=0)
        holder.kill()
        with self.client.lock(self.first, self.second, wait=TIMEOUT) as lock:
            device = self.client.device(self.first)
            assert device.lock is not None and device.lock.holder is not None
            self.assertEqual((device.lock.holder.pid, device.lock.fence), (os.getpid(), lock.fence))
            self.assertNotEqual(device.lock.id, lock.token)
        self.assertIsNone(self.client.device(self.first).lock)

    def test_an_administrator_takes_over_and_the_loser_learns_it(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("not an administrator")
        loser = self.client.lock(self.first, self.second, note="the loser")
        waiting = subprocess.Popen(
            [sys.executable, "-c", HOLDER.replace("*sys.argv[1:])", "*sys.argv[1:], wait=30)"), self.second],
            env=self.environment(), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert waiting.stdout is not None
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.wait, TIMEOUT)
        self.addCleanup(waiting.kill)
        until = time.monotonic() + TIMEOUT
        while not (locks := self.client.locks()).waiting:
            self.assertLess(time.monotonic(), until)
        self.assertEqual([(lock.note, lock.devices) for lock in locks.locks], [("the loser", (self.first, self.second))])
        self.assertEqual((locks.waiting[0].devices, locks.waiting[0].holder.pid), ((self.second,), waiting.pid))
        with self.client.take_over(self.first, note="the winner") as winner:
            self.assertGreater(winner.fence or 0, loser.fence or 0)
            with self.assertRaises(LockLost):
                self.client.set(self.first, lock=loser, brightness=0)
            self.client.set(self.first, brightness=0)
            # The loser's other device is free, and goes to whoever has waited for it.
            self.assertEqual(waiting.stdout.readline(), "held\n")
        with self.assertRaises(LockLost):
            loser.release()

    def test_all_or_nothing(self) -> None:
        self.holder(self.second)
        with self.assertRaises(DeviceBusy):
            self.client.lock(self.first, self.second)
        self.assertIsNone(self.client.device(self.first).lock)

    def test_fences_rise_and_stale_tokens_are_refused(self) -> None:
        lock = self.client.lock(self.first)
        lock.release()
        with self.client.lock(self.first) as next_lock:
            assert lock.fence is not None and next_lock.fence is not None
            self.assertGreater(next_lock.fence, lock.fence)
            with self.assertRaises(LockLost):
                self.client.set(self.first, lock="0" * 32, brightness=0)
        with self.assertRaises(LockRequired):
            self.client.configure(self.first, frameRate=30)

    def test_a_lease_ends_by_itself_unless_renewed(self) -> None:
        lock = self.client.lock(self.first, lease=0.3)
        lock.renew()
        with self.client.lock(self.first, wait=TIMEOUT), self.assertRaises(LockLost):
            lock.renew()

    def test_a_child_joins_the_lock(self) -> None:
        program = "from camerabus import Client\nc = Client()\nwith c.lock('{0}'): c.set('{0}', brightness=0)".format(self.first)
        with self.client.lock(self.first) as lock:
            environment = {**self.environment(), "CAMERABUS_LOCK": lock.token}
            subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=TIMEOUT)
            self.assertIsNotNone(self.client.device(self.first).lock)

    def test_the_token_is_in_no_state(self) -> None:
        with self.client.lock(self.first) as lock:
            self.assertNotIn(lock.token, json.dumps(self.client.call("bus.snapshot")))


class Configuring(LiveTestCase):
    def test_two_devices_in_one_step(self) -> None:
        with self.client.lock(self.first, self.second):
            changes = [{"device": name, "activeFormat": {"width": 1280, "height": 720}, "frameRate": 30} for name in self.cameras[:2]]
            result = self.client.configure(changes)
        self.assertEqual(result.verdict, "valid")
        for name in (self.first, self.second):
            device = self.client.device(name)
            assert device.activeFormat is not None
            self.assertEqual((device.activeFormat.width, device.activeFormat.height, device.frameRate), (1280, 720, 30))
            self.assertEqual(device.generation, result.generation[name])

    def test_a_batch_whose_last_change_is_impossible_changes_nothing(self) -> None:
        before = [(device.activeFormat, device.frameRate, device.controls, device.generation) for device in self.without_lock(*self.cameras[:2])]
        with self.client.lock(self.first, self.second), self.assertRaises(camerabus.ControlOutOfRange) as caught:
            brightness = self.client.controls(self.first)["brightness"]
            assert brightness.maximum is not None and brightness.minimum is not None
            self.client.configure(
                [
                    {"device": self.first, "controls": {"brightness": brightness.minimum}},
                    {"device": self.second, "controls": {"brightness": brightness.maximum + 1}},
                ]
            )
        self.assertEqual(caught.exception.max, brightness.maximum)
        after = [(device.activeFormat, device.frameRate, device.controls, device.generation) for device in self.without_lock(*self.cameras[:2])]
        self.assertEqual(after, before)

    def test_nearest_and_dry_run(self) -> None:
        before = self.client.device(self.first).generation
        with self.client.lock(self.first):
            wish = {"width": 1279, "height": 719}
            with self.assertRaises(camerabus.FormatUnsupported) as caught:
                self.client.configure(self.first, activeFormat=wish)
            self.assertTrue(caught.exception.nearest)
            result = self.client.configure(self.first, activeFormat=wish, mode="nearest", dry_run=True)
        self.assertEqual(result.verdict, "adjusted")
        self.assertTrue(result.adjusted[0].why)
        self.assertEqual(self.client.device(self.first).generation, before)

    def test_a_control_is_set_and_read_back(self) -> None:
        control = self.client.controls(self.first)["brightness"]
        assert control.maximum is not None and control.defaultValue is not None
        for value in (control.maximum, control.defaultValue):
            self.assertEqual(self.client.set(self.first, brightness=value).applied[self.first]["controls"]["brightness"], value)
            self.assertEqual(self.client.controls(self.first)["brightness"].value, value)
        with self.assertRaises(camerabus.ControlUnsupported):
            self.client.set(self.first, no_such_control=1)


class Frames(LiveTestCase):
    def test_two_cameras(self) -> None:
        seen: dict[str, list[tuple[str, int, int]]] = {self.first: [], self.second: []}
        with self.client.frames(self.first, self.second, limit=40, timeout=TIMEOUT) as frames:
            for frame in frames:
                seen[frame.device].append((frame.stream, frame.sequence, frame.timestamp.monotonic))
                self.assertEqual(len(frame.payload), max(plane.offset + plane.bytes for plane in frame.planes))
        for rows in seen.values():
            self.assertGreater(len(rows), 5)
            self.assertEqual(len({stream for stream, _, _ in rows}), 1)
            self.assertEqual(rows, sorted(rows, key=lambda row: row[1]))
            self.assertEqual(sorted({time for _, _, time in rows}), [time for _, _, time in rows])

    def test_renditions(self) -> None:
        shapes = {"bgr:320x180": (320 * 3, 1), "gray:320x180": (320, 1), "yuyv:320x180": (640, 1), "nv12:320x180": (320, 2), "i420:320x180": (320, 3)}
        for rendition, (stride, planes) in shapes.items():
            with self.subTest(rendition), self.client.frames(self.first, rendition=rendition, limit=1, timeout=TIMEOUT) as frames:
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
        with self.client.frames(self.first, self.second, rendition="gray:640x0", limit=20, timeout=TIMEOUT) as frames:
            for frame in frames:
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

    def test_renditions_that_are_none(self) -> None:
        file = vectors.files().get("renditions") if (vectors.PROTOCOL / "vectors").is_dir() else None
        if file is None:
            self.skipTest("Protocol/vectors is not there")
        for case in file["cases"]:
            text = vectors.frame(case["frames"][0]).decode(errors="replace")
            if case["valid"] or "/" in text or not text or "\N{REPLACEMENT CHARACTER}" in text:
                continue
            with self.subTest(case["name"]), self.assertRaises(CaptureError) as caught:
                next(self.client.frames(self.first, rendition=text, timeout=TIMEOUT))
            self.assertEqual((caught.exception.reason, caught.exception.data.get("path")), ("invalidParams", "rendition"))

    def test_a_stopped_reader_costs_others_nothing(self) -> None:
        program = "import sys\nfrom camerabus import Client\nfor frame in Client().frames(sys.argv[1], rendition='gray:160x90'): print(frame.sequence, flush=True)"
        reader = subprocess.Popen([sys.executable, "-c", program, self.first], env=self.environment(), stdout=subprocess.PIPE, text=True)
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
        with self.client.frames(self.first, self.second, rendition="gray:640x0", limit=20, timeout=TIMEOUT, shared=True) as frames:
            for frame in frames:
                picture = read_luma(bytes(frame.plane(0)), frame.width, frame.height, frame.planes[0].stride)
                copy = frame.copy()
                if not frame.is_intact():
                    continue
                self.assertTrue(frame.payload.readonly)
                self.assertEqual((picture.counter, copy.captureSequence), (frame.captureSequence % 2**32, frame.captureSequence))
                self.assertEqual(frame.topic, f"buffer/{frame.device}/gray:640x0/")
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
            "for frame in Client().frames(sys.argv[1], shared=True): print(frame.captureSequence, frame.lost, flush=True)"
        )
        reader = subprocess.Popen([sys.executable, "-c", program, self.first], env=self.environment(), stdout=subprocess.PIPE, text=True)
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
                async with client.frames(self.first, rendition="gray:64x36", limit=5, timeout=TIMEOUT, shared=True) as frames:
                    return [frame.sequence async for frame in frames]

        seen = asyncio.run(numbers())
        self.assertEqual((len(seen), seen), (5, sorted(seen)))


class State(LiveTestCase):
    def test_the_mirror_follows(self) -> None:
        topic = f"state/device/{self.first}/"
        brightness = self.client.controls(self.first)["brightness"]
        with self.client.mirror("state/device/") as mirror:
            for value in (brightness.maximum, brightness.defaultValue):
                self.client.set(self.first, brightness=value)
                mirror.wait(lambda state: state[topic]["controls"]["brightness"] == value, timeout=TIMEOUT)
            for value in mirror.values():
                self.checker.check("Device", value)

    def test_locks_come_and_go_on_the_bus(self) -> None:
        with self.client.watch("state/lock/", timeout=TIMEOUT) as watch:
            with self.client.lock(self.first):
                held = next(watch)
                self.checker.check("Lock", held.value)
            gone = next(watch)
        self.assertEqual((held.value["holder"]["pid"], gone.value, gone.topic), (os.getpid(), None, held.topic))
        self.assertEqual(gone.previous, held.sequence)

    def test_the_heart_beats(self) -> None:
        with self.client.watch("heartbeat/", timeout=TIMEOUT) as watch:
            self.assertEqual(next(watch).epoch, self.client.hello.epoch)


class Vectors(LiveTestCase):
    """The vectors that only a bus can judge, sent as they are."""

    def setUp(self) -> None:
        super().setUp()
        if not (vectors.PROTOCOL / "vectors").is_dir():
            self.skipTest("Protocol/vectors is not there")
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.addCleanup(self.context.destroy, 0)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, int(TIMEOUT * 1000))
        self.socket.connect(f"ipc://{find_bus()}/command.sock")

    def exchange(self, frames: list[bytes]) -> list[list[bytes]]:
        """What comes back before the answer to a ping sent behind it. Pings are answered in order with what can't be carried out."""
        self.socket.send_multipart(frames)
        self.socket.send_multipart([b"", b'{"jsonrpc":"2.0","id":"end","method":"bus.ping"}'])
        replies: list[list[bytes]] = []
        while True:
            reply = self.socket.recv_multipart()
            if reply[0] == b"" and json.loads(reply[1]).get("id") == "end":
                return replies
            replies.append(reply)

    def test_requests(self) -> None:
        for case in vectors.files()["requests"]["cases"]:
            expect = case["expect"]
            with self.subTest(case["name"]):
                replies = self.exchange([b"", *map(vectors.frame, case["frames"])])
                if "id" not in expect:
                    self.assertEqual(replies, [])
                    continue
                [[_, body]] = replies
                reply = json.loads(body)
                self.assertEqual(reply["id"], expect["id"])
                if case["valid"] and "for" not in expect and expect["method"] == "bus.ping" and not expect["params"]:
                    self.assertEqual(reply["result"], {})
                elif not case["valid"]:
                    self.check(reply["error"], expect["error"])

    def test_envelopes(self) -> None:
        for case in vectors.files()["envelopes"]["cases"]:
            expect = case["expect"]
            with self.subTest(case["name"]):
                frames = [vectors.frame(frame) for frame in case["frames"]]
                replies = self.exchange(frames)
                if not expect.get("answered", True):
                    self.assertEqual(replies, [])
                    continue
                [reply] = replies
                self.assertEqual(reply[: expect["envelope"]], frames[: expect["envelope"]])
                body = json.loads(reply[expect["envelope"]])
                is_refused = body.get("error", {}).get("data", {}).get("reason") == "invalidRequest" and body["id"] is None
                self.assertEqual(is_refused, not case["valid"], body)

    def test_params(self) -> None:
        known = {method["name"] for method in self.client.call("bus.methods")["methods"]}
        for case in vectors.files()["params"]["cases"]:
            if case["valid"] or case["method"] not in known:
                continue  # what is valid would have effects
            with self.subTest(case["name"]):
                request = {"jsonrpc": "2.0", "id": 1, "method": case["method"], "params": case["params"]}
                [[_, body]] = self.exchange([b"", json.dumps(request).encode()])
                self.check(json.loads(body)["error"], {"code": -32602, **case["expect"]})

    def check(self, error: Any, expect: Any) -> None:
        self.assertEqual((error["code"], error["data"]["reason"]), (expect["code"], expect["reason"]))
        for name, value in expect.get("data", {}).items():
            self.assertEqual(error["data"].get(name), value, name)
        self.assertTrue(error["message"])


class Programs(LiveTestCase):
    def test_asyncio(self) -> None:
        async def read(client: AsyncClient, device: str) -> int:
            return len([frame.sequence async for frame in client.frames(device, rendition="gray:160x90", limit=5, timeout=TIMEOUT)])

        async def program() -> None:
            async with AsyncClient(timeout=TIMEOUT) as client, client.lock(self.first), client.mirror() as mirror:
                self.assertEqual(await asyncio.gather(*(read(client, name) for name in self.cameras[:2])), [5, 5])
                await client.set(self.first, brightness=0)
                topic = f"state/device/{self.first}/"
                await mirror.wait(lambda state: state[topic]["controls"]["brightness"] == 0, timeout=TIMEOUT)

        asyncio.run(program())

    def test_the_python_examples_run(self) -> None:
        arguments = {"state_mirror": ["1"], "control_changes": ["1"]}
        for path in self.examples():
            if path.stem == "lock_end":
                continue  # it goes on until its lock ends
            with self.subTest(path.name), tempfile.TemporaryDirectory() as directory:
                command = [sys.executable, str(path), *arguments.get(path.stem, [])]
                result = subprocess.run(
                    command, env=self.environment(), cwd=directory, capture_output=True, text=True, timeout=2 * TIMEOUT
                )
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(result.stdout)

    def examples(self) -> list[Path]:
        paths = sorted((vectors.PROTOCOL / "python" / "examples").glob("*.py"))
        return [path for path in paths if path.stem != "pillow" or Image is not None]

    def example(self, path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-u", str(path)], env=self.environment(), cwd=self.scratch(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def scratch(self) -> str:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return directory.name

    def test_ctrl_c_ends_each_python_example_quietly(self) -> None:
        for path in self.examples():
            with self.subTest(path.name), ExitStack() as stack:
                if path.stem == "lock_and_configure":  # too quick to be interrupted, unless it has to wait
                    stack.enter_context(self.client.lock(self.first))
                    process = self.example(path)
                    until = time.monotonic() + TIMEOUT
                    while not self.client.locks().waiting:
                        self.assertLess(time.monotonic(), until)
                else:
                    process = self.example(path)
                    assert process.stdout is not None
                    self.assertTrue(process.stdout.readline())
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=TIMEOUT)
                self.assertEqual(errors, "")
                self.assertIn(process.returncode, (130, 0) if path.stem == "pillow" else (130,))

    def test_an_example_says_why_its_lock_ended(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only an administrator takes over")
        process = self.example(vectors.PROTOCOL / "python" / "examples" / "lock_end.py")
        assert process.stdout is not None
        self.assertIn("is ours", process.stdout.readline())
        with self.client.take_over(self.first):
            _, errors = process.communicate(timeout=TIMEOUT)
        self.assertRegex(errors, "^lockLost: takenOver by ")
        self.assertEqual(process.returncode, 1)

    @unittest.skipIf(shutil.which("camerabus") is None, "camerabus is not in the PATH")
    def test_a_program_within_camerabus_lock_joins_it(self) -> None:
        program = """if True:
            import sys
            from camerabus import CaptureError, Client
            with Client() as client:
                for devices in sys.argv[1:]:
                    try:
                        with client.lock(*devices.split("+")) as lock:
                            client.set(devices, brightness=0)
                            print("joined" if lock.joined else "own", lock.fence == client.device(devices).lock.fence)
                    except CaptureError as error:
                        print(error.reason)
        """
        both = f"{self.first}+{self.second}"
        command = ["camerabus", "lock", self.first, "--", sys.executable, "-c", program, self.first, self.second, both]
        result = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((result.returncode, result.stdout.split("\n")[:-1]), (0, ["joined True", "own True", "lockRequired"]), result.stderr)
        # So does the command line itself, which would else wait for its own parent.
        inner = ["camerabus", "lock", self.first, "--wait", "60", "--", "camerabus", "set", self.first, "brightness=0"]
        result = subprocess.run(["camerabus", "lock", self.first, "--", *inner], env=self.environment(), capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = subprocess.run(
            ["camerabus", "lock", self.first, "--", "camerabus", "lock", self.first, self.second, "--", "true"],
            env=self.environment(), capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        self.assertEqual((result.returncode, result.stderr[:13]), (1, "lockRequired:"))
        self.assertEqual([device.lock for device in self.without_lock(self.first, self.second)], [None, None])

    def test_the_shell_examples_run(self) -> None:
        if shutil.which("camerabus") is None or shutil.which("jq") is None:
            self.skipTest("camerabus or jq is not in the PATH")
        arguments = {"time-lapse": ["cam0", "0.2", "3"], "two-cameras": ["cam0", "cam1", "3"]}
        for path in sorted((vectors.PROTOCOL / "shell").iterdir()):
            with self.subTest(path.name), tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
                command = [str(path), *arguments.get(path.name, [])]
                if path.name == "watch-state":
                    # It goes on until it is told to stop: a change is what it is waited for with.
                    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
                    assert process.stdout is not None
                    stack.callback(process.stdout.close)
                    stack.callback(process.wait, TIMEOUT)
                    stack.callback(os.killpg, process.pid, signal.SIGTERM)
                    self.assertRegex(process.stdout.readline(), r"^cam\d: ")
                    continue
                result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=2 * TIMEOUT)
                self.assertEqual(result.returncode, 0, result.stderr)
                pictures = sorted(Path(directory).glob("*.jpg"))
                if path.name in ("snapshot", "time-lapse", "two-cameras"):
                    self.assertTrue(pictures)
                    self.assertTrue(all(re.match(rb"\xff\xd8", picture.read_bytes()) for picture in pictures))
                else:
                    self.assertTrue(result.stdout)


if __name__ == "__main__":
    unittest.main()
