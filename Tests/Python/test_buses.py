"""Several buses as one, against two that say what the test wants."""

from __future__ import annotations

import asyncio
import time
import unittest
from typing import Any
from unittest import IsolatedAsyncioTestCase

from camerabus import (
    AsyncBuses, AsyncClient, BusNotRunning, Buses, Client, DeviceBusy, DeviceNotFound, HostSet, LockLost,
)
from camerabus.host_frames import Clock, uncertainty
from camerabus.matching import RealtimeMatcher
from fake_bus import NO_REPLY, BusTestCase, FakeBus


class Matching(unittest.TestCase):
    def matched(
        self, names: list[str], frames: list[tuple[str, int]], tolerance: int = 5
    ) -> list[tuple[dict[str, int], tuple[str, ...]]]:
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
        found = HostSet({"a/x": None}, {"a/x": 0}, ("b/y",), 0)  # type: ignore[dict-item]
        self.assertEqual(str(found), "a/x (without b/y)")
        self.assertEqual(uncertainty({"a": one, "b": other}), 12)
        self.assertEqual(uncertainty({"a": one, "b": other, "c": Clock(True, 1)}), 12)
        self.assertEqual(uncertainty({"a": None}), 0)
        self.assertIsNone(uncertainty({"a": one, "b": Clock(False, None)}))
        self.assertIsNone(uncertainty({"a": one, "b": None}))


class Words(unittest.TestCase):
    def test_what_is_known_of_clocks_is_said_in_words(self) -> None:
        self.assertEqual(str(Clock(True, 2_500_000)), "error at most 2.5 ms")
        self.assertEqual(str(Clock(False, 2_500_000)), "error at most 2.5 ms, not synchronized now")
        self.assertNotIn("None", str(Clock(False, None)))
        offsets = {"a/x": 0, "b/y": 1_200_000}
        both = HostSet({"a/x": None, "b/y": None}, offsets, (), 40_000)  # type: ignore[dict-item]
        self.assertEqual(str(both), "a/x, b/y: 1.2 ms apart, error at most 0.04 ms")
        unsure = HostSet({"a/x": None, "b/y": None}, offsets, ("c/z",), None, ("b",))  # type: ignore[dict-item]
        self.assertIn("unknown", unsure.doubt)
        self.assertTrue(unsure.doubt.endswith("the clock of b"), unsure.doubt)
        self.assertIn("(without c/z)", str(unsure))
        self.assertEqual(HostSet({}, {"a/x": 0, "a/y": 0}, (), 0).doubt, "measured by one clock")


class TwoBuses(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.other = FakeBus()
        self.addCleanup(self.other.remove)
        for bus, error in ((self.bus, 1000), (self.other, 2000)):
            bus.methods["bus.clock"] = lambda params, error=error: {
                "monotonic": 1, "realtime": 1, "synchronized": True, "error": error
            }  # fmt: skip

    def send(self, bus: FakeBus, sequence: int, realtime: int) -> None:
        stamp: dict[str, Any] = {"monotonic": time.monotonic_ns(), "realtime": realtime, "source": "startOfExposure"}
        bus.send_frame("cam0", sequence, timestamp=stamp)


class Several(TwoBuses):
    def setUp(self) -> None:
        super().setUp()
        clients = {"rig": Client(self.other.directory, timeout=5), "here": Client(self.bus.directory, timeout=5)}
        self.buses = Buses(clients)
        self.addCleanup(self.buses.close)

    def test_devices_have_the_names_of_their_hosts(self) -> None:
        self.assertEqual(sorted(self.buses.devices()), ["here/cam0", "here/cam1", "rig/cam0", "rig/cam1"])
        self.assertEqual(self.buses.clocks(), {"rig": Clock(True, 2000), "here": Clock(True, 1000)})
        for wrong in ("cam0", "nowhere/cam0"):
            with self.assertRaises(ValueError):
                self.buses.lock(wrong)

    def test_a_name_that_none_has_is_told_with_those_that_there_are(self) -> None:
        with self.assertRaises(DeviceNotFound) as caught:
            self.buses.devices()["rig/cam9"]
        for name in ("'rig/cam9'", "rig/cam0", "here/cam1"):
            self.assertIn(name, caught.exception.message)
        with self.assertRaisesRegex(KeyError, "Known: rig, here"):
            self.buses["nowhere"]

    def test_an_error_says_which_bus_it_is_of(self) -> None:
        def is_told(do: Any, kind: type[Exception] = DeviceNotFound) -> None:
            with self.assertRaises(kind) as caught:
                do()
            self.assertEqual(caught.exception.host, "rig")  # type: ignore[attr-defined]
            self.assertEqual(str(caught.exception)[:5], "rig: ")

        self.other.refuse("device.lock", "deviceNotFound", "No device is called 'cam9'.")
        is_told(lambda: self.buses.lock("rig/cam9", "here/cam0"))
        self.assertEqual(self.bus.locks, {})
        is_told(lambda: self.buses.frames("rig/cam9", "here/cam0"))
        with self.buses.frames("rig/cam0", "here/cam0", timeout=5) as frames:
            header = {
                "v": 1, "device": "cam0", "rendition": "native",
                "error": {"reason": "deviceNotFound", "message": "Gone."},
            }
            self.other.send_media("cam0", "frame/cam0/native/", header)
            is_told(lambda: next(frames))
        self.other.refuse("device.list", "internalError")
        is_told(self.buses.devices, Exception)
        # And what is asked of one of them.
        is_told(lambda: self.buses["rig"].device("cam9"))
        with self.buses["rig"].frames("cam0", timeout=5) as own:
            self.other.send_media("cam0", "frame/cam0/native/", header)
            is_told(lambda: next(own))

    def test_all_locks_are_given_back_also_when_one_was_lost(self) -> None:
        with self.assertRaises(LockLost) as caught, self.buses.lock("rig/cam0", "here/cam0"):
            self.other.locks.clear()
        self.assertEqual((caught.exception.host, self.bus.locks), ("rig", {}))

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
        with self.buses.frame_sets("rig/cam0", "here/cam0", tolerance=0.001, limit=1, timeout=5) as sets:
            self.send(self.other, 1, 1_000_000_000)
            self.send(self.bus, 1, 1_000_300_000)
            [found] = sets
        self.assertEqual(
            (list(found.frames), found.spread, found.uncertainty), (["rig/cam0", "here/cam0"], 300_000, 3000)
        )
        self.assertEqual(found.offsets, {"rig/cam0": 0, "here/cam0": 300_000})

    def test_who_does_not_know_its_clock_is_named(self) -> None:
        self.bus.methods["bus.clock"] = lambda params: {
            "monotonic": 1, "realtime": 1, "synchronized": False, "error": None,
        }
        with self.buses.frame_sets("rig/cam0", "here/cam0", tolerance=0.001, limit=1, timeout=5) as sets:
            self.send(self.other, 1, 1_000_000_000)
            self.send(self.bus, 1, 1_000_300_000)
            [found] = sets
        self.assertEqual((found.uncertainty, found.unsure), (None, ("here",)))


class AsyncSeveral(TwoBuses, IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        clients = {
            "rig": AsyncClient(self.other.directory, timeout=5), "here": AsyncClient(self.bus.directory, timeout=5),
        }
        self.buses = await AsyncBuses(clients).__aenter__()
        self.addAsyncCleanup(self.buses.close)

    async def test_names_are_those_of_the_other_kind(self) -> None:
        public = {name for name in dir(Buses) if not name.startswith("_")}
        self.assertEqual(public, {name for name in dir(AsyncBuses) if not name.startswith("_")})
        self.assertEqual((list(self.buses), len(self.buses)), (["rig", "here"], 2))
        self.assertEqual([device.id for device in await self.buses["rig"].devices()], ["cam0", "cam1"])

    async def test_devices_and_clocks(self) -> None:
        devices = await self.buses.devices()
        self.assertEqual(sorted(devices), ["here/cam0", "here/cam1", "rig/cam0", "rig/cam1"])
        with self.assertRaises(DeviceNotFound):
            devices["rig/cam9"]
        self.assertEqual(await self.buses.clocks(), {"rig": Clock(True, 2000), "here": Clock(True, 1000)})

    async def test_locks(self) -> None:
        for bus in (self.bus, self.other):
            bus.methods["device.set"] = lambda params: {
                "verdict": "valid", "generation": {}, "applied": {}, "adjusted": [],
            }
        async with self.buses.lock("rig/cam0", "here/cam0") as locks:
            self.assertEqual(list(locks.locks), ["here", "rig"])
            # Within the block they are what changes are made under.
            await self.buses["rig"].set("cam0", brightness=1)
        self.assertEqual(self.other.asked("device.set")[0]["lock"], "token-1")
        self.assertEqual((self.bus.locks, self.other.locks), ({}, {}))
        held = await self.buses.lock("here/cam0")
        await held.release()
        self.other.locks["another's"] = ["cam0"]
        with self.assertRaises(DeviceBusy) as caught:
            await self.buses.lock("rig/cam0", "here/cam0")
        self.assertEqual((caught.exception.host, self.bus.locks), ("rig", {}))

    async def test_a_cancelled_wait_gives_back_what_it_had(self) -> None:
        self.other.methods["device.lock"] = lambda params: NO_REPLY
        self.other.methods["bus.cancel"] = lambda params: {"cancelled": True}

        async def hold() -> None:
            async with self.buses.lock("rig/cam0", "here/cam0", wait=30):
                pass

        task = asyncio.create_task(hold())
        while not self.other.asked("device.lock"):
            await self.buses["rig"].ping()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual((self.bus.locks, len(self.other.asked("bus.cancel"))), ({}, 1))

    async def test_frames_and_sets(self) -> None:
        async with self.buses.frames("rig/cam0", "here/cam0", limit=2, timeout=5) as frames:
            self.bus.send_frame("cam0", 1)
            self.other.send_frame("cam0", 7)
            self.assertEqual(
                {(name, frame.sequence) async for name, frame in frames}, {("here/cam0", 1), ("rig/cam0", 7)}
            )
            self.assertEqual(frames.lost, {"here/cam0": 0, "rig/cam0": 0})
        async with self.buses.frame_sets("rig/cam0", "here/cam0", tolerance=0.001, limit=1, timeout=5) as sets:
            self.send(self.other, 1, 1_000_000_000)
            self.send(self.bus, 1, 1_000_300_000)
            [found] = [found async for found in sets]
        self.assertEqual((found.spread, found.uncertainty), (300_000, 3000))

    async def test_what_waits_ends_with_one_of_them(self) -> None:
        async with self.buses.frames("rig/cam0", "here/cam0", timeout=60) as frames:
            task = asyncio.create_task(anext(frames))
            # One turn of the loop, in which the task comes to where it waits for both.
            await asyncio.sleep(0)
            self.assertTrue(self.buses._run._waiting)
            await self.buses["rig"].close()
            with self.assertRaises(ValueError):
                await asyncio.wait_for(task, 10)

    async def test_one_that_is_not_there_closes_the_others_and_is_named(self) -> None:
        clients = {"rig": AsyncClient(self.bus.directory), "gone": AsyncClient(self.bus.directory / "none")}
        with self.assertRaises(BusNotRunning) as caught:
            async with AsyncBuses(clients):
                pass
        self.assertEqual(caught.exception.host, "gone")
        with self.assertRaises(ValueError):
            await clients["rig"].ping()


if __name__ == "__main__":
    unittest.main()
