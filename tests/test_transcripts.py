"""What a driver gives back: the arithmetic of usage, and what has been seen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.transcripts import Observation, Transcript, Usage, disjoint_input

COUNT = st.none() | st.integers(0, 10**9)
# walls are whole quarters of a second: sums of those are exact
WALL = st.none() | st.integers(0, 10**6).map(lambda n: n / 4)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, WALL, st.booleans())


@given(USAGE, USAGE, USAGE)
def test_both_sums_are_associative_and_commutative(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c)
    assert (a | b) | c == a | (b | c)
    assert a + b == b + a
    assert a | b == b | a


@given(USAGE)
def test_zero_adds_nothing(a: Usage) -> None:
    assert a + Usage.zero() == Usage.zero() + a == a
    assert a | Usage.zero() == Usage.zero() | a == a


@given(USAGE, USAGE)
def test_what_is_unknown_in_a_part_is_unknown_in_the_sum(a: Usage, b: Usage) -> None:
    for both in (a + b, a | b):
        for name in Usage.__struct_fields__[:-1]:
            unknown = getattr(a, name) is None or getattr(b, name) is None
            assert (getattr(both, name) is None) == unknown
        assert both.estimated == (a.estimated or b.estimated)


def test_one_after_the_other_adds_the_walls_and_side_by_side_takes_the_longer() -> None:
    a = Usage(10, 1, 2, 3, 1, 500, 2.0)
    b = Usage(20, 4, 5, 6, 2, 250, 3.5, estimated=True)
    assert a + b == Usage(30, 5, 7, 9, 3, 750, 5.5, True)
    assert a | b == Usage(30, 5, 7, 9, 3, 750, 3.5, True)
    assert (a | Usage.zero()).wall_s == 2.0


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(Usage(4000, 16000, 0, 1000), 21000), (Usage.zero(), 0), (Usage(1, 2, 3), None), (Usage(), None)],
)
def test_tokens_are_all_four_buckets_or_unknown(usage: Usage, tokens: int | None) -> None:
    assert usage.tokens == tokens


def test_unknown_is_the_default_and_is_not_zero() -> None:
    assert Usage() != Usage.zero()
    assert Usage().cost_micros is None
    assert Transcript().usage == Usage()


def test_only_an_ok_observation_is_ok() -> None:
    statuses: tuple[Any, ...] = (
        "ok",
        "tool_error",
        "schema_error",
        "protocol_error",
        "malformed",
        "undeclared",
    )
    assert [Observation(status, "").ok for status in statuses] == [True, False, False, False, False, False]


def test_a_transcript_that_says_nothing_claims_nothing() -> None:
    silent = Transcript()
    assert (silent.calls, silent.refused, silent.inferred_goal, silent.result) == ((), False, None, None)
    assert silent.terminated
    assert silent.stop == "done"
    assert msgspec.json.decode(msgspec.json.encode(silent), type=Transcript) == silent
    with pytest.raises(AttributeError):
        silent.refused = True  # type: ignore[misc]


def test_a_long_side_by_side_chain_is_as_long_as_its_longest_part() -> None:
    parts = [Usage(1, 0, 0, 0, 1, 1, float(n % 7)) for n in range(20)]
    total = parts[0]
    for _, part in pairwise(parts):
        total = total | part
    assert (total.wall_s, total.fresh_input, total.model_calls) == (6.0, 20, 20)


@pytest.mark.parametrize(
    ("given", "inclusive", "buckets"),
    [
        ((20_000, 16_000, 0), True, (4_000, 16_000, 0)),
        ((4_000, 16_000, 0), False, (4_000, 16_000, 0)),
        ((20_000, 15_000, 1_000), True, (4_000, 15_000, 1_000)),
        ((16_000, 16_000, 0), True, (0, 16_000, 0)),
        # what is left of a total is unknown with an unknown part, and the parts that are known stay
        ((20_000, None, 0), True, (None, None, 0)),
        ((20_000, 16_000, None), True, (None, 16_000, None)),
        ((None, 16_000, 0), True, (None, 16_000, 0)),
        ((20_000, None, None), False, (20_000, None, None)),
        ((None, 16_000, 0), False, (None, 16_000, 0)),
    ],
)
def test_input_counted_with_or_beside_the_cached_tokens_becomes_the_same_disjoint_buckets(
    given: tuple[int | None, int | None, int | None],
    inclusive: bool,
    buckets: tuple[int | None, int | None, int | None],
) -> None:
    assert disjoint_input(*given, inclusive=inclusive) == buckets


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_both_ways_to_count_input_agree(fresh: int, read: int, write: int) -> None:
    beside = disjoint_input(fresh, read, write, inclusive=False)
    within = disjoint_input(fresh + read + write, read, write, inclusive=True)
    assert beside == within == (fresh, read, write)


@pytest.mark.parametrize(
    ("given", "inclusive", "says"),
    [
        ((4_000, 16_000, 0), True, "16000 cached tokens within an input of 4000"),
        ((4_000, 5_000, None), True, "5000 cached tokens within an input of 4000"),
        ((-1, 0, 0), True, "input: -1 tokens"),
        ((-1, 0, 0), False, "fresh input: -1 tokens"),
        ((1, -2, 0), False, "cache read: -2 tokens"),
        ((None, None, -3), True, "cache write: -3 tokens"),
    ],
)
def test_a_negative_bucket_is_an_error(
    given: tuple[int | None, int | None, int | None], inclusive: bool, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        disjoint_input(*given, inclusive=inclusive)
