"""Checks the documents of the repository: python3 Tests/lint_documents.py [FOLDER]

- README.md has at most 150 lines. ARCHITECTURE.md exists and has at most 250 lines.
- A line of Markdown has at most 120 columns. Tables, code blocks and lines with links are excepted.
- A link inside the repository leads to a file or folder that exists, and its #anchor to a heading or a line of it.
- No more lines of Swift and Python than LONG_LINES says are over 120 columns. Wrap some, and lower the number.

Prints a line for each violation: FILE:LINE: error: TEXT. Exit status: 0 without violations, else 1.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.parse
from functools import lru_cache
from pathlib import Path
from typing import Iterator

COLUMNS = 120
#: Documents that must exist, and how many lines each may have.
LENGTHS = {"README.md": 150, "ARCHITECTURE.md": 250}
#: How many lines of a language may be too long: those that the tree still has.
LONG_LINES = {".swift": 33, ".py": 68}

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
# Within a paragraph.
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_INLINE_LINK = re.compile(r"\]\(\s*(?:<([^>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+[\"'(][^\n]*?[\"')])?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*<?([^\s>]+)", re.M)
_HTML_LINK = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']*)[\"']", re.I | re.S)
_HTML_ANCHOR = re.compile(r"<[a-z][^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']", re.I)
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$")
_LINE_ANCHOR = re.compile(r"^L(\d+)(?:C\d+)?(?:-L(\d+)(?:C\d+)?)?$")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)

#: A violation: file, line (from 1 on), text.
Violation = tuple[str, int, str]


def files(root: Path, *suffixes: str) -> list[Path]:
    """The files with these endings, without those in hidden folders such as .build."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if name.endswith(suffixes)]
    return found


@lru_cache(maxsize=None)
def lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8", errors="replace").split("\n"))


def length(path: Path) -> int:
    """How many lines the file has; the last one need not end."""
    return len(lines(path)) - (lines(path)[-1] == "")


def outside_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown file that are not in a code block, with their numbers."""
    fence = ""
    for number, line in enumerate(lines(path), 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence = match[1]
        elif not fence:
            yield number, line
        elif match and match[1].startswith(fence) and not match[2].strip():
            fence = ""


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"</?[a-z][^>]*>", "", text, flags=re.I)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@lru_cache(maxsize=None)
def anchors(path: Path) -> frozenset[str]:
    """All anchors of a Markdown file; of equal headings the second one has -1 at its end, and so on."""
    found: set[str] = set()
    for _, line in outside_of_code(path):
        found.update(_HTML_ANCHOR.findall(_CODE.sub("", line)))
        if match := _HEADING.match(line):
            first = anchor = slug(match[1])
            number = 0
            while anchor in found:
                number += 1
                anchor = f"{first}-{number}"
            found.add(anchor)
    return frozenset(found)


def check_lengths(root: Path) -> Iterator[Violation]:
    for name, most in LENGTHS.items():
        path = root / name
        if not path.is_file():
            yield name, 1, "this document is missing"
        elif length(path) > most:
            yield name, most + 1, f"the document has {length(path)} lines; it may have {most}"


def check_columns(root: Path) -> Iterator[Violation]:
    for path in files(root, ".md"):
        for number, line in outside_of_code(path):
            if len(line) > COLUMNS and not line.startswith("|") and "](" not in line:
                yield str(path.relative_to(root)), number, f"the line has {len(line)} columns; it may have {COLUMNS}"


def check_code_columns(root: Path) -> Iterator[Violation]:
    for suffix, most in LONG_LINES.items():
        found = [
            (path, number)
            for path in files(root, suffix)
            for number, line in enumerate(lines(path), 1)
            if len(line) > COLUMNS
        ]
        if len(found) > most:
            path, number = found[-1]
            text = f"{len(found)} lines of *{suffix} files have over {COLUMNS} columns; {most} may; this is one of them"
            yield str(path.relative_to(root)), number, text


def targets(path: Path) -> Iterator[tuple[int, str]]:
    """Where the links of a Markdown file lead, with the number of the line."""
    kept = dict(outside_of_code(path))
    text = "\n".join(kept.get(number, "") for number in range(1, len(lines(path)) + 1))
    for pattern in (_COMMENT, _CODE):
        text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    for pattern in (_INLINE_LINK, _REFERENCE, _HTML_LINK):
        for match in pattern.finditer(text):
            target = next((group for group in match.groups() if group is not None), "")
            yield text.count("\n", 0, match.end()) + 1, target


def why_broken(root: Path, path: Path, target: str) -> str | None:
    """Why a link leads nowhere; None: it leads somewhere, or out of the repository."""
    if _SCHEME.match(target) or target.startswith("//"):
        return None
    name, _, anchor = (urllib.parse.unquote(part) for part in target.partition("#"))
    if name:
        start = root if name.startswith("/") else path.parent
        found = Path(os.path.normpath(start / name.lstrip("/")))
        if found != root and root not in found.parents:
            return "leads out of the repository"
        if not found.exists():
            return "leads to a file that does not exist"
    else:
        found = path
    if not anchor:
        return None if target else "leads nowhere"
    if found.suffix == ".md":
        return None if anchor in anchors(found) else "names an anchor that its file does not have"
    match = _LINE_ANCHOR.match(anchor)
    if found.is_file() and match and max(int(match[1]), int(match[2] or 0)) <= length(found):
        return None
    return "names a line that its file does not have"


def check_links(root: Path) -> Iterator[Violation]:
    for path in files(root, ".md"):
        for number, target in targets(path):
            if why := why_broken(root, path, target):
                yield str(path.relative_to(root)), number, f"the link ({target}) {why}"


def check(root: Path) -> list[Violation]:
    """All violations."""
    root = root.resolve()
    checks = (check_lengths, check_columns, check_links, check_code_columns)
    return [violation for one in checks for violation in one(root)]


def main() -> int:
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        print(__doc__)
        return 2
    found = check(Path(sys.argv[1]) if len(sys.argv) == 2 else Path(__file__).resolve().parents[1])
    for name, number, text in found:
        print(f"{name}:{number}: error: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
