"""Gives a bus, its gateway and its files inputs that make sense, nearly make sense, or none.

An input follows from the seed, its part and its number alone. A part fails if a program traps, hangs or ends, if its
memory grows and grows, if an answer is missing or not as SPEC says, or if another client is not served. It prints the
input and its number: `--seed S --only PART --first NUMBER --inputs 1` gives that input again.

Exit status: 0 if no part failed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import part  # first: finds the other modules

from bytes_part import Bytes
from files_part import Files
from gateway_part import Gateway
from replays_part import Replays
from requests_part import Requests
from subscriptions_part import Subscriptions
from tested_bus import ROOT
from toml_part import Toml

PARTS: dict[str, type[part.Part]] = {
    each.name: each for each in (Requests, Subscriptions, Bytes, Toml, Files, Gateway, Replays)
}
SHOWN = 20


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make fuzz", usage='make fuzz [FUZZ="OPTION..."]', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N", help="how many, of all parts (100000)")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 10**6), help="another one each time")
    parser.add_argument("--only", metavar="PART,...", help=f"only these parts: {', '.join(PARTS)}")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="the number of the first input (0)")
    programs = ROOT / ".build/release"
    parser.add_argument("--programs", type=Path, default=programs, help="where the programs are (.build/release)")
    parser.add_argument("--folder", type=Path, help="where the bus and its log are; it stays")
    chosen = parser.parse_args()
    chosen.parts = chosen.only.split(",") if chosen.only else list(PARTS)
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}")
    return chosen


def run(name: str, chosen: argparse.Namespace, folder: Path, count: int) -> bool:
    """Whether the part passed."""
    one = PARTS[name](chosen.programs.resolve(), folder, chosen.seed)
    print(f"== {name}: {count} inputs from {chosen.first} on", flush=True)
    try:
        one.run(chosen.first, count)
    except Exception:  # noqa: BLE001  the other parts run all the same
        one.fail(None, f"the part itself: {traceback.format_exc()[-600:]}")
    print("\n".join(f"  {note}" for note in (*one.notes, *one.usage.values())))
    print("\n".join(f"  FAILED {failure}" for failure in one.failures[:SHOWN]) or "  passed", flush=True)
    return not one.failures


def main() -> int:
    chosen = options()
    for program in ("camerabusd", "camerabus-gateway"):
        if not (chosen.programs / program).exists():
            sys.exit(f"{chosen.programs / program} does not exist: make build")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="camerabus-fuzz-", dir="/tmp"))
    folder.mkdir(exist_ok=True)
    print(f"seed {chosen.seed}, in {folder}", flush=True)
    shares = sum(PARTS[name].share for name in chosen.parts)
    counts = {name: max(1, chosen.inputs * PARTS[name].share // shares) for name in chosen.parts}
    failed = [name for name in chosen.parts if not run(name, chosen, folder, counts[name])]
    only = f" --only {chosen.only}" if chosen.only else ""
    print(f'To repeat it: make fuzz FUZZ="--seed {chosen.seed} --inputs {chosen.inputs} --first {chosen.first}{only}"')
    if failed:
        print(f"Failed: {', '.join(failed)}. The logs are in {folder}.")
        return 1
    if chosen.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
