# SPDX-License-Identifier: Apache-2.0
"""The client for programs that wait by blocking. `AsyncClient` has the same names."""

from __future__ import annotations

import os
from typing import Any, Mapping

from . import calls
from .cameras import CameraMethods
from .closing import Closing
from .core import Core
from .devices import DeviceCalls
from .frames import FrameCalls
from .library import LibraryCalls
from .locking import LockCalls
from .movie_calls import MovieCalls
from .permission import PermissionCalls
from .photos import PhotoCalls
from .place import Key
from .rigs import RigCalls
from .sessions import SessionCalls
from .sound import SoundCalls
from .sources import SourceMethods
from .steps import run
from .takes import TakeCalls
from .values import Hello, Reply
from .watching import WatchCalls


class Client(
    Closing,
    CameraMethods,
    DeviceCalls,
    FrameCalls,
    LibraryCalls,
    LockCalls,
    MovieCalls,
    PermissionCalls,
    PhotoCalls,
    RigCalls,
    SessionCalls,
    SoundCalls,
    SourceMethods,
    TakeCalls,
    WatchCalls,
):
    """A connection to the bus, for use in one thread.

    All times are seconds. `timeout` is how long a call may take unless it says otherwise; `name` is what others see as
    ours. Raises `BusNotRunning` when there is no bus.

    `Client("tcp://rig:7350", server_key="…", key="laptop.key")` is one on another machine, behind its gateway:
    `server_key` is the gateway's public key (or a file with it), `key` the file that `camerabus keys new` made here (or
    a public and a secret key), whose public half the gateway was told. All is the same there but this: frames are asked
    for one by one, as `jpeg` unless told otherwise, so that a slow link shows the present; locks have a lease, which
    this renews until they are released; nothing is in shared memory.
    """

    def __init__(
        self,
        runtime_dir: str | os.PathLike[str] | None = None,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        server_key: str | os.PathLike[str] | None = None,
        key: Key | None = None,
    ) -> None:
        self._core: Core | None = None
        core = Core(runtime_dir, name, timeout, server_key, key)
        try:
            core.hello = run(core.ask(core.greeting()))
        except BaseException:
            core.close()
            raise
        self._core = core

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._core or 'closed'}>"

    def close(self) -> None:
        """Ends all connections, also those of frames(), watch() and mirror()."""
        if self._core is not None:
            self._core.close()
            self._core = None

    def _leave(self) -> None:
        if self._core is not None:
            self._core.leave()
            self._core = None

    @property
    def _open(self) -> Core:
        if self._core is None:
            raise ValueError("This client is closed.")
        return self._core

    @property
    def hello(self) -> Hello:
        """What the bus said of itself when it was last asked."""
        assert self._open.hello is not None
        return self._open.hello

    @property
    def runtime_dir(self) -> str:
        """The directory of the bus's sockets; the address of one on another machine."""
        return str(self._open.place)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *,
        key: str | None = None,
    ) -> Any:
        """Any method of the bus by its name; answers its result. With a `key` a repetition is recognised as such."""
        return self.request(method, params, timeout, key=key).result

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float | None = None, *,
        key: str | None = None,
    ) -> Reply:
        """The same, with the reply's attachments."""
        return run(self._open.request(method, params, timeout, key))

    def ping(self, timeout: float | None = None) -> None:
        run(self._open.ask(calls.ping(), timeout))
