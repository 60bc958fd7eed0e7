# SPDX-License-Identifier: Apache-2.0
"""Measures the bus on this machine with virtual cameras, and beside it, in the same run and with the same pictures, others.

usage: make bench [BENCH="--json FILE --plot FILE.svg --seconds N --rounds N --only WORDS"]

Each lane is measured in turn, round after round; figures are medians of rounds with their range. Times from one run compare with
each other, and less so with those of another run. `make bench BENCH="--seconds 1 --rounds 1"` is a trial.
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

from . import allocations, report
from .bus import Bus
from .commands import Settings, measurements
from .figures import rounds as spread_of_rounds
from .frames import Round, measure, summary
from .lanes import Cell, Picture, Place, cells
from .plot import svg
from .processes import Failed, others_share
from .tools import ROOT, Tools


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / ".build/release", help="where the programs are")
    parser.add_argument("--work", type=Path, default=ROOT / ".build/benchmark", help="what is kept between runs")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of each measurement (default 1.5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is repeated (default 3)")
    parser.add_argument("--kills", type=int, default=5, help="how often something is killed or started (default 5)")
    parser.add_argument("--only", action="append", metavar="WORDS", help="only what has these words in its name; may be repeated")
    parser.add_argument("--list", action="store_true", help="print what would be measured")
    parser.add_argument("--no-peers", action="store_true", help="install and measure no imagezmq, VidGear and pyzmq")
    parser.add_argument("--allocations", action="store_true", help="count a worker's allocations per frame, and nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture of the table (SVG) to this file")
    options = parser.parse_args()
    if options.seconds <= 0 or options.rounds < 1 or options.kills < 1:
        parser.error("--seconds, --rounds and --kills are above 0")
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def wanted(name: str, only: list[str] | None) -> bool:
    return not only or any(all(word in name for word in words.split()) for words in only)


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
            self._bus.configure([f"cam{index}" for index in range(4)], *setting)
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
            place = Place(tools, bus.runtime_dir, directory, pictures.set(cell.picture), cell.readers)
            try:
                done[cell].append(measure(cell, place, bus, options.seconds))
            except Failed as failure:
                missed(cell.name, failure, tools)
    return {cell.name: summary(cell, results) for cell, results in done.items() if results}


def measure_others(settings: Settings, bus: Bus, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    results: dict[str, list[dict[str, Any]]] = {}
    chosen = [one for one in measurements(settings.tools) if wanted(one[0], options.only)]
    for number in range(options.rounds):
        for name, body, is_repeated in chosen:
            if number and not is_repeated:
                continue
            say(f"round {number + 1} of {options.rounds}: {name}")
            try:
                results.setdefault(name, []).append(body(settings, bus))
            except (Failed, CaptureError) as failure:
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


def run(options: argparse.Namespace, tools: Tools, directory: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {"machine": report.machine(tools), "left_out": tools.left_out}
    if options.allocations:
        figures["allocations"] = allocations.measure(tools, options.bin, directory, max(60, round(options.seconds * 60)))
        print("\n".join(allocations.table(figures["allocations"])))
        return figures
    figures["others_before"] = round(others_share(), 3)
    chosen = [cell for cell in cells(tools) if wanted(cell.name, options.only)]
    with Bus(options.bin, cameras=4) as bus:
        figures["frames"] = measure_frames(chosen, tools, bus, directory, options)
        settings = Settings(tools, options.bin, directory, options.seconds, options.kills)
        figures["others"] = measure_others(settings, bus, options)
    figures["ratios"] = report.ratios(figures["frames"], figures["others"])
    machine = figures["machine"]
    lines = [f"{machine['system']}, Linux {machine['kernel']}, {machine['processor']}, {machine['cores']} cores"]
    lines.append(", ".join(f"{name} {version}" for name, version in tools.versions.items()))
    lines.append(f"{options.rounds} rounds of {options.seconds:g} s; before them the machine was {100 * figures['others_before']:.0f} % busy")
    if figures["frames"]:
        lines += report.frame_lines(figures["frames"])
        lines += report.notes(figures["frames"])
    if figures["others"]:
        lines += report.other_lines(figures["others"])
    if figures["ratios"]:
        lines += report.ratio_lines(figures["ratios"])
    lines += ["", *(f"left out: {line}" for line in tools.left_out)] if tools.left_out else []
    print("\n".join(lines))
    return figures


def main() -> int:
    options = arguments()
    for name in ("camerabusd", "camerabus-worker"):
        if not (options.bin / name).exists():
            say(f"{options.bin / name} is not there: make build")
            return 1
    begin = time.monotonic()
    # SIGTERM as Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.pop("CAMERABUS_RUNTIME_DIR", None)
    directory = Path(tempfile.mkdtemp(prefix="cbb-", dir="/tmp"))
    try:
        tools = Tools(options.work.resolve(), wants_peers=not (options.no_peers or options.allocations or options.list))
        for line in tools.left_out:
            say(f"left out: {line}")
        if options.list:
            names = [cell.name for cell in cells(tools)] + [name for name, *_ in measurements(tools)]
            print("\n".join(name for name in names if wanted(name, options.only)))
            return 0
        figures = run(options, tools, directory)
        say(f"that took {time.monotonic() - begin:.0f} s")
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
        if options.plot:
            options.plot.write_text(svg(figures.get("frames", {}), figures["machine"]))
        return 0
    except KeyboardInterrupt:
        say("ended")
        return 130
    except Failed as failure:
        say(f"failed: {failure}")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
