"""The check of a tool's arguments against its JSON Schema, compiled once per schema.

Only the keywords that tool declarations use are understood (type, enum, const, items, properties, required,
additionalProperties, anyOf, minimum, maximum); any other keyword that would restrict a value is refused when the
schema is compiled, never ignored. Types follow JSON Schema: an integer is a number at every depth, 1.0 is an integer,
a boolean is never a number, and text is not decoded: "1" is no integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.errors import nearest
from agentbench_lab.values import same

_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "$schema", "format", "$comment"})
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: type(v) is str,
    "boolean": lambda v: type(v) is bool,
    "null": lambda v: v is None,
    "object": lambda v: type(v) is dict,
    "array": lambda v: type(v) is list,
    "integer": lambda v: type(v) is int or (type(v) is float and v.is_integer()),
    "number": lambda v: type(v) is int or type(v) is float,
}


class Misfit(Struct, frozen=True):
    """One way in which a value does not fit: `type`, `enum`, `range`, `missing` or `unknown`, where, and in words.

    `stringified` marks text that holds, as JSON, a value that would have fitted: counted, never decoded.
    """

    reason: str
    path: str
    detail: str
    stringified: bool = False


Check = Callable[[Any, str], list[Misfit]]


class UnsupportedSchema(ValueError):
    """A schema with a keyword or a type that this check does not understand."""


def compile_schema(schema: Mapping[str, Any]) -> Check:
    """A function from a value and its path to what does not fit; an empty list means that the value fits."""
    known = _ANNOTATIONS | set(_KEYWORDS) | {"type"}
    unknown = sorted(set(schema) - known)
    if unknown:
        near = nearest(unknown[0], known)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise UnsupportedSchema(f"keyword {unknown[0]!r} is not supported in a tool's schema{hint}")
    for word, (kinds, said) in _SHAPES.items():
        if word in schema and (type(schema[word]) is bool or not isinstance(schema[word], kinds)):
            raise UnsupportedSchema(f"{word}: must be {said}")
    type_check = _type_check(schema.get("type"))
    rest = [_KEYWORDS[word](schema) for word in _KEYWORDS if word in schema]

    def check(value: Any, path: str) -> list[Misfit]:
        wrong = type_check(value, path)
        if wrong:
            decoded = _decoded(value)
            if decoded is not _NOTHING and not check(decoded, path):
                wrong = [msgspec.structs.replace(wrong[0], stringified=True)]
            return wrong
        found = []
        for part in rest:
            found += part(value, path)
        return found

    return check


_NOTHING = object()


def _decoded(value: Any) -> Any:
    if type(value) is not str:
        return _NOTHING
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _NOTHING
    return _NOTHING if type(decoded) is str else decoded


def _type_check(declared: Any) -> Check:
    if declared is None:
        return lambda value, path: []
    names = [declared] if isinstance(declared, str) else list(declared)
    for name in names:
        if name not in _TYPES:
            near = nearest(str(name), _TYPES)
            raise UnsupportedSchema(
                f"type {name!r} is no JSON type" + (f" (did you mean {near!r}?)" if near else "")
            )
    tests = [_TYPES[name] for name in names]
    wanted = " or ".join(names)

    def check(value: Any, path: str) -> list[Misfit]:
        for test in tests:
            if test(value):
                return []
        return [Misfit("type", path, f"{path} must be {wanted}, not {_kind(value)}")]

    return check


def _kind(value: Any) -> str:
    for name in ("null", "boolean", "string", "integer", "number", "array", "object"):
        if _TYPES[name](value):
            return name
    return type(value).__name__


def _enum(schema: Mapping[str, Any]) -> Check:
    return _one_of(list(schema["enum"]))


def _const(schema: Mapping[str, Any]) -> Check:
    return _one_of([schema["const"]])


def _one_of(allowed: list[Any]) -> Check:
    words = ", ".join(str(value) for value in allowed[:8])

    def check(value: Any, path: str) -> list[Misfit]:
        if any(same(value, option) for option in allowed):
            return []
        return [Misfit("enum", path, f"{path} must be one of {words}")]

    return check


def _items(schema: Mapping[str, Any]) -> Check:
    item = compile_schema(schema["items"])

    def check(value: Any, path: str) -> list[Misfit]:
        if type(value) is not list:
            return []
        return [wrong for n, entry in enumerate(value) for wrong in item(entry, f"{path}[{n}]")]

    return check


def _properties(schema: Mapping[str, Any]) -> Check:
    checks = {key: compile_schema(sub) for key, sub in schema["properties"].items()}

    def check(value: Any, path: str) -> list[Misfit]:
        if type(value) is not dict:
            return []
        prefix = f"{path}." if path else ""
        return [
            wrong
            for key, entry in value.items()
            if key in checks
            for wrong in checks[key](entry, f"{prefix}{key}")
        ]

    return check


def _required(schema: Mapping[str, Any]) -> Check:
    keys = tuple(schema["required"])

    def check(value: Any, path: str) -> list[Misfit]:
        if type(value) is not dict:
            return []
        return [Misfit("missing", path, f"{key} is required") for key in keys if key not in value]

    return check


def _additional(schema: Mapping[str, Any]) -> Check:
    allowed = schema["additionalProperties"]
    if not isinstance(allowed, bool):
        raise UnsupportedSchema("additionalProperties must be true or false")
    known = frozenset(schema.get("properties", ()))

    def check(value: Any, path: str) -> list[Misfit]:
        if allowed or type(value) is not dict or known.issuperset(value):
            return []
        return [Misfit("unknown", path, f"{key} is not declared") for key in value if key not in known]

    return check


def _any_of(schema: Mapping[str, Any]) -> Check:
    options = [compile_schema(option) for option in schema["anyOf"]]

    def check(value: Any, path: str) -> list[Misfit]:
        found: list[Misfit] = []
        for option in options:
            found = option(value, path)
            if not found:
                return []
        return found

    return check


def _minimum(schema: Mapping[str, Any]) -> Check:
    low = schema["minimum"]

    def check(value: Any, path: str) -> list[Misfit]:
        if type(value) is bool or not isinstance(value, int | float) or value >= low:
            return []
        return [Misfit("range", path, f"{path} must be at least {low}")]

    return check


def _maximum(schema: Mapping[str, Any]) -> Check:
    high = schema["maximum"]

    def check(value: Any, path: str) -> list[Misfit]:
        if type(value) is bool or not isinstance(value, int | float) or value <= high:
            return []
        return [Misfit("range", path, f"{path} must be at most {high}")]

    return check


_SHAPES: dict[str, tuple[tuple[type, ...], str]] = {
    "enum": ((list, tuple), "a list"),
    "items": ((Mapping,), "a schema"),
    "properties": ((Mapping,), "an object of schemas"),
    "required": ((list, tuple), "a list of names"),
    "anyOf": ((list, tuple), "a list of schemas"),
    "minimum": ((int, float), "a number"),
    "maximum": ((int, float), "a number"),
}
"""What the values of keywords have to be."""
_KEYWORDS: dict[str, Callable[[Mapping[str, Any]], Check]] = {
    "enum": _enum,
    "const": _const,
    "items": _items,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "anyOf": _any_of,
    "minimum": _minimum,
    "maximum": _maximum,
}
