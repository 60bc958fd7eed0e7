"""Protocol/c/example.c as a program: compiled as its head says, and run against a bus."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import vectors
from live import LiveTestCase, TIMEOUT


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class CExample(LiveTestCase):
    program: str

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = f"{folder.name}/example"
        source = str(vectors.PROTOCOL / "c" / "example.c")
        for standard in ("c99", "gnu11"):
            flags = [f"-std={standard}", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
            subprocess.run(["cc", *flags, "-o", cls.program, source], check=True)

    def ring(self, device: str) -> str:
        return f"{self.client.runtime_dir}/media/{device}.ring"

    def run_to_end(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=2 * TIMEOUT)

    def start(self, device: str, rendition: str = "native") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [self.program, self.ring(device), rendition], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def line(self, process: subprocess.Popen[str], wanted: str) -> list[str]:
        """The words of the next line that has the one wanted."""
        assert process.stdout is not None
        while line := process.stdout.readline():
            if wanted in line:
                return line.split()
        self.fail(f"the example ended: {process.communicate()[1]}")

    def test_reads_so_many_frames(self) -> None:
        result = self.run_to_end(self.ring(self.first), "gray:64x36", "5")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertTrue(all(" 64x36, 2304 bytes, sum " in line for line in lines), lines)

    def test_goes_on_in_another_format_and_when_the_worker_was_killed(self) -> None:
        process = self.start(self.second)
        for chosen in [each for each in self.client.formats(self.second) if each.pixelFormat == "YUYV"][:2]:
            with self.client.lock(self.second):
                self.client.configure(self.second, activeFormat=chosen.id)
            stream = self.line(process, f" {chosen.width}x{chosen.height}, ")[0]
        worker = self.client.device(self.second).worker
        assert worker is not None and worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        while self.line(process, "bytes")[0] == stream:
            pass

    def test_of_h264_reads_from_a_key_frame_on_and_misses_none(self) -> None:
        formats = [each for each in self.client.formats(self.first) if each.pixelFormat == "H264"]
        if not formats:
            self.skipTest("the virtual cameras give no H.264")
        before = self.client.device(self.first).activeFormat
        with self.client.lock(self.first):
            self.client.configure(self.first, activeFormat=formats[0].id)
        try:
            result = self.run_to_end(self.ring(self.first), "native", "20")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            numbers = [int(line.split()[1].rstrip(":")) for line in result.stdout.splitlines()]
            self.assertEqual(len(numbers), 20)
            lost = int(result.stdout.splitlines()[-1].split()[-4])
            self.assertEqual(numbers[-1] - numbers[0] - 19, lost)
        finally:
            with self.client.lock(self.first):
                self.client.configure(self.first, activeFormat=before.id if before else None)

    def test_says_why_there_is_nothing(self) -> None:
        cases = {
            (f"{self.client.runtime_dir}/media/nocam.ring",): "No such file or directory",
            ("/tmp/" + "x" * 120,): "File name too long",
            (self.ring(self.first), "jpeg;q=0"): '"invalidParams"',
        }
        for arguments, why in cases.items():
            with self.subTest(arguments[-1][:20]):
                result = self.run_to_end(*arguments)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(why, result.stderr)


if __name__ == "__main__":
    unittest.main()
