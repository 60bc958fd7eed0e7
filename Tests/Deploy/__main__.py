"""Tests of what is installed, and how: python3 Tests/Deploy [NAME...]

NAME is a module, class or test (test_units, test_package.Package). What was left out is said at the end.
"""

from __future__ import annotations

import sys
import unittest
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))


def main() -> int:
    names = sys.argv[1:]
    if any(name.startswith("-") for name in names):
        sys.exit(__doc__)
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(str(FOLDER))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    for reason, count in sorted(Counter(reason for _, reason in result.skipped).items()):
        print(f"left out: {count} {'test' if count == 1 else 'tests'}: {reason}", file=sys.stderr)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
