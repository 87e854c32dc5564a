"""Agents whose calls are the ledger recover like those that name their calls: every way in gives the same verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Case, load_suite
from agentbench_lab.results.product import regrade
from agentbench_lab.results.run import Run
from agentbench_lab.running.bridged import Trial
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.find import Worlds

from ..agents.openai_server import calls, serving

CASES = tuple(case for case in load_suite("ladder").cases if case.group == "TOOL-7")
ASKED = {case.task.request: case for case in CASES}


def steps(case: Case) -> list[tuple[str, dict[str, Any]]]:
    """The calls that are expected, and the result as an answer."""
    ending = ("answer", {"value": list(case.expect.result or ()), "status": "success"})
    return [*((call.name, call.input) for call in case.expect.expected_calls), ending]


def own_account(task: Any, tools: Any, ctx: Any) -> dict[str, Any]:
    """A driver that names the calls it made."""
    *made, (_, ending) = steps(ASKED[task.request])
    for name, given in made:
        tools.call(name, given)
    return {"calls": [{"name": name, "input": given} for name, given in made], "composed": ending["value"]}


def verdicts(run: Run) -> dict[str, tuple[Any, ...]]:
    assert all(regrade(row).checks == row.verdict.checks for row in run.product)
    return {
        row.case_id: (row.verdict.outcome, row.verdict.solved, row.verdict.result_completed)
        for row in run.product
    }


@pytest.fixture(scope="module")
def right() -> dict[str, tuple[Any, ...]]:
    run = evaluate("ladder", own_account, group="TOOL-7", save_run=False)
    found = verdicts(run)
    assert found == {case.id: ("correct_calls", True, True) for case in CASES}
    # there are calls that come back with an error, which is what this is about
    assert sum("tool_error" in [call.status for call in row.produced.ledger] for row in run.product) == 8
    return found


def test_a_chat_model(right: dict[str, tuple[Any, ...]]) -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        (request,) = [said["content"] for said in body["messages"] if said["role"] == "user"]
        told = sum(said["role"] == "tool" for said in body["messages"])
        return calls(steps(ASKED[request])[told])

    with serving(script) as server:
        run = evaluate("ladder", f"chat:m@{server.url}", group="TOOL-7", save_run=False)
    assert verdicts(run) == right


WORKER = """\
import json, sys
known = json.load(open(sys.argv[1]))
for line in sys.stdin:
    task = json.loads(line).get("task")
    if task is None:
        continue
    *made, ending = known[task["request"]]
    for name, given in made:
        print(json.dumps({"call": {"name": name, "input": given}}), flush=True)
        sys.stdin.readline()
    print(json.dumps({"final": {"answer": ending[1]["value"], "status": "success"}}), flush=True)
"""


def test_a_program(tmp_path: Path, right: dict[str, tuple[Any, ...]]) -> None:
    known, worker = tmp_path / "known.json", tmp_path / "worker.py"
    known.write_text(json.dumps({request: steps(case) for request, case in ASKED.items()}), encoding="utf-8")
    worker.write_text(WORKER, encoding="utf-8")
    run = evaluate("ladder", f"command:{sys.executable} {worker} {known}", group="TOOL-7", save_run=False)
    assert verdicts(run) == right


def test_an_agent_over_the_bridge(right: dict[str, tuple[Any, ...]]) -> None:
    worlds = Worlds(load_suite("ladder"), None)
    found = {}
    for case in CASES:
        trial = Trial(case, worlds.of(case))
        for name, given in steps(case):
            trial.toolbox.call(name, given)
        grade = trial.end().grade
        assert grade is not None
        found[case.id] = (grade.outcome, grade.solved, grade.result_completed)
    assert found == right


def test_who_gives_up_after_the_failing_call_has_not_recovered() -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        (request,) = [said["content"] for said in body["messages"] if said["role"] == "user"]
        first, *_, ending = steps(ASKED[request])
        told = sum(said["role"] == "tool" for said in body["messages"])
        return calls(ending if told else first)

    with serving(script) as server:
        run = evaluate("ladder", f"chat:m@{server.url}", group="TOOL-7", save_run=False)
    assert {row.verdict.solved for row in run.product} == {False}
