# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one exception class per reason of the protocol, all of them a `CaptureError`.

The class names are the reasons with a capital letter, and the members that the protocol names for a reason are
attributes:

    try:
        client.lock("cam0")
    except DeviceBusy as busy:
        print(busy.holder["pid"])
"""

from __future__ import annotations

from typing import Any, ClassVar, Mapping


class Member:
    """A member of an error's `data`; None where the bus didn't send it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, error: CaptureError, owner: type | None = None) -> Any:
        return None if error is None else error.data.get(self._name)


class CaptureError(Exception):
    """A refusal or a failure. `reason` is the contract's word, `data` what belongs to it, `message` a sentence for a
    person.

    `host` is which of several buses it is about (`Buses`), None where there is one.
    """

    reason: str = "internalError"
    message: str
    data: Mapping[str, Any]
    host: str | None = None
    _by_reason: ClassVar[dict[str, type[CaptureError]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.reason = cls.__name__[0].lower() + cls.__name__[1:]
        CaptureError._by_reason[cls.reason] = cls

    def __init__(self, message: str = "", data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message or self.reason)
        self.message = message or self.reason
        self.data = dict(data or {})

    def __str__(self) -> str:
        # What other programs call themselves, or write into notes, is not to steer the terminal. `message` has it
        # unchanged.
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in super().__str__())

    def say_host(self, host: str) -> None:
        """Has it say which of several buses it is about."""
        if self.host is None:
            self.host, self.message = host, f"{host}: {self.message}"
            self.args = (self.message,)

    @staticmethod
    def of(reason: str, message: str = "", data: Mapping[str, Any] | None = None) -> CaptureError:
        """The exception for a reason. One that this library doesn't know becomes a plain `CaptureError` that keeps the
        word.
        """
        kind = CaptureError._by_reason.get(reason)
        if kind is not None and not issubclass(kind, ClientError):
            return kind(message, data)
        error = CaptureError(message or reason, data)
        error.reason = reason
        return error

    @staticmethod
    def from_wire(error: Any) -> CaptureError:
        """The exception for the `error` object of a reply."""
        if not isinstance(error, dict):
            return ProtocolError("The answer of the bus is invalid: its error is not an object.")
        data = error.get("data")
        data = dict(data) if isinstance(data, dict) else {}
        reason = data.pop("reason", None)
        if not isinstance(reason, str):
            reason = _BY_CODE.get(error.get("code", 0), "internalError")
        return CaptureError.of(reason, str(error.get("message", "")), data)

    @staticmethod
    def from_header(error: Any) -> CaptureError:
        """The exception for the `error` member of a frame header, or of a device: {reason, message, data?}."""
        if not isinstance(error, dict):
            return ProtocolError("The bus sent an error that is not an object.")
        data = error.get("data")
        data = dict(data) if isinstance(data, dict) else {}
        return CaptureError.of(str(error.get("reason", "internalError")), str(error.get("message", "")), data)


class NotKept(UserWarning):
    """The change is in force, but the bus could not write it to its disk. After a restart the bus may use the earlier
    value. Given once by each client; `warnings.simplefilter("error", NotKept)` makes it an exception.
    """


class NotShared(UserWarning):
    """Frames were wanted in shared memory, of which a bus on another machine has none here: they come as usual, and
    each is the program's own. Given once by each client; `warnings.simplefilter("error", NotShared)` makes it an
    exception.
    """


_BY_CODE = {-32700: "parseError", -32600: "invalidRequest", -32601: "methodNotFound", -32602: "invalidParams"}


# --- On this side of the bus: these never come over the wire. ---


class ClientError(CaptureError):
    """What this side found out by itself."""


class BusNotRunning(ClientError):
    """Nobody answers at the bus's socket. The text says where was looked, and how to start one."""


class BusEnded(BusNotRunning):
    """The bus was ended in order (`bus.shutdown`, SIGTERM) while something was waited for. One that was killed may be
    back in a moment, and is waited for; this one not.
    """


class BusGone(ClientError):
    """The connection ended while a request was on its way: whether it was carried out is not known."""


class BusTimeout(ClientError, TimeoutError):
    """Nothing came within the time given."""


class ProtocolError(ClientError):
    """The other side sent what is not in the protocol."""


# --- The contract's reasons ---


class DeviceNotFound(CaptureError):
    """There is no such device."""


class DeviceBusy(CaptureError):
    """Another client has the device locked."""

    holder = Member()
    queue = Member()


class LockRequired(CaptureError):
    """The change needs a lock on the device."""


class LockLost(CaptureError):
    """The lock ended, expired, or was taken over."""

    fence = Member()


class LockTimeout(DeviceBusy):
    """The lock did not come free within the wait asked for: still busy, so that `except DeviceBusy` has both. `holder`
    is None if it came free and went to nobody in time.
    """


class FormatUnsupported(CaptureError):
    """The device or the rendition can't have that format or size."""

    nearest = Member()


class FrameRateUnsupported(CaptureError):
    """The format can't have that rate."""

    ranges = Member()


class PresetUnsupported(CaptureError):
    """The device can't serve that preset."""

    supported = Member()


class ControlUnsupported(CaptureError):
    """The device has no such control, or not that value of it."""

    supported = Member()


class ControlOutOfRange(CaptureError):
    """The value is outside of the control's range."""

    min = Member()
    max = Member()
    step = Member()


class ControlReadOnly(CaptureError):
    """The control can only be read."""


class ControlBusy(CaptureError):
    """The control can't be set just now."""

    control = Member()


class SessionNotFound(CaptureError):
    """There is no such session."""


class SessionNotRunning(CaptureError):
    """The session has to run for that."""


class CannotAddInput(CaptureError):
    """The session can't take that input."""

    why = Member()


class CannotAddOutput(CaptureError):
    """The session can't take that output."""

    why = Member()


class PhotoSettingsReused(CaptureError):
    """Photo settings are for one photo."""


class PhotoFormatUnavailable(CaptureError):
    """The photo can't be had in that format."""

    available = Member()


class MomentNotHeld(CaptureError):
    """The camera's picture of that moment is not held, or not any more. `oldest` is how many milliseconds old the
    oldest one is.
    """

    device = Member()
    ago = Member()
    preRoll = Member()
    oldest = Member()


class RecordingInProgress(CaptureError):
    """A movie is being recorded already, or a segment of the take; or the take is being finished."""

    movie = Member()
    take = Member()


class NotRecording(CaptureError):
    """There is no such movie, or not any more; or the take has nothing to be paused or finished."""

    movie = Member()
    take = Member()


class TakeNotFound(CaptureError):
    """There is no such take, or not any more: it was finished or discarded."""

    take = Member()


class DiskFull(CaptureError):
    """There is not enough room for the file."""

    free = Member()
    needed = Member()


class PathNotAllowed(CaptureError):
    """Files may not be written there."""

    roots = Member()


class Unauthorized(CaptureError):
    """The user is not allowed to do that. `owner`: the uid of the user whose it is."""

    status = Member()
    needed = Member()
    owner = Member()


class Interrupted(CaptureError):
    """There are no pictures for now; they come again by themselves."""

    interruption = Member()


class DeviceDisconnected(CaptureError):
    """The device is unplugged."""


class DeviceInUse(CaptureError):
    """A program that is not on the bus has the device."""

    by = Member()


class WorkerCrashed(CaptureError):
    """The device's process died meanwhile; it is being started again."""


class LimitExceeded(CaptureError):
    """More than the bus allows."""

    limit = Member()
    maximum = Member()


class VersionUnsupported(CaptureError):
    """Client and bus have no protocol version in common."""

    supported = Member()


class InvalidParams(CaptureError):
    """A parameter is unknown, missing or wrong; `path` says which and `why` what is wrong."""

    path = Member()
    why = Member()


class ProfileNotFound(CaptureError):
    """There is no such profile."""

    profile = Member()


class RigNotFound(CaptureError):
    """There is no such rig."""

    rig = Member()


class EntryNotFound(CaptureError):
    """The capture library has no such entry, or none that is the caller's; or not that `file` of it."""

    id = Member()
    file = Member()


class ShuttingDown(CaptureError):
    """The bus is ending."""


class Cancelled(CaptureError):
    """The request was given up by `bus.cancel`."""


class ParseError(CaptureError):
    """The request is no JSON."""


class InvalidRequest(CaptureError):
    """The request is no JSON-RPC 2.0."""


class MethodNotFound(CaptureError):
    """The bus has no such method."""


class InternalError(CaptureError):
    """A fault of the bus itself."""
