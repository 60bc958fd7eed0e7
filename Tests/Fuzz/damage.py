"""What can happen to files."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

STRANGE: list[Any] = [
    None, -1, 2**63, 2**64, 1e300, "", "x" * 10_000, [], {}, [[[]]], True, "../../../etc/passwd", "\0",
    {"a": {"b": {}}}, 0.5, -(2**63),
]  # fmt: skip
LINES = (b"x", b"[[", b'x = "', b"a = 99999999999999999999", b"\xff\xfe", b"[", b"[.", b"[\\x")
#: What makes another thing of a file than a file.
PLACES = ("directory", "fifo", "link", "missing")
MEDIA = (
    "cut", "bits", "bits", "bytes", "block", "shuffle", "head", "numbers", "numbers", "insert", "repeat",
)  # fmt: skip
CONTENTS = (
    "cut", "flip", "flips", "empty", "binary", "zeros", "strange", "strange", "strange", "tail", "deep", "utf8", "huge",
)  # fmt: skip


def strange_json(dice: random.Random, value: Any) -> Any:
    """The same with something of another type or size in it."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        made = dict(value)
        name = dice.choice(list(made))
        act = dice.random()
        if act < 0.7:
            made[name] = strange_json(dice, made[name])
        elif act < 0.85:
            del made[name]
        else:
            made[dice.choice(["", "x" * 1000, "../../x", "\0", "version"])] = made[name]
        return made
    if isinstance(value, list) and value and dice.random() < 0.7:
        place = dice.randrange(len(value))
        return [*value[:place], strange_json(dice, value[place]), *value[place + 1 :]]
    return dice.choice(STRANGE)


def strange_text(dice: random.Random, data: bytes) -> bytes:
    """The same with one line that is not as it should be."""
    lines = data.split(b"\n")
    place = dice.randrange(len(lines))
    line = lines[place]
    others = [line.replace(b"=", b"= -"), line * 2, line + b" 5", re.sub(rb"= .*", b"= []", line)]
    lines[place] = dice.choice([*LINES, *others, re.sub(rb"= .*", b"= 1e400", line)])
    return b"\n".join(lines)


def damaged(dice: random.Random, act: str, data: bytes) -> bytes:
    if act == "strange":
        try:
            return json.dumps(strange_json(dice, json.loads(data))).encode()
        except ValueError:
            return strange_text(dice, data)
    place = dice.randrange(len(data) + 1)
    one = bytes(byte ^ (1 << dice.randrange(8)) for byte in data[place : place + 1])
    many = bytes(byte ^ (1 << dice.randrange(8)) if dice.random() < 0.05 else byte for byte in data[:100_000])
    return {
        "cut": data[:place],
        "flip": data[:place] + one + data[place + 1 :],
        "flips": many + data[100_000:],
        "empty": b"",
        "binary": dice.randbytes(dice.randrange(1, 5000)),
        "zeros": b"\0" * len(data),
        "tail": data + dice.choice([b"}", b"garbage", data, b"\0" * 100]),
        "deep": b"[" * 100_000,
        "utf8": data.replace(b"a", b"\xff", 1),
        "huge": data + b" " * (40 << 20),
    }[act]  # fmt: skip


def damage(dice: random.Random, path: Path, but: str = "") -> tuple[str, bytes | None]:
    """Damages a file, `but` not in this way: how, and what is in it then (None: it is no file any more)."""
    act = dice.choice([act for act in (*PLACES, *CONTENTS) if act != but])
    if act not in PLACES:
        data = damaged(dice, act, path.read_bytes())
        path.write_bytes(data)
        return act, data
    path.unlink()
    if act == "directory":
        path.mkdir()
    elif act == "fifo":
        os.mkfifo(path)
    elif act == "link":
        path.symlink_to(dice.choice(["/dev/zero", "/etc/passwd", "nowhere"]))
    return act, None


def damaged_media(dice: random.Random, original: bytes) -> bytes:
    """A movie or picture with bytes that are not as they should be."""
    data = bytearray(original)
    place = dice.randrange(len(data))
    act = dice.choice(MEDIA)
    if act == "cut":
        del data[place:]
    elif act == "bits":
        for _ in range(dice.choice([1, 5, 50, 500])):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif act == "bytes":
        for _ in range(dice.choice([1, 20, 200])):
            data[dice.randrange(len(data))] = dice.choice([0, 255, 127, 128, dice.randrange(256)])
    elif act == "block":
        length = min(len(data) - place, dice.choice([4, 100, 5000]))
        data[place : place + length] = dice.choice([dice.randbytes(length), b"\0" * length])
    elif act == "shuffle":
        size = len(data) // 8 + 1
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        dice.shuffle(parts)
        data = bytearray(b"".join(parts))
    elif act == "head":
        length = min(len(data), dice.choice([4, 32, 200]))
        data[:length] = dice.randbytes(length)
    elif act == "numbers":
        # Numbers at their limits, where sizes and counts are.
        for _ in range(dice.choice([1, 3, 10])):
            at = dice.randrange(max(1, min(len(data) - 8, dice.choice([200, 2000, len(data)]))))
            width = dice.choice([2, 4, 8])
            limits = [2 ** (8 * width) - 1, 2 ** (8 * width - 1) - 1, 2 ** (8 * width - 1), 0, 1, 65535]
            data[at : at + width] = dice.choice(limits).to_bytes(width, "big")
    elif act == "insert":
        data[place:place] = dice.randbytes(dice.randrange(1, 1000))
    else:
        data[place:place] = data[place : place + 2000] * 3
    return bytes(data)
