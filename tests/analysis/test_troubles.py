"""What stopped trials is told in every summary."""

from __future__ import annotations

import polars as pl

from agentbench_lab.analysis import metrics


def test_the_most_frequent_trouble_comes_first_and_a_plain_end_is_none() -> None:
    trials = pl.DataFrame(
        {
            "driver": ["a", "a", "a", "b", "b"],
            "scaffold": ["once", "once", "linear", "once", "once"],
            "stop": ["driver_error", "driver_error", "driver_error", "timeout", "refused"],
            "note": [
                "raised KeyError: 'x'",
                "raised KeyError: 'x'",
                "raised KeyError: 'x'",
                "out of time after 1 s",
                "no",
            ],
            "excluded": pl.Series([None] * 5, dtype=pl.String),
        }
    )
    assert metrics.troubles(trials).rows() == [
        ("a", "once", "driver_error", "raised KeyError: 'x'", 2),
        ("a", "linear", "driver_error", "raised KeyError: 'x'", 1),
        ("b", "once", "timeout", "out of time after 1 s", 1),
    ]
    done = trials.with_columns(pl.lit("done").alias("stop"))
    assert metrics.troubles(done).is_empty()
    assert metrics.troubles(trials.clear()).is_empty()
    lost = done.with_columns(pl.lit("the world failed at look").alias("excluded")).head(2)
    assert metrics.troubles(lost).rows() == [("a", "once", "excluded", "the world failed at look", 2)]
