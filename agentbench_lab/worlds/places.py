"""Declared paths against the state that a world begins with: those that can lead nowhere are faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from agentbench_lab.errors import did_you_mean
from agentbench_lab.paths import ABSENT, join, look, named
from agentbench_lab.worlds.templates import Segments


class Place(Struct, frozen=True):
    """A declared path, for the check against the state that the world begins with: `use` is the effect's word or
    `precondition`, `words` where it is declared."""

    segments: Segments
    use: str
    words: str


def off_the_map(state: Any, place: Place, made: list[Segments]) -> Iterator[str]:
    """Why a path can lead nowhere in the state that the world begins with, unless some effect makes the way."""
    here = [state]
    last = len(place.segments) - 1
    for at, segment in enumerate(place.segments):
        so_far = _shown(place.segments[:at])
        holders = [value for value in here if type(value) is dict or type(value) is list]
        if here and not holders:
            yield f"{so_far} is {named(here[0])}, and holds nothing"
            return
        objects = [value for value in holders if type(value) is dict]
        if segment is None:
            here = [item for value in holders for item in (value.values() if type(value) is dict else value)]
        else:
            place_of = segment.isascii() and segment.isdigit()
            if holders and not objects and not place_of:
                yield f"{so_far} is a list: {segment!r} is no index in it"
                return
            here = [found for value in holders if (found := look(value, (segment,))) is not ABSENT]
            prefix = place.segments[: at + 1]
            makes = any(_covers(one, prefix) for one in made)
            may_lack = place.use in ("set", "precondition") and at == last and at > 0
            if (
                holders
                and not here
                and not makes
                and not may_lack
                and (at == 0 or place.use != "precondition")
            ):
                keys = {key for value in objects for key in value}
                lacks = f"there is no {segment!r} in {so_far}" if so_far else f"the state has no {segment!r}"
                yield f"{lacks}{did_you_mean(segment, keys)}"
                return
        if not here:
            return
    ends: dict[str, tuple[str, tuple[type, ...]]] = {
        "append": ("list", (list,)),
        "increment": ("number", (int, float)),
    }
    if place.use in ends:
        word, kinds = ends[place.use]
        if not any(type(value) in kinds for value in here):
            yield f"{_shown(place.segments)} is {named(here[0])}, and no {word}"


def _covers(made: Segments, prefix: Segments) -> bool:
    """Whether an effect writes at a path on the way to this one, or at it."""
    return len(made) <= len(prefix) and all(
        a is None or b is None or a == b for a, b in zip(made, prefix, strict=False)
    )


def _shown(segments: Segments) -> str:
    return ".".join("{…}" if segment is None else join((segment,)) for segment in segments)


__all__ = ["Place", "off_the_map"]
