# SPDX-License-Identifier: Apache-2.0
"""Which measurements --only means."""

from __future__ import annotations

from typing import Iterable, Sequence


class Choice:
    """A whole name means that measurement alone; words mean all that have each of them in their name."""

    def __init__(self, only: Sequence[str] | None, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._only = tuple(only or ())

    def __contains__(self, name: object) -> bool:
        return not self._only or any(self._means(words, str(name)) for words in self._only)

    def _means(self, words: str, name: str) -> bool:
        return name == words if words in self._names else all(word in name for word in words.split())

    @property
    def misses(self) -> list[str]:
        """Words that no measurement has."""
        return [words for words in self._only if not any(self._means(words, name) for name in self._names)]
