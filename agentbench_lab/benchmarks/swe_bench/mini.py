"""Trajectories of mini-swe-agent, with the verdict of SWE-bench from the reports that stand beside them.

A trajectory says what an agent did and what it cost, never whether it solved its task. The verdict is taken from what
lies in the same folder: per-instance report.json files, run reports of the harness or of sb-cli, a results_summary.json.
Without any of them there is nothing to count, and the import is refused. The harness evaluates no empty patch and counts
it as not resolved; so does this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import decode_json, digest_of, exact_usd, read_bytes
from agentbench_lab.benchmarks.swe_bench.messages import calls_of, text_of, tokens_of
from agentbench_lab.benchmarks.swe_bench.reports import (
    RunReport,
    Verdict,
    cost_micros,
    counts_published,
    instance_reports,
    repository,
    some,
    verdicts,
)
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Status

FORM = "mini-swe-agent"
TAIL = ".traj.json"
STOPS = {
    "Submitted": "done",
    "LimitsExceeded": "budget",
    "TimeExceeded": "timeout",
    "RepeatedFormatError": "driver_error",
}
"""The agent's own endings; any other exit status is the class of an exception that ended it: `driver_error`."""


TOLD: tuple[Status, ...] = ("tool_error", "protocol_error")
"""The agent answers whatever it cannot run in one way: another tool, wrong arguments, no JSON are an error of its
protocol, as a message without a command is."""


class _Stats(Struct, frozen=True):
    instance_cost: float | None = None
    api_calls: int | None = None


class _Model(Struct, frozen=True):
    model_name: str | None = None


class _Config(Struct, frozen=True):
    model: _Model = field(default_factory=_Model)


class _Info(Struct, frozen=True):
    model_stats: _Stats = field(default_factory=_Stats)
    exit_status: str | None = None
    submission: str | None = None
    mini_version: str | None = None
    config: _Config = field(default_factory=_Config)


class _File(Struct, frozen=True):
    messages: list[dict[str, Any]]
    info: _Info = field(default_factory=_Info)
    trajectory_format: str = "mini-swe-agent-1"
    instance_id: str = ""


class _Judged(Struct, frozen=True):
    instance_id: str
    resolved: bool


class _Summary(Struct, frozen=True):
    instances: list[_Judged]
    total: int | None = None
    passed: int | None = None


def load_results(path: Path, options: Options) -> Run:
    """The run of one trajectory, or of all below a folder, judged by the reports found there.

    An instance that only a report knows is a trial with nothing but its verdict. Raises LabError where no report is
    found, where two of them disagree, and where an instance has two trajectories.
    """
    root = path if path.is_dir() else _root(path)
    files = sorted(path.rglob(f"*{TAIL}")) if path.is_dir() else [path]
    if not files:
        raise LabError(f"{path}: no *{TAIL} in it")
    found = _verdicts(sorted(root.rglob("*.json")) if path.is_dir() else _beside(path, root))
    trials, cases, notes = {}, {}, []
    where: dict[str, Path] = {}
    for file in files:
        trial, case = _trajectory(file, found.judged, options)
        if trial.case_id in where:
            raise LabError(
                f"{file}: {trial.case_id} is also in {where[trial.case_id]}; import one run at a time"
            )
        where[trial.case_id] = file
        cases[trial.case_id] = case
        if trial.solved is not None:
            trials[trial.case_id] = trial
    unjudged = [instance for instance in where if instance not in trials]
    if not found.files or not (trials.keys() & found.judged.keys()):
        raise LabError(
            f"{path}: a trajectory does not say whether it solved its task, and no report there does: put the run's "
            "report.json files, its sb-cli report or its results_summary.json beside them"
        )
    if unjudged:
        notes.append(
            "Judged by no report, so left out and counted as missing: "
            f"{some(unjudged, f' of {len(where)} trajectories')}."
        )
    arm = _arm(trials.values())
    only = [] if path.is_file() else [instance for instance in found.judged if instance not in where]
    if only:
        notes.append(
            f"Judged by a report and without a trajectory, so that only the verdict is known: {some(only)}."
        )
        for instance in only:
            cases[instance] = SourceCase(group=repository(instance))
            verdict = found.judged[instance]
            trials[instance] = SourceTrial(
                instance,
                FORM,
                verdict.solved,
                model=arm,
                reasons=verdict.reasons,
                extra=verdict.extra,
            )
    waiting = found.waiting - where.keys() if path.is_dir() else set()
    cases.update((instance, SourceCase(group=repository(instance))) for instance in waiting)
    versions = sorted({str(t.extra["mini_version"]) for t in trials.values() if "mini_version" in t.extra})
    return imported_run(
        suite=options.suite or "swe-bench",
        trials=list(trials.values()),
        imported=Imported(
            FORM,
            path.name,
            notes=tuple(notes),
            digest=digest_of([*files, *found.files], root),
            published=tuple(msgspec.structs.replace(one, model=arm) for one in found.published)
            if path.is_dir()
            else (),
            statuses=TOLD,
        ),
        name=options.name,
        cases={instance: cases[instance] for instance in sorted(cases)},
        missing=len(unjudged) + len(waiting),
        options={"mini_version": versions} if versions else {},
    )


def _arm(trials: Any) -> str | None:
    """The model of all trajectories, or None where there are several."""
    models = {trial.model for trial in trials}
    return models.pop() if len(models) == 1 else None


def _root(file: Path) -> Path:
    """Where the reports of a single trajectory lie: its folder, above `<instance>/`, above `trajs/`."""
    folder = file.parent
    if folder.name == file.name.removesuffix(TAIL):
        folder = folder.parent
    return folder.parent if folder.name == "trajs" else folder


def _beside(file: Path, root: Path) -> list[Path]:
    """The JSON files that may judge a single trajectory: those of its folders up to the root, and its own report below
    the root. Other folders there may be anything."""
    folders = [file.parent, *(each for each in file.parent.parents if each.is_relative_to(root))]
    own = [root / logs / file.name.removesuffix(TAIL) / "report.json" for logs in ("", "logs")]
    found = {each for folder in folders for each in folder.glob("*.json")}
    return sorted(found | {each for each in own if each.is_file()})


# ---- verdicts ----------------------------------------------------------------------------------------------------


class _Found:
    """The verdicts below a folder, and the files that they come from."""

    def __init__(self) -> None:
        self.judged: dict[str, Verdict] = {}
        self.source: dict[str, Path] = {}
        self.waiting: set[str] = set()
        self.published: list[Published] = []
        self.files: list[Path] = []

    def add(self, file: Path, verdicts: Mapping[str, Verdict]) -> None:
        """The first one stays, with its tests and reasons; the others have to agree with it."""
        self.files.append(file)
        for instance, verdict in verdicts.items():
            known = self.judged.setdefault(instance, verdict)
            first = self.source.setdefault(instance, file)
            if known.solved != verdict.solved:
                words = {True: "resolved", False: "not resolved"}
                raise LabError(
                    f"{file}: {instance} is {words[verdict.solved]}, in {first} it is {words[known.solved]}"
                )


def _verdicts(files: Sequence[Path]) -> _Found:
    found = _Found()
    for file in files:
        if file.name == "report.json":
            found.add(file, instance_reports(file))
    for file in files:
        if file.name.endswith(TAIL) or file.name in ("report.json", "preds.json"):
            continue
        data = read_bytes(file)
        try:
            keys = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # some other file of the folder
        if "resolved_ids" in keys:
            report = decode_json(data, RunReport, str(file))
            found.add(file, verdicts(report, str(file)))
            found.waiting |= {*report.incomplete_ids, *report.pending_ids}
            found.published += counts_published(report, FORM, None)
        elif file.name == "results_summary.json":
            summary = decode_json(data, _Summary, str(file))
            found.add(file, {one.instance_id: Verdict(one.resolved) for one in summary.instances})
            passed = sum(one.resolved for one in summary.instances)
            for name, said, rows in (
                ("passed", summary.passed, passed),
                ("total", summary.total, len(summary.instances)),
            ):
                if said is not None:
                    found.published.append(Published(FORM, None, name, "trials", said, rows, said == rows))
    return found


# ---- trajectories ------------------------------------------------------------------------------------------------


def _read(file: Path) -> _File:
    """The file in any of its forms: 1, 1.1, or the bare list of messages from before there was a format."""
    data = read_bytes(file)
    if data.lstrip().startswith(b"["):
        return _File(decode_json(data, list[dict[str, Any]], str(file)))
    read: _File = decode_json(data, _File, str(file))
    if not re.fullmatch(r"mini-swe-agent-1(\.\d+)?", read.trajectory_format):
        raise LabError(
            f"{file}: trajectory_format {read.trajectory_format!r} is not mini-swe-agent-1 or -1.1"
        )
    return read


def _trajectory(
    file: Path, judged: Mapping[str, Verdict], options: Options
) -> tuple[SourceTrial, SourceCase]:
    read = _read(file)
    info = read.info
    instance = read.instance_id or file.name.removesuffix(TAIL)
    status = info.exit_status or ""
    verdict = judged.get(instance)
    if verdict is None and status and not info.submission:
        verdict = Verdict(False, ("no patch was submitted",))
    cost, made = info.model_stats.instance_cost, info.model_stats.api_calls
    if made is not None and made < 0:
        raise LabError(f"{file}: $.info.model_stats.api_calls: {made}")
    # no cost for calls that were made is a model without a price, not a free one
    cost = cost or (cost if made == 0 else None)
    spent = cost_micros(cost, f"{file}: $.info.model_stats.instance_cost")
    usage, of_tokens = tokens_of(read.messages, made, str(file))
    extra = {**exact_usd(cost), **(verdict.extra if verdict else {}), **of_tokens}
    if status:
        extra["exit_status"] = status
    if info.mini_version:
        extra["mini_version"] = info.mini_version
    trial = SourceTrial(
        instance,
        FORM,
        None if verdict is None else verdict.solved,
        model=info.config.model.model_name or options.model or None,
        terminated=status == "Submitted" if status else None,
        stop=STOPS.get(status, "driver_error") if status else None,
        steps=made,
        calls=tuple(calls_of(read.messages)),
        usage=msgspec.structs.replace(usage, model_calls=made, cost_micros=spent),
        reasons=verdict.reasons if verdict else (),
        answer=info.submission,
        messages=[
            {key: value for key, value in message.items() if key != "extra"} for message in read.messages
        ],
        extra=extra,
    )
    asked = next((text_of(m) for m in read.messages if m.get("role") == "user"), "")
    return trial, SourceCase(asked, ("bash",), repository(instance))
