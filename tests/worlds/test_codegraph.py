"""The code graph: a tiny one computed by hand, laws over random ones, its files, and the worlds that are shipped."""

from __future__ import annotations

import itertools
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.errors import LabError
from agentbench_lab.worlds.codegraph import MAX_DEPTH, CodeGraph
from agentbench_lab.worlds.codetools import GOALS
from agentbench_lab.worlds.graphfile import FACTS, FORMAT, PREDICATES, Entity, Graph, is_test_path, read_graph
from agentbench_lab.worlds.toolbox import Toolbox

WORLDS = Path(__file__).parents[2] / "data" / "cases" / "worlds"

#   app.py -> zoo/animal.py -> zoo/food.py        zoo/animal.py: class Animal { name, eat }, class Cat(Animal), class
#   test_animal.py -> zoo/animal.py               Kitten(Cat) { eat }, function feed. zoo/food.py: function cook, class
#   zoo/left.py <-> zoo/right.py                  Food, global MENU. app.py: function main.
#
#   main -> feed -> Animal.eat -> cook            Kitten.eat -> Animal.eat (within one module)
ENTITIES = (
    Entity("app.py", "Module", path="app.py"),
    Entity("main", "Function", id="app:main", path="app.py", lines=(3, 9), signature="def main()"),
    Entity("zoo/animal.py", "Module", path="zoo/animal.py", doc="All animals."),
    Entity("Animal", "Class", id="zoo.animal:Animal", path="zoo/animal.py", lines=(1, 9)),
    Entity("Animal.name", "Attribute", path="zoo/animal.py", lines=(2, 2)),
    Entity(
        "Animal.eat", "Method", path="zoo/animal.py", lines=(4, 9), decorators=("final",), doc="Eat a meal."
    ),
    Entity("Cat", "Class", path="zoo/animal.py", lines=(11, 12)),
    Entity("Kitten", "Class", path="zoo/animal.py", lines=(14, 18)),
    Entity("Kitten.eat", "Method", path="zoo/animal.py", lines=(16, 18)),
    Entity("feed", "Function", path="zoo/animal.py", lines=(20, 22)),
    Entity("zoo/food.py", "Module", path="zoo/food.py"),
    Entity("cook", "Function", path="zoo/food.py", lines=(1, 4)),
    Entity("Food", "Class", path="zoo/food.py", lines=(6, 8)),
    Entity("MENU", "GlobalVariable", path="zoo/food.py", lines=(10, 10)),
    Entity("zoo/left.py", "Module", path="zoo/left.py"),
    Entity("zoo/right.py", "Module", path="zoo/right.py"),
    Entity("tests/test_animal.py", "Module", path="tests/test_animal.py"),
    Entity("c0ffee1", "Commit", author="Ada", date="2025-01-01", doc="Begin"),
)
EDGES: dict[str, list[Any]] = {
    "imports": [
        ("app.py", "zoo/animal.py"),
        ("zoo/animal.py", "zoo/food.py"),
        ("zoo/left.py", "zoo/right.py"),
        ("zoo/right.py", "zoo/left.py"),
    ],
    "calls": [("app.py", "zoo/animal.py"), ("zoo/animal.py", "zoo/food.py")],
    "callsSymbol": [
        ("app:main", "feed"),
        ("feed", "Animal.eat"),
        ("Kitten.eat", "Animal.eat"),
        ("Animal.eat", "cook"),
    ],
    "tests": [("tests/test_animal.py", "zoo/animal.py")],
    "contains": [
        ("zoo.animal:Animal", "Animal.name"),
        ("zoo.animal:Animal", "Animal.eat"),
        ("Kitten", "Kitten.eat"),
    ],
    "inherits": [("Cat", "zoo.animal:Animal"), ("Kitten", "Cat")],
    "reexports": [("app.py", "feed")],
    "touches": [("c0ffee1", "zoo/food.py")],
    "touchesSymbol": [("c0ffee1", "cook")],
    "cochange": [("zoo/animal.py", "zoo/food.py", 3), ("zoo/left.py", "zoo/animal.py", 2)],
}
MEMORY = (("sofa", "synonym", "couch"), ("settee", "mgx:synonym", "sofa"), ("couch", "relatedTo", "cushion"))


def graph(**changes: Any) -> CodeGraph:
    parts: dict[str, Any] = {"name": "zoo", "entities": ENTITIES, "edges": EDGES, "has": tuple(FACTS)[:-1]}
    memory = tuple((a, r.removeprefix("mgx:"), b) for a, r, b in MEMORY)
    enforce = changes.pop("enforce_kinds", True)
    return CodeGraph(Graph(**{**parts, "memory": memory, **changes}), enforce_kinds=enforce)


ZOO = graph()


@pytest.mark.parametrize(
    ("tool", "input", "value"),
    [
        ("tmct_describe", {"symbol": "Animal.eat"}, ["Animal.eat"]),
        ("tmct_signature", {"symbol": "main"}, ["main"]),
        ("tmct_impact", {"module": "zoo/food.py"}, ["app.py", "zoo/animal.py"]),
        ("tmct_impact", {"module": "zoo/left.py"}, ["zoo/right.py"]),
        ("tmct_impact", {"module": "app.py"}, []),
        # cook is called from zoo/animal.py, and what depends on that module follows
        ("tmct_impact", {"module": "cook"}, ["app.py", "zoo/animal.py"]),
        ("tmct_impact", {"module": "feed"}, ["app.py"]),
        # only its own module calls Animal.eat
        ("tmct_impact", {"module": "Animal.eat"}, []),
        ("tmct_members", {"class": "Animal"}, ["eat", "name"]),
        ("tmct_members", {"class": "Food"}, []),
        ("tmct_subclasses", {"class": "Animal"}, ["Cat", "Kitten"]),
        ("tmct_exports", {"module": "app.py"}, ["feed"]),
        ("tmct_callers", {"symbol": "Animal.eat"}, ["Kitten.eat", "feed"]),
        ("tmct_callers", {"symbol": "Food"}, ["zoo/animal.py"]),
        ("tmct_callees", {"symbol": "Animal.eat"}, ["cook"]),
        ("tmct_callees", {"symbol": "Animal.name"}, ["zoo/food.py"]),
        ("tmct_calls", {"symbol": "feed"}, ["feed"]),
        ("tmct_tests_for", {"symbol": "Kitten"}, ["tests/test_animal.py"]),
        ("tmct_tests_for", {"symbol": "cook"}, []),
        ("tmct_untested", {}, ["app.py", "zoo/food.py", "zoo/left.py", "zoo/right.py"]),
        ("tmct_history", {"symbol": "cook"}, ["cook"]),
        ("tmct_cochanges", {"symbol": "MENU"}, ["zoo/animal.py"]),
        ("tmct_cochanges", {"symbol": "zoo/animal.py"}, ["zoo/food.py", "zoo/left.py"]),
        ("tmct_architecture", {}, []),
        ("tmct_related", {"term": "Sofa"}, []),
        ("tmct_search", {"query": "cook"}, ["cook"]),
        ("tmct_search", {"query": "eat"}, ["Animal.eat", "Kitten.eat"]),
        ("tmct_search", {"query": "meal eat"}, ["Animal.eat"]),
        ("tmct_search", {"query": "animal", "kind": "method"}, ["Animal.eat"]),
        ("tmct_search", {"kind": "Class"}, ["Animal", "Cat", "Food", "Kitten"]),
        ("tmct_search", {"kind": "Class", "name": "it"}, ["Kitten"]),
        ("tmct_search", {"kind": "Method", "decorator": "fin"}, ["Animal.eat"]),
        ("tmct_search", {"query": "zebra"}, []),
    ],
)
def test_results_computed_by_hand(tool: str, input: dict[str, Any], value: list[str]) -> None:
    """The value of each tool on the graph drawn above."""
    ran = ZOO.run(tool, input)
    assert ran.error is None
    assert ran.value == value
    assert all(fact.ok for fact in ran.facts)


@pytest.mark.parametrize(
    ("tool", "input", "said"),
    [
        (
            "tmct_describe",
            {"symbol": "cook"},
            ["cook: Function at zoo/food.py:1-4", "called by (1): Animal.eat"],
        ),
        (
            "tmct_describe",
            {"symbol": "zoo/animal.py"},
            ["All animals.", "tested by (1): tests/test_animal.py"],
        ),
        ("tmct_signature", {"symbol": "main"}, ["def main()"]),
        ("tmct_members", {"class": "Animal"}, ["eat (Method Animal.eat)", "name (Attribute Animal.name)"]),
        ("tmct_history", {"symbol": "cook"}, ["c0ffee1 2025-01-01 Ada: Begin"]),
        ("tmct_calls", {"symbol": "feed"}, ["Animal.eat: Method at zoo/animal.py:4-9"]),
        ("tmct_cochanges", {"symbol": "MENU"}, ["zoo/animal.py (3 times)"]),
        ("tmct_architecture", {}, ["zoo (4 modules)", "zoo/animal.py (1 importers)"]),
        ("tmct_related", {"term": "sofa"}, ["concept couch", "synonyms: couch, settee", "related: cushion"]),
        ("tmct_related", {"term": "cushion"}, ["synonyms: none", "related: couch"]),
    ],
)
def test_texts_say_what_the_value_cannot(tool: str, input: dict[str, Any], said: list[str]) -> None:
    """What an agent reads beside the labels: places, relations, dates, weights, terms."""
    text = ZOO.run(tool, input).text
    assert [part for part in said if part not in text] == []


def test_every_label_of_a_value_can_be_read_from_the_text() -> None:
    """An agent that is shown the text alone misses no label."""
    for tool, input in [
        ("tmct_impact", {"module": "cook"}),
        ("tmct_subclasses", {"class": "Animal"}),
        ("tmct_callers", {"symbol": "Animal.eat"}),
        ("tmct_untested", {}),
        ("tmct_search", {"kind": "Class"}),
    ]:
        ran = ZOO.run(tool, input)
        assert len(ran.value) > 1
        assert all(label in ran.text for label in ran.value)


# what a term binds to


@pytest.mark.parametrize(
    ("term", "label"),
    [
        ("Animal", "Animal"),
        ("animal", "Animal"),  # exact but for its case, before the module's stem
        ("zoo.animal:Animal", "Animal"),
        ("zoo.animal.Animal", "Animal"),
        ("animal.py", "zoo/animal.py"),
        ("zoo/animal", "zoo/animal.py"),
        ("ZOO/FOOD.PY", "zoo/food.py"),
        ("name", "Animal.name"),
        (" left ", "zoo/left.py"),
        ("test_animal", "tests/test_animal.py"),
    ],
)
def test_a_term_binds_by_its_exact_name_else_by_a_unique_end(term: str, label: str) -> None:
    assert ZOO.run("tmct_describe", {"symbol": term}).value == [label]
    assert ZOO.candidates(term, "seon:CodeEntity") == [label]


def test_an_ambiguous_term_is_an_error_that_lists_the_candidates() -> None:
    """Never an arbitrary pick."""
    ran = ZOO.run("tmct_callers", {"symbol": "eat"})
    assert ran.error == '"eat" may mean any of 2: Animal.eat, Kitten.eat; name one of them in full'
    assert ran.facts[1].ok is False
    assert ZOO.candidates("eat", "seon:CodeEntity") == ["Animal.eat", "Kitten.eat"]


def test_at_most_eight_candidates_are_listed_and_all_are_counted() -> None:
    many = graph(entities=[Entity(f"C{n}.run", "Method") for n in range(11)], edges={})
    error = many.run("tmct_callers", {"symbol": "run"}).error
    assert error is not None
    assert error.count(".run") == 8
    assert "any of 11" in error
    assert "and 3 more" in error


@pytest.mark.parametrize(
    ("tool", "input", "error"),
    [
        ("tmct_members", {"class": "cook"}, '"cook" is a Function (cook), and a Class is asked for'),
        (
            "tmct_members",
            {"class": "zoo/food.py"},
            '"zoo/food.py" is a Module (zoo/food.py), and a Class is asked for',
        ),
        (
            "tmct_exports",
            {"module": "Animal.name"},
            '"Animal.name" is an Attribute (Animal.name), and a Module is asked for',
        ),
        (
            "tmct_describe",
            {"symbol": "c0ffee1"},
            '"c0ffee1" is a Commit (c0ffee1), and a piece of code is asked for',
        ),
    ],
)
def test_the_declared_kind_is_enforced(tool: str, input: dict[str, Any], error: str) -> None:
    """A module has no members: asking for them is an error that says what the thing is."""
    ran = ZOO.run(tool, input)
    assert ran.error == error
    assert [fact.ok for fact in ran.facts] == [True, False]


def test_the_kind_decides_between_things_of_one_name() -> None:
    """`animal` is the class where a class is wanted, and the module where a module is."""
    assert ZOO.candidates("animal", "seon:ClassType") == ["Animal"]
    assert ZOO.candidates("animal", "mgx:Module") == ["zoo/animal.py"]
    assert ZOO.run("tmct_exports", {"module": "animal"}).error is None


@pytest.mark.parametrize(
    "word", ["Module", "Class", "imports", "calls", "tests", "attribute", "GlobalVariable"]
)
@pytest.mark.parametrize("enforce", [True, False])
def test_words_of_the_schema_are_no_entities(word: str, enforce: bool) -> None:
    """`callers of tests` grounds in nothing, in either mode."""
    world = graph(
        enforce_kinds=enforce, entities=[e for e in ENTITIES if not is_test_path(e.label)], edges={}
    )
    assert world.run("tmct_callers", {"symbol": word}).error is not None


def test_a_part_of_a_name_binds_to_nothing_but_the_nearest_labels_are_named() -> None:
    strict = ZOO.run("tmct_callers", {"symbol": "Kitte"})
    assert strict.error == 'nothing in the graph is called "Kitte"; nearest: Kitten, Kitten.eat'
    loose = graph(enforce_kinds=False).run("tmct_members", {"class": "Kitte"})
    assert loose.value == ["eat"]


def test_without_enforced_kinds_any_entity_will_do() -> None:
    """As the original ladder dispatches: members of a module are asked for and there are none."""
    ran = graph(enforce_kinds=False).run("tmct_members", {"class": "zoo/food.py"})
    assert (ran.error, ran.value) == (None, [])


def test_a_module_and_its_test_share_a_stem() -> None:
    """`b` is b.mjs as much as b.test.mjs; with more of the name it is one of them."""
    world = graph(entities=[Entity("lib/b.mjs", "Module"), Entity("lib/b.test.mjs", "Module")], edges={})
    assert world.candidates("b", "mgx:Module") == ["lib/b.mjs", "lib/b.test.mjs"]
    assert world.candidates("b.test", "mgx:Module") == ["lib/b.test.mjs"]
    assert world.candidates("b.mjs", "mgx:Module") == ["lib/b.mjs"]


def test_entities_that_share_a_label_are_told_apart_by_id() -> None:
    twins = Graph("twins", (Entity("run", "Function", id="a:run"), Entity("run", "Function", id="b:run")), {})
    world = CodeGraph(twins, digest="")
    assert world.candidates("run") == ["a:run", "b:run"]
    assert world.candidates("b:run") == ["b:run"]
    with pytest.raises(LabError, match="two entities have the label 'run'"):
        world.to_bytes()


# preconditions


@pytest.mark.parametrize(
    ("tool", "input", "fact"),
    [
        ("tmct_impact", {"module": "cook"}, "imports"),
        ("tmct_callers", {"symbol": "cook"}, "calls"),
        ("tmct_subclasses", {"class": "Cat"}, "inheritance"),
        ("tmct_exports", {"module": "app.py"}, "exports"),
        ("tmct_tests_for", {"symbol": "cook"}, "tests"),
        ("tmct_untested", {}, "tests"),
        ("tmct_history", {"symbol": "cook"}, "history"),
        ("tmct_cochanges", {"symbol": "cook"}, "cochange"),
        ("tmct_related", {"term": "sofa"}, "memory"),
        ("tmct_sprite", {"class": "sofa"}, "sprites"),
    ],
)
def test_a_tool_whose_facts_the_graph_lacks_fails_its_precondition(
    tool: str, input: dict[str, Any], fact: str
) -> None:
    """An empty list would say "there are none"; what is true is "nobody knows"."""
    ran = graph(has=tuple(f for f in FACTS if f not in (fact, "sprites"))).run(tool, input)
    assert ran.error is not None
    assert ran.error.startswith(f"{tool} cannot run: the graph zoo holds no {FACTS[fact]}")
    assert ran.facts[0].ok is False
    assert ran.facts[0].value == fact


def test_facts_are_the_preconditions_of_the_capability_in_their_order() -> None:
    """A proof can be derived from them, whether the call went well or not."""
    inputs: dict[str, dict[str, Any]] = {
        c.name: {
            p.name: "sofa" if p.kind == "mgx:MemoryTerm" else "Animal" for p in c.parameters if p.required
        }
        for c in ZOO.registry.capabilities
    }
    inputs["tmct_search"] = {"query": "Animal"}
    for wanted in (
        inputs,
        {name: {} for name in inputs},
        {name: dict.fromkeys(i, "?") for name, i in inputs.items()},
    ):
        for capability in ZOO.registry.capabilities:
            facts = ZOO.run(capability.name, wanted[capability.name]).facts
            assert [(f.pred, f.param) for f in facts] == [(p.pred, p.param) for p in capability.preconditions]


@pytest.mark.parametrize("blank", [None, "", "  ", "\u2003"])
def test_a_blank_argument_is_no_argument(blank: str | None) -> None:
    assert ZOO.run("tmct_callers", {"symbol": blank}).error == "symbol is required"
    assert ZOO.run("tmct_search", {"query": blank, "kind": blank}).error == "query is required, or kind"


def test_wrong_words_are_answered_with_the_nearest_right_one() -> None:
    assert "did you mean 'Function'" in str(ZOO.run("tmct_search", {"kind": "Funktion"}).error)
    assert "did you mean 'zoo'" in str(ZOO.run("tmct_architecture", {"package": "zooo"}).error)
    assert "did you mean 'couch'" in str(ZOO.run("tmct_related", {"term": "couches"}).error)
    assert "did you mean 'tmct_callers'" in str(ZOO.run("tmct_caller", {}).error)


def test_goals_are_those_whose_whole_plan_is_declared() -> None:
    assert [g.id for g in ZOO.goals(["tmct_untested", "tmct_impact"])] == [
        "cap:impact",
        "cap:untested",
        "goal:coverage-gap",
    ]
    assert [g.id for g in ZOO.goals(["tmct_untested"])] == ["cap:untested"]
    assert len(ZOO.goals(ZOO.registry.names)) == len(GOALS) == 19
    assert list(GOALS) == sorted(GOALS, key=lambda g: g.id)


def test_a_toolbox_runs_the_graph_and_a_result_cannot_be_spoiled() -> None:
    """What a driver does to a value does not reach the next trial."""
    tools = Toolbox(ZOO.fork(), ["tmct_members", "tmct_snippet"])
    first = tools.call("tmct_members", {"class": "Animal"})
    first.value.clear()
    ZOO.run("tmct_members", {"class": "Animal"}).value.clear()
    assert tools.call("tmct_members", {"class": "Animal"}).value == ["eat", "name"]
    assert tools.call("tmct_snippet", {"symbol": "Animal"}).status == "undeclared"
    assert [row.status for row in tools.ledger] == ["ok", "ok", "undeclared"]


def test_a_graph_goes_to_another_process() -> None:
    ZOO.run("tmct_untested", {})
    twin = pickle.loads(pickle.dumps(ZOO))
    assert twin.run("tmct_impact", {"module": "cook"}) == ZOO.run("tmct_impact", {"module": "cook"})


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("app/unit-tests/b.test.mjs", True),
        ("tests/test_cart.py", True),
        ("pkg/cart_test.go", True),
        ("src/__tests__/cart.ts", True),
        ("src/cart.spec.ts", True),
        ("conftest.py", True),
        ("src/latest.py", False),
        ("src/testing.py", False),
        ("src/inspect.ts", False),
        ("src/contest.py", False),
    ],
)
def test_what_is_a_test_by_its_path(path: str, test: bool) -> None:
    assert is_test_path(path) is test


# laws

_nodes = st.integers(0, 7)
_pairs = st.lists(st.tuples(_nodes, _nodes), max_size=24)


def _random(
    imports: list[tuple[int, int]], calls: list[tuple[int, int]], symbols: list[tuple[int, int]]
) -> CodeGraph:
    """Eight modules m0 to m7, each with one function f0 to f7."""
    entities = [Entity(f"m{n}.py", "Module", path=f"m{n}.py") for n in range(8)]
    entities += [Entity(f"f{n}", "Function", path=f"m{n}.py", lines=(1, 2)) for n in range(8)]
    edges = {
        "imports": [(f"m{a}.py", f"m{b}.py") for a, b in imports],
        "calls": [(f"m{a}.py", f"m{b}.py") for a, b in calls],
        "callsSymbol": [(f"f{a}", f"f{b}") for a, b in symbols],
    }
    return CodeGraph(Graph("random", tuple(entities), edges))


@given(_pairs, _pairs, _pairs)
@settings(max_examples=60, deadline=None)
def test_impact_is_what_can_reach_the_seed(
    imports: list[tuple[int, int]], calls: list[tuple[int, int]], symbols: list[tuple[int, int]]
) -> None:
    """Against brute force: all modules with a path of at most eight steps to the seed, the seed left out."""
    world = _random(imports, calls, symbols)
    direct = {*imports, *calls, *((a, b) for a, b in symbols if a != b)}
    for seed in range(8):
        reach = {seed}
        for _ in range(MAX_DEPTH):
            reach |= {a for a, b in direct if b in reach}
        ran = world.run("tmct_impact", {"module": f"m{seed}.py"})
        assert ran.value == sorted(f"m{n}.py" for n in reach - {seed})
        callers = {a for a, b in symbols if b == seed and a != b}
        for _ in range(MAX_DEPTH - 1):
            callers |= {a for a, b in direct if b in callers}
        assert world.run("tmct_impact", {"module": f"f{seed}"}).value == sorted(f"m{n}.py" for n in callers)


@given(_pairs, _pairs, _pairs)
@settings(max_examples=40, deadline=None)
def test_values_are_sorted_and_hold_each_label_once(
    imports: list[tuple[int, int]], calls: list[tuple[int, int]], symbols: list[tuple[int, int]]
) -> None:
    world = _random(imports, calls, symbols)
    for capability in world.registry.capabilities:
        for parameter in capability.parameters[:1]:
            for label in ("m0.py", "f1", "f7"):
                value = world.run(capability.name, {parameter.name: label}).value
                assert value is None or value == sorted(set(value))


@given(_pairs, _pairs, _pairs)
@settings(max_examples=40, deadline=None)
def test_writing_and_reading_is_a_round_trip(
    imports: list[tuple[int, int]], calls: list[tuple[int, int]], symbols: list[tuple[int, int]]
) -> None:
    """Bytes to graph to bytes; and the order in which a graph was built does not show."""
    data = _random(imports, calls, symbols).to_bytes()
    assert CodeGraph(read_graph(data, "x.json")).to_bytes() == data
    assert _random(imports[::-1], calls[::-1], symbols[::-1]).to_bytes() == data


def test_a_long_chain_is_followed_for_eight_steps() -> None:
    entities = [Entity(f"m{n:02}.py", "Module") for n in range(12)]
    edges = {"imports": [(f"m{n + 1:02}.py", f"m{n:02}.py") for n in range(11)]}
    ran = graph(entities=entities, edges=edges).run("tmct_impact", {"module": "m00.py"})
    assert ran.value == [f"m{n:02}.py" for n in range(1, 9)]


# files


def test_a_written_graph_is_read_back_the_same(tmp_path: Path) -> None:
    """Entities, edges with weights, memory and facts survive; the digest is that of the file's bytes."""
    file = tmp_path / "zoo.json"
    file.write_bytes(ZOO.to_bytes())
    back = CodeGraph.load(file)
    assert back.to_bytes() == ZOO.to_bytes()
    assert back.digest == ZOO.digest
    assert back.has == ZOO.has
    assert {e.label: e for e in back.entities} == {e.label: e for e in ZOO.entities}
    assert all(back.edges(p) == ZOO.edges(p) for p in PREDICATES)
    assert ("zoo/animal.py", "zoo/food.py", 3) in back.edges("cochange")
    assert back.related_to("sofa") == ("couch", ["couch", "settee"], ["cushion"])


def test_the_file_has_one_entity_or_edge_list_a_line() -> None:
    lines = ZOO.to_bytes().decode().split("\n")
    assert sum(line.startswith('    {"label": ') for line in lines) == len(ENTITIES)
    assert '      "Kitten": ["Cat"]' in lines
    assert '      "zoo/animal.py": {"zoo/food.py": 3},' in lines


def test_what_changes_the_answers_changes_the_digest(tmp_path: Path) -> None:
    """Runs over different answers never share a run key."""
    file = tmp_path / "zoo.json"
    file.write_bytes(ZOO.to_bytes())
    worlds = [
        CodeGraph.load(file),
        CodeGraph.load(file, enforce_kinds=False),
        CodeGraph.load(file, memory=[("a", "mgx:synonym", "b")]),
    ]
    assert len({world.digest for world in worlds}) == 3
    assert worlds[2].related_to("a") == ("a", ["b"], [])


def document(**changes: Any) -> dict[str, Any]:
    return {**msgspec.json.decode(ZOO.to_bytes()), **changes}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "a graph file holds a JSON object"),
        (b'{"individual": []}', "did you mean 'individuals'?"),
        (b'{"format": "agentbench-lab/codegraph/v2"}', f"did you mean '{FORMAT}'?"),
        (document(entitis=[]), "unknown key 'entitis' (did you mean 'entities'?)"),
        (document(entities={}), "entities must be a list"),
        (document(has=["test"]), "has: 'test' is no fact (did you mean 'tests'?)"),
        (document(has=[]), "has: 'tests' is not listed, but the file holds tests"),
        (
            document(entities=[{"label": "a", "kind": "Clas"}], edges={}),
            "'Clas' is no kind (did you mean 'Class'?)",
        ),
        (
            document(entities=[{"label": "a", "kid": "Class"}], edges={}),
            "(a): unknown key 'kid' (did you mean 'kind'?)",
        ),
        (
            document(entities=[{"label": "a", "kind": "Class", "lines": "1"}], edges={}),
            "entities[0] (a): Expected `array | null`",
        ),
        (
            document(entities=[{"label": "a", "kind": "Class"}] * 2, edges={}),
            "two entities have the label 'a'",
        ),
        (document(edges={"import": {}}), "no edge is called 'import' (did you mean 'imports'?)"),
        (
            document(edges={"imports": {"app.py": ["zoo/anmal.py"]}}),
            "'zoo/anmal.py' is no entity (did you mean 'zoo/animal.py'?)",
        ),
        (
            document(edges={"imports": {"app.py": ["cook"]}}),
            "edges.imports: 'cook' is a Function, not Module",
        ),
        (document(edges={"imports": {"app.py": "cook"}}), "edges.imports['app.py'] must be a list of labels"),
        (
            document(memory=[["a", "synonymous", "b"]]),
            "'synonymous' is no relation (did you mean 'synonym'?)",
        ),
        (
            {"individuals": [{"id": "a"}], "objectProperties": []},
            "individuals[0]: id, label and class must be text",
        ),
        (
            {
                "individuals": [],
                "objectProperties": [{"predicate": "imports", "examples": [{"subject": "a", "object": "b"}]}],
            },
            "objectProperties[0] (imports): 'a' is no individual",
        ),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, content: Any, said: str) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(LabError) as caught:
        CodeGraph.load(file)
    assert str(caught.value).startswith(str(file))
    assert said in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(json.dumps(document(licens="", edges={"import": {}, "exports": {}})).encode())
    with pytest.raises(LabError) as caught:
        CodeGraph.load(file)
    assert len(str(caught.value).split("\n")) == 3


def test_a_missing_file_is_answered_with_the_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_bytes(ZOO.to_bytes())
    with pytest.raises(LabError, match=r"shp\.json: no such file \(did you mean 'shop\.json'\?\)"):
        CodeGraph.load(tmp_path / "shp.json")


def test_edges_to_nowhere_and_ids_given_twice_are_refused() -> None:
    with pytest.raises(
        LabError, match=r"imports leads to 'app\.pyy', which is no entity \(did you mean 'app\.py'\?\)"
    ):
        graph(edges={"imports": [("app.pyy", "app.py")]})
    with pytest.raises(LabError, match="two entities have the id 'a'"):
        graph(entities=[Entity("a", "Class"), Entity("b", "Class", id="a")], edges={})


# the worlds that are shipped


@pytest.mark.parametrize("name", ["shop", "ipywidgets"])
def test_shipped_worlds_are_canonical_and_described(name: str) -> None:
    """Each file is what the library itself would write, and its card gives the numbers it really has."""
    world = CodeGraph.load(WORLDS / f"{name}.json")
    assert world.to_bytes() == (WORLDS / f"{name}.json").read_bytes()
    assert world.name == name
    card = (WORLDS / f"{name}.md").read_text(encoding="utf-8")
    kinds = Counter(e.kind for e in world.entities)
    edges = [f"{len(world.edges(p))} {p}" for p in PREDICATES if world.edges(p)]
    expected = [f"{len(world.entities):,}: {kinds['Module']} modules", f"{kinds['Class']} classes", *edges]
    assert [part for part in [*expected, world.graph.version] if part not in card] == []


def test_the_shop_is_as_hard_as_its_card_says() -> None:
    shop = CodeGraph.load(WORLDS / "shop.json")
    assert len(shop.candidates("handler", "mgx:Module")) == 3
    assert len(shop.candidates("repository", "mgx:Module")) == 2
    assert len(shop.candidates("pricing", "seon:CodeEntity")) == 2
    for bottom, top in [
        ("GiftCard", "Product"),
        ("BirthdayCoupon", "Coupon"),
        ("SandboxGateway", "PaymentGateway"),
    ]:
        up = {a: b for a, b, _ in shop.edges("inherits")}
        assert up[up[bottom]] == top
    assert "src/orders/invoice.ts" in shop.run("tmct_impact", {"module": "src/orders/order.ts"}).value
    assert "src/orders/order.ts" in shop.run("tmct_impact", {"module": "src/orders/invoice.ts"}).value
    assert len(shop.run("tmct_untested", {}).value) == 19


def test_the_shop_agrees_with_itself() -> None:
    """Modules change together as often as its commits say; calls between modules are those of their symbols."""
    shop = CodeGraph.load(WORLDS / "shop.json")
    touched: dict[str, set[str]] = {}
    for commit, module, _ in shop.edges("touches"):
        touched.setdefault(commit, set()).add(module)
    together = Counter(
        pair for modules in touched.values() for pair in itertools.combinations(sorted(modules), 2)
    )
    assert shop.edges("cochange") == sorted((a, b, n) for (a, b), n in together.items() if n >= 2)
    home = {e.label: e.path for e in shop.entities}
    between = {(home[a], home[b]) for a, b, _ in shop.edges("callsSymbol") if home[a] != home[b]}
    assert {(a, b) for a, b, _ in shop.edges("calls")} == between
    for commit, symbol, _ in shop.edges("touchesSymbol"):
        assert home[symbol] in touched[commit]
    for a, b, _ in shop.edges("inherits"):
        assert f"extends {b}" in shop.entity(a).signature  # type: ignore[union-attr]
