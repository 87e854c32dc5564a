"""The simulated user of a case: what it wants, and what it says where it is scripted. No agent is shown any of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from agentbench_lab.errors import counted
from agentbench_lab.patterns import PATTERN_S, fits

STOP_TOKEN = "###STOP###"
"""What either side says to end a conversation; it is no part of what was said."""
MAX_TURNS = 4
"""Turns of the agent, where a case does not say."""


class RanAway(Exception):
    """A pattern of a script did not come to an end on what the agent said; the user has failed, not the agent."""


class When(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a line is said: all that is given has to hold of the agent's last words.

    `contains`: each text (one, or a list) occurs in them, whatever its capitals. `regex`: Python's re.search finds it.
    `turn`: they are the words of this turn of the agent's, from 1.
    """

    contains: str | tuple[str, ...] | None = None
    regex: str | None = None
    turn: Annotated[int, Meta(ge=1)] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of `contains`."""
        if self.contains is None:
            return ()
        return (self.contains,) if isinstance(self.contains, str) else self.contains

    def fits(self, words: str, turn: int) -> bool:
        """Whether the agent's words of this turn are those that the line waits for."""
        if self.turn is not None and turn != self.turn:
            return False
        if self.regex is not None:
            # the words are an agent's, who may have written them for the pattern
            found = fits(self.regex, words)
            if found is None:
                raise RanAway(
                    f"the user's pattern {self.regex!r} took more than {PATTERN_S:g} s on what was said"
                )
            if not found:
                return False
        folded = words.casefold()
        return all(text.casefold() in folded for text in self.texts)


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A line that is said when something holds."""

    when: When
    say: str


class User(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A simulated user: `scenario` is what a model that plays it is told, `script` what the scripted one says."""

    scenario: str = ""
    script: tuple[str | Line, ...] = ()


def next_line(script: Sequence[str | Line], heard: Sequence[str]) -> str | None:
    """What a scripted user says after the agent's words `heard`, one text a turn; None when the script is over.

    Each time it says the first entry that it has not said yet and that fits; a plain line always fits.
    """
    left = list(script)
    said: str | None = None
    for turn, words in enumerate(heard, start=1):
        at = next((at for at, entry in enumerate(left) if _fits(entry, words, turn)), None)
        if at is None:
            return None
        entry = left.pop(at)
        said = entry if isinstance(entry, str) else entry.say
    return said


def _fits(entry: str | Line, words: str, turn: int) -> bool:
    return isinstance(entry, str) or entry.when.fits(words, turn)


def user_faults(user: User, max_turns: int) -> Iterator[str]:
    """What is wrong with a user of a conversation of at most `max_turns` turns of the agent."""
    if not user.scenario.strip() and not user.script:
        yield "has neither a scenario nor a script"
    lines = sum(isinstance(entry, str) for entry in user.script)
    if lines > max_turns - 1:
        yield f"script: {counted(lines, 'line')}, and in {counted(max_turns, 'turn')} of the agent the user speaks {counted(max_turns - 1, 'time')}"
    for number, entry in enumerate(user.script, start=1):
        yield from (f"script {number}: {fault}" for fault in _line_faults(entry, max_turns))


def _line_faults(entry: str | Line, max_turns: int) -> Iterable[str]:
    if not (entry if isinstance(entry, str) else entry.say).strip():
        yield "says nothing"
    if isinstance(entry, str):
        return
    when = entry.when
    if when.regex is None and when.turn is None and not when.texts:
        yield "when has no condition; a line that is always said is plain text"
    if not all(text.strip() for text in when.texts):
        yield "when.contains: a text must not be blank"
    if when.turn is not None and when.turn >= max_turns:
        yield f"when.turn is {when.turn}, and the user speaks last after turn {max_turns - 1}"
    if when.regex is not None:
        try:
            re.compile(when.regex)
        except re.error as error:
            yield f"when.regex: {error}"


def without_stop(text: str) -> tuple[str, bool]:
    """A text without the stop token, and whether it was there."""
    return text.replace(STOP_TOKEN, "").strip(), STOP_TOKEN in text


__all__ = ["MAX_TURNS", "STOP_TOKEN", "Line", "User", "When", "next_line", "user_faults", "without_stop"]
