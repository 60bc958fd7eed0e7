"""What running the tests of a folder has in common."""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from pathlib import Path


def run(folder: Path, usage: str | None) -> int:
    """Runs the tests that the arguments name, all of the folder without any."""
    names = sys.argv[1:]
    if any(name.startswith("-") for name in names):
        sys.exit(usage)
    return run_named(folder, names)


def run_named(folder: Path, names: list[str]) -> int:
    """Runs these tests, all of the folder without any, and says at the end what was left out; the exit status."""
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(str(folder))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    for reason, count in sorted(Counter(reason for _, reason in result.skipped).items()):
        print(f"left out: {count} {'test' if count == 1 else 'tests'}: {reason}", file=sys.stderr)
    return 0 if result.wasSuccessful() else 1
