# SPDX-License-Identifier: Apache-2.0
"""Iterators over what a subscription brings, for both clients."""

from __future__ import annotations

from typing import AsyncIterator, Generic, Iterator, TypeVar

from .closing import AsyncSubscribed, Subscribed
from .steps import Runner, Steps, run

T = TypeVar("T")


class Feed(Generic[T]):
    """What is followed: a subscription that is opened once, and asked for one thing after the other."""

    def open(self) -> Steps[None]:
        """Returns when the subscription is in force."""
        raise NotImplementedError

    def follow(self) -> Steps[T | None]:
        """The next; None: there is no more."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Following(Subscribed, Iterator[T]):
    """`close`, the end of a `with` block, or an error in a `for` loop ends the subscription. After an error of `next()`
    it goes on.
    """

    def __init__(self, feed: Feed[T]) -> None:
        self._feed = feed
        run(feed.open())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._feed}>"

    def __iter__(self) -> Iterator[T]:
        return _Loop(self)

    def __next__(self) -> T:
        found = run(self._feed.follow())
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self._feed.close()


class _Loop(Iterator[T]):
    """A `for` loop. Its error keeps what it iterates over for as long as the error itself is kept, and nobody can go on
    with it: so the subscription ends.
    """

    def __init__(self, following: Following[T]) -> None:
        self._following = following

    def __next__(self) -> T:
        try:
            return next(self._following)
        except BaseException:
            self._following.close()
            raise


class AsyncFollowing(AsyncSubscribed, AsyncIterator[T]):
    """The same, for asyncio: the subscription begins with `async with` or `async for`."""

    def __init__(self, feed: Feed[T], run: Runner) -> None:
        self._feed = feed
        self._run = run
        self._is_new = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._feed}>"

    def __aiter__(self) -> AsyncIterator[T]:
        return _AsyncLoop(self)

    async def __anext__(self) -> T:
        if self._is_new:
            await self._opened()
        found = await self._run(self._feed.follow())
        if found is None:
            raise StopAsyncIteration
        return found

    async def _opened(self) -> None:
        self._is_new = False
        await self._run(self._feed.open())

    def close(self) -> None:
        self._feed.close()


class _AsyncLoop(AsyncIterator[T]):
    """An `async for` loop: see `_Loop`."""

    def __init__(self, following: AsyncFollowing[T]) -> None:
        self._following = following

    async def __anext__(self) -> T:
        try:
            return await anext(self._following)
        except BaseException:
            self._following.close()
            raise
