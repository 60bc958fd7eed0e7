# Prints the frame numbers of two cameras, and how many frames this program was too slow for.
import sys

from camerabus import CaptureError, Client


def main(cameras: list[str]) -> None:
    with Client() as client:
        for frame in client.frames(*cameras, rendition="jpeg:640x360@10", limit=20):
            print(f"{frame.device}: frame {frame.sequence}, {len(frame.payload)} bytes, {frame.lost} missed")


try:
    main(sys.argv[1:] or ["cam0", "cam1"])
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
