"""One case in full: what is asked, the world it acts on, its tools, and one trial of it, step by step.

For reading, not for counting: everything here is a table of one case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.analysis.compare import arm_label, side
from agentbench_lab.analysis.metrics.arms import ARM
from agentbench_lab.cases import Case, Suite, load_suite
from agentbench_lab.charts.words import listed
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.run import Run
from agentbench_lab.tables import Table
from agentbench_lab.tables.dialogue import about_user, dialogue
from agentbench_lab.tables.table import Paragraphs
from agentbench_lab.worlds.sandbox import Sandbox
from agentbench_lab.worlds.sandbox_spec import stored
from agentbench_lab.worlds.toolbox import World

_LONGEST = 300
"""Signs of a value that are shown before it is cut."""


class Opened(Struct, frozen=True):
    """A case with its suite and its world."""

    suite: Suite
    case: Case
    world: World


def open_case(suite: str | Path | Suite, case: str, *, world: str | Path = "") -> Opened:
    """A case by its id. Raises LabError, with the nearest, for an id that the suite does not have."""
    from agentbench_lab.worlds.find import Worlds

    found = suite if isinstance(suite, Suite) else load_suite(suite)
    ids = [each.id for each in found.cases]
    if case not in ids:
        raise LabError(f"{found.name}: no case {case!r}{did_you_mean(case, ids)}")
    one = found.cases[ids.index(case)]
    return Opened(found, one, Worlds(found, world or None).of(one))


def carry_out(opened: Opened) -> Run:
    """One trial of the case by a script that carries out its reference solution; no agent, and no run on disk.

    Raises LabError for a case without one, which the ladder's cases of goals and candidates are.
    """
    import msgspec

    from agentbench_lab.cases import Task
    from agentbench_lab.drivers.context import Context
    from agentbench_lab.running.lint_outcomes import reference_answer, reference_calls
    from agentbench_lab.running.runner import evaluate
    from agentbench_lab.transcripts import Transcript, Usage
    from agentbench_lab.worlds.toolbox import Toolbox

    case = opened.case
    calls = reference_calls(case)
    expect = case.expect
    idle = expect.refuse or expect.calls == () or expect.answer is not None
    if expect.inferred_goal is not None or expect.candidate_results or not (calls or idle):
        raise LabError(f"{opened.suite.name}: {case.id} has no reference solution to carry out")

    def reference(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        for call in calls:
            tools.call(call.name, call.input)
        return Transcript(
            calls=calls,
            refused=expect.refuse,
            answer=reference_answer(case),
            usage=Usage.zero(),
            driver="reference",
        )

    reference.__qualname__ = "reference"
    reference.evidence = "simulated"  # type: ignore[attr-defined]
    reference.banner = "reference: the case's own solution, carried out by a script; not a model"  # type: ignore[attr-defined]
    alone = msgspec.structs.replace(opened.suite, cases=(case,), part=True)
    given: Any = {} if case.world is not None else {"world": opened.world}
    return evaluate(alone, reference, save_run=False, **given)


# ---- the tables


def about(opened: Opened) -> Table:
    """What a driver is given, and what only the grader and lint are."""
    import msgspec

    case = opened.case
    rows: list[Sequence[str] | str] = ["what the driver is given"]
    rows.append(["request", case.task.request])
    rules = [line for line in case.task.policy.split("\n") if line]
    rows += [["" if at else "policy", line] for at, line in enumerate(rules)]
    rows += [[f"part {n}", part] for n, part in enumerate(case.task.parts, start=1)]
    limits = {
        key: value for key, value in msgspec.structs.asdict(case.task.limits).items() if value is not None
    }
    if limits:
        rows.append(["limits", _json(limits)])
    if case.user is not None:
        rows.append("the simulated user, of whom the driver knows nothing")
        rows += about_user(case.user)
        rows.append(["turns", f"at most {case.max_turns} of the agent"])
    rows.append("what the grader looks for")
    if case.expect.mode != "strict":
        rows.append(["mode", case.expect.mode])
    for key, value in msgspec.to_builtins(case.expect).items():
        inside = value.items() if isinstance(value, dict) and value else ()
        rows += [[f"{key} {name}", _json(item)] for name, item in inside] or [[key, _json(value)]]
    if case.gold is not None:
        rows.append("the reference solution")
        rows += [
            [f"call {n}", _call(call.name, call.input)] for n, call in enumerate(case.gold.calls, start=1)
        ]
        if case.gold.answer is not None:
            rows.append(["answer", _json(case.gold.answer)])
    notes = [f"{opened.suite.name}, {case.group}" + (f": {case.note}" if case.note else "")]
    return Table(case.id, ["what", "how it is"], rows, notes, verbatim=True)


def world(opened: Opened) -> Table:
    """What there is in the case's world before anything is done."""
    made = opened.world
    state = getattr(made, "state", None)
    rows: list[Sequence[str] | str] = []
    if isinstance(state, dict):
        rows += [[key, _size(value), _json(value)] for key, value in state.items()]
        if not rows:
            rows = [["nothing", "", "its tools change nothing"]]
    elif isinstance(made, Sandbox):
        rows += [[path, "1", _cut(_content(held.data))] for path, held in stored(made.spec.files).items()]
        if not rows:
            rows = [["nothing", "", "an empty folder"]]
    else:
        rows = [["names", str(len(made.labels)), ", ".join(sorted(made.labels)[:12])]]
    return Table(
        f"World {made.name} ({made.kind})", ["place", ">entries", "begins with"], rows, verbatim=True
    )


def _content(held: bytes) -> str:
    """What a file holds, as text where it is text."""
    try:
        text = held.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if "\0" not in text else f"({_count(len(held), 'byte')}, no text)"


def _size(value: Any) -> str:
    return str(len(value)) if isinstance(value, dict | list) else "1"


def tools(opened: Opened) -> Table:
    """The declared tools: what each takes, and whether it can change anything."""
    rows = []
    for name in opened.case.task.tools:
        tool = opened.world.registry.by_name[name]
        taken = [
            f"{each.name}{'' if each.required else '?'}: {_kind(each.schema or {})}"
            for each in tool.parameters
        ]
        does = "reads" if tool.read_only else "changes"
        rows.append([name, ", ".join(taken) or "nothing", does, tool.question])
    return Table(
        "Tools", ["tool", "takes", "does", "what for"], rows, ["? marks an argument that may be left out"]
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(option) for option in schema["enum"])
    kind = schema.get("type", "any" if schema else "text")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def outcome(run: Run, case: str, *, trial: int = 1, arm: str = "") -> Paragraphs:
    """What became of a trial, in a sentence; and of which arm it is, where the run has several.

    `arm` is named as in `tables.trial`; empty is the run's first. Raises LabError for a case, a trial or an arm that the
    run does not have.
    """
    _, one = _trial(run, case, trial, arm)
    made = _calls(run, one)
    changed = sum(1 for call in made for _ in _changes(call["state_diff"]))
    label = _label(one)
    came = f"ended as {one['outcome']} ({one['outcome_class']})"
    if one["excluded"] is not None:
        came = f"was excluded by {one['excluded_owner'] or 'an owner that is not said'}"
    texts = [f"{case} by {label} {came}, after {_count(len(made), 'call')} and {_count(changed, 'change')}."]
    arms = [_label(each) for each in run.trials.select(list(ARM)).to_pylist()]
    names = list(dict.fromkeys(arms))
    if len(names) > 1:
        others = listed([name for name in names if name != label])
        texts.append(f"Shown is {label}, one of the {len(names)} arms of this run; the parameter arm shows another: {others}.")  # fmt: skip
    return Paragraphs(texts)


def _label(row: Mapping[str, Any]) -> str:
    return arm_label(row["driver"], row["model"], row["scaffold"])


def _calls(run: Run, one: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ledger of a trial's last attempt."""
    return [
        call
        for call in run.calls.to_pylist()
        if all(call[name] == one[name] for name in ("case_id", "trial", *ARM))
        and call["attempt"] == one.get("attempts", call["attempt"])
    ]


def steps(run: Run, case: str, *, trial: int = 1, arm: str = "") -> Table:
    """A trial's ledger: each call, what came back, and every place in the state that it changed, before and after.

    `arm` is as for `outcome`. Raises LabError for a case, a trial or an arm that the run does not have.
    """
    _, one = _trial(run, case, trial, arm)
    made = _calls(run, one)
    told: list[Sequence[str] | str] = []
    changed = 0
    for call in made:
        told.append(
            [
                str(call["step"]),
                _call(call["name"], json.loads(call["input"])),
                call["status"],
                _cut(call["observed"]),
            ]
        )
        for path, words in _changes(call["state_diff"]):
            changed += 1
            told.append(["", path, "changed", words])
    if not told:
        told.append(["", "no call reached the toolbox", "", ""])
    notes = [
        f"{_count(len(made), 'call')}, {_count(changed, 'change')}; outcome {one['outcome']} ({one['outcome_class']}); "
        f"evidence: {one['evidence']}"
    ]
    return Table(
        f"{case} [{_label(one)} #{trial}], step by step",
        [">step", "call or place", "status", "came back, or before → after"],
        told,
        notes,
        verbatim=True,
    )


def said(run: Run, case: str, *, trial: int = 1, arm: str = "") -> Table:
    """What was said in the same trial: of a conversation both sides, turn by turn; of a model its messages."""
    at, one = _trial(run, case, trial, arm)
    whole = run.transcripts.num_rows == run.trials.num_rows
    text = run.transcripts.column("messages")[at].as_py() if whole else None
    talk = json.loads(one["extra"] or "{}")
    rows: list[Sequence[str] | str] = [
        list(line) for line in dialogue(json.loads(text or "[]"), turns="turns" in talk)
    ]
    notes = (
        [f"{_count(talk['turns'], 'turn')} of the agent, ended by {talk['ended_by']}"]
        if "turns" in talk
        else []
    )
    return Table(
        f"{case} [{_label(one)} #{trial}], what was said",
        ["who", "what"],
        rows or [["nothing was said", "the driver keeps no messages"]],
        notes,
        verbatim=True,
    )


def verdict(run: Run, case: str, *, trial: int = 1, arm: str = "") -> Table:
    """Each check of the same trial, safety first, and how it came out."""
    at, one = _trial(run, case, trial, arm)
    made = run.product[at].verdict.checks if run.product else ()
    rows: list[Sequence[str] | str] = []
    for check in made:
        words = "passed" if check.passed else "FAILED" if check.gates else "not so, and decides nothing"
        rows.append([check.name, words, _cut(check.detail)])
    if not made:
        rows = [["reasons", "", _cut("; ".join(one["reasons"]) or "not in the file")]]
    ended = f"outcome {one['outcome']} ({one['outcome_class']})"
    if one["excluded"] is not None:
        ended = f"excluded by {one['excluded_owner']}: {one['excluded']}"
    notes = [f"{ended}; stop: {one['stop'] or 'not said'}"]
    return Table(
        f"{case} [{_label(one)} #{trial}], judged",
        ["check", "came out", "why"],
        rows,
        notes,
        verbatim=True,
    )


def _trial(run: Run, case: str, trial: int, arm: str) -> tuple[int, dict[str, Any]]:
    """The place and the row of a trial of this arm, or of the run's first arm that has it."""
    label = side(run, arm).name if arm else ""
    rows = run.trials.to_pylist()
    for at, row in enumerate(rows):
        if row["case_id"] == case and row["trial"] == trial and label in ("", _label(row)):
            return at, row
    ids = sorted({row["case_id"] for row in rows})
    by = f" by {label}" if label else ""
    raise LabError(f"{run.card.run}: no trial {trial} of {case!r}{by}{did_you_mean(case, ids)}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _changes(diff: str | None) -> Iterator[tuple[str, str]]:
    changes = json.loads(diff) if diff else ()
    if isinstance(changes, dict):
        # of a work folder it is said which files a call created, changed or removed
        yield from ((path, word) for word, paths in changes.items() for path in paths)
        return
    for change in changes:
        before = _json(change["old"]) if "old" in change else "nothing"
        after = _json(change["new"]) if "new" in change else "nothing"
        yield change["path"], f"{before} → {after}"


def _call(name: str, input: Any) -> str:
    return _cut(f"{name} {json.dumps(input, ensure_ascii=False)}")


def _json(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


__all__ = [
    "Opened",
    "about",
    "carry_out",
    "open_case",
    "outcome",
    "said",
    "steps",
    "tools",
    "verdict",
    "world",
]
