"""README.md and the guides are well-formed, and the files, links and names in them exist."""

from __future__ import annotations

import ast
import re
import tomllib
import unittest

import camerabus
import guides

ROOT = guides.ROOT


class Guides(unittest.TestCase):
    def test_every_block_is_what_it_says(self) -> None:
        count = 0
        for path in guides.texts():
            for block in guides.blocks(path):
                count += 1
                with self.subTest(str(block)):
                    self.assertIn(block.language, guides.LANGUAGES)
                    self.assertEqual(block.strays, [])
                    if block.language in ("sh", "console"):
                        self.assertTrue(block.commands())
                    elif block.language == "python":
                        ast.parse(block.text)
                    elif block.language == "toml":
                        tomllib.loads(block.text)
        self.assertGreater(count, 60)

    def test_every_fence_is_a_blocks(self) -> None:
        for path in guides.texts():
            fences = [line for line in path.read_text().splitlines() if line.startswith("```")]
            self.assertEqual(len(fences), 2 * len(guides.blocks(path)), path.name)

    def test_texts_have_no_hidden_comments(self) -> None:
        for path in guides.texts():
            self.assertEqual(re.findall(r"<!-- (?!make bench).*", path.read_text()), [], path.name)

    def test_entries_are_of_texts_that_are_there(self) -> None:
        self.assertLessEqual(set(guides.entries()), set(guides.texts()))

    def test_entries_are_those_of_their_blocks(self) -> None:
        found = [block.whole for block in guides.blocks(guides.FOLDER / "recipes.md")]
        self.assertTrue(any(block.needs == ("ffmpeg",) and block.excuse is None for block in found))
        self.assertTrue(any(block.needs == ("ffplay",) and block.excuse == "needs a screen" for block in found))
        self.assertTrue(any(not block.needs and block.excuse is None for block in found))

    def test_keys_and_values_are_checked(self) -> None:
        begin = '[["web.md"]]\nblock = "a"\n'
        entry = guides.Entry("a", (guides.Directive(),))
        self.assertEqual(guides.read_entries(begin), {guides.FOLDER / "web.md": (entry,)})
        for line in (
            'needed = ["jq"]', 'needs = "jq"', "needs = []", "needs = [1]", "not_run = true", 'not_run = ""',
            "empty_folder = false", "until_interrupted = false", "until_interrupted = 3", 'begins = ["a"]',
            "command = 1",
            '[["web.md".command]]\nneeds = ["jq"]', '[["web.md".command]]\nbegins = ["a"]\nempty_folder = true',
        ):  # fmt: skip
            with self.subTest(line), self.assertRaises(ValueError):
                guides.read_entries(begin + line)
        with self.assertRaises(ValueError):
            guides.read_entries('[["web.md"]]\nnot_run = "why"')

    def test_an_entry_is_for_one_block(self) -> None:
        path = guides.FOLDER / "web.md"
        found = guides.read_blocks(path, "```sh\na\nb\nc\n```\n```sh\nb\nd\n```\n```sh\nb\nc\n```\n")
        directives = (guides.Directive(not_run="why"),)
        for line, index in (("a", 0), ("d", 1)):
            marked = guides.with_entries(found, [guides.Entry(line, directives)])
            self.assertEqual([block.directives for block in marked].index(directives), index)
        for lines in (["b"], ["c"], ["e"], ["a", "a"]):
            with self.subTest(lines), self.assertRaises(ValueError):
                guides.with_entries(found, [guides.Entry(line, directives) for line in lines])

    def test_a_commands_directives_are_its_own(self) -> None:
        directives = (
            guides.Directive(before=("true",)),
            guides.Directive(("top", "levels"), until_interrupted=True),
            guides.Directive(("sound",), until_interrupted="a.wav"),
            guides.Directive(("record --to",), not_run="needs a server"),
        )
        text = "$ top\nID\n$ sound |\n$     cat\n$ record --to\n$ record\n"
        block = guides.Block(ROOT / "README.md", 1, "console", text, directives)
        self.assertEqual((block.whole.before, block.whole.runs_until_interrupted), (("true",), False))
        told = [
            (each.text, each.runs_until_interrupted, each.writes, each.excuse, each.before) for each in block.commands()
        ]  # fmt: skip
        self.assertEqual(told, [
            ("top", True, None, None, ()), ("sound |\n    cat", True, "a.wav", None, ()),
            ("record --to", False, None, "needs a server", ()), ("record", False, None, None, ()),
        ])  # fmt: skip
        self.assertEqual(block.strays, ["levels"])

    def test_commands_inherit_that_they_are_interrupted(self) -> None:
        block = guides.Block(ROOT / "README.md", 1, "sh", "top\n", (guides.Directive(until_interrupted="a.wav"),))
        self.assertEqual([(each.runs_until_interrupted, each.writes) for each in block.commands()], [(True, "a.wav")])

    def test_links_lead_somewhere(self) -> None:
        names = {path.name for path in guides.guides()}
        for path in guides.texts():
            for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text()):
                self.assertTrue((path.parent / link).exists(), f"{path.name}: {link}")
        listed = set(re.findall(r"\]\(([^)/]+\.md)\)", (guides.FOLDER / "README.md").read_text()))
        self.assertEqual(listed, names - {"README.md"})

    def test_files_that_are_named_are_there(self) -> None:
        for path in guides.texts():
            for name in re.findall(r"`((?:Protocol|Sources|Tests|deploy)/[\w./-]*)`", path.read_text()):
                self.assertTrue((ROOT / name).exists(), f"{path.name}: {name}")

    def test_findings_that_are_explained_are_the_doctors(self) -> None:
        code = "".join(path.read_text() for path in (ROOT / "Sources" / "Doctor" / "Checks").rglob("*.swift"))
        told = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code))
        told |= {f"node{end}" for end in re.findall(r'"\\\(prefix\)(-[a-z-]+)"', code)}
        text = (guides.FOLDER / "troubleshooting.md").read_text() + (guides.FOLDER / "rig.md").read_text()
        for row in re.findall(r"^\|[^|]*\|([^|]*)\|[^|]*\|$", text, re.MULTILINE):
            for name in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", row):
                self.assertIn(name, told)

    def test_methods_that_are_named_are_the_clients(self) -> None:
        for path in guides.texts():
            text = path.read_text()
            for name in re.findall(r"\bclient\.([a-z_]+)", text):
                if name not in ("capturePhoto",):
                    self.assertTrue(hasattr(camerabus.Client, name) or name == "capture", f"{path.name}: client.{name}")
            for name in re.findall(r"\bsession\.([a-z_]+)\(", text):
                self.assertTrue(hasattr(camerabus.Session, name), f"{path.name}: session.{name}")

    def test_names_of_the_table_are_the_modules(self) -> None:
        _, _, table = guides.PYTHON.read_text().partition("\n## Reference\n")
        table, _, _ = table.partition("\n## ")
        rows = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)
        names = {name for row in rows for name in re.findall(r"`(\w+)[^`]*`", row)}
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertTrue(hasattr(camerabus.Client, name) or name in camerabus.__all__, name)


if __name__ == "__main__":
    unittest.main()
