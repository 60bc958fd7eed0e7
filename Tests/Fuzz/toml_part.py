"""Configuration files of every kind of nonsense, read by a running bus and by programs that start."""

from __future__ import annotations

import os
import random
import signal
import subprocess

from camerabus import CaptureError
from part import Part
from tested_bus import ROOT

NESTED = [b"[" * n for n in (1, 2, 3, 4, 10, 100, 1000, 100_000)]
NESTED += [b"a=" + b"[" * n for n in (1, 10, 1000, 100_000)] + [b"a=" + b"{a=" * n for n in (1, 10, 1000, 30_000)]
NESTED += [b"[" + b"a." * 50_000 + b"a]", b"a." * 50_000 + b"a=1", b"#" + b"x" * 5_000_000, b"[[replay]]\n" * 5000]
#: What has once broken a parser, or is at one of its limits.
SHORT = [
    *NESTED, b'a="' + b"\\" * 99, b'a="\\u"', b'a="\\ud800"', b'a="\\UFFFFFFFF"', b"a=1e999999", b"a=0x" + b"f" * 100,
    b"a=-9223372036854775809", b"a=1979-05-27T07:32:00Z", b"a=99999-99-99", b"a='''", b'a="""', b"=", b"a", b"a=",
    b"[]", b"[[]]", b"[a", b"[[a]", b"[a]]", b"[a]\n[a]", b"a=1\na=1", b"\0", b"a=\0", b"\xff", b"\xef\xbb\xbf[bus]",
    b"a={", b"a={b=1,", b"a=[1,", b"[bus]\nlog_level=[]", b"[[rig]]\n[rig]", b"[a.b]\n[a]\nb=1", b"a.b=1\na=2",
    b'"\\u0000"=1', b'""=1', b"' '=1", b"[\xf0\x9f\x92\xa5]", b"[ ", b"[\n", b"[.", b"[a.", b'["', b"[[a", b"[[[a]]]",
    b"[\t[", b"a = [[[[[[]", b"[\\x",
]  # fmt: skip
PIECES = (
    b"[", b"]", b"{", b"}", b'"', b"'", b"\\", b"=", b".", b",", b"\n", b"\0", b"\xff", b"#", b"-", b"1e", b"0x",
    b"inf", b"nan", b"true", b'"""', b"[[", b"\\u12",
)  # fmt: skip
#: Behind each input, so that the running bus never takes one: only reading it is tried.
REFUSED = b'\n[nobody-knows-this]\nx = "1"\n'
#: Every so many inputs programs are started with it, too.
STARTED = 10
#: Seconds that a program may need to refuse it, and after which the gateway counts as started.
PATIENCE = {"camerabusd": 10.0, "camerabus-gateway": 2.0}


class Toml(Part):
    name = "toml"
    share = 3_000

    def prepare(self) -> None:
        text = (ROOT / "deploy" / "camerabus.toml").read_bytes().replace(b"\n# ", b"\n").replace(b"#", b"")
        self.lines = [line for line in text.split(b"\n") if b" = " in line or line.startswith(b"[")]

    def give(self, first: int, count: int) -> None:
        with self.bus.client("fuzz", timeout=15) as client:
            for number in range(first, first + count):
                data = SHORT[number] if number < len(SHORT) else self._mutated(self.dice(number))
                self.bus.settings.write_bytes(data + REFUSED)
                assert self.bus.process is not None
                os.kill(self.bus.process.pid, signal.SIGHUP)
                try:
                    client.ping()
                except CaptureError as error:
                    self.fail(number, f"{error} after {data[:80]!r} ({len(data)} bytes), or the input before it")
                if number % STARTED == 0 or number < len(SHORT):
                    self._start(number, data)
                self.done += 1
                if not self.health.check(number - first, count, f"after {data[:80]!r} ({len(data)} bytes)"):
                    break

    def _mutated(self, dice: random.Random) -> bytes:
        data = bytearray(b"\n".join(dice.choice(self.lines) for _ in range(dice.randrange(1, 8))))
        for _ in range(dice.choice([1, 1, 2, 5, 20])):
            place = dice.randrange(len(data) + 1)
            act = dice.random()
            if act < 0.4:
                data[place : place + dice.randrange(1, 4)] = dice.choice(PIECES)
            elif act < 0.6:
                del data[place : place + dice.randrange(1, 10)]
            elif act < 0.8:
                data[place:place] = bytes([dice.randrange(256)])
            else:
                data[place:place] = data[: dice.randrange(40)]
        return bytes(data)

    def _start(self, number: int, data: bytes) -> None:
        """Both programs refuse it in words, or would run: the coordinator not beside the other one."""
        file = self.folder / "other.toml"
        file.write_bytes(data)
        for program, patience in PATIENCE.items():
            command = [self.programs / program, "--config", file, "--runtime-dir", self.folder / "nowhere"]
            if program == "camerabusd":
                command[-1:] = [self.bus.runtime, "--state-dir", self.folder / "other-state"]
            try:
                ended = subprocess.run(command, capture_output=True, timeout=patience, env=self.bus.environment)
            except subprocess.TimeoutExpired:
                if program == "camerabusd":
                    self.fail(number, f"{program} neither starts nor ends with {data[:80]!r} ({len(data)} bytes)")
                continue
            said = (ended.stdout + ended.stderr).strip()
            if ended.returncode not in (1, 2, 78) or not said:
                of = f"{data[:80]!r} ({len(data)} bytes)"
                self.fail(number, f"{program} ends with status {ended.returncode} of {of}: {said[-200:]!r}")
