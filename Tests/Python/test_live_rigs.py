"""Profiles of settings, rigs and matched sets."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from unittest import mock

import camerabus
from camerabus import AsyncClient
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class Profiles(LiveTestCase):
    def test_a_profile_is_kept_applied_and_forgotten(self) -> None:
        self.client.set(self.first, brightness=21)
        self.addCleanup(self.client.set, self.first, brightness=0)
        saved = self.client.save_profile("py", self.first)
        self.assertEqual([one.device for one in saved.devices], [self.first])
        self.assertEqual(saved.devices[0].controls["brightness"], 21)
        self.assertIsNotNone(saved.devices[0].activeFormat)
        self.client.set(self.first, brightness=5)
        self.assertIn(saved, self.client.profiles())
        self.assertEqual(
            self.client.apply_profile("py", dry_run=True).applied[self.first]["controls"]["brightness"], 21
        )
        self.assertEqual(self.client.device(self.first).controls["brightness"], 5)
        with self.client.lock(self.first, self.second):
            done = self.client.apply_profile("py", self.first, self.second, mode="nearest")
            # The second one is of another kind: what it doesn't have is left out, and told.
            self.assertTrue(all(each.path.startswith(f"{self.second}.controls.") for each in done.adjusted))
        self.assertEqual(self.client.device(self.second).controls["brightness"], 21)
        self.client.set(self.second, brightness=0)
        self.client.delete_profile("py")
        with self.assertRaises(camerabus.ProfileNotFound) as caught:
            self.client.apply_profile("py")
        self.assertEqual(caught.exception.profile, "py")


class Rigs(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.rig = self.client.set_rig("py", self.first, self.second, tolerance=0.5)
        self.addCleanup(self.client.delete_rig, "py")

    def test_a_rig_is_locked_and_configured_as_one(self) -> None:
        self.assertEqual([device.id for device in self.rig.devices], [self.first, self.second])
        self.assertEqual((self.rig.tolerance, self.rig.complete, self.rig.configured), (500, True, False))
        self.assertIn(self.rig, self.client.rigs())
        with self.client.lock("py") as lock:
            self.assertEqual(lock.devices, (self.first, self.second))
            done = self.client.configure("py", frameRate=15)
            self.assertEqual(set(done.applied), {self.first, self.second})
            self.client.configure("py", frameRate=30)
            # Who is started under the lock joins it by the same name.
            with mock.patch.dict(os.environ, {"CAMERABUS_LOCK": lock.token}):
                with self.client.lock("py") as joined:
                    self.assertTrue(joined.joined)
        with self.assertRaises(camerabus.RigNotFound):
            self.client.delete_rig("nobody")

    def test_a_rig_is_the_inputs_of_a_session(self) -> None:
        with self.client.session("py", preset="640x480") as session:
            self.assertTrue(session.is_running)
            self.assertEqual([delivery.device for delivery in session.resolved], [self.first, self.second])
        with self.assertRaises(camerabus.CannotAddInput):
            self.client.session(self.second, "py")
        self.assertEqual(self.client.sessions(), [])

    def test_sets_come_whole_and_in_order(self) -> None:
        last = -1
        seen = set()
        with self.client.frame_sets("py", rendition="gray:64x0", limit=10, timeout=TIMEOUT) as sets:
            for found in sets:
                for device, frame in found.frames.items():
                    self.assertEqual(frame.device, device)
                    self.assertEqual(
                        frame.array().shape if has_numpy() else None, (frame.height, 64) if has_numpy() else None
                    )
                    self.assertEqual(found.offsets[device], frame.timestamp.monotonic - found.monotonic)
                    self.assertLessEqual(abs(found.offsets[device]), found.tolerance)
                    name = (device, frame.stream, frame.captureSequence)
                    self.assertNotIn(name, seen)
                    seen.add(name)
                if not found.late:
                    self.assertGreater(found.number, last)
                    last = found.number
                    self.assertEqual(list({**found.frames, **found.missing}) and next(iter(found.frames)), self.first)
                    times = [frame.timestamp.monotonic for frame in found.frames.values()]
                    self.assertEqual(found.spread, max(times) - min(times))

    def test_a_reader_that_comes_back_gets_sets_again(self) -> None:
        self.client.set_rig("alone", self.first, self.second)
        self.addCleanup(self.client.delete_rig, "alone")
        lock = Path(RUNTIME_DIR) / "internal/alone.set.lock"

        def is_served(seconds: float = 0) -> bool:
            """Whether it is still, after so long at most."""
            with suppress(FileNotFoundError), open(lock) as file:
                command = ["flock", "--shared", "--timeout", f"{seconds}", f"{file.fileno()}"]
                return subprocess.run(command, pass_fds=[file.fileno()]).returncode != 0
            return False

        self.assertFalse(is_served())
        streams = set()
        for _ in range(2):
            with self.client.frame_sets("alone", rendition="gray:64x0", limit=1, timeout=TIMEOUT) as sets:
                streams.add(next(iter(sets)).stream)
                self.assertTrue(is_served())
            self.assertFalse(is_served(TIMEOUT))
        self.assertEqual(len(streams), 2)

    def test_a_rig_that_is_none_and_a_rendition_that_is_none(self) -> None:
        with self.assertRaises(camerabus.RigNotFound) as caught:
            self.client.frame_sets("nobody")
        self.assertEqual(caught.exception.rig, "nobody")
        with self.client.frame_sets("py", rendition="jpeg;q=0") as sets, self.assertRaises(camerabus.InvalidParams):
            next(sets)

    def test_asyncio(self) -> None:
        async def program() -> None:
            async with AsyncClient(timeout=TIMEOUT) as client:
                self.assertIn("py", [rig.name for rig in await client.rigs()])
                numbers = [
                    found.number
                    async for found in client.frame_sets("py", rendition="gray:64x0", limit=5, timeout=TIMEOUT)
                ]
                self.assertGreaterEqual(len(numbers), 5)
                await client.save_profile("async", "py")
                self.assertEqual((await client.apply_profile("async", dry_run=True)).verdict, "valid")
                self.assertIn("async", [profile.name for profile in await client.profiles()])
                await client.delete_profile("async")
                await client.set_rig("other", self.second)
                await client.delete_rig("other")

        asyncio.run(program())


def has_numpy() -> bool:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True
