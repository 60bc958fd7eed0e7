# SPDX-License-Identifier: Apache-2.0
"""What the tests of the page share: a bus with virtual cameras, the gateway in front of it, and a browser."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Protocol" / "python"), str(ROOT / "Tests" / "Python")]

import chromium  # noqa: E402
import with_bus  # noqa: E402
from camerabus import Client  # noqa: E402
from ports import free_port  # noqa: E402

DEADLINE = 30.0
CAMERAS = 3


class Program:
    """A program that says when it is ready, as services do."""

    def __init__(self, log: Path, *command: str | Path, **environment: str) -> None:
        self.log = log
        with (
            tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp") as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
        ):
            ready.bind(f"{folder}/notify")
            with open(log, "ab") as file:
                self.process = subprocess.Popen(
                    command, stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                    env={**os.environ, **environment, "NOTIFY_SOCKET": f"{folder}/notify"},
                )
            ended = os.pidfd_open(self.process.pid)
            try:
                until = time.monotonic() + DEADLINE
                told = b""
                while b"READY=1" not in told:
                    readable, _, _ = select.select([ready, ended], [], [], max(0.0, until - time.monotonic()))
                    if ready not in readable:
                        self.end(signal.SIGKILL)
                        raise AssertionError(f"{command[0]} does not start: {log.read_text(errors='replace')[-1500:]}")
                    told = ready.recv(4096)
            finally:
                os.close(ended)

    def end(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        try:
            return self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Rig:
    """One of each for all tests: a browser takes a second to start, and a bus too."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="camerabus-web-", dir="/tmp"))
        self.runtime = self.folder / "bus"
        self.gateways: dict[str, Program] = {}
        self.browser: chromium.Browser | None = None
        try:
            self.start_bus()
            self.address = self.start_gateway("control")
            self.browser = chromium.Browser(chromium.find() or "chromium", self.folder)
        except BaseException:
            self.close()
            raise
        self.client = Client(str(self.runtime), name="a web test", timeout=DEADLINE)

    def start_bus(self) -> None:
        # The second one has no point to focus at, and looks to the front; the third is another's without a turn of its
        # own.
        profiles = [word for profile in ("plain", "iphone6", "plain") for word in ("--virtual-profile", profile)]
        self.settings = self.folder / "camerabus.toml"
        self.settings.touch()
        self.bus = Program(
            self.folder / "bus.log", self.binaries / "camerabusd", "--config", self.settings, "--runtime-dir",
            self.runtime, "--virtual", str(CAMERAS), *profiles, "--no-hardware", "--no-pressure",
        )

    def configure_bus(self, text: str) -> None:
        """Has the bus read other settings, which are in force soon."""
        self.settings.write_text(text)
        self.bus.process.send_signal(signal.SIGHUP)

    def start_gateway(self, role: str, more: str = "") -> str:
        """A gateway on a port of its own; its address. `more`: further lines of its settings."""
        port = free_port()
        state = self.folder / f"gateway-{role}"
        state.mkdir()
        (state / "gateway.toml").write_text(f'[web]\nlisten = "127.0.0.1:{port}"\nrole = "{role}"\n{more}')
        self.gateways[role] = self._gateway(role)
        return f"http://127.0.0.1:{port}/"

    def restart_gateway(self, role: str) -> None:
        """One that was ended, where it was."""
        self.gateways[role] = self._gateway(role)

    def _gateway(self, role: str) -> Program:
        state = self.folder / f"gateway-{role}"
        return Program(
            self.folder / "gateway.log",
            self.binaries / "camerabus-gateway",
            "--config",
            state / "gateway.toml",
            "--runtime-dir",
            self.runtime,
            STATE_DIRECTORY=str(state),
        )

    def close(self) -> list[str]:
        """Ends all; what did not end in order, or was left behind."""
        wrong = []
        if self.browser:
            self.browser.close()
        if hasattr(self, "client"):
            self.client.close()
        for program in [*self.gateways.values(), *([self.bus] if hasattr(self, "bus") else [])]:
            if status := program.end():
                wrong.append(
                    f"{program.process.args[0]} ended with status {status}: "
                    f"{program.log.read_text(errors='replace')[-1500:]}"
                )
        wrong += with_bus.left_processes(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        return wrong


RIG: Rig | None = None


def rig() -> Rig:
    assert RIG is not None
    return RIG


class WebTestCase(unittest.TestCase):
    """A page of its own for each test; its console is to be silent."""

    def setUp(self) -> None:
        self.rig = rig()
        self.client = self.rig.client
        assert self.rig.browser is not None
        self.page = self.rig.browser.page()
        self.addCleanup(self.page.close)
        self.addCleanup(lambda: self.assertEqual(self.page.complaints(), [], "the page's console"))

    def open_camera(self, device: str = "cam0", address: str | None = None) -> None:
        self.page.open(f"{address or self.rig.address}#/camera/{device}")
        self.page.wait("document.querySelector('.picture[data-sequence]')")
        # Boxes are gone sooner than one may come to look for them.
        self.page.evaluate(
            """window.seen = [];
                new MutationObserver((changes) => changes.flatMap((change) => [...change.addedNodes]).forEach((box) => {
                const { x, y, width, height } = box.getBoundingClientRect()
                window.seen.push({ kind: box.className, x: x + width / 2, y: y + height / 2 })
            })).observe(document.querySelector(".boxes"), { childList: true })"""
        )

    def state(self, topic: str, condition, what: str = "") -> None:
        """Waits until a topic of the bus's state is so."""
        with self.client.mirror(topic) as mirror:
            mirror.wait(lambda state: topic in state and condition(state[topic]), DEADLINE)
