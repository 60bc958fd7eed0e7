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
from typing import Any, Callable, Sequence

from .bus import RATE, Bus
from .lanes import FRAME_C, JPEG, PREVIEW, RAW, RING_C, Cell, Lane, Picture, Place
from .preloads import preloading
from .processes import Program, programs
from .tools import Tools

_BYTES = 1 << 20
_WHO = ("worker", "libzmq", "JPEG", "scaler", "virtual camera")
_HEAD = struct.Struct("<5Q")
_SITE = struct.Struct("<5Q")
#: Frames with which all slots of the device and of the ring have been used.
_SLOTS = 40

#: Places in files, the innermost first.
Stack = tuple[tuple[str, int], ...]

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


def name(picture: Picture, lane: Lane) -> str:
    return f"allocations: {picture.name}, {lane.name}"


def measure(
    tools: Tools, library: Path, binaries: Path, directory: Path, cases: Sequence[tuple[Picture, Lane]], frames: int,
    say: Callable[[str], None],
) -> dict[str, Any]:  # fmt: skip
    """Allocations per frame for each case, with the places in our own code."""
    counted = directory / "allocations"
    counted.write_bytes(bytes(_BYTES))
    worker = preloading(
        directory / "worker", binaries / "camerabus-worker", library, BENCHMARK_ALLOCATIONS=counted
    )
    results: dict[str, Any] = {}
    with Bus(binaries, cameras=1, worker=worker) as bus, counted.open("r+b") as file:
        with mmap.mmap(file.fileno(), _BYTES) as memory:
            for picture, lane in cases:
                say(name(picture, lane))
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
            bus.wait_for_frames(client, _SLOTS)
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
    found: Counter[tuple[str, str, Stack]] = Counter()
    for site in sites:
        places = [(one.path, address - one.start + one.offset) for address in site.frames if (one := _find(maps, address))]
        # Threads of one kind have one name but for their number.
        found[(_who(site.thread, places), site.thread.rstrip("0123456789-"), tuple(places))] += site.count
    # What is done once a second may need a dozen: that is not for each frame.
    each: Counter[str] = Counter()
    besides: Counter[str] = Counter()
    for (who, _, _), count in found.items():
        (each if count >= frames / 2 else besides)[who] += count
    top = [(key, count) for key, count in found.most_common(24) if count >= frames / 2]
    names = _names({place for (_, _, stack), _ in top for place in stack})
    return {
        "per_frame": {who: round(each[who] / frames, 2) for who in _WHO},
        "besides_per_second": {who: round(besides[who] * RATE / frames, 1) for who in _WHO},
        "sites": [
            {
                "per_frame": round(count / frames, 2),
                "who": who,
                "thread": thread,
                "where": _trail([name for place in stack for name in names.get(place, ["?"])]),
            }
            for (who, thread, stack), count in top
        ],
    }


def _who(thread: str, places: list[tuple[str, int]]) -> str:
    """Whose an allocation is: the library's that called malloc, but for what the virtual camera does."""
    if thread.startswith("sensor-"):
        return "virtual camera"
    # Behind C++'s operator new is who said new.
    libraries = [Path(path).name for path, _ in places[:3]]
    for name, library in (("libzmq", "libzmq"), ("libturbojpeg", "JPEG"), ("libswscale", "scaler"), ("libavutil", "scaler")):
        if any(one.startswith(name) for one in libraries[: 3 if name == "libzmq" else 1]):
            return library
    return "worker"


def _trail(names: list[str]) -> list[str]:
    skipped = ("swift_", "malloc", "operator new", "__swift", "specialized _Contiguous", "specialized Array._", "specialized closure", "closure #1 in closure")
    plain = [name.replace(" (<compiler-generated>:0)", "") for name in names]
    return [name for name in plain if name not in ("?", "??", "") and not name.startswith(skipped)][:6]


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
        wanted = "\n".join(hex(_virtual(path, address) - 1) for address in here)
        options = ["-p", "-i"] if "addr2line" in symbolizer else ["--output-style=GNU", "--pretty-print", "--inlines"]
        words = [symbolizer, "-f", "-C", *options, "-e", path]
        groups: list[list[str]] = []
        for line in subprocess.run(words, input=wanted + "\n", capture_output=True, text=True).stdout.splitlines():
            name = _short(*line.strip().removeprefix("(inlined by) ").rpartition(" at ")[::2])
            if line.lstrip().startswith("(inlined by)") and groups:
                groups[-1].append(name)
            elif line.strip():
                groups.append([name])
        if len(groups) == len(here):
            names.update({(path, address): group for address, group in zip(here, groups)})
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
    file = Path(where.split()[0]).name if "/" in where and "??" not in where else ""
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
    lines = ["", "Allocations of a worker for each frame, by who makes them (steady state, 1 reader); behind +, a second besides", ""]
    lines.append(f"{'':40}" + "".join(f"{who:>18}" for who in _WHO))
    for name, row in results.items():
        cells = (f"{row['per_frame'][who]:g} + {row['besides_per_second'][who]:g}/s" for who in _WHO)
        lines.append(f"{name:40}" + "".join(f"{cell:>18}" for cell in cells))
    for name, row in results.items():
        lines += ["", f"{name}:"] if row["sites"] else []
        for site in row["sites"]:
            lines.append(f"{site['per_frame']:>6} {site['who']}, {site['thread']}: {' < '.join(site['where'])[:200]}")
    return lines
