"""How many cases a difference takes to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from agentbench_lab.analysis.compare.differences import LEVEL, clean
from agentbench_lab.analysis.compare.pairing import Pair

POWER = 0.8
"""How likely a planned comparison is to show a difference that is there."""
ENOUGH_TO_PLAN = 10
"""Cases that must differ before their variance says anything about another difference."""


def needed_cases(pairs: Sequence[Pair], level: float = LEVEL, delta: float | None = None) -> int | None:
    """About how many cases, more than these, would show `delta` (the difference seen) by the variance seen."""
    d = np.array([pair.difference for pair in pairs])
    if not d.any() or (delta is not None and np.count_nonzero(d) < ENOUGH_TO_PLAN):
        return None
    variance = float(d.var(ddof=1)) if len(d) > 1 else 0.0
    if delta is not None:
        return cases_for(variance, delta, POWER, level)
    return max(cases_for(variance, abs(clean(float(d.mean()))) or 0.05, POWER, level), len(d) + 1)


def cases_for(variance: float, delta: float, power: float, level: float) -> int:
    """How many cases show `delta` when one case's paired difference has this variance; see `cases_to_detect`."""
    normal = NormalDist()
    z = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    # n differences of one sign have the p-value 2 / 2^n; the small slack is for rounding alone
    fewest = math.ceil(1 - math.log2(1 - level) - 1e-9)
    return max(math.ceil(max(z, 0.0) ** 2 * variance / delta**2 - 1e-9), fewest)
