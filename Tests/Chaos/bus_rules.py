"""Replies, state, and what is left when clients or the bus have ended."""

from __future__ import annotations

from typing import Iterator

from story import Call, Story, Violation

#: Methods that need nobody but the coordinator.
COORDINATORS_OWN = (
    "device.lock", "device.unlock", "device.renew", "device.get", "movie.status", "session.delete",
)  # fmt: skip


def check(story: Story) -> Iterator[Violation]:
    for call in story.calls:
        yield from reply(story, call)
    yield from state(story)
    yield from profiles(story)
    yield from ends(story)


def reply(story: Story, call: Call) -> Iterator[Violation]:
    named = f"{call.method} of {call.by} at {call.asked:.3f}"
    if call.unknown == "ProtocolError":
        yield Violation("[REP-1] [REP-6]", f"{named}: {call.message}")
    if call.unknown == "BusTimeout" and call.method in COORDINATORS_OWN and not touched(story, call):
        yield Violation("[REQ-1]", f"{named} got no reply though the bus lived: {call.message}")
    if call.unknown == "BusGone" and not touched(story, call):
        yield Violation("[REQ-10]", f"{named} lost its connection though the bus lived: {call.message}")
    if call.error == "internalError" and not any(
        hurt.since <= call.until and hurt.until + 16 >= call.asked for hurt in story.hurts
    ):
        yield Violation("[REQ-10]", f"{named} failed inside the bus, and nothing was hit: {call.message}")


def touched(story: Story, call: Call) -> bool:
    """Whether the client or the coordinator was hit meanwhile, or the machine had no time for them."""
    hurt = any(story.hurt(what, call.asked - 1, call.until) for what in (call.by, "coordinator"))
    return hurt or story.stalled(call.asked, call.until, 2)


def state(story: Story) -> Iterator[Violation]:
    epoch: str | None = None
    over: set[str] = set()
    ended = False
    last: dict[str, int] = {}
    for entry in story.entries("state"):
        topic, sequence = entry["state"], entry["sequence"]
        if entry["epoch"] != epoch:
            if entry["epoch"] in over:
                yield Violation("[FAI-1]", f"epoch {entry['epoch']} came again after {epoch}")
            over.add(str(epoch))
            epoch, ended, last = entry["epoch"], False, {}
        if ended:
            yield Violation("[FAI-6]", f"{topic} has a message {sequence} after the bus's last one")
        ended = ended or entry.get("ended", False)
        before = last.get(topic)
        # A repeated value has its old number.
        if before is not None and sequence > before and entry["previous"] > before:
            text = f"{topic}: message {sequence} follows {entry['previous']}, which did not come after {before}"
            yield Violation("[STA-1]", text)
        last[topic] = max(sequence, before or 0)


def profiles(story: Story) -> Iterator[Violation]:
    for value in story.final("profile.list"):
        names = {profile["name"] for profile in value["profiles"]}
        saved = {call.params["name"] for call in story.called("profile.save") if call.succeeded}
        if lost := sorted(saved - names):
            yield Violation("[PRO-1] [FAI-5]", f"profiles that were saved are not there: {lost}")


def ends(story: Story) -> Iterator[Violation]:
    for act in story.entries("act"):
        if act["act"] == "exited":
            rule = "[REQ-10]" if act["what"] in ("coordinator", "gateway") else "clients.log"
            yield Violation(rule, f"{act['what']} ended by itself with status {act['status']}")
        elif act["act"] == "stopped" and act["status"] != 0:
            yield Violation("[FAI-6]", f"the bus ended with status {act['status']} after SIGTERM")
    for entry in story.entries("log"):
        yield Violation("[REQ-10]", f"the log says: {entry['log']}")
    for entry in story.entries("left"):
        yield Violation("[END-7]", f"left after the end: {entry['left']}")
    for entry in story.entries("final"):
        if "error" in entry["value"]:
            yield Violation("[REQ-1]", f"{entry['final']} at the end: {entry['value']}")
    for value in story.final("device.list"):
        for device in value["devices"]:
            if device["worker"]["state"] != "running":
                yield Violation("[FAI-3]", f"the worker of {device['id']} is not well again: {device['worker']}")
    for value in story.final("movie.list"):
        if value["movies"]:
            yield Violation("[MOV-6]", f"movies of clients that have ended: {value['movies']}")
    for value in story.final("session.list"):
        if sessions := [session for session in value["sessions"] if not session["detached"]]:
            yield Violation("[SES-2]", f"sessions of clients that have ended: {sessions}")
