"""Runs: the same bytes whatever the order of things, every trial counted, the ladder really climbed."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Limits, Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import encode_rows, read_product, regrade
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running import runner, trial
from agentbench_lab.running.plan import plan, trial_seed
from agentbench_lab.running.runner import Interrupted, evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, command, environment, knows, some, tiny_world, write_driver, write_suite

RANDOM = '''
"""Drivers with luck and with a clock: what they do differs by trial, and never by the order of things."""
import time
from tests.doing import knows
from agentbench_lab.cases import Call
from agentbench_lab.transcripts import Transcript

def lucky(task, tools, ctx):
    time.sleep(ctx.random.random() / 200)
    if ctx.random.random() < 0.3:
        raise ValueError("out of luck")
    if ctx.random.random() < 0.3:
        for name in {"tmct_describe", "tmct_search", "tmct_members", "tmct_callers"}:
            pass
        tools.call("tmct_describe", {"symbol": ctx.random.choice(["Cart", "Order", "Ledger"])})
        return Transcript(result=frozenset({"b", "a", "c"}), refused=True, answer=ctx.random.random())
    return knows(task, tools, ctx)
'''


def product(folder: Path, suite: Path, workers: int, hash_seed: str) -> bytes:
    out = folder / f"run-{workers}-{hash_seed}"
    arguments = ["--driver", "mine:lucky", "--driver", "stub", "--trials", "3", "--workers", str(workers)]
    done = subprocess.run(
        command("run", str(suite), *arguments, "--stamp", "same", "--out", str(out)),
        cwd=folder,
        env=environment(PYTHONHASHSEED=hash_seed),
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return (out / "product.jsonl").read_bytes()


def test_the_product_is_the_same_to_the_byte(tmp_path: Path) -> None:
    """Two hash seeds, one, two and seven workers, drivers that draw lots and take their time: `cmp` is silent."""
    suite = write_suite(tmp_path)
    write_driver(tmp_path, RANDOM)
    first = product(tmp_path, suite, 1, "0")
    assert len(first.splitlines()) == len(CASES) * 2 * 3
    assert len({row.verdict.outcome for row in read_product(tmp_path / "run-1-0" / "product.jsonl")}) > 4
    for workers, hash_seed in ((2, "1"), (7, "123456")):
        product(tmp_path, suite, workers, hash_seed)
        files = [f"run-{w}-{h}/product.jsonl" for w, h in ((1, "0"), (workers, hash_seed))]
        done = subprocess.run(["cmp", *files], cwd=tmp_path, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_every_row_can_be_judged_again_alone(tmp_path: Path) -> None:
    """From product.jsonl and nothing else: every rung, good and bad answers, both strictnesses, the whole grade."""
    suite = write_suite(tmp_path)
    drivers = [knows, "stub", "refuse_all", "reckless", half_right, bare_claims]
    for strictness in ("strict", "original"):
        out = tmp_path / strictness
        run = evaluate(suite, drivers, strictness=strictness, out=out)
        rows = list(read_product(out / "product.jsonl"))
        assert len(rows) == len(CASES) * len(drivers)
        assert {row.group for row in rows} == {f"TOOL-{n}" for n in range(10)}
        for row, kept in zip(rows, run.product, strict=True):
            verdict, again = row.verdict, regrade(row)
            assert encode_rows([row]) == encode_rows([kept])
            assert (again.outcome, again.cls, again.solved, again.completed) == (
                verdict.outcome,
                verdict.cls,
                verdict.solved,
                verdict.completed,
            )
            assert (again.result_completed, again.hallucinated) == (
                verdict.result_completed,
                verdict.hallucinated,
            )
            assert again.checks == verdict.checks
    outcomes = {row.verdict.outcome for row in read_product(tmp_path / "strict" / "product.jsonl")}
    assert {"correct_calls", "correct_refusal", "correct_goal", "wrong_calls", "no_answer"} <= outcomes
    assert {"over_refusal", "hallucinated_call", "false_success", "unproven"} <= outcomes


def half_right(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The right calls with a proof that is not one, the wrong result, one candidate, another goal."""
    from msgspec.structs import replace

    said = knows(task, tools, ctx)
    proof = ({"step": "precondition", "pred": "cap:wished", "ok": True},) if said.calls else ()
    return replace(
        said,
        proof=proof,
        result=("app/cart.py",) if said.result else None,
        candidate_results=said.candidate_results[:1] if said.candidate_results else None,
        inferred_goal="cap:impact" if said.inferred_goal else None,
    )


def bare_claims(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """What is right, and nothing of it done."""
    return knows(task, Toolbox(tiny_world(), task.tools), ctx)


def test_every_trial_is_counted_once(tmp_path: Path) -> None:
    """judged + excluded + missing = asked, in the card and in the tables; rows stand in the order of the plan."""
    suite = write_suite(tmp_path)
    run = evaluate(suite, [knows, "stub"], trials=2, workers=3, out=tmp_path / "run")
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (
        len(CASES) * 4,
        len(CASES) * 4,
        0,
        0,
    )
    assert run.card.complete
    identity = [
        (row["case_id"], row["driver"], row["trial"])
        for row in run.trials.select(["case_id", "driver", "trial"]).to_pylist()
    ]
    names = [arm.driver for arm in run.card.arms]
    assert identity == [(c["id"], name, t) for c in CASES for name in names for t in (1, 2)]
    assert run.attempts.num_rows == run.transcripts.num_rows == run.trials.num_rows == len(run.product)
    assert run.calls.num_rows == sum(len(row.produced.ledger) for row in run.product)
    assert run.trials.column("tool_calls").to_pylist() == [len(row.produced.ledger) for row in run.product]
    assert run.cases.column("case_id").to_pylist() == [one["id"] for one in CASES]


def test_a_fault_of_the_grader_counts_against_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a fault of our own can make it happen, so one is put in: the trials are excluded, and said to be."""

    def faulty(case: Any, *rest: Any, **more: Any) -> Any:
        if case.id == "t0-order":
            raise ZeroDivisionError("a fault")
        return right(case, *rest, **more)

    right = trial.grade
    monkeypatch.setattr(trial, "grade", faulty)
    run = evaluate(write_suite(tmp_path, some(0, 1)), knows, out=tmp_path / "run")
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (4, 3, 1, 0)
    (row,) = [row for row in load_run(tmp_path / "run").trials.to_pylist() if row["excluded"]]
    assert row["excluded"] == "the grader failed: ZeroDivisionError: a fault"
    assert (row["excluded_owner"], row["case_id"]) == ("grader", "t0-order")
    marks = ("outcome", "outcome_class", "solved", "completed", "result_completed", "hallucinated")
    assert {row[mark] for mark in marks} == {None}
    assert run.card.envelope[0].gated_at == "TOOL-0 incomplete: 1 of 2 trials judged"


class Counting:
    """A driver that fails from a rung on, and notes what it is asked."""

    evidence = "simulated"

    def __init__(self, fails_at: int, *, name: str) -> None:
        self.fails_at = fails_at
        self.asked: list[str] = []
        self.__module__, self.__qualname__ = "counting", name

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        self.asked.append(task.request)
        rung = next(int(one["rung"][-1]) for one in CASES if one["request"] == task.request)
        return knows(task, tools, ctx) if rung < self.fails_at else Transcript()

    @property
    def rungs(self) -> Counter[str]:
        return Counter(next(c["rung"] for c in CASES if c["request"] == request) for request in self.asked)


def test_the_ladder_really_stops(tmp_path: Path) -> None:
    """Rungs above the gate are not asked of the arm that failed it, each leaves a receipt; other arms climb on."""
    suite = write_suite(tmp_path, list(reversed(CASES)))
    low, high, top = Counting(2, name="low"), Counting(6, name="high"), Counting(10, name="top")
    run = evaluate(suite, [low, high, top], ladder=True, trials=2, workers=2, out=tmp_path / "run")
    asked = Counter(one["rung"] for one in CASES)
    for driver, last in ((low, 2), (high, 6), (top, 9)):
        assert driver.rungs == {f"TOOL-{n}": 2 * asked[f"TOOL-{n}"] for n in range(last + 1)}
    by_name = {envelope.driver: envelope for envelope in run.card.envelope}
    assert by_name["counting:low"].reached == "TOOL-1"
    assert by_name["counting:low"].gated_at == "TOOL-2 completion 0% < 50%"
    assert by_name["counting:low"].receipts == tuple(
        f"rung TOOL-{n} skipped: gated by TOOL-2 completion 0% < 50%" for n in range(3, 10)
    )
    assert by_name["counting:high"].reached == "TOOL-5"
    assert [receipt.split()[1] for receipt in by_name["counting:high"].receipts] == [
        "TOOL-7",
        "TOOL-8",
        "TOOL-9",
    ]
    assert (by_name["counting:top"].reached, by_name["counting:top"].gated_at) == ("TOOL-9", None)
    counts = run.card.counts
    assert counts.asked == counts.judged == sum(len(driver.asked) for driver in (low, high, top))
    assert run.card.complete
    gates = metrics.gate(run.trials, run.card)
    skipped = gates.filter((gates["driver"] == "counting:low") & gates["passes"].is_null())
    assert skipped["receipt"].to_list() == list(by_name["counting:low"].receipts)
    assert skipped["asked"].sum() == 0


def test_without_the_ladder_everything_is_asked(tmp_path: Path) -> None:
    """The envelope is the same; only what was asked differs."""
    suite = write_suite(tmp_path)
    driver = Counting(2, name="low")
    run = evaluate(suite, driver, save_run=False)
    assert len(driver.asked) == len(CASES)
    climbed = evaluate(suite, Counting(2, name="low"), ladder=True, save_run=False)
    assert (run.card.envelope[0].reached, run.card.envelope[0].gated_at) == (
        "TOOL-1",
        "TOOL-2 completion 0% < 50%",
    )
    assert run.card.envelope[0].gated_at == climbed.card.envelope[0].gated_at


def test_a_rung_passes_by_all_its_trials(tmp_path: Path) -> None:
    """Half of them is enough, less is not: with two cases and three trials, three of six against two."""

    def sometimes(enough: int) -> Any:
        def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
            place = 3 * (task.request == "Describe Order") + ctx.trial
            return knows(task, tools, ctx) if place <= enough else Transcript()

        return driver

    suite = write_suite(tmp_path, some(0, 1))
    passing = evaluate(suite, sometimes(3), group="TOOL-0", trials=3, save_run=False)
    failing = evaluate(suite, sometimes(2), group="TOOL-0", trials=3, save_run=False)
    assert passing.card.envelope[0].gated_at is None
    assert failing.card.envelope[0].gated_at == "TOOL-0 completion 33% < 50%"


def test_seeds_are_stable_and_the_trials_own(tmp_path: Path) -> None:
    """Written down once, so that no change of ours can shift every recorded stream unnoticed."""
    suite = load_suite(write_suite(tmp_path, some(0)))
    run = evaluate(suite, ["stub", "refuse_all"], trials=2, save_run=False)
    seeds = run.trials.column("seed").to_pylist()
    assert len(set(seeds)) == len(seeds) == 8
    arm = run.product[0].arm
    assert seeds[0] == trial_seed(0, suite.cases[0], arm, 1) == "683a331feb0a88f2"
    assert all(re.fullmatch(r"[0-9a-f]{16}", seed) for seed in seeds)
    assert plan(suite.cases, [arm], 2, 0)[0].seed == seeds[0]
    assert evaluate(suite, "stub", trials=1, save_run=False).trials.column("seed").to_pylist() == [
        seeds[0],
        seeds[4],
    ]
    assert set(seeds).isdisjoint(
        evaluate(suite, "stub", seed=1, save_run=False).trials.column("seed").to_pylist()
    )


def test_the_card_says_where_the_numbers_come_from(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    (tmp_path / "small.md").write_text("# small\n\nversion: 3\ndate: 2026-01-02\n", encoding="utf-8")
    run = evaluate(suite, ["stub", knows], only="t0-*", seed=5, stamp="a.b-c", out=tmp_path / "run")
    card = load_run(tmp_path / "run").card
    assert card == run.card
    assert (card.run, card.stamp, card.seed, card.strictness, card.taxonomy) == (
        "run",
        "a.b-c",
        5,
        "strict",
        "ladder",
    )
    (suite_card,) = card.suites
    assert (suite_card.name, suite_card.version, suite_card.date, suite_card.cases) == (
        "small",
        "3",
        "2026-01-02",
        2,
    )
    assert suite_card.digest == load_suite(suite).digest
    assert [world.name for world in card.worlds] == ["tiny"]
    assert card.worlds[0].digest == tiny_world().digest
    assert [arm.driver for arm in card.arms] == ["stub", f"{knows.__module__}:knows"]
    assert card.evidence == ("simulated",)
    assert card.options == {
        "group": [],
        "only": ["t0-*"],
        "trials": 1,
        "ladder": False,
        "shard": "",
        "wall_s": 60.0,
        "steps": None,
        "tool_calls": 1000,
        "tokens": None,
        "cost_micros": None,
        "world": "",
    }
    assert {"python", "polars", "pyarrow"} <= card.versions.keys()
    assert card.started_at <= card.finished_at
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", card.started_at)


def test_evidence_is_each_drivers_own(tmp_path: Path) -> None:
    """A stub's rows are simulated, those of a driver that says nothing are live, in one run."""

    def mine(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(refused=True)

    run = evaluate(write_suite(tmp_path, some(0)), ["stub", mine], save_run=False)
    assert run.trials.column("evidence").to_pylist() == ["simulated", "live"] * 2
    assert run.card.evidence == ("live", "simulated")


def test_usage_reaches_the_tables_and_unknown_stays_null(tmp_path: Path) -> None:
    def counts(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(refused=True, usage=Usage(fresh_input=2**40, output=0, cost_micros=7, wall_s=99.0))

    run = evaluate(write_suite(tmp_path, some(0)[:1]), counts, save_run=False)
    (row,) = run.trials.to_pylist()
    assert (row["tokens_fresh_input"], row["tokens_output"], row["cost_micros"]) == (2**40, 0, 7)
    assert (row["tokens_cache_read"], row["model_calls"], row["score"], row["steps"]) == (
        None,
        None,
        None,
        None,
    )
    assert 0 <= row["wall_s"] < 10, "time is what the runner measured, not what the driver says"


def test_a_run_is_saved_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    """The files of a run, no journal, no temporary file; an empty folder that is there may be used."""
    (tmp_path / "run").mkdir()
    evaluate(write_suite(tmp_path, some(0)), "stub", out=tmp_path / "run")
    tables = ("cases", "trials", "attempts", "calls", "transcripts")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        ["bench.json", "card.json", "product.jsonl", *(f"{table}.parquet" for table in tables)]
    )


def test_a_run_in_memory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_suite(tmp_path / "suite", some(0))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = evaluate(suite, "stub", save_run=False)
    assert run.path is None
    assert list((tmp_path / "here").iterdir()) == []


def test_the_default_folder_is_named_by_suite_and_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the project that the working folder lies in; two runs never share one."""
    suite = write_suite(tmp_path / "data" / "cases", some(0))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    first, second = (evaluate("small", "stub", stamp="s1") for _ in range(2))
    assert suite.is_file()
    assert first.path != second.path
    for run in (first, second):
        assert run.path is not None
        assert run.path.parent == tmp_path / "data" / "results"
        assert re.fullmatch(r"small-s1-[0-9a-f]{8}", run.path.name)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "stamp": ({"stamp": "a/b"}, "stamp 'a/b': only letters"),
    "stamp of dots": ({"stamp": ".."}, "stamp '..'"),
    "stamp a number": ({"stamp": 5}, "stamp must be text, not the int 5"),
    "stamp with a newline": ({"stamp": "a\n"}, "stamp 'a\\n'"),
    "trials": ({"trials": 0}, "trials must be a whole number from 1, not 0"),
    "trials of a kind": ({"trials": "2"}, "trials must be a whole number from 1, not '2'"),
    "trials true": ({"trials": True}, "trials must be a whole number from 1, not True"),
    "workers": ({"workers": -1}, "workers must be a whole number from 1, not -1"),
    "seed": ({"seed": 1.5}, "seed must be a whole number, not 1.5"),
    "strictness": ({"strictness": "strickt"}, "no strictness 'strickt' (did you mean 'strict'?)"),
    "group": ({"group": "TOOL-10"}, "no case in group 'TOOL-10' (did you mean 'TOOL-1'?)"),
    "group of a kind": ({"group": 3}, "group must be text, not 3"),
    "only": ({"only": ["t0-crt"]}, "no case matches 't0-crt' (did you mean 't0-cart'?)"),
    "driver": ({"driver": "stubb"}, "unknown driver 'stubb' (did you mean 'stub'?)"),
    "no driver": ({"driver": []}, "no driver given"),
    "the same driver": ({"driver": ["stub", "stub"]}, "driver 'stub' is given twice"),
    "world": (
        {"only": "away", "world": "worlds/tinny.json"},
        "no such world file (did you mean 'tiny.json'?)",
    ),
    "limit": ({"limits": Limits(wall_s=-1.0)}, "the time limit must be more than 0 seconds, not -1.0"),
    "no limit": ({"limits": Limits(wall_s=float("nan"))}, "must be more than 0 seconds, not nan"),
    "limit in words": ({"limits": Limits(wall_s="5")}, "must be more than 0 seconds, not '5'"),  # type: ignore[arg-type]
    "limit of calls": ({"limits": Limits(tool_calls=-1)}, "whole number from 0, not -1"),
    "suite": ({"suite": 5}, "suite must be a path, a name, a Suite or cases, not an int"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cases = [*some(0, 1, 3), {**some(2)[0], "id": "away", "world": None}]
    suite = write_suite(tmp_path, cases)
    monkeypatch.chdir(tmp_path)
    wrong, message = MISTAKES[name]
    given: dict[str, Any] = {"suite": suite, "driver": "stub", "only": "t*", **wrong}
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LabError) as caught:
        evaluate(given.pop("suite"), given.pop("driver"), out=tmp_path / "run", **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("out", ["file/run", "full", "file", "/proc/run", "a\0b", "n" * 300])
def test_a_folder_that_cannot_be_written_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    suite = write_suite(tmp_path, some(0))
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x", encoding="utf-8")
    Path("full").mkdir()
    Path("full/kept").write_text("x", encoding="utf-8")
    with pytest.raises(LabError) as caught:
        evaluate(suite, "stub", out=out)
    assert "\n" not in str(caught.value)
    assert Path("full/kept").read_text(encoding="utf-8") == Path("file").read_text(encoding="utf-8") == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "small.jsonl", "worlds"]


def test_the_ladder_needs_rungs(tmp_path: Path) -> None:
    cases = some(0)
    cases[1]["group"] = cases[1].pop("rung") and "other"
    suite = write_suite(tmp_path, cases)
    with pytest.raises(LabError, match="--ladder needs rungs; small has the group 'other'"):
        evaluate(suite, "stub", ladder=True, save_run=False)
    run = evaluate(suite, knows, save_run=False)
    assert run.trials.column("group").to_pylist() == ["TOOL-0", "other"]


def test_a_tool_that_the_world_lacks_is_the_cases_mistake(tmp_path: Path) -> None:
    cases = some(0)
    cases[1]["tools"].append("tmct_describ")
    with pytest.raises(LabError, match=r"small\.jsonl:2: t0-order: .* no tool 'tmct_describ' \(did you mean"):
        evaluate(write_suite(tmp_path, cases), "stub", save_run=False)


def test_the_worlds_of_cases(tmp_path: Path) -> None:
    """A case's own, else the one given, else the one named like the suite; each is said by its file when missing."""
    cases = [
        {**one, "world": world} for one, world in zip(some(0, 1), ("tiny", None, None, None), strict=False)
    ]
    suite = write_suite(tmp_path, cases)
    with pytest.raises(LabError, match=r"small\.jsonl:2: t0-order: no world 'small'; give one with --world"):
        evaluate(suite, "stub", save_run=False)
    other = tiny_world().to_bytes().replace(b'"name": "tiny"', b'"name": "other"')
    (tmp_path / "other.json").write_bytes(other)
    named = evaluate(suite, "stub", world=tmp_path / "other.json", save_run=False)
    assert [world.name for world in named.card.worlds] == ["tiny", "other"]
    (tmp_path / "worlds" / "small.json").write_bytes(other)
    assert evaluate(suite, "stub", save_run=False).cases.column("world").to_pylist() == [
        "tiny",
        *["other"] * 3,
    ]
    assert evaluate(suite, "stub", world=tiny_world(), save_run=False).card.options["world"] == "tiny"
    cases[0]["world"] = "tinny"
    with pytest.raises(
        LabError, match=r"small\.jsonl:1: t0-cart: no world 'tinny' \(did you mean 'tiny'\?\)"
    ):
        evaluate(write_suite(tmp_path, cases), "stub", save_run=False)


def test_progress_is_told_of_every_trial(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(
        write_suite(tmp_path, some(0, 1)),
        ["stub", knows],
        workers=3,
        save_run=False,
        progress=lambda finished, asked: seen.append((finished, asked)),
    )
    assert seen == [(n, 8) for n in range(1, 9)]


def test_an_interrupt_in_process_keeps_what_was_finished(tmp_path: Path) -> None:
    """The exception carries the run: incomplete, saved, and every count right."""

    def stop(finished: int, asked: int) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        evaluate(write_suite(tmp_path), knows, out=tmp_path / "run", progress=stop)
    run: Run = caught.value.run
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (len(CASES), 3, len(CASES) - 3)
    assert not run.card.complete
    assert load_run(tmp_path / "run").trials.equals(run.trials)
    assert (tmp_path / "run" / "journal.jsonl").is_file()
    assert run.card.envelope[0].gated_at == "TOOL-1 incomplete: 1 of 2 trials judged"
    gates = metrics.gate(run.trials, run.card)
    assert gates["failure"].to_list()[:2] == [None, "TOOL-1 incomplete: 1 of 2 trials judged"]
    assert gates["passes"].to_list()[:2] == [True, False]


def test_a_rung_that_was_not_reached_before_the_interrupt_is_no_step(tmp_path: Path) -> None:
    """The upper rungs came first and passed; without the lower ones that is no climb."""

    def stop(finished: int, asked: int) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        evaluate(write_suite(tmp_path, list(reversed(CASES))), knows, save_run=False, progress=stop)
    run: Run = caught.value.run
    assert {row.group for row in run.product} == {"TOOL-9"}
    assert run.card.envelope[0].reached is None
    assert run.card.envelope[0].gated_at == "TOOL-0 incomplete: 0 of 2 trials judged"


def test_the_default_limit_is_a_minute() -> None:
    assert runner.DEFAULT_WALL_S == 60.0


@pytest.mark.parametrize("wrong", [-1, Retries(times=-1), "three"])
def test_retries_that_are_none_name_no_class(tmp_path: Path, wrong: Any) -> None:
    shown = -1 if isinstance(wrong, Retries) else wrong
    with pytest.raises(LabError) as error:
        evaluate(write_suite(tmp_path), "stub", retries=wrong, save_run=False)
    assert str(error.value) == f"retries must be a whole number from 0, not {shown!r}"
