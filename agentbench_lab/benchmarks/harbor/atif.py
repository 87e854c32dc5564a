"""Trajectories in ATIF, the format that Harbor's agents write: what one of them used, its subagents included.

Tokens of a trajectory are those of its own steps, so a tree is summed; its total cost, by the format's own words,
includes its subagents already, so that it is taken only where the steps do not tell. Steps marked `is_copied_context`
repeat an earlier trajectory and are not counted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.benchmarks.reading import read_json
from agentbench_lab.benchmarks.totals import Count, Dollars


class Counts(Struct, frozen=True):
    """Tokens and money, each None where it is not told. `prompt` includes `cached`."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    cost: float | None = None


class _Metrics(Struct):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost_usd: Dollars | None = None


class _Final(Struct):
    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: Dollars | None = None


class _Ref(Struct):
    trajectory_path: str | None = None


class _ObservationResult(Struct):
    source_call_id: str | None = None
    content: Any = None
    subagent_trajectory_ref: list[_Ref] | None = None


class _Observation(Struct):
    results: list[_ObservationResult] | None = None


class _ToolCall(Struct):
    function_name: str | None = None
    tool_call_id: str | None = None
    arguments: Any = None


class _Step(Struct):
    source: str
    message: Any = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    llm_call_count: Count | None = None
    is_copied_context: bool | None = None


class _Document(Struct):
    steps: list[_Step]
    final_metrics: _Final | None = None
    subagent_trajectories: list[_Document] | None = None
    continued_trajectory_ref: str | None = None


class Trajectory(Struct, frozen=True):
    """What one trajectory with all its subagents says. `trajectories` is how many it is made of; `whole` is whether
    every file that it names was there: without, its counts are lower bounds and stay None."""

    counts: Counts
    steps: int
    model_calls: int | None
    tool_calls: int
    trajectories: int
    whole: bool
    messages: list[dict[str, Any]]
    files: tuple[Path, ...]


def read_trajectory(file: Path) -> Trajectory:
    """The trajectory of a file, with the subagents within it and in the files beside it that it names.

    Raises LabError, with file and place, for what is no ATIF. Files are looked for beside the first only.
    """
    parts, files, whole = _parts(file)
    every = [each for part in parts for each in _tree(part)]
    own = [step for each in every for step in _own(each)]
    agent = [step for step in own if step.source == "agent"]
    return Trajectory(
        counts=_counts(parts, every) if whole else Counts(),
        steps=sum(step.source == "agent" for part in parts for step in _own(part)),
        model_calls=_model_calls(agent) if whole else None,
        tool_calls=sum(len(step.tool_calls or ()) for step in own),
        trajectories=len(every),
        whole=whole,
        messages=[
            _message(step) for part in parts for step in (part.steps if part is parts[0] else _own(part))
        ],
        files=tuple(files),
    )


def _parts(file: Path) -> tuple[list[_Document], list[Path], bool]:
    """The trajectory and its continuations, each with the subagents of other files hung into it; the files; and
    whether all that is named was there."""
    parts: list[_Document] = [read_json(file, _Document)]
    files, whole = [file], True
    waiting = [parts[0]]
    while waiting:
        for each in list(_tree(waiting.pop())):
            for name, continues in _named(each):
                beside = file.parent / Path(name).name
                if beside in files:
                    continue
                if not _is_file(beside):
                    whole = False
                    continue
                found: _Document = read_json(beside, _Document)
                files.append(beside)
                waiting.append(found)
                if continues:
                    parts.append(found)
                else:
                    each.subagent_trajectories = [*(each.subagent_trajectories or ()), found]
    return parts, files, whole


def _is_file(path: Path) -> bool:
    """Whether it is one; a name that no file can have is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _named(document: _Document) -> Iterator[tuple[str, bool]]:
    """The files that a trajectory names, and whether each is its continuation (else a subagent's)."""
    if document.continued_trajectory_ref:
        yield document.continued_trajectory_ref, True
    for step in document.steps:
        for result in (step.observation.results if step.observation else None) or ():
            for ref in result.subagent_trajectory_ref or ():
                if ref.trajectory_path:
                    yield ref.trajectory_path, False


def _tree(document: _Document) -> Iterator[_Document]:
    waiting = [document]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.subagent_trajectories or ()))


def _own(document: _Document) -> list[_Step]:
    return [step for step in document.steps if not step.is_copied_context]


def _counts(parts: list[_Document], every: list[_Document]) -> Counts:
    return Counts(
        prompt=_sum(
            _tokens(each, lambda m: m.prompt_tokens, lambda f: f.total_prompt_tokens) for each in every
        ),
        cached=_sum(
            _tokens(each, lambda m: m.cached_tokens, lambda f: f.total_cached_tokens) for each in every
        ),
        completion=_sum(
            _tokens(each, lambda m: m.completion_tokens, lambda f: f.total_completion_tokens)
            for each in every
        ),
        cost=_dollars(_cost(each) for each in parts),
    )


def _tokens(
    document: _Document, of_step: Callable[[_Metrics], int | None], of_all: Callable[[_Final], int | None]
) -> int | None:
    """Of one trajectory without its subagents: its steps' where every one of them tells, else its own total."""
    told = _sum(of_step(step.metrics or _Metrics()) for step in _asking(document))
    if told is not None:
        return told
    return of_all(document.final_metrics) if document.final_metrics else None


def _asking(document: _Document) -> list[_Step]:
    """The steps that asked a model."""
    return [step for step in _own(document) if step.source == "agent" and step.llm_call_count != 0]


def _cost(document: _Document) -> float | None:
    """With its subagents: the steps' where all of them tell, else the total, which includes them."""
    found: dict[int, float | None] = {}
    for each in reversed(list(_tree(document))):  # subagents first: they may lie deeper than calls can
        below = [found[id(one)] for one in each.subagent_trajectories or ()]
        own = _dollars((step.metrics or _Metrics()).cost_usd for step in _asking(each))
        total = _dollars([own, *below])
        if total is None and each.final_metrics:
            total = each.final_metrics.total_cost_usd
        found[id(each)] = total
    return found[id(document)]


def _sum(values: Iterable[int | None]) -> int | None:
    """Their sum; None with an unknown part, and of nothing."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known and len(known) == len(found) else None


def _dollars(values: Iterable[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return math.fsum(known) if known and len(known) == len(found) else None


def _model_calls(agent: list[_Step]) -> int | None:
    """The calls that steps count themselves, else one for each step with metrics; None where some step has neither."""
    return _sum(
        step.llm_call_count if step.llm_call_count is not None else (1 if step.metrics is not None else None)
        for step in agent
    )


def _message(step: _Step) -> dict[str, Any]:
    """A step as a message of a dialogue; what it observed stands in it."""
    said: dict[str, Any] = {"role": step.source, "content": step.message}
    if step.reasoning_content:
        said["reasoning"] = step.reasoning_content
    if step.tool_calls:
        said["tool_calls"] = [
            {"id": call.tool_call_id, "name": call.function_name, "arguments": call.arguments}
            for call in step.tool_calls
        ]
    if step.observation and step.observation.results:
        said["observed"] = [
            {"id": result.source_call_id, "content": result.content} for result in step.observation.results
        ]
    return said


def find_trajectory(folder: Path) -> Path | None:
    """A trial's trajectory.json: in its agent folder, or beside its result."""
    for file in (folder / "agent" / "trajectory.json", folder / "trajectory.json"):
        if file.is_file():
            return file
    return None
