# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: the names of `Client`, to be awaited. Calls may run beside each other."""

from __future__ import annotations

import math
import os
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Generator, Mapping, Self, Sequence

from . import calls
from .calls import FormatWish, FrameRateWish
from .cameras import AsyncCameraMethods
from .closing import AsyncSubscribed, first_error
from .core import Core
from .errors import BusTimeout, CaptureError
from .following import AsyncFollowing
from .frame import Frame
from .library import AsyncLibraryCalls
from .locks import LockBase, token_for
from .mirroring import MirrorBase
from .movies import AsyncMovieCalls
from .rigs import AsyncRigCalls
from .session_frames import SessionFeed
from .sound import AsyncSoundCalls
from .sources import AsyncSourceMethods
from .sessions import AsyncSessionCalls
from .permission import AsyncPermissionCalls
from .photos import AsyncPhotoCalls
from .place import Key
from .steps import Runner, deadline, is_over
from .subscription import EventFeed, FrameErrors, FrameFeed
from .takes import AsyncTakeCalls
from .values import Change, Configuration, Control, Device, Event, Format, Hello, Locks, Reply, Usage


class AsyncClient(
    AsyncCameraMethods,
    AsyncLibraryCalls,
    AsyncMovieCalls,
    AsyncPermissionCalls,
    AsyncPhotoCalls,
    AsyncRigCalls,
    AsyncSessionCalls,
    AsyncSoundCalls,
    AsyncSourceMethods,
    AsyncTakeCalls,
):
    """A connection to the bus: `async with AsyncClient() as client:`. See `Client` for what the calls do."""

    def __init__(
        self,
        runtime_dir: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        server_key: str | os.PathLike[str] | None = None,
        key: Key | None = None,
    ) -> None:
        self._arguments = (runtime_dir, name, timeout, server_key, key)
        self._core: Core | None = None
        self._run = Runner()

    async def __aenter__(self) -> Self:
        self._core = core = Core(*self._arguments)
        try:
            core.hello = await self._run(core.ask(core.greeting()))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core or 'closed'}>"

    async def close(self) -> None:
        """Ends all connections; whatever still waits for something fails."""
        await self._run.close()
        if self._core is not None:
            self._core.close()
            self._core = None

    @property
    def _open(self) -> Core:
        if self._core is None:
            raise ValueError("This client is not open: use `async with AsyncClient() as client:`.")
        return self._core

    @property
    def hello(self) -> Hello:
        """What the bus said of itself when it was last asked."""
        assert self._open.hello is not None
        return self._open.hello

    @property
    def runtime_dir(self) -> str:
        """The directory of the bus's sockets."""
        return str(self._open.place)

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *, key: str | None = None
    ) -> Any:
        return (await self.request(method, params, timeout, key=key)).result

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *, key: str | None = None
    ) -> Reply:
        return await self._run(self._open.request(method, params, timeout, key))

    async def ping(self, timeout: float | None = None) -> None:
        await self._run(self._open.ask(calls.ping(), timeout))

    async def devices(
        self, media: str | None = None, *, type: str | None = None, position: str | None = None, timeout: float | None = None
    ) -> list[Device]:
        return await self._run(self._open.ask(calls.devices(media, type, position), timeout))

    async def device(self, device: str, *, timeout: float | None = None) -> Device:
        return await self._run(self._open.ask(calls.device(device), timeout))

    async def formats(self, device: str, *, timeout: float | None = None) -> list[Format]:
        return await self._run(self._open.ask(calls.formats(device), timeout))

    async def controls(self, device: str, *, timeout: float | None = None) -> dict[str, Control]:
        return await self._run(self._open.ask(calls.controls(device), timeout))

    async def who(self, device: str, *, timeout: float | None = None) -> Usage:
        return await self._run(self._open.ask(calls.who(device), timeout))

    async def rename(
        self, device: str, name: str | None, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> Device:
        token = token_for(self._open, [device], lock)
        return await self._run(self._open.ask(calls.rename(device, name, token), timeout))

    def lock(
        self, *devices: str, wait: float = 0.0, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> AsyncLock:
        """To be entered (`async with client.lock("cam0"):`) or awaited (`lock = await client.lock("cam0")`)."""
        return AsyncLock(self._open, devices, wait, lease, note, self._run, timeout)

    def take_over(
        self, *devices: str, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> AsyncLock:
        """To be entered or awaited, as `lock`."""
        return AsyncLock(self._open, devices, 0.0, lease, note, self._run, timeout, takes_over=True)

    async def locks(self, *, timeout: float | None = None) -> Locks:
        return await self._run(self._open.ask(calls.locks(), timeout))

    async def configure(
        self,
        changes: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        activeFormat: FormatWish | None = None,
        frameRate: FrameRateWish | None = None,
        controls: Mapping[str, Any] | None = None,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        batch = calls.changes(changes, activeFormat, frameRate, controls)
        token = token_for(self._open, [change.get("device", "") for change in batch], lock)
        return await self._run(self._open.ask(calls.configure(batch, mode, dry_run, token), timeout))

    async def set(
        self,
        device: str,
        values: Mapping[str, Any] | None = None,
        /,
        *,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
        **controls: Any,
    ) -> Configuration:
        token = token_for(self._open, [device], lock)
        return await self._run(self._open.ask(calls.set_controls(device, {**(values or {}), **controls}, token), timeout))

    def frames(
        self,
        *devices: str,
        rendition: str | None = None,
        limit: int | None = None,
        timeout: float = 10.0,
        errors: FrameErrors = "wait",
        shared: bool = False,
    ) -> AsyncFrames:
        """The subscription is in force when this is entered (`async with`), or else with the first frame."""
        return AsyncFrames(FrameFeed(self._open, devices, rendition, limit, timeout, errors, shared), self._run)

    def watch(self, *topics: str, timeout: float = math.inf) -> AsyncWatch:
        return AsyncWatch(EventFeed(self._open, topics, timeout), self._run)

    def mirror(self, prefix: str = "state/") -> AsyncMirror:
        """To be entered: `async with client.mirror() as mirror:`."""
        return AsyncMirror(self._open, prefix, self._run)


class AsyncLock(LockBase):
    def __init__(
        self,
        core: Core,
        devices: Sequence[str],
        wait: float,
        lease: float | None,
        note: str | None,
        run: Runner,
        timeout: float | None,
        takes_over: bool = False,
    ) -> None:
        super().__init__(core, devices, wait, lease, note, takes_over)
        self._run = run
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, Self]:
        return self._held().__await__()

    async def _held(self) -> Self:
        await self._run(self._acquire(self._timeout))
        return self

    async def renew(self, timeout: float | None = None) -> None:
        await self._run(self._renew(timeout))

    async def release(self, timeout: float | None = None) -> None:
        await self._run(self._release(timeout))

    async def __aenter__(self) -> Self:
        await self._held()
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        with first_error(error):
            await self.release()


class AsyncFrames(AsyncFollowing[Frame]):
    _feed: FrameFeed | SessionFeed

    @property
    def lost(self) -> dict[str, int]:
        return self._feed.lost

    @property
    def late(self) -> dict[str, int]:
        return self._feed.late

    @property
    def last_error(self) -> CaptureError | None:
        return self._feed.last_error


class AsyncWatch(AsyncFollowing[Event]):
    pass


class AsyncMirror(AsyncSubscribed, MirrorBase):
    def __init__(self, core: Core, prefix: str, run: Runner) -> None:
        super().__init__(core, prefix)
        self._run = run

    async def update(self, timeout: float = 0.0) -> list[Change]:
        return await self._run(self._update(deadline(timeout)))

    async def wait(self, condition: Callable[[Mapping[str, Any]], Any], timeout: float = 10.0) -> None:
        until = deadline(timeout)
        await self.update()
        while not condition(self):
            if is_over(until):
                raise BusTimeout(f"The state under {self.prefix} did not become what was waited for within {timeout:g} s.")
            await self._run(self._update(until))

    async def changes(self, timeout: float = math.inf) -> AsyncIterator[Change]:
        while changes := await self.update(timeout):
            for change in changes:
                yield change

    async def _opened(self) -> None:
        await self._run(self._open())

    def close(self) -> None:
        self._events.close()
