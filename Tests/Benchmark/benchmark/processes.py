# SPDX-License-Identifier: Apache-2.0
"""Programs that are started for a measurement, none of which outlives it, and what they cost."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Sequence

_SET_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None)


class Failed(Exception):
    """A program of the benchmark did not do its part."""


def _die_with_parent() -> None:
    # What Python ignores, its children would ignore as well.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


class Program:
    """A process of ours, in a session of its own, so that Ctrl-C reaches the benchmark alone; it ends it."""

    def __init__(self, arguments: Sequence[object], **options: Any) -> None:
        self.name = Path(str(arguments[0])).name + "".join(f" {Path(str(word)).name}" for word in arguments[1:3])
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen(
            [str(argument) for argument in arguments], preexec_fn=_die_with_parent, start_new_session=True, **options
        )
        self.pid = self.process.pid

    def wait_until_ready(self, timeout: float = 20) -> None:
        """Waits for its line `ready`."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        line = b""
        until = time.monotonic() + timeout
        while line != b"ready\n":
            if not select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                raise Failed(f"{self.name}: no frame came within {timeout:g} s")
            if not (part := os.read(descriptor, 6 - len(line))):
                raise Failed(f"{self.name}: ended without a frame (exit status {self.process.wait(5)})")
            line += part

    def ask_to_end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def end(self, timeout: float = 5) -> None:
        """Ends it and waits for that; by force if need be."""
        self.ask_to_end()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()


@contextmanager
def programs() -> Iterator[list[Program]]:
    """A list of which all are ended, however this ends."""
    started: list[Program] = []
    try:
        yield started
    finally:
        for program in started:
            program.ask_to_end()
        for program in started:
            program.end()


def thread_times(pid: int) -> dict[str, int]:
    """Nanoseconds of processor that each thread of a process has had, by its name; equal names are added."""
    times: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            try:
                spent = int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                spent = (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        except (FileNotFoundError, ProcessLookupError):
            continue
        times[name] = times.get(name, 0) + spent
    return times


def own_memory(pid: int) -> float:
    """MiB that a process has beside the memory it shares with others: its share of programs and libraries, and all that is its own."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0])
    return (sizes["Pss"] - sizes["Pss_Shmem"]) / 1024


def machine_time() -> float:
    """Seconds that all processors together have been busy."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def others_share(seconds: float = 1.0) -> float:
    """How busy the machine is by itself, 0 to 1, looked at for so long."""
    before = machine_time()
    time.sleep(seconds)
    return (machine_time() - before) / seconds / (os.cpu_count() or 1)
