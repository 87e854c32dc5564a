"""Keys of endpoints: read from the environment alone, and known to what writes files, so that none of them keeps one."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from agentbench_lab.errors import LabError

NAMES = ("AGENTBENCH_LAB_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a key; the first that is set counts."""
SHORTEST = 8
"""A shorter value (`none`, `EMPTY`, for endpoints that ask for anything) is no secret, and occurs in any text."""
LEVELS = 4
"""How deep in JSON within JSON a key is known."""
REDACTED = "«redacted»"

_known: tuple[str, ...] = ()


def api_key() -> str:
    """The key to show to an endpoint; empty where the environment has none. Raises LabError, which never shows it."""
    for name in NAMES:
        value = os.environ.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise LabError(f"{name} holds what no key can: a blank, or a character that HTTP cannot send")
            _remember(value)
            return value
    return ""


def remember() -> None:
    """Know the keys that the environment holds now, whoever uses them."""
    for name in NAMES:
        _remember(os.environ.get(name, "").strip())


def known() -> tuple[str, ...]:
    """Every key that was seen in this process, as it stands and as JSON writes it, the longest first."""
    return _known


def without(text: str) -> str:
    """The text without any key that was seen, each replaced by `«redacted»`."""
    for key in _known:
        text = text.replace(key, REDACTED)
    return text


def without_in(value: Any) -> Any:
    """The same for every text within a JSON value; the value itself where there is no key in it."""
    if not _known:
        return value
    said = msgspec.json.encode(value).decode()
    clean = without(said)
    return value if clean == said else msgspec.json.decode(clean)


def _remember(key: str) -> None:
    global _known
    if len(key) >= SHORTEST and key not in _known:
        forms = {key}
        for _ in range(LEVELS):
            # JSON within JSON: arguments are a text in an answer, and an answer is kept as a text
            key = msgspec.json.encode(key).decode()[1:-1]
            forms.add(key)
        _known = tuple(sorted({*_known, *forms}, key=len, reverse=True))
