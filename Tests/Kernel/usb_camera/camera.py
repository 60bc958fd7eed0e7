"""The camera as the bus sees it: which request goes where, what is late, and what is refused."""

from __future__ import annotations

import struct

import descriptors
from controls import ASYNCHRONOUS, MANUAL, SET_CUR, Control, Controls, Refused
from descriptors import STATUS_ENDPOINT, VIDEO_ENDPOINT
from stream import Stream
from vhci import Cancel, Port, Transfer

STANDARD, CLASS = 0x00, 0x20
TO_INTERFACE, TO_ENDPOINT = 1, 2
GET_STATUS, CLEAR_FEATURE, GET_DESCRIPTOR, GET_CONFIGURATION, GET_INTERFACE = 0, 1, 6, 8, 10


class Camera:
    def __init__(self, product: str, serial: str) -> None:
        self.strings = ["CameraBus", product] + ([serial] if serial else [])
        self.serial = serial
        self.controls = Controls()
        self.stream = Stream()
        self.late: list[tuple[float, Transfer, Control]] = []
        self.status: list[Transfer] = []

    # What the kernel asks for

    def take(self, request: Transfer | Cancel, port: Port, now: float) -> None:
        if isinstance(request, Cancel):
            self.give_up(request, port)
        elif request.endpoint == 0:
            self.control(request, port, now)
        elif request.endpoint == VIDEO_ENDPOINT and request.is_in:
            self.stream.waiting.append(request)
        elif request.endpoint == STATUS_ENDPOINT and request.is_in:
            self.status.append(request)
        else:
            port.answer(request, None)

    def give_up(self, cancel: Cancel, port: Port) -> None:
        before = len(self.late) + len(self.status)
        self.late = [entry for entry in self.late if entry[1].number != cancel.transfer]
        self.status = [transfer for transfer in self.status if transfer.number != cancel.transfer]
        was_other = len(self.late) + len(self.status) < before
        port.cancelled(cancel, was_other or self.stream.forget(cancel.transfer))

    def control(self, transfer: Transfer, port: Port, now: float) -> None:
        kind, request, value, index, _ = struct.unpack("<BBHHH", transfer.setup)
        if kind & 0x60 == STANDARD:
            if request == CLEAR_FEATURE and kind & 0x1F == TO_ENDPOINT and index & 0xF == VIDEO_ENDPOINT:
                self.stream.is_halted = False
            port.answer(transfer, self.standard(request, value))
        elif kind & 0x60 != CLASS or kind & 0x1F != TO_INTERFACE:
            port.answer(transfer, None)
        elif index & 0xFF == 1:
            port.answer(transfer, self.stream.request(request, value >> 8, transfer.data))
        elif found := self.controls.by_place.get((index >> 8, value >> 8)):
            self.unit(found, request, transfer, port, now)
        else:
            port.answer(transfer, None)

    def standard(self, request: int, value: int) -> bytes | None:
        if request == GET_DESCRIPTOR:
            return self.descriptor(value >> 8, value & 0xFF)
        return {GET_STATUS: b"\0\0", GET_CONFIGURATION: b"\1", GET_INTERFACE: b"\0"}.get(request, b"")

    def descriptor(self, kind: int, index: int) -> bytes | None:
        if kind == 1:
            return descriptors.device(bool(self.serial))
        if kind == 2:
            return descriptors.configuration(self.controls)
        if kind == 3 and index == 0:
            return b"\x04\x03\x09\x04"
        if kind == 3 and index <= len(self.strings):
            return descriptors.string(self.strings[index - 1])
        return descriptors.qualifier() if kind == 6 else None

    def unit(self, control: Control, request: int, transfer: Transfer, port: Port, now: float) -> None:
        if control.stalls:
            control.stalls -= 1
            port.answer(transfer, None)
        elif request != SET_CUR:
            port.answer(transfer, control.answer(request))
        else:
            control.take(transfer.data)
            if control.slow_sets:
                control.slow_sets -= 1
                self.late.append((now + control.slow_seconds, transfer, control))
            else:
                self.has_set(control, transfer, port)

    def has_set(self, control: Control, transfer: Transfer, port: Port) -> None:
        port.answer(transfer, b"")
        if control.info & ASYNCHRONOUS:
            self.tell(control, port)

    def tell(self, control: Control, port: Port) -> None:
        """The status packet of section 2.4.2.2: uvcvideo reports an asynchronous control's change only when it arrives.
        """
        if self.status:
            packet = bytes([1, control.entity, 0, control.selector, 0]) + control.encode(control.value)
            port.answer(self.status.pop(0), packet)

    # What is to be done in its own time

    def wake(self, now: float) -> float | None:
        """In how many seconds there is something to do; None: when the next request or command comes."""
        moments = [due - now for due, _, _ in self.late]
        if (picture := self.stream.wake(now)) is not None:
            moments.append(picture)
        return max(0.0, min(moments)) if moments else None

    def work(self, port: Port, now: float) -> None:
        for due, transfer, control in self.late:
            if due <= now:
                self.has_set(control, transfer, port)
        self.late = [entry for entry in self.late if entry[0] > now]
        self.stream.work(port, now)

    # What a test asks for

    def command(self, words: list[str], port: Port) -> str:
        name, *rest = words
        if name == "get":
            return str(self.controls.named(rest[0])[0].value)
        if name == "set":
            self.change(self.controls.named(rest[0])[0], int(rest[1]), port)
        elif name == "slow":
            for control in self.controls.named(rest[1]):
                control.slow_seconds, control.slow_sets = float(rest[0]), int(rest[2]) if rest[2:] else 1
        elif name == "stall":
            for control in self.controls.named(rest[0]):
                control.stalls = int(rest[1]) if rest[1:] else 1
        elif name == "probe" and rest[0] in ("right", "wrong", "stall"):
            self.stream.probing = rest[0]
        elif name in ("short", "corrupt"):
            setattr(self.stream, name, int(rest[0]) if rest else 1)
        elif name in ("mute", "talk"):
            self.stream.is_mute = name == "mute"
        elif name == "scene":
            self.stream.light = self.light
        elif name == "halt":
            self.stream.is_halted = True
        else:
            raise Refused(f"no command {' '.join(words)}: see --help")
        return ""

    def light(self) -> float:
        """By itself the camera exposes for the middle of the scene; by hand it does what it is told."""
        named = self.controls.by_name
        if named["auto_exposure"].value != MANUAL:
            return 1.0
        return named["exposure_time"].value / named["exposure_time"].default * (1 + named["gain"].value / 25)

    def change(self, control: Control, value: int, port: Port) -> None:
        """By itself: its zoom ring is turned. The status packet is that of section 2.4.2.2."""
        if not control.minimum <= value <= control.maximum:
            raise Refused(f"{control.name} has values from {control.minimum} to {control.maximum}")
        control.value = value
        self.tell(control, port)
