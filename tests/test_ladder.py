"""The ladder's gate and how far an arm climbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.cases import RUNGS
from agentbench_lab.ladder import RUNG_NAMES, Cell, climb, in_order
from agentbench_lab.running.runner import evaluate

from .doing import knows, some, write_suite


def cell(
    completed: int, judged: int, hallucinated: int = 0, *, asked: int | None = None, group: str = "TOOL-2"
) -> Cell:
    return Cell(group, judged if asked is None else asked, judged, completed, hallucinated)


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (cell(1, 2), None),  # exactly 50 %
        (cell(7, 7), None),
        (cell(2, 5), "TOOL-2 completion 40% < 50%"),
        (cell(0, 5), "TOOL-2 completion 0% < 50%"),
        (cell(4, 9), "TOOL-2 completion 44% < 50%"),  # 44.44 %
        (cell(3, 8), "TOOL-2 completion 38% < 50%"),  # 37.5 %, half up
        (cell(124, 250), "TOOL-2 completion 49.6% < 50%"),  # 49.6 % rounds to 50 %, which it is not
        (cell(2498, 5000), "TOOL-2 completion 49.96% < 50%"),  # nor is it 50.0 %
        (cell(2499, 5000), "TOOL-2 completion 49.98% < 50%"),
        (cell(1, 2000), "TOOL-2 completion 0.1% < 50%"),  # 0.05 % is not nothing
        (cell(0, 0), "TOOL-2 has no trials"),
        (cell(5, 5, 1), "TOOL-2 hallucination 20%"),
        (cell(8, 8, 1), "TOOL-2 hallucination 13%"),  # 12.5 %
        (cell(1000, 1000, 4), "TOOL-2 hallucination 0.4%"),
        (cell(5000, 5000, 1), "TOOL-2 hallucination 0.02%"),
        (cell(0, 4, 1), "TOOL-2 hallucination 25%, completion 0% < 50%"),  # both are said
        (cell(5, 5, asked=6), "TOOL-2 incomplete: 5 of 6 trials judged"),
        (cell(0, 0, asked=3), "TOOL-2 incomplete: 0 of 3 trials judged"),
        (cell(1, 2, 1, asked=3), "TOOL-2 incomplete: 2 of 3 trials judged"),
    ],
)
def test_the_gate_says_why_it_is_shut(of: Cell, why: str | None) -> None:
    assert of.failure() == why


@given(st.integers(1, 4000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_percentage_never_reads_as_what_the_gate_denies(counts: tuple[int, int]) -> None:
    """Shut below one half, open from it; and the number that is shown lies below the floor too."""
    completed, judged = counts
    why = cell(completed, judged).failure()
    assert (why is None) == (2 * completed >= judged)
    if why is not None:
        shown = float(why.removeprefix("TOOL-2 completion ").removesuffix("% < 50%"))
        assert shown < 50
        assert (shown == 0) == (completed == 0)
        assert abs(shown - 100 * completed / judged) <= 0.5


def test_rungs_above_the_shut_gate_leave_a_receipt_and_are_not_looked_at() -> None:
    cells = {"TOOL-0": cell(8, 8, group="TOOL-0"), "TOOL-2": cell(2, 5), "TOOL-5": cell(5, 5, group="TOOL-5")}
    found = climb(cells, ["TOOL-0", "TOOL-2", "TOOL-5", "TOOL-6"])
    assert found.reached == "TOOL-0"
    assert found.gated_at == "TOOL-2 completion 40% < 50%"
    assert found.receipts == (
        "rung TOOL-5 skipped: gated by TOOL-2 completion 40% < 50%",
        "rung TOOL-6 skipped: gated by TOOL-2 completion 40% < 50%",
    )


def test_a_rung_without_cases_does_not_break_the_chain() -> None:
    cells = {"TOOL-0": cell(1, 1, group="TOOL-0"), "TOOL-4": cell(1, 1, group="TOOL-4")}
    found = climb(cells, RUNGS)
    assert (found.reached, found.gated_at, found.receipts) == ("TOOL-4", None, ())


def test_the_first_rung_can_shut_the_gate_and_nothing_is_reached() -> None:
    found = climb({"TOOL-0": cell(3, 4, 1, group="TOOL-0")}, ["TOOL-0", "TOOL-3"])
    assert found.reached is None
    assert found.receipts == ("rung TOOL-3 skipped: gated by TOOL-0 hallucination 25%",)
    assert climb({}, RUNGS).reached is None


def fails_at(rung: int) -> Any:
    """A driver that knows all answers but those of one rung, where it refuses."""
    requests = {one["request"] for one in some(rung)}

    def driver(task: Any, tools: Any, ctx: Any) -> Any:
        return {"refused": True} if task.request in requests else knows(task, tools, ctx)

    return driver


@pytest.mark.parametrize(
    ("group", "reached"),
    [
        ("", "TOOL-9"),
        ("TOOL-0", "TOOL-0"),
        ("TOOL-0,TOOL-1,TOOL-2", "TOOL-2"),
        ("TOOL-2", None),
        ("TOOL-0,TOOL-2", "TOOL-0"),
        ("TOOL-9", None),
    ],
)
@pytest.mark.parametrize("ladder", [False, True])
def test_a_rung_is_reached_over_every_rung_of_the_suite_below_it(
    tmp_path: Path, group: str, reached: str | None, ladder: bool
) -> None:
    """What was not asked was not passed; and nothing failed, so nothing is gated and nothing has a receipt."""
    run = evaluate(write_suite(tmp_path), knows, group=group, ladder=ladder, save_run=False)
    (found,) = run.card.envelope
    assert (found.reached, found.gated_at, found.receipts) == (reached, None, ())
    assert found.asked == {rung: len(some(int(rung[-1]))) for rung in (group.split(",") if group else RUNGS)}


def test_a_suite_without_some_rungs_is_climbed_over_those_it_has(tmp_path: Path) -> None:
    run = evaluate(write_suite(tmp_path, some(0, 2, 5)), knows, save_run=False)
    assert run.card.envelope[0].reached == "TOOL-5"
    assert run.card.suites[0].of == run.card.suites[0].cases == 4
    part = evaluate(write_suite(tmp_path, some(0, 2, 5)), knows, only="t0-cart", save_run=False)
    assert (part.card.suites[0].cases, part.card.suites[0].of) == (1, 4)


def test_receipts_are_for_what_was_not_asked(tmp_path: Path) -> None:
    """The ladder stops above the rung that failed; without it all is asked, and nothing above the failure counts."""
    suite, gated = write_suite(tmp_path), "TOOL-3 completion 0% < 50%"
    stopped = evaluate(suite, fails_at(3), ladder=True, save_run=False).card
    (found,) = stopped.envelope
    assert (found.reached, found.gated_at) == ("TOOL-2", gated)
    assert list(found.asked) == ["TOOL-0", "TOOL-1", "TOOL-2", "TOOL-3"]
    assert found.receipts == tuple(f"rung TOOL-{n} skipped: gated by {gated}" for n in range(4, 10))
    assert (stopped.counts.asked, stopped.counts.missing) == (6, 0)
    (found,) = evaluate(suite, fails_at(3), save_run=False).card.envelope
    assert (found.reached, found.gated_at, found.receipts) == ("TOOL-2", gated, ())
    assert list(found.asked) == list(RUNGS)


def test_groups_reach_nothing(tmp_path: Path) -> None:
    """A suite of groups that are no rungs has a gate and no climb."""
    cases = some(0, 1)
    for one in cases:
        one["group"] = {"TOOL-0": "reading", "TOOL-1": "choosing"}[one.pop("rung")]
    (found,) = evaluate(write_suite(tmp_path, cases), knows, save_run=False).card.envelope
    assert (found.reached, found.gated_at, found.receipts) == (None, None, ())
    assert found.asked == {"choosing": 2, "reading": 2}


def test_rungs_ascend_and_other_groups_follow_by_name() -> None:
    assert in_order(["b", "TOOL-9", "TOOL-10", "TOOL-0", "a", "b"]) == [
        "TOOL-0",
        "TOOL-9",
        "TOOL-10",
        "a",
        "b",
    ]
    assert tuple(RUNG_NAMES) == RUNGS
