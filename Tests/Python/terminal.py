"""A shell at a terminal of its own, which is told one command after the other, as a reader tells his."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import Callable, Mapping

CTRL_C = b"\x03"
#: A file of as many bytes has more in it than a header.
SOMETHING = 1000
# How bash says that a command has ended: among what is printed, so that all of its output has come by then.
_STATUS = re.compile(rb"\x1d(\d+)\x1d$")


class CommandFailed(Exception):
    pass


def is_there() -> bool:
    """Whether this machine has terminals to give, as a bare chroot hasn't."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


class Shell:
    """Bash in `folder`, where what one command sets is there for the next. Its `with` block ends it, and what it still
    runs.

    `timeout` is how long each command may take, be it until it is seen to do something.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        #: The files into which write what runs in the background.
        self.jobs: list[Path] = []
        self._command, self._printed = "bash", b""
        self._terminal, end = pty.openpty()
        # What is typed isn't shown, and lines end as in a file: what comes is what commands print, also when Ctrl-C has
        # come.
        mode = termios.tcgetattr(end)
        mode[1] &= ~termios.OPOST
        mode[3] &= ~termios.ECHO
        mode[3] |= termios.NOFLSH
        termios.tcsetattr(end, termios.TCSANOW, mode)
        # A reader's own history is not ours to write, nor is a locale that isn't there to be complained of.
        ours = {
            "PS1": "", "PS2": "", "PROMPT_COMMAND": r"printf '\035%d\035' $?", "TERM": "dumb", "HISTFILE": "",
            "LC_ALL": "C.UTF-8",
        }  # fmt: skip
        # Who runs the tests beside others, or without a terminal, has these ignored, which children inherit.
        command = [
            "env", "--default-signal=INT,HUP", "setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "+H",
            "-iuo", "pipefail",
        ]
        self._bash = subprocess.Popen(
            command, cwd=folder, env={**environment, **ours}, stdin=end, stdout=end, stderr=end
        )
        os.close(end)
        try:
            self._end()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # As when a terminal goes away. The shell is to end what it has started then, but doesn't always think of its
        # background.
        if self._bash.poll() is None:
            self._hang_up(self._bash.pid)
            self._bash.wait()
        for process in self._session():
            self._hang_up(process)
        os.close(self._terminal)

    def _hang_up(self, process: int) -> None:
        try:
            ended = os.pidfd_open(process)
        except ProcessLookupError:
            return
        try:
            signal.pidfd_send_signal(ended, signal.SIGHUP)
            if not select.select([ended], [], [], self.timeout)[0]:
                signal.pidfd_send_signal(ended, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(ended)

    def _session(self) -> list[int]:
        """Who has this terminal, beside the shell."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(path.name)) == self._bash.pid:
                    found.append(int(path.name))
            except ProcessLookupError:
                pass
        return found

    @property
    def output(self) -> str:
        """What the last command has printed."""
        return _STATUS.sub(b"", self._printed).decode(errors="replace")

    def run(self, command: str) -> None:
        """Runs it to its end. One that fails, or of which a part does, ends the shell."""
        self._tell(command, "set -e; ")
        self._end(0)

    def run_when_it_can(self, command: str) -> None:
        """Runs it again until it doesn't fail."""
        until = time.monotonic() + self.timeout
        while True:
            self._tell(command, "set +e; ")
            if self._end() == 0:
                return
            if time.monotonic() > until:
                raise self._failed("goes on failing")

    def interrupt(self, command: str, writes: str | None = None) -> None:
        """Runs it until it has printed something, or written into this file of the folder, and ends it by Ctrl-C."""
        self._tell(command, "set +e; ")
        self._interrupt(lambda: bool(self._printed.strip()) if writes is None else self._size(writes) >= SOMETHING)

    def start(self, command: str, log: Path) -> None:
        """Runs it in the background until `end_jobs`; it has printed something then."""
        # Not on the terminal, where it would be taken for what the next command says.
        self._tell(f"{{ {command.rstrip().removesuffix('&')}; }} >'{log}' 2>&1 &")
        self._end(0)
        self.jobs.append(log)
        self._printed = b""
        self._wait(lambda: self._size(log) > 0)

    def end_jobs(self) -> None:
        while self.jobs:
            self._tell("fg", "set +e; ")
            self._interrupt(lambda: True)
            self.jobs.pop()

    def _interrupt(self, is_seen: Callable[[], bool]) -> None:
        if self._wait(lambda: is_seen() and self._is_given_away()) is not None:
            raise self._failed("has ended before Ctrl-C")
        os.write(self._terminal, CTRL_C)
        self._end(0, 130)

    def _is_given_away(self) -> bool:
        """Whether a program has the terminal, to which Ctrl-C goes then. What the shell has only just forked doesn't
        hear it.
        """
        group = os.tcgetpgrp(self._terminal)
        return group != self._bash.pid and any(
            self._words(process) not in (b"", self._words(self._bash.pid))
            for process in self._session()
            if self._group(process) == group
        )

    def _group(self, process: int) -> int | None:
        try:
            return os.getpgid(process)
        except ProcessLookupError:
            return None

    def _words(self, process: int) -> bytes:
        try:
            return Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return b""

    def _tell(self, command: str, first: str = "") -> None:
        self._command, self._printed = command, b""
        os.write(self._terminal, f"{first}{command}\n".encode())

    def _end(self, *wanted: int) -> int:
        """Waits for the end of the command; its status, which is one of these, if any is named."""
        status = self._wait(lambda: False)
        assert status is not None
        if wanted and status not in wanted:
            raise self._failed(f"has ended with status {status}")
        return status

    def _wait(self, is_seen: Callable[[], bool]) -> int | None:
        """Waits until something is seen of the command, or it ends: its status then."""
        until = time.monotonic() + self.timeout
        while (ended := _STATUS.search(self._printed)) is None:
            if is_seen():
                return None
            if time.monotonic() > until:
                raise self._failed(f"is not there yet after {self.timeout:.0f} s")
            # Files don't say that they are written.
            if select.select([self._terminal], [], [], 0.02)[0]:
                try:
                    self._printed += os.read(self._terminal, 1 << 16)
                except OSError:
                    raise self._failed("has ended the shell") from None
        return int(ended[1])

    def _failed(self, how: str) -> CommandFailed:
        jobs = "".join(log.read_text(errors="replace") for log in self.jobs)
        return CommandFailed(f"{self._command!r} {how}\n{self.output}{jobs}")

    def _size(self, name: str | Path) -> int:
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            return 0
