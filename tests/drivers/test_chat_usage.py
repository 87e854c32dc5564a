"""Usage in four disjoint buckets, whichever way an endpoint counts what it had cached."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.analysis.prices import from_file, priced
from agentbench_lab.drivers.chat_usage import ANSWERED, usage_of
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Usage

from ..agents.openai_server import calls, serving
from ..doing import some, write_suite

ENDED = ("refuse", {"reason": "x"})


def openai(total: int, cached: int | None, output: int) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": total, "completion_tokens": output, "total_tokens": total + output, **details}


@pytest.mark.parametrize(
    ("reported", "buckets"),
    [
        (openai(20_000, 16_000, 1_000), (4_000, 16_000, 0, 1_000)),
        (openai(20_000, None, 1_000), (20_000, 0, 0, 1_000)),
        ({**openai(50, None, 2), "prompt_tokens_details": None}, (50, 0, 0, 2)),
        (
            {"input_tokens": 4_000, "cache_read_input_tokens": 16_000, "output_tokens": 1_000},
            (4_000, 16_000, 0, 1_000),
        ),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 9, "output_tokens": 1},
            (5, 7, 9, 1),
        ),
        ({**openai(20_000, None, 1_000), "cache_read_input_tokens": 16_000}, (4_000, 16_000, 0, 1_000)),
        (
            {**openai(4_000, None, 1_000), "cache_read_input_tokens": 16_000, "total_tokens": 21_000},
            (4_000, 16_000, 0, 1_000),
        ),
        (
            {"prompt_tokens": 20, "prompt_cache_hit_tokens": 15, "prompt_cache_miss_tokens": 5, "completion_tokens": 1},
            (5, 15, 0, 1),
        ),
        ({"prompt_tokens": 9}, (9, 0, 0, None)),
        ({"completion_tokens": 9}, (None, 0, 0, 9)),
        ({"prompt_tokens": "9", "completion_tokens": True}, (None, 0, 0, None)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": "x"}}, (None, None, 0, None)),
    ],
)  # fmt: skip
def test_buckets(reported: dict[str, Any], buckets: tuple[int | None, ...]) -> None:
    assert usage_of(reported) == (Usage(*buckets, model_calls=1), "")


@pytest.mark.parametrize(
    "reported", [openai(10, 11, 1), openai(-1, None, 1), openai(1, -1, 1), openai(1, None, -1), [1]]
)
def test_figures_that_cannot_be_are_unknown_and_noted(reported: Any) -> None:
    usage, trouble = usage_of(reported)
    assert usage == ANSWERED and trouble.startswith("the usage reported")


def test_missing_usage_is_unknown() -> None:
    assert usage_of(None) == (Usage(model_calls=1), "")


STYLES = {
    "inclusive": openai(20_000, 16_000, 1_000),
    "exclusive": {"input_tokens": 4_000, "cache_read_input_tokens": 16_000, "output_tokens": 1_000},
}


@pytest.mark.parametrize("style", STYLES)
def test_b06_cached_tokens_are_charged_once(tmp_path: Path, style: str) -> None:
    """End to end: from what an endpoint reports to micros of a dollar by a local price table."""
    suite = write_suite(tmp_path, some(0)[:1])
    table = tmp_path / "prices.csv"
    table.write_text(
        "model,from,input,cache_read,cache_write,output\nm,2026-01-01,0.50,0.05,0.50,3.00\n",
        encoding="utf-8",
    )
    with serving([calls(ENDED, usage=STYLES[style])]) as server:
        run = evaluate(suite, f"chat:m@{server.url}", save_run=False)
    (row,) = priced(run.trials, from_file(table, date(2026, 6, 1))).to_dicts()
    buckets = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
    assert [row[name] for name in buckets] == [4_000, 16_000, 0, 1_000]
    assert sum(row[name] for name in buckets) == 21_000
    assert (
        row["cost_micros"] == 5_800
    )  # neither 13,800, cached tokens charged twice, nor -2,200, taken out twice


def test_an_answer_without_usage_leaves_the_trial_unknown(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0)[:1])
    look = ("tmct_describe", {"symbol": "Cart"})
    with serving([calls(look, usage=None), calls(ENDED)]) as server:
        run = evaluate(suite, f"chat:m@{server.url}", save_run=False)
    (row,) = run.trials.to_pylist()
    assert (row["tokens_fresh_input"], row["tokens_output"], row["model_calls"]) == (None, None, 2)
