"""What a HAL result file says of each task's model calls: tokens, in the three dialects of providers.

Older files hold every Weave call of a run (`raw_logging_results` is a list), newer ones an object by task. Weave sums
the usage of calls within a call, so only the innermost calls that tell of usage are counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Usage, disjoint_input

_MOST = 2**53


class TaskLog(Struct, frozen=True):
    """What the log of one task says: its usage, input tokens whose split is unknown, its models, its dialogue."""

    usage: Usage
    input_total: int | None
    models: tuple[str, ...]
    messages: Any = None


def task_logs(raw: Any, where: str) -> dict[str, TaskLog]:
    """By task, from `raw_logging_results`; empty where the file has none. Raises LabError with the place for usage that
    is no count."""
    if isinstance(raw, Mapping):
        return {
            str(task): _compact(entry, f"{where}: $.raw_logging_results.{task}")
            for task, entry in raw.items()
            if isinstance(entry, Mapping)
        }
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        return _from_calls(raw, f"{where}: $.raw_logging_results")
    return {}


def _compact(entry: Mapping[str, Any], where: str) -> TaskLog:
    calls = entry.get("call_metadata")
    if calls is not None and not isinstance(calls, list):
        raise LabError(f"{where}.call_metadata: no list")
    usages = [call.get("usage") if isinstance(call, Mapping) else None for call in calls or ()]
    model = entry.get("model")
    log = _sum([each for each in usages if isinstance(each, Mapping)], where, complete=_all_tell(usages))
    return TaskLog(
        log.usage,
        log.input_total,
        (model,) if isinstance(model, str) and model else (),
        entry.get("messages"),
    )


def _all_tell(usages: Sequence[Any]) -> bool:
    return bool(usages) and all(isinstance(each, Mapping) for each in usages)


def _from_calls(calls: Sequence[Any], where: str) -> dict[str, TaskLog]:
    told: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = defaultdict(list)
    parents = set()
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        task = _task_of(call)
        usage = _usage_of(call)
        if task is None or not usage:
            continue
        parents.add(str(call.get("parent_id")))
        told[task] += [(call, each) for each in usage]
    logs = {}
    for task, pairs in told.items():
        inner = [(call, usage) for call, usage in pairs if str(call.get("id") or "") not in parents]
        log = _sum([usage for _, usage in inner], f"{where} of {task}", complete=True)
        models = dict.fromkeys(model for call, usage in inner if (model := _model_of(call, usage)))
        logs[task] = TaskLog(log.usage, log.input_total, tuple(models))
    return logs


def _task_of(call: Mapping[str, Any]) -> str | None:
    attributes = call.get("attributes")
    inner = attributes.get("weave_task_id") if isinstance(attributes, Mapping) else None
    task = call.get("weave_task_id", inner)
    return str(task) if isinstance(task, str | int) and not isinstance(task, bool) else None


def _usage_of(call: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The usage that a call's output tells of, else that of its summary, by model."""
    output = call.get("output")
    usage = output.get("usage") if isinstance(output, Mapping) else None
    if isinstance(usage, Mapping) and usage:
        return [usage]
    summary = call.get("summary")
    by_model = summary.get("usage") if isinstance(summary, Mapping) else None
    if not isinstance(by_model, Mapping):
        return []
    return [{"model": model, **each} for model, each in by_model.items() if isinstance(each, Mapping)]


def _model_of(call: Mapping[str, Any], usage: Mapping[str, Any]) -> str:
    for place in (call.get("inputs"), call.get("output"), usage):
        model = place.get("model") if isinstance(place, Mapping) else None
        if isinstance(model, str) and model:
            return model
    return ""


def _sum(usages: Sequence[Mapping[str, Any]], where: str, *, complete: bool) -> TaskLog:
    """The sum over calls; unknown where one call does not tell, or where some call has no usage at all."""
    if not usages or not complete:
        return TaskLog(Usage(), None, ())
    total = Usage(0, 0, 0, 0, 0)
    everything: int | None = 0
    for usage in usages:
        one, whole = _normal(usage, where)
        total += one
        everything = None if everything is None or whole is None else everything + whole
    return TaskLog(total, everything if total.fresh_input is None else None, ())


def _normal(usage: Mapping[str, Any], where: str) -> tuple[Usage, int | None]:
    """One call's usage in disjoint buckets, and all of its input together."""

    def count(*names: str, inside: str = "") -> int | None:
        at = usage.get(inside) if inside else usage
        for name in names:
            value = at.get(name) if isinstance(at, Mapping) else None
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
                raise LabError(f"{where}: usage: {name} is {value!r}, no count of tokens")
            return value
        return None

    read = count("cached_tokens", inside="prompt_tokens_details")
    if read is None:
        read = count("cached_tokens", inside="input_tokens_details")
    calls = count("requests")
    if "prompt_tokens" in usage or "input_tokens_details" in usage:
        # As OpenAI counts: input includes what was cached, and nothing is written to a cache for money.
        shown, inclusive = count("prompt_tokens", "input_tokens"), True
        read = read if read is not None else count("cache_read_input_tokens")
        write = count("cache_creation_input_tokens")
        write = 0 if write is None and read is not None else write
    elif "inputTokens" in usage:
        shown, inclusive = count("inputTokens"), False
        read, write = count("cacheReadInputTokens"), count("cacheWriteInputTokens")
    else:
        shown, inclusive = count("input_tokens"), False
        read, write = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    try:
        fresh, read, write = disjoint_input(shown, read, write, inclusive=inclusive)
    except ValueError as error:
        raise LabError(f"{where}: usage: {error}") from None
    output = count("completion_tokens", "output_tokens", "outputTokens")
    whole = shown if inclusive else None
    if not inclusive and None not in (fresh, read, write):
        whole = (fresh or 0) + (read or 0) + (write or 0)
    return Usage(fresh, read, write, output, calls if calls is not None else 1), whole
