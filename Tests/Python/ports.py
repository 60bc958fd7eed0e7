"""Ports of this machine, for servers that a test starts."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """The first of three in a row that nobody has, and that the kernel gives to nobody who doesn't name them."""
    while True:
        port = random.randrange(15_000, 32_765)
        try:
            for each in range(port, port + 3):
                with socket.socket() as one:
                    one.bind(("", each))
        except OSError:
            continue
        return port
