"""Comparison: what is refused, what is paired, what is decided, and how many cases would decide."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.analysis.compare import (
    Comparison,
    Side,
    Spread,
    cases_to_detect,
    compare,
    compare_many,
    detect,
    p_value,
    points,
    share,
    side,
    spread,
)
from agentbench_lab.analysis.compare.differences import difference_of
from agentbench_lab.cases import load_suite
from agentbench_lab.cli.looking import side_of
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.stats import difference_over_cases, mcnemar_exact, student_t
from agentbench_lab.tables import compare as compare_table

SHA = "1f" * 20

# What a letter says of one trial: solved, hallucinated, outcome and its class, why it is excluded.
TRIAL: dict[str, tuple[Any, ...]] = {
    "1": (True, False, "correct_calls", "success", None),
    "0": (False, False, "wrong_calls", "safe_non_success", None),
    "u": (False, True, "hallucinated_call", "unsafe", None),
    "x": (None, None, None, None, "harness: no disk"),
    "i": (True, None, "solved", "success", None),
}


def made(
    name: str = "a",
    results: dict[str, str] | None = None,
    *,
    asked: tuple[str, ...] = (),
    group: str = "TOOL-0",
    suite: str = "s",
    commit: str = SHA,
    taxonomy: str = "ladder",
    strictness: str = "strict",
    digests: dict[str, str] | None = None,
    worlds: dict[str, str] | None = None,
    run: str = "r",
) -> Side:
    """A side from a string of letters a case, a letter a trial; `asked` are cases without a trial."""
    results = {"c1": "1"} if results is None else results
    arm = {"run": run, "driver": name, "model": None, "scaffold": "once", "evidence": "live"}
    columns = ("solved", "hallucinated", "outcome", "outcome_class", "excluded")
    rows = [
        {
            "suite": suite,
            "case_id": case,
            "group": group,
            **arm,
            "trial": trial,
            **dict(zip(columns, TRIAL[letter], strict=True)),
        }
        for case, letters in results.items()
        for trial, letter in enumerate(letters, start=1)
    ]
    kinds: dict[str, Any] = {**dict.fromkeys(("solved", "hallucinated"), pl.Boolean), "trial": pl.Int32}
    texts = ("run", "suite", "case_id", "group", "driver", "model", "scaffold", "evidence")
    schema = {**dict.fromkeys((*texts, *columns[2:]), pl.String), **kinds}
    cases = [
        {
            "suite": suite,
            "case_id": case,
            "group": group,
            "digest": (digests or {}).get(case, f"case {case}"),
            "world_digest": (worlds or {}).get(case, "world"),
        }
        for case in [*results, *asked]
    ]
    names = dict.fromkeys(("suite", "case_id", "group", "digest", "world_digest"), pl.String)
    frames = pl.DataFrame(rows, schema=schema), pl.DataFrame(cases, schema=names)
    return Side(name, *frames, taxonomy, strictness, commit)


def numbers(found: Comparison) -> tuple[Any, ...]:
    """All that a comparison says in numbers."""
    return found.solved, found.hallucinated, found.mcnemar, found.pairs, found.needed


# ---- by hand -------------------------------------------------------------------------------------------------


def test_one_trial_a_case_by_hand() -> None:
    """Ten cases: both solve 4, both fail 1, b alone 4, a alone 1. So 5/10 and 8/10; McNemar 2 (1 + 5) / 32."""
    a = made("a", {f"c{n}": letter for n, letter in enumerate("1111000001")})
    b = made("b", {f"c{n}": letter for n, letter in enumerate("1111011110")})
    found = compare(a, b)
    assert (found.solved.rate_a, found.solved.rate_b, found.solved.difference) == (0.5, 0.8, 0.3)
    assert found.mcnemar == found.solved.p == 12 / 32
    assert (found.solved.test, found.mcnemar_reason) == ("exact McNemar", None)
    assert [pair.case_id for pair in found.fixes] == ["c5", "c6", "c7", "c8"]
    assert [(pair.case_id, pair.rate_a, pair.rate_b) for pair in found.regressions] == [("c9", 1.0, 0.0)]
    # d is 0 four times, 0, 1 four times, -1; Student's is wider than the bootstrap below, and no end of it above
    ends = difference_over_cases([0] * 5 + [1] * 4 + [-1])
    assert (found.solved.low, found.solved.high) == ends[1:]  # type: ignore[index]
    assert found.solved.low == pytest.approx(0.3 - student_t(0.975, 9) * math.sqrt(0.41 / 9))
    assert not found.decisive
    # (1.96 + 0.84)^2 x 7.849 of the variance of d (mean 0.3; five of 1 in square; n - 1) over 0.09
    variance = (5 - 10 * 0.09) / 9
    assert found.needed == -(-7.8489 * variance // 0.09)
    assert found.sentence == (
        "The difference is not decisive: b 80%, a 50% of 10 paired cases; difference +30 points, 95% interval "
        "[−18.3, +78.3]; exact McNemar p = 0.375. A true difference of this size would take about 40 cases at 1 trial a "
        "case to show (80% power)."
    )


def test_several_trials_by_hand() -> None:
    """Means over trials: 1/2 to 2/2, 0/2 to 1/2, 2/2 to 2/2: +1/2, +1/2, 0. Excluded trials are in no mean."""
    a = made("a", {"c1": "10", "c2": "00x", "c3": "11"})
    b = made("b", {"c1": "11", "c2": "01", "c3": "1x1"})
    found = compare(a, b)
    assert found.solved.difference == pytest.approx(1 / 3)
    assert (found.solved.rate_a, found.solved.rate_b) == pytest.approx((0.5, 2.5 / 3))
    # of the four sign assignments of 1/2 and 1/2 two reach a sum of 1
    assert found.solved.p == 0.5
    assert found.solved.test == "exact sign-flip test over cases"
    assert found.mcnemar is None
    assert (
        found.mcnemar_reason == "McNemar's test takes one trial a case on both sides; 3 of 3 cases have more"
    )
    assert found.frame().select("case_id", "difference", "verdict").rows() == [
        ("c1", 0.5, "fix"),
        ("c2", 0.5, "fix"),
        ("c3", 0.0, "same"),
    ]
    assert (found.a.trials, found.a.judged, found.a.excluded) == (7, 6, 1)
    assert "a: 1 of 7 trials excluded, in no number." in found.notes
    assert "at 2 trials a case" in found.sentence


def test_a_decisive_difference_says_which_and_by_how_much() -> None:
    """Twelve fixes of twenty cases, no regression: p = 2 / 2^12."""
    a = made("old", {f"c{n:02}": "0" for n in range(20)})
    b = made("new", {f"c{n:02}": "1" if n < 12 else "0" for n in range(20)})
    found = compare(a, b)
    assert found.decisive
    assert found.mcnemar == 2 / 2**12
    assert found.sentence == (
        "new solves 60 points more than old (new 60%, old 0% of 20 paired cases; difference +60 points, "
        "95% interval [+31.9, +83.5]; exact McNemar p < 0.001)."
    )


def test_the_sentence_and_its_figure_have_one_direction() -> None:
    """The same two arms the other way round: less, and a minus, which is the sign of charts and tables too."""
    a = made("old", {f"c{n:02}": "0" for n in range(20)})
    b = made("new", {f"c{n:02}": "1" if n < 12 else "0" for n in range(20)})
    assert compare(b, a).sentence == (
        "old solves 60 points less than new (old 0%, new 60% of 20 paired cases; difference −60 points, "
        "95% interval [−83.5, −31.9]; exact McNemar p < 0.001)."
    )
    assert compare_table(compare(b, a)).rows[-1][4] == "−60.0 [−83.5, −31.9]"


@pytest.mark.parametrize(("one", "other", "ends"), [("1", "1", (-0.245, 0.245)), ("1", "0", (-1, -0.4))])
def test_six_cases_that_are_alike_prove_little(one: str, other: str, ends: tuple[float, float]) -> None:
    """Equal, or different in all: not an interval without width, and the ablation has the same one."""
    a, b = (made(name, {f"c{n}": what for n in range(6)}) for name, what in (("a", one), ("b", other)))
    found = compare(a, b)
    d = int(other) - int(one)
    assert (found.solved.low, found.solved.high) == difference_over_cases([d] * 6)[1:]  # type: ignore[index]
    if not d:
        # Agresti and Min by hand: (0 ± 1.96 sqrt(0 + 1 - 0)) / 8
        assert (found.solved.low, found.solved.high) == pytest.approx(ends, abs=5e-4)
    else:
        assert found.solved.low == -1
        assert found.solved.high is not None
        assert found.solved.high > ends[1]
    assert found.solved.estimator == "bootstrap over paired cases, widened for few of them"
    assert found.by_group()["low"].to_list() == [found.solved.low] * 2


def test_the_interval_alone_decides_nothing() -> None:
    """Five cases of five better: the interval excludes 0, and chance alone does that one time in sixteen."""
    a = made("a", {f"c{n:02}": "0" for n in range(5)})
    b = made("b", {f"c{n:02}": "1" for n in range(5)})
    found = compare(a, b)
    assert found.solved.low is not None
    assert found.solved.low > 0
    assert found.mcnemar == 0.0625
    assert not found.decisive
    assert "The interval excludes 0, but the test does not agree." in found.sentence
    one = compare(made("a", {"c": "0"}), made("b", {"c": "1"}))
    assert (one.solved.high, one.solved.p, one.decisive, one.needed) == (1.0, 1.0, False, 6)
    assert one.solved.low is not None
    assert one.solved.low < 0


def test_hallucination_has_its_own_difference() -> None:
    """Where a source does not know it, it is unknown, with the reason, and not 0."""
    found = compare(made("a", {"c1": "01", "c2": "11"}), made("b", {"c1": "uu", "c2": "u1"}))
    h = found.hallucinated
    assert (h.rate_a, h.rate_b, h.difference, h.cases) == (0.0, 0.75, 0.75, 2)
    h = compare(made("a", {"c1": "1", "c2": "i"}), made("b", {"c1": "1", "c2": "1"})).hallucinated
    assert (h.cases, h.difference) == (1, 0.0)
    h = compare(made("a", {"c": "i"}), made("b", {"c": "1"})).hallucinated
    assert (h.difference, h.low, h.p, h.decisive) == (None, None, None, False)
    assert h.reason == "not known for any case on both sides"
    assert "safety was not measured" in " ".join(
        compare(
            made(results={"c": "i"}, taxonomy="imported"), made("b", {"c": "i"}, taxonomy="imported")
        ).notes
    )


def test_new_unsafe_outcomes_are_named() -> None:
    """Only where the other has none on that case; one unsafe outcome is never made up for."""
    a = made("a", {"c1": "00", "c2": "u0", "c3": "11"})
    b = made("b", {"c1": "1u", "c2": "uu", "c3": "11"})
    found = compare(a, b)
    assert [pair.case_id for pair in found.new_unsafe] == ["c1"]
    assert (found.a.unsafe, found.b.unsafe) == (1, 3)
    assert found.sentence.endswith(
        "a has 1 unsafe outcome and b has 3 unsafe outcomes (1 case where a has none): no rate makes up for that."
    )
    assert not found.ok
    assert found.losses() == ("b has unsafe outcomes where a has none: c1 (hallucinated_call)",)


# ---- what is not paired --------------------------------------------------------------------------------------


def test_unmatched_cases_are_listed_and_never_fixes() -> None:
    """Each with its reason; a case that the other side never solved, because it was not asked, is no fix."""
    a = made("a", {"both": "1", "only_a": "0", "lost": "0", "gone": "x", "gated": "1"})
    b = made("b", {"both": "1", "only_b": "1u", "lost": "xx", "gone": "x"}, asked=("gated",))
    found = compare(a, b)
    assert (found.fixes, found.regressions, found.solved.cases) == ((), (), 1)
    assert [(case.case_id, case.reason) for case in found.only_a] == [
        ("gated", "not asked there (its rung was gated, or the run is not finished)"),
        ("lost", "no judged trial there (2 excluded)"),
        ("only_a", "not asked there"),
    ]
    assert [(case.case_id, case.reason, case.unsafe) for case in found.only_b] == [
        ("only_b", "not asked there", ("hallucinated_call",))
    ]
    (gone,) = found.neither
    assert gone.reason == "a: no judged trial there (1 excluded); b: no judged trial there (1 excluded)"
    assert found.new_unsafe == ()
    assert found.ok
    assert "1 case judged for b alone, in no number; 1 of them with an unsafe outcome." in found.notes
    assert found.unmatched()["judged_by"].to_list() == ["a", "a", "a", "b", ""]


def test_different_trial_numbers_are_said() -> None:
    """A case counts once however often it was asked."""
    found = compare(made("a", {"c1": "0", "c2": "1"}), made("b", {"c1": "1110", "c2": "1"}))
    assert found.solved.difference == 0.375
    assert "Some cases have more judged trials on one side" in found.notes[0]
    assert found.trials_a_case == "1 to 4 trials a case"


# ---- what is refused -----------------------------------------------------------------------------------------


def test_mixed_commits_are_refused_unless_allowed_and_then_said() -> None:
    """The rule of one commit; allowed, the note stands first."""
    a, b = made("a"), made("b", commit="2e" * 20)
    with pytest.raises(LabError) as error:
        compare(a, b)
    assert str(error.value) == (
        f"results are comparable only within one commit, and these come from 2 (a at {SHA}; b at {'2e' * 20}): run "
        "them at one commit, or allow mixed commits (--allow-mixed-commits), which is then said"
    )
    found = compare(a, b, allow_mixed_commits=True)
    assert found.notes[0] == (
        f"These runs come from 2 commits ({SHA}, {'2e' * 20}) and are not comparable as like for like."
    )
    assert compare(a, made("b"), allow_mixed_commits=True).notes == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("unknown", "", True),  # all unknown commits are one
        ("", SHA, False),  # which is no named one
        ("unknown", f"dirty: {SHA}+{'0' * 16}", False),
        (SHA, f"dirty: {SHA}+{'0' * 16}", False),  # a dirty commit is its own
        (f"dirty: {SHA}+{'1' * 16}", f"dirty: {SHA}+{'0' * 16}", False),
        (f"dirty: {SHA}+{'0' * 16}", f"dirty: {SHA}+{'0' * 16}", True),
        (SHA, SHA[:12], False),
    ],
)
def test_which_commits_are_one(one: str, other: str, same: bool) -> None:
    """Unknown is one commit, dirty is its own, and nothing is guessed from a beginning."""
    a, b = made("a", commit=one), made("b", commit=other)
    if same:
        assert compare(a, b).notes == ()
    else:
        with pytest.raises(LabError, match="only within one commit"):
            compare(a, b)
        assert "These runs come from 2 commits" in compare(a, b, allow_mixed_commits=True).notes[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"taxonomy": "imported"}, "a was judged by the taxonomy 'ladder', b by 'imported'"),
        ({"strictness": "original"}, "a was judged by the strictness 'strict', b by 'original'"),
    ],
)
def test_other_rules_are_always_refused(changed: dict[str, Any], says: str) -> None:
    """No option accepts them."""
    with pytest.raises(LabError, match=says):
        compare(made("a"), made("b", **changed), allow_mixed_commits=True)


def test_another_version_of_a_case_is_refused_by_name() -> None:
    """The case itself, or the world it acts on; also where it was asked on both sides and judged on none."""
    a = made("a", {"c1": "1", "c2": "1", "c3": "1"})
    with pytest.raises(LabError) as error:
        compare(a, made("b", {"c1": "1", "c2": "1", "c3": "1"}, digests={"c2": "other", "c3": "other"}))
    assert str(error.value) == (
        "s/c2 is not the same for a and b: the case itself differs (case c2 and other), and 1 case more; run both on "
        "one version of the suite"
    )
    with pytest.raises(
        LabError, match=r"s/c3 is not the same for a and b: its world differs \(world and planet\)"
    ):
        compare(a, made("b", {"c1": "1", "c3": "1"}, worlds={"c3": "planet"}))
    with pytest.raises(LabError, match="s/c2 is not the same"):
        compare(a, made("b", {"c1": "1", "c2": "x"}, digests={"c2": "other"}))
    # unshared cases may be what they like
    assert compare(a, made("b", {"c1": "1", "c9": "1"}, digests={"c9": "other"})).solved.cases == 1


def test_nothing_in_common_is_an_error() -> None:
    """No shared case, none that both judged, or the same ids in suites of other names."""
    with pytest.raises(LabError, match=r"^a \(s\) and b \(t\) have no case in common$"):
        compare(made("a"), made("b", {"d1": "1"}, suite="t"))
    with pytest.raises(LabError, match=r"1 id of theirs are alike, .* \(--suite [^)]+\)"):
        compare(made("a"), made("b", suite="t"))
    with pytest.raises(LabError, match="a and b have cases in common, but none that both judged"):
        compare(made("a", {"c1": "1", "c2": "x"}), made("b", {"c1": "x", "c2": "1"}))


def test_a_side_is_one_whole_arm() -> None:
    """Two arms, a trial twice, a trial without its case or verdict, or no trial at all are refused."""
    a, b = made("a"), made("b")
    two = Side("both", pl.concat([a.trials, b.trials]), a.cases, "ladder", "strict", SHA)  # type: ignore[type-var]
    with pytest.raises(LabError, match=r"both: 2 arms on one side \(a, b\); choose one"):
        compare(a, two)
    twice = Side("twice", pl.concat([a.trials, a.trials]), a.cases, "ladder", "strict", SHA)  # type: ignore[type-var]
    with pytest.raises(LabError, match="twice: trial 1 of s/c1 is there twice"):
        compare(a, twice)
    with pytest.raises(LabError, match="lone: trials of s/c1, which is none of its cases"):
        compare(a, Side("lone", a.trials, made("b", {"c2": "1"}).cases, "ladder", "strict", SHA))
    mute = a.trials.with_columns(pl.lit(None, pl.Boolean).alias("solved"))  # type: ignore[union-attr]
    with pytest.raises(LabError, match="mute: a trial of s/c1 is neither judged nor excluded"):
        compare(a, Side("mute", mute, a.cases, "ladder", "strict", SHA))
    with pytest.raises(LabError, match="none: no trial has ended"):
        compare(a, made("none", {}, asked=("c1",)))


def test_sides_of_one_name_are_told_apart() -> None:
    """The same arm in two runs goes by its run too."""
    found = compare(made("stub", run="r1"), made("stub", run="r2"))
    assert (found.a.name, found.b.name) == ("stub of r1", "stub of r2")
    found = compare(made("stub"), made("stub"))
    assert (found.a.name, found.b.name) == ("stub (a)", "stub (b)")


# ---- laws ----------------------------------------------------------------------------------------------------

LETTERS = st.text("10ux", min_size=1, max_size=4)
RESULTS = st.dictionaries(st.sampled_from([f"c{n}" for n in range(8)]), LETTERS, min_size=1, max_size=8)


def both(a: dict[str, str], b: dict[str, str]) -> tuple[Side, Side]:
    """Two sides with one case at least that both judged."""
    return made("a", a | {"sure": "10"}), made("b", b | {"sure": "0"})


@settings(max_examples=40, deadline=None)
@given(RESULTS)
def test_a_side_against_itself_differs_in_nothing(results: dict[str, str]) -> None:
    """No difference, no fix, no regression, nothing unmatched, and the gate lets it pass."""
    a, _ = both(results, {})
    found = compare(a, a)
    assert (found.solved.difference, found.solved.p) == (0, 1)
    assert found.solved.high is not None
    assert -1 < found.solved.low == -found.solved.high < 0
    assert (found.hallucinated.difference, found.fixes, found.regressions, found.new_unsafe) == (
        0,
        (),
        (),
        (),
    )
    assert (found.only_a, found.only_b, found.needed, found.decisive, found.ok) == ((), (), None, False, True)
    assert "these cases cannot tell them apart" in found.sentence


@settings(max_examples=40, deadline=None)
@given(RESULTS, RESULTS)
def test_turned_around_it_is_the_same_with_the_other_sign(one: dict[str, str], other: dict[str, str]) -> None:
    """Fixes become regressions, ends of the interval change places, p stays."""
    a, b = both(one, other)
    there, back = compare(a, b), compare(b, a)
    assert back.solved.difference == -(there.solved.difference or 0)
    assert (back.solved.low, back.solved.high) == pytest.approx(
        (-(there.solved.high or 0), -(there.solved.low or 0))
    )
    assert back.solved.p == there.solved.p
    assert [p.case_id for p in back.fixes] == [p.case_id for p in there.regressions]
    assert [c.case_id for c in back.only_a] == [c.case_id for c in there.only_b]
    assert (back.decisive, back.needed) == (there.decisive, there.needed)


@settings(max_examples=30, deadline=None)
@given(RESULTS, RESULTS, st.integers(0, 2**32 - 1))
def test_order_means_nothing(one: dict[str, str], other: dict[str, str], seed: int) -> None:
    """Cases and trials in any order give the same comparison to the last bit."""
    a, b = both(one, other)

    def shuffled(given: Side) -> Side:
        trials, cases = given.trials.sample(fraction=1, shuffle=True, seed=seed), given.cases  # type: ignore[union-attr]
        return Side(given.name, trials, cases.reverse(), "ladder", "strict", SHA)  # type: ignore[union-attr]

    assert compare(shuffled(a), shuffled(b)) == compare(a, b)


@settings(max_examples=30, deadline=None)
@given(RESULTS, RESULTS, st.dictionaries(st.sampled_from(["z1", "z2", "z3"]), LETTERS, max_size=3))
def test_unmatched_cases_change_no_number(
    one: dict[str, str], other: dict[str, str], more: dict[str, str]
) -> None:
    """However many further cases one side has, and whatever became of them."""
    a, b = both(one, other)
    assert numbers(compare(a, both(one, other | more)[1])) == numbers(compare(a, b))
    assert numbers(compare(both(one | more, other)[0], b)) == numbers(compare(a, b))


@settings(max_examples=40, deadline=None)
@given(RESULTS, RESULTS)
def test_every_case_is_in_exactly_one_list(one: dict[str, str], other: dict[str, str]) -> None:
    """Paired, judged by one side alone, or by neither; fixes, regressions and the rest make up the pairs."""
    a, b = both(one, other)
    found = compare(a, b)
    lists = [*found.pairs, *found.only_a, *found.only_b, *found.neither]
    assert sorted(case.case_id for case in lists) == sorted(one.keys() | other.keys() | {"sure"})
    verdicts = found.frame()["verdict"].to_list()
    assert (verdicts.count("fix"), verdicts.count("regression")) == (len(found.fixes), len(found.regressions))
    solved = found.solved
    assert solved.difference == pytest.approx((solved.rate_b or 0) - (solved.rate_a or 0))
    assert solved.difference == pytest.approx(found.frame()["difference"].mean())
    json.dumps(found.to_dict(), allow_nan=False)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["11", "10", "01", "00"]), min_size=1, max_size=30))
def test_one_trial_a_case_is_mcnemar(cases: list[str]) -> None:
    """The p-value follows from the two discordant counts alone."""
    a = made("a", {f"c{n}": pair[0] for n, pair in enumerate(cases)})
    b = made("b", {f"c{n}": pair[1] for n, pair in enumerate(cases)})
    assert compare(a, b).mcnemar == mcnemar_exact(cases.count("10"), cases.count("01"))


def test_equal_thirds_are_equal() -> None:
    """2/3 to 1 and 1/3 to 0 cancel exactly: rounding must not decide anything."""
    a = made("a", {f"c{n}": "110" if n % 2 else "100" for n in range(12)})
    b = made("b", {f"c{n}": "111" if n % 2 else "000" for n in range(12)})
    found = compare(a, b)
    assert (found.solved.difference, found.solved.p, found.decisive) == (0.0, 1.0, False)
    assert "Gains and losses are even; a true difference of 5 points would take about" in found.sentence
    thirds = compare(made("a", {"c": "100", "d": "110"}), made("b", {"c": "110", "d": "111"}))
    ends = difference_over_cases([1 / 3] * 2, trials=3)
    assert ends is not None
    for group in thirds.by_group().to_dicts():
        assert (group["low"], group["high"]) == pytest.approx((ends.low, ends.high))


def test_chance_is_rarely_called_decisive() -> None:
    """Two equally good arms on 30 cases, 150 times: at most about 5 % of comparisons are decisive, one trial or four."""
    rng = np.random.default_rng(2)
    for trials, most in ((1, 0.06), (4, 0.08)):
        wrong = 0
        for _ in range(150):
            p = rng.beta(2, 2, size=30)
            made_up = [
                made(
                    name,
                    {
                        f"c{n}": "".join("1" if hit else "0" for hit in row)
                        for n, row in enumerate(rng.random((30, trials)) < p[:, None])
                    },
                )
                for name in ("a", "b")
            ]
            wrong += compare(*made_up).decisive
        assert wrong / 150 <= most


# ---- the gate, several arms, frames --------------------------------------------------------------------------


def test_the_gate_asks_for_no_decisive_loss() -> None:
    """A decisive loss fails, the same difference the other way passes, and so does an open one."""
    bad = made("bad", {f"c{n}": "0" for n in range(10)})
    good = made("good", {f"c{n}": "1" for n in range(10)})
    assert compare(bad, good).ok
    assert not compare(good, bad).ok
    (why,) = compare(good, bad).losses()
    assert why.startswith("bad solves decisively less than good: bad 0%, good 100% of 10 paired cases")
    few = [made(name, {f"c{n}": letter for n in range(3)}) for name, letter in (("good", "1"), ("bad", "0"))]
    assert compare(*few).ok


def test_decisively_more_hallucination_fails_the_gate() -> None:
    """Also where every case had an unsafe outcome before, so that none is new."""
    a = made("a", {f"c{n}": "1u" for n in range(10)})
    b = made("b", {f"c{n}": "uu" for n in range(10)})
    found = compare(a, b)
    assert found.new_unsafe == ()
    assert any(
        "b hallucinates decisively more than a: difference +50 points" in why for why in found.losses()
    )


def test_several_arms_are_corrected_by_holm() -> None:
    """Against one baseline: 6, 7 and 2 fixes of twenty have p 1/32, 1/64, 1/2; the smallest three times, and so on."""
    base = made("base", {f"c{n:02}": "0" for n in range(20)})
    others = [
        made(f"m{fixes}", {f"c{n:02}": "1" if n < fixes else "0" for n in range(20)}) for fixes in (6, 7, 2)
    ]
    found = compare_many(base, others)
    assert [each.solved.p for each in found] == [1 / 32, 1 / 64, 1 / 2]
    assert [each.solved.adjusted for each in found] == pytest.approx([2 / 32, 3 / 64, 1 / 2])
    assert [each.decisive for each in found] == [False, True, False]
    assert compare(base, others[0]).decisive
    assert "exact McNemar p = 0.031, p = 0.062 after Holm over 3 arms" in found[0].sentence
    assert (found[0].needed or 0) > (compare(base, others[0]).needed or 0)
    (alone,) = compare_many(base, others[:1])
    assert (alone.solved.adjusted, alone.arms) == (None, 1)
    with pytest.raises(LabError, match="nothing to compare with"):
        compare_many(base, [])


def test_several_arms_share_the_commit_rule() -> None:
    """One odd commit among three is refused, and named with the others where it is allowed."""
    sides = [made("a"), made("b"), made("c", commit="")]
    with pytest.raises(LabError, match=r"these come from 2 \(a at .*; b at .*; c at unknown\)"):
        compare_many(sides[0], sides[1:])
    for each in compare_many(sides[0], sides[1:], allow_mixed_commits=True):
        assert each.notes[0].startswith(f"These runs come from 2 commits ({SHA}, unknown) and")


def test_groups_stand_in_the_order_of_the_ladder() -> None:
    """Each with its own paired interval; all cases last, as in the comparison itself."""
    sides = []
    for name, low, high in (("a", "01", "00"), ("b", "11", "10")):
        parts = [
            made(name, {"t": low[0], "u": low[1]}, group="TOOL-2"),
            made(name, {"v": high[0], "w": high[1]}, group="TOOL-10x"),
        ]
        trials, cases = (pl.concat([getattr(part, grain) for part in parts]) for grain in ("trials", "cases"))
        sides.append(Side(name, trials, cases, "ladder", "strict", SHA))
    found = compare(*sides)
    table = found.by_group()
    assert table["group"].to_list() == ["TOOL-2", "TOOL-10x", "all"]
    assert table["difference"].to_list() == [0.5, 0.5, 0.5]
    assert table.select("cases", "fixes", "regressions", "same").row(2) == (4, 2, 0, 2)
    assert (table["low"][2], table["high"][2]) == (found.solved.low, found.solved.high)
    assert found.to_dict()["groups"][0]["fixes"] == 1


# ---- how many cases ------------------------------------------------------------------------------------------


def test_the_number_of_cases_by_hand() -> None:
    """(1.960 + 0.842)^2 = 7.849; variance 0.2 + 0.4 / 4 = 0.3; over 0.05^2: 941.9. Never below six."""
    known = Spread(within=0.4, between=0.2, split=True, assumption="")
    assert cases_to_detect(known, 0.05, trials=4) == 942
    assert cases_to_detect(known, 0.05, trials=1) == 1884
    assert cases_to_detect(Spread(0.0, 0.0, True, ""), 0.05) == 6
    assert cases_to_detect(Spread(0.0, 0.0, True, ""), 0.05, level=0.99) == 8
    # without a run: half of all trials solved, so 2 x 1/4
    assert cases_to_detect(spread(), 0.05) == 1570
    assert detect(known, 0.05, trials=(1, 4)).rows() == [(1, 1884, 1884), (4, 942, 3768)]


def test_the_spread_of_one_run_by_hand() -> None:
    """Trials of a case give the noise; what is left between cases is halved by the assumed correlation, for two arms."""
    # p = 1/2, 1/2, 1, 0: within 2/1 x 1/4 = 1/2 for two of four cases; var(p) = 1/6, less the noise 1/8
    found = spread(made("a", {"c1": "10", "c2": "01", "c3": "11", "c4": "00"}))
    assert (found.within, found.between, found.split) == (0.5, pytest.approx(2 * (1 / 6 - 1 / 8) / 2), True)
    assert "correlate by 0.5" in found.assumption
    # one trial a case: p = 1/2 overall, and either all noise or all difficulty
    single = spread(made("a", {"c1": "1", "c2": "0"}))
    assert (single.within, single.between, single.split) == (0.5, 0.25, False)
    assert [single.variance(k) for k in (1, 2, 4)] == [0.5, 0.25, 0.25]
    assert spread(made("a", {"c1": "1", "c2": "0"}), correlation=0.0).variance(4) == 0.5


def test_the_spread_of_two_runs_is_the_observed_one() -> None:
    """The variance of the difference itself: d = 1, 0, 0, 0 has 1/4; with trials, the noise is taken out of it."""
    a = made("a", {"c1": "0", "c2": "1", "c3": "0", "c4": "0"})
    b = made("b", {"c1": "1", "c2": "1", "c3": "0", "c4": "0"}, commit="other")
    assert (spread(a, b).variance(1), spread(a, b).variance(9)) == (0.25, 0.25)
    a, b = made("a", {"c1": "01", "c2": "10"}), made("b", {"c1": "11", "c2": "10"})
    found = spread(a, b)
    assert (found.within, found.between, found.split) == (0.75, 0.0, True)


def test_what_cannot_be_planned_is_refused() -> None:
    """A difference of nothing, or of more than all; no trials; nothing judged."""
    for delta in (0.0, -0.1, 5.0):
        with pytest.raises(LabError, match=r"0\.05 is 5 points"):
            cases_to_detect(spread(), delta)
    with pytest.raises(LabError, match="trials must be a whole number from 1"):
        cases_to_detect(spread(), 0.05, trials=0)
    with pytest.raises(LabError, match="correlation"):
        spread(correlation=1.5)
    with pytest.raises(LabError, match="no trial was judged"):
        spread(made("a", {"c1": "x"}))


@given(
    st.floats(0, 0.5), st.floats(0, 0.5), st.booleans(), st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.integers(1, 20), st.integers(0, 20)
)  # fmt: skip
def test_smaller_differences_take_more_cases_and_trials_save_some(
    within: float, between: float, split: bool, delta: float, more: float, trials: int, further: int
) -> None:
    """Monotone in the difference, in trials, in power and in level."""
    known = Spread(within, between, split, "")
    n = cases_to_detect(known, delta, trials=trials)
    assert cases_to_detect(known, delta + more, trials=trials) <= n
    assert cases_to_detect(known, delta, trials=trials + further) <= n
    assert cases_to_detect(known, delta, trials=trials, power=0.9) >= n
    assert cases_to_detect(known, delta, trials=trials, level=0.99) >= n


@pytest.mark.parametrize(("trials", "delta"), [(1, 0.15), (3, 0.1)])
def test_so_many_cases_do_show_the_difference(trials: int, delta: float) -> None:
    """Simulated: cases of all difficulties, a second arm that is better by delta on average but worse on some.

    At the number of cases that the formula gives from the true variances, about 80 of 100 comparisons are decisive.
    """
    rng = np.random.default_rng(7)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        p = rng.uniform(0.25, 0.75 - delta, size=n)
        return p, p + delta + rng.choice([-0.25, 0.25], size=n)

    p, q = draw(200_000)
    known = Spread(float((p * (1 - p) + q * (1 - q)).mean()), float((q - p).var()), True, "")
    n = cases_to_detect(known, delta, trials=trials)
    assert 20 < n < 400
    decisive = 0
    for seed in range(200):
        p, q = draw(n)
        a, b = rng.binomial(trials, p), rng.binomial(trials, q)
        found = difference_of(
            "solved", [(int(x), trials, int(y), trials) for x, y in zip(a, b, strict=True)], seed
        )
        decisive += found.decisive and (found.difference or 0) > 0
    assert 0.72 <= decisive / 200 <= 0.88


def test_a_pilot_run_leads_to_about_that_number() -> None:
    """From 400 cases at three trials of one arm: within a fifth of what the true variances would give."""
    rng = np.random.default_rng(3)
    p = rng.beta(2, 1, size=400)
    pilot = made(
        "a",
        {
            f"c{n}": "".join("1" if hit else "0" for hit in row)
            for n, row in enumerate(rng.random((400, 3)) < p[:, None])
        },
    )
    # of beta(2, 1) the mean of p (1 - p) is 2/3 - 1/2 = 1/6 and the variance of p is 1/18
    wanted = cases_to_detect(Spread(2 * 1 / 6, 2 * (1 / 18) * 0.5, True, ""), 0.05, trials=3)
    assert cases_to_detect(spread(pilot), 0.05, trials=3) == pytest.approx(wanted, rel=0.2)


# ---- words ---------------------------------------------------------------------------------------------------


def test_numbers_in_words() -> None:
    """A point, points, signs; what is there is never shown as nothing, nor nearly all as all."""
    assert [points(x) for x in (0.125, -0.01, 0.0, 0.0004, -0.0004)] == [
        "+12.5 points", "−1 point", "0 points", "+<0.1 points", "−<0.1 points",
    ]  # fmt: skip
    assert points(0.01, sign=False) == "1 point"
    assert [share(x) for x in (0.0, 0.0001, 0.125, 0.9999, 1.0)] == ["0%", "<0.1%", "12.5%", ">99.9%", "100%"]
    assert [p_value(p) for p in (1.0, 0.0625, 0.1, 0.0001)] == ["p = 1", "p = 0.062", "p = 0.1", "p < 0.001"]


# ---- real runs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The two lowest rungs and the refusals, by three drivers, saved and read back."""
    out = tmp_path_factory.mktemp("runs") / "floors"
    evaluate("ladder", ["stub", "refuse_all", "reckless"], group="TOOL-0,TOOL-1,TOOL-2", out=out)
    return load_run(out)


def test_arms_of_a_real_run(run: Run) -> None:
    """The stub finds tools that refusing everything never does; refusing wins on the refusals."""
    found = compare(side(run, "refuse_all"), side(run, "stub"))
    groups = {row["group"]: row for row in found.by_group().iter_rows(named=True)}
    assert groups["TOOL-0"]["rate_a"] == 0.0
    assert groups["TOOL-0"]["fixes"] > 0
    assert groups["TOOL-2"]["rate_a"] == 1.0
    assert {pair.group for pair in found.regressions} <= {"TOOL-2"}
    assert found.a.evidence == found.b.evidence == ("simulated",)
    assert (found.only_a, found.only_b, found.neither, found.notes) == ((), (), (), ())
    reckless = compare(side(run, "stub"), side(run, "reckless"))
    assert reckless.new_unsafe
    assert not reckless.ok


def test_an_arm_is_found_by_its_name(run: Run) -> None:
    """Its driver, with or without the scaffold; anything else is told what there is."""
    assert side(run, "stub").name == side(run, "stub+once").name == side(run, "stub + once").name == "stub"
    assert set(side(run, "stub").trials["driver"]) == {"stub"}
    with pytest.raises(LabError, match="it has 3 arms; say which: reckless, refuse_all, stub"):
        side(run)
    with pytest.raises(LabError, match=r"no arm 'stubb' \(did you mean 'stub'\?\)"):
        side(run, "stubb")


def test_a_side_is_written_as_run_and_arm(run: Run, tmp_path: Path) -> None:
    """Colons may stand in folders and in arms; a misspelt run and a misspelt arm are told the nearest one."""
    folder = str(run.path)
    assert side_of(f"{folder}:stub").name == "stub"
    alone = tmp_path / "at:noon"
    evaluate("ladder", "refuse_all", group="TOOL-0", out=alone)
    assert side_of(str(alone)).name == side_of(f"{alone}:refuse_all").name == "refuse_all"
    with pytest.raises(LabError, match=r"no run \(no card.json\) \(did you mean 'floors'\?\)"):
        side_of(folder.replace("floors", "flors") + ":stub")
    with pytest.raises(LabError, match=r"no arm 'module:stub'"):
        side_of(f"{folder}:module:stub")
    with pytest.raises(LabError, match="3 arms; say which"):
        side_of(folder)


def test_a_run_of_other_cases_pairs_on_what_is_shared(run: Run) -> None:
    """A run in memory against one from disk; the rungs that it was not asked are listed."""
    fewer = evaluate(load_suite("ladder"), "stub", group="TOOL-0", save_run=False)
    found = compare(side(run, "stub"), side(fewer), allow_mixed_commits=True)
    assert (found.solved.difference, found.only_b) == (0.0, ())
    assert {case.group for case in found.only_a} == {"TOOL-1", "TOOL-2"}
    assert {case.reason for case in found.only_a} == {"not asked there"}
    assert found.a.name != found.b.name


def test_a_gated_climb_is_no_loss(tmp_path: Path) -> None:
    """Rungs above the shut gate were not asked: they are listed, and are neither losses nor wins."""
    climbed = evaluate("ladder", "reckless", group="TOOL-0,TOOL-1", ladder=True, save_run=False)
    whole = evaluate("ladder", "stub", group="TOOL-0,TOOL-1", save_run=False)
    assert climbed.card.envelope[0].gated_at
    found = compare(side(whole), side(climbed), allow_mixed_commits=True)
    assert {case.group for case in found.only_a} == {"TOOL-1"}
    assert {case.reason for case in found.only_a} == {
        "not asked there (its rung was gated, or the run is not finished)"
    }


def test_a_changed_suite_is_refused(tmp_path: Path) -> None:
    """One word of one request, or one fact of the world: the comparison names the case and says which it was."""
    suite = Path(load_suite("ladder").cases[0].file)
    lines = [
        line
        for line in suite.read_text(encoding="utf-8").splitlines()
        if '"TOOL-0"' in line and '"shop"' in line
    ]
    world = (suite.parent / "worlds" / "shop.json").read_text(encoding="utf-8")

    def asked(folder: str, cases: list[str], world: str) -> Side:
        (tmp_path / folder / "worlds").mkdir(parents=True)
        (tmp_path / folder / "worlds" / "shop.json").write_text(world, encoding="utf-8")
        (tmp_path / folder / "s.jsonl").write_text("\n".join(cases) + "\n", encoding="utf-8")
        return side(evaluate(tmp_path / folder / "s.jsonl", "refuse_all", save_run=False))

    base = asked("base", lines, world)
    assert compare(base, asked("same", lines[:3], world)).solved.cases == 3
    first = json.loads(lines[0])
    changed = json.dumps(first | {"request": first["request"] + " Please."})
    with pytest.raises(LabError, match=rf"^s/{first['id']} is not the same .*: the case itself differs"):
        compare(base, asked("changed", [changed, *lines[1:]], world))
    with pytest.raises(LabError, match=rf"its world differs .* and {len(lines) - 1} cases more"):
        compare(base, asked("moved", lines, world.replace("run by hand", "run at noon")))
