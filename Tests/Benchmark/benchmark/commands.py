# SPDX-License-Identifier: Apache-2.0
"""Measures what is not frames: requests, locks, starts and deaths."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator

from camerabus import Client

from .bus import Bus
from .figures import spread
from .processes import Failed, Program, programs
from .tools import Tools


@dataclass(frozen=True)
class Settings:
    tools: Tools
    binaries: Path
    directory: Path
    seconds: float
    kills: int


def milliseconds_since(start: int) -> float:
    return (time.monotonic_ns() - start) / 1e6


def _repeated(seconds: float, once: Callable[[], object]) -> dict[str, Any]:
    times: list[float] = []
    begin = time.monotonic_ns()
    end = begin + int(seconds * 1e9)
    while (start := time.monotonic_ns()) < end:
        once()
        times.append((time.monotonic_ns() - start) / 1e3)
    return spread(times, "µs") | {"per_second": round(len(times) / (milliseconds_since(begin) / 1e3))}


def _ask(settings: Settings, endpoint: str) -> dict[str, Any]:
    file = settings.directory / "requests"
    asking = Program([settings.tools.program("zmq_requests"), "ask", endpoint, settings.seconds, file])
    try:
        if asking.process.wait(settings.seconds + 20) != 0:
            raise Failed("the bus did not answer")
    finally:
        asking.end()
    values = array("q", file.read_bytes())
    times = [(answered - asked) / 1e3 for asked, answered in zip(values[0::3], values[1::3])]
    return spread(times, "µs") | {"per_second": round(len(times) / max(1, values[-2] - values[0]) * 1e9)}


def ping_in_c(settings: Settings, bus: Bus) -> dict[str, Any]:
    return _ask(settings, f"ipc://{bus.runtime_dir}/command.sock")


def ping_floor(settings: Settings, _: Bus) -> dict[str, Any]:
    endpoint = f"ipc://{settings.directory}/requests.sock"
    with programs() as started:
        started.append(Program([settings.tools.program("zmq_requests"), "serve", endpoint]))
        started[0].wait_until_ready()
        return _ask(settings, endpoint)


def ping_in_python(settings: Settings, bus: Bus) -> dict[str, Any]:
    with bus.client() as client:
        return _repeated(settings.seconds, client.ping)


def lock_and_unlock(settings: Settings, bus: Bus) -> dict[str, Any]:
    with bus.client() as client:

        def once() -> None:
            with client.lock("cam0"):
                pass

        return _repeated(settings.seconds, once)


def set_control(settings: Settings, bus: Bus) -> dict[str, Any]:
    """A control set under a lock of the call's own, and read back from the device."""
    values = iter(range(1 << 40))
    with bus.client() as client:
        return _repeated(settings.seconds, lambda: client.set("cam0", brightness=next(values) % 64))


def hand_over(settings: Settings, bus: Bus) -> dict[str, Any]:
    """From one client's unlock until the next in the queue knows that it holds the lock."""
    times: list[float] = []
    end = time.monotonic() + settings.seconds
    with bus.client() as one, bus.client() as other:
        while time.monotonic() < end:
            taken = 0

            def wait() -> None:
                nonlocal taken
                with other.lock("cam0", wait=10):
                    taken = time.monotonic_ns()

            waiting = threading.Thread(target=wait)
            with one.lock("cam0"):
                waiting.start()
                while not one.call("device.locks")["waiting"]:
                    pass
                start = time.monotonic_ns()
            waiting.join()
            times.append((taken - start) / 1e3)
    return spread(times, "µs")


_HOLDER = """
import sys, signal
from camerabus import Client
client = Client(sys.argv[1], name="holder")
lock = client.lock("cam0")
print("ready", flush=True)
signal.pause()
"""


def lock_after_kill(settings: Settings, bus: Bus) -> dict[str, Any]:
    """From SIGKILL of a lock's holder until the next in the queue has it."""
    times: list[float] = []
    with bus.client() as client, programs() as started:
        for _ in range(settings.kills):
            started.append(Program([sys.executable, "-c", _HOLDER, bus.runtime_dir]))
            started[-1].wait_until_ready()
            start = time.monotonic_ns()
            started[-1].process.kill()
            with client.lock("cam0", wait=10):
                times.append(milliseconds_since(start))
    return spread(times, "ms")


def worker_after_kill(settings: Settings, _: Bus) -> dict[str, Any]:
    """From SIGKILL of a camera's worker until a subscriber that did nothing has its next frame.

    Each time on a bus of its own: a worker that ends again and again is started again later and later.
    """
    times: list[float] = []
    for _ in range(settings.kills):
        with Bus(settings.binaries) as bus, bus.client() as client:
            with client.frames("cam0", rendition="gray:320x0", timeout=20, errors="frames") as frames:
                stream = next(frames).stream
                pid = bus.worker(client)
                start = time.monotonic_ns()
                os.kill(pid, signal.SIGKILL)
                for frame in frames:
                    if frame.error is None and frame.stream != stream:
                        times.append(milliseconds_since(start))
                        break
    return spread(times, "ms")


def start_up(settings: Settings, _: Bus) -> dict[str, Any]:
    """From the start of the bus to a subscriber's first frame."""
    times: list[float] = []
    for _ in range(settings.kills):
        with Bus(settings.binaries) as bus, bus.client() as client:
            with client.frames("cam0", rendition="native", timeout=20) as frames:
                next(frames)
                times.append(milliseconds_since(bus.started))
    return spread(times, "ms")


def _photo(client: Client, ago: float | None = None) -> float:
    """From the request until the file is there, whole."""
    start = time.monotonic_ns()
    client.capture_photo("cam0", ago=ago, timeout=20).photo
    return milliseconds_since(start)


def _closed(client: Client) -> None:
    """Returns when nobody has the camera open."""
    with client.watch("state/device/cam0/", timeout=20) as states:
        for told in states:
            if told.value is not None and not told.value["isOpen"]:
                return
    raise Failed("the camera stays open")


def cold_photo(settings: Settings, _: Bus) -> dict[str, Any]:
    """Of a camera that nobody uses: it is opened, streams, and finds its exposure first."""
    times: list[float] = []
    with Bus(settings.binaries) as bus, bus.client() as client:
        for _ in range(settings.kills):
            _closed(client)
            times.append(_photo(client))
    return spread(times, "ms")


def warm_photo(settings: Settings, _: Bus) -> dict[str, Any]:
    """Of a camera that somebody watches: it is the next frame."""
    times: list[float] = []
    with Bus(settings.binaries) as bus, bus.client() as client, bus.client() as watcher:
        with watcher.frames("cam0", rendition="gray:320x0", timeout=20) as frames:
            next(frames)
            _photo(client)  # by which the camera has found its exposure
            end = time.monotonic() + settings.seconds
            while time.monotonic() < end:
                times.append(_photo(client))
    return spread(times, "ms")


def past_photo(settings: Settings, _: Bus) -> dict[str, Any]:
    """Of a moment that is over, of a camera whose session holds its last pictures: it waits for no frame."""
    times: list[float] = []
    with Bus(settings.binaries) as bus, bus.client() as client:
        with client.session("cam0", outputs=[{"type": "photo", "preRoll": 1000}]):
            # The pictures themselves tell how much of them can be held by now.
            with client.frames("cam0", rendition="gray:320x0", timeout=20) as frames:
                first = next(frames).timestamp.monotonic
                for frame in frames:
                    if frame.timestamp.monotonic - first > 1_500_000_000:
                        break
            end = time.monotonic() + settings.seconds
            while time.monotonic() < end:
                times.append(_photo(client, ago=0.5))
    return spread(times, "ms")


Measurement = tuple[str, Callable[[Settings, Bus], dict[str, Any]], bool]


def measurements(tools: Tools) -> Iterator[Measurement]:
    """The name, what measures it, and whether it is to be repeated in each round."""
    if tools.has_zmq:
        yield "bus.ping, C", ping_in_c, True
        yield "floor: C on libzmq, ROUTER that answers", ping_floor, True
    yield "bus.ping, Python", ping_in_python, True
    yield "device.lock and unlock, Python", lock_and_unlock, True
    yield "device.set, Python", set_control, True
    yield "unlock → next holder, Python", hand_over, True
    yield "kill -9 of a lock's holder → next holder", lock_after_kill, False
    yield "kill -9 of a worker → next frame", worker_after_kill, False
    yield "start of the bus → first frame", start_up, False
    yield "photo of a camera that is closed, Python", cold_photo, False
    yield "photo of a camera that is watched, Python", warm_photo, True
    yield "photo of half a second ago, Python", past_photo, True
