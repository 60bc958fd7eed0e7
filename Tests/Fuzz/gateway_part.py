"""Damaged files of a gateway: its configuration, tokens, keys, and its own key."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
from collections import Counter

from damage import damage
from part import Part
from ports import free_port

TOKEN = "abcdefghijklmnopqrstuvwxyz012345"
SETTINGS = """[gateway]
log_level = "info"
[tcp]
listen = "tcp://127.0.0.1:{port}"
keys = "{gate}/keys"
server_key = "{gate}/server.key"
connections = 64
[web]
listen = "127.0.0.1:{web}"
tokens = "{gate}/tokens"
"""
FILES = {
    "tokens": f"control {TOKEN} desk\nview {'z' * 40} door\n",
    "keys": "control Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID laptop\n",
}
PICTURE = "/camera/cam0.jpg?width=64"
#: Seconds until a gateway is ready or has ended.
PATIENCE = 10.0


class Gateway(Part):
    name = "gateway"
    share = 200
    arguments = ("--virtual", "1")

    def prepare(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.gate = self.folder / "gate"
        self.gate.mkdir(mode=0o700)
        self.web, self.port = free_port(), free_port()
        settings = SETTINGS.format(gate=self.gate, port=self.port, web=self.web)
        for name, text in {**FILES, "gateway.toml": settings}.items():
            (self.gate / name).write_text(text)
            (self.gate / name).chmod(0o600)
        if not self._start() or not self._serves():
            raise AssertionError(f"the gateway does not start: {self._said()}")
        self._end()
        self.good = self.folder / "good"
        shutil.copytree(self.gate, self.good)

    def give(self, first: int, count: int) -> None:
        names = ["gateway.toml", *sorted(path.name for path in self.good.iterdir())]
        for number in range(first, first + count):
            shutil.rmtree(self.gate)
            shutil.copytree(self.good, self.gate)
            self._damage_one(number, names)
            self.done += 1
            self.health.check(number - first, count)
        self.notes.append(", ".join(f"{times} {what}" for what, times in self.outcomes.most_common()))

    def _damage_one(self, number: int, names: list[str]) -> None:
        dice = self.dice(number)
        name = dice.choice(names)
        # These two are read again when they change.
        is_live = name in FILES and dice.random() < 0.5
        if is_live:
            self._start()
        act, data = damage(dice, self.gate / name)
        label = f"{name}, {act}{', while it runs' if is_live else ''}"
        if not is_live:
            self._start()
        serves = self._serves()
        status = self.bus.gateway.poll() if self.bus.gateway else None
        if status is not None:
            self.outcomes["refusals to start"] += 1
            if is_live or status not in (1, 2, 78) or not self._said():
                self.fail(number, f"{label}: it ended with status {status}: {self._said()[-300:]}")
        elif serves:
            self.outcomes["serves"] += 1
            if name == "tokens" and act != "missing" and self._status(PICTURE) == 200:
                self.fail(number, f"{label}: it gives pictures without a token")
        elif name != "gateway.toml":
            self.fail(number, f"{label}: it runs and serves nothing: {self._said()[-300:]}")
        key = self.gate / "server.key"
        if name == "server.key" and data and data.strip() and key.read_bytes() != data:
            self.fail(number, f"{label}: its key was written over")
        if (ended := self._end()) and status is None:
            self.fail(number, f"{label}: it ended with status {ended} after SIGTERM")

    def _start(self) -> bool:
        """Whether it is ready. If it has ended, it refuses to start."""
        (self.folder / "gateway.log").unlink(missing_ok=True)
        return self.bus.start_gateway(self.gate / "gateway.toml", PATIENCE)

    def _said(self) -> str:
        return (self.folder / "gateway.log").read_text(errors="replace").strip()

    def _serves(self) -> bool:
        return self._status("/healthz") == 200

    def _status(self, path: str) -> int | None:
        """Of a request without a token."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.web}{path}", timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def _end(self) -> int:
        assert self.bus.gateway is not None
        self.bus.gateway.terminate()
        try:
            return self.bus.gateway.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.bus.gateway.kill()
            return self.bus.gateway.wait()
