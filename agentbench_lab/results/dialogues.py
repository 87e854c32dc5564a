"""How much of a dialogue a run keeps: all of it, or its two ends, and always without what looks like a secret."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from agentbench_lab.results.redaction import redact
from agentbench_lab.values import canonical
from agentbench_lab.worlds.toolbox import TEXT_LIMIT

DIALOGUE_LIMIT = 200_000
"""Characters of JSON that a kept dialogue has at most."""
_NOTE = 300
"""Characters that the words in the place of what is left out have at most."""


def bounded(text: str) -> str:
    """As much of a text as a call keeps of what came back, and a world shows an agent: `TEXT_LIMIT` characters."""
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"


def kept_dialogue(messages: tuple[Any, ...]) -> tuple[Any, ...]:
    """The messages as far as they are kept (see `kept_json`); the same ones where all of them is."""
    said = canonical(messages).decode("utf-8", "replace")
    kept = kept_json(said)
    return messages if kept == said else tuple(msgspec.json.decode(kept))


def kept_json(said: str) -> str:
    """A dialogue as JSON (what is no list counts as one message), without secrets and of `DIALOGUE_LIMIT` characters at most.

    Of a longer dialogue every text is bounded first. Where that is not enough, its first and its last messages stay,
    with a message between them that says how many, and how many characters of JSON, are left out. Secrets go before
    anything is cut: of half a secret nobody would know that it is one.
    """
    clean = redact(said)
    if len(clean) <= DIALOGUE_LIMIT:
        return clean
    try:
        whole = msgspec.json.decode(clean)
        whole = whole if isinstance(whole, list) else [whole]
        short = [_squeezed(_shorter(message)) for message in whole]
    except RecursionError:
        whole, short = [clean], [_squeezed(clean)]
    sizes = [len(_json(message)) for message in short]
    if sum(sizes) + len(sizes) + 1 <= DIALOGUE_LIMIT:
        return _json(short)
    half = (DIALOGUE_LIMIT - _NOTE) // 2
    first = _fitting(sizes, half)
    last = len(short) - _fitting(sizes[::-1], half)
    left_out = whole[first:last]
    words = (
        f"the dialogue is longer than what is kept: {len(left_out)} of {len(whole)} messages "
        f"({sum(len(_json(message)) for message in left_out)} characters) are left out here"
    )
    return _json([*short[:first], {"role": "note", "content": words}, *short[last:]])


def _shorter(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value)
    if isinstance(value, list):
        return [_shorter(each) for each in value]
    return {key: _shorter(each) for key, each in value.items()} if isinstance(value, dict) else value


def _squeezed(message: Any) -> Any:
    """A message of many texts that has no room for itself, as the beginning of its JSON."""
    said = _json(message)
    if len(said) <= DIALOGUE_LIMIT // 4:
        return message
    role = message.get("role") if isinstance(message, dict) else None
    return {"role": role[:99] if isinstance(role, str) else "message", "content": bounded(said)}


def _fitting(sizes: Iterable[int], room: int) -> int:
    """How many of them, from the first, have room together."""
    number = 0
    for size in sizes:
        room -= size + 1
        if room < 0:
            break
        number += 1
    return number


def _json(value: Any) -> str:
    return canonical(value).decode("utf-8", "replace")
