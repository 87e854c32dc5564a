"""Limits of a trial end it as the agent's own outcome; caps of a run leave it incomplete, to be gone on with."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import ProductRow
from agentbench_lab.results.run import load_run
from agentbench_lab.running.runner import Caps, Incomplete, evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

from ..doing import knows, some, write_suite

CART = {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}


def one(folder: Path, driver: Any, limits: Limits, **more: Any) -> ProductRow:
    """The row of one trial of the first case."""
    (row,) = evaluate(write_suite(folder, some(0)[:1]), driver, limits=limits, save_run=False, **more).product
    return row


def cart(tools: Toolbox) -> dict[str, Any]:
    """What the first case asks for, done and claimed."""
    tools.call("tmct_describe", {"symbol": "Cart"})
    return dict(CART)


# ---- a trial's own limits

FIGURES: dict[str, Usage] = {
    "steps": Usage(model_calls=1),
    "tokens": Usage(fresh_input=1),
    "cost_micros": Usage(cost_micros=1),
}
"""What each step uses; all else stays unknown."""


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("told", ["step by step", "at the end", "swallowed"])
def test_a_limit_holds_whichever_way_the_usage_is_told(tmp_path: Path, name: str, told: str) -> None:
    """Three are allowed and four are too many; what was delivered is graded, and its details are kept."""

    def uses(steps: int) -> Callable[..., Any]:
        def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
            done = cart(tools)
            if told == "at the end":
                figure = "fresh_input" if name == "tokens" else "model_calls" if name == "steps" else name
                return {**done, "usage": {figure: steps}}
            try:
                for _ in range(steps):
                    ctx.spend(FIGURES[name])
            except BudgetSpent:
                if told != "swallowed":
                    raise
            return done

        return driver

    limits = Limits(**{name: 3})
    row = one(tmp_path, uses(3), limits)
    assert (row.verdict.outcome, row.produced.stop) == ("correct_calls", "done")
    row = one(tmp_path, uses(4), limits)
    assert (row.verdict.outcome, row.produced.stop, row.verdict.excluded) == ("budget", "budget", None)
    assert row.verdict.cls == "safe_non_success"
    assert [entry.name for entry in row.produced.ledger] == ["tmct_describe"]
    what = {"cost_micros": "micros"}.get(name, name)
    assert f"the limit of 3 {what} is used up (4 used)" in row.produced.why
    if told != "step by step":
        checks = {check.name: check.passed for check in row.verdict.checks}
        assert len(checks) > 1
        assert False in checks.values()
        assert True in checks.values()


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_unknown_of_one_step_hides_nothing_of_another(tmp_path: Path, name: str) -> None:
    """A step that tells no figures leaves the sum unknown, but never less than what the others told."""

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        ctx.spend(Usage())
        for _ in range(4):
            ctx.spend(FIGURES[name])
            ctx.spend(Usage())
        return cart(tools)

    assert one(tmp_path, driver, Limits(**{name: 3})).verdict.outcome == "budget"
    assert one(tmp_path, driver, Limits(**{name: 4})).verdict.outcome == "correct_calls"


def test_the_last_word_of_the_usage_is_the_drivers(tmp_path: Path) -> None:
    """What was told step by step counts where the transcript tells nothing; the unknown stays null."""

    def told(final: dict[str, int]) -> Callable[..., Any]:
        def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
            ctx.spend(Usage(fresh_input=3, output=2, cost_micros=7))
            ctx.spend(Usage(fresh_input=1, output=1, cost_micros=2))
            return {**cart(tools), **({"usage": final} if final else {})}

        return driver

    suite = write_suite(tmp_path, some(0)[:1])
    names = ("tokens_fresh_input", "tokens_output", "tokens_cache_read", "cost_micros")
    for final, expected in (({}, (4, 3, None, 9)), ({"cost_micros": 11}, (None, None, None, 11))):
        (row,) = evaluate(suite, told(final), save_run=False).trials.to_pylist()
        assert tuple(row[each] for each in names) == expected


@pytest.mark.parametrize("native", [False, True])
def test_the_limit_of_time_keeps_what_was_done(tmp_path: Path, native: bool) -> None:
    async def waits(task: Task, tools: Toolbox, ctx: Context) -> Any:
        cart(tools)
        await asyncio.sleep(30)

    def sleeps(task: Task, tools: Toolbox, ctx: Context) -> Any:
        cart(tools)
        time.sleep(1.0)

    began = time.monotonic()
    row = one(tmp_path, waits if native else sleeps, Limits(wall_s=0.2))
    assert time.monotonic() - began < 1.0
    assert (row.verdict.outcome, row.produced.why) == ("timeout", "out of time after 0.2 s")
    assert [entry.name for entry in row.produced.ledger] == ["tmct_describe"]


def test_a_cases_own_limits_win_one_by_one(tmp_path: Path) -> None:
    """Tighter or looser, each limit by itself; those that the case does not set are the run's."""

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        ctx.spend(Usage(model_calls=2))
        ctx.spend(Usage(fresh_input=20))
        return knows(task, tools, ctx)

    cases = [*some(0), *some(1)]
    for case, own in zip(
        cases, ({"steps": 1}, {"steps": 9}, {"tokens": 10}, {"tokens": 99, "steps": 2}), strict=True
    ):
        case["limits"] = own
    suite = write_suite(tmp_path, cases)

    def outcomes(limits: Limits) -> list[bool]:
        run = evaluate(suite, driver, limits=limits, save_run=False)
        return [row.verdict.outcome == "budget" for row in run.product]

    assert outcomes(Limits()) == [True, False, True, False]
    assert outcomes(Limits(steps=1, tokens=50)) == [True, False, True, False]
    assert outcomes(Limits(tokens=15)) == [True, True, True, False]


def test_waiting_for_others_is_not_working(tmp_path: Path) -> None:
    """Working time leaves out what was waited; the limit of time holds for both together."""

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        with ctx.waiting():
            time.sleep(0.3)
        with pytest.raises(ZeroDivisionError), ctx.waiting():
            time.sleep(0.1)
            raise ZeroDivisionError
        time.sleep(0.05)
        return cart(tools)

    suite = write_suite(tmp_path, some(0)[:1])
    (row,) = evaluate(suite, driver, save_run=False).trials.to_pylist()
    assert 0.45 <= row["wall_s"] < 0.9
    assert 0.05 <= row["working_s"] < row["wall_s"] - 0.38
    assert one(tmp_path, driver, Limits(wall_s=0.05)).verdict.outcome == "timeout"


# ---- a run's caps


def spends(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    from msgspec.structs import replace

    time.sleep(0.01)
    return replace(knows(task, tools, ctx), usage=Usage(fresh_input=10, output=5, cost_micros=100))


@pytest.mark.parametrize(
    ("caps", "most"),
    [
        (Caps(tokens=150), 10),
        (Caps(cost_micros=950), 10),
        (Caps(wall_s=0.04), 5),
        (Caps(tokens=0), 0),
        (Caps(tokens=10**9, cost_micros=10**9, wall_s=1e9), 20),
    ],
)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_cap_leaves_a_valid_run_that_can_be_gone_on_with(
    tmp_path: Path, caps: Caps, most: int, workers: int
) -> None:
    """No trial is begun once it is reached; those under way are finished and kept."""
    suite = write_suite(tmp_path, some(0))
    whole = evaluate(suite, spends, trials=10, stamp="s", out=tmp_path / "whole")
    run = evaluate(suite, spends, trials=10, stamp="s", out=tmp_path / "run", caps=caps, workers=workers)
    counts = run.card.counts
    assert counts.asked == 20
    assert counts.judged + counts.missing == 20
    expected = range(most, most + 1) if caps.wall_s is None else range(1, most * workers + 1)
    if most == 20:
        assert counts.missing == 0
    else:
        assert counts.judged in range(expected.start, expected.stop + workers - 1)
        assert not run.card.complete
        assert (tmp_path / "run" / "journal.jsonl").is_file()
    assert load_run(tmp_path / "run").card.counts == counts
    done = evaluate(suite, spends, trials=10, stamp="s", out=tmp_path / "run")
    assert done.card.complete
    product = [(tmp_path / name / "product.jsonl").read_bytes() for name in ("whole", "run")]
    assert product[0] == product[1]
    assert len(whole.product) == 20
    assert not (tmp_path / "run" / "journal.jsonl").exists()


def test_a_cap_counts_what_an_earlier_start_has_spent(tmp_path: Path) -> None:
    """The run's money, not the start's: going on under the same cap begins nothing."""
    suite = write_suite(tmp_path, some(0))
    arguments: dict[str, Any] = {"trials": 10, "out": tmp_path / "run"}
    first = evaluate(suite, spends, caps=Caps(cost_micros=500), **arguments)
    again = evaluate(suite, spends, caps=Caps(cost_micros=500), **arguments)
    assert first.card.counts == again.card.counts
    assert first.card.counts.judged == 5
    more = evaluate(suite, spends, caps=Caps(cost_micros=800), **arguments)
    assert more.card.counts.judged == 8


def test_a_cap_counts_what_is_known_beside_what_is_not(tmp_path: Path) -> None:
    def partly(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return {**cart(tools), "usage": {"output": 5}}

    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, partly, trials=10, caps=Caps(tokens=20), save_run=False)
    assert run.card.counts.judged == 4


# ---- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount the small disk that this needs")
    size = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(size, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def talks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    from msgspec.structs import replace

    return replace(knows(task, tools, ctx), messages=("x" * 3_000,))


def test_a_full_disk_ends_the_run_in_one_line_and_loses_nothing(tmp_path: Path, small_disk: Path) -> None:
    """In the midst of the journal; with space made, the run goes on to the bytes of one that never stopped."""
    suite = write_suite(tmp_path, some(0))
    arguments: dict[str, Any] = {"trials": 20, "stamp": "s"}
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 180_000)
    out = small_disk / "run"
    with pytest.raises(Incomplete) as caught:
        evaluate(suite, talks, out=out, **arguments)
    assert "No space left on device" in str(caught.value)
    assert "\n" not in str(caught.value)
    data = (out / "journal.jsonl").read_bytes()
    assert data.endswith(b"\n")
    finished = data.count(b"\n") - 1
    assert 3 <= finished < 40
    assert f"{finished} finished trials" in str(caught.value)
    # still no room: it cannot go on, says so, and what was finished stays
    with pytest.raises(LabError, match="No space left on device"):
        evaluate(suite, talks, out=out, **arguments)
    assert (out / "journal.jsonl").read_bytes() == data
    subprocess.run(["mount", "-o", "remount,size=2m", str(small_disk)], check=True)
    ballast.unlink()
    asked: list[str] = []

    def counts(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        asked.append(task.request)
        return talks(task, tools, ctx)

    counts.__module__, counts.__qualname__ = talks.__module__, talks.__qualname__
    run = evaluate(suite, counts, out=out, **arguments)
    assert run.card.complete
    assert len(asked) == 40 - finished
    evaluate(suite, talks, out=tmp_path / "whole", **arguments)
    assert (out / "product.jsonl").read_bytes() == (tmp_path / "whole" / "product.jsonl").read_bytes()


def test_a_disk_without_room_for_the_run_keeps_the_journal(tmp_path: Path, small_disk: Path) -> None:
    """The journal fits and the tables do not: nothing that was finished is lost."""
    suite = write_suite(tmp_path, some(0))
    probe = evaluate(suite, talks, trials=20, out=tmp_path / "probe")
    assert probe.card.complete
    room = 0
    for finished in (20, 22, 24, 26, 28):
        out = small_disk / f"run{finished}"
        try:
            evaluate(suite, talks, trials=finished, out=out)
        except Incomplete as error:
            assert "\n" not in str(error)
            assert "No space left on device" in str(error)
            lines = (out / "journal.jsonl").read_bytes().count(b"\n") - 1
            assert f"{lines} " in str(error)
            room = finished
            break
    assert room
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    run = evaluate(suite, talks, trials=room, out=small_disk / f"run{room}")
    assert run.card.complete
    assert len(run.product) == 2 * room
    assert not [file.name for file in (small_disk / f"run{room}").iterdir() if file.name.startswith(".")]
