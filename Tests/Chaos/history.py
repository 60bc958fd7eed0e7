"""The history of a campaign: one line of JSON per entry, written at once, so that a kill loses none.

Each entry has `at` (CLOCK_MONOTONIC, seconds) and one of these:

    call, by, method, params, key?      a client sends a request; `call` is its number, `by` the client
    call, by, result, attachments?      its result; of attachments the SHA-256
    call, by, error, message            its refusal: the reason
    call, by, unknown                   no reply came: whether the request was carried out is not known
    run, by, topic, first, last         messages of one `stream` (`run`) that followed one another without a gap: of the
                                        first and the last {sequence, capture, time, arrived, step, dropped}
    state, epoch, sequence, previous    a message of the state or an event (its topic), with `ended` at the bus's end
    outside, size, planes               a plane that is not within its payload (its topic)
    page, picture                       an answer of the page: whether a whole JPEG came
    act, what, pid?                     what the campaign did: SIGKILL, SIGSTOP, SIGCONT, start, stopping, stopped; and
                                        `exited` {status} of what ended without being told to
    stall                               [from, to]: the machine gave the campaign no processor
    final, value                        what the bus said at the end: a method and its result
    file, size, digest, plays?, duration?, gap?, problem?       a file of the library at the end
    left                                what was left over after the end
    log                                 a line of a log about a crash
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Writer:
    def __init__(self, folder: Path, by: str) -> None:
        self.by = by
        (folder / "history").mkdir(exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / "history" / f"{by}.jsonl", flags, 0o600)

    def write(self, **entry: Any) -> None:
        os.write(self._file, (json.dumps({"at": time.monotonic(), "by": self.by, **entry}) + "\n").encode())


def read(folder: Path) -> list[Entry]:
    """All entries, in the order of time."""
    found = []
    for path in (folder / "history").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # its writer was killed in the middle
    return sorted(found, key=lambda entry: float(entry["at"]))
