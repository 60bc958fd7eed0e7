"""The guides are well-formed, and what they name is there."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
import unittest

import camerabus
import guides

ROOT = guides.FOLDER.parents[1]


class Guides(unittest.TestCase):
    def test_every_block_is_what_it_says(self) -> None:
        count = 0
        for path in guides.guides():
            for block in guides.blocks(path):
                count += 1
                with self.subTest(str(block)):
                    self.assertIn(block.language, guides.LANGUAGES)
                    if block.language == "sh":
                        result = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
                        self.assertEqual(result.stderr, "")
                    elif block.language == "python":
                        ast.parse(block.text)
                    elif block.language == "toml":
                        tomllib.loads(block.text)
        self.assertGreater(count, 30)

    def test_a_guides_comments_are_those_of_the_block_below(self) -> None:
        path = guides.FOLDER / "recipes.md"
        found = guides.blocks(path)
        self.assertTrue(any(block.needs == ("ffmpeg",) and block.excuse is None for block in found))
        self.assertTrue(any(block.needs == ("ffplay",) and block.excuse == "needs a screen" for block in found))
        self.assertTrue(any(not block.needs and block.excuse is None for block in found))

    def test_links_lead_somewhere(self) -> None:
        names = {path.name for path in guides.guides()}
        for path in guides.guides():
            for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
                self.assertTrue((path.parent / link).exists(), f"{path.name}: {link}")
        listed = set(re.findall(r"\]\(([^)]+\.md)\)", (guides.FOLDER / "README.md").read_text()))
        self.assertEqual(listed, names - {"README.md"})

    def test_findings_that_are_explained_are_the_doctors(self) -> None:
        code = "".join(path.read_text() for path in (ROOT / "Sources" / "Doctor" / "Checks").glob("*.swift"))
        told = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code))
        told |= {f"node{end}" for end in re.findall(r'"\\\(prefix\)(-[a-z-]+)"', code)}
        text = (guides.FOLDER / "troubleshooting.md").read_text() + (guides.FOLDER / "rig.md").read_text()
        for row in re.findall(r"^\|[^|]*\|([^|]*)\|[^|]*\|$", text, re.MULTILINE):
            for name in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", row):
                self.assertIn(name, told)

    def test_methods_that_are_named_are_the_clients(self) -> None:
        for path in guides.guides():
            text = path.read_text()
            for name in re.findall(r"\bclient\.([a-z_]+)", text):
                if name not in ("capturePhoto",):
                    self.assertTrue(hasattr(camerabus.Client, name) or name == "capture", f"{path.name}: client.{name}")
            for name in re.findall(r"\bsession\.([a-z_]+)\(", text):
                self.assertTrue(hasattr(camerabus.Session, name), f"{path.name}: session.{name}")


if __name__ == "__main__":
    unittest.main()
