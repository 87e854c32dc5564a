"""Which driver or scaffold this is: its name, its version, and the functions that it is made of.

A run is gone on with where names and versions are the same, so two that differ must not share both. What a function is
given with it (the arguments of a partial, defaults, what it closes over) is part of its version. An object is known by
the source of its class, and by its values only where nobody can change them: what else tells it apart from its like, it
says itself, by an attribute `name` or `version`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import enum
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec

from agentbench_lab.errors import LabError

LONGEST_NAME = 200


def layers(function: Any) -> Iterator[Any]:
    """The function, and what it is wrapped around, one by one down to the innermost. What wraps is a partial, or says
    by `behind` which functions it calls, its own first."""
    yield function
    while inner := _within(function):
        function = inner[0]
        yield function


def functions_in(function: Any) -> Iterator[Callable[..., Any]]:
    """The functions that others wrote, out of whatever is wrapped around them; the driver's own first."""
    inner = _within(function)
    if not inner:
        yield function
    for each in inner:
        yield from functions_in(each)


def _within(function: Any) -> tuple[Any, ...]:
    behind = getattr(function, "behind", None)
    if isinstance(behind, tuple):
        return behind
    if isinstance(function, functools.partial):
        given = (*function.args, *function.keywords.values())
        return (function.func, *(each for each in given if callable(each)))
    return ()


def said_by(function: Any, name: str, default: Any) -> Any:
    """An attribute of the function, or of what it is wrapped around."""
    return next((getattr(each, name) for each in layers(function) if hasattr(each, name)), default)


def own_name(function: Any) -> str:
    """The name that a function or an object gives itself; empty for none. LabError for one that no table can show."""
    own = _own(function, "name")
    if own is None:
        return ""
    if not isinstance(own, str) or not own.strip() or not own.isprintable() or len(own) > LONGEST_NAME:
        raise LabError(f"a name is one line of text with at most {LONGEST_NAME} signs, not {own!r}")
    return own


def _own(function: Any, attribute: str) -> Any:
    found = getattr(function, attribute, None)
    # a class that is given itself has the property that its objects have a value of
    return None if inspect.isdatadescriptor(found) else found


def name_of(function: Any) -> str:
    """Its own name, else where it stands: `module:function`, also out of a partial."""
    own = own_name(function)
    if own:
        return own
    while isinstance(function, functools.partial):
        function = function.func
    kind = type(function)
    module = getattr(function, "__module__", "") or getattr(kind, "__module__", "") or "?"
    return f"{module}:{getattr(function, '__qualname__', kind.__qualname__)}"


def version_of(function: Any) -> str:
    """What it says itself, else sixteen hex digits of a digest of its source and of what it was given.

    Raises LabError for a partial without a name that was given something of which it cannot be told what it is.
    """
    return _version(function, _Above((), frozenset(_counted(function, set()))))


class _Above(NamedTuple):
    """What a value is a part of: the functions around it by their ids, and the cells that some of them count in."""

    functions: tuple[int, ...]
    counted: frozenset[int]


_NOWHERE = _Above((), frozenset())


def _version(function: Any, above: _Above) -> str:
    own = _own(function, "version")
    if own not in (None, ""):
        return str(own)
    if id(function) in above.functions:
        return "itself"
    above = above._replace(functions=(*above.functions, id(function)))
    if isinstance(function, functools.partial):
        source = _version(function.func, above)
        named = bool(own_name(function))
        try:
            given = [_text(each, above, not named) for each in function.args]
            given += [
                f"{key}={_text(value, above, not named)}" for key, value in sorted(function.keywords.items())
            ]
        except _Untold as untold:
            raise LabError(
                f"{name_of(function)!r} is given {untold}, which cannot be told from another of its kind: "
                "give what is made of both a name (made.name = 'mine')"
            ) from None
    else:
        source, given = source_digest(function), list(_given(function, above))
    if not given:
        return source
    return hashlib.sha256("\0".join([source, *given]).encode(errors="surrogatepass")).hexdigest()[:16]


def source_digest(function: Any) -> str:
    """The start of the digest of the source file (of the source text for a function of a notebook)."""
    source: Any = inspect.unwrap(function)
    if not inspect.isroutine(source) and not inspect.isclass(source):
        source = type(source)
    try:
        file = inspect.getsourcefile(source)
        if file is not None and Path(file).is_file():
            text = Path(file).read_bytes()
        else:
            text = inspect.getsource(source).encode()
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(text).hexdigest()[:16]


def _given(function: Any, above: _Above) -> Iterator[str]:
    """What the same source was given, as far as nobody can change it: defaults, what is closed over, an object's values."""
    if inspect.ismethod(function):
        yield from _given(function.__self__, above)
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        if _frozen(function):
            yield _text(function, above, False)
        return
    code = function.__code__
    if "<lambda>" in function.__qualname__:
        # of all functions these alone may share their file and their name
        places = {(line or 0, column or 0) for line, _, column, _ in code.co_positions()}
        yield f"at {sorted(places)}"
    defaults = enumerate(function.__defaults__ or ())
    closed = zip(code.co_freevars, function.__closure__ or (), strict=True)
    values: list[tuple[Any, Any]] = [*defaults, *(function.__kwdefaults__ or {}).items()]
    for name, cell in closed:
        if id(cell) in above.counted:
            continue  # what it counts up is no part of which function it is
        try:
            values.append((name, cell.cell_contents))
        except ValueError:
            continue  # nothing is there yet
    for name, value in values:
        text = _text(value, above, False)
        if text:
            yield f"{name}={text}"


def _counted(value: Any, seen: set[int]) -> Iterator[int]:
    """The cells, by their ids, to which a function stores, or one that it was given or closes over."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: Iterable[Any] = ()
    if isinstance(value, functools.partial):
        inner = (value.func, *value.args, *value.keywords.values())
    elif inspect.ismethod(value):
        inner = (value.__self__, value.__func__)
    elif type(value) in (tuple, frozenset):
        inner = value
    elif isinstance(value, types.FunctionType):
        stored = _stored(value.__code__)
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        yield from (id(cell) for name, cell in cells.items() if name in stored)
        inner = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        for cell in cells.values():
            with contextlib.suppress(ValueError):
                inner.append(cell.cell_contents)
    for each in inner:
        yield from _counted(each, seen)


def _stored(code: types.CodeType) -> set[str]:
    """The names out of functions around it to which code stores, or a function that stands in it."""
    if not code.co_freevars:
        return set()
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_DEREF"}
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            names |= _stored(each)
    return names & set(code.co_freevars)


def untold(value: Any) -> str:
    """Of what kind a value is that cannot be told from another of its kind; empty for one that can."""
    try:
        _text(value, _NOWHERE, True)
    except _Untold as said:
        return str(said)
    return ""


class _Untold(Exception):
    """A value of which no text says what it is."""


_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def _text(value: Any, above: _Above, strict: bool) -> str:
    """A text that is the same in every process, for equal values only. Where there is none: _Untold when `strict`, else an
    empty text, as for what may change."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return repr(value)
    where = f"{kind.__module__}:{kind.__qualname__}"
    if isinstance(value, enum.Enum):
        return f"{where}.{value.name}"
    if isinstance(value, PurePath):
        return f"{where} {value}"
    if kind in (tuple, frozenset) or (strict and kind in (list, set)):
        inner = [_text(each, above, strict) for each in value]
        return f"{kind.__name__}({', '.join(inner if kind in (tuple, list) else sorted(inner))})"
    if strict and kind is dict:
        pairs = [f"{_text(key, above, True)}: {_text(each, above, True)}" for key, each in value.items()]
        return f"{{{', '.join(sorted(pairs))}}}"
    if _frozen(value):
        names = getattr(kind, "__struct_fields__", None) or [f.name for f in dataclasses.fields(value)]
        return f"{where}({', '.join(f'{n}={_text(getattr(value, n), above, strict)}' for n in names)})"
    if inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, functools.partial):
        return f"{name_of(value)} {_version(value, above)}"
    if callable(value) and own_name(value):
        return f"{own_name(value)} {_version(value, above)}"
    if not strict:
        return ""
    said = repr(value)
    if kind.__repr__ is object.__repr__ or " at 0x" in said or "..." in said:
        raise _Untold(f"a value of the type {kind.__qualname__}")
    return f"{where} {said}"


def _frozen(value: Any) -> bool:
    """Whether an object's own values cannot change."""
    kind: Any = type(value)
    if isinstance(value, msgspec.Struct):
        return bool(kind.__struct_config__.frozen)
    made = getattr(kind, "__dataclass_params__", None)
    return made is not None and bool(made.frozen)


__all__ = [
    "functions_in",
    "layers",
    "name_of",
    "own_name",
    "said_by",
    "source_digest",
    "untold",
    "version_of",
]
