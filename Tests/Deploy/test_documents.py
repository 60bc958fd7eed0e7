"""Tests of the check of the documents: it finds each kind of violation, and nothing in documents that are in order."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import lint_documents

LONG = "x" * (lint_documents.COLUMNS + 1)
WHOLE = "x" * lint_documents.COLUMNS


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("README.md", "# A\n")
        self.write("ARCHITECTURE.md", "# B\n")
        lint_documents.lines.cache_clear()
        lint_documents.anchors.cache_clear()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def found(self) -> list[tuple[str, int, str]]:
        return lint_documents.check(self.folder)

    def assert_found(self, name: str, line: int, text: str) -> None:
        found = self.found()
        self.assertEqual([(name, line)], [violation[:2] for violation in found], found)
        self.assertIn(text, found[0][2])

    def test_documents_in_order(self) -> None:
        self.write("README.md", "line\n" * 150)
        self.write("ARCHITECTURE.md", "line\n" * 250)
        self.write("a.swift", f"{WHOLE}\n")
        self.write(".build/checkout/README.md", f"{LONG}\n[nowhere](none.md)\n")
        self.assertEqual([], self.found())

    def test_a_document_is_missing(self) -> None:
        (self.folder / "ARCHITECTURE.md").unlink()
        self.assert_found("ARCHITECTURE.md", 1, "missing")

    def test_a_document_is_too_long(self) -> None:
        for name, most in lint_documents.LENGTHS.items():
            self.setUp()
            self.write(name, "line\n" * (most + 1))
            self.assert_found(name, most + 1, f"{most + 1} lines")

    def test_a_line_is_too_long(self) -> None:
        self.write("guides/a.md", f"{WHOLE}\n{LONG}\n")
        self.assert_found("guides/a.md", 2, "121 columns")

    def test_columns_are_characters(self) -> None:
        self.write("a.md", "ä" * lint_documents.COLUMNS)
        self.assertEqual([], self.found())

    def test_long_lines_that_are_excepted(self) -> None:
        blocks = f"```sh\n{LONG}\n```\n  ````text\n```\n{LONG}\n  ````\n~~~\n{LONG}\n~~~\n"
        self.write("a.md", f"| {LONG} |\n{blocks}{LONG} [a link](README.md)\n")
        self.assertEqual([], self.found())

    def test_a_line_behind_a_code_block_is_too_long(self) -> None:
        self.write("a.md", f"```sh\n```\n{LONG}\n")
        self.assert_found("a.md", 3, "121 columns")

    def test_more_lines_of_code_are_too_long(self) -> None:
        for suffix, most in lint_documents.LONG_LINES.items():
            self.setUp()
            self.write(f"Tests/a{suffix}", f"{LONG}\n" * most)
            self.assertEqual([], self.found())
            self.setUp()
            self.write(f"Tests/a{suffix}", f"{LONG}\n" * (most + 1))
            self.assert_found(f"Tests/a{suffix}", most + 1, f"{most} may")

    def test_a_link_leads_to_a_file_that_does_not_exist(self) -> None:
        links = [
            "[a](none.md)", "[a\nb](../none.md#c)", "![a](none.jpg 'title')", "[a](<no ne.md>)", "[a]: none.md",
            '<img alt="a" src="none.jpg">', "[`code`](none.md)",
        ]
        for link in links:
            with self.subTest(link):
                self.setUp()
                self.write("guides/a.md", f"first\n\n{link}\n")
                self.assert_found("guides/a.md", 3 + link.count("\n"), "does not exist")

    def test_a_link_leads_out_of_the_repository(self) -> None:
        self.write("a.md", "[a](../b.md)\n")
        self.assert_found("a.md", 1, "out of the repository")

    def test_a_link_has_no_target(self) -> None:
        self.write("a.md", "[a]()\n")
        self.assert_found("a.md", 1, "leads nowhere")

    def test_a_link_names_an_anchor_that_does_not_exist(self) -> None:
        for name, link in [("guides/a.md", "[a](#there)"), ("README.md", "[a](guides/a.md#there)")]:
            with self.subTest(link):
                self.setUp()
                self.write("guides/a.md", "# Here\n\n```sh\n# there\n```\n")
                text = (self.folder / name).read_text(encoding="utf-8")
                self.write(name, f"{text}\n{link}\n")
                self.assert_found(name, text.count("\n") + 2, "anchor")

    def test_a_link_names_a_line_that_does_not_exist(self) -> None:
        self.write("Sources/a.swift", "let a = 1\nlet b = 2\n")
        self.write("a.md", "[a](Sources/a.swift#L2) [b](Sources/a.swift#L1-L2)\n[c](Sources/a.swift#L3)\n")
        self.assert_found("a.md", 2, "line")

    def test_links_that_lead_somewhere(self) -> None:
        headings = ["## One: `two` & [three](a.md)", "## Same", "## Same", "### bus.hello {client, version?} ##"]
        self.write("guides/b.md", "\n".join([*headings, '<a id="own"></a>', ""]))
        self.write("guides/my file.md", "# Ü-ber_all · 2.4\n")
        self.write(
            "guides/a.md",
            "[a](b.md#one-two--three) [b](b.md#same-1) [c](b.md#own) [d](b.md#bushello-client-version)\n"
            "[e](my%20file.md#ü-ber_all--24) [f](<my file.md>) [g](..) [h](../README.md#a) [i](/README.md)\n"
            "[j](https://example.org/none.md#x) <mailto:a@example.org> [k](mailto:a@example.org) [l](//example.org/a)\n"
            "`[m](none.md)` ``[n](none.md) ` `` [REM-1] [o][1] a ` [p](b.md)\n\n"
            "[q](b.md) ` <!-- [r](none.md) -->\n\n[1]: b.md\n",
        )
        self.assertEqual([], self.found())


if __name__ == "__main__":
    unittest.main()
