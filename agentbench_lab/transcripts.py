"""What a driver gives back: the calls it claims, how it ended, and what it used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

from msgspec import Struct, field

from agentbench_lab.cases import Call

Stop = Literal["done", "refused", "budget", "timeout", "driver_error", "infrastructure_error"]
Status = Literal["ok", "tool_error", "schema_error", "protocol_error", "malformed", "undeclared"]


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a trial used. Tokens lie in four disjoint buckets; money is micros of a dollar; wall time is seconds.

    None is unknown, which is never zero: a sum with an unknown part is unknown. `a + b` is one after the other,
    `a | b` side by side (all adds but the wall time, which is the longer one).
    """

    fresh_input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    model_calls: int | None = None
    cost_micros: int | None = None
    wall_s: float | None = None
    estimated: bool = False

    @classmethod
    def zero(cls) -> Usage:
        return cls(0, 0, 0, 0, 0, 0, 0.0)

    @property
    def tokens(self) -> int | None:
        """All four buckets together."""
        total = 0
        for part in (self.fresh_input, self.cache_read, self.cache_write, self.output):
            if part is None:
                return None
            total += part
        return total

    def __add__(self, other: Usage) -> Usage:
        return self._with(other, _plus(self.wall_s, other.wall_s))

    def __or__(self, other: Usage) -> Usage:
        both = self.wall_s is not None and other.wall_s is not None
        return self._with(other, max(self.wall_s or 0.0, other.wall_s or 0.0) if both else None)

    def _with(self, other: Usage, wall_s: float | None) -> Usage:
        return Usage(
            fresh_input=_plus(self.fresh_input, other.fresh_input),
            cache_read=_plus(self.cache_read, other.cache_read),
            cache_write=_plus(self.cache_write, other.cache_write),
            output=_plus(self.output, other.output),
            model_calls=_plus(self.model_calls, other.model_calls),
            cost_micros=_plus(self.cost_micros, other.cost_micros),
            wall_s=wall_s,
            estimated=self.estimated or other.estimated,
        )


N = TypeVar("N", int, float)


class Worker(Struct, frozen=True, gc=False, omit_defaults=True):
    """One call of an agent by a scaffold: its number (from 1, in declared order), what it was there for, how it ended
    and what it used. Workers of one `wave` were at work side by side."""

    number: int
    name: str
    stop: Stop
    usage: Usage
    wave: int = 0


def together(workers: Iterable[Worker]) -> Usage:
    """What workers used together: side by side within a wave, the waves one after the other."""
    waves: dict[int, Usage] = {}
    for worker in sorted(workers, key=lambda worker: worker.number):
        before = waves.get(worker.wave)
        waves[worker.wave] = worker.usage if before is None else before | worker.usage
    total: Usage | None = None
    for usage in waves.values():
        total = usage if total is None else total + usage
    return Usage.zero() if total is None else total


def _plus(a: N | None, b: N | None) -> N | None:
    return None if a is None or b is None else a + b


def disjoint_input(
    total_or_fresh: int | None, cache_read: int | None, cache_write: int | None, *, inclusive: bool
) -> tuple[int | None, int | None, int | None]:
    """The three disjoint input buckets of `Usage` (fresh, read from a cache, written to one), in tokens.

    Some providers count cached tokens within their input (`inclusive`): there the first number is the total, and fresh
    is what is left of it. Others count them beside it: there the first number is fresh as it stands. A provider
    without cache writes has 0 of them, which is the caller's to say: with an unknown part, what is left of a total is
    unknown. Raises ValueError for a negative bucket, and for cached tokens that are more than the total they lie in.
    """
    named = {
        "input" if inclusive else "fresh input": total_or_fresh,
        "cache read": cache_read,
        "cache write": cache_write,
    }
    for name, tokens in named.items():
        if tokens is not None and tokens < 0:
            raise ValueError(f"{name}: {tokens} tokens")
    if not inclusive or total_or_fresh is None:
        return None if inclusive else total_or_fresh, cache_read, cache_write
    fresh = total_or_fresh - (cache_read or 0) - (cache_write or 0)
    if fresh < 0:
        raise ValueError(f"{total_or_fresh - fresh} cached tokens within an input of {total_or_fresh}")
    unknown = cache_read is None or cache_write is None
    return None if unknown else fresh, cache_read, cache_write


class Observation(Struct, frozen=True, gc=False):
    """What a tool call gave back: its status, a text for the agent to read, and the value behind the text."""

    status: Status
    text: str
    value: Any = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Transcript(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a driver says it did. `calls` are claims: the ledger of the toolbox has to bear them out.

    `refused` with `reject` or `ambiguous_goals` are the two refusals of goal recognition; `candidate_results` are the
    reads of the tied candidates of an ambiguous request; `result` is the set of labels composed from the calls.
    `proof` is the list of steps of the ladder's own shape; `notes` are the driver's reasons; `messages` its dialogue.
    `text` is what it said last in plain words: a turn of a conversation, and no answer where one is expected. `cached`
    says that some answer of a model came from a cache, so that the trial's times say nothing. `heard` says that
    the calls are what the toolbox saw the agent do, and no account of its own.
    """

    calls: tuple[Call, ...] = ()
    answer: Any = None
    status: str | None = None
    refused: bool = False
    terminated: bool = True
    stop: Stop = "done"
    proof: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    driver: str = ""
    result: tuple[str, ...] | None = None
    candidate_results: tuple[Call, ...] | None = None
    recovered: bool = False
    inferred_goal: str | None = None
    reject: bool = False
    ambiguous_goals: tuple[str, ...] | None = None
    messages: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = ""
    cached: bool = False
    heard: bool = False
