# SPDX-License-Identifier: Apache-2.0
"""Several buses as one: cameras of several machines, each called `host/device`."""

from __future__ import annotations

import math
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generator, Iterator, Mapping, NamedTuple, Self

from .client import Client, Lock
from .closing import Closing
from .core import Call
from .errors import CaptureError
from .following import Feed, Following
from .frame import Frame
from .matching import RealtimeMatcher
from .steps import Steps, Wait, deadline, is_over, run
from .subscription import FrameErrors, FrameFeed
from .values import Device

#: Seconds for which what a machine says of its clock is believed.
CLOCK_TIME = 30.0


class Clock(NamedTuple):
    """What a machine says of its clock: whether somebody keeps it, and the most that it is wrong by (nanoseconds; None: unknown)."""

    synchronized: bool
    error: int | None


class HostFrame(NamedTuple):
    """A frame, and whose: `rig/cam0`."""

    name: str
    frame: Frame


@dataclass(frozen=True)
class HostSet:
    """Frames of one time, by the machines' clocks: `frames` by name, the lead first.

    All times are nanoseconds. `spread` is how far they are apart as the clocks say, and `uncertainty` the most that this may be wrong by; None: at
    least one machine doesn't know how right its clock is. Frames of one machine have none of it.
    """

    frames: Mapping[str, Frame] = field(repr=False)
    offsets: Mapping[str, int]
    missing: tuple[str, ...]
    uncertainty: int | None

    @property
    def spread(self) -> int:
        return max(self.offsets.values()) - min(self.offsets.values())


def clock() -> Call[Clock]:
    return Call("bus.clock", {}, lambda told: Clock(bool(told.get("synchronized")), told.get("error")), True)


def uncertainty(clocks: Mapping[str, Clock | None]) -> int | None:
    """The most that a difference of times of these hosts is wrong by."""
    if len(clocks) < 2:
        return 0
    errors = [each.error if each is not None else None for each in clocks.values()]
    known = sorted(error for error in errors if error is not None)
    return known[-1] + known[-2] if len(known) == len(errors) else None


class Buses(Closing):
    """Several clients as one, for use in one thread: `Buses({"rig": Client("tcp://rig:7350", …), "here": Client()})`.

    Cameras are called `host/device`. `buses["rig"]` is the client of one; `close`, or the end of a `with` block, closes them all.
    """

    def __init__(self, clients: Mapping[str, Client]) -> None:
        for host in clients:
            if not host or "/" in host:
                raise ValueError(f"A host is called by a name without a slash, not {host!r}.")
        self._clients = dict(clients)

    def __getitem__(self, host: str) -> Client:
        return self._clients[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    def __repr__(self) -> str:
        return f"<Buses {', '.join(self._clients)}>"

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _split(self, *names: str) -> dict[str, list[str]]:
        """Devices by host, the hosts in the order of their names."""
        found: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            host, slash, device = name.partition("/")
            if not slash or host not in self._clients:
                raise ValueError(f"{name!r} is not HOST/DEVICE of {', '.join(self._clients)}.")
            found.setdefault(host, []).append(device)
        return dict(sorted(found.items()))

    def devices(self, media: str | None = None, *, timeout: float | None = None) -> dict[str, Device]:
        """All devices, by `host/device`."""
        found = {host: client.devices(media, timeout=timeout) for host, client in self._clients.items()}
        return {f"{host}/{device.id}": device for host, devices in found.items() for device in devices}

    def clocks(self, *, timeout: float | None = None) -> dict[str, Clock]:
        """How right each machine says that its clock is."""
        return {host: run(client._open.ask(clock(), timeout)) for host, client in self._clients.items()}

    def lock(
        self, *names: str, wait: float = 0.0, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> HostLocks:
        """Locks devices of several machines, all or none, until the end of a `with` block or `release`.

        Each machine's are one lock, taken in the order of the hosts' names, so that two programs never wait for one another in a circle; `wait`
        is for each. Within the block `buses["rig"].configure(…)` and all else of the clients works under them.
        """
        locks = HostLocks()
        try:
            for host, devices in self._split(*names).items():
                lock = self._clients[host].lock(*devices, wait=wait, lease=lease, note=note, timeout=timeout)
                locks._take(host, lock)
        except BaseException:
            locks.release()
            raise
        return locks

    def frames(
        self, *names: str, rendition: str | None = None, limit: int | None = None, timeout: float = 10.0, errors: FrameErrors = "wait"
    ) -> HostFrames:
        """The newest frame of each device, in turn of the hosts. See `Client.frames`."""
        return HostFrames(_HostFeed(self._feeds(names, rendition, timeout, errors), limit))

    def frame_sets(
        self, *names: str, rendition: str | None = None, tolerance: float = 0.02, limit: int | None = None, timeout: float = 10.0
    ) -> HostSets:
        """Frames that were taken at the same time, by `timestamp.realtime`; the first name leads.

        `tolerance` is how many seconds a frame may be from the lead's. No two machines' clocks are the same: `uncertainty` of a set says
        how far off they may be, as NTP or PTP there tells the kernel.
        """
        feed = _HostFeed(self._feeds(names, rendition, timeout, "wait"), None)
        cores = {host: self._clients[host]._open for host in self._split(*names)}
        return HostSets(_SetFeed(feed, cores, list(dict.fromkeys(names)), tolerance, limit))

    def _feeds(
        self, names: tuple[str, ...], rendition: str | None, timeout: float, errors: FrameErrors
    ) -> dict[str, FrameFeed]:
        if not names:
            raise TypeError("The name of at least one device is needed: HOST/DEVICE.")
        return {
            host: FrameFeed(self._clients[host]._open, devices, rendition, None, timeout, errors)
            for host, devices in self._split(*names).items()
        }


class HostLocks:
    """The locks of several machines, by host."""

    def __init__(self) -> None:
        self.locks: dict[str, Lock] = {}
        self._stack = ExitStack()

    def _take(self, host: str, lock: Lock) -> None:
        self._stack.enter_context(lock)
        self.locks[host] = lock

    def renew(self, timeout: float | None = None) -> None:
        for lock in self.locks.values():
            lock.renew(timeout)

    def release(self) -> None:
        """Gives all back, the last one first."""
        self.locks = {}
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.locks = {}
        self._stack.__exit__(kind, error, trace)


class HostFrames(Following[HostFrame]):
    """An iterator over frames of several machines."""

    _feed: _HostFeed

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by `host/device`."""
        return self._feed.lost


class HostSets(Following[HostSet]):
    """An iterator over sets of frames of several machines."""


class _HostFeed(Feed[HostFrame]):
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
            for feed in self._feeds.values():
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
                except BaseException:
                    self._steps.pop(host, None)
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


class _SetFeed(Feed[HostSet]):
    def __init__(self, feed: _HostFeed, cores: Mapping[str, Any], names: list[str], tolerance: float, limit: int | None) -> None:
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
                self._waiting.append(HostSet(matched.frames, matched.offsets, matched.missing, uncertainty(clocks)))
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
