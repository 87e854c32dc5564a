"""Expectations of an end state and of an answer: their forms in a case file, and what is wrong with one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from msgspec import UNSET, Struct

from agentbench_lab.expect_work import WORK_KEYS, ExpectedCommand, ExpectedFile, path_faults, regex_faults
from agentbench_lab.paths import BadPath, Path, join, split

OUTCOME_KEYS = ("state", "state_absent", "state_equals", *WORK_KEYS, "answer", "bfcl", "agentd")
"""The keys of an expectation that only the outcomes `outcome-graded` know."""
LADDER_KEYS = {
    "proof": "proof",
    "result": "result",
    "recover": "recover",
    "candidate_results": "candidateResults",
    "inferred_goal": "inferredGoal",
    "reject": "reject",
    "ambiguous_goals": "ambiguousGoals",
}
"""The fields that only the ladder's outcomes know, with the keys they have in a file."""

Texts = str | tuple[str, ...]


class ExpectedAnswer(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the answer has to be; each key that is given must hold.

    `exact`: this JSON value. `contains`: each text occurs, as it stands. `tokens`: each text occurs as whole words.
    `regex`: Python's `re.search` finds it. `number`: a number, or text that is one, within `tol`. `gaia`: equal by
    the quasi-exact rule of the GAIA benchmark.
    """

    exact: Any = UNSET
    contains: Texts = ()
    tokens: Texts = ()
    regex: str | None = None
    number: int | float | None = None
    tol: float = 0.0
    gaia: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.contains,) if isinstance(self.contains, str) else self.contains

    @property
    def words(self) -> tuple[str, ...]:
        return (self.tokens,) if isinstance(self.tokens, str) else self.tokens

    def faults(self) -> Iterator[str]:
        """What is wrong with the expectation itself."""
        given = [name for name in ("regex", "number", "gaia") if getattr(self, name) is not None]
        if not (given or self.texts or self.words or self.exact is not UNSET):
            yield "needs one of exact, contains, tokens, regex, number, gaia"
        for name, texts in (("contains", self.texts), ("tokens", self.words)):
            if any(not text.strip() for text in texts):
                yield f"{name}: a blank text is in every answer"
        if self.exact is None:
            yield "exact: null is no answer"
        if self.tol and self.number is None:
            yield "tol belongs to number"
        if not (math.isfinite(self.tol) and self.tol >= 0):
            yield "tol must be a number from 0"
        if self.regex is not None:
            yield from regex_faults(self.regex, "answer")
        if self.gaia is not None and not self.gaia.strip():
            yield "gaia must not be blank"


class BfclTruth(Struct, frozen=True, forbid_unknown_fields=True):
    """What mode `bfcl` judges calls by, in the benchmark's own form.

    `category` decides how calls are paired and which language values are in (`simple_java`, `live_parallel`, …),
    `functions` are the function documents as they stand in the question, `ground_truth` is one
    `{function: {parameter: [acceptable values]}}` for each expected call.
    """

    category: str
    functions: tuple[dict[str, Any], ...]
    ground_truth: tuple[dict[str, dict[str, Any]], ...] = ()

    def faults(self) -> Iterator[str]:
        """What is wrong with the ground truth itself."""
        if not self.functions and "relevance" not in self.category:
            yield "functions: offers none"
        spoken = any(word in self.category for word in ("java", "javascript"))
        for at, function in enumerate(self.functions):
            parameters = function.get("parameters")
            if not isinstance(function.get("name"), str) or not isinstance(parameters, dict):
                yield f"functions[{at}]: needs a name and parameters"
                continue
            required = parameters.get("required", [])
            if not isinstance(parameters.get("properties"), dict):
                yield f"functions[{at}]: parameters: needs properties"
            else:
                for key, declared in parameters["properties"].items():
                    yield from _parameter_faults(declared, f"functions[{at}].{key}", spoken)
            if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
                yield f"functions[{at}]: parameters: required must be a list of names"
        for at, each in enumerate(self.ground_truth):
            if len(each) != 1:
                yield f"ground_truth[{at}]: must name one function"
            for name, answers in each.items():
                for key, options in answers.items():
                    if not isinstance(options, list):
                        yield f"ground_truth[{at}].{name}.{key}: alternatives must be a list"
        if not self.ground_truth and "relevance" not in self.category:
            yield "ground_truth: names no call"


def _parameter_faults(declared: Any, where: str, typed: bool) -> Iterator[str]:
    """What is wrong with the document of a parameter; `typed`: it has to name a type."""
    if not isinstance(declared, dict):
        yield f"{where}: must be an object"
        return
    if not isinstance(declared.get("type", None if typed else ""), str):
        yield f"{where}: type must be text"
    if isinstance(declared.get("items"), dict):
        yield from _parameter_faults(declared["items"], f"{where}.items", typed)
    if isinstance(declared.get("properties"), dict):
        for key, inner in declared["properties"].items():
            yield from _parameter_faults(inner, f"{where}.{key}", typed)


NOTHING_JUDGED = "grade: nothing is judged, so everything passes"


class AgentdGrade(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What mode `agentd` judges by: the `grade` and `expect` of a task of that harness, as they stand there.

    Of a `conversation` only the end state counts, whatever else is written.
    """

    grade: dict[str, Any] = {}
    expect: dict[str, Any] = {}
    conversation: bool = False

    @property
    def places(self) -> Iterator[tuple[str, ...]]:
        """The places in the state that the grade reads: keys of objects, one within the other."""
        for key in self.grade.get("state") or ():
            yield (key,)
        for path in self.grade.get("state_absent") or ():
            yield tuple(path.split("."))

    @property
    def key(self) -> Literal["calls", "state", "files", "command", "answer"]:
        """What a case under this grade is counted over: the first of what it looks at."""
        grade = self.grade
        if not self.conversation and "tool_calls" in grade:
            return "calls"
        if "state" in grade or "state_absent" in grade:
            return "state"
        if self.of_work:
            return "files" if "files" in grade else "command"
        return "answer" if any(key in grade for key in ("contains", "exact", "regex")) else "calls"

    @property
    def of_work(self) -> bool:
        """Whether a work folder is looked at."""
        return not self.conversation and ("files" in self.grade or "command" in self.grade)

    @property
    def files(self) -> dict[str, ExpectedFile] | None:
        """The files that are read off the work folder; what they have to hold is decided by the harness's own rule."""
        if self.conversation or "files" not in self.grade:
            return None
        return {path: ExpectedFile() for path in self.grade["files"]}

    @property
    def command(self) -> ExpectedCommand | None:
        """The command that is run when the trial is over."""
        if self.conversation or "command" not in self.grade:
            return None
        asked = self.grade["command"]
        return ExpectedCommand(asked["run"], exit=asked.get("expect_exit", 0), timeout_s=AGENTD_COMMAND_S)

    def misshapen(self) -> Iterator[str]:
        """What has not the shape that a grade reads; of a conversation only its end state is read."""
        grade, expect = self.grade, self.expect
        if not isinstance(grade.get("state", {}), dict):
            yield "grade.state: must be an object"
        absent = grade.get("state_absent", [])
        if not isinstance(absent, list) or not all(isinstance(path, str) for path in absent):
            yield "grade.state_absent: must be a list of dotted paths"
        if self.conversation:
            return
        for key in ("contains", "exact", "regex"):
            if not isinstance(grade.get(key, ""), str):
                yield f"grade.{key}: must be text"
        if isinstance(grade.get("regex"), str):
            try:
                re.compile(grade["regex"])
            except (re.error, RecursionError, OverflowError) as error:
                yield f"grade.regex: {error}"
        if "tool_calls" in grade:
            yield from (f"grade.tool_calls: {fault}" for fault in _matcher_faults(grade["tool_calls"]))
        if "files" in grade:
            yield from (f"grade.files: {fault}" for fault in _agentd_file_faults(grade["files"]))
        if "command" in grade:
            yield from (f"grade.command: {fault}" for fault in _agentd_command_faults(grade["command"]))
        if expect.get("tool_call") and not isinstance(expect["tool_call"], str):
            yield "expect.tool_call: must be text"

    def faults(self) -> Iterator[str]:
        """What is wrong with it, the spots included where its own harness passes without looking."""
        misshapen = list(self.misshapen())
        yield from misshapen
        grade, expect = self.grade, self.expect
        for where, given, known in (("grade", grade, _AGENTD_GRADE), ("expect", expect, _AGENTD_EXPECT)):
            for key in given:
                if key not in known:
                    yield f"{where}: unknown key {key!r}"
        counted = [key for key in grade if not self.conversation or key in ("state", "state_absent")]
        judged = any(grade[key] not in ({}, []) or key == "files" for key in counted)
        if not judged and (self.conversation or not any(expect.values())):
            yield NOTHING_JUDGED
        if self.conversation:
            for key in (*(key for key in grade if key not in counted), *expect):
                yield f"grade: {key} is not looked at in a conversation"
        if not misshapen:
            yield from self._naive()

    def _naive(self) -> Iterator[str]:
        """The single parts that pass or fail whatever is done; the shapes have to be sound."""
        grade = self.grade
        calls = grade.get("tool_calls")
        if isinstance(calls, dict) and calls.get("all") == []:
            yield "grade.tool_calls: all of no call passes whatever is called"
        if calls == []:
            yield "grade.tool_calls: one of no call can never pass"
        if self.conversation:
            return
        if "regex" in grade and re.search(grade["regex"], "") is not None:
            yield "grade.regex: fits the empty text, and so every answer"
        for path, spec in grade.get("files", {}).items():
            for key in spec:
                if key not in ("contains", "exact"):
                    yield f"grade.files: {path}: unknown key {key!r}"
        for key in grade.get("command", {}):
            if key not in ("run", "expect_exit"):
                yield f"grade.command: unknown key {key!r}"
        if "command" in grade and not grade["command"]["run"].strip():
            yield "grade.command: runs nothing, which passes whatever is done"


AGENTD_COMMAND_S = 120.0
"""Seconds for which that harness waits for a command of its grade."""


def _matcher_faults(given: Any) -> Iterator[str]:
    """What is no matcher, list of alternatives, or `{"all": [...]}`."""
    if isinstance(given, dict) and "all" in given:
        given = given["all"]
        if not isinstance(given, list):
            yield "all: must be a list of calls"
            return
    for at, one in enumerate(given if isinstance(given, list) else [given]):
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            yield f"[{at}]: must be an object with a name"
        elif not isinstance(one.get("args") or {}, dict):
            yield f"[{at}]: args: must be an object"


def _agentd_file_faults(given: Any) -> Iterator[str]:
    if not isinstance(given, dict):
        yield "must be an object from paths to what is expected there"
        return
    yield from path_faults(given, together=False)
    for path, spec in given.items():
        if not isinstance(spec, dict):
            yield f"{path}: must be an object"
            continue
        for key in ("contains", "exact"):
            if not isinstance(spec.get(key, ""), str):
                yield f"{path}: {key} must be text"


def _agentd_command_faults(given: Any) -> Iterator[str]:
    if not isinstance(given, dict) or not isinstance(given.get("run"), str):
        yield "must be an object with what to run"
        return
    if "\0" in given["run"]:
        yield "a command cannot have a NUL in it"
    if type(given.get("expect_exit", 0)) is not int:
        yield "expect_exit: must be a whole number"


_AGENTD_GRADE = (
    "contains", "exact", "regex", "tool_calls", "state", "state_absent", "files", "command",
)  # fmt: skip
_AGENTD_EXPECT = ("completed", "tool_call")


class Form(Struct, frozen=True):
    """What is expected at one path: a value, one of several, a list in any order, or numbers within a tolerance."""

    options: tuple[Any, ...]
    tol: float | None = None
    unordered: bool = False


class BadForm(ValueError):
    """An expected value whose form means nothing; the message says why."""


def form_of(expected: Any) -> Form:
    """The form of an expected value: `{"value": …, "tol": …}`, `{"value": […], "unordered": true}`,
    `{"any_of": […]}`, `{"value": …}` for a value that would look like one of these, or the value itself."""
    if type(expected) is not dict or not expected:
        return Form((expected,))
    keys = expected.keys()
    if keys == {"any_of"}:
        options = expected["any_of"]
        if type(options) is not list or not options:
            raise BadForm("any_of must be a list of alternatives")
        return Form(tuple(options))
    if "value" not in keys or not keys <= {"value", "tol", "unordered"}:
        return Form((expected,))
    value, tol, unordered = expected["value"], expected.get("tol"), expected.get("unordered", False)
    if tol is not None:
        if type(tol) not in (int, float) or not (math.isfinite(tol) and tol >= 0):
            raise BadForm("tol must be a number from 0")
        if not _holds_number(value):
            raise BadForm("tol needs a number in value")
    if type(unordered) is not bool:
        raise BadForm("unordered must be true or false")
    if unordered and type(value) is not list:
        raise BadForm("unordered needs a list in value")
    return Form((value,), tol, unordered)


def _holds_number(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_number, value.values()))
    if isinstance(value, list):
        return any(map(_holds_number, value))
    return type(value) in (int, float)


def part_of(value: Any, expected: Any) -> Any:
    """The part of `value` that an expected value is compared with: of objects only the keys that are expected."""
    form = form_of(expected)
    if form.unordered or len(form.options) != 1:
        return value
    return _part(value, form.options[0])


def _part(value: Any, expected: Any) -> Any:
    if type(value) is dict and type(expected) is dict:
        return {key: _part(value[key], item) for key, item in expected.items() if key in value}
    if type(value) is list and type(expected) is list and len(value) == len(expected):
        return [_part(a, b) for a, b in zip(value, expected, strict=True)]
    return value


def state_faults(
    state: Mapping[str, Any] | None, absent: Sequence[str], equals: Mapping[str, Any] | None
) -> Iterator[str]:
    """What is wrong with the expectations of an end state, as `key: what`."""
    paths: dict[Path, str] = {}
    for key, texts in (("state", state or ()), ("state_absent", absent), ("state_equals", equals or ())):
        for text in texts:
            try:
                path = split(text)
            except BadPath as error:
                yield f"{key}: {error}"
                continue
            if path in paths:
                yield f"{key}: {text!r} is in {paths[path]} already"
            paths.setdefault(path, key)
    for text, expected in (state or {}).items():
        try:
            form_of(expected)
        except BadForm as error:
            yield f"state.{text}: {error}"
    if state is not None and not state:
        yield "state: names no path"
    if equals is not None:
        for one, other in combinations(sorted(paths), 2):
            if other[: len(one)] == one and "state_equals" in (paths[one], paths[other]):
                yield f"{paths[other]}: {join(other)!r} lies within {join(one)!r} of {paths[one]}"


__all__ = [
    "NOTHING_JUDGED",
    "LADDER_KEYS",
    "OUTCOME_KEYS",
    "AgentdGrade",
    "BadForm",
    "BfclTruth",
    "ExpectedAnswer",
    "Form",
    "form_of",
    "part_of",
    "state_faults",
]
