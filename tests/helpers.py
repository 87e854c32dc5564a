"""A garden: a small typed world whose answers can be worked out by hand, and the way from a story to its grade."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Case, Expect, Goal, parse_cases
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.results.product import Arm, ProductRow, encode_rows, product_row, regrade
from agentbench_lab.running.trial import collect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.capabilities import Capability, Effect, Parameter, Precondition, Registry
from agentbench_lab.worlds.toolbox import Fact, Ran, Toolbox

NEAR = {"oak": ["elm"], "elm": ["ash", "oak"], "ash": []}
"""Which tree stands beside which: the ash has no neighbour that it knows of."""

_what = Parameter("what", "Tree", True)
_grown = Precondition("cap:graph-loaded")
_found = Precondition("cap:resolves", "what", "Tree")

REGISTRY = Registry(
    (
        Capability(
            "look",
            "look",
            "What stands there?",
            (_what, Parameter("how", "Word")),
            (_grown, _found),
            (Effect("view", "?what"),),
        ),
        Capability(
            "near", "near", "What stands beside it?", (_what,), (_grown, _found), (Effect("beside", "?what"),)
        ),
        Capability("all", "all", "Every tree.", (), (_grown,), (Effect("all"),)),
        Capability(
            "find",
            "find",
            "Trees by word or kind.",
            (Parameter("query", "Word"), Parameter("kind", "Word")),
            (_grown, Precondition("cap:any-present", params=("query", "kind"))),
            (Effect("matches", "?query"),),
        ),
        Capability(
            "paint",
            "paint",
            "Paint a tree.",
            (_what, Parameter("colour", "Word", True)),
            (_grown, _found),
            (Effect("colour", "?what", "cap:changes"),),
            read_only=False,
        ),
        Capability(
            "resample",
            "resample",
            "A series at another rate.",
            (
                Parameter("values", "Series", True, schema={"type": "array", "items": {"type": "number"}}),
                Parameter("rate", "Rate", True, schema={"type": "number"}),
                Parameter("count", "Count", True, schema={"type": "integer"}),
                Parameter("loop", "Flag", True, schema={"type": "boolean"}),
                Parameter("label", "Word", schema={"type": "string", "default": "raw"}),
            ),
        ),
        Capability(
            "any", "any", "Takes what it is given.", tuple(Parameter(k, "Any", schema={}) for k in "abcdef")
        ),
    ),
    excluded={"burn": "cannot be undone"},
)
GOALS = (
    Goal("cap:all", ("all",)),
    Goal("cap:look", ("look",)),
    Goal("cap:near", ("near",)),
    Goal("goal:survey", ("all", "look")),
    Goal("goal:walk", ("near", "look")),
)
ALL = REGISTRY.names


class Garden:
    """The world; `false` names preconditions that do not hold although the tools run."""

    name, kind, digest = "garden", "test", "0"
    registry = REGISTRY
    labels = frozenset(NEAR)

    def __init__(self, false: Sequence[str] = ()) -> None:
        self.false = tuple(false)
        self.colours: dict[str, str] = {}

    def fork(self) -> Garden:
        return Garden(self.false)

    def seen(self, expect: Expect) -> None:
        """A garden has no state that a case could expect."""

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        return tuple(goal for goal in GOALS if set(goal.plan) <= set(declared))

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        what = input.get("what")
        facts = [Fact("cap:graph-loaded", "cap:graph-loaded" not in self.false)]
        if name in ("look", "near", "paint"):
            known = what in NEAR
            facts.append(Fact("cap:resolves", known and "cap:resolves" not in self.false, "what", what))
            if not known:
                return Ran(None, "", tuple(facts), error=f"there is no {what}")
        if name == "look":
            return Ran([what], f"a tree called {what}", tuple(facts))
        if name == "near":
            return Ran(list(NEAR[str(what)]), ", ".join(NEAR[str(what)]) or "nothing", tuple(facts))
        if name == "paint":
            before, self.colours[str(what)] = self.colours.get(str(what)), input["colour"]
            return Ran([what], "painted", tuple(facts), diff={"before": before, "after": input["colour"]})
        if name == "find":
            hits = [tree for tree in sorted(NEAR) if str(input.get("query", "")) in tree]
            return Ran(hits, ", ".join(hits), tuple(facts))
        if name == "all":
            return Ran(sorted(NEAR), ", ".join(sorted(NEAR)), tuple(facts))
        return Ran(input, json.dumps(input))


def call(name: str, **input: Any) -> Call:
    return Call(name, input)


def expected(*calls: Call, **expect: Any) -> dict[str, Any]:
    """The `expect` of a case whose calls are these."""
    listed = [{"name": one.name, "input": one.input} for one in calls]
    return {"terminates": True, **({"calls": listed} if listed else {}), **expect}


def line(**keys: Any) -> dict[str, Any]:
    """A whole and sound case, on disk, with these keys instead."""
    whole = {"id": "c", "rung": "TOOL-0", "request": "Look at the oak", "tools": list(ALL)}
    return {**whole, "expect": expected(call("look", what="oak")), **keys}


def to_bytes(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


def case(**keys: Any) -> Case:
    """The same, read; it has to be sound."""
    cases, problems = parse_cases(to_bytes(line(**keys)), name="garden", file="garden.jsonl")
    assert problems == []
    return cases[0]


def play(
    of: Case, made: Iterable[Call] = (), *, world: Garden | None = None, **said: Any
) -> tuple[Transcript, Evidence]:
    """What a driver gives back that makes the calls `made` and says `said`, and what the runner sees of it."""
    toolbox = Toolbox((world or Garden()).fork(), of.task.tools)
    for one in made:
        toolbox.call(one.name, one.input)
    transcript = Transcript(**{key: tuple(v) if isinstance(v, list) else v for key, v in said.items()})
    goals = Garden().goals(of.task.tools) if of.task.trace else ()
    task = msgspec.structs.replace(of.task, goals=goals)
    return transcript, collect(of, task, transcript, toolbox.close(), toolbox)


def again(of: Case, transcript: Transcript, evidence: Evidence, verdict: Grade, strictness: str) -> Grade:
    """The same trial judged from the one line of its product row."""
    task = msgspec.structs.replace(of.task, goals=evidence.goals)
    row = product_row(of, task, Arm("d"), 1, "s", strictness, transcript, evidence, verdict)
    return regrade(msgspec.json.decode(encode_rows([row]), type=ProductRow))


def judge(
    of: Case,
    made: Iterable[Call] = (),
    *,
    strictness: str = "strict",
    world: Garden | None = None,
    **said: Any,
) -> Grade:
    """The grade of the story; every story is also judged from its product row, and has to come out the same."""
    transcript, evidence = play(of, made, world=world, **said)
    verdict = grade(of, transcript, evidence, strictness=strictness)
    assert again(of, transcript, evidence, verdict, strictness) == verdict
    return verdict


def checks(verdict: Grade) -> dict[str, str | None]:
    """Per check None when it passed, else what it says."""
    return {check.name: None if check.passed else check.detail for check in verdict.checks}
