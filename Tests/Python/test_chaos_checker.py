"""The checker of `make chaos`, on small histories that are made up: for each rule one that keeps it, and one that does
not.
"""

from __future__ import annotations

import sys
import unittest
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "Chaos"))

import checker  # noqa: E402
import plan  # noqa: E402
from history import Entry  # noqa: E402


class HistoryTestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.history: list[Entry] = []
        self._calls = 0

    def add(self, at: float, **entry: Any) -> None:
        self.history.append({"at": at, **entry})

    def call(
        self, asked: float, ended: float | None, by: str, method: str, params: dict[str, Any], *, key: str = "",
        **outcome: Any,
    ) -> None:
        """`outcome`: result, error or unknown; `ended` None: its client was killed."""
        self._calls += 1
        named = {"by": by, "call": self._calls}
        self.add(asked, **named, method=method, params=params, **({"key": key} if key else {}))
        if ended is not None:
            self.add(ended, **named, **(outcome or {"result": {}}))

    def act(self, at: float, act: str, what: str, **more: Any) -> None:
        self.add(at, act=act, what=what, **{"pid": hash(what), **more})

    def violates(self, *rules: str) -> None:
        found = checker.check(sorted(self.history, key=lambda entry: entry["at"]))
        self.assertEqual({violation.rule for violation in found}, set(rules), found)

    # What clients do

    def lock(self, asked: float, ended: float, by: str, token: str, fence: int, *devices: str) -> None:
        result = {"lock": token, "fence": fence, "devices": list(devices or ("cam0",))}
        self.call(asked, ended, by, "device.lock", {"devices": result["devices"]}, key=token, result=result)

    def renew(self, asked: float, by: str, token: str, **outcome: Any) -> None:
        self.call(asked, asked + 0.1, by, "device.renew", {"lock": token}, **outcome)

    def change(self, asked: float, token: str, brightness: int, generation: int = 0, **outcome: Any) -> None:
        changes = [{"device": "cam0", "controls": {"brightness": brightness}}]
        outcome = outcome or {"result": {"generation": {"cam0": generation or int(asked)}}}
        self.call(asked, asked + 0.1, "a.0", "device.configure", {"lock": token, "changes": changes}, **outcome)

    def look(self, asked: float, brightness: int | None, fence: int) -> None:
        result = {"brightness": brightness, "fence": fence}
        self.call(asked, asked + 0.1, "a.0", "device.get", {"device": "cam0"}, result=result)


class LockRules(HistoryTestCase):
    def test_one_after_the_other(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.renew(2, "a.0", "t1")
        self.lock(1, 4, "b.0", "t2", 2)
        self.violates()

    def test_two_at_a_time(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.lock(1, 2, "b.0", "t2", 2, "cam1", "cam0")
        self.renew(3, "a.0", "t1")
        self.violates("[LCK-1]")

    def test_two_of_different_devices_at_a_time(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.lock(1, 2, "b.0", "t2", 2, "cam1")
        self.renew(3, "a.0", "t1")
        self.violates()

    def test_a_fence_that_does_not_rise(self) -> None:
        self.lock(0, 1, "a.0", "t1", 5)
        self.lock(2, 3, "b.0", "t2", 4)
        self.violates("[LCK-5]")

    def test_a_fence_that_comes_twice(self) -> None:
        self.lock(0, 1, "a.0", "t1", 5)
        self.lock(0, 1, "b.0", "t2", 5, "cam1")
        self.violates("[LCK-5]")

    def test_fences_of_requests_at_the_same_time_have_any_order(self) -> None:
        self.lock(0, 3, "a.0", "t1", 5)
        self.lock(1, 2, "b.0", "t2", 6, "cam1")
        self.violates()

    def test_a_request_that_was_repeated_was_asked_at_its_first_time(self) -> None:
        self.call(0, 1, "a.0", "device.lock", {"devices": ["cam0"]}, key="t1", unknown="BusGone")
        self.act(0.5, "SIGKILL", "coordinator")
        self.lock(0.8, 0.9, "b.0", "t2", 7, "cam1")
        self.lock(2, 3, "a.0", "t1", 6)
        self.violates()

    def test_a_lock_that_is_lost_though_its_holder_lives(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.act(2, "SIGKILL", "coordinator")
        self.renew(4, "a.0", "t1", error="lockLost")
        self.violates("[LCK-14]")

    def test_a_bus_that_ends_in_order_ends_locks(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.act(2, "stopping", "coordinator")
        self.act(3, "stopped", "coordinator", status=0)
        self.renew(4, "a.0", "t1", error="lockLost")
        self.violates()

    def test_a_holder_that_is_stopped_has_no_connection_to_the_next_bus(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.act(2, "SIGSTOP", "a.0")
        self.act(12, "SIGCONT", "a.0")
        self.renew(13, "a.0", "t1", error="lockLost")
        self.violates()

    def test_locks_of_the_dead(self) -> None:
        self.add(9, final="device.locks", value={"locks": [{"fence": 3}], "waiting": []})
        self.violates("[LCK-7]")


class ChangeRules(HistoryTestCase):
    def test_what_was_answered_stays(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.change(2, "t1", 7)
        self.look(3, 7, 1)
        self.look(4, None, 1)
        self.violates()

    def test_what_was_answered_is_gone(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.change(2, "t1", 7)
        self.change(3, "t1", 8)
        self.look(4, 7, 1)
        self.violates("[CFG-9] [FAI-5]")

    def test_what_was_not_answered_may_be_so_or_so(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.change(2, "t1", 7)
        self.change(3, "t1", 8, unknown="BusTimeout")
        self.act(3, "SIGSTOP", "coordinator")
        self.look(4, 7, 1)
        self.look(5, 8, 1)
        self.violates()

    def test_a_change_that_was_not_kept(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.change(2, "t1", 7, result={"generation": {"cam0": 1}, "kept": False})
        self.violates("[KEP-1]")

    def test_a_generation_that_does_not_rise(self) -> None:
        self.lock(0, 1, "a.0", "t1", 1)
        self.change(2, "t1", 7, generation=4)
        self.change(3, "t1", 8, generation=4)
        self.violates("[CFG-7]")


class FrameRules(HistoryTestCase):
    def run_of(self, first: int, last: int, *, stream: str = "s1", lost: int = 0, by: str = "watch-frames.0") -> None:
        """Ten messages a second; `lost`: how many frames the device gave before them that are no messages."""

        def message(number: int) -> Entry:
            time = number / 10
            numbers = {"sequence": number - lost, "capture": number, "time": time, "arrived": time + 0.01}
            return {**numbers, "step": 1, "dropped": 0}

        topic = "frame/cam0/native/"
        self.add(last / 10, by=by, run=stream, topic=topic, first=message(first), last=message(last))

    def test_a_loss_of_messages(self) -> None:
        self.run_of(0, 50)
        self.run_of(53, 90)
        self.violates("[FRM-5]")

    def test_a_loss_of_frames(self) -> None:
        self.run_of(0, 50)
        self.run_of(53, 90, lost=2)
        self.act(5.1, "SIGKILL", "coordinator")
        self.violates("[FAI-4]")

    def test_another_devices_death_costs_a_frame(self) -> None:
        self.run_of(0, 50)
        self.run_of(53, 90)
        self.act(5.1, "SIGKILL", "cam1")
        self.violates("[FAI-3]")

    def test_its_own_death_costs_frames(self) -> None:
        self.run_of(0, 50)
        self.act(5.1, "SIGKILL", "cam0")
        self.run_of(70, 90, stream="s2")
        self.violates()

    def test_a_stream_that_begins_anew_with_a_bus(self) -> None:
        self.run_of(0, 50)
        self.act(5.1, "SIGKILL", "coordinator")
        self.run_of(70, 90, stream="s2")
        self.violates("[FAI-4]")

    def test_a_machine_without_time_costs_frames(self) -> None:
        self.run_of(0, 50)
        self.add(5.8, stall=[5.0, 5.8])
        self.run_of(58, 90)
        self.violates()

    def test_a_frame_that_came_late_is_a_sign_of_a_machine_without_time(self) -> None:
        self.run_of(0, 50)
        self.history[-1]["last"]["arrived"] += 0.2
        self.run_of(52, 90)
        self.violates()

    def test_a_reader_that_may_be_stopped_loses_frames(self) -> None:
        self.run_of(0, 50, by="reader-jpeg.3")
        self.run_of(58, 90, by="reader-jpeg.3")
        self.violates()

    def test_numbers_that_fall(self) -> None:
        self.run_of(0, 50, by="reader-jpeg.3")
        self.run_of(49, 90, by="reader-jpeg.3")
        self.violates("[FRM-1]")

    def test_half_a_picture(self) -> None:
        self.add(1, outside="frame/cam0/native/", size=3, planes=[])
        self.add(2, page="/camera/cam0.jpg", picture=False)
        self.add(3, page="/camera/cam0.jpg", picture=True)
        self.violates("[FRM-3]", "[FRM-6]")


class FileRules(HistoryTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.entries: list[Entry] = []

    def file(self, path: str, state: str | None = "finished", digest: str = "d", **facts: Any) -> None:
        """A file at the end; `state` of its entry, whose id is the path too. None: it has no entry."""
        self.add(90, file=path, size=1, digest=digest, **facts)
        if state:
            self.entries.append({"id": path, "path": path, "state": state, "kind": "movie"})

    def movie(self, path: str, state: str | None = "finished", duration: float = 5, plays: bool = True) -> None:
        self.file(path, state, plays=plays, duration=duration, gap=0.1, problem="" if plays else "no moov")

    def violates(self, *rules: str) -> None:
        self.add(80, final="library.list", value={"entries": self.entries, "more": False})
        super().violates(*rules)

    def photo(self, path: str, digest: str = "d") -> None:
        photos = [{"path": path, "id": path, "attachment": 0}]
        result = {"photos": photos, "attachments": [{}]}
        self.call(1, 2, "p.0", "photo.capture", {"deliver": ["library", "reply"]}, result=result, attachments=[digest])

    def recorded(self, path: str, recorded: int = 5000, synced: int = 4000, end: Entry | None = None) -> None:
        params = {"fragmentInterval": 1000}
        self.call(1, 2, "m.0", "movie.start", params, result={"movie": path, "path": path})
        self.told(path, recorded, synced)
        if end is not None:
            self.call(5, 6, "m.0", "movie.stop", {"movie": path}, result=end)

    def told(self, path: str, recorded: int, synced: int, dropped: int = 0) -> None:
        durations = {"recordedDuration": recorded, "syncedDuration": synced}
        status = {**durations, "dropped": dropped, "state": "recording"}
        self.call(3, 4, "m.0", "movie.status", {"movie": path}, result={"movie": status})

    def test_a_photo_that_was_answered_is_there(self) -> None:
        self.photo("a.jpg")
        self.file("a.jpg")
        self.violates()

    def test_a_photo_that_was_answered_is_another_one(self) -> None:
        self.photo("a.jpg", "e")
        self.file("a.jpg")
        self.violates("[PHO-9] [FAI-5]")

    def test_a_photo_that_was_answered_is_gone(self) -> None:
        self.photo("a.jpg")
        self.violates("[PHO-9] [FAI-5]")

    def test_half_of_a_live_photo(self) -> None:
        result = {"photos": [{"path": "a.jpg"}], "livePhotoMovie": {"path": "a.mov"}}
        self.call(1, 2, "l.0", "photo.capture", {"deliver": ["library"]}, result=result)
        self.file("a.jpg")
        self.violates("[PHO-23] [FAI-5]")

    def test_a_movie_lost_at_most_a_fragment(self) -> None:
        self.recorded("a.mp4")
        self.movie("a.mp4", "recovered", duration=4.1)
        self.violates()

    def test_a_movie_lost_more_than_a_fragment(self) -> None:
        self.recorded("a.mp4", recorded=7000)
        self.movie("a.mp4", "recovered", duration=4.1)
        self.violates("[MOV-10]")

    def test_a_movie_whose_camera_was_away_is_longer_by_that(self) -> None:
        self.recorded("a.mp4")
        self.told("a.mp4", 6500, 4000, dropped=12)
        self.movie("a.mp4", "recovered", duration=4.1)
        self.violates()

    def test_a_movie_lost_what_was_on_the_disk(self) -> None:
        self.recorded("a.mp4", synced=4900)
        self.movie("a.mp4", "recovered", duration=4.1)
        self.violates("[MOV-10]")

    def test_a_movie_that_does_not_play(self) -> None:
        self.recorded("a.mp4")
        self.movie("a.mp4", "recovered", plays=False)
        self.violates("[MOV-10]")

    def test_a_movie_that_is_not_repaired(self) -> None:
        self.recorded("a.mp4")
        self.movie("a.mp4", "damaged")
        self.violates("[LIB-2] [MOV-10]")

    def test_a_movie_without_a_fragment_cannot_be_repaired(self) -> None:
        self.recorded("a.mp4", recorded=900, synced=0)
        self.movie("a.mp4", "damaged", plays=False)
        self.violates()

    def test_a_movie_without_an_entry(self) -> None:
        self.recorded("a.mp4")
        self.violates("[LIB-1]")

    def test_a_movie_that_was_too_short_for_a_file(self) -> None:
        self.recorded("a.mp4", 90, 0, {"kept": False})
        self.violates()

    def test_a_file_that_nobody_knows(self) -> None:
        self.movie("a.mp4", None)
        self.violates("[LIB-1] [LIB-6]")

    def test_an_entry_without_a_file(self) -> None:
        self.entries.append({"id": "a", "path": "a.mp4", "state": "missing", "kind": "movie"})
        self.violates("[LIB-2]")

    def test_an_entry_that_cannot_be_read(self) -> None:
        self.add(81, final="library.list", value={"entries": [], "more": False, "unreadable": [{"id": "x"}]})
        self.violates("[LIB-3]")

    def test_takes(self) -> None:
        pause = {"kept": True, "path": "t-1.mp4"}
        self.call(1, 2, "t.0", "take.pause", {"take": "t"}, result=pause)
        self.call(3, 4, "t.0", "take.pause", {"take": "u"}, result={"kept": True, "path": "u-1.mp4"})
        self.call(5, 6, "t.0", "take.finish", {"take": "t"}, result={"path": "t.mp4", "cover": "t.jpg"})
        self.movie("t.mp4")
        self.violates("[TAK-7] [FAI-5]", "[TAK-8] [FAI-5]")


class BusRules(HistoryTestCase):
    def state(
        self, at: float, epoch: str, sequence: int, previous: int, topic: str = "state/bus/", **more: Any
    ) -> None:
        self.add(at, state=topic, epoch=epoch, sequence=sequence, previous=previous, **more)

    def test_requests_that_nobody_answers(self) -> None:
        self.call(1, 9, "a.0", "device.get", {"device": "cam0"}, unknown="BusTimeout")
        self.violates("[REQ-1]")

    def test_a_bus_that_is_stopped_answers_nobody(self) -> None:
        self.act(0, "SIGSTOP", "coordinator")
        self.act(8, "SIGCONT", "coordinator")
        self.call(1, 9, "a.0", "device.get", {"device": "cam0"}, unknown="BusTimeout")
        self.violates()

    def test_a_bus_that_is_stopped_twice_before_it_goes_on(self) -> None:
        self.act(0, "SIGSTOP", "coordinator")
        self.act(7, "SIGSTOP", "coordinator")
        self.act(8, "SIGCONT", "coordinator")
        self.call(0.5, 5.5, "a.0", "device.get", {"device": "cam0"}, unknown="BusTimeout")
        self.violates()

    def test_a_request_that_waits_for_a_worker(self) -> None:
        self.call(1, 6, "a.0", "profile.save", {"name": "x", "devices": "cam0"}, unknown="BusTimeout")
        self.violates()

    def test_a_connection_that_is_cut(self) -> None:
        self.call(1, 2, "a.0", "photo.capture", {}, unknown="BusGone")
        self.violates("[REQ-10]")

    def test_a_bus_that_takes_long_to_end_cuts_connections(self) -> None:
        self.act(1, "stopping", "coordinator")
        self.call(7, 7.5, "a.0", "take.create", {}, unknown="BusGone")
        self.act(8, "stopped", "coordinator", status=0)
        self.violates()

    def test_a_failure_inside_the_bus(self) -> None:
        self.call(1, 2, "a.0", "library.list", {}, error="internalError")
        self.violates("[REQ-10]")

    def test_a_failure_of_what_was_killed(self) -> None:
        self.act(1, "SIGKILL", "librarian")
        self.call(1, 2, "a.0", "library.list", {}, error="internalError")
        self.violates()

    def test_a_reply_that_is_none(self) -> None:
        self.call(1, 2, "a.0", "bus.ping", {}, unknown="ProtocolError")
        self.violates("[REP-1] [REP-6]")

    def test_a_message_that_is_missing(self) -> None:
        self.state(1, "e", 4, 0)
        self.state(2, "e", 9, 4)
        self.state(3, "e", 4, 0)  # repeated for a subscriber
        self.state(4, "e", 20, 15)
        self.violates("[STA-1]")

    def test_an_epoch_that_comes_again(self) -> None:
        self.state(1, "e", 4, 0)
        self.state(2, "f", 2, 0)
        self.state(3, "e", 9, 4)
        self.violates("[FAI-1]")

    def test_messages_after_the_last_one(self) -> None:
        self.state(1, "e", 4, 0, "event/bus/", ended=True)
        self.state(2, "e", 5, 0)
        self.violates("[FAI-6]")

    def test_a_profile_that_was_saved_is_gone(self) -> None:
        self.call(1, 2, "s.0", "profile.save", {"name": "day"})
        self.add(9, final="profile.list", value={"profiles": []})
        self.violates("[PRO-1] [FAI-5]")

    def test_a_program_that_ends_by_itself(self) -> None:
        self.act(1, "exited", "coordinator", status=-4)
        self.violates("[REQ-10]")

    def test_what_is_left_of_the_dead(self) -> None:
        self.add(8, final="movie.list", value={"movies": [{"id": "m"}]})
        self.add(8, final="session.list", value={"sessions": [{"detached": False}, {"detached": True}]})
        self.add(9, left="run/command.sock")
        self.violates("[MOV-6]", "[SES-2]", "[END-7]")

    def test_a_worker_that_does_not_come_back(self) -> None:
        self.add(8, final="device.list", value={"devices": [{"id": "cam0", "worker": {"state": "restarting"}}]})
        self.violates("[FAI-3]")


class Plan(unittest.TestCase):
    def test_a_seed_gives_the_same_campaign(self) -> None:
        self.assertEqual(list(islice(plan.acts(7), 300)), list(islice(plan.acts(7), 300)))
        self.assertNotEqual(list(islice(plan.acts(7), 300)), list(islice(plan.acts(8), 300)))

    def test_only_some(self) -> None:
        self.assertEqual({act.what for act in islice(plan.acts(7, ("cam0", "client")), 99)}, {"cam0", "client"})


if __name__ == "__main__":
    unittest.main()
