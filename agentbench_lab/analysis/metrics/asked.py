"""What can be asked of every estimate."""

from __future__ import annotations

from agentbench_lab.errors import LabError

LEAST_RESAMPLES = 100
"""Of fewer resamples an end of a 95 % interval would be one of the two most extreme of them: an accident."""


def check_resamples(resamples: int) -> None:
    """Raises LabError for fewer than 100 resamples."""
    if resamples < LEAST_RESAMPLES:
        raise LabError(
            f"resamples is {resamples}: an interval takes at least {LEAST_RESAMPLES}, and 10000 are usual"
        )
