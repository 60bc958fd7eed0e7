"""The units are valid, confined, and agree with one another."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from stand_in import ROOT, has

DEPLOY = ROOT / "deploy"
UNITS = sorted([*DEPLOY.glob("*.service"), *DEPLOY.glob("*.socket")])
RULES = sorted(DEPLOY.glob("*.rules"))
# How exposed a service may be by systemd's scale, from 0, locked up, to 10; in tenths.
THRESHOLD = 24


class Unit(configparser.RawConfigParser):
    """A unit's settings, each with all of its values."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#", ";"), interpolation=None)
        self.optionxform = str  # type: ignore[assignment, method-assign]
        self.text = path.read_text()
        self.read_string(self.text)

    def all(self, key: str) -> list[str]:
        return re.findall(rf"^{key}=(.*)$", self.text, re.MULTILINE)


class Units(unittest.TestCase):
    def installed(self) -> list[Path]:
        """The units as make install writes them, with programs that are there."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        units = []
        for path in UNITS:
            text = re.sub(r"@bindir@/[a-z-]+", "/bin/true", path.read_text()).replace("@sysconfdir@", "/etc")
            self.assertNotIn(
                "@", re.sub(r"@[a-z-]+$|@[a-z]+\b", "", "".join(re.findall(r"^Exec.*$", text, re.MULTILINE)))
            )
            units.append(Path(folder.name) / path.name)
            units[-1].write_text(text)
        return units

    @unittest.skipIf(has("systemd-analyze"), "no systemd-analyze")
    def test_systemd_takes_them(self) -> None:
        result = subprocess.run(
            ["systemd-analyze", "--man=no", "verify", *self.installed()], capture_output=True, text=True
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    @unittest.skipIf(has("systemd-analyze"), "no systemd-analyze")
    def test_services_are_confined(self) -> None:
        for unit in self.installed():
            if unit.suffix == ".service":
                with self.subTest(unit.name):
                    result = subprocess.run(
                        ["systemd-analyze", "security", "--no-pager", "--offline=true",
                         f"--threshold={THRESHOLD}", unit],
                        capture_output=True, text=True,
                    )  # fmt: skip
                    self.assertEqual(result.returncode, 0, result.stdout[-400:] + result.stderr)

    def test_services_get_no_device_but_cameras_and_microphones(self) -> None:
        for path in UNITS:
            if path.suffix == ".service":
                unit = Unit(path)
                self.assertEqual(unit.all("DevicePolicy"), ["closed"], path.name)
                allowed = {value.split()[0] for value in unit.all("DeviceAllow")}
                wanted = {"char-video4linux", "char-media", "char-alsa"} if path.stem == "camerabusd" else set()
                self.assertEqual(allowed, wanted, path.name)

    def test_the_sockets_are_where_the_service_looks_for_them(self) -> None:
        socket, service = Unit(DEPLOY / "camerabusd.socket"), Unit(DEPLOY / "camerabusd.service")
        directory = re.findall(r"--runtime-dir (\S+)", service["Service"]["ExecStart"])
        self.assertEqual(socket.all("ListenStream"), [f"{directory[0]}/command.sock", f"{directory[0]}/events.sock"])
        self.assertEqual(directory, [f"%t/{service['Service']['RuntimeDirectory']}"])
        # Else they would go with the service that they start.
        self.assertEqual(service["Service"]["RuntimeDirectoryPreserve"], "yes")
        self.assertIn("camerabusd.socket", service["Unit"]["Requires"])
        self.assertEqual(
            (socket["Socket"]["SocketUser"], socket["Socket"]["SocketGroup"]),
            (service["Service"]["User"], service["Service"]["Group"]),
        )

    def test_the_gateway_is_not_started_again_with_what_its_configuration_cant_be(self) -> None:
        self.assertEqual(
            Unit(DEPLOY / "camerabus-gateway.service").all("RestartPreventExitStatus"), [str(os.EX_CONFIG)]
        )

    def test_the_folder_of_the_sockets_is_made_before_them(self) -> None:
        socket = Unit(DEPLOY / "camerabusd.socket")
        lines = [line.split() for line in (DEPLOY / "tmpfiles.conf").read_text().splitlines() if line.startswith("d ")]
        self.assertIn(
            ["d", "/run/camerabus", "0750", socket["Socket"]["SocketUser"], socket["Socket"]["SocketGroup"], "-"], lines
        )

    def test_all_users_are_made(self) -> None:
        lines = [
            line.split()
            for line in (DEPLOY / "sysusers.conf").read_text().splitlines()
            if line and not line.startswith("#")
        ]
        users = {line[1] for line in lines if line[0] == "u"}
        members = {(line[1], line[2]) for line in lines if line[0] == "m"}
        for path in UNITS:
            if path.suffix == ".service":
                service = Unit(path)["Service"]
                self.assertIn(service["User"], users)
                for group in service["SupplementaryGroups"].split():
                    self.assertIn((service["User"], group), members)

    @unittest.skipIf(has("systemd-sysusers", "systemd-tmpfiles") or os.geteuid() != 0, "no systemd, or not root")
    def test_systemd_makes_users_and_folders_of_them(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "etc").mkdir()
            (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
            (root / "etc" / "group").write_text("root:x:0:\nvideo:x:44:\naudio:x:29:\n")
            subprocess.run(
                ["systemd-sysusers", f"--root={root}", DEPLOY / "sysusers.conf"], check=True, capture_output=True
            )
            group = {
                line.split(":")[0]: line.split(":")[3] for line in (root / "etc" / "group").read_text().splitlines()
            }
            self.assertEqual(
                (group["video"], group["audio"], group["camerabus"]), ("camerabus", "camerabus", "camerabus-gateway")
            )
            subprocess.run(
                ["systemd-tmpfiles", "--create", f"--root={root}", DEPLOY / "tmpfiles.conf"], check=True,
                capture_output=True,
            )
            made = (root / "run" / "camerabus").stat()
            ids = {
                line.split(":")[0]: int(line.split(":")[2])
                for line in (root / "etc" / "passwd").read_text().splitlines()
            }
            self.assertEqual((made.st_mode & 0o7777, made.st_uid), (0o750, ids["camerabus"]))

    def test_udev_rules_are_assignments_of_what_they_match(self) -> None:
        part = r'[A-Z]+(?:\{[^}]+\})?(?:==|!=|=|\+=|-=)"[^"]*"'
        for rules in RULES:
            for line in rules.read_text().splitlines():
                if line and not line.startswith("#"):
                    self.assertRegex(line, rf"^{part}(?:, {part})*$")

    @unittest.skipIf(has("udevadm"), "no udevadm")
    def test_udev_takes_the_rules(self) -> None:
        command = ["udevadm", "verify", "--resolve-names=never", *map(str, RULES)]
        result = subprocess.run(command, capture_output=True, text=True)
        if "Unknown command verb" in result.stderr:
            self.skipTest("this udevadm checks no rules; systemd 254 does")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_rule_that_closes_the_way_around_the_bus_does_so_for_every_camera_and_microphone(self) -> None:
        rules = (DEPLOY / "71-camerabus-only.rules").read_text()
        # Between the rules that tag a device for the login, and those that give it to the login.
        self.assertTrue("70-uaccess.rules" < "71-camerabus-only.rules" < "73-seat-late.rules")
        closed = re.findall(
            r'^SUBSYSTEM=="([a-z0-9]+)".*OWNER="camerabus", MODE="0600", TAG-="uaccess"$', rules, re.MULTILINE
        )
        self.assertEqual(closed, ["video4linux", "media", "sound"])
        self.assertEqual(Unit(DEPLOY / "camerabusd.service").all("User"), ["camerabus"])


if __name__ == "__main__":
    unittest.main()
