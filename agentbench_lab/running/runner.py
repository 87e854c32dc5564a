"""evaluate: cases by drivers, into a run."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentbench_lab.cases import RUNGS, Case, Limits, Suite, load_suite, project_root, select
from agentbench_lab.drivers.base import Loaded, load_driver
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.grading import STRICTNESSES
from agentbench_lab.ladder import Cell, Climb, climb, in_order
from agentbench_lab.outcomes import LADDER
from agentbench_lab.results import provenance
from agentbench_lab.results.product import Arm, ProductRow
from agentbench_lab.results.run import (
    FORMAT,
    ArmCard,
    Counts,
    Envelope,
    Run,
    RunCard,
    SuiteCard,
    WorldCard,
    save,
)
from agentbench_lab.running.journal import Journal
from agentbench_lab.running.plan import Spec, of_groups, plan
from agentbench_lab.running.pool import run_jobs
from agentbench_lab.running.tables import cases_table, trial_tables
from agentbench_lab.running.trial import Job, Record
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.toolbox import World

DEFAULT_WALL_S = 60.0
"""Seconds a trial may take when neither the case nor the caller says otherwise."""

DriverLike = str | Callable[..., Any]


class Incomplete(LabError):
    """The run could not be written to its end; what was finished is in its journal."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: the run ended early; `run` holds what was finished."""

    def __init__(self, run: Run) -> None:
        super().__init__("interrupted")
        self.run = run


def evaluate(
    suite: str | Path | Suite,
    driver: DriverLike | Sequence[DriverLike],
    *,
    group: str | Iterable[str] = "",
    only: str | Iterable[str] = "",
    trials: int = 1,
    ladder: bool = False,
    stamp: str = "",
    out: str | Path = "",
    world: str | Path | World = "",
    seed: int = 0,
    workers: int = 1,
    strictness: str = "strict",
    limits: Limits | None = None,
    save_run: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run every selected case `trials` times by each driver, grade what they did, and give back the run.

    `suite` is a case file, a bare name under data/cases, or a loaded Suite. `group` and `only` (globs over ids) are
    lists or comma-separated text; empty is all. With `ladder`, rungs are asked upward and those above the first that
    fails the gate are not asked: each leaves a receipt. The run is saved to `out` (a new folder; default
    data/results/<suite>-<stamp>-<random>) unless `save_run` is false. `limits` bound one trial (default: 60 s).
    `progress` is called with (finished, asked).

    Raises LabError for what cannot be run, before anything is run or written. What a driver does wrong never raises:
    it is judged.
    """
    suite = _suite(suite)
    cases = select(suite.cases, groups=_words(group, "group"), only=_words(only, "only"))
    stamp = _stamp(stamp)
    trials, workers, seed = _count(trials, "trials"), _count(workers, "workers"), _whole(seed, "seed")
    if strictness not in STRICTNESSES:
        raise LabError(f"no strictness {strictness!r}{did_you_mean(strictness, STRICTNESSES)}")
    drivers = _drivers(driver)
    limits = _limits(limits)
    if ladder:
        _check_rungs(suite, cases)
    worlds = Worlds(suite, world or None)
    placed = [(case, worlds.of(case)) for case in cases]
    _check_tools(placed)
    arms = [Arm(loaded.name) for loaded in drivers]
    specs = plan(cases, arms, trials, seed)
    folder = _folder(suite, stamp, out) if save_run else None
    setting = _Setting(
        suite, placed, drivers, arms, specs, stamp, strictness, limits, workers, ladder, progress, trials
    )
    return _run(setting, folder, seed, _options(group, only, trials, ladder, limits, world))


class _Setting:
    """What one run is made of."""

    def __init__(
        self,
        suite: Suite,
        placed: list[tuple[Case, World]],
        drivers: list[Loaded],
        arms: list[Arm],
        specs: list[Spec],
        stamp: str,
        strictness: str,
        limits: Limits,
        workers: int,
        ladder: bool,
        progress: Callable[[int, int], None] | None,
        trials: int,
    ) -> None:
        self.suite, self.placed, self.drivers, self.arms, self.specs = suite, placed, drivers, arms, specs
        self.stamp, self.strictness, self.limits, self.workers = stamp, strictness, limits, workers
        self.ladder, self.progress, self.trials = ladder, progress, trials
        self.worlds = {case.id: world for case, world in placed}
        self.begun: set[str] = set()
        self.asked = Counter(case.group for case, _ in placed)
        for group in self.asked:
            self.asked[group] *= trials

    def jobs(self, specs: Iterable[Spec]) -> Iterator[Callable[[], Job]]:
        for spec in specs:
            yield lambda spec=spec: self.job(spec)  # type: ignore[misc]

    def job(self, spec: Spec) -> Job:
        return Job(
            spec,
            self.drivers[spec.arm],
            self.arms[spec.arm],
            self.worlds[spec.case.id],
            limits=self.limits,
            stamp=self.stamp,
            strictness=self.strictness,
        )


def _run(setting: _Setting, folder: Path | None, seed: int, options: dict[str, Any]) -> Run:
    started = _now()
    records: list[Record] = []
    journal = Journal(folder / "journal.jsonl") if folder is not None else None
    interrupted = False
    asked = 0
    climbs: dict[int, Climb] = {}

    def ended(record: Record) -> None:
        if journal is not None:
            journal.add(record)
        records.append(record)
        if setting.progress is not None:
            setting.progress(len(records), asked)

    try:
        for specs in _rounds(setting, records, climbs):
            asked += len(specs)
            run_jobs(setting.jobs(specs), min(setting.workers, max(1, len(specs))), ended)
    except OSError as error:
        where = f"{folder}: " if folder is not None else ""
        raise Incomplete(
            f"{where}cannot write the journal: {error.strerror}; {len(records)} finished trials are in it"
        ) from None
    except KeyboardInterrupt:
        interrupted = True
        if not setting.ladder:
            asked = len(setting.specs)
    finally:
        if journal is not None:
            journal.__exit__(None, None, None)
    records.sort(key=lambda record: record.place)
    run = _assemble(setting, records, asked, climbs, folder, seed, options, started)
    if folder is not None and journal is not None:
        try:
            save(run, folder)
        except OSError as error:
            left = f"its {len(records)} trials are in the journal"
            raise Incomplete(f"{folder}: cannot write the run: {error.strerror}; {left}") from None
        if run.card.complete:
            journal.remove()
    if interrupted:
        raise Interrupted(run)
    return run


def _rounds(setting: _Setting, records: list[Record], climbs: dict[int, Climb]) -> Iterator[list[Spec]]:
    """What to run together: everything at once, or with the ladder a rung at a time for the arms still climbing."""
    order = in_order(spec.case.group for spec in setting.specs)
    everyone = set(range(len(setting.arms)))
    if not setting.ladder:
        setting.begun.update(order)
        yield setting.specs
    else:
        climbing = set(everyone)
        for group in order:
            setting.begun.add(group)
            yield of_groups(setting.specs, group, climbing)
            for arm in sorted(climbing):
                if _climb(setting, records, arm, order).gated_at is not None:
                    climbing.discard(arm)
            if not climbing:
                break
    for arm in everyone:
        climbs[arm] = _climb(setting, records, arm, order)


def _climb(setting: _Setting, records: Sequence[Record], arm: int, order: Sequence[str]) -> Climb:
    """How far an arm came. A group that was begun and has no rows is incomplete, not passed over."""
    rows: dict[str, list[ProductRow]] = {group: [] for group in order}
    for record in records:
        if record.place[1] == arm:
            rows[record.row.group].append(record.row)
    cells = {
        group: cell(group, setting.asked[group], rows[group]) for group in order if group in setting.begun
    }
    return climb(cells, order)


def cell(group: str, asked: int, rows: Iterable[ProductRow]) -> Cell:
    """The counts of one group from its product rows."""
    judged = [row.verdict for row in rows if row.verdict.excluded is None]
    return Cell(
        group,
        asked,
        len(judged),
        sum(bool(verdict.completed) for verdict in judged),
        sum(bool(verdict.hallucinated) for verdict in judged),
    )


def _assemble(
    setting: _Setting,
    records: list[Record],
    asked: int,
    climbs: dict[int, Climb],
    folder: Path | None,
    seed: int,
    options: dict[str, Any],
    started: str,
) -> Run:
    name = folder.name if folder is not None else f"{setting.suite.name}-{setting.stamp}"
    order = in_order(spec.case.group for spec in setting.specs)
    for arm in range(len(setting.arms)):
        climbs.setdefault(arm, _climb(setting, records, arm, order))
    excluded = sum(record.row.verdict.excluded is not None for record in records)
    suite = setting.suite
    card = RunCard(
        format=FORMAT,
        run=name,
        stamp=setting.stamp,
        commit=provenance.commit(project_root()),
        taxonomy=LADDER.name,
        strictness=setting.strictness,
        suites=(SuiteCard(suite.name, suite.digest, suite.version, suite.date, len(setting.placed)),),
        worlds=tuple(
            WorldCard(world.name, world.kind, world.digest)
            for world in {world.digest: world for _, world in setting.placed}.values()
        ),
        arms=tuple(
            ArmCard(arm.driver, arm.model, arm.scaffold, driver.evidence, driver.version, driver.banner)
            for arm, driver in zip(setting.arms, setting.drivers, strict=True)
        ),
        options=options,
        seed=seed,
        evidence=tuple(sorted({driver.evidence for driver in setting.drivers})),
        counts=Counts(asked, len(records) - excluded, excluded, asked - len(records)),
        envelope=tuple(
            Envelope(arm.driver, arm.model, arm.scaffold, c.reached, c.gated_at, c.receipts)
            for arm, c in ((setting.arms[at], climbs[at]) for at in sorted(climbs))
        ),
        versions=provenance.versions(),
        started_at=started,
        finished_at=_now(),
    )
    evidence = {arm: driver.evidence for arm, driver in zip(setting.arms, setting.drivers, strict=True)}
    return Run(
        card=card,
        cases=cases_table(setting.placed),
        **trial_tables(name, records, evidence),
        product=tuple(record.row for record in records),
        path=folder,
    )


def _suite(suite: str | Path | Suite) -> Suite:
    if isinstance(suite, Suite):
        return suite
    if isinstance(suite, str | Path):
        return load_suite(suite)
    raise LabError(f"suite must be a path or a name, not a {type(suite).__name__}")


def _words(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    words = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(word, str) for word in words):
        raise LabError(f"{name} must be text, not {value!r}")
    return words


def _stamp(stamp: str) -> str:
    if not isinstance(stamp, str):
        raise LabError(
            f"stamp must be text, not the {type(stamp).__name__} {stamp!r} (papermill: give it with -r)"
        )
    stamp = stamp or provenance.package_version()
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", stamp) or stamp.startswith((".", "-")):
        raise LabError(
            f"stamp {stamp!r}: only letters, digits, dot, dash and underscore, and no dot or dash first"
        )
    return stamp


def _count(value: int, name: str) -> int:
    if type(value) is not int or value < 1:
        raise LabError(f"{name} must be a whole number from 1, not {value!r}")
    return value


def _whole(value: int, name: str) -> int:
    if type(value) is not int:
        raise LabError(f"{name} must be a whole number, not {value!r}")
    return value


def _limits(limits: Limits | None) -> Limits:
    limits = limits if limits is not None else Limits(wall_s=DEFAULT_WALL_S)
    wall_s, calls = limits.wall_s, limits.tool_calls
    if wall_s is not None and not (type(wall_s) in (int, float) and 0 < wall_s < float("inf")):
        raise LabError(f"the time limit must be more than 0 seconds, not {wall_s!r}")
    if calls is not None and (type(calls) is not int or calls < 0):
        raise LabError(f"the limit of tool calls must be a whole number from 0, not {calls!r}")
    return limits


def _drivers(driver: DriverLike | Sequence[DriverLike]) -> list[Loaded]:
    several: Sequence[DriverLike] = [driver] if isinstance(driver, str) or callable(driver) else driver
    if not several:
        raise LabError("no driver given")
    loaded = [load_driver(one) for one in several]
    names = [one.name for one in loaded]
    for name in names:
        if names.count(name) > 1:
            raise LabError(f"driver {name!r} is given twice")
    return loaded


def _check_rungs(suite: Suite, cases: Sequence[Case]) -> None:
    odd = sorted({case.group for case in cases} - set(RUNGS))
    if odd:
        raise LabError(f"--ladder needs rungs; {suite.name} has the group {odd[0]!r}")


def _check_tools(placed: Iterable[tuple[Case, World]]) -> None:
    for case, world in placed:
        for name in case.task.tools:
            if name not in world.registry.by_name:
                hint = did_you_mean(name, world.registry.names, most=0)
                where = f"{case.file}:{case.line}: " if case.line else ""
                raise LabError(f"{where}{case.id}: world {world.name!r} has no tool {name!r}{hint}")


def _folder(suite: Suite, stamp: str, out: str | Path) -> Path:
    """The run's folder, made exclusively: an existing one is refused unless it is empty."""
    default = project_root() / "data" / "results" / f"{suite.name}-{stamp}-{secrets.token_hex(4)}"
    folder = Path(out) if out else default
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise LabError(f"{out}: exists and is not an empty folder; nothing is written over")
        folder.mkdir(parents=True, exist_ok=bool(out))
        probe = folder / ".probe"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise LabError(f"{folder}: cannot write there: {error.strerror}") from None
    except ValueError as error:
        raise LabError(f"{str(out)!r}: no name of a folder: {error}") from None
    return folder


def _options(group: Any, only: Any, trials: int, ladder: bool, limits: Limits, world: Any) -> dict[str, Any]:
    return {
        "group": list(_words(group, "group")),
        "only": list(_words(only, "only")),
        "trials": trials,
        "ladder": ladder,
        "wall_s": limits.wall_s,
        "tool_calls": limits.tool_calls,
        "world": "" if not world else getattr(world, "name", None) or Path(world).name,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


__all__ = ["DEFAULT_WALL_S", "Interrupted", "cell", "evaluate"]
