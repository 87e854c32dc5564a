"""The real gpt-4o airline trajectories of tau-bench: 50 tasks, 4 trials each, against its published table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.results.run import Run
from agentbench_lab.stats import pass_hat_k


@pytest.fixture(scope="module")
def file(peers: Path) -> Path:
    return peers / "tau-bench" / "historical_trajectories" / "gpt-4o-airline.json"


@pytest.fixture(scope="module")
def run(file: Path) -> Run:
    return load_results("tau-bench", file, Options(driver="tool-calling", model="gpt-4o"))


def solved_by_case(run: Run) -> list[int]:
    trials = pl.DataFrame(run.trials).group_by("case_id").agg(pl.col("solved").sum(), pl.len())
    assert trials["len"].to_list() == [4] * 50
    return [int(count) for count in trials["solved"]]


def test_pass_hat_k_is_the_published_one(run: Run) -> None:
    """The row `TC (gpt-4o)` of the repository's README, Airline: 0.420 0.273 0.220 0.200."""
    solved = solved_by_case(run)
    found = []
    for k in range(1, 5):
        shares = [share for count in solved if (share := pass_hat_k(count, 4, k)) is not None]
        found.append(sum(shares) / len(shares))
    assert [f"{share:.3f}" for share in found] == ["0.420", "0.273", "0.220", "0.200"]
    assert Counter(solved) == {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}


def test_calls_and_errors(run: Run) -> None:
    """1,164 calls, of which 73 came back as an error: 6.27 %."""
    statuses = Counter(run.calls.column("status").to_pylist())
    assert statuses == {"ok": 1091, "tool_error": 73}
    assert f"{100 * 73 / 1164:.2f}" == "6.27"
    trials = pl.DataFrame(run.trials)
    assert (trials["tool_calls"].sum(), trials["tool_errors"].sum()) == (1164, 73)


def test_nothing_is_lost_of_the_file(run: Run, file: Path) -> None:
    """Checked with plain json: every dialogue, every reward, the five that did not finish, what the user cost."""
    episodes = json.loads(file.read_bytes())
    trials = pl.DataFrame(run.trials)
    assert (run.card.suites[0].name, run.card.suites[0].cases) == ("tau-bench-airline", 50)
    assert (run.card.counts.asked, run.card.counts.excluded, run.card.counts.missing) == (200, 0, 0)
    rows = {(row["case_id"], row["trial"]): row for row in trials.to_dicts()}
    messages = {
        (row["case_id"], row["trial"]): json.loads(row["messages"]) for row in run.transcripts.to_pylist()
    }
    for episode in episodes:
        key = (str(episode["task_id"]), episode["trial"] + 1)
        assert rows[key]["score"] == episode["reward"]
        assert [m["role"] for m in messages[key]] == [m["role"] for m in episode["traj"]]
        assert [m.get("content") for m in messages[key]] == [m["content"] for m in episode["traj"]]
    stopped = trials.filter(pl.col("stop") == "budget")
    assert sorted(zip(stopped["case_id"], stopped["trial"], strict=True)) == [
        ("2", 2),
        ("33", 1),
        ("46", 4),
        ("9", 3),
        ("9", 4),
    ]
    assert not stopped["solved"].any()
    assert stopped["steps"].to_list() == [30] * 5
    costs = [json.loads(extra).get("user_cost_usd") for extra in trials["extra"]]
    known = [cost for cost in costs if cost is not None]
    assert (len(known), round(sum(known), 5)) == (195, 0.50315)
    assert trials["cost_micros"].null_count() == 200
