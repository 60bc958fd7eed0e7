"""The clients of a campaign, each a process of its own: workload.py ROLE FOLDER SEED NUMBER PORT

NUMBER is how many clients of this role came before it, PORT that of the page. Prints a line when it begins.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import tested_bus  # noqa: F401  finds the Python client
import zmq
from camerabus import CaptureError, RingConnection, SoundRingConnection
from camerabus.errors import ClientError
from history import Writer
from recording import RecordedClient, Runs, read_topics

#: What all cameras are set to: small, so that a busy machine is not the limit.
FORMAT = {"activeFormat": {"pixelFormat": "YUYV", "width": 320, "height": 240}, "frameRate": 10}
CAMERAS = ("cam0", "cam1", "cam2", "cam3")


class Workload:
    def __init__(self, role: str, folder: Path, seed: str, number: str, port: str) -> None:
        self.runtime, self.port = folder / "run", port
        self.dice = random.Random(f"{role} {seed} {number}")
        self.writer = Writer(folder, f"{role}.{number}")
        self.runs = Runs(self.writer)

    def client(self) -> RecordedClient:
        return RecordedClient(self.runtime, self.writer, self.dice)

    def name(self, number: int) -> str:
        return f"{self.writer.by.replace('.', '-')}-{number}"

    # Locks, and changes under them

    def fight(self, *choices: list[str]) -> None:
        client, number = self.client(), 0
        while True:
            number += 1
            params = {"devices": self.dice.choice(choices), "wait": 4000}
            try:
                lock = client.insist("device.lock", params, 7, self.name(number))
                try:
                    self.use(client, lock["lock"], [device for device in params["devices"] if device != "mic0"])
                finally:
                    client.insist("device.unlock", {"lock": lock["lock"]}, 4, seconds=30)
            except CaptureError:
                client.nap(0.01, 0.2)
            client.nap(0, 0.15)

    def use(self, client: RecordedClient, token: str, cameras: list[str]) -> None:
        """Reads and changes what is locked. Raises if the lock is lost."""

        def shown(result: dict[str, Any]) -> dict[str, Any]:
            device = result["device"]
            return {"brightness": device["controls"].get("brightness"), "fence": (device["lock"] or {}).get("fence")}

        for _ in range(self.dice.randrange(4)):
            client.nap(0, 0.2)
            value = self.dice.randrange(-64, 65)
            changes = [{"device": camera, "controls": {"brightness": value}} for camera in cameras]
            try:
                for camera in cameras:
                    client.call("device.get", {"device": camera}, 4, keep=shown)
                client.call("device.configure", {"lock": token, "changes": changes}, 6)
            except CaptureError as error:
                if error.reason == "lockLost":
                    raise
            try:
                client.call("device.renew", {"lock": token}, 4)
            except ClientError:
                pass

    # Readers

    def read(self, kind: str, *devices: str, rendition: str = "native") -> None:
        topics = {f"{kind}/{device}/{rendition}/": f"media/{device}.sock" for device in devices}
        read_topics(self.runtime, topics, self.runs, self.writer)

    def read_ring(self, device: str, rendition: str = "native") -> None:
        sound = device.startswith("mic")
        path = str(self.runtime / "media" / f"{device}.ring")
        topic = f"ring/{device}/{rendition}/"
        count = itertools.count()
        while True:
            try:
                with (SoundRingConnection if sound else RingConnection)(path, rendition) as connection:
                    while True:
                        frame = connection.next(2) if sound else connection.next(2, "next")
                        if frame is not None:
                            number = frame.firstFrame if sound else frame.captureSequence
                            moment = {"sequence": next(count), "capture": number, "time": number, "dropped": 0}
                            self.runs.add(topic, frame.stream, moment, frame.frames if sound else 1)
            except CaptureError:
                time.sleep(self.dice.uniform(0.05, 0.2))

    def read_state(self) -> None:
        events = zmq.Context.instance().socket(zmq.SUB)
        events.setsockopt(zmq.RCVHWM, 100_000)
        events.setsockopt(zmq.RECONNECT_IVL, 20)
        for topic in (b"state/", b"event/"):
            events.setsockopt(zmq.SUBSCRIBE, topic)
        events.connect(f"ipc://{self.runtime / 'events.sock'}")
        while True:
            topic, body = events.recv_multipart()
            message = json.loads(body)
            numbers = {name: message[name] for name in ("epoch", "sequence", "previous")}
            ended = {"ended": True} if topic == b"event/bus/" and message["event"] == "ended" else {}
            self.writer.write(state=topic.decode(), **numbers, **ended)

    # Files

    def record(self, device: str, microphone: str, kind: str, fragment: int) -> None:
        client, number = self.client(), 0
        while True:
            number += 1
            params = {
                "device": device, "microphone": microphone, "fileType": kind, "fragmentInterval": fragment,
                "name": self.name(number), "maxDuration": self.dice.randrange(4000, 15000),
            }  # fmt: skip
            try:
                movie = {"movie": client.call("movie.start", params, 15, self.name(number))["movie"]}
                until = time.monotonic() + self.dice.uniform(2, 16)
                while time.monotonic() < until:
                    client.nap(0.1, 0.3)
                    try:
                        if client.call("movie.status", movie, 5)["movie"]["state"] == "finished":
                            break
                    except ClientError:
                        continue
                    if self.dice.random() < 0.02:
                        client.call("movie.pause", movie, 5)
                        client.nap(0.1, 0.5)
                        client.call("movie.resume", movie, 5)
                else:
                    client.insist("movie.stop", movie, 20, seconds=30)
            except CaptureError as error:
                if error.reason == "recordingInProgress":
                    client.attempt("movie.stop", {"movie": error.data["movie"]}, 20)
                client.nap(0.1, 0.5)

    def take_photos(self, device: str) -> None:
        client, number = self.client(), 0
        while True:
            number += 1
            deliver = self.dice.choice([["library", "reply"], ["library"], ["reply"]])
            burst = {"burst": 3} if self.dice.random() < 0.2 else {}
            settings = {"uniqueID": self.name(number), **burst}
            client.attempt("photo.capture", {"device": device, "settings": settings, "deliver": deliver}, 30)
            client.nap(0.05, 0.8)

    def take_live_photos(self, device: str, microphone: str) -> None:
        client, number, session = self.client(), 0, None
        while True:
            number += 1
            try:
                if session is None:
                    outputs = [{"type": "photo", "livePhotoCaptureEnabled": True}]
                    params = {"inputs": [{"device": device, **FORMAT}, microphone], "outputs": outputs}
                    session = client.call("session.create", params)["session"]
                    client.call("session.start", {"session": session})
                    client.nap(0.5, 2)
                settings = {"livePhoto": True, "uniqueID": self.name(number)}
                params = {"session": session, "settings": settings, "deliver": ["library", "reply"]}
                client.call("photo.capture", params, 40)
                if self.dice.random() < 0.15:
                    client.call("session.delete", {"session": session})
                    session = None
            except CaptureError as error:
                session = None if error.reason == "sessionNotFound" else session
                client.nap(0.1, 0.5)
            client.nap(0.1, 1)

    def make_takes(self, device: str, microphone: str) -> None:
        client, number = self.client(), 0
        # Takes outlive their client, and a user has sixteen.
        with suppress(CaptureError):
            for left in client.insist("take.list")["takes"]:
                client.attempt("take.discard", {"take": left["id"]}, 30)
        while True:
            number += 1
            params = {"device": device, "microphone": microphone, "name": self.name(number)}
            try:
                take = {"take": client.call("take.create", params)["take"]["id"]}
            except CaptureError:
                client.nap(0.2, 0.5)
                continue
            try:
                for _ in range(self.dice.randrange(1, 4)):
                    try:
                        client.insist("take.record", take, 20)
                    except CaptureError as error:
                        # Its answer was lost, and it was asked again.
                        if error.reason != "recordingInProgress":
                            raise
                    client.nap(0.5, 2)
                    client.insist("take.pause", take, 25)
                if self.dice.random() < 0.8:
                    client.insist("take.finish", take, 60)
                    continue
            except CaptureError:
                pass
            client.attempt("take.discard", take, 30)
            client.nap(0.1, 0.6)

    # What else a client does

    def use_sessions(self, device: str) -> None:
        client = self.client()
        while True:
            try:
                params = {"inputs": [{"device": device, **FORMAT}], "outputs": ["videoData"]}
                session = {"session": client.call("session.create", params, 6)["session"]}
                client.call("session.start", session, 8)
                client.nap(0.1, 1.5)
                client.call("session.delete", session, 6)
            except CaptureError:
                client.nap(0.1, 0.5)

    def save_profiles(self, device: str) -> None:
        client, number = self.client(), 0
        while True:
            number += 1
            client.attempt("profile.save", {"name": self.name(number % 20), "devices": device}, 5)
            client.nap(0.2, 0.8)

    def look_at_the_page(self) -> None:
        while True:
            for path in ("/healthz", "/camera/cam0.jpg?width=160", "/metrics"):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=8) as answer:
                        body = answer.read()
                except OSError:
                    continue
                except Exception:  # noqa: BLE001  what http.client makes of a connection that was cut
                    continue
                if ".jpg" in path:
                    self.writer.write(page=path, picture=body[:2] == b"\xff\xd8" and body[-2:] == b"\xff\xd9")
            time.sleep(self.dice.uniform(0.2, 0.6))


#: Readers that nobody kills or stops: what they miss, the bus has lost.
WATCHERS: dict[str, Callable[[Workload], None]] = {
    "watch-frames": lambda its: its.read("frame", *CAMERAS),
    "watch-buffers": lambda its: its.read("buffer", *CAMERAS),
    "watch-sound": lambda its: its.read("audio", "mic0", "mic1"),
    "watch-state": Workload.read_state,
}
CLIENTS: dict[str, Callable[[Workload], None]] = {
    "reader-jpeg": lambda its: its.read("frame", "cam0", rendition="jpeg:160x0@5"),
    "reader-gray": lambda its: its.read("buffer", "cam1", rendition="gray"),
    "reader-ring": lambda its: its.read_ring("cam0"),
    "reader-small-ring": lambda its: its.read_ring("cam2", "gray:96x0"),
    "reader-sound": lambda its: its.read_ring("mic0"),
    "reader-set": lambda its: its.read("set", "pair"),
    "fight-a": lambda its: its.fight(["cam0"], ["cam1"], ["cam0", "cam1"]),
    "fight-b": lambda its: its.fight(["cam1", "cam0"], ["cam1"], ["cam2"]),
    "fight-c": lambda its: its.fight(["cam0"], ["cam2"], ["cam2", "cam1", "mic0"]),
    "record-mp4": lambda its: its.record("cam0", "mic0", "mp4", 1000),
    "record-mkv": lambda its: its.record("cam1", "mic1", "mkv", 2000),
    "photos": lambda its: its.take_photos("cam2"),
    "live": lambda its: its.take_live_photos("cam3", "mic1"),
    "takes": lambda its: its.make_takes("cam2", "mic0"),
    "sessions": lambda its: its.use_sessions("cam2"),
    "profiles": lambda its: its.save_profiles("cam1"),
    "page": Workload.look_at_the_page,
}


def main() -> int:
    role, folder, seed, number, port = sys.argv[1:]
    workload = Workload(role, Path(folder), seed, number, port)

    def end(*_: object) -> None:
        workload.runs.end()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("begun", flush=True)
    {**WATCHERS, **CLIENTS}[role](workload)
    return 0


if __name__ == "__main__":
    sys.exit(main())
