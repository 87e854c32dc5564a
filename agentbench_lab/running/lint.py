"""Lint: what a case file promises, proven against its world and its own grader.

Beyond the shape of a line it proves that every tool is registered and every pinned call binds and runs, that literals
still exist in the world, that goal recognition has the answer it says, and the gold self-test: the reference answer
of a case passes its grader, and with any one pinned value changed it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Case, ExpectedCall, Suite, load_suite
from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean, nearest
from agentbench_lab.grading import Evidence, grade
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import plain, same
from agentbench_lab.worlds.capabilities import Capability
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox, World


def lint_suite(path: str | Path, *, world: str | Path | World | None = None) -> tuple[Problem, ...]:
    """Every problem of a case file, in the order of its lines; empty for a sound one.

    A file that cannot be read, or a world that is missing, is reported like the rest.
    """
    try:
        suite = load_suite(path)
    except ProblemsError as error:
        return error.problems
    except LabError as error:
        return (Problem(str(path), 0, str(error).removeprefix(f"{path}: ")),)
    return lint_cases(suite, world=world)


def lint_cases(suite: Suite, *, world: str | Path | World | None = None) -> tuple[Problem, ...]:
    """The same for a suite that is already loaded (its shape is known to be sound)."""
    worlds = Worlds(suite, world)
    problems = []
    for case in suite.cases:
        try:
            of_case = worlds.of(case)
        except LabError as error:
            message = str(error).removeprefix(f"{case.file}:{case.line}: ")
            problems.append(Problem(case.file, case.line, message))
            continue
        texts = dict.fromkeys(_case(case, of_case))
        problems += [Problem(case.file, case.line, f"{case.id}: {text}") for text in texts]
    return tuple(problems)


def _case(case: Case, world: World) -> Iterator[str]:
    unknown = [name for name in case.task.tools if name not in world.registry.by_name]
    for name in unknown:
        reason = world.registry.excluded.get(name)
        because = f" ({reason})" if reason else did_you_mean(name, world.registry.names, most=0)
        yield f"tools: {name!r} is no registered tool of world {world.name!r}{because}"
    shape = [*_calls_bind(case, world)]
    yield from shape
    if unknown or shape:
        return
    yield from _literals(case, world)
    yield from _goals(case, world)
    yield from _gold(case, world)


def _calls_bind(case: Case, world: World) -> Iterator[str]:
    """Every call that the case names could be made at all."""
    named: list[tuple[str, Call]] = [
        (f"call {n}", Call(c.name, _filled(c))) for n, c in enumerate(case.expect.expected_calls, 1)
    ]
    named += [(f"trace {n}", c) for n, c in enumerate(case.task.trace, 1)]
    named += [(f"candidate {n}", c) for n, c in enumerate(case.expect.candidate_results or (), 1)]
    for where, call in named:
        for problem in world.registry.problems(call.name, call.input, case.task.tools):
            if problem.reason not in ("unknown-tool", "undeclared"):
                hint = _near_key(problem.detail, call, world) if problem.reason == "unknown-arg" else ""
                yield f"{where} cannot bind: {problem.reason} {problem.detail}{hint}"
        capability = world.registry.by_name.get(call.name)
        if capability is not None:
            known = {key: value for key, value in call.input.items() if key in capability.accepted}
            for misfit in capability.misfits(known):
                yield f"{where}: {misfit.detail}"
    for number, expected in enumerate(case.expect.expected_calls, 1):
        capability = world.registry.by_name.get(expected.name)
        if capability is None:
            continue
        for key, values in expected.accept.items():
            if key not in capability.accepted:
                yield f"call {number}: accept.{key}: {expected.name} has no argument {key!r}"
                continue
            for value in values:
                for misfit in capability.misfits({key: value}):
                    yield f"call {number}: accept: {misfit.detail}"
        yield from (f"call {number}: {text}" for text in _idle_pins(expected, capability))


def _idle_pins(expected: ExpectedCall, capability: Capability) -> Iterator[str]:
    """Pinned arguments that cannot tell a right call from a wrong one."""
    for key in expected.optional:
        if key in capability.required:
            yield f"optional {key!r}: {expected.name} cannot be called without it"
    for parameter in capability.parameters:
        schema = parameter.schema or {}
        possible = [True, False] if schema.get("type") == "boolean" else schema.get("enum")
        allowed = [*expected.accept.get(parameter.name, ())]
        if allowed and parameter.name in expected.input:
            allowed.append(expected.input[parameter.name])
        if possible and allowed and all(any(same(one, other) for other in allowed) for one in possible):
            yield f"accept.{parameter.name} lists every value there is, so the argument does not matter"


def _near_key(detail: str, call: Call, world: World) -> str:
    key = detail.rpartition(".")[2]
    near = nearest(key, world.registry.by_name[call.name].accepted)
    return f" (did you mean {near!r}?)" if near else ""


def _filled(call: ExpectedCall) -> dict[str, Any]:
    """A call's pinned arguments, with the first alternative where only alternatives are given."""
    return {**{key: values[0] for key, values in call.accept.items() if values}, **call.input}


def _literals(case: Case, world: World) -> Iterator[str]:
    """Every literal still stands for something: pinned calls run, labels of results exist."""
    toolbox = Toolbox(world.fork(), case.task.tools)
    failing = case.expect.recover.after if case.expect.recover else None
    for number, expected in enumerate(case.expect.expected_calls, 1):
        arguments = _filled(expected)
        seen = toolbox.call(expected.name, arguments)
        if not seen.ok and expected.name != failing:
            yield f"call {number}: stale literal: {seen.text}"
        for key, values in expected.accept.items():
            for value in values:
                seen = Toolbox(world.fork(), case.task.tools).call(expected.name, {**arguments, key: value})
                if not seen.ok and expected.name != failing:
                    yield f"call {number}: accept.{key}: stale literal: {seen.text}"
    for number, call in enumerate(case.expect.candidate_results or (), 1):
        seen = toolbox.call(call.name, call.input)
        if not seen.ok:
            yield f"candidate {number}: stale literal: {seen.text}"
    for label in case.expect.result or ():
        if label not in world.labels:
            yield f"expect.result: stale literal {label!r}{did_you_mean(label, world.labels, most=0)}"


def _goals(case: Case, world: World) -> Iterator[str]:
    """The answer of a recognition case follows from its trace and the declared goals."""
    if not case.task.trace:
        return
    names = [call.name for call in case.task.trace]
    fitting = {goal.id for goal in world.goals(case.task.tools) if goal.fits(names)}
    shown = ", ".join(sorted(fitting)) or "no declared goal"
    expect = case.expect
    if expect.inferred_goal is not None and fitting != {expect.inferred_goal}:
        yield f"expect.inferredGoal is {expect.inferred_goal!r}, but the trace fits {shown}"
    if expect.reject and fitting:
        yield f"expect.reject, but the trace fits {shown}"
    if expect.ambiguous_goals is not None and fitting != set(expect.ambiguous_goals):
        yield f"expect.ambiguousGoals differ: the trace fits {shown}"


def _gold(case: Case, world: World) -> Iterator[str]:
    """The reference answer passes; each pinned leaf of it, replaced by another value, fails."""
    reference = _reference(case)
    verdict = grade(case, reference, _evidence(case, world, reference))
    if not verdict.solved or not verdict.completed or not verdict.result_completed:
        yield f"gold self-test: the reference answer does not pass: {'; '.join(verdict.reasons) or verdict.outcome}"
        return
    for path, wrong in _mutants(case, reference):
        verdict = grade(case, wrong, _evidence(case, world, wrong))
        if verdict.solved and verdict.result_completed:
            yield f"gold self-test: {path} replaced by another value still passes"


def _reference(case: Case) -> Transcript:
    """The answer that the case itself describes."""
    expect = case.expect
    return Transcript(
        calls=tuple(Call(call.name, _filled(call)) for call in expect.expected_calls),
        refused=expect.refuse,
        result=expect.result,
        candidate_results=expect.candidate_results,
        recovered=expect.recover is not None,
        inferred_goal=expect.inferred_goal,
        reject=expect.reject is True,
        ambiguous_goals=expect.ambiguous_goals,
    )


def _evidence(case: Case, world: World, transcript: Transcript) -> Evidence:
    """The evidence of a driver that really made these calls.

    A changed call that the world refuses is put down as if it had been made, so that a mutant can only fail for its
    value and never because the world did not know it.
    """
    toolbox = Toolbox(world.fork(), case.task.tools)
    claimed = (*transcript.calls, *(transcript.candidate_results or ()))
    for call in claimed:
        toolbox.call(call.name, call.input)
    failing = case.expect.recover.after if case.expect.recover else None
    ledger: list[LedgerRow] = []
    for row, call in zip(toolbox.close(), claimed, strict=True):
        if row.status != "ok" and row.name != failing:
            row = LedgerRow(call.name, call.input, "ok", value=["?"])
        ledger.append(row)
    return Evidence(
        tuple(ledger),
        ((),) * len(transcript.calls),
        ((),) * len(transcript.candidate_results or ()),
        world.goals(case.task.tools) if case.task.trace else (),
    )


def _mutants(case: Case, reference: Transcript) -> Iterator[tuple[str, Transcript]]:
    expect = case.expect
    replace: Callable[..., Transcript] = lambda **changes: msgspec.structs.replace(reference, **changes)  # noqa: E731
    for at, wanted in enumerate(expect.expected_calls):
        for path, call in _changed_call(reference.calls[at], wanted, case.task.tools):
            calls = (*reference.calls[:at], call, *reference.calls[at + 1 :])
            yield f"calls[{at}].{path}", replace(calls=calls)
        yield f"calls[{at}]", replace(calls=reference.calls[:at] + reference.calls[at + 1 :])
    for at, call in enumerate(reference.candidate_results or ()):
        found = reference.candidate_results or ()
        for path, other in _changed_call(call, ExpectedCall(call.name, call.input), case.task.tools):
            yield (
                f"candidateResults[{at}].{path}",
                replace(candidate_results=(*found[:at], other, *found[at + 1 :])),
            )
    for at, label in enumerate(expect.result or ()):
        labels = [*(expect.result or ())]
        labels[at] = _other(label)
        yield f"result[{at}]", replace(result=tuple(labels))
    for at, goal in enumerate(expect.ambiguous_goals or ()):
        goals = [*(expect.ambiguous_goals or ())]
        goals[at] = _other(goal)
        yield f"ambiguousGoals[{at}]", replace(ambiguous_goals=tuple(goals))
    if expect.inferred_goal is not None:
        yield "inferredGoal", replace(inferred_goal=_other(expect.inferred_goal))
    if expect.reject:
        yield "reject", replace(reject=False)
    if expect.refuse:
        yield "refuse", replace(refused=False)
    if expect.terminates:
        yield "terminates", replace(terminated=False)


def _changed_call(call: Call, wanted: ExpectedCall, tools: Sequence[str]) -> Iterable[tuple[str, Call]]:
    """The call with one pinned leaf changed, each in turn."""
    yield "name", Call(next((name for name in tools if name != call.name), _other(call.name)), call.input)
    for key in dict.fromkeys((*wanted.input, *wanted.accept)):
        allowed = [*([wanted.input[key]] if key in wanted.input else []), *wanted.accept.get(key, ())]
        for path, value in _leaves(call.input[key], f"input.{key}", allowed):
            yield path, Call(call.name, {**call.input, key: value})


def _leaves(value: Any, path: str, allowed: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """`value` with one leaf replaced, so that the whole is none of the allowed values, for every leaf."""
    for where, changed in _replaced(value, path):
        fresh = next((other for other in changed if not any(same(other, one) for one in allowed)), _NOTHING)
        if fresh is not _NOTHING:
            yield where, fresh


_NOTHING = object()


def _replaced(value: Any, path: str) -> Iterator[tuple[str, Iterator[Any]]]:
    """Per leaf of `value` its path and copies of `value` with another value there, as many as are asked for."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            for where, others in _replaced(item, f"{path}.{key}"):
                yield where, ({**plain(value), key: other} for other in others)
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            for where, others in _replaced(item, f"{path}[{at}]"):
                yield where, ([*plain(value[:at]), other, *plain(value[at + 1 :])] for other in others)
    else:
        yield path, _others(value)


def _others(value: Any) -> Iterator[Any]:
    """Values that are not this one, the alike ones first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (n for n in range(64) if n != value)
    elif isinstance(value, str):
        yield from (value + "~" * n for n in range(1, 65))
    yield from ("~", None, ["~"])


def _other(value: str) -> str:
    return f"{value}~"
