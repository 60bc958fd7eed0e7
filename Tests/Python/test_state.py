"""Events as they go by, and the mirror of the state."""

from __future__ import annotations

import unittest
from unittest import mock

from camerabus import BusNotRunning, BusTimeout, Change, Client
from camerabus import silence
from fake_bus import BusTestCase


class Watching(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)

    def test_current_values_then_changes_then_events(self) -> None:
        self.bus.set_state("state/device/cam0/", {"v": 1})
        with self.client.watch("state/device", "event/", timeout=5) as watch:
            self.bus.set_state("state/device/cam0/", {"v": 2})
            self.bus.send_event("event/device/cam0/", "didFail", why="x")
            self.bus.set_state("state/lock/7/", {})
            self.bus.set_state("state/device/cam0/", None)
            seen = [next(watch) for _ in range(4)]
        self.assertEqual([event.value for event in seen], [{"v": 1}, {"v": 2}, None, None])
        self.assertEqual((seen[2].event, seen[2].body["why"], seen[3].topic), ("didFail", "x", "state/device/cam0/"))
        self.assertFalse(any(event.gap for event in seen))

    def test_what_is_not_newer_is_dropped(self) -> None:
        self.bus.set_state("state/device/cam0/", 1)
        with self.client.watch("state/", timeout=2) as watch:
            self.assertEqual(next(watch).value, 1)
            with self.client.watch("state/", timeout=5) as other:  # makes the bus send current values again
                next(other)
            self.assertEqual(list(watch), [])

    def test_a_loss_is_told(self) -> None:
        with self.client.watch("event/", timeout=5) as watch:
            for lose in (False, True, False, False):
                self.bus.send_event("event/device/cam0/", "x", lose=lose)
            self.assertEqual([next(watch).gap for _ in range(3)], [False, True, False])

    def test_the_loss_of_the_first_is_told(self) -> None:
        with self.client.watch("event/", timeout=5) as watch:
            self.bus.send_event("event/device/cam0/", "x", lose=True)
            self.bus.send_event("event/device/cam0/", "x")
            self.assertTrue(next(watch).gap)

    def test_nothing_in_time_ends_it(self) -> None:
        with self.client.watch("state/device", timeout=0.05) as watch:
            self.bus.heartbeat()
            self.assertEqual(list(watch), [])

    def test_heartbeats_are_for_those_who_want_them(self) -> None:
        with self.client.watch("heartbeat/", timeout=5) as watch:
            self.bus.heartbeat()
            self.assertEqual(next(watch).topic, "heartbeat/")

    def test_a_bus_that_dies_is_noticed_without_a_timeout(self) -> None:
        with mock.patch.object(silence, "SILENCE", 0.1), self.client.watch() as watch:
            self.bus.stop()
            with self.assertRaises(BusNotRunning):
                next(watch)
        self.bus.start()

    def test_a_bus_that_hangs_is_noticed_without_a_timeout(self) -> None:
        with mock.patch.object(silence, "SILENCE", 0.1), self.client.watch() as watch:
            with self.assertRaises(BusTimeout):
                next(watch)

    def test_it_continues_with_the_next_bus(self) -> None:
        with self.client.watch("state/", timeout=10) as watch:
            self.bus.set_state("state/bus/", "old")
            self.assertEqual(next(watch).epoch, "e1")
            self.bus.stop()
            self.bus.start()
            self.bus.set_state("state/bus/", "new")
            event = next(watch)
        self.assertEqual((event.epoch, event.value), ("e2", "new"))


class Mirroring(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.client = Client(self.bus.directory, timeout=5)
        self.addCleanup(self.client.close)
        self.bus.set_state("state/device/cam0/", "a")
        self.bus.set_state("state/lock/7/", "held")

    def snapshots(self) -> int:
        return len(self.bus.asked("bus.snapshot"))

    def test_it_is_complete_from_the_start(self) -> None:
        with self.client.mirror("state/device") as mirror:
            self.assertEqual(dict(mirror), {"state/device/cam0/": "a"})
            self.assertEqual(mirror["state/device/cam0"], "a")
            self.assertEqual((mirror.epoch, mirror.sequence), ("e1", 2))

    def test_it_follows_changes(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.set_state("state/device/cam0/", "b")
            self.bus.set_state("state/lock/7/", None)
            changes = mirror.update(5)
            while len(changes) < 2:
                changes += mirror.update(5)
            self.assertEqual(dict(mirror), {"state/device/cam0/": "b"})
        self.assertEqual(changes[0], Change(topic="state/device/cam0/", value="b", before="a"))
        self.assertEqual(changes[1], Change(topic="state/lock/7/", value=None, before="held"))
        self.assertEqual(self.snapshots(), 1)

    def test_waiting_for_a_condition(self) -> None:
        with self.client.mirror() as mirror:
            mirror.wait(lambda state: state["state/device/cam0/"] == "a", timeout=0)
            self.bus.set_state("state/device/cam0/", "b")
            mirror.wait(lambda state: state["state/device/cam0/"] == "b", timeout=5)
            with self.assertRaises(BusTimeout):
                mirror.wait(lambda state: False, timeout=0.05)

    def test_changes_as_they_come(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.set_state("state/device/cam0/", "b")
            self.assertEqual(next(mirror.changes(5)).value, "b")
            self.assertEqual(list(mirror.changes(0.05)), [])

    def test_a_hole_is_mended(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.set_state("state/lock/7/", None)
            self.bus.set_state("state/device/cam0/", "b", lose=True)
            self.bus.set_state("state/device/cam1/", "new", lose=True)
            self.bus.set_state("state/device/cam0/", "c")
            mirror.wait(lambda state: state.get("state/device/cam0/") == "c", timeout=5)
            self.assertEqual(dict(mirror), {"state/device/cam0/": "c", "state/device/cam1/": "new"})
        self.assertEqual(self.snapshots(), 2)

    def test_a_lost_last_message_shows_in_the_heartbeat(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.set_state("state/device/cam0/", "b", lose=True)
            self.assertEqual(mirror.update(0.05), [])
            self.bus.heartbeat()
            self.assertEqual([change.value for change in mirror.update(5)], ["b"])
            self.bus.heartbeat()
            self.assertEqual(mirror.update(0.05), [])
        self.assertEqual(self.snapshots(), 2)

    def test_another_s_changes_cost_no_snapshot(self) -> None:
        with self.client.mirror("state/device/") as mirror:
            self.bus.set_state("state/lock/7/", "other")
            self.bus.heartbeat()
            self.assertEqual(mirror.update(0.05), [])
        self.assertEqual(self.snapshots(), 1)

    def test_a_new_bus_is_a_new_state(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.stop()
            self.bus.start()
            self.bus.set_state("state/device/cam9/", "fresh")
            mirror.wait(lambda state: "state/device/cam9/" in state, timeout=10)
            self.assertEqual(dict(mirror), {"state/device/cam9/": "fresh"})
            self.assertEqual(mirror.epoch, "e2")

    def test_a_connection_that_was_cut_is_a_loss(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.restart_events()
            self.bus.set_state("state/lock/7/", None, lose=True)
            mirror.wait(lambda state: "state/lock/7/" not in state, timeout=10)

    def test_a_bus_that_contradicts_itself_is_no_endless_loop(self) -> None:
        with self.client.mirror() as mirror:

            def old(params: object) -> object:
                self.bus.sequence += 2
                message = {
                    "epoch": "e1", "sequence": self.bus.sequence, "previous": self.bus.sequence - 1, "value": "x",
                }
                self.bus._announce("state/device/cam0/", message)
                return {"epoch": "e1", "sequence": 0, "state": {}}

            self.bus.methods["bus.snapshot"] = old
            self.bus.set_state("state/device/cam0/", "b", lose=True)
            self.bus.set_state("state/device/cam0/", "c")
            with self.assertRaises(BusTimeout):
                for _ in range(1000):
                    mirror.update(5)

    def test_a_snapshot_that_fails_is_asked_for_again(self) -> None:
        with self.client.mirror() as mirror:
            self.bus.set_state("state/device/cam0/", "b", lose=True)
            self.bus.set_state("state/device/cam0/", "c")
            self.bus.stop()
            with self.assertRaises((BusNotRunning, BusTimeout)):
                self.client._open.timeout = 0.2
                mirror.update(1)
            self.bus.start()
            self.bus.set_state("state/device/cam0/", "d")
            self.client._open.timeout = 10
            mirror.wait(lambda state: dict(state) == {"state/device/cam0/": "d"}, timeout=10)


if __name__ == "__main__":
    unittest.main()
