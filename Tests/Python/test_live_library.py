"""What was recorded, as Python sees it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import time
from datetime import datetime
from pathlib import Path

from camerabus import AsyncClient, EntryNotFound
from live import LiveTestCase, RUNTIME_DIR


class Library(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(RUNTIME_DIR) / "state" / "library"
        self.day = self.folder / "2026-11-22"
        (self.folder / "entries").mkdir(parents=True, exist_ok=True)
        self.day.mkdir(exist_ok=True)

    def enter(self, name: str, **members: object) -> Path:
        """Something that was recorded."""
        movie = self.day / f"{name}.mp4"
        movie.write_bytes(b"a movie")
        status = movie.stat()
        entry = {
            "id": name,
            "kind": "movie",
            "path": f"2026-11-22/{name}.mp4",
            "file": {"device": status.st_dev, "inode": status.st_ino},
            "state": "finished",
            "reason": "stopped",
            "devices": [{"device": "front", "uniqueID": f"unique-{name}"}],
            "started": time.time_ns(),
            "duration": 1500,
            "size": 7,
            "fileType": "mp4",
            "video": {"codec": "mjpeg", "width": 640, "height": 480},
            "owner": {"uid": os.getuid(), "pid": 42, "name": "a test"},
            **members,
        }
        file = self.folder / "entries" / f"{name}.json"
        file.write_text(json.dumps(entry))
        self.addCleanup(file.unlink, missing_ok=True)
        self.addCleanup(movie.unlink, missing_ok=True)
        return movie

    def test_ten_thousand_entries_are_listed_every_time(self) -> None:
        for number in range(10_000):
            self.enter(f"many-{number}", started=number + 1)
        wanted = [f"many-{number}" for number in range(9999, 8999, -1)]
        for _ in range(5):
            listed = self.client.library(prefix="many-", limit=1000)
            self.assertEqual(([entry.id for entry in listed.entries], listed.more), (wanted, True))

    def test_what_there_is_is_found_and_deleted(self) -> None:
        before = datetime.now()
        movie = self.enter("py1", chapters=[1])
        self.enter("py2", take="a", microphone={"device": "desk", "uniqueID": "usb-7"}).unlink()
        entry = self.client.library_entry("py1")
        self.assertEqual(
            (entry.state, entry.path, entry.duration, entry.reason), ("finished", str(movie), 1500, "stopped")
        )
        self.assertEqual((entry.devices[0].device, entry.video["codec"]), ("front", "mjpeg"))
        self.assertEqual(entry.raw["chapters"], [1])
        self.assertIsNone(entry.problem)
        self.assertEqual([found.id for found in self.client.library(since=before).entries], ["py2", "py1"])
        self.assertEqual([found.id for found in self.client.library(device="usb-7").entries], ["py2"])
        self.assertEqual([found.id for found in self.client.library(since=before, state="missing").entries], ["py2"])
        photo = {"uniqueID": "one", "index": 2, "width": 1280, "height": 720, "flashFired": False}
        self.enter("py4", kind="photo", photo=photo, devices=[], started=1)
        found = self.client.library(kind="photo", photo="one").entries[0].photo
        self.assertEqual((found.uniqueID, found.index, found.width, found.raw["flashFired"]), ("one", 2, 1280, False))
        self.assertEqual([entry.id for entry in self.client.library(prefix="py", since=before).entries], ["py2", "py1"])
        self.assertEqual([entry.id for entry in self.client.library(prefix="py4").entries], ["py4"])
        self.assertIsNone(entry.photo)
        first = self.client.library(since=before, limit=1)
        self.assertEqual(([found.id for found in first.entries], first.more), (["py2"], True))
        self.assertEqual(self.client.delete_from_library("py1"), [str(movie)])
        self.assertFalse(movie.exists())
        with self.assertRaises(EntryNotFound) as refused:
            self.client.library_entry("py1")
        self.assertEqual(refused.exception.id, "py1")
        self.assertEqual(self.client.delete_from_library("py2"), [])

    def test_a_file_is_fetched_and_goes_on_where_it_was_cut_off(self) -> None:
        movie = self.enter("py5")
        content = os.urandom(3 << 20)
        movie.write_bytes(content)
        folder = Path(tempfile.mkdtemp(prefix="camerabus-fetched-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, folder)
        target = folder / "here.mp4"
        part = self.client.read_library("py5", offset=7, length=9)
        self.assertEqual((bytes(part.data), part.size, part.name), (content[7:16], len(content), "py5.mp4"))
        self.assertEqual(bytes(self.client.read_library("py5", length=0).data), b"")

        class Cut(Exception):
            pass

        def cut(done: int, size: int) -> None:
            raise Cut

        with self.assertRaises(Cut):
            self.client.fetch_from_library("py5", target, progress=cut)
        (left,) = folder.iterdir()
        self.assertTrue(0 < left.stat().st_size < len(content) and left.name.endswith(".part"))
        begun: list[int] = []
        self.client.fetch_from_library("py5", target, progress=lambda done, size: begun.append(done))
        self.assertEqual(begun[-1], len(content))
        self.assertEqual((target.read_bytes(), list(folder.iterdir())), (content, [target]))
        with self.assertRaises(FileExistsError):
            self.client.fetch_from_library("py5", target)

        changed: list[int] = []

        def change(done: int, size: int) -> None:
            if not changed:
                movie.write_bytes(content[::-1] + b"more")
            changed.append(size)

        self.assertEqual(
            self.client.fetch_from_library("py5", target, overwrite=True, progress=change), len(content) + 4
        )
        self.assertEqual(target.read_bytes(), content[::-1] + b"more")
        movie.unlink()
        with self.assertRaises(EntryNotFound) as refused:
            self.client.fetch_from_library("py5", folder / "gone.mp4")
        self.assertEqual(refused.exception.data["file"], "path")

    def test_the_same_awaited(self) -> None:
        movie = self.enter("py3")

        async def ask() -> list[str]:
            async with AsyncClient(RUNTIME_DIR) as client:
                library = await client.library(device="unique-py3")
                entry = await client.library_entry(library.entries[0].id)
                return [entry.path, *await client.delete_from_library(entry.id)]

        self.assertEqual(asyncio.run(ask()), [str(movie), str(movie)])
