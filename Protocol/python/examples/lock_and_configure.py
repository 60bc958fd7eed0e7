# Locks a camera, looks up what it can do, sets size, rate and a control in one step, and gives the lock back.
import sys

from camerabus import CaptureError, Client


def main(camera: str) -> None:
    with Client() as client:
        with client.lock(camera, wait=5, note="example"):
            format = max(client.formats(camera), key=lambda each: (each.width <= 1280, each.width * each.height))
            controls = {
                name: control.defaultValue for name, control in client.controls(camera).items() if name == "brightness"
            }
            result = client.configure(camera, activeFormat=format.id, frameRate=30, controls=controls, mode="nearest")
        print(f"{result.verdict}: {result.applied[camera]}")
        for change in result.adjusted:
            print(f"{change.path}: asked for {change.asked}, got {change.given}, because {change.why}")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "cam0")
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")  # DeviceBusy, and its kind LockTimeout, name who has the camera
