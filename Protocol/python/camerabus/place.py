# SPDX-License-Identifier: Apache-2.0
"""Where a bus is, and how its sockets are reached: on this machine by its directory, on another one by its gateway."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Sequence, TypeAlias

import zmq

from .errors import BusNotRunning, BusTimeout, ClientError
from .finding import find_bus, has_ended, why_not
from .reaching import UNANSWERED, why_unreachable
from .steps import Socket, Steps

if TYPE_CHECKING:
    from .links import Link
    from .values import Hello

#: A pair of keys: the file that `camerabus keys new` makes, or (public, secret).
Key: TypeAlias = "str | os.PathLike[str] | tuple[str, str]"

_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_REMOTE = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.%]+\]|[^\[\]:/\s*]+):(?P<port>\d{1,5})")
# Milliseconds: a link that is cut is told by its silence, and one that doesn't come about is tried anew.
_HEARTBEAT, _SILENCE, _CONNECT = 2000, 6000, 5000


class LocalPlace:
    """A directory with the sockets of a bus of this machine."""

    is_remote = False
    #: What frames() asks for unless told otherwise.
    rendition = "native"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __str__(self) -> str:
        return str(self.directory)

    def secure(self, context: zmq.Context[Socket]) -> None:
        """Has all sockets that are made from now on be those of who we are."""

    @property
    def command(self) -> str:
        return f"ipc://{self.directory / 'command.sock'}"

    def events(self, hello: Hello | None) -> str:
        path = str(hello.endpoints.get("events", "") if hello else "").removeprefix("ipc://")
        return f"ipc://{path}" if path and os.path.exists(path) else f"ipc://{self.directory / 'events.sock'}"

    def media(self, hello: Hello | None, device: str) -> str:
        """The bus may see its directory under another name than we do (in a container)."""
        media = (hello.endpoints.get("media") if hello else None) or {}
        path = str(media.get(device, "")).removeprefix("ipc://")
        return f"ipc://{path}" if path and os.path.exists(path) else f"ipc://{self.directory / 'media' / device}.sock"

    def why_not(self) -> str | None:
        """Why there is nobody; None: somebody listens."""
        return why_not(self.directory)

    def has_ended(self) -> bool:
        return has_ended(self.directory)

    def absence(self, link: Link, was_there: bool) -> Steps[ClientError]:
        """What to say of a connection that has not come about; `was_there`: there was one before."""
        if (problem := self.why_not()) is not None:
            return BusNotRunning(f"The bus at {self} does not run any more ({problem}).")
        return BusTimeout(f"The bus at {self} did not accept this program. It refuses it, or is too busy.")
        yield


class RemotePlace:
    """A gateway: requests go to its port, events come from the next one, pictures and sound from the one after that."""

    is_remote = True
    rendition = "jpeg"

    def __init__(self, address: str, server_key: str | os.PathLike[str], key: Key) -> None:
        found = _REMOTE.fullmatch(address)
        if found is None or not 1 <= int(found["port"]) <= 65533:
            raise ValueError(f"A bus on another machine is named tcp://HOST:PORT, not {address!r}.")
        self._host, self._port = found["host"], int(found["port"])
        self._server = read_key(server_key)
        self._public, self._secret = read_pair(key)

    def __str__(self) -> str:
        return self.command

    def secure(self, context: zmq.Context[Socket]) -> None:
        if not zmq.has("curve"):
            raise ValueError("This pyzmq's libzmq was built without CURVE, which connections to other machines need.")
        # Defaults of all sockets of the context.
        context.setsockopt(zmq.CURVE_SERVERKEY, self._server.encode())
        context.setsockopt(zmq.CURVE_PUBLICKEY, self._public.encode())
        context.setsockopt(zmq.CURVE_SECRETKEY, self._secret.encode())
        context.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT)
        context.setsockopt(zmq.HEARTBEAT_TIMEOUT, _SILENCE)
        context.setsockopt(zmq.CONNECT_TIMEOUT, _CONNECT)
        if self._host.startswith("["):
            context.setsockopt(zmq.IPV6, 1)

    @property
    def command(self) -> str:
        return self._endpoint(self._port)

    def events(self, hello: Hello | None) -> str:
        return self._told(hello.endpoints.get("events") if hello else None) or self._endpoint(self._port + 1)

    def media(self, hello: Hello | None, device: str) -> str:
        media = (hello.endpoints.get("media") if hello else None) or {}
        return self._told(media.get(device)) or self._endpoint(self._port + 2)

    def _endpoint(self, port: int) -> str:
        return f"tcp://{self._host}:{port}"

    def _told(self, endpoint: object) -> str | None:
        # The gateway knows its ports, and we its address.
        port = str(endpoint).removeprefix("tcp://*:")
        return self._endpoint(int(port)) if port.isdecimal() else None

    def why_not(self) -> str | None:
        """No look says so without waiting: its links do."""
        return None

    def has_ended(self) -> bool:
        return False

    def absence(self, link: Link, was_there: bool) -> Steps[ClientError]:
        problem = yield from why_unreachable(self._host.strip("[]"), self._port)
        # A link may be too slow for the look, and has had its answer.
        if problem is None or problem == UNANSWERED and link.is_answered:
            return BusTimeout(
                f"The gateway at {self} refused this program. Check there with 'camerabus keys list' that its key is"
                f"{' still' if was_there else ''} listed, and with 'camerabus keys server' that the server key is "
                "right. "
                "The gateway may also be too busy."
            )
        return BusNotRunning(f"The bus at {self} can't be reached{' any more' if was_there else ''} ({problem}).")


Place: TypeAlias = "LocalPlace | RemotePlace"


def find_place(
    where: str | os.PathLike[str] | None, server_key: str | os.PathLike[str] | None = None, key: Key | None = None
) -> Place:
    """A gateway's address, or a directory; None: what `$CAMERABUS_RUNTIME_DIR` says, which may be an address too (with
    the keys in `$CAMERABUS_SERVER_KEY` and `$CAMERABUS_KEY`), else the bus of this machine.
    """
    named = os.environ.get("CAMERABUS_RUNTIME_DIR", "") if where is None else where
    if isinstance(named, str) and named.startswith("tcp://"):
        server_key = server_key or os.environ.get("CAMERABUS_SERVER_KEY")
        key = key or os.environ.get("CAMERABUS_KEY")
        wanted = {
            "server_key= or $CAMERABUS_SERVER_KEY (the gateway's public key, or a file with it)": server_key,
            "key= or $CAMERABUS_KEY (the file that 'camerabus keys new' makes here)": key,
        }
        if missing := [name for name, value in wanted.items() if not value]:
            raise TypeError(f"A bus on another machine needs keys. Set {', nor from '.join(missing)}.")
        assert server_key is not None and key is not None
        return RemotePlace(named, server_key, key)
    if server_key is not None or key is not None:
        raise TypeError("Keys are only for buses on other machines (tcp://HOST:PORT).")
    return LocalPlace(find_bus(where))


def read_key(key: str | os.PathLike[str]) -> str:
    """A public key: its 40 characters, or a file with it: on a line `public KEY`, or alone, as `camerabus keys` prints
    it.
    """
    if isinstance(key, str) and _KEY.fullmatch(key) and not os.path.exists(key):
        return key
    alone = [line for line in _text(key).splitlines() if line and (_KEY.fullmatch(line) or not line.startswith("#"))]
    return alone[0] if len(alone) == 1 and _KEY.fullmatch(alone[0]) else _lines(key, "public")[0]


def read_pair(key: Key) -> tuple[str, str]:
    if isinstance(key, tuple):
        for each in key:
            if not isinstance(each, str) or not _KEY.fullmatch(each):
                raise ValueError("A key has 40 characters (Z85).")
        return key
    public, secret = _lines(key, "public", "secret")
    return public, secret


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ValueError(f"The key can't be read: {os.fspath(path)!r}: {error.strerror or error}.") from None


def _lines(path: str | os.PathLike[str], *names: str) -> Sequence[str]:
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, _, key = line.partition(" ")
        if _KEY.fullmatch(key.strip()):
            found[name] = key.strip()
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"{os.fspath(path)!r} has no line '{missing[0]} KEY': 'camerabus keys new' makes such a file.")
    return [found[name] for name in names]
