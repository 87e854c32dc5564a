"""One sample of an Inspect log as a trial."""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks.inspect.log import Log, ModelUsage, Said, Sample
from agentbench_lab.benchmarks.inspect.scores import Chosen, number, value_of
from agentbench_lab.benchmarks.reading import is_one, micros
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCall, SourceCase, SourceTrial, seconds_between
from agentbench_lab.transcripts import Status, Usage, disjoint_input

GRADER = "grader"  # the role that Inspect's own model-graded scorers ask by
_ERROR = 300
_STOPS = {"time": "timeout", "working": "timeout", "operator": None}  # every other limit is one of the budget


class _Problem(Struct, frozen=True, gc=False):
    type: str = ""
    message: str = ""


class _ToolCall(Struct, frozen=True):
    function: str
    id: str | None = None
    arguments: Any = None
    parse_error: str | None = None


class _Message(Struct, frozen=True):
    role: str
    content: str | list[dict[str, Any]] = ""
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None
    error: _Problem | None = None
    tool_error: str | None = None


class Read(Struct, frozen=True):
    """A trial, the value it was judged by (None where it was not), and what is odd about it."""

    trial: SourceTrial
    value: Any
    inclusive: bool
    uncounted: bool
    models: bool


def driver_of(log: Log, default: str) -> str:
    """The agent: the solver that the evaluation was given, else those of its plan in their order."""
    solver = log.header.eval.solver
    steps = log.header.plan.steps if log.header.plan is not None else []
    return solver or "+".join(step.solver for step in steps) or default or "inspect"


def case_of(sample: Sample, group: str) -> SourceCase:
    """What the sample asks, and what it wants."""
    expectation: dict[str, Any] = {"target": sample.target}
    if sample.choices is not None:
        expectation["choices"] = sample.choices
    if isinstance(sample.input, str):
        request = sample.input
    else:
        request = "\n\n".join(_text(message.get("content")) for message in sample.input)
    return SourceCase(request=request, group=group, expectation=expectation)


def trial_of(
    sample: Sample, chosen: Chosen | None, case_id: str, number_: int, driver: str, model: str, where: str
) -> Read:
    """The sample as a trial of this case. A sample without a value by the chosen scorer is excluded, as it is by
    Inspect: for its error, where it has one."""
    value, missing = (None, "no score") if chosen is None else value_of(sample, chosen, where)
    extra: dict[str, Any] = {}
    excluded = owner = note = None
    if sample.error is not None:
        note = f"error: {_first_line(sample.error)}"
    if value is None:
        excluded, owner = (note, "harness") if note is not None else (missing, "grader")
        note = None
    score = None if value is None else number(value)
    if isinstance(value, str):
        extra["value"] = value
    stop, terminated = _stop(sample, extra)
    if sample.uuid:
        extra["uuid"] = sample.uuid
    if sample.scores is not None and len(sample.scores) > 1 and chosen is not None:
        extra["other_scores"] = {
            name: each.value for name, each in sample.scores.items() if name != chosen.scorer
        }
    if sample.invalidation is not None:
        extra["invalidated"] = True
    usage, inclusive = _usage(sample, extra, where)
    attempts = 1 + len(sample.error_retries or ())
    working_s = sample.working_time
    if attempts > 1:
        # what Inspect gives is the last attempt's; of the failed ones only their errors are known
        extra["last_attempt"] = {
            name: each for name, each in msgspec.structs.asdict(usage).items() if each not in (None, False)
        }
        usage, working_s = Usage(), None
    calls = None
    if sample.messages:
        calls, unanswered = _calls(sample.messages, where)
        if unanswered:
            extra["unanswered_calls"] = unanswered
    trial = SourceTrial(
        case_id=case_id,
        driver=driver,
        model=model,
        trial=number_,
        solved=None if value is None else is_one(score),
        excluded=excluded,
        excluded_owner=owner,
        score=score,
        stop=stop,
        terminated=terminated,
        steps=sample.turn_count,
        calls=calls,
        usage=usage,
        working_s=working_s,
        attempts=attempts,
        note=note,
        answer=_answer(sample),
        messages=sample.messages or None,
        extra=extra,
    )
    models = len(sample.model_usage) > 1 or (bool(sample.model_usage) and model not in sample.model_usage)
    return Read(trial, value, inclusive, value is not None and score is None, models)


def _stop(sample: Sample, extra: dict[str, Any]) -> tuple[str | None, bool | None]:
    """How the trial ended, and whether the agent's loop did. Of an error nothing says whose it was."""
    if sample.limit is not None:
        extra["limit"] = sample.limit.type
        return _STOPS.get(sample.limit.type, "budget"), False
    return ("done", True) if sample.error is None else (None, None)


def _first_line(said: Said) -> str:
    line = next(filter(None, map(str.strip, said.message.splitlines())), "no message")
    return line if len(line) <= _ERROR else f"{line[: _ERROR - 1]}…"


def _answer(sample: Sample) -> str | None:
    if sample.output is None:
        return None
    if sample.output.completion is not None:
        return sample.output.completion or None
    return _text(sample.output.choices[0].message.get("content")) or None if sample.output.choices else None


def _text(content: Any) -> str:
    """The text of a message's content: itself, or its parts, where a part that is no text is only named."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(_part(part) for part in content if isinstance(part, dict))


def _part(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part.get('type', 'content')}]"


def _usage(sample: Sample, extra: dict[str, Any], where: str) -> tuple[Usage, bool]:
    """The tokens and money of all models but the one that graded, and whether cached tokens lay within the input.

    Inspect's input tokens leave the cached ones out. Logs of old versions have them inside for some providers: there
    the total is input and output alone.
    """
    wall_s = sample.total_time
    if wall_s is None:
        wall_s = seconds_between(sample.started_at, sample.completed_at)
    used = [each for each in sample.model_usage.values() if _known(each)]
    if not used:
        return Usage(wall_s=wall_s), False
    grader = sample.role_usage.get(GRADER) if sample.role_usage else None
    parts = [(1, each) for each in used]
    if grader is not None and _known(grader):
        parts.append((-1, grader))
    fresh = read = write = output = 0
    inclusive = False
    for sign, each in parts:
        within = _within(each)
        inclusive = inclusive or within
        part, cached, written = disjoint_input(
            each.input_tokens,
            each.input_tokens_cache_read or 0,  # no number is none, as Inspect itself counts
            each.input_tokens_cache_write or 0,
            inclusive=within,
        )
        fresh += sign * (part or 0)
        read += sign * (cached or 0)
        write += sign * (written or 0)
        output += sign * each.output_tokens
    if min(fresh, read, write, output) < 0:
        raise LabError(f"{where}: role_usage: the grader used more tokens than the sample did")
    return Usage(fresh, read, write, output, None, _cost(parts, extra), wall_s), inclusive


def _cost(parts: list[tuple[int, ModelUsage]], extra: dict[str, Any]) -> int | None:
    """Micros of a dollar; unknown where a part of it is. An amount between two micros stands exactly in `extra`."""
    total = Decimal()
    for sign, each in parts:
        if each.total_cost is None:
            return None
        total += sign * Decimal(str(each.total_cost))
    total = max(total, Decimal())  # the grader's part, taken away, may leave what rounding left
    if total * 1_000_000 % 1:
        extra["cost_usd"] = float(total)
    return micros(str(total))


def _known(usage: ModelUsage) -> bool:
    """All zero is a provider that did not say."""
    return bool(usage.input_tokens or usage.output_tokens or usage.total_tokens)


def _within(usage: ModelUsage) -> bool:
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return 0 < cached <= usage.input_tokens and usage.total_tokens == usage.input_tokens + usage.output_tokens


def _calls(messages: list[dict[str, Any]], where: str) -> tuple[tuple[SourceCall, ...], int]:
    """The calls that were answered, in the order of asking, and how many were not: the trial ended before them."""
    try:
        dialogue = msgspec.convert(messages, list[_Message])
    except msgspec.ValidationError as error:
        raise LabError(f"{where}: messages: {error}") from None
    asked: list[tuple[_ToolCall, _Message | None]] = []
    waiting: deque[int] = deque()
    for message in dialogue:
        for call in message.tool_calls or ():
            waiting.append(len(asked))
            asked.append((call, None))
        if message.role == "tool":
            wanted = message.tool_call_id
            for place in waiting:
                if wanted is None or asked[place][0].id == wanted:
                    asked[place] = (asked[place][0], message)
                    waiting.remove(place)
                    break
    answered = tuple(_call(call, reply) for call, reply in asked if reply is not None)
    return answered, len(waiting)


def _call(call: _ToolCall, reply: _Message) -> SourceCall:
    error = reply.error
    if call.parse_error:
        status: Status = "malformed"
    elif error is not None and error.type == "parsing":
        status = "undeclared" if error.message.endswith(" not found") else "schema_error"
    else:
        status = "tool_error" if error is not None or reply.tool_error else "ok"
    observed = _text(reply.content) or (error.message if error is not None else reply.tool_error or "")
    return SourceCall(call.function, call.arguments, status, observed)
