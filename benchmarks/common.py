"""Two sides of one claim, measured in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median


class Journaled:
    """A run's `progress`: when the last trial asked was graded and journaled."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.spent = 0.0

    def __call__(self, finished: int, asked: int) -> None:
        if finished == asked:
            self.spent = time.perf_counter() - self.began


def compare(
    ours: Callable[[], float],
    other: Callable[[], float],
    *,
    goal: float,
    unit: str,
    rounds: int = 7,
    more: Callable[[], str] | None = None,
) -> int:
    """Measure ours, other, ours, other, ... and print each side's median and, last, the ratio of the two.

    Both sides give a figure in the same unit. A first round is thrown away. Only the ratio means anything: both sides
    meet the same minutes of the same machine. `more` is a line to print before it, once all is measured. Gives back the
    exit code: 1 when the ratio is above the goal.
    """
    ours(), other()
    pairs = [(ours(), other()) for _ in range(rounds)]
    mine, theirs = (sorted(side) for side in zip(*pairs, strict=True))
    for name, side in (("ours", mine), ("other side", theirs)):
        print(
            f"{name:10}  median {median(side):.4g} {unit}  ({side[0]:.4g} to {side[-1]:.4g}, {rounds} rounds)"
        )
    if more is not None:
        print(more())
    ratio = median(mine) / median(theirs)
    print(f"ratio={ratio:.3g} goal={goal:g}")
    return int(ratio > goal)


def of_neighbours(pairs: list[tuple[float, float]], ours: str, other: str, *, goal: float) -> int:
    """Print each side's median and, last, the median ratio of neighbours: for sides too long for many rounds.

    `pairs` are seconds of ours and other. Gives back the exit code: 1 when the ratio is above the goal.
    """
    mine, theirs = zip(*pairs, strict=True)
    print(f"median {ours} {median(mine):.2f} s, {other} {median(theirs):.2f} s")
    ratio = median(a / b for a, b in pairs)
    print(f"ratio={ratio:.3f} goal={goal}")
    return int(ratio > goal)


def inspect_python() -> Path | None:
    """The Python that has Inspect AI; without it None, and a line that says how to get it."""
    python = Path(__file__).resolve().parents[1] / ".venv-inspect" / "bin" / "python"
    if python.exists():
        return python
    print("skipped: Inspect AI is not there; `make bench-inspect` puts it into .venv-inspect and measures")
    return None
