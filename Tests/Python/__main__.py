"""All tests of the Python client: python3 Tests/Python [NAME...]

NAME is a module, class or test (test_live_locks, test_live_locks.Locks). Those against a real bus need one, in $CAMERABUS_RUNTIME_DIR;
with_bus.py starts one for them. What was left out is said at the end.
"""

from __future__ import annotations

import signal
import sys
import unittest
import warnings
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "Protocol" / "python")]


def main() -> int:
    names = sys.argv[1:]
    if any(name.startswith("-") for name in names):
        sys.exit(__doc__)
    warnings.simplefilter("error", ResourceWarning)
    # A shell has what it starts in the background ignore Ctrl-C, and so would the programs that get one here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names) if names else loader.discover(str(FOLDER))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    for reason, count in sorted(Counter(reason for _, reason in result.skipped).items()):
        print(f"left out: {count} {'test' if count == 1 else 'tests'}: {reason}", file=sys.stderr)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
