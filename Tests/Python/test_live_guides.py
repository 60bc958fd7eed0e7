"""The examples of README.md, of the Python guide and of deploy/guides work.

Each text has a folder and a bus of its own. The bus has four virtual cameras. A text that names the gateway's addresses
has a gateway, too. Tests/Python/guides.py describes how blocks run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Callable, Mapping

import zmq

import guides
import terminal
import with_bus
from camerabus import Client
from live import RUNTIME_DIR, TIMEOUT
from ports import free_port
from terminal import CommandFailed, Shell

# How a file is named that is made.
_RESULT = re.compile(r"""(?:-o |>|path="|save\(")'?([\w%-]+\.(?:jpg|png|mp4|mkv|mov|wav|bgr))""")
# What the texts say to a reader, and what does the same here, sooner or with this bus.
HERE = {"--seconds 10": "--seconds 1", "--ms 3000": "--ms 300"}
# The runtime directory, and the gateway's addresses, in the texts.
BUS = "/tmp/test-bus"
PAGE, GATEWAY = "http://127.0.0.1:7380", "tcp://rig:7350"
RUN = ("sh", "console", "python")


@unittest.skipUnless(RUNTIME_DIR and shutil.which("camerabusd"), "no bus is named by $CAMERABUS_RUNTIME_DIR")
@unittest.skipUnless(terminal.is_there(), "there are no terminals")
class LiveGuides(unittest.TestCase):
    def follow(self, path: Path) -> None:
        """Runs the text's blocks in order, as a reader would."""
        blocks = [block for block in guides.blocks(path) if block.whole.excuse is None and block.language in RUN]
        if not blocks:
            return
        needs_gateway = any(address in block.text for address in (PAGE, GATEWAY) for block in blocks)
        if needs_gateway and not (shutil.which("camerabus-gateway") and zmq.has("curve")):
            self.skipTest("there is no camerabus-gateway in the PATH, or libzmq was built without CURVE")
        daemon = shutil.which("camerabusd")
        assert daemon is not None
        missing: list[str] = []
        with tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp") as folder:
            directory, scratch = Path(folder), Path(folder) / "scratch"
            scratch.mkdir()
            places = {**HERE, BUS: str(directory / "bus")}
            with open(directory / "log", "w") as log:
                bus = with_bus.start(Path(daemon).parent, directory, log.fileno(), virtual=4)
            self.assertIsNotNone(bus)
            assert bus is not None
            self.addCleanup(self.end, bus)
            try:
                if needs_gateway:
                    places |= self.open_door(directory, scratch)
                for block in blocks:
                    if block.whole.missing is not None:
                        missing.append(block.whole.missing)
                        continue
                    self.await_devices(directory)
                    missing += self.follow_block(block, directory, scratch, places)
            finally:
                self.doCleanups()
            self.assertEqual([*with_bus.left_sockets(directory), *with_bus.left_processes(directory)], [])
        if missing:
            names = ", ".join(dict.fromkeys(missing))
            raise unittest.SkipTest(f"a part of {path.relative_to(guides.ROOT)}, for want of {names}")

    def await_devices(self, directory: Path) -> None:
        """A reader takes his time until one is back that was unplugged."""
        topic = "state/device/"
        with Client(directory / "bus", timeout=TIMEOUT) as client, client.mirror(topic) as mirror:
            mirror.wait(lambda state: all(device["connected"] for device in state.values()), TIMEOUT)

    def follow_block(self, block: guides.Block, directory: Path, scratch: Path, places: Mapping[str, str]) -> list[str]:
        """Answers what is missing for some of its commands."""
        package = str(guides.ROOT / "Protocol" / "python")
        environment = {**os.environ, "CAMERABUS_RUNTIME_DIR": str(directory / "bus"), "PYTHONPATH": package}
        environment.pop("CAMERABUS_LOCK", None)
        if block.whole.has_own_folder:
            scratch = directory / f"line-{block.line}"
            scratch.mkdir()
        missing, told, output = [], "", ""
        with Shell(scratch, environment, 2 * TIMEOUT) as shell:
            try:
                if block.language == "python":
                    pieces = [block.whole]
                else:
                    pieces = block.commands()
                    for command in block.whole.before:
                        shell.run(command)
                for piece in pieces:
                    if piece.excuse is not None:
                        continue
                    if piece.missing is not None:
                        missing.append(piece.missing)
                        continue
                    text = piece.text
                    for place, here in places.items():
                        text = text.replace(place, here)
                    self.follow_piece(piece, text, shell, directory)
                    told += f"{text}\n"
                    output += shell.output
                shell.end_jobs()
            except CommandFailed as error:
                raise self.failureException(f"{block}: {error}") from None
        self.check(block, told, scratch, output)
        return missing

    def follow_piece(self, piece: guides.Piece, text: str, shell: Shell, directory: Path) -> None:
        if piece.language == "python":
            program = directory / "program.py"
            program.write_text("\n".join([*piece.before, text]))
            text = shlex.join([sys.executable, str(program)])
        else:
            for command in piece.before:
                shell.run(command)
        if piece.runs_until_interrupted:
            shell.interrupt(text, piece.writes)
        elif text.endswith("&"):
            shell.start(text, directory / f"job-{len(shell.jobs)}")
        elif shell.jobs:
            shell.run_when_it_can(text)
        else:
            shell.run(text)
            self.assertNotIn("Traceback", shell.output, text)

    def end(self, service: subprocess.Popen[bytes]) -> None:
        service.send_signal(signal.SIGTERM)
        try:
            service.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            service.kill()
            raise

    def open_door(self, directory: Path, scratch: Path) -> dict[str, str]:
        """Starts the gateway that the texts call rig. Returns what stands in the texts, and what replaces it here."""
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
            PAGE: f"http://127.0.0.1:{web}", GATEWAY: f"tcp://127.0.0.1:{port}",
            "sudo camerabus": f"CAMERABUS_KEYS='{keys}' camerabus",
        }  # fmt: skip

    def check(self, block: guides.Block, told: str, scratch: Path, output: str) -> None:
        """What a block is to bring about."""
        # Files that it names as its results are there, one at least of several, and are not empty.
        names = _RESULT.findall(told) + [name for name in ("belt.mkv", "small.mp4", "voice.flac") if name in told]
        for name in names:
            stem, ending = re.sub(r"%\d*d", "*", name).split(".")
            found = [*scratch.glob(f"{stem}.{ending}"), *scratch.glob(f"{stem}-*.{ending}")]
            self.assertTrue(found, f"{block}: {name}")
            for path in found:
                self.assertGreater(path.stat().st_size, 100, f"{block}: {path.name}")
        if "--live" in told:
            self.assertGreater((scratch / "a.mov").stat().st_size, 100)
        if "ls run-" in told:
            self.assertEqual(len(list(scratch.glob("run-*.mkv"))), 4)
        if "camerabus name cam3" in told:
            for name in ("north", "east", "south", "west"):
                self.assertIn(name, output)

    def test_replaced_words_are_in_a_text(self) -> None:
        texts = "".join(path.read_text() for path in guides.texts())
        for place in (*HERE, BUS, PAGE, GATEWAY):
            self.assertTrue(place in texts, place)


def _test(path: Path) -> Callable[[LiveGuides], None]:
    return lambda self: self.follow(path)


# A test for each text: test_readme, test_python, and those of the guides (test_rig for rig.md).
for _path in guides.texts():
    _name = {guides.ROOT / "README.md": "readme", guides.PYTHON: "python"}.get(_path, _path.stem)
    if _path != guides.FOLDER / "README.md":
        setattr(LiveGuides, f"test_{_name}", _test(_path))


if __name__ == "__main__":
    unittest.main()
