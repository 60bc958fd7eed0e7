# SPDX-License-Identifier: Apache-2.0
"""Locks on devices, in the form that both clients build on."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar
from numbers import Real
from typing import Any, Mapping, Sequence

from . import leases
from .core import Call, Core
from .errors import BusGone, LockLost, LockRequired
from .leases import Lease, Renewer
from .steps import Steps, deadline, is_over

VARIABLE = "CAMERABUS_LOCK"

# What the protocol takes, in seconds.
LONGEST_WAIT = 86_400.0
LEASES = (0.1, 86_400.0)

# The locks whose `with` block we are in, innermost last; of a task in asyncio, each has its own.
_active: ContextVar[tuple[LockBase, ...]] = ContextVar("camerabus_locks", default=())


class LockBase:
    """A lock on devices. `token` is a secret: whoever shows it may use the lock."""

    def __init__(
        self,
        core: Core,
        devices: Sequence[str],
        wait: float,
        lease: float | None,
        note: str | None,
        takes_over: bool = False,
    ) -> None:
        check_seconds("wait", wait, 0, LONGEST_WAIT, "0 does not wait")
        if lease is not None:
            check_seconds("lease", lease, *LEASES, "None holds it as long as this process lives")
        self._core = core
        self._method = "device.takeOver" if takes_over else "device.lock"
        self._wait = wait
        self._params: dict[str, Any] = {"devices": list(devices)}
        if wait:
            self._params["wait"] = round(wait * 1000)
        if lease is not None:
            self._params["lease"] = round(lease * 1000)
        if note is not None:
            self._params["note"] = note
        self.devices = tuple(devices)
        # Names of rigs stand for their devices.
        self._names = frozenset(devices)
        self.token = ""
        self._offered = "" if takes_over else os.environ.get(VARIABLE, "")
        #: True: the lock is that of another process, which handed it on as `$CAMERABUS_LOCK` and will end it.
        self.joined = False
        #: Rises with every lock that the bus gives.
        self.fence: int | None = None
        # Over TCP every lock has a lease; who asked for one renews it by hand.
        self._seconds = lease
        self._lease: Lease | None = None
        self._renewer: Renewer | None = None
        self.holder: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        # Without the token.
        state = "joined" if self.joined else "held" if self.token else "not held"
        return f"<{type(self).__name__} of {', '.join(self.devices)}: {state}, fence {self.fence}>"

    def _acquire(self, timeout: float | None) -> Steps[None]:
        if self.token or (self._offered and (yield from self._join(timeout))):
            return
        call: Call[dict[str, Any]] = Call(self._method, self._params, dict)
        limit = self._wait + self._core.timeout if timeout is None else timeout

        def undo(granted: dict[str, Any]) -> list[Call[Any]]:
            return [Call("device.unlock", {"lock": granted.get("lock", "")}, dict)]

        result = yield from self._core.ask_for(call, undo, limit)
        self.token = str(result.get("lock", ""))
        self._learn(result)
        if self._core.place.is_remote and self.token:
            seconds = leases.LEASE if self._seconds is None else self._seconds
            self._lease = Lease(seconds, self._core.place, self.fence)
            self._core.leases[self.token] = self._lease
            if self._seconds is None:
                self._renewer = Renewer(self._core, self.token, self._lease)
                self._core.helpers.append(self._renewer)

    @property
    def lost(self) -> LockLost | None:
        """Why the lock is over, as far as is known without asking: of a bus on another machine, whose locks last as
        long as they are renewed. None: it isn't known to be.
        """
        return self._lease.lost if self._lease is not None else None

    def _learn(self, result: Mapping[str, Any]) -> None:
        self.fence = result.get("fence")
        self.holder = result.get("holder") or {}
        self.devices = tuple(result.get("devices", self.devices))

    def _join(self, timeout: float | None) -> Steps[bool]:
        """Joins the lock that this program was started under, if it covers the requested devices; False: it covers
        other devices.
        """
        try:
            result = yield from self._core.ask(Call("device.renew", {"lock": self._offered}, dict, True), timeout)
        except LockLost as lost:
            message = f"The lock in ${VARIABLE} of this program has ended or never existed."
            raise LockLost(message, lost.data) from None
        wanted: Sequence[str] = self.devices
        if (
            not set(wanted) <= set(result.get("devices", wanted))
            and self._core.hello
            and "rigs" in self._core.hello.features
        ):
            answer = yield from self._core.ask(Call("rig.list", {}, dict, True), timeout)
            rigs = {
                rig["name"]: [device["id"] for device in rig["devices"] if device["id"]]
                for rig in answer.get("rigs", [])
            }
            wanted = [device for name in wanted for device in rigs.get(name, [name])]
        covered: list[str] = []
        missing: list[str] = []
        for device in dict.fromkeys(wanted):
            (covered if device in result.get("devices", self.devices) else missing).append(device)
        if missing and covered:
            raise LockRequired(
                f"The lock in ${VARIABLE} of this program covers {', '.join(covered)} but not {', '.join(missing)}. "
                "A second lock "
                "would have to wait for the first one. Lock all devices with the first lock.",
                {"devices": missing},
            )
        if not missing:
            self.token, self.joined = self._offered, True
            self._learn(result)
        return self.joined

    def _renew(self, timeout: float | None) -> Steps[None]:
        asked = time.monotonic()
        yield from self._core.ask(Call("device.renew", {"lock": self.token}, dict, True), timeout)
        if self._lease is not None:
            self._lease.renewed(asked)

    def _release(self, timeout: float | None) -> Steps[None]:
        token, self.token = self.token, ""
        if self._renewer is not None:
            self._renewer.stop()
            if self._renewer in self._core.helpers:
                self._core.helpers.remove(self._renewer)
            self._renewer = None
        try:
            if token and not self.joined:
                yield from self._unlock(token, timeout)
        finally:
            self._core.leases.pop(token, None)

    def _unlock(self, token: str, timeout: float | None) -> Steps[None]:
        call: Call[dict[str, Any]] = Call("device.unlock", {"lock": token}, dict)
        until = deadline(self._core.timeout if timeout is None else timeout)
        was_lost = False
        while True:
            try:
                yield from self._core.ask(call, max(0.0, until - time.monotonic()))
                return
            except BusGone:
                # The next bus still has the lock, unless this one had ended it.
                was_lost = True
                if is_over(until):
                    raise
            except LockLost:
                if not was_lost:
                    raise
                return

    def _enter(self) -> None:
        _active.set((*_active.get(), self))

    def _leave(self) -> None:
        _active.set(tuple(lock for lock in _active.get() if lock is not self))


def check_seconds(name: str, value: float, least: float, most: float, hint: str) -> None:
    """Refuses what is no number of seconds within these bounds, before the bus does so in its own units.

    Raises `ValueError`, or `TypeError` for what is no number."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        kind = ValueError if is_number else TypeError
        raise kind(f"{name} is in seconds, from {least:g} to {most:g} ({hint}), not {value!r}")


def token_for(core: Core, devices: Sequence[str], lock: LockBase | str | None) -> str | None:
    """The token to change these devices with: the one given, else that of the innermost active lock on all of them,
    else `$CAMERABUS_LOCK`, else none.
    """
    if lock is not None:
        return lock if isinstance(lock, str) else lock.token
    for active in reversed(_active.get()):
        if active._core is core and active.token and set(devices) <= active._names | set(active.devices):
            return active.token
    return os.environ.get(VARIABLE) or None
