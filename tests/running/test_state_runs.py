"""Cases on a state from file to product row and back: policy, limits, workers, going on, judging again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Limits, Task, parse_cases
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.grading import Evidence
from agentbench_lab.grading import grade as graded
from agentbench_lab.results.product import read_product, regrade
from agentbench_lab.results.run import load_run
from agentbench_lab.running.merge import regrade_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.seen import LOST, Seen
from agentbench_lab.worlds.toolbox import Toolbox

from ..states import STATE, TOOLS, line

WORLD = {"kind": "state", "state": STATE, "tools": TOOLS}
CASES = [
    line(id="cancel", policy="Cancel pending orders only."),
    line(id="leave", request="Cancel W78", expect={"refuse": True, "state_equals": {}}, gold=None),
    line(id="ask", request="What did W77 cost?", expect={"answer": {"number": 27.99}, "state_equals": {}}, gold=None),
    line(id="inline", world=WORLD, request="Cancel W77 only", expect={"state_equals": {"orders.W77.status": "cancelled", "count": 1}}),
]  # fmt: skip


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "desk.json").write_text(json.dumps(WORLD))
    file = tmp_path / "desk.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in CASES))
    return file


def clerk(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Knows what to do, and ends every task through the control tools, as agents that chat do."""
    if task.request == "Cancel W78":
        tools.call("refuse", {"reason": tools.call("cancel", {"id": "W78"}).text})
    elif "cost" in task.request:
        tools.call("answer", {"value": tools.call("get", {"id": "W77"}).value["total"], "status": "success"})
    else:
        tools.call("cancel", {"id": "W77"})
        tools.call("answer", {"value": "done", "status": "success"})
    return Transcript(usage=Usage.zero())


def vandal(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Cancels what it is asked, then drops what it is not."""
    tools.call("cancel", {"id": "W77"})
    tools.call("drop", {"id": "W78"})
    return Transcript(usage=Usage.zero(), notes=(task.policy, ctx.policy))


def test_a_whole_run_and_its_rows_alone_say_the_same(suite: Path, tmp_path: Path) -> None:
    run = evaluate(suite, [clerk, vandal], out=tmp_path / "run", stamp="s", trials=2)
    assert run.card.taxonomy == "outcome-graded"
    outcomes = {(row.arm.driver.rpartition(":")[2], row.case_id): row.verdict.outcome for row in run.product}
    assert outcomes == {
        ("clerk", "cancel"): "solved",
        ("clerk", "leave"): "correct_refusal",
        ("clerk", "ask"): "solved",
        ("clerk", "inline"): "solved",
        ("vandal", "cancel"): "solved",
        ("vandal", "leave"): "unauthorized_change",
        ("vandal", "ask"): "unsolved",
        ("vandal", "inline"): "unsolved",
    }
    rows = list(read_product(tmp_path / "run" / "product.jsonl"))
    assert rows == list(run.product)
    for row in rows:
        again = regrade(row)
        assert (again.outcome, again.checks) == (row.verdict.outcome, row.verdict.checks)
    said = {row["case_id"]: row["note"] for row in run.trials.to_pylist() if row["driver"].endswith("vandal")}
    assert said["cancel"] == "Cancel pending orders only."
    assert {row["expect"] for row in run.trials.to_pylist()} == {"state", "refuse"}
    diffs = [
        json.loads(row["state_diff"])
        for row in run.calls.to_pylist()
        if row["name"] == "cancel" and row["state_diff"]
    ]
    assert [
        {"path": "count", "old": 0, "new": 1},
        {"path": "orders.W77.status", "old": "pending", "new": "cancelled"},
    ] in diffs
    counted = metrics.outcomes(run.trials, run.card.outcome_set)
    assert counted.filter(counted["outcome"] == "correct_refusal")["of"].to_list() == [2, 2]
    regraded, changed = regrade_run(tmp_path / "run", tmp_path / "again")
    assert changed == [] and regraded.product == run.product
    assert load_run(tmp_path / "run").product == run.product


def test_trials_do_not_meet_and_workers_change_no_byte(suite: Path, tmp_path: Path) -> None:
    """Both drivers change the same world of the same case, many times, in threads and in processes."""
    drivers = [clerk, vandal]
    for name, keys in {
        "one": {},
        "threads": {"workers": 4},
        "processes": {"workers": 2, "executor": "processes"},
    }.items():
        evaluate(suite, drivers, out=tmp_path / name, stamp="s", trials=5, **keys)  # type: ignore[arg-type]
    bytes_of = {(tmp_path / name / "product.jsonl").read_bytes() for name in ("one", "threads", "processes")}
    assert len(bytes_of) == 1


def test_a_trial_that_is_cut_off_is_judged_on_what_it_did(suite: Path) -> None:
    run = evaluate(suite, vandal, only="inline", save_run=False, limits=Limits(wall_s=5, tool_calls=1))
    (row,) = run.product
    assert row.verdict.outcome == "budget"
    assert {check.name: check.passed for check in row.verdict.checks}["state_equals"] is True


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"strictness": "original"}, "strictness original is the ladder's; desk is judged by its outcomes"),
        ({"ladder": True}, "--ladder needs rungs; desk has the group 'desk'"),
    ],
)
def test_what_is_the_ladders_alone_is_refused(suite: Path, keys: dict[str, Any], says: str) -> None:
    with pytest.raises(LabError, match=says):
        evaluate(suite, clerk, save_run=False, **keys)


def test_a_state_is_expected_of_a_world_that_has_one(suite: Path) -> None:
    from ..doing import tiny_world

    text = (
        suite.read_text(encoding="utf-8")
        .replace('"tools": ["get"', '"tools": ["tmct_describe"')
        .splitlines()[0]
    )
    one = {**json.loads(text), "tools": ["tmct_describe"], "gold": None}
    suite.write_text(
        json.dumps({key: value for key, value in one.items() if value is not None}) + "\n", encoding="utf-8"
    )
    with pytest.raises(
        LabError, match=r"desk.jsonl:1: cancel: expects a state, and world 'tiny' is a codegraph"
    ):
        evaluate(suite, clerk, save_run=False, world=tiny_world())


def test_a_run_is_not_gone_on_with_under_other_outcomes(suite: Path, tmp_path: Path) -> None:
    """The one case stays as it is, and its suite becomes one of the ladder's outcomes."""
    plain = {"id": "p", "group": "g", "request": "Get W77", "tools": ["get"], "world": "desk", "expect": {"calls": [{"name": "get", "input": {"id": "W77"}}], "terminates": True}}  # fmt: skip
    suite.write_text("".join(json.dumps(one) + "\n" for one in (plain, CASES[0])), encoding="utf-8")
    run = evaluate(suite, clerk, out=tmp_path / "run", stamp="s", only="p")
    assert run.card.taxonomy == "outcome-graded"
    suite.write_text(json.dumps(plain) + "\n", encoding="utf-8")
    with pytest.raises(
        LabError, match="is judged by the outcomes outcome-graded, and its suite is now one of ladder"
    ):
        evaluate(suite, clerk, out=tmp_path / "run", stamp="s", only="p", trials=2)


@pytest.mark.parametrize(
    "grade",
    [
        {"state": {"count": 0}},
        {"state_absent": ["refunds.R1"]},
        {"tool_calls": {"name": "get"}},
    ],
)
def test_a_world_that_was_lost_is_not_read_afresh_under_a_published_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grade: dict[str, Any]
) -> None:
    """The rule of agentd looks at what was done, not at how it ended: where nobody knows what was done, nothing is
    decided. A fresh world would pass what expects that nothing has changed."""
    (tmp_path / "gone_drivers.py").write_text(
        "import os\n"
        "def gone(task, tools, ctx):\n"
        "    tools.call('get', {'id': 'W77'})\n"
        "    tools.call('cancel', {'id': 'W77'})\n"
        "    os._exit(9)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "desk.jsonl"
    one = line(world=WORLD, gold=None, expect={"agentd": {"grade": grade, "expect": {}}})
    file.write_text(json.dumps(one) + "\n", encoding="utf-8")
    run = evaluate(file, "gone_drivers:gone", save_run=False, executor="processes")
    (row,) = run.trials.to_pylist()
    assert (row["excluded"], row["excluded_owner"]) == (LOST, "environment")
    assert (row["outcome"], row["solved"]) == (None, None)
    counts = run.card.counts
    assert (counts.judged, counts.excluded, counts.missing) == (0, 1, 0)


def test_a_trial_that_ran_out_of_time_fails_under_it_whatever_was_lost() -> None:
    (case,) = parse_cases(
        json.dumps(
            line(gold=None, expect={"agentd": {"grade": {"state": {"count": 0}}, "expect": {}}})
        ).encode(),
        name="desk",
        file="desk.jsonl",
    )[0]
    cut = Transcript(terminated=False, stop="timeout")
    assert graded(case, cut, Evidence(seen=Seen(lost=True))).outcome == "timeout"
