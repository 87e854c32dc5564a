"""Sixteen real result files of tau2-bench, by their figures as plain json gives them."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run


@pytest.fixture(scope="module")
def folder(peers: Path) -> Path:
    return peers / "tau2-bench" / "yoheinakajima_activegraph" / "runs"


@pytest.fixture(scope="module")
def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/tau2_artifacts/results.json"))


@pytest.fixture(scope="module")
def runs(files: list[Path]) -> list[Run]:
    return [load_results("tau2", file) for file in files]


@pytest.fixture(scope="module")
def sources(files: list[Path]) -> list[Any]:
    return [json.loads(file.read_bytes()) for file in files]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_mean_reward_and_cost_by_domain(runs: list[Run], sources: list[Any]) -> None:
    """29 simulations of four domains; two of `mock` have no agent cost, because they go on from given messages."""
    plain: dict[str, list[Any]] = defaultdict(list)
    for source in sources:
        plain[f"tau2-{source['info']['environment_info']['domain_name']}"] += source["simulations"]
    trials = pl.concat([pl.DataFrame(run.trials) for run in runs])
    assert trials.height == sum(map(len, plain.values())) == 29
    figures = {}
    for suite, simulations in plain.items():
        ours = trials.filter(pl.col("suite") == suite)
        rewards = [each["reward_info"]["reward"] for each in simulations]
        costs = [each["agent_cost"] for each in simulations if each["agent_cost"] is not None]
        assert ours["score"].to_list() == pytest.approx(rewards)
        assert ours["solved"].sum() == sum(reward == 1 for reward in rewards)
        # each trial's dollars are rounded to micros; the exact ones stand in extra where that loses something
        assert ours["cost_micros"].drop_nulls().to_list() == [round(1e6 * cost) for cost in costs]
        exact = [
            json.loads(extra).get("cost_usd", micros / 1e6)
            for extra, micros in zip(ours["extra"], ours["cost_micros"], strict=True)
            if micros is not None
        ]
        assert mean(exact) == pytest.approx(mean(costs), rel=1e-12)
        figures[suite] = (ours.height, len(costs), round(mean(rewards), 4), round(mean(exact), 6))
    assert figures == {
        "tau2-mock": (16, 14, 0.5625, 0.000545),
        "tau2-airline": (11, 11, 0.2727, 0.007883),
        "tau2-retail": (1, 1, 1.0, 0.008431),
        "tau2-telecom": (1, 1, 1.0, 0.0113),
    }


def test_tokens_and_calls_of_the_agent(runs: list[Run], sources: list[Any]) -> None:
    """Its messages tell their tokens; those that a task puts before the dialogue, and the greeting, are not its own.
    98 calls stand under its name, 2 of them given; 4 of the 96 came back as an error. The user made 8."""
    want = {"prompt": 0, "cached": 0, "output": 0, "model_calls": 0}
    for source in sources:
        for message in (m for simulation in source["simulations"] for m in simulation["messages"]):
            if message["role"] == "assistant" and message["usage"]:
                want["model_calls"] += 1
                want["prompt"] += message["usage"]["prompt_tokens"]
                want["output"] += message["usage"]["completion_tokens"]
                want["cached"] += message["raw_data"]["usage"]["prompt_tokens_details"]["cached_tokens"]
    trials = pl.concat([pl.DataFrame(run.trials) for run in runs])
    fresh, cached = trials["tokens_fresh_input"].sum(), trials["tokens_cache_read"].sum()
    found = {
        "prompt": fresh + cached,
        "cached": cached,
        "output": trials["tokens_output"].sum(),
        "model_calls": trials["model_calls"].sum(),
    }
    assert found == want
    assert (want["model_calls"], cached) == (162, 501_120)
    assert (trials["tool_calls"].sum(), trials["tool_errors"].sum()) == (96, 4)
    extras = [json.loads(extra) for extra in trials["extra"]]
    assert sum(extra.get("user_tool_calls", 0) for extra in extras) == 8
    assert sum("calls_without_result" in extra for extra in extras) == 0
    assert sum(extra.get("given_messages", 0) for extra in extras) == 8


def test_ends(runs: list[Run]) -> None:
    trials = pl.concat([pl.DataFrame(run.trials) for run in runs])
    assert dict(trials.group_by("stop").len().iter_rows()) == {"done": 24, "budget": 5}
    assert not trials.filter(pl.col("stop") == "budget")["solved"].any()
    assert trials["excluded"].null_count() == 29


def test_a_folder_of_several(folder: Path, tmp_path: Path) -> None:
    """Three domains of one commit become one run; all sixteen hold the same trial several times, and are refused."""
    with pytest.raises(
        LabError, match=r"trial 1 of task 'create_task_1' \(mock by llm_agent .*import them apart"
    ):
        load_results("tau2", folder)
    for name in ("20260601-041116-120115", "20260601-041151-558787", "20260601-041221-091109"):
        shutil.copytree(folder / name, tmp_path / name)
    run = load_results("tau2", tmp_path, Options(name="three"))
    assert [suite.name for suite in run.card.suites] == ["tau2-airline", "tau2-retail", "tau2-telecom"]
    assert run.trials.column("solved").to_pylist() == [False, True, True]
    assert run.card.commit == "9275b50ce953bce876a02d23e93ee1dee88a4aef"
