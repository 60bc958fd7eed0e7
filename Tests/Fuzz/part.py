"""What the parts have in common: inputs with numbers, a bus, its neighbour, and what makes a part fail."""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path
from typing import ClassVar

sys.path.append(str(Path(__file__).resolve().parents[1] / "Chaos"))

from neighbour import Neighbour, in_words  # noqa: E402
from tested_bus import BusUnderTest, descriptors, memory  # noqa: E402

#: Bytes and descriptors that a process may have more at the end than after the first third.
GROWTH = 64 << 20
MORE_DESCRIPTORS = 16
#: What may not end, whatever is asked.
LASTING = ("coordinator", "cam0", "cam1", "mic0", "good")
#: Seconds from one line about the progress to the next.
MINUTE = 60.0
#: So many failures of a part are kept, and so many characters of each.
KEPT, CHARACTERS = 50, 700


class Part:
    """Gives a bus inputs, each of which follows from the seed and its number alone."""

    name: ClassVar[str]
    #: How many of a million inputs are of this part.
    share: ClassVar[int]
    arguments: ClassVar[tuple[str, ...]] = ("--virtual", "2")

    def __init__(self, programs: Path, folder: Path, seed: int) -> None:
        self.programs, self.seed = programs, seed
        self.folder = folder / self.name
        self.failures: list[str] = []
        self.notes: list[str] = []
        #: Of each process of the last bus: what it used.
        self.usage: dict[str, str] = {}
        self.done = 0
        #: Seconds that each call of another client took meanwhile.
        self.times: list[float] = []

    def dice(self, number: int) -> random.Random:
        return random.Random(f"{self.name} {self.seed} {number}")

    def fail(self, number: int | None, text: str) -> None:
        """`number`: of the input; None: it is not known which it was."""
        if len(self.failures) < KEPT:
            self.failures.append(f"{'' if number is None else f'input {number}: '}{text[:CHARACTERS]}")

    def give(self, first: int, count: int) -> None:
        """Gives the bus the inputs from `first` on."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Once the bus runs."""

    def run(self, first: int, count: int) -> None:
        """The same with all around it."""
        began = time.monotonic()
        self.run_all(first, count)
        self.notes.append(f"{self.done} inputs in {time.monotonic() - began:.0f} s")
        self.notes.append(f"calls of another client: {in_words(sorted(self.times))}")

    def run_all(self, first: int, count: int) -> None:
        """With one bus for all inputs."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.bus = BusUnderTest(self.programs, self.folder, *self.arguments, settings="[library]\nmin_free = 0\n")
        try:
            self.bus.start_ready()
            self.prepare()
            self.health = Health(self)
            neighbour = Neighbour(self.bus.runtime)
            self.give(first, count)
            times, errors = neighbour.end()
            for error in errors:
                self.fail(None, f"another client: {error}")
            self.times += times
            self.health.check_at_end()
            for line in (*self.bus.stop(), *self.bus.left(), *self.bus.crashes()):
                self.fail(None, line)
        finally:
            self.bus.kill()


class Health:
    """Whether the processes of a part's bus live, and what they have."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._pids = self._lasting()
        self._early: dict[int, tuple[int, int]] | None = None
        self._said = time.monotonic()

    def _lasting(self) -> dict[int, str]:
        return {pid: kind for pid, kind in self._part.bus.processes().items() if kind in LASTING}

    def check(self, number: int, of: int, text: str = "") -> bool:
        """Whether all live, after the input `number` (the first one is 0) of `of`."""
        if self._early is None and number >= of / 3:
            self._early = {pid: (memory(pid), descriptors(pid)) for pid in self._pids}
        if time.monotonic() - self._said > MINUTE:
            self._said = time.monotonic()
            print(f"  {number} inputs", flush=True)
        now = self._lasting()
        ended = {kind for pid, kind in self._pids.items() if now.get(pid) != kind}
        if ended:
            self._part.fail(number, f"{', '.join(sorted(ended))} ended {text}")
            self._pids = now
        return not ended

    def check_at_end(self) -> None:
        self.check(self._part.done, 0)
        for pid, kind in self._pids.items():
            bytes_before, before = (self._early or {}).get(pid, (memory(pid), descriptors(pid)))
            self._part.usage[kind] = (
                f"{kind}: {bytes_before / 2**20:.0f} MiB after a third, {memory(pid) / 2**20:.0f} MiB at the end; "
                f"{before} and {descriptors(pid)} descriptors"
            )
            if memory(pid) - bytes_before > GROWTH:
                self._part.fail(None, f"{kind} grew from {bytes_before >> 20} to {memory(pid) >> 20} MiB")
            if descriptors(pid) - before > MORE_DESCRIPTORS:
                self._part.fail(None, f"{kind} had {before} descriptors, and has {descriptors(pid)}")
