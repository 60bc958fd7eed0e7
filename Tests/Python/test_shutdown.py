"""The orderly end of the bus: whoever waits is told at once, and not when some time limit runs out."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Callable
from unittest import mock

from camerabus import AsyncClient, BusEnded, BusNotRunning, Client
from fake_bus import NO_REPLY, BusTestCase

LONG = 60.0  # a limit that no test may come near


class Shutdown(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, timeout=LONG)
        self.addCleanup(self.client.close)

    def ended(self, wait: Callable[[], Any], when: Callable[[], bool] = lambda: True) -> BusEnded:
        """What a wait ends with when the bus does."""

        def end() -> None:
            self.bus.wait_for(when)
            self.bus.end()

        begun = time.monotonic()
        thread = threading.Thread(target=end)
        thread.start()
        try:
            with self.assertRaisesRegex(BusNotRunning, "has ended") as caught:
                wait()
        finally:
            thread.join()
        self.assertLess(time.monotonic() - begun, LONG / 2)
        assert isinstance(caught.exception, BusEnded)
        return caught.exception

    def test_frames_end(self) -> None:
        with self.client.frames("cam0", timeout=LONG) as frames:
            self.bus.send_frame("cam0", 1)
            next(frames)
            self.ended(lambda: next(frames))

    def test_frames_go_on_with_the_next_bus(self) -> None:
        with self.client.frames("cam0", timeout=LONG) as frames:
            self.ended(lambda: next(frames))
            subscribed = self.bus.subscriptions.count(("+", "frame/cam0/native/"))
            self.bus.start()

            def send() -> None:
                self.bus.wait_for(lambda: self.bus.subscriptions.count(("+", "frame/cam0/native/")) > subscribed)
                self.bus.send_frame("cam0", 1)

            sender = threading.Thread(target=send)
            sender.start()
            self.assertEqual(next(frames).sequence, 1)
            sender.join()

    def test_a_watch_ends(self) -> None:
        with self.client.watch("state/") as watch:
            self.ended(lambda: next(watch))

    def test_who_watches_events_sees_the_last_word_too(self) -> None:
        with self.client.watch() as watch:
            seen: list[str | None] = []
            self.ended(lambda: [seen.append(event.event) for event in watch])
            self.assertEqual(seen, ["ended"])

    def test_a_mirror_ends_and_keeps_what_came_before(self) -> None:
        self.bus.set_state("state/lock/l/", 1)
        with self.client.mirror() as mirror:
            self.bus.set_state("state/lock/l/", None)
            self.assertEqual([change.value for change in mirror.update(LONG)], [None])
            self.ended(lambda: mirror.update(LONG))

    def test_calls_end_and_do_not_wait_for_another_bus(self) -> None:
        self.client.ping()
        self.bus.end()
        self.ended_before(self.client.devices)

    def ended_before(self, call: Callable[[], Any]) -> None:
        begun = time.monotonic()
        with self.assertRaises(BusEnded):
            call()
        self.assertLess(time.monotonic() - begun, LONG / 2)

    def test_a_call_under_way_ends(self) -> None:
        self.bus.methods["device.list"] = lambda params: NO_REPLY
        self.ended(self.client.devices, lambda: bool(self.bus.asked("device.list")))

    def test_a_lock_that_is_held_ends(self) -> None:
        with self.assertRaises(BusEnded), self.client.lock("cam0"):
            self.bus.end()

    def test_calls_go_on_with_the_next_bus(self) -> None:
        self.bus.end()
        self.ended_before(self.client.ping)
        self.bus.start()
        self.assertEqual(len(self.client.devices()), 2)

    def test_asyncio_does_the_same(self) -> None:
        async def first(items: Any) -> Any:
            async with items:
                return await anext(items)

        async def mirror(client: AsyncClient) -> Any:
            async with client.mirror() as mirror:
                return await mirror.update(LONG)

        async def use() -> None:
            self.bus.methods["device.list"] = lambda params: NO_REPLY
            async with AsyncClient(self.bus.directory, timeout=LONG) as client:
                waits = [
                    first(client.frames("cam0", timeout=LONG)), first(client.watch("state/")), mirror(client),
                    client.devices(),
                ]
                tasks = [asyncio.create_task(wait) for wait in waits]
                wanted = {("+", "frame/cam0/native/"), ("+", "event/bus/")}
                while not (
                    wanted <= set(self.bus.subscriptions)
                    and self.bus.asked("device.list")
                    and self.bus.asked("bus.snapshot")
                ):
                    await client.ping()
                # The three that listen for it are in force when the bus has answered each its `ack/`.
                while sum(topic.startswith("ack/") for sign, topic in self.bus.subscriptions if sign == "-") < 4:
                    await client.ping()
                await asyncio.to_thread(self.bus.end)
                results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), LONG / 2)
                self.assertEqual([type(result) for result in results], [BusEnded] * 4, results)

        asyncio.run(use())
        self.bus.start()


class Silence(BusTestCase):
    """No last word, no heartbeat: noticed after three seconds, which pass quickly here."""

    def test_frames_of_a_bus_that_was_killed_with_all_it_has(self) -> None:
        with Client(self.bus.directory) as client, client.frames("cam0", timeout=LONG) as frames:
            self.bus.stop()
            with (
                mock.patch("camerabus.silence.SILENCE", 0.05),
                self.assertRaisesRegex(BusNotRunning, "does not run any more"),
            ):
                next(frames)
        self.bus.start()

    def test_a_worker_that_lives_is_waited_for(self) -> None:
        with Client(self.bus.directory) as client, client.frames("cam0", timeout=LONG) as frames:
            self.bus.do(lambda: (self.bus.directory / "command.sock").unlink())  # the coordinator has disconnected
            heard = self.beats(10)
            with mock.patch("camerabus.silence.SILENCE", 2.0), self.assertRaises(BusNotRunning):
                next(frames)
            self.assertEqual(heard.left, 0)

    def takes_in(self, client: Client, use: Callable[[], Any]) -> None:
        """The client reads the monitor events of an idle connection. If it did not, libzmq would wait for room for them
        during a long absence of the bus, and deliver nothing meanwhile.
        """
        [idle] = client._open._free
        self.bus.restart_command()
        self.assertTrue(idle._link.monitor.poll(10_000))
        use()
        self.assertEqual(idle._link.ends, 1)

    @mock.patch("camerabus.core.LOOK", 0.0)
    def test_who_takes_frames_takes_in_what_is_told_of_idle_connections(self) -> None:
        with Client(self.bus.directory) as client, client.frames("cam0", timeout=LONG) as frames:
            self.bus.send_frame("cam0", 1)
            self.takes_in(client, lambda: next(frames))

    @mock.patch("camerabus.core.LOOK", 0.0)
    def test_so_does_who_looks_at_a_mirror(self) -> None:
        with Client(self.bus.directory) as client, client.mirror() as mirror:
            self.takes_in(client, mirror.update)

    def beats(self, count: int) -> Beats:
        """Sends heartbeats of a worker, each well within the silence that is borne, all together well beyond it."""
        beats = Beats(count)

        def beat() -> None:
            beats.left -= 1
            self.bus.send_media("cam0", "heartbeat/", {"device": "cam0"})
            if beats.left:
                timer(beat)

        def timer(then: Callable[[], None]) -> None:
            thread = threading.Timer(0.3, then)
            thread.start()
            self.addCleanup(thread.join)

        timer(beat)
        return beats


class Beats:
    def __init__(self, left: int) -> None:
        self.left = left
