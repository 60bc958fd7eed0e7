# SPDX-License-Identifier: Apache-2.0
"""State and events as they go by, and a copy of the state that follows them, for both clients."""

from __future__ import annotations

import math
from typing import Any, AsyncIterator, Callable, Iterator, Mapping

from .closing import AsyncSubscribed, Subscribed
from .core import AsyncOpened, Core, Opened
from .event_feed import EventFeed
from .following import AsyncFollowing, Following
from .mirroring import MirrorBase
from .steps import Runner, deadline, run
from .values import Change, Event


class Watch(Following[Event]):
    """An iterator over events."""


class Mirror(Subscribed, MirrorBase):
    """State by topic. It stands still until `update`, `wait` or `changes` brings it up to date."""

    def __init__(self, core: Core, prefix: str) -> None:
        super().__init__(core, prefix)
        run(self._open())

    def update(self, timeout: float = 0.0) -> list[Change]:
        """Takes in what has come, and waits up to `timeout` for the first change."""
        return run(self._update(deadline(timeout)))

    def wait(self, condition: Callable[[Mapping[str, Any]], Any], timeout: float = 10.0) -> None:
        """Until the condition is true of the mirror, or `BusTimeout`."""
        run(self._wait(condition, timeout))

    def changes(self, timeout: float = math.inf) -> Iterator[Change]:
        """Changes as they come; ends when none came for `timeout`."""
        while changes := self.update(timeout):
            yield from changes

    def close(self) -> None:
        self._events.close()


class AsyncWatch(AsyncFollowing[Event]):
    pass


class AsyncMirror(AsyncSubscribed, MirrorBase):
    def __init__(self, core: Core, prefix: str, run: Runner) -> None:
        super().__init__(core, prefix)
        self._run = run

    async def update(self, timeout: float = 0.0) -> list[Change]:
        return await self._run(self._update(deadline(timeout)))

    async def wait(self, condition: Callable[[Mapping[str, Any]], Any], timeout: float = 10.0) -> None:
        await self._run(self._wait(condition, timeout))

    async def changes(self, timeout: float = math.inf) -> AsyncIterator[Change]:
        while changes := await self.update(timeout):
            for change in changes:
                yield change

    async def _opened(self) -> None:
        await self._run(self._open())

    def close(self) -> None:
        self._events.close()


class WatchCalls(Opened):
    """What `Client` has of state and events."""

    def watch(self, *topics: str, timeout: float = math.inf) -> Watch:
        """State and events as they go by; ends when nothing came for `timeout`, and raises `BusEnded` when the bus
        ends, `BusNotRunning` or `BusTimeout` when its heartbeat is missing for 3 s. `next()` goes on with the next bus.
        """
        return Watch(EventFeed(self._open, topics, timeout))

    def mirror(self, prefix: str = "state/") -> Mirror:
        """A copy of the bus's state below `prefix`, complete from the start."""
        return Mirror(self._open, prefix)


class AsyncWatchCalls(AsyncOpened):
    """What `AsyncClient` has of state and events. See `Client` for what the calls do."""

    def watch(self, *topics: str, timeout: float = math.inf) -> AsyncWatch:
        return AsyncWatch(EventFeed(self._open, topics, timeout), self._run)

    def mirror(self, prefix: str = "state/") -> AsyncMirror:
        """To be entered: `async with client.mirror() as mirror:`."""
        return AsyncMirror(self._open, prefix, self._run)
