"""Which programs are linked with libraries whose licence is theirs, too, as deploy/debian/copyright has it."""

from __future__ import annotations

import re
import subprocess
import unittest

from stand_in import ROOT, has

PROGRAMS = ROOT / ".build" / "debug"
#: What the file calls the libraries, and how their files' names begin.
LIBRARIES = {"FFmpeg": r"lib(av|swr|sws)", "libx264": r"libx264\."}


def needed(program: str) -> list[str]:
    listed = subprocess.run(["readelf", "-d", PROGRAMS / program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listed)


@unittest.skipIf(has("readelf", "ldd"), "no binutils")
@unittest.skipUnless((PROGRAMS / "camerabusd").exists(), "the programs are not built")
class Copyright(unittest.TestCase):
    def programs(self) -> list[str]:
        makefile = (ROOT / "Makefile").read_text()
        return re.search(r"^PROGRAMS := (.*)$", makefile, re.MULTILINE)[1].split()

    def test_programs_are_listed_that_are_linked_with_them(self) -> None:
        text = (ROOT / "deploy" / "debian" / "copyright").read_text()
        for library, beginning in LIBRARIES.items():
            listed = re.search(rf"^ Linked with {library}.*?: ?(.*?)\.$", text, re.MULTILINE | re.DOTALL)[1]
            linked = [
                name for name in self.programs() if any(re.match(beginning, needed_) for needed_ in needed(name))
            ]
            self.assertEqual(sorted(re.split(r",\s+", listed.strip())), sorted(linked), library)

    def test_no_program_brings_a_client_for_http_or_ldap(self) -> None:
        for name in self.programs():
            found = subprocess.run(["ldd", PROGRAMS / name], check=True, capture_output=True, text=True).stdout
            self.assertNotRegex(found, r"libcurl|libldap|FoundationNetworking", name)
