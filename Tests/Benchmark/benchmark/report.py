# SPDX-License-Identifier: Apache-2.0
"""The figures as a table, and what they say of ours against the others."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Iterator

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
        "python": platform.python_version(),
        "versions": tools.versions,
        "load": os.getloadavg(),
    }


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
                f"{group:40}{'p50 ms':>8} {'(rounds)':>16}{'drawn':>8}{'p95':>8}{'p99':>8}{'max':>8}{'lost':>6}"
                f"  {'CPU ms/frame':>12} {'(rounds)':>16} = {'publisher':>9} {'readers':>8} {'coordinator':>11}{'% core':>8}{'drawing':>12}"
            )
        latency, cpu = row["latency"], row["cpu_ms_per_frame"]
        rounds, total = latency["p50_rounds"], cpu["total"]
        drawing = cpu["drawing"]["median"]
        yield (
            f"  {row['lane']:38}{rounds['median']:>8.3f} {_range(rounds):>16}{row['p50_drawn']['median']:>8.3f}"
            + "".join(_cell(latency.get(name), 8, 3) for name in ("p95", "p99", "max"))
            + f"{row['lost']:>6}  {total['median']:>12.3f} {_range(total):>16}"
            + f"   {cpu['publisher']['median']:>9.3f} {cpu['readers']['median']:>8.3f} {cpu['coordinator']['median']:>11.3f}{row['core_percent']:>8.1f}"
            + (f"{f'(+ {drawing:.3f})':>12}" if drawing else "")
        )


def _range(figure: dict[str, float]) -> str:
    return f"[{figure['min']:.3f}-{figure['max']:.3f}]"


def other_lines(others: dict[str, Figures]) -> Iterator[str]:
    yield ""
    yield f"{'':48}{'p50':>10}{'p95':>10}{'p99':>10}{'max':>10}  unit"
    for name, row in others.items():
        cells = "".join(_cell(row.get(key), 10, 2) for key in ("p50", "p95", "p99", "max"))
        yield f"{name:48}{cells}  {row['unit']}" + (f", {row['per_second']} a second" if "per_second" in row else "")


_OURS = ("ring, C", "buffer/, C", "frame/, C", "ring, Python", "frame/, Python")
_FLOORS = {
    "floor: C ring, nothing copied": "ring, C",
    "floor: C ring, copied into": "ring, C",
    "floor: C on libzmq": "frame/, C",
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
                    "p50_drawn": _ratio(above["p50_drawn"], below["p50_drawn"]),
                }
            )
    floor, ping = others.get("floor: C on libzmq, ROUTER that answers"), others.get("bus.ping, C")
    if floor and ping:
        rate = _ratio(ping["per_second_rounds"], floor["per_second_rounds"])
        found.append({"group": "bus.ping a second", "of": "the bus", "to": "C on libzmq", "rate": rate})
    return found


def _ratio(one: dict[str, float], other: dict[str, float]) -> float | None:
    return round(one["median"] / other["median"], 3) if other["median"] else None


def ratio_lines(found: list[Figures]) -> Iterator[str]:
    yield ""
    yield f"{'Ratios':80}{'CPU':>8}{'p50':>8}{'drawn':>8}"
    for row in found:
        name = f"{row['group']}: {row['of']} / {row['to']}"
        if "rate" in row:
            yield f"{name:80}{_cell(row['rate'], 8, 2)}"
        else:
            yield f"{name:80}" + "".join(_cell(row[figure], 8, 2) for figure in ("cpu", "p50", "p50_drawn"))


def notes(frames: dict[str, Figures]) -> Iterator[str]:
    """What one must know to read the table."""
    wakings = [row["wakings"]["p50"] for row in frames.values() if row["wakings"].get("p50") is not None]
    drawings = [row["cpu_ms_per_frame"]["drawing"]["median"] for row in frames.values() if row["cpu_ms_per_frame"]["drawing"]["median"]]
    others = sorted(row["others"]["median"] for row in frames.values())
    yield ""
    yield "Ours is stamped with the time for which the frame was due, before the virtual camera wakes and draws it; the others just"
    yield "before they send a picture that is ready. So our latencies contain the waking of a timer"
    if wakings:
        yield f"(p50 {1000 * sorted(wakings)[len(wakings) // 2]:.0f} µs in the others' publishers, which is not in their figures)"
    if drawings:
        yield (
            f"and the drawing: {min(drawings):.3f} to {max(drawings):.3f} ms of processor time a frame, which the sensor's thread counts."
            " It is in no CPU figure but its own;"
        )
        yield "'drawn' is the p50 without it."
    if others:
        yield (
            f"Programs that are not the benchmark's took {100 * others[len(others) // 2]:.0f} % of the machine in the median cell,"
            f" {100 * others[-1]:.0f} % in the worst."
        )
