"""evaluate: cases by drivers, into a run; and going on with a run that is there."""

from __future__ import annotations

import functools
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab import grading
from agentbench_lab.cases import (
    RUNGS,
    Case,
    Limits,
    Suite,
    project_root,
    select,
)
from agentbench_lab.conversation import DEFAULT_USER, user_version
from agentbench_lab.drivers.context import known_figures
from agentbench_lab.drivers.faults import Misconfigured
from agentbench_lab.errors import LabError, counted, did_you_mean, shown
from agentbench_lab.grading import STRICTNESSES
from agentbench_lab.ladder import Climb, in_order
from agentbench_lab.results import provenance
from agentbench_lab.results.product import Arm
from agentbench_lab.results.run import (
    FORMAT,
    GO_ON,
    ArmCard,
    Counts,
    Run,
    RunCard,
    SuiteCard,
    WorldCard,
    load_run,
    run_name,
    save,
)
from agentbench_lab.results.schema import SCHEMAS
from agentbench_lab.running import journal as journals
from agentbench_lab.running.asked import (
    DEFAULT_WALL_S,
    Caps,
    DriverLike,
    ScaffoldLike,
    arms_asked,
    caps_asked,
    check_durable,
    check_handed_on,
    check_rungs,
    check_sandboxes,
    check_states,
    check_talks,
    check_tools,
    count,
    level_asked,
    limits_asked,
    retries_asked,
    stamp_asked,
    suite_asked,
    user_asked,
    whole,
    words,
    world_name,
)
from agentbench_lab.running.assemble import assembled, climbed, envelope, now
from agentbench_lab.running.checkpoint import FOLDER as CHECKPOINTS
from agentbench_lab.running.engine import Engine, check_executor
from agentbench_lab.running.engine import Run as RunSpecs
from agentbench_lab.running.fitted import begun, fitted, fitted_user, user_arm
from agentbench_lab.running.journal import Header, Journal, Settings, differences, read_journal
from agentbench_lab.running.kit import Kit
from agentbench_lab.running.lock import RunLock
from agentbench_lab.running.output import routed
from agentbench_lab.running.plan import Spec, of_groups, plan, shard_of
from agentbench_lab.running.reread import Key, judged_again, key_of, records_of
from agentbench_lab.running.tables import cases_table
from agentbench_lab.running.tape import RecordFile, ended_without, record_asked
from agentbench_lab.running.trial import Record, Retries, kept_note
from agentbench_lab.values import digest
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.sandbox_levels import Level
from agentbench_lab.worlds.toolbox import World

LEAST_ABSENT = 8
"""Trials of an arm that the other side failed in all their tries, and none ever judged, until a run stops; at least twice
as many as run side by side, since what is under way fails together."""


class Incomplete(LabError):
    """The run could not go on: what was finished is in its journal."""


class _JournalFails(Exception):
    """The disk does not take the journal."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: the run ended early; `run` holds what was finished."""

    def __init__(self, run: Run) -> None:
        super().__init__("interrupted")
        self.run = run


class Plan(Struct, frozen=True):
    """What a run will do before it does it: trials asked, finished already, to be run, and to be judged again."""

    asked: int
    finished: int
    to_run: int
    to_regrade: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"plan: {self.asked} asked, {self.finished} finished, {self.to_run} to run"
        return text + (
            f", {self.to_regrade} to be judged again (the grader has changed)" if self.to_regrade else ""
        )


def evaluate(
    suite: str | Path | Suite | Sequence[Case],
    driver: DriverLike | Sequence[DriverLike],
    *,
    group: str | Iterable[str] = "",
    only: str | Iterable[str] = "",
    scaffolds: ScaffoldLike | Sequence[ScaffoldLike] = ("once",),
    trials: int = 1,
    ladder: bool = False,
    stamp: str = "",
    out: str | Path = "",
    world: str | Path | World = "",
    sandbox: str | Level = "",
    seed: int = 0,
    workers: int = 1,
    executor: str | Executor = "threads",
    strictness: str = "strict",
    limits: Limits | None = None,
    caps: Caps | None = None,
    retries: Retries | int = 3,
    again_excluded: bool = False,
    shard: str = "",
    user: DriverLike = "",
    record: str | Path = "",
    save_run: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run every selected case `trials` times by each driver, grade what they did, and give back the run.

    `suite` is a case file, a bare name under data/cases, a loaded Suite, or cases (`lab.select` gives some). `group` and `only` (globs over ids) are
    lists or comma-separated text; empty is all. With `ladder`, rungs are asked upward and those above the first that
    fails the gate are not asked: each leaves a receipt.

    The run is saved to `out` (default data/results/<suite>-<stamp>-<random>) unless `save_run` is false. When `out`
    holds a run already, that run goes on: what it has finished is kept, also when more trials are asked, and other
    settings are refused with the difference.

    `scaffolds` are ways to put the driver to work (once, linear, fan_out_4, durable:linear, native:MODE, or
    package.module:name; see agentbench_lab.scaffolds): every driver is run under each of them, as an arm of its own.

    `workers` trials run side by side on `executor`: threads, processes, dask, dask:ADDRESS, or any
    concurrent.futures.Executor. `limits` bound one trial (default: 60 s), `caps` the whole run, `retries` the tries
    after an infrastructure error; with `again_excluded` a run that goes on also runs again what its environment had
    excluded. `shard` is `i/n`, the i-th of n parts to be merged. `user` is the driver that plays the simulated users of
    conversations; unless it is named, each says what its case's script says. `progress` is called with
    (finished, asked).

    `sandbox` is the level at which work folders are kept: local, bubblewrap (the default where there is one), or
    container:IMAGE; docs/sandbox.md says what each holds.

    `record` is a file to which every call of a driver is added, from which the driver `replay:FILE` plays them back.

    Raises LabError for what cannot be run, before anything is run or written. What a driver does wrong never raises:
    it is judged.
    """
    return prepare(
        suite,
        driver,
        group=group,
        only=only,
        scaffolds=scaffolds,
        trials=trials,
        ladder=ladder,
        stamp=stamp,
        out=out,
        world=world,
        sandbox=sandbox,
        seed=seed,
        workers=workers,
        executor=executor,
        strictness=strictness,
        limits=limits,
        caps=caps,
        retries=retries,
        again_excluded=again_excluded,
        shard=shard,
        user=user,
        record=record,
        save_run=save_run,
    ).run(progress)


def prepare(
    suite: str | Path | Suite | Sequence[Case],
    driver: DriverLike | Sequence[DriverLike],
    *,
    group: str | Iterable[str] = "",
    only: str | Iterable[str] = "",
    scaffolds: ScaffoldLike | Sequence[ScaffoldLike] = ("once",),
    trials: int = 1,
    ladder: bool = False,
    stamp: str = "",
    out: str | Path = "",
    world: str | Path | World = "",
    sandbox: str | Level = "",
    seed: int = 0,
    workers: int = 1,
    executor: str | Executor = "threads",
    strictness: str = "strict",
    limits: Limits | None = None,
    caps: Caps | None = None,
    retries: Retries | int = 3,
    again_excluded: bool = False,
    shard: str = "",
    user: DriverLike = "",
    record: str | Path = "",
    save_run: bool = True,
) -> Prepared:
    """The same, checked and planned but not begun: `.plan` says what it would do, `.run()` does it."""
    suite = suite_asked(suite)
    cases = select(suite.cases, groups=words(group, "group"), only=words(only, "only"))
    stamp = stamp_asked(stamp)
    trials, workers, seed = count(trials, "trials"), count(workers, "workers"), whole(seed, "seed")
    if strictness not in STRICTNESSES:
        raise LabError(f"no strictness {strictness!r}{did_you_mean(strictness, STRICTNESSES)}")
    arms, drivers = arms_asked(driver, scaffolds)
    limits = limits_asked(limits)
    played = user_asked(user, suite, cases)
    executor = check_executor(executor)
    if strictness == "original" and any(case.taxonomy != "ladder" for case in cases):
        raise LabError(f"strictness original is the ladder's; {suite.name} is judged by its outcomes")
    if ladder:
        check_rungs(suite, cases)
        if shard:
            raise LabError(
                "shard and ladder exclude each other: a rung is asked only when the one below has passed"
            )
    worlds = Worlds(suite, world or None, sandbox=level_asked(sandbox))
    placed = [(case, worlds.of(case)) for case in cases]
    if world and all(case.world is not None for case in cases):
        raise LabError(f"world {world_name(world)!r} serves no case: each case of {suite.name} names its own")
    check_tools(placed)
    check_states(placed)
    level = check_sandboxes(placed)
    check_handed_on(placed, drivers if played is None else [*drivers, played])
    specs = plan(cases, arms, trials, seed)
    if shard:
        specs = shard_of(specs, shard)
    check_talks(suite, cases, arms)
    recording = record_asked(record, executor)
    if any(loaded.durable for loaded in drivers):
        check_durable(placed)
    caps = caps_asked(caps)
    settings = Settings(
        suite.name,
        stamp,
        seed,
        strictness,
        msgspec.structs.asdict(limits),
        {str(arm): loaded.version for arm, loaded in zip(arms, drivers, strict=True)},
        {case.id: (case.digest, of_case.digest) for case, of_case in placed},
        ladder,
        shard,
        user_key(played.name, user_version(played)) if played is not None else "",
    )
    kit = Kit(
        fitted(drivers, arms, specs, ladder=ladder, record=recording),
        arms,
        {case.id: of_case for case, of_case in placed},
        limits=limits,
        stamp=stamp,
        strictness=strictness,
        retries=retries_asked(retries),
        user=None if played is None else fitted_user(played, specs, recording),
        run=digest(msgspec.to_builtins(settings)),
    )
    options = {
        "group": list(words(group, "group")),
        "only": list(words(only, "only")),
        "trials": trials,
        "ladder": ladder,
        "shard": shard,
        **settings.limits,
        "world": world_name(world),
        **({"sandbox": level} if level else {}),
        **({"user": played.name, "user_version": user_version(played)} if played is not None else {}),
    }
    modes = sorted({case.expect.mode for case in cases})
    if modes != ["strict"]:
        options["mode"] = ", ".join(modes)
    folder = None
    if save_run:
        name = f"{suite.name}-{stamp}-{secrets.token_hex(4)}"
        # absolute, since a driver may change the working folder under us
        folder = Path(out).absolute() if out else project_root() / "data" / "results" / name
    return Prepared(
        suite,
        placed,
        kit,
        specs,
        settings,
        options,
        folder,
        workers,
        executor,
        caps,
        again_excluded,
        fresh=not out,
        recording=recording,
    )


class _Earlier(Struct):
    """What a run's folder holds already."""

    records: dict[Key, Record]
    regraded: int
    started_at: str
    commit: str
    finished: bool
    notes: tuple[str, ...]
    source: str | None


class Prepared:
    """A run that is planned. Everything that could be wrong with what was asked has been found."""

    def __init__(
        self,
        suite: Suite,
        placed: list[tuple[Case, World]],
        kit: Kit,
        specs: list[Spec],
        settings: Settings,
        options: dict[str, Any],
        folder: Path | None,
        workers: int,
        executor: str | Executor,
        caps: Caps,
        again_excluded: bool,
        *,
        fresh: bool,
        recording: RecordFile | None = None,
    ) -> None:
        self.suite, self.placed, self.kit, self.specs = suite, placed, kit, specs
        self.settings, self.options, self.folder = settings, options, folder
        self._workers, self._executor, self._caps = workers, executor, caps
        self._again_excluded = again_excluded
        self._taxonomy = placed[0][0].taxonomy if placed else "ladder"
        self._order = in_order(spec.case.group for spec in specs)
        self._here = ""
        self._fresh = fresh
        self._recording = recording
        self._earlier = self._read_earlier() if folder is not None and not fresh else None
        done = dict(self._earlier.records) if self._earlier else {}
        to_run = self._to_run(done)
        notes = self._earlier.notes if self._earlier else ()
        above = len(specs) - len(done) - to_run
        if settings.ladder and above:
            notes = (*notes, f"up to {above} more are run when the gate opens the rungs above")
        self.plan = Plan(len(specs), len(done), to_run, self._earlier.regraded if self._earlier else 0, notes)

    # ---- what is there already

    def _read_earlier(self) -> _Earlier | None:
        folder = self.folder
        assert folder is not None
        try:
            if not folder.exists() or (folder.is_dir() and all(map(_is_ours, folder.iterdir()))):
                return None
            if not folder.is_dir():
                raise LabError(f"{shown(folder)}: exists and is not a folder; nothing is written over")
        except OSError as error:
            raise LabError(f"{shown(folder)}: cannot read it: {error.strerror}") from None
        except ValueError as error:
            raise LabError(f"{str(folder)!r}: no name of a folder: {error}") from None
        if (folder / "journal.jsonl").exists():
            return self._from_journal(folder)
        if (folder / "card.json").exists():
            return self._from_run(folder)
        raise LabError(f"{shown(folder)}: exists, holds no run and is not empty; nothing is written over")

    def _from_journal(self, folder: Path) -> _Earlier | None:
        try:
            found = read_journal(folder / "journal.jsonl")
        except OSError as error:
            raise LabError(f"{shown(folder)}: cannot read its journal: {error.strerror}") from None
        if found is None:
            # not even a header: the run beside it, if there is one, is still the truth
            return self._from_run(folder) if (folder / "card.json").exists() else None
        self._refuse_differences(found.header.settings, folder)
        return self._earlier_of(
            found.records,
            found.header.grader,
            found.header.started_at,
            found.header.commit,
            False,
            found.notes,
            found.header.source,
        )

    def _from_run(self, folder: Path) -> _Earlier:
        run = load_run(folder)
        self._refuse_differences(settings_of(run), folder)
        return self._earlier_of(
            records_of(run),
            run.card.grader,
            run.card.started_at,
            run.card.commit,
            run.card.complete,
            (),
            run.card.source,
        )

    def _refuse_differences(self, old: Settings, folder: Path) -> None:
        found = differences(old, self.settings)
        if found:
            raise LabError(
                "\n".join(
                    [f"{shown(folder)}: holds a run with other settings; give another --out", *found[:20]]
                )
            )

    def _earlier_of(
        self,
        records: Sequence[Record],
        grader: str,
        started_at: str,
        commit: str,
        finished: bool,
        notes: tuple[str, ...],
        source: str | None,
    ) -> _Earlier:
        places = {self._key(spec): spec.place for spec in self.specs}
        found: dict[Key, Record] = {}
        for record in records:
            key = key_of(record.row)
            if key not in places:
                raise LabError(
                    f"{self._where()}holds trial {record.row.trial} of {record.row.case_id!r}, which is not asked "
                    f"now; ask at least as many trials as it has"
                )
            if record.row.outcomes != self._taxonomy:
                raise LabError(
                    f"{self._where()}is judged by the outcomes {record.row.outcomes}, and its suite is now one of "
                    f"{self._taxonomy}; give another --out"
                )
            verdict = record.row.verdict
            if self._again_excluded and verdict.excluded is not None and verdict.owner == "environment":
                continue
            if key in found:
                notes = (
                    *notes,
                    f"trial {record.row.trial} of {record.row.case_id!r} stands twice; the first counts",
                )
                continue
            place = places[key]
            found[key] = record if record.place == place else msgspec.structs.replace(record, place=place)
        regraded = 0
        if grader != grading.version():
            found = {key: judged_again(record) for key, record in found.items()}
            regraded = len(found)
        return _Earlier(found, regraded, started_at, commit, finished, notes, source)

    def _where(self) -> str:
        return "" if self.folder is None else f"{shown(self.folder)}: "

    def _key(self, spec: Spec) -> Key:
        arm = self.kit.arms[spec.arm]
        return self.suite.name, spec.case.id, arm.driver, arm.model, arm.scaffold, spec.trial

    # ---- running

    def run(self, progress: Callable[[int, int], None] | None = None) -> Run:
        """Run what is to be run, and save it all."""
        # before any driver runs, who could change the working folder, or the tree
        self._here = provenance.standing(project_root())
        if self.folder is None:
            return self._run(progress, None)
        # a name that was drawn is made by nobody else; one that was given is the lock's to give away
        make_folder(self.folder, exist_ok=not self._fresh)
        with RunLock(self.folder):
            # what is there may have grown between planning and now: the lock's owner reads it again
            self._earlier = self._read_earlier()
            for file in self.folder.iterdir():
                if _is_ours(file) and file.name not in ("run.lock", CHECKPOINTS):
                    file.unlink(missing_ok=True)
            earlier = self._earlier
            whole = earlier is not None and earlier.finished and not earlier.regraded
            if earlier is not None and whole and not self._to_run(dict(earlier.records)):
                return load_run(self.folder)
            return self._run(progress, self._journal())

    def _to_run(self, done: dict[Key, Record]) -> int:
        """How many trials are to be run beyond what is there; with the ladder, up to the rung that is asked next."""
        rounds = self._rounds(done, set())
        return sum(self._key(spec) not in done for specs in rounds for spec in specs)

    def _cases_left(self, done: Mapping[Key, Record]) -> dict[int, set[int]]:
        """The places of the cases of which an arm has trials that are not finished."""
        left: dict[int, set[int]] = {}
        for spec in self.specs:
            if self._key(spec) not in done:
                left.setdefault(spec.arm, set()).add(spec.place[0])
        return left

    def _journal(self) -> Journal:
        assert self.folder is not None
        path = self.folder / "journal.jsonl"
        earlier = self._earlier
        header = Header(
            journals.FORMAT,
            self.settings,
            grading.version(),
            self._commit(),
            earlier.started_at if earlier else now(),
            earlier.source if earlier else None,
        )
        try:
            opened = Journal.begin(path, header, earlier.records.values() if earlier else ())
            # from here on the journal holds all, and an old card would speak of less than there is
            (self.folder / "card.json").unlink(missing_ok=True)
        except OSError as error:
            raise LabError(f"{shown(self.folder)}: cannot write there: {error.strerror}") from None
        return opened

    def _run(self, progress: Callable[[int, int], None] | None, journal: Journal | None) -> Run:
        earlier = self._earlier
        started_at = earlier.started_at if earlier else now()
        began = time.monotonic()
        done: dict[Key, Record] = dict(earlier.records) if earlier else {}
        spent = _Spent(self._caps, done.values(), began)
        finished = earlier.records if earlier else {}
        absent = _Absent(
            self.kit, self._workers, finished.values(), functools.cache(lambda: self._cases_left(finished))
        )
        begun: set[str] = set()
        asked = 0
        interrupted = False
        wrong: Misconfigured | None = None

        def ended(record: Record) -> None:
            if self._recording is not None:
                self._record_end(self._recording, record)
            if journal is not None:
                try:
                    journal.add(record)
                except OSError as error:
                    raise _JournalFails(error) from None
            self.kit.forget(record)
            done[key_of(record.row)] = record
            spent.add(record)
            absent.add(record)
            if progress is not None:
                progress(len(done), asked)

        def stopped() -> str:
            return absent.why or spent.reached()

        def rounds(run_specs: RunSpecs) -> None:
            nonlocal asked
            for specs in self._rounds(done, begun):
                asked += len(specs)
                left = [spec for spec in specs if self._key(spec) not in done]
                if left and not stopped():
                    run_specs(left, ended, lambda: bool(stopped()))

        if self._recording is not None:
            self._begin_recording(self._recording, now())
        try:
            with routed(), self._checkpoints():
                Engine(self.kit, self._executor, self._workers).run(rounds)
        except _JournalFails as fails:
            raise Incomplete(
                f"{self._where()}cannot write the journal: {fails.error.strerror}; "
                f"{counted(len(done), 'finished trial')} {'is' if len(done) == 1 else 'are'} in it"
            ) from None
        except KeyboardInterrupt:
            interrupted = True
        except Misconfigured as error:
            if journal is None or not done:
                raise
            wrong = error
        finally:
            self.kit.close()
            if journal is not None:
                journal.close()
            if self._recording is not None:
                self._recording.close()
        run = self._assemble(list(done.values()), begun, started_at)
        why = kept_note(str(wrong)) if wrong else stopped()
        if not run.card.complete and not interrupted and why:
            run = msgspec.structs.replace(run, card=msgspec.structs.replace(run.card, stopped=why))
        if self.folder is not None and journal is not None:
            run = self._save(run, journal)
        if interrupted:
            raise Interrupted(run)
        if wrong is not None:
            kept = f"{counted(len(done), 'finished trial')} {'is' if len(done) == 1 else 'are'} kept"
            raise Misconfigured(f"{why}; {kept} in {shown(run.path or '')}; {GO_ON}") from None
        return run

    def _begin_recording(self, recording: RecordFile, at: str) -> None:
        kit, suite = self.kit, self.suite
        taped = [kit.user] if kit.user is not None and kit.user.name != DEFAULT_USER else []
        line = begun(
            [*kit.drivers, *taped],
            [*kit.arms, *map(user_arm, taped)],
            started_at=at,
            stamp=kit.stamp,
            suite=suite.name,
            suite_digest=suite.digest,
            commit=self._commit(),
        )
        try:
            recording.add(line)
        except OSError as error:
            raise LabError(f"{shown(recording.path)}: cannot record there: {error.strerror}") from None

    def _record_end(self, recording: RecordFile, record: Record) -> None:
        try:
            ended_without(recording, self.placed[record.place[0]][0], record)
        except OSError as error:
            raise Incomplete(
                f"{shown(recording.path)}: cannot write the recording: {error.strerror}"
            ) from None

    @contextmanager
    def _checkpoints(self) -> Iterator[None]:
        """A folder for what durable trials have finished: in the run's own, where one that goes on finds it."""
        if not any(driver.durable for driver in self.kit.drivers):
            yield
        elif self.folder is None:
            with tempfile.TemporaryDirectory(prefix="agentbench-", ignore_cleanup_errors=True) as folder:
                self.kit.checkpoints = Path(folder)
                yield
        else:
            self.kit.checkpoints = self.folder / CHECKPOINTS
            self.kit.checkpoints.mkdir(exist_ok=True)
            try:
                yield
            finally:
                # only trials that are not over have left anything in it
                with suppress(OSError):
                    self.kit.checkpoints.rmdir()

    def _save(self, run: Run, journal: Journal) -> Run:
        assert self.folder is not None
        run = msgspec.structs.replace(run, path=self.folder)
        try:
            save(run, self.folder)
        except OSError as error:
            left = f"its {counted(run.trials.num_rows, 'trial')} {'is' if run.trials.num_rows == 1 else 'are'} in the journal"
            raise Incomplete(
                f"{shown(self.folder)}: cannot write the run: {error.strerror}; {left}"
            ) from None
        if run.card.complete:
            journal.remove()
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        return run

    def _commit(self) -> str:
        """Where the code stands; a run that was begun elsewhere says both, and is comparable to neither."""
        here = self._here
        if self._earlier is None or self._earlier.commit == here:
            return here
        before = self._earlier.commit
        return before if here in before.split(", ") else f"{before}, {here}"

    def _rounds(self, done: dict[Key, Record], begun: set[str]) -> Iterator[list[Spec]]:
        """What to run together: all at once, or with the ladder a rung at a time for the arms still climbing."""
        if not self.settings.ladder:
            begun.update(self._order)
            yield self.specs
            return
        climbing = set(range(len(self.kit.arms)))
        for group in self._order:
            begun.add(group)
            yield of_groups(self.specs, group, climbing)
            for arm in sorted(climbing):
                if self._climb(list(done.values()), arm, begun).gated_at is not None:
                    climbing.discard(arm)
            if not climbing:
                return

    def _climb(self, records: Sequence[Record], arm: int, begun: set[str]) -> Climb:
        rows = [record.row for record in records if record.place[1] == arm]
        return climbed(self._asked(arm), begun, rows, suite=self._suite_groups(), ladder=self.settings.ladder)

    def _suite_groups(self) -> set[str]:
        """The groups of the whole suite; of a part of one, every rung could be below."""
        return {case.group for case in self.suite.cases} | (set(RUNGS) if self.suite.part else set())

    def _begun(self, arm: int, records: Sequence[Record], begun: set[str]) -> dict[str, int]:
        """The trials of the groups that this arm was really asked: with the ladder, up to the rung that stopped it."""
        asked = self._asked(arm)
        if not self.settings.ladder:
            return asked
        has = {record.row.group for record in records if record.place[1] == arm}
        gated_at = self._climb(records, arm, begun).gated_at
        return {
            group: asked[group]
            for group in in_order(asked)
            if group in has or (group in begun and (gated_at or "").startswith(f"{group} "))
        }

    def _asked(self, arm: int) -> dict[str, int]:
        """How many trials of each group the plan has for an arm."""
        asked: dict[str, int] = {}
        for spec in self.specs:
            if spec.arm == arm:
                asked[spec.case.group] = asked.get(spec.case.group, 0) + 1
        return asked

    def _assemble(self, records: list[Record], begun: set[str], started_at: str) -> Run:
        suite, kit = self.suite, self.kit
        of_arms = [self._begun(arm, records, begun) for arm in range(len(kit.arms))]
        card = RunCard(
            format=FORMAT,
            run=run_name(self.folder) if self.folder is not None else f"{suite.name}-{kit.stamp}",
            stamp=kit.stamp,
            commit=self._commit(),
            taxonomy=self._taxonomy,
            strictness=kit.strictness,
            grader=grading.version(),
            suites=(
                SuiteCard(
                    suite.name,
                    suite.digest,
                    suite.version,
                    suite.date,
                    len(self.placed),
                    None if suite.part else len(suite.cases),
                    tuple(in_order(self._suite_groups())),
                ),
            ),
            worlds=tuple(
                WorldCard(world.name, world.kind, world.digest)
                for world in {world.digest: world for _, world in self.placed}.values()
            ),
            arms=tuple(
                ArmCard(arm.driver, arm.model, arm.scaffold, driver.evidence, driver.version, driver.banner)
                for arm, driver in zip(kit.arms, kit.drivers, strict=True)
            ),
            options=self.options,
            seed=self.settings.seed,
            evidence=tuple(sorted({driver.evidence for driver in kit.drivers})),
            counts=Counts(0, 0, 0, 0),
            envelope=envelope(
                kit.arms,
                [self._climb(records, arm, begun) for arm in range(len(kit.arms))],
                of_arms,
            ),
            versions=provenance.versions(),
            started_at=started_at,
            finished_at=now(),
            source=self._earlier.source if self._earlier else None,
        )
        # what was asked is what was begun for each arm, and what an arm was asked before
        return assembled(card, cases_table(self.placed), records, sum(sum(of.values()) for of in of_arms))


class _Spent:
    """What a run has used, against its caps. Figures nobody knows count nothing."""

    def __init__(self, caps: Caps, records: Iterable[Record], began: float) -> None:
        self._caps, self._began = caps, began
        self._tokens = self._cost = 0
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        used = [attempt.usage for attempt in record.attempts]
        for usage in [*used, *([record.talk.user.usage] if record.talk is not None else [])]:
            _, tokens, cost = known_figures(usage)
            self._tokens += tokens
            self._cost += cost

    def reached(self) -> str:
        """The cap that is used up, in words; empty while there is none."""
        caps = self._caps
        for what, used, most in (
            ("tokens", self._tokens, caps.tokens),
            ("micros of a dollar", self._cost, caps.cost_micros),
            ("seconds", round(time.monotonic() - self._began, 1), caps.wall_s),
        ):
            if most is not None and used >= most:
                return f"the cap of {most:,} {what} is reached: {used:,} used"
        return ""


class _Absent:
    """Whether the other side of some arm was never there; `why` says so in words.

    An arm that ever had a judged trial is there: an outage afterwards stops nothing. A single case may be what breaks an
    endpoint, so two must have failed, or all that the arm has left. A request that is turned down, and one that nobody
    tried again, say nothing of who is there. A replay asks nobody: what was not recorded is excluded, however much it is.

    `finished` are the records that were read back; `left` gives the cases of each arm that are to be run, by
    their places; it is asked where a run may have to stop, and not before.
    """

    def __init__(
        self, kit: Kit, workers: int, finished: Iterable[Record], left: Callable[[], Mapping[int, set[int]]]
    ) -> None:
        self._kit, self._left = kit, left
        self._least = max(LEAST_ABSENT, 2 * workers)
        self._there = {arm for arm, driver in enumerate(kit.drivers) if driver.evidence == "replayed"}
        self._failed: dict[int, Counter[int]] = {}
        self.why = ""
        for record in finished:
            if record.row.verdict.excluded is None:
                self._there.add(record.place[1])

    def add(self, record: Record) -> None:
        case, arm, _ = record.place
        excluded = record.row.verdict.excluded
        if excluded is None:
            self._there.add(arm)
        if arm in self._there or not self._failed_to_the_last(record):
            return
        failed = self._failed.setdefault(arm, Counter())
        failed[case] += 1
        trials = failed.total()
        if trials >= self._least and len(failed) >= min(2, len(self._left()[arm])) and not self.why:
            self.why = (
                f"{trials} trials of {self._kit.arms[arm]} were excluded and none was judged before, the last by "
                f"{excluded}; once that is put right the run goes on with its --out, and with --again-excluded runs "
                "these again"
            )

    def _failed_to_the_last(self, record: Record) -> bool:
        """Whether the other side failed every try that a trial has, and it has several."""
        times = self._kit.retries.times
        ends = [attempt.end for attempt in record.attempts[-times - 1 :]]
        return times > 0 and ends == ["infrastructure_error"] * (times + 1)


def user_key(name: str, version: str) -> str:
    """How a run key speaks of who plays the simulated users."""
    return f"{name} {version}"


def settings_of(run: Run) -> Settings:
    """The run key of a finished run, from its card and cases."""
    card, options = run.card, run.card.options
    cases = run.cases.select(["case_id", "digest", "world_digest"]).to_pylist()
    return Settings(
        card.suites[0].name,
        card.stamp,
        card.seed,
        card.strictness,
        {name: options.get(name) for name in Limits.__struct_fields__},
        {str(Arm(arm.driver, arm.model, arm.scaffold)): arm.version for arm in card.arms},
        {row["case_id"]: (row["digest"], row["world_digest"]) for row in cases},
        bool(options.get("ladder")),
        str(options.get("shard") or ""),
        user_key(str(options["user"]), str(options.get("user_version", ""))) if options.get("user") else "",
    )


def _is_ours(file: Path) -> bool:
    """Whether a file is the lock, or half a file that a killed writer left: nothing that anybody would miss."""
    whole = (
        "journal.jsonl",
        "card.json",
        "product.jsonl",
        "bench.json",
        *(f"{grain}.parquet" for grain in SCHEMAS),
    )
    return file.name in ("run.lock", ".probe", CHECKPOINTS) or file.name.startswith(
        tuple(f".{name}." for name in whole)
    )


def make_folder(folder: Path, *, exist_ok: bool) -> None:
    """The run's folder, and whether it can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
        probe = folder / ".probe"
        probe.touch(exist_ok=True)
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"{shown(folder)}: cannot write there: {error.strerror}") from None
    except ValueError as error:
        raise LabError(f"{str(folder)!r}: no name of a folder: {error}") from None


__all__ = [
    "DEFAULT_WALL_S",
    "Caps",
    "Incomplete",
    "Interrupted",
    "Plan",
    "Prepared",
    "evaluate",
    "make_folder",
    "prepare",
    "settings_of",
]
