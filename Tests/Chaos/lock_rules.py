"""Locks, fences, and the changes that were made under them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Iterator

from story import Call, Story, Violation


@dataclass
class Hold:
    """A lock that was granted, and how long it was certainly held: until a use of it was sent that succeeded."""

    by: str
    token: str
    devices: list[str]
    fence: int
    asked: float
    since: float
    until: float
    lost: float | None = None  # when it was refused as lost

    def __str__(self) -> str:
        time = f"from {self.since:.3f} to {self.until:.3f}"
        return f"{self.by} had {', '.join(self.devices)} with fence {self.fence} {time}"


def holds(story: Story) -> list[Hold]:
    """In the order in which they were granted."""
    found: dict[str, Hold] = {}
    asked: dict[tuple[str, str | None], float] = {}
    for call in story.called("device.lock", "device.renew", "device.configure"):
        if call.method == "device.lock":
            first = asked.setdefault((call.by, call.key), call.asked)
            if call.succeeded:
                lock, since = call.result, call.until
                found[lock["lock"]] = Hold(call.by, lock["lock"], lock["devices"], lock["fence"], first, since, since)
        elif hold := found.get(call.params["lock"]):
            if call.succeeded:
                hold.until = max(hold.until, call.asked)
            elif call.error == "lockLost":
                hold.lost = hold.lost or call.until
    return sorted(found.values(), key=lambda hold: hold.since)


def check(story: Story) -> Iterator[Violation]:
    found = holds(story)
    yield from exclusive(found)
    yield from rising_fences(found)
    yield from not_lost(story, found)
    yield from changes_stay(story)
    for value in story.final("device.locks"):
        if value["locks"] or value["waiting"]:
            yield Violation("[LCK-7]", f"locks or waits of clients that have ended: {value}")


def exclusive(found: list[Hold]) -> Iterator[Violation]:
    by_device: dict[str, list[Hold]] = defaultdict(list)
    for hold in found:
        for device in hold.devices:
            # Those that were granted earlier, so all that it can overlap with.
            latest = max(by_device[device], key=lambda other: other.until, default=None)
            if latest is not None and latest.until > hold.since:
                yield Violation("[LCK-1]", f"two clients had a lock of {device}: {latest}; {hold}")
            by_device[device].append(hold)


def rising_fences(found: list[Hold]) -> Iterator[Violation]:
    """A lock that was granted before another one was asked for has the lower fence."""
    fences: dict[int, Hold] = {}
    for hold in found:
        if (other := fences.get(hold.fence)) is not None:
            yield Violation("[LCK-5]", f"two locks have one fence: {other}; {hold}")
        fences[hold.fence] = hold
    highest: Hold | None = None
    granted = iter(found)
    earlier = next(granted, None)
    for hold in sorted(found, key=lambda hold: hold.asked):
        while earlier is not None and earlier.since < hold.asked:
            if highest is None or earlier.fence > highest.fence:
                highest = earlier
            earlier = next(granted, None)
        if highest is not None and highest.fence >= hold.fence:
            yield Violation("[LCK-5]", f"a later lock has no higher fence: {highest}; {hold}")


def not_lost(story: Story, found: list[Hold]) -> Iterator[Violation]:
    """A lock ends only with its process, its connection, or a bus that ends in order."""
    for hold in found:
        if hold.lost is None:
            continue
        excused = (
            story.ended_in_order(hold.since, hold.lost)
            or story.hurt(hold.by, hold.since - 1, hold.lost)
            or story.stalled(hold.since, hold.lost, 2)
        )
        if not excused:
            yield Violation("[LCK-14]", f"a lock was lost though its holder lived: {hold}, lost at {hold.lost:.3f}")


def changes_stay(story: Story) -> Iterator[Violation]:
    """What is read under a lock is what the last change that was answered made of it, or one that was not answered."""
    fences = {hold.token: hold.fence for hold in holds(story)}
    told: dict[str, list[tuple[int, float, Call]]] = defaultdict(list)
    for call in story.called("device.configure", "device.get"):
        if call.method == "device.get" and call.succeeded and call.result["fence"] is not None:
            told[call.params["device"]].append((call.result["fence"], call.until, call))
        elif call.method == "device.configure" and (fence := fences.get(call.params["lock"])) is not None:
            for change in call.params["changes"]:
                told[change["device"]].append((fence, call.asked, call))
            if call.succeeded and call.result.get("kept") is False:
                yield Violation("[KEP-1]", f"a change was not kept though the disk has room: {call.params}")
    for device, calls in told.items():
        possible: set[int] | None = None  # None: no change was answered yet
        generation = -1
        for fence, _, call in sorted(calls, key=lambda each: each[:2]):
            if call.method == "device.configure":
                change = next(change for change in call.params["changes"] if change["device"] == device)
                value = change["controls"]["brightness"]
                if call.succeeded:
                    possible = {value}
                    if (next_one := call.result["generation"][device]) <= generation:
                        text = f"{device} got generation {next_one} under fence {fence}, after {generation}"
                        yield Violation("[CFG-7]", text)
                    generation = next_one
                elif possible is not None:
                    possible = possible | {value}
            elif possible is not None and call.result["brightness"] not in (*possible, None):
                yield Violation(
                    "[CFG-9] [FAI-5]",
                    f"{device} has brightness {call.result['brightness']} under fence {fence} at {call.until:.3f}, "
                    f"and was set to {sorted(possible)} last",
                )  # fmt: skip
