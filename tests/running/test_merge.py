"""Shards of a run put together, and a run judged again by today's grader."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab import grading
from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import merge, regrade_run
from agentbench_lab.running.runner import Caps, evaluate, prepare
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, knows, some, write_suite

ASKED: Counter[tuple[str, int]] = Counter()


def lucky(task: Task, tools: Toolbox, ctx: Context) -> Any:
    """Ends in several ways, by its trial's own lots."""
    ASKED[task.request, ctx.trial] += 1
    drawn = ctx.random.random()
    if drawn < 0.2:
        raise InfrastructureError("down", usage=Usage(cost_micros=5))
    return Transcript(refused=True, messages=({"role": "x"},)) if drawn < 0.5 else knows(task, tools, ctx)


ARGUMENTS: dict[str, Any] = {"trials": 3, "stamp": "s", "retries": 0}
DRIVERS: list[Any] = [lucky, "stub"]


def shards(folder: Path, suite: Path, of: int, **more: Any) -> list[Path]:
    """All shards of a run, in no good order."""
    folders = []
    for at in range(of, 0, -1):
        folders.append(folder / f"shard{at}of{of}")
        evaluate(suite, DRIVERS, shard=f"{at}/{of}", out=folders[-1], **{**ARGUMENTS, **more})
    return folders


def same_tables(one: Run, other: Run) -> None:
    for grain in ("cases", "trials", "attempts", "calls", "transcripts"):
        clocks = {"run", "wall_s", "working_s"} & set(getattr(one, grain).column_names)
        tables = [getattr(run, grain).drop_columns(list(clocks)) for run in (one, other)]
        assert tables[0].equals(tables[1]), grain


@pytest.mark.parametrize("of", [1, 4, 7])
def test_shards_make_the_run_that_was_never_divided(tmp_path: Path, of: int) -> None:
    """The bytes of its product, its tables, its counts and its climb; each trial was asked once."""
    suite = write_suite(tmp_path)
    whole = evaluate(suite, DRIVERS, out=tmp_path / "whole", **ARGUMENTS)
    ASKED.clear()
    folders = shards(tmp_path, suite, of)
    assert set(ASKED.values()) == {1}
    merged = merge(folders, tmp_path / "merged")
    products = [(tmp_path / name / "product.jsonl").read_bytes() for name in ("whole", "merged")]
    assert products[0] == products[1]
    for run in (merged, load_run(tmp_path / "merged")):
        same_tables(run, whole)
        assert (run.card.counts, run.card.envelope) == (whole.card.counts, whole.card.envelope)
        assert run.card.options == whole.card.options
        assert run.card.counts.excluded > 0
    kept = {file.name for file in (tmp_path / "merged").iterdir()}
    assert kept == {file.name for file in (tmp_path / "whole").iterdir()}


def test_a_merged_run_can_be_gone_on_with(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    merge(shards(tmp_path, suite, 2), tmp_path / "merged")
    prepared = prepare(suite, DRIVERS, out=tmp_path / "merged", **{**ARGUMENTS, "trials": 4})
    assert (prepared.plan.asked, prepared.plan.finished, prepared.plan.to_run) == (16, 12, 4)
    prepared.run()
    evaluate(suite, DRIVERS, out=tmp_path / "whole", **{**ARGUMENTS, "trials": 4})
    products = [(tmp_path / name / "product.jsonl").read_bytes() for name in ("whole", "merged")]
    assert products[0] == products[1]


def test_more_shards_than_trials(tmp_path: Path) -> None:
    """Those at the end have nothing to do, and are needed all the same."""
    suite = write_suite(tmp_path, some(0)[:1])
    evaluate(suite, "stub", stamp="s", out=tmp_path / "whole")
    folders = [tmp_path / str(at) for at in (1, 2, 3)]
    for at, folder in enumerate(folders, start=1):
        run = evaluate(suite, "stub", stamp="s", shard=f"{at}/3", out=folder)
        assert run.card.counts.asked == (at == 1)
    merge(folders, tmp_path / "merged")
    products = [(tmp_path / name / "product.jsonl").read_bytes() for name in ("whole", "merged")]
    assert products[0] == products[1]


def test_an_unfinished_shard_leaves_an_unfinished_run(tmp_path: Path) -> None:
    """What is missing is counted; the shard gone on with, it is whole."""
    suite = write_suite(tmp_path, some(0))
    folders = shards(tmp_path, suite, 2)
    shutil.rmtree(folders[0])
    evaluate(suite, DRIVERS, shard="2/2", out=folders[0], caps=Caps(wall_s=0.0), **ARGUMENTS)
    run = merge(folders, tmp_path / "part")
    assert (run.card.counts.asked, run.card.counts.missing) == (12, 6)
    assert "incomplete" in str(run.card.envelope[0].gated_at)
    evaluate(suite, DRIVERS, shard="2/2", out=folders[0], **ARGUMENTS)
    assert merge(folders, tmp_path / "merged").card.complete


def refused(folders: list[Path], out: Path) -> str:
    with pytest.raises(LabError) as caught:
        merge(folders, out)
    assert not out.exists()
    return str(caught.value)


def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    """Each with its reason, and nothing is written."""
    suite = write_suite(tmp_path, some(0))
    folders = shards(tmp_path, suite, 3)
    out = tmp_path / "merged"
    assert refused([], out) == "no shard given"
    assert refused(folders[:2], out) == "missing shards: 1/3"
    assert refused(folders[:1], out) == "missing shards: 1/3, 2/3"
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    assert refused([*folders, copy], out) == f"{copy}: is shard 3/3, which {folders[0]} is already"
    of_two = shards(tmp_path, suite, 2)
    assert refused([*folders, of_two[0]], out) == f"{of_two[0]}: is shard 2/2, where the others are of 3"
    evaluate(suite, DRIVERS, out=tmp_path / "whole", **ARGUMENTS)
    whole = tmp_path / "whole"
    assert refused([whole], out) == f"{whole}: is no shard (it was run without --shard)"
    other = tmp_path / "other"
    evaluate(suite, DRIVERS, shard="1/3", seed=1, out=other, **ARGUMENTS)
    assert refused([*folders[:2], other], out).splitlines() == [
        f"{other}: is a shard of another run than {folders[0]}",
        "seed: 0 is now 1",
    ]
    fewer = tmp_path / "fewer"
    evaluate(suite, DRIVERS, shard="1/3", out=fewer, **{**ARGUMENTS, "trials": 2})
    assert (
        refused([*folders[:2], fewer], out)
        == f"{fewer}: was asked another number of trials than {folders[0]}"
    )
    assert "no run (no card.json)" in refused([*folders[:2], tmp_path / "nowhere"], out)


def test_shards_of_two_graders_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_suite(tmp_path, some(0))
    folders = shards(tmp_path, suite, 2)
    shutil.rmtree(folders[1])
    monkeypatch.setattr(grading, "version", lambda: "newer")
    evaluate(suite, DRIVERS, shard="1/2", out=folders[1], **ARGUMENTS)
    said = refused(folders, tmp_path / "merged")
    assert said == f"{folders[1]}: was judged by another grader than {folders[0]}; regrade first"


def test_a_merge_writes_over_nothing(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    folders = shards(tmp_path, suite, 2)
    merge(folders, tmp_path / "merged")
    kept = {file.name: file.read_bytes() for file in (tmp_path / "merged").iterdir()}
    for out in (tmp_path / "merged", suite):
        with pytest.raises(LabError, match="is not an empty folder; nothing is written over"):
            merge(folders, out)
    assert {file.name: file.read_bytes() for file in (tmp_path / "merged").iterdir()} == kept


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/2", "²/4", "1 /4"])
def test_a_shard_that_is_none(tmp_path: Path, shard: str) -> None:
    with pytest.raises(LabError, match="must be i/n, such as 1/4") as caught:
        evaluate(write_suite(tmp_path, some(0)), "stub", shard=shard, save_run=False)
    assert "\n" not in str(caught.value)


def test_a_shard_cannot_climb(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="shard and ladder exclude each other"):
        evaluate(write_suite(tmp_path, some(0)), "stub", shard="1/2", ladder=True, save_run=False)


# ---- judged again


def test_a_run_judged_again_by_the_same_grader_is_the_same(tmp_path: Path) -> None:
    """No verdict changes; the new run names its source, and the source is left as it is."""
    suite = write_suite(tmp_path)
    source = evaluate(suite, [knows, lucky, "stub"], out=tmp_path / "run", **ARGUMENTS)
    kept = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    ASKED.clear()
    run, changed = regrade_run(tmp_path / "run", tmp_path / "again")
    assert changed == []
    assert not ASKED
    assert (run.card.source, run.card.run) == ("run", "again")
    same_tables(run, source)
    assert (run.card.counts, run.card.envelope) == (source.card.counts, source.card.envelope)
    assert (tmp_path / "again" / "product.jsonl").read_bytes() == kept["product.jsonl"]
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == kept
    assert load_run(tmp_path / "again").card == run.card


def test_verdicts_that_changed_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each, in the order of the rows; card, tables and climb are those of the new verdicts."""
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, knows, trials=2, stamp="s", out=tmp_path / "run")
    product = tmp_path / "run" / "product.jsonl"
    lines = product.read_bytes().splitlines(keepends=True)
    for at in (1, 2):
        assert b'"outcome":"correct_calls"' in lines[at]
        lines[at] = lines[at].replace(b'"outcome":"correct_calls"', b'"outcome":"wrong_calls"')
    product.write_bytes(b"".join(lines))
    monkeypatch.setattr(grading, "version", lambda: "newer")
    run, changed = regrade_run(tmp_path / "run", tmp_path / "again")
    arm = run.product[0].arm
    assert changed == [
        f"t0-cart [{arm} #2]: wrong_calls -> correct_calls",
        f"t0-order [{arm} #1]: wrong_calls -> correct_calls",
    ]
    assert run.card.grader == "newer"
    assert run.trials.column("outcome").to_pylist() == ["correct_calls"] * 8
    assert prepare(suite, knows, trials=2, stamp="s", out=tmp_path / "again").plan.to_run == 0


def test_a_run_judged_by_the_other_rule(tmp_path: Path) -> None:
    """Claims that nothing bears out are false to the one, and right to the other."""

    def claims(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}

    suite = write_suite(tmp_path, some(0)[:1])
    evaluate(suite, claims, stamp="s", out=tmp_path / "run")
    run, changed = regrade_run(tmp_path / "run", tmp_path / "original", strictness="original")
    (line,) = changed
    assert line.startswith("t0-cart [")
    assert "false_success -> " in line
    direct = evaluate(suite, claims, stamp="s", strictness="original", save_run=False)
    assert [row.verdict for row in run.product] == [row.verdict for row in direct.product]
    assert run.card.strictness == run.product[0].strictness == "original"
    assert (run.card.counts, run.card.envelope) == (direct.card.counts, direct.card.envelope)


@pytest.mark.parametrize("ladder", [False, True])
def test_an_unfinished_or_gated_run_judged_again_climbs_the_same(tmp_path: Path, ladder: bool) -> None:
    """What was not asked stays not asked, what is missing stays missing."""
    suite = write_suite(tmp_path, CASES)
    source = evaluate(
        suite,
        [lucky, "refuse_all"],
        ladder=ladder,
        out=tmp_path / "run",
        caps=Caps(cost_micros=15),
        **ARGUMENTS,
    )
    run, changed = regrade_run(tmp_path / "run", tmp_path / "again")
    assert changed == []
    assert (run.card.counts, run.card.envelope) == (source.card.counts, source.card.envelope)
    if not ladder:
        assert run.card.counts.missing > 0


def test_a_regrading_writes_over_nothing(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    evaluate(suite, "stub", out=tmp_path / "run")
    with pytest.raises(LabError, match="is not an empty folder; nothing is written over"):
        regrade_run(tmp_path / "run", tmp_path / "run")
    with pytest.raises(LabError, match=r"no run \(no card\.json\)"):
        regrade_run(tmp_path / "nowhere", tmp_path / "again")
    assert not (tmp_path / "again").exists()
