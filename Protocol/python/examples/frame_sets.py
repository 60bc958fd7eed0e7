# Prints, for sets of frames that two cameras took at the same time, how far apart they are; makes the rig if there is
# none.
import sys

from camerabus import CaptureError, Client


def main(rig: str, cameras: list[str]) -> None:
    with Client() as client:
        if rig not in [known.name for known in client.rigs()]:
            client.set_rig(rig, *cameras)
        for found in client.frame_sets(rig, rendition="gray:160x0", limit=20):
            if found.late:
                print(f"set {found.number}: {', '.join(found.frames)} came late")
                continue
            parts = [f"{device} {offset / 1e6:+.1f} ms" for device, offset in found.offsets.items()]
            parts += [f"{device} {reason}" for device, reason in found.missing.items()]
            print(f"set {found.number}: {', '.join(parts)}; spread {found.spread / 1e6:.1f} ms")


try:
    main(sys.argv[1] if len(sys.argv) > 1 else "stereo", sys.argv[2:] or ["cam0", "cam1"])
except KeyboardInterrupt:
    sys.exit(130)
except CaptureError as error:
    sys.exit(f"{error.reason}: {error}")
