# SPDX-License-Identifier: Apache-2.0
"""Measures the bus on this machine with virtual cameras, and beside it, in the same run and with the same pictures, others.

Each lane is measured in turn, round after round; figures are medians of rounds with their range. Times from one run compare with
each other, and less so with those of another run. `make bench BENCH="--seconds 1 --rounds 1"` is a trial;
`make bench BENCH="--markdown deploy/guides/benchmark.md"` writes the tables of that guide again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from camerabus import CaptureError

from . import allocations, markdown, report
from .bus import Bus
from .choice import Choice
from .commands import Settings, measurements
from .figures import rounds as spread_of_rounds
from .frames import Round, measure, summary
from .goals import goal_lines, goals
from .lanes import MANY, Cell, Picture, Place, cells
from .plot import svg
from .processes import Failed, others_share
from .recordings import measure as measure_recording
from .recordings import recording_lines, recordings
from .recordings import summary as summary_of_recording
from .tools import PEERS, ROOT, Tools


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", usage='make bench [BENCH="OPTION..."]', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--bin", type=Path, default=ROOT / ".build/release", help="where the programs are")
    parser.add_argument("--work", type=Path, default=ROOT / ".build/benchmark", help="what is kept between runs")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of each measurement (default 1.5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is repeated (default 3)")
    parser.add_argument("--kills", type=int, default=5, help="how often something is killed or started (default 5)")
    parser.add_argument("--only", action="append", metavar="WORDS", help="only what has this name of --list, or else all these words in its name; may be repeated")
    parser.add_argument("--list", action="store_true", help="print what would be measured")
    parser.add_argument("--no-peers", action="store_true", help="install and measure no imagezmq, VidGear and pyzmq")
    parser.add_argument("--allocations", action="store_true", help="count a worker's allocations per frame, and nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture of the table (SVG) to this file")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE",
        help="write the run in brief to this file; if it has lines that mark a place for it, as deploy/guides/benchmark.md has, only there",
    )  # fmt: skip
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="measure nothing, and show an earlier run's --json")
    options = parser.parse_args()
    if options.seconds <= 0 or options.rounds < 1 or options.kills < 1:
        parser.error("--seconds, --rounds and --kills are above 0")
    return options


#: Cameras of the bus on which all is measured that needs no more.
FEW = 4


class NothingChosen(Exception):
    """What --only asks for is not there."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def missed(name: str, failure: Exception, tools: Tools) -> None:
    """A measurement that failed is said at the end, and costs the others nothing."""
    say(f"    left out: {failure}")
    tools.left_out.append(f"a round of {name}: {failure}")


class Pictures:
    """Sets the camera, and keeps one frame of each setting in a file."""

    def __init__(self, bus: Bus, directory: Path) -> None:
        self._bus = bus
        self._directory = directory
        self._now: tuple[str, int, int] | None = None

    def set(self, picture: Picture) -> Picture:
        setting = (picture.pixel_format, picture.width, picture.height)
        file = self._directory / f"{picture.pixel_format}-{picture.width}"
        if setting != self._now:
            self._bus.configure(self._bus.devices, *setting)
            self._now = setting
        if not file.exists():
            with self._bus.client() as client, client.frames("cam0", rendition="native", timeout=20) as frames:
                file.write_bytes(next(frames).payload)
        return replace(picture, file=file)


def measure_frames(
    chosen: list[Cell], tools: Tools, bus: Bus, directory: Path, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    done: dict[Cell, list[Round]] = {cell: [] for cell in chosen}
    pictures = Pictures(bus, directory)
    for number in range(options.rounds):
        for cell in chosen:
            say(f"round {number + 1} of {options.rounds}: {cell.name}")
            try:
                place = Place(tools, bus.runtime_dir, directory, pictures.set(cell.picture), cell.readers)
                done[cell].append(measure(cell, place, bus, options.seconds))
            except (Failed, CaptureError, OSError) as failure:
                missed(cell.name, failure, tools)
    return {cell.name: summary(cell, results) for cell, results in done.items() if results}


def measure_recordings(tools: Tools, bus: Bus, directory: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    chosen = [one for one in recordings() if one.name in options.chosen]
    done: dict[str, list[dict[str, float]]] = {}
    for number in range(options.rounds):
        for one in chosen:
            say(f"round {number + 1} of {options.rounds}: {one.name}")
            try:
                done.setdefault(one.name, []).append(measure_recording(one, bus, directory, options.seconds))
            except (Failed, CaptureError, OSError) as failure:
                missed(one.name, failure, tools)
    return {one.name: summary_of_recording(one, done[one.name]) for one in chosen if done.get(one.name)}


def measure_others(settings: Settings, bus: Bus, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    results: dict[str, list[dict[str, Any]]] = {}
    chosen = [one for one in measurements(settings.tools) if one[0] in options.chosen]
    for number in range(options.rounds):
        for name, body, is_repeated in chosen:
            if number and not is_repeated:
                continue
            say(f"round {number + 1} of {options.rounds}: {name}")
            try:
                results.setdefault(name, []).append(body(settings, bus))
            except (Failed, CaptureError, OSError) as failure:
                missed(name, failure, settings.tools)
    return {name: _together(rounds) for name, rounds in results.items() if rounds}


def _together(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure; the worst of `max`."""
    together: dict[str, Any] = {"unit": rounds[0]["unit"], "count": sum(one["count"] for one in rounds)}
    for name in ("p50", "p95", "p99", "per_second"):
        values = [one[name] for one in rounds if name in one]
        if values:
            figure = spread_of_rounds(values)
            together[name] = figure["median"]
            together[f"{name}_rounds"] = figure
    together["max"] = max(one.get("max", 0) for one in rounds)
    return together


def count_allocations(options: argparse.Namespace, tools: Tools, directory: Path) -> dict[str, Any]:
    chosen = [case for case in allocations.CASES if options.allocations or allocations.name(*case) in options.chosen]
    library = tools.compile_library("allocations") if chosen else None
    if library is None:
        return {}
    frames = max(60, round(options.seconds * 60))
    try:
        return allocations.measure(tools, library, options.bin, directory, chosen, frames, say)
    except (Failed, CaptureError, OSError) as failure:
        missed("allocations", failure, tools)
        return {}


def run(options: argparse.Namespace, tools: Tools, directory: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "machine": report.machine(tools),
        "settings": {"seconds": options.seconds, "rounds": options.rounds, "kills": options.kills},
        "left_out": tools.left_out,
    }
    if not options.allocations:
        figures["others_before"] = round(others_share(), 3)
        chosen = [cell for cell in cells(tools) if cell.name in options.chosen]
        ready = tools.compile_library("ready")
        with Bus(options.bin, cameras=FEW, ready=ready) as bus:
            few = [cell for cell in chosen if cell.cameras <= FEW]
            figures["frames"] = measure_frames(few, tools, bus, directory, options)
            settings = Settings(tools, options.bin, directory, options.seconds, options.kills)
            figures["others"] = measure_others(settings, bus, options)
            figures["recordings"] = measure_recordings(tools, bus, directory, options)
        if many := [cell for cell in chosen if cell.cameras > FEW]:
            with Bus(options.bin, cameras=MANY, ready=ready) as bus:
                figures["frames"] |= measure_frames(many, tools, bus, directory, options)
        figures["ratios"] = report.ratios(figures["frames"], figures["others"])
        figures["goals"] = goals(figures["frames"], figures["others"], figures["recordings"])
    figures["allocations"] = count_allocations(options, tools, directory)
    return figures


def show(figures: dict[str, Any]) -> None:
    machine, settings = figures["machine"], figures["settings"]
    lines = [f"{machine['system']}, Linux {machine['kernel']}, {machine['processor']}, {machine['cores']} cores"]
    lines.append(", ".join(f"{name} {version}" for name, version in machine["versions"].items()))
    lines.append(f"{settings['rounds']} round{'s' if settings['rounds'] > 1 else ''} of {settings['seconds']:g} s")
    if "others_before" in figures:
        lines[-1] += f"; before them the machine was {100 * figures['others_before']:.0f} % busy"
    if figures.get("frames"):
        lines += report.frame_lines(figures["frames"])
        lines += report.notes(figures["frames"])
    if figures.get("others"):
        lines += report.other_lines(figures["others"])
    if figures.get("recordings"):
        lines += recording_lines(figures["recordings"])
    if figures.get("allocations"):
        lines += allocations.table(figures["allocations"])
    if figures.get("ratios"):
        lines += report.ratio_lines(figures["ratios"])
    if figures.get("goals"):
        lines += goal_lines(figures["goals"])
    lines += ["", *(f"left out: {line}" for line in figures["left_out"])] if figures["left_out"] else []
    print("\n".join(lines))


def save(figures: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.plot:
        options.plot.write_text(svg(figures.get("frames", {}), figures["machine"]), encoding="utf-8")
    if options.markdown:
        markdown.write(options.markdown, figures)


def measured(options: argparse.Namespace) -> dict[str, Any] | None:
    """The figures; None if only a list was wanted."""
    directory = Path(tempfile.mkdtemp(prefix="cbb-", dir="/tmp"))
    try:
        tools = Tools(options.work.resolve(), wants_peers=not (options.no_peers or options.allocations or options.list))
        for line in tools.left_out:
            say(f"left out: {line}")
        if options.list:
            tools.peers = () if options.no_peers else PEERS
        names = [cell.name for cell in cells(tools)] + [name for name, *_ in measurements(tools)]
        names += [one.name for one in recordings()]
        names += [allocations.name(*case) for case in allocations.CASES]
        options.chosen = Choice(options.only, names)
        if options.chosen.misses:
            raise NothingChosen(f"nothing has these words in its name: {'; '.join(options.chosen.misses)} (--list has all names)")
        if options.list:
            print("\n".join(name for name in names if name in options.chosen))
            return None
        return run(options, tools, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


#: All of them end what was started and remove what was made.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(*_: object) -> None:
    # Whoever presses Ctrl-C again must not keep that from being done.
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    options = arguments()
    for number in _ENDS:
        signal.signal(number, end)
    os.environ.pop("CAMERABUS_RUNTIME_DIR", None)
    begin = time.monotonic()
    try:
        if options.source:
            figures = json.loads(options.source.read_text(encoding="utf-8"))
        else:
            for name in () if options.list else ("camerabusd", "camerabus-worker", "camerabus-recorder"):
                if not (options.bin / name).exists():
                    say(f"{options.bin / name} is not there: make build")
                    return 1
            figures = measured(options)
            if figures is None:
                return 0
            say(f"that took {time.monotonic() - begin:.0f} s")
        show(figures)
        save(figures, options)
        return 0
    except KeyboardInterrupt:
        say("ended")
        return 130
    except NothingChosen as why:
        say(str(why))
        return 2
    except (Failed, OSError, ValueError) as failure:
        say(f"failed: {failure}")
        return 1
    except KeyError as missing:
        if not options.source:
            raise
        say(f"failed: {options.source} is of another version: it has no {missing}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
