# SPDX-License-Identifier: Apache-2.0
"""Counts a worker's allocations for each frame in steady state, and says where they are made.

A library that is preloaded into the worker counts; what libzmq makes for its messages is told apart by who called malloc.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .bus import RATE, Bus
from .lanes import FRAME_C, JPEG, PREVIEW, RAW, RING_C, Cell, Lane, Picture, Place
from .processes import Program, programs
from .tools import Tools

_BYTES = 1 << 20
_HEAD = struct.Struct("<5Q")
_SITE = struct.Struct("<5Q")

CASES: tuple[tuple[Picture, Lane], ...] = (
    (RAW, RING_C), (RAW, FRAME_C), (JPEG, RING_C), (JPEG, FRAME_C), (PREVIEW, RING_C), (PREVIEW, FRAME_C),
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    thread: str
    count: int
    bytes: int
    frames: tuple[int, ...]


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    offset: int
    path: str


def measure(tools: Tools, binaries: Path, directory: Path, frames: int) -> dict[str, Any]:
    """Allocations per frame for each case, with the places in our own code."""
    library = tools.compile_library("allocations")
    counted = directory / "allocations"
    counted.write_bytes(bytes(_BYTES))
    worker = directory / "worker"
    program = (binaries / "camerabus-worker").resolve()
    worker.write_text(f'#!/bin/sh\nLD_PRELOAD="{library}" BENCHMARK_ALLOCATIONS="{counted}" exec "{program}" "$@"\n')
    worker.chmod(0o755)
    results: dict[str, Any] = {}
    with Bus(binaries, cameras=1, worker=worker) as bus, counted.open("r+b") as file:
        with mmap.mmap(file.fileno(), _BYTES) as memory:
            for picture, lane in CASES:
                cell = Cell(picture, lane, 1)
                bus.configure(["cam0"], picture.pixel_format, picture.width, picture.height)
                place = Place(tools, bus.runtime_dir, directory, picture)
                results[f"{picture.name}, {lane.name}"] = _count(cell, place, bus, memory, frames)
    return results


def _count(cell: Cell, place: Place, bus: Bus, memory: mmap.mmap, frames: int) -> dict[str, Any]:
    with programs() as started:
        started.append(Program(cell.lane.read(place, "cam0", place.directory / "records")))
        started[0].wait_until_ready()
        with bus.client() as client:
            pid = bus.worker(client)
        # All slots of the device and of the ring are to have been used.
        time.sleep(1.5)
        memory[_HEAD.size :] = bytes(_BYTES - _HEAD.size)
        memory[8:24] = bytes(16)
        memory[0] = 1
        time.sleep(frames / RATE)
        memory[0] = 0
        threads = {int(task.name): (task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()}
        maps = [_mapping(line) for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if " r-xp " in line]
    _, total, missed, depth, count = _HEAD.unpack_from(memory)
    sites: list[Site] = []
    for index in range(count):
        at = _HEAD.size + index * (_SITE.size + depth * 8)
        _, times, size, thread, used = _SITE.unpack_from(memory, at)
        if times:
            stack = struct.unpack_from(f"<{used}Q", memory, at + _SITE.size)
            sites.append(Site(threads.get(thread, str(thread)), times, size, stack))
    return _explain(sites, maps, frames) | {"frames": frames, "missed": missed}


def _mapping(line: str) -> Mapping:
    fields = line.split(None, 5)
    start, end = (int(side, 16) for side in fields[0].split("-"))
    return Mapping(start, end, int(fields[2], 16), fields[5] if len(fields) > 5 else "")


def _explain(sites: list[Site], maps: list[Mapping], frames: int) -> dict[str, Any]:
    per_frame: Counter[str] = Counter()
    ours: Counter[tuple[str, tuple[tuple[str, int], ...]]] = Counter()
    for site in sites:
        places = [(found, address) for address in site.frames if (found := _find(maps, address))]
        libraries = [Path(found.path).name for found, _ in places]
        who = "libzmq" if any("libzmq" in name for name in libraries[:3]) else "worker"
        if who == "worker" and site.thread.startswith("sensor-"):
            who = "virtual camera"
        per_frame[who] += site.count
        if who == "worker":
            inside = [(found.path, address - found.start + found.offset) for found, address in places]
            ours[(site.thread, tuple(inside))] += site.count
    names = _names({place for _, stack in ours for place in stack})
    top = [
        {
            "per_frame": round(count / frames, 2),
            "thread": thread,
            "where": _trail([name for place in stack for name in names.get(place, ["?"])]),
        }
        for (thread, stack), count in ours.most_common(12)
    ]
    shares = {who: round(per_frame[who] / frames, 2) for who in ("worker", "libzmq", "virtual camera")}
    return {"per_frame": shares, "sites": top}


def _trail(names: list[str]) -> list[str]:
    known = [name for name in names if name != "??" and not name.startswith(("swift_", "malloc", "operator new", "__swift"))]
    return known[:6]


def _find(maps: list[Mapping], address: int) -> Mapping | None:
    return next((one for one in maps if one.start <= address < one.end), None)


def _names(places: set[tuple[str, int]]) -> dict[tuple[str, int], list[str]]:
    """Function, file and line, as far as the symbols go."""
    symbolizer = shutil.which("llvm-symbolizer") or shutil.which("addr2line")
    demangle = shutil.which("swift-demangle") or shutil.which("swift")
    names: dict[tuple[str, int], list[str]] = {}
    if symbolizer is None:
        return names
    for path in {path for path, _ in places if path.startswith("/")}:
        here = sorted(address for other, address in places if other == path)
        # A return address is behind its call.
        wanted = [hex(_virtual(path, address) - 1) for address in here]
        words = [symbolizer, "-e", path, "-f", "-C", "-i"] if "addr2line" in symbolizer else [symbolizer, "-e", path, "--inlines"]
        for address, word in zip(here, wanted):
            lines = subprocess.run([*words, word], capture_output=True, text=True).stdout.splitlines()
            pairs = [(lines[at], lines[at + 1]) for at in range(0, len(lines) - 1, 2)]
            names[(path, address)] = [_short(*pair) for pair in pairs] or ["??"]
    if demangle is not None:
        words = [demangle] if demangle.endswith("demangle") else [demangle, "demangle"]
        flat = [name for group in names.values() for name in group]
        plain = subprocess.run([*words, "--simplified"], input="\n".join(flat), capture_output=True, text=True).stdout
        lines = plain.splitlines()
        if len(lines) == len(flat):
            rest = iter(lines)
            names = {place: [next(rest) for _ in group] for place, group in names.items()}
    return names


def _short(function: str, where: str) -> str:
    file = Path(where.rsplit(":", 1)[0]).name if "/" in where and "??" not in where else ""
    return f"{function} ({file})" if file else function


def _virtual(path: str, offset: int) -> int:
    """From the place in the file to the address that its symbols have."""
    data = Path(path).open("rb").read(4096)
    if data[:4] != b"\x7fELF" or data[4] != 2:
        return offset
    start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    for index in range(count):
        kind, _, place, address, _, length = struct.unpack_from("<IIQQQQ", data, start + index * size)
        if kind == 1 and place <= offset < place + length:
            return offset - place + address
    return offset


def table(results: dict[str, Any]) -> list[str]:
    lines = ["", "Allocations of a worker for each frame (steady state, 1 reader)", ""]
    lines.append(f"{'':44}{'worker':>10}{'libzmq':>10}{'virtual camera':>16}")
    for name, row in results.items():
        shares = row["per_frame"]
        lines.append(f"{name:44}{shares['worker']:>10}{shares['libzmq']:>10}{shares['virtual camera']:>16}")
        for site in row["sites"]:
            if site["per_frame"] >= 0.2:
                lines.append(f"    {site['per_frame']:>6} {site['thread']:16} {' < '.join(site['where'])[:180]}")
    return lines
