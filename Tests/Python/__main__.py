"""All tests of the Python client: python3 Tests/Python [NAME...]

NAME is a module, class or test (test_live_locks, test_live_locks.Locks). Those against a real bus need one, in
$CAMERABUS_RUNTIME_DIR; with_bus.py starts one for them. What was left out is said at the end.
"""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "Protocol" / "python"), str(FOLDER.parent)]

import suite


def main() -> int:
    warnings.simplefilter("error", ResourceWarning)
    # A shell has what it starts in the background ignore Ctrl-C, and so would the programs that get one here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return suite.run(FOLDER, __doc__)


if __name__ == "__main__":
    sys.exit(main())
