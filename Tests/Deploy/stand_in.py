"""Programs that stand in for the project's own: they have a command line, and do nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_PROGRAM = r"""
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments) {
    const char *name = strrchr(arguments[0], '/') ? strrchr(arguments[0], '/') + 1 : arguments[0];
    const char *first = count > 1 ? arguments[1] : "", *last = arguments[count - 1];
    if (!strcmp(first, "--version")) puts("1.2.3");
    else if (!strcmp(first, "--experimental-dump-help")) printf(DUMP, name);
    else if (!strcmp(last, "--help")) { printf("OVERVIEW: x\n\nUSAGE: %s", name);
        for (int i = 1; i < count - 1; i++) printf(" %s", arguments[i]);
        puts(" [--thing <value>]\n\nOPTIONS:"); }
    else if (!strcmp(first, "completions") || !strcmp(first, "--generate-completion-script")) printf("# %s\n", last);
    else return 2;
    return 0;
}
"""


def programs() -> list[str]:
    """Those that the Makefile installs."""
    found = re.search(r"^PROGRAMS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found
    return found[1].split()


def make_programs(directory: Path, dump: dict[str, object], *options: str) -> None:
    """Compiles them into a folder, with what they say of their command line."""
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "program.c"
    source.write_text(f"#define DUMP {json.dumps(json.dumps(dump))}\n{_PROGRAM}")
    names = programs()
    subprocess.run(["cc", "-O1", "-g", "-o", directory / names[0], source, *options], check=True)
    for name in names[1:]:
        shutil.copy(directory / names[0], directory / name)
    source.unlink()


def has(*commands: str) -> str | None:
    """The first of these programs that is not there."""
    return next((command for command in commands if shutil.which(command) is None), None)


#: A command line with everything in it that a page has to make something of.
DUMP = {
    "serializationVersion": 0,
    "command": {
        "commandName": "%s",  # the program's own name
        "shouldDisplay": True,
        "abstract": "Does things.",
        "discussion": "First - 'quoted' \\ paragraph…\n\n.Second, not a request.\n\n"
        "EXIT STATUS:\n  0  done\n  128+N  ended by signal N\n"
        "A line behind it.\n\nEXAMPLES:\n  camerabus thing -n 1 | jq '.x'\n  .hidden\n",
        "arguments": [
            {
                "kind": "flag", "shouldDisplay": True, "isOptional": True, "isRepeating": False, "valueName": "version",
                "names": [{"kind": "long", "name": "version"}], "abstract": "Show the version.",
            },
            {
                "kind": "flag", "shouldDisplay": False, "isOptional": True, "isRepeating": False, "valueName": "secret",
                "names": [{"kind": "long", "name": "secret"}], "abstract": "Not for you.",
            },
        ],
        "subcommands": [
            {
                "commandName": "thing",
                "superCommands": ["camerabus"],
                "shouldDisplay": True,
                "abstract": "Does one thing.",
                "defaultSubcommand": "list",
                "subcommands": [
                    {
                        "commandName": "list",
                        "superCommands": ["camerabus", "thing"],
                        "shouldDisplay": True,
                        "abstract": "Lists things.",
                        "discussion": "EXAMPLES:\n  camerabus thing list",
                        "arguments": [
                            {
                                "kind": "positional", "shouldDisplay": True, "isOptional": False, "isRepeating": True,
                                "valueName": "device", "abstract": "The device's id.",
                            },
                            {
                                "kind": "option", "shouldDisplay": True, "isOptional": True, "isRepeating": False,
                                "valueName": "count",
                                "names": [{"kind": "long", "name": "number"}, {"kind": "short", "name": "n"}],
                                "abstract": "So many.", "defaultValue": "some", "allValues": ["some", "more"],
                            },
                        ],
                    },
                ],
            },
            {"commandName": "hidden", "superCommands": ["camerabus"], "shouldDisplay": False, "abstract": "Not shown."},
            {"commandName": "help", "superCommands": ["camerabus"], "shouldDisplay": True, "abstract": "Show help."},
        ],
    },
}  # fmt: skip
