"""Texts of Java and JavaScript values, read as the Berkeley Function Calling Leaderboard's checker reads them.

Source: the type converters of bfcl-eval 2026.3.23 (Apache-2.0), whose decisions are kept and whose code is not. Every
argument of a Java or JavaScript case arrives as text; what does not read as the declared type stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Read = Callable[[str], Any]

_INT = re.compile(r"^-?\d+$")
_LONG = re.compile(r"^-?\d+[lL]$")
_BIG = re.compile(r"^-?\d+n$")
_REAL = re.compile(r"^-?\d+(\.\d+)?$")
_DOUBLE = re.compile(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
_FLOAT = re.compile(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]$")


class Unreadable(ValueError):
    """A type that the checker knows by name and has no reader for."""


def _if(form: re.Pattern[str], read: Read) -> Read:
    return lambda text: read(text) if form.match(text) else text


def _truth(text: str) -> Any:
    return text == "true" if text in ("true", "false") else text


def _same(text: str) -> Any:
    return text


def _less_one(read: Callable[[str], Any]) -> Read:
    # a line break at the end stands after the suffix, as the forms allow it
    return lambda text: read(re.sub(r"[lLfF]$", "", text))


# ---- Java

JAVA: dict[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "float": float,
    "double": float,
    "long": int,
    "boolean": bool,
    "char": str,
    "Array": list,
    "ArrayList": list,
    "Set": set,
    "HashMap": dict,
    "Hashtable": dict,
    "Queue": list,
    "Stack": list,
    "String": str,
    "any": str,
}
"""Java's types by the names that function documents use, and the types of their values here."""

_JAVA: dict[str, Read] = {
    "byte": _if(_INT, int),
    "short": _if(_INT, int),
    "integer": _if(_INT, int),
    "float": _if(_FLOAT, _less_one(float)),
    "double": _if(_DOUBLE, float),
    "long": _if(_LONG, _less_one(int)),
    "boolean": _truth,
    "char": _same,
    "String": _same,
    "any": _same,
}
_AS_LIST = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_ADDED = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", re.DOTALL)
_NO_LIST = re.compile(r"new\s+ArrayList<\w*>\(\)")
_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_MAP = re.compile(r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}", re.DOTALL)
_NO_MAP = re.compile(r"new\s+HashMap<.*?>\s*\(\)")


def java_reader(kind: str, of: str | None = None) -> Read:
    """What reads a text as a Java value of this type, its entries as `of`; raises Unreadable."""
    if kind in _JAVA:
        return _JAVA[kind]
    if kind not in ("Array", "ArrayList", "HashMap"):
        raise Unreadable(f"no reader for Java's {kind}")
    if kind == "HashMap":
        return _java_map
    entry = java_reader(of) if of else _java_value
    if kind == "Array":
        return lambda text: _java_array(text, entry)
    # within a list the quotes are always taken off, whatever stands there
    unquoted = of in ("char", "String")
    return lambda text: _java_list(text, (lambda each: each[1:-1]) if unquoted else entry)


def _java_list(text: str, entry: Read) -> Any:
    found = _AS_LIST.search(text)
    if found:
        return [entry(each.strip()) for each in found[1].split(",")]
    found = _ADDED.search(text)
    if found:
        return [entry(each.strip()) for each in re.findall(r"add\((.+?)\)", found[1])]
    return [] if _NO_LIST.search(text) else text


def _java_array(text: str, entry: Read) -> Any:
    found = _ARRAY.search(text)
    return [entry(each.strip()) for each in found[1].split(",") if each.strip()] if found else text


def _java_map(text: str) -> Any:
    found = _MAP.search(text)
    if found:
        pairs = re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", found[1])
        return {key: _java_value(value.strip()) for key, value in pairs}
    return {} if _NO_MAP.search(text) else text


def _java_value(text: str) -> Any:
    """A value whose type nobody declared."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if _LONG.match(text):
        return int(text[:-1])
    if _FLOAT.match(text):
        return float(re.sub(r"[fF]$", "", text))
    return _number(text)


def _number(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


# ---- JavaScript

JAVASCRIPT: dict[str, type] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
"""The same for JavaScript."""


def _unquoted(text: str) -> Any:
    return text[1:-1] if any(text.startswith(mark) and text.endswith(mark) for mark in "\"'") else text


_JAVASCRIPT: dict[str, Read] = {
    "String": _unquoted,
    "integer": _if(_INT, int),
    "float": _if(_REAL, float),
    "Bigint": _if(_BIG, lambda text: int(text[:-1])),
    "Boolean": _truth,
    "any": _same,
}
_TABLE = re.compile(r"\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\)")
_ROW = re.compile(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_OBJECT = re.compile(r"\{(.*?)\}")


def javascript_reader(kind: str, of: str | None = None) -> Read:
    """What reads a text as a JavaScript value of this type, its entries as `of`; raises Unreadable."""
    if kind in _JAVASCRIPT:
        return _JAVASCRIPT[kind]
    if kind == "dict":
        return _object
    if kind != "array":
        raise Unreadable(f"no reader for JavaScript's {kind}")
    known = not of or of in JAVASCRIPT
    entry = javascript_reader(of) if of and known else _script_value if known else _unknown
    return lambda text: _array(text, entry)


def _unknown(text: str) -> Any:
    raise Unreadable(text)


def _array(text: str, entry: Read) -> Any:
    text = text.strip()
    table = _TABLE.match(text)
    if table:
        rows = [row.strip() for row in re.findall(r"\[(.*?)\]", table[0])]
        rows[:1] = [row.removeprefix("[") for row in rows[:1]]
        return [[_script_value(each.strip()) for each in row.split(",")] for row in rows]
    row = _ROW.match(text)
    if row is None:
        return text
    inside = (row[1] if row[1] is not None else row[2]).strip()
    try:
        return [entry(each.strip()) for each in inside.split(",")] if inside else []
    except ValueError:
        return text


def _object(text: str) -> Any:
    text = text.strip()
    if text == "{}":
        return {}
    found = _OBJECT.match(text)
    if found is None:
        return text
    values: dict[str, Any] = {}
    for key, value in re.findall(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)", found[1]):
        name, value = key.strip().strip("'\""), value.strip()
        if value.startswith("[") and value.endswith("]"):
            values[name] = _array(value, _script_value)
        elif value.startswith("{") and value.endswith("}"):
            values[name] = _object(value)
        else:
            values[name] = _script_value(value.strip("'\""))
    return values


def _script_value(text: str) -> Any:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    quoted = _unquoted(text)
    return quoted if quoted != text else _number(text)


__all__ = ["JAVA", "JAVASCRIPT", "Unreadable", "java_reader", "javascript_reader"]
