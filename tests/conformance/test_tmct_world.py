"""Our code graph against the original ladder's: its registry, its goals, its graph file, and its dispatch, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.worlds.codegraph import DISPATCH, CodeGraph
from agentbench_lab.worlds.codetools import GOALS, REGISTRY
from agentbench_lab.worlds.graphfile import PREDICATES

MEMORY = (("couch", "mgx:synonym", "sofa"), ("sofa", "mgx:relatedTo", "cushion"))
EXCLUDED = {
    "tmct_context",
    "tmct_context_more",
    "tmct_snippet",
    "tmct_ask",
    "tmct_export",
    "tmct_ingest",
    "tmct_file_history",
    "tmct_method_history",
    "tmct_class_history",
}
"""The dispatch table has one row for each of these: an empty call of a tool that is not registered. They are left out."""


@pytest.fixture(scope="module")
def tmct(peers: Path) -> Path:
    return peers / "tmct"


@pytest.fixture(scope="module")
def loose(tmct: Path) -> CodeGraph:
    return CodeGraph.load(tmct / "entities.fixture.json", enforce_kinds=False, memory=MEMORY)


@pytest.fixture(scope="module")
def strict(tmct: Path) -> CodeGraph:
    return CodeGraph.load(tmct / "entities.fixture.json", memory=MEMORY)


def reference(tmct: Path, name: str) -> Any:
    text = (tmct / "reference" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line] if name.endswith("l") else json.loads(text)


def test_the_registry_is_the_originals(tmct: Path) -> None:
    """Names and their order, parameters with kind and required, preconditions, effects; questions are our own words."""
    raw = reference(tmct, "registry.json")
    ours = [
        {
            "name": c.name,
            "label": c.label,
            "readOnly": c.read_only,
            "parameters": [(p.name, p.name, p.kind, p.required) for p in c.parameters],
            "preconditions": [(p.pred, p.param, p.kind, p.params) for p in c.preconditions],
            "add": [(e.pred, e.topic, e.of) for e in c.effects],
            "del": [],
        }
        for c in REGISTRY.capabilities
    ]
    theirs = [
        {
            "name": c["name"],
            "label": c["label"],
            "readOnly": c["readOnly"],
            "parameters": [(p["name"], p["arg"], p["kind"], p["required"]) for p in c["parameters"]],
            "preconditions": [
                (p["pred"], p.get("param"), p.get("as"), tuple(p.get("params", ())))
                for p in c["preconditions"]
            ],
            "add": [(e["pred"], e["topic"], e["of"]) for e in c["effects"]["add"]],
            "del": c["effects"]["del"],
        }
        for c in raw["capabilities"]
    ]
    assert ours == theirs
    assert set(REGISTRY.excluded) == set(raw["excluded"]) == EXCLUDED


def test_the_declared_goals_are_the_originals(tmct: Path, strict: CodeGraph) -> None:
    theirs = [(g["id"], [tuple(plan) for plan in g["plans"]]) for g in reference(tmct, "declared_goals.json")]
    assert [(g.id, [g.plan]) for g in strict.goals(REGISTRY.names)] == theirs
    assert len(GOALS) == 19


def test_the_individuals_are_the_originals_without_the_words_of_its_schema(
    tmct: Path, strict: CodeGraph
) -> None:
    rows = reference(tmct, "ingested_individuals.json")
    theirs = [(r["id"], r["label"], r["class"]) for r in rows if not r["class"].startswith("Schema")]
    assert [(e.id, e.label, e.kind) for e in strict.entities] == theirs
    assert len(theirs) == 16


def test_the_words_of_a_schema_in_a_graph_file_are_left_out(tmct: Path) -> None:
    """The original's other graph file holds them as individuals."""
    graph = CodeGraph.load(tmct / "entities-repo.graph.json")
    assert len(graph.entities) == 16
    assert {e.kind for e in graph.entities}.isdisjoint({"SchemaClass", "SchemaPredicate"})


def test_the_relations_are_the_originals(tmct: Path, strict: CodeGraph) -> None:
    label = {e.id: e.label for e in strict.entities}
    for table in reference(tmct, "ingested_relations.json"):
        theirs = sorted((label[e["subject"]], label[e["object"]], e.get("weight", 1)) for e in table["edges"])
        assert strict.edges(table["predicate"]) == theirs, table["predicate"]
        assert len(theirs) == table["count"]
        assert table["predicate"] in PREDICATES


def test_the_dispatch_table_is_reproduced(tmct: Path, loose: CodeGraph) -> None:
    """ok, resolved and result of every row, kinds not enforced; only the excluded tools' rows are left out."""
    rows = reference(tmct, "dispatch_table.jsonl")
    assert len(rows) == 318
    assert {row["tool"] for row in rows if row["tool"] not in REGISTRY.by_name} == EXCLUDED
    judged = 0
    for row in rows:
        if row["tool"] in EXCLUDED:
            continue
        ran = loose.run(row["tool"], row["input"])
        assert (ran.error is None) is row["ok"], row
        if row["ok"]:
            assert ran.value == sorted(row["result"]), row
        parameters = REGISTRY.by_name[row["tool"]].parameters
        if row.get("resolved") is not None:
            bound = loose.bind(row["input"][parameters[0].name], "seon:CodeEntity")
            assert not isinstance(bound, str), row
            assert bound.label == row["resolved"], row
        judged += 1
    assert judged == 309


def test_the_tools_without_an_argument_say_what_is_required(tmct: Path, loose: CodeGraph) -> None:
    """The rows of empty input: the same argument is named."""
    for row in reference(tmct, "dispatch_table.jsonl"):
        if row["tool"] in DISPATCH and row["input"] == {} and not row["ok"]:
            assert str(loose.run(row["tool"], {}).error).startswith(row["error"]), row


@pytest.mark.parametrize(
    ("tool", "input", "value"),
    [
        (
            "tmct_untested",
            {},
            ["app/lib/a.mjs", "app/lib/c.mjs", "app/lib/e.mjs", "app/lib/f.mjs", "scripts/g.mjs"],
        ),
        (
            "tmct_impact",
            {"module": "app/lib/a.mjs"},
            [
                "app/functions/d/handler.mjs",
                "app/lib/b.mjs",
                "app/lib/c.mjs",
                "app/lib/e.mjs",
                "app/lib/f.mjs",
                "scripts/g.mjs",
            ],
        ),
        ("tmct_impact", {"module": "fnAlpha"}, ["app/functions/d/handler.mjs", "app/lib/b.mjs"]),
        ("tmct_impact", {"module": "Widget"}, []),
        ("tmct_members", {"class": "Widget"}, ["name", "render"]),
        ("tmct_subclasses", {"class": "Base"}, ["Button", "Widget"]),
        ("tmct_callers", {"symbol": "Base"}, ["scripts/g.mjs"]),
        ("tmct_cochanges", {"symbol": "fnAlpha"}, ["app/lib/b.mjs", "app/lib/c.mjs"]),
        ("tmct_exports", {"module": "app/functions/d/handler.mjs"}, ["fnAlpha"]),
        ("tmct_history", {"symbol": "fnAlpha"}, ["fnAlpha"]),
        ("tmct_related", {"term": "sofa"}, []),
        ("tmct_search", {"query": "widget"}, ["Widget"]),
    ],
)
def test_result_sets_are_the_same_with_kinds_enforced(
    strict: CodeGraph, tool: str, input: dict[str, Any], value: list[str]
) -> None:
    assert strict.run(tool, input).value == value


def test_remembered_terms_bind_as_the_originals(tmct: Path, strict: CodeGraph) -> None:
    for term, found in reference(tmct, "memory_terms.json").items():
        label = [found["match"]["label"]] if found["match"] else []
        assert strict.candidates(term, "mgx:MemoryTerm") == label
    assert strict.related_to("sofa") == ("couch", ["couch"], ["cushion"])
    assert strict.run("tmct_related", {"term": "sofa"}).text.endswith("synonyms: couch\nrelated: cushion")


def test_where_enforced_kinds_refuse_what_the_original_lets_through(
    strict: CodeGraph, loose: CodeGraph
) -> None:
    """Its weak spots: members of a module, a part of a name, a module picked although its test is named as well."""
    for tool, input in [
        ("tmct_members", {"class": "app/lib/a.mjs"}),
        ("tmct_exports", {"module": "Widget"}),
        ("tmct_describe", {"symbol": "Widge"}),
        ("tmct_describe", {"symbol": "abc1234"}),
        ("tmct_describe", {"symbol": "b"}),
    ]:
        assert loose.run(tool, input).error is None
        assert strict.run(tool, input).error is not None
    assert strict.candidates("b", "seon:CodeEntity") == ["app/lib/b.mjs", "app/unit-tests/b.test.mjs"]


def test_exact_terms_bind_as_the_originals_oracle(tmct: Path, strict: CodeGraph) -> None:
    """Every term that its oracle takes for an exact name of code means the same thing here."""
    exact = [r for r in reference(tmct, "resolve_table.jsonl") if r["tier"] == 1]
    code = [
        r
        for r in exact
        if r["class"] not in ("SchemaClass", "SchemaPredicate", "Commit") and " " not in r["term"]
    ]
    assert len(code) >= 12
    for row in code:
        assert strict.candidates(row["term"], "seon:CodeEntity") == [row["match"]]
    for row in exact:
        if row["class"].startswith("Schema"):
            assert strict.candidates(row["term"]) == []
