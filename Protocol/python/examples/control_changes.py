# Prints each change of a control, whoever made it, until none came for so many seconds, or Ctrl-C.
import sys

from camerabus import CaptureError, Client


def main(seconds: float) -> None:
    with Client() as client, client.watch("event/device/", timeout=seconds) as events:
        print("watching", ", ".join(device.id for device in client.devices()), flush=True)
        for event in events:
            if event.event != "controlsChanged":
                continue
            device = event.topic.split("/")[2]
            for name, change in sorted(event.body["controls"].items()):
                print(f"{device} {name}: {change['old']} -> {change['new']} ({event.body['cause']})", flush=True)


try:
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
