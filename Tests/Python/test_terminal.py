"""The shell that follows the guides."""

from __future__ import annotations

import os
import signal
import tempfile
import unittest
from pathlib import Path

import terminal
from terminal import CommandFailed, Shell
from waiting import eventually, wait_for_ends

TIMEOUT = 30.0


@unittest.skipUnless(terminal.is_there(), "there are no terminals")
class Terminal(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.shell = self.open()

    def open(self) -> Shell:
        shell = Shell(self.folder, os.environ, TIMEOUT)
        self.addCleanup(shell.close)
        return shell

    def sleepers(self) -> list[int]:
        """The processes that sleep in the folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cwd").readlink() == self.folder and (path / "comm").read_text() == "sleep\n":
                    found.append(int(path.name))
            except OSError:
                pass
        return found

    def wait_for_sleeper(self) -> None:
        self.assertEqual(len(eventually(self.sleepers, TIMEOUT)), 1)

    def wait_for_no_sleeper(self) -> None:
        wait_for_ends(self.sleepers(), TIMEOUT)
        self.assertEqual(self.sleepers(), [])

    def test_what_one_command_sets_is_there_for_the_next(self) -> None:
        self.shell.run("id=$(echo 17)   # a comment")
        self.shell.run("echo $id; test -t 1")
        self.assertEqual(self.shell.output, "17\n")

    def test_a_command_of_several_lines_is_one(self) -> None:
        self.shell.run("for each in 1 2; do\n    echo $each |\n        cat\ndone")
        self.assertEqual(self.shell.output, "1\n2\n")

    def test_a_part_that_fails_is_told(self) -> None:
        for command in (
            "false", "echo told; false", "false | true", "for each in 1 2; do false; echo on; done", "echo $unknown",
            "unknown",
        ):
            with self.subTest(command), self.assertRaises(CommandFailed) as caught:
                self.open().run(command)
            self.assertIn(command, str(caught.exception))
            self.assertNotIn("\non\n", str(caught.exception))

    def test_what_goes_on_is_interrupted_when_it_has_said_something(self) -> None:
        self.shell.interrupt("sh -c 'echo here; exec sleep 1000' | cat")
        self.assertEqual(self.shell.output.strip(), "here")
        self.wait_for_no_sleeper()
        self.shell.run("echo there")
        self.assertEqual(self.shell.output, "there\n")

    def test_what_goes_on_is_interrupted_when_it_has_written_something(self) -> None:
        self.shell.interrupt("echo here; head -c 2000 /dev/zero >file; sleep 1000", writes="file")
        self.assertGreater((self.folder / "file").stat().st_size, 0)

    def test_ctrl_c_is_heard_where_the_tests_ignore_it(self) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        self.open().interrupt("echo here; sleep 1000")
        self.wait_for_no_sleeper()

    def test_what_ends_by_itself_needs_no_ctrl_c(self) -> None:
        for command in ("true", "false"):
            with self.subTest(command), self.assertRaisesRegex(CommandFailed, "has ended before"):
                self.open().interrupt(command)

    def test_what_fails_at_ctrl_c_is_told(self) -> None:
        with self.assertRaisesRegex(CommandFailed, "status 7"):
            self.shell.interrupt("bash -c 'trap \"exit 7\" INT; echo here; while :; do sleep 0.01; done'")

    def test_what_says_nothing_has_a_deadline(self) -> None:
        with Shell(self.folder, os.environ, TIMEOUT) as shell:
            shell.timeout = 0.3
            with self.assertRaisesRegex(CommandFailed, "not there yet"):
                shell.interrupt("sleep 1000")
        self.wait_for_no_sleeper()

    def test_the_history_of_whoever_runs_it_stays(self) -> None:
        with Shell(self.folder, {**os.environ, "HOME": str(self.folder)}, TIMEOUT) as shell:
            shell.run("echo here")
        self.assertEqual(list(self.folder.glob(".*")), [])

    def test_the_background_is_ended_by_ctrl_c(self) -> None:
        log = self.folder / "log"
        self.shell.start("echo here; exec sleep 1000 &", log)
        self.assertEqual(log.read_text(), "here\n")
        self.shell.run_when_it_can("echo once more >>count; test $(wc -l <count) = 3")
        self.wait_for_sleeper()
        self.shell.end_jobs()
        self.wait_for_no_sleeper()

    def test_what_still_runs_ends_with_the_shell(self) -> None:
        with Shell(self.folder, os.environ, TIMEOUT) as shell:
            shell.start("echo here; exec sleep 1000 &", self.folder / "log")
            self.wait_for_sleeper()
        self.wait_for_no_sleeper()


if __name__ == "__main__":
    unittest.main()
