"""The camera's controls, as its camera terminal and its processing unit have them.

Source: USB Device Class Definition for Video Devices 1.5, sections 4.2.2.1 and 4.2.2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

TERMINAL, UNIT = 1, 2

SET_CUR, GET_CUR, GET_MIN, GET_MAX, GET_RES, GET_LEN, GET_INFO, GET_DEF = 0x01, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87

# GET_INFO: it can be read and written; it changes by itself, and the camera says so.
READ_WRITE, AUTO_UPDATE, ASYNCHRONOUS = 3, 8, 16

# bAutoExposureMode
MANUAL = 1


class Refused(Exception):
    """No such control, or a value that it can't have."""


@dataclass
class Control:
    name: str
    entity: int
    selector: int
    bit: int
    """Which bit of the entity's bmControls says that it is there."""
    size: int
    minimum: int
    maximum: int
    resolution: int
    default: int
    info: int = READ_WRITE
    value: int = 0
    sets: int = 0
    stalls: int = 0
    slow_sets: int = 0
    slow_seconds: float = 0

    def __post_init__(self) -> None:
        self.value = self.default

    def encode(self, value: int) -> bytes:
        return (value & ((1 << 8 * self.size) - 1)).to_bytes(self.size, "little")

    def take(self, data: bytes) -> None:
        self.value = int.from_bytes(data[: self.size], "little", signed=self.minimum < 0)
        self.sets += 1

    def answer(self, request: int) -> bytes | None:
        """What a GET request reads; None: a stall."""
        if request == GET_LEN:
            return self.size.to_bytes(2, "little")
        if request == GET_INFO:
            return bytes([self.info])
        values = {
            GET_CUR: self.value, GET_MIN: self.minimum, GET_MAX: self.maximum, GET_RES: self.resolution,
            GET_DEF: self.default,
        }
        return self.encode(values[request]) if request in values else None


class Controls:
    """All of them, by name, and by entity and selector."""

    def __init__(self) -> None:
        moving = READ_WRITE | AUTO_UPDATE | ASYNCHRONOUS
        self.by_name = {
            control.name: control
            for control in (
                # A bit for each mode, and "resolution" says which there are: manual (1) and aperture priority (8).
                Control("auto_exposure", TERMINAL, 0x02, 1, 1, 0, 0, 0x09, 8),
                Control("exposure_time", TERMINAL, 0x04, 3, 4, 1, 10000, 1, 156),
                Control("focus", TERMINAL, 0x06, 5, 2, 0, 250, 5, 0),
                Control("focus_automatic", TERMINAL, 0x08, 17, 1, 0, 1, 1, 1),
                Control("zoom", TERMINAL, 0x0B, 9, 2, 100, 500, 1, 100, moving),
                Control("privacy", TERMINAL, 0x11, 18, 1, 0, 1, 1, 0, moving),
                Control("brightness", UNIT, 0x02, 0, 2, -64, 64, 1, 0),
                Control("contrast", UNIT, 0x03, 1, 2, 0, 64, 1, 32),
                Control("saturation", UNIT, 0x07, 3, 2, 0, 128, 1, 64),
                Control("gain", UNIT, 0x04, 9, 2, 0, 100, 1, 0),
                Control("power_line_frequency", UNIT, 0x05, 10, 1, 0, 2, 1, 1),
                Control("white_balance", UNIT, 0x0A, 6, 2, 2800, 6500, 10, 4600),
                Control("white_balance_automatic", UNIT, 0x0B, 12, 1, 0, 1, 1, 1),
            )
        }
        self.by_place = {(control.entity, control.selector): control for control in self.by_name.values()}

    def named(self, name: str) -> list[Control]:
        """The one of this name, or all of them for "all"."""
        if name == "all":
            return list(self.by_name.values())
        if name not in self.by_name:
            raise Refused(f"no control {name}: one of {', '.join(self.by_name)}")
        return [self.by_name[name]]

    def bits(self, entity: int) -> int:
        """bmControls of an entity."""
        return sum(1 << control.bit for control in self.by_name.values() if control.entity == entity)
