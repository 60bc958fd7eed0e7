# SPDX-License-Identifier: Apache-2.0
"""What `epoch`, `sequence` and `previous` say: a copy of the state that detects every loss, and events that report
one.

No socket in sight: `Protocol/vectors/state-sequences.json` goes through here as it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Mapping, Sequence

from .values import Change


class Continuity:
    """Whether messages were lost, topic by topic."""

    TOPICS = 4096  # remembered at most: ids of locks come and go

    def __init__(self) -> None:
        self._epoch: str | None = None
        self._floor: int | None = None
        self._last: OrderedDict[str, int] = OrderedDict()

    def start(self, epoch: str, sequence: int) -> None:
        """From here on nothing may be missing: what came up to `sequence` is not missed."""
        if epoch != self._epoch:
            self._epoch, self._floor = epoch, None
            self._last.clear()
        self._floor = max(sequence, self._floor or 0)

    def receive(self, topic: str, epoch: str, sequence: int, previous: int) -> bool | None:
        """True: one before this on its topic was lost. None: this one is not new."""
        if epoch != self._epoch:
            # A later epoch begins at 0, so that what it had before this is missed; of the first one seen nobody knows.
            self._floor = None if self._epoch is None else 0
            self._epoch = epoch
            self._last.clear()
        known = self._last.get(topic)
        if known is not None and sequence <= known:
            return None
        base = self._floor if known is None else known
        if known is None and len(self._last) >= self.TOPICS:
            self._floor = max(self._floor or 0, self._last.popitem(last=False)[1])
        self._last[topic] = sequence
        self._last.move_to_end(topic)
        return base is not None and previous > base


class FrameContinuity:
    """What a subscriber of frames missed, and which ones it can use.

    Those of a format whose frames build on one another (H.264) are good from a key frame on, until one is missing.
    """

    def __init__(self) -> None:
        self._stream: str | None = None
        self._sequence = 0
        self._is_broken = True
        self._has_begun = False
        self._left_out = 0

    def receive(self, stream: str, sequence: int, keyframe: bool | None) -> int | None:
        """How many were missed or left out since the one that was used before; None: this one is to be left out.

        `keyframe` is None where each frame stands for itself. What came before the first of a stream can't be known.
        """
        is_new = stream != self._stream or sequence <= self._sequence
        missed = 0 if is_new else sequence - self._sequence - 1
        self._stream, self._sequence = stream, sequence
        if is_new:
            self._is_broken, self._has_begun, self._left_out = True, False, 0
        if missed:
            self._is_broken = True
        self._left_out += missed
        if self._is_broken and keyframe is False:
            self._left_out += 1
            return None
        lost = self._left_out if self._has_begun else 0
        self._is_broken, self._has_begun, self._left_out = False, True, 0
        return lost

    def interrupt(self) -> None:
        """The frame that was given last could not be used after all."""
        self._is_broken = True


class SoundContinuity:
    """What is missing of the sound that a subscriber gets: lost by the device, or on the way."""

    def __init__(self) -> None:
        self._stream: str | None = None
        self._sequence = 0
        self._next = 0

    def receive(self, stream: str, sequence: int, first_frame: int, frames: int) -> int | None:
        """Frames that are missing before this piece; 0 for the first of a stream. None: it is not newer than the one
        before.
        """
        is_new = stream != self._stream
        if not is_new and sequence <= self._sequence:
            return None
        missing = 0 if is_new else max(0, first_frame - self._next)
        self._stream, self._sequence, self._next = stream, sequence, first_frame + frames
        return missing


class MirrorState:
    """Snapshot plus changes.

    A message that is not newer than what is known is dropped. A hole (its `previous` was never seen), another epoch, or
    a heartbeat whose `latest` is not known call for a new snapshot; what comes until that is there is kept, and applied
    after it.
    """

    GONE = 64  # topics whose end is remembered; a heartbeat tells at most 32 of them
    KEPT = 1024  # while a snapshot is awaited; more of them cost one more snapshot

    def __init__(self, subscriptions: Sequence[str]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.values: dict[str, Any] = {}
        self.epoch: str | None = None
        self.sequence = 0
        self.needs_snapshot = True
        #: What changed since somebody last took this.
        self.changes: list[Change] = []
        # Everything up to here was in the snapshot, on whatever topic.
        self._floor = 0
        # The newest sequence applied, by topic and by each path above it.
        self._last: dict[str, int] = {}
        self._gone: list[str] = []
        self._kept: list[tuple[str, Mapping[str, Any]]] = []

    def receive(self, topic: str, message: Mapping[str, Any]) -> str:
        """Takes a message of the events socket; answers applied, ignored, kept, resynchronize or inStep."""
        epoch = message.get("epoch")
        if not isinstance(epoch, str):
            return "ignored"
        if topic == "heartbeat/":
            return self._heartbeat(epoch, message.get("latest"))
        sequence, previous = message.get("sequence"), message.get("previous", 0)
        if not topic.startswith("state/") or not isinstance(sequence, int) or not isinstance(previous, int):
            return "ignored"
        if self.needs_snapshot:
            self._kept.append((topic, message))
            del self._kept[self.KEPT + 1 :]
            return "kept"
        known = max(self._floor, self._last.get(topic, 0))
        if epoch == self.epoch and sequence <= known:
            return "ignored"
        if epoch != self.epoch or previous > known:
            self.needs_snapshot = True
            self._kept.append((topic, message))
            return "resynchronize"
        self._apply(topic, sequence, message.get("value"))
        return "applied"

    def adopt(self, snapshot: Mapping[str, Any]) -> bool:
        """Takes the result of `bus.snapshot`, and then what was kept. False: one more snapshot is needed."""
        epoch, sequence, state = snapshot.get("epoch"), snapshot.get("sequence"), snapshot.get("state")
        if not isinstance(epoch, str) or not isinstance(sequence, int) or not isinstance(state, dict):
            return False
        kept, self._kept = self._kept, []
        # The bus may have been started again between the request and now: the last message tells.
        if len(kept) > self.KEPT or (kept and kept[-1][1].get("epoch") != epoch):
            return False
        self.epoch, self.sequence, self._floor, self.needs_snapshot = epoch, sequence, sequence, False
        self._last.clear()
        self._gone.clear()
        fresh = {topic: value for topic, value in state.items() if topic.startswith(self.subscriptions)}
        for topic in sorted({*self.values, *fresh}):
            self._put(topic, fresh.get(topic))
        for topic, message in kept:
            if message.get("epoch") == epoch:
                self.receive(topic, message)
        return not self.needs_snapshot

    def _heartbeat(self, epoch: str, latest: Any) -> str:
        if self.needs_snapshot:
            return "ignored"
        ours = latest.items() if isinstance(latest, dict) else ()
        if epoch == self.epoch and not any(
            prefix.startswith("state/")
            and prefix.startswith(self.subscriptions)
            and isinstance(sequence, int)
            and sequence > max(self._floor, self._last.get(prefix, 0))
            for prefix, sequence in ours
        ):
            return "inStep"
        self.needs_snapshot = True
        return "resynchronize"

    def _apply(self, topic: str, sequence: int, value: Any) -> None:
        path = ""
        for segment in topic.rstrip("/").split("/"):
            path += segment + "/"
            self._last[path] = sequence
        if value is None:
            # One that comes back begins with a `previous` of 0, so those that went first can be forgotten.
            self._gone.append(topic)
            if len(self._gone) > self.GONE and (oldest := self._gone.pop(0)) not in self.values:
                self._last.pop(oldest, None)
        self.sequence = sequence
        self._put(topic, value)

    def _put(self, topic: str, value: Any) -> None:
        before = self.values.get(topic)
        if value is None:
            self.values.pop(topic, None)
        else:
            self.values[topic] = value
        if value != before:
            self.changes.append(Change(topic=topic, value=value, before=before))
