"""A gateway that says what the test wants, for clients of a bus on another machine."""

from __future__ import annotations

import json
import threading
from typing import Any

import zmq
from zmq.utils import z85

try:
    SERVER, SECRET = (each.decode() for each in zmq.curve_keypair())
    OWN = tuple(each.decode() for each in zmq.curve_keypair())
except zmq.ZMQError:
    SERVER, SECRET, OWN = "0" * 40, "0" * 40, ("0" * 40, "0" * 40)


class FakeGateway(threading.Thread):
    """Three ports; it keeps what it was asked, and answers it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.context: Any = zmq.Context()
        self.requests: list[dict[str, Any]] = []
        self.asked: list[bytes] = []
        #: What methods are refused with.
        self.refusals: dict[str, dict[str, Any]] = {}
        self.gives = threading.Event()
        self.gives.set()
        self.changed = threading.Condition()
        self._pipe = self.context.socket(zmq.PULL)
        self._pipe.bind("inproc://orders")
        self._orders = self.context.socket(zmq.PUSH)
        self._orders.connect("inproc://orders")
        self._zap = self.context.socket(zmq.REP)
        self._zap.bind("inproc://zeromq.zap.01")
        while True:
            self.port = self._bind()
            if self.port:
                break
        self.start()

    def _bind(self) -> int:
        sockets = [self._server(kind) for kind in (zmq.ROUTER, zmq.XPUB, zmq.ROUTER)]
        port: int = sockets[0].bind_to_random_port("tcp://127.0.0.1", 20000, 40000)
        try:
            sockets[1].bind(f"tcp://127.0.0.1:{port + 1}")
            sockets[2].bind(f"tcp://127.0.0.1:{port + 2}")
        except zmq.ZMQError:
            for each in sockets:
                each.close(0)
            return 0
        self._command, self._events, self._media = sockets
        return port

    def _server(self, kind: int) -> Any:
        server = self.context.socket(kind)
        server.setsockopt(zmq.LINGER, 0)
        server.setsockopt(zmq.CURVE_SERVER, 1)
        server.setsockopt(zmq.CURVE_SECRETKEY, SECRET.encode())
        if kind == zmq.XPUB:
            server.setsockopt(zmq.XPUB_VERBOSE, 1)
            server.setsockopt(zmq.XPUB_WELCOME_MSG, b"welcome/")
        return server

    def run(self) -> None:
        poller = zmq.Poller()
        sockets = (self._command, self._events, self._media, self._zap, self._pipe)
        for each in sockets:
            poller.register(each, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._pipe in ready:
                break
            if self._zap in ready:
                frames = self._zap.recv_multipart()
                known = z85.encode(frames[6]).decode() == OWN[0]
                self._zap.send_multipart(
                    [b"1.0", frames[1], b"200" if known else b"300", b"", frames[6] if known else b"", b""]
                )
            if self._command in ready:
                routing, *envelope, body = self._command.recv_multipart()
                request = json.loads(body)
                result = self.answer(request["method"], request["params"])
                self._keep(self.requests, request)
                reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                if (error := self.refusals.get(request["method"])) is not None:
                    reply = {"jsonrpc": "2.0", "id": request["id"], "error": error}
                self._command.send_multipart([routing, *envelope, json.dumps(reply).encode()])
            if self._events in ready:
                topic = self._events.recv()
                if topic[:5] == b"\x01ack/":
                    self._events.send_multipart([topic[1:], b"{}"])
            if self._media in ready:
                routing, ask = self._media.recv_multipart()
                self._keep(self.asked, ask)
                self.gives.wait(20)
                self.give(routing, ask)
        for each in sockets:
            each.close(0)

    def _keep(self, kept: list[Any], what: Any) -> None:
        with self.changed:
            kept.append(what)
            self.changed.notify_all()

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "bus.hello":
            return {
                "server": "CameraBus", "version": "0.1.0", "protocol": 1, "features": ["keys", "locks"],
                "you": {"uid": 4026531999, "gid": 0, "pid": 0}, "authorization": {"video": "authorized"},
                "endpoints": {
                    "command": f"tcp://*:{self.port}", "events": f"tcp://*:{self.port + 1}",
                    "media": {"cam0": f"tcp://*:{self.port + 2}"},
                },
                "epoch": "e", "sequence": 1, "limits": {"requestBytes": 1048576},
            }  # fmt: skip
        if method in ("device.lock", "device.renew"):
            return {"lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": {"name": "laptop"}, "expires": 1}
        if method == "device.set":
            return {"verdict": "valid", "generation": {}, "applied": {}, "adjusted": []}
        return {}

    def give(self, routing: bytes, ask: bytes) -> None:
        """A frame for each that is asked for, numbered by how many were."""
        number = len(self.asked)
        topic = ask[1:]
        header = {
            "v": 1, "device": "cam0", "rendition": topic.decode().split("/")[2], "stream": "s", "format": "JPEG",
            "width": 2, "height": 2, "orientation": 0, "mirrored": False,
            "planes": [{"offset": 0, "stride": 0, "bytes": 3}], "sequence": number, "captureSequence": number,
            "generation": 1, "timestamp": {"monotonic": number, "realtime": number, "source": "startOfExposure"},
            "dropped": 0,
        }  # fmt: skip
        self._media.send_multipart([routing, topic, json.dumps(header).encode(), b"abc"])

    def wait(self, condition: Any) -> bool:
        with self.changed:
            return self.changed.wait_for(condition, 20)

    def stop(self) -> None:
        """Cuts all connections; nobody listens then."""
        if self._orders.closed:
            return
        self._orders.send(b"")
        self.join(20)
        self._orders.close(0)
        self.context.destroy(0)
