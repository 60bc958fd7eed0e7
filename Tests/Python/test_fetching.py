"""Files of the library, brought here: what lies in their way, limits and slow lines."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from camerabus import AsyncClient, BusTimeout, Client, LimitExceeded
from fake_bus import NO_REPLY, BusTestCase, Refusal

MIB = 1 << 20


class Fetching(BusTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.content = os.urandom(3 * MIB)
        #: What is answered in the place of a part, first come first served.
        self.instead: list[Any] = []
        #: Bytes that one answer may have.
        self.largest = 4 * MIB
        self.bus.methods["library.read"] = self.read
        self.folder = Path(tempfile.mkdtemp(prefix="camerabus-fetched-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.target = self.folder / "here.mp4"
        self.part = self.folder / "here.mp4.rev-1.part"
        self.client = Client(self.bus.directory, name="test", timeout=5)
        self.addCleanup(self.client.close)

    def read(self, params: dict[str, Any]) -> Any:
        offset, length = params["offset"], params["length"]
        if length and self.instead:
            instead = self.instead.pop(0)
            if isinstance(instead, Exception):
                raise instead
            return instead
        if length > self.largest:
            raise Refusal("limitExceeded", limit="remoteReply", maximum=self.largest)
        data = self.content[offset : offset + length]
        attachments = [{"name": "a.mp4", "contentType": "video/mp4", "bytes": len(data)}]
        told = {
            "name": "a.mp4", "size": len(self.content), "offset": offset, "revision": "rev-1",
            "attachments": attachments,
        }
        return told, data

    def offsets(self) -> list[int]:
        return [params["offset"] for params in self.bus.asked("library.read") if params["length"]]

    def lengths(self) -> list[int]:
        return [params["length"] for params in self.bus.asked("library.read") if params["length"]]

    def fetch(self, **options: Any) -> int:
        return self.client.fetch_from_library("e1", self.target, **options)

    def check(self) -> None:
        self.assertEqual(self.target.read_bytes(), self.content)
        self.assertEqual(list(self.folder.iterdir()), [self.target])

    # What lies there

    def test_what_lies_in_its_place_and_is_no_file_of_ones_own_is_left_alone(self) -> None:
        other = self.folder / "other"
        other.write_bytes(b"mine")
        self.part.symlink_to(other)
        with self.assertRaises(OSError) as refused:
            self.fetch()
        self.assertEqual((refused.exception.errno, other.read_bytes()), (errno.ELOOP, b"mine"))
        self.part.unlink()
        os.mkfifo(self.part)
        with self.assertRaises(OSError) as refused:
            self.fetch()
        self.assertEqual(refused.exception.errno, errno.EINVAL)
        self.part.unlink()
        self.part.write_bytes(self.content[:1000])
        with mock.patch("os.geteuid", return_value=os.geteuid() + 1), self.assertRaises(PermissionError):
            self.fetch()
        self.assertEqual(self.part.read_bytes(), self.content[:1000])

    def test_it_goes_on_where_the_end_of_what_is_here_is_right(self) -> None:
        self.part.write_bytes(self.content[: 2 * MIB])
        self.fetch()
        self.assertEqual(self.offsets()[0], MIB)
        self.check()

    def test_it_begins_anew_where_that_is_not(self) -> None:
        # As after a power cut: the size is on the disk, the bytes are not.
        self.part.write_bytes(self.content[: 2 * MIB - 10] + bytes(10))
        self.fetch()
        self.assertEqual((self.offsets()[0], self.offsets().count(0)), (MIB, 1))
        self.check()

    def test_a_link_stays_one_and_what_is_no_file_is_refused_at_once(self) -> None:
        other = self.folder / "other"
        other.write_bytes(b"old")
        self.target.symlink_to(other)
        self.fetch(overwrite=True)
        self.assertEqual((self.target.is_symlink(), other.read_bytes()), (True, self.content))
        self.target.unlink()
        self.target.mkdir()
        with self.assertRaises(IsADirectoryError):
            self.fetch(overwrite=True)
        self.target = self.folder / ("x" * 256)
        with self.assertRaises(OSError) as refused:
            self.fetch()
        self.assertEqual(refused.exception.errno, errno.ENAMETOOLONG)

    def test_a_long_name_has_room_for_its_mark(self) -> None:
        self.target = self.folder / ("é" * 125 + ".mp4")
        self.fetch()
        self.check()

    def test_nothing_is_overwritten_where_there_are_no_links_either(self) -> None:
        def others(*_: object) -> None:
            self.target.write_bytes(b"theirs")
            raise OSError(errno.EOPNOTSUPP, "no links")

        with mock.patch("os.link", side_effect=PermissionError(errno.EPERM, "no links")):
            self.fetch()
        self.check()
        self.target.unlink()
        with mock.patch("os.link", side_effect=others), self.assertRaises(FileExistsError):
            self.fetch()
        self.assertEqual((self.target.read_bytes(), self.part.stat().st_size), (b"theirs", len(self.content)))

    # Limits

    def test_limits_that_pass_are_waited_for(self) -> None:
        refusals = [
            Refusal("limitExceeded", limit=limit, maximum=1)
            for limit in ("requestRate", "libraryReplies", "remoteReplies")
        ]
        part = self.read({"offset": 0, "length": 64 << 10})
        self.instead = [part, *refusals]
        self.fetch()
        self.check()
        # Fewer bytes where it is about these.
        asked = self.lengths()
        self.assertEqual([asked[2] - asked[1], asked[2] // asked[3], asked[3] // asked[4]], [0, 2, 2])

    def test_one_that_does_not_pass_ends_it_in_time_and_what_came_stays(self) -> None:
        self.instead = [self.read({"offset": 0, "length": 64 << 10})]
        self.instead += [Refusal("limitExceeded", limit="libraryRequests", maximum=16) for _ in range(100)]
        with self.assertRaises(LimitExceeded):
            self.fetch(timeout=1)
        self.assertEqual(self.part.stat().st_size, 64 << 10)

    def test_parts_are_as_small_as_answers_have_to_be(self) -> None:
        self.largest = 40_000
        self.content = self.content[: 256 << 10]
        self.fetch()
        self.check()
        self.largest = 10
        self.target.unlink()
        with self.assertRaises(LimitExceeded):
            self.fetch()

    def test_a_line_that_is_slow_is_asked_for_less(self) -> None:
        self.instead = [NO_REPLY]
        self.fetch(timeout=1)
        self.check()
        self.assertEqual(self.lengths()[:2], [64 << 10, 16 << 10])
        self.target.unlink()
        self.instead = [NO_REPLY, NO_REPLY]
        with self.assertRaises(BusTimeout):
            self.fetch(timeout=0.2)

    # The event loop

    def test_the_disk_holds_up_no_other_task_and_is_done_before_the_file_is_closed(self) -> None:
        is_called, may_go = threading.Event(), threading.Event()
        real, gone = os.fsync, []

        def slow(file: int) -> None:
            is_called.set()
            if not may_go.wait(10):
                gone.append("the event loop stood still")
            real(file)  # fails where it was closed

        async def work() -> None:
            async with AsyncClient(self.bus.directory, timeout=5) as client:
                fetching = asyncio.create_task(client.fetch_from_library("e1", self.target))
                self.assertTrue(await asyncio.to_thread(is_called.wait, 10))
                for _ in range(2):
                    fetching.cancel()
                    # One turn of the loop, in which the task is cancelled.
                    await asyncio.sleep(0)
                self.assertFalse(fetching.done())
                may_go.set()
                with self.assertRaises(asyncio.CancelledError):
                    await fetching

        with mock.patch("os.fsync", slow):
            asyncio.run(work())
        self.assertEqual(gone, [])
        self.check()


if __name__ == "__main__":
    unittest.main()
