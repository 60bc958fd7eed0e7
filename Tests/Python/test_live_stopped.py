"""Readers that are stopped for longer than they would wait, and go on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from camerabus.silence import SILENCE
from live import LiveTestCase, TIMEOUT

LIMIT = 5.0  # seconds that a reader waits for a frame
STOP = 7.0  # for which it is stopped, by the pictures' own time

_SYNCHRONOUS = """
import sys
from camerabus import Client
for frame in Client().frames(sys.argv[1], timeout=float(sys.argv[2]), shared={shared}):
    print(frame.timestamp.monotonic, flush=True)
"""
_ASYNCHRONOUS = """
import asyncio, sys
from camerabus import AsyncClient
async def main():
    async with AsyncClient() as client:
        async for frame in client.frames(sys.argv[1], timeout=float(sys.argv[2]), shared={shared}):
            print(frame.timestamp.monotonic, flush=True)
asyncio.run(main())
"""
_WATCH = """
from camerabus import Client
for event in Client().watch("heartbeat/"):
    print(event.body["monotonic"], flush=True)
"""


class StoppedReaders(LiveTestCase):
    def reader(self, name: str, command: list[str]) -> tuple[str, subprocess.Popen[str], Path]:
        errors = Path(self.folder) / name
        with errors.open("w") as file:
            process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, stderr=file, text=True)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, TIMEOUT)
        self.addCleanup(process.kill)
        return name, process, errors

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def stop_and_go_on(
        self, readers: list[tuple[str, subprocess.Popen[str], Path]], stop: float = STOP, rounds: int = 2
    ) -> None:
        for name, process, errors in readers:
            assert process.stdout is not None
            self.assertTrue(process.stdout.readline(), f"{name}: {errors.read_text()}")
        with self.client.frames(self.first, rendition="gray:64x36", timeout=TIMEOUT) as frames:
            for _ in range(rounds):
                begin = next(frames).timestamp.monotonic
                for _, process, _ in readers:
                    process.send_signal(signal.SIGSTOP)
                end = begin
                while end < begin + stop * 1e9:
                    end = next(frames).timestamp.monotonic
                for _, process, _ in readers:
                    process.send_signal(signal.SIGCONT)
                for name, process, errors in readers:
                    assert process.stdout is not None
                    time = 0
                    while time <= end:
                        line = process.stdout.readline()
                        self.assertTrue(line, f"{name}: {errors.read_text()}")
                        time = json.loads(line)["timestamp"]["monotonic"] if line.startswith("{") else int(line)

    def python(self, text: str) -> list[str]:
        return [sys.executable, "-c", text, self.first, str(LIMIT)]

    def test_take_what_has_come_before_they_judge(self) -> None:
        programs = {
            f"{kind}, {'shared' if shared else 'frame'}": self.python(text.format(shared=shared))
            for kind, text in (("sync", _SYNCHRONOUS), ("async", _ASYNCHRONOUS))
            for shared in (False, True)
        }
        self.stop_and_go_on([self.reader(name, command) for name, command in programs.items() for _ in range(2)])

    @unittest.skipUnless(shutil.which("camerabus"), "the command line is not there")
    def test_of_the_command_line_too(self) -> None:
        command = ["camerabus", "frames", self.first, "--json", "--timeout", str(LIMIT)]
        self.stop_and_go_on(
            [self.reader(f"frames {more}", [*command, *more]) for more in ([], ["--shared"]) for _ in range(4)]
        )

    def test_of_events_too(self) -> None:
        self.stop_and_go_on(
            [self.reader(f"watch {number}", self.python(_WATCH)) for number in range(8)], SILENCE + 1, rounds=3
        )


if __name__ == "__main__":
    unittest.main()
