"""The client of a bus on another machine, against a gateway that says what the test wants."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import resource
import socket
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import zmq
from fake_gateway import OWN, SECRET, SERVER, FakeGateway

from camerabus import AsyncClient, BusGone, BusNotRunning, BusTimeout, Client, LockLost, NotShared
from camerabus.core import Channel
from camerabus.credit import AHEAD, NEXT, NEXT_RAW
from camerabus.place import LocalPlace, RemotePlace, find_place, read_key, read_pair
from camerabus.silence import Silence
from camerabus.steps import Wait


@unittest.skipUnless(zmq.has("curve"), "libzmq was built without CURVE")
class Remote(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = FakeGateway()
        self.addCleanup(self.gateway.stop)
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("CAMERABUS_LOCK", None)
        self.address = (f"tcp://127.0.0.1:{self.gateway.port}",)
        self.keys: dict[str, Any] = {"server_key": SERVER, "key": OWN, "name": "probe", "timeout": 20}
        self.client = Client(*self.address, **self.keys)
        self.addCleanup(self.client.close)

    def methods(self) -> list[str]:
        return [request["method"] for request in self.gateway.requests]

    def test_each_frame_that_is_taken_asks_for_one_more(self) -> None:
        topic = b"frame/cam0/jpeg/"
        with self.client.frames("cam0", timeout=20) as frames:
            for _ in range(5):
                next(frames)
            self.assertTrue(self.gateway.wait(lambda: len(self.gateway.asked) >= AHEAD + 5))
            self.assertEqual(set(self.gateway.asked), {NEXT + topic})

    def test_what_is_left_of_a_closed_client_ends_without_a_word(self) -> None:
        told: list[Any] = []
        with mock.patch("sys.unraisablehook", told.append):
            frames = self.client.frames("cam0", timeout=20)
            next(frames)
            self.client.close()
            del frames
        self.assertEqual(told, [])

    def test_who_names_a_rendition_takes_it_as_it_is(self) -> None:
        with self.client.frames("cam0", rendition="bgr:2x2", timeout=20) as frames:
            next(frames)
        self.assertEqual(set(self.gateway.asked), {NEXT_RAW + b"frame/cam0/bgr:2x2/"})

    def test_a_lock_is_renewed_as_long_as_it_is_held(self) -> None:
        with mock.patch("camerabus.leases.LEASE", 2.0):
            with self.client.lock("cam0") as lock:
                self.assertTrue(self.gateway.wait(lambda: self.methods().count("device.renew") >= 2))
                self.assertEqual(lock.token, "t0ken")
        self.assertTrue(self.gateway.wait(lambda: "device.unlock" in self.methods()))
        self.assertEqual(self.client._open.helpers, [])

    def test_a_lock_is_renewed_in_a_program_with_many_descriptors(self) -> None:
        """More than select() knows."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= hard <= 1024:
            self.skipTest("no program may have more than 1024 descriptors here")
        if 0 <= soft < 2048:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2048 if hard < 0 else min(hard, 2048), hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        made = socket.socketpair

        def pair() -> tuple[socket.socket, socket.socket]:
            ours, theirs = made()
            with theirs:
                return ours, socket.socket(fileno=fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, 1024))

        with mock.patch("camerabus.leases.LEASE", 2.0), mock.patch("camerabus.leases.socket.socketpair", pair):
            with self.client.lock("cam0"):
                self.assertTrue(self.gateway.wait(lambda: self.methods().count("device.renew") >= 2))

    def test_a_connection_that_ends_as_it_is_used_again_costs_no_request(self) -> None:
        """A gateway ends those over which nothing is said for long, as one that came about again by itself."""
        [idle] = self.client._open._free
        idle._is_greeted = False
        request, cut = Channel.request, []

        def ask(channel: Channel, method: str, *arguments: Any) -> Any:
            if not cut:
                cut.append(method)
                raise BusGone("Cut.")
            return (yield from request(channel, method, *arguments))

        with mock.patch.object(Channel, "request", ask):
            self.client.set("cam0", brightness=1)
        self.assertEqual((cut, self.methods()[-2:]), (["bus.hello"], ["bus.hello", "device.set"]))
        # What may have been carried out is not asked for once more.
        cut.clear()
        with mock.patch.object(Channel, "request", ask), self.assertRaises(BusGone):
            self.client.set("cam0", brightness=2)
        self.assertEqual(cut, ["device.set"])

    def cut(self, client: Any) -> None:
        """Cuts all connections, and returns when the client could know of it: until then a request may be lost with its
        connection.
        """
        [idle] = client._open._free
        self.gateway.stop()
        self.assertTrue(idle._link.monitor.poll(20_000))

    def test_a_lock_is_lost_with_its_lease_and_that_is_told_at_once(self) -> None:
        with mock.patch("camerabus.leases.LEASE", 0.3), self.assertRaises(LockLost) as caught:
            with self.client.lock("cam0") as lock:
                self.cut(self.client)
                # Neither this nor the end of the block waits for the 20 s that a call may take.
                begun = time.monotonic()
                self.client.set("cam0", brightness=2)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(caught.exception.fence, 3)
        self.assertIn("has expired", caught.exception.message)
        self.assertIsInstance(lock.lost, LockLost)
        self.assertEqual((self.client._open.helpers, self.client._open.leases), ([], {}))

    def test_the_end_of_a_block_tells_that_the_lease_is_over(self) -> None:
        with mock.patch("camerabus.leases.LEASE", 0.3):
            lock = self.client.lock("cam0")
        self.cut(self.client)
        begun = time.monotonic()
        with self.assertRaises(LockLost):
            lock.release()
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_lock_that_the_bus_has_ended_is_asked_for_nothing_any_more(self) -> None:
        self.gateway.refusals["device.renew"] = {
            "code": -32000, "message": "Taken over.", "data": {"reason": "lockLost", "fence": 9},
        }
        # The renewer asks at once, and ends with the answer.
        answers, answer = threading.Event(), self.gateway.answer
        self.addCleanup(answers.set)

        def answer_late(method: str, params: dict[str, Any]) -> Any:
            if method == "device.renew":
                answers.wait(20)
            return answer(method, params)

        self.gateway.answer = answer_late  # type: ignore[method-assign]
        others = set(threading.enumerate())  # the renewer of an earlier test may end only now
        with mock.patch("camerabus.leases.LEASE", 30.0):
            lock = self.client.lock("cam0")
        (renewer,) = set(threading.enumerate()) - others
        self.assertIsNone(lock.lost)
        answers.set()
        renewer.join(20)
        self.assertFalse(renewer.is_alive())
        with self.assertRaisesRegex(LockLost, "Taken over") as caught:
            self.client.set("cam0", brightness=1, lock=lock)
        self.assertEqual(caught.exception.fence, 9)
        self.assertNotIn("device.set", self.methods())
        with self.assertRaisesRegex(LockLost, "Taken over"):
            lock.release()

    def test_a_lock_ends_with_the_role_that_may_hold_it(self) -> None:
        self.gateway.refusals["device.renew"] = {
            "code": -32000, "message": "The role is 'view'.", "data": {"reason": "unauthorized"},
        }
        with mock.patch("camerabus.leases.LEASE", 300.0):
            lock = self.client.lock("cam0")
        for thread in threading.enumerate():
            if thread.name == "camerabus-renewer":
                thread.join(20)
        self.assertIsInstance(lock.lost, LockLost)
        self.assertIn("The role is 'view'.", str(lock.lost))
        with self.assertRaises(LockLost) as caught:
            self.client.set("cam0", brightness=1, lock=lock)
        self.assertEqual(caught.exception.fence, 3)
        with self.assertRaises(LockLost):
            lock.release()

    def test_asyncio_loses_locks_likewise(self) -> None:
        async def work() -> None:
            with mock.patch("camerabus.leases.LEASE", 0.3):
                async with AsyncClient(*self.address, **self.keys) as client, client.lock("cam0"):
                    await asyncio.to_thread(self.cut, client)
                    await client.set("cam0", brightness=2)

        begun = time.monotonic()
        with self.assertRaises(LockLost):
            asyncio.run(work())
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_renewal_whose_answer_is_lost_is_asked_for_again(self) -> None:
        """By the next connection, and not a third of the lease later."""
        with mock.patch("camerabus.leases.LEASE", 30.0):
            lock = self.client.lock("cam0")
        renewer, steps = lock._renewer, []
        assert renewer is not None

        class Channel:
            def request(self, *arguments: Any) -> Any:
                steps.append("asked")
                raise BusGone("Cut.")
                yield

        work = renewer._renew(Channel())  # type: ignore[arg-type]
        # At once, as the word that the lock was had may be old.
        first = next(work)
        self.assertLessEqual(first.until, time.monotonic())
        second = next(work)
        self.assertEqual(steps, ["asked"])
        self.assertLessEqual(second.until, time.monotonic())
        work.close()
        lock.release()

    def test_a_lease_is_counted_from_when_it_was_asked_for(self) -> None:
        with mock.patch("camerabus.leases.LEASE", 30.0):
            lock = self.client.lock("cam0")
        renewer = lock._renewer
        assert renewer is not None

        class Channel:
            def request(self, *arguments: Any) -> Any:
                yield Wait((), math.inf)

        work = renewer._renew(Channel())  # type: ignore[arg-type]
        next(work)
        next(work)
        sent = time.monotonic()
        pause = next(work)
        self.assertLessEqual(renewer._lease.until, sent + 30)
        self.assertGreater(pause.until - time.monotonic(), 5)
        work.close()
        lock.release()

    def test_who_asks_for_a_lease_renews_it_by_hand(self) -> None:
        with self.client.lock("cam0", lease=60) as lock:
            lock.renew()
            self.assertEqual(self.client._open.helpers, [])
        params = [request["params"] for request in self.gateway.requests if request["method"] == "device.lock"]
        self.assertEqual(params, [{"devices": ["cam0"], "lease": 60000}])


    def test_a_slow_link_is_a_link(self) -> None:
        """However long nothing comes over it: no other connection is made to see whether there is anybody."""
        looked = threading.Event()
        real, looks = Silence.cut, []

        def cut(silence: Silence, *arguments: Any) -> Any:
            looks.append(silence)
            if len(looks) == 3:
                looked.set()
            return real(silence, *arguments)

        def give() -> None:
            looked.wait(20)
            self.gateway.gives.set()

        giver = threading.Thread(target=give)
        with self.client.frames("cam0", timeout=20) as frames:
            next(frames)
            next(frames)
            self.gateway.gives.clear()
            # What was asked for ahead is on its way already.
            giver.start()
            with (
                mock.patch("camerabus.silence.SILENCE", 0.02), mock.patch("camerabus.silence.DOWN", 0.0),
                mock.patch.object(Silence, "cut", cut),
                mock.patch("camerabus.place.why_unreachable", side_effect=AssertionError),
            ):  # fmt: skip
                for _ in range(4):
                    next(frames)
            giver.join()
        self.assertTrue(looked.is_set())

    def test_a_link_that_is_cut_is_told_when_it_does_not_come_about_again(self) -> None:
        with self.client.frames("cam0", timeout=20) as frames, self.client.watch(timeout=20) as watch:
            next(frames)
            self.gateway.stop()
            begun = time.monotonic()
            with mock.patch("camerabus.silence.SILENCE", 0.05), mock.patch("camerabus.silence.DOWN", 0.1):
                with self.assertRaisesRegex(BusNotRunning, "can't be reached any more .Connection refused"):
                    for _ in range(10):
                        next(frames)
                with self.assertRaisesRegex(BusNotRunning, "can't be reached any more .Connection refused"):
                    next(watch)
        self.assertLess(time.monotonic() - begun, 10)

    def test_a_watch_over_a_slow_link_waits_for_what_is_on_its_way(self) -> None:
        """A heartbeat that is late may be held up by the link; an answer that comes without one before it says that
        there is none.
        """
        with self.client.watch(timeout=20) as watch, mock.patch("camerabus.silence.SILENCE", 0.02):
            with mock.patch("camerabus.event_feed.PROBE", 0.0), self.assertRaisesRegex(BusTimeout, "has been silent"):
                next(watch)
            subscription = watch._feed.subscription  # type: ignore[attr-defined]
            assert subscription is not None
            self.assertFalse(subscription.is_probing)

    def test_memory_that_is_not_shared_is_told_once(self) -> None:
        with self.assertWarns(NotShared), self.client.frames("cam0", shared=True, timeout=20) as frames:
            self.assertTrue(next(frames).is_intact())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.client.frames("cam0", shared=True, timeout=20).close()


@unittest.skipUnless(zmq.has("curve"), "libzmq was built without CURVE")
class Unreachable(unittest.TestCase):
    def setUp(self) -> None:
        # Bound, and not listened at: it stays ours, and refuses.
        self.nobody = socket.socket()
        self.addCleanup(self.nobody.close)
        self.nobody.bind(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.nobody.getsockname()[1]}"

    def test_the_first_connection_says_why_there_is_none(self) -> None:
        with self.assertRaisesRegex(BusNotRunning, r"can't be reached \(Connection refused\)"):
            Client(self.address, server_key=SERVER, key=OWN, timeout=0.2)

    def test_who_is_not_let_in_is_told_what_may_be_wrong(self) -> None:
        self.nobody.listen(1)
        with self.assertRaisesRegex(BusTimeout, "refused this program. Check there with 'camerabus keys list' that its key is listed"):
            Client(self.address, server_key=SERVER, key=OWN, timeout=0.2)

    def test_looking_up_a_name_holds_up_nobody(self) -> None:
        """Not even one that takes for ever."""
        asked_by: list[int] = []
        asked, done = threading.Event(), threading.Event()
        self.addCleanup(done.set)

        def look_up(*arguments: Any) -> Any:
            asked_by.append(threading.get_ident())
            asked.set()
            done.wait(20)
            raise OSError("Too late.")

        async def work() -> None:
            with self.assertRaisesRegex(BusNotRunning, "no answer"):
                async with AsyncClient("tcp://rig.invalid:7350", server_key=SERVER, key=OWN, timeout=0.1):
                    pass

        with (
            mock.patch("camerabus.reaching.socket.create_connection", look_up),
            mock.patch("camerabus.reaching.PATIENCE", 0.1),
        ):
            asyncio.run(work())
        self.assertTrue(asked.wait(20))
        self.assertFalse(done.is_set())
        self.assertNotIn(threading.get_ident(), asked_by)


class Places(unittest.TestCase):
    def test_addresses(self) -> None:
        place = find_place("tcp://rig:7350", SERVER, OWN)  # type: ignore[arg-type]
        assert isinstance(place, RemotePlace)
        self.assertEqual(
            (str(place), place.events(None), place.media(None, "x")),
            tuple(f"tcp://rig:{port}" for port in (7350, 7351, 7352)),
        )
        for wrong in ("tcp://rig", "tcp://*:7350", "tcp://rig:0", "tcp://rig:65535", "tcp://:1", "tcp://rig:7350/x"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                find_place(wrong, SERVER, OWN)  # type: ignore[arg-type]
        with self.assertRaises(TypeError) as caught:
            find_place("tcp://rig:7350")
        for name in ("server_key=", "$CAMERABUS_SERVER_KEY", "key=", "$CAMERABUS_KEY"):
            self.assertIn(name, str(caught.exception))
        with self.assertRaises(TypeError) as caught:
            find_place("tcp://rig:7350", SERVER)
        self.assertNotIn("server_key", str(caught.exception))
        with self.assertRaises(TypeError):
            find_place("/run/camerabus", SERVER, OWN)  # type: ignore[arg-type]

    def test_keys_come_from_files_too(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.key")
            path.write_text(f"# mine\npublic {SERVER}\nsecret {SECRET}\n")
            self.assertEqual(read_pair(path), (SERVER, SECRET))
            self.assertEqual(read_key(path), SERVER)
            path.write_text(f"public {SERVER}\n")
            with self.assertRaises(ValueError):
                read_pair(path)
            self.assertEqual(read_key(path), SERVER)
            # As 'camerabus keys' prints it.
            path.write_text(f"{SERVER}\n")
            self.assertEqual(read_key(path), SERVER)
            path.write_text(f"{SERVER}\n{SECRET}\n")
            for wrong in (path, Path(folder, "none")):
                with self.assertRaises(ValueError):
                    read_key(wrong)
        with self.assertRaises(ValueError):
            read_pair(("a", "b"))
        self.assertEqual(read_key(SERVER), SERVER)

    def test_a_bus_here_has_no_keys(self) -> None:
        place = LocalPlace(Path("/run/camerabus"))
        self.assertEqual(
            (place.command, place.rendition, place.is_remote), ("ipc:///run/camerabus/command.sock", "native", False)
        )


if __name__ == "__main__":
    unittest.main()
