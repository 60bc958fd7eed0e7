"""Requests from the schemas that make sense, nearly make sense, or none; and bytes that are no requests."""

from __future__ import annotations

import json
import random
from typing import Any

import vectors

SCHEMA = vectors.methods()
METHODS, DEFINITIONS = SCHEMA["methods"], SCHEMA["$defs"]
#: They end the bus, or take the name of a device that others ask for.
LEFT_OUT = ("bus.shutdown", "device.rename")
#: Methods that take long are asked less often: the share of their turns.
RARE = {
    "movie.start": 0.05, "photo.capture": 0.02, "take.record": 0.1, "session.start": 0.1, "bus.methods": 0.05,
    "source.create": 0.02, "library.list": 0.05, "library.get": 0.1, "library.read": 0.1, "library.delete": 0.1,
    "take.finish": 0.1, "take.create": 0.2, "take.delete": 0.2, "rig.set": 0.05, "fault.inject": 0.4,
    "fault.script": 0.4, "session.switchCamera": 0.3, "authorization.request": 0.5, "session.create": 0.4,
}  # fmt: skip
#: Faults after which the other client would be slow for a good reason.
FAULTS = ("slow", "stall", "unplug", "busy", "noSpace", "refuse", "rate", "drift", "pressure", "crash")
#: Numbers that are kept small, so that nothing waits: by member.
SMALL = {
    "wait": (0, 60), "burst": (1, 4), "interval": (0, 20), "milliseconds": (0, 500), "at": (0, 500),
    "lease": (0, 500), "maxDuration": (0, 500), "length": (0, 100_000),
}  # fmt: skip
#: What the bus gave names to: the part puts in one that it has seen.
PLACES = {kind: f"$({kind})" for kind in ("LockToken", "SessionID", "MovieID", "TakeID", "LibraryID")}
DEVICES = ("cam0", "cam1", "mic0", "pair", "nobody")
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, -1e308, 5e-324, 0.1, 1e19, "",
    " ", "a", "cam0", "cam0/", "../..", "\0", "\u202e\u0301", "💥" * 40, "é", "x" * 300, "x" * 70000, "native", [],
    {}, [[]], [None], {"": ""}, {"device": "cam0"}, ["cam0"] * 65, list(range(2000)), "1/0", "0/1", "-1/30",
    "1/99999999999999999999", "NaN", "9" * 400, "%s%n%x", "'; drop table entries; --", "/etc/passwd", "/dev/zero",
    "\\x00", "ⅷ", "１２",
]  # fmt: skip
NAMES = ("x", "", "device ", "Device", "__proto__", "lock", "a" * 300)
GUEST = [{"name": "guest", "role": role} for role in ("control", "view", "none")]
FOR = [*GUEST, {"name": "", "role": "view"}, {"name": "x"}, None, 5]


def request(dice: random.Random) -> tuple[str, dict[str, Any]]:
    """A method, and a request that is JSON (so it has an answer with its id); it has no id yet."""
    while True:
        name = dice.choice(list(METHODS))
        if name in LEFT_OUT or dice.random() > RARE.get(name, 1):
            continue
        params = valid(dice, METHODS[name]["params"])
        for _ in range(dice.choice([0, 0, 0, 1, 1, 1, 2, 5])):
            changed = mutated(dice, params)
            # Params that are no object are refused before anything else is looked at.
            params = changed if isinstance(changed, dict) or dice.random() < 0.1 else params
        text = json.dumps(params)
        if len(text) > 900_000 or any(f'"{fault}"' in text for fault in FAULTS):
            continue
        if isinstance(params, dict) and isinstance(params.get("wait"), (int, float)):
            params["wait"] = min(params["wait"], 100)
        made: dict[str, Any] = {"jsonrpc": "2.0", "method": name, "params": params}
        if dice.random() < 0.05:
            made["key"] = dice.choice(["k1", "k2", "k3", "", "k" * 128, "k" * 129, 7, None])
        if dice.random() < 0.03:
            made["for"] = dice.choice(FOR)
        if dice.random() < 0.02:
            made[dice.choice(["jsonrpc", "method", "params", "extra"])] = dice.choice(STRANGE)
        if is_plain(made):
            return name, made


def is_plain(value: Any) -> bool:
    """Whether it is JSON of this protocol, so that its answer has its id ([REQ-3])."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, dict):
        return all("\0" not in name and is_plain(member) for name, member in value.items())
    return all(map(is_plain, value)) if isinstance(value, list) else True


def valid(dice: random.Random, schema: dict[str, Any], name: str = "", depth: int = 0) -> Any:
    """A value that fits the schema, mostly."""
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        if kind == "DeviceID":
            return dice.choice(DEVICES)
        if kind in PLACES and dice.random() < 0.9:
            return PLACES[kind]
        return valid(dice, DEFINITIONS[kind], name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return valid(dice, dice.choice(schema[word]), name, depth + 1)
    kind = schema.get("type")
    kind = dice.choice(kind) if isinstance(kind, list) else kind
    if kind is None:
        kind = "object" if "properties" in schema else dice.choice(["string", "integer", "boolean"])
    if kind == "object":
        return _object(dice, schema, depth)
    if kind == "array":
        least = schema.get("minItems", 0)
        length = dice.randrange(least, min(schema.get("maxItems", 4), least + 3) + 1)
        return [valid(dice, schema.get("items", {}), name, depth + 1) for _ in range(length)]
    if kind == "string":
        return _string(dice, schema, name)
    if kind in ("integer", "number"):
        return _number(dice, schema, name, kind)
    return dice.random() < 0.5 if kind == "boolean" else None


def _object(dice: random.Random, schema: dict[str, Any], depth: int) -> dict[str, Any]:
    made = {}
    for member, inner in schema.get("properties", {}).items():
        if member in schema.get("required", []) or (depth < 8 and dice.random() < 0.3):
            made[member] = valid(dice, inner, member, depth + 1)
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and depth < 8:
        controls = ["brightness", "gain", "exposureMode", "ISO", "contrast", "videoZoomFactor", "x"]
        for member in dice.sample(controls, dice.randrange(3)):
            made[member] = valid(dice, more, "", depth + 1)
    return made


def _string(dice: random.Random, schema: dict[str, Any], name: str) -> str:
    if name == "path":
        return dice.choice(["/tmp/camerabus-none/x.mp4", "/etc/x.mp4", "x.mp4", "/tmp/../etc/x.mkv"])
    if name == "url":
        return dice.choice(["rtsp://127.0.0.1/x", "srt://127.0.0.1:1", "http://x"])
    if name == "frameRate":
        return dice.choice(["30000/1001", "29.97", "30", "100/3", "0.000001", "4294967295/4294967294", "1/30", "1e3"])
    pattern = schema.get("pattern", "")
    if "0-9" in pattern and "/" in pattern:
        return dice.choice(["1/30", "1/15", "1001/30000", "1/7"])
    length = dice.randrange(schema.get("minLength", 0), min(schema.get("maxLength", 12), 12) + 1)
    return "".join(dice.choice("abcdef0123456789-") for _ in range(max(1, length)))


def _number(dice: random.Random, schema: dict[str, Any], name: str, kind: str) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -5))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 2000))
    if name in SMALL:
        low, high = max(low, SMALL[name][0]), min(high, SMALL[name][1])
    high = max(low, high)
    return dice.randint(int(low), int(high)) if kind == "integer" or dice.random() < 0.5 else dice.uniform(low, high)


def mutated(dice: random.Random, value: Any) -> Any:
    """The same with one thing in it that is wrong, mostly."""
    act = dice.random()
    if isinstance(value, dict) and value and dice.random() < 0.75:
        made = dict(value)
        member = dice.choice(list(made))
        if act < 0.6:
            made[member] = mutated(dice, made[member])
        elif act < 0.75:
            del made[member]
        elif act < 0.9:
            made[dice.choice(NAMES)] = dice.choice(STRANGE)
        else:
            made[member + dice.choice(["", " ", "s"])] = made.pop(member)
        return made
    if isinstance(value, list) and value and dice.random() < 0.7:
        if act < 0.5:
            place = dice.randrange(len(value))
            return [*value[:place], mutated(dice, value[place]), *value[place + 1 :]]
        return value * dice.choice([0, 2, 3, 100] if len(value) < 50 else [0])
    if isinstance(value, str) and dice.random() < 0.3:
        longer = value * (50 if len(value) < 1000 else 1)
        return dice.choice([f"{value}\0", value.upper(), longer, value[:-1], f" {value}", f"{value}/", f"{value}\n"])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and dice.random() < 0.5:
        return dice.choice([-value, value * 10**6, value + 0.5, 2**63 - 1, -(2**63), 1e300, str(value), 0])
    return dice.choice(STRANGE)


def placed(value: Any, known: dict[str, list[str]], dice: random.Random) -> Any:
    """The same with names that the bus gave, where it gave any."""
    if isinstance(value, dict):
        return {name: placed(member, known, dice) for name, member in value.items()}
    if isinstance(value, list):
        return [placed(member, known, dice) for member in value]
    if isinstance(value, str) and value.startswith("$("):
        for kind, place in PLACES.items():
            if value == place and known.get(kind):
                return dice.choice(known[kind])
    return value


_GOOD = b'{"jsonrpc": "2.0", "id": null, "method": "device.get", "params": {"device": "cam0"}}'
_NUMBERS = (b"NaN", b"Infinity", b"1e999", b"-", b"01", b"0x1", b"1e", b"+1", b".5", b"1.", b"tru", b"'a'")


def no_request(dice: random.Random) -> bytes:
    """It gets one answer, with the id null."""
    place = dice.randrange(len(_GOOD))
    return dice.choice([
        lambda: _GOOD[:place],
        lambda: _GOOD + dice.choice([b"x", b"{}", b"\0", b"]"]),
        lambda: _GOOD[:place] + bytes([dice.randrange(128, 256)]) + _GOOD[place:],
        lambda: b"[" * dice.choice([65, 1000, 100_000]) + b"]" * dice.choice([0, 65]),
        lambda: b'{"a":' * dice.choice([65, 5000, 150_000]) + b"1",
        lambda: b'{"jsonrpc":"2.0","method":"bus.ping","method":"bus.ping","id":null}',
        lambda: b"\xef\xbb\xbf" + _GOOD,
        lambda: _GOOD.replace(b'"cam0"', b'"\\ud800"'),
        lambda: _GOOD.replace(b'"cam0"', b"9" * dice.choice([20, 400, 100_000])),
        lambda: _GOOD.replace(b'"cam0"', dice.choice(_NUMBERS)),
        lambda: b" " * ((1 << 20) + dice.randrange(1, 100)),
        lambda: b"",
        lambda: dice.randbytes(dice.randrange(1, 400)),
        lambda: dice.choice([b"[]", b"1", b"null", b'"x"', b"true", b"[{}]"]),
        lambda: b'{"jsonrpc":"2.0","id":{"a":1},"method":"bus.ping"}',
        lambda: b'{"x":"' + b"\\u0041" * 100_000,
        lambda: b'{"jsonrpc":"2.0","id":null,"method":"bus.ping","params":[' + b"1," * dice.randrange(200_000) + b"1]}",
        lambda: b'{"' + b'a":1,"' * dice.randrange(2, 50_000) + b'":1}',
    ])()  # fmt: skip
