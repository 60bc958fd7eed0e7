"""Sockets that a service manager has made: who connects before the bus runs waits for it, and they stay when it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from live import RUNTIME_DIR, TIMEOUT

# As systemd starts a service: its sockets from descriptor 3 on, and in the environment whose they are.
START = 'exec 3<&"$1"- 4<&"$2"-; shift 2; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=command:events; exec "$@"'
ASK = (
    "import sys; from camerabus import Client\n"
    "with Client(timeout=float(sys.argv[1])) as client: print(len(client.devices()))"
)


@unittest.skipUnless(RUNTIME_DIR, "no bus is named by $CAMERABUS_RUNTIME_DIR")
class Activation(unittest.TestCase):
    def setUp(self) -> None:
        daemon = shutil.which("camerabusd")
        if daemon is None:
            self.skipTest("camerabusd is not in the PATH")
        self.daemon = daemon
        folder = tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.directory = Path(folder.name) / "bus"
        self.directory.mkdir(mode=0o700)
        self.listening = [self.listen("command.sock"), self.listen("events.sock")]
        package = str(Path(__file__).resolve().parents[2] / "Protocol" / "python")
        self.environment = {**os.environ, "CAMERABUS_RUNTIME_DIR": str(self.directory), "PYTHONPATH": package}
        self.environment.pop("NOTIFY_SOCKET", None)

    def listen(self, name: str) -> int:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(self.directory / name))
            (self.directory / name).chmod(0o600)
            made.listen(128)
            # Beyond the numbers that it is to have in the service.
            number = fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, 30)
        self.addCleanup(os.close, number)
        return number

    def ask(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", ASK, str(TIMEOUT)], env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start(self) -> subprocess.Popen[bytes]:
        command = [
            self.daemon, "--runtime-dir", str(self.directory), "--virtual", "1", "--no-hardware", "--no-pressure",
        ]
        log = open(self.directory.parent / "log", "a")
        self.addCleanup(log.close)
        bus = subprocess.Popen(
            ["bash", "-c", START, "bash", *map(str, self.listening), *command],
            env=self.environment, pass_fds=self.listening, stdout=log, stderr=log,
        )  # fmt: skip
        self.addCleanup(bus.wait, TIMEOUT)
        self.addCleanup(bus.kill)
        return bus

    def answer(self, process: subprocess.Popen[str]) -> int:
        output, errors = process.communicate(timeout=2 * TIMEOUT)
        self.assertEqual(process.returncode, 0, f"{errors}\n{(self.directory.parent / 'log').read_text()}")
        return int(output)

    def test_early_clients_are_answered_and_the_sockets_outlive_the_bus(self) -> None:
        early = self.ask()
        first = self.start()
        devices = self.answer(early)
        self.assertGreaterEqual(devices, 1)
        # Its own sockets go with it, those of the manager don't: who comes between two buses waits for the next.
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(TIMEOUT), 0)
        sockets = sorted(
            str(path.relative_to(self.directory)) for path in self.directory.rglob("*") if path.is_socket()
        )
        self.assertEqual(sockets, ["command.sock", "events.sock"])
        between = self.ask()
        second = self.start()
        self.assertEqual(self.answer(between), devices)
        self.assertTrue(stat.S_ISSOCK((self.directory / "command.sock").stat().st_mode))
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(TIMEOUT), 0)

    def test_events_come_over_the_handed_socket(self) -> None:
        bus = self.start()
        command = [sys.executable, "-c", "import json; from camerabus import Client\nwith Client() as client: "
                   "print(json.dumps(next(iter(client.watch('heartbeat/'))).body))"]  # fmt: skip
        self.assertEqual(self.answer(self.ask()) >= 1, True)
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=2 * TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("epoch", json.loads(result.stdout))
        bus.send_signal(signal.SIGTERM)
        self.assertEqual(bus.wait(TIMEOUT), 0)
