# SPDX-License-Identifier: Apache-2.0
"""Frame rates, as people and programs write them: `30`, `29.97`, `"30000/1001"`, `Fraction(30000, 1001)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias

#: Frames a second.
FrameRate: TypeAlias = float | Fraction | Decimal | str

#: Of video these have 1000/1001 of their rate, which people write with two or three digits: 29.97, 23.976.
_NOMINAL = (24, 30, 48, 60, 120, 240)
#: Digits behind the point that are read.
_DIGITS = 9
_LONGEST = 2**32 - 1
_DECIMAL = re.compile(r"([0-9]{1,7})(?:\.([0-9]+))?", re.ASCII)
_FRACTION = re.compile(r"([0-9]{1,10})/([0-9]{1,10})", re.ASCII)
_FORM = 'frames per second, such as 30, 29.97, "30000/1001" or Fraction(30000, 1001)'


def frame_rate(value: FrameRate) -> Fraction:
    """Frames a second, exactly.

    Raises ValueError for what is none, and for a fraction below 1, which could be the duration of a frame as well.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Decimal):
        return _text(f"{value:f}")
    if isinstance(value, Rational) and not isinstance(value, bool):
        return _fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real) and not isinstance(value, bool):
        return _number(float(value))
    raise ValueError(f"{value!r} is not a number of {_FORM}")


def wire(value: FrameRate) -> float | str:
    """A rate for the bus: a number, or the fraction of a rate that no number is read as."""
    rate = frame_rate(value)
    number = _plain(rate)
    return number if _number(number) == rate else f"{rate.numerator}/{rate.denominator}"


def wish(value: FrameRate | Mapping[str, Any]) -> Any:
    """A rate, or the frame durations that a rate may have: {minFrameDuration?, maxFrameDuration?}."""
    if not isinstance(value, Mapping):
        return wire(value)
    return {
        name: f"{duration.numerator}/{duration.denominator}" if isinstance(duration, Fraction) else duration
        for name, duration in value.items()
    }


def member(value: Any) -> Any:
    """A mapping with its `frameRate` as the bus reads it; anything else stays."""
    if not isinstance(value, Mapping):
        return value
    return {name: wish(given) if name == "frameRate" and given is not None else given for name, given in value.items()}


def _plain(rate: Fraction) -> float:
    candidates = [round(float(rate) * scale) / scale for scale in (1, 1000, 1_000_000)]
    number = next((each for each in candidates if each > 0 and _number(each) == rate), candidates[-1])
    return int(number) if number == int(number) else number


def _text(text: str) -> Fraction:
    if parts := _FRACTION.fullmatch(text):
        return _fraction(int(parts[1]), int(parts[2]), text)
    parts = _DECIMAL.fullmatch(text)
    if not parts:
        raise ValueError(f"'{text[:64]}' is not a number of {_FORM}")
    behind = (parts[2] or "")[:_DIGITS]
    return _digits(int(parts[1] + behind), len(behind), text)


def _number(number: float) -> Fraction:
    if not 0.000001 <= number <= 1_000_000:
        raise ValueError(f"{number} is not a number of {_FORM}, above 0 and at most 1000000")
    digits = 0
    while digits < _DIGITS and round(number * 10**digits) / 10**digits != number:
        digits += 1
    return _digits(round(number * 10**digits), digits, number)


def _digits(number: int, digits: int, value: Any) -> Fraction:
    scale = 10**digits
    if number % scale:
        for nominal in _NOMINAL:
            # Nearer than half of the last digit that was written.
            if abs(nominal * 1000 * scale - number * 1001) * 2 <= 1001:
                return Fraction(nominal * 1000, 1001)
        while scale > 1_000_000 or number > _LONGEST:
            number, scale = (number + 5) // 10, scale // 10
    return _checked(number, scale, value)


def _fraction(above: int, below: int, text: str | None = None) -> Fraction:
    text = text or f"{above}/{below}"
    if max(above, below) > _LONGEST:
        raise ValueError(f"'{text}' is not a number of {_FORM}")
    rate = _checked(above, below, text)
    if above >= below:
        return rate
    duration = f", or {_plain(1 / rate)} for a frame duration of {text} s" if 1 / rate <= 1_000_000 else ""
    raise ValueError(
        f"'{text}' can be a rate or a frame duration; write {_plain(rate)} for {text} frames per second{duration}"
    )


def _checked(above: int, below: int, value: Any) -> Fraction:
    rate = Fraction(above, below) if above > 0 and below > 0 else Fraction(0)
    if not Fraction(1, 1_000_000) <= rate <= 1_000_000:
        raise ValueError(f"'{value}' is not a number of {_FORM}, above 0 and at most 1000000")
    return rate
