"""What is in the guides to be run.

A fenced block with a language is of the guide: `sh` and `python` are run one after the other in one folder, `toml` is read, others are there to be
looked at. A comment right above it says why it is not run (`<!-- not run: why -->`), or which programs or Python modules it needs
(`<!-- needs: ffmpeg numpy -->`).
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "guides"
LANGUAGES = {"sh", "python", "toml", "console", "text", "nginx", "yaml"}

_FENCE = re.compile(r"^```(\w*)$")
_COMMENT = re.compile(r"^<!-- (not run|needs): (.*) -->$")


@dataclass(frozen=True)
class Block:
    path: Path
    line: int
    language: str
    text: str
    needs: tuple[str, ...]
    #: Why it is not run; None: it is.
    excuse: str | None

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}"

    @property
    def missing(self) -> str | None:
        """The first that it needs and this machine hasn't."""
        def is_there(name: str) -> bool:
            if self.language == "python":
                return importlib.util.find_spec(name) is not None
            return shutil.which(name) is not None

        return next((name for name in self.needs if not is_there(name)), None)


def guides() -> list[Path]:
    return sorted(FOLDER.glob("*.md"))


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    needs: tuple[str, ...] = ()
    excuse: str | None = None
    begun: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if begun is not None:
            if line == "```":
                found.append(Block(path, begun[0], begun[1], "\n".join(lines) + "\n", needs, excuse))
                begun, needs, excuse = None, (), None
            else:
                lines.append(line)
        elif fence := _FENCE.match(line):
            begun, lines = (number, fence[1]), []
        elif comment := _COMMENT.match(line):
            if comment[1] == "needs":
                needs = tuple(comment[2].split())
            else:
                excuse = comment[2]
        elif line:
            needs, excuse = (), None
    return found
