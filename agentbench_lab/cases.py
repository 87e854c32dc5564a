"""Cases: a task, what is expected of it, and the world it acts on; read from JSON Lines, strictly.

On disk a case is one flat JSON object a line, in the shape of the TOOL ladder's own files. A driver is given the
`Task` alone; only the grader is given the `Expect`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field

from agentbench_lab.errors import LabError, Problem, ProblemsError, counted, did_you_mean, nearest, shown
from agentbench_lab.expect import (
    LADDER_KEYS,
    OUTCOME_KEYS,
    AgentdGrade,
    BfclTruth,
    ExpectedAnswer,
    state_faults,
)
from agentbench_lab.expect_work import (
    Base64,
    ExpectedCommand,
    ExpectedFile,
    ExpectedOutput,
    Given,
    work_faults,
)
from agentbench_lab.users import MAX_TURNS, Line, User, When, user_faults
from agentbench_lab.values import NotJson, digest, plain

RUNGS = tuple(f"TOOL-{n}" for n in range(10))
"""The rungs of the TOOL ladder, a closed list."""

Order = Literal["positional", "any_order", "subset", "superset"]
"""How calls are matched: position by position; as a set with repetitions; only expected ones; at least the expected."""
TaxonomyName = Literal["ladder", "outcome-graded"]
"""The outcomes by which a suite is judged."""


class Call(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One tool call: the tool's name and its arguments, a JSON object."""

    name: str
    input: dict[str, Any] = field(default_factory=dict)


class ExpectedCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that is expected. `input` is a lower bound: each pinned argument must have this value, others are free.

    `accept` lists, per argument, the values of which any will do; `optional` names pinned arguments that may be absent.
    """

    name: str
    input: dict[str, Any] = field(default_factory=dict)
    accept: dict[str, list[Any]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


class Recover(Struct, frozen=True, forbid_unknown_fields=True):
    """The call of tool `after` must come back empty or failed, and then the tool `fallback` be called."""

    after: str
    fallback: str


class Expect(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={
        "candidate_results": "candidateResults",
        "inferred_goal": "inferredGoal",
        "ambiguous_goals": "ambiguousGoals",
    },
):
    """What the grader looks for. Every check that is declared must pass; see docs/formats.md for each key."""

    calls: tuple[ExpectedCall, ...] | msgspec.UnsetType = msgspec.UNSET
    order: Order = "positional"
    forbid: tuple[str, ...] = ()
    refuse: bool = False
    terminates: bool | None = None
    proof: bool = False
    result: tuple[str, ...] | None = None
    recover: Recover | None = None
    candidate_results: tuple[Call, ...] | None = None
    inferred_goal: str | None = None
    reject: bool | None = None
    ambiguous_goals: tuple[str, ...] | None = None
    state: dict[str, Any] | None = None
    state_absent: tuple[str, ...] = ()
    state_equals: dict[str, Any] | None = None
    files: dict[str, ExpectedFile] | None = None
    command: ExpectedCommand | None = None
    answer: ExpectedAnswer | None = None
    bfcl: BfclTruth | None = None
    agentd: AgentdGrade | None = None

    @property
    def mode(self) -> Literal["strict", "bfcl", "agentd"]:
        """By whose rule a trial is judged: ours, or one that a public benchmark has published."""
        return "bfcl" if self.bfcl is not None else "agentd" if self.agentd is not None else "strict"

    @property
    def expected_calls(self) -> tuple[ExpectedCall, ...]:
        return () if self.calls is msgspec.UNSET else self.calls

    @property
    def key(self) -> Literal["calls", "refuse", "goal", "state", "files", "command", "answer"]:
        """What the case's success is counted over."""
        if self.agentd is not None:
            return self.agentd.key
        if self.inferred_goal is not None:
            return "goal"
        if self.refuse:
            return "refuse"
        if self.of_state:
            return "state"
        if self.of_work:
            return "command" if self.files is None else "files"
        return "calls" if self.answer is None or self.calls is not msgspec.UNSET else "answer"

    @property
    def of_state(self) -> bool:
        """Whether the end state is looked at."""
        return self.state is not None or bool(self.state_absent) or self.state_equals is not None

    @property
    def of_work(self) -> bool:
        """Whether the work folder is looked at."""
        if self.agentd is not None:
            return self.agentd.of_work
        return self.files is not None or self.command is not None

    @property
    def grades(self) -> bool:
        """Whether there is anything that a trial could fail."""
        return self.key != "calls" or self.calls is not msgspec.UNSET or self.mode != "strict"


class Limits(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one trial may use at most; None is no limit. Wall time is seconds of one attempt, steps are model calls,
    tokens all four buckets together, money micros of a dollar."""

    wall_s: Annotated[float, Meta(gt=0)] | None = None
    steps: Annotated[int, Meta(ge=0)] | None = None
    tool_calls: Annotated[int, Meta(ge=0)] | None = None
    tokens: Annotated[int, Meta(ge=0)] | None = None
    cost_micros: Annotated[int, Meta(ge=0)] | None = None


class Goal(Struct, frozen=True):
    """A declared goal that a trace may be serving: its id and the plan (tool names in order) that achieves it."""

    id: str
    plan: tuple[str, ...]

    def fits(self, trace: Sequence[str]) -> bool:
        """Whether the tool names of `trace`, in order, are a subsequence of the plan."""
        steps = iter(self.plan)
        return all(name in steps for name in trace)


class Message(Struct, frozen=True):
    """One turn of a conversation that has been."""

    role: Literal["user", "assistant"]
    text: str


class Task(Struct, frozen=True, omit_defaults=True):
    """What a driver is given: the request, the names of the declared tools, the policy it has to keep, and for goal
    recognition the observed trace and the declared goals. Nothing in it tells the answer.

    `parts` are the sentences of a request that ask for things which have nothing to do with each other. In a
    conversation `request` is what the user said last, and `history` all that was said before, from the first turn on.
    """

    request: str
    tools: tuple[str, ...]
    trace: tuple[Call, ...] = ()
    goals: tuple[Goal, ...] = ()
    limits: Limits = field(default_factory=Limits)
    policy: str = ""
    parts: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()

    @property
    def width(self) -> int:
        """How many independent parts the request has; one where nobody has counted them."""
        return len(self.parts) or 1


class Gold(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reference solution: the calls that do what is asked, in order, and the answer; `parts` says how many of the
    calls, in order, each part of the request takes. No driver ever sees it, but the error model `simulated`.
    """

    calls: tuple[Call, ...] = ()
    answer: Any = None
    parts: tuple[int, ...] = ()


class _Line(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"overfit_prone": "overfitProne", "floor_expect": "floorExpect"},
):
    """The flat object on disk."""

    id: str
    request: str
    tools: tuple[str, ...]
    expect: Expect
    rung: str | None = None
    group: str | None = None
    world: str | dict[str, Any] | None = None
    trace: tuple[Call, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    policy: str = ""
    parts: tuple[str, ...] = ()
    user: User | None = None
    max_turns: Annotated[int, Meta(ge=1)] | None = None
    gold: Gold | None = None
    note: str = ""
    compose: str = ""
    overfit_prone: bool = False
    floor_expect: dict[str, bool] | None = None


class Case(Struct, frozen=True):
    """One case: its identity, the task for the driver, the expectation for the grader, and where it came from.

    `world` is a name under worlds/ or a whole world, as in the file. `taxonomy` names the outcomes of its suite. With a
    `user` it is a conversation of at most `max_turns` turns of the agent, whose first request is the task's.
    """

    id: str
    group: str
    task: Task
    expect: Expect
    world: str | dict[str, Any] | None = None
    suite: str = ""
    note: str = ""
    compose: str = ""
    floor_expect: bool = False
    digest: str = ""
    file: str = ""
    line: int = 0
    taxonomy: TaxonomyName = "ladder"
    gold: Gold | None = None
    user: User | None = None
    max_turns: int = MAX_TURNS


class Suite(Struct, frozen=True):
    """A file of cases: named by its stem, carried with the SHA-256 of its bytes and what its card says of it.

    `part`: these are cases of a suite whose other cases, if there are any, are not known.
    """

    name: str
    cases: tuple[Case, ...]
    digest: str
    path: Path | None = None
    version: str | None = None
    date: str | None = None
    part: bool = False


def load_suite(path: str | Path) -> Suite:
    """Read and check a case file. Raises ProblemsError with every problem of the file, each with its `file:line`.

    A suite may also be given by its bare name: `ladder` is data/cases/ladder.jsonl of the project.
    """
    file = find_suite(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: cannot read the case file: {error.strerror}") from None
    cases, problems = parse_cases(data, name=file.stem, file=shown(file.resolve()))
    if problems:
        if not cases and (of := _format_of(data)):
            said = f"holds cases of {of[0]}; run them from Python: evaluate({of[1]}.load_cases(FILE), DRIVER)"
            raise LabError(f"{path}: {said}; see docs/formats.md, Published rules")
        raise ProblemsError(problems)
    version, date = _card(file.with_suffix(".md"))
    return Suite(file.stem, tuple(cases), hashlib.sha256(data).hexdigest(), file, version, date)


_FORMATS = {
    ("agentd's harness", "agentbench_lab.benchmarks.agentd"): {"id", "instruction"},
    ("the Berkeley Function Calling Leaderboard", "agentbench_lab.benchmarks.bfcl_cases"): {"id", "question", "function"},
}  # fmt: skip


def _format_of(data: bytes) -> tuple[str, str] | None:
    """Whose cases the first line that is JSON is, of those that have a loader of their own, by its keys."""
    for raw in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if raw.lstrip().startswith(b"{"):
            value, _ = _read(raw.strip())
            keys = set(value or ())
            return next((of for of, known in _FORMATS.items() if known <= keys), None)
    return None


def suite_of(cases: Sequence[Case]) -> Suite:
    """A suite of loaded cases, such as `select` gives; they must be of one case file. Its digest is that of the cases'."""
    names = {case.suite for case in cases}
    if not names:
        raise LabError("no cases to run")
    if len(names) != 1:
        raise LabError(f"cases of several suites ({', '.join(sorted(names))}) cannot be run as one")
    path = Path(cases[0].file) if cases[0].file else None
    key = digest([case.digest for case in cases])
    return checked_suite(Suite(names.pop(), tuple(cases), key, path, part=True))


def checked_suite(suite: Suite) -> Suite:
    """The suite itself, when its cases could have come from a file: ids are unique, and each expects something."""
    seen: set[str] = set()
    for case in suite.cases:
        if not case.id or case.id in seen:
            raise LabError(f"{suite.name}: id {case.id!r} is {'given twice' if case.id else 'blank'}")
        seen.add(case.id)
        outcome = case.taxonomy != "ladder"
        if not (case.expect.grades if outcome else case.expect.key != "calls" or case.expect.expected_calls):
            beside = ", a state or an answer" if outcome else ""
            raise LabError(f"{suite.name}: {case.id}: expects neither calls nor a refusal nor a goal{beside}")
    names = sorted({case.taxonomy for case in suite.cases})
    if len(names) > 1:
        raise LabError(f"{suite.name}: its cases are judged by different outcomes ({', '.join(names)})")
    return suite


def project_root() -> Path:
    """The folder that holds data/cases: the working folder or the nearest one above it, else the source checkout."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parent.parent):
        if (folder / "data" / "cases").is_dir():
            return folder
    return here


def find_suite(path: str | Path) -> Path:
    """The case file that a path or a bare suite name means."""
    file = Path(path)
    if file.is_file():
        return file
    if file.is_dir():
        raise LabError(f"{path}: is a folder, not a case file")
    folder = project_root() / "data" / "cases"
    named = folder / file.name if file.suffix == ".jsonl" else folder / f"{file.name}.jsonl"
    if len(file.parts) == 1 and named.is_file():
        return named
    beside = file.parent.glob("*.jsonl") if file.parent.is_dir() else ()
    known = {p.name for p in beside} | {p.stem for p in folder.glob("*.jsonl")}
    raise LabError(f"{path}: no such case file{did_you_mean(file.name, known)}")


def parse_cases(data: bytes, *, name: str, file: str) -> tuple[list[Case], list[Problem]]:
    """Cases and problems of a case file's bytes. Lines end with \\n only; blank lines are skipped but counted."""
    read: list[tuple[int, str, _Line | None]] = []
    said: dict[int, list[str]] = {}
    first: dict[str, int] = {}
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        text = raw.strip(b" \t\r")
        if not text:
            continue
        value, wrong = _read(text)
        line: _Line | None = None
        if value is not None:
            key = digest(value)
            line, faults = _shape(value)
            wrong += faults
            given = value.get("id")
            if isinstance(given, str):
                if given in first:
                    wrong.append(f"id {given!r} is already on line {first[given]}")
                first.setdefault(given, number)
        said[number] = wrong
        read.append((number, key if value is not None else "", line))
    lines = [line for _, _, line in read if line is not None]
    taxonomy: TaxonomyName = "outcome-graded" if any(map(_outcome_keys, lines)) else "ladder"
    climbing = next((line.id for line in lines if line.rung is not None), None)
    for number, _, line in read:
        if line is not None:
            said[number] += [f"{line.id}: {message}" for message in _rules(line, taxonomy, climbing)]
    cases = [_case(line, key, name, file, number, taxonomy) for number, key, line in read if line is not None]
    problems = [Problem(file, number, message) for number in said for message in said[number]]
    if not cases and not problems:
        problems.append(Problem(file, 0, "no cases"))
    return cases, problems


def _outcome_keys(line: _Line) -> list[str]:
    """What a line has that the ladder's outcomes do not know; a rung is always the ladder's."""
    if line.rung is not None:
        return []
    expect = line.expect
    keys = [f"expect.{key}" for key in OUTCOME_KEYS if getattr(expect, key) not in (None, ())]
    if expect.order != "positional":
        keys.append("expect.order")
    if expect.calls == ():
        keys.append("expect.calls")
    return keys + (["gold"] if line.gold is not None else [])


def _case(line: _Line, key: str, suite: str, file: str, number: int, taxonomy: TaxonomyName) -> Case:
    return Case(
        id=line.id,
        group=line.rung or line.group or "",
        task=Task(
            line.request,
            line.tools,
            line.trace or (),
            limits=line.limits,
            policy=line.policy,
            parts=line.parts,
        ),
        expect=line.expect,
        world=line.world,
        suite=suite,
        note=line.note,
        compose=line.compose,
        floor_expect=line.floor_expect is not None,
        digest=key,
        file=file,
        line=number,
        taxonomy=taxonomy,
        gold=line.gold,
        user=line.user,
        max_turns=line.max_turns or MAX_TURNS,
    )


def _read(text: bytes) -> tuple[dict[str, Any] | None, list[str]]:
    """The JSON object of one line, strictly, and what is wrong with it as JSON."""
    try:
        value = plain(msgspec.json.decode(text))
        if not isinstance(value, dict):
            return None, ["a case must be a JSON object"]
        return value, [f"key {key!r} is given twice" for key in _repeated_keys(text)]
    except msgspec.ValidationError:
        return None, ["invalid JSON: a number is out of range"]
    except msgspec.DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        return None, [f"invalid JSON: {reason[:1].lower()}{reason[1:]}"]
    except NotJson as error:
        return None, [str(error).removeprefix("$").removeprefix(".")]
    except RecursionError:
        return None, ["invalid JSON: nested too deeply"]


def _repeated_keys(text: bytes) -> list[str]:
    twice: list[str] = []

    def check(pairs: list[tuple[str, Any]]) -> None:
        twice.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)

    json.loads(text, object_pairs_hook=check)
    return twice


_SHAPES: dict[str, type[Struct]] = {
    "$": _Line,
    "$.expect": Expect,
    "$.expect.calls[]": ExpectedCall,
    "$.expect.candidateResults[]": Call,
    "$.expect.recover": Recover,
    "$.expect.answer": ExpectedAnswer,
    "$.expect.files[...]": ExpectedFile,
    "$.expect.files[...].exact": Base64,
    "$.expect.command": ExpectedCommand,
    "$.expect.command.stdout": ExpectedOutput,
    "$.expect.command.stderr": ExpectedOutput,
    "$.expect.command.files[...]": Given,
    "$.expect.bfcl": BfclTruth,
    "$.expect.agentd": AgentdGrade,
    "$.gold": Gold,
    "$.gold.calls[]": Call,
    "$.trace[]": Call,
    "$.limits": Limits,
    "$.user": User,
    "$.user.script[]": Line,
    "$.user.script[].when": When,
}
_REQUIRED = ("id", "request", "tools", "expect", "name", "after", "fallback", "run", "base64", "when", "say")
_WORDS = {
    "array": "a list",
    "object": "an object",
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
}


def _stand_in(key: str) -> Any:
    """A value of the right shape for a required key."""
    return {"tools": ["?"], "expect": {}, "when": {"turn": 1}}.get(key, "?")


def _shape(value: dict[str, Any]) -> tuple[_Line | None, list[str]]:
    """The line that the object is, or every way in which it is none: each that is found is mended in `value`, which
    is then read again. A line whose only faults are keys that mean nothing is still read, for what else is wrong."""
    problems: list[str] = []
    meant: set[tuple[str, str]] = set()
    usable = True
    while len(problems) <= 100:
        try:
            line = msgspec.convert(value, _Line)
        except msgspec.ValidationError as error:
            message, path = _split(str(error))
        else:
            return (line if usable else None), problems
        holders, where = _walk(value, path)
        shape = _SHAPES.get(re.sub(r"\[\d+\]", "[]", path))
        keys = shape.__struct_encode_fields__ if shape else ()
        field_fault = re.fullmatch(
            r"Object (contains unknown|missing required) field `(.*)`", message, re.DOTALL
        )
        if field_fault is None:
            problems.append(f"{where or 'the case'}: {_said(message)}")
            holder, last = holders[-1]
            usable = False
            if isinstance(last, int):
                calls = holders[-2][1] in ("calls", "trace", "candidateResults")
                holder[last] = {"name": "?"} if calls else "?"
            elif last in _REQUIRED:
                holder[last] = _stand_in(last)
            else:
                del holder[last]
            continue
        of = f" in {where}" if where else ""
        holder, key = (holders[-1][0][holders[-1][1]] if holders else value), field_fault[2]
        if field_fault[1] == "missing required":
            holder[key] = _stand_in(key)
            usable = False
            if (path, key) not in meant:
                problems.append(f"missing {key}{of}")
            continue
        del holder[key]
        near = nearest(key, keys)
        if near is not None:
            meant.add((path, near))
            usable = False
        problems.append(f"unknown key {key!r}{of}" + (f" (did you mean {near!r}?)" if near else ""))
    return None, problems


def _split(error: str) -> tuple[str, str]:
    """msgspec's message as (what is wrong, the path it is about)."""
    found = re.fullmatch(r"(.*) - at `(\$[\w.\[\]]*)`", error, re.DOTALL)
    return (found[1], found[2]) if found else (error, "$")


def _walk(value: Any, path: str) -> tuple[list[tuple[Any, Any]], str]:
    """Each container on the way along a path such as `$.expect.calls[0]` with the key or place that is taken in it,
    and the path as a person writes it. msgspec calls the key of an object of values `[...]`; it is found again."""
    way: list[tuple[Any, Any]] = []
    where = ""
    for name, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        taken: Any = name or index
        if index == "...":
            taken = next(key for key, item in value.items() if not _fits(item, way))
        elif index:
            taken = int(index)
        where += f"[{taken}]" if isinstance(taken, int) else f".{taken}"
        way.append((value, taken))
        value = value[taken]
    return way, where.removeprefix(".")


def _fits(item: Any, way: Sequence[tuple[Any, Any]]) -> bool:
    """Whether a value of the object at the end of the way is of the kind that all of its values have to be."""
    key = way[-1][1]
    if key == "files":
        kind: Any = ExpectedFile if way[-2][1] == "expect" else str | Given
        try:
            msgspec.convert(item, kind)
        except msgspec.ValidationError:
            return False
        return True
    return isinstance(item, list if key == "accept" else bool)


def _said(message: str) -> str:
    """msgspec's words for types, as a person says them."""
    wrong = re.fullmatch(r"Invalid enum value (.*)", message, re.DOTALL)
    if wrong:
        return f"{wrong[1]} is not known{did_you_mean(wrong[1], get_args(Order))}"

    def words(found: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(word, word) for word in found[1].split(" | "))

    message = re.sub(r"`([\w| ]+)`", words, message)
    return f"{message[:1].lower()}{message[1:]}"


def _rules(line: _Line, taxonomy: TaxonomyName, climbing: str | None) -> Iterable[str]:
    """The rules between a case's keys (the ladder's own lint rules that need no world). `climbing` is a case of the
    suite that is on a rung."""
    expect = line.expect
    outcome = taxonomy == "outcome-graded"
    if not line.id.strip():
        yield "id must not be blank"
    if not line.request.strip():
        yield "request must not be blank"
    if line.rung is not None and line.rung not in RUNGS:
        yield f"unknown rung {line.rung!r}{did_you_mean(line.rung, RUNGS)}"
    if (line.rung is None) == (line.group is None):
        yield "a case has either a rung (TOOL-0 to TOOL-9) or a group"
    if line.group is not None and not line.group.strip():
        yield "group must not be blank"
    for part in line.parts:
        if not part.strip() or part not in line.request:
            yield f"parts: {part!r} is not in the request"
    if len(set(line.parts)) < len(line.parts):
        yield "parts: one is given twice"
    if isinstance(line.world, dict) and not isinstance(line.world.get("kind"), str):
        yield "world: an object needs its kind, a text"
    if not line.tools:
        yield "tools must name at least one declared tool"
    for name in dict.fromkeys(line.tools):
        if line.tools.count(name) > 1:
            yield f"tools: {name!r} is declared twice"
    if expect.terminates is None and line.rung is not None:
        yield "expect.terminates must be true or false"
    if expect.reject is False:
        yield "expect.reject, when given, is true"
    if expect.inferred_goal is not None and expect.refuse:
        yield "expect.inferredGoal and expect.refuse exclude each other"
    if line.limits.tool_calls is not None and line.limits.tool_calls < len(expect.expected_calls):
        yield f"limits.tool_calls is {line.limits.tool_calls}, with {counted(len(expect.expected_calls), 'call')} expected"
    if line.user is not None:
        yield from (f"user: {fault}" for fault in user_faults(line.user, line.max_turns or MAX_TURNS))
    elif line.max_turns is not None:
        yield "max_turns needs a user"
    yield from _rules_of_calls(line, outcome)
    yield from _rules_of_annotations(line)
    yield from _rules_of_outcomes(line, outcome, climbing)


def _rules_of_outcomes(line: _Line, outcome: bool, climbing: str | None) -> Iterable[str]:
    """What only the end state, the answer and the orders of calls know, and what the ladder alone knows."""
    expect = line.expect
    yield from (
        f"expect.{fault}" for fault in state_faults(expect.state, expect.state_absent, expect.state_equals)
    )
    yield from (f"expect.{fault}" for fault in work_faults(expect.files, expect.command))
    if expect.answer is not None:
        yield from (f"expect.answer: {fault}" for fault in expect.answer.faults())
    if expect.bfcl is not None:
        yield from (f"expect.bfcl: {fault}" for fault in expect.bfcl.faults())
        if expect != Expect(bfcl=expect.bfcl):
            yield "expect.bfcl stands alone: nothing else is judged under a published rule"
    elif expect.agentd is not None:
        yield from (f"expect.agentd: {fault}" for fault in expect.agentd.faults())
        if expect != Expect(agentd=expect.agentd):
            yield "expect.agentd stands alone: nothing else is judged under a published rule"
    given = expect.calls is not msgspec.UNSET
    if expect.order != "positional" and not expect.expected_calls:
        yield f"expect.order {expect.order!r} needs expect.calls"
    if expect.refuse and expect.answer is not None:
        yield "a refuse case must not have expect.answer"
    for call in line.gold.calls if line.gold is not None else ():
        if call.name not in line.tools:
            yield f"gold: {call.name!r} is not in tools{did_you_mean(call.name, line.tools)}"
    yield from _rules_of_gold_parts(line)
    if line.rung is not None:
        keys = [f"expect.{key}" for key in OUTCOME_KEYS if getattr(expect, key) not in (None, ())]
        keys += ["expect.order"] if expect.order != "positional" else []
        for key in keys + (["gold"] if line.gold is not None else []):
            yield f"{key} is not for a rung, which is judged by calls, a refusal or a goal; write a group instead"
        return
    if not outcome:
        return
    if climbing is not None and (keys := _outcome_keys(line)):
        yield f"{keys[0]}: one suite has one set of outcomes, and {climbing!r} is on a rung of the ladder"
    for name, key in LADDER_KEYS.items():
        if getattr(expect, name) not in (None, False):
            yield f"expect.{key} is the ladder's alone; this suite is judged by its outcomes"
    if not expect.grades and not given:
        yield "expect has nothing that is judged: give calls, refuse, state, state_absent, state_equals, files, command or answer"


def _rules_of_gold_parts(line: _Line) -> Iterable[str]:
    """Each part of the request has its calls, and each call its part."""
    gold = line.gold
    if gold is None or not gold.parts:
        return
    if len(gold.parts) != len(line.parts):
        yield f"gold.parts: {counted(len(gold.parts), 'number')} for {counted(len(line.parts), 'part')}"
    if min(gold.parts) < 0:
        yield f"gold.parts: {min(gold.parts)} calls"
    elif sum(gold.parts) != len(gold.calls):
        yield f"gold.parts: they take {counted(sum(gold.parts), 'call')} together, and gold has {len(gold.calls)}"


def _rules_of_calls(line: _Line, outcome: bool) -> Iterable[str]:
    expect, declared = line.expect, set(line.tools)
    given = expect.calls is not msgspec.UNSET
    if expect.refuse and given:
        yield "a refuse case must not have expect.calls"
    if expect.inferred_goal is not None and given:
        yield "a recognition case (expect.inferredGoal) must not have expect.calls"
    if expect.key == "calls" and not expect.expected_calls and not (outcome and line.rung is None):
        yield "expect.calls must name at least one call (or expect.refuse, or expect.inferredGoal)"
    for number, call in enumerate(expect.expected_calls, start=1):
        if call.name not in declared:
            yield f"call {number}: {call.name!r} is not in tools{did_you_mean(call.name, declared)}"
        for key, values in call.accept.items():
            if not values:
                yield f"call {number}: accept.{key} lists no alternative"
        for key in call.optional:
            if key not in call.input and key not in call.accept:
                yield f"call {number}: optional {key!r} is pinned nowhere"
    for name in expect.forbid:
        if name not in declared:
            yield f"expect.forbid: {name!r} is not in tools{did_you_mean(name, declared)}"
        if any(call.name == name for call in expect.expected_calls):
            yield f"expect.forbid: {name!r} is an expected call"
    if expect.result is not None and expect.refuse:
        yield "a refuse case must not have expect.result"
    for label in expect.result or ():
        if not label.strip():
            yield "expect.result: a label must not be blank"
    if expect.recover is not None:
        yield from _rules_of_recovery(expect.recover, line)


def _rules_of_recovery(recover: Recover, line: _Line) -> Iterable[str]:
    if line.expect.refuse:
        yield "a refuse case must not have expect.recover"
        return
    if not line.expect.expected_calls:
        yield "expect.recover needs expect.calls"
    for role, name in (("after", recover.after), ("fallback", recover.fallback)):
        if name not in line.tools:
            yield f"expect.recover.{role}: {name!r} is not in tools{did_you_mean(name, line.tools)}"
    names = [call.name for call in line.expect.expected_calls]
    if recover.after in names and recover.fallback not in names[names.index(recover.after) + 1 :]:
        yield "expect.recover: the fallback must follow the step it falls back from, among expect.calls"
    elif names and recover.after not in names:
        yield "expect.recover.after must be among expect.calls"


def _rules_of_annotations(line: _Line) -> Iterable[str]:
    expect, declared = line.expect, set(line.tools)
    if expect.candidate_results is not None:
        if not expect.refuse:
            yield "expect.candidateResults belongs to a refuse case"
        if len(expect.candidate_results) < 1:
            yield "expect.candidateResults must name at least one call"
        for call in expect.candidate_results:
            if call.name not in declared:
                near = did_you_mean(call.name, declared)
                yield f"expect.candidateResults: {call.name!r} is not in tools{near}"
    if line.trace is not None:
        if not line.trace:
            yield "trace must name at least one observed call"
        for call in line.trace:
            if call.name not in declared:
                yield f"trace: {call.name!r} is not in tools{did_you_mean(call.name, declared)}"
    for key, given in (
        ("inferredGoal", expect.inferred_goal is not None),
        ("reject", expect.reject),
        ("ambiguousGoals", expect.ambiguous_goals is not None),
    ):
        if given and not line.trace:
            yield f"expect.{key} needs a trace"
    if expect.reject and expect.ambiguous_goals is not None:
        yield "expect.reject and expect.ambiguousGoals exclude each other"
    if expect.reject and not expect.refuse:
        yield "expect.reject belongs to a refuse case"
    if expect.ambiguous_goals is not None:
        if not expect.refuse:
            yield "expect.ambiguousGoals belongs to a refuse case"
        if len(set(expect.ambiguous_goals)) < 2:
            yield "expect.ambiguousGoals must name at least two goals"
    if line.floor_expect is not None and line.floor_expect != {"refuse": True}:
        yield 'floorExpect must be {"refuse": true}'


def select(
    cases: Sequence[Case], *, groups: Iterable[str] = (), only: Iterable[str] = ()
) -> tuple[Case, ...]:
    """The cases of the named groups whose ids match one of the globs in `only` (ids compared as text).

    An empty filter lets everything through; a group or glob that matches nothing is an error.
    """
    groups = (groups,) if isinstance(groups, str) else tuple(groups)
    only = (only,) if isinstance(only, str) else tuple(only)
    known = {case.group for case in cases}
    folded = {group.casefold(): group for group in known}
    wanted = set()
    for group in groups:
        if group.casefold() not in folded:
            raise LabError(f"no case in group {group!r}{did_you_mean(group, known)}")
        wanted.add(folded[group.casefold()])
    chosen = [case for case in cases if not groups or case.group in wanted]
    for glob in only:
        if not any(_matches(case.id, glob) for case in chosen):
            ids = [case.id for case in chosen]
            raise LabError(f"no case matches {glob!r}{did_you_mean(glob, ids)}")
    return tuple(case for case in chosen if not only or any(_matches(case.id, glob) for glob in only))


def _matches(case_id: str, glob: str) -> bool:
    """An id is also its own glob, whatever brackets and stars are in it."""
    return case_id == glob or fnmatch.fnmatchcase(case_id, glob)


def _card(path: Path) -> tuple[str | None, str | None]:
    """The version and date that a suite's card states in lines such as `version: 1`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None, None
    found = dict(re.findall(r"^(version|date):\s*(\S+)\s*$", text, re.MULTILINE))
    return found.get("version"), found.get("date")


def case_schema() -> dict[str, Any]:
    """The JSON Schema of one line of a case file, for editors."""
    schema = msgspec.json.schema(_Line)
    definitions = schema["$defs"]
    line = definitions.pop("_Line")
    properties = line["properties"]
    properties["rung"] = {"enum": list(RUNGS)}
    properties["world"] = {
        "type": ["string", "object", "null"],
        "description": "name of a file under worlds/ beside the suite, or a whole world: an object with its kind",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
    }
    properties["tools"] |= {"minItems": 1, "uniqueItems": True}
    for name in ("id", "request", "group"):
        properties[name] = {"type": "string", "pattern": r"\S"}
    # outside the ladder a trial has to end unless the case says otherwise
    ends = {"properties": {"expect": {"required": ["terminates"]}}}
    line["oneOf"] = [{"required": ["rung"], **ends}, {"required": ["group"]}]
    definitions["Expect"]["properties"]["terminates"] = {"type": "boolean"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One case of an AgentBench Lab suite (one line of a .jsonl file)",
        **{key: value for key, value in line.items() if key != "title"},
        "$defs": definitions,
    }


def write_case_schema(path: Path) -> None:
    """Write docs/case.schema.json."""
    text = json.dumps(case_schema(), indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_case_schema(project_root() / "docs" / "case.schema.json")
