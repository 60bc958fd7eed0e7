# SPDX-License-Identifier: Apache-2.0
"""The methods of the bus as this library calls them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Mapping, Sequence, TypeAlias

from .core import Call, given
from .errors import ProtocolError
from .rates import FrameRate, member
from .values import Configuration, Control, Device, Format, Locks, Usage, read, read_list

#: `"f3"`, {pixelFormat?, width, height}, or of a microphone {sampleFormat?, rate?, channels?}.
FormatWish: TypeAlias = str | Mapping[str, Any]
#: Frames a second, or {minFrameDuration?, maxFrameDuration?}: any rate between two frame durations, in seconds.
FrameRateWish: TypeAlias = FrameRate | Mapping[str, Any]


def devices(media: str | None, type: str | None, position: str | None) -> Call[list[Device]]:
    params = given(media=media, type=type, position=position)
    return Call("device.list", params, lambda result: read_list(Device, _member(result, "devices")), True)


def device(name: str) -> Call[Device]:
    return Call("device.get", {"device": name}, lambda result: read(Device, _member(result, "device")), True)


def rename(device: str, name: str | None, token: str | None) -> Call[Device]:
    params = {"device": device, "name": name, **given(lock=token)}
    return Call("device.rename", params, lambda result: read(Device, _member(result, "device")))


def formats(name: str) -> Call[list[Format]]:
    return Call("device.formats", {"device": name}, lambda result: read_list(Format, _member(result, "formats")), True)


def controls(name: str) -> Call[dict[str, Control]]:
    def read_controls(result: Any) -> dict[str, Control]:
        return {control.name: control for control in read_list(Control, _member(result, "controls"))}

    return Call("device.controls", {"device": name}, read_controls, True)


def locks() -> Call[Locks]:
    return Call("device.locks", {}, lambda result: read(Locks, result), True)


def who(name: str) -> Call[Usage]:
    return Call("device.who", {"device": name}, lambda result: read(Usage, result), True)


def snapshot(prefix: str | None) -> Call[dict[str, Any]]:
    return Call("bus.snapshot", {} if prefix is None else {"prefix": prefix}, _object, True)


def ping() -> Call[None]:
    return Call("bus.ping", {}, lambda result: None, True)


def changes(
    wanted: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    activeFormat: FormatWish | None,
    frameRate: FrameRateWish | None,
    controls: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """What `configure` was asked, as the `changes` of the protocol."""
    if isinstance(wanted, str):
        wanted = {"device": wanted, "activeFormat": activeFormat, "frameRate": frameRate, "controls": controls}
    elif activeFormat is not None or frameRate is not None or controls is not None:
        raise TypeError("activeFormat, frameRate and controls need the id of one device; otherwise put them into each change")
    batch = [wanted] if isinstance(wanted, Mapping) else wanted
    return [_change({name: value for name, value in change.items() if value is not None}) for change in batch]


def configure(batch: list[dict[str, Any]], mode: str | None, dry_run: bool, token: str | None) -> Call[Configuration]:
    params = {"changes": batch, **given(lock=token, mode=mode, dryRun=dry_run)}
    return Call("device.configure", params, lambda result: read(Configuration, result))


def set_controls(name: str, controls: Mapping[str, Any], token: str | None) -> Call[Configuration]:
    params = {"device": name, "controls": _values(controls), **given(lock=token)}
    return Call("device.set", params, lambda result: read(Configuration, result))


def _change(change: dict[str, Any]) -> dict[str, Any]:
    controls = change.get("controls")
    return member({**change, "controls": _values(controls)} if isinstance(controls, Mapping) else change)


def _values(controls: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in controls.items()}


def _object(result: Any) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise ProtocolError("The answer of the bus is invalid: it is not an object.")
    return result


def _member(result: Any, name: str) -> Any:
    return _object(result).get(name)
