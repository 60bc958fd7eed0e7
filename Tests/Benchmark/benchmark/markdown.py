# SPDX-License-Identifier: Apache-2.0
"""The run in brief, as Markdown, for deploy/guides/benchmark.md."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, Iterator

from .lanes import BUFFER_C, BUFFER_PYTHON, FLOOR_DEVICE, FLOOR_ZMQ_DEVICE, FRAME_C, FRAME_PYTHON, IMAGEZMQ, JPEG, NETGEAR
from .lanes import MANY, PREVIEW, PYZMQ, RAW, RING_C, RING_PYTHON, SMALL, Cell, Lane, Picture

Figures = dict[str, Any]

#: What stands between these lines of a file is replaced.
BEGIN, END = "<!-- make bench: begin -->", "<!-- make bench: end -->"

_READERS = 4
_ROWS: tuple[tuple[Lane, str], ...] = (
    (RING_C, "ring (futex), reader in C"),
    (RING_PYTHON, "ring (futex), `RingConnection` in Python"),
    (BUFFER_C, "`buffer/`, reader in C"),
    (BUFFER_PYTHON, "`buffer/`, `frames(shared=True)` in Python"),
    (FRAME_C, "`frame/`, reader in C"),
    (FRAME_PYTHON, "`frame/`, reader in Python"),
    (FLOOR_DEVICE, "*floor:* C, a ring and a futex alone"),
    (FLOOR_ZMQ_DEVICE, "*floor:* C on libzmq alone"),
    (PYZMQ, "pyzmq"),
    (IMAGEZMQ, "imagezmq"),
    (NETGEAR, "VidGear NetGear"),
)


def write(path: Path, figures: Figures) -> None:
    """Into the file, or into the place in it that is marked for it."""
    text = "\n".join(lines(figures)) + "\n"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = old.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    path.write_text(before + begin + text + end + after if begin and end else text, encoding="utf-8")


def lines(figures: Figures) -> Iterator[str]:
    machine, settings = figures["machine"], figures["settings"]
    text = (
        f"On {machine['processor']}{' (a virtual machine)' if machine['virtual'] else ''}, {machine['cores']} cores,"
        f" {machine['system']}, Linux {machine['kernel']}; 30 frames a second, {_rounds(settings['rounds'])} of"
        f" {settings['seconds']:g} s"
        + ("; " + ", ".join(f"{name} {version}" for name, version in machine["versions"].items()) if machine["versions"] else "")
        + "."
    )
    yield from textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    for picture in (RAW, JPEG):
        yield from _table(figures.get("frames", {}), picture)
    facts = list(_facts(figures))
    if facts:
        yield ""
        yield "| | |"
        yield "|---|---|"
        yield from (f"| {name} | {value} |" for name, value in facts)


def _rounds(count: int) -> str:
    return f"medians of {count} rounds" if count > 1 else "one round"


def _table(frames: dict[str, Figures], picture: Picture) -> Iterator[str]:
    rows = [(frames.get(Cell(picture, lane, _READERS).name), name) for lane, name in _ROWS]
    measured = [(row, name) for row, name in rows if row and row["since_ready"]["p50_rounds"]]
    if not measured:
        return
    first, _ = measured[0]
    yield ""
    yield f"| {picture.name}, {_READERS} readers | CPU, ms a frame | × | p50, ms | × | p99, ms | lost |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for row, name in measured:
        cpu, p50 = _cpu(row), _p50(row)
        lost = f"{row['lost']} of {row['published'] * _READERS}" if row["lost"] else "0"
        yield (
            f"| {name} | {cpu:.2f} | {_times(cpu, _cpu(first))} | {p50:.2f} | {_times(p50, _p50(first))}"
            f" | {row['since_ready']['p99']:.2f} | {lost} |"
        )


def _cpu(row: Figures, part: str = "total") -> float:
    return row["cpu_ms_per_frame"][part]["median"]


def _p50(row: Figures) -> float:
    return row["since_ready"]["p50_rounds"]["median"]


def _times(value: float, first: float) -> str:
    if not first:
        return ""
    return f"{value / first:.0f}" if value >= 9.5 * first else f"{value / first:.1f}"


def _facts(figures: Figures) -> Iterator[tuple[str, str]]:
    frames, others = figures.get("frames", {}), figures.get("others", {})
    counts = (1, 4, 16)
    rows = [frames.get(Cell(RAW, RING_C, readers).name) for readers in counts]
    if all(rows):
        values = " / ".join(f"{_cpu(row, 'publisher'):.3f}" for row in rows if row)
        yield "the worker's CPU for a raw frame, 1 / 4 / 16 readers of its ring", f"{values} ms"
    if one := frames.get(Cell(RAW, RING_C, 1).name):
        if one["since_ready"]["p50_rounds"]:
            floor = frames.get(Cell(RAW, FLOOR_DEVICE, 1).name)
            beside = f"; in the C floor after {1000 * _p50(floor):.0f} µs" if floor else ""
            yield "one reader by futex receives the frame after", f"{1000 * _p50(one):.0f} µs (p50){beside}"
    if row := frames.get(Cell(RAW, RING_C, _READERS, 4).name):
        yield "4 cameras, raw 1080p, 4 readers of each ring: workers and readers", f"{row['core_percent']:.1f} % of one core"
    if row := frames.get(Cell(SMALL, RING_C, 1, MANY).name):
        lost = f"{row['lost']} of {row['published']} frames lost"
        yield f"{MANY} cameras, {SMALL.name}, a reader of each ring: workers and readers", f"{row['core_percent']:.1f} % of one core, {lost}"
        yield "memory of each of these workers, without its rings", f"{row['worker_mib']:.1f} MiB"
    if row := frames.get(Cell(PREVIEW, RING_C, _READERS).name):
        yield f"{PREVIEW.name}, {_READERS} readers of its ring", f"{_cpu(row):.2f} ms a frame, {_p50(row):.1f} ms (p50)"
    if drawing := [_cpu(row, "drawing") for row in frames.values() if row["group"].startswith(RAW.name + ",") and _cpu(row, "drawing")]:
        yield "in addition to all that: drawing the virtual camera's picture, raw 1080p", f"{sorted(drawing)[len(drawing) // 2]:.2f} ms a frame"
    yield from _movies(figures.get("recordings", {}))
    rates = [(name, others[key]["per_second"]) for key, name in _RATES if key in others]
    if rates:
        yield "requests a second (`bus.ping`)", "; ".join(f"{name}: {rate:,.0f}" for name, rate in rates)
    for key, name in _EVENTS:
        if key in others and "p50" in others[key]:
            yield name, f"{others[key]['p50']:.0f} {others[key]['unit']} (p50)"
    if allocations := figures.get("allocations"):
        worker = max(row["per_frame"]["worker"] for row in allocations.values())
        libzmq = max(row["per_frame"]["libzmq"] for row in allocations.values())
        yield "allocations of a worker for each frame", f"{worker:g} of its own, at most {libzmq:g} of libzmq's"


def _movies(recordings: dict[str, Figures]) -> Iterator[tuple[str, str]]:
    for row in recordings.values():
        if row["lane"] != "recorder":
            continue
        beside = [
            f"{other['lane']}: {_median(other)} ms" for other in recordings.values()
            if other["group"] == row["group"] and other is not row
        ]  # fmt: skip
        lost = f"{row['lost']} of {row['frames'] + row['lost']} frames lost" if row["lost"] else "no frame lost"
        yield f"recording {row['group']}", "; ".join([f"{_median(row)} ms of CPU a frame, {lost}", *beside])


def _median(row: Figures) -> str:
    return f"{row['cpu_ms_per_frame']['median']:.2f}"


_RATES = (
    ("bus.ping, C", "from C"),
    ("bus.ping, Python", "from Python"),
    ("floor: C on libzmq, ROUTER that answers", "of a C program on libzmq that only answers"),
)
_EVENTS = (
    ("unlock → next holder, Python", "unlocking until the next in the queue has the lock"),
    ("kill -9 of a worker → next frame", "a worker killed until the next frame"),
    ("start of the bus → first frame", "the start of the bus until a reader's first frame"),
    ("photo of a camera that is closed, Python", "a photo of a virtual camera that nobody uses, until its file is there"),
    ("photo of a camera that is watched, Python", "the same of one that streams already"),
    ("photo of half a second ago, Python", "the same of half a second ago, from the pictures that its session holds"),
)
