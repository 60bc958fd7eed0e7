# SPDX-License-Identifier: Apache-2.0
"""The table as a picture: bars of processor time and of latency, as SVG."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

_LEFT, _PANEL, _GAP, _ROW, _TOP = 250, 330, 90, 18, 64
_COLOURS = {"publisher": "#3b6ea5", "readers": "#8db4dc", "coordinator": "#c9c9c9"}
_OURS, _OTHERS = "#2f8f5b", "#b06a3b"


def svg(frames: dict[str, Any], machine: dict[str, Any]) -> str:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in frames.values():
        groups.setdefault(row["group"], []).append(row)
    parts: list[str] = []
    y = _TOP
    for name, rows in groups.items():
        y += 12
        parts.append(_text(8, y, name, weight="bold"))
        y += 6
        most_cpu = max(row["cpu_ms_per_frame"]["total"]["median"] for row in rows) or 1
        most_time = max((times["median"] for row in rows if (times := _times(row))), default=0) or 1
        for row in rows:
            parts += _row(row, y, most_cpu, most_time)
            y += _ROW
        y += 10
    width = _LEFT + 2 * _PANEL + _GAP + 70
    where = f"{machine['system']}, {machine['processor']}, {machine['cores']} cores"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 10}" width="{width}" height="{y + 10}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{y + 10}" fill="white"/>',
        _text(8, 18, "Frames at 30 a second: processor time and latency", weight="bold", size=14),
        _text(8, 34, where, colour="#666"),
        _text(_LEFT, 52, "processor ms per frame: publisher, readers, coordinator"),
        _text(_LEFT + _PANEL + _GAP, 52, "ms from when the picture is ready: p50, and the range of rounds"),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def _row(row: dict[str, Any], y: int, most_cpu: float, most_time: float) -> list[str]:
    is_ours = row["lane"].startswith(("ring", "buffer/", "frame/"))
    parts = [_text(_LEFT - 8, y + 12, row["lane"], anchor="end", colour=_OURS if is_ours else "#333")]
    x = float(_LEFT)
    cpu = row["cpu_ms_per_frame"]
    for name, colour in _COLOURS.items():
        length = cpu[name]["median"] / most_cpu * _PANEL
        parts.append(_bar(x, y, length, colour))
        x += length
    parts.append(_text(x + 4, y + 12, f"{cpu['total']['median']:.2f}"))
    rounds = _times(row)
    if rounds is None:
        return parts
    start = _LEFT + _PANEL + _GAP
    scale = _PANEL / most_time
    parts.append(_bar(start, y, rounds["median"] * scale, _OURS if is_ours else _OTHERS))
    low, high = (start + min(rounds[side] * scale, _PANEL * 1.05) for side in ("min", "max"))
    parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y + 7.5}" y2="{y + 7.5}" stroke="#222"/>')
    parts.append(_text(max(high, start + rounds["median"] * scale) + 4, y + 12, f"{rounds['median']:.2f}"))
    return parts


def _times(row: dict[str, Any]) -> dict[str, float] | None:
    return row["since_ready"]["p50_rounds"]


def _bar(x: float, y: float, length: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y + 1}" width="{max(0.5, length):.1f}" height="{_ROW - 5}" fill="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 11, colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
