"""Keys of endpoints: read from the environment alone, and known to what writes files, so that none of them keeps one."""

from __future__ import annotations

import os

import msgspec

from agentbench_lab.errors import LabError

NAMES = ("AGENTBENCH_LAB_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a key; the first that is set counts."""
SHORTEST = 8
"""A shorter value (`none`, `EMPTY`, for endpoints that ask for anything) is no secret, and occurs in any text."""

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
    """Every key that was ever seen in this process, as it stands and as JSON writes it, the longest first."""
    return _known


def _remember(key: str) -> None:
    global _known
    if len(key) >= SHORTEST and key not in _known:
        written = msgspec.json.encode(key).decode()[1:-1]
        _known = tuple(sorted({*_known, key, written}, key=len, reverse=True))
