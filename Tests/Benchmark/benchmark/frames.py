# SPDX-License-Identifier: Apache-2.0
"""Measures how frames come to their readers, and what that costs each process."""

from __future__ import annotations

import os
import statistics
import time
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .bus import RATE, Bus
from .figures import rounds, spread
from .lanes import Cell, Place
from .processes import Program, machine_time, own_memory, programs, thread_times

#: The thread in which a virtual camera waits for the time of a frame, draws it, and publishes it in its ring.
_SENSOR = "sensor-"


@dataclass
class Round:
    """One window: latencies in milliseconds, and processor time in milliseconds for each frame that was published."""

    #: From the stamp to the reader.
    latencies: list[float] = field(default_factory=list)
    #: From the time at which the picture was ready to be sent; our stamp is that for which it was due, the others' just that.
    since_ready: list[float] = field(default_factory=list)
    #: What a virtual camera needs from the stamp on to wake and draw.
    making: list[float] = field(default_factory=list)
    published: int = 0
    lost: int = 0
    #: How late publishers of the benchmark's own woke for their frames.
    wakings: list[float] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    #: MiB of a worker beside its rings, of the largest.
    memory: float | None = None
    #: Of the machine, 0 to 1, by programs that are not ours.
    others: float = 0


def _costs(publishers: list[int], readers: list[int], coordinator: int | None, bus: Bus) -> dict[str, int]:
    """Nanoseconds so far, by what for."""
    costs = {"drawing": 0, "publisher": 0, "readers": 0, "coordinator": 0}
    for pid in publishers:
        for name, spent in thread_times(pid).items():
            costs["drawing" if name.startswith(_SENSOR) else "publisher"] += spent
        published = bus.publishing_time(pid)
        costs["drawing"] -= published
        costs["publisher"] += published
    costs["readers"] = sum(sum(thread_times(pid).values()) for pid in readers)
    if coordinator is not None:
        costs["coordinator"] = sum(thread_times(coordinator).values())
    return costs


def _load(path: Path) -> list[tuple[int, int, int]]:
    values = array("q", path.read_bytes())
    return list(zip(values[0::3], values[1::3], values[2::3]))


def measure(cell: Cell, place: Place, bus: Bus, seconds: float) -> Round:
    """Starts all that the cell needs, looks for so many seconds, and ends it."""
    devices = [f"cam{index}" for index in range(cell.cameras)]
    files = [(device, place.directory / f"{device}-{index}") for device in devices for index in range(cell.readers)]
    published = place.directory / "published"
    with programs() as started:
        if cell.lane.publish:
            noting = {"env": {**os.environ, **bus.noting}} if cell.lane.has_device else {}
            started.append(Program(cell.lane.publish(place, "cam0", published), **noting))
            started[0].wait_until_ready()
        readers: list[Program] = []
        for device, file in files:
            readers.append(Program(cell.lane.read(place, device, file)))
            started.append(readers[-1])
        # Each has had its first frames by then.
        for reader in readers:
            reader.wait_until_ready()
        coordinator = None
        if cell.lane.publish:
            publishers = [started[0].pid]
        else:
            with bus.client() as client:
                publishers = [bus.worker(client, device) for device in devices]
            coordinator = bus.program.pid
        pids = [reader.pid for reader in readers]
        first, busy, before = time.monotonic_ns(), machine_time(), _costs(publishers, pids, coordinator, bus)
        time.sleep(seconds)
        last, after, busy = time.monotonic_ns(), _costs(publishers, pids, coordinator, bus), machine_time() - busy
        memory = None if cell.lane.publish else max(map(own_memory, publishers))
        # Each ends when it has what was under way.
        for reader in readers:
            reader.ask_to_end()
        for reader in readers:
            reader.end()
    result = Round(memory=memory)
    for device, publisher in zip(devices, publishers):
        ready = None if cell.lane.publish else bus.ready_times(publisher)
        _count(result, [_load(file) for name, file in files if name == device], ready, first, last)
    if cell.lane.publish:
        result.wakings = [(woken - due) / 1e6 for due, woken, _ in _load(published) if first <= due < last]
    spent = {name: (after[name] - before[name]) / 1e6 for name in after}
    result.cpu = {name: value / max(1, result.published) for name, value in spent.items()}
    elapsed = (last - first) / 1e6
    # The kernel counts in hundredths of a second.
    result.others = max(0.0, (busy * 1e3 - sum(spent.values())) / elapsed / (os.cpu_count() or 1))
    return result


def _count(result: Round, readers: list[list[tuple[int, int, int]]], ready: list[int] | None, first: int, last: int) -> None:
    seen = [[record for record in records if first <= record[0] < last] for records in readers]
    numbers = [number for records in seen for _, _, number in records]
    if not numbers:
        result.lost += 1
        return
    count = max(numbers) - min(numbers) + 1
    result.published += count
    for records in seen:
        result.lost += count - len(records)
        result.latencies += [(received - stamp) / 1e6 for stamp, received, _ in records]
        for stamp, received, _ in records:
            was_ready = stamp if ready is None else _first(ready, stamp)
            # A sensor's signal that is not taken yet stands for the next picture as well.
            if was_ready is not None and was_ready <= received:
                result.since_ready.append((received - was_ready) / 1e6)
                if ready is not None:
                    result.making.append((was_ready - stamp) / 1e6)


def _first(times: list[int], since: int) -> int | None:
    index = bisect_left(times, since)
    return times[index] if index < len(times) else None


def _middles(each: list[list[float]]) -> dict[str, float] | None:
    return rounds([spread(values, "ms")["p50"] for values in each if values])


def summary(cell: Cell, done: list[Round]) -> dict[str, Any]:
    """The figures of a cell: percentiles over all rounds together, medians from round to round."""
    pooled = [value for one in done for value in one.latencies]
    cpu = {name: rounds([one.cpu[name] for one in done]) for name in done[0].cpu}
    return {
        "group": cell.group,
        "lane": cell.lane.name,
        "latency": spread(pooled, "ms")
        | {"p50_rounds": _middles([one.latencies for one in done])},
        "cpu_ms_per_frame": cpu
        | {"total": rounds([sum(value for name, value in one.cpu.items() if name != "drawing") for one in done])},
        # From when the picture is ready; of a virtual camera's only if its worker could be made to note it.
        "since_ready": spread([value for one in done for value in one.since_ready], "ms")
        | {"p50_rounds": _middles([one.since_ready for one in done])},
        "making": spread([value for one in done for value in one.making], "ms"),
        "core_percent": round(
            statistics.median(sum(value for name, value in one.cpu.items() if name != "drawing") for one in done)
            * RATE * cell.cameras / 10, 2,
        ),  # fmt: skip
        "worker_mib": max((one.memory for one in done if one.memory is not None), default=None),
        "published": sum(one.published for one in done),
        "lost": sum(one.lost for one in done),
        "wakings": spread([value for one in done for value in one.wakings], "ms"),
        "others": rounds([one.others for one in done]),
    }
