"""What stopped trials is told in every summary."""

from __future__ import annotations

import polars as pl

from agentbench_lab.analysis import metrics


def test_the_most_frequent_trouble_comes_first_and_a_plain_end_is_none() -> None:
    trials = pl.DataFrame(
        {
            "driver": ["a", "a", "a", "b", "b"],
            "stop": ["driver_error", "done", "driver_error", "timeout", "refused"],
            "note": ["raised KeyError: 'x'", None, "raised KeyError: 'x'", "out of time after 1 s", "no"],
        }
    )
    assert metrics.troubles(trials).rows() == [
        ("a", "driver_error", "raised KeyError: 'x'", 2),
        ("b", "timeout", "out of time after 1 s", 1),
    ]
    assert metrics.troubles(trials.clear()).is_empty()
