"""What the benchmark is asked to measure, and where it writes its tables."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[1] / "Benchmark"
sys.path.append(str(BENCHMARK))

from benchmark import markdown  # noqa: E402
from benchmark.choice import Choice  # noqa: E402

NAMES = ["raw, 1 reader: ring, C", "raw, 1 reader: floor: C ring, copied", "raw, 4 readers: ring, C", "unlocking"]


class Only(unittest.TestCase):
    def chosen(self, *only: str) -> list[str]:
        choice = Choice(only, NAMES)
        return [name for name in NAMES if name in choice]

    def test_a_whole_name_means_that_one(self) -> None:
        self.assertEqual(self.chosen(NAMES[0]), NAMES[:1])

    def test_words_mean_all_that_have_them(self) -> None:
        self.assertEqual(self.chosen("ring, raw", "unlock"), NAMES)
        self.assertEqual(self.chosen("4 ring"), NAMES[2:3])
        self.assertEqual(self.chosen(), NAMES)

    def test_words_that_nothing_has_are_told(self) -> None:
        self.assertEqual(Choice(["ring", "nonsense"], NAMES).misses, ["nonsense"])
        package = BENCHMARK.parents[1] / "Protocol" / "python"
        environment = {**os.environ, "PYTHONPATH": f"{BENCHMARK}:{package}:{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, "-m", "benchmark", "--list", "--only", "nonsense"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("nothing has these words in its name: nonsense", result.stderr)

    def test_the_help_has_one_usage(self) -> None:
        package = BENCHMARK.parents[1] / "Protocol" / "python"
        environment = {**os.environ, "PYTHONPATH": f"{BENCHMARK}:{package}:{os.environ.get('PYTHONPATH', '')}"}
        result = subprocess.run([sys.executable, "-m", "benchmark", "--help"], env=environment, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout.lower().count("usage:")), (0, 1))


class Tables(unittest.TestCase):
    def test_the_guide_has_the_place_for_them(self) -> None:
        text = (BENCHMARK.parents[1] / "deploy" / "guides" / "benchmark.md").read_text()
        self.assertEqual([text.count(f"{line}\n") for line in (markdown.BEGIN, markdown.END)], [1, 1])

    def test_only_what_is_in_their_place_is_replaced(self) -> None:
        machine = {
            "processor": "CPU", "virtual": False, "cores": 2, "system": "Debian", "kernel": "6.1", "versions": {},
        }  # fmt: skip
        figures = {"machine": machine, "settings": {"rounds": 3, "seconds": 1.5}}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "guide.md"
            path.write_text(f"# Above\n{markdown.BEGIN}\nold\n{markdown.END}\nBelow\n")
            markdown.write(path, figures)
            new = "On CPU, 2 cores, Debian, Linux 6.1; 30 frames a second, medians of 3 rounds of 1.5 s.\n"
            self.assertEqual(path.read_text(), f"# Above\n{markdown.BEGIN}\n{new}{markdown.END}\nBelow\n")


if __name__ == "__main__":
    unittest.main()
