"""The vectors of requests, sent to a real bus."""

from __future__ import annotations

import json
from typing import Any

import zmq

import vectors
from camerabus import find_bus
from live import LiveTestCase, TIMEOUT


class Vectors(LiveTestCase):
    """The vectors that only a bus can judge, sent as they are."""

    def setUp(self) -> None:
        super().setUp()
        if not (vectors.PROTOCOL / "vectors").is_dir():
            self.skipTest("Protocol/vectors is not there")
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.addCleanup(self.context.destroy, 0)
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, int(TIMEOUT * 1000))
        self.socket.connect(f"ipc://{find_bus()}/command.sock")

    def exchange(self, frames: list[bytes]) -> list[list[bytes]]:
        """What comes back before the answer to a ping sent behind it. Pings are answered in order with what can't be
        carried out.
        """
        self.socket.send_multipart(frames)
        self.socket.send_multipart([b"", b'{"jsonrpc":"2.0","id":"end","method":"bus.ping"}'])
        replies: list[list[bytes]] = []
        while True:
            reply = self.socket.recv_multipart()
            if reply[0] == b"" and json.loads(reply[1]).get("id") == "end":
                return replies
            replies.append(reply)

    def test_requests(self) -> None:
        for case in vectors.files()["requests"]["cases"]:
            expect = case["expect"]
            with self.subTest(case["name"]):
                replies = self.exchange([b"", *map(vectors.frame, case["frames"])])
                if "id" not in expect:
                    self.assertEqual(replies, [])
                    continue
                [[_, body]] = replies
                reply = json.loads(body)
                self.assertEqual(reply["id"], expect["id"])
                if case["valid"] and "for" not in expect and expect["method"] == "bus.ping" and not expect["params"]:
                    self.assertEqual(reply["result"], {})
                elif not case["valid"]:
                    self.check(reply["error"], expect["error"])

    def test_envelopes(self) -> None:
        for case in vectors.files()["envelopes"]["cases"]:
            expect = case["expect"]
            with self.subTest(case["name"]):
                frames = [vectors.frame(frame) for frame in case["frames"]]
                replies = self.exchange(frames)
                if not expect.get("answered", True):
                    self.assertEqual(replies, [])
                    continue
                [reply] = replies
                self.assertEqual(reply[: expect["envelope"]], frames[: expect["envelope"]])
                body = json.loads(reply[expect["envelope"]])
                is_refused = (
                    body.get("error", {}).get("data", {}).get("reason") == "invalidRequest" and body["id"] is None
                )
                self.assertEqual(is_refused, not case["valid"], body)

    def test_params(self) -> None:
        known = {method["name"] for method in self.client.call("bus.methods")["methods"]}
        for case in vectors.files()["params"]["cases"]:
            if case["valid"] or case["method"] not in known:
                continue  # what is valid would have effects
            with self.subTest(case["name"]):
                request = {"jsonrpc": "2.0", "id": 1, "method": case["method"], "params": case["params"]}
                [[_, body]] = self.exchange([b"", json.dumps(request).encode()])
                self.check(json.loads(body)["error"], {"code": -32602, **case["expect"]})

    def check(self, error: Any, expect: Any) -> None:
        self.assertEqual((error["code"], error["data"]["reason"]), (expect["code"], expect["reason"]))
        for name, value in expect.get("data", {}).items():
            self.assertEqual(error["data"].get(name), value, name)
        self.assertTrue(error["message"])
