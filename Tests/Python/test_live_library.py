"""What was recorded, as Python sees it."""

from __future__ import annotations

import asyncio
import json
import os
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

    def test_what_there_is_is_found_and_deleted(self) -> None:
        before = datetime.now()
        movie = self.enter("py1", chapters=[1])
        self.enter("py2", take="a", microphone={"device": "desk", "uniqueID": "usb-7"}).unlink()
        entry = self.client.library_entry("py1")
        self.assertEqual((entry.state, entry.path, entry.duration, entry.reason), ("finished", str(movie), 1500, "stopped"))
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

    def test_the_same_awaited(self) -> None:
        movie = self.enter("py3")

        async def ask() -> list[str]:
            async with AsyncClient(RUNTIME_DIR) as client:
                library = await client.library(device="unique-py3")
                entry = await client.library_entry(library.entries[0].id)
                return [entry.path, *await client.delete_from_library(entry.id)]

        self.assertEqual(asyncio.run(ask()), [str(movie), str(movie)])
