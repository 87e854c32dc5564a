"""The suites that are judged by outcomes: sound, as large as their cards say, and floors do not pass them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from agentbench_lab.cases import Suite, load_suite
from agentbench_lab.running.runner import evaluate

from .states import line, problems_of

CASES = Path(__file__).resolve().parent.parent / "data" / "cases"


@pytest.fixture(scope="module", params=["functions", "support", "wide"])
def suite(request: pytest.FixtureRequest) -> Suite:
    return load_suite(CASES / f"{request.param}.jsonl")


def test_every_case_is_judged_by_outcomes(suite: Suite) -> None:
    assert {case.taxonomy for case in suite.cases} == {"outcome-graded"}


def test_the_card_counts_what_is_there(suite: Suite) -> None:
    card = (CASES / f"{suite.name}.md").read_text(encoding="utf-8")
    version = "2" if suite.name == "support" else "1"
    assert (suite.version, suite.date) == (version, "2026-11-30")
    counted = {
        name: int(n) for name, n in re.findall(r"^\| ([a-z ]+) \| .* \| (\d+) \|$", card, re.MULTILINE)
    }
    assert counted == dict(Counter(case.group for case in suite.cases))
    assert f"{len(suite.cases)} cases" in card
    index = (CASES / "README.md").read_text(encoding="utf-8")
    assert (
        f"[{suite.name}.jsonl]({suite.name}.jsonl) ([card]({suite.name}.md)) | {len(suite.cases)} |" in index
    )


def test_requests_are_nobodys_template(suite: Suite) -> None:
    requests = [case.task.request for case in suite.cases]
    assert len(set(requests)) == len(requests)
    openings = Counter(" ".join(request.split()[:3]) for request in requests)
    assert openings.most_common(1)[0][1] <= 2
    assert all(case.note for case in suite.cases)


def test_half_of_support_is_to_be_refused_and_all_of_it_has_a_policy() -> None:
    cases = load_suite(CASES / "support.jsonl").cases
    assert (len(cases), sum(case.expect.refuse for case in cases)) == (24, 12)
    assert len({case.task.policy for case in cases}) == 1 and cases[0].task.policy
    # nothing but what is asked may change, and no tool is kept from who is tempted
    assert all(case.expect.state_equals is not None for case in cases)
    assert len({case.task.tools for case in cases}) == 1


def test_wide_asks_for_the_same_things_at_every_width() -> None:
    cases = load_suite(CASES / "wide.jsonl").cases
    widths = Counter(case.task.width for case in cases)
    assert widths == {1: 6, 2: 6, 4: 6, 8: 6, 16: 6}
    for width in widths:
        changing = Counter(
            call.name
            for case in cases
            if case.task.width == width and case.gold is not None
            for call in case.gold.calls
            if not call.name.startswith(("find_", "get_"))
        )
        kinds = ("set_departure", "set_power", "add_charge", "settle", "move_boat", "set_phone")
        assert changing == dict.fromkeys(kinds, width)
    for case in cases:
        assert case.gold is not None
        # no boat twice, so that parts can be done in any order
        boats = [call.input["boat_id"] for call in case.gold.calls if call.name.startswith(("set_", "add_"))]
        assert len(boats) == len(set(boats))
        assert len(case.task.parts) == len(set(case.task.parts)) == case.task.width


def test_parts_stand_in_the_request() -> None:
    told = problems_of(line(parts=["Cancel W78"]), line(id="other", parts=["Cancel W77", "Cancel W77"]))
    assert told == [
        "desk.jsonl:1: c: parts: 'Cancel W78' is not in the request",
        "desk.jsonl:2: other: parts: one is given twice",
    ]


@pytest.mark.parametrize(
    ("name", "driver", "outcomes"),
    [
        ("functions", "refuse_all", {"over_refusal": 34, "solved": 6}),
        ("functions", "reckless", {"hallucinated_call": 40}),
        ("functions", "stub", {"over_refusal": 34, "solved": 6}),
        ("support", "refuse_all", {"over_refusal": 12, "correct_refusal": 12}),
        ("support", "reckless", {"hallucinated_call": 24}),
        ("wide", "refuse_all", {"over_refusal": 30}),
    ],
)
def test_floors_run_and_do_not_pass(name: str, driver: str, outcomes: dict[str, int]) -> None:
    run = evaluate(CASES / f"{name}.jsonl", driver, save_run=False)
    assert Counter(row.verdict.outcome for row in run.product) == outcomes
