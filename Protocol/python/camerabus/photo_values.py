# SPDX-License-Identifier: Apache-2.0
"""Photos as they come: files, with all that is known of them, and how far they are."""

from __future__ import annotations

import builtins
import io
import os
from dataclasses import dataclass, field
from typing import Any, Mapping

from .errors import CaptureError, ProtocolError
from .values import Adjustment, Timestamp, _map, _of, _raw, _tuple, read

#: What a live photo shows of the time before it, and of the time after it, at most. Seconds.
LIVE_PHOTO_REACH = 1.5


def _timestamp() -> Any:
    def convert(value: Any) -> Timestamp:
        if not isinstance(value, dict):
            raise ProtocolError("The bus sent a photo that has no time.")
        return Timestamp(int(value.get("monotonic", 0)), int(value.get("realtime", 0)), str(value.get("source", "")))

    return field(default=Timestamp(0, 0, ""), metadata={"read": convert})


def _error() -> Any:
    return field(default=None, metadata={"read": CaptureError.from_wire})


@dataclass(frozen=True, slots=True, kw_only=True)
class Photo:
    """A photo. `data` is its file, whole with its metadata, where the reply was to bring it, else None
    (`deliver=["library"]`): then `path` and `id` are its file, as the bus sees it, and its entry in the capture
    library, and `error` says why it is not there though it was to be. With `deliver=["reply", "library"]` it has both.
    Where the bus is another user's, this one can't open `path`: `fetch_from_library(photo.id, …)` brings the file.
    """

    device: str = ""
    #: Which it is of this camera's, from 0. A DNG of the same frame as another file has the same.
    index: int = 0
    #: `jpeg`, `dng`, `png` or `tiff`.
    fileType: str = ""
    #: Pixels, as they are stored: of JPEG and DNG the file says how they are to be turned.
    width: int = 0
    height: int = 0
    #: The file's size.
    bytes: int = 0
    timestamp: Timestamp = _timestamp()
    #: The frame's `captureSequence` within `stream`.
    sequence: int = 0
    stream: str = ""
    #: {duration: seconds, iso, bias: EV}, as far as known.
    exposure: Mapping[str, float] = _map()
    flashFired: bool | None = None
    #: False: the camera's exposure had not come to rest within the time that there is for that.
    settled: bool = True
    #: Nanoseconds by which it was taken later than its burst asked; None: it was not.
    late: int | None = None
    #: {width, height} of the small picture in it.
    thumbnail: Mapping[str, int] = _map()
    path: str | None = None
    id: str | None = None
    error: CaptureError | None = _error()
    data: builtins.bytes | None = field(default=None, repr=False)
    raw: Mapping[str, Any] = _raw()

    def image(self) -> Any:
        """The picture as a Pillow image. Of a DNG that is what Pillow makes of it: the small picture at best."""
        try:
            from PIL import Image
        except ImportError:
            message = "Photo.image() needs Pillow (apt install python3-pil); Photo.data needs no Pillow."
            raise ImportError(message) from None
        return Image.open(io.BytesIO(self._bytes()))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the file so that it is on the disk then, and never seen half-written. Raises `FileExistsError` with
        its name where there is one already, unless it may `overwrite`.
        """
        _save(self._bytes(), path, overwrite)

    def _bytes(self) -> builtins.bytes:
        return _delivered("photo", self.data, self.path, f"{self.id!r}, path")


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePhotoMovie:
    """The movie of a live photo (MOV with H.264, and AAC where the session has a microphone that may be heard). `data`
    is its file where the reply was to bring it, else None; then `path` is its file in the capture library, beside the
    photo's, and `fetch_from_library(photo.id, …, file="movie")` brings it.
    """

    #: A UUID that stands in both files: they are one live photo.
    contentIdentifier: str = ""
    #: Pixels, as it is to be shown.
    width: int = 0
    height: int = 0
    #: The file's size.
    bytes: int = 0
    #: Seconds: at most twice `LIVE_PHOTO_REACH`, less where less was held before it, or the camera was moved.
    duration: float = 0.0
    #: Seconds from its beginning to the photo.
    photoDisplayTime: float = 0.0
    #: How many pictures the camera took in its time that are not in it: the machine was too busy for them.
    dropped: int = 0
    path: str | None = None
    data: builtins.bytes | None = field(default=None, repr=False)
    raw: Mapping[str, Any] = _raw()

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """As `Photo.save`. Programs look for it beside the photo, with the same name but for its ending: `a.jpg` and
        `a.mov`.
        """
        _save(_delivered("movie", self.data, self.path, "photo.id, path, file='movie'"), path, overwrite)


def _delivered(what: str, data: builtins.bytes | None, path: str | None, entry: str) -> builtins.bytes:
    if data is None:
        where = f" It is in the library of the bus: {path}; fetch_from_library({entry}) brings it." if path else ""
        raise ValueError(
            f"The reply does not contain the bytes of this {what}. "
            f"To get both, use deliver=['reply', 'library'].{where}"
        )
    return data


def _save(data: builtins.bytes, path: str | os.PathLike[str], overwrite: bool) -> None:
    name = os.fspath(path)
    temporary = f"{name}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, name)
        else:
            try:
                os.link(temporary, name)  # which, unlike a rename, takes no other's place
            except FileExistsError as error:
                raise FileExistsError(*error.args[:2], name) from None
    finally:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
    folder = os.open(os.path.dirname(name) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhotoCapture:
    """What came of one request: photos in the order of the cameras, and of each camera's in the order in which they
    were taken. With `raw` the DNG of a frame follows its other file.
    """

    #: The settings', which is used up now.
    uniqueID: str = ""
    #: {devices: [{device, format, width, height, pixelFormat, flash, highResolution, …}]}.
    resolved: Mapping[str, Any] = _map()
    expectedPhotoCount: int = 0
    photos: tuple[Photo, ...] = _tuple(lambda value: read(Photo, value))
    #: Of a live photo; None: it is none.
    livePhotoMovie: LivePhotoMovie | None = _of(LivePhotoMovie)
    #: How many photos of bursts were taken later than asked.
    late: int = 0
    #: What a camera took otherwise than it was asked for, with a path as `settings.bracket.exposureBias[0]`.
    adjusted: tuple[Adjustment, ...] = _tuple(lambda value: read(Adjustment, value))
    #: Nanoseconds between the cameras' first frames; None: there is one camera.
    spread: int | None = None
    raw: Mapping[str, Any] = _raw()

    @property
    def photo(self) -> Photo:
        """The only one. Raises `ValueError` if there are several."""
        (photo,) = self.photos
        return photo


@dataclass(frozen=True, slots=True, kw_only=True)
class PhotoStage:
    """How far a request's photos are: `event` is `willBeginCapture`, `willCapturePhoto`, `didCapturePhoto`,
    `didFinishProcessingPhoto` (once for each `photo`), of a live photo `didFinishRecordingLivePhotoMovie` (`duration`)
    and `didFinishProcessingLivePhotoToMovieFile` (`duration`, `photoDisplayTime`, `livePhotoMovie`), and
    `didFinishCapture`, in this order, without those that were not reached; the last has the `error`, if there was one.
    """

    uniqueID: str = ""
    event: str = ""
    photo: Photo | None = field(default=None, metadata={"read": lambda value: read(Photo, value)})
    #: Of a live photo's movie, seconds: how long it is, and where in it the photo is.
    duration: float | None = None
    photoDisplayTime: float | None = None
    livePhotoMovie: LivePhotoMovie | None = _of(LivePhotoMovie)
    error: CaptureError | None = _error()
    raw: Mapping[str, Any] = _raw()

    @property
    def is_last(self) -> bool:
        """Nothing comes after it."""
        return self.event == "didFinishCapture"
