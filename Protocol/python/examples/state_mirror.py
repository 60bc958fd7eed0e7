# Prints what all devices and locks are, then every change until none came for so many seconds; survives a restart of the bus.
import sys

from camerabus import Client

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
with Client() as client, client.mirror("state/") as mirror:
    for topic, value in sorted(mirror.items()):
        print(topic, value)
    for change in mirror.changes(timeout=seconds):
        print(change.topic, "is gone" if change.value is None else change.value)
