"""Real BFCL multi-turn results: one model family under several builds of its server, as published by category."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.results.run import Run

COLUMNS = {
    "case_id": "id",
    "driver": "build",
    "group": "category",
    "solved": "valid",
    "tokens_input_total": "input_tokens",
    "tokens_output": "output_tokens",
    "wall_s": "latency_s",
    "model_calls": "n_model_calls",
    "extra.error_type": "error_type",
}
CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param")
PUBLISHED = {
    ("v0.10.2", "openai_gpt-oss-120b"): (41.5, 42, 36.5),
    ("v0.11.0", "openai_gpt-oss-120b"): (42, 40, 32),
    ("2025-11-12-main", "openai_gpt-oss-120b"): (50, 45.5, 41.5),
    ("2025-11-12-harmony-fixes", "openai_gpt-oss-120b"): (62, 50, 49.5),
    ("2025-11-12-harmony-fixes-2", "openai_gpt-oss-120b"): (62, 50.5, 47.5),
    ("2025-11-12-main", "openai_gpt-oss-20b"): (47.5, 41, 41.5),
    ("2025-11-12-harmony-fixes", "openai_gpt-oss-20b"): (51.5, 39.5, 39.5),
}
"""Per cent of 200 cases each, from the pages of the builds."""


@pytest.fixture(scope="module")
def run(peers: Path) -> Run:
    path = peers / "bfcl" / "derived_multi_turn_outcomes.csv"
    return load_results("csv", path, Options(suite="bfcl-v4", columns=COLUMNS))


def test_the_accuracy_of_every_build_model_and_category_is_the_published_one(run: Run) -> None:
    frame = pl.from_arrow(run.trials)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == run.card.counts.judged == 4_200
    counted = frame.group_by("driver", "model", "group").agg(pl.col("solved").sum(), pl.len()).rows()
    assert {(build, model, group): (100 * solved / n, n) for build, model, group, solved, n in counted} == {
        (*arm, category): (share, 200)
        for arm, shares in PUBLISHED.items()
        for category, share in zip(CATEGORIES, shares, strict=True)
    }


def test_seven_arms_answer_the_same_600_cases(run: Run) -> None:
    assert {(arm.driver, arm.model) for arm in run.card.arms} == set(PUBLISHED)
    assert run.card.suites[0].cases == 600
    assert run.card.suites[0].groups == CATEGORIES
