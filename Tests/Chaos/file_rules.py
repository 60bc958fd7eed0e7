"""What was answered about movies, photos and takes, compared with the library at the end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Iterator

from history import Entry
from story import Call, Story, Violation

#: Seconds that a movie may be shorter than what was on the disk: a period of sound and a picture.
SLACK = 0.15
#: Seconds by which the state may be ahead of the file beside a fragment: a frame, and what was not yet published.
AHEAD = 0.4
#: Files of a library's folder that have an entry: members of the entry.
MEMBERS = ("path", "movie", "cover", "sideCar")


@dataclass
class Library:
    """The entries at the end."""

    story: Story

    @cached_property
    def lists(self) -> list[dict[str, Any]]:
        return self.story.final("library.list")

    @cached_property
    def entries(self) -> dict[str, Entry]:
        return {entry["id"]: entry for value in self.lists for entry in value["entries"]}

    @cached_property
    def is_whole(self) -> bool:
        """Whether it has all entries: a longer list is cut."""
        return bool(self.lists) and not any(value["more"] for value in self.lists)


def check(story: Story) -> Iterator[Violation]:
    library = Library(story)
    yield from photos(story, library)
    yield from movies(story, library)
    yield from takes(story)
    yield from entries(story, library)


def photos(story: Story, library: Library) -> Iterator[Violation]:
    for call in story.called("photo.capture"):
        if not call.succeeded or "library" not in call.params.get("deliver", ["library"]):
            continue
        result = call.result
        rule = "[PHO-23] [FAI-5]" if "livePhotoMovie" in result else "[PHO-9] [FAI-5]"
        for file in (*result["photos"], *([result["livePhotoMovie"]] if "livePhotoMovie" in result else [])):
            if "error" in file:
                continue
            digest = call.attachments[file["attachment"]] if "attachment" in file else None
            for problem in file_problems(story, file.get("path"), digest):
                yield Violation(rule, f"a photo that was answered {problem}: {file}")
            if library.is_whole and "id" in file and file["id"] not in library.entries:
                yield Violation(rule, f"a photo that was answered has no entry: {file}")


def file_problems(story: Story, path: str | None, digest: str | None) -> Iterator[str]:
    file = story.files.get(path or "")
    if file is None:
        yield "has no file"
    elif digest is not None and file["digest"] != digest:
        yield "has another file"
    elif file.get("plays") is False:
        yield f"does not play ({file['problem']})"


def movies(story: Story, library: Library) -> Iterator[Violation]:
    told: dict[str, list[Entry]] = defaultdict(list)
    ends: dict[str, Entry] = {}
    for call in story.called("movie.status", "movie.stop"):
        if call.succeeded and call.method == "movie.status":
            told[call.params["movie"]].append(call.result["movie"])
            if call.result["movie"].get("end"):
                ends[call.params["movie"]] = call.result["movie"]["end"]
        elif call.succeeded:
            ends[call.params["movie"]] = call.result
    for call in story.called("movie.start"):
        if call.succeeded:
            movie = call.result["movie"]
            yield from one_movie(story, library, call, told[movie], ends.get(movie))


def one_movie(story: Story, library: Library, call: Call, told: list[Entry], end: Entry | None) -> Iterator[Violation]:
    movie, path, fragment = call.result["movie"], call.result["path"], call.params["fragmentInterval"] / 1000
    entry = library.entries.get(movie)
    recorded = max((state["recordedDuration"] for state in told), default=0) / 1000
    synced = max((state["syncedDuration"] for state in told), default=0) / 1000
    if end is not None and not end["kept"]:
        return  # what was recorded was too short for a file, which the answer says
    if entry is None:
        if library.is_whole:
            yield Violation("[LIB-1]", f"a movie that was begun has no entry: {path}; its end: {end}")
        return
    if entry["state"] == "damaged" and recorded <= fragment + AHEAD:
        return  # it died before its first fragment
    if entry["state"] not in ("finished", "recovered"):
        yield Violation("[LIB-2] [MOV-10]", f"{path} is {entry['state']}: {entry.get('problem')}")
        return
    file = story.files.get(entry["path"])
    if file is None:
        yield Violation("[MOV-10]", f"a movie that was begun has no file: {path}")
        return
    if not file["plays"]:
        yield Violation("[MOV-10]", f"{path} ({entry['state']}) does not play: {file['problem']}")
    # The newest frame counts as long as the gap before it, which the side-car of a recorder that died may not show.
    gap = max(file["gap"] if file["gap"] > 0.25 else 0, jump(told))
    if file["duration"] < synced - SLACK - gap:
        text = f"{path} ({entry['state']}) has {file['duration']:.3f} s of {synced:.3f} s that were on the disk"
        yield Violation("[MOV-10]", text)
    elif file["duration"] < recorded - fragment - AHEAD - gap:
        text = f"{path} ({entry['state']}) has {file['duration']:.3f} s of {recorded:.3f} s, more than a fragment less"
        yield Violation("[MOV-10]", text)


def jump(told: list[Entry]) -> float:
    """The most seconds by which a movie became longer when frames were counted as missing."""
    return max(
        (
            (later["recordedDuration"] - earlier["recordedDuration"]) / 1000
            for earlier, later in zip(told, told[1:])
            if later["dropped"] > earlier["dropped"]
        ),
        default=0.0,
    )


def takes(story: Story) -> Iterator[Violation]:
    gone = {call.params["take"] for call in story.called("take.finish", "take.discard", "take.delete")}
    for call in story.called("take.finish", "take.pause"):
        if not call.succeeded:
            continue
        if call.method == "take.finish":
            for member in ("path", "cover"):
                for problem in file_problems(story, call.result[member], None):
                    yield Violation("[TAK-8] [FAI-5]", f"{member} of a finished take {problem}: {call.result}")
        elif call.result["kept"] and call.params["take"] not in gone:
            for problem in file_problems(story, call.result["path"], None):
                yield Violation("[TAK-7] [FAI-5]", f"a segment that was answered {problem}: {call.result}")


def entries(story: Story, library: Library) -> Iterator[Violation]:
    """Every entry has its files, and every file its entry."""
    started = {call.result["movie"] for call in story.called("movie.start") if call.succeeded}
    for value in library.lists:
        for entry in value.get("unreadable", []):
            yield Violation("[LIB-3]", f"an entry that cannot be read: {entry}")
    for entry in library.entries.values():
        if entry["state"] == "damaged" and (entry["id"] in started or entry.get("duration", 0) == 0):
            continue  # `movies` looks at these; and of a movie that had no fragment nothing can be repaired
        if entry["state"] not in ("finished", "recovered"):
            yield Violation("[LIB-2]", f"{entry['path']} is {entry['state']}: {entry.get('problem')}")
        for member in ("path", "movie", "cover"):
            if entry.get(member) and entry[member] not in story.files:
                yield Violation("[LIB-2]", f"{member} of {entry['path']} ({entry['state']}) does not exist")
    if library.is_whole:
        known = {entry.get(member) for entry in library.entries.values() for member in MEMBERS}
        for path in story.files:
            if path not in known:
                yield Violation("[LIB-1] [LIB-6]", f"no entry has this file: {path}")
