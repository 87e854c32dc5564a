"""What a grade is made of: the evidence it is read from, the checks, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentbench_lab.cases import Call, ExpectedCall, Goal
from agentbench_lab.outcomes import LADDER, OUTCOME_GRADED, Class
from agentbench_lab.worlds.capabilities import BindingProblem
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.toolbox import LedgerRow

Problems = tuple[BindingProblem, ...]

STOPS = ("timeout", "budget", "driver_error")
"""The ways to stop that are outcomes of their own."""


class Evidence(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the runner saw, beside what the driver said.

    `ledger` is every call that reached the toolbox. `problems` says, per claimed call, why it cannot bind (empty for
    one that can); `candidate_problems` the same for the claimed candidates. `goals` are the declared goals of a case
    with a trace. `fault` is what went wrong in the world itself, `seen` what was read off it at the end.
    """

    ledger: tuple[LedgerRow, ...] = ()
    problems: tuple[Problems, ...] = ()
    candidate_problems: tuple[Problems, ...] = ()
    goals: tuple[Goal, ...] = ()
    fault: str = ""
    seen: Seen | None = None


class Check(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing that was looked at. A check with `gates` false is shown and decides nothing."""

    name: str
    passed: bool
    detail: str = ""
    gates: bool = True


class Grade(Struct, frozen=True, gc=False):
    """The verdict on one trial: one outcome of the taxonomy, its class, the ladder's four marks, and every check.

    `outcome` and the marks are None for an excluded trial, which `excluded` (why) and `owner` (whose fault) explain.
    """

    outcome: str | None
    cls: Class | None
    solved: bool | None
    completed: bool | None
    result_completed: bool | None
    hallucinated: bool | None
    checks: tuple[Check, ...] = ()
    excluded: str | None = None
    owner: str | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """The details of the checks that failed and gate."""
        return tuple(
            check.detail or f"{check.name} failed"
            for check in self.checks
            if check.gates and not check.passed
        )


_CLASS = {outcome.name: outcome.cls for known in (LADDER, OUTCOME_GRADED) for outcome in known.outcomes}


def judged(
    outcome: str, completed: bool, result_completed: bool, hallucinated: bool, checks: Sequence[Check]
) -> Grade:
    """The grade of a judged trial; its class follows from the taxonomy."""
    cls = _CLASS[outcome]
    return Grade(outcome, cls, cls == "success", completed, result_completed, hallucinated, tuple(checks))


def excluded(why: str, owner: str) -> Grade:
    """The grade of a trial that says nothing about the driver."""
    return Grade(None, None, None, None, None, None, (), why, owner)


def hallucinations(calls: Sequence[Call], problems: Sequence[Problems]) -> list[str]:
    """Each hallucinated call as `name[reason, ...]`."""
    return [
        f"{cut(call.name) or '«no name»'}[{', '.join(dict.fromkeys(p.reason for p in found))}]"
        for call, found in zip(calls, problems, strict=True)
        if found
    ]


def shown(calls: Sequence[Call | ExpectedCall]) -> str:
    """Calls in words: `tool(key=value) → tool()`; long values and long lists are cut."""
    if len(calls) == 1:
        return _shown(calls[0])
    words = [_shown(call) for call in calls[:_MOST]]
    if len(calls) > _MOST:
        words.append(f"{len(calls) - _MOST} more")
    return " → ".join(words) or "no call"


_MOST = 12
_LONGEST = 80


def _shown(call: Call | ExpectedCall) -> str:
    short = ", ".join([f"{key}={value!r}" for key, value in call.input.items()])
    if len(short) + len(call.name) <= _LONGEST and len(call.input) <= _MOST:
        return f"{call.name}({short})"
    arguments = [f"{cut(key)}={cut(repr(value))}" for key, value in list(call.input.items())[:_MOST]]
    if len(call.input) > _MOST:
        arguments.append(f"{len(call.input) - _MOST} more")
    return f"{cut(call.name)}({', '.join(arguments)})"


def cut(text: str, most: int = _LONGEST) -> str:
    """The text, or its beginning when it is longer than a line of a report should be."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
