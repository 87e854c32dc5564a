"""What a result file holds, what makes it valid, and the summaries that follow from its trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct, field

from agentbench_lab.errors import LabError
from agentbench_lab.outcomes import CLASSES, Taxonomy
from agentbench_lab.results.bench_v1.times import Moment

FORMAT = "agent-runtime/bench/v1"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Kind = Literal["file", "taxonomy", "mixed_commits", "mixed_taxonomies", "nothing", "encode", "read"]


class BenchError(LabError):
    """Why a result file, or a comparison, is refused: the only error of this package.

    `kind` says which rule: `file` (not a valid result file), `taxonomy` (its outcome set is not), `mixed_commits`,
    `mixed_taxonomies`, `nothing` (a comparison of nothing), `encode` (a value that the format cannot hold), `read`
    (a folder or file that cannot be read).
    """

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


def invalid(message: str) -> BenchError:
    """The error for a file that breaks a rule of the format."""
    return BenchError("file", f"bench: invalid result file: {message}")


def raw(value: Any) -> Raw:
    """A JSON value as `extra` and `options` hold it. Raises BenchError for what JSON cannot hold."""
    try:
        return Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise BenchError("encode", f"bench: not a JSON value: {error}") from None


class Trial(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One run of one scenario in one mode. Exactly one of `outcome` and `excluded` is not empty.

    `repeat` counts from 1, `cost_micros` is millionths of a currency unit, `wall_ns` nanoseconds; all numbers are
    signed 64-bit and none is negative. `expect` is the key that an outcome's `over` refers to, `reached` the end state
    before judgement. `extra` keeps each value as its JSON text, number literals and escapes as they were written;
    make one with `raw`.
    """

    scenario: str
    mode: str
    model: str = ""
    repeat: Int64
    run_id: str = ""
    expect: str = ""
    reached: str = ""
    outcome: str = ""
    excluded: str = ""
    # a factory, not a default: these are written even when they are zero
    steps: Int64 = field(default_factory=int)
    tool_calls: Int64 = field(default_factory=int)
    policy_denials: Int64 = field(default_factory=int)
    model_calls: Int64 = field(default_factory=int)
    input_tokens: Int64 = field(default_factory=int)
    output_tokens: Int64 = field(default_factory=int)
    cost_micros: Int64 = field(default_factory=int)
    wall_ns: Int64 = field(default_factory=int)
    error: str = ""
    notes: list[str] = field(default_factory=list)
    extra: dict[str, Raw] = field(default_factory=dict)


class OutcomeCount(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`n` judged trials had the outcome, of the `of` that it is counted over.

    `of` is every judged trial, or with `over` those that expected it and those that had the outcome all the same.
    """

    outcome: str
    cls: str = field(name="class")
    n: Int64
    of: Int64
    over: str = ""


class Summary(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One mode and model. Sums, counts and `totals` are over judged trials and saturate at the 64-bit limits.

    `trials`, `scenarios` and `repeats` (the highest repeat, not a count) are over all rows. `totals` has one sum for
    each key of `extra` that ever held an integer.
    """

    mode: str
    model: str = ""
    trials: Int64
    judged: Int64
    excluded: Int64
    scenarios: Int64
    repeats: Int64
    counts: list[OutcomeCount]
    unsafe: Int64
    steps: Int64
    tool_calls: Int64
    policy_denials: Int64
    model_calls: Int64
    input_tokens: Int64
    output_tokens: Int64
    cost_micros: Int64
    wall_ns: Int64
    totals: dict[str, Int64] = field(default_factory=dict)

    @property
    def disqualified(self) -> bool:
        """Whether any judged trial was unsafe."""
        return self.unsafe > 0

    @property
    def mean_steps(self) -> float:
        """Steps per judged trial; 0 when none was judged."""
        return float(self.steps) / self.judged if self.judged else 0.0


class WireOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An outcome as the file writes it; any text may stand for the class until the taxonomy is checked."""

    name: str
    cls: str = field(name="class")
    over: str = ""
    label: str = ""


class WireTaxonomy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An outcome set as the file writes it."""

    name: str
    outcomes: list[WireOutcome] | None


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A whole file, field by field in the order it is written; nothing about it has been checked."""

    format: str
    commit: str = ""
    started_at: str
    options: dict[str, Raw] = field(default_factory=dict)
    taxonomy: WireTaxonomy
    trials: list[Trial] | None
    notes: list[str] = field(default_factory=list)
    summaries: list[Summary] | None


def quoted(text: str) -> str:
    """Text in double quotes as Go's %q writes it."""
    short = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    short |= {"\\": r"\\", '"': r"\""}

    def sign(char: str) -> str:
        code = ord(char)
        if char in short:
            return short[char]
        if char.isprintable():
            return char
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return '"' + "".join(map(sign, text)) + '"'


def moment(started_at: str) -> Moment:
    """The start time; no text is the zero time. Raises BenchError for what is not RFC 3339."""
    try:
        return Moment.parse(started_at) if started_at else Moment(0, 0, 0)
    except ValueError as error:
        raise invalid(str(error)) from None


def check_taxonomy(taxonomy: Taxonomy) -> None:
    """Raise BenchError unless it has a name, unique named outcomes, known classes, a success and an unsafe one."""

    def refuse(message: str) -> BenchError:
        return BenchError("taxonomy", f"bench: invalid taxonomy: {message}")

    if not taxonomy.name:
        raise refuse("no name")
    seen: set[str] = set()
    for outcome in taxonomy.outcomes:
        if not outcome.name:
            raise refuse(f"{taxonomy.name}: an outcome has no name")
        if outcome.name in seen:
            raise refuse(f"{taxonomy.name}: outcome {quoted(outcome.name)} declared twice")
        seen.add(outcome.name)
        if outcome.cls not in CLASSES:
            raise refuse(f"{taxonomy.name}: outcome {quoted(outcome.name)} has class {quoted(outcome.cls)}")
    if not {"success", "unsafe"} <= {outcome.cls for outcome in taxonomy.outcomes}:
        raise refuse(f"{taxonomy.name}: needs at least one success and one unsafe outcome")


def check(taxonomy: Taxonomy, started_at: str, trials: Sequence[Trial]) -> None:
    """Raise BenchError for the first rule that is broken: the taxonomy's, the start time's, then trial by trial."""
    check_taxonomy(taxonomy)
    if moment(started_at).is_zero:
        raise invalid("no start time")
    known = {outcome.name for outcome in taxonomy.outcomes}
    seen: set[tuple[str, str, str, int]] = set()
    for number, t in enumerate(trials):
        key = (t.scenario, t.mode, t.model, t.repeat)
        if not t.scenario or not t.mode or t.repeat < 1:
            problem = "scenario, mode, and a repeat from 1 are required"
        elif key in seen:
            problem = "recorded twice"
        elif t.outcome and t.excluded:
            problem = "both an outcome and an exclusion"
        elif not t.outcome and not t.excluded:
            problem = "neither an outcome nor an exclusion"
        elif t.outcome and t.outcome not in known:
            problem = f"outcome {quoted(t.outcome)} is not in {taxonomy.name}"
        elif (
            t.steps < 0
            or t.tool_calls < 0
            or t.policy_denials < 0
            or t.model_calls < 0
            or t.input_tokens < 0
            or t.output_tokens < 0
            or t.cost_micros < 0
            or t.wall_ns < 0
        ):
            problem = "negative count"
        else:
            seen.add(key)
            continue
        raise invalid(f"trial {number} ({t.scenario} {t.mode} #{t.repeat}): {problem}")


def grouped(trials: Iterable[Trial]) -> dict[tuple[str, str], list[Trial]]:
    """The trials of each (mode, model), in the order in which each first appears."""
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for t in trials:
        groups[t.mode, t.model].append(t)
    return dict(groups)


def summarize(taxonomy: Taxonomy, mode: str, model: str, trials: Sequence[Trial]) -> Summary:
    """The summary of the trials of one mode and model."""
    judged = [t for t in trials if t.outcome]
    ended = Counter([(t.outcome, t.expect) for t in judged])
    unsafe = {outcome.name for outcome in taxonomy.outcomes if outcome.cls == "unsafe"}
    return Summary(
        mode=mode,
        model=model,
        trials=len(trials),
        judged=len(judged),
        excluded=len(trials) - len(judged),
        scenarios=len({t.scenario for t in trials}),
        repeats=max((t.repeat for t in trials if t.repeat > 0), default=0),
        counts=[
            OutcomeCount(
                outcome=o.name,
                cls=o.cls,
                n=sum(n for (outcome, _), n in ended.items() if outcome == o.name),
                of=sum(
                    n
                    for (outcome, key), n in ended.items()
                    if not o.over or key == o.over or outcome == o.name
                ),
                over=o.over,
            )
            for o in taxonomy.outcomes
        ],
        unsafe=sum(n for (outcome, _), n in ended.items() if outcome in unsafe),
        steps=saturating_sum([t.steps for t in judged]),
        tool_calls=saturating_sum([t.tool_calls for t in judged]),
        policy_denials=saturating_sum([t.policy_denials for t in judged]),
        model_calls=saturating_sum([t.model_calls for t in judged]),
        input_tokens=saturating_sum([t.input_tokens for t in judged]),
        output_tokens=saturating_sum([t.output_tokens for t in judged]),
        cost_micros=saturating_sum([t.cost_micros for t in judged]),
        wall_ns=saturating_sum([t.wall_ns for t in judged]),
        totals={key: saturating_sum(values) for key, values in _integers(t.extra for t in judged).items()},
    )


def saturating_sum(values: Sequence[int]) -> int:
    """The sum, one by one in order, each step clamped to the signed 64-bit range."""
    if sum(map(abs, values)) <= INT64_MAX:
        return sum(values)  # no step can have left the range
    total = 0
    for value in values:
        total = min(INT64_MAX, max(INT64_MIN, total + value))
    return total


def _integers(extras: Iterable[Mapping[str, Raw]]) -> dict[str, list[int]]:
    """For each key, the values that are written as a 64-bit integer, in order; 1.0, 1e3 and "5" are not."""
    found: dict[str, list[int]] = defaultdict(list)
    for extra in extras:
        for key, value in extra.items():
            text = bytes(value).strip()
            if len(text) <= 20 and text.removeprefix(b"-").isdigit():
                number = int(text)
                if INT64_MIN <= number <= INT64_MAX:
                    found[key].append(number)
    return found
