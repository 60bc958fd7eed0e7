"""Locks, and what is changed under them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import camerabus
from camerabus import DeviceBusy, LockLost, LockRequired
from live import HOLDER, LiveTestCase, TIMEOUT


class Locks(LiveTestCase):
    def test_the_second_client_learns_the_holder_and_gets_the_lock_after_its_death(self) -> None:
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
        self.addCleanup(self.free, self.second)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.wait, TIMEOUT)
        self.addCleanup(waiting.kill)
        until = time.monotonic() + TIMEOUT
        while not (locks := self.client.locks()).waiting:
            self.assertLess(time.monotonic(), until)
        self.assertEqual(
            [(lock.note, lock.devices) for lock in locks.locks], [("the loser", (self.first, self.second))]
        )
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
        lock = self.client.lock(self.first, lease=3)
        lock.renew()
        with self.client.lock(self.first, wait=TIMEOUT), self.assertRaises(LockLost):
            lock.renew()

    def test_a_child_joins_the_lock(self) -> None:
        program = "from camerabus import Client\nc = Client()\nwith c.lock('{0}'): c.set('{0}', brightness=0)".format(
            self.first
        )
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
            changes = [
                {"device": name, "activeFormat": {"width": 1280, "height": 720}, "frameRate": 30}
                for name in self.cameras[:2]
            ]
            result = self.client.configure(changes)
        self.assertEqual(result.verdict, "valid")
        for name in (self.first, self.second):
            device = self.client.device(name)
            assert device.activeFormat is not None
            self.assertEqual((device.activeFormat.width, device.activeFormat.height, device.frameRate), (1280, 720, 30))
            self.assertEqual(device.generation, result.generation[name])

    def test_a_batch_whose_last_change_is_impossible_changes_nothing(self) -> None:
        before = [
            (device.activeFormat, device.frameRate, device.controls, device.generation)
            for device in self.without_lock(*self.cameras[:2])
        ]
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
        after = [
            (device.activeFormat, device.frameRate, device.controls, device.generation)
            for device in self.without_lock(*self.cameras[:2])
        ]
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
            self.assertEqual(
                self.client.set(self.first, brightness=value).applied[self.first]["controls"]["brightness"], value
            )
            self.assertEqual(self.client.controls(self.first)["brightness"].value, value)
        with self.assertRaises(camerabus.ControlUnsupported):
            self.client.set(self.first, no_such_control=1)
