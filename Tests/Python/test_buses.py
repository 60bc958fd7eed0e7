"""Several buses as one, against two that say what the test wants."""

from __future__ import annotations

import time
import unittest
from typing import Any

from camerabus import Buses, Client, DeviceBusy
from camerabus.buses import Clock, uncertainty
from camerabus.matching import RealtimeMatcher
from fake_bus import BusTestCase, FakeBus


class Matching(unittest.TestCase):
    def matched(self, names: list[str], frames: list[tuple[str, int]], tolerance: int = 5) -> list[tuple[dict[str, int], tuple[str, ...]]]:
        matcher: RealtimeMatcher[int] = RealtimeMatcher(names, tolerance, 1000)
        return [
            (dict(found.frames), found.missing) for name, time in frames for found in matcher.receive(name, time, time)
        ]

    def test_the_nearest_is_taken_when_no_nearer_one_can_come(self) -> None:
        frames = [("b", 8), ("a", 10), ("b", 11), ("a", 20), ("b", 21)]
        self.assertEqual(self.matched(["a", "b"], frames), [({"a": 10, "b": 11}, ()), ({"a": 20, "b": 21}, ())])

    def test_what_is_too_far_away_is_missing(self) -> None:
        self.assertEqual(self.matched(["a", "b"], [("a", 10), ("b", 16)]), [({"a": 10}, ("b",))])

    def test_a_camera_that_gives_nothing_is_waited_for_so_long(self) -> None:
        frames = [("a", 10), ("b", 10), ("a", 500), ("b", 501), ("a", 1011)]
        found = self.matched(["a", "b", "c"], frames)
        self.assertEqual(found, [({"a": 10, "b": 10}, ("c",))])

    def test_clocks(self) -> None:
        one, other = Clock(True, 5), Clock(True, 7)
        self.assertEqual(uncertainty({"a": one, "b": other}), 12)
        self.assertEqual(uncertainty({"a": one, "b": other, "c": Clock(True, 1)}), 12)
        self.assertEqual(uncertainty({"a": None}), 0)
        self.assertIsNone(uncertainty({"a": one, "b": Clock(False, None)}))
        self.assertIsNone(uncertainty({"a": one, "b": None}))


class Several(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.other = FakeBus()
        self.addCleanup(self.other.remove)
        clients = {"rig": Client(self.other.directory, timeout=5), "here": Client(self.bus.directory, timeout=5)}
        self.buses = Buses(clients)
        self.addCleanup(self.buses.close)
        for bus, error in ((self.bus, 1000), (self.other, 2000)):
            bus.methods["bus.clock"] = lambda params, error=error: {
                "monotonic": 1, "realtime": 1, "synchronized": True, "error": error
            }  # fmt: skip

    def test_devices_have_the_names_of_their_hosts(self) -> None:
        self.assertEqual(sorted(self.buses.devices()), ["here/cam0", "here/cam1", "rig/cam0", "rig/cam1"])
        self.assertEqual(self.buses.clocks(), {"rig": Clock(True, 2000), "here": Clock(True, 1000)})
        for wrong in ("cam0", "nowhere/cam0"):
            with self.assertRaises(ValueError):
                self.buses.lock(wrong)

    def test_locks_are_taken_in_the_order_of_the_hosts_and_given_back_when_one_cannot_be_had(self) -> None:
        with self.buses.lock("rig/cam0", "here/cam1", "here/cam0") as locks:
            self.assertEqual(list(locks.locks), ["here", "rig"])
            self.assertEqual(self.bus.asked("device.lock")[-1]["devices"], ["cam1", "cam0"])
        self.assertEqual((self.bus.locks, self.other.locks), ({}, {}))
        self.other.locks["another's"] = ["cam0"]
        with self.assertRaises(DeviceBusy):
            self.buses.lock("rig/cam0", "here/cam0")
        self.assertEqual(self.bus.locks, {})

    def test_frames_come_from_all(self) -> None:
        with self.buses.frames("rig/cam0", "here/cam0", limit=2, timeout=5) as frames:
            self.bus.send_frame("cam0", 1)
            self.other.send_frame("cam0", 7)
            self.assertEqual({(name, frame.sequence) for name, frame in frames}, {("here/cam0", 1), ("rig/cam0", 7)})
            self.assertEqual(frames.lost, {"here/cam0": 0, "rig/cam0": 0})

    def test_sets_say_how_sure_they_are(self) -> None:
        def send(bus: FakeBus, sequence: int, realtime: int) -> None:
            stamp: dict[str, Any] = {"monotonic": time.monotonic_ns(), "realtime": realtime, "source": "startOfExposure"}
            bus.send_frame("cam0", sequence, timestamp=stamp)

        with self.buses.frame_sets("rig/cam0", "here/cam0", tolerance=0.001, limit=1, timeout=5) as sets:
            send(self.other, 1, 1_000_000_000)
            send(self.bus, 1, 1_000_300_000)
            [found] = sets
        self.assertEqual((list(found.frames), found.spread, found.uncertainty), (["rig/cam0", "here/cam0"], 300_000, 3000))
        self.assertEqual(found.offsets, {"rig/cam0": 0, "here/cam0": 300_000})


if __name__ == "__main__":
    unittest.main()
