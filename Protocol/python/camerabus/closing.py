# SPDX-License-Identifier: Apache-2.0
"""What ends with a `with` block."""

from __future__ import annotations

from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Coroutine, Generator, Generic, Iterator, Protocol, Self, TypeVar

from .errors import CaptureError


class Closing:
    """The end of a `with` block closes it."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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


class AsyncEnding(Protocol):
    """What the end of an `async with` block ends."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


M = TypeVar("M", bound=AsyncEnding)


class Pending(Generic[M]):
    """Something of asyncio's that is to be made: by `await`, or by `async with`, which ends it, too."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, M]]) -> None:
        self._make = make
        self._made: M | None = None

    def __await__(self) -> Generator[Any, None, M]:
        return self._make().__await__()

    async def __aenter__(self) -> M:
        self._made = await self._make()
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.__aexit__(kind, error, trace)


@contextmanager
def first_error(error: BaseException | None) -> Iterator[None]:
    """What goes wrong at the end of a block that failed is not told: what went wrong first is what matters."""
    try:
        yield
    except (CaptureError, OSError):
        if error is None:
            raise
