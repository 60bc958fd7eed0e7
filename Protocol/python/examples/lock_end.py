# Holds a camera until Ctrl-C, or until the lock ends otherwise, and says why: taken over, the camera gone, the bus
# ended.
import sys

from camerabus import CaptureError, Client, LockLost


def main(camera: str) -> None:
    # Before the lock, so that none of its events is missed
    with Client() as client, client.watch("event/lock/") as events:
        with client.lock(camera, wait=5, note="example") as lock:
            own = client.device(camera).lock
            print(f"{camera} is ours, under lock number {lock.fence}", flush=True)
            for event in events:
                if own is not None and event.topic == f"event/lock/{own.id}/" and event.event == "ended":
                    by = event.body.get("by")
                    raise LockLost(f"{event.body['cause']}{' by ' + by['name'] if by else ''}")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "cam0")
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
