"""The web page, in a browser: python3 Tests/Web BINARIES [NAME...]

BINARIES is where camerabusd and camerabus-gateway are (.build/debug). NAME is a module, class or test
(test_page.Gestures). With --screenshots FOLDER in the place of names it makes the pictures of the page that stand in
the documents. What was left out is said at the end.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

import suite


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    binaries, names = Path(arguments[0]).resolve(), arguments[1:]
    import chromium

    if chromium.find() is None:
        print("left out: no chromium", file=sys.stderr)
        return 0
    if not (binaries / "camerabus-gateway").exists():
        print("left out: no camerabus-gateway", file=sys.stderr)
        return 0
    import rig

    signal.signal(signal.SIGINT, signal.default_int_handler)
    rig.RIG = rig.Rig(binaries)
    try:
        if names[:1] == ["--screenshots"]:
            import screenshots

            screenshots.make(rig.RIG, Path(names[1]))
            return 0
        status = suite.run_named(FOLDER, names)
    finally:
        wrong = rig.RIG.close()
    for each in wrong:
        print(f"ERROR: {each}", file=sys.stderr)
    return 1 if wrong else status


if __name__ == "__main__":
    sys.exit(main())
