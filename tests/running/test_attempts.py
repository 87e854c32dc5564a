"""Attempts: only an infrastructure error before any output is tried again; a retry is never a sample."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Counts, Run, load_run
from agentbench_lab.running.runner import Caps, Interrupted, evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.scaffolds import fan_out
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import knows, lab, some, write_driver, write_suite

QUICK = Retries(times=3, wait_initial_s=0.01, wait_max_s=0.02, wait_jitter_s=0.01)
CART = {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}


def paid(transcript: Transcript, micros: int) -> Transcript:
    return msgspec.structs.replace(transcript, usage=Usage(cost_micros=micros))


class Flaky:
    """A driver that fails as the plan says, try by try, and then does what is right.

    `plan` is what each try does: "down" (an infrastructure error), or a function that gets (tools, ctx).
    """

    evidence, version = "simulated", "1"

    def __init__(self, *plan: Any, cost: int = 0) -> None:
        self.plan, self.cost = plan, cost
        self.tries: Counter[tuple[str, int]] = Counter()
        self.at: list[float] = []
        self.__module__, self.__qualname__ = "flaky", "flaky"

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Any:
        self.at.append(time.monotonic())
        number = self.tries[task.request, ctx.trial]
        self.tries[task.request, ctx.trial] += 1
        if number < len(self.plan):
            step = self.plan[number]
            if step == "down":
                raise InfrastructureError("connection reset", usage=Usage(cost_micros=self.cost))
            step(tools, ctx)
        return paid(knows(task, tools, ctx), 500)


@pytest.mark.parametrize("native", [False, True])
def test_b08_a_retried_attempt_is_no_second_sample(tmp_path: Path, native: bool) -> None:
    """Two cases once each; the first is refused a connection (300), then solved (500), the second fails (450)."""
    tries: list[str] = []

    def first(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tries.append(task.request)
        if task.request == "Describe Order":
            return paid(Transcript(), 450)
        if tries.count(task.request) == 1:
            raise InfrastructureError("connection reset before any output", usage=Usage(cost_micros=300))
        return paid(knows(task, tools, ctx), 500)

    async def later(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        await asyncio.sleep(0)
        return first(task, tools, ctx)

    driver = later if native else first
    suite = write_suite(tmp_path, some(0))
    run = evaluate(suite, driver, retries=QUICK, out=tmp_path / "run")
    for each in (run, load_run(tmp_path / "run")):
        counts = each.card.counts
        assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (2, 2, 0, 0)
        assert each.trials.num_rows == 2
        assert each.trials.column("solved").to_pylist() == [True, False]
        assert each.trials.column("attempts").to_pylist() == [2, 1]
        assert each.trials.column("cost_micros").to_pylist() == [800, 450]
        attempts = each.attempts.select(["case_id", "trial", "attempt", "end", "cost_micros"]).to_pylist()
        assert [tuple(row.values()) for row in attempts] == [
            ("t0-cart", 1, 1, "infrastructure_error", 300),
            ("t0-cart", 1, 2, "done", 500),
            ("t0-order", 1, 1, "done", 450),
        ]
        assert sum(row["cost_micros"] for row in attempts) == 1250
        # one retry, which recovered its trial
        assert each.attempts.num_rows - each.trials.num_rows == 1
        assert sum(n > 1 for n in each.trials.column("attempts").to_pylist()) == 1
    assert run.trials.column("trial").to_pylist() == [1, 1]
    (one,) = metrics.summary(run.trials).iter_rows(named=True)
    assert (one["n"], one["of"], one["cases"], one["solved"], one["complete"]) == (2, 2, 2, 1, True)
    assert (one["pass_hat_1"], one["cost_per_solved"]) == (0.5, pytest.approx(1250 / 1e6))
    spent = {row["metric"]: row for row in metrics.cost(run.trials).iter_rows(named=True)}
    assert (spent["spent"]["estimate"], spent["per_solved"]["estimate"]) == (
        pytest.approx(1250 / 1e6),
        pytest.approx(1250 / 1e6),
    )
    assert not spent["spent"]["lower_bound"]
    # one repeat of each case, and a retry is none: beside an arm of two repeats there is no pass^2 of this one
    assert metrics.reliability(run.trials)["k"].unique().to_list() == [1]
    twice = evaluate(suite, knows, trials=2, save_run=False)
    both = metrics.summary(pl.concat([pl.DataFrame(each.trials) for each in (run, twice)]))
    arm = run.card.arms[0].driver
    assert both.filter(pl.col("driver") == arm)["pass_hat_2"].to_list() == [None]
    assert both.filter(pl.col("driver") != arm)["pass_hat_2"].null_count() == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    asked = len(tries)
    evaluate(suite, driver, retries=QUICK, out=tmp_path / "run")
    assert len(tries) == asked == 3
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_retry_says_nothing_in_the_terminal(tmp_path: Path) -> None:
    """Its row among the attempts says it."""
    write_driver(
        tmp_path,
        "from agentbench_lab.drivers.faults import InfrastructureError\n"
        "from tests.doing import knows\n"
        "seen = []\n"
        "def down(task, tools, ctx):\n"
        "    seen.append(task)\n"
        "    if len(seen) == 1:\n"
        "        raise InfrastructureError('x', retry_after=0)\n"
        "    return knows(task, tools, ctx)\n",
    )
    suite = write_suite(tmp_path, some(0)[:1])
    done = lab("run", str(suite), "--driver", "mine:down", "--out", "run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_run(tmp_path / "run").attempts.num_rows == 2


def speaks(tools: Toolbox, ctx: Context) -> None:
    """Output of a model, then the connection breaks."""
    raise InfrastructureError("broken off", usage=Usage(output=3, cost_micros=70))


def speaks_by_steps(tools: Toolbox, ctx: Context) -> None:
    ctx.spend(Usage(output=3, cost_micros=70))
    raise InfrastructureError("broken off")


def speaks_and_says_little_of_the_end(tools: Toolbox, ctx: Context) -> None:
    """The sum of both has an unknown output."""
    ctx.spend(Usage(output=3, cost_micros=70))
    raise InfrastructureError("broken off", usage=Usage(cost_micros=0))


def calls_a_tool(tools: Toolbox, ctx: Context) -> None:
    tools.call("tmct_describe", {"symbol": "Cart"})
    raise InfrastructureError("broken off", usage=Usage(cost_micros=70))


@pytest.mark.parametrize("step", [speaks, speaks_by_steps, speaks_and_says_little_of_the_end, calls_a_tool])
def test_an_error_after_output_is_not_tried_again(tmp_path: Path, step: Callable[..., None]) -> None:
    """To draw again what was drawn would change what is measured: the trial is excluded, the environment owns it."""
    driver = Flaky(step)
    run = evaluate(write_suite(tmp_path, some(0)[:1]), driver, retries=QUICK, out=tmp_path / "run")
    assert sum(driver.tries.values()) == 1
    (row,) = load_run(tmp_path / "run").trials.to_pylist()
    assert (row["excluded"], row["excluded_owner"]) == ("infrastructure: broken off", "environment")
    assert (row["outcome"], row["solved"], row["attempts"], row["cost_micros"]) == (None, None, 1, 70)
    assert (run.card.counts.judged, run.card.counts.excluded) == (0, 1)


def test_tries_that_run_out_exclude_the_trial(tmp_path: Path) -> None:
    """All of them are there with what they cost, and the trial is neither judged nor asked again."""
    driver = Flaky(*["down"] * 9, cost=10)
    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, driver, retries=QUICK, out=tmp_path / "run")
    assert sum(driver.tries.values()) == 4
    (row,) = run.trials.to_pylist()
    assert (row["excluded"], row["excluded_owner"]) == ("infrastructure: connection reset", "environment")
    assert (row["attempts"], row["cost_micros"]) == (4, 40)
    assert run.attempts.column("end").to_pylist() == ["infrastructure_error"] * 4
    evaluate(suite, driver, retries=QUICK, out=tmp_path / "run")
    assert sum(driver.tries.values()) == 4


DOWN = InfrastructureError("connection reset", usage=Usage(cost_micros=10))
"""One object, as a driver may keep it."""


def down(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    raise DOWN


async def down_waiting(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    raise DOWN


def parts(agent: Any, task: Task, tools: Toolbox, ctx: Context) -> list[str]:
    return ["a", "b"]


def twice(agent: Any) -> Any:
    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        with contextlib.suppress(InfrastructureError):
            return agent(task, tools, ctx)
        return agent(task, tools, ctx)

    return run


@pytest.mark.parametrize("driver", [down, down_waiting])
@pytest.mark.parametrize(
    ("scaffold", "talks", "each"),
    [
        ("once", False, 10),
        ("once", True, 10),
        ("linear", False, 10),
        (fan_out(2, decompose=parts), False, 20),
        (twice, False, 20),
    ],
)
def test_an_error_that_is_raised_again_costs_again(
    tmp_path: Path, driver: Any, scaffold: Any, talks: bool, each: int
) -> None:
    """Each time once, however many workers it passes on its way, and it stays as its driver made it."""
    suite = write_suite(tmp_path, [dict(some(0)[0], **({"user": {"script": ["go on"]}} if talks else {}))])
    run = evaluate(suite, driver, trials=2, scaffolds=scaffold, retries=QUICK, save_run=False)
    assert run.attempts.column("cost_micros").to_pylist() == [each] * 8
    assert run.trials.column("cost_micros").to_pylist() == [4 * each] * 2
    assert DOWN.usage == Usage(cost_micros=10)


@pytest.mark.parametrize(("retries", "tries"), [(0, 1), (Retries(0), 1), (QUICK, 4)])
def test_how_often_is_the_callers(tmp_path: Path, retries: Any, tries: int) -> None:
    driver = Flaky(*["down"] * 9)
    run = evaluate(write_suite(tmp_path, some(0)[:1]), driver, retries=retries, save_run=False)
    assert sum(driver.tries.values()) == tries == run.attempts.num_rows


@pytest.mark.parametrize("native", [False, True])
def test_retry_after_is_honoured(tmp_path: Path, native: bool) -> None:
    """The other side said when: neither sooner nor by our own patience; the pause is no working time."""

    def later(tools: Toolbox, ctx: Context) -> None:
        raise InfrastructureError("rate limit", retry_after=0.4)

    driver = Flaky(later)

    async def waits(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return driver(task, tools, ctx)

    patient = Retries(times=1, wait_initial_s=30, wait_max_s=30, wait_jitter_s=0)
    suite = write_suite(tmp_path, some(0)[:1])
    limits = Limits(wall_s=0.2)
    run = evaluate(suite, waits if native else driver, retries=patient, limits=limits, save_run=False)
    assert 0.39 <= driver.at[1] - driver.at[0] < 1.5
    (row,) = run.trials.to_pylist()
    assert (row["outcome"], row["attempts"]) == ("correct_calls", 2)
    assert row["wall_s"] >= 0.39
    assert row["working_s"] < 0.2


@pytest.mark.parametrize("nonsense", ["soon", -5, float("nan"), float("inf"), [1]])
def test_a_nonsense_retry_after_is_no_reason_to_end_the_run(tmp_path: Path, nonsense: Any) -> None:
    def later(tools: Toolbox, ctx: Context) -> None:
        raise InfrastructureError("rate limit", retry_after=nonsense)

    run = evaluate(write_suite(tmp_path, some(0)[:1]), Flaky(later), retries=QUICK, save_run=False)
    assert run.trials.column("outcome").to_pylist() == ["correct_calls"]


class Unprintable(InfrastructureError):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def test_odd_errors_are_counted_too(tmp_path: Path) -> None:
    """Usage that is none, an error that cannot be printed: the trial has its row, and the run goes on."""

    def odd(tools: Toolbox, ctx: Context) -> None:
        raise InfrastructureError("down", usage={"output": "much"})  # type: ignore[arg-type]

    def mute(tools: Toolbox, ctx: Context) -> None:
        raise Unprintable("x")

    run = evaluate(write_suite(tmp_path, some(0)[:1]), Flaky(odd, mute), retries=QUICK, save_run=False)
    assert run.trials.column("attempts").to_pylist() == [3]
    run = evaluate(write_suite(tmp_path, some(0)[:1]), Flaky(mute), retries=0, save_run=False)
    assert run.trials.column("excluded").to_pylist() == ["infrastructure: (an error that cannot be printed)"]


def test_a_used_up_budget_is_not_excused_by_the_environment(tmp_path: Path) -> None:
    """An agent that is out of budget cannot have its trial excluded by failing otherwise."""

    def over(tools: Toolbox, ctx: Context) -> None:
        try:
            ctx.spend(Usage(cost_micros=11))
        finally:
            raise InfrastructureError("down")

    driver = Flaky(over)
    run = evaluate(
        write_suite(tmp_path, some(0)[:1]),
        driver,
        retries=QUICK,
        limits=Limits(cost_micros=10),
        save_run=False,
    )
    assert run.trials.column("outcome").to_pylist() == ["budget"]
    assert sum(driver.tries.values()) == 1


def test_each_attempt_has_a_world_and_a_time_of_its_own(tmp_path: Path) -> None:
    """The limit is an attempt's; the random numbers are the trial's, so that a retry draws the same."""
    drawn: list[float] = []

    def slow(tools: Toolbox, ctx: Context) -> None:
        drawn.append(ctx.random.random())
        time.sleep(0.15)
        raise InfrastructureError("down")

    def last(tools: Toolbox, ctx: Context) -> None:
        drawn.append(ctx.random.random())
        assert not tools.ledger

    driver = Flaky(slow, slow, last)
    run = evaluate(
        write_suite(tmp_path, some(0)[:1]), driver, retries=QUICK, limits=Limits(wall_s=0.3), save_run=False
    )
    assert run.trials.column("outcome").to_pylist() == ["correct_calls"]
    assert len(drawn) == 3
    assert len(set(drawn)) == 1


def test_a_timeout_or_a_crash_is_never_tried_again(tmp_path: Path) -> None:
    """They are the agent's own outcomes."""

    def crash(tools: Toolbox, ctx: Context) -> None:
        raise ConnectionError("the driver's own, which it did not name an infrastructure error")

    def hang(tools: Toolbox, ctx: Context) -> None:
        time.sleep(1.0)

    for step, outcome in ((crash, "driver_error"), (hang, "timeout")):
        driver = Flaky(step)
        run = evaluate(
            write_suite(tmp_path, some(0)[:1]),
            driver,
            retries=QUICK,
            limits=Limits(wall_s=0.2),
            save_run=False,
        )
        assert run.trials.column("outcome").to_pylist() == [outcome]
        assert sum(driver.tries.values()) == 1


# ---- the identity of the buckets


def any_driver(lots: random.Random) -> Callable[..., Any]:
    """A driver whose trials end in every way there is, by lots that are drawn beforehand."""
    fate = {(trial, n): lots.random() for trial in range(1, 4) for n in range(16)}

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        drawn = fate[ctx.trial, len(task.request) % 16]
        if drawn < 0.2:
            raise InfrastructureError("down")
        if drawn < 0.3:
            raise ValueError("crashed")
        if drawn < 0.4:
            return None
        if drawn < 0.5:
            return Transcript(refused=True)
        if drawn < 0.6:
            for _ in range(3):
                tools.call("tmct_describe", {"symbol": "Cart"})
        return knows(task, tools, ctx)

    return driver


def identity_holds(run: Run) -> None:
    """judged + excluded + missing = asked, and the tables say the same."""
    counts = run.card.counts
    assert counts.judged + counts.excluded + counts.missing == counts.asked
    marks = run.trials.select(["outcome", "excluded", "excluded_owner"]).to_pylist()
    assert sum(row["outcome"] is not None for row in marks) == counts.judged
    assert sum(row["excluded"] is not None for row in marks) == counts.excluded
    assert all((row["outcome"] is None) == (row["excluded"] is not None) for row in marks)
    assert all((row["excluded"] is None) == (row["excluded_owner"] is None) for row in marks)
    assert run.card.complete == (counts.missing == 0)
    assert len({tuple(row.values()) for row in run.trials.select(["case_id", "trial"]).to_pylist()}) == len(
        marks
    )


def many_runs(tmp_path: Path, numbers: range) -> Counter[str]:
    suite = write_suite(tmp_path, [*some(0), *some(2), *some(9)])
    seen: Counter[str] = Counter()
    for number in numbers:
        lots = random.Random(number)
        stops = lots.randrange(1, 16) if lots.random() < 0.3 else 0

        def stop(finished: int, asked: int, stops: int = stops) -> None:
            if finished == stops:
                raise KeyboardInterrupt

        out = tmp_path / f"run{number}"
        trials = lots.randrange(1, 4)
        caps = Caps(wall_s=0.0) if lots.random() < 0.05 else None
        try:
            run = evaluate(
                suite,
                any_driver(lots),
                trials=trials,
                out=out,
                retries=0,
                caps=caps,
                limits=Limits(tool_calls=2),
                ladder=lots.random() < 0.3,
                workers=lots.randrange(1, 3),
                progress=stop,
            )
        except Interrupted as interrupted:
            run = interrupted.run
            seen["interrupted"] += 1
        identity_holds(run)
        identity_holds(load_run(out))
        counts = run.card.counts
        seen["excluded"] += counts.excluded > 0
        seen["missing"] += counts.missing > 0
        seen["judged"] += counts.judged > 0
        seen["empty"] += counts.judged + counts.excluded == 0
        if not run.card.options["ladder"]:
            assert counts.asked == 6 * trials
    return seen


def test_every_trial_is_in_one_bucket(tmp_path: Path) -> None:
    assert min(many_runs(tmp_path, range(16)).values()) > 0


@pytest.mark.long
def test_every_trial_is_in_one_bucket_in_a_thousand_runs(tmp_path: Path) -> None:
    seen = many_runs(tmp_path, range(1000))
    assert set(seen) == {"interrupted", "excluded", "missing", "judged", "empty"}
    assert min(seen.values()) > 10


@pytest.mark.parametrize(
    ("was", "made"),
    [('"judged": 2', '"judged": 1'), ('"missing": 0', '"missing": -1'), ('"asked": 2', '"asked": 3')],
)
def test_buckets_that_do_not_add_up_are_refused_when_read(tmp_path: Path, was: str, made: str) -> None:
    evaluate(write_suite(tmp_path, some(0)), "stub", out=tmp_path / "run")
    card = tmp_path / "run" / "card.json"
    text = card.read_text(encoding="utf-8")
    assert was in text
    card.write_text(text.replace(was, made), encoding="utf-8")
    with pytest.raises(LabError, match=r"judged .* is not asked") as caught:
        load_run(tmp_path / "run")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="is not asked"):
        Counts(3, 1, 1, 0)


def test_buckets_that_the_rows_deny_are_refused_when_read(tmp_path: Path) -> None:
    """They add up, and there are other rows."""
    evaluate(write_suite(tmp_path, some(0)), "stub", out=tmp_path / "run")
    card = tmp_path / "run" / "card.json"
    text = card.read_text(encoding="utf-8")
    card.write_text(
        text.replace('"judged": 2', '"judged": 1').replace('"missing": 0', '"missing": 1'), encoding="utf-8"
    )
    with pytest.raises(LabError, match=r"the card counts 1 judged .* the table has 2"):
        load_run(tmp_path / "run")
