"""A small desk of orders: a state world whose every answer can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Case, parse_cases
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.results.product import Arm, ProductRow, encode_rows, product_row, regrade
from agentbench_lab.running.trial import collect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

STATE: dict[str, Any] = {
    "orders": {
        "W77": {"status": "pending", "total": 27.99, "tags": ["gift"], "note": None},
        "W78": {"status": "shipped", "total": 10, "tags": [], "note": "ring twice"},
    },
    "refunds": [],
    "count": 0,
}


def tool(name: str, *, needs: str = "", may: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """A tool whose required arguments are texts."""
    texts: dict[str, Any] = {key: {"type": "string"} for key in needs.split()}
    schema = {"type": "object", "properties": {**texts, **(may or {})}, "required": needs.split()}
    return {"name": name, "description": name, "input_schema": schema, **keys}


THERE = {"path": "orders.{id}", "exists": True, "error": "there is no order {id}"}
TOOLS: list[dict[str, Any]] = [
    tool("get", needs="id", effects=[{"return": "orders.{id}"}]),
    tool(
        "cancel",
        needs="id",
        preconditions=[THERE, {"path": "orders.{id}.status", "equals": "pending", "error": "{id} has left"}],
        effects=[{"set": "orders.{id}.status", "value": "cancelled"}, {"increment": "count"}],
        result="{id} is cancelled",
    ),
    tool(
        "refund",
        needs="id",
        may={"amount": {"type": "number"}},
        preconditions=[{"path": "orders.{id}.total", "min": "{amount}", "if_given": "amount"}],
        effects=[
            {"append": "refunds", "value": {"order": "{id}", "amount": "{amount}"}, "if_given": "amount"},
            {"append": "orders.{id}.tags", "value": "refunded"},
        ],
    ),
    tool("note", needs="id", may={"text": {"type": ["string", "null"], "default": "-"}}, effects=[{"set": "orders.{id}.note", "value": "{text}"}]),
    tool("untag", needs="id", may={"at": {"type": "integer", "default": 0}}, effects=[{"delete": "orders.{id}.tags.{at}"}]),
    tool("drop", needs="id", effects=[{"delete": "orders.{id}"}]),
    # the second effect fails where the order is not there: nothing of the call may stay
    tool("both", needs="id", effects=[{"increment": "count", "by": 5}, {"set": "orders.{id}.status", "value": "both"}]),
]  # fmt: skip
ALL = [one["name"] for one in TOOLS]


def world() -> StateWorld:
    return StateWorld("desk", STATE, TOOLS)


def call(name: str, **input: Any) -> Call:
    return Call(name, input)


def line(**keys: Any) -> dict[str, Any]:
    """A whole case on disk: W77 has to be cancelled."""
    whole = {
        "id": "c",
        "group": "desk",
        "request": "Cancel W77",
        "tools": ALL,
        "expect": {"state": {"orders.W77.status": "cancelled"}},
        "gold": {"calls": [{"name": "cancel", "input": {"id": "W77"}}]},
    }
    return {key: value for key, value in {**whole, **keys}.items() if value is not None}


def problems_of(*lines: dict[str, Any]) -> list[str]:
    data = b"".join(json.dumps(one).encode() + b"\n" for one in lines)
    return [str(one) for one in parse_cases(data, name="desk", file="desk.jsonl")[1]]


def case(**expect: Any) -> Case:
    """A sound case that is judged by its outcome and expects this."""
    lines = [line(expect=expect), line(id="other")]
    cases, problems = parse_cases(
        b"".join(json.dumps(one).encode() + b"\n" for one in lines), name="desk", file="desk.jsonl"
    )
    assert problems == []
    assert cases[0].taxonomy == "outcome-graded"
    return cases[0]


def evidence_of(
    of: Case, transcript: Transcript, made: Iterable[Call], on: StateWorld | None = None
) -> Evidence:
    toolbox = Toolbox((on or world()).fork(), of.task.tools)
    for one in made:
        toolbox.call(one.name, one.input)
    return collect(of, of.task, transcript, toolbox.close(), toolbox)


def judge(of: Case, *made: Call, on: StateWorld | None = None, **said: Any) -> Grade:
    """The grade of a trial that makes these calls and says this, the same from its product row alone."""
    transcript = Transcript(**said)
    evidence = evidence_of(of, transcript, made, on)
    verdict = grade(of, transcript, evidence)
    row = product_row(of, of.task, Arm("d"), 1, "s", "strict", transcript, evidence, verdict)
    assert regrade(msgspec.json.decode(encode_rows([row]), type=ProductRow)) == verdict
    return verdict


def failed(verdict: Grade) -> dict[str, str]:
    return {check.name: check.detail for check in verdict.checks if not check.passed}
