# SPDX-License-Identifier: Apache-2.0
"""Permission: what this user may do, how to ask for more, and how an administrator answers."""

from __future__ import annotations

import pwd
from typing import Any

from .core import AsyncOpened, Call, Core, Opened
from .errors import CaptureError, ProtocolError, Unauthorized
from .steps import Steps, run

FEATURE = "permission"


def user_id(user: int | str) -> int:
    """The number of a user, by number or by name."""
    if isinstance(user, int):
        return user
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise ValueError(f"There is no user {user!r} on this machine.") from None


def _object(result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise ProtocolError("The answer of the bus is invalid: it is not an object.")
    return result


def _statuses(result: Any) -> dict[str, str]:
    return dict(_object(result).get("authorization") or {})


def _status() -> Call[dict[str, str]]:
    return Call("authorization.status", {}, _statuses, True)


def _request(media: str, reason: str, wait: float) -> Call[str]:
    params = {"media": media, "reason": reason, "wait": wait * 1000}
    return Call("authorization.request", params, lambda result: str(_object(result).get("status")))


def _list() -> Call[dict[str, Any]]:
    return Call("authorization.list", {}, _object, True)


def _decide(method: str, user: int | str, media: tuple[str, ...], once: bool) -> Call[dict[str, Any]]:
    params: dict[str, Any] = {"uid": user_id(user), "media": list(media)}
    if once:
        params["once"] = True
    return Call(f"authorization.{method}", params, _object)


def _reset(user: int | str, media: tuple[str, ...]) -> Call[dict[str, Any]]:
    params: dict[str, Any] = {"uid": user_id(user)}
    if media:
        params["media"] = list(media)
    return Call("authorization.reset", params, _object)


def why_refused(uid: int, media: str, status: str) -> Unauthorized:
    """What is to be done about it."""
    message = {
        "notDetermined": f"uid {uid} has no permission for {media} yet. "
        f"An administrator allows it with 'camerabus allow {uid} {media}'.",
        "denied": f"An administrator has refused {media} to uid {uid}. "
        f"An administrator allows it with 'camerabus allow {uid} {media}'.",
    }.get(status, f"The configuration refuses {media} to uid {uid}. See [permission] in camerabus.toml.")
    return Unauthorized(message, {"status": status, "needed": media})


def lacking(core: Core, media: str = "video") -> Steps[Unauthorized | None]:
    """Why nothing of that medium comes, if that is for want of permission."""
    hello = core.hello
    if hello is None or FEATURE not in hello.features:
        return None
    try:
        status = (yield from core.ask(_status(), 2)).get(media, "authorized")
    except CaptureError:
        return None
    return None if status == "authorized" else why_refused(hello.you.get("uid", -1), media, status)


class PermissionCalls(Opened):
    """What `Client` has of it."""

    def authorization(self, *, timeout: float | None = None) -> dict[str, str]:
        """What this user may do, by medium (`video`, `audio`, `libraryAdd`, `library`): `notDetermined`, `restricted`,
        `denied` or `authorized`.
        """
        return run(self._open.ask(_status(), timeout))

    def request_authorization(
        self, media: str = "video", *, reason: str, wait: float = 0.0, timeout: float | None = None
    ) -> str:
        """Asks an administrator, who reads the reason; answers the status, `notDetermined` while nobody has answered
        within `wait`.
        """
        timeout = self._open.timeout + wait if timeout is None else timeout
        return run(self._open.ask(_request(media, reason, wait), timeout))

    def authorizations(self, *, timeout: float | None = None) -> dict[str, Any]:
        """The `requests` that wait and the `decisions`; for administrators, as all that follows."""
        return run(self._open.ask(_list(), timeout))

    def allow(
        self, user: int | str, *media: str, once: bool = False, timeout: float | None = None
    ) -> dict[str, Any]:
        """Allows a user, by number or name, `video` or what else is named; with `once` until it has left the bus."""
        return run(self._open.ask(_decide("grant", user, media or ("video",), once), timeout))

    def deny(self, user: int | str, *media: str, once: bool = False, timeout: float | None = None) -> dict[str, Any]:
        """Refuses it, or takes it back: within a second no picture comes to that user any more."""
        return run(self._open.ask(_decide("deny", user, media or ("video",), once), timeout))

    def reset_authorization(self, user: int | str, *media: str, timeout: float | None = None) -> dict[str, Any]:
        """Forgets what was decided and asked about a user, who may ask again."""
        return run(self._open.ask(_reset(user, media), timeout))


class AsyncPermissionCalls(AsyncOpened):
    """The same of `AsyncClient`."""

    async def authorization(self, *, timeout: float | None = None) -> dict[str, str]:
        return await self._run(self._open.ask(_status(), timeout))

    async def request_authorization(
        self, media: str = "video", *, reason: str, wait: float = 0.0, timeout: float | None = None
    ) -> str:
        timeout = self._open.timeout + wait if timeout is None else timeout
        return await self._run(self._open.ask(_request(media, reason, wait), timeout))

    async def authorizations(self, *, timeout: float | None = None) -> dict[str, Any]:
        return await self._run(self._open.ask(_list(), timeout))

    async def allow(
        self, user: int | str, *media: str, once: bool = False, timeout: float | None = None
    ) -> dict[str, Any]:
        return await self._run(self._open.ask(_decide("grant", user, media or ("video",), once), timeout))

    async def deny(
        self, user: int | str, *media: str, once: bool = False, timeout: float | None = None
    ) -> dict[str, Any]:
        return await self._run(self._open.ask(_decide("deny", user, media or ("video",), once), timeout))

    async def reset_authorization(
        self, user: int | str, *media: str, timeout: float | None = None
    ) -> dict[str, Any]:
        return await self._run(self._open.ask(_reset(user, media), timeout))
