"""The published examples as programs."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from contextlib import ExitStack
from pathlib import Path

import vectors
from camerabus import AsyncClient
from live import Image, LiveTestCase, TIMEOUT


class Programs(LiveTestCase):
    def test_asyncio(self) -> None:
        async def read(client: AsyncClient, device: str) -> int:
            return len(
                [
                    frame.sequence
                    async for frame in client.frames(device, rendition="gray:160x90", limit=5, timeout=TIMEOUT)
                ]
            )

        async def program() -> None:
            async with AsyncClient(timeout=TIMEOUT) as client, client.lock(self.first), client.mirror() as mirror:
                self.assertEqual(await asyncio.gather(*(read(client, name) for name in self.cameras[:2])), [5, 5])
                await client.set(self.first, brightness=0)
                topic = f"state/device/{self.first}/"
                await mirror.wait(lambda state: state[topic]["controls"]["brightness"] == 0, timeout=TIMEOUT)

        asyncio.run(program())

    def test_the_python_examples_run(self) -> None:
        arguments = {"state_mirror": ["1"], "control_changes": ["1"]}
        for path in self.examples():
            if path.stem in ("lock_end", "filter"):
                continue  # these go on until they are ended
            with self.subTest(path.name), tempfile.TemporaryDirectory() as directory:
                command = [sys.executable, str(path), *arguments.get(path.stem, [])]
                result = subprocess.run(
                    command, env=self.environment(), cwd=directory, capture_output=True, text=True, timeout=2 * TIMEOUT
                )
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(result.stdout)

    def test_programs_that_close_nothing_end(self) -> None:
        """Whatever the garbage collector finalizes first, and whatever is left when the interpreter ends."""
        frames = f"client.frames({self.first!r}, rendition='gray:160x90', timeout={TIMEOUT})"
        programs = {
            "a camera that is not there": f"c = VideoCapture(97); a = VideoCapture(0, timeout={TIMEOUT}); a.read()",
            "a capture": f"a = VideoCapture(0, timeout={TIMEOUT}); a.read()",
            "a capture in a cycle": f"a = VideoCapture(0, timeout={TIMEOUT}); a.read(); a.me = a; del a; gc.collect()",
            "captures in a cycle at the end": f"a = VideoCapture(0, timeout={TIMEOUT}); a.read(); a.me = a",
            "frames": f"client = Client(); frames = {frames}; next(frames)",
            "frames of a client that is gone": f"client = Client(); frames = {frames}; del client; next(frames)",
            "all in a cycle": f"""
                client = Client(); frames = {frames}; next(frames); all = [client, frames]; all.append(all)
                del client, frames, all; gc.collect()""",
            "all in a cycle at the end": f"""
                client = Client(); frames = {frames}; next(frames); all = [client, frames]; all.append(all)""",
            "many cycles": f"""
                for _ in range(20):
                    client = Client(); frames = {frames}; next(frames); client.all = [client, frames]""",
            "shared memory": f"client = Client(); frames = client.frames({self.first!r}, shared=True); next(frames)",
            "shared memory in a cycle": f"""
                client = Client(); frames = client.frames({self.first!r}, shared=True); next(frames)
                client.all = [client, frames]; del client, frames; gc.collect()""",
            "a mirror and a watch": """
                client = Client(); mirror = client.mirror(); watch = client.watch('state/'); next(watch)""",
            "a mirror in a cycle": """
                client = Client(); mirror = client.mirror(); client.all = [client, mirror]; del client, mirror""",
            "a lock": f"client = Client(); lock = client.lock({self.second!r}, lease=1, wait=20); lock.__enter__()",
            "a lock in a cycle": f"""
                client = Client(); lock = client.lock({self.second!r}, lease=1, wait=20); lock.__enter__()
                client.all = [client, lock]; del client, lock; gc.collect()""",
            "a loop in another thread": f"""
                def loop():
                    client = Client()
                    for frame in {frames}: seen.set()
                seen = threading.Event(); threading.Thread(target=loop, daemon=True).start(); seen.wait({TIMEOUT})""",
            "a loop that raised": f"""
                client = Client()
                try:
                    for frame in {frames}: raise ValueError
                except ValueError as error: kept = error""",
            "a client of asyncio": f"""
                async def run():
                    client = await AsyncClient().__aenter__()
                    async for frame in {frames}: return client
                kept = asyncio.run(run())""",
            "a client of asyncio in a cycle": f"""
                async def run():
                    client = await AsyncClient().__aenter__()
                    async for frame in {frames}:
                        client.all = [client, frame]; return
                asyncio.run(run()); gc.collect()""",
            "sys.exit in a loop": f"client = Client()\nfor frame in {frames}: sys.exit()",
        }
        imports = (
            "import asyncio, gc, sys, threading\nfrom camerabus import AsyncClient, Client\n"
            "from camerabus.video_capture import VideoCapture\n"
        )
        for name, program in programs.items():
            with self.subTest(name):
                command = [sys.executable, "-c", imports + textwrap.dedent(program) + "\nprint('done')"]
                result = subprocess.run(
                    command, env=self.environment(), capture_output=True, text=True, timeout=2 * TIMEOUT
                )
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_the_first_client_of_the_readme_runs(self) -> None:
        page = (vectors.PROTOCOL / "README.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        directory = Path(self.scratch())
        (directory / "first_client.py").write_text("".join(blocks))
        result = subprocess.run(
            [sys.executable, "first_client.py"], env=self.environment(), cwd=directory, capture_output=True, text=True,
            timeout=2 * TIMEOUT,
        )  # fmt: skip
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("state/device/cam0/ is streaming", result.stdout)
        for picture in [*(f"frame-{number}.jpg" for number in range(5)), "photo.jpg"]:
            self.assertEqual((directory / picture).read_bytes()[:2], b"\xff\xd8")

    def examples(self) -> list[Path]:
        paths = sorted((vectors.PROTOCOL / "python" / "examples").glob("*.py"))
        return [path for path in paths if path.stem != "pillow" or Image is not None]

    def example(self, path: Path, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-u", str(path), *arguments], env=self.environment(), cwd=self.scratch(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def scratch(self) -> str:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return directory.name

    def test_ctrl_c_ends_each_python_example_quietly(self) -> None:
        for path in self.examples():
            with self.subTest(path.name), ExitStack() as stack:
                # Some are too quick to be interrupted, unless they have to wait.
                if path.stem == "lock_and_configure":
                    stack.enter_context(self.client.lock(self.first))
                    process = self.example(path)
                    until = time.monotonic() + TIMEOUT
                    while not self.client.locks().waiting:
                        self.assertLess(time.monotonic(), until)
                elif path.stem in ("pillow", "photos"):
                    silent = stack.enter_context(self.client.create_source("silent", 640, 480, "gray"))
                    mirror = stack.enter_context(self.client.mirror(f"state/device/{silent.device}/"))
                    process = self.example(path, silent.device)
                    mirror.wait(lambda state: any(device["isStreaming"] for device in state.values()), TIMEOUT)
                else:
                    process = self.example(path)
                    assert process.stdout is not None
                    self.assertTrue(process.stdout.readline())
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=TIMEOUT)
                self.assertEqual(self.IGNORED.sub("", errors), "")
                self.assertEqual(process.returncode, 130)

    # A signal that comes while pyzmq frees a message: nothing of ours can catch it, and Python goes on with it.
    IGNORED = re.compile(
        r"(?:Traceback \(most recent call last\):\n(?:  .*\n)*KeyboardInterrupt:? ?\n)?"
        r"Exception ignored in: 'zmq\..*\nTraceback \(most recent call last\):\n(?:  .*\n)*KeyboardInterrupt:? ?\n"
    )

    def test_an_example_says_why_its_lock_ended(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only an administrator takes over")
        process = self.example(vectors.PROTOCOL / "python" / "examples" / "lock_end.py")
        assert process.stdout is not None
        self.assertIn("is ours", process.stdout.readline())
        with self.client.take_over(self.first):
            _, errors = process.communicate(timeout=TIMEOUT)
        self.assertRegex(errors, "^lockLost: takenOver by ")
        self.assertEqual(process.returncode, 1)

    @unittest.skipIf(shutil.which("camerabus") is None, "camerabus is not in the PATH")
    def test_a_program_within_camerabus_lock_joins_it(self) -> None:
        program = """if True:
            import sys
            from camerabus import CaptureError, Client
            with Client() as client:
                for devices in sys.argv[1:]:
                    try:
                        with client.lock(*devices.split("+")) as lock:
                            client.set(devices, brightness=0)
                            print("joined" if lock.joined else "own", lock.fence == client.device(devices).lock.fence)
                    except CaptureError as error:
                        print(error.reason)
        """
        both = f"{self.first}+{self.second}"
        command = ["camerabus", "lock", self.first, "--", sys.executable, "-c", program, self.first, self.second, both]
        result = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(
            (result.returncode, result.stdout.split("\n")[:-1]), (0, ["joined True", "own True", "lockRequired"]),
            result.stderr,
        )
        # So does the command line itself, which would else wait for its own parent.
        inner = ["camerabus", "lock", self.first, "--wait", "60", "--", "camerabus", "set", self.first, "brightness=0"]
        result = subprocess.run(
            ["camerabus", "lock", self.first, "--", *inner], env=self.environment(), capture_output=True, text=True,
            timeout=TIMEOUT,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        result = subprocess.run(
            ["camerabus", "lock", self.first, "--", "camerabus", "lock", self.first, self.second, "--", "true"],
            env=self.environment(), capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
        self.assertEqual((result.returncode, result.stderr[:13]), (1, "lockRequired:"))
        self.assertEqual([device.lock for device in self.without_lock(self.first, self.second)], [None, None])

    def test_the_shell_examples_run(self) -> None:
        if shutil.which("camerabus") is None or shutil.which("jq") is None:
            self.skipTest("camerabus or jq is not in the PATH")
        arguments = {
            "take": ["cam0", "2", "0.1"], "time-lapse": ["cam0", "0.2", "3"], "two-cameras": ["cam0", "cam1", "3"],
        }
        for path in sorted((vectors.PROTOCOL / "shell").iterdir()):
            with self.subTest(path.name), tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
                command = [str(path), *arguments.get(path.name, [])]
                if path.name == "watch-state":
                    # It goes on until it is told to stop: a change is what it is waited for with.
                    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
                    assert process.stdout is not None
                    stack.callback(process.stdout.close)
                    stack.callback(process.wait, TIMEOUT)
                    stack.callback(os.killpg, process.pid, signal.SIGTERM)
                    self.assertRegex(process.stdout.readline(), r"^(cam|mic)\d: ")
                    continue
                result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=2 * TIMEOUT)
                self.assertEqual(result.returncode, 0, result.stderr)
                pictures = sorted(Path(directory).glob("*.jpg"))
                if path.name in ("snapshot", "time-lapse", "two-cameras"):
                    self.assertTrue(pictures)
                    self.assertTrue(all(re.match(rb"\xff\xd8", picture.read_bytes()) for picture in pictures))
                else:
                    self.assertTrue(result.stdout)
