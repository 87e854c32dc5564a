"""agentd's own suites by a program with its contract, in its own modes: grades, calls and tokens as its files say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases
from agentbench_lab.errors import LabError
from agentbench_lab.running.runner import evaluate

from ..doing import ROOT

STAND_IN = ROOT / "tests" / "agents" / "agentd_standin.py"
DRIVER = f"command[agentd]:{sys.executable} -I -S {STAND_IN} --intelligence mock:auto --mode {{native}}"


@pytest.fixture(scope="module")
def agentd(peers: Path) -> Path:
    return peers / "agentd"


def rows(suite: Any, *modes: str, trials: int = 1) -> dict[tuple[str, str], list[tuple[bool, int, int]]]:
    """By scaffold and task, of each trial: whether it passed, its tokens, its tool calls."""
    scaffolds = [f"native:{mode}" for mode in modes]
    run = evaluate(suite, DRIVER, scaffolds=scaffolds, trials=trials, save_run=False)
    found: dict[tuple[str, str], list[tuple[bool, int, int]]] = {}
    for row in run.trials.to_pylist():
        tokens = row["tokens_fresh_input"] + row["tokens_output"]
        key = row["scaffold"].removeprefix("native:"), row["case_id"]
        found.setdefault(key, []).append((row["solved"], tokens, row["tool_calls"]))
    return found


@pytest.mark.parametrize("name", ["smoke", "bfcl_smoke", "tau2_smoke", "swe_smoke"])
def test_a_suite_is_as_its_scorecard_says(agentd: Path, name: str) -> None:
    card = json.loads((agentd / "reference" / f"scorecard.{name}.json").read_text(encoding="utf-8"))
    found = rows(load_cases(agentd / f"{name}.jsonl"), "once", trials=2)
    assert found == {
        ("once", task["id"]): [(task["pass_at_1"], task["mean_tokens"], task["mean_tool_calls"])] * 2
        for task in card["tasks"]
    }
    assert {tokens for trials in found.values() for _, tokens, _ in trials} <= {16, 34}


def test_its_own_modes_are_native_scaffolds(agentd: Path) -> None:
    file = json.loads((agentd / "reference" / "ablation.json").read_text(encoding="utf-8"))
    found = rows(load_cases(agentd / "ablation_smoke.jsonl"), *file["configs"])
    assert found == {
        (mode, task["id"]): [(task["pass_at_1"], task["tokens"], task["tokens"] / 34)]
        for mode, tasks in file["per_task"].items()
        for task in tasks
    }
    assert [found[mode, "ablate-state"][0][1] for mode in ("once", "workflow", "fanout-3")] == [34, 34, 102]


def test_a_mode_that_it_has_not_is_its_own_failure(agentd: Path) -> None:
    run = evaluate(
        load_cases(agentd / "ablation_smoke.jsonl"), DRIVER, scaffolds=["native:fan-in"], save_run=False
    )
    (row,) = run.product
    assert row.produced.stop == "driver_error"
    assert "it does not take these arguments (exit 2)" in row.produced.why
    with pytest.raises(LabError, match="native"):
        evaluate(load_cases(agentd / "ablation_smoke.jsonl"), DRIVER, save_run=False)


def test_what_fails_when_nothing_is_done_fails_here_too(agentd: Path) -> None:
    """The same suites by an agent that only talks."""
    driver = DRIVER.replace("mock:auto", "mock:final").replace("{native}", "once")
    for name in ("bfcl_smoke", "tau2_smoke", "swe_smoke"):
        run = evaluate(load_cases(agentd / f"{name}.jsonl"), driver, save_run=False)
        assert not any(row.verdict.solved for row in run.product)


def test_a_conversation_is_as_its_scorecard_says(agentd: Path) -> None:
    """The program on both sides: 34 and 34 tokens of the agent, 16 of the user between."""
    pytest.importorskip("agentbench_lab.conversation")
    card = json.loads((agentd / "reference" / "scorecard.tau2_convo_smoke.json").read_text(encoding="utf-8"))
    (task,) = card["tasks"]
    both = DRIVER.replace("{native}", "once")
    suite = load_cases(agentd / "tau2_convo_smoke.jsonl", users=True)
    run = evaluate(suite, both, user=both, save_run=False)  # type: ignore[call-arg]
    (row,) = run.trials.to_pylist()
    assert (row["solved"], row["tool_calls"]) == (task["pass_at_1"], task["mean_tool_calls"])
    used = json.loads(row["extra"])["user"]["usage"]
    agents, users = row["tokens_fresh_input"] + row["tokens_output"], used["fresh_input"] + used["output"]
    assert (agents, users, agents + users) == (68, 16, task["mean_tokens"])
