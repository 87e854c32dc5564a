"""Real tables of other projects, read by the names of their columns."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.results.run import Run


def trials(run: Run) -> pl.DataFrame:
    return pl.DataFrame(run.trials)


def test_terminal_bench(peers: Path) -> None:
    """5,200 trials of 13 submissions on 80 tasks. The benchmark counts a verdict that is missing as a failure."""
    names = {
        "case_id": "task",
        "driver": "submission",
        "solved": "resolved",
        "null_solved": "failure",
        "tokens_input_total": "input_tokens",
        "tokens_output": "output_tokens",
        "started_at": "agent_started_at",
        "ended_at": "agent_ended_at",
        "extra.failure_mode": "failure_mode",
    }
    run = load_results(
        "csv", peers / "terminal-bench" / "tb_core_0_1_1_trials.csv", Options(columns=names, suite="tb-core")
    )
    assert (run.card.counts.asked, run.card.counts.judged, run.card.suites[0].cases) == (5200, 5200, 80)
    accuracy = trials(run).group_by("driver").agg(pl.col("solved").mean().round(4)).sort("solved")
    assert accuracy["solved"].to_list() == [
        *(0.1275, 0.1925, 0.2625, 0.36, 0.3975, 0.4125, 0.4125, 0.4525, 0.4925, 0.505, 0.525, 0.5675, 0.5875)
    ]
    assert run.card.imported is not None
    assert "Without a verdict, and not solved as asked for: 418 of 5200 trials." in run.card.imported.notes
    assert run.card.started_at.startswith("2025-0")


def test_bfcl_multi_turn(peers: Path) -> None:
    """gpt-oss-120b under vLLM v0.10.2 and harmony-fixes: base, miss_func, miss_param as published, in percent."""
    names = {
        "case_id": "id",
        "driver": "build",
        "solved": "valid",
        "group": "category",
        "note": "error_type",
        "tokens_input_total": "input_tokens",
        "tokens_output": "output_tokens",
        "wall_s": "latency_s",
        "model_calls": "n_model_calls",
    }
    run = load_results("csv", peers / "bfcl" / "derived_multi_turn_outcomes.csv", Options(columns=names))
    found = trials(run).filter(pl.col("model") == "openai_gpt-oss-120b")
    shares = {
        (driver, group): 100 * share
        for driver, group, share in found.group_by("driver", "group").agg(pl.col("solved").mean()).iter_rows()
    }
    builds = sorted({driver for driver, _ in shares})
    by_build = {
        build: [round(shares[build, f"multi_turn_{each}"], 2) for each in ("base", "miss_func", "miss_param")]
        for build in builds
    }
    assert sorted(by_build.values()) == [
        [41.5, 42.0, 36.5],
        [42.0, 40.0, 32.0],
        [50.0, 45.5, 41.5],
        [62.0, 50.0, 49.5],
        [62.0, 50.5, 47.5],
    ]


def test_swe_bench_instances_of_one_run(peers: Path) -> None:
    """371 of 500 resolved for $229.97875947500023; 333,047,929 prompt tokens, 279,065,308 of them from a cache."""
    names = {
        "case_id": "instance_id",
        "solved": "resolved",
        "cost_usd": "instance_cost",
        "model_calls": "api_calls",
        "tokens_input_total": "prompt_tokens",
        "tokens_cache_read": "cached_tokens",
        "tokens_cache_write": "=0",
        "tokens_output": "completion_tokens",
        "extra.exit_status": "exit_status",
    }
    file = peers / "swe-bench" / "derived_gemini3pro_instances.csv"
    found = trials(
        load_results("csv", file, Options(columns=names, driver="mini-swe-agent", model="gemini-3-pro"))
    )
    assert (found.height, found["solved"].sum()) == (500, 371)
    assert found["tokens_cache_read"].sum() == 279_065_308
    assert found["tokens_fresh_input"].sum() == 333_047_929 - 279_065_308
    assert found["tokens_output"].sum() == 5_556_752
    assert round(found["model_calls"].mean(), 3) == 40.326  # type: ignore[arg-type]
    exact = found["extra"].str.json_path_match("$.cost_usd").cast(pl.Float64)
    dollars = exact.fill_null(found["cost_micros"] / 1e6).sum()
    assert abs(dollars - 229.97875947500023) < 1e-12
    assert abs(found["cost_micros"].sum() / 1e6 - dollars) < 500 * 0.5e-6
