# SPDX-License-Identifier: Apache-2.0
"""From what was seen to figures."""

from __future__ import annotations

import statistics
from typing import Any, Sequence


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float], unit: str) -> dict[str, Any]:
    """Percentiles of single events."""
    ordered = sorted(values)
    if not ordered:
        return {"unit": unit, "count": 0}
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {
        "unit": unit,
        "count": len(ordered),
        **{name: round(percentile(ordered, share), 4) for name, share in shares.items()},
        "max": round(ordered[-1], 4),
    }


def rounds(values: Sequence[float]) -> dict[str, float] | None:
    """One figure of several rounds."""
    if not values:
        return None
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }
