# SPDX-License-Identifier: Apache-2.0
"""State and events as they go by."""

from __future__ import annotations

import json
import math
import time
from typing import Any, Mapping, Sequence

from . import silence
from .core import Core
from .errors import BusEnded, BusNotRunning, BusTimeout, ProtocolError
from .following import Feed
from .sequences import Continuity
from .steps import Steps, Wait, deadline, is_over
from .subscription import HEARTBEAT, LAST_WORD, PROBE, Subscription, begin_all, subscribe_events, with_slash
from .values import Event


class EventFeed(Feed[Event]):
    """State and events as they go by, without what is not newer."""

    def __init__(self, core: Core, topics: Sequence[str], patience: float = math.inf, room: int = 1000) -> None:
        self._core = core
        self._patience = patience
        self._topics = tuple(map(with_slash, topics)) or ("state/", "event/")
        self._room = room
        self._continuity = Continuity()
        self.subscription: Subscription | None = None
        self._heard = 0.0
        self._has_ended = False
        self._probed_until: float | None = None

    def __str__(self) -> str:
        return f"of {', '.join(self._topics)}{'' if self.subscription else ': closed'}"

    def open(self, timeout: float | None = None) -> Steps[None]:
        """Returns when the subscription is in force."""
        core = self._core
        subscription = subscribe_events(core, {*self._topics, HEARTBEAT, LAST_WORD}, self._room)
        self.subscription = subscription
        try:
            if not (yield from begin_all([subscription], deadline(core.timeout if timeout is None else timeout))):
                raise BusTimeout(f"The bus at {core.place} did not accept the subscription in time.")
            core.hello = yield from core.ask(core.greeting(), timeout)
            self._continuity.start(core.hello.epoch, core.hello.sequence)
        except BaseException:
            self.close()
            raise
        self.rest()

    @property
    def connections(self) -> int:
        return self.subscription.connections if self.subscription else 0

    def rest(self) -> None:
        """Starts the time in which something must be heard anew."""
        self._heard, self._probed_until = time.monotonic(), None

    def follow(self) -> Steps[Event | None]:
        if self.subscription is None:
            return None
        return (yield from self.next(deadline(self._patience)))

    def next(self, until: float) -> Steps[Event | None]:
        """The next event; None: nothing in time."""
        self.rest()
        while True:
            while (read := self.take()) is not None:
                topic, body = read
                if (event := self._event(topic, body)) is not None:
                    return event
            if is_over(until):
                return None
            yield from self.wait(until)

    def take(self) -> tuple[str, Mapping[str, Any]] | None:
        """The next message as it came, or None. Raises when the bus has ended; after that it may be asked for what the
        next one says.
        """
        if self.subscription is None:
            raise ValueError("This subscription is closed.")
        if self._has_ended:
            self._has_ended = False
            raise BusEnded(f"The bus at {self._core.place} has ended.")
        message = self.subscription.receive()
        if message is None:
            self._core.look()
            return None
        self.rest()
        try:
            body = json.loads(message[1].bytes)
        except (ValueError, IndexError):
            body = None
        if not isinstance(body, dict):
            raise ProtocolError("An event is not a JSON object.")
        topic = message[0].bytes.decode(errors="replace")
        if topic == LAST_WORD:
            self._has_ended = True
            if not topic.startswith(self._topics):
                return self.take()
        return topic, body

    def wait(self, until: float) -> Steps[None]:
        """Waits for the next message, unless there is nobody to send one."""
        subscription = self.subscription
        assert subscription is not None
        if is_over(self._heard + silence.SILENCE):
            until = min(until, (yield from self._doubt(subscription)))
        else:
            until = min(until, self._heard + silence.SILENCE)
        yield Wait(subscription.sockets, until)

    def _doubt(self, subscription: Subscription) -> Steps[float]:
        """How long to wait for a sign of life; raises when it has been waited for."""
        place, link = self._core.place, subscription.link
        if link is not None:
            link.look()
            if not link.is_up:
                if not is_over(link.down_since + silence.DOWN):
                    return link.down_since + silence.DOWN
                self.rest()
                raise (yield from place.absence(link, True))
        # This process may have been stopped, or the link be slow: what is on its way is taken first.
        if self._probed_until is None:
            self._probed_until = deadline(PROBE) if link is None else math.inf
            subscription.probe()
        if subscription.is_probing and not is_over(self._probed_until):
            return self._probed_until
        self.rest()
        if (problem := place.why_not()) is not None:
            raise BusNotRunning(f"The bus at {place} does not run any more ({problem}).")
        raise BusTimeout(f"The bus at {place} has been silent for {silence.SILENCE:g} s.")

    def _event(self, topic: str, body: Mapping[str, Any]) -> Event | None:
        if not topic.startswith(self._topics):
            return None  # a heartbeat that only we wanted
        epoch, sequence, previous = str(body.get("epoch", "")), body.get("sequence", 0), body.get("previous", 0)
        gap = False
        if topic.startswith(("state/", "event/")):
            if not isinstance(sequence, int) or not isinstance(previous, int):
                raise ProtocolError(f"A message without a sequence came on {topic}.")
            lost = self._continuity.receive(topic, epoch, sequence, previous)
            if lost is None:
                return None  # a current value that is repeated for a new subscriber
            gap = lost
        return Event(
            topic=topic, epoch=epoch, sequence=sequence, previous=previous, value=body.get("value"),
            event=body.get("event"), gap=gap, body=body,
        )  # fmt: skip

    def close(self) -> None:
        if self.subscription is not None:
            self.subscription.close()
            self.subscription = None
