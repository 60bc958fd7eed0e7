"""Compares a history with SPEC: which rules were violated. Reads and writes nothing."""

from __future__ import annotations

from collections import Counter
from typing import Sequence

import bus_rules
import file_rules
import frame_rules
import lock_rules
from history import Entry
from story import Story, Violation


def check(history: Sequence[Entry]) -> list[Violation]:
    """All violations, with the rule of Protocol/SPEC.md (or its parts) that each is of."""
    story = Story(history)
    return [violation for rules in (lock_rules, frame_rules, file_rules, bus_rules) for violation in rules.check(story)]


def summary(history: Sequence[Entry]) -> str:
    """What there was to compare."""
    story = Story(history)
    done = Counter(call.method for call in story.calls if call.succeeded)
    refused = Counter(f"{call.method} {call.error}" for call in story.calls if call.error)
    lost = Counter(f"{call.method} {call.unknown}" for call in story.calls if call.unknown)
    runs = sum(1 for _ in story.entries("run"))
    lines = [
        f"{len(lock_rules.holds(story))} locks, {len(story.files)} files, {runs} runs of messages without a gap",
        f"answered: {_counts(done)}",
        f"refused: {_counts(refused)}",
        f"without an answer: {_counts(lost)}",
    ]
    return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common(25)) or "none"
