"""The toolbox: statuses, the ledger as private copies, control tools, limits, the end, threads, hostile arguments."""

from __future__ import annotations

import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.cases import Expect
from agentbench_lab.errors import LabError
from agentbench_lab.worlds.capabilities import Capability, Effect, Parameter, Registry
from agentbench_lab.worlds.rounds import Rounds
from agentbench_lab.worlds.toolbox import (
    CONTROL_TOOLS,
    TEXT_LIMIT,
    BudgetSpent,
    Ending,
    Fact,
    LedgerRow,
    Ran,
    Toolbox,
)

from ..helpers import ALL, REGISTRY, Garden

OAK = {"what": "oak"}
SERIES = {"values": [1, 2.5], "rate": 0.5, "count": 1, "loop": True}


def toolbox(*declared: str, **options: Any) -> Toolbox:
    return Toolbox(Garden(), declared or ALL, **options)


# -- statuses


@pytest.mark.parametrize(
    ("name", "input", "status", "text"),
    [
        ("look", OAK, "ok", "a tree called oak"),
        ("all", None, "ok", "ash, elm, oak"),
        ("all", {}, "ok", "ash, elm, oak"),
        ("resample", {**SERIES, "count": 1.0}, "ok", None),
        ("look", {"what": "fir"}, "tool_error", "there is no fir"),
        ("look", {"what": 7}, "schema_error", "type: what must be string, not integer"),
        ("resample", {**SERIES, "count": "1"}, "schema_error", "type: count must be integer, not string"),
        ("resample", {**SERIES, "count": 1.5, "loop": 1}, "schema_error", "type: count must be integer, not number; type: loop must be boolean, not integer"),
        ("look", {}, "malformed", "missing-arg: look.what"),
        ("look", None, "malformed", "missing-arg: look.what"),
        ("look", {"what": "oak", "speed": 2}, "malformed", "unknown-arg: look.speed"),
        ("look", "oak", "malformed", "missing-arg: look.what"),
        ("look", ["oak"], "malformed", "unknown-arg: look.0; missing-arg: look.what"),
        ("all", "oak", "malformed", "the arguments must be a JSON object"),
        ("all", [], "malformed", "the arguments must be a JSON object"),
        ("all", 0, "malformed", "the arguments must be a JSON object"),
        ("find", {"query": " "}, "malformed", "missing-arg: find needs one of query|kind"),
        ("paint", OAK, "undeclared", "undeclared: paint; missing-arg: paint.colour"),
        ("burn", {}, "undeclared", "unknown-tool: burn"),
        ("Look", OAK, "undeclared", "unknown-tool: Look"),
        ("", {}, "undeclared", "unknown-tool: no tool name"),
    ],
)  # fmt: skip
def test_every_call_has_a_status_a_text_and_a_row(
    name: str, input: Any, status: str, text: str | None
) -> None:
    """Nothing raises; what the agent is told stands in the ledger too."""
    tools = toolbox("look", "near", "all", "find", "resample")
    seen = tools.call(name, input)
    assert seen.status == status
    assert seen.ok is (status == "ok")
    if text is not None:
        assert seen.text == text
    [row] = tools.close()
    assert (row.name, row.input, row.status, row.text) == (
        name,
        {} if input is None else input,
        status,
        seen.text,
    )
    assert bool(row.problems) is (
        status in ("undeclared", "malformed") and not seen.text.startswith("the arg")
    )
    assert bool(row.misfits) is (status == "schema_error")
    assert bool(row.facts) is (status in ("ok", "tool_error") and name != "resample")


def test_a_row_keeps_the_preconditions_of_that_moment_and_the_effects_of_what_worked() -> None:
    tools = toolbox()
    tools.call("look", OAK)
    tools.call("look", {"what": "fir"})
    tools.call("paint", {**OAK, "colour": "red"})
    good, bad, changed = tools.ledger
    assert good.facts == (Fact("cap:graph-loaded", True), Fact("cap:resolves", True, "what", "oak"))
    assert good.effects == (Effect("view", "?what"),)
    assert bad.facts[1] == Fact("cap:resolves", False, "what", "fir")
    assert (bad.effects, bad.value, bad.diff) == ((), None, None)
    assert (good.changes, changed.changes) == (False, True)
    assert changed.diff == {"before": None, "after": "red"}


def test_an_agent_is_shown_the_declared_tools_and_the_three_ways_to_end() -> None:
    """An excluded or unknown name is declared in vain; a world's own tool of a control name takes its place."""
    shown = toolbox("near", "burn", "resample").tools
    assert [tool.name for tool in shown] == ["near", "resample", "refuse", "answer", "goal"]
    assert shown[0].input_schema["required"] == ["what"]
    assert shown[1].input_schema["properties"]["values"]["items"] == {"type": "number"}

    class Own(Garden):
        registry = Registry((*REGISTRY.capabilities, Capability("answer", "answer", "Its own.")))

        def run(self, name: str, input: dict[str, Any]) -> Ran:
            return Ran([], "mine")

    own = Toolbox(Own(), ["answer"])
    assert [tool.name for tool in own.tools] == ["answer", "refuse", "goal"]
    assert own.call("answer").text == "mine"
    assert len(own.ledger) == 1
    assert own.ending == Ending()


# -- private copies


def test_changing_arguments_or_values_later_changes_no_row() -> None:
    """What was asked, what was seen and what is kept are three copies."""
    tools = toolbox()
    series = {**SERIES, "values": [1, 2]}
    seen = tools.call("resample", series)
    series["values"].append(99)
    series["rate"] = 9.9
    seen.value["values"].clear()
    seen.value["rate"] = 7.7
    [row] = tools.ledger
    assert row.input == {**SERIES, "values": [1, 2]}
    assert row.value == {**SERIES, "values": [1, 2]}
    assert tools.call("resample", {**SERIES, "values": [1, 2]}).value == row.value


def test_the_ledger_that_is_handed_out_is_a_picture_of_it() -> None:
    tools = toolbox()
    tools.call("look", OAK)
    before = tools.ledger
    tools.call("near", OAK)
    assert (len(before), len(tools.ledger)) == (1, 2)
    with pytest.raises(AttributeError):
        before[0].status = "tool_error"  # type: ignore[misc]


def test_tuples_of_a_driver_become_lists() -> None:
    tools = toolbox()
    assert tools.call("resample", {**SERIES, "values": (1, 2)}).ok
    assert tools.ledger[0].input["values"] == [1, 2]


# -- hostile arguments


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("input", "says"),
    [
        ({"what": math.nan}, "$.what: nan is no JSON number"),
        ({"what": {1, 2}}, "$.what: a set is no JSON value"),
        ({"what": object()}, "$.what: an object is no JSON value"),
        ({"what": Hostile()}, "$.what: a Hostile is no JSON value"),
        (Hostile(), "$: a Hostile is no JSON value"),
        ({1: "oak"}, "$: a key is an int, not text"),
        ({Hostile(): "oak"}, "$: a key is a Hostile, not text"),
        ({"what": b"oak"}, "$.what: a bytes is no JSON value"),
        ({"what": "\ud800"}, "$.what: text with a lone surrogate at 0"),
        ({"\ud800": "oak"}, "$: text with a lone surrogate at 0"),
        ({"what": 2**64}, "$.what: the integer does not fit into 64 bits"),
        ({"what": LOOP}, "nested deeper than 100 levels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_are_no_json_are_malformed_and_never_raise(input: Any, says: str) -> None:
    """And what is kept of them can be written down."""
    tools = toolbox()
    seen = tools.call("look", input)
    assert seen.status == "malformed"
    assert seen.text.startswith("arguments: ")
    assert says in seen.text
    [row] = tools.close()
    assert row.name == "look"
    msgspec.json.encode(row)


@pytest.mark.parametrize(
    "name", [None, 7, ["look"], {"name": "look"}, Hostile(), "\ud800", "l" * 10**6, "look\n", "löok"]
)
def test_a_name_that_is_none_is_undeclared_and_never_raises(name: Any) -> None:
    tools = toolbox()
    assert tools.call(name, OAK).status == "undeclared"
    rounds = Rounds([1])
    assert tools.desk(1, rounds=rounds).call(name, OAK).status == "undeclared"
    row, of_a_worker = tools.close()
    assert row.name == of_a_worker.name and len(row.name) <= 202
    msgspec.json.encode(row)


def test_an_object_that_looks_like_a_tool_is_none() -> None:
    class Look:
        def __repr__(self) -> str:
            return "look"

    assert toolbox().call(Look(), OAK).status == "undeclared"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("look", {"what": "x" * 10**6}),
        ("look", {f"k{n}": n for n in range(20_000)}),
        ("resample", {**SERIES, "values": ["x"] * 5000}),
        ("resample", {**SERIES, "count": "[" * 100_000}),
        ("refuse", {"x" * 10**6: 1}),
    ],
)
def test_texts_are_bounded(name: str, input: dict[str, Any]) -> None:
    tools = toolbox()
    assert len(tools.call(name, input).text) <= TEXT_LIMIT
    assert all(len(row.text) <= TEXT_LIMIT for row in tools.ledger)


@given(
    st.text(max_size=8) | st.sampled_from([*ALL, "refuse", "goal", "answer"]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3) | st.binary(max_size=2),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["what", "query", "id", "reject", "ambiguous", "value", "status", 1]), inner, max_size=3),
        max_leaves=6,
    ),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_no_call_raises_and_every_row_can_be_written(name: str, input: Any) -> None:
    tools = toolbox()
    seen = tools.call(name, input)
    rows = tools.close()
    assert len(rows) == (name not in {tool.name for tool in CONTROL_TOOLS})
    for row in rows:
        assert row.status == seen.status
        decoded = msgspec.json.decode(msgspec.json.encode(row), type=LedgerRow)
        assert decoded.name == row.name


# -- ending a task


@pytest.mark.parametrize(
    ("name", "input", "ending"),
    [
        ("refuse", {"reason": "no such tree"}, Ending(True, refused="no such tree")),
        ("refuse", {}, Ending(True, refused="")),
        ("refuse", None, Ending(True, refused="")),
        ("answer", {"value": [1, {"a": None}]}, Ending(True, answered=True, answer=[1, {"a": None}])),
        ("answer", {"value": None, "status": "failure"}, Ending(True, answered=True, status="failure")),
        ("goal", {"id": "goal:walk"}, Ending(True, goal="goal:walk")),
        ("goal", {"reject": True}, Ending(True, reject=True)),
        ("goal", {"ambiguous": ["b", "a"]}, Ending(True, ambiguous=("b", "a"))),
    ],
)
def test_the_control_tools_note_how_the_task_ends_and_are_no_calls(
    name: str, input: Any, ending: Ending
) -> None:
    tools = toolbox("look", tool_calls=0)
    assert tools.call(name, input).ok
    assert tools.ending == ending
    assert tools.ledger == ()
    assert not tools.spent


@pytest.mark.parametrize(
    ("name", "input", "status", "says"),
    [
        ("refuse", {"why": "x"}, "schema_error", "refuse: why is not declared"),
        ("refuse", {"reason": 7}, "schema_error", "refuse: reason must be string, not integer"),
        ("refuse", "no", "schema_error", "must be object, not string"),
        ("refuse", {"reason": math.nan}, "malformed", "arguments: $.reason: nan is no JSON number"),
        ("refuse", {1: 2, "a": 3}, "malformed", "arguments: $: a key is an int, not text"),
        ("answer", {}, "schema_error", "answer: value is required"),
        (
            "answer",
            {"value": 1, "status": "great"},
            "schema_error",
            "answer: status must be one of success, failure",
        ),
        ("answer", [1], "schema_error", "must be object, not array"),
        ("goal", {}, "schema_error", "goal: takes exactly one of id, reject, ambiguous"),
        (
            "goal",
            {"id": "a", "reject": True},
            "schema_error",
            "goal: takes exactly one of id, reject, ambiguous",
        ),
        ("goal", {"id": 7}, "schema_error", "goal: id must be string, not integer"),
        ("goal", {"reject": False}, "schema_error", "goal: reject must be one of True"),
        ("goal", {"ambiguous": "ab"}, "schema_error", "goal: ambiguous must be array, not string"),
        ("goal", {"ambiguous": 5}, "schema_error", "goal: ambiguous must be array, not integer"),
        ("goal", {"ambiguous": [1]}, "schema_error", "goal: ambiguous[0] must be string, not integer"),
    ],
)
def test_a_control_tool_that_is_used_wrongly_says_so_and_notes_nothing(
    name: str, input: Any, status: str, says: str
) -> None:
    """A bare text is not taken apart into letters, and nothing raises."""
    tools = toolbox()
    seen = tools.call(name, input)
    assert (seen.status, says in seen.text) == (status, True), seen.text
    assert tools.ending == Ending()


def test_what_is_answered_is_a_private_copy() -> None:
    tools = toolbox()
    value = {"a": [1]}
    tools.call("answer", {"value": value})
    value["a"].append(2)
    assert tools.ending.answer == {"a": [1]}


# -- limits and the end


def test_the_first_ending_ends_the_task() -> None:
    """What comes after is not run: a tool stands in the ledger as a protocol error, another ending changes nothing."""
    tools = toolbox()
    assert tools.call("refuse", {"reason": "no"}).ok
    assert tools.call("look", OAK).status == "protocol_error"
    assert tools.call("answer", {"value": 1, "status": "success"}).status == "protocol_error"
    assert tools.ending == Ending(used=True, refused="no")
    assert [(row.name, row.status) for row in tools.close()] == [("look", "protocol_error")]


@pytest.mark.parametrize(
    ("input", "kept"),
    [
        (OAK, OAK),
        (None, {}),
        (["a", None], ["a", None]),
        ({"what": "x" * 200_000}, '{"what":"' + "x" * 191),
        ({"what": {1}}, "{'what': {1}}"),
    ],
)
def test_a_call_after_the_end_is_kept_as_it_was_made(input: Any, kept: Any) -> None:
    """JSON stays JSON; only what is none is kept as it looks."""
    tools = toolbox()
    tools.call("refuse", {"reason": "no"})
    tools.call("look", input)
    (row,) = tools.close()
    assert (row.input, row.late) == (kept, True)


def test_arguments_have_a_bound() -> None:
    tools = toolbox()
    seen = tools.call("look", {"tree": "x" * 200_000})
    assert (seen.status, "more than 100000 bytes" in seen.text) == ("malformed", True)
    assert len(str(tools.close()[0].input)) <= 300


def test_a_fault_of_the_world_is_not_the_drivers() -> None:
    """It is told apart from a tool's own error, and noted for the grader, who excludes the trial."""

    class Broken(Garden):
        def run(self, name: str, input: dict[str, Any]) -> Any:
            raise RuntimeError("the well is dry")

    tools = Toolbox(Broken(), ("look",))
    assert tools.call("look", OAK).status == "protocol_error"
    assert tools.fault == "the world failed at look: RuntimeError: the well is dry"


def test_whatever_a_world_fails_at_is_said_alike_and_the_first_fault_stays() -> None:
    """An error of ours is a line of its own; any other is named by its kind."""

    class Broken(Garden):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

        def fails(self, *_: Any) -> Any:
            raise self.error

        run = seen = close = snapshot = restore = fails

    ways = {
        "at look": lambda tools: tools.call("look", OAK),
        "to be read": lambda tools: tools.seen(Expect()),
        "to close": lambda tools: tools.release(),
        "to be put by": lambda tools: tools.snapshot(),
        "to be put back": lambda tools: tools.restore(b"", ()),
    }
    for error, said in ((KeyError("w"), "KeyError: 'w'"), (LabError("the well is dry"), "the well is dry")):
        for what, fails in ways.items():
            tools = Toolbox(Broken(error), ("look",))
            with contextlib.suppress(KeyError, LabError):
                fails(tools)
            assert tools.fault == f"the world failed {what}: {said}"
            tools.release()
            assert tools.fault == f"the world failed {what}: {said}"


def test_the_limit_counts_every_call_that_reached_the_ledger_and_no_other() -> None:
    tools = toolbox(tool_calls=3)
    for name in ("look", "fly", "near"):
        tools.call(name, OAK)
    tools.call("refuse", {"raison": "misspelt, so that nothing has ended"})
    with pytest.raises(BudgetSpent, match="the limit of 3 tool calls is used up"):
        tools.call("look", OAK)
    assert tools.spent
    assert tools.call("refuse", {"reason": "out of calls"}).ok
    assert len(tools.close()) == 3


def test_a_limit_of_nothing_allows_nothing_and_no_limit_everything() -> None:
    with pytest.raises(BudgetSpent, match="limit of 0"):
        toolbox(tool_calls=0).call("all")
    tools = toolbox()
    for _ in range(500):
        tools.call("all")
    assert len(tools.close()) == 500
    assert not tools.spent


def test_after_the_end_nothing_runs_any_more() -> None:
    """What a driver left behind calls later does not reach the world, the ledger, or the ending."""
    garden = Garden()
    tools = Toolbox(garden, ALL)
    tools.call("look", OAK)
    rows = tools.close()
    for name in ("paint", "refuse", "fly"):
        with pytest.raises(BudgetSpent, match="the trial is over"):
            tools.call(name, {**OAK, "colour": "red"})
    assert tools.close() == tools.ledger == rows
    assert (garden.colours, tools.ending, tools.spent) == ({}, Ending(), False)


def test_threads_may_share_a_toolbox() -> None:
    """Twenty threads at a limit of one hundred: exactly one hundred rows, one world call at a time, none lost."""

    class Slow(Garden):
        inside = 0
        most = 0

        def run(self, name: str, input: dict[str, Any]) -> Ran:
            self.inside += 1
            self.most = max(self.most, self.inside)
            threading.Event().wait(0.0005)
            self.inside -= 1
            return super().run(name, input)

    world = Slow()
    tools = Toolbox(world, ALL, tool_calls=100)

    def work(worker: int) -> int:
        done = 0
        for _ in range(10):
            try:
                tools.call("any", {"a": worker})
                done += 1
            except BudgetSpent:
                pass
        return done

    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(work, range(20)))
    rows = tools.close()
    assert (sum(done), len(rows), world.most) == (100, 100, 1)
    assert [sum(row.input["a"] == worker for row in rows) for worker in range(20)] == done


def test_a_toolbox_asks_only_the_world_it_was_given() -> None:
    """Two trials on forks of one world do not see each other's changes."""
    garden = Garden()
    first, second = Toolbox(garden.fork(), ALL), Toolbox(garden.fork(), ALL)
    first.call("paint", {**OAK, "colour": "red"})
    second.call("paint", {**OAK, "colour": "blue"})
    assert second.ledger[0].diff == {"before": None, "after": "blue"}


def test_a_parameter_without_a_schema_takes_text_or_nothing() -> None:
    registry = Registry((Capability("t", "t", "T.", (Parameter("a", "k"), Parameter("b", "k", schema={}))),))

    class Tiny(Garden):
        pass

    Tiny.registry = registry
    tools = Toolbox(Tiny(), ["t"])
    inputs = [{"a": "x"}, {"a": None}, {"a": 1}, {"b": 1}, {"b": [True]}]
    assert [tools.call("t", one).status for one in inputs] == ["ok", "ok", "schema_error", "ok", "ok"]
