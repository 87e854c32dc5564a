"""Metrics against frames that can be worked out by hand, and against the card of a real run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from agentbench_lab import charts, tables
from agentbench_lab.analysis import metrics
from agentbench_lab.errors import LabError
from agentbench_lab.ladder import RUNG_NAMES
from agentbench_lab.outcomes import LADDER
from agentbench_lab.results.run import Envelope, Run, load_run
from agentbench_lab.results.schema import table
from agentbench_lab.running.runner import Caps, Interrupted, evaluate
from agentbench_lab.stats import wilson, wilson_over_cases
from agentbench_lab.transcripts import Transcript, Usage

from ..doing import CASES, knows, some, write_suite

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("suite", "case_id", "group", "driver", "model", "scaffold"), pl.String),
    "trial": pl.Int32,
    **dict.fromkeys(("evidence", "expect", "outcome", "outcome_class"), pl.String),
    **dict.fromkeys(("solved", "completed", "result_completed", "hallucinated"), pl.Boolean),
    "excluded": pl.String,
    "reasons": pl.List(pl.String),
}
CLASSES = {outcome.name: outcome.cls for outcome in LADDER.outcomes}


def trial(
    case: str, rung: int, outcome: str | None, *, arm: str = "a", n: int = 1, **more: Any
) -> dict[str, Any]:
    """One row: a success is completed, a hallucinated call is hallucinated, None is excluded."""
    won = outcome in ("correct_calls", "correct_refusal", "correct_goal")
    judged = outcome is not None
    return {
        "suite": "s",
        "case_id": case,
        "group": f"TOOL-{rung}",
        "driver": arm,
        "model": None,
        "scaffold": "once",
        "trial": n,
        "evidence": "simulated",
        "expect": "calls",
        "outcome": outcome,
        "outcome_class": CLASSES[outcome] if outcome else None,
        "solved": won if judged else None,
        "completed": (won or outcome == "unproven") if judged else None,
        "result_completed": won if judged else None,
        "hallucinated": outcome == "hallucinated_call" if judged else None,
        "excluded": None if judged else "the grader failed",
        "reasons": [] if won else ["why"],
        **more,
    }


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA)


def get(found: pl.DataFrame, **where: Any) -> dict[str, Any]:
    rows = found.filter(*(pl.col(name) == value for name, value in where.items())).to_dicts()
    assert len(rows) == 1, rows
    return rows[0]


class Card:
    """The part of a run's card that metrics read."""

    def __init__(self, *envelope: Envelope) -> None:
        self.envelope = envelope


def spending(task: Any, tools: Any, ctx: Any) -> Transcript:
    """Knows the answers, and says that each cost ten tokens."""
    return replace(knows(task, tools, ctx), usage=Usage(output=10))


spending.evidence = "simulated"  # type: ignore[attr-defined]

HAND = frame(
    trial("c1", 0, "correct_calls"),
    trial("c2", 0, "unproven"),
    trial("c3", 0, "wrong_calls"),
    trial("c4", 0, None),
    trial("c5", 2, "hallucinated_call"),
    trial("c6", 2, "correct_refusal", expect="refuse"),
)


def test_the_marks_by_hand() -> None:
    """Rung 0: 1 passed and 2 completed of 3 judged, 4 ended. Over all: 2, 3, 1 hallucinated of 5."""
    found = metrics.ladder(HAND)
    passed = get(found, group="TOOL-0", metric="passed")
    assert (passed["n"], passed["of"], passed["asked"], passed["cases"]) == (1, 3, 4, 3)
    assert passed["estimate"] == 1 / 3
    assert (passed["low"], passed["high"]) == wilson(1, 3)
    assert (passed["estimator"], passed["reason"], passed["evidence"]) == ("wilson", None, "simulated")
    assert get(found, group="TOOL-0", metric="completed")["n"] == 2
    assert get(found, group="TOOL-2", metric="hallucinated")["estimate"] == 0.5
    everything = {metric: get(found, group="all", metric=metric)["n"] for metric in metrics.MARKS}
    assert everything == {"passed": 2, "completed": 3, "result_completed": 2, "hallucinated": 1}
    assert {get(found, group="all", metric=m)["of"] for m in metrics.MARKS} == {5}
    assert found["group"].unique(maintain_order=True).to_list() == ["TOOL-0", "TOOL-2", "all"]


def test_excluded_trials_are_in_no_denominator() -> None:
    """With and without them every estimate and interval is the same; they are only seen in `asked`, and the gate is
    shut by them: a rung that was not judged whole is not reached."""
    with_them, without = metrics.ladder(HAND), metrics.ladder(HAND.filter(pl.col("excluded").is_null()))
    assert with_them.drop("asked", "reached").equals(without.drop("asked", "reached"))
    assert (set(with_them["reached"]), set(without["reached"])) == ({None}, {"TOOL-0"})
    assert metrics.outcomes(HAND).equals(metrics.outcomes(HAND.filter(pl.col("excluded").is_null())))
    assert sum(metrics.outcomes(HAND)["n"]) == 5


def test_without_a_judged_trial_there_is_no_number() -> None:
    """Null with a reason, never 0 and never 1."""
    row = get(metrics.ladder(frame(trial("c1", 3, None))), group="TOOL-3", metric="completed")
    assert (row["estimate"], row["low"], row["high"]) == (None, None, None)
    assert (row["n"], row["of"], row["asked"], row["reason"]) == (0, 0, 1, "no trial was judged")


def test_no_rows_at_all_make_empty_frames_of_the_same_columns() -> None:
    empty = frame()
    cases = pl.DataFrame(schema={"suite": pl.String, "case_id": pl.String, "request": pl.String})
    for made, full in (
        (metrics.ladder(empty), metrics.ladder(HAND)),
        (metrics.gate(empty, Card()), metrics.gate(HAND, Card())),
        (metrics.outcomes(empty), metrics.outcomes(HAND)),
        (metrics.exits(empty), metrics.exits(HAND.with_columns(pl.lit("done").alias("stop")))),
        (metrics.strip(empty, cases), metrics.strip(HAND, cases)),
    ):
        assert made.schema == full.schema
        assert made.height == 0
    assert metrics.ladder(table("trials", [])).height == 0


def test_several_trials_are_taken_by_case() -> None:
    """Three cases of four trials: the rate is 7 of 12, the interval Wilson's over the three cases."""
    wins = {"c1": 4, "c2": 2, "c3": 1}
    rows = [
        trial(case, 1, "correct_calls" if n <= k else "no_answer", n=n)
        for case, k in wins.items()
        for n in range(1, 5)
    ]
    row = get(metrics.ladder(frame(*rows)), group="TOOL-1", metric="passed")
    assert (row["n"], row["of"], row["cases"], row["estimator"]) == (7, 12, 3, "wilson over cases")
    assert (row["low"], row["high"]) == wilson_over_cases([4, 2, 1], [4, 4, 4])


@pytest.mark.parametrize(("outcome", "successes"), [("correct_calls", 5), ("no_answer", 0)])
def test_cases_that_are_all_alike_still_leave_doubt(outcome: str, successes: int) -> None:
    """Resampling 0 % or 100 % gives no width; each case is then one observation, however often it was tried."""
    rows = [trial(f"c{c}", 1, outcome, n=n) for c in range(5) for n in range(1, 9)]
    row = get(metrics.ladder(frame(*rows)), group="TOOL-1", metric="passed")
    assert (row["of"], row["cases"], row["estimator"]) == (40, 5, "wilson over cases")
    assert (row["low"], row["high"]) == wilson(successes, 5)


def test_one_case_is_one_observation() -> None:
    """Eight trials of one case, half of them solved, say next to nothing of other cases."""
    rows = [trial("c1", 1, "correct_calls" if n % 2 else "no_answer", n=n) for n in range(1, 9)]
    row = get(metrics.ladder(frame(*rows)), group="TOOL-1", metric="passed")
    assert (row["estimate"], row["low"], row["high"]) == pytest.approx((0.5, *(wilson(0.5, 1) or ())))
    assert row["high"] - row["low"] > 0.7


def test_the_gate_by_hand() -> None:
    """Rung 0 passes at exactly half, rung 1 fails by 2 of 5, rung 2 by one hallucination, rung 3 by an exclusion."""
    rows = [trial("a1", 0, "correct_calls"), trial("a2", 0, "no_answer")]
    rows += [trial(f"b{n}", 1, "correct_calls" if n < 2 else "over_refusal") for n in range(5)]
    rows += [trial(f"c{n}", 2, "correct_calls" if n else "hallucinated_call") for n in range(4)]
    rows += [trial("d1", 3, "correct_calls"), trial("d2", 3, None)]
    found = metrics.gate(frame(*rows), Card())
    assert found["failure"].to_list() == [
        None,
        "TOOL-1 completion 40% < 50%",
        "TOOL-2 hallucination 25%",
        "TOOL-3 incomplete: 1 of 2 trials judged",
    ]
    assert found["passes"].to_list() == [True, False, False, False]
    assert found.select("asked", "judged", "completed", "hallucinated").rows() == [
        (2, 2, 1, 0),
        (5, 5, 2, 0),
        (4, 4, 3, 1),
        (2, 1, 1, 0),
    ]
    assert set(metrics.ladder(frame(*rows))["reached"]) == {"TOOL-0"}
    assert set(found["reached"]) == {None}, "the card has no such arm"


def test_the_gate_shows_receipts_of_what_was_not_asked() -> None:
    """Each under its own arm and group, also where a name has blanks; a skipped group neither passes nor fails."""
    gated = "TOOL-0 completion 0% < 50%"
    receipts = (f"rung TOOL-1 skipped: gated by {gated}", f"rung my own group skipped: gated by {gated}")
    card = Card(
        Envelope("a", None, "once", None, gated, receipts), Envelope("b", None, "once", "TOOL-0", None, ())
    )
    rows = (trial("c1", 0, "no_answer"), trial("c1", 0, "correct_calls", arm="b"))
    found = metrics.gate(frame(*rows), card)
    assert found.select("driver", "group", "passes", "receipt").rows() == [
        ("a", "TOOL-0", False, None),
        ("a", "TOOL-1", None, receipts[0]),
        ("a", "my own group", None, receipts[1]),
        ("b", "TOOL-0", True, None),
    ]


def test_the_card_knows_what_rows_cannot() -> None:
    """A group whose last trials are missing looks complete in its rows; gate and marks go by the card."""
    gated = "TOOL-0 incomplete: 1 of 2 trials judged"
    card = Card(Envelope("a", None, "once", None, gated, (), {"TOOL-0": 2, "TOOL-1": 3}))
    rows = frame(trial("c1", 0, "correct_calls"))
    gates = metrics.gate(rows, card)
    assert gates.select("group", "asked", "judged", "passes", "failure", "reached").rows() == [
        ("TOOL-0", 2, 1, False, gated, None),
        ("TOOL-1", 3, 0, False, "TOOL-1 incomplete: 0 of 3 trials judged", None),
    ]
    found = metrics.ladder(rows, card)
    assert found["group"].unique(maintain_order=True).to_list() == ["TOOL-0", "TOOL-1", "all"]
    done = {row["group"]: row for row in found.filter(pl.col("metric") == "completed").to_dicts()}
    assert [(row["n"], row["of"], row["asked"]) for row in done.values()] == [(1, 1, 2), (0, 0, 3), (1, 1, 5)]
    none = done["TOOL-1"]
    assert (none["estimate"], none["low"], none["high"], none["cases"]) == (None, None, None, 0)
    assert none["reason"] == "no trial was judged"
    assert set(found["reached"]) == {None}
    alone = metrics.ladder(rows)
    assert (set(alone["reached"]), set(alone["group"])) == ({"TOOL-0"}, {"TOOL-0", "all"})


def test_only_the_card_knows_the_rungs_below() -> None:
    """TOOL-2 passes; but the suite has rungs below that nobody asked, so it is not reached."""
    rows = frame(trial("c1", 2, "correct_calls"))
    card = Card(Envelope("a", None, "once", None, None, (), {"TOOL-2": 1}))
    for found in (metrics.ladder(rows, card), metrics.gate(rows, card)):
        assert set(found["reached"]) == {None}
    assert set(metrics.gate(rows, card)["passes"]) == {True}
    assert set(metrics.ladder(rows)["reached"]) == {"TOOL-2"}


def test_an_arm_without_a_row_is_still_an_arm() -> None:
    """A run that ended before its second arm began: its trials are missing, not forgotten."""
    card = Card(
        Envelope("a", None, "once", "TOOL-0", None, (), {"TOOL-0": 1}),
        Envelope("b", None, "once", None, "TOOL-0 incomplete: 0 of 1 trials judged", (), {"TOOL-0": 1}),
    )
    rows = frame(trial("c1", 0, "correct_calls"))
    assert metrics.gate(rows, card).select("driver", "asked", "judged", "passes").rows() == [
        ("a", 1, 1, True),
        ("b", 1, 0, False),
    ]
    found = metrics.ladder(rows, card).filter(pl.col("metric") == "passed", pl.col("group") == "all")
    assert found.select("driver", "n", "of", "asked", "reached").rows() == [
        ("a", 1, 1, 1, "TOOL-0"),
        ("b", 0, 0, 1, None),
    ]


def test_outcomes_by_hand() -> None:
    """Successes over the cases that expected them, the rest over all judged; every outcome has its row."""
    found = metrics.outcomes(HAND)
    assert found["outcome"].to_list() == [outcome.name for outcome in LADDER.outcomes]
    counts = {row["outcome"]: (row["n"], row["of"], row["over"]) for row in found.to_dicts()}
    assert counts["correct_calls"] == (1, 4, "calls")
    assert counts["correct_refusal"] == (1, 1, "refuse")
    assert counts["correct_goal"] == (0, 0, "goal")
    assert counts["hallucinated_call"] == (1, 5, "judged")
    assert counts["timeout"] == (0, 5, "judged")
    assert get(found, outcome="unproven")["outcome_class"] == "safe_non_success"
    with pytest.raises(LabError, match="no outcome 'solvd'"):
        metrics.outcomes(frame({**trial("c1", 0, "no_answer"), "outcome": "solvd"}))


def test_arms_are_never_mixed() -> None:
    """Drivers, models and scaffolds apart, in the order in which they first come, null model included."""
    rows = [
        trial("c1", 0, "correct_calls", arm="z"),
        trial("c1", 0, "no_answer", arm="z", model="m"),
        trial("c1", 0, "hallucinated_call", arm="z", model="m", scaffold="linear"),
        trial("c1", 0, "correct_calls", arm="a"),
    ]
    found = metrics.ladder(frame(*rows)).filter(pl.col("metric") == "passed", pl.col("group") == "all")
    assert found.select("driver", "model", "scaffold", "n", "of").rows() == [
        ("z", None, "once", 1, 1),
        ("z", "m", "once", 0, 1),
        ("z", "m", "linear", 0, 1),
        ("a", None, "once", 1, 1),
    ]
    assert found["reached"].to_list() == ["TOOL-0", None, None, "TOOL-0"]
    counts = metrics.outcomes(frame(*rows)).group_by("driver", "model", "scaffold").agg(pl.col("n").sum())
    assert counts["n"].to_list() == [1, 1, 1, 1]


def test_rungs_come_upward_and_other_groups_by_name() -> None:
    rows = [trial(f"c{n}", n, "correct_calls") for n in (9, 0, 5)]
    rows += [{**trial(name, 0, "correct_calls"), "group": name} for name in ("b", "a", "TOOL-10")]
    assert metrics.gate(frame(*rows), Card())["group"].to_list() == [
        "TOOL-0",
        "TOOL-5",
        "TOOL-9",
        "TOOL-10",
        "a",
        "b",
    ]


def test_evidence_of_several_kinds_is_named() -> None:
    rows = (trial("c1", 0, "no_answer"), trial("c2", 0, "no_answer", evidence="live"))
    assert set(metrics.ladder(frame(*rows))["evidence"]) == {"live, simulated"}


def test_the_strip_by_hand() -> None:
    """A row a trial, in the order of the rows, with the request of its own case."""
    cases = pl.DataFrame(
        {
            "suite": ["s", "other", "s"],
            "case_id": ["c2", "c1", "c1"],
            "request": ["two", "none of ours", "one"],
        }
    )
    rows = (
        trial("c2", 0, "no_answer", reasons=["first", "second"]),
        trial("c1", 0, "correct_calls", n=2),
        trial("c1", 0, None),
        trial("c9", 0, "no_answer"),
    )
    found = metrics.strip(frame(*rows), cases)
    assert found.select("case_id", "trial", "request", "reasons").rows() == [
        ("c2", 1, "two", "first; second"),
        ("c1", 2, "one", ""),
        ("c1", 1, "one", "why"),
        ("c9", 1, None, "why"),
    ]
    assert found["excluded"].to_list() == [None, None, "the grader failed", None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    suite = write_suite(tmp_path_factory.mktemp("metrics"))
    return evaluate(suite, [knows, "stub", "refuse_all", "reckless"], trials=2, save_run=False)


def test_metrics_and_card_agree(run: Run) -> None:
    """On a real run, arm by arm: what rows say of the climb is what the card says."""
    gates = metrics.gate(run.trials, run.card)
    for found in (gates, metrics.ladder(run.trials, run.card), metrics.ladder(run.trials)):
        assert found.select("driver", "model", "scaffold", "reached").unique(maintain_order=True).rows() == [
            (envelope.driver, envelope.model, envelope.scaffold, envelope.reached)
            for envelope in run.card.envelope
        ]
    assert metrics.ladder(run.trials, run.card).equals(metrics.ladder(run.trials)), "nothing is missing"
    for envelope in run.card.envelope:
        assert envelope.asked == {rung: 2 * len(some(int(rung[-1]))) for rung in RUNG_NAMES}
    for envelope in run.card.envelope:
        mine = gates.filter(pl.col("driver") == envelope.driver)
        assert mine["group"].to_list() == list(RUNG_NAMES)
        assert dict(mine.select("group", "asked").iter_rows()) == envelope.asked
        assert mine["failure"].drop_nulls().to_list()[:1] == (
            [envelope.gated_at] if envelope.gated_at else []
        )
        assert tuple(mine["receipt"].drop_nulls()) == envelope.receipts


def test_metrics_and_product_agree(run: Run) -> None:
    """Counted again, from the rows of the product."""
    found = metrics.ladder(run.trials)
    for envelope in run.card.envelope:
        verdicts = [row.verdict for row in run.product if row.arm.driver == envelope.driver]
        for metric, mark in metrics.MARKS.items():
            row = get(found, driver=envelope.driver, group="all", metric=metric)
            assert (row["n"], row["of"]) == (sum(getattr(v, mark) for v in verdicts), len(CASES) * 2)
    counts = metrics.outcomes(run.trials)
    assert counts["n"].sum() == run.trials.num_rows


def stopped(after: int) -> Any:
    """A progress callback that is Ctrl-C after so many trials."""

    def stop(finished: int, asked: int) -> None:
        if finished == after:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("how", ["interrupted", "capped"])
def test_a_run_that_ended_early_says_so_everywhere(tmp_path: Path, how: str) -> None:
    """Five of eighteen trials were judged: table, chart, gate and card count alike, and no rung is reached."""
    cases = [{**case, "id": f"{case['id']}-{n}"} for case in some(0)[:1] for n in range(18)]
    suite = write_suite(tmp_path, cases)
    if how == "capped":
        told: list[int] = []
        run = evaluate(
            suite,
            spending,
            out=tmp_path / "run",
            caps=Caps(tokens=50),
            progress=lambda finished, asked: told.append(asked),
        )
        assert set(told) == {18}
    else:
        with pytest.raises(Interrupted) as caught:
            evaluate(suite, knows, out=tmp_path / "run", progress=stopped(5))
        run = caught.value.run
    assert load_run(tmp_path / "run").card == run.card
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (18, 5, 0, 13)
    assert not run.card.complete
    (envelope,) = run.card.envelope
    gated = "TOOL-0 incomplete: 5 of 18 trials judged"
    assert (envelope.reached, envelope.gated_at, envelope.receipts) == (None, gated, ())
    assert envelope.asked == {"TOOL-0": 18}
    gates = metrics.gate(run.trials, run.card)
    assert gates.select("asked", "judged", "completed", "passes", "failure", "reached").rows() == [
        (18, 5, 5, False, gated, None)
    ]
    assert tables.gate(gates).rows == [
        ["TOOL-0", "5/18", "5/5", "0/5", "shut", "incomplete: 5 of 18 trials judged"]
    ]
    assert tables.gate(gates).notes == [f"{run.card.arms[0].driver}: rung reached none"]
    pair = metrics.ladder(run.trials, run.card)
    assert set(pair["reached"]) == {None}
    table = tables.ladder(pair)
    assert [(row[0], row[1], row[-1]) for row in table.rows] == [
        ("TOOL-0", "5/18", "shut"),
        ("all", "5/18", ""),
    ]
    title = charts.ladder(pair).to_dict()["title"]["text"]
    assert " ".join(title) == (
        f"{run.card.arms[0].driver} reaches no rung; gated at TOOL-0: 5 of 18 trials judged"
    )


def test_an_interrupted_climb_counts_the_rungs_it_began(tmp_path: Path) -> None:
    """On the ladder: the first rung is whole, the second was begun, the rest was never asked and has receipts."""
    with pytest.raises(Interrupted) as caught:
        evaluate(write_suite(tmp_path), knows, ladder=True, save_run=False, progress=stopped(3))
    run = caught.value.run
    gated = "TOOL-1 incomplete: 1 of 2 trials judged"
    (envelope,) = run.card.envelope
    assert (envelope.reached, envelope.gated_at) == ("TOOL-0", gated)
    assert envelope.asked == {"TOOL-0": 2, "TOOL-1": 2}
    assert envelope.receipts == tuple(f"rung TOOL-{n} skipped: gated by {gated}" for n in range(2, 10))
    gates = metrics.gate(run.trials, run.card)
    assert gates["passes"].to_list() == [True, False, *[None] * 8]
    assert gates["asked"].to_list() == [2, 2, *[0] * 8]
    found = metrics.ladder(run.trials, run.card)
    assert set(found["reached"]) == {"TOOL-0"}
    assert get(found, group="all", metric="passed")["asked"] == 4
    assert (run.card.counts.asked, run.card.counts.missing) == (4, 1)
    assert tables.gate(gates).rows[2] == [
        "TOOL-2 to TOOL-9",
        "not asked",
        "",
        "",
        "",
        f"gated by {gated}",
    ]


def test_frames_and_arrow_tables_are_the_same(run: Run, tmp_path: Path) -> None:
    assert metrics.ladder(run.trials).equals(metrics.ladder(pl.DataFrame(run.trials)))
    assert metrics.strip(run.trials, run.cases).equals(
        metrics.strip(pl.DataFrame(run.trials), pl.DataFrame(run.cases))
    )
