# Looks at a camera's raw pictures where they lie, without a copy: shared_memory.py [CAMERA] [COUNT]
import sys

from camerabus import CaptureError, Client


def mean(pixels: memoryview) -> float:
    sample = bytes(pixels[:: max(1, len(pixels) // 1000)])
    return sum(sample) / len(sample)


def main(camera: str, count: int) -> None:
    with Client() as client, client.frames(camera, shared=True, limit=count) as frames:
        for frame in frames:
            value = mean(frame.payload)
            if frame.is_intact():  # the camera has not written there meanwhile
                print(f"{frame.device}: frame {frame.sequence}, mean {value:.1f}, {frame.lost} missed before it")
        print(f"{frames.lost[camera]} missed, {frames.late[camera]} overwritten")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "cam0", int(sys.argv[2]) if len(sys.argv) > 2 else 10)
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
