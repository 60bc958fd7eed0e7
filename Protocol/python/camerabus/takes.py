# SPDX-License-Identifier: Apache-2.0
"""Takes: movies that are recorded in segments, any of which can be thrown away, and that are joined in the end; for
both clients.

    with client.take("cam0", microphone="mic0", max_duration=15) as take:
        for _ in range(2):
            with take.record():
                …
        take.delete(take.segments[0])
        print(take.finish(path="/tmp/take.mp4").path)
"""

from __future__ import annotations

import math
import os
from types import TracebackType
from typing import Any, AsyncIterator, Iterator, Mapping, Self

from .calls import _object
from .closing import Pending, first_error
from .core import AsyncOpened, Call, Core, Opened, given
from .errors import BusGone, BusTimeout, NotRecording, TakeNotFound
from .mirroring import MirrorBase
from .movie_messages import MovieEnding, _patience, _start
from .movies import AsyncMovie, Movie, MovieBase
from .steps import Runner, Steps, deadline, is_over, run
from .take_values import FinishedTake, SegmentEnding, TakeSegment, TakeState
from .values import read, read_list

FEATURE = "takes"
#: How long the end of a take may take: where its segments can't be joined as they are, they are encoded. Seconds.
FINISHING = 600.0


def _state_of(result: Any) -> TakeState:
    return read(TakeState, _object(result).get("take"))


def _create(core: Core, params: Mapping[str, Any], timeout: float | None) -> Steps[TakeState]:
    def undo(made: TakeState) -> list[Call[Any]]:
        return [Call("take.discard", {"take": made.id}, _object)]

    return (yield from core.ask_for(Call("take.create", dict(params), _state_of), undo, timeout))


def _get(id: str) -> Call[TakeState]:
    return Call("take.get", {"take": id}, _state_of, True)


def _listing() -> Call[list[TakeState]]:
    return Call("take.list", {}, lambda result: read_list(TakeState, _object(result).get("takes")), True)


def _deleted(result: Any) -> list[str]:
    return list(_object(result).get("deleted") or [])


def wishes(
    *,
    device: str | None,
    microphone: str | None,
    session: str | None,
    name: str | None,
    min_duration: float | None,
    max_duration: float | None,
    preset: str | None,
    orientation: str | None,
    mirrored: bool | None,
    detached: bool,
) -> dict[str, Any]:
    """The params of `take.create`."""
    milliseconds = {
        name: seconds * 1000
        for name, seconds in (("minDuration", min_duration), ("maxDuration", max_duration))
        if seconds is not None
    }
    subject = given(
        device=device, session=session, microphone=microphone, name=name, exportPreset=preset, orientation=orientation,
        detached=detached,
    )
    return {**subject, **milliseconds, **({} if mirrored is None else {"mirrored": mirrored})}


class TakeBase:
    """What both kinds of take have."""

    def __init__(self, core: Core, state: TakeState) -> None:
        self._core = core
        #: How far it was when it was last asked about, or told.
        self.state = state
        #: It is finished or discarded, as far as this object knows.
        self.is_over = False

    def __repr__(self) -> str:
        how = "over" if self.is_over else f"{self.state.state}, {len(self.segments)} segments"
        return f"<{type(self).__name__} {self.id}: {how}>"

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def segments(self) -> tuple[TakeSegment, ...]:
        """Those that were finished when it was last asked about, or told."""
        return self.state.segments

    def _ask(self, timeout: float | None) -> Steps[TakeState]:
        try:
            self.state = yield from self._core.ask(_get(self.id), timeout)
        except TakeNotFound:
            self.is_over = True
            raise
        return self.state

    def _pause(self, timeout: float | None) -> Steps[SegmentEnding]:
        # Once more does no harm.
        call = Call("take.pause", {"take": self.id}, lambda result: read(SegmentEnding, result), True)
        ending = yield from self._core.ask(call, _patience(self._core, timeout))
        yield from self._refresh()
        return ending

    def _refresh(self) -> Steps[None]:
        try:
            yield from self._ask(None)
        except TakeNotFound:
            pass

    def _delete(self, segment: TakeSegment | str, timeout: float | None) -> Steps[list[str]]:
        id = segment if isinstance(segment, str) else segment.id

        def deleted(result: Any) -> list[str]:
            self.state = _state_of(result)
            return _deleted(result)

        return (yield from self._core.ask(Call("take.delete", {"take": self.id, "segment": id}, deleted), timeout))

    def _finish(
        self, path: str | os.PathLike[str] | None, name: str | None, timeout: float | None
    ) -> Steps[FinishedTake]:
        place = given(path=None if path is None else os.path.abspath(path), name=name)
        call = Call("take.finish", {"take": self.id, **place}, lambda result: read(FinishedTake, result))
        finished = yield from self._core.ask(call, FINISHING if timeout is None else timeout)
        self.is_over = True
        return finished

    def _discard(self, timeout: float | None) -> Steps[list[str]]:
        deleted = yield from self._core.ask(
            Call("take.discard", {"take": self.id}, _deleted), _patience(self._core, timeout)
        )
        self.is_over = True
        return deleted

    def _leave(self) -> Steps[None]:
        if self.is_over:
            return
        try:
            yield from self._pause(None)
        except (NotRecording, TakeNotFound):
            pass  # there was nothing to be ended

    def _mirror(self) -> TakeMirror:
        return TakeMirror(self._core, self)


class SegmentBase(MovieBase):
    """A movie that is a segment: the take has it when it has ended."""

    _take: TakeBase

    def _end(self, timeout: float | None) -> Steps[MovieEnding]:
        ending = yield from super()._end(timeout)
        yield from self._take._refresh()
        return ending


class Segment(SegmentBase, Movie):
    """A segment that is recorded: the end of a `with` block ends it, and waits until its file is on the disk."""


class AsyncSegment(SegmentBase, AsyncMovie):
    """The same for asyncio."""


class TakeMirror(MirrorBase):
    """A take's state as it changes, until it is over."""

    def __init__(self, core: Core, take: TakeBase) -> None:
        super().__init__(core, f"state/take/{take.id}/")
        self._take = take
        self._told: Mapping[str, Any] | None = None

    def next(self, until: float) -> Steps[TakeState | None]:
        """The next state; None: it is over. Raises `BusTimeout` when nothing changes in time."""
        if self._events.subscription is None:
            yield from self._open()
        while not self._take.is_over:
            value = self.get(self.prefix)
            if value is not None and value != self._told:
                self._told = value
                self._take.state = read(TakeState, value)
                return self._take.state
            if value is None and (yield from self._is_over()):
                break
            if is_over(until):
                raise BusTimeout(f"The take {self._take.id} did not change in time.")
            yield from self._update(until)
        return None

    def _is_over(self) -> Steps[bool]:
        try:
            yield from self._take._ask(None)
        except BusGone:
            pass  # the next bus will tell
        except TakeNotFound:
            return True
        return False

    def close(self) -> None:
        self._events.close()


class Take(TakeBase):
    """A take that the bus keeps: the end of a `with` block ends the segment that is recorded, and nothing else. It
    stays until it is finished or discarded.
    """

    def record(self, *, timeout: float | None = None) -> Segment:
        """Begins a segment, behind the others; answers when the first frame is in its file. With picture and sound it
        begins with its first sound.

        It is a movie, and ends by `pause`, with its `with` block, or by itself when all together are as long as
        `max_duration`. Raises `RecordingInProgress` while one is recorded, `LimitExceeded` when there is no room for
        more, and what `Client.record` raises.
        """
        segment = Segment(self._core, run(_start(self._core, {"take": self.id}, timeout, "take.record"))[0])
        segment._take = self
        return segment

    def pause(self, timeout: float | None = None) -> SegmentEnding:
        """Ends the segment that is recorded. Answers when its file is closed and on the disk; where none is recorded,
        how the last one ended.
        """
        return run(self._pause(timeout))

    def status(self, timeout: float | None = None) -> TakeState:
        """How far it is."""
        return run(self._ask(timeout))

    def delete(self, segment: TakeSegment | str, timeout: float | None = None) -> list[str]:
        """Throws a segment away, whichever it is. Returns the paths of the files that were there."""
        return run(self._delete(segment, timeout))

    def finish(
        self, *, path: str | os.PathLike[str] | None = None, name: str | None = None, timeout: float | None = None
    ) -> FinishedTake:
        """Joins the segments into one MP4 file with H.264 and AAC: `path`, or `name` in the capture library. The
        segments and the take are gone then; where it fails, the take is as it was.

        Raises `RecordingInProgress`, `NotRecording` without segments, `PathNotAllowed`, `DiskFull`, `InvalidParams` if
        there is such a file.
        """
        return run(self._finish(path, name, timeout))

    def discard(self, timeout: float | None = None) -> list[str]:
        """Throws it away with all of its segments. Returns the paths of the files that were there."""
        return run(self._discard(timeout))

    def states(self, timeout: float = math.inf) -> Iterator[TakeState]:
        """How far it is, as it changes, until it is over. `BusTimeout` when nothing changes for `timeout`."""
        mirror = self._mirror()
        try:
            while (state := run(mirror.next(deadline(timeout)))) is not None:
                yield state
        finally:
            mirror.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            run(self._leave())


class AsyncTake(TakeBase):
    """The same for asyncio."""

    def __init__(self, core: Core, state: TakeState, runner: Runner) -> None:
        super().__init__(core, state)
        self._run = runner

    def record(self, *, timeout: float | None = None) -> Pending[AsyncSegment]:
        """`await take.record()`, or `async with take.record():`."""

        async def start() -> AsyncSegment:
            started = await self._run(_start(self._core, {"take": self.id}, timeout, "take.record"))
            segment = AsyncSegment(self._core, started[0], self._run)
            segment._take = self
            return segment

        return Pending(start)

    async def pause(self, timeout: float | None = None) -> SegmentEnding:
        return await self._run(self._pause(timeout))

    async def status(self, timeout: float | None = None) -> TakeState:
        return await self._run(self._ask(timeout))

    async def delete(self, segment: TakeSegment | str, timeout: float | None = None) -> list[str]:
        return await self._run(self._delete(segment, timeout))

    async def finish(
        self, *, path: str | os.PathLike[str] | None = None, name: str | None = None, timeout: float | None = None
    ) -> FinishedTake:
        return await self._run(self._finish(path, name, timeout))

    async def discard(self, timeout: float | None = None) -> list[str]:
        return await self._run(self._discard(timeout))

    async def states(self, timeout: float = math.inf) -> AsyncIterator[TakeState]:
        mirror = self._mirror()
        try:
            while (state := await self._run(mirror.next(deadline(timeout)))) is not None:
                yield state
        finally:
            mirror.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            await self._run(self._leave())


class TakeCalls(Opened):
    """What `Client` has of takes."""

    def take(
        self,
        device: str | None = None,
        *,
        microphone: str | None = None,
        session: str | None = None,
        name: str | None = None,
        min_duration: float | None = None,
        max_duration: float | None = None,
        preset: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        detached: bool = False,
        timeout: float | None = None,
    ) -> Take:
        """Makes a take of a camera, or of a session's, with a microphone's sound if one is named; nothing is recorded
        yet.

        It is this user's, also when the process has ended, until it is finished or discarded. A segment ends with the
        process that began it, unless the take is `detached`; all of them by themselves when they are as long together
        as `max_duration` seconds. What is shorter than `min_duration` is told, and can be finished all the same. `name`
        is what its files are called in the library, `preset` the largest picture of the finished movie (`"1280x720"`);
        `orientation` (`portrait`, `landscapeRight`, …) and `mirrored` say how it is to be shown, where that is not a
        session's to say.
        """
        params = wishes(
            device=device, microphone=microphone, session=session, name=name, min_duration=min_duration,
            max_duration=max_duration, preset=preset, orientation=orientation, mirrored=mirrored, detached=detached,
        )  # fmt: skip
        return Take(self._open, run(_create(self._open, params, timeout)))

    def takes(self, *, timeout: float | None = None) -> list[TakeState]:
        """Those that are neither finished nor discarded, in the order in which they were made."""
        return run(self._open.ask(_listing(), timeout))

    def find_take(self, id: str, *, timeout: float | None = None) -> Take:
        """A take that is not over, perhaps made by another process. Raises `TakeNotFound`."""
        return Take(self._open, run(self._open.ask(_get(id), timeout)))


class AsyncTakeCalls(AsyncOpened):
    """The same for asyncio. See `Client` for what the calls do."""

    def take(
        self,
        device: str | None = None,
        *,
        microphone: str | None = None,
        session: str | None = None,
        name: str | None = None,
        min_duration: float | None = None,
        max_duration: float | None = None,
        preset: str | None = None,
        orientation: str | None = None,
        mirrored: bool | None = None,
        detached: bool = False,
        timeout: float | None = None,
    ) -> Pending[AsyncTake]:
        """`await client.take(…)`, or `async with client.take(…) as take:`. See `Client.take`."""
        params = wishes(
            device=device, microphone=microphone, session=session, name=name, min_duration=min_duration,
            max_duration=max_duration, preset=preset, orientation=orientation, mirrored=mirrored, detached=detached,
        )  # fmt: skip
        core = self._open

        async def make() -> AsyncTake:
            return AsyncTake(core, await self._run(_create(core, params, timeout)), self._run)

        return Pending(make)

    async def takes(self, *, timeout: float | None = None) -> list[TakeState]:
        return await self._run(self._open.ask(_listing(), timeout))

    async def find_take(self, id: str, *, timeout: float | None = None) -> AsyncTake:
        return AsyncTake(self._open, await self._run(self._open.ask(_get(id), timeout)), self._run)
