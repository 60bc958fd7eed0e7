# SPDX-License-Identifier: Apache-2.0
"""Sessions: inputs, outputs and a preset, kept running by the bus, for both clients."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generator, Mapping, Self, Sequence, TypeAlias

from . import rates
from .calls import _object
from .closing import first_error
from .core import AsyncOpened, Call, Core, Opened, given
from .errors import CaptureError, SessionNotFound, SessionNotRunning, Unauthorized
from .frame_feed import FrameErrors, FrameFeed
from .frames import AsyncFrames, Frames
from .locks import LockBase, token_for
from .mirroring import MirrorBase
from .photo_values import LIVE_PHOTO_REACH
from .session_frames import SessionFeed
from .session_values import CanAdd, SessionAnswer, SessionDelivery, SessionState
from .steps import Runner, Steps, deadline, is_over, run
from .values import read, read_list

#: `"cam0"`, or {device, activeFormat?, frameRate?, preferredDataSource?}.
InputWish: TypeAlias = str | Mapping[str, Any]
#: `"videoData"`, or {type, id?, format?, width?, height?, frameRate?, quality?}; of `"audioData"` {type, id?, format?,
#: rate?, channels?}; of `"photo"` {type, id?, preRoll?: milliseconds, photoSettingsForSceneMonitoring?: {flash?,
#: stabilization?}, livePhotoCaptureEnabled?, livePhotoCaptureSuspended?, livePhotoAutoTrimmingEnabled?}.
OutputWish: TypeAlias = str | Mapping[str, Any]
#: {addInput: …}, {preset: …}, {connection: {…}}, …: an object with one member.
SessionAction: TypeAlias = Mapping[str, Any]


def _listing() -> Call[list[SessionState]]:
    return Call("session.list", {}, lambda result: read_list(SessionState, _object(result).get("sessions")), True)


def _past_held(state: Any) -> float | None:
    """Seconds that the photo output of a session holds for live photos; None: it makes none."""
    for output in state.get("outputs", ()) if isinstance(state, Mapping) else ():
        if output.get("livePhotoCaptureEnabled"):
            return float(output.get("livePhotoPast") or 0) / 1000
    return None


def _delivery(
    id: str,
    state: SessionState | None,
    resolved: Sequence[SessionDelivery],
    explanation: Sequence[str],
    output: str | None,
    device: str | None,
) -> SessionDelivery:
    for delivery in resolved:
        has_pictures = delivery.topic is not None and delivery.mediaType == "video"
        is_meant = output in (delivery.output, delivery.type) if output else has_pictures
        if not is_meant or device not in (None, delivery.device):
            continue
        if not delivery.device:
            raise SessionNotRunning(f"{delivery.output}: {delivery.why}", {"session": id})
        return delivery
    if state is not None and state.state == "waitingForAuthorization":
        why = " ".join(explanation) or "The session waits for permission."
        has_cameras = any(each.get("mediaType", "video") == "video" for each in state.inputs)
        raise Unauthorized(
            why, {"status": "notDetermined", "needed": "video" if has_cameras else "audio", "session": id}
        )
    if state is not None and state.interruption is not None:
        raise SessionNotRunning(state.interruption.message, {"session": id})
    raise SessionNotRunning("The session has no such output that gets frames now. Is the session started?", {"session": id})


class SessionBase:
    """What both kinds of session have."""

    def __init__(self, core: Core, params: Mapping[str, Any] | None = None, id: str = "") -> None:
        self._core = core
        self._params = params
        #: Empty until the session has been made.
        self.id = id
        #: As it was when it was last asked about.
        self.state: SessionState | None = None
        #: What each output gets, or would if the session were started.
        self.resolved: tuple[SessionDelivery, ...] = ()
        #: As `SessionAnswer.hardwareCost` has it.
        self.hardware_cost = 0.0
        #: Why, in sentences.
        self.explanation: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id or 'not made'}: {self.state.state if self.state else '?'}>"

    @property
    def is_running(self) -> bool:
        """As of the last answer."""
        return self.state is not None and self.state.state == "running"

    def delivery(self, output: str | None = None, device: str | None = None) -> SessionDelivery:
        """What an output gets, by its id or type (else the first that has pictures), of that device, or of the first.

        Of sound, `client.sound(got.device, rendition=got.rendition)` gives it.
        """
        return _delivery(self.id, self.state, self.resolved, self.explanation, output, device)

    def _feed(
        self, output: str | None, device: str | None, limit: int | None, timeout: float, errors: FrameErrors,
        shared: bool,
    ) -> SessionFeed:
        def choose(value: Any) -> tuple[str, str]:
            state = read(SessionState, value)
            if not state.wanted and state.error:
                raise CaptureError.from_header(state.error)
            if not state.wanted:
                raise SessionNotRunning("The session is not started.", {"session": self.id})
            delivery = _delivery(state.id, state, state.resolved, state.explanation, output, device)
            return delivery.device, delivery.rendition or "native"

        def make(device: str, rendition: str) -> FrameFeed:
            return FrameFeed(self._core, (device,), rendition, None, timeout, errors, shared)

        return SessionFeed(self._core, self.id, choose, make, limit, timeout, errors)

    def _learn(self, answer: SessionAnswer) -> SessionAnswer:
        self.id, self.state = answer.session or self.id, answer.state
        self.resolved, self.explanation = answer.resolved, answer.explanation
        self.hardware_cost = answer.hardwareCost
        return answer

    def _token(self, lock: LockBase | str | None) -> dict[str, Any]:
        devices = [each.get("device", "") for each in self.state.inputs] if self.state is not None else []
        token = token_for(self._core, devices, lock)
        return {} if token is None else {"lock": token}

    def _ask(
        self, method: str, params: Mapping[str, Any], timeout: float | None, again: bool = False
    ) -> Steps[SessionAnswer]:
        call = Call(
            f"session.{method}", {"session": self.id, **params}, lambda result: read(SessionAnswer, result), again
        )
        return self._learn((yield from self._core.ask(call, timeout)))

    def _create(self, timeout: float | None) -> Steps[None]:
        if self.id or self._params is None:
            return
        call: Call[SessionAnswer] = Call(
            "session.create", dict(self._params), lambda result: read(SessionAnswer, result)
        )

        def undo(made: SessionAnswer) -> list[Call[Any]]:
            return [Call("session.delete", {"session": made.session}, _object)]

        self._learn((yield from self._core.ask_for(call, undo, timeout)))

    def _can_add(self, action: SessionAction, timeout: float | None) -> Steps[CanAdd]:
        params = {"session": self.id, "action": _action(action)}
        return (
            yield from self._core.ask(
                Call("session.canAdd", params, lambda result: read(CanAdd, result), True), timeout
            )
        )

    def _await_past(self, timeout: float) -> Steps[float]:
        topic, until = f"state/session/{self.id}/", deadline(timeout)
        mirror = MirrorBase(self._core, topic)
        yield from mirror._open()
        try:
            while (
                (held := _past_held(mirror.get(topic))) is not None and held < LIVE_PHOTO_REACH and not is_over(until)
            ):
                yield from mirror._update(until)
            return held or 0.0
        finally:
            mirror._events.close()

    def _delete(self, timeout: float | None) -> Steps[bool]:
        id, self.id, self._params = self.id, "", None
        if not id:
            return True
        kept = True
        try:
            answer = yield from self._core.ask(Call("session.delete", {"session": id}, _object), timeout)
            kept = answer.get("kept", True) is not False
        except SessionNotFound:
            pass
        self.state, self.resolved, self.hardware_cost, self.explanation = None, (), 0.0, ()
        return kept


def _inputs(devices: Sequence[InputWish], inputs: Sequence[InputWish] | None) -> Sequence[InputWish] | None:
    if devices and inputs is not None:
        raise TypeError("give the inputs of a session either as arguments or as inputs=")
    return devices or inputs


def wishes(
    inputs: Sequence[InputWish] | None,
    outputs: OutputWish | Sequence[OutputWish] | None,
    preset: str | None,
    priority: int,
    name: str | None,
    detached: bool,
) -> dict[str, Any]:
    """The params of `session.create`."""
    params: dict[str, Any] = {}
    if inputs is not None:
        params["inputs"] = [rates.member(each) for each in inputs]
    if isinstance(outputs, (str, Mapping)):
        outputs = [outputs]  # one
    if outputs is not None:
        params["outputs"] = [rates.member(each) for each in outputs]
    return {**params, **given(preset=preset, priority=priority or None, name=name, detached=detached)}


def _action(action: SessionAction) -> dict[str, Any]:
    return {name: rates.member(value) for name, value in action.items()}


class Session(SessionBase):
    """A session: `with` starts it and deletes it at the end."""

    def start(self, *, lock: LockBase | str | None = None, timeout: float | None = None) -> SessionAnswer:
        """Has it run, from now on until `stop`. Answers when it does, or when it is interrupted or waits for
        permission: then it goes on by itself later."""
        return run(self._ask("start", self._token(lock), timeout))

    def stop(self, timeout: float | None = None) -> SessionAnswer:
        return run(self._ask("stop", {}, timeout))

    def configure(
        self, *actions: SessionAction, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> SessionAnswer:
        """Carries out all actions, or none: `session.configure({"addOutput": "preview"}, {"preset": "640x480"})`."""
        params = {"actions": [_action(action) for action in actions], **self._token(lock)}
        return run(self._ask("configure", params, timeout))

    def can_add(self, action: SessionAction, timeout: float | None = None) -> CanAdd:
        """Whether an action could be carried out, or `{"switchCamera": device}`; None: the one that `switch_camera()`
        would take.
        """
        return run(self._can_add(action, timeout))

    def switch_camera(
        self, device: str | None = None, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> SessionAnswer:
        """Switches to another camera: back to front, or the one named. If it is not available, this raises and nothing
        changes.
        """
        params = {} if device is None else {"device": device}
        return run(self._ask("switchCamera", {**params, **self._token(lock)}, timeout))

    def wait_for_live_photos(self, timeout: float = 10.0) -> float:
        """Waits until the photo output holds what a live photo shows of the time before it, `LIVE_PHOTO_REACH` seconds.
        Returns how many it holds: fewer when the time is over before, 0.0 where it makes no live photos.
        """
        return run(self._await_past(timeout))

    def refresh(self, timeout: float | None = None) -> SessionAnswer:
        """Asks how it is."""
        return run(self._ask("get", {}, timeout, True))

    def delete(self, timeout: float | None = None) -> bool:
        """False: it is deleted, but that could not be written to the disk: a bus that is started after this one may
        have it still.
        """
        return run(self._delete(timeout))

    def frames(
        self,
        output: str | None = None,
        *,
        device: str | None = None,
        limit: int | None = None,
        timeout: float = 10.0,
        errors: FrameErrors = "wait",
        shared: bool = False,
    ) -> Frames:
        """The pictures of an output (the first that has any), as `Client.frames` gives them, from whatever camera the
        session has.

        While the session is interrupted none come (`errors="raise"` raises why). Raises `SessionNotRunning` if it does
        not run at first, and when it is stopped, and `SessionNotFound` when it ends.
        """
        return Frames(self._feed(output, device, limit, timeout, errors, shared))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.delete()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            self.delete()


class AsyncSession(SessionBase):
    def __init__(
        self, core: Core, run: Runner, timeout: float | None, params: Mapping[str, Any] | None = None, id: str = ""
    ) -> None:
        super().__init__(core, params, id)
        self._run = run
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, Self]:
        return self._made().__await__()

    async def _made(self) -> Self:
        await self._run(self._create(self._timeout))
        if self.state is None:
            await self.refresh(self._timeout)
        return self

    async def start(self, *, lock: LockBase | str | None = None, timeout: float | None = None) -> SessionAnswer:
        return await self._run(self._ask("start", self._token(lock), timeout))

    async def stop(self, timeout: float | None = None) -> SessionAnswer:
        return await self._run(self._ask("stop", {}, timeout))

    async def configure(
        self, *actions: SessionAction, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> SessionAnswer:
        params = {"actions": [_action(action) for action in actions], **self._token(lock)}
        return await self._run(self._ask("configure", params, timeout))

    async def can_add(self, action: SessionAction, timeout: float | None = None) -> CanAdd:
        return await self._run(self._can_add(action, timeout))

    async def switch_camera(
        self, device: str | None = None, *, lock: LockBase | str | None = None, timeout: float | None = None
    ) -> SessionAnswer:
        params = {} if device is None else {"device": device}
        return await self._run(self._ask("switchCamera", {**params, **self._token(lock)}, timeout))

    async def wait_for_live_photos(self, timeout: float = 10.0) -> float:
        return await self._run(self._await_past(timeout))

    async def refresh(self, timeout: float | None = None) -> SessionAnswer:
        return await self._run(self._ask("get", {}, timeout, True))

    async def delete(self, timeout: float | None = None) -> bool:
        """False: it is deleted, but that could not be written to the disk: a bus that is started after this one may
        have it still.
        """
        return await self._run(self._delete(timeout))

    def frames(
        self,
        output: str | None = None,
        *,
        device: str | None = None,
        limit: int | None = None,
        timeout: float = 10.0,
        errors: FrameErrors = "wait",
        shared: bool = False,
    ) -> AsyncFrames:
        return AsyncFrames(self._feed(output, device, limit, timeout, errors, shared), self._run)

    async def __aenter__(self) -> Self:
        await self._made()
        try:
            await self.start()
        except BaseException:
            await self.delete()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with first_error(error):
            await self.delete()


class SessionCalls(Opened):
    """What `Client` has of sessions."""

    def session(
        self,
        *devices: InputWish,
        inputs: Sequence[InputWish] | None = None,
        outputs: OutputWish | Sequence[OutputWish] | None = None,
        preset: str | None = None,
        priority: int = 0,
        name: str | None = None,
        detached: bool = False,
        timeout: float | None = None,
    ) -> Session:
        """Makes a session of these devices; `with` starts it. Without any it has the default camera, without outputs
        one of `videoData`; `inputs=[]` and `outputs=[]` mean none yet.

        The name of a rig stands for its cameras: all of them are inputs, or the session is not made.

        It ends with its `with` block, or with this process, unless it is `detached`. Where two sessions can't both have
        what they want, the one with the higher priority gets it, and the other one is interrupted until it can go on.
        Only administrators give a priority above 0 (`Unauthorized`).
        """
        session = Session(self._open, wishes(_inputs(devices, inputs), outputs, preset, priority, name, detached))
        run(session._create(timeout))
        return session

    def find_session(self, id: str, *, timeout: float | None = None) -> Session:
        """A session that there is, perhaps another process's."""
        session = Session(self._open, id=id)
        session.refresh(timeout)
        return session

    def sessions(self, *, timeout: float | None = None) -> list[SessionState]:
        """All sessions, in the order in which they were made."""
        return run(self._open.ask(_listing(), timeout))


class AsyncSessionCalls(AsyncOpened):
    """What `AsyncClient` has of sessions."""

    def session(
        self,
        *devices: InputWish,
        inputs: Sequence[InputWish] | None = None,
        outputs: OutputWish | Sequence[OutputWish] | None = None,
        preset: str | None = None,
        priority: int = 0,
        name: str | None = None,
        detached: bool = False,
        timeout: float | None = None,
    ) -> AsyncSession:
        """To be entered (`async with client.session("cam0"):`) or awaited, which only makes it."""
        return AsyncSession(
            self._open, self._run, timeout, wishes(_inputs(devices, inputs), outputs, preset, priority, name, detached)
        )

    def find_session(self, id: str, *, timeout: float | None = None) -> AsyncSession:
        """To be awaited."""
        return AsyncSession(self._open, self._run, timeout, id=id)

    async def sessions(self, *, timeout: float | None = None) -> list[SessionState]:
        return await self._run(self._open.ask(_listing(), timeout))
