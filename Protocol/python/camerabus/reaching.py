# SPDX-License-Identifier: Apache-2.0
"""Why a place on another machine can't be reached, in the system's words."""

from __future__ import annotations

import socket
import threading

from .steps import Steps, Wait, deadline, is_over

#: Seconds that looking may take.
PATIENCE = 0.5
UNANSWERED = "no answer"


def why_unreachable(host: str, port: int) -> Steps[str | None]:
    """Why nobody takes connections there; None: somebody does. `UNANSWERED`: that took too long to say."""
    # Looking up a name can't be waited for but by a thread, and may take as long as it likes.
    ours, theirs = socket.socketpair()
    threading.Thread(target=_look, args=(host, port, theirs), name="camerabus-look", daemon=True).start()
    until = deadline(PATIENCE)
    with ours:
        ours.setblocking(False)
        while True:
            yield Wait((ours.fileno(),), until)
            try:
                return ours.recv(1000).decode() or None
            except BlockingIOError:
                if is_over(until):
                    return UNANSWERED


def _look(host: str, port: int, answer: socket.socket) -> None:
    with answer:
        try:
            with socket.create_connection((host, port), PATIENCE):
                return
        except TimeoutError:
            problem = UNANSWERED
        except OSError as error:
            problem = error.strerror or str(error)
        try:
            answer.sendall(problem.encode())
        except OSError:
            pass  # who asked has given up
