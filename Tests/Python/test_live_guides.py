"""The guides' commands and programs do what they are there for, each guide's in its own folder, with a bus of four virtual cameras."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import zmq

import guides
import with_bus
from live import RUNTIME_DIR, TIMEOUT
from ports import free_port

ROOT = guides.FOLDER.parents[1]


@unittest.skipUnless(RUNTIME_DIR and shutil.which("camerabusd"), "no bus is named by $CAMERABUS_RUNTIME_DIR")
class LiveGuides(unittest.TestCase):
    def follow(self, name: str, gateway: bool = False) -> None:
        """Runs what is to be run, one after the other, as a reader would."""
        daemon = shutil.which("camerabusd")
        assert daemon is not None
        ran, missing = 0, []
        # What is otherwise here than for the reader.
        places: dict[str, str] = {}
        with tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp") as folder:
            directory, scratch = Path(folder), Path(folder) / "scratch"
            scratch.mkdir()
            with open(directory / "log", "w") as log:
                bus = with_bus.start(Path(daemon).parent, directory, log.fileno(), virtual=4)
            self.assertIsNotNone(bus)
            assert bus is not None
            self.addCleanup(self.end, bus)
            if gateway:
                places = self.open_door(directory, scratch)
            try:
                package = str(ROOT / "Protocol" / "python")
                environment = {**os.environ, "CAMERABUS_RUNTIME_DIR": str(directory / "bus"), "PYTHONPATH": package}
                environment.pop("CAMERABUS_LOCK", None)
                for block in guides.blocks(guides.FOLDER / name):
                    if block.excuse is not None or block.language not in ("sh", "python"):
                        continue
                    if block.missing is not None:
                        missing.append(block.missing)
                        continue
                    text = block.text
                    for place, here in places.items():
                        text = text.replace(place, here)
                    command = [sys.executable, "-"] if block.language == "python" else ["bash", "-euo", "pipefail", "-s"]
                    result = subprocess.run(
                        command, input=text, env=environment, cwd=scratch, capture_output=True, text=True, timeout=2 * TIMEOUT
                    )
                    ran += 1
                    self.assertEqual(result.returncode, 0, f"{block}\n{text}\n{result.stdout}\n{result.stderr}")
                    self.assertNotIn("Traceback", result.stderr, str(block))
                    self.check(block, scratch, result.stdout)
            finally:
                self.doCleanups()
        self.assertTrue(ran or missing)
        if missing:
            raise unittest.SkipTest(f"a part of {name}, for want of {', '.join(dict.fromkeys(missing))}")

    def end(self, service: subprocess.Popen[bytes]) -> None:
        service.send_signal(signal.SIGTERM)
        service.wait(TIMEOUT)

    def open_door(self, directory: Path, scratch: Path) -> dict[str, str]:
        """A gateway that the guide calls rig; answers what stands in the guide, and what it is here."""
        port, web, keys = free_port(), free_port(), directory / "keys"
        configuration = directory / "gateway.toml"
        configuration.write_text(
            f'[tcp]\nlisten = "tcp://127.0.0.1:{port}"\nkeys = "{keys}"\n[web]\nlisten = "127.0.0.1:{web}"\n'
        )
        with open(directory / "gateway.log", "w") as log:
            gateway = with_bus.start_service(
                ["camerabus-gateway", "--config", configuration, "--runtime-dir", directory / "bus"],
                directory, log.fileno(), {"STATE_DIRECTORY": str(directory)},
            )  # fmt: skip
        self.assertIsNotNone(gateway, (directory / "gateway.log").read_text())
        assert gateway is not None
        self.addCleanup(self.end, gateway)
        # What the guide brings from the one machine to the other.
        (scratch / "rig.pub").write_bytes((directory / "server.pub").read_bytes())
        return {
            "http://127.0.0.1:7380": f"http://127.0.0.1:{web}", "tcp://rig:7350": f"tcp://127.0.0.1:{port}", "sudo camerabus": f"CAMERABUS_KEYS='{keys}' camerabus",
        }  # fmt: skip

    def check(self, block: guides.Block, scratch: Path, output: str) -> None:
        """What a block is to bring about."""
        # Files that it names as its results are there, and are not empty.
        for name in ("which.jpg", "belt.mkv", "small.mp4", "voice.flac", "latest.jpg", "photo.jpg", "f-005.jpg", "distant.jpg", "now.jpg"):
            if name in block.text or (name == "f-005.jpg" and "f-%03d.jpg" in block.text):
                self.assertGreater((scratch / name).stat().st_size, 100, f"{block}: {name}")
        if "run-" in block.text:
            self.assertEqual(len(list(scratch.glob("run-*.mkv"))), 4)
        if "camerabus name cam3" in block.text:
            for name in ("north", "east", "south", "west"):
                self.assertIn(name, output)

    def test_rig(self) -> None:
        self.follow("rig.md")

    def test_opencv(self) -> None:
        self.follow("opencv.md")

    def test_imagezmq(self) -> None:
        self.follow("imagezmq.md")

    def test_avfoundation(self) -> None:
        self.follow("avfoundation.md")

    def test_recipes(self) -> None:
        self.follow("recipes.md")

    @unittest.skipUnless(zmq.has("curve"), "libzmq was built without CURVE")
    @unittest.skipUnless(shutil.which("camerabus-gateway"), "there is no camerabus-gateway in the PATH")
    def test_remote(self) -> None:
        self.follow("remote.md", gateway=True)

    def test_troubleshooting(self) -> None:
        self.follow("troubleshooting.md")

    @unittest.skipUnless(shutil.which("camerabus-gateway"), "there is no camerabus-gateway in the PATH")
    def test_web(self) -> None:
        self.follow("web.md", gateway=True)

    def test_every_guide_is_followed(self) -> None:
        tested = {name.removeprefix("test_") + ".md" for name in dir(self) if name.startswith("test_")}
        self.assertLessEqual({path.name for path in guides.guides()} - {"README.md"}, tested)


if __name__ == "__main__":
    unittest.main()
