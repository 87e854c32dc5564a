"""What a driver gives back: the calls it claims, how it ended, and what it used."""

from __future__ import annotations

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


def _plus(a: N | None, b: N | None) -> N | None:
    return None if a is None or b is None else a + b


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
