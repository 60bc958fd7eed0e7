# SPDX-License-Identifier: Apache-2.0
"""Waiting for a word in shared memory to change."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
from typing import Any

_SECOND = 1_000_000_000


class WaitWord:
    """A word of 32 bits in the first bytes of a file as a futex: FUTEX_WAIT_BITSET through ctypes, which lets other
    threads run meanwhile.
    """

    _NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "loongarch64": 98}
    _WAIT_BITSET, _ANY = 9, 0xFFFFFFFF

    def __init__(self, libc: Any, number: int, page: int, size: int, index: int) -> None:
        self._libc, self._number, self._page, self._size = libc, number, page, size
        self._address = page + index * 4
        self._munmap = libc.munmap

    @classmethod
    def make(cls, descriptor: int, size: int, index: int) -> WaitWord | None:
        """The word of that index in the first `size` bytes; None: this machine has no futex that Python can reach."""
        number = cls._NUMBERS.get(platform.machine())
        if number is None or ctypes.sizeof(ctypes.c_void_p) != 8:
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        libc.syscall.restype = ctypes.c_long
        # A map of our own: the address of one that Python made can't be had while it is read-only.
        page = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        return cls(libc, number, page, size, index) if page not in (None, ctypes.c_void_p(-1).value) else None

    def wait(self, value: int, until: int) -> None:
        """While the word has this value, until that time (nanoseconds of CLOCK_MONOTONIC)."""
        time_limit = (ctypes.c_int64 * 2)(*divmod(max(0, until), _SECOND))
        result = self._libc.syscall(
            ctypes.c_long(self._number),
            ctypes.c_void_p(self._address),
            ctypes.c_long(self._WAIT_BITSET),
            ctypes.c_long(value),
            time_limit,
            ctypes.c_void_p(0),
            ctypes.c_long(self._ANY),
        )
        if result == -1 and (code := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT):
            raise OSError(code, os.strerror(code))

    def __del__(self) -> None:
        self._munmap(self._page, self._size)
