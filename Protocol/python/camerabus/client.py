# SPDX-License-Identifier: Apache-2.0
"""The client for programs that wait by blocking. `AsyncClient` has the same names."""

from __future__ import annotations

import math
import os
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Self, Sequence

from . import calls
from .calls import FormatWish, FrameRateWish
from .cameras import CameraMethods
from .closing import Closing, Subscribed, first_error
from .core import Core
from .errors import BusTimeout, CaptureError
from .following import Following
from .frame import Frame
from .library import LibraryCalls
from .locks import LockBase, token_for
from .mirroring import MirrorBase
from .movies import MovieCalls
from .rigs import RigCalls
from .session_frames import SessionFeed
from .sound import SoundCalls
from .sources import SourceMethods
from .sessions import SessionCalls
from .permission import PermissionCalls
from .photos import PhotoCalls
from .place import Key
from .steps import deadline, is_over, run
from .subscription import EventFeed, FrameErrors, FrameFeed
from .takes import TakeCalls
from .values import Change, Configuration, Control, Device, Event, Format, Hello, Locks, Reply, Usage


class Client(
    Closing,
    CameraMethods,
    LibraryCalls,
    MovieCalls,
    PermissionCalls,
    PhotoCalls,
    RigCalls,
    SessionCalls,
    SoundCalls,
    SourceMethods,
    TakeCalls,
):
    """A connection to the bus, for use in one thread.

    All times are seconds. `timeout` is how long a call may take unless it says otherwise; `name` is what others see as ours.
    Raises `BusNotRunning` when there is no bus.

    `Client("tcp://rig:7350", server_key="…", key="laptop.key")` is one on another machine, behind its gateway: `server_key` is the
    gateway's public key (or a file with it), `key` the file that `camerabus keys new` made here (or a public and a secret key), whose public
    half the gateway was told. All is the same there but this: frames are asked for one by one, as `jpeg` unless told otherwise, so that a slow link
    shows the present; locks have a lease, which this renews until they are released; nothing is in shared memory.
    """

    def __init__(
        self,
        runtime_dir: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        server_key: str | os.PathLike[str] | None = None,
        key: Key | None = None,
    ) -> None:
        self._core: Core | None = None
        core = Core(runtime_dir, name, timeout, server_key, key)
        try:
            core.hello = run(core.ask(core.greeting()))
        except BaseException:
            core.close()
            raise
        self._core = core

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core or 'closed'}>"

    def close(self) -> None:
        """Ends all connections, also those of frames(), watch() and mirror()."""
        if self._core is not None:
            self._core.close()
            self._core = None

    @property
    def _open(self) -> Core:
        if self._core is None:
            raise ValueError("This client is closed.")
        return self._core

    # The bus

    @property
    def hello(self) -> Hello:
        """What the bus said of itself when it was last asked."""
        assert self._open.hello is not None
        return self._open.hello

    @property
    def runtime_dir(self) -> str:
        """The directory of the bus's sockets; the address of one on another machine."""
        return str(self._open.place)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *, key: str | None = None
    ) -> Any:
        """Any method of the bus by its name; answers its result. With a `key` a repetition is recognised as such."""
        return self.request(method, params, timeout, key=key).result

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *, key: str | None = None
    ) -> Reply:
        """The same, with the reply's attachments."""
        return run(self._open.request(method, params, timeout, key))

    def ping(self, timeout: float | None = None) -> None:
        run(self._open.ask(calls.ping(), timeout))

    # Devices

    def devices(
        self, media: str | None = None, *, type: str | None = None, position: str | None = None, timeout: float | None = None
    ) -> list[Device]:
        """All devices, or only those of a medium (`video`, `audio`), a type or a position, in the order in which they are offered:
        the first that is `connected` is the default device."""
        return run(self._open.ask(calls.devices(media, type, position), timeout))

    def device(self, device: str, *, timeout: float | None = None) -> Device:
        return run(self._open.ask(calls.device(device), timeout))

    def formats(self, device: str, *, timeout: float | None = None) -> list[Format]:
        return run(self._open.ask(calls.formats(device), timeout))

    def controls(self, device: str, *, timeout: float | None = None) -> dict[str, Control]:
        """The device's controls by name, each with its range and value."""
        return run(self._open.ask(calls.controls(device), timeout))

    def who(self, device: str, *, timeout: float | None = None) -> Usage:
        """Who holds or streams the device: clients of the bus, and programs beside it."""
        return run(self._open.ask(calls.who(device), timeout))

    # Changes

    def rename(
        self, device: str, name: str | None, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> Device:
        """Gives a device another id, which it keeps; with None it goes by the one that the bus gives it. Answers it as it is then.

        A lock on it stays in force; subscriptions are to be made anew under the new id.
        """
        token = token_for(self._open, [device], lock)
        return run(self._open.ask(calls.rename(device, name, token), timeout))

    def lock(
        self, *devices: str, wait: float = 0.0, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> Lock:
        """Locks devices for configuration, all or none; ends with the `with` block, or with this process.

        Raises `DeviceBusy`, which after a `wait` is its kind `LockTimeout`; both have the `holder`. With a `lease` it ends by itself
        after that time unless renewed. Times are seconds.

        Within `camerabus lock … -- program` ($CAMERABUS_LOCK) the program joins that lock, and leaves it as it is, if it covers all of the
        devices. If it covers some of them only, that is `LockRequired`; if it is over, `LockLost`.
        """
        lock = Lock(self._open, devices, wait, lease, note)
        run(lock._acquire(timeout))
        return lock

    def take_over(
        self, *devices: str, lease: float | None = None, note: str | None = None, timeout: float | None = None
    ) -> Lock:
        """Takes devices from whoever has them locked; for administrators. The loser's lock ends as a whole, and it is told."""
        lock = Lock(self._open, devices, 0.0, lease, note, takes_over=True)
        run(lock._acquire(timeout))
        return lock

    def locks(self, *, timeout: float | None = None) -> Locks:
        """All locks, and who waits for one."""
        return run(self._open.ask(calls.locks(), timeout))

    def configure(
        self,
        changes: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        activeFormat: FormatWish | None = None,
        frameRate: FrameRateWish | None = None,
        controls: Mapping[str, Any] | None = None,
        mode: str | None = None,
        dry_run: bool = False,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
    ) -> Configuration:
        """Changes all that is named, or nothing: one device by its id, or a list of changes ({device, activeFormat, …}).

        `mode="nearest"` takes what comes nearest instead of refusing; `dry_run` only says what would come of it. The lock is the one
        of the `with` block around, unless given.
        """
        batch = calls.changes(changes, activeFormat, frameRate, controls)
        token = token_for(self._open, [change.get("device", "") for change in batch], lock)
        return run(self._open.ask(calls.configure(batch, mode, dry_run, token), timeout))

    def set(
        self,
        device: str,
        values: Mapping[str, Any] | None = None,
        /,
        *,
        lock: LockBase | str | None = None,
        timeout: float | None = None,
        **controls: Any,
    ) -> Configuration:
        """Sets controls: `client.set("cam0", brightness=10)`. Outside of a lock it takes one for just this call."""
        token = token_for(self._open, [device], lock)
        return run(self._open.ask(calls.set_controls(device, {**(values or {}), **controls}, token), timeout))

    # What the bus publishes

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

        Whoever is slow misses frames; `frame.lost` counts. After a pause of the program the first few (four at most) may be as old as the
        pause: `frame.timestamp.monotonic` tells, and `shared` ones never are (Protocol/SPEC.md, section 9.5). `rendition` is what is wanted
        (`native` unless told otherwise; over TCP `jpeg`): `jpeg:640x360@10`, or `bgr:360x0;rotate=90;mirror`. H.264 comes frame by frame, from a key frame on, and after a loss from the
        next one on. `limit` ends the loop after so many frames.

        A camera that stops giving frames (unplugged, taken by another program, its process restarted) does not end the loop: when it is
        back, its frames come again, and meanwhile `last_error` says why there are none. What does not pass by itself raises, and so does
        whatever keeps a camera from giving its first frame; `next()` may be called again all the same. `errors="raise"` raises
        each time; `errors="frames"` raises nothing and gives an empty frame with `frame.error` instead, about once a second.
        `BusTimeout`, or what the bus says is wrong, is raised when a camera gives neither frames nor reasons for `timeout`.

        With `shared` nothing is copied: `payload` and `array()` are views of memory that all readers share, and that the camera writes
        to again some frames later (four at least). Use a frame at once, then ask `frame.is_intact()`: if it says False, throw away what was
        made of it (`late` counts). What is to be kept is to be copied: `frame.copy()`. Where no shared memory can be had, from a bus that knows
        none or for want of memory, frames come as usual; `is_intact()` is always True then.
        """
        return Frames(FrameFeed(self._open, devices, rendition, limit, timeout, errors, shared))

    def watch(self, *topics: str, timeout: float = math.inf) -> Watch:
        """State and events as they go by; ends when nothing came for `timeout`, and raises `BusEnded` when the bus ends, `BusNotRunning` or
        `BusTimeout` when its heartbeat is missing for 3 s. `next()` goes on with the next bus."""
        return Watch(EventFeed(self._open, topics, timeout))

    def mirror(self, prefix: str = "state/") -> Mirror:
        """A copy of the bus's state below `prefix`, complete from the start."""
        return Mirror(self._open, prefix)


class Lock(LockBase):
    """A lock on devices, ended by `release` or by leaving its `with` block, in which all changes use it."""

    def renew(self, timeout: float | None = None) -> None:
        """Starts the lease anew."""
        run(self._renew(timeout))

    def release(self, timeout: float | None = None) -> None:
        run(self._release(timeout))

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._leave()
        with first_error(error):
            self.release()


class Frames(Following[Frame]):
    """An iterator over frames; `close` or the end of a `with` block ends the subscription."""

    _feed: FrameFeed | SessionFeed

    @property
    def lost(self) -> dict[str, int]:
        """Frames missed so far, by device; around the start of a new stream none are counted (Protocol/SPEC.md, section 9.5)."""
        return self._feed.lost

    @property
    def late(self) -> dict[str, int]:
        """Of `shared` frames: those that were overwritten before they were used, or while they were, by device. Those of the first kind
        count as `lost` too: missed are `lost`, and those that were not intact."""
        return self._feed.late

    @property
    def last_error(self) -> CaptureError | None:
        """Why a camera gave no frame, the last time that one did not; None: that was never so."""
        return self._feed.last_error


class Watch(Following[Event]):
    """An iterator over events."""


class Mirror(Subscribed, MirrorBase):
    """State by topic. It stands still until `update`, `wait` or `changes` brings it up to date."""

    def __init__(self, core: Core, prefix: str) -> None:
        super().__init__(core, prefix)
        run(self._open())

    def update(self, timeout: float = 0.0) -> list[Change]:
        """Takes in what has come, and waits up to `timeout` for the first change."""
        return run(self._update(deadline(timeout)))

    def wait(self, condition: Callable[[Mapping[str, Any]], Any], timeout: float = 10.0) -> None:
        """Until the condition is true of the mirror, or `BusTimeout`."""
        until = deadline(timeout)
        self.update()
        while not condition(self):
            if is_over(until):
                raise BusTimeout(f"The state under {self.prefix} did not become what was waited for within {timeout:g} s.")
            run(self._update(until))

    def changes(self, timeout: float = math.inf) -> Iterator[Change]:
        """Changes as they come; ends when none came for `timeout`."""
        while changes := self.update(timeout):
            yield from changes

    def close(self) -> None:
        self._events.close()
