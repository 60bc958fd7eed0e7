"""Locks as context managers, and which lock a change is made under."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
from typing import Any, Callable
from unittest import mock

import zmq

from camerabus import AsyncClient, BusTimeout, Client, DeviceBusy, LockLost, LockRequired, LockTimeout
from camerabus.core import Core
from fake_bus import NO_REPLY, BusTestCase

ANSWER = {"verdict": "valid", "generation": {}, "applied": {}, "adjusted": []}


class Locks(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bus.methods["device.configure"] = self.bus.methods["device.set"] = lambda params: ANSWER
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def test_a_lock_ends_with_its_block(self) -> None:
        with self.client.lock("cam0", "cam1", wait=0.25, lease=2, note="calibrating") as lock:
            self.assertEqual(self.bus.locks, {"token-1": ["cam0", "cam1"]})
            self.assertEqual((lock.fence, lock.devices, lock.holder["name"]), (1, ("cam0", "cam1"), "me"))
        self.assertEqual(self.bus.locks, {})
        expected = {"devices": ["cam0", "cam1"], "wait": 250, "lease": 2000, "note": "calibrating"}
        self.assertEqual(self.bus.asked("device.lock"), [expected])

    def test_the_token_is_in_no_text(self) -> None:
        with self.client.lock("cam0") as lock:
            self.assertNotIn(lock.token, repr(lock))

    def test_changes_within_the_block_use_the_lock(self) -> None:
        with self.client.lock("cam0"):
            self.client.configure("cam0", frameRate=30)
            self.client.set("cam0", brightness=1)
            self.client.set("cam1", brightness=1)
        self.client.set("cam0", brightness=1)
        self.assertEqual(self.bus.asked("device.configure")[0]["lock"], "token-1")
        self.assertEqual([params.get("lock") for params in self.bus.asked("device.set")], ["token-1", None, None])

    def test_of_several_the_innermost_that_covers_the_devices_is_used(self) -> None:
        with self.client.lock("cam0"), self.client.lock("cam1"):
            self.client.set("cam0", brightness=1)
            self.client.set("cam1", brightness=1)
        self.assertEqual([params["lock"] for params in self.bus.asked("device.set")], ["token-1", "token-2"])

    def test_the_inner_lock_is_used_when_the_outer_was_taken_over(self) -> None:
        with self.assertRaises(LockLost), self.client.lock("cam0"):
            self.bus.locks.clear()
            with self.client.lock("cam0"):
                self.client.set("cam0", brightness=1)
        self.assertEqual(self.bus.asked("device.set")[0]["lock"], "token-2")

    def test_a_lock_may_be_held_and_handed_over_by_hand(self) -> None:
        lock = self.client.lock("cam0")
        self.client.set("cam0", lock=lock, brightness=1)
        self.client.set("cam0", lock=lock.token, brightness=1)
        self.client.set("cam0", brightness=1)
        lock.release()
        self.assertEqual([params.get("lock") for params in self.bus.asked("device.set")], ["token-1", "token-1", None])
        self.assertEqual(self.bus.locks, {})

    def test_another_client_s_lock_is_not_used(self) -> None:
        with Client(self.bus.directory) as other, self.client.lock("cam0"):
            other.set("cam0", brightness=1)
        self.assertNotIn("lock", self.bus.asked("device.set")[0])

    def test_a_lock_that_was_taken_over_is_told_at_the_end_of_the_block(self) -> None:
        with self.assertRaises(LockLost):
            with self.client.lock("cam0"):
                self.bus.locks.clear()

    def test_what_went_wrong_in_the_block_comes_first(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with self.client.lock("cam0"):
                self.bus.locks.clear()
                1 / 0

    def test_busy_is_told_with_the_holder(self) -> None:
        with self.client.lock("cam0"), self.assertRaises(DeviceBusy) as caught:
            self.client.lock("cam0")
        self.assertEqual(caught.exception.holder["pid"], 42)
        self.assertEqual(self.bus.asked("bus.cancel"), [])

    def test_a_wait_that_is_over_is_busy_too_and_tells_the_holder(self) -> None:
        self.bus.refuse("device.lock", "lockTimeout", "cam0 is still locked by other.", holder={"pid": 42}, queue=1)
        with self.assertRaises(DeviceBusy) as caught:
            self.client.lock("cam0", wait=5)
        self.assertIs(type(caught.exception), LockTimeout)
        self.assertEqual(
            (caught.exception.holder["pid"], caught.exception.queue, caught.exception.reason), (42, 1, "lockTimeout")
        )

    def test_times_that_can_t_be_are_told_with_their_unit_and_range(self) -> None:
        for wait in (-1, 86_401, math.inf, math.nan):
            with self.assertRaisesRegex(ValueError, r"wait is in seconds, from 0 to 86400 \(0 does not wait\), not "):
                self.client.lock("cam0", wait=wait)
        with self.assertRaisesRegex(ValueError, "lease is in seconds, from 0.1 to 86400 .*, not 0$"):
            self.client.take_over("cam0", lease=0)
        with self.assertRaisesRegex(TypeError, "wait is in seconds, .*, not '5'"):
            self.client.lock("cam0", wait="5")  # type: ignore[arg-type]

        async def asynchronously() -> None:
            async with AsyncClient(self.bus.directory) as client:
                with self.assertRaisesRegex(ValueError, "wait is in seconds"):
                    client.lock("cam0", wait=-1)

        asyncio.run(asynchronously())
        self.assertEqual(self.bus.asked("device.lock"), [])

    def test_a_lease_is_renewed(self) -> None:
        self.bus.methods["device.renew"] = lambda params: {"expires": 1}
        with self.client.lock("cam0", lease=1) as lock:
            lock.renew()
        self.assertEqual(self.bus.asked("device.renew"), [{"lock": "token-1"}])

    def test_a_wait_is_waited_for(self) -> None:
        """The call's own deadline comes on top of the time in the queue."""
        with mock.patch.object(Core, "ask_for", autospec=True, side_effect=Core.ask_for) as ask:
            with Client(self.bus.directory, timeout=2) as hasty, hasty.lock("cam0", wait=30):
                self.assertEqual(list(self.bus.locks.values()), [["cam0"]])
        self.assertEqual(ask.call_args.args[-1], 32)


class Joining(BusTestCase):
    """Within `camerabus lock … -- program`: its lock is used if it covers the requested devices, and never mistaken
    for another one.
    """

    def setUp(self) -> None:
        super().setUp()
        self.bus.methods["device.configure"] = self.bus.methods["device.set"] = lambda params: ANSWER
        self.bus.locks["theirs"], self.bus.fence = ["cam0", "cam1"], 7
        os.environ["CAMERABUS_LOCK"] = "theirs"
        self.addCleanup(os.environ.pop, "CAMERABUS_LOCK", None)
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def test_a_lock_that_covers_all_is_joined_and_left_alone(self) -> None:
        with self.client.lock("cam0", wait=5) as lock:
            self.assertEqual((lock.joined, lock.token, lock.fence, lock.devices), (True, "theirs", 7, ("cam0", "cam1")))
            self.assertEqual(lock.holder["name"], "me")
            self.client.configure("cam0", frameRate=30)
        self.client.set("cam1", brightness=1)
        self.assertEqual((self.bus.asked("device.lock"), self.bus.asked("device.unlock")), ([], []))
        self.assertEqual(self.bus.asked("device.configure")[0]["lock"], "theirs")
        self.assertEqual(self.bus.asked("device.set")[0]["lock"], "theirs")

    def test_a_token_that_is_good_for_nothing_is_told(self) -> None:
        os.environ["CAMERABUS_LOCK"] = "garbage"
        with self.assertRaisesRegex(LockLost, "CAMERABUS_LOCK.* has ended or never existed") as caught:
            self.client.lock("cam0")
        self.assertEqual((caught.exception.fence, self.bus.asked("device.lock")), (7, []))

    def test_a_lock_that_covers_some_only_is_told(self) -> None:
        with self.assertRaisesRegex(LockRequired, "covers cam0, cam1 but not cam2") as caught:
            self.client.lock("cam0", "cam2", "cam1", wait=60)
        self.assertEqual((caught.exception.data["devices"], self.bus.asked("device.lock")), (["cam2"], []))

    def test_other_devices_get_a_lock_of_their_own(self) -> None:
        with self.client.lock("cam2") as lock:
            self.assertEqual((lock.joined, lock.token), (False, "token-8"))
            self.client.set("cam2", brightness=1)
        self.assertEqual(self.bus.asked("device.set")[0]["lock"], "token-8")
        self.assertEqual(self.bus.asked("device.unlock"), [{"lock": "token-8"}])

    def test_asyncio_does_the_same(self) -> None:
        async def use() -> None:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                async with client.lock("cam1") as lock:
                    self.assertTrue(lock.joined)
                with self.assertRaises(LockRequired):
                    async with client.lock("cam1", "cam2"):
                        pass
                os.environ["CAMERABUS_LOCK"] = "garbage"
                with self.assertRaises(LockLost):
                    await client.lock("cam1")

        asyncio.run(use())
        self.assertEqual((self.bus.asked("device.lock"), self.bus.asked("device.unlock")), ([], []))


class GivenUp(BusTestCase):
    """A lock that comes when nobody waits for it any more must not stay."""

    def setUp(self) -> None:
        super().setUp()
        self.granted: dict[str, Any] = {}
        self.bus.methods["device.lock"] = lambda params: NO_REPLY
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def _keys(self, method: str) -> list[str | None]:
        return [request.get("key") for request in self.bus.requests if request["method"] == method]

    def test_one_that_waits_is_cancelled(self) -> None:
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": True}
        with self.assertRaises(BusTimeout):
            self.client.lock("cam0", timeout=0.05)
        [key] = self._keys("device.lock")
        self.assertIsNotNone(key)
        self.assertEqual(self.bus.asked("bus.cancel"), [{"key": key}])

    def test_one_that_was_granted_meanwhile_is_given_back(self) -> None:
        def cancel(params: dict[str, Any]) -> Any:
            # As after a grant whose reply was lost: the same key is answered with it.
            self.bus.methods["device.lock"] = self.bus._lock
            return {"cancelled": False}

        self.bus.methods["bus.cancel"] = cancel
        with self.assertRaises(BusTimeout):
            self.client.lock("cam0", timeout=0.05)
        first, second = self._keys("device.lock")
        self.assertEqual(first, second)
        self.assertEqual((self.bus.asked("device.unlock"), self.bus.locks), ([{"lock": "token-1"}], {}))

    def test_a_session_or_a_source_that_was_made_meanwhile_is_taken_back(self) -> None:
        answers = {
            "session": {"session": "s1", "state": {"state": "stopped"}, "resolved": [], "explanation": []},
            "source": {"device": "door", "uniqueID": "client-door", "path": "/nowhere", "bytes": 3072},
        }
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": False}
        for kind, answer in answers.items():
            self.bus.methods[f"{kind}.delete"] = lambda params: {}

            def create(params: dict[str, Any]) -> Any:
                self.bus.methods[f"{kind}.create"] = lambda params: answer
                return NO_REPLY

            self.bus.methods[f"{kind}.create"] = create
            with self.assertRaises(BusTimeout):
                if kind == "session":
                    self.client.session("cam0", timeout=0.05)
                else:
                    self.client.create_source("door", 64, 48, "gray", timeout=0.05)
            first, second = [each for each in self.bus.requests if each["method"] == f"{kind}.create"]
            self.assertEqual((first["key"], first["params"]), (second["key"], second["params"]))
        self.assertEqual(self.bus.asked("session.delete"), [{"session": "s1"}])
        self.assertEqual(self.bus.asked("source.delete"), [{"device": "door"}])

    def test_ctrl_c_gives_up_too(self) -> None:
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": True}

        def lock(params: dict[str, Any]) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return NO_REPLY

        self.bus.methods["device.lock"] = lock
        with self.assertRaises(KeyboardInterrupt):
            self.client.lock("cam0", timeout=60)
        self.assertEqual(len(self.bus.asked("bus.cancel")), 1)

    def test_so_does_ctrl_c_while_it_waits(self) -> None:
        self.bus.methods["bus.cancel"] = lambda params: {"cancelled": True}
        asked = threading.Event()
        poll = zmq.Poller.poll

        def interrupted(poller: zmq.Poller, timeout: float | None = None) -> Any:
            if (
                threading.current_thread() is threading.main_thread()
                and not asked.is_set()
                and self.bus.asked("device.lock")
            ):
                asked.set()
                raise KeyboardInterrupt
            return poll(poller, 1 if threading.current_thread() is threading.main_thread() else timeout)

        with mock.patch.object(zmq.Poller, "poll", interrupted), self.assertRaises(KeyboardInterrupt):
            self.client.lock("cam0", timeout=60)
        self.assertEqual(len(self.bus.asked("bus.cancel")), 1)

    def test_a_bus_without_cancel_is_left_in_peace(self) -> None:
        with self.assertRaises(BusTimeout):
            self.client.lock("cam0", timeout=0.05)
        self.assertEqual(len(self.bus.asked("device.lock")), 1)


class OverARestart(BusTestCase):
    """The bus ends with a request on its way, and another one comes."""

    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def _die_in(self, method: str, after: Callable[[dict[str, Any]], Any] = lambda params: None) -> None:
        """Its first call ends the bus, which does then as it usually does."""
        usual = self.bus.methods[method]

        def die(params: dict[str, Any]) -> Any:
            after(params)
            self.bus.methods[method] = usual

            def again() -> None:
                self.bus.stop()
                self.bus.start()

            thread = threading.Thread(target=again)
            thread.start()
            self.addCleanup(thread.join)
            return NO_REPLY

        self.bus.methods[method] = die

    def test_a_lock_is_asked_for_again_under_the_same_key(self) -> None:
        self._die_in("device.lock")
        with self.client.lock("cam0", wait=1) as lock:
            self.assertEqual(lock.token, "token-1")
        first, second = [request for request in self.bus.requests if request["method"] == "device.lock"]
        self.assertEqual((first["key"], first["params"]), (second["key"], second["params"]))

    def test_a_session_is_asked_for_again_under_the_same_key(self) -> None:
        self.bus.methods["session.create"] = lambda params: {
            "session": "s1", "state": {"state": "stopped"}, "resolved": [], "explanation": [],
        }
        self._die_in("session.create")
        self.assertEqual(self.client.session("cam0", name="door").id, "s1")

        async def make() -> str:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                self._die_in("session.create")
                return (await client.session("cam0", name="door")).id

        self.assertEqual(asyncio.run(make()), "s1")
        asked = [
            (request["key"], request["params"])
            for request in self.bus.requests
            if request["method"] == "session.create"
        ]
        self.assertEqual((asked[0], asked[2]), (asked[1], asked[3]))
        self.assertNotEqual(asked[0][0], asked[2][0])

    def test_an_unlock_is_asked_again_and_lost_is_as_good_as_done(self) -> None:
        for after in (lambda params: None, lambda params: self.bus.locks.clear()):
            lock = self.client.lock("cam0")
            self._die_in("device.unlock", after)
            lock.release()
            self.assertEqual(self.bus.locks, {})
        self.assertEqual(len(self.bus.asked("device.unlock")), 4)

    def test_a_renewal_is_asked_again(self) -> None:
        self.bus.methods["device.renew"] = lambda params: {"expires": 1}
        with self.client.lock("cam0", lease=10) as lock:
            self._die_in("device.renew")
            lock.renew()
        self.assertEqual(self.bus.asked("device.renew"), [{"lock": "token-1"}] * 2)

    def test_asyncio_does_the_same(self) -> None:
        async def use() -> None:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                self._die_in("device.lock")
                async with client.lock("cam0"):
                    self._die_in("device.unlock")

        asyncio.run(use())
        self.assertEqual(self.bus.locks, {})
        self.assertEqual(len(self.bus.asked("device.lock")), 2)


class TakingOver(BusTestCase):
    def test_it_is_asked_for_and_the_environment_s_lock_is_not_joined(self) -> None:
        os.environ["CAMERABUS_LOCK"] = "theirs"
        self.addCleanup(os.environ.pop, "CAMERABUS_LOCK", None)
        self.bus.methods["device.takeOver"] = self.bus._lock
        with Client(self.bus.directory) as client, client.take_over("cam0", lease=2, note="mine") as lock:
            self.assertEqual((lock.joined, lock.token), (False, "token-1"))
        self.assertEqual(self.bus.asked("device.takeOver"), [{"devices": ["cam0"], "lease": 2000, "note": "mine"}])
        self.assertEqual(self.bus.locks, {})

    def test_all_locks_and_waiters_are_told(self) -> None:
        holder = {"uid": 1, "gid": 2, "pid": 3, "name": "me"}
        lock = {
            "id": "l", "devices": ["cam0"], "holder": holder, "fence": 4, "note": None, "since": 5, "lease": 100,
            "expires": 9,
        }
        wait = {"devices": ["cam0", "cam1"], "holder": holder, "note": "why", "until": 6}
        self.bus.methods["device.locks"] = lambda params: {"locks": [lock], "waiting": [wait]}
        with Client(self.bus.directory) as client:
            locks = client.locks()
        self.assertEqual((locks.locks[0].fence, locks.locks[0].devices, locks.locks[0].lease), (4, ("cam0",), 100))
        self.assertEqual((locks.waiting[0].holder.name, locks.waiting[0].until), ("me", 6))
