"""What a campaign does, and when: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Iterator

#: How often each kind of process is hit, compared with the others. `everything`: all processes of the bus at one
#: moment; `restart`: the bus is ended in order, and started.
WEIGHTS = {
    "coordinator": 16, "cam0": 5, "cam1": 5, "cam2": 5, "cam3": 5, "mic0": 3, "mic1": 3, "matcher": 6, "recorder": 13,
    "librarian": 8, "gateway": 4, "client": 22, "several": 6, "everything": 1.5, "restart": 1.5,
}  # fmt: skip
#: What cannot be stopped for a while, but only killed.
ONLY_KILLED = ("librarian", "everything", "restart")


@dataclass(frozen=True)
class Act:
    what: str
    pause: float  # seconds before the next act
    stop: float  # for how many seconds it is stopped; 0: it is killed
    choice: float  # which of several processes, 0 to 1
    delay: float  # seconds until what was killed is started again, where the campaign does that
    again: float | None  # seconds after which the next coordinator is killed, too
    others: tuple[Act, ...] = ()  # of `several`


def acts(seed: int, only: tuple[str, ...] = (), pause: tuple[float, float] = (0.2, 1.6)) -> Iterator[Act]:
    """Without an end. `only`: no other kinds of process than these."""
    dice = random.Random(f"campaign {seed}")
    weights = {what: weight for what, weight in WEIGHTS.items() if not only or what in only}
    kinds = [what for what in weights if what not in ("several", "everything", "restart")]

    def act(what: str) -> Act:
        stops = what not in ONLY_KILLED and dice.random() < 0.13
        length = dice.uniform(0.5, dice.choice([3, 15]))
        others = tuple(map(act, dice.sample(kinds, min(len(kinds), dice.randrange(2, 6))))) if what == "several" else ()
        return Act(
            what, dice.uniform(*pause), length if stops else 0, dice.random(), dice.choice([0, 0, 0, 0, 0.05, 0.3, 2]),
            dice.uniform(0, 0.12) if dice.random() < 0.25 else None, others,
        )  # fmt: skip

    while True:
        yield act(dice.choices(list(weights), list(weights.values()))[0])
