# SPDX-License-Identifier: Apache-2.0
"""The frames of cameras as they are iterated over, for both clients."""

from __future__ import annotations

from .core import AsyncOpened, Opened
from .errors import CaptureError
from .following import AsyncFollowing, Following
from .frame import Frame
from .frame_feed import FrameErrors, FrameFeed
from .session_frames import SessionFeed


class Frames(Following[Frame]):
    """An iterator over frames; `close` or the end of a `with` block ends the subscription."""

    _feed: FrameFeed | SessionFeed

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by device; around the start of a new stream none are counted
        (Protocol/spec/frames.md).
        """
        return self._feed.lost

    @property
    def late(self) -> dict[str, int]:
        """Of `shared` frames: those that were overwritten before they were used, or while they were, by device. Those
        of the first kind count as `lost` too: missed are `lost`, and those that were not intact.
        """
        return self._feed.late

    @property
    def last_error(self) -> CaptureError | None:
        """Why a camera gave no frame, the last time that one did not; None: that was never so."""
        return self._feed.last_error


class AsyncFrames(AsyncFollowing[Frame]):
    _feed: FrameFeed | SessionFeed

    @property
    def lost(self) -> dict[str, int]:
        return self._feed.lost

    @property
    def late(self) -> dict[str, int]:
        return self._feed.late

    @property
    def last_error(self) -> CaptureError | None:
        return self._feed.last_error


class FrameCalls(Opened):
    """What `Client` has of frames."""

    def frames(
        self,
        *devices: str,
        rendition: str | None = None,
        limit: int | None = None,
        timeout: float = 10.0,
        errors: FrameErrors = "wait",
        shared: bool = False,
    ) -> Frames:
        """The newest frame of each device, in turn. When this returns, the subscription is in force.

        Whoever is slow misses frames; `frame.lost` counts. After a pause of the program the first few (four at most)
        may be as old as the pause: `frame.timestamp.monotonic` tells, and `shared` ones never are
        (Protocol/spec/frames.md). `rendition` is what is wanted (`native` unless told otherwise; over TCP `jpeg`):
        `jpeg:640x360@10`, `bgr:360x0,rotate=90,mirror`, or `jpeg,crop=800x450+100+50`. H.264 comes frame by frame, from
        a key frame on, and after a loss from the next one on. `limit` ends the loop after so many frames.

        A camera that stops giving frames (unplugged, taken by another program, its process restarted) does not end the
        loop: when it is back, its frames come again, and meanwhile `last_error` says why there are none. What does not
        pass by itself raises, and so does whatever keeps a camera from giving its first frame; `next()` may be called
        again all the same, while a `for` loop that raised has ended the subscription. `errors="raise"` raises each
        time; `errors="frames"` raises nothing and gives an empty frame with `frame.error` instead, about once a second.
        `BusTimeout`, or what the bus says is wrong, is raised when a camera gives neither frames nor reasons for
        `timeout`.

        With `shared` nothing is copied: `payload` and `array()` are views of memory that all readers share, and that
        the camera writes to again some frames later (four at least). Use a frame at once, then ask `frame.is_intact()`:
        if it says False, throw away what was made of it (`late` counts). What is to be kept is to be copied:
        `frame.copy()`. Where no shared memory can be had, from a bus that knows none, from another machine (`NotShared`
        warns of that) or for want of memory, frames come as usual; `is_intact()` is always True then.
        """
        return Frames(FrameFeed(self._open, devices, rendition, limit, timeout, errors, shared))


class AsyncFrameCalls(AsyncOpened):
    """What `AsyncClient` has of frames. See `Client` for what the calls do."""

    def frames(
        self,
        *devices: str,
        rendition: str | None = None,
        limit: int | None = None,
        timeout: float = 10.0,
        errors: FrameErrors = "wait",
        shared: bool = False,
    ) -> AsyncFrames:
        """The subscription is in force when this is entered (`async with`), or else with the first frame."""
        return AsyncFrames(FrameFeed(self._open, devices, rendition, limit, timeout, errors, shared), self._run)
