"""Declared tools: the hallucination check, and the proof that the registry tells the truth about the dispatch table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.worlds.capabilities import Capability, Goal, Parameter, Precondition, Registry, present
from agentbench_lab.worlds.codegraph import DISPATCH, CodeGraph
from agentbench_lab.worlds.codetools import REGISTRY
from agentbench_lab.worlds.graphfile import Entity, Graph

SMALL = Registry(
    (
        Capability("look", "look", "Look.", (Parameter("what", "k", True), Parameter("how", "k"))),
        Capability(
            "find",
            "find",
            "Find.",
            (Parameter("query", "k"), Parameter("kind", "k")),
            (Precondition("cap:any-present", params=("query", "kind")),),
        ),
        Capability("all", "all", "All."),
    ),
    excluded={"burn": "destroys"},
)


@pytest.mark.parametrize(
    ("name", "input", "problems"),
    [
        ("look", {"what": "a"}, []),
        ("look", {"what": "a", "how": None}, []),
        ("look", {"what": 0}, []),
        ("look", {"what": False}, []),
        ("all", {}, []),
        ("all", None, []),
        ("find", {"kind": "k"}, []),
        ("", {}, ["unknown-tool"]),
        (None, {}, ["unknown-tool"]),
        (7, {"x": 1}, ["unknown-tool"]),
        ("lock", {"x": 1}, ["unknown-tool"]),
        ("burn", {}, ["unknown-tool"]),
        ("look", {}, ["missing-arg look.what"]),
        ("look", {"what": " "}, ["missing-arg look.what"]),
        ("look", {"what": None}, ["missing-arg look.what"]),
        ("look", {"what": "a", "speed": 2}, ["unknown-arg look.speed"]),
        ("look", {"wat": "a"}, ["unknown-arg look.wat", "missing-arg look.what"]),
        ("look", "a", ["missing-arg look.what"]),
        ("look", ["a"], ["unknown-arg look.0", "missing-arg look.what"]),
        ("find", {"query": ""}, ["missing-arg find needs one of query|kind"]),
        ("all", {"x": None}, ["unknown-arg all.x"]),
    ],
)
def test_what_makes_a_call_a_hallucination(name: Any, input: Any, problems: list[str]) -> None:
    """Closed world, default deny: names, keys, and what must be given."""
    found = SMALL.problems(name, input, ("look", "find", "all", "burn"))
    said = [p.reason if p.reason == "unknown-tool" else f"{p.reason} {p.detail}" for p in found]
    assert said == problems


def test_a_registered_tool_that_is_not_declared_is_undeclared_and_its_arguments_are_still_checked() -> None:
    found = SMALL.problems("look", {"wat": 1}, ["all"])
    assert [p.reason for p in found] == ["undeclared", "unknown-arg", "missing-arg"]


@given(st.text())
def test_text_is_present_when_it_is_not_blank(text: str) -> None:
    assert present(text) is (text.strip() != "")


def test_a_registry_refuses_contradictions() -> None:
    look = SMALL.by_name["look"]
    with pytest.raises(ValueError, match="twice"):
        Registry((look, look))
    with pytest.raises(ValueError, match="at once"):
        Registry((look,), {"look": "why"})


def test_values_of_arguments_are_checked_as_text_unless_a_schema_says_otherwise() -> None:
    counted = Capability(
        "n", "n", "N.", (Parameter("n", "k", schema={"type": "integer"}), Parameter("t", "k"))
    )
    assert counted.misfits({"n": 1.0, "t": "x"}) == []
    assert counted.misfits({"t": None}) == []
    wrong = counted.misfits({"n": "1", "t": 3})
    assert [(m.reason, m.path, m.stringified) for m in wrong] == [("type", "n", True), ("type", "t", False)]


def test_the_schema_shown_to_an_agent_says_what_is_needed() -> None:
    schema = REGISTRY.by_name["tmct_search"].input_schema()
    assert schema["anyOf"] == [{"required": ["query"]}, {"required": ["kind"]}]
    schema = REGISTRY.by_name["tmct_members"].input_schema()
    assert schema["required"] == ["class"]
    assert schema["additionalProperties"] is False
    for capability in REGISTRY.capabilities:
        for name, value in capability.input_schema()["properties"].items():
            assert len(value["description"]) > 10, (capability.name, name)


@pytest.mark.parametrize(
    ("trace", "fits"),
    [
        ([], True),
        (["a"], True),
        (["a", "c"], True),
        (["c", "a"], False),
        (["b", "b"], False),
        (["a", "b", "c"], True),
        (["a", "b", "c", "c"], False),
        (["d"], False),
    ],
)
def test_a_trace_fits_a_goal_when_it_is_a_subsequence_of_the_plan(trace: list[str], fits: bool) -> None:
    assert Goal("g", ("a", "b", "c")).fits(trace) is fits


# the code graph's registry against its dispatch table


class Recording(Mapping[str, Any]):
    """Arguments that remember which keys were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_ = values
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return self.values_[key]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("dispatch reads keys by name; it never looks at all of them")

    def __len__(self) -> int:
        raise AssertionError("dispatch reads keys by name; it never counts them")


GRAPH = CodeGraph(
    Graph(
        "two",
        (
            Entity("src/a.py", "Module", path="src/a.py"),
            Entity("lib/b.py", "Module", path="lib/b.py"),
            Entity("Ox", "Class", path="src/a.py", decorators=("final",)),
            Entity("Fox", "Class", path="lib/b.py", decorators=("frozen",)),
        ),
        {"touches": []},
        has=("imports", "calls", "inheritance", "exports", "tests", "history", "cochange", "memory"),
        memory=(("sofa", "synonym", "couch"), ("tree", "synonym", "plant")),
    )
)
# for each kind of parameter two values that have to lead to different results or errors
VALUES = {
    "seon:CodeEntity": ("Ox", "Fox"),
    "mgx:Module": ("src/a.py", "lib/b.py"),
    "seon:ClassType": ("Ox", "Fox"),
    "mgx:MemoryTerm": ("sofa", "tree"),
    "cap:PackageName": ("src", "lib"),
}
SEARCH = {
    "query": ("ox", "fo"),
    "kind": ("Class", "Module"),
    "name": ("ox", "fo"),
    "decorator": ("final", "frozen"),
}
SPRITE = {"expression": ("glad", "sad"), "size": ("large", "small")}


def values(capability: Capability, parameter: Parameter) -> tuple[str, str]:
    if capability.name == "tmct_search":
        return SEARCH[parameter.name]
    return VALUES[parameter.kind] if parameter.kind in VALUES else SPRITE[parameter.name]


def test_the_registry_is_a_strict_subset_of_the_dispatch_table() -> None:
    """Every registered tool runs; what runs beside them is the one excluded tool that is really there."""
    assert set(REGISTRY.names) < set(DISPATCH)
    assert set(DISPATCH) - set(REGISTRY.names) == {"tmct_snippet"}


def test_the_nine_excluded_tools_each_have_a_reason_and_one_of_them_is_dispatched() -> None:
    assert len(REGISTRY.excluded) == 9
    assert all(len(reason) > 20 for reason in REGISTRY.excluded.values())
    assert set(REGISTRY.excluded) & set(DISPATCH) == {"tmct_snippet"}
    assert GRAPH.run("tmct_snippet", {"symbol": "Ox"}).error is None
    assert [p.reason for p in REGISTRY.problems("tmct_snippet", {"symbol": "Ox"}, ["tmct_snippet"])] == [
        "unknown-tool"
    ]


@pytest.mark.parametrize("capability", REGISTRY.capabilities, ids=lambda c: c.label)
def test_the_declared_keys_are_exactly_those_that_dispatch_reads(capability: Capability) -> None:
    """Over calls with each argument present and each absent."""
    full = {p.name: values(capability, p)[0] for p in capability.parameters}
    read: set[str] = set()
    for left_out in (None, *full):
        arguments = Recording({key: value for key, value in full.items() if key != left_out})
        DISPATCH[capability.name](GRAPH, arguments)
        read |= arguments.read
    assert read == capability.accepted


@pytest.mark.parametrize(
    ("capability", "parameter"),
    [(c, p) for c in REGISTRY.capabilities for p in c.parameters],
    ids=lambda x: x.label if isinstance(x, Capability) else x.name,
)
def test_every_declared_argument_makes_a_difference(capability: Capability, parameter: Parameter) -> None:
    """Another value of the argument gives another result or another error."""
    base = {p.name: values(capability, p)[0] for p in capability.parameters if p.required}
    if capability.name == "tmct_search":
        base = {"kind": "Class"}
    one, other = (
        GRAPH.run(capability.name, {**base, parameter.name: value}) for value in values(capability, parameter)
    )
    assert (one.value, one.text, one.error) != (other.value, other.text, other.error)


@pytest.mark.parametrize("capability", REGISTRY.capabilities, ids=lambda c: c.label)
def test_preconditions_and_effects_speak_of_declared_parameters(capability: Capability) -> None:
    accepted = capability.accepted
    for precondition in capability.preconditions:
        assert {precondition.param or next(iter(accepted), None), *precondition.params} <= accepted | {None}
    for effect in capability.effects:
        assert effect.of is None or effect.of.removeprefix("?") in accepted
    assert capability.read_only
