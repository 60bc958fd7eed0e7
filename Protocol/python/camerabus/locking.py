# SPDX-License-Identifier: Apache-2.0
"""Locks, and what is changed under them, for both clients."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generator, Mapping, Self, Sequence, TypeAlias

from . import calls
from .calls import FormatWish, FrameRateWish
from .closing import first_error
from .core import AsyncOpened, Call, Core, Opened
from .locks import LockBase, token_for
from .steps import Runner, run
from .values import Configuration, Locks

#: One device by its id, or changes ({device, activeFormat, …}).
ChangeWish: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def _changes(
    core: Core,
    wanted: ChangeWish,
    activeFormat: FormatWish | None,
    frameRate: FrameRateWish | None,
    controls: Mapping[str, Any] | None,
    mode: str | None,
    dry_run: bool,
    lock: LockBase | str | None,
) -> Call[Configuration]:
    batch = calls.changes(wanted, activeFormat, frameRate, controls)
    token = token_for(core, [change.get("device", "") for change in batch], lock)
    return calls.configure(batch, mode, dry_run, token)


def _controls(core: Core, device: str, values: Mapping[str, Any], lock: LockBase | str | None) -> Call[Configuration]:
    return calls.set_controls(device, values, token_for(core, [device], lock))


class Lock(LockBase):
    """A lock on devices, ended by `release` or by leaving its `with` block, in which all changes use it."""

    def renew(self, timeout: float | None = None) -> None:
        """Starts the lease anew."""
        run(self._renew(timeout))

    def release(self, timeout: float | None = None) -> None:
        run(self._release(timeout))

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        with first_error(error):
            self.release()


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


class LockCalls(Opened):
    """What `Client` has of locks, and of changes."""

    def lock(
        self, *devices: str, wait: float = 0.0, lease: float | None = None, note: str | None = None,
        timeout: float | None = None,
    ) -> Lock:
        """Locks devices for configuration, all or none; ends with the `with` block, or with this process.

        Raises `DeviceBusy`, which after a `wait` is its kind `LockTimeout`; both have the `holder`. With a `lease` it
        ends by itself after that time unless renewed. Times are seconds.

        Within `camerabus lock … -- program` ($CAMERABUS_LOCK) the program joins that lock, and leaves it as it is, if
        it covers all of the devices. If it covers some of them only, that is `LockRequired`; if it is over, `LockLost`.
        """
        lock = Lock(self._open, devices, wait, lease, note)
        run(lock._acquire(timeout))
        return lock

    def take_over(
        self, *devices: str, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> Lock:
        """Takes devices from whoever has them locked; for administrators. The loser's lock ends as a whole, and it is
        told.
        """
        lock = Lock(self._open, devices, 0.0, lease, note, takes_over=True)
        run(lock._acquire(timeout))
        return lock

    def locks(self, *, timeout: float | None = None) -> Locks:
        """All locks, and who waits for one."""
        return run(self._open.ask(calls.locks(), timeout))

    def configure(
        self,
        changes: ChangeWish,
        *,
        activeFormat: FormatWish | None = None,
        frameRate: FrameRateWish | None = None,
        controls: Mapping[str, Any] | None = None,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        """Changes all that is named, or nothing: one device by its id, or a list of changes ({device, activeFormat,
        …}).

        `mode="nearest"` takes what comes nearest instead of refusing; `dry_run` only says what would come of it. The
        lock is the one of the `with` block around, unless given.
        """
        call = _changes(self._open, changes, activeFormat, frameRate, controls, mode, dry_run, lock)
        return run(self._open.ask(call, timeout))

    def set(
        self,
        device: str,
        values: Mapping[str, Any] | None = None,
        /,
        *,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
        **controls: Any,
    ) -> Configuration:
        """Sets controls: `client.set("cam0", brightness=10)`. Outside of a lock it takes one for just this call."""
        call = _controls(self._open, device, {**(values or {}), **controls}, lock)
        return run(self._open.ask(call, timeout))


class AsyncLockCalls(AsyncOpened):
    """What `AsyncClient` has of locks, and of changes. See `Client` for what the calls do."""

    def lock(
        self, *devices: str, wait: float = 0.0, lease: float | None = None, note: str | None = None,
        timeout: float | None = None,
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
        changes: ChangeWish,
        *,
        activeFormat: FormatWish | None = None,
        frameRate: FrameRateWish | None = None,
        controls: Mapping[str, Any] | None = None,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        call = _changes(self._open, changes, activeFormat, frameRate, controls, mode, dry_run, lock)
        return await self._run(self._open.ask(call, timeout))

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
        call = _controls(self._open, device, {**(values or {}), **controls}, lock)
        return await self._run(self._open.ask(call, timeout))
