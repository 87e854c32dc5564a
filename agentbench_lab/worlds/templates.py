"""Arguments of a call put into declared texts, values and paths.

In a text `{name}` is an argument, `{{` and `}}` are braces. A value that is exactly `"{name}"` is the argument itself
with its JSON type; within a longer text an argument stands as text, as JSON where it is none. In a path an argument
is one segment, whatever dots are in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from agentbench_lab.errors import did_you_mean
from agentbench_lab.paths import BadPath, Path, split
from agentbench_lab.values import canonical

Arguments = Mapping[str, Any]
Fill = Callable[[Arguments], Any]
Segments = tuple[str | None, ...]
"""A path's segments as far as they are known before a call; None where an argument stands."""

_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w-]*)\}|[{}]")


class BadTemplate(ValueError):
    """A text whose braces mean nothing, or that names an argument the tool does not have."""


class Argument(str):
    """The name of an argument, among the pieces of a text."""


def pieces(text: str, known: Collection[str]) -> list[str]:
    """The text in pieces, each plain text or an Argument; raises BadTemplate."""
    found: list[str] = []
    plain, start = "", 0
    for piece in _PIECE.finditer(text):
        plain += text[start : piece.start()]
        start = piece.end()
        if piece[0] in ("{{", "}}"):
            plain += piece[0][0]
        elif piece[1] is None:
            raise BadTemplate(f"{text!r} has a lone {piece[0]!r}: a brace in a text is written twice")
        elif piece[1] not in known:
            raise BadTemplate(f"{text!r} names no argument{did_you_mean(piece[1], known)}")
        else:
            found += [plain, Argument(piece[1])] if plain else [Argument(piece[1])]
            plain = ""
    plain += text[start:]
    return [*found, plain] if plain or not found else found


def value(declared: Any, known: Collection[str]) -> tuple[Fill, set[str]]:
    """What fills a declared JSON value, and the arguments that it takes; raises BadTemplate."""
    if isinstance(declared, str):
        return _text(declared, known)
    if isinstance(declared, list):
        parts = [value(item, known) for item in declared]
        names = set().union(*(names for _, names in parts))
        if not names:
            constant = [fill({}) for fill, _ in parts]
            return lambda arguments: constant, names
        return lambda arguments: [fill(arguments) for fill, _ in parts], names
    if isinstance(declared, dict):
        fills = {key: value(item, known) for key, item in declared.items()}
        names = set().union(*(names for _, names in fills.values()))
        if not names:
            fixed = {key: fill({}) for key, (fill, _) in fills.items()}
            return lambda arguments: fixed, names
        return lambda arguments: {key: fill(arguments) for key, (fill, _) in fills.items()}, names
    return lambda arguments: declared, set()


def _text(text: str, known: Collection[str]) -> tuple[Fill, set[str]]:
    found = pieces(text, known)
    names = {str(piece) for piece in found if type(piece) is Argument}
    if not names:
        return lambda arguments: found[0], names
    if len(found) == 1:
        name = str(found[0])
        return lambda arguments: arguments[name], names
    return (
        lambda arguments: "".join(
            [as_text(arguments[piece]) if type(piece) is Argument else piece for piece in found]
        ),
        names,
    )


def as_text(argument: Any) -> str:
    """A value within a text: text as it is, anything else as JSON."""
    return argument if type(argument) is str else canonical(argument).decode()


def path(text: Any, known: Collection[str]) -> tuple[Callable[[Arguments], Path], Segments, set[str]]:
    """What fills a declared path, its segments as far as they are fixed, and the arguments that it takes.

    Raises BadTemplate or BadPath. A call whose argument can be no segment raises BadPath when it is filled.
    """
    if not isinstance(text, str):
        raise BadPath("a path is text")
    parts = [pieces(segment, known) for segment in split(text)]
    names = {str(piece) for part in parts for piece in part if type(piece) is Argument}
    fixed = tuple(part[0] if len(part) == 1 and type(part[0]) is not Argument else None for part in parts)
    if not names:
        constant = tuple(part[0] for part in parts)
        return lambda arguments: constant, fixed, names

    def fill(arguments: Arguments) -> Path:
        filled = tuple(
            [
                "".join([_segment(piece, arguments) if type(piece) is Argument else piece for piece in part])
                for part in parts
            ]
        )
        if "" in filled:
            raise BadPath("an empty text cannot name a place in the state")
        return filled

    return fill, fixed, names


def _segment(name: str, arguments: Arguments) -> str:
    argument = arguments[name]
    if type(argument) is float and argument.is_integer():
        argument = int(argument)
    if type(argument) not in (str, int):
        raise BadPath(f"{name}: {as_text(argument)} cannot name a place in the state")
    return str(argument)


__all__ = ["Arguments", "BadTemplate", "Fill", "Segments", "as_text", "path", "value"]
