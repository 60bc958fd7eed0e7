"""An emulated USB camera on a port of the kernel's vhci_hcd, for the kernel's own uvcvideo driver to bind to.

It answers every request of USB itself, so that what real cameras do wrong can be had at will. Commands are read from
standard input, a line each, and answered with a line, "ok ..." or "error ..."; at the end of input it is unplugged, as
it is when it is killed. Needs root, and the modules vhci-hcd and uvcvideo.

  get CONTROL                   the value that the camera has
  set CONTROL VALUE             the camera changes it by itself, and says so by its status interrupt
  slow SECONDS CONTROL [COUNT]  so many of the next SET requests (1) take that long; the pictures go on
  stall CONTROL [COUNT]         so many of the next requests (1) are stalled; CONTROL may be "all"
  probe wrong|stall|right       how the negotiation of a format goes: it answers with another frame size than was
                                asked for, or not at all, from now on
  short [COUNT]                 so many of the next pictures (1) end in the middle
  corrupt [COUNT]               so many of the next pictures (1) have the error bit set
  mute, talk                    no more pictures; pictures again
  scene                         it sees something dark at the left and bright at the right, and its pictures show how it
  exposes halt                          the endpoint of the pictures is halted, until the driver clears it
"""

import argparse
import os
import select
import sys
import time

from camera import Camera
from controls import Refused
from vhci import Port, Unplugged


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="usb_camera", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, choices=range(8), help="of vhci_hcd (0)")
    parser.add_argument("--serial", default="", help="its serial number; none unless given")
    parser.add_argument("--product", default="UVC Camera", help="its model's name")
    parser.add_argument(
        "--stall-all", type=int, default=0, metavar="COUNT", help="so many requests of each control stall"
    )
    options = parser.parse_args()

    camera = Camera(options.product, options.serial)
    # Before the driver's first request.
    for control in camera.controls.named("all"):
        control.stalls = options.stall_all
    try:
        port = Port(options.port)
    except OSError as error:
        print(f"usb_camera: port {options.port} can't be used: {error}", file=sys.stderr)
        return 1
    print("ok plugged", flush=True)
    try:
        serve(camera, port)
    except Unplugged:
        print("usb_camera: the kernel has let go of it", file=sys.stderr)
    return 0


def serve(camera: Camera, port: Port) -> None:
    """Until the end of input."""
    commands = b""
    while True:
        camera.work(port, time.monotonic())
        wake = camera.wake(time.monotonic())
        ready, _, _ = select.select([port, 0], [], [], wake)
        if port in ready:
            for request in port.receive():
                camera.take(request, port, time.monotonic())
        if 0 in ready:
            part = os.read(0, 4096)
            if not part:
                return
            *lines, commands = (commands + part).split(b"\n")
            for line in lines:
                try:
                    answer = camera.command(line.decode().split(), port)
                except (Refused, KeyError, ValueError, IndexError) as error:
                    print("error", repr(error), flush=True)
                else:
                    print("ok", answer, flush=True)


if __name__ == "__main__":
    sys.exit(main())
