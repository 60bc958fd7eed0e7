"""The blocks of README.md, of the Python guide and of deploy/guides that the tests run.

A fenced block names its language. The commands of `sh` and `console` blocks (there: the lines behind `$`) and `python`
programs run in order, in one folder for each text. `toml` is parsed. Other languages are only for reading.

deploy/guides/examples.toml says how a block runs. A block without an entry simply runs.

    [["recipes.md"]]                    # a guide's file name; other texts by their path from the root ("README.md")
    block = "camerabus top"             # the first line of the block, or any line that only this block has
    not_run = "needs a screen"          # does not run, and why
    needs = ["ffmpeg", "numpy"]         # runs only where these programs (shell) or modules (Python) are installed
    empty_folder = true                 # runs in a new folder, because the text's folder has files of the same names
    before = ["command"]                # commands, or lines of Python, that run first
    until_interrupted = true            # does not end by itself: Ctrl-C ends it when it has printed something …
    until_interrupted = "a.mp4"         # … or when it has written something into this file
    [["recipes.md".command]]            # the same keys (but `empty_folder`) for single commands of the block above
    begins = ["camerabus top"]          # how these commands begin

A command with `&` runs until its block ends. The commands below it are repeated until they succeed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "guides"
EXAMPLES = FOLDER / "examples.toml"
PYTHON = ROOT / "Protocol" / "python" / "README.md"
LANGUAGES = {"sh", "python", "toml", "console", "text", "nginx", "yaml"}

_FENCE = re.compile(r"^```(\w*)$")
_PROMPT = "$ "


@dataclass(frozen=True)
class Directive:
    """How a block, or some of its commands, run."""

    #: How the commands begin; none: the whole block.
    begins: tuple[str, ...] = ()
    not_run: str | None = None
    needs: tuple[str, ...] = ()
    empty_folder: bool = False
    before: tuple[str, ...] = ()
    until_interrupted: bool | str = False


@dataclass(frozen=True)
class Entry:
    """One of examples.toml."""

    #: The first line of its block, or a line that only this block has.
    block: str
    #: The block's first, then those of its commands.
    directives: tuple[Directive, ...]


@dataclass(frozen=True)
class Piece:
    """Runs as one: a command, or a program."""

    language: str
    text: str
    directives: tuple[Directive, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(name for directive in self.directives for name in directive.needs)

    @property
    def excuse(self) -> str | None:
        """Why it does not run; None: it runs."""
        return next((directive.not_run for directive in self.directives if directive.not_run), None)

    @property
    def before(self) -> tuple[str, ...]:
        return tuple(command for directive in self.directives for command in directive.before)

    @property
    def runs_until_interrupted(self) -> bool:
        return any(directive.until_interrupted for directive in self.directives)

    @property
    def writes(self) -> str | None:
        """The file that shows that it works; None: its output does."""
        values = (each.until_interrupted for each in self.directives)
        return next((value for value in values if isinstance(value, str)), None)

    @property
    def has_own_folder(self) -> bool:
        return any(directive.empty_folder for directive in self.directives)

    @property
    def missing(self) -> str | None:
        """The first of its needs that this machine does not have."""
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
    directives: tuple[Directive, ...] = ()

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @property
    def whole(self) -> Piece:
        return Piece(self.language, self.text, tuple(each for each in self.directives if not each.begins))

    def commands(self) -> list[Piece]:
        """A shell's, each with its own directives. Of the whole block's they inherit only that Ctrl-C ends them."""
        lines = self.text.splitlines()
        if self.language == "console":
            lines = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
        ends = [each.until_interrupted for each in self.whole.directives if each.until_interrupted]
        inherited = tuple(Directive(until_interrupted=end) for end in ends)
        found, begun = [], ""
        for line in lines:
            begun += line
            if line.endswith("\\") or problem(begun):
                begun += "\n"
            elif begun:
                own = tuple(each for each in self.directives if begun.startswith(each.begins))
                found.append(Piece(self.language, begun, own + inherited))
                begun = ""
        if begun:
            raise ValueError(f"{self}: {problem(begun) or 'the last line ends in a backslash'}")
        return found

    @property
    def strays(self) -> list[str]:
        """Beginnings for which there is no command."""
        texts = [piece.text for piece in self.commands()] if self.language in ("sh", "console") else []
        named = (beginning for directive in self.directives for beginning in directive.begins)
        return [beginning for beginning in named if not any(text.startswith(beginning) for text in texts)]


def guides() -> list[Path]:
    return sorted(FOLDER.glob("*.md"))


def texts() -> list[Path]:
    return [ROOT / "README.md", PYTHON, *guides()]


def text_of(key: str) -> Path:
    """The text that examples.toml means by this key."""
    return ROOT / key if "/" in key or key == "README.md" else FOLDER / key


def read_entries(text: str) -> dict[Path, tuple[Entry, ...]]:
    """The entries of examples.toml, for each text. Whatever it does not know is a ValueError."""
    return {text_of(key): tuple(_entry(key, value) for value in values) for key, values in tomllib.loads(text).items()}


def _entry(key: str, value: dict[str, Any]) -> Entry:
    rest = dict(value)
    block, commands = rest.pop("block", None), rest.pop("command", [])
    place = f"{EXAMPLES.name}, {key}, {block!r}"
    if not isinstance(block, str) or not block or not isinstance(commands, list):
        raise ValueError(f"{place}: names no block")
    if "begins" in rest or not all(each.get("begins") and "empty_folder" not in each for each in commands):
        raise ValueError(f"{place}: `begins` is for commands, and `empty_folder` for the whole block")
    return Entry(block, (_directive(place, rest), *(_directive(place, each) for each in commands)))


def _directive(place: str, value: dict[str, Any]) -> Directive:
    found: dict[str, Any] = {}
    for name, each in value.items():
        if name in ("begins", "needs", "before"):
            good = isinstance(each, list) and all(isinstance(item, str) and item for item in each) and each
            each = tuple(each) if good else each
        elif name == "not_run":
            good = isinstance(each, str) and each
        elif name == "until_interrupted":
            good = each is True or isinstance(each, str) and each
        else:
            good = name == "empty_folder" and each is True
        if not good:
            raise ValueError(f"{place}: {name} = {each!r} is not understood")
        found[name] = each
    return Directive(**found)


@functools.cache
def entries() -> dict[Path, tuple[Entry, ...]]:
    return read_entries(EXAMPLES.read_text())


def blocks(path: Path) -> list[Block]:
    return with_entries(read_blocks(path, path.read_text()), entries().get(path, ()))


def with_entries(found: list[Block], entries: Iterable[Entry]) -> list[Block]:
    """The blocks with their directives. A ValueError: an entry for no or several blocks, two entries for one block."""
    found = list(found)
    for entry in entries:
        lines = [block.text.splitlines() for block in found]
        matches = [index for index, each in enumerate(lines) if each[:1] == [entry.block]]
        if not matches:
            matches = [index for index, each in enumerate(lines) if entry.block in each]
        if len(matches) != 1:
            raise ValueError(f"{EXAMPLES.name}: {len(matches)} blocks have the line {entry.block!r}")
        block = found[matches[0]]
        if block.directives:
            raise ValueError(f"{EXAMPLES.name}: {block} has two entries")
        found[matches[0]] = Block(block.path, block.line, block.language, block.text, entry.directives)
    return found


def read_blocks(path: Path, text: str) -> list[Block]:
    found: list[Block] = []
    begun: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if begun is not None:
            if line == "```":
                found.append(Block(path, begun[0], begun[1], "\n".join(lines) + "\n"))
                begun = None
            else:
                lines.append(line)
        elif fence := _FENCE.match(line):
            begun, lines = (number, fence[1]), []
    return found


def problem(command: str) -> str:
    """Why a shell rejects it, also because its end is missing."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(["bash", "-n"], input=f"{command}\n", env=environment, capture_output=True, text=True).stderr
