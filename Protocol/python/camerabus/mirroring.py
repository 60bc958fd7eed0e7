# SPDX-License-Identifier: Apache-2.0
"""A copy of the bus's state that follows its changes, in the form that both clients build on."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping

from . import calls
from .core import Core
from .errors import BusTimeout
from .event_feed import EventFeed
from .sequences import MirrorState
from .steps import Steps, deadline, is_over
from .subscription import with_slash
from .values import Change


class MirrorBase(Mapping[str, Any]):
    """State by topic: `mirror["state/device/cam0/"]`. It stands still until it is updated."""

    def __init__(self, core: Core, prefix: str, *events: str) -> None:
        self.prefix = with_slash(prefix)
        self._core = core
        self._state = MirrorState([self.prefix])
        self._events = EventFeed(core, [self.prefix, *events])
        self._connections = 0

    @property
    def epoch(self) -> str | None:
        """New with each start of the bus."""
        return self._state.epoch

    @property
    def sequence(self) -> int:
        """That of the newest message, or snapshot, that is in here."""
        return self._state.sequence

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.prefix}: {len(self)} topics as of {self.sequence}>"

    def __getitem__(self, topic: str) -> Any:
        return self._state.values[with_slash(topic)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.values)

    def __len__(self) -> int:
        return len(self._state.values)

    def _open(self) -> Steps[None]:
        yield from self._events.open()
        try:
            yield from self._synchronize()
        except BaseException:
            self._events.close()
            raise
        self._state.changes.clear()

    def _update(self, until: float) -> Steps[list[Change]]:
        self._events.rest()
        while True:
            yield from self._synchronize()
            if self._state.changes or is_over(until):
                changes, self._state.changes = self._state.changes, []
                return changes
            yield from self._events.wait(until)

    def _wait(self, condition: Callable[[Mapping[str, Any]], Any], timeout: float) -> Steps[None]:
        until = deadline(timeout)
        yield from self._update(deadline(0))
        while not condition(self):
            if is_over(until):
                raise BusTimeout(f"The state under {self.prefix} did not change as expected within {timeout:g} s.")
            yield from self._update(until)

    def _receive(self, topic: str, message: Mapping[str, Any]) -> None:
        self._state.receive(topic, message)

    def _synchronize(self) -> Steps[None]:
        # A loss is rare and one snapshot ends it; that many in a row mean that the bus contradicts itself.
        for _ in range(10):
            while (message := self._events.take()) is not None:
                self._receive(*message)
            if (connections := self._events.connections) != self._connections:
                self._connections = connections
                self._state.needs_snapshot = True
            if not self._state.needs_snapshot:
                return
            self._state.adopt((yield from self._core.ask(calls.snapshot(self.prefix))))
            if not self._state.needs_snapshot:
                return
        why = "every snapshot is older than an earlier message"
        raise BusTimeout(f"The state under {self.prefix} can't be followed: {why}.")
