# SPDX-License-Identifier: Apache-2.0
"""What ends with a `with` block."""

from __future__ import annotations

from contextlib import contextmanager
from types import TracebackType
from typing import Iterator, Self

from .errors import CaptureError


class Closing:
    """The end of a `with` block closes it."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Subscribed(Closing):
    """Is closed when nobody has it any more, too."""

    def __del__(self) -> None:
        self.close()


class AsyncSubscribed:
    """The same, for asyncio: it is opened by `async with`."""

    async def _opened(self) -> None:
        """Returns when the subscription is in force."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


@contextmanager
def first_error(error: BaseException | None) -> Iterator[None]:
    """What goes wrong at the end of a block that failed is not told: what went wrong first is what matters."""
    try:
        yield
    except CaptureError:
        if error is None:
            raise
