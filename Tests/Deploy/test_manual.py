"""Manual pages are made of what programs say of their command line, and are well-formed."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from stand_in import DUMP, ROOT, has, make_programs


@unittest.skipIf(has("cc"), "no C compiler")
class Manual(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        make_programs(self.folder / "bin", DUMP)

    def make(self, *arguments: str) -> dict[str, str]:
        pages = self.folder / "pages"
        subprocess.run([ROOT / "deploy" / "manual", *arguments, pages], check=True)
        return {path.name: path.read_text() for path in pages.iterdir()}

    def shown(self, page: str) -> str:
        """A page as it is read; whatever groff has to say of it is a mistake."""
        if missing := has("groff"):
            self.skipTest(f"no {missing}")
        result = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-rLL=200n", "-P-cbou"], input=page, capture_output=True, text=True,
            check=True,
        )
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_a_page_for_the_program_and_for_each_command_that_is_shown(self) -> None:
        pages = self.make("--also", "camerabusd(8)", str(self.folder / "bin" / "camerabus"))
        self.assertEqual(sorted(pages), ["camerabus-thing.1", "camerabus.1"])
        self.assertNotIn("secret", pages["camerabus.1"])
        text = self.shown(pages["camerabus.1"])
        for words in [
            "camerabus - Does things", "First - 'quoted' \\ paragraph…", ".Second, not a request.", "128+N",
            "ended by signal N", "camerabus thing -n 1 | jq '.x'", ".hidden", "camerabus-thing(1)", "camerabusd(8)",
            "CameraBus 1.2.3",
        ]:  # fmt: skip
            self.assertIn(words, text)
        self.assertNotIn("Not shown", text)
        # Examples are last but for what else to read.
        self.assertLess(text.index("EXIT STATUS"), text.index("EXAMPLES"))

    def test_commands_within_a_command_are_on_its_page_with_the_usage_of_their_help(self) -> None:
        page = self.make(str(self.folder / "bin" / "camerabus"))["camerabus-thing.1"]
        text = self.shown(page)
        for words in [
            "camerabus thing list [--thing <value>]", "THING LIST", "This is what is done where no command is named",
            "DEVICE ...", "-n, --number COUNT", "So many (default: some). One of some, more.",
        ]:  # fmt: skip
            self.assertIn(words, text)

    def test_the_configuration_is_a_page_as_it_is(self) -> None:
        pages = self.make("--file", str(ROOT / "deploy" / "camerabus.toml"), "camerabus.toml.5")
        text = self.shown(pages["camerabus.toml.5"])
        for line in (ROOT / "deploy" / "camerabus.toml").read_text().splitlines():
            self.assertIn(line.strip(), text)

    def test_a_program_that_says_nothing_is_an_error(self) -> None:
        result = subprocess.run([ROOT / "deploy" / "manual", "/bin/false", self.folder], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("manual: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
