# Hands the state and events of a bus on another machine on to programs of this one, by libzmq's own proxy.
#
# usage: forward_events.py tcp://HOST:PORT SERVER_KEY KEY_FILE SOCKET
#
# Subscribe at ipc://SOCKET as at a bus's events.sock: ack/… and state that is repeated come from the other side.
import os
import sys

import zmq

from camerabus.place import RemotePlace


def main() -> int:
    if len(sys.argv) != 5:
        print("usage: forward_events.py tcp://HOST:PORT SERVER_KEY KEY_FILE SOCKET", file=sys.stderr)
        return 2
    address, server_key, key, path = sys.argv[1:]
    place = RemotePlace(address, server_key, key)
    context = zmq.Context()
    there = zmq.Context()
    place.secure(there)
    upstream = there.socket(zmq.XSUB)
    upstream.connect(place.events(None))
    downstream = context.socket(zmq.XPUB)
    # Each subscription is passed on, also one that others have: the state comes again for it.
    downstream.setsockopt(zmq.XPUB_VERBOSER, 1)
    downstream.setsockopt(zmq.XPUB_WELCOME_MSG, b"welcome/")
    os.umask(0o077)
    downstream.bind(f"ipc://{path}")
    try:
        zmq.proxy(upstream, downstream)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
