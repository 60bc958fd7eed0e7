"""Reads Protocol/vectors and Protocol/schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROTOCOL = Path(__file__).resolve().parents[2] / "Protocol"


def files() -> dict[str, dict[str, Any]]:
    """The files of vectors that are ours to run, by name without `.json`."""
    found = {path.stem: json.loads(path.read_bytes()) for path in sorted((PROTOCOL / "vectors").glob("*.json"))}
    return {
        name: file for name, file in found.items() if any("ython" in runner for runner in file.get("runBy", ["python"]))
    }


def frame(value: Any) -> bytes:
    """The bytes of one frame: a text, or {hex}, {text, times}, {concat}."""
    if isinstance(value, str):
        return value.encode()
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    if "concat" in value:
        return b"".join(map(frame, value["concat"]))
    return value["text"].encode() * value["times"]


def errors() -> dict[str, Any]:
    """Protocol/schema/errors.json: the schema of `error.data` by reason."""
    schema = json.loads((PROTOCOL / "schema" / "errors.json").read_bytes())
    return {error["reason"]: {"$defs": schema["$defs"], **error["data"]} for error in schema["errors"]}


def methods() -> dict[str, Any]:
    """Protocol/schema/methods.json: the methods by name, and `$defs`."""
    schema = json.loads((PROTOCOL / "schema" / "methods.json").read_bytes())
    return {"$defs": schema["$defs"], "methods": {method["name"]: method for method in schema["methods"]}}
