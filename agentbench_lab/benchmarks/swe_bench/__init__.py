"""SWE-bench: the site's leaderboards, run reports of the harness and of sb-cli, and folders of per-instance reports.

What counts is the harness's own rule (swebench, `harness/reporting.py`): a share is over `total_instances`, so an empty
patch, an error and an infrastructure failure are not resolved, and nothing is excluded. What was never submitted, or is
still pending, is missing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import (
    agrees,
    decimals,
    decode_json,
    digest_of,
    exact_usd,
    read_bytes,
)
from agentbench_lab.benchmarks.swe_bench.reports import (
    RunReport,
    case_of,
    cost_micros,
    counts_published,
    instance_reports,
    some,
    verdicts,
)
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.imported import SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Usage

FORM = "swe-bench"
MINI = "mini-swe-agent"
"""The harness of every row of the bash-only leaderboard."""

EXPECTED = "leaderboards with per_instance_details, a run report with resolved_ids, or a per-instance report with resolved"


def load_results(path: Path, options: Options) -> Run:
    """The run of a leaderboard file, a run report, one per-instance report, or a folder of per-instance reports.

    Raises LabError for anything else, and for a file whose lists contradict each other.
    """
    if path.is_dir():
        files = sorted(path.rglob("report.json"))
        if not files:
            raise LabError(f"{path}: no report.json in it; name a leaderboard or a run report by its file")
        return _reports(path, files, options)
    data = read_bytes(path)
    keys = decode_json(data, dict[str, msgspec.Raw], str(path))
    if "leaderboards" in keys:
        return _leaderboard(path, decode_json(data, _Leaderboards, str(path)), options)
    if "resolved_ids" in keys:
        return _run_report(path, decode_json(data, RunReport, str(path)), options)
    if "resolved" in keys or path.name == "report.json":
        return _reports(path, [path], options)
    raise LabError(f"{path}: neither {EXPECTED}")


# ---- leaderboards ------------------------------------------------------------------------------------------------


class _Detail(Struct, frozen=True, gc=False):
    resolved: bool
    cost: float | None = None
    api_calls: int | None = None


class _Entry(Struct, frozen=True):
    name: str
    resolved: float
    folder: str = ""
    date: str | None = None
    cost: float | None = None
    instance_cost: float | None = None
    instance_calls: float | None = None
    tags: list[str] = []
    per_instance_details: dict[str, _Detail] | None = None


class _Board(Struct, frozen=True):
    name: str
    results: list[_Entry]


class _Leaderboards(Struct, frozen=True):
    leaderboards: list[_Board]


def _leaderboard(path: Path, file: _Leaderboards, options: Options) -> Run:
    board = _board(path, file.leaderboards, options.suite)
    detailed = [entry for entry in board.results if entry.per_instance_details]
    names = _names(path, detailed)
    trials: list[SourceTrial] = []
    published: list[Published] = []
    for entry, name in zip(detailed, names, strict=True):
        driver, model = _arm(board.name, name, entry.tags)
        where = f"{path}: {board.name}: {name}"
        mine = list(_detail_trials(entry, driver, model, where))
        trials += mine
        published += _published(entry, driver, model, mine)
    notes = []
    bare = [entry.name for entry in board.results if not entry.per_instance_details]
    if bare:
        notes.append(
            f"Without details, and so left out: {len(bare)} of {len(board.results)} entries ({', '.join(bare)})."
        )
    others = [other.name for other in file.leaderboards if other is not board]
    if others:
        notes.append(f"Other leaderboards of the file are left out: {', '.join(others)}.")
    asked = {instance for entry in detailed for instance in entry.per_instance_details or ()}
    for entry, name in zip(detailed, names, strict=True):
        short = len(asked) - len(entry.per_instance_details or ())
        if short:
            notes.append(f"{name}: {short} of {len(asked)} instances have no row.")
    return imported_run(
        suite=options.suite if options.suite not in _aliases(board.name) else _suite(board.name),
        trials=trials,
        imported=Imported(
            FORM,
            path.name,
            notes=tuple(notes),
            digest=digest_of([path], path),
            published=tuple(published),
        ),
        name=options.name,
        cases={instance: case_of(instance) for instance in sorted(asked)},
        missing=len(asked) * len(detailed) - len(trials),
        options={
            "leaderboard": board.name,
            "entries": {
                name: {"folder": entry.folder, "date": entry.date}
                for entry, name in zip(detailed, names, strict=True)
            },
        },
    )


def _suite(board: str) -> str:
    return f"{FORM}-{board.lower()}"


def _aliases(board: str) -> tuple[str, ...]:
    return "", board, board.lower(), _suite(board)


def _board(path: Path, boards: Sequence[_Board], suite: str) -> _Board:
    """The one with details; `suite` says which when several have some."""
    detailed = [b for b in boards if any(entry.per_instance_details for entry in b.results)]
    if not detailed:
        raise LabError(f"{path}: no entry has per_instance_details, so there are no trials in it")
    named = [board for board in detailed if suite and suite in _aliases(board.name)]
    if len(named or detailed) > 1:
        names = ", ".join(board.name for board in detailed)
        tail = did_you_mean(suite, (board.name for board in detailed)) if suite else ""
        raise LabError(
            f"{path}: several leaderboards have details ({names}); name one of them as the suite{tail}"
        )
    return (named or detailed)[0]


def _names(path: Path, entries: Sequence[_Entry]) -> list[str]:
    """Each entry's name; with its folder where two have the same name."""
    found = Counter(entry.name for entry in entries)
    names = [entry.name if found[entry.name] == 1 else f"{entry.name} ({entry.folder})" for entry in entries]
    for name, count in Counter(names).items():
        if count > 1:
            raise LabError(f"{path}: {count} entries are called {name!r}")
    return names


def _arm(board: str, name: str, tags: Sequence[str]) -> tuple[str, str | None]:
    """On the bash-only board one harness runs many models; elsewhere an entry is a harness, and a tag names its model."""
    if board.lower() == "bash-only":
        return MINI, name
    models = [tag.removeprefix("Model:").strip() for tag in tags if tag.startswith("Model:")]
    return name, models[0] if len(models) == 1 else None


def _detail_trials(entry: _Entry, driver: str, model: str | None, where: str) -> Iterator[SourceTrial]:
    for instance, detail in (entry.per_instance_details or {}).items():
        if detail.api_calls is not None and not 0 <= detail.api_calls < 2**63:
            raise LabError(f"{where}: {instance}: api_calls is no number of model calls")
        # no cost is a model without a price, not a free one
        cost = detail.cost or (None if detail.api_calls != 0 else detail.cost)
        yield SourceTrial(
            instance,
            driver,
            detail.resolved,
            model=model,
            usage=Usage(model_calls=detail.api_calls, cost_micros=cost_micros(cost, f"{where}: {instance}")),
            extra=exact_usd(cost),
        )


def _published(
    entry: _Entry, driver: str, model: str | None, trials: Sequence[SourceTrial]
) -> Iterator[Published]:
    solved, n = sum(trial.solved is True for trial in trials), len(trials)
    follows = agrees(entry.resolved, 100 * solved / n, decimals(entry.resolved))
    yield Published(
        driver,
        model,
        "resolved",
        "share",
        entry.resolved / 100,
        solved / n,
        follows,
        "" if follows else _why(entry.resolved, solved, n),
    )
    costs = [cost for trial in trials if (cost := _dollars(trial)) is not None]
    calls = [trial.usage.model_calls for trial in trials if trial.usage.model_calls is not None]
    spent = math.fsum(costs) if len(costs) == n else None
    made = sum(calls) if len(calls) == n else None
    for metric, unit, figure, given in (
        ("cost", "usd", entry.cost, spent),
        ("cost per instance", "usd", entry.instance_cost, None if spent is None else spent / n),
        ("calls per instance", "calls", entry.instance_calls, None if made is None else made / n),
    ):
        if figure is not None:
            agree = given is not None and agrees(figure, given, decimals(figure))
            yield Published(driver, model, metric, unit, figure, given, agree)


def _dollars(trial: SourceTrial) -> float | None:
    """The trial's cost to its last digit."""
    micros = trial.usage.cost_micros
    exact: float | None = trial.extra.get("cost_usd")
    return exact if exact is not None or micros is None else micros / 1e6


def _why(percent: float, solved: int, n: int) -> str:
    """What would give the published percentage: another denominator close by, or another number of solved ones."""
    digits = decimals(percent)
    for other in (n - 1, n + 1, n - 2, n + 2):
        if other >= solved and other > 0 and agrees(percent, 100 * solved / other, digits):
            return f"{solved} of {other} would give it; there are {n} rows"
    told = f"the rows have {solved} of {n} resolved"
    if not 0 <= percent <= 100:
        return f"{told}; {percent} % is no share"
    return f"{told}; {percent} % of {n} would be {round(percent * n / 100)}"


# ---- run reports -------------------------------------------------------------------------------------------------


def _run_report(path: Path, report: RunReport, options: Options) -> Run:
    found = verdicts(report, str(path))
    stem = path.name.removesuffix(".json")
    # sb-cli writes <suite>__<split>__<submission>.json, the harness <submission>.<run id>.json
    parts = stem.split("__", 2)
    suite, submission = (parts[0], parts[2]) if len(parts) == 3 and stem.startswith(FORM) else (FORM, stem)
    driver = options.driver or submission or "unknown"
    model = options.model or None
    listed = {*found, *report.incomplete_ids, *report.pending_ids}
    notes = []
    stray = [instance for instance in report.submitted_ids if instance not in listed]
    if stray:
        notes.append(f"Submitted, and in no list of outcomes: {some(stray)}.")
    pending = list(dict.fromkeys(report.pending_ids))
    if pending:
        notes.append(f"Submitted and still pending, so missing: {some(pending)}.")
    doubtful = [name for name in dict.fromkeys(report.infra_failure_ids) if not found[name].solved]
    if doubtful:
        notes.append(
            f"Not resolved because the evaluation's infrastructure failed, as the source counts: {some(doubtful)}."
        )
    return imported_run(
        suite=options.suite or suite.replace("_", "-"),
        trials=[
            SourceTrial(instance, driver, verdict.solved, model=model, reasons=verdict.reasons)
            for instance, verdict in found.items()
        ],
        imported=Imported(
            FORM,
            path.name,
            notes=tuple(notes),
            digest=digest_of([path], path),
            published=counts_published(report, driver, model),
        ),
        name=options.name,
        cases={instance: case_of(instance) for instance in sorted(listed)},
        missing=report.total_instances - len(found),
    )


# ---- per-instance reports ----------------------------------------------------------------------------------------


def _submission(file: Path, root: Path) -> str:
    """The folder that holds the instances' folders, or the one above where that is called `logs`."""
    above = file.absolute().parent.parent
    stop = root.absolute() if root.is_dir() else above
    while above.name == "logs" and above != above.parent:
        above = above.parent
    return (above.name if above.is_relative_to(stop.parent) else stop.name) or "unknown"


def _reports(root: Path, files: Sequence[Path], options: Options) -> Run:
    trials: dict[tuple[str, str], tuple[Path, SourceTrial]] = {}
    for file in files:
        driver = options.driver or _submission(file, root)
        for instance, verdict in instance_reports(file).items():
            if (driver, instance) in trials:
                first = trials[driver, instance][0]
                raise LabError(f"{file}: {instance} of {driver} is also in {first}; import one run at a time")
            trials[driver, instance] = (
                file,
                SourceTrial(
                    instance,
                    driver,
                    verdict.solved,
                    model=options.model or None,
                    reasons=verdict.reasons,
                    extra=verdict.extra,
                ),
            )
    return imported_run(
        suite=options.suite or FORM,
        trials=[trial for _, trial in trials.values()],
        imported=Imported(
            FORM,
            root.name,
            notes=(
                "Per-instance reports do not say which instances were asked; those without one are not counted.",
            ),
            digest=digest_of(files, root),
        ),
        name=options.name,
        cases={instance: case_of(instance) for instance in sorted({key[1] for key in trials})},
    )
