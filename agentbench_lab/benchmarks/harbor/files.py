"""The files of Harbor: a job's folder with a folder for each trial, and what of their result.json is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from agentbench_lab.benchmarks.harbor.atif import Trajectory, find_trajectory, read_trajectory
from agentbench_lab.benchmarks.reading import decode_json, read_bytes
from agentbench_lab.benchmarks.totals import Count, Dollars
from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Usage

RESULT = "result.json"
Reward = Annotated[float, Meta(ge=-1e12, le=1e12)]
Steps = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _ModelInfo(Struct):
    name: str
    provider: str | None = None


class _AgentInfo(Struct):
    name: str
    version: str | None = None
    model_info: _ModelInfo | None = None


class _AgentResult(Struct):
    n_input_tokens: Count | None = None
    n_cache_tokens: Count | None = None
    n_output_tokens: Count | None = None
    cost_usd: Dollars | None = None
    n_agent_steps: Steps | None = None


class _VerifierResult(Struct):
    rewards: dict[str, Reward] | None = None


class _Exception(Struct):
    exception_type: str
    exception_message: str | None = None


class Timing(Struct):
    """When a phase of a trial ran."""

    started_at: str | None = None
    finished_at: str | None = None


class _StepResult(Struct):
    agent_result: _AgentResult | None = None


class _Config(Struct):
    agent: dict[str, Any] | None = None


class TrialSaid(Struct):
    """What is read of a trial's result.json."""

    task_name: str
    trial_name: str
    agent_info: _AgentInfo
    id: str | None = None
    source: str | None = None
    task_checksum: str | None = None
    config: _Config | None = None
    agent_result: _AgentResult | None = None
    verifier_result: _VerifierResult | None = None
    exception_info: _Exception | None = None
    started_at: str | None = None
    finished_at: str | None = None
    agent_execution: Timing | None = None
    step_results: list[_StepResult] | None = None
    n_agent_steps: Steps | None = None


class _Eval(Struct):
    metrics: list[dict[str, Any]] = []
    pass_at_k: dict[str, float] = {}


class _Stats(Struct):
    n_completed_trials: Count | None = None
    n_errored_trials: Count | None = None
    n_trials: Count | None = None
    n_errors: Count | None = None
    cost_usd: Dollars | None = None
    evals: dict[str, _Eval] = {}


class JobSaid(Struct):
    """What is read of a job's result.json; older files count n_trials and n_errors."""

    stats: _Stats
    id: str | None = None
    n_total_trials: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    started_at: str | None = None
    finished_at: str | None = None
    trial_results: list[TrialSaid] = []


class _Kind(Struct):
    """What tells a job's result.json from a trial's."""

    stats: msgspec.Raw = msgspec.Raw()
    trial_name: str | None = None


class FoundTrial(Struct):
    """One trial: what its result says, where that stood, and its trajectory."""

    said: TrialSaid
    where: Path
    trajectory: Trajectory | None = None
    usage: Usage = field(default_factory=Usage)
    extra: dict[str, Any] = {}
    number: int = 0

    @property
    def arm(self) -> tuple[str, str | None]:
        info = self.said.agent_info
        return info.name, info.model_info.name if info.model_info else None

    @property
    def reward(self) -> float | None:
        """The reward that the source's own mean takes; None where there is none."""
        rewards = self.said.verifier_result.rewards if self.said.verifier_result else None
        if not rewards:
            return None
        return next(iter(rewards.values())) if len(rewards) == 1 else rewards["reward"]


def read_files(path: Path) -> tuple[JobSaid | None, list[FoundTrial], int, list[str]]:
    """The job, where there is one; its trials; how many are missing; notes."""
    if path.is_file():
        data = read_bytes(path)
        if not decode_json(data, _Kind, str(path)).stats:
            said = decode_json(data, TrialSaid, str(path))
            return None, [FoundTrial(said, path, _trajectory(path.parent))], 0, []
        return _job(path.parent, path)
    file = path / RESULT
    if file.is_file() and not decode_json(read_bytes(file), _Kind, str(file)).stats:
        return read_files(file)
    return _job(path, file)


def _job(folder: Path, file: Path) -> tuple[JobSaid | None, list[FoundTrial], int, list[str]]:
    job = decode_json(read_bytes(file), JobSaid, str(file)) if file.is_file() else None
    found, notes, bare = [], [], 0
    jobs = []
    for below in sorted(each for each in folder.iterdir() if each.is_dir()):
        result = below / RESULT
        if not result.is_file():
            bare += (below / "config.json").is_file()
            continue
        data = read_bytes(result)
        if decode_json(data, _Kind, str(result)).stats:
            jobs.append(below.name)
            continue
        found.append(FoundTrial(decode_json(data, TrialSaid, str(result)), result, _trajectory(below)))
    if jobs:
        raise LabError(f"{folder}: holds jobs ({', '.join(jobs[:5])}); import each by itself")
    if job is not None and not found:
        found = [FoundTrial(each, file) for each in job.trial_results]
    if not found:
        raise LabError(
            f"{folder}: neither a job of Harbor nor a trial: no {RESULT} of a trial here or one folder below"
        )
    names = Counter(each.said.trial_name for each in found)
    ids = Counter(each.said.id for each in found if each.said.id)
    for name, count in (*names.items(), *ids.items()):
        if count > 1:
            raise LabError(f"{folder}: trial {name} is there {count} times")
    if job is None:
        notes.append(f"The job has no {RESULT} of its own: it did not end, and publishes no totals.")
    asked = max(len(found) + bare, (job.n_total_trials or 0) if job else 0)
    if asked > len(found):
        notes.append(f"{len(found)} of {asked} trials have a result; the others are missing.")
    return job, found, asked - len(found), notes


def _trajectory(folder: Path) -> Trajectory | None:
    file = find_trajectory(folder)
    return read_trajectory(file) if file else None
