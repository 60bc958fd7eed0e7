"""The list of conformance names tests that are there."""

import re
import unittest
from pathlib import Path

TESTS = Path(__file__).parent.parent
LIST = TESTS.parent / "Protocol" / "CONFORMANCE.md"


def plain(name: str) -> str:
    """Letters and digits alone: the list writes words where code writes camelCase or underscores."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def names_in(path: Path) -> list[str]:
    """What a file's, or a folder's, tests and suites are called, the files' own names among them."""
    files = [path] if path.is_file() else [*path.rglob("*.swift"), *path.rglob("*.py")]
    found = [file.stem for file in files]
    for file in files:
        code = file.read_text()
        found += re.findall(r"\b(?:func|def|struct|class|extension) +([A-Za-z_0-9]+)", code)
        found += re.findall(r"\b(?:func|struct|class) +`([^`]+)`", code)
        found += re.findall(r'@(?:Test|Suite)\(\s*"([^"]+)"', code)
    return [plain(name) for name in found]


def is_in(name: str, names: list[str]) -> bool:
    return any(plain(name) in other for other in names)


class Conformance(unittest.TestCase):
    def test_every_test_that_is_named_is_there(self) -> None:
        known: dict[str, list[str]] = {}
        count = 0
        for rule, checked in re.findall(r"^\| (\[.*?\]) \|[^|]*\|(.*)\|$", LIST.read_text(), re.MULTILINE):
            for path in re.findall(r"`(Tests/[^`]*)`", checked):
                self.assertTrue((LIST.parent.parent / path).exists(), f"{rule}: there is no {path}")
            for path, names in re.findall(r"`(Tests/[^`]*)` \(([^)]*)\)", checked):
                known.setdefault(path, names_in(LIST.parent.parent / path))
                for name in names.split("; "):
                    count += 1
                    # "A suite: a test", or several tests of one rule, where it is not a name with a comma.
                    parts = [name] if is_in(name, known[path]) else re.split("[,:] ", name)
                    for part in parts:
                        self.assertTrue(is_in(part, known[path]), f"{rule}: {path} has no test '{part}'")
        self.assertGreater(count, 200)


if __name__ == "__main__":
    unittest.main()
