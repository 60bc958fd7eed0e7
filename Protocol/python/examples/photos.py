# Takes photos of cameras at the same moment, telling each stage, and stores them here: photos.py [CAMERA...]
import sys
from datetime import datetime

from camerabus import CaptureError, Client


def main(cameras: list[str]) -> None:
    with Client() as client:
        capture = client.capture_photo(*cameras, thumbnail=True, on_stage=lambda stage: print(stage.event))
        for photo in capture.photos:
            time = datetime.fromtimestamp(photo.timestamp.realtime / 1e9)
            path = f"{photo.device}-{time:%Y%m%d-%H%M%S-%f}.jpg"
            photo.save(path)
            print(f"{path}: {photo.width}x{photo.height}, {'settled' if photo.settled else 'not settled'}")
        if capture.spread is not None:
            print(f"{capture.spread / 1e6:.1f} ms apart")


try:
    main(sys.argv[1:] or ["cam0", "cam1"])
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
