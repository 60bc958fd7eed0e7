"""Topics that exist, nearly exist, or do not, at events.sock, media sockets and rings."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import frame_rules
import history
import zmq
from campaign import Stalls
from part import Part
from story import Story

NUMBERS = (
    "0", "1", "2", "3", "7", "16", "64", "65", "160", "320", "321", "640", "1280", "1281", "4096", "16384", "16385",
    "65536", "99999", "999999", "4294967296", "99999999999999999999", "-1", "01", "+1", "1e3", "", "１", "0x10",
)  # fmt: skip
RATES = (
    "0.001", "0.000001", "0.0000001", "1", "5", "10", "29.97", "240", "100000", "100000.000001", "0", "", "1.", ".5",
    "NaN", "1e9", "9" * 60,
)  # fmt: skip
OPTIONS = (
    "q=1", "q=100", "q=0", "q=101", "q=-5", "q=", "q=50;q=50", "rotate=90", "rotate=180", "rotate=270", "rotate=0",
    "rotate=45", "rotate=360", "mirror", "mirror=1", "fit", "fit=1", "crop=8x8+0+0",
    "crop=64x48+1+1", "crop=9999x1+0+0", "crop=0x0+0+0", "crop=8x8", "", "x", "q=1e2", "rotate=", "\0",
)  # fmt: skip
NATIVE = ("", "@1", "@0.001", "@0", "@-1", "@100000", "@100001", "@1e3", ":1x1", ";mirror")
FORMATS = (
    "jpeg", "jpeg", "jpeg", "jpeg", "bgr", "rgb", "gray", "yuyv", "nv12", "i420", "s16", "f32", "JPEG", "png", "",
    "h264",
)  # fmt: skip
KINDS = (
    "frame", "frame", "frame", "frame", "frame", "frame", "buffer", "buffer", "buffer", "set", "audio", "level",
    "state", "event", "x", "", "FRAME",
)  # fmt: skip
OTHERS = (
    b"", b"/", b"frame/", b"state/", b"event/", b"heartbeat/", b"welcome/", b"ack/a/", b"ack//", b"state/bus/",
    b"ack/" + b"z" * 65 + b"/", b"state/device/cam0/",
)  # fmt: skip
ENDINGS = (b"\xff\xfe", b"jpeg\0", b"jpeg:" + b"1" * 300 + b"x1", b"\xc0\x80", b"x" * 3000, b"jpeg;" + b"mirror;" * 40)
PLACES = (
    ("events.sock", "cam0"), ("media/cam0.sock", "cam0"), ("media/cam1.sock", "cam1"), ("media/mic0.sock", "mic0"),
    ("media/pair.sock", "pair"),
)  # fmt: skip
#: Proper subscriptions, which are answered whatever came before.
PROPER = (
    ("media/cam0.sock", "frame/cam0/jpeg:160x0/"), ("media/cam1.sock", "frame/cam1/gray/"),
    ("media/mic0.sock", "audio/mic0/native/"), ("media/pair.sock", "set/pair/native/"), ("events.sock", "state/bus/"),
)  # fmt: skip
#: Seconds until such a one is answered: renditions of others end two seconds after them.
PATIENCE = 20.0
CHAOS = Path(frame_rules.__file__).parent


def rendition(dice: random.Random) -> str:
    if dice.random() < 0.1:
        return f"native{dice.choice(NATIVE)}"

    def number() -> str:
        return dice.choice([*NUMBERS, str(dice.randrange(1, 2000))])

    text = dice.choice(FORMATS)
    if dice.random() < 0.7:
        text += f":{number()}{dice.choice(['x', 'x', 'x', 'x', 'X', '*', ''])}{number()}"
    if dice.random() < 0.4:
        text += f"@{dice.choice(RATES)}"
    return text + "".join(f";{dice.choice(OPTIONS)}" for _ in range(dice.choice([0, 0, 0, 1, 1, 2, 3])))


def topic(dice: random.Random, device: str) -> bytes:
    act = dice.random()
    if act < 0.75:
        others = ["cam1", "nobody", "", "..", "cam0\0", "pair", "x" * 200]
        where = device if dice.random() < 0.9 else dice.choice(others)
        end = dice.choice(["/", "/", "/", "/", "", "//", "/x/"])
        return f"{dice.choice(KINDS)}/{where}/{rendition(dice)}{end}".encode()
    if act < 0.85:
        return dice.choice(OTHERS)
    if act < 0.95:
        return dice.randbytes(dice.choice([1, 2, 10, 100, 250, 256, 257, 300]))
    return b"frame/" + device.encode() + b"/" + dice.choice(ENDINGS) + b"/"


class Subscriptions(Part):
    name = "subscriptions"
    share = 100_000
    arguments = ("--virtual", "3")

    def prepare(self) -> None:
        self.received: Counter[str] = Counter()
        with self.bus.client("fuzz") as client:
            small = {"activeFormat": {"pixelFormat": "YUYV", "width": 320, "height": 240}, "frameRate": 10}
            with client.lock("cam0", "cam1", "cam2", wait=30):
                client.configure([{"device": camera, **small} for camera in ("cam0", "cam1", "cam2")])
            client.call("rig.set", {"name": "pair", "devices": ["cam0", "cam1"]})

    def give(self, first: int, count: int) -> None:
        context = zmq.Context()
        command = [sys.executable, str(CHAOS / "workload.py"), "watch-frames", str(self.folder), "1", "0", "0"]
        with open(self.folder / "watcher.log", "wb") as log:
            watcher = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            with Stalls(history.Writer(self.folder, "stalls")):
                while self.done < count and self.health.check(self.done, count):
                    self._subscribe(context, first + self.done)
                self._ask_properly(context)
        finally:
            watcher.send_signal(signal.SIGTERM)
            watcher.wait()
            context.destroy(linger=0)
        for violation in frame_rules.check(Story(history.read(self.folder))):
            self.fail(None, f"{violation.rule} {violation.text}")
        self.notes.append(", ".join(f"{times} {what}" for what, times in self.received.most_common(8)))

    def _subscribe(self, context: zmq.Context[zmq.Socket[bytes]], number: int) -> None:
        """One subscriber; its topics are inputs."""
        dice = self.dice(number)
        path, device = dice.choice(PLACES)
        with context.socket(zmq.SUB) as subscriber:
            subscriber.setsockopt(zmq.LINGER, 0)
            subscriber.setsockopt(zmq.RCVHWM, 20)
            subscriber.connect(f"ipc://{self.bus.runtime / path}")
            wanted: list[bytes] = []
            for _ in range(dice.choice([1, 3, 10, 60, 200])):
                wanted.append(topic(dice, device))
                subscriber.setsockopt(zmq.SUBSCRIBE, wanted[-1])
                self.done += 1
                if dice.random() < 0.3:
                    subscriber.setsockopt(zmq.UNSUBSCRIBE, dice.choice(wanted))
            until = time.monotonic() + dice.choice([0, 0.01, 0.1, 0.3, 1])
            while subscriber.poll(max(0, int((until - time.monotonic()) * 1000))):
                self._look(number, subscriber.recv_multipart())
                if time.monotonic() > until:
                    break
        if dice.random() < 0.1:
            self._ask_for_ring(dice)

    def _look(self, number: int, parts: list[bytes]) -> None:
        kind = parts[0].split(b"/")[0]
        if len(parts) < 2 or kind not in (b"frame", b"buffer", b"audio", b"level", b"set"):
            return
        try:
            header = json.loads(parts[1])
        except ValueError:
            self.fail(number, f"a header that is no JSON on {parts[0]!r}: {parts[1][:200]!r}")
            return
        reason = header.get("error", {}).get("reason")
        self.received[f"refused: {reason}" if reason else kind.decode()] += 1
        if kind == b"frame" and not reason:
            size = sum(map(len, parts[2:]))
            if any(plane["offset"] + plane["bytes"] > size for plane in header["planes"]):
                self.fail(number, f"a plane is not within its payload of {size} bytes: {parts[1][:400]!r}")

    def _ask_for_ring(self, dice: random.Random) -> None:
        device = dice.choice(["cam0", "cam1", "mic0"])
        message = dice.choice([json.dumps({"rendition": rendition(dice)}).encode(), b"x" * 1025, b"{}", b"[]", b" "])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, suppress(OSError):
            connection.settimeout(3)
            connection.connect(str(self.bus.runtime / "media" / f"{device}.ring"))
            connection.send(message)
            if dice.random() < 0.5:
                for descriptor in socket.recv_fds(connection, 65536, 4)[1]:
                    os.close(descriptor)
                    self.received["rings"] += 1

    def _ask_properly(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        for path, wanted in PROPER:
            with context.socket(zmq.SUB) as subscriber:
                subscriber.setsockopt(zmq.LINGER, 0)
                subscriber.setsockopt(zmq.SUBSCRIBE, wanted.encode())
                subscriber.connect(f"ipc://{self.bus.runtime / path}")
                until = time.monotonic() + PATIENCE
                refusal = b"nothing"
                while subscriber.poll(max(0, int((until - time.monotonic()) * 1000))):
                    body = subscriber.recv_multipart()[1]
                    refusal = body[:300] if "error" in json.loads(body) else b""
                    if not refusal:
                        break
                if refusal:
                    self.fail(None, f"{wanted} has {refusal!r} {PATIENCE:.0f} s after all that")
