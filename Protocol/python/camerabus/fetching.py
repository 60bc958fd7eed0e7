# SPDX-License-Identifier: Apache-2.0
"""Files of the capture library, brought here part by part."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from .core import Core
from .errors import BusGone, BusTimeout, ClientError, LimitExceeded, ProtocolError
from .partial import Partial, place
from .steps import Steps, Wait, deadline, in_thread, is_over
from .values import Reply, _raw

#: Bytes of a part: the first one's, and what they may become where the line is slow, or fast.
FIRST, LEAST, MOST = 64 << 10, 16 << 10, 4 << 20
#: Bytes at the end of what was cut off that are compared with the file before it goes on.
TAIL = 1 << 20
#: Seconds until one asks again after a limit; twice as many each time.
PAUSE = 0.05
#: Limits that others' questions, and answers that are on their way, bring about for a moment; those of them that fewer
#: bytes keep.
OF_BYTES = {"libraryReplies", "remoteReplies"}
PASSING = OF_BYTES | {"requestRate", "remoteRequests", "libraryRequests"}
#: That of one answer.
TOO_LARGE = "remoteReply"
#: How often a file is begun anew that was changed meanwhile.
ATTEMPTS = 3
REVISION = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Progress = Callable[[int, int], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPart:
    """A part of a file. `size` is the whole file's, `offset` what is in front of the part; parts with another
    `revision` don't belong to it: it is another file then, or was written to.
    """

    name: str = ""
    size: int = 0
    offset: int = 0
    revision: str = ""
    data: memoryview = field(default=memoryview(b""), repr=False)
    raw: Mapping[str, Any] = _raw()


def read_part(core: Core, entry: str, file: str, offset: int, length: int, timeout: float | None) -> Steps[LibraryPart]:
    """Also from the next bus, where one ends before it has answered."""
    until = deadline(core.timeout if timeout is None else timeout)
    params = {"id": entry, "file": file, "offset": offset, "length": length}
    while True:
        try:
            part = _part((yield from core.request("library.read", params, max(0.0, until - time.monotonic()), None)))
        except BusGone:
            if is_over(until):
                raise
            continue
        if part.offset != offset or len(part.data) > length:
            message = "The answer of the bus to library.read is invalid: it contains another part of the file."
            raise ProtocolError(message)
        return part


def _part(reply: Reply) -> LibraryPart:
    result = reply.result if isinstance(reply.result, dict) else {}
    name, size, offset, revision = (result.get(key) for key in ("name", "size", "offset", "revision"))
    if not (isinstance(name, str) and isinstance(size, int) and isinstance(offset, int) and isinstance(revision, str)):
        raise ProtocolError("The answer of the bus to library.read is invalid: it contains no part of the file.")
    if len(reply.attachments) != 1 or size < 0 or not REVISION.fullmatch(revision):
        raise ProtocolError("The answer of the bus to library.read is invalid: it contains no part of the file.")
    return LibraryPart(
        name=name, size=size, offset=offset, revision=revision, data=reply.attachments[0].data, raw=result
    )


def fetch(
    core: Core, entry: str, path: str | os.PathLike[str], file: str, overwrite: bool, timeout: float | None,
    progress: Progress | None,
) -> Steps[int]:
    """The file's bytes; what is cut off stays beside it, and the next call goes on there."""
    for _ in range(ATTEMPTS):
        target = yield from in_thread(place, os.fspath(path), overwrite)
        known, _ = yield from _patiently(core, entry, file, 0, 0, timeout)
        with Partial(target, known.revision) as partial:
            yield from in_thread(partial.open, known.size)
            if (yield from _fill(core, partial, known, entry, file, timeout, progress)):
                yield from in_thread(partial.publish, overwrite)
                return known.size
            partial.discard()
    raise ClientError(f"The file of {entry} changed several times while it was read. Try again later.")


def _fill(
    core: Core, partial: Partial, known: LibraryPart, entry: str, file: str, timeout: float | None,
    progress: Progress | None,
) -> Steps[bool]:
    """False: the file was changed meanwhile, or what is here is not of it, and what came doesn't belong together."""
    length = FIRST
    # What was written last may not have come to the disk, for all that its size says.
    offset = max(0, partial.count - TAIL)
    while offset < known.size:
        begin = time.monotonic()
        part, length = yield from _patiently(core, entry, file, offset, length, timeout)
        if part.revision != known.revision:
            return False
        if not 0 < len(part.data) <= known.size - offset:
            raise ProtocolError("The answer of the bus to library.read is invalid: the file has another length.")
        # No more is under way than comes in about a second: other answers don't wait for long.
        took = time.monotonic() - begin
        if took < 0.25:
            length = min(2 * length, MOST)
        elif took > 1:
            length = max(length // 2, LEAST)
        if not (yield from in_thread(partial.add, part.data, offset)):
            return False
        offset += len(part.data)
        if progress is not None:
            progress(partial.count, known.size)
    return True


def _patiently(
    core: Core, entry: str, file: str, offset: int, length: int, timeout: float | None
) -> Steps[tuple[LibraryPart, int]]:
    """A part, and of how many bytes it was to be at last: of fewer where a limit, or the line, doesn't let that many
    through.
    """
    seconds = core.timeout if timeout is None else timeout
    until, pause = deadline(seconds), PAUSE
    while True:
        less = min(length, max(length // 2, LEAST))
        try:
            return (yield from read_part(core, entry, file, offset, length, max(0.0, until - time.monotonic()))), length
        except LimitExceeded as error:
            if error.limit == TOO_LARGE and less < length:
                length = less
                continue
            if error.limit not in PASSING or until <= deadline(pause):
                raise
            if error.limit in OF_BYTES:
                length = less
            yield Wait((), deadline(pause))
            pause = min(2 * pause, 1.0)
        except BusTimeout:
            # What was asked for is still in the line: once more, behind that, and as little as may be.
            if length <= LEAST:
                raise
            length, until = LEAST, deadline(seconds)
