"""Lint: what a case file promises, proven against its world and its own grader.

Beyond the shape of a line it proves that every tool is registered and every pinned call binds and runs, that literals
still exist in the world, that goal recognition has the answer it says, and the gold self-test: the reference answer
of a case passes its grader, and with any one pinned value changed it does not. Cases that are judged by their outcome
have a self-test of their own (`running.lint_outcomes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agentbench_lab.cases import Call, Case, ExpectedCall, Suite, load_suite
from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean, nearest
from agentbench_lab.grading import Evidence, grade
from agentbench_lab.running.asked import check_sandboxes, level_asked
from agentbench_lab.running.lint_outcomes import Warns, outcome_problems
from agentbench_lab.running.mutants import changed_call, filled, other_text
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import same
from agentbench_lab.worlds.capabilities import Capability
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.sandbox_levels import Level
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox, World


def lint_suite(
    path: str | Path, *, world: str | Path | World | None = None, sandbox: str | Level = ""
) -> tuple[Problem, ...]:
    """Every problem of a case file, in the order of its lines; empty for a sound one.

    `sandbox` is the level of its work folders. A file that cannot be read, or a world that is missing, is reported like the rest.
    """
    try:
        suite = load_suite(path)
    except ProblemsError as error:
        return error.problems
    except LabError as error:
        return (Problem(str(path), 0, str(error).removeprefix(f"{path}: ")),)
    return lint_cases(suite, world=world, sandbox=sandbox)


def lint_cases(
    suite: Suite, *, world: str | Path | World | None = None, sandbox: str | Level = ""
) -> tuple[Problem, ...]:
    """The same for a suite that is already loaded (its shape is known to be sound)."""
    worlds = Worlds(suite, world, sandbox=level_asked(sandbox))
    problems: list[Problem] = []
    for case in suite.cases:
        try:
            of_case = worlds.of(case)
            check_sandboxes([(case, of_case)])
        except ProblemsError as error:
            problems += error.problems
            continue
        except LabError as error:
            message = str(error).removeprefix(f"{case.file}:{case.line}: ")
            problems.append(Problem(case.file, case.line, message))
            continue
        texts = dict.fromkeys(_case(case, of_case))
        problems += [
            Problem(case.file, case.line, f"{case.id}: {text}", isinstance(text, Warns)) for text in texts
        ]
    # a world that several cases share is at fault once
    return tuple(dict.fromkeys(problems))


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
    if case.taxonomy != "ladder":
        yield from outcome_problems(case, world)
        return
    yield from _literals(case, world)
    yield from _goals(case, world)
    yield from _gold(case, world)


def _calls_bind(case: Case, world: World) -> Iterator[str]:
    """Every call that the case names could be made at all."""
    named: list[tuple[str, Call]] = [
        (f"call {n}", Call(c.name, filled(c))) for n, c in enumerate(case.expect.expected_calls, 1)
    ]
    named += [(f"trace {n}", c) for n, c in enumerate(case.task.trace, 1)]
    named += [(f"candidate {n}", c) for n, c in enumerate(case.expect.candidate_results or (), 1)]
    named += [(f"gold {n}", c) for n, c in enumerate(case.gold.calls if case.gold else (), 1)]
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


def _literals(case: Case, world: World) -> Iterator[str]:
    """Every literal still stands for something: pinned calls run, labels of results exist."""
    toolbox = Toolbox(world.fork(), case.task.tools)
    failing = case.expect.recover.after if case.expect.recover else None
    for number, expected in enumerate(case.expect.expected_calls, 1):
        arguments = filled(expected)
        seen = toolbox.call(expected.name, arguments)
        if not seen.ok and expected.name != failing:
            yield f"call {number}: stale literal: {seen.text}"
        for key, values in expected.accept.items():
            for value in values:
                alone = Toolbox(world.fork(), case.task.tools)
                for before in case.expect.expected_calls[: number - 1]:
                    alone.call(before.name, filled(before))
                seen = alone.call(expected.name, {**arguments, key: value})
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
        calls=tuple(Call(call.name, filled(call)) for call in expect.expected_calls),
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
        for path, call in changed_call(reference.calls[at], wanted, case.task.tools):
            calls = (*reference.calls[:at], call, *reference.calls[at + 1 :])
            yield f"calls[{at}].{path}", replace(calls=calls)
        yield f"calls[{at}]", replace(calls=reference.calls[:at] + reference.calls[at + 1 :])
    for at, call in enumerate(reference.candidate_results or ()):
        found = reference.candidate_results or ()
        for path, other in changed_call(call, ExpectedCall(call.name, call.input), case.task.tools):
            yield (
                f"candidateResults[{at}].{path}",
                replace(candidate_results=(*found[:at], other, *found[at + 1 :])),
            )
    for at, label in enumerate(expect.result or ()):
        labels = [*(expect.result or ())]
        labels[at] = other_text(label)
        yield f"result[{at}]", replace(result=tuple(labels))
    for at, goal in enumerate(expect.ambiguous_goals or ()):
        goals = [*(expect.ambiguous_goals or ())]
        goals[at] = other_text(goal)
        yield f"ambiguousGoals[{at}]", replace(ambiguous_goals=tuple(goals))
    if expect.inferred_goal is not None:
        yield "inferredGoal", replace(inferred_goal=other_text(expect.inferred_goal))
    if expect.reject:
        yield "reject", replace(reject=False)
    if expect.refuse:
        yield "refuse", replace(refused=False)
    if expect.terminates is not False:
        yield "terminates", replace(terminated=False)
