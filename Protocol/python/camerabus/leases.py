# SPDX-License-Identifier: Apache-2.0
"""Locks of a client on another machine: each has a lease, which is renewed as long as the lock is held here."""

from __future__ import annotations

import math
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

from . import contexts
from .errors import BusGone, CaptureError, ClientError, LockLost, Unauthorized
from .steps import Steps, Wait, beside, deadline, is_over, run

if TYPE_CHECKING:
    from .core import Channel, Core
    from .place import Place

#: Seconds that a lock lasts over TCP unless it is renewed, where no lease was asked for.
LEASE = 10.0


class Lease:
    """How long a lock lasts as far as is known here: so long after the bus has last said that it does."""

    def __init__(self, seconds: float, place: Place, fence: int | None) -> None:
        self.seconds = seconds
        self._place = place
        self._fence = fence
        self._until = deadline(seconds)
        self._error: LockLost | None = None

    def renewed(self, asked: float) -> None:
        """The bus has said so, not before it was asked (time.monotonic)."""
        self._until = asked + self.seconds

    def ended(self, error: LockLost) -> None:
        """The bus has said that it is over."""
        self._error = error

    def refused(self, why: str) -> None:
        """The bus has said that this client may hold no lock any more."""
        message = f"The lock has ended, because this client lost its permission. {why}"
        self._error = LockLost(message, {"fence": self._fence})

    @property
    def until(self) -> float:
        """When it is over unless it is renewed (time.monotonic)."""
        return self._until

    @property
    def lost(self) -> LockLost | None:
        """Why the lock is over; None: it isn't."""
        if self._error is None and is_over(self._until):
            self._error = LockLost(
                f"The lock has ended: its lease of {self.seconds:g} s has expired, because the bus at {self._place} "
                "was not reachable. The connection is cut, or this program's key was revoked.",
                {"fence": self._fence},
            )
        return self._error

    def check(self) -> None:
        """Raises when the lock is over."""
        if (lost := self.lost) is not None:
            raise LockLost(lost.message, lost.data)


class Renewer:
    """Renews a lock three times in its lease, on a thread and a connection of its own: the program may do what it likes
    meanwhile.

    It ends with the lock: when that is released, when it is lost, and with the process, or its connection, some seconds
    after which the bus ends the lock by itself.
    """

    def __init__(self, core: Core, token: str, lease: Lease) -> None:
        self._place = core.place
        self._token = token
        self._lease = lease
        # Closing one end wakes the thread, wherever it waits.
        self._ours, self._theirs = socket.socketpair()
        threading.Thread(target=self._work, name="camerabus-renewer", daemon=True).start()

    def stop(self) -> None:
        self._ours.close()

    def _work(self) -> None:
        from .core import Channel

        context = contexts.make()
        self._place.secure(context)
        channel = Channel(context, self._place)
        try:
            with self._theirs:
                run(self._renew(channel))
        except (_Stopped, ClientError):
            pass  # without an answer the lease runs out
        except LockLost as lost:
            self._lease.ended(lost)
        finally:
            channel.close()
            contexts.end(context)

    def _renew(self, channel: Channel) -> Steps[None]:
        stop = (self._theirs.fileno(),)
        # At once: the word that the lock was had may have been on its way for long.
        pause = 0.0
        while True:
            yield Wait(stop, deadline(pause))
            self._look()
            asked = time.monotonic()
            asking = channel.request("device.renew", {"lock": self._token}, self._lease.until, None, math.inf)
            try:
                yield from beside(asking, self._look, stop)
                self._lease.renewed(asked)
                pause = self._lease.seconds / 3
            except BusGone:
                pause = 0.0  # again, as soon as there is a connection
            except (LockLost, ClientError):
                raise
            except Unauthorized as refusal:
                # With another role of its key what a client had has ended, and with this one it may hold no lock.
                self._lease.refused(refusal.message)
                return
            except CaptureError:
                pause = self._lease.seconds / 3  # too many requests, or the like: there is time for another

    def _look(self) -> None:
        # Not select.select: a program may have more descriptors than that knows.
        poll = select.poll()
        poll.register(self._theirs, select.POLLIN)
        if poll.poll(0):
            raise _Stopped


class _Stopped(Exception):
    """It has been told to."""
