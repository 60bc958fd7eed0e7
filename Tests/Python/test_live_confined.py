"""A bus that is confined as its unit says, `RestrictSUIDSGID=`: nobody in it may set a set-group-ID bit."""

from __future__ import annotations

import platform
import shutil
import signal
import sys
import tempfile
import unittest
from pathlib import Path

from camerabus import Client
from live import RUNTIME_DIR, TIMEOUT
from with_bus import start_service

# What systemd's filter of system calls does: EPERM for a mode with S_ISUID or S_ISGID. Their numbers: chmod, fchmod,
# fchmodat and fchmodat2, each with the argument that has the mode.
CONFINE = """
import ctypes, os, struct, sys
calls = {"x86_64": ((90, 1), (91, 1), (268, 2), (452, 2)), "aarch64": ((52, 1), (53, 2), (452, 2))}[sys.argv[1]]
program = []
for number, argument in calls:
    program += [
        (0x20, 0, 0, 0), (0x15, 0, 3, number),  # the number of the call
        (0x20, 0, 0, 16 + 8 * argument), (0x45, 0, 1, 0o6000), (0x06, 0, 0, 0x00050001),  # EPERM
    ]
program.append((0x06, 0, 0, 0x7FFF0000))  # allowed
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@unittest.skipUnless(RUNTIME_DIR, "no bus is named by $CAMERABUS_RUNTIME_DIR")
@unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "the numbers of this machine's calls are not known")
class Confined(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = shutil.which("camerabusd")
        if self.daemon is None:
            self.skipTest("camerabusd is not in the PATH")
        folder = tempfile.TemporaryDirectory(prefix="camerabus-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.library = self.folder / "state" / "library"
        self.configuration, self.log = self.folder / "camerabus.toml", self.folder / "log"

    def start(self, shared: bool) -> None:
        self.configuration.write_text(f"[library]\nshared = {str(shared).lower()}\n[devices]\nvirtual = 1\n")
        command: list[str | Path] = [
            sys.executable, "-c", CONFINE, platform.machine(), str(self.daemon), "--config", self.configuration,
            "--runtime-dir", self.folder / "bus", "--state-dir", self.folder / "state", "--no-hardware",
        ]  # fmt: skip
        with self.log.open("w") as log:
            bus = start_service(command, self.folder, log.fileno())
        if bus is None:
            self.fail(self.log.read_text())
        self.bus = bus
        self.addCleanup(self.bus.wait, TIMEOUT)
        self.addCleanup(self.bus.kill)

    def test_a_library_that_passes_its_group_on_is_recorded_into(self) -> None:
        for shared, mode in ((False, 0o700), (True, 0o750)):
            with self.subTest(shared=shared):
                self.library.mkdir(parents=True)
                self.library.chmod(0o2777)
                self.start(shared)
                with Client(self.folder / "bus", timeout=TIMEOUT) as client:
                    client.capture_photo("cam0", deliver=["library"])
                    with client.record("cam0") as movie:
                        pass
                self.assertTrue(Path(movie.path).is_relative_to(self.library))
                folders = [self.library, *(path for path in self.library.rglob("*") if path.is_dir())]
                self.assertGreater(len(folders), 2)
                self.assertEqual({path.stat().st_mode & 0o777 for path in folders}, {mode}, self.log.read_text())
                self.bus.send_signal(signal.SIGTERM)
                self.assertEqual(self.bus.wait(TIMEOUT), 0, self.log.read_text())
                shutil.rmtree(self.library)
