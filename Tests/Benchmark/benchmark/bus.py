# SPDX-License-Identifier: Apache-2.0
"""A bus of our own with virtual cameras."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from array import array
from pathlib import Path

from camerabus import Client

from .preloads import preloading
from .processes import Failed, Program

RATE = 30


class Bus:
    """Runs in a temporary directory from `with` to its end."""

    def __init__(self, binaries: Path, cameras: int = 2, worker: Path | None = None, ready: Path | None = None) -> None:
        """With `ready`, a library (ready.c), its workers note when a picture is ready: see ``ready_times``."""
        self.directory = Path(tempfile.mkdtemp(prefix="cbb-", dir="/tmp"))
        self.runtime_dir = str(self.directory / "bus")
        self._ready_times = self.directory / "ready"
        #: What has a program with threads that are called as a virtual camera's note that likewise.
        self.noting: dict[str, str] = {}
        self.devices = [f"cam{index}" for index in range(cameras)]
        try:
            if ready:
                self._ready_times.mkdir()
                self.noting = {"LD_PRELOAD": str(ready), "BENCHMARK_READY": str(self._ready_times)}
                worker = preloading(
                    self.directory / "worker", binaries / "camerabus-worker", ready, BENCHMARK_READY=self._ready_times
                )
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
                ready.bind(str(self.directory / "notify"))
                ready.settimeout(20)
                self.started = time.monotonic_ns()
                self.program = Program(
                    [binaries / "camerabusd", "--runtime-dir", self.runtime_dir, "--virtual", cameras, "--virtual-microphones", "0", "--no-hardware"]
                    + (["--worker", worker] if worker else []),
                    env={**os.environ, "NOTIFY_SOCKET": str(self.directory / "notify")},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                try:
                    while b"READY=1" not in ready.recv(4096):
                        pass
                except TimeoutError:
                    self.program.end(20)
                    raise Failed("the bus did not start within 20 s") from None
                except BaseException:
                    self.program.end(20)
                    raise
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def client(self) -> Client:
        return Client(self.runtime_dir, name="benchmark")

    def worker(self, client: Client, device: str = "cam0") -> int:
        """The pid of a camera's worker."""
        return int(client.call("device.get", {"device": device})["device"]["worker"]["pid"])

    def wait_for_frames(self, client: Client, count: int, device: str = "cam0", beats: int = 30) -> None:
        """Until a camera's worker says, as it does once a second, that it has had so many more."""

        def frames() -> int:
            return int(client.call("bus.metrics")["counters"].get(f'worker_frames{{device="{device}"}}', 0))

        wanted = frames() + count
        with client.watch("heartbeat/", timeout=20) as heart:
            for _ in zip(range(beats), heart):
                if frames() >= wanted:
                    return
        raise Failed(f"{device} does not give {count} frames")

    def ready_times(self, pid: int) -> list[int]:
        """When the virtual camera of a worker had a picture ready, the latest of them in order; empty if nobody notes it."""
        return sorted(time for time in self._noted(pid)[2:] if time)

    def publishing_time(self, pid: int) -> int:
        """Nanoseconds of processor so far that a virtual camera's thread had to publish its pictures, once they were drawn."""
        return sum(self._noted(pid)[1:2])

    def _noted(self, pid: int) -> array[int]:
        try:
            return array("q", (self._ready_times / str(pid)).read_bytes())
        except FileNotFoundError:
            return array("q")

    def configure(self, devices: list[str], pixel_format: str, width: int, height: int) -> None:
        with self.client() as client, client.lock(*devices):
            size = {"pixelFormat": pixel_format, "width": width, "height": height}
            client.configure([{"device": device, "activeFormat": size, "frameRate": RATE} for device in devices])

    def __enter__(self) -> Bus:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.program.end(20)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
