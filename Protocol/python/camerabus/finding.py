# SPDX-License-Identifier: Apache-2.0
"""Where the bus is: the runtime directory that has a live socket."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Mapping

from .errors import BusNotRunning

_LONGEST = 107  # bytes of a Unix socket's path
_LONGEST_NAME = "/media/" + 32 * "x" + ".sock"


def find_bus(runtime_dir: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The runtime directory of a running bus.

    What is named is taken strictly: `runtime_dir`, else `$CAMERABUS_RUNTIME_DIR`. Else it is the first of
    `$XDG_RUNTIME_DIR/camerabus`, `/run/camerabus` and `/tmp/camerabus-<uid>` in which somebody listens.
    """
    environ = os.environ if environ is None else environ
    is_named = bool(runtime_dir or environ.get("CAMERABUS_RUNTIME_DIR"))
    seen = []
    for directory in candidates(runtime_dir, environ):
        # Anybody may make a directory in /tmp: one that nobody named must be ours, lest another's poses as the bus.
        is_anyones = (
            not is_named and directory == _temporary() and os.path.lexists(directory) and not _is_private(directory)
        )
        problem = "not a private directory of this user" if is_anyones else why_not(directory)
        if problem is None:
            return directory
        seen.append(f"{directory} ({problem})")
    raise BusNotRunning(
        f"No bus is running. Searched: {', '.join(seen)}. "
        "Start one with `make run` in the project, or `camerabusd --virtual 2`."
    )


def candidates(runtime_dir: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> list[Path]:
    """The directories to look into, in this order. Empty is as good as absent."""
    named = os.fspath(runtime_dir) if runtime_dir else environ.get("CAMERABUS_RUNTIME_DIR", "")
    if named:
        if not named.startswith("/"):
            raise ValueError(f"The runtime directory must be an absolute path, not {named!r}.")
        if (excess := _excess(named)) > 0:
            raise ValueError(
                f"The runtime directory {named!r} is {excess} bytes too long for the paths of Unix sockets."
            )
        return [Path(named)]
    found = []
    session = environ.get("XDG_RUNTIME_DIR", "")
    # A relative one is to be ignored, says the XDG specification; one that is too long can't hold a bus.
    if session.startswith("/") and _excess(session + "/camerabus") <= 0:
        found.append(Path(session, "camerabus"))
    return [*found, Path("/run/camerabus"), _temporary()]


def why_not(directory: Path) -> str | None:
    """Why this directory has no live bus; None: it has one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fsencode(directory / "command.sock"))
        except BlockingIOError:
            return None  # its queue is full: somebody listens
        except FileNotFoundError:
            return "does not exist"
        except ConnectionRefusedError:
            return "no process answers at its socket"
        except PermissionError:
            return "no permission: are you in the group camerabus?"
        except OSError as error:
            return error.strerror or str(error)
    return None


def has_ended(directory: Path) -> bool:
    """Whether the bus that was here has ended in order: then it has taken its socket away. One that was killed leaves
    it.
    """
    return not os.path.lexists(directory / "command.sock")


def _excess(directory: str) -> int:
    return len(os.fsencode(directory.rstrip("/"))) + len(_LONGEST_NAME) - _LONGEST


def _temporary() -> Path:
    return Path(f"/tmp/camerabus-{os.getuid()}")


def _is_private(directory: Path) -> bool:
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
