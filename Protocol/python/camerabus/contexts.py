# SPDX-License-Identifier: Apache-2.0
"""Contexts of libzmq that end without being waited for."""

from __future__ import annotations

import _thread
import sys
from contextlib import suppress
from typing import TypeAlias

import zmq

from .steps import Socket

Context: TypeAlias = "zmq.Context[Socket]"

# Every context that was made and has not ended. So the garbage collector never finalizes one: a context's finalizer
# waits until its sockets are closed, and the collector may finalize those after it.
_living: set[Context] = set()


def make() -> Context:
    context: Context = zmq.Context()
    _living.add(context)
    return context


def end(context: Context) -> None:
    """Closes all sockets of a context, and waits until it has ended. Not for finalizers: see `leave`."""
    context.destroy(linger=0)
    _living.discard(context)


def leave(context: Context) -> None:
    """Ends a context as soon as its sockets are closed, without waiting for that: for finalizers."""
    # When the interpreter ends, the process does, and nothing is to be waited for.
    if not sys.is_finalizing():
        # Without the locks that threading.Thread takes: the collector may have interrupted somebody who has them. Where
        # no thread can be started any more, the context stays until the process ends.
        with suppress(RuntimeError):
            _thread.start_new_thread(_end_later, (context,))


def _end_later(context: Context) -> None:
    context.term()
    _living.discard(context)
