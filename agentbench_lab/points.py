"""A difference of two shares in percentage points, as it is written in every sentence, table and chart."""

from __future__ import annotations

MINUS = "\N{MINUS SIGN}"
"""Of every negative number that is shown, in charts and tables alike."""


def points(difference: float, *, sign: bool = True) -> str:
    """A difference of two shares in percentage points, with its sign: `+12.5 points`."""
    return (
        f"{in_points(difference, sign)} {'point' if in_points(abs(difference), False) == '1' else 'points'}"
    )


def in_points(difference: float, sign: bool) -> str:
    """The number of `points` alone: `+12.5`."""
    text = f"{abs(100 * difference):.1f}"
    number = text.removesuffix(".0")
    if number == "0":
        # a difference that is there is never shown as none
        return (
            "0"
            if not difference
            else f"{'+' if difference > 0 and sign else MINUS if difference < 0 else ''}<0.1"
        )
    mark = MINUS if difference < 0 else "+" if sign else ""
    return f"{mark}{number}"


def tenths(difference: float) -> str:
    """The number of a difference in points for a column of them: always with a sign and a decimal, `+12.0`."""
    return f"{100 * difference + 0.0:+.1f}".replace("-", MINUS)


def with_ends(difference: float, low: float, high: float) -> str:
    """A difference with its interval for a column of them: `+12.0 [−1.5, +25.5]`."""
    return f"{tenths(difference)} [{tenths(low)}, {tenths(high)}]"
