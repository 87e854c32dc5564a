"""The usage that an endpoint reports, as four disjoint buckets, whichever way it counts cached tokens.

Styles that are told apart:

- `prompt_tokens` with `prompt_tokens_details.cached_tokens` (OpenAI), or with `prompt_cache_hit_tokens` (DeepSeek): the
  input is a total in which the cached tokens lie;
- `input_tokens` with `cache_read_input_tokens` and `cache_creation_input_tokens` (Anthropic): the input is what is fresh;
- `prompt_tokens` with `cache_read_input_tokens`, which gateways write in either sense: `total_tokens` tells which.

An endpoint that names no cached tokens at all charges every token of its input alike: all of it is fresh.
"""

from __future__ import annotations

from typing import Any

from agentbench_lab.transcripts import Usage, disjoint_input

ANSWERED = Usage(model_calls=1)
"""One answer of which nothing else is known."""


def usage_of(reported: Any) -> tuple[Usage, str]:
    """The usage of one answer, and what is wrong with what was reported of it (empty where nothing is).

    What is missing or no number is unknown, never 0. `cost_micros` and `wall_s` stay unknown: no endpoint says them.
    """
    if not isinstance(reported, dict):
        return ANSWERED, "" if reported is None else "the usage reported is no object"
    total = _first(reported, "prompt_tokens", "input_tokens")
    output = _first(reported, "completion_tokens", "output_tokens")
    read, write = _cached(reported)
    try:
        fresh, read, write = disjoint_input(
            total, read, write, inclusive=_inclusive(reported, total, output, read, write)
        )
        if output is not None and output < 0:
            raise ValueError(f"output: {output} tokens")
    except ValueError as error:
        return ANSWERED, f"the usage reported cannot be: {error}"
    return Usage(fresh, read, write, output, model_calls=1), ""


def _cached(reported: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens read from a cache and written to one; 0 where the endpoint does not speak of such."""
    details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    if not isinstance(details, dict):
        details = {}
    read = _named(reported, "cache_read_input_tokens", "prompt_cache_hit_tokens") or _named(
        details, "cached_tokens"
    )
    write = _named(reported, "cache_creation_input_tokens") or _named(
        details, "cache_creation_tokens", "cache_write_tokens"
    )
    return (read or (0,))[0], (write or (0,))[0]


def _inclusive(
    reported: dict[str, Any], total: int | None, output: int | None, read: int | None, write: int | None
) -> bool:
    """Whether the cached tokens lie within the input."""
    beside = "cache_read_input_tokens" in reported or "cache_creation_input_tokens" in reported
    if not beside:
        return True
    if "prompt_tokens" not in reported:
        return False
    cached = (read or 0) + (write or 0)
    everything = _first(reported, "total_tokens")
    if everything is not None and None not in (total, output) and cached:
        return everything < (total or 0) + (output or 0) + cached
    return (total or 0) >= cached


def _first(of: dict[str, Any], *names: str) -> int | None:
    return (_named(of, *names) or (None,))[0]


def _named(of: dict[str, Any], *names: str) -> tuple[int | None] | None:
    """The first of the figures that is there, as a tuple of one: None within it for one that is no whole number."""
    for name in names:
        value = of.get(name)
        if value is not None:
            return (value if type(value) is int else None,)
    return None
