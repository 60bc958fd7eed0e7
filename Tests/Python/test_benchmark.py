"""What the benchmark is asked to measure."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[1] / "Benchmark"
sys.path.append(str(BENCHMARK))

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


if __name__ == "__main__":
    unittest.main()
