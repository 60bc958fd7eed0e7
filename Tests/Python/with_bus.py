#!/usr/bin/env python3
"""Runs a command beside a bus of its own with two virtual cameras, and checks that the bus leaves nothing behind.

usage: Tests/Python/with_bus.py BINARIES COMMAND [ARGUMENT...]

BINARIES is where camerabusd is (.build/debug). COMMAND gets CAMERABUS_RUNTIME_DIR, and BINARIES in its PATH. The exit
status is the command's; 125 if the bus does not start, does not end in order, or leaves something behind.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 60.0


def main() -> int:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binaries = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp") as name:
        directory = Path(name)
        with open(directory / "log", "w") as log:
            bus = start(binaries, directory, log.fileno())
        if bus is None:
            return give_up("the bus does not start", directory)
        environment = {
            **os.environ, "CAMERABUS_RUNTIME_DIR": str(directory / "bus"), "PATH": f"{binaries}:{os.environ['PATH']}",
        }
        try:
            status = subprocess.run(sys.argv[2:], env=environment).returncode
        finally:
            bus.send_signal(signal.SIGTERM)
            try:
                ended = bus.wait(SECONDS)
            except subprocess.TimeoutExpired:
                bus.kill()
                return give_up("the bus does not end when asked to", directory)
        if ended != 0:
            return give_up(f"the bus ended with status {ended}", directory)
        if left := [*left_sockets(directory), *left_processes(directory)]:
            return give_up(f"the bus left something behind: {', '.join(left)}", directory)
    return status if status >= 0 else 128 - status


def start(binaries: Path, directory: Path, log: int, virtual: int = 2) -> subprocess.Popen[bytes] | None:
    """Starts the bus and waits until it says that it is ready."""
    command = [
        binaries / "camerabusd", "--runtime-dir", directory / "bus", "--virtual", str(virtual), "--no-hardware",
        "--no-pressure",
    ]
    return start_service(command, directory, log)


def start_service(
    command: list[str | Path], directory: Path, log: int, environment: dict[str, str] | None = None,
    own_session: bool = False,
) -> subprocess.Popen[bytes] | None:
    """Starts a program and waits until it says that it is ready; None: it doesn't."""
    service, is_ready = launch_service(command, directory, log, environment, own_session)
    if is_ready:
        return service
    service.kill()
    service.wait()
    return None


def launch_service(
    command: list[str | Path], directory: Path, log: int, environment: dict[str, str] | None = None,
    own_session: bool = False, seconds: float = SECONDS,
) -> tuple[subprocess.Popen[bytes], bool]:
    """Starts a program, and returns when it says that it is ready, or has ended, at the latest after `seconds`: whether
    it is ready.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(str(directory / "notify"))
        service = subprocess.Popen(
            command, env={**os.environ, **(environment or {}), "NOTIFY_SOCKET": str(directory / "notify")},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=own_session,
        )
        ended = os.pidfd_open(service.pid)
        until = time.monotonic() + seconds
        is_ready = False
        while not is_ready:
            readable, _, _ = select.select([ready, ended], [], [], max(0.0, until - time.monotonic()))
            if ready not in readable:
                break
            is_ready = b"READY=1" in ready.recv(4096)
        os.close(ended)
    (directory / "notify").unlink()
    return service, is_ready


def left_sockets(directory: Path) -> list[str]:
    return [str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_socket()]


def left_processes(directory: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (path / "cmdline").read_bytes().split(b"\0")
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        # What the bus starts has its place in its environment only.
        if any(os.fsencode(directory) in word for word in arguments + environment):
            found.append(f"process {path.name} ({os.fsdecode(arguments[0])})")
    return found


def give_up(why: str, directory: Path) -> int:
    print(f"with_bus: {why}; the end of its log:", file=sys.stderr)
    print("\n".join((directory / "log").read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)
    return 125


if __name__ == "__main__":
    sys.exit(main())
