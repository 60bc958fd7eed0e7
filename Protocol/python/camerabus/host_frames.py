# SPDX-License-Identifier: Apache-2.0
"""Frames of several machines, and which of them are of one time by the machines' clocks."""

from __future__ import annotations

import math
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generator, Iterator, Mapping, NamedTuple

from .core import Call, Core
from .errors import CaptureError
from .following import Feed
from .frame import Frame
from .frame_feed import FrameFeed
from .matching import RealtimeMatcher
from .steps import Steps, Wait, deadline, is_over

#: Seconds for which what a machine says of its clock is believed.
CLOCK_TIME = 30.0


class Clock(NamedTuple):
    """What a machine says of its clock: whether somebody keeps it, and the most that it is wrong by (nanoseconds; None:
    unknown).
    """

    synchronized: bool
    error: int | None

    def __str__(self) -> str:
        if self.error is None:
            return "error unknown: neither NTP nor PTP synchronizes it"
        return f"error at most {self.error / 1e6:.3g} ms{'' if self.synchronized else ', not synchronized now'}"


class HostFrame(NamedTuple):
    """A frame, and whose: `rig/cam0`."""

    name: str
    frame: Frame


@dataclass(frozen=True)
class HostSet:
    """Frames of one time, by the machines' clocks: `frames` by name, the lead first.

    All times are nanoseconds. `spread` is how far they are apart as the clocks say, and `uncertainty` the most that
    this may be wrong by; None: at least one machine doesn't know how right its clock is. Frames of one machine have
    none of it.
    """

    frames: Mapping[str, Frame] = field(repr=False)
    offsets: Mapping[str, int]
    missing: tuple[str, ...]
    uncertainty: int | None
    #: The machines that don't know how right their clocks are.
    unsure: tuple[str, ...] = ()

    @property
    def spread(self) -> int:
        return max(self.offsets.values()) - min(self.offsets.values())

    @property
    def doubt(self) -> str:
        """What `uncertainty` says, in words."""
        if self.uncertainty is None:
            return f"error unknown: neither NTP nor PTP synchronizes the clock of {' and '.join(self.unsure)}"
        return f"error at most {self.uncertainty / 1e6:.3g} ms" if self.uncertainty else "measured by one clock"

    def __str__(self) -> str:
        without = f" (without {', '.join(self.missing)})" if self.missing else ""
        apart = f": {self.spread / 1e6:.1f} ms apart, {self.doubt}" if len(self.frames) > 1 else ""
        return f"{', '.join(self.frames)}{without}{apart}"


def clock() -> Call[Clock]:
    return Call("bus.clock", {}, lambda told: Clock(bool(told.get("synchronized")), told.get("error")), True)


def uncertainty(clocks: Mapping[str, Clock | None]) -> int | None:
    """The most that a difference of times of these hosts is wrong by."""
    if len(clocks) < 2:
        return 0
    errors = [each.error if each is not None else None for each in clocks.values()]
    known = sorted(error for error in errors if error is not None)
    return known[-1] + known[-2] if len(known) == len(errors) else None


@contextmanager
def at(host: str) -> Iterator[None]:
    """What goes wrong within says that it is this machine's."""
    try:
        yield
    except CaptureError as error:
        error.say_host(host)
        raise


class HostFeed(Feed[HostFrame]):
    """Several feeds, each of one bus, waited for at once."""

    def __init__(self, feeds: dict[str, FrameFeed], limit: int | None) -> None:
        self._feeds = feeds
        self._left = math.inf if limit is None else limit
        self._steps: dict[str, Generator[Wait, None, Frame]] = {}
        self._turn = 0

    def __str__(self) -> str:
        return f"of {', '.join(self._feeds)}"

    @property
    def lost(self) -> dict[str, int]:
        return {f"{host}/{device}": count for host, feed in self._feeds.items() for device, count in feed.lost.items()}

    def open(self) -> Steps[None]:
        try:
            for host, feed in self._feeds.items():
                with at(host):
                    yield from feed.open()
        except BaseException:
            self.close()
            raise

    def follow(self) -> Steps[HostFrame | None]:
        if self._left <= 0:
            self.close()
        hosts = [host for host, feed in self._feeds.items() if feed.is_open]
        if len(hosts) < len(self._feeds):
            return None
        while True:
            waits = []
            for step in range(len(hosts)):
                index = (self._turn + step) % len(hosts)
                host = hosts[index]
                steps = self._steps.get(host)
                if steps is None:
                    steps = self._steps[host] = self._feeds[host].next()
                try:
                    waits.append(next(steps))
                except StopIteration as stop:
                    del self._steps[host]
                    self._turn = index + 1
                    self._left -= 1
                    return HostFrame(f"{host}/{stop.value.device}", stop.value)
                except BaseException as error:
                    self._steps.pop(host, None)
                    if isinstance(error, CaptureError):
                        error.say_host(host)
                    raise
            yield Wait(
                tuple(socket for wait in waits for socket in wait.sockets),
                min(wait.until for wait in waits),
                tuple(socket for wait in waits for socket in wait.writable),
            )

    def close(self) -> None:
        for steps in self._steps.values():
            steps.close()
        self._steps = {}
        for feed in self._feeds.values():
            feed.close()


class HostSetFeed(Feed[HostSet]):
    def __init__(
        self, feed: HostFeed, cores: Mapping[str, Core], names: list[str], tolerance: float, limit: int | None
    ) -> None:
        self._frames = feed
        self._cores = cores
        nanoseconds = round(tolerance * 1e9)
        # A frame that is a second late is not of the present any more.
        self._matcher: RealtimeMatcher[Frame] = RealtimeMatcher(names, nanoseconds, 1_000_000_000)
        self._left = math.inf if limit is None else limit
        self._waiting: deque[HostSet] = deque()
        self._clocks: dict[str, Clock | None] = {}
        self._asked_until = 0.0

    def __str__(self) -> str:
        return str(self._frames)

    def open(self) -> Steps[None]:
        yield from self._frames.open()

    def follow(self) -> Steps[HostSet | None]:
        if self._left <= 0:
            self.close()
            return None
        while not self._waiting:
            found = yield from self._frames.follow()
            if found is None:
                return None
            name, frame = found
            for matched in self._matcher.receive(name, frame.timestamp.realtime, frame):
                if is_over(self._asked_until):
                    yield from self._ask()
                hosts = {each.partition("/")[0] for each in matched.frames}
                clocks = {host: self._clocks.get(host) for host in hosts}
                unsure = tuple(host for host in sorted(hosts) if (known := clocks[host]) is None or known.error is None)
                found_set = HostSet(matched.frames, matched.offsets, matched.missing, uncertainty(clocks), unsure)
                self._waiting.append(found_set)
        self._left -= 1
        return self._waiting.popleft()

    def _ask(self) -> Steps[None]:
        self._asked_until = deadline(CLOCK_TIME)
        for host, core in self._cores.items():
            try:
                self._clocks[host] = yield from core.ask(clock(), 2)
            except CaptureError:
                self._clocks[host] = None

    def close(self) -> None:
        self._waiting.clear()
        self._frames.close()
