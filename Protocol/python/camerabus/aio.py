# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: the names of `Client`, to be awaited. Calls may run beside each other."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Mapping, Self

from . import calls
from .cameras import AsyncCameraMethods
from .core import Core
from .devices import AsyncDeviceCalls
from .frames import AsyncFrameCalls
from .library import AsyncLibraryCalls
from .locking import AsyncLockCalls
from .movie_calls import AsyncMovieCalls
from .permission import AsyncPermissionCalls
from .photos import AsyncPhotoCalls
from .place import Key
from .rigs import AsyncRigCalls
from .sessions import AsyncSessionCalls
from .sound import AsyncSoundCalls
from .sources import AsyncSourceMethods
from .steps import Runner
from .takes import AsyncTakeCalls
from .values import Hello, Reply
from .watching import AsyncWatchCalls


class AsyncClient(
    AsyncCameraMethods,
    AsyncDeviceCalls,
    AsyncFrameCalls,
    AsyncLibraryCalls,
    AsyncLockCalls,
    AsyncMovieCalls,
    AsyncPermissionCalls,
    AsyncPhotoCalls,
    AsyncRigCalls,
    AsyncSessionCalls,
    AsyncSoundCalls,
    AsyncSourceMethods,
    AsyncTakeCalls,
    AsyncWatchCalls,
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
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *,
        key: str | None = None,
    ) -> Any:
        return (await self.request(method, params, timeout, key=key)).result

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *,
        key: str | None = None,
    ) -> Reply:
        return await self._run(self._open.request(method, params, timeout, key))

    async def ping(self, timeout: float | None = None) -> None:
        await self._run(self._open.ask(calls.ping(), timeout))
