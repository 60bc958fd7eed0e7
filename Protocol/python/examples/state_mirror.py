# Prints what all devices and locks are, then every change until none came for so many seconds, or Ctrl-C. A bus that is
# killed and started again is followed; the orderly end of the bus is told.
import sys

from camerabus import CaptureError, Client


def main(seconds: float) -> None:
    with Client() as client, client.mirror("state/") as mirror:
        for topic, value in sorted(mirror.items()):
            print(topic, value)
        for change in mirror.changes(timeout=seconds):
            print(change.topic, "is gone" if change.value is None else change.value)


try:
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
