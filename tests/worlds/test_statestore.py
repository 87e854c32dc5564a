"""A world of state: what calls do to it, that they are all or nothing, forks, and what is wrong with a declaration."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.cases import Suite, load_suite, parse_cases
from agentbench_lab.errors import LabError, ProblemsError
from agentbench_lab.paths import Change
from agentbench_lab.values import canonical
from agentbench_lab.worlds.find import Worlds, load_world
from agentbench_lab.worlds.statestore import BadWorld, StateWorld
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox

from ..states import ALL, STATE, TOOLS, line, tool, world


def box(of: StateWorld | None = None) -> Toolbox:
    return Toolbox(of or world().fork(), ALL)


def one(name: str, input: Any, of: StateWorld | None = None) -> LedgerRow:
    toolbox = box(of)
    toolbox.call(name, input)
    return toolbox.close()[0]


@pytest.mark.parametrize(
    ("name", "input", "status", "text", "diff"),
    [
        ("get", {"id": "W78"}, "ok", '{"note":"ring twice","status":"shipped","tags":[],"total":10}', None),
        ("get", {"id": "W7"}, "tool_error", "orders.W7 is not there", None),
        ("get", {"id": "W78.status"}, "tool_error", r"orders.W78\.status is not there", None),
        ("cancel", {"id": "W77"}, "ok", "W77 is cancelled", [("count", 0, 1), ("orders.W77.status", "pending", "cancelled")]),
        ("cancel", {"id": "W78"}, "tool_error", "W78 has left", None),
        ("cancel", {"id": "W79"}, "tool_error", "there is no order W79", None),
        ("refund", {"id": "W77"}, "ok", '{"ok":true}', [("orders.W77.tags.1", ..., "refunded")]),
        ("refund", {"id": "W78", "amount": 10}, "ok", '{"ok":true}', [("orders.W78.tags.0", ..., "refunded"), ("refunds.0", ..., {"order": "W78", "amount": 10})]),
        ("refund", {"id": "W78", "amount": 10.5}, "tool_error", "orders.W78.total is 10, and must be at least 10.5", None),
        ("note", {"id": "W78"}, "ok", '{"ok":true}', [("orders.W78.note", "ring twice", "-")]),
        ("note", {"id": "W78", "text": None}, "ok", '{"ok":true}', [("orders.W78.note", "ring twice", None)]),
        ("note", {"id": "W77", "text": None}, "ok", '{"ok":true}', []),
        ("untag", {"id": "W77"}, "ok", '{"ok":true}', [("orders.W77.tags.0", "gift", ...)]),
        ("untag", {"id": "W77", "at": 1}, "tool_error", "orders.W77.tags has 1 entry: there is no index 1", None),
        ("note", {"id": "W78", "text": 7}, "schema_error", "type: text must be string or null, not integer", None),
        ("note", {"id": "W78", "txt": "x"}, "malformed", "unknown-arg: note.txt", None),
        ("note", {"text": "x"}, "malformed", "missing-arg: note.id", None),
        ("note", {"id": ""}, "tool_error", "an empty text cannot name a place in the state", None),
        ("burn", {}, "undeclared", "unknown-tool: burn", None),
    ],
)  # fmt: skip
def test_a_call_does_what_is_declared_and_says_what_it_changed(
    name: str, input: Any, status: str, text: str, diff: Any
) -> None:
    row = one(name, input)
    assert (row.status, row.text) == (status, text)
    wanted = None
    if diff is not None:
        wanted = [
            {"path": p, **({} if a is ... else {"old": a}), **({} if b is ... else {"new": b})}
            for p, a, b in diff
        ]
    assert row.diff == wanted
    changing = name not in ("get", "burn") and status not in ("schema_error", "malformed")
    assert row.changes == (changing and wanted != [])


def test_a_failed_call_has_changed_nothing_whichever_of_its_effects_failed() -> None:
    of = world().fork()
    assert one("both", {"id": "gone"}, of).status == "tool_error"
    assert of.state == STATE and of.changes() == []
    assert one("both", {"id": "W78"}, of).status == "ok"
    assert (of.look("count"), of.look("orders.W78.status")) == (5, "both")


def test_money_is_added_as_it_is_written() -> None:
    pay = tool(
        "pay", may={"by": {"type": "number"}}, effects=[{"increment": "sum", "by": "{by}", "if_given": "by"}]
    )
    of = StateWorld("w", {"sum": 0.1}, [pay])
    toolbox = Toolbox(of, ["pay"])
    for by in (0.2, 0.3, -0.6):
        toolbox.call("pay", {"by": by})
    assert [row.diff[0]["new"] for row in toolbox.ledger] == [0.3, 0.6, 0.0]
    of = StateWorld("w", {"sum": 2**63 - 1}, [pay])
    assert of.run("pay", {"by": 1}).error == "sum would be too large a number"
    assert of.run("pay", {"by": 1e400}).error is not None


CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["cancel", "drop", "both", "get", "untag"]), st.sampled_from(["W77", "W78", "no"])
        ),
        st.tuples(st.sampled_from(["refund", "note"]), st.sampled_from(["W77", "W78", "no"])),
    ),
    max_size=8,
)


@given(CALLS)
def test_diffs_of_calls_add_up_and_failed_ones_are_empty(calls: list[tuple[str, str]]) -> None:
    of = world().fork()
    for name, id in calls:
        before = canonical(of.state)
        ran = of.run(name, {"id": id})
        if ran.error is not None:
            assert canonical(of.state) == before
        assert (canonical(of.state) != before) == bool(ran.diff)
    assert (of.changes() == []) == (canonical(of.state) == canonical(STATE))


@given(CALLS, CALLS)
def test_forks_share_everything_and_know_nothing_of_each_other(ours: Any, theirs: Any) -> None:
    base = world()
    alone = base.fork()
    for name, id in ours:
        alone.run(name, {"id": id})
    one, other = base.fork(), base.fork()
    for at in range(max(len(ours), len(theirs))):
        for of, calls in ((one, ours), (other, theirs)):
            if at < len(calls):
                of.run(calls[at][0], {"id": calls[at][1]})
    assert canonical(one.state) == canonical(alone.state)
    assert canonical(base.state) == canonical(STATE) and base.changes() == []
    later = one.fork()
    assert later.changes() == [] and later.state == one.state


def test_what_is_seen_of_a_world_is_no_way_into_it() -> None:
    of = world().fork()
    of.state["orders"].clear()
    of.look("orders").clear()
    assert of.state == STATE
    mine = copy.deepcopy(STATE)
    made = StateWorld("w", mine, TOOLS)
    mine["orders"].clear()
    assert made.state == STATE


def test_a_world_survives_the_way_to_another_process() -> None:
    of = world().fork()
    of.run("cancel", {"id": "W77"})
    there = pickle.loads(pickle.dumps(of))
    assert (there.digest, there.changes()) == (of.digest, of.changes())
    assert there.run("cancel", {"id": "W77"}).error == "W77 has left"


def test_a_world_is_known_by_all_that_is_in_it() -> None:
    assert world().digest == world().fork().digest
    assert world().digest != StateWorld("desk", {**STATE, "count": 1}, TOOLS).digest
    assert world().digest != StateWorld("desk", STATE, TOOLS[:-1]).digest


def test_an_agent_is_shown_the_schema_with_what_it_leaves_open_said() -> None:
    shown = {tool.name: tool for tool in box().tools}
    assert shown["get"].input_schema == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    assert {"refuse", "answer"} <= set(shown)


def test_keys_that_are_not_declared_bind_only_where_the_schema_says_so() -> None:
    schema = {
        "type": "object",
        "properties": {"o": {"type": "object", "properties": {"a": {"type": "number"}}}},
    }
    closed = StateWorld("w", {}, [{"name": "t", "input_schema": schema}])
    assert one_of(closed, {"x": 1}) == "malformed"
    assert one_of(closed, {"o": {"a": 1, "b": 2}}) == "schema_error"
    opened = {**schema, "additionalProperties": True}
    assert one_of(StateWorld("w", {}, [{"name": "t", "input_schema": opened}]), {"x": 1}) == "ok"


def one_of(of: StateWorld, input: Any) -> str:
    toolbox = Toolbox(of, ["t"])
    return toolbox.call("t", input).status


def test_empty_and_null_arguments_are_given() -> None:
    """Under a JSON Schema a key that is there is given: an empty list may be what is meant."""
    schema = {"type": "object", "properties": {"a": {"type": ["array", "null"]}}, "required": ["a"]}
    of = StateWorld("w", {}, [{"name": "t", "input_schema": schema, "result": "{a}"}])
    for given_value in ([], None):
        seen = Toolbox(of, ["t"]).call("t", {"a": given_value})
        assert (seen.status, seen.value) == ("ok", given_value)


def test_templates_keep_the_type_where_they_are_the_whole_value() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {"default": 2}}, "required": ["a"]}
    result = ["{a}", "{a} of {b}", {"k": "{b}", "brace": "{{a}}"}, None]
    of = StateWorld("w", {}, [{"name": "t", "input_schema": schema, "result": result}])
    assert of.run("t", {"a": [1.5]}).value == [[1.5], "[1.5] of 2", {"k": 2, "brace": "{a}"}, None]


FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"effects": [{"sett": "count", "value": 1}]}, ["tools.t.effects[0]: unknown effect 'sett' (did you mean 'set'?)"]),
    ({"effects": [{"set": "count", "valu": 1, "value": 2}]}, ["tools.t.effects[0]: unknown key 'valu' (did you mean 'value'?)"]),
    ({"effects": [{"set": "count"}]}, ["tools.t.effects[0]: set needs a value"]),
    ({"effects": [{"set": "count", "delete": "count"}]}, ["tools.t.effects[0]: needs one of set, append, increment, delete, return"]),
    ({"effects": [{"delete": "orders.{idd}"}]}, ["tools.t.effects[0].delete: '{idd}' names no argument (did you mean 'id'?)"]),
    ({"effects": [{"set": "orders.{id", "value": 1}]}, ["tools.t.effects[0].set: '{id' has a lone '{': a brace in a text is written twice"]),
    ({"effects": [{"set": "orders.{id}.", "value": 1}]}, ["tools.t.effects[0].set: path 'orders.{id}.': has an empty segment"]),
    ({"effects": [{"set": "refunds.first", "value": 1}]}, ["tools.t.effects[0].set: refunds is a list: 'first' is no index in it"]),
    ({"effects": [{"set": "orders.{id}.tags.last", "value": 1}]}, ["tools.t.effects[0].set: orders.{…}.tags is a list: 'last' is no index in it"]),
    ({"effects": [{"set": "count.x", "value": 1}]}, ["tools.t.effects[0].set: count is a number, and holds nothing"]),
    ({"effects": [{"set": "ordrs.{id}.status", "value": 1}]}, ["tools.t.effects[0].set: the state has no 'ordrs' (did you mean 'orders'?)"]),
    ({"effects": [{"append": "count", "value": 1}]}, ["tools.t.effects[0].append: count is a number, and no list"]),
    ({"effects": [{"increment": "orders.{id}.status"}]}, ["tools.t.effects[0].increment: orders.{…}.status is text, and no number"]),
    ({"effects": [{"return": "orders.{id}.totl"}]}, ["tools.t.effects[0].return: there is no 'totl' in orders.{…} (did you mean 'total'?)"]),
    ({"effects": [{"return": "count"}], "result": 1}, ["tools.t.result: a call gives one thing back: a result, or one return effect"]),
    ({"effects": [{"set": "count", "value": "{maybe}"}]}, ["tools.t.effects[0].value: 'maybe' may be left out of a call: give it a default, or use if_given"]),
    ({"effects": {}}, ["tools.t.effects: must be a list"]),
    ({"preconditions": [{"path": "orders.{id}"}]}, ["tools.t.preconditions[0]: needs one of equals, not_equals, in, exists, absent, min, max"]),
    ({"preconditions": [{"path": "orders.{id}", "exist": True}]}, ["tools.t.preconditions[0]: unknown key 'exist' (did you mean 'exists'?)", "tools.t.preconditions[0]: needs one of equals, not_equals, in, exists, absent, min, max"]),
    ({"preconditions": [{"path": "count", "in": 3}]}, ["tools.t.preconditions[0].in: must be a list"]),
    ({"preconditions": [{"path": "count", "equals": 0, "error": "no {idd}"}]}, ["tools.t.preconditions[0].error: 'no {idd}' names no argument (did you mean 'id'?)"]),
    ({"input_schema": {"type": "object", "properties": {"id": {"type": "strng"}}}}, ["tools.t.input_schema.id: type 'strng' is no JSON type (did you mean 'string'?)"]),
    ({"input_schema": {"type": "object", "properties": {"id": {"enumm": ["a"]}}}}, ["tools.t.input_schema.id: keyword 'enumm' is not supported in a tool's schema (did you mean 'enum'?)"]),
    ({"input_schema": {"type": "object", "propertys": {}}}, ["tools.t.input_schema: keyword 'propertys' is not supported at the top of a tool's schema (did you mean 'properties'?)"]),
    ({"input_schema": {"properties": {"id": {}}, "required": ["ids"]}}, ["tools.t.input_schema: requires 'ids', which it does not declare (did you mean 'id'?)"]),
    ({"input_schema": {"properties": {"n": {"type": "integer", "default": "1"}}}}, ["tools.t.input_schema.n: default: n must be integer, not string"]),
    ({"input_schema": {"properties": {"n": {"type": "integer", "enum": [1, "2"]}}}}, ["tools.t.input_schema.n: enum: n must be integer, not string"]),
    ({"input_schema": {"properties": {"n": {"type": "string", "enum": "ab"}}}}, ["tools.t.input_schema.n: enum: must be a list"]),
    ({"resutl": 1}, ["tools.t: unknown key 'resutl' (did you mean 'result'?)"]),
    ({"name": "answer"}, ["tools.answer: is the name of a tool that every task has; take another"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "says"), FAULTS)
def test_what_is_wrong_with_a_declaration_is_found_at_load(keys: dict[str, Any], says: list[str]) -> None:
    whole = tool("t", needs="id", may={"maybe": {"type": "integer"}})
    with pytest.raises(BadWorld) as caught:
        StateWorld("w", STATE, [{**whole, **keys}])
    assert list(caught.value.problems) == says


def test_a_way_that_an_effect_makes_is_a_way() -> None:
    make = tool("make", needs="id", effects=[{"set": "carts.{id}", "value": {"items": []}}])
    fill = tool("fill", needs="id", effects=[{"append": "carts.{id}.items", "value": 1}])
    of = StateWorld("w", {"carts": {}}, [make, fill])
    assert of.run("fill", {"id": "c"}).error == "carts.c.items is not there, and no list"
    of.run("make", {"id": "c"})
    assert of.run("fill", {"id": "c"}).error is None
    assert of.state == {"carts": {"c": {"items": [1]}}}


def test_what_is_nested_too_deeply_fails_instead_of_breaking_what_reads_it() -> None:
    deep: Any = 1
    for _ in range(98):
        deep = [deep]
    keep = {"name": "keep", "input_schema": {"properties": {"v": {}}, "required": ["v"]}, "effects": [{"set": "a.b.c.d", "value": "{v}"}]}  # fmt: skip
    of = StateWorld("w", {"a": {"b": {"c": {}}}}, [keep])
    assert of.run("keep", {"v": deep}).error == "a.b.c.d: the value is nested too deeply"


# -- files and cases


def test_faults_of_a_file_and_of_a_case_say_where(tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    bad = {"kind": "state", "state": STATE, "tools": [tool("t", effects=[{"sett": "count"}])]}
    file = tmp_path / "worlds" / "desk.json"
    file.write_text(json.dumps(bad))
    with pytest.raises(ProblemsError, match=r"worlds/desk.json: tools.t.effects\[0\]: unknown effect 'sett'"):
        load_world(file)
    file.write_text('{"kind": "stat"}')
    with pytest.raises(LabError, match=r"desk.json: unknown kind 'stat' \(did you mean 'state'\?\)"):
        load_world(file)
    for inline, says in (
        (bad, r"desk.jsonl:1: c: world: tools.t.effects\[0\]: unknown effect 'sett'"),
        ({"kind": "stae"}, r"desk.jsonl:1: c: world: unknown kind 'stae' \(did you mean 'state'\?\)"),
        ({"kind": "state", "stat": {}, "tools": []}, "desk.jsonl:1: c: world: unknown key 'stat'"),
    ):
        (one_case,), problems = parse_cases(
            json.dumps(line(world=inline)).encode(), name="desk", file="desk.jsonl"
        )
        assert problems == []
        with pytest.raises(LabError, match=says):
            Worlds(Suite("desk", (one_case,), "")).of(one_case)


def test_worlds_stand_in_a_case_or_beside_the_suite(tmp_path: Path) -> None:
    declared = {"kind": "state", "state": STATE, "tools": TOOLS}
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "desk.json").write_text(json.dumps(declared))
    file = tmp_path / "desk.jsonl"
    file.write_text(
        "".join(
            json.dumps(one) + "\n"
            for one in (line(), line(id="d", world=declared), line(id="e", world=declared))
        )
    )
    suite = load_suite(file)
    worlds = Worlds(suite)
    named, inline, again = map(worlds.of, suite.cases)
    assert named.digest == inline.digest and inline is again
    assert {named.kind, inline.kind} == {"state"}
    assert inline.fork().run("cancel", {"id": "W77"}).diff == [
        {"path": "count", "old": 0, "new": 1},
        {"path": "orders.W77.status", "old": "pending", "new": "cancelled"},
    ]


def test_an_empty_key_has_no_path_and_is_told_with_what_holds_it() -> None:
    keep = {"name": "keep", "input_schema": {"properties": {"v": {}}, "required": ["v"]}, "effects": [{"set": "a.b", "value": "{v}"}]}  # fmt: skip
    of = StateWorld("w", {"a": {"b": {"": 1}}}, [keep])
    assert of.run("keep", {"v": {"": 2}}).diff == [{"path": "a.b", "old": {"": 1}, "new": {"": 2}}]
    assert of.changes() == [Change("a.b", {"": 1}, {"": 2})]


def test_what_is_too_large_for_the_ledger_still_reaches_the_agent() -> None:
    large = {"text": "x" * 30_000}
    of = StateWorld("w", {"large": large}, [{"name": "read", "effects": [{"return": "large"}]}])
    toolbox = Toolbox(of, ["read"])
    assert toolbox.call("read").value == large
    (row,) = toolbox.close()
    assert (row.value, len(row.text), row.found_nothing) == (None, 8_000, False)


def test_a_change_can_be_from_nothing_to_null() -> None:
    assert Change("a", new=None) != Change("a")
