"""A client that does nothing unusual, and how long its calls take: neighbour.py RUNTIME

Prints a line when it has begun, and JSON after SIGTERM.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "Chaos"))

import tested_bus  # noqa: E402, F401  finds the Python client
from camerabus import CaptureError, Client  # noqa: E402

#: Seconds after which a call counts as lost.
TIMEOUT = 20.0
#: Seconds from one pair of calls to the next, as long as nobody ends it.
PAUSE = 0.01


class Neighbour:
    """Such a client in a process of its own, so that what floods the bus does not slow it down."""

    def __init__(self, runtime: Path) -> None:
        command = [sys.executable, __file__, str(runtime)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> tuple[list[float], list[str]]:
        """How many seconds its calls took, in order of size, and what went wrong."""
        self._process.terminate()
        text, _ = self._process.communicate(timeout=2 * TIMEOUT)
        try:
            times, errors = json.loads(text)
        except ValueError:
            return [], [f"the neighbour ended with status {self._process.returncode}"]
        return sorted(times), errors


def in_words(times: list[float]) -> str:
    if not times:
        return "no call"
    p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {times[-1] * 1000:.0f} ms of {len(times)} calls"


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    times: list[float] = []
    errors: list[str] = []
    with Client(sys.argv[1], name="neighbour", timeout=TIMEOUT) as client:
        print("begun", flush=True)
        while signal.sigtimedwait({signal.SIGTERM}, PAUSE) is None:
            for method, params in (("bus.ping", {}), ("device.get", {"device": "cam0"})):
                began = time.monotonic()
                try:
                    client.call(method, params)
                    times.append(time.monotonic() - began)
                except CaptureError as error:
                    errors.append(f"{method}: {type(error).__name__}: {error}")
    print(json.dumps([times, errors[:10]]))


if __name__ == "__main__":
    main()
