# SPDX-License-Identifier: Apache-2.0
"""The capture library: what was recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Mapping

from .core import AsyncOpened, Call, Opened, given
from .errors import ProtocolError
from .fetching import LibraryPart, Progress, fetch, read_part
from .photo_values import LivePhotoMovie
from .steps import run
from .values import Holder, _map, _of, _raw, _tuple, read

FEATURE = "library"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryDevice:
    """A device as it was called when something was recorded."""

    device: str = ""
    uniqueID: str = ""
    name: str | None = None
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPhoto:
    """What a photo is: `uniqueID` is of the request that it was taken by, `index` which of its device's photos of that.
    More, as the capture answered it (exposure, flashFired, …), is in `raw`.
    """

    uniqueID: str = ""
    index: int = 0
    width: int = 0
    height: int = 0
    #: Of a live photo, whose movie's file is the entry's `movie`; None: it is none.
    livePhotoMovie: LivePhotoMovie | None = _of(LivePhotoMovie)
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryEntry:
    """Something that was recorded. `state` is recording, finished, recovered, damaged or missing; `started` is in
    nanoseconds since 1970, `duration` in milliseconds, `size` in bytes. `problem` says what is wrong with it; None:
    nothing.
    """

    id: str = ""
    kind: str = ""
    path: str = ""
    sideCar: str | None = None
    #: Of a take: its first frame.
    cover: str | None = None
    #: Of a live photo: its movie's file.
    movie: str | None = None
    state: str = ""
    reason: str | None = None
    problem: str | None = None
    devices: tuple[LibraryDevice, ...] = _tuple(lambda value: read(LibraryDevice, value))
    microphone: LibraryDevice | None = _of(LibraryDevice)
    started: int = 0
    duration: float = 0
    size: int = 0
    fileType: str = ""
    video: Mapping[str, Any] = _map()
    audio: Mapping[str, Any] = _map()
    #: None: it is no photo.
    photo: LibraryPhoto | None = _of(LibraryPhoto)
    frames: int | None = None
    dropped: int | None = None
    session: str | None = None
    rig: str | None = None
    take: str | None = None
    part: int | None = None
    owner: Holder | None = _of(Holder)
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Entries of the capture library, the newest first. `more`: there are more than the limit. `unreadable` are ids and
    reasons of those that the bus can't read, for administrators.
    """

    entries: tuple[LibraryEntry, ...] = _tuple(lambda value: read(LibraryEntry, value))
    more: bool = False
    unreadable: tuple[Mapping[str, str], ...] = _tuple()
    raw: Mapping[str, Any] = _raw()


def _nanoseconds(since: float | datetime | None) -> int | None:
    if since is None:
        return None
    seconds = since.timestamp() if isinstance(since, datetime) else since
    return max(0, round(seconds * 1_000_000_000))


def library(
    since: float | datetime | None,
    kind: str | None,
    device: str | None,
    state: str | None,
    take: str | None,
    photo: str | None,
    prefix: str | None,
    limit: int | None,
) -> Call[Library]:
    wanted = {"kind": kind, "device": device, "state": state, "take": take, "photo": photo, "prefix": prefix}
    params = given(since=_nanoseconds(since), limit=limit, **wanted)
    return Call("library.list", params, lambda result: read(Library, result), True)


def library_entry(entry: str) -> Call[LibraryEntry]:
    def entry_of(result: Any) -> LibraryEntry:
        if not isinstance(result, dict) or "entry" not in result:
            raise ProtocolError("The answer of the bus is invalid: it contains no 'entry'.")
        return read(LibraryEntry, result["entry"])

    return Call("library.get", {"id": entry}, entry_of, True)


def delete_from_library(entry: str) -> Call[list[str]]:
    def deleted(result: Any) -> list[str]:
        return list(result.get("deleted") or []) if isinstance(result, dict) else []

    return Call("library.delete", {"id": entry}, deleted)


class LibraryCalls(Opened):
    """Of `Client`: what was recorded."""

    def library(
        self,
        *,
        since: float | datetime | None = None,
        kind: str | None = None,
        device: str | None = None,
        state: str | None = None,
        take: str | None = None,
        photo: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Library:
        """What was recorded, the newest first: one's own, for administrators everybody's.

        `since` is a time, or seconds since 1970; `device` a camera's or microphone's id at that time, or its uniqueID;
        `photo` the uniqueID of a request for photos; `prefix` what the ids begin with. `limit` is 100 unless given.
        """
        return run(self._open.ask(library(since, kind, device, state, take, photo, prefix, limit), timeout))

    def library_entry(self, entry: str, *, timeout: float | None = None) -> LibraryEntry:
        return run(self._open.ask(library_entry(entry), timeout))

    def fetch_from_library(
        self,
        entry: str,
        path: str | os.PathLike[str],
        *,
        file: str = "path",
        overwrite: bool = False,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Brings a file of an entry here, wherever the bus is, and returns how many bytes it has.

        `file` is the member of the entry that names it: `path`, `sideCar`, `cover` or `movie`. It gets its name when it
        is whole and on the disk. What is cut off stays beside it, as `PATH.….part`, and the next call goes on from
        there, unless the end of what is there is other than the bus's file has it. A bus that ends meanwhile, and
        limits that pass, are waited for, as long as `timeout` says, which is for each part; one that doesn't come in
        that time is asked for once more, with fewer bytes. `progress` is called with how many bytes are here, and of
        how many.

        Raises `EntryNotFound`, also for somebody else's and for a file that isn't there, `RecordingInProgress` while it
        is being made, `PathNotAllowed` where it isn't in the library's own folder, `LimitExceeded` where that doesn't
        pass, `FileExistsError` unless it may `overwrite`, and `OSError` for what the disk refuses, also for what lies
        beside it under that name and is no file of this user's.
        """
        return run(fetch(self._open, entry, path, file, overwrite, timeout, progress))

    def read_library(
        self, entry: str, *, file: str = "path", offset: int = 0, length: int = 1 << 20, timeout: float | None = None
    ) -> LibraryPart:
        """A part of a file of an entry, 4 MiB at most."""
        return run(read_part(self._open, entry, file, offset, length, timeout))

    def delete_from_library(self, entry: str, *, timeout: float | None = None) -> list[str]:
        """Removes the files of an entry, and then the entry. Returns the paths of the files that were there."""
        return run(self._open.ask(delete_from_library(entry), timeout))


class AsyncLibraryCalls(AsyncOpened):
    """Of `AsyncClient`: the same, to be awaited. See `Client` for what the calls do."""

    async def library(
        self,
        *,
        since: float | datetime | None = None,
        kind: str | None = None,
        device: str | None = None,
        state: str | None = None,
        take: str | None = None,
        photo: str | None = None,
        prefix: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Library:
        return await self._run(self._open.ask(library(since, kind, device, state, take, photo, prefix, limit), timeout))

    async def library_entry(self, entry: str, *, timeout: float | None = None) -> LibraryEntry:
        return await self._run(self._open.ask(library_entry(entry), timeout))

    async def fetch_from_library(
        self,
        entry: str,
        path: str | os.PathLike[str],
        *,
        file: str = "path",
        overwrite: bool = False,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        return await self._run(fetch(self._open, entry, path, file, overwrite, timeout, progress))

    async def read_library(
        self, entry: str, *, file: str = "path", offset: int = 0, length: int = 1 << 20, timeout: float | None = None
    ) -> LibraryPart:
        return await self._run(read_part(self._open, entry, file, offset, length, timeout))

    async def delete_from_library(self, entry: str, *, timeout: float | None = None) -> list[str]:
        return await self._run(self._open.ask(delete_from_library(entry), timeout))
