"""Takes on a real bus, in Python and on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import camerabus
from camerabus import AsyncClient, Take
from live import LiveTestCase, RUNTIME_DIR, TIMEOUT


class Takes(LiveTestCase):
    def setUp(self) -> None:
        super().setUp()
        if "takes" not in self.client.hello.features:
            self.skipTest("the bus makes no takes")
        folder = tempfile.TemporaryDirectory(prefix="camerabus-takes-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        microphones = self.client.devices("audio")
        self.mic = microphones[0].id if microphones else None
        self.addCleanup(self.discard_all)

    def discard_all(self) -> None:
        for take in self.client.takes():
            self.client.find_take(take.id).discard()

    def record(self, take: Take, milliseconds: float) -> None:
        with take.record() as segment:
            for state in segment.states(TIMEOUT):
                if state.recordedDuration >= milliseconds:
                    break
        self.assertTrue(segment.ending.success, segment.ending)

    def probe(self, path: Path | str) -> tuple[list[str], float]:
        """The codecs of what plays in it, and its length in milliseconds."""
        command = ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(path)]
        probed = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((probed.returncode, probed.stderr), (0, ""))
        found = json.loads(probed.stdout)
        codecs = [stream["codec_name"] for stream in found["streams"] if not stream["disposition"]["attached_pic"]]
        return codecs, float(found["format"]["duration"]) * 1000

    def test_segments_are_joined_without_the_one_that_was_deleted(self) -> None:
        path = self.folder / "take.mp4"
        with self.client.take(self.first, microphone=self.mic, min_duration=60) as take:
            for _ in range(3):
                self.record(take, 300)
            self.assertEqual([state.id for state in self.client.takes()], [take.id])
            files = [Path(segment.path) for segment in take.segments]
            self.assertEqual([file.exists() for file in files], [True] * 3)
            total = take.state.total
            gone = take.segments[1]
            self.assertIn(gone.path, take.delete(gone))
            self.assertEqual(take.state.total, total - gone.duration)
            left = take.state.total
            finished = take.finish(path=path)
        self.assertEqual((finished.take, finished.path, finished.encoded), (take.id, str(path), False))
        codecs, milliseconds = self.probe(path)
        self.assertEqual(codecs, ["h264"] + ["aac"] * (self.mic is not None))
        # A frame more or less at the end of each segment.
        self.assertAlmostEqual(milliseconds, left, delta=150)
        self.assertAlmostEqual(finished.duration, milliseconds, delta=150)
        self.assertEqual(Path(finished.cover or "").read_bytes()[:2], b"\xff\xd8")
        self.assertEqual((self.client.takes(), [file for file in files if file.exists()]), ([], []))
        entry = self.client.library_entry(take.id)
        self.assertEqual((entry.kind, entry.path, entry.state), ("take", str(path), "finished"))
        with self.assertRaises(camerabus.TakeNotFound):
            take.status()

    def test_it_ends_by_itself_when_it_is_full(self) -> None:
        with self.client.take(self.first, max_duration=3) as take:
            ending = take.record().wait(TIMEOUT)
            self.assertEqual((ending.reason, ending.success), ("maximumDurationReached", True))
            self.assertEqual((take.pause().reason, take.state.remaining), ("maximumDurationReached", 0))
            with self.assertRaises(camerabus.LimitExceeded):
                take.record()
            take.delete(take.segments[0])
            with self.assertRaises(camerabus.NotRecording):
                take.finish()
            with take.record():
                with self.assertRaises(camerabus.RecordingInProgress) as caught:
                    take.finish()
                self.assertEqual(caught.exception.take, take.id)
            path = Path(take.segments[0].path)
            self.assertTrue(path.exists())
            self.assertIn(str(path), take.discard())
            self.assertFalse(path.exists())

    def test_asyncio(self) -> None:
        async def make() -> camerabus.FinishedTake:
            async with AsyncClient(RUNTIME_DIR) as client, client.take(self.first) as take:
                async with take.record() as segment:
                    async for state in segment.states(TIMEOUT):
                        if state.frames > 5:
                            break
                async for told in take.states(TIMEOUT):
                    if told.segments:
                        break
                return await take.finish(path=self.folder / "a.mp4")

        self.assertEqual(self.probe(asyncio.run(make()).path)[0], ["h264"])

    def needs_program(self) -> None:
        if shutil.which("camerabus") is None:
            self.skipTest("camerabus is not in the PATH")

    def command(self, *arguments: str) -> str:
        result = subprocess.run(["camerabus", "take", *arguments], capture_output=True, text=True, timeout=2 * TIMEOUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_step_by_step_in_a_script(self) -> None:
        self.needs_program()
        id = self.command("create", self.first, "--name", "steps", "--max", "60")
        for _ in range(2):
            segment = self.command("record", id)
            self.command("pause", id)
        self.assertIn(segment, self.command("show", id))
        self.assertEqual(self.command("list", "--ids"), id)
        self.assertIn("steps-2.mp4", self.command("delete", id))
        path = self.folder / "a.mp4"
        self.assertEqual(self.command("finish", id, "-o", str(path)), str(path))
        self.assertEqual(self.probe(path)[0], ["h264"])
        self.assertEqual(self.command("list", "--ids"), "")

    def test_at_a_terminal(self) -> None:
        self.needs_program()
        path = self.folder / "typed.mp4"
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        with subprocess.Popen(
            ["camerabus", "take", self.first, "-o", str(path)], stdin=follower, stdout=subprocess.PIPE, stderr=follower,
            text=True,
        ) as program:
            os.close(follower)
            self.addCleanup(program.kill)
            self.wait_for(leader, "Enter starts and ends a segment")
            os.write(leader, b"\n")
            self.wait_for(leader, "segment 1 ")
            os.write(leader, b"\n")
            self.wait_for(leader, " in all.")
            os.write(leader, b"nonsense\n")
            self.wait_for(leader, "Enter starts and ends a segment")
            os.write(leader, b"\nd\n\nd\n")
            self.wait_for(leader, "is being recorded")
            self.wait_for(leader, "The segment is deleted")
            os.write(leader, b"f\n")
            output, _ = program.communicate(timeout=2 * TIMEOUT)
            self.assertEqual((program.returncode, output), (0, f"{path}\n"))
        self.assertEqual(self.probe(path)[0], ["h264"])

    def wait_for(self, terminal: int, text: str) -> None:
        """Reads what stands on a terminal until it says that."""
        until, seen = time.monotonic() + TIMEOUT, b""
        while text.encode() not in seen:
            readable, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
            self.assertTrue(readable, f"{text!r} did not come after {seen!r}")
            # One by one, so that what comes behind is left for whoever waits for it next.
            seen += os.read(terminal, 1)
