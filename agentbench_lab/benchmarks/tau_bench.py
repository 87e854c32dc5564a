"""Trajectories of tau-bench: one JSON file, a list of episodes (github.com/sierra-research/tau-bench, `run.py`).

The file names no agent, no model and no domain; the domain is read off the policy that opens each dialogue. The reward
is the benchmark's own: 1 when the database ends as it should and every asked output was told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import digest_of, is_one, read_json
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import UNKNOWN, SourceCall, SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Run
from agentbench_lab.results.schema import no_collection
from agentbench_lab.transcripts import Status, Usage

TOLD: tuple[Status, ...] = ("tool_error", "undeclared")
"""The failures of calls that an answer names. Wrong arguments are a tool's error there, and arguments that are no JSON
end the episode as an error of the harness, without its calls."""


class _Action(Struct):
    name: str
    kwargs: dict[str, Any] = {}


class _Task(Struct):
    instruction: str
    user_id: str = ""
    actions: list[_Action] = []
    outputs: list[str] = []


class _Info(Struct):
    task: _Task | None = None
    source: str | None = None
    user_cost: float | None = None
    reward_info: dict[str, Any] | None = None
    error: str | None = None


class _Function(Struct):
    name: str
    arguments: Any = None


class _ToolCall(Struct):
    function: _Function
    id: str | None = None


class _Message(Struct, omit_defaults=True):
    role: str
    content: Any = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class _Episode(Struct):
    task_id: int | str
    reward: float
    info: _Info
    traj: list[_Message]
    trial: int


def load_results(path: Path, options: Options) -> Run:
    """The episodes of one trajectory file.

    An episode without a `reward_info` ran out of steps: tau-bench counts it as not solved, and so it is here, with the
    stop `budget`. One that ended in an error of the harness is not solved there either, and keeps the error as its
    note. What the simulated user cost is in extra (`user_cost_usd`); what the agent cost is not in the file. Raises
    LabError for what is no such file, with the place in it.
    """
    with no_collection():
        episodes: list[_Episode] = read_json(path, list[_Episode])
        if not episodes:
            raise LabError(f"{path}: holds no episodes")
        cases = _cases(path, episodes)
        trials = [_trial(path, at, episode, options) for at, episode in enumerate(episodes)]
        asked = len(cases) * len({episode.trial for episode in episodes})
        return imported_run(
            suite=options.suite or _suite(episodes),
            trials=trials,
            imported=Imported(
                "tau-bench",
                path.name,
                digest=digest_of([path], path),
                notes=tuple(_notes(episodes, trials, asked, options)),
                statuses=TOLD,
            ),
            name=options.name,
            cases=cases,
            missing=max(asked - len(episodes), 0),
        )


def _cases(path: Path, episodes: Sequence[_Episode]) -> dict[str, SourceCase]:
    """The tasks in the order of the file; an episode that failed before it began does not tell its own."""
    cases: dict[str, SourceCase] = {}
    told: dict[str, _Task] = {}
    for at, episode in enumerate(episodes):
        case_id, task = str(episode.task_id), episode.info.task
        cases.setdefault(case_id, SourceCase())
        if task is None:
            continue
        if told.setdefault(case_id, task) != task:
            raise LabError(f"{path}: $[{at}].info.task is another than that of task {case_id} before")
        if not cases[case_id].request:
            expected = {"actions": msgspec.to_builtins(task.actions), "outputs": task.outputs}
            cases[case_id] = SourceCase(task.instruction, expectation=expected)
    return cases


def _suite(episodes: Sequence[_Episode]) -> str:
    """`tau-bench-airline`, where all dialogues open with the policy of one domain."""
    found = set()
    for episode in episodes:
        if episode.traj:
            opening = episode.traj[0].content
            named = re.match(r"\s*#+ (\w+) agent policy", opening if isinstance(opening, str) else "", re.I)
            found.add(named[1].lower() if named else None)
    domain = found.pop() if len(found) == 1 else None
    return f"tau-bench-{domain}" if domain else "tau-bench"


def _trial(path: Path, at: int, episode: _Episode, options: Options) -> SourceTrial:
    info, messages = episode.info, episode.traj
    if episode.trial < 0:
        raise LabError(f"{path}: $[{at}].trial is {episode.trial}; trials count from 0 there")
    failed = info.error is not None
    unfinished = info.reward_info is None and not failed
    calls, unanswered = _calls(messages)
    turns = sum(message.role == "assistant" for message in messages)
    extra: dict[str, Any] = {}
    if info.source is not None:
        extra["ended_by"] = info.source
    if info.user_cost is not None:
        extra["user_cost_usd"] = info.user_cost
    if unanswered:
        extra["calls_without_result"] = unanswered
    note = None
    if failed:
        note = f"the harness failed: {info.error}"
    elif unfinished:
        note = "out of steps: the dialogue was not finished, so that nothing was rewarded"
    return SourceTrial(
        case_id=str(episode.task_id),
        driver=options.driver or UNKNOWN,
        model=options.model or None,
        solved=is_one(episode.reward),
        trial=episode.trial + 1,
        terminated=None if failed else not unfinished,
        score=episode.reward,
        stop=None if failed else "budget" if unfinished else "done",
        steps=None if failed else turns,
        calls=None if failed else tuple(calls),
        usage=Usage(model_calls=None if failed else turns),
        note=note,
        messages=messages or None,
        extra=extra,
    )


def _calls(messages: Sequence[_Message]) -> tuple[list[SourceCall], int]:
    """The calls with what came back for each, in order, and how many were never answered."""
    calls: list[SourceCall] = []
    unanswered = 0
    for at, message in enumerate(messages):
        if message.role != "assistant":
            continue
        answers = _answers(messages, at)
        for call in message.tool_calls or ():
            # ids repeat over a dialogue; the answers stand right behind the message, in the order of its calls
            observed = next(answers, None)
            if observed is None:
                unanswered += 1
            else:
                calls.append(_call(call.function.name, call.function.arguments, observed))
        written = None if message.tool_calls else _written(messages, at)
        if written is not None:
            calls.append(written)
    return calls, unanswered


def _answers(messages: Sequence[_Message], at: int) -> Iterator[str]:
    for message in messages[at + 1 :]:
        if message.role != "tool":
            return
        yield _text(message.content)


_OUTPUT = "API output: "


def _written(messages: Sequence[_Message], at: int) -> SourceCall | None:
    """A call that the agent wrote as text (the strategies act and react), where the next message is its output."""
    following = messages[at + 1] if at + 1 < len(messages) else None
    content = messages[at].content
    if following is None or following.role != "user" or not isinstance(content, str):
        return None
    observed = _text(following.content)
    if not observed.startswith(_OUTPUT):
        return None
    try:
        action = msgspec.json.decode(content.rpartition("Action:")[2].strip(), type=_Function)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return _call(action.name, action.arguments, observed.removeprefix(_OUTPUT))


def _call(name: str, arguments: Any, observed: str) -> SourceCall:
    status: Status = "ok"
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.MsgspecError, RecursionError):
            status = "malformed"
    if observed.startswith("Error"):
        status = "tool_error" if status == "ok" else status
    elif observed == f"Unknown action {name}":
        status = "undeclared"
    return SourceCall(name, arguments, status, observed)


def _text(content: Any) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def _notes(
    episodes: Sequence[_Episode], trials: Sequence[SourceTrial], asked: int, options: Options
) -> Iterator[str]:
    if not options.driver or not options.model:
        yield "The file names neither agent nor model (--driver NAME, --model NAME)."
    yield "The cost of the agent is not in the file; that of the simulated user is in extra, user_cost_usd."
    stops = Counter(trial.stop for trial in trials)
    if stops["budget"]:
        yield f"Out of steps, and not solved as tau-bench counts: {stops['budget']} of {len(trials)} episodes."
    if stops[None]:
        yield f"An error of the harness, and not solved as tau-bench counts: {stops[None]} of {len(trials)} episodes."
    unanswered = sum(trial.extra.get("calls_without_result", 0) for trial in trials)
    if unanswered:
        yield f"Calls that have no result in their dialogue, and are not counted: {unanswered}."
    if asked > len(episodes):
        yield (
            f"Some tasks have fewer trials than others; missing: {asked - len(episodes)}. "
            "tau-bench itself divides by the number of trials of the whole file."
        )
