"""A bus of its own that is killed, damaged and asked nonsense, and a look at its processes from outside."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Protocol" / "python"), str(ROOT / "Tests" / "Python")]

import with_bus  # noqa: E402
from camerabus import Client  # noqa: E402
from waiting import wait_for_ends  # noqa: E402

#: What all processes of a tested bus have in their environment, with its folder.
MARK = "CAMERABUS_TESTED_IN"
#: Seconds for anything that a healthy bus does at once.
DEADLINE = 60.0
#: Seconds that workers may outlive a bus that was killed, and a little more.
ORPHANS = 45.0
_CRASH = re.compile(
    r"[Ff]atal error|SIG(TRAP|SEGV|ABRT|BUS|ILL)|signal[ =:]+\"?(4|5|6|7|8|11)\b|\*\*\* .*[Cc]rash|[Aa]ssertion"
    r"|AddressSanitizer|ThreadSanitizer"
)


class BusUnderTest:
    """Runs in a folder, with the programs of another one."""

    def __init__(self, programs: Path, folder: Path, *arguments: str, settings: str | None = None) -> None:
        self.programs, self.folder = programs, folder
        self.runtime, self.state, self.log = folder / "run", folder / "state", folder / "bus.log"
        self.settings = folder / "camerabus.toml"
        self.environment = {**os.environ, MARK: str(folder)}
        self.command: list[str | Path] = [
            programs / "camerabusd", "--runtime-dir", self.runtime, "--state-dir", self.state, "--no-hardware",
            "--no-pressure", *arguments,
        ]  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        if settings is not None:
            self.settings.write_text(settings)
            self.command += ["--config", self.settings]
        self.process: subprocess.Popen[bytes] | None = None
        self.gateway: subprocess.Popen[bytes] | None = None

    def start(self, seconds: float = 0) -> bool:
        """Starts the coordinator, and returns when it is ready or has ended, at the latest after `seconds`: whether it
        is ready.
        """
        self.process, is_ready = self._launch(self.command, self.log, seconds)
        return is_ready

    def start_ready(self) -> None:
        """Starts the coordinator, and returns when it is ready."""
        if not self.start(DEADLINE):
            raise AssertionError(f"the bus does not start: {self.end_of_log()}")

    def start_gateway(self, settings: Path, seconds: float = 0) -> bool:
        """The same of the gateway."""
        command = [self.programs / "camerabus-gateway", "--config", settings, "--runtime-dir", self.runtime]
        self.gateway, is_ready = self._launch(command, self.folder / "gateway.log", seconds)
        return is_ready

    def _launch(self, command: list[str | Path], log: Path, seconds: float) -> tuple[subprocess.Popen[bytes], bool]:
        # In a session of its own: when a process ends, the kernel hangs up all of its group if one of them is stopped.
        with open(log, "ab") as file:
            return with_bus.launch_service(command, self.folder, file.fileno(), self.environment, True, seconds)

    def client(self, name: str, timeout: float = DEADLINE) -> Client:
        return Client(self.runtime, name=name, timeout=timeout)

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""

    def processes(self) -> dict[int, str]:
        """The living processes of this bus: pid, and `coordinator`, `gateway`, `matcher`, `recorder`, `librarian`, or
        the device of a worker.
        """
        return dict(_marked(f"{MARK}={self.folder}".encode()))

    def librarians(self) -> list[int]:
        """The same of the librarians alone, quickly: they live for milliseconds."""
        found = []
        for path in Path(f"/proc/{self.process.pid if self.process else 0}/task").glob("*/children"):
            with suppress(OSError):
                found += [int(pid) for pid in path.read_text().split() if _kind(int(pid)) == "librarian"]
        return found

    def stop(self, seconds: float = DEADLINE) -> list[str]:
        """Ends all in order; what did not end so."""
        wrong = []
        for what, process in (("gateway", self.gateway), ("coordinator", self.process)):
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                if status := process.wait(seconds):
                    wrong.append(f"the {what} ended with status {status} after SIGTERM")
            except subprocess.TimeoutExpired:
                wrong.append(f"the {what} did not end within {seconds:.0f} s after SIGTERM")
        until = time.monotonic() + ORPHANS
        while (left := self.processes()) and time.monotonic() < until:
            wait_for_ends(left, until - time.monotonic())
        wrong += [f"{kind} {pid} outlived its bus" for pid, kind in left.items()]
        self.kill()
        return wrong

    def kill(self) -> None:
        """All of it at once."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.process, self.gateway):
            if process is not None:
                process.kill()
                process.wait()

    def left(self) -> list[str]:
        """Sockets and unfinished files that are there after the end."""
        unfinished = re.compile(r"\.(tmp|part|partial|new)\b|^\.[^.].*\.(mp4|mov|mkv|jpg|dng|json)")
        found = with_bus.left_sockets(self.folder)
        return found + [str(path) for path in self.state.rglob("*") if unfinished.search(path.name)]

    def crashes(self) -> list[str]:
        """Lines of the logs about ends that no kill explains."""
        found = []
        for path in (self.log, self.folder / "gateway.log"):
            if path.exists():
                with open(path, errors="replace") as file:
                    found += [line.strip()[:400] for line in file if _CRASH.search(line)]
        return found


def _marked(mark: bytes) -> Iterator[tuple[int, str]]:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (path / "environ").read_bytes().split(b"\0"):
                continue
        except OSError:
            continue
        if kind := _kind(int(path.name)):
            yield int(path.name), kind


def _kind(pid: int) -> str | None:
    """What a process of a bus is; None: no process of a bus, or not any more."""
    try:
        arguments = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except OSError:
        return None
    program = os.path.basename(arguments[0])
    if program == "camerabusd":
        return "coordinator"
    if program == "camerabus-worker":
        device = re.search(r"(?:^| )--device[ =](\S+)", " ".join(arguments))
        return device[1] if device else "worker"
    return program.removeprefix("camerabus-") if program.startswith("camerabus-") else None


def started(pid: int) -> int | None:
    """When a process was started: another one may have its pid by now. None: it is gone, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def memory(pid: int) -> int:
    """Bytes of its own memory that a process has."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


def descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0
