# SPDX-License-Identifier: Apache-2.0
"""Which frames of several cameras were taken at the same time, by the clock of the world: no socket in sight."""

from __future__ import annotations

from collections import deque
from typing import Generic, Mapping, NamedTuple, Sequence, TypeVar

F = TypeVar("F")


class Matched(NamedTuple, Generic[F]):
    """What belongs to one frame of the lead."""

    #: By name, the lead's first; those without one in time are left out.
    frames: Mapping[str, F]
    #: Nanoseconds from the lead's frame to each.
    offsets: Mapping[str, int]
    missing: tuple[str, ...]


class RealtimeMatcher(Generic[F]):
    """Finds to each frame of the first camera the nearest of each other one; that of a slower camera may be in two
    sets.

    Times are nanoseconds. A frame is the nearest when a later one has come, or when it is exactly of the same time; a
    camera that gives nothing for `patience` after the lead's frame is not waited for any longer.
    """

    KEPT = 32  # frames of a camera that wait for others'

    def __init__(self, names: Sequence[str], tolerance: int, patience: int) -> None:
        if len(set(names)) != len(names) or len(names) < 2:
            raise ValueError("To match frames, name at least two cameras, each once.")
        self._lead, self._others = names[0], tuple(names[1:])
        self._tolerance = tolerance
        self._patience = patience
        self._leads: deque[tuple[int, F]] = deque(maxlen=self.KEPT)
        self._waiting: dict[str, deque[tuple[int, F]]] = {name: deque(maxlen=self.KEPT) for name in self._others}
        self._newest = 0

    def receive(self, name: str, time: int, frame: F) -> list[Matched[F]]:
        """Takes a frame in; answers the sets that are complete by it, the oldest first."""
        if name == self._lead:
            self._leads.append((time, frame))
        else:
            self._waiting[name].append((time, frame))
        self._newest = max(self._newest, time)
        found = []
        while self._leads and (matched := self._match(*self._leads[0])) is not None:
            self._leads.popleft()
            found.append(matched)
        return found

    def _match(self, time: int, lead: F) -> Matched[F] | None:
        is_late = self._newest - time > self._patience
        if not is_late and any(not waiting or waiting[-1][0] < time for waiting in self._waiting.values()):
            return None  # a nearer one may still come
        frames, offsets, missing = {self._lead: lead}, {self._lead: 0}, []
        for name, waiting in self._waiting.items():
            nearest = min(waiting, key=lambda each: abs(each[0] - time), default=None)
            if nearest is None or abs(nearest[0] - time) > self._tolerance:
                missing.append(name)
            else:
                frames[name], offsets[name] = nearest[1], nearest[0] - time
            # The next frame of the lead is later: of those before this one's nearest, none is any use.
            while len(waiting) > 1 and waiting[1][0] <= time:
                waiting.popleft()
        return Matched(frames, offsets, tuple(missing))
