"""What the bus tells of itself and of its devices."""

from __future__ import annotations

import os
import time

import camerabus
from live import LiveTestCase, TIMEOUT


class Devices(LiveTestCase):
    def test_the_bus_knows_us(self) -> None:
        hello = self.client.hello
        self.assertEqual(
            (hello.server, hello.protocol, hello.you["pid"], hello.you["uid"]),
            ("CameraBus", 1, os.getpid(), os.getuid()),
        )

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
            # What a test before this one had may be given back a moment later.
            until = time.monotonic() + TIMEOUT
            while (mine := self.uses()) != [(os.getuid(), ("gray:64x0",))]:
                self.assertLess(time.monotonic(), until, mine)

    def uses(self) -> list[tuple[int | None, tuple[str, ...]]]:
        """What the bus says that this process has of the first camera."""
        return [(one.uid, one.renditions) for one in self.client.who(self.first).subscribers if one.pid == os.getpid()]

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
