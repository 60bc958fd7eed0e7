"""Requests that make sense, nearly make sense, or none."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict, deque
from typing import Any

import request_inputs
import vectors
import zmq
from jsonschema import Draft202012Validator
from part import Part

CONNECTIONS = 40
#: Requests without an answer that a connection may have: the bus queues 16 replies of one client.
ON_THE_WAY = 12
#: Seconds until a request counts as not answered.
PATIENCE = 60.0
#: The share of answers that are compared with their schemas, which takes longer than all else.
COMPARED = 0.08
#: Every so many inputs is no request.
NO_REQUEST = 40
#: After so many inputs the guests leave, whose things would be ever more.
LEAVE = 2000
CODES = {
    "parseError": -32700, "invalidRequest": -32600, "methodNotFound": -32601, "invalidParams": -32602,
    "internalError": -32603,
}  # fmt: skip


class Requests(Part):
    name = "requests"
    share = 888_000

    def prepare(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.known: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=12))
        self.validators: dict[str, Draft202012Validator] = {}
        self.errors = vectors.errors()
        with self.bus.client("fuzz") as client:
            client.call("rig.set", {"name": "pair", "devices": ["cam0", "cam1"]})

    def give(self, first: int, count: int) -> None:
        context = zmq.Context()
        self.poller = zmq.Poller()
        self.waiting: dict[zmq.Socket[bytes], dict[Any, tuple[int, str, bytes, float]]] = {}
        for _ in range(CONNECTIONS):
            dealer = self._dealer(context)
            self.poller.register(dealer, zmq.POLLIN)
            self.waiting[dealer] = {}
        self.plain = self._dealer(context)
        with self.bus.client("fuzz") as client:
            for number in range(first, first + count):
                if number % NO_REQUEST == NO_REQUEST - 1:
                    self._send_no_request(number)
                else:
                    self._send_request(number)
                self.done += 1
                if number % 8 == 0:
                    self._receive(0)
                    if self._has_ended(number):
                        break
                if number % LEAVE == 0:
                    client.call("bus.leave")
                    if not self.health.check(number - first, count):
                        break
        until = time.monotonic() + PATIENCE
        while any(self.waiting.values()) and time.monotonic() < until and not self._has_ended(first + self.done):
            self._receive(200)
        self._give_up(0)
        context.destroy(linger=0)
        self.notes.append(", ".join(f"{times} {what}" for what, times in self.outcomes.most_common(12)))

    def _dealer(self, context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
        dealer = context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.connect(f"ipc://{self.bus.runtime / 'command.sock'}")
        return dealer

    def _send_request(self, number: int) -> None:
        dice = self.dice(number)
        name, request = request_inputs.request(dice)
        request = request_inputs.placed(request, {kind: list(names) for kind, names in self.known.items()}, dice)
        dealer = min(self.waiting, key=lambda each: len(self.waiting[each]))
        while len(self.waiting[dealer]) >= ON_THE_WAY and not self._has_ended(number):
            self._receive(20)
            self._give_up(PATIENCE)
            dealer = min(self.waiting, key=lambda each: len(self.waiting[each]))
        if is_notification := dice.random() < 0.02:
            identifier = None
        else:
            identifier = request["id"] = dice.choice([number, f"s{number}", f"é{number}💥"])
        body = json.dumps(request, ensure_ascii=dice.random() < 0.5).encode("utf-8", "replace")
        if not is_notification:
            self.waiting[dealer][identifier] = (number, name, body, time.monotonic())
        dealer.send_multipart([b"", body])

    def _send_no_request(self, number: int) -> None:
        body = request_inputs.no_request(self.dice(number))
        self.plain.send_multipart([b"", body])
        self.plain.send_multipart([b"", b'{"jsonrpc":"2.0","id":"behind","method":"bus.ping"}'])
        nulls = 0
        until = time.monotonic() + PATIENCE
        while True:
            if not self.plain.poll(1000):
                if self._has_ended(number) or time.monotonic() > until:
                    self.fail(number, f"no answer behind {body[:200]!r} ({len(body)} bytes)")
                    return
                continue
            reply = json.loads(self.plain.recv_multipart()[1])
            if reply["id"] == "behind":
                break
            nulls += 1
        if nulls != 1:
            self.fail(number, f"{nulls} answers to {body[:200]!r} ({len(body)} bytes)")

    def _has_ended(self, number: int) -> bool:
        """Whether the coordinator has; one of the inputs that have no answer did it."""
        assert self.bus.process is not None
        if self.bus.process.poll() is None:
            return False
        asked = sorted(each[:3] for waiting in self.waiting.values() for each in waiting.values())
        if asked:
            text = f"the coordinator ended with status {self.bus.process.returncode}; inputs from here to {number}"
            self.fail(asked[0][0], f"{text} have no answer, the last one {asked[-1][2][:300]!r}")
            self.waiting = {dealer: {} for dealer in self.waiting}
        return True

    def _give_up(self, seconds: float) -> None:
        now = time.monotonic()
        for waiting in self.waiting.values():
            for identifier, (number, _, body, sent) in list(waiting.items()):
                if now - sent > seconds:
                    self.fail(number, f"no answer within {PATIENCE:.0f} s: {body[:500]!r}")
                    del waiting[identifier]

    def _receive(self, milliseconds: int) -> None:
        for dealer, _ in self.poller.poll(milliseconds):
            while True:
                try:
                    parts = dealer.recv_multipart(zmq.DONTWAIT)
                except zmq.Again:
                    break
                self._take(self.waiting[dealer], json.loads(parts[1]), len(parts) - 2)

    def _take(self, waiting: dict[Any, Any], reply: dict[str, Any], attachments: int) -> None:
        asked = waiting.pop(reply.get("id"), None)
        if asked is None:
            # A notification that is no request is answered, too.
            if reply.get("id") is not None or reply["error"]["data"]["reason"] != "invalidRequest":
                self.fail(None, f"an answer that nobody asked for: {json.dumps(reply)[:400]}")
            return
        number, name, body, _ = asked
        wrong = self._error(name, reply["error"]) if "error" in reply else self._result(name, reply, attachments)
        for problem in wrong:
            self.fail(number, f"{problem}: {body[:300]!r} → {json.dumps(reply)[:300]}")

    def _error(self, name: str, error: dict[str, Any]) -> list[str]:
        reason = (error.get("data") or {}).get("reason", "")
        self.outcomes[reason] += 1
        if not error.get("message") or error["code"] != CODES.get(reason, -32000):
            return ["an error without its code or message"]
        if reason == "internalError":
            self.outcomes[f"internalError of {name}"] += 1
        return self._misfits(f"error {reason}", self.errors.get(reason), error["data"])

    def _result(self, name: str, reply: dict[str, Any], attachments: int) -> list[str]:
        self.outcomes["results"] += 1
        result = reply["result"]
        announced = len(result.get("attachments") or []) if isinstance(result, dict) else 0
        if attachments != announced:
            return [f"{attachments} attachments of {announced}"]
        self._learn(result)
        schema = request_inputs.METHODS[name]["result"] if name != "bus.methods" else None
        return self._misfits(name, schema and {"$defs": request_inputs.DEFINITIONS, **schema}, result)

    def _misfits(self, name: str, schema: dict[str, Any] | None, value: Any) -> list[str]:
        if schema is None or self.dice(self.done).random() > COMPARED:
            return []
        validator = self.validators.setdefault(name, Draft202012Validator(schema))
        problem = next(validator.iter_errors(value), None)
        return [f"{name} does not fit its schema, {problem.json_path}: {problem.message[:200]}"] if problem else []

    def _learn(self, result: Any) -> None:
        if not isinstance(result, dict):
            return
        take = result.get("take")
        entries = [entry["id"] for entry in (result.get("entries") or [])[:3]]
        named = {
            "LockToken": [result.get("lock")], "SessionID": [result.get("session")], "MovieID": [result.get("movie")],
            "TakeID": [take.get("id") if isinstance(take, dict) else take], "LibraryID": entries,
        }  # fmt: skip
        for kind, names in named.items():
            self.known[kind].extend(name for name in names if isinstance(name, str))
