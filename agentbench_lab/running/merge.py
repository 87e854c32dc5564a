"""Shards of one run put together, and a run judged again by today's grader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from agentbench_lab import grading
from agentbench_lab.errors import LabError
from agentbench_lab.results import provenance
from agentbench_lab.results.product import Arm
from agentbench_lab.results.run import Envelope, Run, load_run, run_name, save
from agentbench_lab.running.assemble import assembled, climbed, envelope, now
from agentbench_lab.running.journal import differences
from agentbench_lab.running.lock import RunLock
from agentbench_lab.running.plan import shard_numbers
from agentbench_lab.running.reread import Key, judged_again, key_of, records_of
from agentbench_lab.running.runner import make_folder, settings_of
from agentbench_lab.running.trial import Record


def merge(folders: Sequence[str | Path], out: str | Path) -> Run:
    """One run from all shards of one: the same rows, in the same order, as if it had never been divided.

    Raises LabError for shards of different runs, the same shard given twice, or one that is missing.
    """
    if not folders:
        raise LabError("no shard given")
    runs = [load_run(folder) for folder in folders]
    _check_shards(folders, runs)
    first = runs[0]
    order = {case: at for at, case in enumerate(first.cases.column("case_id").to_pylist())}
    arms = [Arm(arm.driver, arm.model, arm.scaffold) for arm in first.card.arms]
    records: dict[Key, Record] = {}
    for run in runs:
        for record in records_of(run):
            row = record.row
            if key_of(row) in records:
                raise LabError(f"trial {row.trial} of {row.case_id!r} stands in two shards")
            place = (order[row.case_id], arms.index(row.arm), row.trial)
            records[key_of(row)] = msgspec.structs.replace(record, place=place)
    card = msgspec.structs.replace(
        first.card,
        run=run_name(out),
        options={**first.card.options, "shard": ""},
        started_at=min(run.card.started_at for run in runs),
        finished_at=max(run.card.finished_at for run in runs),
        commit=", ".join(dict.fromkeys(run.card.commit for run in runs)),
    )
    asked = sum(run.card.counts.asked for run in runs)
    ordered = sorted(records.values(), key=lambda record: record.place)
    merged = assembled(card, first.cases, ordered, asked, envelope=_climbs(ordered, arms, runs))
    return save_new(merged, out)


def _check_shards(folders: Sequence[str | Path], runs: Sequence[Run]) -> None:
    first = msgspec.structs.replace(settings_of(runs[0]), shard="")
    seen: dict[int, str] = {}
    total = 0
    for folder, run in zip(folders, runs, strict=True):
        settings = settings_of(run)
        if not settings.shard:
            raise LabError(f"{folder}: is no shard (it was run without --shard)")
        found = differences(first, msgspec.structs.replace(settings, shard=""))
        if found:
            raise LabError("\n".join([f"{folder}: is a shard of another run than {folders[0]}", *found[:20]]))
        if run.card.options.get("trials") != runs[0].card.options.get("trials"):
            raise LabError(f"{folder}: was asked another number of trials than {folders[0]}")
        if run.card.grader != runs[0].card.grader:
            raise LabError(f"{folder}: was judged by another grader than {folders[0]}; regrade first")
        at, of = shard_numbers(settings.shard)
        if total and of != total:
            raise LabError(f"{folder}: is shard {settings.shard}, where the others are of {total}")
        if at in seen:
            raise LabError(f"{folder}: is shard {settings.shard}, which {seen[at]} is already")
        total, seen[at] = of, str(folder)
    missing = sorted(set(range(1, total + 1)) - set(seen))
    if missing:
        raise LabError(f"missing shards: {', '.join(f'{at}/{total}' for at in missing)}")


def _climbs(records: Sequence[Record], arms: Sequence[Arm], runs: Sequence[Run]) -> tuple[Envelope, ...]:
    """How far each arm came in all the runs together, whose cards say what each of them was asked."""
    ladder = bool(runs[0].card.options.get("ladder"))
    asked: list[dict[str, int]] = [{} for _ in arms]
    for run in runs:
        for card in run.card.envelope:
            of_arm = asked[arms.index(Arm(card.driver, card.model, card.scaffold))]
            for group, count in card.asked.items():
                of_arm[group] = of_arm.get(group, 0) + count
    groups = set(map(str, runs[0].cases.column("group").to_pylist()))
    suite = groups | set(runs[0].card.suites[0].groups)
    climbs = []
    for arm, of_arm in zip(arms, asked, strict=True):
        rows = [record.row for record in records if record.row.arm == arm]
        # a group that the gate left out has its receipt: it was planned, and not begun
        planned = {**dict.fromkeys(groups, 0), **of_arm}
        climbs.append(climbed(planned, set(of_arm), rows, suite=suite, ladder=ladder))
    return envelope(arms, climbs, asked)


def regrade_run(
    folder: str | Path, out: str | Path, *, strictness: str | None = None
) -> tuple[Run, list[str]]:
    """A new run with today's verdicts on what a run holds, without running an agent, and what changed, a line each."""
    run = load_run(folder)
    before = records_of(run)
    after = [judged_again(record, strictness) for record in before]
    changed = [
        f"{new.row.case_id} [{new.row.arm} #{new.row.trial}]: {old.row.verdict.outcome or 'excluded'} -> "
        f"{new.row.verdict.outcome or 'excluded'}"
        for old, new in zip(before, after, strict=True)
        if old.row.verdict.outcome != new.row.verdict.outcome
    ]
    arms = [Arm(arm.driver, arm.model, arm.scaffold) for arm in run.card.arms]
    card = msgspec.structs.replace(
        run.card,
        run=run_name(out),
        source=run.card.run,
        grader=grading.version(),
        strictness=strictness or run.card.strictness,
        versions=provenance.versions(),
        finished_at=now(),
    )
    new = assembled(card, run.cases, after, run.card.counts.asked, envelope=_climbs(after, arms, [run]))
    return save_new(new, out), changed


def save_new(run: Run, out: str | Path) -> Run:
    """Save a run into a new folder; an existing one that is not empty is refused."""
    folder = Path(out).absolute()
    if folder.exists() and not folder.is_dir():
        raise LabError(f"{out}: exists and is not an empty folder; nothing is written over")
    make_folder(folder, exist_ok=True)
    with RunLock(folder):
        # under the lock, since another writer may have finished just now
        if any(file.name != "run.lock" for file in folder.iterdir()):
            raise LabError(f"{out}: exists and is not an empty folder; nothing is written over")
        run = msgspec.structs.replace(run, path=folder)
        try:
            save(run, folder)
        except OSError as error:
            raise LabError(f"{out}: cannot write the run: {error.strerror}") from None
    return run
