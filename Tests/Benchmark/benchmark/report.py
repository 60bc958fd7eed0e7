# SPDX-License-Identifier: Apache-2.0
"""The figures as a table, and what they say of ours against the others."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Iterable, Iterator

from .tools import Tools

Figures = dict[str, Any]


def machine(tools: Tools) -> Figures:
    processor = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    system = next(
        (line.partition("=")[2].strip('"') for line in _lines("/etc/os-release") if line.startswith("PRETTY_NAME=")), ""
    )
    return {
        "system": system,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processor": processor,
        "cores": os.cpu_count(),
        "virtual": "hypervisor" in _flags(),
        "python": platform.python_version(),
        "versions": tools.versions,
        "load": os.getloadavg(),
    }


def _flags() -> list[str]:
    return next((line.split() for line in _lines("/proc/cpuinfo") if line.startswith("flags")), [])


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def frame_lines(frames: dict[str, Figures]) -> Iterator[str]:
    """All cells, group by group."""
    group = None
    for row in frames.values():
        if row["group"] != group:
            group = row["group"]
            yield ""
            yield (
                f"{group:40}{'p50 ms':>8} {'(rounds)':>16}{'p95':>8}{'p99':>8}{'max':>8}  {'ready: p50':>10} {'(rounds)':>16}{'p99':>8}"
                f"{'lost':>6}  {'CPU ms/frame':>12} {'(rounds)':>16} = {'publisher':>9} {'readers':>8} {'coordinator':>11}{'% core':>8}"
                f"{'drawing':>12}"
            )
        latency, ready, cpu = row["latency"], row["since_ready"], row["cpu_ms_per_frame"]
        total, drawing = cpu["total"], cpu["drawing"]["median"]
        yield (
            f"  {row['lane']:38}{_median(latency['p50_rounds'], 8)} {_range(latency['p50_rounds']):>16}"
            + "".join(_cell(latency.get(name), 8, 3) for name in ("p95", "p99", "max"))
            + f"  {_median(ready['p50_rounds'], 10)} {_range(ready['p50_rounds']):>16}{_cell(ready.get('p99'), 8, 3)}"
            + f"{row['lost']:>6}  {total['median']:>12.3f} {_range(total):>16}"
            + f"   {cpu['publisher']['median']:>9.3f} {cpu['readers']['median']:>8.3f} {cpu['coordinator']['median']:>11.3f}{row['core_percent']:>8.1f}"
            + (f"{f'(+ {drawing:.3f})':>12}" if drawing else "")
        )


def _median(figure: dict[str, float] | None, width: int) -> str:
    return _cell(figure and figure["median"], width, 3)


def _range(figure: dict[str, float] | None) -> str:
    return f"[{figure['min']:.3f}-{figure['max']:.3f}]" if figure else ""


def other_lines(others: dict[str, Figures]) -> Iterator[str]:
    yield ""
    yield f"{'':48}{'p50':>10}{'p95':>10}{'p99':>10}{'max':>10}  unit"
    for name, row in others.items():
        cells = "".join(_cell(row.get(key), 10, 2) for key in ("p50", "p95", "p99", "max"))
        yield f"{name:48}{cells}  {row['unit']}" + (f", {row['per_second']} a second" if "per_second" in row else "")


_OURS = ("ring, C", "buffer/, C", "frame/, C", "ring, Python", "buffer/, Python", "frame/, Python")
_FLOORS = {
    "floor: C ring, from a device": "ring, C",
    "floor: C ring, nothing copied": "ring, C",
    "floor: C ring, copied into": "ring, C",
    "floor: C on libzmq, from a device": "frame/, C",
    "floor: C on libzmq, one memory": "frame/, C",
}


def ratios(frames: dict[str, Figures], others: dict[str, Figures]) -> list[Figures]:
    """The others in parts of ours, and ours in parts of the floors, within each group."""
    found = []
    for row in frames.values():
        if row["lane"] in _OURS:
            continue
        for own in _OURS:
            ours = frames.get(f"{row['group']}: {own}")
            if ours is None or _FLOORS.get(row["lane"], own) != own:
                continue
            above, below = (ours, row) if row["lane"] in _FLOORS else (row, ours)
            found.append(
                {
                    "group": row["group"],
                    "of": above["lane"],
                    "to": below["lane"],
                    "cpu": _ratio(above["cpu_ms_per_frame"]["total"], below["cpu_ms_per_frame"]["total"]),
                    "p50": _ratio(above["latency"]["p50_rounds"], below["latency"]["p50_rounds"]),
                    "ready": _ratio(above["since_ready"]["p50_rounds"], below["since_ready"]["p50_rounds"]),
                }
            )
    floor, ping = others.get("floor: C on libzmq, ROUTER that answers"), others.get("bus.ping, C")
    if floor and ping:
        rate = _ratio(ping["per_second_rounds"], floor["per_second_rounds"])
        found.append({"group": "bus.ping a second", "of": "the bus", "to": "C on libzmq", "rate": rate})
    return found


def _ratio(one: dict[str, float] | None, other: dict[str, float] | None) -> float | None:
    return round(one["median"] / other["median"], 3) if one and other and other["median"] else None


def ratio_lines(found: list[Figures]) -> Iterator[str]:
    yield ""
    yield f"{'Ratios':80}{'CPU':>8}{'p50':>8}{'ready':>8}"
    for row in found:
        name = f"{row['group']}: {row['of']} / {row['to']}"
        if "rate" in row:
            yield f"{name:80}{_cell(row['rate'], 8, 2)}"
        else:
            yield f"{name:80}" + "".join(_cell(row[figure], 8, 2) for figure in ("cpu", "p50", "ready"))


def notes(frames: dict[str, Figures]) -> Iterator[str]:
    """What one must know to read the table."""
    wakings = _all(row["wakings"].get("p50") for row in frames.values())
    makings = _all(row["making"].get("p50") for row in frames.values())
    drawings = _all(row["cpu_ms_per_frame"]["drawing"]["median"] or None for row in frames.values())
    others = _all(row["others"]["median"] for row in frames.values())
    yield ""
    yield "p50, p95, p99, max: from the stamp until the reader has the frame. Ours is stamped with the time for which the frame was due,"
    yield "before the virtual camera wakes and draws it; the others just before they send a picture that is ready. 'ready' is from when"
    yield "the picture is ready, for all: in the C programs with a device the stamp itself; in the worker a library notes it, when the"
    yield "thread that has made the picture begins to publish it in the ring; what that takes is the publisher's, not drawing."
    if makings:
        yield f"Until then a virtual camera needed {_span(makings)} ms (p50) to wake and draw,"
    if drawings:
        yield f"{_span(drawings)} ms of processor time a frame to draw, in a thread of its own; it is in no figure but 'drawing'."
    if wakings:
        yield f"The others' publishers woke {1000 * wakings[len(wakings) // 2]:.0f} µs late (p50), which is in none of their figures."
    if others:
        yield (
            f"Programs that are not the benchmark's took {100 * others[len(others) // 2]:.0f} % of the machine in the median cell,"
            f" {100 * others[-1]:.0f} % in the worst."
        )


def _all(values: Iterable[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


def _span(ordered: list[float]) -> str:
    return f"{ordered[0]:.3f} to {ordered[-1]:.3f}"
