"""One simulation of tau2-bench as a trial, and one of its tasks as a case."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks.reading import is_one, micros
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCall, SourceCase, SourceTrial, seconds_between
from agentbench_lab.transcripts import Status, Usage, disjoint_input

STOPS = {
    "user_stop": "done",
    "agent_stop": "done",
    "max_steps": "budget",
    "too_many_errors": "budget",
    "context_window_exceeded": "budget",
    "timeout": "timeout",
    "agent_error": "driver_error",
    "infrastructure_error": "infrastructure_error",
}
"""The ends of tau2 that one of ours says; the others (user_error, unexpected_error) stay null."""

EVALUATED = ("user_stop", "agent_stop")
"""After any other end tau2 gives the reward 0 without looking."""


class _Given(Struct):
    """A message that the task gives. How many there are counts; their instants are those of the reading."""

    role: str


class _InitialState(Struct):
    message_history: list[_Given] | None = None


class _Scenario(Struct):
    instructions: Any = None


class Task(Struct):
    """A task: what the user wants (`user_scenario`; `ticket` where the agent is alone) and how it is judged."""

    id: str | int
    user_scenario: _Scenario | None = None
    ticket: str | None = None
    initial_state: _InitialState | None = None
    evaluation_criteria: Any = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class _RawUsage(Struct):
    prompt_tokens_details: _PromptDetails | None = None
    cache_creation_input_tokens: int | None = None


class _Raw(Struct):
    usage: _RawUsage | None = None


class _Tokens(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _ToolCall(Struct):
    name: str
    id: str = ""
    arguments: Any = None
    requestor: str = "assistant"


class _Message(Struct):
    role: str
    content: Any = None
    tool_calls: list[_ToolCall] | None = None
    id: str = ""
    error: bool = False
    requestor: str | None = None
    tool_messages: list[_Message] | None = None
    cost: float | None = None
    usage: _Tokens | None = None
    raw_data: _Raw | None = None
    timestamp: str | None = None


class _RewardInfo(Struct):
    reward: float | None = None
    reward_basis: list[str] | None = None
    reward_breakdown: dict[str, float] | None = None
    nl_assertions: Any = None
    info: Any = None


class Simulation(Struct):
    """A simulation as it stands in a file. `messages` is None for voice, which has ticks instead."""

    task_id: str | int
    termination_reason: str
    id: str = ""
    trial: int | None = None
    reward_info: _RewardInfo | None = None
    agent_cost: float | None = None
    user_cost: float | None = None
    start_time: str | None = None
    end_time: str | None = None
    duration: float | None = None
    messages: list[_Message] | None = None
    seed: int | None = None
    hallucination_retries_used: int | None = None


def source_case(task: Task) -> SourceCase:
    """The case of a task: its request is what the user is told to want, or the ticket where there is no user."""
    wanted = task.user_scenario.instructions if task.user_scenario is not None else None
    if wanted is None:
        request = task.ticket or ""
    else:
        request = wanted if isinstance(wanted, str) else msgspec.json.encode(wanted).decode()
    return SourceCase(request, expectation=task.evaluation_criteria)


def source_trial(
    simulation: Simulation,
    task: Task | None,
    *,
    number: int,
    driver: str,
    model: str | None,
    extra: Mapping[str, Any],
    where: str,
) -> SourceTrial:
    """The trial of a simulation. Raises LabError, with `where` and the task, for figures that cannot be."""
    end = simulation.termination_reason
    reward = simulation.reward_info.reward if simulation.reward_info is not None else None
    if reward == -1:  # what some versions write for a simulation that was not evaluated
        reward = None
    excluded = owner = None
    if end == "infrastructure_error":
        excluded, owner = end, "environment"
    elif reward is None and end in EVALUATED:
        excluded, owner = "not evaluated: no reward in the file", "grader"
    messages = simulation.messages
    given = _given(task, messages)
    own = messages[given:] if messages is not None else None
    kept = {**extra, **_beside(simulation)}
    if given:
        kept["given_messages"] = given
    try:
        usage = _usage(simulation, own, given, kept)
    except ValueError as error:
        raise LabError(f"{where}: task {str(simulation.task_id)!r}, trial {number}: {error}") from None
    calls = None
    if own is not None:
        calls, users, unanswered = _calls(own)
        if users:
            kept["user_tool_calls"] = users
        if unanswered:
            kept["calls_without_result"] = unanswered
    return SourceTrial(
        case_id=str(simulation.task_id),
        driver=driver,
        model=model,
        solved=None if excluded else is_one(reward),
        trial=number,
        excluded=excluded,
        excluded_owner=owner,
        terminated=end in EVALUATED,
        score=None if excluded else reward,
        stop=STOPS.get(end),
        steps=usage.model_calls if own is not None else None,
        calls=calls,
        usage=usage,
        note=_note(simulation),
        messages=[_plain(message) for message in messages] if messages else None,
        extra=kept,
    )


def _given(task: Task | None, messages: Sequence[_Message] | None) -> int:
    """How many messages the task itself puts before the dialogue."""
    state = task.initial_state if task is not None else None
    history = state.message_history if state is not None else None
    return min(len(history or ()), len(messages or ()))


def _beside(simulation: Simulation) -> dict[str, Any]:
    """What has no column of its own, where it is known."""
    info = simulation.reward_info or _RewardInfo()
    found = {
        "termination_reason": simulation.termination_reason,
        "simulation_id": simulation.id or None,
        "user_cost_usd": simulation.user_cost,
        "seed": simulation.seed,
        "started_at": simulation.start_time,
        "ended_at": simulation.end_time,
        "reward_basis": info.reward_basis,
        "reward_breakdown": info.reward_breakdown,
        "nl_assertions": info.nl_assertions or None,
        "user_hallucination_retries": simulation.hallucination_retries_used or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _note(simulation: Simulation) -> str | None:
    info = simulation.reward_info.info if simulation.reward_info is not None else None
    note = info.get("note") if isinstance(info, dict) else None
    return note if isinstance(note, str) else None


def _usage(
    simulation: Simulation, own: Sequence[_Message] | None, given: int, extra: dict[str, Any]
) -> Usage:
    """What the agent used. Its messages tell their tokens; a greeting that the harness itself says is none of them."""
    cost = micros(simulation.agent_cost)
    if simulation.agent_cost is not None and round(simulation.agent_cost * 1e6, 6) != cost:
        extra["cost_usd"] = simulation.agent_cost
    wall_s = seconds_between(simulation.start_time, simulation.end_time)
    if wall_s is None and simulation.duration is not None and simulation.duration >= 0:
        wall_s = simulation.duration
    if own is None:
        return Usage(cost_micros=cost, wall_s=wall_s)
    turns = [message for message in own if message.role == "assistant"]
    if own and not given and own[0].role == "assistant" and _said_by_harness(own[0]):
        turns = turns[1:]
    fresh: list[int | None] = []
    reads: list[int | None] = []
    writes: list[int | None] = []
    totals: list[int | None] = []
    outputs: list[int | None] = []
    for turn in turns:
        tokens = turn.usage or _Tokens()
        read, write = _cached(turn)
        buckets = disjoint_input(tokens.prompt_tokens, read, write, inclusive=True)
        for into, value in zip((fresh, reads, writes), buckets, strict=True):
            into.append(value)
        if tokens.completion_tokens is not None and tokens.completion_tokens < 0:
            raise ValueError(f"output: {tokens.completion_tokens} tokens")
        totals.append(tokens.prompt_tokens)
        outputs.append(tokens.completion_tokens)
    if (total := _sum(totals)) is not None:
        extra["tokens_input_total"] = total
    return Usage(
        fresh_input=_sum(fresh),
        cache_read=_sum(reads),
        cache_write=_sum(writes),
        output=_sum(outputs),
        model_calls=len(turns),
        cost_micros=cost,
        wall_s=wall_s,
    )


def _said_by_harness(message: _Message) -> bool:
    return message.usage is None and message.raw_data is None and not message.cost and not message.tool_calls


def _cached(message: _Message) -> tuple[int | None, int | None]:
    """Tokens read from and written to a cache, as the provider's own answer tells them.

    The answers have the form of OpenAI, which counts cached tokens within the prompt; a provider that writes to its
    cache at a price adds how much, and one that does not say so has no such writes.
    """
    usage = message.raw_data.usage if message.raw_data is not None else None
    details = usage.prompt_tokens_details if usage is not None else None
    if usage is None or details is None:
        return None, None
    return details.cached_tokens, usage.cache_creation_input_tokens or 0


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _calls(messages: Sequence[_Message]) -> tuple[tuple[SourceCall, ...], int, int]:
    """The agent's calls with their results in order; how many the simulated user made; how many have no result."""
    results: defaultdict[tuple[str, str | None], deque[_Message]] = defaultdict(deque)
    for message in messages:
        for result in message.tool_messages or (message,):
            if result.role == "tool":
                results[result.id, result.requestor or "assistant"].append(result)
    calls: list[SourceCall] = []
    users = unanswered = 0
    for message in messages:
        for call in message.tool_calls or ():
            waiting = results[call.id, call.requestor]
            if call.requestor == "user":
                users += 1
            elif not waiting:
                unanswered += 1
            else:
                result = waiting.popleft()
                content = result.content
                observed = content if isinstance(content, str) else _json(content)
                status: Status = "tool_error" if result.error else "ok"
                calls.append(SourceCall(call.name, call.arguments, status, observed))
    return tuple(calls), users, unanswered


def _json(content: Any) -> str:
    return "" if content is None else msgspec.json.encode(content).decode()


def _plain(message: _Message) -> dict[str, Any]:
    """A message without what its provider said around it."""
    told: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        told["tool_calls"] = [
            {
                "name": call.name,
                "arguments": call.arguments,
                **({"requestor": call.requestor} if call.requestor != "assistant" else {}),
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        told |= {"requestor": message.requestor, "error": message.error}
    if message.tool_messages:
        told["tool_messages"] = [_plain(each) for each in message.tool_messages]
    return told
