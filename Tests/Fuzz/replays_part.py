"""Damaged movies and pictures, played as cameras."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path

import zmq
from damage import damaged_media
from part import Part

#: FFmpeg's options for each kind of file.
KINDS = {
    "mp4": ["-c:v", "mpeg4", "-q:v", "5"],
    "h264.mp4": ["-c:v", "libx264", "-preset", "ultrafast", "-g", "5"],
    "mkv": ["-c:v", "libx264", "-preset", "ultrafast", "-g", "5"],
    "mjpeg": ["-c:v", "mjpeg", "-f", "mjpeg"],
    "mjpeg.mkv": ["-c:v", "mjpeg"],
    "y4m": ["-pix_fmt", "yuv420p"],
    "jpg": ["-frames:v", "1"],
    "mov": ["-c:v", "mjpeg"],
}
#: How many files one bus plays, and for how many seconds.
AT_ONCE, SECONDS = 25, 9.0
#: Frames that the file which is not damaged has to give meanwhile: it has ten a second.
GOOD = 30
RENDITIONS = ("native", "jpeg:80x60", "gray")


class Replays(Part):
    name = "replays"
    share = 500

    def run_all(self, first: int, count: int) -> None:
        """A bus for each few files."""
        all_of_it = self.folder
        sources = all_of_it.with_suffix(".good")
        self.outcomes: Counter[str] = Counter()
        self._make(sources)
        for start in range(first, first + count, AT_ONCE):
            self.folder = all_of_it / str(start)
            self.media = all_of_it.with_suffix(".media")
            shutil.rmtree(self.media, ignore_errors=True)
            self.media.mkdir()
            numbers = range(start, min(start + AT_ONCE, first + count))
            self.files = {f"r{number}": self._damaged(number) for number in numbers}
            replays = {"good": sources / "good.mp4", **self.files}
            words = [word for name, path in replays.items() for word in ("--replay", f"{name}={path}")]
            self.arguments = ("--virtual", "1", *words)  # type: ignore[misc]
            super().run_all(start, len(self.files))
            shutil.rmtree(self.folder)
        self.notes.append(", ".join(f"{times} {what}" for what, times in self.outcomes.most_common()))

    def _make(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.originals = {}
        source = ["-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=2"]
        for kind, options in KINDS.items():
            path = folder / f"good.{kind}"
            subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *source, *options, str(path)], check=True)
            self.originals[kind] = path.read_bytes()

    def _damaged(self, number: int) -> Path:
        dice = self.dice(number)
        kind = dice.choice(list(KINDS))
        path = self.media / f"r{number}.{kind}"
        if kind == "jpg" and dice.random() < 0.7:
            path.mkdir()
            for picture in range(4):
                is_good = picture == 1 and dice.random() < 0.5
                data = self.originals[kind] if is_good else damaged_media(dice, self.originals[kind])
                (path / f"{picture}.jpg").write_bytes(data)
        else:
            path.write_bytes(damaged_media(dice, self.originals[kind]))
        return path

    def give(self, first: int, count: int) -> None:
        context = zmq.Context()
        poller = zmq.Poller()
        devices: dict[zmq.Socket[bytes], str] = {}
        for device in ("good", *self.files):
            subscriber = context.socket(zmq.SUB)
            subscriber.setsockopt(zmq.LINGER, 0)
            for topic in ("heartbeat/", *(f"frame/{device}/{rendition}/" for rendition in RENDITIONS)):
                subscriber.setsockopt(zmq.SUBSCRIBE, topic.encode())
            subscriber.connect(f"ipc://{self.bus.runtime / 'media' / device}.sock")
            poller.register(subscriber, zmq.POLLIN)
            devices[subscriber] = device
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for subscriber, _ in poller.poll(200):
                self._look(seen[devices[subscriber]], devices[subscriber], subscriber.recv_multipart())
        context.destroy(linger=0)
        self.done += count
        self._compare(seen)

    def _look(self, seen: Counter[str], device: str, parts: list[bytes]) -> None:
        header = json.loads(parts[1])
        if parts[0] == b"heartbeat/":
            seen["damaged"] = header["damaged"]
            return
        seen[header.get("error", {}).get("reason", "frames")] += 1
        size = sum(map(len, parts[2:]))
        if "error" not in header and any(plane["offset"] + plane["bytes"] > size for plane in header["planes"]):
            self.fail(self._number(device), f"a plane is not within its payload: {parts[1][:300]!r}")

    def _number(self, device: str) -> int | None:
        return int(device[1:]) if device in self.files else None

    def _compare(self, seen: dict[str, Counter[str]]) -> None:
        with self.bus.client("fuzz") as client:
            states = {device["id"]: device for device in client.call("device.list")["devices"]}
        outcomes = self.outcomes
        for device, path in self.files.items():
            state = states.get(device)
            if state is None:
                outcomes["no device"] += 1
            elif state["worker"]["restarts"] or state["worker"]["state"] != "running":
                self.fail(self._number(device), f"{path.name}: its worker is {state['worker']} ({state['error']})")
            elif seen[device]["frames"]:
                outcomes["frames"] += 1
            elif seen[device]["damaged"]:
                outcomes["damaged frames only"] += 1
            elif state["error"] or +seen[device] or not state["connected"]:
                outcomes["an error"] += 1
            else:
                self.fail(self._number(device), f"{path.name}: neither frames nor an error")
        if seen["good"]["frames"] < GOOD:
            self.fail(None, f"the file that is not damaged: {dict(seen['good'])}")
