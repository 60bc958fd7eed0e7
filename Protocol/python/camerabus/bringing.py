# SPDX-License-Identifier: Apache-2.0
"""Movies that the bus records into its library, and that come here when they have ended."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .core import Core
from .errors import CaptureError, EntryNotFound, PathNotAllowed, RecordingInProgress
from .fetching import fetch, read_part
from .library import delete_from_library
from .movie_messages import MovieStart, _start, _stop
from .partial import place
from .steps import Steps, in_thread

FILE_TYPES = ("mp4", "mov", "mkv")
SIDE_CAR = ".frames.jsonl"


def begin(core: Core, params: Mapping[str, Any], timeout: float | None) -> Steps[list[tuple[MovieStart, str | None]]]:
    """Begins movies, and says where each is to come at its end; None: it is where it was wanted. Over TCP, and where
    the bus may not write, the bus has them in its library first.
    """
    path = params.get("path")
    # Of what goes on without its program nobody would bring it.
    if path is None or not core.place.is_remote or params.get("detached"):
        try:
            return [(start, None) for start in (yield from _start(core, params, timeout))]
        except PathNotAllowed:
            if path is None or params.get("detached"):
                raise
    root, ending = os.path.splitext(path)
    there = {name: value for name, value in params.items() if name != "path"}
    if ending[1:].lower() in FILE_TYPES:
        there.setdefault("fileType", ending[1:].lower())
    is_one = "rig" not in params and not params.get("eachCamera")
    if is_one:
        yield from in_thread(place, path, False)
    begun = yield from _start(core, there, timeout)
    try:
        found: list[tuple[MovieStart, str | None]] = []
        for start in begun:
            target = path if is_one else f"{root}-{start.devices[0]}{ending}"
            yield from in_thread(place, target, False)
            yield from _check(core, start.movie)
            found.append((start, target))
        return found
    except (CaptureError, OSError):
        yield from _give_up(core, begun)
        raise


def _check(core: Core, movie: str) -> Steps[None]:
    # Before it is made: that it may be read in the end.
    try:
        yield from read_part(core, movie, "path", 0, 0, None)
    except RecordingInProgress:
        pass


def _give_up(core: Core, begun: list[MovieStart]) -> Steps[None]:
    for start in begun:
        try:
            yield from core.ask(_stop(start.movie))
            yield from core.ask(delete_from_library(start.movie))
        except CaptureError:
            pass  # what went wrong first is told


def bring(core: Core, movie: str, target: str) -> Steps[None]:
    """A movie that has ended, and its side-car. Nothing is overwritten."""
    try:
        yield from fetch(core, movie, target, "path", False, None, None)
    except (CaptureError, OSError) as error:
        how = f"fetch_from_library({movie!r}, {target!r})"
        error.add_note(f"The movie is in the library of the bus. To continue the download: {how}")
        raise
    try:
        # One that is there is of a movie that is there no more.
        yield from fetch(core, movie, target + SIDE_CAR, "sideCar", True, None, None)
    except EntryNotFound:
        pass
