"""What is in README.md and in the guides to be run.

A fenced block with a language is of the text: `sh`, `console` (what stands behind its `$`) and `python` are run one after the other in one folder,
`toml` is read, others are there to be looked at. Comments right above it say how it is run:

    <!-- not run: why -->               not at all
    <!-- needs: ffmpeg numpy -->        where there are these programs, or Python modules
    <!-- in an empty folder -->         in one of its own: files of the same names lie in the one of the others
    <!-- before: command -->            after this, which the reader has done or knows
    <!-- until Ctrl-C -->               it doesn't end by itself: it is ended when it has printed something
    <!-- until Ctrl-C: file -->         when it has written something into that

Those for some of its commands name how these begin: `<!-- until Ctrl-C, camerabus top -->`, `<!-- needs, camerabus frames: ffmpeg -->`,
`<!-- until Ctrl-C, camerabus top, camerabus levels -->`. A command with `&` runs until its block ends; what stands below it is tried again until it
succeeds.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "guides"
LANGUAGES = {"sh", "python", "toml", "console", "text", "nginx", "yaml"}

_FENCE = re.compile(r"^```(\w*)$")
_COMMENT = re.compile(r"^<!-- (not run|needs|in an empty folder|before|until Ctrl-C)(?:, (.+?))?(?:: (.*))? -->$")
_PROMPT = "$ "


@dataclass(frozen=True)
class Comment:
    kind: str
    #: How the commands begin that it is about; none: the whole block.
    beginnings: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Piece:
    """What is run, or not, by itself."""

    language: str
    text: str
    comments: tuple[Comment, ...]

    def _told(self, kind: str) -> Iterator[str]:
        return (comment.text or kind for comment in self.comments if comment.kind == kind)

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(name for text in self._told("needs") for name in text.split())

    @property
    def excuse(self) -> str | None:
        """Why it is not run; None: it is."""
        return next(self._told("not run"), None)

    @property
    def before(self) -> tuple[str, ...]:
        return tuple(self._told("before"))

    @property
    def goes_on(self) -> bool:
        """It doesn't end by itself."""
        return any(self._told("until Ctrl-C"))

    @property
    def writes(self) -> str | None:
        """The file by which it is seen that it does what it is to do; None: by what it prints."""
        return next((comment.text for comment in self.comments if comment.kind == "until Ctrl-C" and comment.text), None)

    @property
    def is_apart(self) -> bool:
        return any(self._told("in an empty folder"))

    @property
    def missing(self) -> str | None:
        """The first that it needs and this machine hasn't."""
        def is_there(name: str) -> bool:
            if self.language == "python":
                return importlib.util.find_spec(name) is not None
            return shutil.which(name) is not None

        return next((name for name in self.needs if not is_there(name)), None)


@dataclass(frozen=True)
class Block:
    path: Path
    line: int
    language: str
    text: str
    #: All of them; the whole block's are its own, too.
    comments: tuple[Comment, ...]

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def whole(self) -> Piece:
        return Piece(self.language, self.text, tuple(comment for comment in self.comments if not comment.beginnings))

    def commands(self) -> list[Piece]:
        """A shell's, each with what is said of it alone."""
        lines = self.text.splitlines()
        if self.language == "console":
            lines = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
        found, begun = [], ""
        for line in lines:
            begun += line
            if line.endswith("\\") or problem(begun):
                begun += "\n"
            elif begun:
                comments = tuple(comment for comment in self.comments if begun.startswith(comment.beginnings))
                found.append(Piece(self.language, begun, comments))
                begun = ""
        if begun:
            raise ValueError(f"{self}: {problem(begun) or 'a line goes on that is the last one'}")
        return found

    @property
    def strays(self) -> list[str]:
        """Beginnings with which no command begins."""
        texts = [piece.text for piece in self.commands()] if self.language in ("sh", "console") else []
        named = (beginning for comment in self.comments for beginning in comment.beginnings)
        return [beginning for beginning in named if not any(text.startswith(beginning) for text in texts)]


def guides() -> list[Path]:
    return sorted(FOLDER.glob("*.md"))


def texts() -> list[Path]:
    return [ROOT / "README.md", *guides()]


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    comments: list[Comment] = []
    begun: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if begun is not None:
            if line == "```":
                found.append(Block(path, begun[0], begun[1], "\n".join(lines) + "\n", tuple(comments)))
                begun, comments = None, []
            else:
                lines.append(line)
        elif fence := _FENCE.match(line):
            begun, lines = (number, fence[1]), []
        elif comment := _COMMENT.match(line):
            beginnings = tuple(each.strip() for each in comment[2].split(", ")) if comment[2] else ()
            comments.append(Comment(comment[1], beginnings, comment[3] or ""))
        elif line:
            comments = []
    return found


def problem(command: str) -> str:
    """What a shell has against it, be it that its end is missing."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(["bash", "-n"], input=f"{command}\n", env=environment, capture_output=True, text=True).stderr
