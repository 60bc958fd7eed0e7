# SPDX-License-Identifier: Apache-2.0
"""Several buses as one: cameras of several machines, each called `host/device`; for both clients."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Generic, Iterator, Mapping, Self, TypeVar

from . import calls
from .aio import AsyncClient
from .client import Client
from .closing import Closing
from .errors import DeviceNotFound
from .following import AsyncFollowing, Following
from .frame_feed import FrameErrors, FrameFeed
from .host_frames import Clock, HostFeed, HostFrame, HostSet, HostSetFeed, at, clock
from .host_locks import AsyncHostLocks, HostLocks
from .locking import AsyncLock, Lock
from .steps import Runner, Steps, run
from .values import Device

C = TypeVar("C", Client, AsyncClient)


class HostDevices(dict[str, Device]):
    """Devices by `host/device`. Raises `DeviceNotFound` of a name that none has."""

    def __missing__(self, name: str) -> Device:
        raise DeviceNotFound(f"There is no device '{name}'. Known: {', '.join(self) or 'none'}.", {"device": name})


class BusesBase(Generic[C]):
    """What both kinds have: the clients by host, and what is made of their answers."""

    def __init__(self, clients: Mapping[str, C]) -> None:
        for host in clients:
            if not host or "/" in host:
                raise ValueError(f"A host is called by a name without a slash, not {host!r}.")
        self._clients: dict[str, C] = dict(clients)
        for host, client in clients.items():
            self._name(host, client)

    @staticmethod
    def _name(host: str, client: Client | AsyncClient) -> None:
        if client._core is not None:
            client._core.host = host

    def __getitem__(self, host: str) -> C:
        try:
            return self._clients[host]
        except KeyError:
            raise KeyError(f"There is no bus {host!r}. Known: {', '.join(self._clients)}.") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._clients)}>"

    def _split(self, *names: str) -> dict[str, list[str]]:
        """Devices by host, the hosts in the order of their names."""
        found: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            host, slash, device = name.partition("/")
            if not slash or host not in self._clients:
                raise ValueError(f"{name!r} is not HOST/DEVICE of {', '.join(self._clients)}.")
            found.setdefault(host, []).append(device)
        return dict(sorted(found.items()))

    def _devices(self, media: str | None, timeout: float | None) -> Steps[HostDevices]:
        found = HostDevices()
        for host, client in self._clients.items():
            with at(host):
                devices = yield from client._open.ask(calls.devices(media, None, None), timeout)
            found.update({f"{host}/{device.id}": device for device in devices})
        return found

    def _clocks(self, timeout: float | None) -> Steps[dict[str, Clock]]:
        found = {}
        for host, client in self._clients.items():
            with at(host):
                found[host] = yield from client._open.ask(clock(), timeout)
        return found

    def _frames(
        self, names: tuple[str, ...], rendition: str | None, limit: int | None, timeout: float, errors: FrameErrors
    ) -> HostFeed:
        if not names:
            raise TypeError("Name at least one device: HOST/DEVICE.")
        feeds = {
            host: FrameFeed(self._clients[host]._open, devices, rendition, None, timeout, errors)
            for host, devices in self._split(*names).items()
        }
        return HostFeed(feeds, limit)

    def _sets(
        self, names: tuple[str, ...], rendition: str | None, tolerance: float, limit: int | None, timeout: float
    ) -> HostSetFeed:
        feed = self._frames(names, rendition, None, timeout, "wait")
        cores = {host: self._clients[host]._open for host in self._split(*names)}
        return HostSetFeed(feed, cores, list(dict.fromkeys(names)), tolerance, limit)


class HostFrames(Following[HostFrame]):
    """An iterator over frames of several machines."""

    _feed: HostFeed

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by `host/device`."""
        return self._feed.lost


class AsyncHostFrames(AsyncFollowing[HostFrame]):
    """The same, for asyncio."""

    _feed: HostFeed

    @property
    def lost(self) -> dict[str, int]:
        return self._feed.lost


class HostSets(Following[HostSet]):
    """An iterator over sets of frames of several machines."""


class AsyncHostSets(AsyncFollowing[HostSet]):
    """The same, for asyncio."""


class Buses(BusesBase[Client], Closing):
    """Several clients as one, for use in one thread: `Buses({"rig": Client("tcp://rig:7350", …), "here": Client()})`.

    Cameras are called `host/device`. `buses["rig"]` is the client of one; `close`, or the end of a `with` block, closes
    them all. What goes wrong says with which of them (`host` of the error). `AsyncBuses` has the same names.
    """

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def devices(self, media: str | None = None, *, timeout: float | None = None) -> HostDevices:
        """All devices, by `host/device`."""
        return run(self._devices(media, timeout))

    def clocks(self, *, timeout: float | None = None) -> dict[str, Clock]:
        """How right each machine says that its clock is."""
        return run(self._clocks(timeout))

    def lock(
        self, *names: str, wait: float = 0.0, lease: float | None = None, note: str | None = None,
        timeout: float | None = None,
    ) -> HostLocks:
        """Locks devices of several machines, all or none, until the end of a `with` block or `release`.

        Each machine's are one lock, taken in the order of the hosts' names, so that two programs never wait for one
        another in a circle; `wait` is for each. Within the block `buses["rig"].configure(…)` and all else of the
        clients works under them.
        """
        wanted = {
            host: Lock(self._clients[host]._open, devices, wait, lease, note)
            for host, devices in self._split(*names).items()
        }
        locks = HostLocks(wanted, timeout)
        run(locks._acquire())
        return locks

    def frames(
        self, *names: str, rendition: str | None = None, limit: int | None = None, timeout: float = 10.0,
        errors: FrameErrors = "wait",
    ) -> HostFrames:
        """The newest frame of each device, in turn of the hosts. See `Client.frames`."""
        return HostFrames(self._frames(names, rendition, limit, timeout, errors))

    def frame_sets(
        self, *names: str, rendition: str | None = None, tolerance: float = 0.02, limit: int | None = None,
        timeout: float = 10.0,
    ) -> HostSets:
        """Frames that were taken at the same time, by `timestamp.realtime`; the first name leads.

        `tolerance` is how many seconds a frame may be from the lead's. No two machines' clocks are the same:
        `uncertainty` of a set says how far off they may be, as NTP or PTP there tells the kernel, and `doubt` the same
        in words.
        """
        return HostSets(self._sets(names, rendition, tolerance, limit, timeout))


class AsyncBuses(BusesBase[AsyncClient]):
    """The same for asyncio: `async with AsyncBuses({"rig": AsyncClient("tcp://rig:7350", …), "here": AsyncClient()}) as
    buses:`.

    Entering it connects those clients that aren't yet; leaving it closes them all. See `Buses` for what the calls do.
    """

    def __init__(self, clients: Mapping[str, AsyncClient]) -> None:
        super().__init__(clients)
        self._run = Runner()

    async def __aenter__(self) -> Self:
        connecting = (self._connect(host, client) for host, client in self._clients.items())
        try:
            for problem in await asyncio.gather(*connecting, return_exceptions=True):
                if problem is not None:
                    raise problem
        except BaseException:
            await self.close()
            raise
        return self

    async def _connect(self, host: str, client: AsyncClient) -> None:
        with at(host):
            if client._core is None:
                await client.__aenter__()
        self._name(host, client)
        # What waits for several ends with one of them.
        client._run.others.append(self._run)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._run.close()
        for client in self._clients.values():
            await client.close()

    async def devices(self, media: str | None = None, *, timeout: float | None = None) -> HostDevices:
        return await self._run(self._devices(media, timeout))

    async def clocks(self, *, timeout: float | None = None) -> dict[str, Clock]:
        return await self._run(self._clocks(timeout))

    def lock(
        self, *names: str, wait: float = 0.0, lease: float | None = None, note: str | None = None,
        timeout: float | None = None,
    ) -> AsyncHostLocks:
        """To be entered (`async with buses.lock("rig/cam0"):`) or awaited."""
        wanted = {
            host: AsyncLock(self._clients[host]._open, devices, wait, lease, note, self._run, timeout)
            for host, devices in self._split(*names).items()
        }
        return AsyncHostLocks(wanted, timeout, self._run)

    def frames(
        self, *names: str, rendition: str | None = None, limit: int | None = None, timeout: float = 10.0,
        errors: FrameErrors = "wait",
    ) -> AsyncHostFrames:
        return AsyncHostFrames(self._frames(names, rendition, limit, timeout, errors), self._run)

    def frame_sets(
        self, *names: str, rendition: str | None = None, tolerance: float = 0.02, limit: int | None = None,
        timeout: float = 10.0,
    ) -> AsyncHostSets:
        return AsyncHostSets(self._sets(names, rendition, tolerance, limit, timeout), self._run)
