"""Kills and stops the processes of a busy bus, and compares what its clients saw with the specification.

The seed decides who is killed or stopped, how, and how long after the one before; what the processes were doing then is
up to the machine. So a fault shows again with its seed in most runs, not in all. The history of a run that violates a
rule stays, and --check compares it again.

Exit status: 0 without a violation, 1 with one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import tested_bus

import checker
import history
import plan
import shortages
from campaign import Campaign

#: Of one rule so many violations are printed.
SHOWN = 8


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make chaos", usage='make chaos [CHAOS="OPTION..."]', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--kills", type=int, default=500, metavar="N", help="how many are killed or stopped (500)")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 10**6), help="another one each time")
    parser.add_argument("--only", default="", metavar="KIND,...", help=f"only these: {', '.join(plan.WEIGHTS)}")
    parser.add_argument("--pause", default="0.2,1.6", metavar="A,B", help="seconds between two, from A to B (0.2,1.6)")
    kinds = ", ".join(shortages.KINDS)
    parser.add_argument("--shortages", metavar="KIND,...", help=f"instead, run out of: all, or {kinds} (as root)")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="only compare the history of an earlier run again")
    programs = tested_bus.ROOT / ".build/release"
    parser.add_argument("--programs", type=Path, default=programs, help="where the programs are (.build/release)")
    parser.add_argument("--folder", type=Path, help="where the bus and the history are; it stays")
    chosen = parser.parse_args()
    unknown = [kind for kind in chosen.only.split(",") if kind and kind not in plan.WEIGHTS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]}")
    return chosen


def report(entries: list[history.Entry]) -> int:
    violations = checker.check(entries)
    print(checker.summary(entries))
    counts = Counter(violation.rule for violation in violations)
    for rule, count in counts.most_common():
        print(f"{count} violations of {rule}:")
        texts = [violation.text for violation in violations if violation.rule == rule]
        print("\n".join(f"    {text[:600]}" for text in texts[:SHOWN]))
    print(f"{len(violations)} violations" if violations else "No violation.")
    return 1 if violations else 0


def main() -> int:
    chosen = options()
    if chosen.check:
        return report(history.read(chosen.check))
    if not (chosen.programs / "camerabusd").exists():
        sys.exit(f"{chosen.programs}/camerabusd does not exist: make build")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="camerabus-chaos-", dir="/tmp"))
    folder.mkdir(exist_ok=True)
    if chosen.shortages:
        return shortages.run(chosen.programs.resolve(), folder, chosen.shortages)
    print(f"seed {chosen.seed}, in {folder}", flush=True)
    least, most = map(float, chosen.pause.split(","))
    began = time.monotonic()
    campaign = Campaign(chosen.programs.resolve(), folder, chosen.seed)
    only = tuple(filter(None, chosen.only.split(",")))
    campaign.run(plan.acts(chosen.seed, only, (least, most)), chosen.kills)
    hits = ", ".join(f"{count} {what}" for what, count in sorted(campaign.hits.items()))
    print(f"{campaign.hits.total()} hits in {time.monotonic() - began:.0f} s: {hits}")
    status = report(history.read(folder))
    only_again = f" --only {chosen.only}" if chosen.only else ""
    print(f'To repeat it: make chaos CHAOS="--seed {chosen.seed} --kills {chosen.kills}{only_again}"')
    if status:
        print(f"The history and the logs are in {folder}.")
    elif chosen.folder is None:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
