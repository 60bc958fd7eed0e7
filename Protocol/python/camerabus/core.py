# SPDX-License-Identifier: Apache-2.0
"""Requests and replies: what `Client` and `AsyncClient` share."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
import uuid
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Generic, Iterable, Iterator, Mapping, NamedTuple, Protocol, Sequence, TypeVar

import zmq

from . import contexts
from .errors import (
    BusEnded,
    BusGone,
    BusTimeout,
    CaptureError,
    ClientError,
    LimitExceeded,
    NotKept,
    NotShared,
    ProtocolError,
    VersionUnsupported,
)
from .leases import Lease
from .links import Link
from .place import Key, Place, find_place
from .steps import Runner, Socket, Steps, Wait, beside, deadline, is_over
from .values import Attachment, Hello, Reply, read

T = TypeVar("T")
PROTOCOL = 1
#: Bytes of a frame of a reply: what a bus attaches to one is less in all.
MAX_FRAME = 257 << 20
LOOK = 3.0  # seconds from one look at idle connections to the next


class Call(NamedTuple, Generic[T]):
    """A method with its parameters, and what to make of its result."""

    method: str
    params: Mapping[str, Any]
    read: Callable[[Any], T]
    repeatable: bool = False  # changes nothing, so it may be asked again when the bus was restarted meanwhile


def encode_request(number: int, method: str, params: Mapping[str, Any] | None, key: str | None = None) -> bytes:
    """The one frame of a request."""
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})}
    if key is not None:
        request["key"] = key
    return json.dumps(request, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def decode_reply(parts: Sequence[memoryview]) -> tuple[Any, Reply | CaptureError]:
    """The id and the outcome of a reply: the JSON frame, then what it announces in `result.attachments`."""
    try:
        reply = json.loads(bytes(parts[0]))
    except (ValueError, IndexError):
        raise ProtocolError("The answer of the bus is not valid JSON.") from None
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or "id" not in reply:
        raise ProtocolError("The answer of the bus is not a JSON-RPC 2.0 response.")
    if ("result" in reply) == ("error" in reply):
        raise ProtocolError("The answer of the bus is invalid: it needs exactly one of result and error.")
    if "error" in reply:
        return reply["id"], CaptureError.from_wire(reply["error"])
    result = reply["result"]
    announced = result.get("attachments", []) if isinstance(result, dict) else []
    if not isinstance(announced, list) or len(announced) != len(parts) - 1:
        raise ProtocolError("The answer of the bus is invalid: its attachments differ from the announced ones.")
    attachments = []
    for item, data in zip(announced, parts[1:]):
        if not isinstance(item, dict) or item.get("bytes") != len(data):
            raise ProtocolError("The answer of the bus is invalid: an attachment has another size than announced.")
        attachments.append(Attachment(name=item.get("name", ""), contentType=item.get("contentType", ""), data=data))
    return reply["id"], Reply(result=result, attachments=tuple(attachments))


def given(**optional: Any) -> dict[str, Any]:
    """The parameters of a request that were given: None and False are what the bus takes without them."""
    return {name: value for name, value in optional.items() if value is not None and value is not False}


class Channel:
    """A connection for requests, one at a time."""

    def __init__(self, context: zmq.Context[Socket], place: Place, was_there: bool = True) -> None:
        """`was_there`: there was a connection to this place before."""
        self._place = place
        self._was_there = was_there
        self._numbers = itertools.count(1)
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        # Nothing is queued while nobody is there: a request that was given up must not reach the next bus.
        self._socket.setsockopt(zmq.IMMEDIATE, 1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME)
        # The attempts to connect again are what brings the question up whether there is anybody to connect to.
        self._link = Link(self._socket, tells_attempts=True)
        self._ends = 0
        self._socket.connect(place.command)
        self._is_greeted = False

    @property
    def is_greeted(self) -> bool:
        """The bus knows who is at the other end of this connection."""
        self.look()
        return self._is_greeted

    def greeted(self) -> None:
        self._is_greeted = self._was_there = True

    def request(
        self, method: str, params: Mapping[str, Any] | None, until: float, key: str | None, limit: float
    ) -> Steps[Reply]:
        number = next(self._numbers)
        message = encode_request(number, method, params, key)
        if len(message) > limit:
            raise LimitExceeded(
                f"The request is too long: {len(message)} bytes of at most {limit:.0f}.",
                {"limit": "requestBytes", "maximum": int(limit)},
            )
        yield from self._send(message, until)
        while True:
            while (parts := self._receive()) is not None:
                identifier, outcome = decode_reply(parts)
                # Without an id it is about a request that the bus couldn't read: then it was this one.
                if identifier == number or (identifier is None and isinstance(outcome, CaptureError)):
                    if isinstance(outcome, CaptureError):
                        raise outcome
                    return outcome
            if self.look():
                raise BusGone(f"The bus at {self._place} ended before it answered {method}.")
            if is_over(until):
                raise BusTimeout(f"The bus at {self._place} did not answer {method} in time.")
            yield Wait((self._socket, self._link.monitor), until)

    def _send(self, message: bytes, until: float) -> Steps[None]:
        while True:
            self.look()
            # For a moment after a connection ended libzmq still takes messages for it, and loses them.
            if self._link.is_up:
                try:
                    self._socket.send_multipart([b"", message], zmq.DONTWAIT)
                    return
                except zmq.Again:
                    pass
            elif self._place.has_ended():
                raise BusEnded(f"The bus at {self._place} has ended.")
            if is_over(until):
                raise (yield from self._place.absence(self._link, self._was_there))
            yield Wait((self._link.monitor,), until, (self._socket,) if self._link.is_up else ())

    def _receive(self) -> list[memoryview] | None:
        try:
            parts = [frame.buffer for frame in self._socket.recv_multipart(zmq.DONTWAIT, copy=False)]
        except zmq.Again:
            return None
        return parts[1:] if parts and not len(parts[0]) else parts

    def look(self) -> bool:
        """Takes in what the monitor tells; True: the connection ended since this was last asked."""
        self._link.look()
        was_cut = self._link.ends != self._ends
        if was_cut:
            self._ends, self._is_greeted = self._link.ends, False
        return was_cut

    def close(self) -> None:
        self._link.close()
        self._socket.close(linger=0)


class Helper(Protocol):
    def stop(self) -> None: ...


class Core:
    """What a client has: its context, its connections, and who the bus is."""

    def __init__(
        self,
        where: str | os.PathLike[str] | None,
        name: str | None,
        timeout: float,
        server_key: str | os.PathLike[str] | None = None,
        key: Key | None = None,
    ) -> None:
        self.place = find_place(where, server_key, key)
        #: What goes on beside the calls, and ends with the client.
        self.helpers: list[Helper] = []
        #: Of the locks that have one, by their tokens.
        self.leases: dict[str, Lease] = {}
        program = os.path.basename(sys.argv[0] if sys.argv else "")
        self.name = (name or ("python" if program.startswith("-") else program) or "python")[:128]
        self.timeout = timeout
        self.hello: Hello | None = None
        #: What it is called among several (`Buses`), and its errors say.
        self.host: str | None = None
        self._free: list[Channel] = []
        self._look_again = 0.0
        self._told: set[type[Warning]] = set()
        self._is_left = False
        self.context = contexts.make()
        self.place.secure(self.context)

    def __str__(self) -> str:
        return f"'{self.name}' at {self.place}"

    def ask(self, call: Call[T], timeout: float | None = None, key: str | None = None) -> Steps[T]:
        """Carries out a method. Several may be under way: each has a connection of its own, which is kept for the next.
        """
        until = deadline(self.timeout if timeout is None else timeout)
        while True:
            try:
                reply = yield from self._request(call.method, call.params, until, key)
                self._tell_if_not_kept(call.method, reply.result)
                return call.read(reply.result)
            except BusGone:
                if not call.repeatable or is_over(until):
                    raise

    def _tell_if_not_kept(self, method: str, result: Any) -> None:
        # How a movie or a segment ended says with `kept` whether there is a file.
        if isinstance(result, dict) and result.get("kept") is False and "reason" not in result:
            why = "it is lost when the bus ends. The log of the bus shows the cause."
            self._tell(NotKept, f"{method}: the change is active, but the bus could not write it to its disk; {why}")

    def tell_not_shared(self) -> None:
        self._tell(NotShared, f"shared=True: {self.place} is on another machine, so frames arrive over the network.")

    def _tell(self, kind: type[Warning], message: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            warnings.warn(message, kind, stacklevel=3)

    def ask_for(
        self, call: Call[T], undo: Callable[[T], Iterable[Call[Any]]], timeout: float | None = None
    ) -> Steps[T]:
        """The same of a method that makes something, under a key: where the bus ends before it has answered, the next
        one is asked for the same, and what a caller who has given up will not be told of is taken back.
        """
        # The key is what a request that was given up can be found by again.
        key = str(uuid.uuid4())
        until = deadline(self.timeout if timeout is None else timeout)
        was_lost = False
        while True:
            try:
                return (yield from self.ask(call, max(0.0, until - time.monotonic()), key))
            except GeneratorExit:
                raise
            except BusGone:
                # If it had been done by then, its answer comes now.
                was_lost = True
                if is_over(until):
                    raise
            except BaseException as error:
                if isinstance(error, ClientError if was_lost else BusTimeout) or not isinstance(error, CaptureError):
                    yield from self._give_up(call, undo, key)
                raise

    def _give_up(self, call: Call[T], undo: Callable[[T], Iterable[Call[Any]]], key: str) -> Steps[None]:
        # Else what comes too late would be had by nobody who knows of it, until this process ends.
        try:
            if (yield from self.ask(Call("bus.cancel", {"key": key}, dict), 1)).get("cancelled"):
                return
            made = yield from self.ask(call, 1, key)
        except CaptureError:
            return
        for undoing in undo(made):
            # One that the bus doesn't answer in time may be done all the same, and is no reason to leave the next.
            try:
                yield from self.ask(undoing, 1)
            except CaptureError:
                pass

    def request(
        self, method: str, params: Mapping[str, Any] | None, timeout: float | None, key: str | None
    ) -> Steps[Reply]:
        """The same for any method, with all that came back."""
        until = deadline(self.timeout if timeout is None else timeout)
        return (yield from self._request(method, params, until, key))

    def _request(self, method: str, params: Mapping[str, Any] | None, until: float, key: str | None) -> Steps[Reply]:
        steps = self._exchange(method, params, until, key)
        lease = self.leases.get(str(params.get("lock"))) if params and self.leases else None
        with self.named():
            if lease is None:
                return (yield from steps)
            # What is asked under a lock is of no use when that is over.
            lease.check()
            return (yield from beside(steps, lease.check, until=lambda: lease.until))

    @contextmanager
    def named(self) -> Iterator[None]:
        """What goes wrong within says of which of several buses it is."""
        try:
            yield
        except CaptureError as error:
            if self.host is not None:
                error.say_host(self.host)
            raise

    def look(self) -> None:
        """Reads the monitor events of idle connections from time to time. While the bus is down there may be no request
        that reads them, and libzmq waits for room.
        """
        if is_over(self._look_again):
            self._look_again = deadline(LOOK)
            for channel in self._free:
                channel.look()

    def _exchange(self, method: str, params: Mapping[str, Any] | None, until: float, key: str | None) -> Steps[Reply]:
        if self.context.closed:
            raise ValueError("This client is closed.")
        self.look()
        channel = self._free.pop() if self._free else Channel(self.context, self.place, self.hello is not None)
        try:
            if not channel.is_greeted:
                try:
                    greeted = yield from self._greet(channel, until)
                except BusGone:
                    # A gateway ends a connection that has said nothing for long, perhaps just now. Who we are may be
                    # said twice.
                    if not self.place.is_remote:
                        raise
                    greeted = yield from self._greet(channel, until)
                if method == "bus.hello":
                    return greeted
            limit = self.hello.limits.get("requestBytes", math.inf) if self.hello else math.inf
            return (yield from channel.request(method, params, until, key, limit))
        finally:
            if self.context.closed:
                channel.close()
            else:
                self._free.append(channel)

    def _greet(self, channel: Channel, until: float) -> Steps[Reply]:
        greeting = {"client": self.name, "version": PROTOCOL}
        reply = yield from channel.request("bus.hello", greeting, until, None, math.inf)
        hello = read(Hello, reply.result)
        if hello.protocol != PROTOCOL:
            raise VersionUnsupported(
                f"The bus uses version {hello.protocol} of the protocol, this client version {PROTOCOL}. Update the older one.",
                {"supported": [hello.protocol]},
            )
        self.hello = hello
        channel.greeted()
        return reply

    def greeting(self) -> Call[Hello]:
        return Call("bus.hello", {"client": self.name, "version": PROTOCOL}, lambda result: read(Hello, result), True)

    def media_endpoint(self, device: str) -> str:
        """Where a device's frames are."""
        return self.place.media(self.hello, device)

    def events_endpoint(self) -> str:
        return self.place.events(self.hello)

    def close(self) -> None:
        self._stop()
        contexts.end(self.context)

    def leave(self) -> None:
        """Closes it without waiting for anything: for finalizers. Subscriptions end with those who have them."""
        if not self._is_left and not self.context.closed:
            self._is_left = True
            self._stop()
            contexts.leave(self.context)

    def _stop(self) -> None:
        for helper in self.helpers:
            helper.stop()
        self.helpers.clear()
        while self._free:
            self._free.pop().close()

    def __del__(self) -> None:
        # Not the client's affair: whoever iterates over Client().frames(…) has only this left.
        context = getattr(self, "context", None)
        if context is not None and not context.closed and not self._is_left:
            warnings.warn(f"the camerabus client '{self.name}' was not closed", ResourceWarning, stacklevel=2)
            self.leave()


class Opened:
    """What every part of a client stands on."""

    @property
    def _open(self) -> Core:
        """The connection. Raises `ValueError` when the client is closed."""
        raise NotImplementedError


class AsyncOpened(Opened):
    _run: Runner
