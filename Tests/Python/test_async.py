"""The same for asyncio: that the names are there, that calls run beside each other, and that cancelling cleans up."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from typing import Any
from unittest import IsolatedAsyncioTestCase

import camerabus
from camerabus import AsyncClient, BusGone, BusNotRunning, BusTimeout, DeviceBusy, LockLost
from fake_bus import NO_REPLY, BusTestCase, Refusal

ANSWER = {"verdict": "valid", "generation": {}, "applied": {}, "adjusted": []}


class Async(BusTestCase, IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.bus.methods["device.configure"] = self.bus.methods["device.set"] = lambda params: ANSWER
        self.client = await AsyncClient(self.bus.directory, timeout=5).__aenter__()
        self.addAsyncCleanup(self.client.close)

    async def test_both_clients_have_the_same_names_and_parameters(self) -> None:
        names = [name.removeprefix("Async") for name in camerabus.__all__ if name.startswith("Async")]
        self.assertIn("Client", names)
        pairs = [(getattr(camerabus, name), getattr(camerabus, f"Async{name}")) for name in names]
        for one, other in pairs:
            names = {name for name in dir(one) if not name.startswith("_")}
            self.assertEqual(names, {name for name in dir(other) if not name.startswith("_")})
            for name in names:
                if inspect.isfunction(getattr(one, name)):
                    self.assertEqual(
                        self._parameters(one, name), self._parameters(other, name), f"{one.__name__}.{name}"
                    )

    def _parameters(self, kind: type, name: str) -> list[tuple[str, Any, Any]]:
        return [
            (each.name, each.kind, each.default) for each in inspect.signature(getattr(kind, name)).parameters.values()
        ]

    async def test_calls(self) -> None:
        self.assertEqual([device.id for device in await self.client.devices()], ["cam0", "cam1"])
        self.assertEqual((await self.client.device("cam0")).id, "cam0")
        await self.client.ping()
        self.assertEqual(await self.client.call("bus.ping"), {})
        self.assertEqual(self.client.hello.epoch, "e1")
        self.bus.refuse("bus.ping", "deviceBusy", holder={"pid": 3})
        with self.assertRaises(DeviceBusy):
            await self.client.ping()

    async def test_a_slow_call_holds_up_no_other(self) -> None:
        self.bus.methods["slow"] = lambda params: NO_REPLY
        slow = asyncio.create_task(self.client.call("slow", timeout=30))
        while not self.bus.asked("slow"):
            await self.client.ping()
        results = await asyncio.gather(*(self.client.devices() for _ in range(20)))
        self.assertEqual({len(devices) for devices in results}, {2})
        slow.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await slow
        await self.client.ping()

    async def test_a_deadline(self) -> None:
        self.bus.methods["slow"] = lambda params: NO_REPLY
        with self.assertRaises(BusTimeout):
            await self.client.call("slow", timeout=0.05)
        self.assertEqual(len(await self.client.devices()), 2)

    async def test_a_bus_that_dies_fails_the_call_at_once(self) -> None:
        asked = threading.Event()

        def die(params: Any) -> Any:
            asked.set()
            return NO_REPLY

        self.bus.methods["device.unlock"] = die
        killer = threading.Thread(target=lambda: (asked.wait(5), self.bus.stop()))
        killer.start()
        with self.assertRaises(BusGone):
            await self.client.call("device.unlock", {"lock": "x"}, timeout=60)
        killer.join()
        self.bus.start()
        await self.client.ping(timeout=30)

    async def test_no_bus(self) -> None:
        with self.assertRaises(BusNotRunning):
            async with AsyncClient(self.bus.directory / "none"):
                pass
        with self.assertRaises(ValueError):
            await AsyncClient(self.bus.directory).ping()

    async def test_closing_fails_what_waits(self) -> None:
        self.bus.methods["slow"] = lambda params: NO_REPLY
        slow = asyncio.create_task(self.client.call("slow", timeout=30))
        watch = asyncio.create_task(self._first(self.client.watch()))
        while not self.bus.asked("slow") or not any(topic == "state/" for _, topic in self.bus.subscriptions):
            await self.client.ping()
        await self.client.close()
        for task in (slow, watch):
            with self.assertRaises(ValueError):
                await asyncio.wait_for(task, 10)

    async def _first(self, items: Any) -> Any:
        async for item in items:
            return item

    async def test_locks(self) -> None:
        async with self.client.lock("cam0", wait=1) as lock:
            self.assertEqual(self.bus.locks, {lock.token: ["cam0"]})
            await self.client.configure("cam0", frameRate=30)
            await self.client.set("cam0", brightness=1)
        self.assertEqual(self.bus.locks, {})
        self.assertEqual(self.bus.asked("device.configure")[0]["lock"], "token-1")
        self.assertEqual(self.bus.asked("device.set")[0]["lock"], "token-1")
        held = await self.client.lock("cam0")
        await held.release()
        with self.assertRaises(LockLost):
            async with self.client.lock("cam0"):
                self.bus.locks.clear()

    async def test_a_task_s_lock_is_its_own(self) -> None:
        entered, done = asyncio.Event(), asyncio.Event()

        async def locker() -> None:
            async with self.client.lock("cam0"):
                entered.set()
                await done.wait()

        task = asyncio.create_task(locker())
        await entered.wait()
        await self.client.set("cam0", brightness=1)
        done.set()
        await task
        self.assertNotIn("lock", self.bus.asked("device.set")[0])

    async def test_a_cancelled_wait_for_a_lock_is_given_up(self) -> None:
        self.bus.methods["device.lock"] = lambda params: NO_REPLY
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": True}
        task = asyncio.create_task(self._enter(self.client.lock("cam0", wait=30)))
        while not self.bus.asked("device.lock"):
            await self.client.ping()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(len(self.bus.asked("bus.cancel")), 1)

    async def _enter(self, manager: Any) -> Any:
        async with manager as value:
            return value

    async def test_frames(self) -> None:
        async with self.client.frames("cam0", "cam1", limit=4, timeout=10) as frames:
            seen = []
            self.bus.send_frame("cam0", 1)
            self.bus.send_frame("cam1", 5)
            async for frame in frames:
                seen.append((frame.device, frame.sequence, frame.lost))
                if len(seen) == 2:
                    self.bus.send_frame("cam0", 4)
                    self.bus.send_frame("cam1", 6)
        self.assertEqual(sorted(seen), [("cam0", 1, 0), ("cam0", 4, 2), ("cam1", 5, 0), ("cam1", 6, 0)])
        self.assertEqual(frames.lost, {"cam0": 2, "cam1": 0})

    async def test_frames_without_a_block(self) -> None:
        sent = False

        def send_when_subscribed() -> None:
            while ("+", "frame/cam0/native/") not in self.bus.subscriptions:
                self.bus.do(lambda: None)
            self.bus.send_frame("cam0", 1)

        worker = threading.Thread(target=send_when_subscribed)
        worker.start()
        async for frame in self.client.frames("cam0", timeout=10):
            sent = frame.sequence == 1
            break
        worker.join()
        self.assertTrue(sent)

    async def test_frames_in_several_tasks(self) -> None:
        async def read(device: str) -> list[int]:
            async with self.client.frames(device, limit=20, timeout=10) as frames:
                self.bus.send_frame(device, 1)
                seen = []
                async for frame in frames:
                    seen.append(frame.sequence)
                    self.bus.send_frame(device, frame.sequence + 1)
                return seen

        self.assertEqual(await asyncio.gather(read("cam0"), read("cam1")), [list(range(1, 21))] * 2)

    async def test_frames_go_on_when_the_camera_is_back(self) -> None:
        async with self.client.frames("cam0", timeout=10) as frames:
            self.bus.send_frame("cam0", 1)
            await anext(frames)
            header = {
                "v": 1, "device": "cam0", "rendition": "native",
                "error": {"reason": "deviceDisconnected", "message": "Gone."},
            }
            self.bus.send_media("cam0", "frame/cam0/native/", header)
            again = asyncio.create_task(anext(frames))
            while frames.last_error is None:
                await self.client.ping()
            self.bus.send_frame("cam0", 1, stream="s2")
            self.assertEqual(((await again).stream, frames.last_error.reason), ("s2", "deviceDisconnected"))

    async def test_silence_is_explained(self) -> None:
        async with self.client.frames("cam0", timeout=2) as frames:
            with self.assertRaises(BusTimeout):
                await anext(frames)

    async def test_events(self) -> None:
        async with self.client.watch("state/", timeout=5) as watch:
            self.bus.set_state("state/bus/", 1)
            self.assertEqual((await anext(watch)).value, 1)
        self.assertEqual([event async for event in self.client.watch("event/", timeout=0.05)], [])

    async def test_the_mirror(self) -> None:
        self.bus.set_state("state/device/cam0/", "a")
        async with self.client.mirror() as mirror:
            self.assertEqual(dict(mirror), {"state/device/cam0/": "a"})
            self.bus.set_state("state/device/cam0/", "b", lose=True)
            self.bus.set_state("state/device/cam0/", "c")
            self.assertEqual([change.value for change in await mirror.update(5)], ["c"])
            self.bus.set_state("state/device/cam0/", "d")
            await mirror.wait(lambda state: state["state/device/cam0/"] == "d", timeout=5)
            with self.assertRaises(BusTimeout):
                await mirror.wait(lambda state: False, timeout=0.05)
            self.assertEqual([change async for change in mirror.changes(0.05)], [])

    async def test_no_descriptor_stays_behind(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            async with AsyncClient(self.bus.directory) as client:
                async with client.frames("cam0"), client.watch(), client.mirror():
                    await asyncio.gather(*(client.ping() for _ in range(5)))
        self.bus.do(lambda: None)
        # The bus's side may be closing still.
        until = time.monotonic() + 20
        while len(os.listdir("/proc/self/fd")) > before + 3 and time.monotonic() < until:
            self.bus.do(lambda: None)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 3)
