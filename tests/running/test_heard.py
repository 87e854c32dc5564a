"""Agents whose calls are the ledger recover like those that name their calls: every way in gives the same verdict."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agentbench_lab.cases import Case, load_suite
from agentbench_lab.results.product import regrade
from agentbench_lab.results.run import Run
from agentbench_lab.running.bridged import Trial
from agentbench_lab.running.runner import evaluate
from agentbench_lab.users import User
from agentbench_lab.worlds.find import Worlds

from ..agents.openai_server import calls, serving
from ..doing import ROOT

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
    asked = task["parts"][0] if task["role"] == "part" else task["request"]
    *made, ending = known[asked.split("\\n")[0]]["" if task["role"] != "synthesis" else "synthesis"]
    for name, given in made:
        print(json.dumps({"call": {"name": name, "input": given}}), flush=True)
        sys.stdin.readline()
    print(json.dumps({"final": ending}), flush=True)
"""


def final_of(case: Case) -> dict[str, Any]:
    return {"answer": list(case.expect.result or ()), "status": "success"}


def program(folder: Path, cases: Sequence[Case] = CASES) -> str:
    """A program that knows each request, each part of one, and each turn of a conversation."""
    known = {}
    for case in cases:
        *made, _ = steps(case)
        whole = {"": [*made, final_of(case)], "synthesis": [final_of(case)]}
        known[case.task.request.split("\n")[0]] = whole
        if case.task.parts:
            known[case.task.parts[0]] = {"": [*made[:1], {"text": "There is none."}]}
            known[case.task.parts[1]] = {"": [*made[1:], final_of(case)]}
        if case.user is not None:
            known[case.task.request.split("\n")[0]] = {"": [*made[:1], {"text": "There is none. What now?"}]}
            known[case.user.script[0]] = {"": [*made[1:], final_of(case)]}
    (folder / "known.json").write_text(json.dumps(known), encoding="utf-8")
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    return f"command:{sys.executable} -I -S {folder}/worker.py {folder}/known.json"


def test_a_program(tmp_path: Path, right: dict[str, tuple[Any, ...]]) -> None:
    assert verdicts(evaluate("ladder", program(tmp_path), group="TOOL-7", save_run=False)) == right


def in_two(case: Case) -> Case:
    """The same case, whose request has a part for the call that fails and one for what follows."""
    parts = (f"First of {case.id}.", f"Then of {case.id}.")
    return replace(case, task=replace(case.task, parts=parts))


@pytest.mark.parametrize("parted", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize("scaffold", ["linear", "fan_out_4", "durable:linear", "durable:fan_out_4"])
def test_a_program_under_a_scaffold(
    tmp_path: Path, right: dict[str, tuple[Any, ...]], scaffold: str, parted: bool
) -> None:
    """The call that fails may be another worker's than the one that follows it."""
    suite = load_suite("ladder")
    cases = [in_two(case) for case in CASES] if parted else CASES
    run = evaluate(
        replace(suite, cases=tuple(cases)), program(tmp_path, cases), scaffolds=[scaffold], save_run=False
    )
    assert verdicts(run) == right


def test_a_program_that_crashes_between_its_parts(tmp_path: Path, right: dict[str, tuple[Any, ...]]) -> None:
    """What a finished step is taken to claim is on disk with it."""
    cases = tuple(in_two(case) for case in CASES)
    driver = f"faulty:0.2:{program(tmp_path, cases)}"
    run = evaluate(
        replace(load_suite("ladder"), cases=cases), driver, scaffolds=["durable:linear"], save_run=False
    )
    assert verdicts(run) == right
    assert run.attempts.num_rows > len(CASES)


def test_a_program_in_a_conversation(tmp_path: Path, right: dict[str, tuple[Any, ...]]) -> None:
    """The call that fails is made in one turn, and what follows it in the next."""
    cases = tuple(replace(case, user=User("", (f"Go on with {case.id}.",))) for case in CASES)
    run = evaluate(replace(load_suite("ladder"), cases=cases), program(tmp_path, cases), save_run=False)
    assert verdicts(run) == right


def test_what_one_turn_names_holds_for_it_whatever_the_next_one_does(
    right: dict[str, tuple[Any, ...]],
) -> None:
    """A turn that names its calls has looked at something beside them; the last turn names none."""

    def agent(task: Any, tools: Any, ctx: Any) -> dict[str, Any]:
        case = next(
            case for case in CASES if case.task.request in (task.request, *(m.text for m in task.history))
        )
        first, *rest = case.expect.expected_calls
        if not task.history:
            tools.call(first.name, first.input)
            tools.call(rest[-1].name, rest[-1].input)
            return {"calls": [{"name": first.name, "input": first.input}], "text": "There is none."}
        for call in rest:
            tools.call(call.name, call.input)
        calls = [{"name": call.name, "input": call.input} for call in rest]
        return {"calls": calls, "heard": True, "composed": list(case.expect.result or ())}

    cases = tuple(replace(case, user=User("", ("And then?",))) for case in CASES)
    run = evaluate(replace(load_suite("ladder"), cases=cases), agent, save_run=False)
    assert verdicts(run) == right


@pytest.mark.parametrize("scaffold", ["once", "linear", "fan_out_4"])
def test_a_recording_played_back(tmp_path: Path, right: dict[str, tuple[Any, ...]], scaffold: str) -> None:
    cases = [in_two(case) for case in CASES]
    suite, given = replace(load_suite("ladder"), cases=tuple(cases)), {"scaffolds": [scaffold]}
    tape = tmp_path / "tape.jsonl"
    evaluate(suite, program(tmp_path, cases), record=tape, out=tmp_path / "first", **given)
    assert verdicts(evaluate(suite, f"replay:{tape}", save_run=False, **given)) == right


AGENTD = f"""
import json, sys
sys.path.insert(0, {str(ROOT / "tests" / "agents")!r})
import agentd_standin as it
asked = dict(zip(sys.argv[1:], sys.argv[2:]))
server = it.Server(asked["--mcp"].partition("=")[2])
for name, given in json.load(open(sys.argv[1]))[asked["--instruction"]]:
    server.ask("tools/call", name=name, arguments=given)
"""


def test_a_program_with_the_contract_of_agentd(tmp_path: Path, right: dict[str, tuple[Any, ...]]) -> None:
    known, agent = tmp_path / "known.json", tmp_path / "agent.py"
    known.write_text(json.dumps({request: steps(case) for request, case in ASKED.items()}), encoding="utf-8")
    agent.write_text(AGENTD, encoding="utf-8")
    run = evaluate(
        "ladder",
        f"command[agentd]:{sys.executable} {agent} {known}",
        group="TOOL-7",
        workers=2,
        save_run=False,
    )
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
