# SPDX-License-Identifier: Apache-2.0
"""Photos: pictures that are taken one at a time, as files with all that is known of them, for both clients.

    photo = client.capture_photo("cam0").photo
    photo.save("a.jpg")
    print(photo.image().size)                   # with Pillow

    left, right = client.capture_photo("left", "right").photos      # of the same moment

    with client.session("cam0", "mic0", preset="inputPriority", outputs={"type": "photo", "livePhotoCaptureEnabled":
    True}) as session:
        session.wait_for_live_photos()                              # until the seconds before one are held
        capture = client.capture_photo(session=session.id, live=True)
        capture.photo.save("a.jpg")
        capture.livePhotoMovie.save("a.mov")
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from fractions import Fraction
from typing import Any, Callable, Mapping, Sequence, TypeAlias, TypeVar

from .calls import _object
from .core import AsyncOpened, Call, Core, Opened, given
from .errors import BusTimeout, CaptureError, ClientError, ProtocolError
from .event_feed import EventFeed
from .locks import LockBase, check_seconds, token_for
from .photo_values import LivePhotoMovie, Photo, PhotoCapture, PhotoStage
from .steps import Steps, Wait, beside, deadline, is_over, run
from .values import Reply, read

FEATURE = "photos"
#: How long ago the moment of a photo may be. Seconds.
PASTS = (0.001, 10.0)
#: What photos may take: their cameras may have to begin to stream, and to settle, and
#: others may have them before. Seconds.
PATIENCE = 120.0
#: How long the stages that were told before the answer may come after it: they come by another socket. Seconds.
STAGE_DELAY = 2.0
#: True: of the usual size; a number: pixels of the longer side; or {maxSize, quality}.
ThumbnailWish: TypeAlias = bool | int | Mapping[str, int]


Delivered = TypeVar("Delivered", Photo, LivePhotoMovie)
OnStage: TypeAlias = Callable[[PhotoStage], object]


def settings(
    *,
    format: str | None,
    raw: bool,
    quality: int | None,
    flash: str | None,
    red_eye_reduction: bool,
    stabilization: bool,
    high_resolution: bool,
    max_photo_dimensions: tuple[int, int] | None,
    orientation: str | None,
    mirrored: bool | None,
    turned: bool,
    thumbnail: ThumbnailWish | None,
    bracket: Sequence[float] | None,
    bracket_durations: Sequence[float | str | Fraction] | None,
    burst: int | None,
    interval: float | None,
    ago: float | None,
    live: bool,
    unique_id: str | None,
) -> dict[str, Any]:
    """The `settings` of `photo.capture`."""
    if bracket is not None and bracket_durations is not None:
        raise ValueError("A bracket takes either exposure values or durations.")
    steps: dict[str, Any] | None = None
    if bracket is not None:
        steps = {"exposureBias": list(bracket)}
    elif bracket_durations is not None:
        steps = {"exposureDuration": [str(step) if isinstance(step, Fraction) else step for step in bracket_durations]}
    if ago is not None:
        check_seconds("ago", ago, *PASTS, "None takes it now")
    small = {"maxSize": thumbnail} if isinstance(thumbnail, int) and not isinstance(thumbnail, bool) else thumbnail
    return {
        **given(
            uniqueID=unique_id, format=format, raw=raw, quality=quality, flash=flash, redEyeReduction=red_eye_reduction,
            stabilization=stabilization, highResolution=high_resolution, orientation=orientation, turned=turned,
            thumbnail=dict(small) if isinstance(small, Mapping) else small, bracket=steps, burst=burst,
            interval=None if interval is None else interval * 1000, ago=None if ago is None else ago * 1000,
            livePhoto=live,
        ),  # fmt: skip
        **({} if max_photo_dimensions is None else {"maxPhotoDimensions": _size(max_photo_dimensions)}),
        **({} if mirrored is None else {"mirrored": mirrored}),
    }


def _size(dimensions: tuple[int, int]) -> dict[str, int]:
    width, height = dimensions
    return {"width": width, "height": height}


def _params(
    core: Core,
    devices: Sequence[str],
    rig: str | None,
    session: str | None,
    wishes: Mapping[str, Any],
    deliver: Sequence[str],
    name: str | None,
    lock: LockBase | str | None,
) -> dict[str, Any]:
    if rig is not None and (devices or session is not None) or session is not None and len(devices) > 1:
        raise ValueError("Name devices, or a rig, or a session with at most one of its cameras.")
    if not devices and rig is None and session is None:
        raise ValueError("Name one or more cameras, a rig or a session.")
    subject = given(rig=rig, session=session)
    if len(devices) == 1:
        subject["device"] = devices[0]
    elif devices:
        subject["devices"] = list(devices)
    # Other photos change nothing of a camera, and have no use for its lock.
    changes = wishes.get("flash", "off") != "off" or any(
        wishes.get(name) for name in ("highResolution", "maxPhotoDimensions", "bracket")
    )
    token = token_for(core, devices, lock) if changes or lock is not None else None
    return {**subject, "settings": dict(wishes), "deliver": list(deliver), **given(name=name, lock=token)}


def _captured(reply: Reply) -> PhotoCapture:
    result = _object(reply.result)
    if not isinstance(result.get("uniqueID"), str) or not isinstance(result.get("photos"), list):
        raise ProtocolError("The answer of the bus is invalid: it contains no photos.")
    capture = read(PhotoCapture, result)
    movie = capture.livePhotoMovie
    return replace(
        capture, photos=tuple(_with_data(photo, reply, "photo") for photo in capture.photos),
        livePhotoMovie=None if movie is None else _with_data(movie, reply, "movie"),
    )  # fmt: skip


def _with_data(file: Delivered, reply: Reply, what: str) -> Delivered:
    index = file.raw.get("attachment")
    if index is None:
        return file
    if not isinstance(index, int) or not 0 <= index < len(reply.attachments):
        raise ProtocolError(f"The bus answered with a {what} that did not come.")
    return replace(file, data=bytes(reply.attachments[index].data))


def _request(core: Core, params: Mapping[str, Any], timeout: float | None) -> Steps[PhotoCapture]:
    """Not repeated by itself when the bus ends meanwhile, as the moment would be another one."""
    key = str(uuid.uuid4())
    burst = params["settings"].get("burst", 1) * params["settings"].get("interval", 100) / 1000
    patience = max(core.timeout, PATIENCE) + burst if timeout is None else timeout
    try:
        reply = yield from core.request("photo.capture", params, patience, key)
    except GeneratorExit:
        raise
    except BaseException as error:
        if isinstance(error, BusTimeout) or not isinstance(error, CaptureError):
            # What has not begun by now is for nobody.
            try:
                yield from core.ask(Call("bus.cancel", {"key": key}, dict), 1)
            except CaptureError:
                pass
        raise
    return _captured(reply)


def _capture(
    core: Core, params: dict[str, Any], timeout: float | None, on_stage: OnStage | None
) -> Steps[PhotoCapture]:
    if on_stage is None:
        return (yield from _request(core, params, timeout))
    id = str(params["settings"].setdefault("uniqueID", uuid.uuid4().hex))
    stages = _Stages(core, id, on_stage)
    yield from stages.open()
    try:
        try:
            capture = yield from stages.beside(_request(core, params, timeout))
        except CaptureError as error:
            if not isinstance(error, ClientError):
                yield from stages.end()
            raise
        yield from stages.end()
        return capture
    finally:
        stages.close()


class _Stages:
    """Tells the stages of a request while it is waited for."""

    def __init__(self, core: Core, id: str, tell: OnStage) -> None:
        self._topic = f"event/photo/{id}/"
        self._feed = EventFeed(core, [self._topic])
        self._id = id
        self._tell = tell

    def open(self) -> Steps[None]:
        yield from self._feed.open()

    def close(self) -> None:
        self._feed.close()

    def beside(self, request: Steps[PhotoCapture]) -> Steps[PhotoCapture]:
        """Carries out the request, telling meanwhile what comes."""
        assert self._feed.subscription is not None
        return (yield from beside(request, self._take, self._feed.subscription.sockets))

    def end(self) -> Steps[None]:
        """Tells what was published before the answer: the word that is asked for here comes behind it."""
        until, subscription = deadline(STAGE_DELAY), self._feed.subscription
        assert subscription is not None
        self._feed.rest()
        subscription.probe()
        try:
            self._take()
            while subscription.is_probing and not is_over(until):
                yield Wait(subscription.sockets, until)
                self._take()
        except ClientError:
            pass  # the bus has ended: the answer is what counts

    def _take(self) -> None:
        while (message := self._feed.take()) is not None:
            topic, body = message
            if topic == self._topic and "event" in body:
                self._tell(read(PhotoStage, {**body, "uniqueID": self._id}))


class PhotoCalls(Opened):
    """What `Client` has of photos."""

    def capture_photo(
        self,
        *devices: str,
        rig: str | None = None,
        session: str | None = None,
        format: str | None = None,
        raw: bool = False,
        quality: int | None = None,
        flash: str | None = None,
        red_eye_reduction: bool = False,
        stabilization: bool = False,
        high_resolution: bool = False,
        max_photo_dimensions: tuple[int, int] | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        turned: bool = False,
        thumbnail: ThumbnailWish | None = None,
        bracket: Sequence[float] | None = None,
        bracket_durations: Sequence[float | str | Fraction] | None = None,
        burst: int | None = None,
        interval: float | None = None,
        ago: float | None = None,
        live: bool = False,
        unique_id: str | None = None,
        deliver: Sequence[str] = ("reply",),
        name: str | None = None,
        lock: LockBase | str | None = None,
        on_stage: OnStage | None = None,
        timeout: float | None = None,
    ) -> PhotoCapture:
        """Takes a photo of a camera, or one each of several cameras or a `rig`'s cameras at the same moment. A
        `session` has to be running, with a photo output.

        The photo's file is `data` of each of the `photos`; `deliver=["library"]` puts it into the bus's capture library
        in its place, where `data` is None, and both names do both.

        `format` is `jpeg`, `dng`, the camera's raw picture, or `png` or `tiff`, which lose nothing; None: its first.
        With `raw` a `dng` of the same frame comes beside each: `picture, raw = client.capture_photo("cam0",
        raw=True).photos`, which have one `index`. `quality` is a JPEG's, 1 to 100. `flash` is `on`, `off` or `auto`.
        With `high_resolution` the photo has the camera's largest size, whatever size it streams in, with
        `max_photo_dimensions=(1920, 1080)` its largest one that is not larger. `orientation` (`portrait`,
        `portraitUpsideDown`, `landscapeRight`, `landscapeLeft`) and `mirrored` are told in the file, or, `turned`, its
        pixels are turned without loss. `thumbnail` puts a small picture into it.

        A `bracket` has an exposure for each photo, in EV (`[-2, 0, 2]`), `bracket_durations` in seconds (`["1/125",
        0.5]`); a `burst` is so many photos one after the other, `interval` seconds apart or else frame by frame. What
        is set for them is put back, whatever happens; a locked camera is set only under its `lock`, which is that of
        the `with` block around unless given.

        `ago` is for a photo of so many seconds ago, at most 10, of the pictures that the photo output of a running
        session holds (`preRoll`); else it raises `MomentNotHeld`.

        A `live` photo of a running session, whose photo output has `livePhotoCaptureEnabled`, comes with a movie of the
        1.5 seconds before and after it, with the sound of the session's microphone: `livePhotoMovie`, which is
        delivered as the photo is; in the library both are one entry. It is of one camera, a `jpeg`, and not with
        `bracket`, `burst`, `raw`, a size or `ago`, nor with `orientation` or `mirrored`, which the session's connection
        has for both files; of a session at most four are made at a time. `Session.wait_for_live_photos` waits until the
        seconds before are there.

        `on_stage` is called with each `PhotoStage` as it comes, the last one before this returns. A `unique_id` is good
        for one call.

        Raises `PhotoSettingsReused`, `PhotoFormatUnavailable` (it has what is `available`), `ControlUnsupported`,
        `DeviceBusy`, `SessionNotRunning`, `LimitExceeded`, `DiskFull`, `RecordingInProgress`, `Unauthorized`,
        `Interrupted`, `WorkerCrashed` or `DeviceDisconnected`. A call that is given up tells the bus, which then takes
        no photo that it has not begun.
        """
        wishes = settings(
            format=format, raw=raw, quality=quality, flash=flash, red_eye_reduction=red_eye_reduction,
            stabilization=stabilization, high_resolution=high_resolution, max_photo_dimensions=max_photo_dimensions,
            orientation=orientation, mirrored=mirrored, turned=turned, thumbnail=thumbnail, bracket=bracket,
            bracket_durations=bracket_durations, burst=burst, interval=interval, ago=ago, live=live,
            unique_id=unique_id,
        )  # fmt: skip
        params = _params(self._open, devices, rig, session, wishes, deliver, name, lock)
        return run(_capture(self._open, params, timeout, on_stage))


class AsyncPhotoCalls(AsyncOpened):
    """What `AsyncClient` has of photos. See `Client` for what the calls do."""

    async def capture_photo(
        self,
        *devices: str,
        rig: str | None = None,
        session: str | None = None,
        format: str | None = None,
        raw: bool = False,
        quality: int | None = None,
        flash: str | None = None,
        red_eye_reduction: bool = False,
        stabilization: bool = False,
        high_resolution: bool = False,
        max_photo_dimensions: tuple[int, int] | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        turned: bool = False,
        thumbnail: ThumbnailWish | None = None,
        bracket: Sequence[float] | None = None,
        bracket_durations: Sequence[float | str | Fraction] | None = None,
        burst: int | None = None,
        interval: float | None = None,
        ago: float | None = None,
        live: bool = False,
        unique_id: str | None = None,
        deliver: Sequence[str] = ("reply",),
        name: str | None = None,
        lock: LockBase | str | None = None,
        on_stage: OnStage | None = None,
        timeout: float | None = None,
    ) -> PhotoCapture:
        wishes = settings(
            format=format, raw=raw, quality=quality, flash=flash, red_eye_reduction=red_eye_reduction,
            stabilization=stabilization, high_resolution=high_resolution, max_photo_dimensions=max_photo_dimensions,
            orientation=orientation, mirrored=mirrored, turned=turned, thumbnail=thumbnail, bracket=bracket,
            bracket_durations=bracket_durations, burst=burst, interval=interval, ago=ago, live=live,
            unique_id=unique_id,
        )  # fmt: skip
        params = _params(self._open, devices, rig, session, wishes, deliver, name, lock)
        return await self._run(_capture(self._open, params, timeout, on_stage))
