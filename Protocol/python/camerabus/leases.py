# SPDX-License-Identifier: Apache-2.0
"""Locks of a client on another machine: each has a lease, which is renewed as long as the lock is held here."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import zmq

from .errors import CaptureError, ClientError
from .steps import Socket, deadline, run

if TYPE_CHECKING:
    from .core import Core

#: Seconds that a lock lasts over TCP unless it is renewed, where no lease was asked for.
LEASE = 10.0


class Renewer:
    """Renews a lock three times in its lease, on a thread and a connection of its own: the program may do what it likes meanwhile.

    It ends with the lock: when that is released, when it is lost, and with the process, or its connection, some seconds after
    which the bus ends the lock by itself.
    """

    def __init__(self, core: Core, token: str, lease: float = LEASE) -> None:
        self._place = core.place
        self._token = token
        self._every = lease / 3
        self._has_ended = threading.Event()
        #: Why it is not renewed any more; None: it is.
        self.error: CaptureError | None = None
        threading.Thread(target=self._work, name="camerabus-renewer", daemon=True).start()

    def stop(self) -> None:
        self._has_ended.set()

    def _work(self) -> None:
        from .core import Channel

        context: zmq.Context[Socket] = zmq.Context()
        self._place.secure(context)
        channel = Channel(context, self._place)
        try:
            while not self._has_ended.wait(self._every):
                try:
                    params = {"lock": self._token}
                    run(channel.request("device.renew", params, deadline(self._every), None, math.inf))
                except ClientError:
                    continue  # the link is down for now
                except CaptureError as error:
                    self.error = error
                    return
        finally:
            channel.close()
            context.destroy(linger=0)
