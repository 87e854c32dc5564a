"""Secrets: the keys of endpoints, read from the environment alone, and the variables that are handed on to programs.

Both are known to what writes files, so that none of them keeps one, as it stands or as JSON writes it. What is made of a
secret otherwise (base64, its halves one after the other) is not recognised.

All that this process ever knew is taken out of what is kept beside a grade: notes, output, dialogues, recordings. Out of
what is graded (calls, answers) a driver takes its own secrets alone: what one arm is handed on changes no grade of another.
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
SHORTEST_LINE = 16
"""Characters from which on a line of such a value is one by itself: the lines of a certificate are, and those of a
configuration (`stage: test`, `"debug": true,`) are everyday words."""
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


Secrets = tuple[_Secret, ...]
"""Secrets, the longest first: one may stand within another."""
_known: Secrets = ()
_lock = threading.Lock()


def api_key() -> str:
    """The key to show to an endpoint; empty where the environment has none. Raises LabError, which never shows it."""
    for name in NAMES:
        value = os.environ.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise LabError(f"{name} holds what no key can: a blank, or a character that HTTP cannot send")
            _add(_secrets(value, SHORTEST))
            return value
    return ""


def of_endpoints() -> Secrets:
    """The keys that the environment holds now."""
    found = [_secrets(os.environ.get(name, "").strip(), SHORTEST) for name in NAMES]
    return together(*found)


def of_variables(*names: str) -> Secrets:
    """The values that these variables of the environment have now."""
    found: list[Secrets] = []
    for name in names:
        value = os.environ.get(name, "")
        found += [_secrets(value, SHORTEST_HANDED_ON), _secrets(value.strip(), SHORTEST_HANDED_ON)]
        # the last line that a program says stands in a reason
        lines = value.splitlines() if len(value.splitlines()) > 1 else ()
        for line in lines:
            found += [_secrets(line, SHORTEST_LINE), _secrets(line.strip(), SHORTEST_LINE)]
    return together(*found)


def together(*several: Secrets) -> Secrets:
    """Each secret once."""
    each = {secret.text: secret for secrets in several for secret in secrets}
    return tuple(sorted(each.values(), key=lambda secret: len(secret.text), reverse=True))


def remember(*handed_on: str) -> None:
    """Know the keys that the environment holds now, whoever uses them, and the values of these variables of it."""
    _add(together(of_endpoints(), of_variables(*handed_on)))


def room(secrets: Secrets | None = None) -> int:
    """Bytes that the longest of these secrets (of all that are known) may take, however it is written: what is cut off may
    have begun one there."""
    return 12 * max((len(secret.text) for secret in (_known if secrets is None else secrets)), default=0)


def begun(clean: str, kept: int, room: int) -> str:
    """The first `kept` characters of a text without secrets, and none of the last `room`: where it was cut off a secret may
    have begun, which cannot be told from its beginning."""
    return clean[: max(0, min(kept, len(clean) - room))]


def without(text: str, secrets: Secrets | None = None) -> str:
    """The text without these secrets (all that are known), each replaced by `«redacted»`; JSON stays JSON."""
    escaped = "\\" in text
    for secret in _known if secrets is None else secrets:
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


def _add(secrets: Secrets) -> None:
    global _known
    with _lock:
        if not set(secrets) <= set(_known):
            _known = together(_known, secrets)


def _secrets(text: str, shortest: int) -> Secrets:
    """The secret that a text is, in all its forms; none where it is too short for one."""
    if re.fullmatch(r"[0-9.eE+-]+", text):
        shortest = max(shortest, SHORTEST_NUMBER)
    if len(text) < shortest:
        return ()
    # bytes that are no UTF-8 come back from a program as the character that stands for such
    return tuple(map(_secret, {text, os.fsencode(text).decode(errors="replace")}))


@lru_cache(maxsize=256)
def _secret(text: str) -> _Secret:
    anchor = max(re.findall(r"[A-Za-z0-9_.-]+", text), key=len, default="")
    return _Secret(text, anchor, re.compile(_pattern(text)))


_SHORT = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}


def _pattern(text: str) -> str:
    """The pattern of all the ways in which JSON, and a text of Python's, write a text, within JSON too.

    Backslashes are always taken as many as there are and never given back, so that a text of nothing else is searched in
    one pass; those of the secret itself are taken with those that escape what comes next.
    """
    pattern = ""
    for found in re.finditer(r"(\\+)?([^\\])?", text):
        count = len(found[1] or "")
        letter = found[2] or ""
        if not count:
            pattern += _written(letter) if letter else ""
            continue
        most = ESCAPES * (count + bool(letter))
        alike = rf"\\{{{count},{most}}}+{_escaped(letter)}" if letter else rf"\\{{{count},{most}}}+"
        coded = (
            rf"(?:\\{{1,{ESCAPES}}}+(?:u(?i:005c)|x(?i:5c))){{{count}}}{_written(letter) if letter else ''}"
        )
        pattern += f"(?:{alike}|{coded})"
    return pattern


def _written(letter: str) -> str:
    """The pattern of a character, as it stands or escaped."""
    # each way begins with a character of its own, by which a text is searched quickly
    return rf"(?:{re.escape(letter)}|\\{{1,{ESCAPES}}}+{_escaped(letter, bare=False)})"


def _escaped(letter: str, *, bare: bool = True) -> str:
    """The pattern of what may stand behind the backslashes before a character; `bare`: they may have been the text's own."""
    ways = []
    if not letter.isalnum():
        ways.append(_SHORT.get(letter, re.escape(letter)))
    if bare:
        ways.append(re.escape(letter))
    units = letter.encode("utf-16-be", errors="surrogatepass").hex()
    halves = [units[at : at + 4] for at in range(0, len(units), 4)]
    ways.append(rf"\\{{1,{ESCAPES}}}+".join(f"u(?i:{half})" for half in halves))
    if ord(letter) < 256:
        ways.append(f"x(?i:{ord(letter):02x})")
    return f"(?:{'|'.join(dict.fromkeys(ways))})"
