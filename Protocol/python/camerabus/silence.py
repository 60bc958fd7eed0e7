# SPDX-License-Identifier: Apache-2.0
"""Nothing comes: whether there is anybody still."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Callable, Iterable

from .errors import BusNotRunning, ClientError
from .steps import Steps, is_over

if TYPE_CHECKING:
    from .core import Core
    from .links import Link

SILENCE = 3.0  # seconds without a heartbeat, of which there is one a second, after which nobody is there
#: Seconds for which a link to another machine may be down: after that the bus has ended what was had through it.
DOWN = 5.0


class Silence:
    """How long nothing has been heard.

    On this machine workers outlive their coordinator for a while; when neither gives a sign of life, nobody is there.
    To another machine a link that stands is the sign of life, however little comes over it: its heartbeats end it when
    nobody answers them.
    """

    def __init__(self, core: Core, links: Callable[[], Iterable[Link]]) -> None:
        self._core = core
        self._links = links
        self._since = 0.0

    def heard(self) -> None:
        self._since = time.monotonic()
        self._core.look()

    @property
    def until(self) -> float:
        """When it has lasted so long that it is to be looked at."""
        return self._since + SILENCE

    def look(self) -> Steps[None]:
        """Raises when it has lasted too long, and nobody is there."""
        if not is_over(self.until):
            return
        self.heard()
        if (problem := self._core.place.why_not()) is not None:
            raise BusNotRunning(f"The bus at {self._core.place} does not run any more ({problem}).")
        if (error := (yield from self.cut())) is not None:
            raise error

    def cut(self, for_long: float | None = None) -> Steps[ClientError | None]:
        """Why all links to another machine are down, if they are, for so many seconds."""
        newest: Link | None = None
        for_long = DOWN if for_long is None else for_long
        for link in self._links():
            link.look()
            if link.is_up or not is_over(link.down_since + for_long):
                return None
            if newest is None or link.down_since > newest.down_since:
                newest = link
        return None if newest is None else (yield from self._core.place.absence(newest, newest.connections > 0))
