"""A bus without cameras, in this process: sockets and messages as the protocol has them, and behaviour that a test
chooses.

Everything happens on the bus's own thread; a test has things done there with `do`.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable

import zmq

NO_REPLY = object()


class Refusal(Exception):
    """What a method raises to be answered as an error."""

    def __init__(self, reason: str, message: str = "", code: int = -32000, **data: Any) -> None:
        super().__init__(reason)
        self.error = {"code": code, "message": message or f"{reason}.", "data": {"reason": reason, **data}}


class FakeBus:
    def __init__(self, devices: tuple[str, ...] = ("cam0", "cam1")) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="camerabus-test-"))
        self.devices = devices
        self.requests: list[dict[str, Any]] = []
        self.subscriptions: list[tuple[str, str]] = []
        self.features = ["locks", "configure", "renditions"]
        self.authorization = {"video": "authorized", "audio": "authorized"}
        self.methods: dict[str, Callable[[dict[str, Any]], Any]] = {
            "bus.hello": self._hello,
            "bus.ping": lambda params: {},
            "bus.snapshot": self._snapshot,
            "device.list": lambda params: {"devices": [device_value(name) for name in self.devices]},
            "device.get": self._get,
            "device.lock": self._lock,
            "device.unlock": self._unlock,
            "device.renew": self._renew,
        }
        self.locks: dict[str, list[str]] = {}
        #: Something was asked or subscribed.
        self.changed = threading.Condition()
        self.fence = 0
        self.epoch = "e0"
        self._starts = 0
        self.start()

    # Life

    def start(self) -> None:
        """Starts, or starts again: with a new epoch and no state."""
        self._starts += 1
        self.epoch, self.sequence = f"e{self._starts}", 0
        self.state: dict[str, tuple[int, Any]] = {}
        self._last: dict[str, int] = {}
        self._orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._context = zmq.Context()
        self._wake = self._context.socket(zmq.PAIR)
        self._wake.bind("inproc://wake")
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._is_ready.wait(10)

    def stop(self, linger: int = 0) -> None:
        """As kill -9 does it: connections end, socket files stay, and what was not sent by then is lost, unless there
        are so many milliseconds for it.
        """
        if self._thread.is_alive():
            self._orders.put(linger)
            self._wake.send(b"")
            self._thread.join(10)
        self._wake.close(linger=0)
        self._context.term()

    def end(self) -> None:
        """As SIGTERM does it: a last word that is sent for certain, and the sockets go."""
        self.send_event("event/bus/", "ended")
        shutil.rmtree(self.directory / "media")
        for name in ("command.sock", "events.sock"):
            (self.directory / name).unlink()
        self.stop(linger=2000)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory)

    def do(self, order: Callable[[], Any]) -> Any:
        """Has something done on the bus's thread, and answers what came of it."""
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._orders.put((order, done))
        self._wake.send(b"")
        result, error = done.get(timeout=10)
        if error is not None:
            raise error
        return result

    def _run(self) -> None:
        wake = self._context.socket(zmq.PAIR)
        wake.connect("inproc://wake")
        (self.directory / "media").mkdir(exist_ok=True)
        self._command = self._context.socket(zmq.ROUTER)
        self._command.bind(f"ipc://{self.directory}/command.sock")
        self._publishers = {"": self._publisher("events.sock")}
        for device in self.devices:
            self._publishers[device] = self._publisher(f"media/{device}.sock")
        self._is_ready.set()
        linger: int | None = None
        while linger is None:
            poller = zmq.Poller()
            for socket in (wake, self._command, *self._publishers.values()):
                poller.register(socket, zmq.POLLIN)
            ready = dict(poller.poll())
            if wake in ready:
                wake.recv()
                order = self._orders.get()
                if isinstance(order, int):
                    linger = order
                else:
                    self._carry_out(*order)
            if self._command in ready:
                self._answer(self._command.recv_multipart())
            for name, publisher in list(self._publishers.items()):
                if publisher in ready and not publisher.closed:
                    self._subscribed(name, publisher.recv())
            with self.changed:
                self.changed.notify_all()
        for socket in (wake, self._command, *self._publishers.values()):
            socket.close(linger=linger)

    def _carry_out(self, order: Callable[[], Any], done: queue.SimpleQueue[Any]) -> None:
        try:
            done.put((order(), None))
        except BaseException as error:
            done.put((None, error))

    def _publisher(self, name: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.XPUB)
        socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        socket.setsockopt(zmq.SNDHWM, 2 if name.startswith("media/") else 1000)
        socket.setsockopt(zmq.XPUB_WELCOME_MSG, b"welcome/")
        socket.bind(f"ipc://{self.directory}/{name}")
        return socket

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Until what clients ask or subscribe has made it true."""
        with self.changed:
            assert self.changed.wait_for(condition, 20), "what was waited for did not come"

    def restart_worker(self, device: str, between: Callable[[], None] = lambda: None) -> None:
        """Closes a device's media socket and binds it again."""

        def order() -> None:
            self._publishers[device].close(linger=0)
            between()
            self._publishers[device] = self._publisher(f"media/{device}.sock")

        self.do(order)

    def restart_command(self) -> None:
        """Cuts the connections of all who ask."""

        def order() -> None:
            self._command.close(linger=0)
            self._command = self._context.socket(zmq.ROUTER)
            self._command.bind(f"ipc://{self.directory}/command.sock")

        self.do(order)

    def restart_events(self) -> None:
        """Cuts the connections of all who watch."""

        def order() -> None:
            self._publishers[""].close(linger=0)
            self._publishers[""] = self._publisher("events.sock")

        self.do(order)

    # Requests

    def _answer(self, parts: list[bytes]) -> None:
        split = parts.index(b"") + 1
        envelope, request = parts[:split], json.loads(parts[split])
        self.requests.append(request)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        attachments: list[bytes] = []
        try:
            method = self.methods.get(request["method"])
            if method is None:
                raise Refusal("methodNotFound", code=-32601)
            result = method(request.get("params", {}))
            if result is NO_REPLY:
                return
            if isinstance(result, tuple):
                result, *attachments = result
            reply["result"] = result
        except Refusal as refusal:
            reply["error"] = refusal.error
        self._command.send_multipart([*envelope, json.dumps(reply).encode(), *attachments])

    def refuse(self, method: str, reason: str, message: str = "", **data: Any) -> None:
        def answer(params: dict[str, Any]) -> Any:
            raise Refusal(reason, message, **data)

        self.methods[method] = answer

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of all requests for a method so far."""
        return [request["params"] for request in self.requests if request["method"] == method]

    def _hello(self, params: dict[str, Any]) -> Any:
        return {
            "server": "CameraBus", "version": "0.1.0", "protocol": 1, "features": self.features,
            "you": {"uid": os.getuid(), "gid": os.getgid(), "pid": os.getpid()}, "authorization": self.authorization,
            "endpoints": {
                "command": f"{self.directory}/command.sock", "events": f"{self.directory}/events.sock",
                "media": {name: f"{self.directory}/media/{name}.sock" for name in self.devices},
            },
            "epoch": self.epoch, "sequence": self.sequence, "limits": {"requestBytes": 1048576},
        }  # fmt: skip

    def _snapshot(self, params: dict[str, Any]) -> Any:
        state = {topic: value for topic, (_, value) in self.state.items() if topic.startswith(params.get("prefix", ""))}
        return {"epoch": self.epoch, "sequence": self.sequence, "state": state}

    def _get(self, params: dict[str, Any]) -> Any:
        if params["device"] not in self.devices:
            raise Refusal("deviceNotFound", f"There is no device '{params['device']}'.")
        return {"device": device_value(params["device"])}

    def _lock(self, params: dict[str, Any]) -> Any:
        for token, devices in self.locks.items():
            if set(devices) & set(params["devices"]):
                raise Refusal(
                    "deviceBusy", "cam0 is locked.", holder={"pid": 42, "name": "other", "token": token}, queue=0
                )
        self.fence += 1
        token = f"token-{self.fence}"
        self.locks[token] = params["devices"]
        return {
            "lock": token, "fence": self.fence, "devices": params["devices"],
            "holder": {"uid": 0, "gid": 0, "pid": 1, "name": "me"},
        }

    def _renew(self, params: dict[str, Any]) -> Any:
        if params["lock"] not in self.locks:
            raise Refusal("lockLost", fence=self.fence)
        holder = {"uid": 0, "gid": 0, "pid": 1, "name": "me"}
        return {"expires": None, "fence": self.fence, "devices": self.locks[params["lock"]], "holder": holder}

    def _unlock(self, params: dict[str, Any]) -> Any:
        if self.locks.pop(params["lock"], None) is None:
            raise Refusal("lockLost", fence=self.fence)
        return {}

    # What is published

    def _subscribed(self, name: str, message: bytes) -> None:
        topic = message[1:].decode()
        self.subscriptions.append(("+" if message[0] else "-", topic))
        if not message[0]:
            return
        if topic.startswith("ack/"):
            self._publishers[name].send_multipart([topic.encode(), b"{}"])
        if name == "":
            for known, (sequence, value) in self.state.items():
                if known.startswith(topic):
                    self._announce(known, {"epoch": self.epoch, "sequence": sequence, "previous": 0, "value": value})

    def _announce(self, topic: str, body: Any) -> None:
        self._publishers[""].send_multipart([topic.encode(), json.dumps(body).encode()])

    def set_state(self, topic: str, value: Any, lose: bool = False) -> None:
        """Changes state; `lose`: without telling anybody."""

        def order() -> None:
            self.sequence += 1
            previous = self._last.get(topic, 0)
            self._last[topic] = self.sequence
            if value is None:
                self.state.pop(topic, None)
                self._last.pop(topic)
            else:
                self.state[topic] = (self.sequence, value)
            if not lose:
                self._announce(
                    topic, {"epoch": self.epoch, "sequence": self.sequence, "previous": previous, "value": value}
                )

        self.do(order)

    def send_event(self, topic: str, event: str, lose: bool = False, **members: Any) -> None:
        def order() -> None:
            self.sequence += 1
            previous = self._last.get(topic, 0)
            self._last[topic] = self.sequence
            if not lose:
                head = {"epoch": self.epoch, "sequence": self.sequence, "previous": previous, "event": event}
                self._announce(topic, {**head, **members})

        self.do(order)

    def heartbeat(self) -> None:
        def order() -> None:
            latest: dict[str, int] = {}
            for topic, (sequence, _) in self.state.items():
                path = ""
                for segment in topic.rstrip("/").split("/"):
                    path += segment + "/"
                    latest[path] = max(latest.get(path, 0), sequence)
            self._announce("heartbeat/", {"epoch": self.epoch, "latest": latest, "monotonic": 1})

        self.do(order)

    def send_frame(
        self, device: str, sequence: int, rendition: str = "native", stream: str = "s1", payload: bytes = bytes(16),
        **members: Any,
    ) -> None:
        header = {**frame_header(device, sequence, rendition, stream, len(payload)), **members}
        self.send_media(device, f"frame/{device}/{rendition}/", header, payload)

    def send_media(self, device: str, topic: str, header: Any, *payload: bytes) -> None:
        self.do(
            lambda: self._publishers[device].send_multipart([topic.encode(), json.dumps(header).encode(), *payload])
        )


def device_value(name: str) -> dict[str, Any]:
    return {
        "id": name, "uniqueID": f"virtual:{name}", "name": f"Virtual {name}", "mediaType": "video", "type": "virtual",
        "position": "back", "node": None, "driver": "virtual", "bus": "virtual", "connected": True, "isOpen": True,
        "isStreaming": True, "stream": "s1",
        "activeFormat": {"id": "f0", "pixelFormat": "YUYV", "width": 4, "height": 2}, "frameDuration": "1001/30000",
        "frameRate": 29.97, "generation": 3, "controls": {"brightness": 5}, "asOf": None, "lock": None,
        "worker": {"pid": 7, "state": "running", "restarts": 0, "busySince": None}, "error": None,
        "colour": "of a later version",
    }  # fmt: skip


def frame_header(
    device: str, sequence: int, rendition: str = "native", stream: str = "s1", size: int = 16
) -> dict[str, Any]:
    return {
        "v": 1, "device": device, "rendition": rendition, "stream": stream, "sequence": sequence,
        "captureSequence": sequence + 1, "generation": 3,
        "timestamp": {"monotonic": sequence, "realtime": 1789000000123456789, "source": "startOfExposure"},
        "format": "YUYV", "width": 4, "height": 2, "planes": [{"offset": 0, "stride": 8, "bytes": size}],
        "orientation": 0, "mirrored": False, "dropped": 0,
    }  # fmt: skip


class BusTestCase(unittest.TestCase):
    """A test with a bus of its own, and an environment that names none."""

    def setUp(self) -> None:
        for name in ("CAMERABUS_RUNTIME_DIR", "CAMERABUS_LOCK"):
            if (value := os.environ.pop(name, None)) is not None:
                self.addCleanup(os.environ.__setitem__, name, value)
        self.bus = FakeBus()
        self.addCleanup(self.bus.remove)
