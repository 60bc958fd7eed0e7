# Makes another camera of a camera: its picture with dark and light exchanged: filter.py [CAMERA] [NAME]
import sys

from camerabus import CaptureError, Client

EXCHANGED = bytes(255 - value for value in range(256))


def main(camera: str, name: str) -> None:
    with Client() as client:
        first = next(client.frames(camera, rendition="bgr:640x0", limit=1))
        with client.create_source(name, first.width, first.height, "bgr") as source:
            print(f"{camera} is to be seen as {source.device}: camerabus frames {source.device}", flush=True)
            for frame in client.frames(camera, rendition="bgr:640x0"):
                if (frame.width, frame.height) != (first.width, first.height):
                    sys.exit("the camera's picture has another shape now")
                source.send(bytes(frame.payload).translate(EXCHANGED), timestamp=frame.timestamp)


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "cam0", sys.argv[2] if len(sys.argv) > 2 else "filtered")
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
