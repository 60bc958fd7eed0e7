# SPDX-License-Identifier: Apache-2.0
"""Devices: which there are, what they can do, who has them, and what they are called."""

from __future__ import annotations

from . import calls
from .core import AsyncOpened, Call, Core, Opened
from .locks import LockBase, token_for
from .steps import run
from .values import Control, Device, Format, Usage


def _rename(core: Core, device: str, name: str | None, lock: LockBase | str | None) -> Call[Device]:
    return calls.rename(device, name, token_for(core, [device], lock))


class DeviceCalls(Opened):
    """What `Client` has of devices."""

    def devices(
        self, media: str | None = None, *, type: str | None = None, position: str | None = None,
        timeout: float | None = None,
    ) -> list[Device]:
        """All devices, or only those of a medium (`video`, `audio`), a type or a position, in the order in which they
        are offered: the first that is `connected` is the default device.
        """
        return run(self._open.ask(calls.devices(media, type, position), timeout))

    def device(self, device: str, *, timeout: float | None = None) -> Device:
        return run(self._open.ask(calls.device(device), timeout))

    def formats(self, device: str, *, timeout: float | None = None) -> list[Format]:
        return run(self._open.ask(calls.formats(device), timeout))

    def controls(self, device: str, *, timeout: float | None = None) -> dict[str, Control]:
        """The device's controls by name, each with its range and value."""
        return run(self._open.ask(calls.controls(device), timeout))

    def who(self, device: str, *, timeout: float | None = None) -> Usage:
        """Who holds or streams the device: clients of the bus, and programs beside it."""
        return run(self._open.ask(calls.who(device), timeout))

    def rename(
        self, device: str, name: str | None, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> Device:
        """Gives a device another id, which it keeps; with None it goes by the one that the bus gives it. Answers it as
        it is then.

        A lock on it stays in force; subscriptions are to be made anew under the new id.
        """
        return run(self._open.ask(_rename(self._open, device, name, lock), timeout))


class AsyncDeviceCalls(AsyncOpened):
    """What `AsyncClient` has of devices. See `Client` for what the calls do."""

    async def devices(
        self, media: str | None = None, *, type: str | None = None, position: str | None = None,
        timeout: float | None = None,
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
        return await self._run(self._open.ask(_rename(self._open, device, name, lock), timeout))
