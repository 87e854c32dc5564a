"""What trials used, worked out by hand; laws of sums and ratios; and what a run's attempts cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab import charts, tables
from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.metrics.ratios import ALIKE, ONE_CASE, RESAMPLES
from agentbench_lab.analysis.prices import Prices, Rates
from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import Caps, evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.stats import ratio_over_cases
from agentbench_lab.transcripts import Transcript, Usage, disjoint_input
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import call, case, write_suite
from .rows import TOKENS, get, trial, trials

MONEY = ("spent", "per_trial", "per_solved", "failures")
DAY = date(2026, 1, 1)


def row(found: pl.DataFrame, metric: str, arm: str = "a") -> dict[str, Any]:
    return get(found, driver=arm, metric=metric)


def numbers(found: pl.DataFrame, metric: str, arm: str = "a") -> tuple[Any, ...]:
    each = row(found, metric, arm)
    return each["total"], each["estimate"], each["n"], each["of"], each["solved"], each["lower_bound"]


# ---- lower bounds ----------------------------------------------------------------------------------------------


def killed(*rows: dict[str, Any]) -> pl.DataFrame:
    """Trials of which those marked `killed` were killed once and went on."""
    marks = [bool(each.pop("killed", False)) for each in rows]
    return trials(*rows).with_columns(
        pl.Series("usage_lost", marks), pl.Series("attempts", [1 + mark for mark in marks], pl.Int32)
    )


def test_what_was_lost_with_a_killed_attempt_makes_a_lower_bound() -> None:
    """8 dollars at least, 4 for each solved; the mean and the share on failures are those of the two whole trials."""
    found = metrics.cost(
        killed(
            trial("c1", True, 1_000_000, tokens_output=10, tool_calls=1),
            trial("c2", False, 3_000_000, tokens_output=30, tool_calls=1),
            {**trial("c3", True, 4_000_000, tokens_output=50, tool_calls=7), "killed": True},
        )
    )
    assert numbers(found, "spent") == (8.0, 8.0, 2, 3, 2, True)
    assert numbers(found, "per_trial") == (8.0, 2.0, 2, 3, 2, True)
    assert numbers(found, "per_solved") == (8.0, 4.0, 2, 3, 2, True)
    assert row(found, "failures")["estimate"] == 0.75
    assert numbers(found, "tokens_output") == (90.0, 20.0, 2, 3, 2, True)
    assert numbers(found, "tool_calls") == (9.0, 3.0, 3, 3, 2, False)
    assert row(found, "spent")["floors"] == 1
    assert (
        row(found, "spent")["reason"] == "the cost of 1 of 3 trials is a lower bound: an attempt was killed"
    )
    assert row(found, "per_solved")["low"] is None
    table = tables.cost(found)
    assert table.rows[0][:4] == ["a", "≥ $8.00 2/3", "$2.00 [1.00, 3.00] 2/3", "≥ $4.00 2/3"]
    assert table.rows[0][5:] == ["2", "2/3"]
    assert (
        charts.cost(found).to_dict()["title"]["text"][0].startswith("What a solved trial costs is not known")
    )
    place = metrics.frontier(
        killed({**trial("c1", True, 4), "killed": True}, trial("c2", True, 4))
    ).to_dicts()[0]
    assert (place["lower_bound"], place["on_frontier"], place["n"]) == (True, None, 1)


def test_one_killed_trial_has_a_floor_and_no_mean() -> None:
    found = metrics.cost(killed({**trial("c1", True, 4_000_000), "killed": True}))
    assert numbers(found, "spent") == (4.0, 4.0, 0, 1, 1, True)
    assert numbers(found, "per_solved")[1] == 4.0
    assert row(found, "per_trial")["estimate"] is None
    assert "≥ $4.00" in str(tables.cost(found))


def test_an_estimate_is_no_lower_bound() -> None:
    """Of some drivers the kinds of tokens are an estimate, and nothing of them is lost."""
    one = trials(trial("c1", True, 4)).with_columns(tokens_estimated=True, attempts=1)
    again = one.with_columns(attempts=2, usage_lost=False)
    for table in (one, again):
        assert not metrics.cost(table)["lower_bound"].any()
        assert not metrics.summary(table)["lower_bound"].any()


def test_an_older_run_calls_nothing_exact_that_may_be_a_part() -> None:
    """Before the mark was kept, a killed trial had estimated figures and several attempts; so has one tried again."""
    older = trials(trial("c1", True, 4), trial("c2", True, 4)).with_columns(
        tokens_estimated=pl.Series([True, True]), attempts=pl.Series([2, 1], dtype=pl.Int32)
    )
    for table in (older, older.with_columns(usage_lost=pl.lit(None, pl.Boolean))):
        assert row(metrics.cost(table), "spent")["floors"] == 1
        assert metrics.summary(table)["lower_bound"].to_list() == [True]


def test_a_trial_tried_again_whose_driver_estimates_was_not_killed(tmp_path: Path) -> None:
    """One refusal for its rate, all of its usage known: every number is whole, and every table says the same."""
    tries: list[int] = []

    def driver(task: Any, tools: Any, ctx: Any) -> Transcript:
        tries.append(1)
        if len(tries) == 1:
            raise InfrastructureError("429", retry_after=0.0, usage=Usage(0, 0, 0, 0, 1, 0, 0.0))
        return Transcript(refused=True, usage=Usage(1, 0, 0, 1, 1, 100, estimated=True))

    suite = write_suite(
        tmp_path, [case("t2-scope", "TOOL-2", "Describe the Ledger", "describe", refuse=True)]
    )
    run = evaluate(
        suite, driver, save_run=False, retries=Retries(wait_initial_s=0.01, wait_max_s=0.01, wait_jitter_s=0)
    )
    (made,) = run.trials.to_pylist()
    assert (made["attempts"], made["tokens_estimated"], made["usage_lost"]) == (2, True, False)
    found = metrics.cost(run.trials)
    assert row(found, "spent", made["driver"])["floors"] == 0 and not found["lower_bound"].any()
    assert not metrics.summary(run.trials)["lower_bound"].any()
    assert metrics.ablation(run.trials)["floors"].to_list() == [0, 0]


# ---- by hand ---------------------------------------------------------------------------------------------------

HAND = trials(
    trial("c1", True, 1_000_000, tool_calls=4, model_calls=2, wall_s=2.0, tokens_output=10),
    trial("c1", False, 3_000_000, trial=2, tool_calls=0, model_calls=2, wall_s=4.0, tokens_output=30),
    trial("c2", False, 1_000_000, tool_calls=2, model_calls=8, wall_s=9.0, tokens_output=20),
    trial("c3", True, 3_000_000, tool_calls=2, model_calls=4, wall_s=5.0, tokens_output=40),
)
"""Three cases, one of them tried twice: 8 dollars in all, 4 of them on the two failures."""


def test_money_by_hand() -> None:
    """8 in all, 2 by trial, 4 for each of the two solved (not the mean over cases), half of it on failures."""
    found = metrics.cost(HAND)
    assert numbers(found, "spent") == (8.0, 8.0, 4, 4, 2, False)
    assert numbers(found, "per_trial") == (8.0, 2.0, 4, 4, 2, False)
    assert numbers(found, "per_solved") == (8.0, 4.0, 4, 4, 2, False)
    assert numbers(found, "failures") == (None, 0.5, 4, 4, 2, False)
    assert [row(found, metric)["unit"] for metric in MONEY] == ["usd", "usd", "usd", "share"]
    assert set(found["evidence"]) == {"live"}


def test_calls_tokens_and_seconds_by_hand() -> None:
    """Means by trial, with their sums."""
    found = metrics.cost(HAND)
    assert numbers(found, "tool_calls")[:2] == (8.0, 2.0)
    assert numbers(found, "model_calls")[:2] == (16.0, 4.0)
    assert numbers(found, "tokens_output")[:2] == (100.0, 25.0)
    assert numbers(found, "wall_s")[:2] == (20.0, 5.0)
    assert [row(found, metric)["unit"] for metric in ("tool_calls", "tokens_output", "wall_s")] == [
        "calls",
        "tokens",
        "s",
    ]


def test_intervals_resample_whole_cases_with_all_their_trials() -> None:
    """Each is that of the ratio of the cases' sums: 4, 1 and 3 dollars over 2, 1 and 1 trials."""
    found = metrics.cost(HAND)
    spent = [4e6, 1e6, 3e6]
    for metric, over, under, scale in (
        ("per_trial", spent, [2, 1, 1], 1e6),
        ("failures", [3e6, 1e6, 0], spent, 1),
        ("model_calls", [4, 8, 4], [2, 1, 1], 1),
    ):
        ends = ratio_over_cases(over, under, resamples=RESAMPLES)
        assert ends is not None
        each = row(found, metric)
        assert (each["low"] * scale, each["high"] * scale) == pytest.approx(ends, rel=1e-12)
        assert each["estimator"].endswith("bootstrap over cases")
    assert (row(found, "spent")["low"], row(found, "spent")["high"]) == (None, None)


def test_a_cost_per_solved_has_no_upper_end_where_resamples_solve_nothing() -> None:
    """c2 three times of three, a chance of 1/27, solves nothing: that is more than the upper 2.5 %."""
    each = row(metrics.cost(HAND), "per_solved")
    assert each["low"] is not None and each["low"] <= 4.0
    assert each["high"] is None
    assert each["reason"] == "in more than 2.5 % of the resamples no trial is solved: no upper end"
    solved = pl.concat([HAND.with_columns(pl.col("case_id") + f"-{n}") for n in range(20)])
    wide = row(metrics.cost(solved), "per_solved")
    assert wide["low"] < 4.0 < wide["high"]
    assert wide["reason"] is None


def test_one_case_gives_numbers_without_an_interval() -> None:
    found = metrics.cost(HAND.filter(pl.col("case_id") == "c1"))
    for metric in ("per_trial", "per_solved", "failures", "tool_calls"):
        each = row(found, metric)
        assert each["estimate"] is not None
        assert (each["low"], each["high"], each["reason"]) == (None, None, ONE_CASE)


def test_cases_that_are_all_alike_do_not_make_a_number_certain() -> None:
    """A mean has no interval then; a share has Wilson's, each case as one observation."""
    found = metrics.cost(trials(*(trial(f"c{n}", True, 500) for n in range(10))))
    each = row(found, "per_trial")
    assert (each["estimate"], each["low"], each["high"], each["reason"]) == (0.0005, None, None, ALIKE)
    lost = row(found, "failures")
    assert (lost["estimate"], lost["low"]) == (0.0, 0.0)
    assert 0.2 < lost["high"] < 0.3


def test_the_arms_come_in_their_order_and_by_model_and_scaffold() -> None:
    rows = [trial("c", True, 1, arm="z", model=model, scaffold=scaffold) for model, scaffold in
            (("m", "once"), (None, "once"), ("m", "linear"))]  # fmt: skip
    rows.append(trial("c", True, 1, arm="b", evidence="simulated"))
    found = metrics.cost(trials(*rows)).filter(pl.col("metric") == "spent")
    assert found.select("driver", "model", "scaffold", "evidence").rows() == [
        ("z", "m", "once", "live"),
        ("z", None, "once", "live"),
        ("z", "m", "linear", "live"),
        ("b", None, "once", "simulated"),
    ]


# ---- unknown, free, excluded, cached ---------------------------------------------------------------------------


def test_unknown_costs_make_a_lower_bound_and_never_nothing() -> None:
    """Two of three trials are known: the sums say so, the mean is that of the two."""
    found = metrics.cost(
        trials(trial("c1", True, 2_000_000), trial("c2", True), trial("c3", False, 4_000_000))
    )
    assert numbers(found, "spent") == (6.0, 6.0, 2, 3, 2, True)
    assert numbers(found, "per_trial") == (6.0, 3.0, 2, 3, 2, True)
    assert numbers(found, "per_solved") == (6.0, 3.0, 2, 3, 2, True)
    reason = "the cost is not known of 1 of 3 trials"
    assert row(found, "spent")["reason"] == reason
    solved = row(found, "per_solved")
    assert (solved["low"], solved["high"]) == (None, None)
    assert solved["reason"] == f"{reason}; a lower bound has no interval"


def test_an_arm_of_which_no_cost_is_known_has_none() -> None:
    found = metrics.cost(trials(trial("c1", True), trial("c2", False)))
    for metric in MONEY:
        assert numbers(found, metric) == (None, None, 0, 2, 1, False)
        assert (row(found, metric)["low"], row(found, metric)["high"]) == (None, None)
        assert row(found, metric)["reason"] == "the cost is not known of any trial"
    for metric in TOKENS:
        assert numbers(found, metric) == (None, None, 0, 2, 1, False)
        assert row(found, metric)["reason"] == f"{metric} is not known of any trial"


def test_a_free_model_costs_nothing_and_not_null() -> None:
    found = metrics.cost(trials(trial("c1", True, 0), trial("c2", False, 0)))
    for metric in ("spent", "per_trial", "per_solved"):
        assert numbers(found, metric) == (0.0, 0.0, 2, 2, 1, False)
    assert numbers(found, "failures") == (None, None, 2, 2, 1, False)
    assert row(found, "failures")["reason"] == "nothing was spent"


def test_without_a_solved_trial_there_is_no_cost_per_solved() -> None:
    found = metrics.cost(trials(trial("c1", False, 10), trial("c2", False, 20)))
    assert numbers(found, "per_solved") == (0.00003, None, 2, 2, 0, False)
    assert row(found, "per_solved")["reason"] == "no trial was solved"
    assert row(found, "failures")["estimate"] == 1.0


def test_trials_of_which_nobody_knows_whether_they_were_solved_are_no_failures() -> None:
    found = metrics.cost(trials(trial("c1", True, 1), trial("c2", True, 3) | {"solved": None}))
    assert numbers(found, "per_trial")[1] == 2e-6
    for metric in ("per_solved", "failures"):
        assert row(found, metric)["estimate"] is None
        assert row(found, metric)["reason"] == "whether 1 trial was solved is not known"
    assert row(found, "spent")["reason"] is None


def test_money_for_excluded_trials_is_spent_and_said() -> None:
    """They solve nothing and are nobody's success, whatever their row says."""
    found = metrics.cost(trials(trial("c1", True, 3), trial("c2", None, 5), trial("c3", None, 1)))
    assert numbers(found, "spent")[1:5] == (9e-6, 3, 3, 1)
    assert numbers(found, "per_solved")[1] == pytest.approx(9e-6)
    assert row(found, "failures")["estimate"] == pytest.approx(6 / 9)
    for metric in MONEY:
        assert "what 2 excluded trials cost is counted too" in row(found, metric)["reason"]


def test_times_of_trials_from_a_cache_are_left_out_and_said() -> None:
    """Their money is not."""
    found = metrics.cost(
        trials(
            trial("c1", True, 3, wall_s=4.0),
            trial("c2", True, 3, wall_s=0.01, cached=True),
            trial("c3", True, 3, wall_s=6.0),
        )
    )
    assert numbers(found, "wall_s") == (10.0, 5.0, 2, 3, 3, True)
    assert row(found, "wall_s")["reason"] == "1 trial answered from a cache left out"
    assert numbers(found, "spent")[2:4] == (3, 3)


def test_a_frame_without_a_row_gives_one_without_a_row() -> None:
    for table in (trials(), trials(trial("c", True, 1)).clear()):
        assert metrics.cost(table).height == 0
        assert metrics.cost(table).columns == metrics.cost(HAND).columns


# ---- with prices -----------------------------------------------------------------------------------------------

PRICES = Prices(
    "by hand",
    DAY,
    lambda model: (
        Rates(Decimal(1), Decimal(0), Decimal(0), Decimal(2))
        if model == "m"
        else f"by hand has no price for {model}"
    ),
)
USED = {"tokens_fresh_input": 100, "tokens_cache_read": 7, "tokens_cache_write": 0, "tokens_output": 50}


def test_costs_that_the_source_does_not_give_are_worked_out_and_said() -> None:
    """100 x 1 + 50 x 2 = 200 micros, and 300 that the source gives."""
    found = metrics.cost(
        trials(trial("c1", True, model="m", **USED), trial("c2", False, 300, model="m", **USED)), PRICES
    )
    assert numbers(found, "spent") == (0.0005, 0.0005, 2, 2, 1, False)
    assert row(found, "spent")["estimator"] == "sum over all trials; 1 cost by by hand on 2026-01-01"
    assert row(found, "tokens_output")["estimator"] == "mean, bootstrap over cases"


def test_a_model_without_a_price_costs_null_and_the_reason_names_it() -> None:
    found = metrics.cost(
        trials(trial("c1", True, model="m", **USED), trial("c1", True, model="x", **USED)), PRICES
    )
    known, unknown = found.filter(pl.col("metric") == "spent").to_dicts()
    assert (known["estimate"], known["reason"]) == (0.0002, None)
    assert (unknown["estimate"], unknown["n"], unknown["lower_bound"]) == (None, 0, False)
    assert unknown["reason"] == "the cost is not known of any trial (by hand has no price for x)"


# ---- laws ------------------------------------------------------------------------------------------------------

TRIAL = st.tuples(
    st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from([True, False, None]),
    st.none() | st.integers(0, 10**6),
)
FEW: dict[str, Any] = {"resamples": 100}


def made(rows: Sequence[tuple[str, bool | None, int | None]], arm: str = "a") -> pl.DataFrame:
    return trials(
        *(trial(case, solved, cost, arm=arm, trial=n) for n, (case, solved, cost) in enumerate(rows))
    )


@given(st.lists(TRIAL, min_size=1, max_size=12))
def test_spent_is_the_sum_and_per_solved_is_spent_by_solved(
    rows: list[tuple[str, bool | None, int | None]],
) -> None:
    found = metrics.cost(made(rows), **FEW)
    known = [cost for _, _, cost in rows if cost is not None]
    solved = sum(won is True for _, won, _ in rows)
    spent = sum(known) / 1e6 if known else None
    assert numbers(found, "spent") == (
        spent,
        spent,
        len(known),
        len(rows),
        solved,
        0 < len(known) < len(rows),
    )
    per_solved = sum(known) / solved / 1e6 if known and solved else None
    assert row(found, "per_solved")["estimate"] == (None if per_solved is None else pytest.approx(per_solved))
    lost = sum(cost or 0 for _, won, cost in rows if won is not True)
    share = lost / sum(known) if sum(known) else None
    assert row(found, "failures")["estimate"] == (None if share is None else pytest.approx(share))


@given(st.lists(TRIAL, min_size=1, max_size=12))
def test_the_summary_of_many_trials_tells_the_same(rows: list[tuple[str, bool | None, int | None]]) -> None:
    (short,) = metrics.summary(made(rows)).to_dicts()
    each = row(metrics.cost(made(rows), **FEW), "per_solved")
    expected = None if each["estimate"] is None else pytest.approx(each["estimate"], rel=1e-12)
    assert short["cost_per_solved"] == expected
    assert expected is None or short["lower_bound"] == each["lower_bound"]


@given(st.lists(TRIAL, min_size=1, max_size=12))
def test_an_estimate_lies_in_its_interval_and_a_missing_one_has_a_reason(
    rows: list[tuple[str, bool | None, int | None]],
) -> None:
    for each in metrics.cost(made(rows), **FEW).to_dicts():
        if each["estimate"] is None:
            assert each["reason"]
            assert (each["low"], each["high"]) == (None, None)
        elif each["metric"] != "spent" and None in (each["low"], each["high"]):
            assert each["reason"]
        assert each["low"] is None or each["high"] is None or each["low"] <= each["high"]
        assert (each["n"] > 0) or each["total"] is None


@given(st.lists(TRIAL, min_size=1, max_size=12), st.integers(2, 9))
def test_scaled_costs_scale_every_estimate(rows: list[tuple[str, bool | None, int | None]], by: int) -> None:
    once = metrics.cost(made(rows), **FEW)
    scaled = metrics.cost(
        made([(c, won, None if cost is None else cost * by) for c, won, cost in rows]), **FEW
    )
    for metric in ("spent", "per_trial", "per_solved"):
        for end in ("total", "estimate", "low", "high"):
            was, now = row(once, metric)[end], row(scaled, metric)[end]
            assert now == (None if was is None else pytest.approx(was * by, rel=1e-12))
    assert row(scaled, "failures")["estimate"] == row(once, "failures")["estimate"]


@given(st.lists(TRIAL, min_size=1, max_size=10), st.lists(TRIAL, min_size=1, max_size=10), st.randoms())
def test_an_arm_does_not_depend_on_the_others_nor_on_the_order_of_rows(
    ours: list[tuple[str, bool | None, int | None]],
    theirs: list[tuple[str, bool | None, int | None]],
    random: Any,
) -> None:
    alone = made(ours)
    order = list(range(len(ours)))
    random.shuffle(order)
    both = pl.concat([made(theirs, "b"), alone[order]])
    assert metrics.cost(both, **FEW).filter(pl.col("driver") == "a").equals(metrics.cost(alone, **FEW))


# ---- real runs -------------------------------------------------------------------------------------------------

TWO = [
    case(name, "TOOL-0", f"Describe {name}", "describe", calls=[call("describe", symbol="Cart")])
    for name in ("r1", "r2")
]
AT_ONCE = Retries(times=3, wait_initial_s=0, wait_max_s=0, wait_jitter_s=0)


class Stumbles:
    """Loses its connection on the first try of r1, when 300 is spent; then solves r1 for 500, and fails r2 for 450."""

    def __init__(self) -> None:
        self.tries = 0

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if task.request == "Describe r2":
            return Transcript(usage=Usage(20, 0, 0, 5, 2, 450))
        self.tries += 1
        if self.tries == 1:
            raise InfrastructureError("connection reset", usage=Usage(10, 0, 0, 0, 1, 300))
        done = Call("tmct_describe", {"symbol": "Cart"})
        tools.call(done.name, done.input)
        return Transcript(calls=(done,), usage=Usage(30, 7, 0, 5, 2, 500))


@pytest.fixture(scope="module")
def stumbled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("stumbled")
    evaluate(write_suite(folder, TWO), Stumbles(), retries=AT_ONCE, out=folder / "run")
    return load_run(folder / "run")


def test_a_failed_attempt_is_paid_for_and_is_no_trial(stumbled: Run) -> None:
    """300 + 500 + 450 = 1,250 micros on two trials, one of them solved, with one retry."""
    assert stumbled.trials.column("cost_micros").to_pylist() == [800, 450]
    assert stumbled.trials.column("attempts").to_pylist() == [2, 1]
    assert stumbled.attempts.column("cost_micros").to_pylist() == [300, 500, 450]
    found = metrics.cost(stumbled.trials).drop("driver").with_columns(driver=pl.lit("a"))
    assert numbers(found, "spent") == (0.00125, 0.00125, 2, 2, 1, False)
    assert numbers(found, "per_solved")[1] == 0.00125
    assert numbers(found, "failures")[1] == 450 / 1250
    assert numbers(found, "tokens_fresh_input")[:2] == (60.0, 30.0)
    assert numbers(found, "model_calls")[:2] == (5.0, 2.5)


@pytest.mark.parametrize("name", [*TOKENS, "model_calls", "cost_micros"])
def test_a_trial_has_used_what_its_attempts_have(stumbled: Run, name: str) -> None:
    attempts = pl.DataFrame(stumbled.attempts).group_by("case_id").agg(pl.col(name).sum()).sort("case_id")
    assert attempts[name].to_list() == stumbled.trials.column(name).to_pylist()


def test_a_run_stopped_at_a_cap_of_money_still_tells_what_it_has_spent(tmp_path: Path) -> None:
    """The second trial reaches 900 micros; the other two are missing, and nobody's."""

    def dear(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(usage=Usage(cost_micros=450))

    out = tmp_path / "run"
    evaluate(write_suite(tmp_path, TWO), dear, trials=2, caps=Caps(cost_micros=900), out=out)
    run = load_run(out)
    assert (run.card.counts.asked, run.card.counts.missing) == (4, 2)
    (spent,) = metrics.cost(run.trials).filter(pl.col("metric") == "spent").to_dicts()
    assert (spent["estimate"], spent["n"], spent["of"]) == (0.0009, 2, 2)


def test_what_parts_use_side_by_side_is_the_trials(tmp_path: Path) -> None:
    """A driver that asks several sub-agents adds up what each of them used; the trial has all of it."""

    def asks_three(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        part = Usage(100, 50, 0, 10, 1, 40, 0.5)
        for _ in range(3):
            ctx.spend(part)
        return Transcript()

    run = evaluate(write_suite(tmp_path, TWO[:1]), asks_three, save_run=False)
    found = metrics.cost(run.trials).with_columns(driver=pl.lit("a"))
    assert [numbers(found, name)[0] for name in ("spent", *TOKENS, "model_calls")] == [
        0.00012, 300.0, 150.0, 0.0, 30.0, 3.0,
    ]  # fmt: skip


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_buckets_add_up_to_what_an_inclusive_provider_counted(fresh: int, read: int, write: int) -> None:
    """No cached token is counted twice or lost."""
    one, two, three = disjoint_input(fresh + read + write, read, write, inclusive=True)
    found = metrics.cost(
        trials(trial("c", True, tokens_fresh_input=one, tokens_cache_read=two, tokens_cache_write=three))
    )
    assert sum(numbers(found, name)[0] for name in TOKENS[:3]) == fresh + read + write
