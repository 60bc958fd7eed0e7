# SPDX-License-Identifier: Apache-2.0
"""A program's own frames as a device: what a filter makes is seen, as every camera is, by whoever wants it.

    with Client() as client, client.create_source("filtered", 640, 360, "bgr") as source:
        for frame in client.frames("cam0", rendition="bgr:640x360"):
            source.send(my_filter(frame.payload), timestamp=frame.timestamp)
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generator, Self

from .calls import _object
from .closing import Closing
from .core import AsyncOpened, Call, Core, Opened
from .errors import CaptureError, DeviceNotFound, ProtocolError
from .formats import FormatExtensions
from .frame import DOUBLE, SINGLE
from .rates import FrameRate, wire
from .steps import Runner, Steps, run
from .values import Timestamp

#: Pixel formats by the names of renditions; the protocol's own names (`BGR3`, `MJPG`) will do, too.
FORMATS = {
    "bgr": "BGR3", "rgb": "RGB3", "gray": "GREY", "yuyv": "YUYV", "uyvy": "UYVY", "nv12": "NV12", "i420": "YU12",
    "jpeg": "MJPG", "gray16": "Y16",
}
#: What an array has in its last dimension, in formats of which it has one for each of height and width.
_SAMPLES: dict[str, tuple[int, ...]] = {
    "BGR3": (3,), "RGB3": (3,), **dict.fromkeys((*SINGLE, *DOUBLE, "Y16 -BE"), ())
}
#: What a source can state of what `FormatExtensions` has.
_STATED = {
    "colorPrimaries", "transferFunction", "yCbCrMatrix", "colorRange", "chromaLocation", "pixelAspectRatio",
    "cleanAperture", "metersPerStep",
}  # fmt: skip
_HEAD = struct.Struct("<4sIq")
_RETRY = 0.5  # seconds from one attempt to connect to the next
_PATIENCE = 2.0  # seconds in which a frame must be taken


def _create(
    name: str,
    width: int,
    height: int,
    format: str,
    fps: FrameRate | None,
    extensions: FormatExtensions | None,
    orientation: int,
    mirrored: bool,
) -> Call[Any]:
    stated = {name: value for name, value in extensions.members().items() if name in _STATED} if extensions else {}
    if orientation:
        stated["orientation"] = orientation
    if mirrored:
        stated["mirrored"] = True
    params: dict[str, Any] = {
        "name": name,
        "format": {"pixelFormat": FORMATS.get(format, format), "width": width, "height": height, **stated},
    }
    if fps is not None:
        params["frameRate"] = wire(fps)
    return Call("source.create", params, _object)


def _undo(made: Any) -> list[Call[Any]]:
    return [Call("source.delete", {"device": made.get("device", "")}, _object)]


@dataclass(frozen=True, slots=True)
class _Facts:
    device: str
    uniqueID: str
    path: str
    bytes: int


def _sample(format: str) -> tuple[tuple[str, ...], str]:
    """A sample's type as memoryview names it, and in words."""
    if format == "Y16 -BE":
        return (">H",), "big-endian samples of 16 bits (>u2)"
    if format in DOUBLE:
        return ("H", "<H"), "samples of 16 bits (uint16)"
    return ("B",), "unsigned bytes (uint8)"


class SourceBase:
    """What both kinds of source have."""

    def __init__(self, core: Core, result: Any, call: Call[Any]) -> None:
        try:
            self._facts = _Facts(result["device"], result["uniqueID"], result["path"], result["bytes"])
        except (KeyError, TypeError):
            message = "The answer of the bus to source.create is invalid: it names no place for the frames."
            raise ProtocolError(message) from None
        self._core = core
        wish = call.params["format"]
        self._is_compressed = wish["pixelFormat"] == "MJPG"
        samples = _SAMPLES.get(wish["pixelFormat"])
        #: Of an array; None where its form is one's own business.
        self._shape = None if samples is None else (wish["height"], wish["width"], *samples)
        self._sample = _sample(wish["pixelFormat"])
        self._socket: socket.socket | None = None
        self._next_attempt = 0.0
        self._is_closed = False
        #: Frames that could not be sent, because the device's process was just not there.
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.device}{' closed' if self._is_closed else ''}>"

    @property
    def device(self) -> str:
        """The device's id when it was made; it may have been renamed since."""
        return self._facts.device

    @property
    def uniqueID(self) -> str:
        """The same whenever a source of that name is made."""
        return self._facts.uniqueID

    @property
    def frame_bytes(self) -> int:
        """That each frame has; a compressed one, at most."""
        return self._facts.bytes

    def _message(self, data: Any, timestamp: int | Timestamp | None) -> tuple[bytes, memoryview]:
        if self._is_closed:
            raise ValueError("This source is closed.")
        view = memoryview(data)
        if self._shape is not None and view.ndim > 1:
            self._check_shape(view)
        # memoryview takes only samples in the machine's own order for bytes.
        is_ready = view.c_contiguous and view.nbytes and len(view.format) == 1
        pixels = view.cast("B") if is_ready else memoryview(view.tobytes())
        wanted = self._facts.bytes
        if pixels.nbytes > wanted or pixels.nbytes < (1 if self._is_compressed else wanted):
            most = "at most " if self._is_compressed else ""
            raise ValueError(f"A frame of {self.device} has {most}{wanted} bytes, not {pixels.nbytes}.")
        taken = timestamp.monotonic if isinstance(timestamp, Timestamp) else timestamp
        return _HEAD.pack(b"CBF1", pixels.nbytes, taken or 0), pixels

    def _check_shape(self, view: memoryview) -> None:
        # Grey pictures come with a last dimension of 1, too.
        types, name = self._sample
        if view.format not in types or view.shape not in (self._shape, (*(self._shape or ()), 1)):
            raise ValueError(
                f"An array for {self.device} needs the shape {self._shape} and {name}, "
                f"not {view.shape} of '{view.format}'."
            )

    def _connect(self) -> socket.socket | None:
        """The connection; None while there is nobody to connect to."""
        if self._socket is None:
            if time.monotonic() < self._next_attempt:
                return None
            self._next_attempt = time.monotonic() + _RETRY
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(self._facts.path)
            except OSError:
                connection.close()
                return None
            self._socket = connection
        return self._socket

    def _drop(self) -> bool:
        """The connection has ended. Raises what the other end says of why."""
        self.dropped += 1
        connection, self._socket = self._socket, None
        if connection is None:
            return False
        self._next_attempt = 0.0
        with connection:
            try:
                connection.setblocking(False)
                told = json.loads(connection.recv(4096))
            except (OSError, ValueError):
                return False
        if isinstance(told, dict) and told.get("reason"):
            raise CaptureError.of(str(told["reason"]), str(told.get("message", "")), {"device": self.device})
        return False

    def _forget(self) -> bool:
        """Closes the connection; true if the source is still to be taken away."""
        was_closed, self._is_closed = self._is_closed, True
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        return not was_closed

    def _delete(self) -> Steps[None]:
        try:
            yield from self._core.ask(Call("source.delete", {"device": self.device}, _object))
        except DeviceNotFound:  # under that name, perhaps
            devices = yield from self._core.ask(Call("device.list", {}, _object, True))
            for device in devices.get("devices", ()):
                if device.get("uniqueID") == self.uniqueID:
                    yield from self._core.ask(Call("source.delete", {"device": device.get("id", "")}, _object))


class Source(Closing, SourceBase):
    """A device that this program makes the frames of, until it is closed, or the program ends."""

    def send(self, data: Any, *, timestamp: int | Timestamp | None = None) -> bool:
        """Sends a frame: bytes, or an array, in the source's format: of `bgr` with the shape (height, width, 3).

        `timestamp` is when it was taken: another frame's, or nanoseconds of CLOCK_MONOTONIC (`time.monotonic_ns()`);
        None: now. Answers false when the device's process is just not there (it is started again by itself): the frame
        is lost.
        """
        head, pixels = self._message(data, timestamp)
        connection = self._connect()
        if connection is None:
            self.dropped += 1
            return False
        connection.settimeout(_PATIENCE)
        try:
            sent = connection.sendmsg([head, pixels])
            if sent < len(head):
                connection.sendall(head[sent:])
                sent = len(head)
            connection.sendall(pixels[sent - len(head) :])
        except OSError:
            return self._drop()
        return True

    def close(self) -> None:
        """Takes the device away."""
        if self._forget():
            try:
                run(self._delete())
            except (CaptureError, ValueError):
                pass  # it is gone with the bus, or by somebody else's hand


class AsyncSource(SourceBase):
    """The same for asyncio: `async with client.create_source(…) as source:`."""

    def __init__(self, core: Core, result: Any, call: Call[Any], runner: Runner) -> None:
        super().__init__(core, result, call)
        self._run = runner
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, data: Any, *, timestamp: int | Timestamp | None = None) -> bool:
        """See `Source.send`."""
        head, pixels = self._message(data, timestamp)
        # Frames are whole, whoever else sends one.
        async with self._turn:
            connection = self._connect()
            if connection is None:
                self.dropped += 1
                return False
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(_PATIENCE):
                    await loop.sock_sendall(connection, head)
                    await loop.sock_sendall(connection, pixels)
            except OSError:
                return self._drop()
            except asyncio.CancelledError:
                # Half a frame is of no use.
                self._socket = None
                connection.close()
                raise
            return True

    async def close(self) -> None:
        if self._forget():
            try:
                await self._run(self._delete())
            except (CaptureError, ValueError):
                pass


class PendingSource:
    """What `AsyncClient.create_source` answers: to be entered, or awaited."""

    def __init__(self, core: Core, call: Call[Any], runner: Runner, timeout: float | None) -> None:
        self._arguments = (core, call, runner, timeout)
        self._source: AsyncSource | None = None

    async def _make(self) -> AsyncSource:
        core, call, runner, timeout = self._arguments
        return AsyncSource(core, await runner(core.ask_for(call, _undo, timeout)), call, runner)

    def __await__(self) -> Generator[Any, Any, AsyncSource]:
        return self._make().__await__()

    async def __aenter__(self) -> AsyncSource:
        self._source = await self._make()
        return self._source

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._source is not None:
            await self._source.close()


class SourceMethods(Opened):
    """Of `Client`."""

    def create_source(
        self,
        name: str,
        width: int,
        height: int,
        format: str = "bgr",
        *,
        fps: FrameRate | None = None,
        extensions: FormatExtensions | None = None,
        orientation: int = 0,
        mirrored: bool = False,
        timeout: float | None = None,
    ) -> Source:
        """Makes a device of this program's own frames: `bgr`, `rgb`, `gray`, `yuyv`, `uyvy`, `nv12`, `i420`, `jpeg`, or
        one sample of up to 16 bits a pixel: `gray16`, `Y10`, `Y12`, `Y14`, depth (`Z16`), Bayer (`RGGB`, `RG12`, …).

        `fps` is what it tells of its rate (None: nothing), and `extensions` what it states about its pictures: their
        colours, the shape of their pixels, the clean part, and of depth the metres of a step, as in
        `frame.extensions` (None: what a webcam has). They have to be turned clockwise by `orientation` degrees to be
        upright, and then mirrored if they are `mirrored`. A source of the same name has the same id and settings
        always. It goes with the `with` block, or with this process. Raises `DeviceBusy` where somebody has one of that
        name; this process gets the one that it has, if it is the same. Raises `InvalidParams` for a name that is or
        was a camera's.
        """
        call = _create(name, width, height, format, fps, extensions, orientation, mirrored)
        return Source(self._open, run(self._open.ask_for(call, _undo, timeout)), call)


class AsyncSourceMethods(AsyncOpened):
    """Of `AsyncClient`."""

    def create_source(
        self,
        name: str,
        width: int,
        height: int,
        format: str = "bgr",
        *,
        fps: FrameRate | None = None,
        extensions: FormatExtensions | None = None,
        orientation: int = 0,
        mirrored: bool = False,
        timeout: float | None = None,
    ) -> PendingSource:
        """To be entered (`async with client.create_source(…) as source:`) or awaited."""
        call = _create(name, width, height, format, fps, extensions, orientation, mirrored)
        return PendingSource(self._open, call, self._run, timeout)
