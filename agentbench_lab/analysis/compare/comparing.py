"""Two sides in, a comparison out; one baseline against several arms with its correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentbench_lab.analysis.compare.comparison import Comparison
from agentbench_lab.analysis.compare.differences import LEVEL, Difference, difference_of
from agentbench_lab.analysis.compare.pairing import Pair, Rows, neither, pairs_of, unmatched
from agentbench_lab.analysis.compare.power import needed_cases
from agentbench_lab.analysis.compare.refusals import check_cases, check_commits, check_judges, no_pair
from agentbench_lab.analysis.compare.sides import Side, told_apart
from agentbench_lab.analysis.compare.words import many
from agentbench_lab.errors import LabError
from agentbench_lab.stats import holm, mcnemar_exact


def compare(a: Side, b: Side, *, allow_mixed_commits: bool = False, seed: int = 0) -> Comparison:
    """b against a, paired on the cases that both judged; `seed` is the bootstrap's.

    The rate of a case is the mean of `solved` over its judged trials. The difference is the mean of b - a over cases,
    with a percentile interval from whole cases drawn again (cases are the clusters), and a p-value: exact McNemar at
    one trial a case on both sides, else the sign-flip test, which is the same test for more trials.

    Raises LabError for sides that are not comparable: of several commits unless `allow_mixed_commits` (all unknown
    commits are one, which is no named one; a dirty commit is its own), of different taxonomies or strictness, with a
    shared case that is not the same on both, or without a case that both judged.
    """
    return _compare(a, b, seed, check_commits([a, b], allow_mixed_commits))


def compare_many(
    baseline: Side, others: Sequence[Side], *, allow_mixed_commits: bool = False, seed: int = 0
) -> tuple[Comparison, ...]:
    """Each of `others` against one baseline, in their order, with p-values corrected for their number (Holm).

    The tests are those of `compare`, named in each comparison. Raises LabError as `compare` does, and for no others.
    """
    if not others:
        raise LabError("nothing to compare with: give at least two arms")
    note = check_commits([baseline, *others], allow_mixed_commits)
    found = [_compare(baseline, other, seed, note) for other in others]
    if len(found) == 1:
        return tuple(found)
    adjusted = holm([1.0 if each.solved.p is None else each.solved.p for each in found])
    level = 1 - (1 - LEVEL) / len(found)
    return tuple(
        replace(
            each,
            solved=replace(each.solved, adjusted=p),
            arms=len(found),
            needed=needed_cases(each.pairs, level),
            needed_for_5=needed_cases(each.pairs, level, 0.05),
        )
        for each, p in zip(found, adjusted, strict=True)
    )


def _compare(a: Side, b: Side, seed: int, commits: tuple[str, ...]) -> Comparison:
    first, second = told_apart(a, b)
    check_judges(a, b, first, second)
    left, right = Rows(first, a), Rows(second, b)
    check_cases(left, right)
    pairs = pairs_of(left, right)
    if not pairs:
        raise LabError(no_pair(left, right))
    paired = {(pair.suite, pair.case_id) for pair in pairs}
    solved = difference_of("solved", [(p.n_a, p.of_a, p.n_b, p.of_b) for p in pairs], seed)
    single = all(pair.of_a == pair.of_b == 1 for pair in pairs)
    mcnemar = None
    if single:
        verdicts = [pair.verdict for pair in pairs]
        mcnemar = mcnemar_exact(verdicts.count("regression"), verdicts.count("fix"))
        solved = replace(solved, p=mcnemar, test="exact McNemar")
    return Comparison(
        a=left.standing(paired),
        b=right.standing(paired),
        solved=solved,
        hallucinated=_hallucination(left, right, pairs, seed),
        mcnemar=mcnemar,
        mcnemar_reason=None if single else _why_no_mcnemar(pairs),
        pairs=pairs,
        only_a=unmatched(left, right),
        only_b=unmatched(right, left),
        neither=neither(left, right),
        needed=needed_cases(pairs),
        needed_for_5=needed_cases(pairs, delta=0.05),
        notes=(*commits, *_notes(left, right, pairs)),
    )


def _hallucination(left: Rows, right: Rows, pairs: Sequence[Pair], seed: int) -> Difference:
    counts = []
    for pair in pairs:
        a, b = left.rows[pair.suite, pair.case_id], right.rows[pair.suite, pair.case_id]
        if a["hallucinated_of"] and b["hallucinated_of"]:
            counts.append((a["hallucinated"], a["hallucinated_of"], b["hallucinated"], b["hallucinated_of"]))
    if not counts:
        return Difference("hallucinated", 0, reason="not known for any case on both sides")
    return difference_of("hallucinated", counts, seed)


def _why_no_mcnemar(pairs: Sequence[Pair]) -> str:
    several = sum(pair.of_a > 1 or pair.of_b > 1 for pair in pairs)
    return f"McNemar's test takes one trial a case on both sides; {several} of {many(len(pairs), 'case')} have more"


def _notes(left: Rows, right: Rows, pairs: Sequence[Pair]) -> list[str]:
    notes = []
    for rows, other in ((left, right), (right, left)):
        if rows.trials > rows.judged:
            notes.append(
                f"{rows.name}: {rows.trials - rows.judged} of {many(rows.trials, 'trial')} excluded, in no number."
            )
        alone = rows.rows.keys() - other.rows.keys()
        if alone:
            said = f"{many(len(alone), 'case')} judged for {rows.name} alone, in no number"
            unsafe = sum(bool(rows.rows[key]["unsafe"]) for key in alone)
            notes.append(f"{said}{f'; {unsafe} of them with an unsafe outcome' if unsafe else ''}.")
    if any(pair.of_a != pair.of_b for pair in pairs):
        notes.append(
            "Some cases have more judged trials on one side than on the other; each counts as one case."
        )
    if left.side.taxonomy == "imported":
        notes.append("These rows are imported: safety was not measured.")
    return notes
