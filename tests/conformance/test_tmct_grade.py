"""Our grader against the TOOL ladder's own: its cases, its recorded loop results, its product files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Case, load_suite, parse_cases
from agentbench_lab.drivers.returned import as_transcript
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.running.lint import lint_cases
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.codetools import REGISTRY

MEMORY = (("couch", "mgx:synonym", "sofa"), ("sofa", "mgx:relatedTo", "cushion"))
"""The memory facts that the original's runner seeds beside its graph file."""

RUNGS_PASSED = [7, 11, 7, 0, 0, 0, 3, 0, 2, 0]

# what a product row of the original does not keep: the recovered flag (TOOL-7) and the candidates (TOOL-8)
NOT_IN_THE_PRODUCT = {
    "ab-tool7-callers-recover-button",
    "ab-tool7-tests-recover-impact-c",
    "ab-tool7-callees-recover-callers-fnalpha",
    "ab-tool8-ambiguous-depends-b",
}
# the resolver's expectation for this case is replaced (floorExpect) by the name its driver reported at run time,
# which the row's own driver field still says; the row keeps the original expectation
RESOLVER_FLOOR = "ab-c2-what-to-test"


@pytest.fixture(scope="module")
def tmct(peers: Path) -> Path:
    return peers / "tmct"


@pytest.fixture(scope="module")
def cases(tmct: Path) -> dict[str, Case]:
    return {case.id: case for case in load_suite(tmct / "cases.jsonl").cases}


@pytest.fixture(scope="module")
def world(tmct: Path) -> CodeGraph:
    return CodeGraph.load(tmct / "entities.fixture.json", memory=MEMORY)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def original(case: Case, loop: dict[str, Any]) -> Grade:
    transcript = as_transcript(loop)
    problems = tuple(REGISTRY.problems(c.name, c.input, case.task.tools) for c in transcript.calls)
    return grade(case, transcript, Evidence(problems=problems), strictness="original")


def test_all_73_original_cases_load_and_lint_clean(tmct: Path, world: CodeGraph) -> None:
    """The original's own file and graph, unchanged, pass every rule of ours, the gold self-test included."""
    suite = load_suite(tmct / "cases.jsonl")
    assert len(suite.cases) == 73
    assert lint_cases(suite, world=world) == ()


def test_the_goal_drivers_recorded_results_pass_73_of_73(tmct: Path, cases: dict[str, Case]) -> None:
    """The full loop results, in which nothing is left out."""
    recorded = rows(tmct / "reference" / "goal_loop_results.jsonl")
    passed = [row["id"] for row in recorded if original(cases[row["id"]], row["loop"]).solved]
    assert len(recorded) == 73
    assert len(passed) == 73


DRIVERS = [
    ("stub", set(), set()),
    ("shim", set(), set()),
    ("resolver", NOT_IN_THE_PRODUCT, NOT_IN_THE_PRODUCT | {RESOLVER_FLOOR}),
    ("goal", NOT_IN_THE_PRODUCT, NOT_IN_THE_PRODUCT),
]


def verdicts(grade: Grade) -> tuple[bool | None, ...]:
    return grade.solved, grade.completed, grade.result_completed, grade.hallucinated


def recorded(verdict: dict[str, Any]) -> tuple[bool, ...]:
    return verdict["pass"], verdict["completed"], verdict["resultCompleted"], bool(verdict["hallucinated"])


@pytest.mark.parametrize(("driver", "missing", "_"), DRIVERS)
def test_recorded_products_get_the_original_verdicts(
    tmct: Path, cases: dict[str, Case], driver: str, missing: set[str], _: set[str]
) -> None:
    """Pass, completed, result-completed and hallucinated, row by row, against the case file."""
    other = set()
    for row in rows(tmct / "reference" / f"product.{driver}.jsonl"):
        ours = original(cases[row["caseId"]], {**row["produced"], "driver": row["driver"]})
        if verdicts(ours) != recorded(row["verdict"]):
            other.add(row["caseId"])
    assert other == missing


@pytest.mark.parametrize(("driver", "_", "missing"), DRIVERS)
def test_recorded_products_alone_get_them_too(
    tmct: Path, driver: str, _: set[str], missing: set[str]
) -> None:
    """The same from a row alone: five rows of the resolver and four of the goal driver do not hold what it takes."""
    other = set()
    for row in rows(tmct / "reference" / f"product.{driver}.jsonl"):
        line = {"id": row["caseId"], **{key: row[key] for key in ("rung", "request", "tools", "expect")}}
        if "inferredGoal" in row["expect"]:
            line["trace"] = [
                {"name": row["tools"][0]}
            ]  # the row keeps no trace, and the literal rule reads none
        case, problems = parse_cases(json.dumps(line).encode(), name="row", file="row")
        if not case:
            raise AssertionError(problems)
        ours = original(case[0], {**row["produced"], "driver": row["driver"]})
        if verdicts(ours) != recorded(row["verdict"]):
            other.add(row["caseId"])
    assert other == missing


def test_our_stub_climbs_as_far_as_the_original_stub(tmct: Path, world: CodeGraph) -> None:
    """30 of 73 on the original's fixture, rung by rung, gated at TOOL-3."""
    run = evaluate(tmct / "cases.jsonl", "stub", world=world, save_run=False)
    passed = [sum(bool(r.verdict.solved) for r in run.product if r.group == f"TOOL-{n}") for n in range(10)]
    assert passed == RUNGS_PASSED
    assert sum(passed) == 30
    assert run.card.envelope[0].gated_at == "TOOL-3 completion 0% < 50%"
    assert run.card.envelope[0].reached == "TOOL-2"


def test_the_legacy_cases_are_refused_for_their_rungs(tmct: Path) -> None:
    """Files from before the rungs were renamed say A0, which is no rung."""
    from agentbench_lab.errors import ProblemsError

    with pytest.raises(ProblemsError, match="unknown rung 'A0'"):
        load_suite(tmct / "cases.legacy-A0-C2.e10f76b3.jsonl")


@pytest.mark.parametrize(
    ("corner", "name", "input", "declared"),
    [
        ("hall blank", "tmct_describe", {"symbol": "  "}, ["tmct_describe"]),
        ("hall search decorator only", "tmct_search", {"decorator": "x"}, ["tmct_search"]),
        ("hall 0", "tmct_describe", {"symbol": 0}, ["tmct_describe"]),
        ("hall null val", "tmct_describe", {"zz": None}, []),
        ("hall array input", "tmct_describe", ["Widget"], ["tmct_describe"]),
    ],
)
def test_what_counts_as_given_is_what_the_original_was_seen_to_count(
    tmct: Path, corner: str, name: str, input: Any, declared: list[str]
) -> None:
    """A blank text is an argument that was not given, and 0 is one that was: as its own check answered."""
    lines = (tmct / "reference" / "grader_corner_cases.txt").read_text(encoding="utf-8").split("\n")
    (said,) = [line.removeprefix(f"{corner} ") for line in lines if line.startswith(f"{corner} [")]
    found = REGISTRY.problems(name, input, declared)
    assert [{"reason": each.reason, "detail": each.detail} for each in found] == json.loads(said)
