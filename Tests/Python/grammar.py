"""The grammars of the protocol as regular expressions: a second reading of SPEC, for the vectors to be held against."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

_NUMBER = "(0|[1-9][0-9]{0,5})"
_RENDITION = re.compile(
    f"(native|jpeg|bgr|rgb|gray|yuyv|nv12|i420|gray16|rgb48)(?::{_NUMBER}x{_NUMBER})?"
    f"(?:@({_NUMBER}(?:\\.[0-9]{{1,6}})?))?((?:;[^;]*)*)"
)
_SOUND = re.compile("native|(s16|f32)(?::([1-9][0-9]{0,5})x([1-9][0-9]{0,5}))?")
_ID = "[a-z0-9][a-z0-9-]{0,31}"
_NONCE = "[A-Za-z0-9_-]{1,64}"
_PHOTO = "[A-Za-z0-9-]{1,64}"
_TOPIC = re.compile(
    f"(?P<media>frame|buffer|set|audio)/(?P<device>{_ID})/(?P<rendition>[^/]+)/"
    f"|level/(?P<level>{_ID})/"
    f"|(?P<kind>state|event)/(?:(?P<what>device)/(?P<id>{_ID})"
    f"|(?P<lock>lock|session|movie|take)/(?P<lockid>{_NONCE})|(?P<user>authorization)/(?P<uid>{_ID}))/"
    f"|(?P<rig>state)/rig/(?P<rigname>{_ID})/"
    f"|(?P<photo>event)/photo/(?P<photoid>{_PHOTO})/"
    f"|(?P<bus>state|event)/bus/|(?P<bare>heartbeat|welcome)/|ack/(?P<nonce>{_NONCE})/"
)
_CROP = re.compile(rf"crop=({_NUMBER}x{_NUMBER}\+{_NUMBER}\+{_NUMBER})")


def is_device(text: bytes) -> bool:
    return re.fullmatch(_ID.encode(), text) is not None


def rendition(text: bytes) -> dict[str, Any] | None:
    """What a rendition asks for; None: it is none."""
    match = _RENDITION.fullmatch(text.decode("ascii", "replace"))
    if match is None or len(text) > 128:
        return None
    encoding, width, height, rate, _, options = match.groups()
    wish: dict[str, Any] = {"encoding": encoding}
    if width is not None:
        wish["width"], wish["height"] = int(width), int(height)
        if encoding == "native" or max(wish["width"], wish["height"]) > 16384 or wish["width"] + wish["height"] == 0:
            return None
    if rate is not None:
        if not 0 < Fraction(rate) <= 100000:
            return None
        wish["rate"] = float(Fraction(rate))
    names = [option.partition("=")[0] for option in options.split(";")[1:]]
    if len(names) != len(set(names)):
        return None
    for option in options.split(";")[1:]:
        if quality := re.fullmatch(f"q={_NUMBER}", option):
            if encoding != "jpeg" or not 1 <= int(quality[1]) <= 100:
                return None
            if quality[1] != "80":
                wish["quality"] = int(quality[1])
        elif (crop := _CROP.fullmatch(option)) and encoding != "native":
            sides = [int(side) for side in re.findall("[0-9]+", crop[1])]
            if max(sides) > 16384 or 0 in sides[:2]:
                return None
            wish["crop"] = crop[1]
        elif option == "fit" and width is not None:
            wish["fit"] = True
        elif (option == "mirror" or re.fullmatch("rotate=(0|90|180|270)", option)) and encoding != "native":
            if option == "mirror":
                wish["mirror"] = True
            elif option != "rotate=0":
                wish["rotate"] = int(option.removeprefix("rotate="))
        else:
            return None
    return wish


def sound_rendition(text: bytes) -> dict[str, Any] | None:
    """What a rendition of sound asks for; None: it is none."""
    match = _SOUND.fullmatch(text.decode("ascii", "replace"))
    if match is None:
        return None
    encoding, rate, channels = match.groups()
    wish: dict[str, Any] = {"encoding": encoding or "native"}
    if rate is not None:
        wish["rate"], wish["channels"] = int(rate), int(channels)
        if wish["rate"] > 768000 or wish["channels"] > 64:
            return None
    return wish


def topic(text: bytes) -> dict[str, str] | None:
    """The parts of a complete topic; None: it is only a prefix."""
    try:
        match = _TOPIC.fullmatch(text.decode()) if len(text) <= 256 else None
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    part = match.groupdict()
    if part["media"]:
        return {"kind": part["media"], "device": part["device"], "rendition": part["rendition"]}
    if part["level"]:
        return {"kind": "level", "device": part["level"]}
    if part["photo"]:
        return {"kind": "event", "what": "photo", "id": part["photoid"]}
    if part["rig"]:
        return {"kind": "state", "what": "rig", "id": part["rigname"]}
    if part["kind"]:
        what = part["what"] or part["lock"] or part["user"]
        return {"kind": part["kind"], "what": what, "id": part["id"] or part["lockid"] or part["uid"]}
    if part["bus"]:
        return {"kind": part["bus"], "what": "bus"}
    return {"kind": "ack", "nonce": part["nonce"]} if part["nonce"] else {"kind": part["bare"]}
