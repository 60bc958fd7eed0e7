"""The package that `make deb` makes, and the wheel, of programs that stand in for the project's own."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from stand_in import DUMP, ROOT, has, make_programs, programs

DEBIAN = ROOT / "deploy" / "debian"
SCRIPTS = ["postinst", "prerm", "postrm"]


@unittest.skipIf(has("dpkg-deb", "dpkg-shlibdeps", "strip", "cc"), "no dpkg-dev, or no C compiler")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        make_programs(cls.folder / "bin", DUMP)
        cls.package = cls.make(cls.folder / "one")
        cls.root = cls.folder / "root"
        subprocess.run(["dpkg-deb", "--raw-extract", cls.package, cls.root], check=True)

    @classmethod
    def make(cls, directory: Path, **environment: str) -> Path:
        result = subprocess.run(
            [ROOT / "deploy" / "make-deb", cls.folder / "bin", directory],
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "DEBREVISION": "", **environment},
            capture_output=True, text=True,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return Path(result.stdout.strip())

    def control(self) -> dict[str, str]:
        text = (self.root / "DEBIAN" / "control").read_text()
        self.assertNotIn("@", text.replace("root@localhost", ""))
        return dict(re.findall(r"^([A-Z][A-Za-z-]+): (.*)$", text, re.MULTILINE))

    def files(self) -> list[str]:
        listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", self.package], check=True, capture_output=True).stdout
        names = subprocess.run(["tar", "-tf", "-"], input=listed, check=True, capture_output=True).stdout.decode()
        return names.splitlines()

    def test_it_says_what_it_is_and_needs(self) -> None:
        control = self.control()
        self.assertEqual((control["Package"], control["Version"]), ("camerabus", "1.2.3"))
        self.assertTrue(self.package.name.startswith("camerabus_1.2.3_"))
        self.assertRegex(control["Depends"], r"^libc6 \(>= [0-9.]+\), ")
        self.assertGreater(int(control["Installed-Size"]), 10)
        self.assertNotIn("Essential", control)
        self.assertRegex(control["Description"], r"^[a-z][^.]{20,78}$")
        # What it is does not depend on where it was made.
        self.assertEqual((self.root / "DEBIAN" / "control").read_text().count("\nDepends: "), 1)
        for needed in ["init-system-helpers", "procps", "systemd"]:
            self.assertIn(needed, control["Depends"])

    def test_everything_that_is_installed_is_in_it(self) -> None:
        files = self.files()
        for path in [
            *(f"./usr/bin/{name}" for name in programs()),
            "./etc/camerabus/camerabus.toml", "./usr/lib/systemd/system/camerabusd.service",
            "./usr/lib/systemd/system/camerabusd.socket", "./usr/lib/sysusers.d/camerabus.conf",
            "./usr/lib/tmpfiles.d/camerabus.conf", "./usr/lib/udev/rules.d/70-camerabus.rules",
            "./usr/share/man/man1/camerabus.1.gz", "./usr/share/man/man1/camerabus-thing.1.gz",
            "./usr/share/man/man8/camerabusd.8.gz", "./usr/share/man/man5/camerabus.toml.5.gz",
            "./usr/share/bash-completion/completions/camerabus", "./usr/share/zsh/vendor-completions/_camerabus",
            "./usr/share/fish/vendor_completions.d/camerabus.fish",
            "./usr/share/bash-completion/completions/camerabusd", "./usr/share/zsh/vendor-completions/_camerabusd",
            "./usr/share/bash-completion/completions/camerabus-gateway",
            "./usr/share/fish/vendor_completions.d/camerabus-gateway.fish", "./usr/share/doc/camerabus/guides/rig.md",
            "./usr/lib/python3/dist-packages/camerabus/client.py", "./usr/include/camerabus_ring.h",
            "./usr/share/doc/camerabus/copyright", "./usr/share/doc/camerabus/changelog.gz",
            "./usr/share/doc/camerabus/71-camerabus-only.rules",
        ]:  # fmt: skip
            self.assertIn(path, files)
        # Nothing in places that belong to the machine's administrator, or to nobody.
        for path in files:
            self.assertRegex(path, r"^\./(etc(/camerabus(/.*)?)?|usr(/.*)?)?/?$")
            self.assertNotIn("/usr/local", path)
            self.assertNotIn("__pycache__", path)

    def test_files_belong_to_root_and_nobody_else_may_write_them(self) -> None:
        listed = subprocess.run(
            ["dpkg-deb", "--contents", self.package], check=True, capture_output=True, text=True
        ).stdout
        for line in listed.splitlines():
            mode, owner, *_ = line.split()
            self.assertEqual(owner, "root/root", line)
            self.assertIn(mode, ["drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"], line)
            self.assertEqual(
                mode == "-rwxr-xr-x",
                bool(re.search(r"\./usr/bin/|/doc/camerabus/shell/[^/]+$", line)) and mode[0] == "-", line,
            )

    def test_sums_and_configuration_files_are_told(self) -> None:
        configuration = (self.root / "DEBIAN" / "conffiles").read_text().splitlines()
        self.assertEqual(
            configuration,
            sorted(f"/{path.relative_to(self.root)}" for path in (self.root / "etc").rglob("*") if path.is_file()),
        )
        sums = dict(
            reversed(line.split("  ", 1)) for line in (self.root / "DEBIAN" / "md5sums").read_text().splitlines()
        )
        there = {str(path.relative_to(self.root)) for path in (self.root / "usr").rglob("*") if path.is_file()}
        self.assertEqual(set(sums), there)
        for path, total in sums.items():
            self.assertEqual(hashlib.md5((self.root / path).read_bytes()).hexdigest(), total, path)

    def test_programs_are_stripped_and_units_name_them(self) -> None:
        for name in programs():
            self.assertNotIn(b".debug_info", (self.root / "usr" / "bin" / name).read_bytes())
        for unit in (self.root / "usr" / "lib" / "systemd" / "system").iterdir():
            for program in re.findall(r"^Exec\w+=(\S+)", unit.read_text(), re.MULTILINE):
                if program.startswith("/usr"):
                    self.assertTrue((self.root / program[1:]).exists(), f"{unit.name}: {program}")
            self.assertNotIn("@", "".join(re.findall(r"^Exec.*", unit.read_text(), re.MULTILINE)))

    def test_one_of_a_later_commit_is_newer(self) -> None:
        folder = self.folder / "revisions"
        folder.mkdir()
        environment = {
            name: value for name, value in os.environ.items() if name not in ("DEBREVISION", "SOURCE_DATE_EPOCH")
        }
        result = subprocess.run(
            [ROOT / "deploy" / "make-deb", self.folder / "bin", folder], env=environment, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        version = subprocess.run(
            ["dpkg-deb", "-f", result.stdout.strip(), "Version"], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.assertRegex(version, r"^1\.2\.3([~+]git\d{12}\.[0-9a-f]+)?$")
        # No commit is tagged with this version, which is still to come.
        self.assertNotIn("+", version)
        if "~" in version:
            for sign, other in [("gt", "1.2.2"), ("gt", "1.2.3~git202001010000.ffffffff"), ("lt", "1.2.3")]:
                subprocess.run(["dpkg", "--compare-versions", version, sign, other], check=True)

    def test_whoever_makes_it_is_named_as_he_is_called(self) -> None:
        folder = self.folder / "named"
        folder.mkdir()
        environment = {**os.environ, "DEBFULLNAME": "Smith & Sons / Ltd. \\", "DEBEMAIL": "s@example.org"}
        result = subprocess.run(
            [ROOT / "deploy" / "make-deb", self.folder / "bin", folder], env=environment, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        named = subprocess.run(
            ["dpkg-deb", "-f", result.stdout.strip(), "Maintainer"], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.assertEqual(named, "Smith & Sons / Ltd. \\ <s@example.org>")

    def test_what_is_made_of_the_same_is_the_same(self) -> None:
        again = self.make(self.folder / "two")
        self.assertEqual(self.package.read_bytes(), again.read_bytes())

    def test_a_program_with_a_library_that_is_not_debians_is_refused(self) -> None:
        folder = self.folder / "foreign"
        folder.mkdir()
        (folder / "swift.c").write_text("int foreign(void) { return 1; }\n")
        library = folder / "libswiftCore.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "swift.c"], check=True)
        link = ["-Wl,--no-as-needed", f"-L{folder}", "-lswiftCore"]
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        for options, why in [(link, "needs libswiftCore.so"), ([f"-Wl,-rpath,{folder}"], "folder of its own")]:
            make_programs(folder / "bin", DUMP, *options)
            result = subprocess.run(
                [ROOT / "deploy" / "make-deb", folder / "bin", folder], env=environment, capture_output=True, text=True
            )
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(why, result.stderr)
            self.assertEqual(list(folder.glob("*.deb")), [])

    def test_maintainer_scripts_are_plain_shell_that_stops_at_an_error(self) -> None:
        for name in SCRIPTS:
            script = self.root / "DEBIAN" / name
            self.assertEqual(script.stat().st_mode & 0o777, 0o755)
            text = script.read_text()
            self.assertTrue(text.startswith("#!/bin/sh\n"))
            self.assertIn("\nset -e\n", text)
            subprocess.run(["sh", "-n", script], check=True)
            # Units are started and enabled by what heeds policy-rc.d and the administrator.
            self.assertNotRegex(text, r"systemctl (?!--system daemon-reload)")


class Root:
    """A bare machine to run maintainer scripts in: a shell, and tools that only write down how they were called."""

    TOOLS = [
        "systemd-sysusers", "systemd-tmpfiles", "deb-systemd-helper", "deb-systemd-invoke", "systemctl", "udevadm",
        "py3compile", "py3clean", "chown",
    ]

    def __init__(self, path: Path, has_systemd: bool = True) -> None:
        self.path = path
        for name in [
            "bin", "tmp", "etc/camerabus", "var/lib/camerabus/library/2026-11-22", "usr/lib/systemd/system", "run",
            "dev",
        ]:
            (path / name).mkdir(parents=True)
        (path / "dev/null").touch()
        if has_systemd:
            (path / "run/systemd/system").mkdir(parents=True)
        shutil.copy("/bin/busybox", path / "bin/busybox")
        for name in ["sh", "rm", "rmdir", "find", "echo", "cat", "command"]:
            (path / "bin" / name).symlink_to("busybox")
        for name in self.TOOLS:
            (path / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >>/tmp/calls\n')
            (path / "bin" / name).chmod(0o755)
        (path / "var/lib/camerabus/devices.json").write_text("{}")
        (path / "var/lib/camerabus/library/2026-11-22/take.mp4").write_text("movie")
        (path / "etc/camerabus/camerabus.toml").write_text("")
        for name in SCRIPTS:
            shutil.copy(DEBIAN / name, path / "tmp" / name)

    def run(self, script: str, *arguments: str) -> list[str]:
        """Runs it, and answers what it called."""
        (self.path / "tmp/calls").write_text("")
        command = ["unshare", "--user", "--map-root-user", "chroot", self.path, "/bin/sh", f"/tmp/{script}", *arguments]
        result = subprocess.run(command, env={"PATH": "/bin:/usr/sbin:/usr/bin"}, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        self.said = result.stderr
        return (self.path / "tmp/calls").read_text().splitlines()


def can_be_root() -> bool:
    if has("unshare", "chroot") or not Path("/bin/busybox").exists():
        return False
    command = ["unshare", "--user", "--map-root-user", "chroot", "/", "/bin/true"]
    return subprocess.run(command, capture_output=True).returncode == 0


@unittest.skipUnless(can_be_root(), "no busybox, or no user namespaces")
class MaintainerScripts(unittest.TestCase):
    def root(self, has_systemd: bool = True) -> Root:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Root(Path(folder.name), has_systemd)

    def test_a_first_installation_makes_users_and_starts_the_service(self) -> None:
        root = self.root()
        calls = root.run("postinst", "configure", "")
        order = [
            "systemd-sysusers camerabus.conf", "systemd-tmpfiles --create camerabus.conf",
            "deb-systemd-helper enable camerabusd.socket", "systemctl --system daemon-reload",
            "deb-systemd-invoke start camerabusd.socket", "deb-systemd-invoke start camerabusd.service",
        ]  # fmt: skip
        self.assertEqual([call for call in calls if call in order], order)
        self.assertIn("usermod -aG camerabus", root.said)
        self.assertFalse([call for call in calls if "gateway" in call])

    def test_an_upgrade_starts_the_service_again_and_not_its_sockets(self) -> None:
        root = self.root()
        (root.path / "usr/lib/systemd/system/camerabus-gateway.service").write_text("")
        self.assertFalse(
            [call for call in root.run("prerm", "upgrade", "2.0") if call.startswith("deb-systemd-invoke")]
        )
        calls = root.run("postinst", "configure", "1.0")
        self.assertIn("deb-systemd-invoke restart camerabusd.service", calls)
        self.assertIn("deb-systemd-invoke restart camerabus-gateway.service", calls)
        self.assertNotIn("deb-systemd-invoke restart camerabusd.socket", calls)
        self.assertNotIn("deb-systemd-helper enable camerabus-gateway.service", calls)
        self.assertEqual((root.path / "var/lib/camerabus/library/2026-11-22/take.mp4").read_text(), "movie")
        self.assertEqual(root.said, "")

    def test_without_systemd_nothing_is_started(self) -> None:
        root = self.root(has_systemd=False)
        calls = root.run("postinst", "configure", "")
        self.assertIn("systemd-sysusers camerabus.conf", calls)
        self.assertFalse([call for call in calls if call.startswith(("deb-systemd-invoke", "systemctl", "udevadm"))])

    def test_a_removal_stops_all_and_keeps_configuration_and_state(self) -> None:
        root = self.root()
        calls = root.run("prerm", "remove")
        self.assertIn("deb-systemd-invoke stop camerabus-gateway.service camerabusd.socket camerabusd.service", calls)
        (root.path / "run/camerabus").mkdir()
        root.run("postrm", "remove")
        self.assertFalse((root.path / "run/camerabus").exists())
        self.assertTrue((root.path / "etc/camerabus/camerabus.toml").exists())
        self.assertTrue((root.path / "var/lib/camerabus/devices.json").exists())

    def test_a_purge_leaves_what_was_recorded_and_nothing_else(self) -> None:
        root = self.root()
        (root.path / "etc/camerabus/camerabus.toml").unlink()  # as dpkg does with configuration files
        for name in ("keys", "web-tokens"):
            for end in ("", ".new", ".lock"):
                (root.path / f"etc/camerabus/{name}{end}").write_text("")
        (root.path / "var/lib/camerabus-gateway").mkdir()
        (root.path / "var/lib/camerabus/profiles").mkdir()
        (root.path / "var/lib/camerabus/profiles/night.json").write_text("{}")
        elsewhere = root.path / "var/lib/camerabus/our movies/2026"
        elsewhere.mkdir(parents=True)
        (elsewhere / "a b.MKV").write_text("movie")
        (root.path / "var/lib/camerabus/camerabusd.lock").write_text("1 2")
        (root.path / "var/lib/camerabus/devices.json.damaged").write_text("{")
        replaced = root.path / "var/lib/camerabus/take.mp4.77.old"
        replaced.write_text("movie")
        calls = root.run("postrm", "purge")
        for unit in ["camerabusd.socket", "camerabusd.service", "camerabus-gateway.service"]:
            self.assertIn(f"deb-systemd-helper purge {unit}", calls)
        left = sorted(
            str(path.relative_to(root.path)) for path in root.path.rglob("*camerabus*") if "usr/" not in str(path)
        )
        self.assertEqual(left, ["var/lib/camerabus"])
        self.assertEqual(
            sorted(path.name for path in (root.path / "var/lib/camerabus").iterdir()),
            ["library", "our movies", "take.mp4.77.old"],
        )
        self.assertEqual((elsewhere / "a b.MKV").read_text(), "movie")
        self.assertIn("still in /var/lib/camerabus/our movies", root.said)
        self.assertEqual((root.path / "var/lib/camerabus/library/2026-11-22/take.mp4").read_text(), "movie")
        self.assertIn("still in /var/lib/camerabus/library", root.said)

    def test_a_purge_of_an_empty_library_leaves_nothing(self) -> None:
        root = self.root()
        shutil.rmtree(root.path / "var/lib/camerabus/library/2026-11-22")
        root.run("postrm", "purge")
        self.assertFalse((root.path / "var/lib/camerabus").exists())
        self.assertEqual(root.said, "")
        root.run("postrm", "purge")


class Wheel(unittest.TestCase):
    def test_it_has_all_modules_and_can_be_imported(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([ROOT / "deploy" / "make-wheel", folder], capture_output=True, text=True)
            if "there is no Python" in result.stderr:
                self.skipTest("no pip, setuptools and wheel")
            self.assertEqual(result.returncode, 0, result.stderr)
            path = Path(result.stdout.strip())
            modules = {
                source.name
                for source in (ROOT / "Protocol" / "python" / "camerabus").iterdir()
                if source.suffix in (".py", ".typed")
            }
            with zipfile.ZipFile(path) as wheel:
                names = wheel.namelist()
                self.assertEqual({Path(name).name for name in names if name.startswith("camerabus/")}, modules)
                metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
            for line in ["Name: camerabus", "Requires-Python: >=3.11", "Requires-Dist: pyzmq"]:
                self.assertIn(line, metadata)
            # Nothing of it is left in the sources.
            self.assertFalse(
                [name for name in ("build", "camerabus.egg-info") if (ROOT / "Protocol" / "python" / name).exists()]
            )
            program = "import sys; sys.path.insert(0, sys.argv[1]); import camerabus; print(camerabus.__version__)"
            shown = subprocess.run(
                [os.environ.get("PYTHON", sys.executable), "-c", program, path], capture_output=True, text=True
            )
            if "No module named 'zmq'" in shown.stderr:
                self.skipTest("no pyzmq")
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn(f"camerabus-{shown.stdout.strip()}-py3", path.name)


if __name__ == "__main__":
    unittest.main()
