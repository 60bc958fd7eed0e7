"""What readers that are never hit receive, and what any reader may never receive."""

from __future__ import annotations

from collections import defaultdict
from typing import Iterator

from history import Entry
from story import FORE, Story, Violation

#: Seconds: where frames arrive so late, worker or reader got no processor.
LATE = 0.1


def check(story: Story) -> Iterator[Violation]:
    by_topic: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for run in story.entries("run"):
        by_topic[run["by"], run["topic"]].append(run)
    for (by, topic), runs in by_topic.items():
        runs.sort(key=lambda run: float(run["first"]["arrived"]))
        for before, after in zip(runs, runs[1:]):
            if before["run"] == after["run"]:
                yield from same_stream(story, by, topic, before["last"], after["first"])
            elif by.startswith("watch-"):
                yield from new_stream(story, by, topic, before["last"], after["first"])
    for entry in story.entries("outside"):
        text = f"{entry['outside']}: a plane is not within the {entry['size']} bytes: {entry['planes']}"
        yield Violation("[FRM-3]", text)
    for entry in story.entries("page"):
        if not entry["picture"]:
            yield Violation("[FRM-6]", f"the page gave no whole picture: {entry['page']}")


def same_stream(story: Story, by: str, topic: str, last: Entry, first: Entry) -> Iterator[Violation]:
    kind, device = topic.split("/")[:2]
    between = f"{by}: {topic} has {_numbers(last)}, then {_numbers(first)}"
    if first["capture"] <= last["capture"] or first["time"] <= last["time"]:
        rule = {"set": "[SET-2]", "audio": "[SND-2]", "ring": "[RNG-11]"}.get(kind, "[FRM-1]")
        yield Violation(rule, f"{between}: numbers do not rise")
        return
    if not by.startswith("watch-"):
        return  # it may have been stopped
    if is_excused(story, by, device, last, first):
        return
    is_late = any(message["arrived"] - message["time"] > LATE for message in (last, first))
    is_counted = first["dropped"] != last["dropped"]
    if is_late and (is_counted or first["sequence"] != last["sequence"] + 1):
        return
    if is_counted and story.stalled(last["time"], first["time"]):
        return
    yield Violation(rule_of(story, last, first), f"{between}: {_missing(last, first)}, and nobody hit {device}")


def new_stream(story: Story, by: str, topic: str, last: Entry, first: Entry) -> Iterator[Violation]:
    device = topic.split("/")[1]
    if first["arrived"] < story.end and not is_excused(story, by, device, last, first):
        rule = rule_of(story, last, first)
        yield Violation(rule, f"{by}: {topic} began anew after {_numbers(last)}, and nobody hit {device}")


def is_excused(story: Story, by: str, device: str, last: Entry, first: Entry) -> bool:
    since, until = last["time"] - FORE, first["arrived"] + 0.5
    return (
        story.hurt(device, since, until)
        or story.hurt(by, since, until)
        or story.ended_in_order(since, until)
        or story.stalled(last["time"], first["time"], 0.3)
    )


def rule_of(story: Story, last: Entry, first: Entry) -> str:
    """What a loss shows: that of the coordinator's death, of another process's death, or of none."""
    since, until = last["time"] - FORE, first["arrived"]
    if story.hurt("coordinator", since, until):
        return "[FAI-4]"
    others = any(hurt.since <= until and hurt.until >= since for hurt in story.hurts)
    return "[FAI-3]" if others else "[FRM-5]"


def _numbers(message: Entry) -> str:
    return f"{message['sequence']} ({message['capture']}) at {message['time']:.3f}"


def _missing(last: Entry, first: Entry) -> str:
    messages = first["sequence"] - last["sequence"] - 1
    frames = first["capture"] - last["capture"] - last["step"]
    return f"{messages} messages and {frames} frames are missing"
