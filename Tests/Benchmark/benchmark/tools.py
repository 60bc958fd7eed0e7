# SPDX-License-Identifier: Apache-2.0
"""What the benchmark needs beside the bus: its C programs, and an environment of Python with the peers."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parents[1]
PROGRAMS = HERE / "programs"
PEERS = ("pyzmq", "imagezmq", "netgear")


class Tools:
    """Made once in .build/benchmark, and kept there."""

    def __init__(self, directory: Path, wants_peers: bool) -> None:
        self.directory = directory
        #: Lines about what was left out, and why.
        self.left_out: list[str] = []
        #: The Python that all readers in Python run in, ours and theirs.
        self.python = Path(sys.executable)
        self.peers: tuple[str, ...] = ()
        self.versions: dict[str, str] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.has_zmq = self._compile("zmq_frames", "-lzmq", "-lturbojpeg") and self._compile("zmq_requests", "-lzmq")
        self.has_ring = self._compile("ring_frames")
        if wants_peers:
            self._install()

    def program(self, name: str) -> Path:
        return self.directory / name

    def script(self, name: str) -> list[object]:
        return [self.python, PROGRAMS / f"{name}.py"]

    def _compile(self, name: str, *options: str, suffix: str = "") -> bool:
        try:
            subprocess.run(
                ["cc", "-O2", "-o", self.program(name + suffix), PROGRAMS / f"{name}.c", *options],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            return True
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", None) or str(error)
            self.left_out.append(f"{name}: it can't be compiled: {why.strip().splitlines()[0]}")
            return False

    def compile_library(self, name: str) -> Path | None:
        """A shared library for LD_PRELOAD."""
        return self.directory / f"{name}.so" if self._compile(name, "-shared", "-fPIC", "-ldl", suffix=".so") else None

    def _install(self) -> None:
        wanted = (HERE / "requirements.txt").read_bytes()
        environment = self.directory / "peers"
        python = environment / "bin/python"
        stamp = environment / "installed"
        digest = hashlib.sha256(wanted + sys.version.encode()).hexdigest()
        if not stamp.exists() or stamp.read_text() != digest:
            print("installing imagezmq, VidGear and pyzmq into .build/benchmark", file=sys.stderr)
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True, capture_output=True)
                subprocess.run(
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "-r", HERE / "requirements.txt"],
                    check=True, capture_output=True, timeout=300,
                )  # fmt: skip
                stamp.write_text(digest)
            except (OSError, subprocess.SubprocessError) as error:
                output = (getattr(error, "stderr", None) or getattr(error, "output", None) or b"").decode(errors="replace")
                lines = [line for line in output.splitlines() if line.strip()]
                why = next((line for line in lines if line.startswith(("ERROR", "Error"))), lines[-1] if lines else str(error))
                self.left_out.append(f"imagezmq, VidGear, pyzmq: they can't be installed: {why.strip()[:160]}")
                self.left_out.append("    (they need the network, and on Debian python3-venv)")
                return
        self.python = python
        self.peers = PEERS
        names = subprocess.run(
            [python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"], capture_output=True, check=True
        ).stdout
        self.versions = {
            package["name"]: package["version"]
            for package in json.loads(names)
            if package["name"] in ("imagezmq", "vidgear", "pyzmq", "numpy")
        }

    @property
    def has_numpy(self) -> bool:
        return subprocess.run([self.python, "-c", "import numpy, zmq"], capture_output=True).returncode == 0
