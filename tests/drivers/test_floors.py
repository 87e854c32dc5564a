"""The floor of the ladder, and the two ways to game a single number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.floors import reckless, refuse_all
from agentbench_lab.drivers.stub import stub
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.codetools import REGISTRY
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import tiny_world, write_suite


def drive(driver: Any, request: str, *tools: str) -> tuple[Transcript, Toolbox]:
    task = Task(request, tuple(f"tmct_{tool}" for tool in tools))
    box = Toolbox(tiny_world(), task.tools)
    return driver(task, box, Context(box, task, seed="s", trial=1)), box


@pytest.mark.parametrize(
    ("request_", "tool", "input"),
    [
        ("Describe Cart", "describe", {"symbol": "Cart"}),
        ("What is GiftCart?", "describe", {"symbol": "GiftCart"}),
        ("Tell me about `Cart.add`.", "describe", {"symbol": "Cart.add"}),
        ("who calls tax", "callers", {"symbol": "tax"}),
        ("Which functions are calling tax?", "callers", {"symbol": "tax"}),
        ("list the callees of Cart.total", "callees", {"symbol": "Cart.total"}),
        ("What is the impact of app/money.py", "impact", {"module": "app/money.py"}),
        ("Which modules are untested?", "untested", {}),
        ("The members of the class Cart", "members", {"class": "Cart"}),
        ("Subclasses of Cart please", "subclasses", {"class": "Cart"}),
        ("Search for tax", "search", {"query": "tax"}),
        ("A synonym of basket", "related", {"term": "basket"}),
    ],
)
def test_the_stub_takes_a_keyword_and_an_entity(request_: str, tool: str, input: dict[str, str]) -> None:
    """One real call, borne out by the ledger, with the proof that the ledger supports."""
    said, box = drive(stub, request_, tool)
    assert said.calls == (Call(f"tmct_{tool}", input),)
    assert [(row.name, row.input, row.status) for row in box.ledger] == [(f"tmct_{tool}", input, "ok")]
    assert said.driver == "stub-floor"
    assert said.usage == Usage.zero()
    assert all(step.get("ok", True) for step in said.proof)
    assert said.proof


@pytest.mark.parametrize(
    ("request_", "tool", "why"),
    [
        ("Make me a sandwich", "describe", "no recognized intent"),
        ("Describe Cart", "callers", "tmct_describe is not declared"),
        ("Describe", "describe", "no entity named"),
        ("Describe Ledger", "describe", "unresolvable: nothing in the graph"),
        ("Describe total", "describe", "unresolvable: "),
    ],
)
def test_the_stub_refuses_the_rest(request_: str, tool: str, why: str) -> None:
    """And claims no call, whatever it tried."""
    said, _ = drive(stub, request_, tool)
    assert (said.refused, said.stop, said.calls, said.proof) == (True, "refused", (), ())
    assert said.notes[0].startswith(why)


def test_the_stub_never_takes_a_tool_that_is_not_declared() -> None:
    """Whatever the words: it touches nothing else, and nothing at all where its own choice is not declared."""
    for request in (
        "Describe Cart",
        "search tax",
        "callers of tax",
        "impact of app/money.py",
        "history of Cart",
    ):
        for tool in REGISTRY.names:
            said, box = drive(stub, request, tool.removeprefix("tmct_"))
            assert {row.name for row in box.ledger} | {call.name for call in said.calls} <= {tool}


def test_refuse_all_touches_nothing() -> None:
    said, box = drive(refuse_all, "Describe Cart", "describe")
    assert (said.refused, said.calls, box.ledger, said.driver) == (True, (), (), "refuse-all")


def test_reckless_calls_everything_and_hallucinates_every_time() -> None:
    """Every declared tool, with an argument that none has: each is in the ledger as malformed, and as claimed."""
    said, box = drive(reckless, "Describe Cart", "describe", "untested", "search")
    assert [call.name for call in said.calls] == ["tmct_describe", "tmct_untested", "tmct_search"]
    assert {row.status for row in box.ledger} == {"malformed"}
    assert not said.refused
    assert drive(reckless, "", "describe")[0].calls


def test_no_single_number_sees_through_them(tmp_path: Path) -> None:
    """One has no hallucination, the other no refusal; the gate is shut for both."""
    run = evaluate(write_suite(tmp_path), ["refuse_all", "reckless"], save_run=False)
    marks = {
        (row["driver"], row["metric"]): row["estimate"]
        for row in metrics.ladder(run.trials).iter_rows(named=True)
        if row["group"] == "all"
    }
    assert marks["refuse_all", "hallucinated"] == 0
    assert marks["reckless", "hallucinated"] == 1
    assert [envelope.gated_at for envelope in run.card.envelope] == [
        "TOOL-0 completion 0% < 50%",
        "TOOL-0 hallucination 100%, completion 0% < 50%",
    ]
