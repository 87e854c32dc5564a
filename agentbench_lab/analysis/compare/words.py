"""Numbers of a comparison in words."""

from __future__ import annotations

from agentbench_lab.analysis.compare.differences import LEVEL, Difference
from agentbench_lab.points import in_points, points


def interval(found: Difference) -> str:
    """`+12.5 points, 95% interval [+2.5, +22.5]`, or why there is none."""
    if found.difference is None or found.low is None or found.high is None:
        return f"not known ({found.reason})"
    ends = f"[{in_points(found.low, True)}, {in_points(found.high, True)}]"
    return f"{points(found.difference)}, {LEVEL:.0%} interval {ends}"


def p_value(p: float) -> str:
    """`p = 0.031`; what is smaller than a thousandth says so."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}".rstrip("0").removesuffix(".") if p < 1 else "p = 1"


def share(rate: float) -> str:
    """A rate in percent with a decimal where it has one; neither nothing nor all unless it is."""
    text = f"{100 * rate:.1f}".removesuffix(".0")
    if text in ("0", "100") and rate not in (0.0, 1.0):
        return "<0.1%" if rate < 0.5 else ">99.9%"
    return f"{text}%"


def about(count: int) -> str:
    """A whole number to two places, rounded up."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // unit) * unit:,}"


def many(count: int, what: str) -> str:
    """`1 case`, `1,200 cases`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
