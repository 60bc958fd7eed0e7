"""The client of a bus on another machine, against a gateway that says what the test wants."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import zmq
from zmq.utils import z85

from camerabus import Client
from camerabus.credit import AHEAD, NEXT, NEXT_RAW
from camerabus.place import LocalPlace, RemotePlace, find_place, read_key, read_pair

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
                self._zap.send_multipart([b"1.0", frames[1], b"200" if known else b"300", b"", frames[6] if known else b"", b""])
            if self._command in ready:
                routing, *envelope, body = self._command.recv_multipart()
                request = json.loads(body)
                result = self.answer(request["method"], request["params"])
                self._keep(self.requests, request)
                reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                self._command.send_multipart([routing, *envelope, json.dumps(reply).encode()])
            if self._events in ready:
                topic = self._events.recv()
                if topic[:5] == b"\x01ack/":
                    self._events.send_multipart([topic[1:], b"{}"])
            if self._media in ready:
                routing, ask = self._media.recv_multipart()
                self._keep(self.asked, ask)
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
        return {}

    def give(self, routing: bytes, ask: bytes) -> None:
        """A frame for each that is asked for, numbered by how many were."""
        number = len(self.asked)
        topic = ask[1:]
        header = {
            "v": 1, "device": "cam0", "rendition": topic.decode().split("/")[2], "stream": "s", "format": "JPEG", "width": 2,
            "height": 2, "orientation": 0, "mirrored": False, "planes": [{"offset": 0, "stride": 0, "bytes": 3}],
            "sequence": number, "captureSequence": number, "generation": 1,
            "timestamp": {"monotonic": number, "realtime": number, "source": "startOfExposure"}, "dropped": 0,
        }  # fmt: skip
        self._media.send_multipart([routing, topic, json.dumps(header).encode(), b"abc"])

    def wait(self, condition: Any) -> bool:
        with self.changed:
            return self.changed.wait_for(condition, 20)

    def stop(self) -> None:
        self._orders.send(b"")
        self.join(20)
        self._orders.close(0)
        self.context.destroy(0)


@unittest.skipUnless(zmq.has("curve"), "libzmq was built without CURVE")
class Remote(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = FakeGateway()
        self.addCleanup(self.gateway.stop)
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("CAMERABUS_LOCK", None)
        self.client = Client(f"tcp://127.0.0.1:{self.gateway.port}", server_key=SERVER, key=OWN, name="probe", timeout=20)
        self.addCleanup(self.client.close)

    def methods(self) -> list[str]:
        return [request["method"] for request in self.gateway.requests]

    def test_each_frame_that_is_taken_asks_for_one_more(self) -> None:
        topic = b"frame/cam0/jpeg/"
        with self.client.frames("cam0", timeout=20) as frames:
            for _ in range(5):
                next(frames)
            self.assertTrue(self.gateway.wait(lambda: len(self.gateway.asked) >= AHEAD + 5))
            self.assertEqual(set(self.gateway.asked), {NEXT + topic})

    def test_who_names_a_rendition_takes_it_as_it_is(self) -> None:
        with self.client.frames("cam0", rendition="bgr:2x2", timeout=20) as frames:
            next(frames)
        self.assertEqual(set(self.gateway.asked), {NEXT_RAW + b"frame/cam0/bgr:2x2/"})

    def test_a_lock_is_renewed_as_long_as_it_is_held(self) -> None:
        with mock.patch("camerabus.leases.Renewer.__init__.__defaults__", (0.3,)):
            with self.client.lock("cam0") as lock:
                self.assertTrue(self.gateway.wait(lambda: self.methods().count("device.renew") >= 3))
                self.assertEqual(lock.token, "t0ken")
        self.assertTrue(self.gateway.wait(lambda: "device.unlock" in self.methods()))
        self.assertEqual(self.client._open.helpers, [])

    def test_who_asks_for_a_lease_renews_it_by_hand(self) -> None:
        with self.client.lock("cam0", lease=60) as lock:
            lock.renew()
            self.assertEqual(self.client._open.helpers, [])
        params = [request["params"] for request in self.gateway.requests if request["method"] == "device.lock"]
        self.assertEqual(params, [{"devices": ["cam0"], "lease": 60000}])


class Places(unittest.TestCase):
    def test_addresses(self) -> None:
        place = find_place("tcp://rig:7350", SERVER, OWN)  # type: ignore[arg-type]
        assert isinstance(place, RemotePlace)
        self.assertEqual((str(place), place.events(None), place.media(None, "x")), tuple(f"tcp://rig:{port}" for port in (7350, 7351, 7352)))
        for wrong in ("tcp://rig", "tcp://*:7350", "tcp://rig:0", "tcp://rig:65535", "tcp://:1", "tcp://rig:7350/x"):
            with self.subTest(wrong), self.assertRaises(ValueError):
                find_place(wrong, SERVER, OWN)  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            find_place("tcp://rig:7350")
        with self.assertRaises(TypeError):
            find_place("/run/camerabus", SERVER, OWN)  # type: ignore[arg-type]

    def test_keys_come_from_files_too(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.key")
            path.write_text(f"# mine\npublic {SERVER}\nsecret {SECRET}\n")
            self.assertEqual(read_pair(path), (SERVER, SECRET))
            self.assertEqual(read_key(path), SERVER)
            path.write_text(f"public {SERVER}\n")
            with self.assertRaises(ValueError):
                read_pair(path)
            with self.assertRaises(ValueError):
                read_key(Path(folder, "none"))
        with self.assertRaises(ValueError):
            read_pair(("a", "b"))
        self.assertEqual(read_key(SERVER), SERVER)

    def test_a_bus_here_has_no_keys(self) -> None:
        place = LocalPlace(Path("/run/camerabus"))
        self.assertEqual((place.command, place.rendition, place.is_remote), ("ipc:///run/camerabus/command.sock", "native", False))


if __name__ == "__main__":
    unittest.main()
