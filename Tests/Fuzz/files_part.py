"""Damaged files of the state and the library: the bus starts or says why not, and keeps what it cannot read."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import Any

from camerabus import CaptureError, Client
from damage import PLACES, damage
from part import Part
from tested_bus import BusUnderTest

SETTINGS = """[devices]
virtual = 2
virtual_microphones = 1
order = ["cam1"]
[aliases]
front = "virtual-0"
[[rig]]
name = "stereo"
devices = ["front", "cam1"]
tolerance_ms = 5
[permission.users]
1234 = "view"
[library]
min_free = 0
"""
#: How many entries the library has: photos, and a movie.
ENTRIES = 5
#: Seconds until a bus has started or said why not.
PATIENCE = 30.0
#: What a program may end with that refuses to start.
REFUSALS = (1, 2, 78)


class Files(Part):
    name = "files"
    share = 300

    def run_all(self, first: int, count: int) -> None:
        """With a bus that is started again for each input."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.good = self.folder.with_suffix(".good")
        shutil.rmtree(self.good, ignore_errors=True)
        self.bus = BusUnderTest(self.programs, self.folder, settings=SETTINGS)
        self.outcomes: Counter[str] = Counter()
        try:
            self.fence = self._make()
            names = self._names()
            for number in range(first, first + count):
                self._damage_one(number, names)
                self.done += 1
        finally:
            self.bus.kill()
        self.notes.append(", ".join(f"{times} {what}" for what, times in self.outcomes.most_common()))

    def _make(self) -> int:
        """Something to lose; the highest fence."""
        self.bus.start_ready()
        with self.bus.client("fuzz") as client:
            with client.lock("front", "cam1", wait=30):
                client.configure([{"device": name, "controls": {"brightness": 11}} for name in ("front", "cam1")])
            client.call("device.rename", {"device": "cam1", "name": "side"})
            client.call("profile.save", {"name": "day", "devices": ["front", "side"]})
            client.call("rig.set", {"name": "pair", "devices": ["side", "front"]})
            client.call("authorization.deny", {"uid": 4321, "media": ["video"]})
            client.call("take.create", {"device": "front", "name": "kept"})
            for _ in range(ENTRIES - 1):
                client.call("photo.capture", {"device": "front"})
            movie = client.call("movie.start", {"device": "front", "name": "one.mp4"})
            client.call("movie.stop", {"movie": movie["movie"]})
            client.call("library.list")
            fence = client.call("device.lock", {"devices": "front"})["fence"]
            # Killed, so that there is also what the next bus takes over.
            self.bus.kill()
        shutil.copytree(self.folder, self.good, ignore=self._sockets)
        return int(fence)

    @staticmethod
    def _sockets(_: str, names: list[str]) -> list[str]:
        return [name for name in names if name.endswith((".sock", ".ring", ".log"))]

    def _names(self) -> list[str]:
        """One of the library's entries stands for all."""
        names = [str(path.relative_to(self.good)) for path in sorted(self.good.rglob("*")) if path.is_file()]
        kept = [name for name in names if name.endswith((".json", ".toml", ".sqlite3"))]
        entries = [name for name in kept if "/entries" in name]
        return [name for name in kept if "/entries" not in name] + entries[:2]

    def _damage_one(self, number: int, names: list[str]) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.good, self.folder, symlinks=True)
        dice = self.dice(number)
        name = dice.choice(names)
        # A configuration may come through a pipe (`--config <(…)`), whose writer is waited for.
        act, data = damage(dice, self.folder / name, but="fifo" if name == "camerabus.toml" else "")
        label = f"{name}, {act}"
        wrong = self._start_and_ask(name, act)
        for line in wrong:
            self.fail(number, f"{label}: {line}; log: {self.bus.end_of_log()[-300:]}")
        for line in self.bus.stop() + self.bus.crashes():
            # A bus whose files were gone or damaged may say at its end that it could not write one.
            if "status 1 " not in line:
                self.fail(number, f"{label}: {line}")
        if data and data.strip() and act in ("cut", "flips", "binary", "zeros", "deep") and name.startswith("state/"):
            if ".json" in name and not self._is_kept(data):
                self.fail(number, f"{label}: what could not be read ({len(data)} bytes) is gone")

    def _start_and_ask(self, name: str, act: str) -> list[str]:
        if self.bus.start(PATIENCE):
            try:
                with self.bus.client("fuzz", timeout=20) as client:
                    return self._ask(client, name, act)
            except CaptureError as error:
                return [f"{type(error).__name__}: {error}"]
        process = self.bus.process
        assert process is not None
        status = process.poll()
        if status is None:
            process.kill()
            process.wait()
            return [f"it neither starts nor ends within {PATIENCE:.0f} s"]
        self.outcomes["refusals to start"] += 1
        said = self.bus.end_of_log().strip()
        return [] if status in REFUSALS and said else [f"it ended with status {status}"]

    def _ask(self, client: Client, name: str, act: str) -> list[str]:
        """What is wrong with what it has."""
        self.outcomes["starts"] += 1
        wrong = []
        configured = "toml" not in name
        library = self._call(client, "library.list", {"limit": 100})
        entries = len(library.get("entries", [])) + len(library.get("unreadable", []))
        if configured and entries != ENTRIES and not ("/entries" in name and act in PLACES):
            wrong.append(f"the library has {entries} entries of {ENTRIES}")
        lock = self._call(client, "device.lock", {"devices": "front"})
        if "fence" in lock and lock["fence"] <= self.fence:
            wrong.append(f"[LCK-16] the fence {lock['fence']} is not above {self.fence}")
        if configured:
            have = {
                "profiles.json": "day" in [each["name"] for each in self._call(client, "profile.list")["profiles"]],
                "rigs.json": "pair" in [each["name"] for each in self._call(client, "rig.list")["rigs"]],
                "takes.json": "kept" in [each["name"] for each in self._call(client, "take.list")["takes"]],
            }
            lost = [file for file, there in have.items() if not there and file not in name]
            wrong += [f"{file} was not damaged, and is lost" for file in lost]
        self._call(client, "device.set", {"device": "front", "controls": {"brightness": 5}, **_token(lock)})
        return wrong

    def _call(self, client: Client, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result; what is refused with a reason has no members."""
        began = time.monotonic()
        try:
            return client.call(method, params)  # type: ignore[no-any-return]
        except CaptureError as error:
            if error.reason in ("deviceNotFound", "deviceBusy", "lockRequired"):
                return {}
            raise
        finally:
            self.times.append(time.monotonic() - began)

    def _is_kept(self, data: bytes) -> bool:
        """Whether it is there, or was set aside."""
        return any(
            path.stat().st_size == len(data) and path.read_bytes() == data
            for path in self.folder.rglob("*")
            if path.is_file() and not path.is_symlink()
        )


def _token(lock: dict[str, Any]) -> dict[str, Any]:
    return {"lock": lock["lock"]} if "lock" in lock else {}
