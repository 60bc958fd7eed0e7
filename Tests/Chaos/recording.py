"""A client whose calls are recorded, and a reader that records what it receives."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Mapping

import zmq

from camerabus import CaptureError, Client
from camerabus.errors import ClientError
from history import Writer

Keep = Callable[[Any], Any]


class RecordedClient:
    """What it is asked is in the history before it is sent, and what came back."""

    def __init__(self, runtime: Path, writer: Writer, dice: random.Random) -> None:
        self.writer, self.dice = writer, dice
        self._numbers = itertools.count()
        while True:
            try:
                self._client = Client(runtime, name=writer.by, timeout=10)
                return
            except CaptureError:
                self.nap(0.05, 0.2)

    def nap(self, least: float, most: float) -> None:
        time.sleep(self.dice.uniform(least, most))

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 10, key: str | None = None,
        keep: Keep = lambda result: result,
    ) -> Any:
        """The result. `keep` says what of it is recorded. Raises as Client does."""
        number = next(self._numbers)
        asked = {"call": number, "method": method, "params": params or {}}
        self.writer.write(**asked, **({"key": key} if key else {}))
        try:
            reply = self._client.request(method, params, timeout, key=key)
        except ClientError as error:
            self.writer.write(call=number, unknown=type(error).__name__, message=str(error)[:300])
            # There may be nobody to ask, which is known at once.
            self.nap(0.02, 0.1)
            raise
        except CaptureError as error:
            self.writer.write(call=number, error=error.reason, message=str(error)[:300])
            raise
        digests = [hashlib.sha256(attachment.data).hexdigest() for attachment in reply.attachments]
        self.writer.write(call=number, result=keep(reply.result), **({"attachments": digests} if digests else {}))
        return reply.result

    def insist(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 10, key: str | None = None,
        seconds: float = 60,
    ) -> Any:
        """Asks again, for a minute, until there is a reply. Raises what the bus refuses."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.call(method, params, timeout, key)
            except ClientError:
                if time.monotonic() > until:
                    raise

    def attempt(self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 10) -> None:
        """Asks, and does without it if it is refused or lost."""
        with suppress(CaptureError):
            self.call(method, params, timeout)


class Runs:
    """Puts messages of a topic together that follow one another, and records each such run when it ends."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._runs: dict[str, dict[str, Any]] = {}

    def add(self, topic: str, stream: str, message: dict[str, Any], step: int = 1) -> None:
        """`step`: how far `capture` of the next message is from that of this one."""
        message = {"arrived": time.monotonic(), "step": step, **message}
        run = self._runs.get(topic)
        if run is not None and run["run"] == stream and _follows(run["last"], message):
            run["last"] = message
            return
        self.end(topic)
        self._runs[topic] = {"run": stream, "topic": topic, "first": message, "last": message}

    def end(self, topic: str | None = None) -> None:
        for each in list(self._runs) if topic is None else [topic]:
            if run := self._runs.pop(each, None):
                self._writer.write(**run)


def _follows(last: dict[str, Any], message: dict[str, Any]) -> bool:
    return (
        message["sequence"] == last["sequence"] + 1
        and message["capture"] == last["capture"] + last["step"]
        and message["time"] > last["time"]
    )


def read_topics(runtime: Path, topics: Mapping[str, str], runs: Runs, writer: Writer) -> None:
    """Reads `topics` of their sockets, until it is interrupted."""
    context = zmq.Context.instance()
    poller = zmq.Poller()
    for topic, path in topics.items():
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 5000)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        socket.connect(f"ipc://{runtime / path}")
        poller.register(socket, zmq.POLLIN)
    while True:
        for socket, _ in poller.poll():
            name, body, *payload = socket.recv_multipart()
            header = json.loads(body)
            if "error" not in header:
                _add(runs, writer, name.decode(), header, payload)


def _add(runs: Runs, writer: Writer, topic: str, header: dict[str, Any], payload: list[bytes]) -> None:
    kind = topic.split("/")[0]
    size = sum(map(len, payload))
    if kind == "frame" and any(plane["offset"] + plane["bytes"] > size for plane in header["planes"]):
        writer.write(outside=topic, size=size, planes=header["planes"])
    if kind == "set":
        if not header["late"]:
            moment = {"sequence": header["number"], "capture": header["number"], "time": header["monotonic"] / 1e9}
            runs.add(topic, header["stream"], {**moment, "dropped": 0})
    else:
        message = {
            "sequence": header["sequence"], "capture": header.get("captureSequence", header.get("firstFrame")),
            "time": header["timestamp"]["monotonic"] / 1e9, "dropped": header.get("dropped", header.get("overruns")),
        }  # fmt: skip
        runs.add(topic, header["stream"], message, header.get("frames", 1) if kind == "audio" else 1)
