"""The two suites that are judged by outcomes: sound, as large as their cards say, and floors do not pass them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from agentbench_lab.cases import Suite, load_suite
from agentbench_lab.running.lint import lint_suite
from agentbench_lab.running.runner import evaluate

CASES = Path(__file__).resolve().parent.parent / "data" / "cases"


@pytest.fixture(scope="module", params=["functions", "support"])
def suite(request: pytest.FixtureRequest) -> Suite:
    return load_suite(CASES / f"{request.param}.jsonl")


def test_every_case_holds_what_it_promises(suite: Suite) -> None:
    assert lint_suite(CASES / f"{suite.name}.jsonl") == ()
    assert {case.taxonomy for case in suite.cases} == {"outcome-graded"}


def test_the_card_counts_what_is_there(suite: Suite) -> None:
    card = (CASES / f"{suite.name}.md").read_text(encoding="utf-8")
    assert (suite.version, suite.date) == ("1", "2026-11-30")
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


@pytest.mark.parametrize(
    ("name", "driver", "outcomes"),
    [
        ("functions", "refuse_all", {"over_refusal": 34, "solved": 6}),
        ("functions", "reckless", {"hallucinated_call": 40}),
        ("functions", "stub", {"over_refusal": 34, "solved": 6}),
        ("support", "refuse_all", {"over_refusal": 12, "correct_refusal": 12}),
        ("support", "reckless", {"hallucinated_call": 24}),
    ],
)
def test_floors_run_and_do_not_pass(name: str, driver: str, outcomes: dict[str, int]) -> None:
    run = evaluate(CASES / f"{name}.jsonl", driver, save_run=False)
    assert Counter(row.verdict.outcome for row in run.product) == outcomes
