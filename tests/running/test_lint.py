"""Lint: what binds, what is stale, goals that follow from their trace, and the gold self-test."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.cases import Suite, load_suite, parse_cases
from agentbench_lab.grading import grade
from agentbench_lab.running import lint
from agentbench_lab.running.lint import lint_cases, lint_suite
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.toolbox import Ran

from .. import doing
from ..helpers import Garden, call, expected, line, to_bytes

ROOT = Path(__file__).resolve().parent.parent.parent
WALK = [{"name": "near", "input": {"what": "elm"}}, {"name": "look", "input": {"what": "ash"}}]
REFUSE = {"terminates": True, "refuse": True}
NEAR_ASH, OAK = call("near", what="ash"), call("look", what="oak")
SERIES = {"values": [1, {}], "rate": 0.5, "count": "1", "loop": True}


def linted(*lines: dict[str, Any], world: Any = None) -> list[str]:
    cases, problems = parse_cases(to_bytes(*lines), name="garden", file="garden.jsonl")
    assert problems == []
    found = lint_cases(Suite("garden", tuple(cases), ""), world=world or Garden())
    return [str(problem).removeprefix("garden.jsonl:1: c: ") for problem in found]


def _pin(**keys: Any) -> dict[str, Any]:
    return {"expect": expected(calls=[{"name": "look", "input": {"what": "oak"}, **keys}])}


PROBLEMS: list[tuple[dict[str, Any], list[str]]] = [
    # tools
    ({"tools": ["look", "lok"]}, ["tools: 'lok' is no registered tool of world 'garden' (did you mean 'look'?)"]),
    ({"tools": ["look", "burn"]}, ["tools: 'burn' is no registered tool of world 'garden' (cannot be undone)"]),
    ({"tools": ["look", "zzzzzz"]}, ["tools: 'zzzzzz' is no registered tool of world 'garden'"]),
    # expected calls, the trace and candidates bind
    ({"expect": expected(call("look"))}, ["call 1 cannot bind: missing-arg look.what"]),
    ({"expect": expected(call("look", what=" "))}, ["call 1 cannot bind: missing-arg look.what"]),
    ({"expect": expected(OAK, call("look", wat="oak"))}, ["call 2 cannot bind: unknown-arg look.wat (did you mean 'what'?)", "call 2 cannot bind: missing-arg look.what"]),
    ({"expect": expected(call("find", query=""))}, ["call 1 cannot bind: missing-arg find needs one of query|kind"]),
    ({"expect": {**REFUSE, "candidateResults": [{"name": "look", "input": {"x": 1}}]}}, ["candidate 1 cannot bind: unknown-arg look.x", "candidate 1 cannot bind: missing-arg look.what"]),
    ({"trace": [{"name": "near"}]}, ["trace 1 cannot bind: missing-arg near.what"]),
    # and their values have the declared types
    ({"expect": expected(call("resample", **SERIES))}, ["call 1: values[1] must be number, not object", "call 1: count must be integer, not string"]),
    ({"expect": expected(call("look", what=7))}, ["call 1: what must be string, not integer"]),
    (_pin(accept={"how": ["up", 7]}), ["call 1: accept: how must be string, not integer"]),
    (_pin(accept={"speed": [1]}), ["call 1 cannot bind: unknown-arg look.speed", "call 1: accept.speed: look has no argument 'speed'"]),
    # what stands in the case is in the world
    ({"expect": expected(call("look", what="fir"))}, ["call 1: stale literal: there is no fir"]),
    (_pin(accept={"what": ["elm", "fir"]}), ["call 1: accept.what: stale literal: there is no fir"]),
    ({"expect": {**REFUSE, "candidateResults": [{"name": "look", "input": {"what": "fir"}}]}}, ["candidate 1: stale literal: there is no fir"]),
    ({"expect": expected(OAK, result=["oak", "elmm"])}, ["expect.result: stale literal 'elmm' (did you mean 'elm'?)"]),
    # goals
    ({"expect": {"terminates": True, "inferredGoal": "cap:near"}, "trace": WALK}, ["expect.inferredGoal is 'cap:near', but the trace fits goal:walk"]),
    ({"expect": {"terminates": True, "inferredGoal": "cap:near"}, "trace": WALK[:1]}, ["expect.inferredGoal is 'cap:near', but the trace fits cap:near, goal:walk"]),
    ({"expect": {"terminates": True, "inferredGoal": "goal:walk"}, "trace": WALK[::-1]}, ["expect.inferredGoal is 'goal:walk', but the trace fits no declared goal"]),
    ({"expect": {**REFUSE, "reject": True}, "trace": WALK}, ["expect.reject, but the trace fits goal:walk"]),
    ({"expect": {**REFUSE, "ambiguousGoals": ["cap:near", "goal:survey"]}, "trace": WALK[:1]}, ["expect.ambiguousGoals differ: the trace fits cap:near, goal:walk"]),
    # the reference answer has to pass its own grader
    ({"expect": expected(call("near", what="oak"), OAK, recover={"after": "near", "fallback": "look"})}, ["gold self-test: the reference answer does not pass: near came back with 1 entry"]),
    ({"expect": {**REFUSE, "proof": True}}, ["gold self-test: the reference answer does not pass: there is no call to prove"]),
    ({"expect": expected(call("paint", what="oak", colour="red"), forbid=["look"])}, []),
    # pins that cannot tell right from wrong
    (_pin(optional=["what"]), ["call 1: optional 'what': look cannot be called without it"]),
    ({"expect": expected(calls=[{"name": "resample", "input": {**SERIES, "values": [1], "count": 1}, "accept": {"loop": [False]}}])}, ["call 1: accept.loop lists every value there is, so the argument does not matter"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "says"), PROBLEMS)
def test_what_does_not_hold_in_the_world_is_said(keys: dict[str, Any], says: list[str]) -> None:
    assert linted(line(**keys)) == says


SOUND: list[dict[str, Any]] = [
    {},
    {"expect": REFUSE},
    {"expect": expected(OAK, call("all"), proof=True, result=["ash", "elm", "oak"])},
    {"expect": expected(OAK, OAK, terminates=False)},
    {"expect": expected(call("any", a={"b": [1, {"c": None}], "d": {}}, e=[], f=1e300))},
    {"expect": expected(NEAR_ASH, OAK, recover={"after": "near", "fallback": "look"}, proof=True)},
    {"expect": expected(call("near", what="fir"), OAK, recover={"after": "near", "fallback": "look"}, proof=True)},
    {"expect": {"terminates": True, "inferredGoal": "goal:walk", "proof": True}, "trace": WALK},
    {"expect": {**REFUSE, "reject": True}, "trace": WALK[::-1]},
    {"expect": {**REFUSE, "ambiguousGoals": ["goal:walk", "cap:near"]}, "trace": WALK[:1]},
    {"expect": {**REFUSE, "candidateResults": [{"name": "look", "input": {"what": t}} for t in ("oak", "elm")]}},
    {"expect": expected(OAK, forbid=["near", "paint"], result=[])},
    {"tools": ["look"]},
    _pin(accept={"what": ["elm", "ash"], "how": ["up", "up~", "up~~"]}, optional=["how"]),
]  # fmt: skip


@pytest.mark.parametrize("keys", SOUND)
def test_a_sound_case_has_no_problem(keys: dict[str, Any]) -> None:
    """Every kind of expectation; with changed worlds, with failing steps, with alternatives that look like mutants."""
    assert linted(line(**keys)) == []


def test_every_problem_of_every_case_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "garden.jsonl"
    file.write_bytes(
        to_bytes(line(id="a", tools=["look", "lok"]), line(id="b"))
        + b"\n"
        + to_bytes(line(id="c", expect=expected(OAK, call("look", what="fir"), result=["x", "y"])))
    )
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in lint_suite(file, world=Garden())] == [
        "garden.jsonl:1: a: tools: 'lok' is no registered tool of world 'garden' (did you mean 'look'?)",
        "garden.jsonl:4: c: call 2: stale literal: there is no fir",
        "garden.jsonl:4: c: expect.result: stale literal 'x'",
        "garden.jsonl:4: c: expect.result: stale literal 'y'",
    ]


# -- the gold self-test finds a grader that does not look


def test_a_grader_that_does_not_tell_two_values_apart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the ladder's literal rule any object is any object, and null is nothing: the pinned leaf does not matter."""
    monkeypatch.setattr(lint, "grade", functools.partial(grade, strictness="original"))
    assert linted(line(expect=expected(call("any", a={"b": [1]}, c=1)))) == [
        "gold self-test: calls[0].input.a.b[0] replaced by another value still passes"
    ]
    assert linted(line(expect=expected(OAK))) == []


def _blind(field: str) -> Any:
    """The real grader with one field of the answer always as it should be: it cannot see that one."""

    def judged(case: Any, transcript: Any, evidence: Any) -> Any:
        right = lint._reference(case)
        seen = msgspec.structs.replace(transcript, **{field: getattr(right, field)})
        return grade(case, seen, lint._evidence(case, Garden(), seen))

    return judged


@pytest.mark.parametrize(
    ("field", "keys", "leaves"),
    [
        ("calls", {"expect": expected(OAK, NEAR_ASH)}, ["calls[0].name", "calls[0].input.what", "calls[0]", "calls[1].name", "calls[1].input.what", "calls[1]"]),
        ("refused", {"expect": REFUSE}, ["refuse"]),
        ("result", {"expect": expected(OAK, result=["oak", "elm"])}, ["result[0]", "result[1]"]),
        ("reject", {"expect": {**REFUSE, "reject": True}, "trace": WALK[::-1]}, ["reject"]),
        ("inferred_goal", {"expect": {"terminates": True, "inferredGoal": "goal:walk"}, "trace": WALK}, ["inferredGoal"]),
        ("ambiguous_goals", {"expect": {**REFUSE, "ambiguousGoals": ["cap:near", "goal:walk"]}, "trace": WALK[:1]}, ["ambiguousGoals[0]", "ambiguousGoals[1]"]),
        ("candidate_results", {"expect": {**REFUSE, "candidateResults": [{"name": "look", "input": {"what": "oak"}}]}}, ["candidateResults[0].name", "candidateResults[0].input.what"]),
        ("terminated", {}, ["terminates"]),
    ],
)  # fmt: skip
def test_each_pinned_leaf_is_tried(
    monkeypatch: pytest.MonkeyPatch, field: str, keys: dict[str, Any], leaves: list[str]
) -> None:
    """With a grader that is blind for one field, exactly the leaves of that field are reported, each by its path."""
    monkeypatch.setattr(lint, "grade", _blind(field))
    assert linted(line(**keys)) == [
        f"gold self-test: {leaf} replaced by another value still passes" for leaf in leaves
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=1), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("abc"), JSON, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_whatever_is_pinned_the_self_test_finds_nothing_in_a_sound_case(pins: dict[str, Any]) -> None:
    assert linted(line(expect=expected(call("any", **pins)))) == []


def test_the_order_of_problems_does_not_depend_on_hashing() -> None:
    """Keys are tried in the order of the case."""
    keys = line(expect=expected(call("any", **{key: {"x": 1} for key in "fbdace"})))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lint, "grade", functools.partial(grade, strictness="original"))
        found = linted(keys)
    assert [text.split("input.")[1][0] for text in found] == list("fbdace")


# -- worlds


class Renamed(Garden):
    """The garden after a storm: the oak is gone, and who stood beside it is not known any more."""

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        if input.get("what") == "oak":
            return Ran(None, "", error="there is no oak")
        return super().run(name, input)

    def fork(self) -> Renamed:
        return Renamed()

    @property
    def labels(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(["ash", "elm", "oaken"])


def test_a_world_in_which_names_have_changed_makes_literals_stale() -> None:
    assert linted(line(expect=expected(OAK, result=["oak"])), world=Renamed())[:2] == [
        "call 1: stale literal: there is no oak",
        "expect.result: stale literal 'oak' (did you mean 'oaken'?)",
    ]


@pytest.mark.parametrize(
    ("world", "says"),
    [("tinny", "garden.jsonl:1: c: no world 'tinny' (did you mean 'tiny'?)"), (None, "garden.jsonl:1: c: no world 'garden'; give one with --world PATH")],
)  # fmt: skip
def test_a_case_whose_world_is_missing_is_reported_like_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str | None, says: str
) -> None:
    doing.write_suite(tmp_path)
    (tmp_path / "garden.jsonl").write_bytes(to_bytes(line(world=world)))
    monkeypatch.chdir(tmp_path)
    assert [str(problem) for problem in lint_suite("garden.jsonl")] == [says]


def test_a_file_that_cannot_be_read_is_reported_like_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doing.write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, says in [
        ("./smal.jsonl", "./smal.jsonl: no such case file (did you mean 'small.jsonl'?)"),
        ("worlds", "worlds: is a folder, not a case file"),
    ]:
        assert [str(problem) for problem in lint_suite(name)] == [says]
    (tmp_path / "broken.jsonl").write_bytes(b"{\n[]")
    assert [str(problem)[:15] for problem in lint_suite("broken.jsonl")] == [
        "broken.jsonl:1:",
        "broken.jsonl:2:",
    ]


def test_a_suite_with_a_case_of_every_rung_is_clean_and_stale_on_another_world(tmp_path: Path) -> None:
    file = doing.write_suite(tmp_path)
    assert lint_suite(file) == ()
    text = (
        (tmp_path / "worlds" / "tiny.json").read_text(encoding="utf-8").replace("app/money.py", "app/cash.py")
    )
    (tmp_path / "worlds" / "tiny.json").write_text(text, encoding="utf-8", newline="\n")
    stale = [str(problem) for problem in lint_suite(file)]
    assert any("t5-reach: call 1: stale literal: nothing in the graph is called" in text for text in stale)
    assert any(
        "t6-gap: expect.result: stale literal 'app/money.py' (did you mean 'app/" in text for text in stale
    )
    assert not any("t1-callees" in text for text in stale)


def _on(world: CodeGraph, lines: Sequence[dict[str, Any]]) -> list[str]:
    cases, problems = parse_cases(to_bytes(*lines), name="s", file="s")
    return [str(found) for found in (*problems, *lint_cases(Suite("s", tuple(cases), ""), world=world))]


def test_an_excluded_tool_is_named_with_the_reason_for_it() -> None:
    """The one that really dispatches, and is really left out."""
    one = line(
        tools=["tmct_describe", "tmct_snippet"],
        expect=expected(call("tmct_describe", symbol="Cart")),
    )
    [found] = _on(doing.tiny_world(), [one])
    assert found.startswith("s:1: c: tools: 'tmct_snippet' is no registered tool of world 'tiny' (")
    assert "source files" in found


def test_the_shipped_shop_is_a_world_for_sound_cases() -> None:
    """CardGateway extends PaymentGateway, and SandboxGateway extends CardGateway."""
    world = CodeGraph.load(ROOT / "data" / "cases" / "worlds" / "shop.json")
    good = line(
        tools=["tmct_subclasses", "tmct_untested"],
        expect=expected(
            call("tmct_subclasses", **{"class": "PaymentGateway"}),
            proof=True,
            result=["SandboxGateway", "CardGateway"],
        ),
    )
    assert _on(world, [good]) == []
    bad = json.loads(json.dumps(good).replace("PaymentGateway", "PaymentGate"))
    assert any("call 1: stale literal: nothing in the graph is called" in text for text in _on(world, [bad]))


# the commands of `workspace` really run, which takes long: tests/test_suite_workspace.py
SHIPPED = [each for each in sorted((ROOT / "data" / "cases").glob("*.jsonl")) if each.stem != "workspace"]


@pytest.mark.parametrize("suite", SHIPPED, ids=lambda each: each.stem)
def test_every_shipped_suite_is_sound(suite: Path) -> None:
    assert load_suite(suite).cases
    assert [str(problem) for problem in lint_suite(suite)] == []


def test_a_world_that_is_given_and_missing_is_one_line(tmp_path: Path) -> None:
    doing.write_suite(tmp_path)
    (tmp_path / "garden.jsonl").write_bytes(to_bytes(line()))
    found = lint_suite(tmp_path / "garden.jsonl", world=tmp_path / "worlds" / "tinny.json")
    assert [problem.message for problem in found] == [
        f"{tmp_path}/worlds/tinny.json: no such world file (did you mean 'tiny.json'?)"
    ]


def test_a_suite_of_groups_need_not_say_that_its_loops_end() -> None:
    """Only refusals, or only calls: what the page of formats leaves out may be left out."""
    one = {"rung": None, "group": "mine"}
    assert linted(line(id="r", **one, expect={"refuse": True})) == []
    assert linted(line(id="k", **one, expect={"calls": [{"name": "look", "input": {"what": "oak"}}]})) == []
