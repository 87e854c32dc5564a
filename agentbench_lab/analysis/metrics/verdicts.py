"""What a paired difference of accuracy and a ratio of costs come to: one verdict of a closed set."""

from __future__ import annotations

import math
from collections.abc import Callable

from agentbench_lab.errors import LabError

DOMINATES = "dominates"
PAYS = "pays"
CHEAPER = "cheaper, no worse"
SAME = "no difference"
COSTS = "costs without gain"
LOSES = "loses"
UNDECIDED = "undecided"
VERDICTS = (DOMINATES, PAYS, CHEAPER, SAME, COSTS, LOSES, UNDECIDED)
"""All verdicts, the best first."""

MARGIN = 0.02
"""Two points: a difference of accuracy that is surely smaller is none."""
COST_MARGIN = 0.05
"""A ratio of costs that surely lies within 5 % of 1 either way is none."""
MOST_CASES = 1_000_000
"""Where more cases than these would be needed to decide, no number is named."""

Interval = tuple[float, float]
_SLACK = 1e-12  # an end at the margin lies within it, however it was rounded


def verdict(
    difference: Interval | None,
    ratio: Interval | None,
    *,
    margin: float = MARGIN,
    cost_margin: float = COST_MARGIN,
) -> str:
    """The verdict on an arm against its baseline, from two intervals: of the difference of accuracy (arm less baseline,
    in shares) and of the ratio of costs (arm to baseline); None where one is not known.

    An interval is *the same* when it lies within the margin: from -margin to margin, or from 1 / (1 + cost_margin) to 1 +
    cost_margin. Otherwise accuracy is *better* above 0 and *worse* below; an interval that holds 0 is *no worse* when it
    ends above -margin, *no better* when it ends below margin, and open when it reaches beyond both. Cost is *dearer*
    and *cheaper* likewise. With these words:

    - `dominates`: better, and cheaper.
    - `pays`: better, and not shown to be cheaper (dearer, the same, or open; not where cost is unknown).
    - `cheaper, no worse`: cheaper, and accuracy the same or no worse.
    - `no difference`: both the same.
    - `costs without gain`: dearer, and accuracy the same or no better.
    - `loses`: worse, at whatever cost, also an unknown one.
    - `undecided`: all else.

    Each pair of intervals has exactly one verdict. Exchanging the arms turns `dominates` and `pays` to `loses`, `cheaper, no worse`
    to `costs without gain`, and leaves `no difference` and `undecided`, but that where cost is unknown an `undecided`
    becomes `loses` when accuracy was better. Raises LabError for a margin out of range and ValueError for an interval that is none.
    """
    check_margins(margin, cost_margin)
    logs = None if ratio is None else (_log(ratio[0]), _log(ratio[1]))
    return verdict_by_logs(difference, logs, margin, cost_margin)


def verdict_by_logs(
    difference: Interval | None, logs: Interval | None, margin: float, cost_margin: float
) -> str:
    """`verdict`, from the interval of the logarithm of the ratio of costs."""
    return _TABLE[place(difference, margin)](place(logs, math.log(1 + cost_margin)))


def place(interval: Interval | None, margin: float) -> str:
    """Where an interval lies about 0: same, above, below, not below, not above, open; or unknown."""
    if interval is None:
        return "unknown"
    low, high = interval
    if not low <= high:
        raise ValueError(f"{interval} is no interval")
    margin += _SLACK
    if low >= -margin and high <= margin:
        return "same"
    if low > 0 or high < 0:
        return "above" if low > 0 else "below"
    if low >= -margin or high <= margin:
        return "not below" if low >= -margin else "not above"
    return "open"


_TABLE: dict[str, Callable[[str], str]] = {
    "above": lambda cost: {"below": DOMINATES, "unknown": UNDECIDED}.get(cost, PAYS),
    "below": lambda cost: LOSES,
    "same": lambda cost: {"below": CHEAPER, "same": SAME, "above": COSTS}.get(cost, UNDECIDED),
    "not below": lambda cost: CHEAPER if cost == "below" else UNDECIDED,
    "not above": lambda cost: COSTS if cost == "above" else UNDECIDED,
    "open": lambda cost: UNDECIDED,
    "unknown": lambda cost: UNDECIDED,
}


def check_margins(margin: float, cost_margin: float) -> None:
    """Raises LabError for margins that leave nothing to decide."""
    if not 0 <= margin < 1:
        raise LabError(f"margin is {margin}: a share from 0 to below 1 (0.02 is two points)")
    if not 0 <= cost_margin < math.inf:
        raise LabError(f"cost_margin is {cost_margin}: a share from 0 (0.05 is five percent)")


def fewest_cases(decided: Callable[[int], bool], have: int) -> int | None:
    """The fewest cases, more than `have`, at which a planned comparison is decided; None beyond `MOST_CASES`."""
    low, high = have, have + 1
    while not decided(high):
        low, high = high, 2 * high
        if high > MOST_CASES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def _log(value: float) -> float:
    if value < 0:
        raise ValueError(f"a ratio of costs is {value}")
    return math.log(value) if value > 0 else -math.inf
