# SPDX-License-Identifier: Apache-2.0
"""`cv2.VideoCapture`'s place: for programs that were written for OpenCV, and are to share their camera.

    import cv2
    import camerabus

    capture = camerabus.VideoCapture(0)         # was: cv2.VideoCapture(0)
    while capture.isOpened():
        good, image = capture.read()

It answers as OpenCV does on Linux: `False` where something fails, with the reason in `error`; properties by OpenCV's
numbers, controls in the driver's own units. Otherwise than there, the camera is shared, the picture is the newest one,
and no program's death keeps the camera. Needs NumPy, and not OpenCV.
"""

from __future__ import annotations

import os
import time
from typing import Any, Self, Sequence

from .client import Client
from .frames import Frames
from .errors import CaptureError, DeviceNotFound
from .frame import Frame
from .values import Control, Device

# OpenCV's numbers, for programs without it.
CAP_ANY = 0
CAP_PROP_POS_MSEC = 0
CAP_PROP_FRAME_WIDTH = 3
CAP_PROP_FRAME_HEIGHT = 4
CAP_PROP_FPS = 5
CAP_PROP_FOURCC = 6
CAP_PROP_FORMAT = 8
CAP_PROP_MODE = 9
CAP_PROP_BRIGHTNESS = 10
CAP_PROP_CONTRAST = 11
CAP_PROP_SATURATION = 12
CAP_PROP_HUE = 13
CAP_PROP_GAIN = 14
CAP_PROP_EXPOSURE = 15
CAP_PROP_CONVERT_RGB = 16
CAP_PROP_WHITE_BALANCE_BLUE_U = 17
CAP_PROP_SHARPNESS = 20
CAP_PROP_AUTO_EXPOSURE = 21
CAP_PROP_GAMMA = 22
CAP_PROP_TEMPERATURE = 23
CAP_PROP_WHITE_BALANCE_RED_V = 26
CAP_PROP_ZOOM = 27
CAP_PROP_FOCUS = 28
CAP_PROP_ISO_SPEED = 30
CAP_PROP_BACKLIGHT = 32
CAP_PROP_PAN = 33
CAP_PROP_TILT = 34
CAP_PROP_ROLL = 35
CAP_PROP_IRIS = 36
CAP_PROP_BUFFERSIZE = 38
CAP_PROP_AUTOFOCUS = 39
CAP_PROP_BACKEND = 42
CAP_PROP_AUTO_WB = 44
CAP_PROP_WB_TEMPERATURE = 45

# Which of V4L2's controls OpenCV means, by their ids (linux/v4l2-controls.h).
_USER, _CAMERA = 0x00980900, 0x009A0900
_CONTROLS = {
    CAP_PROP_BRIGHTNESS: _USER,
    CAP_PROP_CONTRAST: _USER + 1,
    CAP_PROP_SATURATION: _USER + 2,
    CAP_PROP_HUE: _USER + 3,
    CAP_PROP_AUTO_WB: _USER + 12,
    CAP_PROP_WHITE_BALANCE_RED_V: _USER + 14,
    CAP_PROP_WHITE_BALANCE_BLUE_U: _USER + 15,
    CAP_PROP_GAMMA: _USER + 16,
    CAP_PROP_GAIN: _USER + 19,
    CAP_PROP_TEMPERATURE: _USER + 26,
    CAP_PROP_WB_TEMPERATURE: _USER + 26,
    CAP_PROP_SHARPNESS: _USER + 27,
    CAP_PROP_BACKLIGHT: _USER + 28,
    CAP_PROP_ROLL: _USER + 34,
    CAP_PROP_AUTO_EXPOSURE: _CAMERA + 1,
    CAP_PROP_EXPOSURE: _CAMERA + 2,
    CAP_PROP_PAN: _CAMERA + 8,
    CAP_PROP_TILT: _CAMERA + 9,
    CAP_PROP_FOCUS: _CAMERA + 10,
    CAP_PROP_AUTOFOCUS: _CAMERA + 12,
    CAP_PROP_ZOOM: _CAMERA + 13,
    CAP_PROP_IRIS: _CAMERA + 17,
    CAP_PROP_ISO_SPEED: _CAMERA + 23,
}
_CV_8UC1, _CV_8UC3 = 0, 16
_UNKNOWN = -1.0  # what OpenCV answers on Linux for what a camera hasn't


class VideoCapture:
    """A camera of the bus, as `cv2.VideoCapture` has one. For use in one thread at a time.

    `source` is the number of a camera, counted from 0 in the order in which the bus offers those that are connected, or
    a name: an id (`cam0`), a node (`/dev/video2`) or a `uniqueID`. `apiPreference` is there for OpenCV's programs
    alone; `params` are properties to set on opening, each with its value behind it. `timeout` is how many seconds a
    picture may take.
    """

    def __init__(
        self,
        source: int | str | None = None,
        apiPreference: int = CAP_ANY,
        params: Sequence[int] = (),
        *,
        runtime_dir: str | os.PathLike[str] | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._client: Client | None = None
        self._frames: Frames | None = None
        self._frame: Frame | None = None
        self._picture: Any = None
        self._runtime_dir, self._timeout = runtime_dir, timeout
        self._raises = False
        #: Why the last call failed; None: it did not.
        self.error: CaptureError | None = None
        #: The camera's id; empty while none is open.
        self.device = ""
        self._reset()
        if source is not None:
            self.open(source, apiPreference, params)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.device or 'closed'}>"

    def __del__(self) -> None:
        client = getattr(self, "_client", None)
        if client is not None:
            # A finalizer waits for nothing.
            client._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    # Life

    def open(self, source: int | str, apiPreference: int = CAP_ANY, params: Sequence[int] = ()) -> bool:
        """Opens another camera; the one before is released."""
        self.release()
        try:
            self._client = Client(self._runtime_dir, timeout=self._timeout)
            self.device = _find(self._client.devices("video"), source).id
        except CaptureError as error:
            self.release()
            return self._failed(error)
        self.error = None
        settings = list(params)
        if len(settings) % 2 or not all(self.set(name, value) for name, value in zip(settings[::2], settings[1::2])):
            error = self.error or CaptureError.of("invalidParams", "params are pairs of a property and its value.")
            self.release()
            return self._failed(error)
        return True

    def isOpened(self) -> bool:
        return self._client is not None

    def release(self) -> None:
        """Lets go of the camera; `open` may follow."""
        client, self._client = getattr(self, "_client", None), None
        if client is not None:
            # Its subscriptions end with it.
            client.close()
            self._reset()

    def _reset(self) -> None:
        self._frames = self._frame = self._picture = None
        self.device = ""
        self._is_converted = True
        self._is_given = False
        self._width = self._height = 0
        # Frames of an older configuration are no more what was asked for.
        self._generation = 0

    # Pictures

    def read(self, image: Any = None) -> tuple[bool, Any]:
        """The next picture, (height, width, 3) in the order blue, green, red; (False, None) where none came in time."""
        return self.retrieve(image) if self.grab() else (False, None)

    def grab(self) -> bool:
        """Takes the newest picture that was not taken yet, or waits for one."""
        self._frame = self._picture = None
        client = self._client
        if client is None:
            return False
        until = time.monotonic() + self._timeout
        try:
            if self._frames is None:
                rendition = "bgr" if self._is_converted else "native"
                self._frames = client.frames(self.device, rendition=rendition, timeout=self._timeout, shared=True)
            frame = next(self._frames)
            # Those that were on their way when the size was changed; a bus that was started anew counts from its own
            # beginning.
            while frame.generation < self._generation and time.monotonic() < until:
                frame = next(self._frames)
        except CaptureError as error:
            return self._failed(error)
        self._generation = 0
        self._frame, self.error = frame, None
        return True

    def retrieve(self, image: Any = None, flag: int = 0) -> tuple[bool, Any]:
        """The picture that was grabbed last, as an array of its own; with an `image` of its shape, in that."""
        picture = self._copied()
        if picture is None:
            return False, None
        if image is not None and image.shape == picture.shape and image.dtype == picture.dtype:
            image[...] = picture
            return True, image
        # What was given is the program's: it may draw in it.
        if self._is_given:
            return True, picture.copy()
        self._is_given = True
        return True, picture

    def _copied(self) -> Any:
        # Pictures in shared memory are written over in time: then the next one is taken.
        while self._picture is None and self._frame is not None:
            view = self._frame.array()
            picture = (view.reshape(1, -1) if view.ndim == 1 else view).copy()
            if self._frame.is_intact():
                self._picture, self._is_given = picture, False
            else:
                self.grab()
        return self._picture

    # Properties

    def get(self, propId: int) -> float:
        """A property's value; -1 of what the camera hasn't, and 0 while none is open."""
        client = self._client
        if client is None:
            return 0.0
        try:
            value = self._value(client, propId)
        except CaptureError as error:
            self._failed(error)
            return _UNKNOWN
        self.error = None
        return value

    def set(self, propId: int, value: float) -> bool:
        """Changes a property of the camera, for all who use it. Width and height are set when both are known; what a
        camera can't have just so becomes the nearest.
        """
        client = self._client
        if client is None:
            return False
        try:
            is_done = self._change(client, propId, value)
        except CaptureError as error:
            return self._failed(error)
        self.error = None
        return is_done

    def _value(self, client: Client, name: int) -> float:
        if name in (CAP_PROP_FRAME_WIDTH, CAP_PROP_FRAME_HEIGHT, CAP_PROP_FPS, CAP_PROP_FOURCC):
            device = client.device(self.device)
            format = device.activeFormat
            if name == CAP_PROP_FPS:
                return float(device.frameRate or _UNKNOWN)
            if format is None:
                return _UNKNOWN
            if name == CAP_PROP_FOURCC:
                return float(int.from_bytes(format.pixelFormat.encode()[:4], "little"))
            return float(format.width if name == CAP_PROP_FRAME_WIDTH else format.height)
        if name == CAP_PROP_POS_MSEC:
            return self._frame.timestamp.monotonic / 1e6 if self._frame is not None else 0.0
        if name in (constants := {
            CAP_PROP_FORMAT: _CV_8UC3 if self._is_converted else _CV_8UC1,
            CAP_PROP_MODE: 0,
            CAP_PROP_CONVERT_RGB: int(self._is_converted),
            CAP_PROP_BUFFERSIZE: 1,
            CAP_PROP_BACKEND: CAP_ANY,
        }):  # fmt: skip
            return float(constants[name])
        control = self._control(client, name)
        return float(control.value) if control is not None and isinstance(control.value, (int, float)) else _UNKNOWN

    def _change(self, client: Client, name: int, value: float) -> bool:
        number = round(value)
        if name in (CAP_PROP_FRAME_WIDTH, CAP_PROP_FRAME_HEIGHT):
            if number <= 0:
                return False
            if name == CAP_PROP_FRAME_WIDTH:
                self._width = number
            else:
                self._height = number
            if self._width and self._height:
                size = {"width": self._width, "height": self._height}
                self._width = self._height = 0
                self._configure(client, activeFormat=size)
            return True
        if name == CAP_PROP_FPS:
            if value <= 0:
                return False
            self._configure(client, frameRate=value)
            return True
        if name == CAP_PROP_FOURCC:
            return self._change_pixel_format(client, number)
        if name == CAP_PROP_CONVERT_RGB:
            if self._is_converted != bool(number):
                self._is_converted = bool(number)
                if self._frames is not None:
                    self._frames.close()
                self._frames = self._frame = self._picture = None
            return True
        if name == CAP_PROP_BUFFERSIZE:
            # There is none: the picture is the newest one in any case.
            return number >= 1
        if name == CAP_PROP_MODE:
            return number == 0
        control = self._control(client, name)
        if control is None:
            return False
        self._configure(client, controls={control.name: bool(number) if control.type == "bool" else number})
        return True

    def _change_pixel_format(self, client: Client, code: int) -> bool:
        try:
            wanted = code.to_bytes(4, "little").decode("ascii").rstrip()
        except (OverflowError, UnicodeDecodeError):
            return False
        active = client.device(self.device).activeFormat
        if active is None:
            return False
        # The nearest to another pixel format would not be what was asked for.
        if not any(format.pixelFormat == wanted for format in client.formats(self.device)):
            return False
        if active.pixelFormat != wanted:
            self._configure(
                client, activeFormat={"pixelFormat": wanted, "width": active.width, "height": active.height}
            )
        return True

    def _configure(self, client: Client, **changes: Any) -> None:
        with client.lock(self.device):
            done = client.configure(self.device, mode="nearest", **changes)
        if "controls" not in changes:
            self._generation = done.generation.get(self.device, 0)

    def _control(self, client: Client, name: int) -> Control | None:
        identity = _CONTROLS.get(name)
        if identity is None:
            return None
        return next((control for control in client.controls(self.device).values() if control.id == identity), None)

    # What else OpenCV's has

    def getBackendName(self) -> str:
        return "CAMERABUS"

    def setExceptionMode(self, enable: bool) -> None:
        """Whether what fails is raised, as a `CaptureError`."""
        self._raises = bool(enable)

    def getExceptionMode(self) -> bool:
        return self._raises

    def _failed(self, error: CaptureError) -> bool:
        self.error = error
        if self._raises:
            raise error
        return False


def _find(devices: Sequence[Device], source: int | str) -> Device:
    connected = [device for device in devices if device.connected]
    if isinstance(source, int):
        if 0 <= source < len(connected):
            return connected[source]
        count = f"{len(connected)} cameras of the bus are connected, counted from 0"
        raise DeviceNotFound(f"There is no camera {source}. {count}.")
    for names in ("id", "node", "uniqueID"):
        for device in devices:
            if source and getattr(device, names) == source:
                return device
    raise DeviceNotFound(
        f"There is no camera '{source}'; there are {', '.join(device.id for device in devices) or 'none'}."
    )
