"""The list of conformance has each rule once, and names tests that exist. Links between the documents work."""

import re
import unittest
from pathlib import Path

TESTS = Path(__file__).parent.parent
PROTOCOL = TESTS.parent / "Protocol"
LIST = PROTOCOL / "CONFORMANCE.md"
PARTS = sorted((PROTOCOL / "spec").glob("*.md"))


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


def anchors(path: Path) -> set[str]:
    """What links to the headings of a document are called, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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

    def test_every_rule_is_in_the_list_once(self) -> None:
        documents = [PROTOCOL / "SPEC.md", *PARTS, PROTOCOL / "RING.md"]
        rules = [
            rule
            for path in documents
            for rule in re.findall(r"^(?:-|\d+\.) \[([A-Z]+-\d+)\] ", path.read_text(), re.MULTILINE)
        ]
        listed = re.findall(r"^\| \[([A-Z]+-\d+)\] \|", LIST.read_text(), re.MULTILINE)
        self.assertGreater(len(rules), 200)
        self.assertEqual(sorted(rules), sorted(listed))
        self.assertEqual(len(set(rules)), len(rules))

    def test_every_part_is_linked_from_the_core(self) -> None:
        core = (PROTOCOL / "SPEC.md").read_text()
        for part in PARTS:
            self.assertIn(f"](spec/{part.name}", core)

    def test_links_between_the_documents_lead_somewhere(self) -> None:
        for path in [*PROTOCOL.glob("*.md"), *PARTS]:
            for target, _, anchor in re.findall(r"\]\(([^)#\s:]*)(#([^)\s]*))?\)", path.read_text()):
                file = (path.parent / target) if target else path
                self.assertTrue(file.exists(), f"{path.name}: there is no {target}")
                if anchor:
                    self.assertIn(anchor, anchors(file), f"{path.name}: {target} has no heading #{anchor}")


if __name__ == "__main__":
    unittest.main()
