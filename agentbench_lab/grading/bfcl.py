"""Calls judged as the Berkeley Function Calling Leaderboard does: mode `bfcl`, on its own ground truth.

Source: the abstract syntax tree checker of bfcl-eval 2026.3.23 (Apache-2.0), whose decisions are kept, gaps included,
and whose code is not (Patil et al., "The Berkeley Function Calling Leaderboard", 2025). What it decides differently
from mode `strict`: texts are equal without case, spaces and `,./-_*^`; an argument that no ground truth names fails;
Python's equality compares what lies within lists and objects; parallel calls are paired greedily and not by a
matching; a value of another type than declared passes where the ground truth has that type.

A ground truth is compiled once: then a call costs a look-up per argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentbench_lab.cases import Call
from agentbench_lab.errors import wanted
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl_languages import (
    JAVA,
    JAVASCRIPT,
    Unreadable,
    java_reader,
    javascript_reader,
)
from agentbench_lab.grading.grade import cut, shown

PYTHON: dict[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_NESTED = {"python": ("array", "tuple"), "java": ("Array", "ArrayList"), "javascript": ("array",)}
_TYPES = {"python": PYTHON, "java": JAVA, "javascript": JAVASCRIPT}
_DROPPED = str.maketrans("'", '"', " ,./-_*^")

Judge = Callable[[Any], "str | None"]
"""What is wrong with one argument, or None."""


def standard(text: str) -> str:
    """A text as it is compared: without spaces and `,./-_*^`, in lower case, with double quotes for single ones."""
    return text.translate(_DROPPED).lower()


_SCALARS = frozenset({str, int, float, bool})


class Checker:
    """One compiled ground truth. `wrong(calls)` says why the calls fail, None when they pass."""

    __slots__ = ("_kind", "_one", "_truths")

    def __init__(self, truth: BfclTruth, *, underscores: bool = False) -> None:
        """`underscores`: the agent was shown function names with `_` for `.`, as some interfaces demand."""
        category = truth.category
        self._kind = (
            "irrelevance" if "irrelevance" in category
            else "relevance" if "relevance" in category
            else "parallel" if "parallel" in category
            else "one"
        )  # fmt: skip
        language = language_of(category)
        by_name: dict[str, dict[str, Any]] = {}
        for function in truth.functions:
            by_name.setdefault(function["name"], function)
        self._truths: list[_Truth] = []
        for each in truth.ground_truth:
            name, answers = next(iter(each.items()))
            simple = self._kind == "one" and "multiple" not in category
            offered = truth.functions[0] if simple else by_name.get(name)
            self._truths.append(_Truth(offered, name, answers, language, underscores))

        self._one = self._truths[0] if self._kind == "one" and len(self._truths) == 1 else None

    def wrong(self, calls: Sequence[Call]) -> str | None:
        one = self._one
        if one is not None and len(calls) == 1 and one.passes(calls[0]):
            return None
        kind = self._kind
        if kind == "irrelevance":
            return f"expected no call, got {shown(calls)}" if calls else None
        if kind == "relevance":
            return None if calls else "expected a call, got none"
        truths = self._truths
        if len(calls) != len(truths):
            return f"count: {wanted(len(calls), len(truths), 'call')}"
        if kind == "one":
            return truths[0].wrong(calls[0])
        free = list(calls)
        for truth in truths:
            for at, call in enumerate(free):
                if truth.passes(call):
                    del free[at]
                    break
            else:
                said = truth.wrong(free[-1])
                return f"parallel: no unused call passes as {truth.name}; the last tried: {said}"
        return None


def language_of(category: str) -> str:
    """The language of a category's values: `python`, `java` or `javascript`."""
    return "javascript" if "javascript" in category else "java" if "java" in category else "python"


class _Truth:
    """One expected call: its name, the parameters that must be there, and a judge for each that may be.

    `exact` holds, per parameter, those acceptable texts, numbers and truth values that pass as they stand, with their
    types: most arguments are settled by one look there, and the judge is asked about the others.
    """

    __slots__ = ("exact", "judges", "must", "name", "needed", "required")

    def __init__(
        self,
        function: Mapping[str, Any] | None,
        name: str,
        answers: Mapping[str, Any],
        language: str,
        underscores: bool,
    ) -> None:
        self.judges: dict[str, Judge] = {}
        self.exact: dict[str, dict[Any, type] | None] = {}
        self.needed: frozenset[str] = frozenset()
        self.required: tuple[str, ...] = ()
        self.must: tuple[str, ...] = ()
        if function is None:
            # no call can have the name of a function that is not offered
            self.name = f"{name} (not offered)"
            return
        self.name = function["name"].replace(".", "_") if underscores else function["name"]
        parameters = function["parameters"]
        self.required = tuple(parameters.get("required", ()))
        for key, declared in parameters["properties"].items():
            if key in answers:
                self.judges[key] = _judge(declared, answers[key], language)
        self.must = tuple(
            key for key, options in answers.items() if type(options) is not str and "" not in options
        )

        self.needed = frozenset((*self.required, *self.must))
        for key, judge in self.judges.items():
            found: dict[Any, type] = {}
            for option in answers[key]:
                if type(option) in _SCALARS and judge(option) is None:
                    found.setdefault(option, type(option))
            self.exact[key] = found or None

    def passes(self, call: Call) -> bool:
        given = call.input
        if call.name != self.name or not self.needed <= given.keys():
            return False
        exact = self.exact
        try:
            for key, value in given.items():
                known = exact[key]
                # a number under another type is the same key: the judge says whether it passes
                if (known is None or known.get(value) is not type(value)) and self.judges[key](
                    value
                ) is not None:
                    return False
        except KeyError:
            return False
        except TypeError:
            # a list or an object where none is acceptable cannot be looked up
            return self.wrong(call) is None
        return True

    def wrong(self, call: Call) -> str | None:
        if call.name != self.name:
            return f"name: {cut(call.name)} instead of {self.name}"
        given = call.input
        for key in self.required:
            if key not in given:
                return f"missing: {self.name}: {key}"
        judges = self.judges
        for key, value in given.items():
            judge = judges.get(key)
            if judge is None:
                return f"unexpected: {self.name}: {cut(key)}"
            said = judge(value)
            if said is not None:
                return f"{said} of {self.name}.{key}: {cut(repr(value))}"
        for key in self.must:
            if key not in given:
                return f"missing: {self.name}: {key}, which is not marked as optional"
        return None


# ---- one argument


def _judge(declared: Mapping[str, Any], options: Any, language: str) -> Judge:
    try:
        return _compiled(declared, options, language)
    except (KeyError, TypeError, AttributeError, Unreadable) as error:
        # where the leaderboard's checker breaks off, nothing passes
        why = f"unreadable ground truth ({type(error).__name__})"
        return lambda value: why


def _compiled(declared: Mapping[str, Any], options: Any, language: str) -> Judge:
    word = declared["type"]
    kind = _TYPES[language][word]
    inner_word = declared["items"]["type"] if word in _NESTED[language] else None
    inner = None if inner_word is None else _TYPES[language][inner_word]
    judge = _typed(
        kind, inner, options, cast=language == "python" and word == "float", tuples=word == "tuple"
    )
    if language == "python":
        return judge
    read = (java_reader if language == "java" else javascript_reader)(word, inner_word)

    def of_text(value: Any) -> str | None:
        return judge(read(value)) if type(value) is str else "type (text is needed)"

    return of_text


def _typed(kind: type, inner: type | None, options: Any, *, cast: bool, tuples: bool) -> Judge:
    options = list(options)
    shape = next((type(option) for option in options if option != ""), None)
    variable = shape is not None and shape is not kind
    fits = None if inner is None else _entries(inner, options)
    compare = _membership(options) if variable else _comparison(kind, inner, options)

    def judge(value: Any) -> str | None:
        of = type(value)
        if of is int and cast:
            value, of = float(value), float
        elif of is tuple and tuples:
            value, of = list(value), list
        if of is kind:
            if fits is not None and not fits(value):
                return "type (of an entry)"
            return compare(value)
        if of is shape:
            return None if value in options else "value"
        return "type"

    return judge


def _entries(inner: type, options: Sequence[Any]) -> Callable[[Sequence[Any]], bool]:
    """Whether all entries have the declared type, or that of the first entry of one and the same alternative."""
    if any(type(option) is not list for option in options):
        return lambda value: True
    shapes = {next((type(entry) for entry in option if entry != ""), None) for option in options}
    allowed = [{inner, shape} for shape in shapes]
    return lambda value: any(all(type(entry) in types for entry in value) for types in allowed)


def _membership(options: Sequence[Any]) -> Judge:
    return lambda value: None if value in options else "value"


def _comparison(kind: type, inner: type | None, options: Sequence[Any]) -> Judge:
    if kind is dict:
        return _objects(options)
    if kind is list and inner is dict:
        return _lists_of_objects(options)
    if kind is str:
        texts = frozenset(standard(option) for option in options if type(option) is str)
        return lambda value: None if standard(value) in texts else "value"
    if kind is list:
        if any(type(option) not in (list, str) for option in options):
            raise TypeError
        lists = [[_plain(entry) for entry in option] for option in options]
        raw = [option for option in options if type(option) is list]
        return lambda value: None if value in raw or [_plain(entry) for entry in value] in lists else "value"
    return _membership(options)


def _plain(value: Any) -> Any:
    return standard(value) if type(value) is str else value


def _objects(options: Sequence[Any]) -> Judge:
    judges = [_object(option) for option in options if option != ""]

    def judge(value: Any) -> str | None:
        for each in judges:
            said = each(value)
            if said is None or said is _BROKEN:
                return said
        return "value"

    return judge


_BROKEN = "unreadable ground truth"


def _object(option: Any) -> Judge:
    if type(option) is not dict:
        return lambda value: _BROKEN
    allowed: dict[str, list[Any] | None] = {}
    must = []
    for key, values in option.items():
        try:
            allowed[key] = [_plain(values[at]) for at in range(len(values))]
        except (TypeError, KeyError):
            allowed[key] = None
        try:
            if "" not in values:
                must.append(key)
        except TypeError:
            must.append(key)

    def judge(value: Any) -> str | None:
        if type(value) is not dict:
            return _BROKEN
        for key, item in value.items():
            if key not in allowed:
                return "value"
            known = allowed[key]
            if known is None:
                return _BROKEN
            if _plain(item) not in known:
                return "value"
        for key in must:
            if key not in value:
                return "value"
        return None

    return judge


def _lists_of_objects(options: Sequence[Any]) -> Judge:
    judges = [[_objects([entry]) for entry in option] for option in options]

    def judge(value: Any) -> str | None:
        for rows in judges:
            if len(rows) == len(value):
                said = [row(item) for row, item in zip(rows, value, strict=True)]
                if not any(said):
                    return None
                if _BROKEN in said:
                    return _BROKEN
        return "value"

    return judge


__all__ = ["Checker", "language_of", "standard"]
