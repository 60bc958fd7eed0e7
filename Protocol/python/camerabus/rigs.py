# SPDX-License-Identifier: Apache-2.0
"""Profiles of settings, and rigs: named groups of devices. What both clients have of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Mapping, Sequence

from .core import AsyncOpened, Call, Opened, given
from .errors import ProtocolError
from .locks import LockBase, token_for
from .sets import AsyncFrameSets, FrameSets, SetFeed
from .steps import run
from .values import Configuration, _duration, _map, _of, _raw, _tuple, read, read_list


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFormat:
    """The format that a device had when its profile was saved."""

    pixelFormat: str = ""
    width: int = 0
    height: int = 0
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSettings:
    """How a device was set when its profile was saved. `device` is its id now; None: it is not there."""

    device: str | None = None
    uniqueID: str = ""
    name: str = ""
    driver: str = ""
    activeFormat: SavedFormat | None = _of(SavedFormat)
    frameDuration: Fraction | None = _duration()
    controls: Mapping[str, Any] = _map()
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Settings of devices under a name; `saved` is in seconds since 1970. Only the user `owner` and administrators
    replace or delete it; None: only administrators."""

    name: str = ""
    owner: int | None = None
    saved: int = 0
    devices: tuple[DeviceSettings, ...] = _tuple(lambda value: read(DeviceSettings, value))
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class RigDevice:
    """A device of a rig. `id` is None where it is not there."""

    id: str | None = None
    uniqueID: str = ""
    name: str | None = None
    connected: bool = False
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A named group of devices, the first of which leads. `tolerance` is in milliseconds; None: half of the lead's
    interval. `configured`: it stands in the configuration file. `complete`: all of its devices are connected. Only the
    user `owner` and administrators change or delete it; None: only administrators, or the configuration file.
    """

    name: str = ""
    owner: int | None = None
    devices: tuple[RigDevice, ...] = _tuple(lambda value: read(RigDevice, value))
    tolerance: float | None = None
    configured: bool = False
    complete: bool = False
    raw: Mapping[str, Any] = _raw()


def _member(result: Any, name: str) -> Any:
    if not isinstance(result, dict) or name not in result:
        raise ProtocolError(f"The bus answered without '{name}'.")
    return result[name]


def profiles() -> Call[list[Profile]]:
    return Call("profile.list", {}, lambda result: read_list(Profile, _member(result, "profiles")), True)


def save_profile(name: str, devices: Sequence[str]) -> Call[Profile]:
    params = {"name": name, "devices": list(devices)}
    return Call("profile.save", params, lambda result: read(Profile, _member(result, "profile")))


def apply_profile(
    name: str, devices: Sequence[str], mode: str | None, dry_run: bool, token: str | None
) -> Call[Configuration]:
    params = {"name": name, **given(devices=list(devices) or None, lock=token, mode=mode, dryRun=dry_run)}
    return Call("profile.apply", params, lambda result: read(Configuration, result))


def delete_profile(name: str) -> Call[None]:
    return Call("profile.delete", {"name": name}, lambda result: None)


def rigs() -> Call[list[Rig]]:
    return Call("rig.list", {}, lambda result: read_list(Rig, _member(result, "rigs")), True)


def set_rig(name: str, devices: Sequence[str], tolerance: float | None) -> Call[Rig]:
    params: dict[str, Any] = {"name": name, "devices": list(devices)}
    if tolerance is not None:
        params["tolerance"] = tolerance * 1000
    return Call("rig.set", params, lambda result: read(Rig, _member(result, "rig")))


def delete_rig(name: str) -> Call[None]:
    return Call("rig.delete", {"name": name}, lambda result: None)


class RigCalls(Opened):
    """Of `Client`: profiles, rigs and matched sets."""

    def profiles(self, *, timeout: float | None = None) -> list[Profile]:
        return run(self._open.ask(profiles(), timeout))

    def save_profile(self, name: str, *devices: str, timeout: float | None = None) -> Profile:
        """Keeps how devices (or those of rigs) are set now, under a name, in the place of what had it."""
        return run(self._open.ask(save_profile(name, devices), timeout))

    def apply_profile(
        self,
        name: str,
        *devices: str,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        """Sets devices as a profile has it, all or none; without any named, those that it was saved of.

        Another device gets the settings of the one like it, or the only ones that there are; `mode="nearest"` takes
        what comes nearest, and leaves out controls that it doesn't have. The lock is the one of the `with` block around
        that covers the devices named, unless given; without one they are locked for just this call.
        """
        token = token_for(self._open, devices, lock)
        return run(self._open.ask(apply_profile(name, devices, mode, dry_run, token), timeout))

    def delete_profile(self, name: str, *, timeout: float | None = None) -> None:
        run(self._open.ask(delete_profile(name), timeout))

    def rigs(self, *, timeout: float | None = None) -> list[Rig]:
        return run(self._open.ask(rigs(), timeout))

    def set_rig(
        self, name: str, *devices: str, tolerance: float | None = None, timeout: float | None = None
    ) -> Rig:
        """Makes a rig, or changes one; the first device leads. Its name then stands for its devices in `lock`,
        `configure`, `session`, profiles and rigs.

        `tolerance` is how many seconds a frame of a set may be from the lead's; None: half of the time between the
        lead's frames.
        """
        return run(self._open.ask(set_rig(name, devices, tolerance), timeout))

    def delete_rig(self, name: str, *, timeout: float | None = None) -> None:
        run(self._open.ask(delete_rig(name), timeout))

    def frame_sets(
        self, rig: str, *, rendition: str | None = None, limit: int | None = None, timeout: float = 10.0
    ) -> FrameSets:
        """Frames of a rig's cameras that were taken at the same time. When this returns, the subscription is in force.

        A frame that came after its set comes by itself (`late`). Whoever is slow misses sets, and never sees old ones;
        `lost` counts. `limit` ends the loop after so many sets, late frames not counted. Raises what keeps the first
        camera from giving frames, and `BusTimeout` when nothing comes for `timeout`; `next()` may be called again all
        the same.
        """
        return FrameSets(SetFeed(self._open, rig, rendition, limit, timeout))


class AsyncRigCalls(AsyncOpened):
    """Of `AsyncClient`: the same, to be awaited. See `Client` for what the calls do."""

    async def profiles(self, *, timeout: float | None = None) -> list[Profile]:
        return await self._run(self._open.ask(profiles(), timeout))

    async def save_profile(self, name: str, *devices: str, timeout: float | None = None) -> Profile:
        return await self._run(self._open.ask(save_profile(name, devices), timeout))

    async def apply_profile(
        self,
        name: str,
        *devices: str,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        token = token_for(self._open, devices, lock)
        return await self._run(self._open.ask(apply_profile(name, devices, mode, dry_run, token), timeout))

    async def delete_profile(self, name: str, *, timeout: float | None = None) -> None:
        await self._run(self._open.ask(delete_profile(name), timeout))

    async def rigs(self, *, timeout: float | None = None) -> list[Rig]:
        return await self._run(self._open.ask(rigs(), timeout))

    async def set_rig(
        self, name: str, *devices: str, tolerance: float | None = None, timeout: float | None = None
    ) -> Rig:
        return await self._run(self._open.ask(set_rig(name, devices, tolerance), timeout))

    async def delete_rig(self, name: str, *, timeout: float | None = None) -> None:
        await self._run(self._open.ask(delete_rig(name), timeout))

    def frame_sets(
        self, rig: str, *, rendition: str | None = None, limit: int | None = None, timeout: float = 10.0
    ) -> AsyncFrameSets:
        """The subscription is in force when this is entered (`async with`), or else with the first set."""
        return AsyncFrameSets(SetFeed(self._open, rig, rendition, limit, timeout), self._run)
