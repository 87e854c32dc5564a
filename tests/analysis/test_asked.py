"""What no estimate can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import agentbench_lab as lab
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run

from ..doing import knows, write_suite


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    suite = write_suite(tmp_path_factory.mktemp("suite"))
    return lab.evaluate(suite, [knows, "refuse_all"], trials=2, save_run=False)


ESTIMATES: list[Callable[..., Any]] = [
    lambda run, n: lab.metrics.crossings(run.trials, resamples=n),
    lambda run, n: lab.metrics.cost(run.trials, resamples=n),
    lambda run, n: lab.metrics.frontier(run.trials, resamples=n),
    lambda run, n: lab.metrics.tool_errors(run.trials, run.calls, resamples=n),
]


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("resamples", [-5, 0, 10, 99])
def test_too_few_resamples_are_one_clear_line(run: Run, estimate: Callable[..., Any], resamples: int) -> None:
    """-5 would be NumPy's error of a dimension, and of 10 an interval is whichever two are extreme."""
    with pytest.raises(LabError, match=rf"^resamples is {resamples}: an interval takes at least 100"):
        estimate(run, resamples)
    assert estimate(run, 100) is not None
