"""Results of Harbor (the harness of Terminal-Bench 2): a job's folder, or one trial's result.json.

What the source counts: a trial without a reward is a 0 in its mean and its pass@k, whatever the exception was, so
nothing is excluded here. The reward is the only one of the verifier, or the one named `reward`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.harbor.atif import Counts
from agentbench_lab.benchmarks.harbor.files import RESULT, FoundTrial, JobSaid, Timing, TrialSaid, read_files
from agentbench_lab.benchmarks.reading import digest_of, is_one, micros
from agentbench_lab.benchmarks.totals import as_float, claim, pass_at_k, tally, unsplit
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run, seconds_between
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Usage, disjoint_input
from agentbench_lab.values import digest

FORM = "harbor"

STOPS: dict[str, str] = {
    "AgentTimeoutError": "timeout",
    "NonZeroAgentExitCodeError": "driver_error",
    "AgentSetupTimeoutError": "infrastructure_error",
    "EnvironmentStartTimeoutError": "infrastructure_error",
    "EnvironmentBuildTimeoutError": "infrastructure_error",
    "ContextLengthExceededError": "budget",
    "OutputLengthExceededError": "budget",
}
"""The exceptions that say how the agent ended. Others may be the verifier's or the harness's: they are the note."""


def load_results(path: Path, options: Options) -> Run:
    """The trials of a job's folder (or of its result.json), or the one trial of a trial's.

    Several trials of a task by one agent and model are numbered in the order of their start. Trajectories are read
    where they are there. Raises LabError for what is neither, for a trial whose rewards are several and none is named
    `reward`, and for a trial that is there twice.
    """
    job, found, missing, notes = read_files(path)
    files = [path] if path.is_file() else []
    for each in found:
        _check_rewards(each)
        _measure(each)
        files += [each.where] if each.where.is_file() else []
        files += each.trajectory.files if each.trajectory else ()
    if job is not None and path.is_dir():
        files.append(path / RESULT)
    _number(found)
    notes += _notes(found)
    sources = list(dict.fromkeys(each.said.source for each in found))
    several = len(sources) > 1
    cases = {}
    for each in found:
        note = f"task checksum {each.said.task_checksum}" if each.said.task_checksum else None
        cases[_case_id(each, several)] = SourceCase(
            group=(each.said.source or "adhoc") if several else "", note=note
        )
    model = options.model or None
    root = path.parent if path.is_file() else path
    return imported_run(
        suite=options.suite or (None if several else sources[0] if sources else None) or FORM,
        trials=[_source_trial(each, _case_id(each, several), model) for each in found],
        cases=cases,
        missing=missing,
        imported=Imported(
            format=FORM,
            file=path.name,
            digest=digest_of(set(files), root if len(set(files)) > 1 else path),
            notes=tuple(notes),
            published=tuple(_published(job, found, model) if job else ()),
        ),
        name=options.name,
        started_at=(job.started_at if job else found[0].said.started_at) or "",
        finished_at=(job.finished_at if job else found[0].said.finished_at) or "",
    )


# ---- one trial ------------------------------------------------------------------------------------------------------


def _check_rewards(each: FoundTrial) -> None:
    rewards = each.said.verifier_result.rewards if each.said.verifier_result else None
    if rewards and len(rewards) > 1 and "reward" not in rewards:
        named = ", ".join(sorted(rewards))
        raise LabError(
            f"{each.where}: $.verifier_result.rewards: several ({named}), and none is named reward"
        )


def _measure(each: FoundTrial) -> None:
    """Fill in the trial's usage, and what of it has no column."""
    said, told = each.said, _own_counts(each.said)
    tree = each.trajectory.counts if each.trajectory else Counts()
    # The trial's own figures are those of its main trajectory: with subagents, the sum over all of them is more.
    more = each.trajectory is not None and each.trajectory.trajectories > 1
    counts = Counts(*(_either(a, b, more) for a, b in zip(_fields(told), _fields(tree), strict=True)))
    prompt, cached = counts.prompt, counts.cached
    try:
        # Two kinds of input are counted, cached and not; what was written to a cache is among the latter.
        fresh, read, write = disjoint_input(prompt, cached, None if cached is None else 0, inclusive=True)
    except ValueError as error:
        raise LabError(f"{each.where}: {error}") from None
    ran = said.agent_execution or Timing()
    each.usage = Usage(
        fresh_input=fresh,
        cache_read=read,
        cache_write=write,
        output=counts.completion,
        model_calls=each.trajectory.model_calls if each.trajectory else None,
        cost_micros=micros(counts.cost),
        wall_s=seconds_between(ran.started_at, ran.finished_at),
    )
    rewards = said.verifier_result.rewards if said.verifier_result else None
    split = counts.cost is not None and not math.isclose(
        counts.cost * 1e6, round(counts.cost * 1e6), rel_tol=0, abs_tol=1e-6
    )
    for name, value in (
        ("trial_name", said.trial_name),
        ("agent_version", said.agent_info.version),
        ("provider", said.agent_info.model_info.provider if said.agent_info.model_info else None),
        ("exception", said.exception_info.exception_type if said.exception_info else None),
        ("rewards", rewards if rewards and len(rewards) > 1 else None),
        ("tokens_input_total", prompt if fresh is None else None),
        ("trial_wall_s", seconds_between(said.started_at, said.finished_at)),
        ("cost_usd", counts.cost if split else None),
    ):
        if value is not None:
            each.extra[name] = value


def _own_counts(said: TrialSaid) -> Counts:
    """What the trial's result says: the agent's total, else the sum over the steps of a task that has several."""
    parts = [said.agent_result] if said.agent_result else [s.agent_result for s in said.step_results or ()]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return Counts()
    columns = zip(
        *((p.n_input_tokens, p.n_cache_tokens, p.n_output_tokens, p.cost_usd) for p in known), strict=True
    )
    return Counts(*(None if None in column else sum(column) for column in columns))


def _fields(counts: Counts) -> tuple[Any, ...]:
    return counts.prompt, counts.cached, counts.completion, counts.cost


def _either(told: Any, tree: Any, more: bool) -> Any:
    if told is None or (more and tree is not None and tree > told):
        return tree
    return told


def _number(found: Sequence[FoundTrial]) -> None:
    by_key: dict[tuple[Any, ...], list[FoundTrial]] = defaultdict(list)
    for each in found:
        by_key[each.said.source, each.said.task_name, *each.arm].append(each)
    for trials in by_key.values():
        trials.sort(key=lambda each: (each.said.started_at or "", each.said.trial_name))
        for number, each in enumerate(trials, start=1):
            each.number = number


def _case_id(each: FoundTrial, several: bool) -> str:
    return f"{each.said.source or 'adhoc'}/{each.said.task_name}" if several else each.said.task_name


def _source_trial(each: FoundTrial, case_id: str, model: str | None) -> SourceTrial:
    said, failed = each.said, each.said.exception_info
    stop = STOPS.get(failed.exception_type) if failed else None
    if failed is None and said.agent_execution and said.agent_execution.finished_at:
        stop = "done"
    note = None
    if failed is not None:
        lines = (failed.exception_message or "").strip().splitlines()
        note = f"{failed.exception_type}: {lines[0][:500]}" if lines else failed.exception_type
    trajectory = each.trajectory
    steps = said.n_agent_steps
    if steps is None and said.agent_result is not None:
        steps = said.agent_result.n_agent_steps
    if steps is None and trajectory is not None:
        steps = trajectory.steps
    return SourceTrial(
        case_id=case_id,
        driver=each.arm[0],
        model=each.arm[1] or model,
        trial=each.number,
        solved=is_one(each.reward),
        score=each.reward,
        stop=stop,
        terminated={"done": True, "timeout": False}.get(stop or ""),
        steps=steps,
        # ATIF does not say which calls failed: rows of calls would claim that none did.
        tool_calls=trajectory.tool_calls if trajectory and trajectory.whole else None,
        usage=each.usage,
        reasons=() if each.reward is not None else ("no reward; the source counts that as 0",),
        note=note,
        messages=trajectory.messages if trajectory else None,
        extra=each.extra,
    )


def _notes(found: Sequence[FoundTrial]) -> list[str]:
    notes = []
    bare = sum(each.reward is None for each in found)
    if bare:
        have = "trial has" if bare == 1 else "trials have"
        notes.append(f"{bare} {have} no reward; the source counts that as 0, so it is judged as not solved.")
    if any(each.usage.cache_read is not None for each in found):
        notes.append(
            "Input tokens are counted as cached or not; any that were written to a cache are among the fresh ones."
        )
    notes += unsplit(each.extra for each in found)
    grown = sum(
        each.trajectory is not None
        and each.trajectory.trajectories > 1
        and any(
            ours is not None and theirs is not None and theirs > ours
            for ours, theirs in zip(
                _fields(_own_counts(each.said)), _fields(each.trajectory.counts), strict=True
            )
        )
        for each in found
    )
    if grown:
        notes.append(
            f"{grown} of the trials count in tokens or cost of subagents that their own result leaves out."
        )
    torn = sum(each.trajectory is not None and not each.trajectory.whole for each in found)
    if torn:
        notes.append(f"{torn} trajectories name files that are not there; their counts are left unknown.")
    configs: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for each in found:
        if each.said.config and each.said.config.agent:
            configs[each.arm].add(digest(each.said.config.agent))
    for (driver, model), digests in configs.items():
        if len(digests) > 1:
            arm = " ".join(filter(None, (driver, model)))
            notes.append(f"{arm} ran with {len(digests)} different configurations; they are one arm here.")
    return notes


# ---- the job's own totals -------------------------------------------------------------------------------------------


def _published(job: JobSaid, found: Sequence[FoundTrial], model: str | None) -> list[Published]:
    groups: dict[str, list[FoundTrial]] = defaultdict(list)
    for each in found:
        parts = [part for part in (*each.arm, each.said.source or "adhoc") if part]
        groups["__".join(parts).replace("/", "-")].append(each)
    claims = []
    for key, said in job.stats.evals.items():
        mine = groups.get(key.replace("/", "-"), [])
        arm = (mine[0].arm[0], mine[0].arm[1] or model) if mine else ("", None)
        several = len({each.said.source for each in found}) > 1
        where = (f" on {mine[0].said.source or 'adhoc'}" if several else "") if mine else f" of {key}"
        for metric in said.metrics:
            mean = as_float(metric.get("mean"))
            if mean is not None:
                rows = math.fsum(each.reward or 0 for each in mine) / len(mine) if mine else None
                claims.append(claim(arm, f"mean reward{where}", "share", mean, rows))
        by_case = tally((each.said.task_name, each.reward == 1) for each in mine)
        for text, value in said.pass_at_k.items():
            k = int(text) if text.isdecimal() and len(text) < 10 else 0
            claims.append(
                claim(arm, f"pass@{text}{where}", "share", value, pass_at_k(by_case, k) if k else None)
            )
    stats = job.stats
    everything = ("", None)
    ended = stats.n_completed_trials if stats.n_completed_trials is not None else stats.n_trials
    errors = stats.n_errored_trials if stats.n_errored_trials is not None else stats.n_errors
    if ended is not None:
        claims.append(claim(everything, "trials with a result", "trials", ended, len(found)))
    if errors is not None:
        rows = sum(each.said.exception_info is not None for each in found)
        claims.append(claim(everything, "trials with an exception", "trials", errors, rows))
    if stats.cost_usd is not None:
        known = [each.usage.cost_micros for each in found if each.usage.cost_micros is not None]
        spent = math.fsum(_own_counts(each.said).cost or 0 for each in found) if known else None
        note = "" if len(known) == len(found) else f"of the {len(known)} of {len(found)} trials that tell"
        claims.append(claim(everything, "cost", "usd", stats.cost_usd, spent, note))
    return claims
