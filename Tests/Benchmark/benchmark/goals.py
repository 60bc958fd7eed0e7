# SPDX-License-Identifier: Apache-2.0
"""What the frame path and the commands are to reach, and whether they did in this run."""

from __future__ import annotations

from typing import Any, Iterator

from .lanes import BUFFER_C, FLOOR_DEVICE, FLOOR_ZMQ_DEVICE, FRAME_C, IMAGEZMQ, JPEG, NETGEAR, PYZMQ, RAW, RING_C
from .lanes import MANY, RING_PYTHON, SMALL, Cell, Lane, Picture
from .recordings import recordings

Figures = dict[str, Any]


class _Run:
    """Looks figures up; None where something was not measured."""

    def __init__(self, frames: dict[str, Figures], others: dict[str, Figures], recordings: dict[str, Figures]) -> None:
        self._frames = frames
        self._others = others
        self.recordings = recordings

    def cpu(self, picture: Picture, lane: Lane, readers: int, part: str = "total", cameras: int = 1) -> float | None:
        row = self._frames.get(Cell(picture, lane, readers, cameras).name)
        return row and row["cpu_ms_per_frame"][part]["median"]

    def p50(self, picture: Picture, lane: Lane, readers: int) -> float | None:
        """From the time at which the picture is ready: the others stamp theirs then."""
        row = self._frames.get(Cell(picture, lane, readers).name)
        rounds = row and row["since_ready"]["p50_rounds"]
        return rounds and rounds["median"]

    def core(self, picture: Picture, lane: Lane, readers: int, cameras: int) -> float | None:
        row = self._frames.get(Cell(picture, lane, readers, cameras).name)
        return row and row["core_percent"]

    def figure(self, cell: Cell, name: str) -> float | None:
        row = self._frames.get(cell.name)
        return row and row[name]

    def rate(self, name: str) -> float | None:
        row = self._others.get(name)
        return row and row["per_second_rounds"]["median"]


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _at_least(name: str, value: float | None, bound: float, unit: str = "×") -> Figures:
    return _goal(name, value, bound, unit, "least")


def _at_most(name: str, value: float | None, bound: float, unit: str = "×") -> Figures:
    return _goal(name, value, bound, unit, "most")


def _goal(name: str, value: float | None, bound: float, unit: str, kind: str) -> Figures:
    is_met = None if value is None else (value >= bound if kind == "least" else value <= bound)
    rounded = None if value is None else round(value, 4)
    return {"goal": name, "value": rounded, "at": kind, "bound": bound, "unit": unit, "met": is_met}


def _flatness(run: _Run, lane: Lane) -> tuple[float, float] | None:
    """How many times as much the publisher needs for 16 readers as for one, and how many µs more for each."""
    few, many = (run.cpu(RAW, lane, readers, "publisher") for readers in (1, 16))
    return (many / few, (many - few) / 15 * 1000) if few and many else None


def goals(frames: dict[str, Figures], others: dict[str, Figures], recordings: dict[str, Figures]) -> list[Figures]:
    """Each goal with what was reached; only those of which everything was measured."""
    return [goal for goal in _all(_Run(frames, others, recordings)) if goal["value"] is not None]


def _all(run: _Run) -> Iterator[Figures]:
    for own in (RING_C, BUFFER_C):
        for peer, times in ((IMAGEZMQ, 7), (PYZMQ, 7), (NETGEAR, 25)):
            ratio = _over(run.cpu(RAW, peer, 4), run.cpu(RAW, own, 4))
            yield _at_least(f"{RAW.name}, 4 readers: CPU of {peer.name} / {own.name}", ratio, times)
        for peer in (IMAGEZMQ, PYZMQ):
            ratio = _over(run.p50(RAW, peer, 4), run.p50(RAW, own, 4))
            yield _at_least(f"{RAW.name}, 4 readers: p50 of {peer.name} / {own.name}", ratio, 4)
    # The kernel's wakings of readers are all that may grow: some µs each, as in the C program; copies for them would take hundreds.
    ours, floors = (_flatness(run, lane) for lane in (RING_C, FLOOR_DEVICE))
    yield _at_most(f"{RAW.name}: the worker's CPU for each reader of the ring from 1 to 16", ours and ours[1], 10, "µs a frame")
    ratio = _over(ours and ours[0], floors and floors[0])
    yield _at_most(f"{RAW.name}: growth of CPU from 1 to 16 readers, worker's / {FLOOR_DEVICE.name}", ratio, 1.3)
    one = run.p50(RAW, RING_C, 1)
    yield _at_most(f"{RAW.name}: p50 of one reader by futex", one and one * 1000, 60, "µs")
    for readers in (4, 16):
        ratio = _over(run.p50(RAW, RING_C, readers), run.p50(RAW, FLOOR_DEVICE, readers))
        yield _at_most(f"{RAW.name}, {readers} readers: p50 of {RING_C.name} / {FLOOR_DEVICE.name}", ratio, 1.3)
    for picture in (RAW, JPEG):
        for readers in (1, 4, 16):
            ratio = _over(run.cpu(picture, FRAME_C, readers), run.cpu(picture, FLOOR_ZMQ_DEVICE, readers))
            name = f"{picture.name}, {readers} reader{'s' if readers > 1 else ''}: CPU of {FRAME_C.name} / {FLOOR_ZMQ_DEVICE.name}"
            yield _at_most(name, ratio, 1.15)
    ratio = _over(run.cpu(JPEG, PYZMQ, 4), run.cpu(JPEG, FRAME_C, 4))
    yield _at_least(f"{JPEG.name}, 4 readers: CPU of {PYZMQ.name} / {FRAME_C.name}", ratio, 1.3)
    for own in (RING_C, BUFFER_C):
        core = run.core(RAW, own, 4, 4)
        yield _at_most(f"{RAW.name}, 4 cameras, 4 readers of each by {own.name}", core, 8, "% of one core")
    for own in (RING_C, BUFFER_C):
        cell = Cell(SMALL, own, 1, MANY)
        yield _at_most(f"{cell.name}: frames lost", run.figure(cell, "lost"), 0, "")
        yield _at_most(f"{cell.name}: a worker's memory beside its rings", run.figure(cell, "worker_mib"), 20, "MiB")
    yield _at_most(f"{RAW.name}, 4 readers by {RING_PYTHON.name}: CPU", run.cpu(RAW, RING_PYTHON, 4), 1.3, "ms a frame")
    ratio = _over(run.rate("bus.ping, C"), run.rate("floor: C on libzmq, ROUTER that answers"))
    yield _at_least("bus.ping a second / C on libzmq that only answers", ratio, 0.7)
    for recording in recordings():
        row = run.recordings.get(recording.name)
        if recording.ffmpeg is None:
            yield _at_most(f"{recording.name}: frames lost", row and row["lost"], 0, "")
            continue
        own = run.recordings.get(f"{recording.group}: recorder")
        ratio = _over(own and own["cpu_ms_per_frame"]["median"], row and row["cpu_ms_per_frame"]["median"])
        yield _at_most(f"{recording.group}: CPU of recorder / {recording.lane}", ratio, 1.2)


def goal_lines(found: list[Figures]) -> Iterator[str]:
    yield ""
    yield f"{'Goals':90}{'reached':>10}  {'to be':24}"
    for goal in found:
        bound = f"{'≥' if goal['at'] == 'least' else '≤'} {goal['bound']:g} {goal['unit']}"
        digits = 1 if goal["value"] >= 20 else 2
        yield f"{goal['goal']:90}{goal['value']:>10.{digits}f}  {bound:20}{'' if goal['met'] else 'MISSED'}"
    met = sum(1 for goal in found if goal["met"])
    yield f"{met} of {len(found)} met"
