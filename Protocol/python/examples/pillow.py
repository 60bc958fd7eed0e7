# Makes a thumbnail and a mean colour of a camera's newest picture with Pillow: pillow.py [CAMERA] [FILE]
import io
import sys

from camerabus import CaptureError, Client
from PIL import Image


def main(camera: str, path: str) -> None:
    with Client() as client:
        frame = next(client.frames(camera, rendition="jpeg:640x0", limit=1))
        picture = Image.open(io.BytesIO(frame.payload))
        picture.resize((160, 90)).save(path)
        print(f"{frame}, mean colour {picture.resize((1, 1)).getpixel((0, 0))}, thumbnail in {path}")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "cam0", sys.argv[2] if len(sys.argv) > 2 else "thumbnail.png")
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
