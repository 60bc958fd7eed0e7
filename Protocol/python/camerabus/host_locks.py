# SPDX-License-Identifier: Apache-2.0
"""Locks of devices of several machines, all or none, for both clients."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generator, Generic, Mapping, Self, TypeVar

from .closing import first_error
from .errors import CaptureError
from .host_frames import at
from .locking import AsyncLock, Lock
from .locks import LockBase
from .steps import Runner, Steps, run

L = TypeVar("L", bound=LockBase)


class HostLocksBase(Generic[L]):
    """The locks of several machines, each machine's one lock, taken one after the other."""

    def __init__(self, wanted: Mapping[str, L], timeout: float | None) -> None:
        self._wanted = wanted
        self._timeout = timeout
        #: Those that are held, by host.
        self.locks: dict[str, L] = {}

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} "
            f"{', '.join(f'{host}: {lock!r}' for host, lock in self.locks.items()) or 'not held'}>"
        )

    def _acquire(self) -> Steps[None]:
        try:
            for host, lock in self._wanted.items():
                if host in self.locks:
                    continue
                with at(host):
                    yield from lock._acquire(self._timeout)
                lock._enter()
                self.locks[host] = lock
        except GeneratorExit:
            raise
        except BaseException:
            try:
                yield from self._release(None)
            except CaptureError:
                pass
            raise

    def _renew(self, timeout: float | None) -> Steps[None]:
        for host, lock in self.locks.items():
            with at(host):
                yield from lock._renew(timeout)

    def _release(self, timeout: float | None) -> Steps[None]:
        first: BaseException | None = None
        while self.locks:
            host, lock = self.locks.popitem()
            lock._leave()
            try:
                with at(host):
                    yield from lock._release(timeout)
            except GeneratorExit:
                raise
            except BaseException as error:
                first = first or error
        if first is not None:
            raise first


class HostLocks(HostLocksBase[Lock]):
    """The locks of several machines, by host: held from the start, until the end of a `with` block or `release`."""

    def renew(self, timeout: float | None = None) -> None:
        run(self._renew(timeout))

    def release(self, timeout: float | None = None) -> None:
        """Gives all back, the last one first. Where that goes wrong with some, the others are given back all the same.
        """
        run(self._release(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            self.release()


class AsyncHostLocks(HostLocksBase[AsyncLock]):
    """The same for asyncio: to be entered (`async with buses.lock(…):`) or awaited."""

    def __init__(self, wanted: Mapping[str, AsyncLock], timeout: float | None, runner: Runner) -> None:
        super().__init__(wanted, timeout)
        self._run = runner

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def renew(self, timeout: float | None = None) -> None:
        await self._run(self._renew(timeout))

    async def release(self, timeout: float | None = None) -> None:
        await self._run(self._release(timeout))

    async def __aenter__(self) -> Self:
        await self._run(self._acquire())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            await self.release()
