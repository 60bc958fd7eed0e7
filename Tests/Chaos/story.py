"""A history, put together for the rules: requests with their replies, and what was done to whom at what time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Iterator, NamedTuple, Sequence

from history import Entry

#: Seconds: a process that was stopped for ten is killed by the bus, and what was stopped for fifteen may be busy with
#: what came meanwhile for a moment.
AFTERMATH = 2.0
#: How many seconds before a message its device may have been hit so that this message still shows it.
FORE = 1.5


class Violation(NamedTuple):
    rule: str
    text: str


@dataclass
class Call:
    """A request, and what came of it. Without a reply it may or may not have been carried out."""

    by: str
    method: str
    params: dict[str, Any]
    key: str | None
    asked: float
    ended: float | None = None  # None: its client was killed
    result: Any = None
    error: str | None = None
    unknown: str | None = None
    message: str = ""
    attachments: list[str] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.error is None and self.unknown is None

    @property
    def until(self) -> float:
        return self.asked if self.ended is None else self.ended


class Hurt(NamedTuple):
    """From when to when a process could not work, by what the campaign did."""

    what: str
    since: float
    until: float


class Story:
    def __init__(self, history: Sequence[Entry]) -> None:
        self.history = history

    def entries(self, member: str) -> Iterator[Entry]:
        return (entry for entry in self.history if member in entry)

    @cached_property
    def calls(self) -> list[Call]:
        """In the order in which they were asked."""
        found: dict[tuple[str, int], Call] = {}
        for entry in self.entries("call"):
            name = (entry["by"], entry["call"])
            if "method" in entry:
                found[name] = Call(entry["by"], entry["method"], entry["params"], entry.get("key"), entry["at"])
            elif call := found.get(name):
                call.ended, call.result = entry["at"], entry.get("result")
                call.error, call.unknown = entry.get("error"), entry.get("unknown")
                call.message, call.attachments = entry.get("message", ""), entry.get("attachments", [])
        return list(found.values())

    def called(self, *methods: str) -> list[Call]:
        return [call for call in self.calls if call.method in methods]

    @cached_property
    def hurts(self) -> list[Hurt]:
        found = [Hurt("coordinator", *end) for end in self.ends]
        stopped: dict[int, Entry] = {}
        for act in self.entries("act"):
            if act["act"] == "SIGSTOP":
                # It may be stopped again before it goes on.
                stopped.setdefault(act["pid"], act)
            elif act["act"] in ("SIGKILL", "SIGCONT") and act["pid"] in stopped:
                found.append(Hurt(act["what"], stopped.pop(act["pid"])["at"], act["at"]))
            elif act["act"] in ("SIGKILL", "exited"):
                found.append(Hurt(act["what"], act["at"], act["at"]))
        # What was killed by others while it was stopped.
        return found + [Hurt(act["what"], act["at"], act["at"] + 16) for act in stopped.values()]

    def hurt(self, what: str, since: float, until: float) -> bool:
        """Whether a process of this name was hit at that time, or had to recover from it."""
        return any(
            hurt.what == what and hurt.since <= until and hurt.until + AFTERMATH >= since for hurt in self.hurts
        )

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """From when to when the bus ended in order, because it was told to."""
        found = []
        for act in self.entries("act"):
            if act["act"] == "stopping":
                found.append((act["at"], float("inf")))
            elif act["act"] == "stopped":
                found[-1] = (found[-1][0], act["at"])
        return found

    def ended_in_order(self, since: float, until: float) -> bool:
        """Whether it did at that time."""
        return any(begun - AFTERMATH <= until and over + AFTERMATH >= since for begun, over in self.ends)

    @cached_property
    def stalls(self) -> list[tuple[float, float]]:
        return [tuple(entry["stall"]) for entry in self.entries("stall")]

    def stalled(self, since: float, until: float, seconds: float = 0.0) -> bool:
        """Whether the machine gave us no processor for so long."""
        return any(
            begun < until + 0.5 and over > since - FORE and over - begun > seconds for begun, over in self.stalls
        )

    @cached_property
    def end(self) -> float:
        """When the campaign began to end the bus."""
        return max((begun for begun, over in self.ends if over == float("inf")), default=float("inf"))

    def final(self, method: str) -> list[Any]:
        """The results at the end; an error is a violation of its own."""
        return [
            entry["value"]
            for entry in self.entries("final")
            if entry["final"] == method and "error" not in entry["value"]
        ]

    @cached_property
    def files(self) -> dict[str, Entry]:
        return {entry["file"]: entry for entry in self.entries("file")}
