# SPDX-License-Identifier: Apache-2.0
"""Camera controls: what `Client` and `AsyncClient` have for focus, exposure and zoom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from .core import AsyncOpened, Call, Opened, given
from .errors import ProtocolError
from .locks import LockBase, token_for
from .steps import run
from .values import Configuration, read, read_list

#: (x, y) in the unrotated, unmirrored picture: (0, 0) is its top left, (1, 1) its bottom right.
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraControl:
    """A control of the capture model (`focusMode`, `videoZoomFactor`, …) as a camera supports it. `value` is None if it
    is unknown.
    """

    name: str = ""
    #: `word`, `flag`, `number`, `point`, `gains` or `rectangle`.
    type: str = ""
    readOnly: bool = False
    choices: tuple[str, ...] = field(default=(), metadata={"read": tuple})
    minimum: float | None = None
    maximum: Any = None
    #: Of a number that has only some values.
    values: tuple[float, ...] = field(default=(), metadata={"read": tuple})
    #: Of a rectangle: {x, y, width, height} that it lies in, and where it is unless somebody sets it.
    bounds: Mapping[str, int] | None = None
    defaultRectangle: Mapping[str, int] | None = None
    #: `s`, `K` or `EV`.
    unit: str | None = None
    #: The driver's controls that it is made of.
    sources: tuple[str, ...] = field(default=(), metadata={"read": tuple})
    value: Any = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def _controls(result: Any) -> dict[str, CameraControl]:
    if not isinstance(result, dict):
        raise ProtocolError("The answer of the bus is invalid: it is not an object.")
    return {control.name: control for control in read_list(CameraControl, result.get("cameraControls", []))}


def _call(method: str, device: str, token: str | None, convert: Callable[[Any], Any], **params: Any) -> Call[Any]:
    return Call(method, {"device": device, **given(**params, lock=token)}, convert)


def _point(point: Point) -> dict[str, float]:
    x, y = point
    return {"x": x, "y": y}


def _configuration(result: Any) -> Configuration:
    return read(Configuration, result)


class _Calls(Opened):
    """What both clients ask."""

    def _ask_controls(self, device: str) -> Call[dict[str, CameraControl]]:
        return Call("device.controls", {"device": device}, _controls, True)

    def _ask_focus(self, device: str, point: Point, lock: LockBase | str | None) -> Call[Configuration]:
        return _call("device.focus", device, token_for(self._open, [device], lock), _configuration, point=_point(point))

    def _ask_expose(self, device: str, point: Point, then_lock: bool, lock: LockBase | str | None) -> Call[bool]:
        return _call(
            "device.expose", device, token_for(self._open, [device], lock), lambda result: bool(result.get("willLock")),
            point=_point(point), thenLock=then_lock,
        )  # fmt: skip

    def _ask_reset(self, device: str, lock: LockBase | str | None) -> Call[tuple[str, ...]]:
        token = token_for(self._open, [device], lock)
        return _call("device.resetFocusAndExposure", device, token, lambda result: tuple(result.get("reset", ())))

    def _ask_ramp(
        self, device: str, factor: float | None, value: float | None, rate: float | None, lock: LockBase | str | None
    ) -> Call[float]:
        if (factor is None) == (value is None):
            raise TypeError("a zoom ramp needs either a factor or a value")
        token = token_for(self._open, [device], lock)
        seconds: Callable[[Any], float] = lambda result: result.get("milliseconds", 0) / 1000
        return _call("device.zoomRamp", device, token, seconds, factor=factor, value=value, rate=rate)

    def _ask_cancel(self, device: str, lock: LockBase | str | None) -> Call[None]:
        return _call("device.cancelZoomRamp", device, token_for(self._open, [device], lock), lambda result: None)


class CameraMethods(_Calls):
    """Part of `Client`. What changes something takes a lock for just that call, outside of a `with client.lock(…)`
    block.
    """

    def camera_controls(self, device: str, *, timeout: float | None = None) -> dict[str, CameraControl]:
        """The controls of the capture model that the device has, by name. Their values are also in
        `device(…).controls`, and `set` and `configure` take them beside the driver's.
        """
        return run(self._open.ask(self._ask_controls(device), timeout))

    def focus(
        self, device: str, point: Point, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> Configuration:
        """Focuses once at a point."""
        return run(self._open.ask(self._ask_focus(device, point, lock), timeout))

    def expose(
        self, device: str, point: Point, *, then_lock: bool = False, lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Exposes for a point; with `then_lock` that exposure is locked when it has settled. Answers whether it will
        be: not where the camera can't. If another program has the device locked by then, the event `exposureLockFailed`
        says so.
        """
        return run(self._open.ask(self._ask_expose(device, point, then_lock, lock), timeout))

    def reset_focus_and_exposure(
        self, device: str, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> tuple[str, ...]:
        """Continuous and centred again, as far as the camera can; answers the controls that were set."""
        return run(self._open.ask(self._ask_reset(device, lock), timeout))

    def zoom_ramp(
        self,
        device: str,
        factor: float | None = None,
        *,
        value: float | None = None,
        rate: float | None = None,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> float:
        """Zooms smoothly to a factor, or to a value of 0 to 1, at `rate` doublings a second (1). Answers at once how
        many seconds it will take; `rampingVideoZoom` in the device's controls is true meanwhile.
        """
        return run(self._open.ask(self._ask_ramp(device, factor, value, rate, lock), timeout))

    def cancel_zoom_ramp(
        self, device: str, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> None:
        """Leaves the zoom where it is."""
        run(self._open.ask(self._ask_cancel(device, lock), timeout))


class AsyncCameraMethods(_Calls, AsyncOpened):
    """Part of `AsyncClient`. See `CameraMethods` for what the calls do."""

    async def camera_controls(self, device: str, *, timeout: float | None = None) -> dict[str, CameraControl]:
        return await self._run(self._open.ask(self._ask_controls(device), timeout))

    async def focus(
        self, device: str, point: Point, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> Configuration:
        return await self._run(self._open.ask(self._ask_focus(device, point, lock), timeout))

    async def expose(
        self, device: str, point: Point, *, then_lock: bool = False, lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> bool:
        return await self._run(self._open.ask(self._ask_expose(device, point, then_lock, lock), timeout))

    async def reset_focus_and_exposure(
        self, device: str, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> tuple[str, ...]:
        return await self._run(self._open.ask(self._ask_reset(device, lock), timeout))

    async def zoom_ramp(
        self,
        device: str,
        factor: float | None = None,
        *,
        value: float | None = None,
        rate: float | None = None,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> float:
        return await self._run(self._open.ask(self._ask_ramp(device, factor, value, rate, lock), timeout))

    async def cancel_zoom_ramp(
        self, device: str, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> None:
        await self._run(self._open.ask(self._ask_cancel(device, lock), timeout))
