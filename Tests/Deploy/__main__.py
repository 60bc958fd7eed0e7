"""Tests of what is installed, and how: python3 Tests/Deploy [NAME...]

NAME is a module, class or test (test_units, test_package.Package). What was left out is said at the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

import suite

if __name__ == "__main__":
    sys.exit(suite.run(FOLDER, __doc__))
