"""Secrets: the keys of endpoints, read from the environment alone, and the variables that are handed on to programs.

Both are known to what writes files, so that none of them keeps one, as it stands or as JSON writes it. What is made of a
secret otherwise (base64, its halves one after the other) is not recognised.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_origin

import msgspec
from msgspec import Struct

from agentbench_lab.errors import LabError
from agentbench_lab.values import MAX_DEPTH

NAMES = ("AGENTBENCH_LAB_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a key; the first that is set counts."""
SHORTEST = 8
"""A shorter key (`none`, `EMPTY`, for endpoints that ask for anything) is no secret, and occurs in any text."""
SHORTEST_HANDED_ON = 6
"""Characters from which on the value of a variable that a program is given is a secret."""
SHORTEST_NUMBER = 10
"""Characters from which on a secret may look like a number: a shorter one is found in every count and every clock."""
ESCAPES = 32
"""Backslashes that may stand before one character: JSON within JSON, five deep. Arguments are a text in an answer, and an
answer is kept as a text."""
REDACTED = "«redacted»"


class _Secret(NamedTuple):
    """A secret, the longest part of it that is never written otherwise, and all the ways in which it is written."""

    text: str
    anchor: str
    pattern: re.Pattern[str]


_known: tuple[_Secret, ...] = ()
_lock = threading.Lock()


def api_key() -> str:
    """The key to show to an endpoint; empty where the environment has none. Raises LabError, which never shows it."""
    for name in NAMES:
        value = os.environ.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise LabError(f"{name} holds what no key can: a blank, or a character that HTTP cannot send")
            _remember(value, SHORTEST)
            return value
    return ""


def remember(*handed_on: str) -> None:
    """Know the keys that the environment holds now, whoever uses them, and the values of these variables of it."""
    for name in NAMES:
        _remember(os.environ.get(name, "").strip(), SHORTEST)
    for name in handed_on:
        value = os.environ.get(name, "")
        # of several lines each is a secret: the last one that a program says stands in a reason
        for part in (value, *value.splitlines()):
            _remember(part, SHORTEST_HANDED_ON)
            _remember(part.strip(), SHORTEST_HANDED_ON)


def room() -> int:
    """Bytes that the longest secret may take, however it is written: what is cut off may have begun one there."""
    return 12 * max((len(secret.text) for secret in _known), default=0)


def begun(clean: str, kept: int, room: int) -> str:
    """The first `kept` characters of a text without secrets, and none of the last `room`: where it was cut off a secret may
    have begun, which cannot be told from its beginning."""
    return clean[: max(0, min(kept, len(clean) - room))]


def without(text: str) -> str:
    """The text without any secret that was seen, each replaced by `«redacted»`; JSON stays JSON."""
    escaped = "\\" in text
    for secret in _known:
        if not escaped:
            text = text.replace(secret.text, REDACTED)
        elif secret.anchor in text or "\\u" in text or "\\x" in text:
            text = secret.pattern.sub(_mark, text)
    return text


def without_in(value: Any, clean: Callable[[str], str] = without) -> Any:
    """The same for every text and number within a JSON value, the names in objects too, and within structs of ours, whose
    own words (the names of fields, and what comes from a closed list) stay."""
    if clean is without and not _known:
        return value
    return _cleaned(value, clean, MAX_DEPTH + 10)


def _cleaned(value: Any, clean: Callable[[str], str], left: int) -> Any:
    kind: Any = type(value)
    if kind is str:
        return clean(value)
    if kind is int or kind is float:
        # a longer one is no secret, and takes its time to be written
        said = str(value) if abs(value) < 1e100 else ""
        return value if clean(said) == said else REDACTED
    if not left:
        return REDACTED  # deeper than what anything takes
    if kind is dict:
        return {_cleaned(key, clean, 0): _cleaned(item, clean, left - 1) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind([_cleaned(item, clean, left - 1) for item in value])
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in _free_fields(kind)}
        return msgspec.structs.replace(
            value,
            **{
                name: _cleaned(item, clean, left - 1)
                for name, item in fields.items()
                if not isinstance(item, int | float)
            },
        )
    return value


@lru_cache(maxsize=64)
def _free_fields(kind: type[Struct]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(kind)
    return tuple(field.name for field in fields if get_origin(field.type) is not Literal)


def _mark(found: re.Match[str]) -> str:
    """What stands for a secret. Where it begins with a letter that was the end of an escape (`\\n`), that stays one."""
    before, at = found.string, found.start()
    while at and before[at - 1] == "\\":
        at -= 1
    return ("\\" if (found.start() - at) % 2 else "") + REDACTED


def _remember(text: str, shortest: int) -> None:
    global _known
    if re.fullmatch(r"[0-9.eE+-]+", text):
        shortest = SHORTEST_NUMBER
    if len(text) < shortest:
        return
    # bytes that are no UTF-8 come back from a program as the character that stands for such
    for form in (text, os.fsencode(text).decode(errors="replace")):
        if form in [secret.text for secret in _known]:
            continue
        anchor = max(re.findall(r"[A-Za-z0-9_.-]+", form), key=len, default="")
        secret = _Secret(form, anchor, re.compile("".join(map(_written, _runs(form)))))
        with _lock:
            others = [each for each in _known if each.text != form]
            _known = tuple(sorted((*others, secret), key=lambda each: len(each.text), reverse=True))


def _runs(text: str) -> list[str]:
    """The characters of a text, backslashes that stand together as one."""
    return re.findall(r"\\+|[^\\]", text)


_SHORT = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}


def _written(letter: str) -> str:
    """The pattern of all the ways in which JSON, and a text of Python's, write a character, within JSON too."""
    if letter[0] == "\\":
        count = len(letter)
        return rf"(?:\\{{{count},{ESCAPES * count}}}|(?:\\{{1,{ESCAPES}}}(?:u(?i:005c)|x(?i:5c))){{{count}}})"
    ways = []
    if not letter.isalnum():
        ways.append(_SHORT.get(letter, re.escape(letter)))
    units = letter.encode("utf-16-be", errors="surrogatepass").hex()
    halves = [units[at : at + 4] for at in range(0, len(units), 4)]
    ways.append(rf"\\{{1,{ESCAPES}}}".join(f"u(?i:{half})" for half in halves))
    if ord(letter) < 256:
        ways.append(f"x(?i:{ord(letter):02x})")
    # each way begins with a character of its own, by which a text is searched quickly
    return rf"(?:{re.escape(letter)}|\\\\{{0,{ESCAPES - 1}}}(?:{'|'.join(ways)}))"
