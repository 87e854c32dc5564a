"""What is not comparable is refused, in one line that says what would make it so."""

from __future__ import annotations

from collections.abc import Sequence

from agentbench_lab.analysis.compare.pairing import Rows
from agentbench_lab.analysis.compare.sides import Side, commit_of
from agentbench_lab.analysis.compare.words import many
from agentbench_lab.errors import LabError

MIXED = "These runs come from "


def check_commits(sides: Sequence[Side], allowed: bool) -> tuple[str, ...]:
    """The note on mixed commits, if they are mixed and that is allowed."""
    commits = list(dict.fromkeys(commit_of(side) for side in sides))
    if len(commits) < 2:
        return ()
    if not allowed:
        ran = "; ".join(f"{side.name} at {commit_of(side)}" for side in sides)
        raise LabError(
            f"results are comparable only within one commit, and these come from {len(commits)} ({ran}): run them at "
            "one commit, or allow mixed commits (--allow-mixed-commits), which is then said"
        )
    return (f"{MIXED}{len(commits)} commits ({', '.join(commits)}) and are not comparable as like for like.",)


def check_judges(a: Side, b: Side, first: str, second: str) -> None:
    """Both sides were judged by one taxonomy, one strictness, the same outcomes and the same grader."""
    for what, of_a, of_b in (
        ("taxonomy", a.taxonomy, b.taxonomy),
        ("strictness", a.strictness, b.strictness),
    ):
        if of_a != of_b:
            raise LabError(
                f"{first} was judged by the {what} {of_a!r}, {second} by {of_b!r}: nothing makes these comparable; "
                "judge both by the same one"
            )
    if a.outcomes and b.outcomes and a.outcomes != b.outcomes:
        raise LabError(
            f"{first} and {second} were judged by different outcomes under the one name {a.taxonomy!r}: "
            "nothing makes these comparable"
        )
    if a.grader and b.grader and a.grader != b.grader:
        raise LabError(
            f"{first} was judged by the grader {a.grader}, {second} by {b.grader}: judge the older one again "
            "(agentbench-lab regrade)"
        )


def check_cases(left: Rows, right: Rows) -> None:
    """No case that stands on both sides differs between them, nor does its world."""
    odd = []
    for key in sorted(left.digests.keys() & right.digests.keys()):
        (case_a, world_a), (case_b, world_b) = left.digests[key], right.digests[key]
        if case_a != case_b:
            odd.append((key, "the case itself", case_a, case_b))
        elif world_a != world_b:
            odd.append((key, "its world", world_a, world_b))
    if odd:
        (suite, case_id), what, of_a, of_b = odd[0]
        more = f", and {many(len(odd) - 1, 'case')} more" if len(odd) > 1 else ""
        raise LabError(
            f"{suite}/{case_id} is not the same for {left.name} and {right.name}: {what} differs "
            f"({of_a[:12]} and {of_b[:12]}){more}; run both on one version of the suite"
        )


def no_pair(left: Rows, right: Rows) -> str:
    """Why there is nothing to compare: no case in common, or none that both judged."""
    if left.digests.keys() & right.digests.keys():
        return f"{left.name} and {right.name} have cases in common, but none that both judged"
    suites = [sorted({suite for suite, _ in rows.digests}) for rows in (left, right)]
    names = [", ".join(each) or "no suite" for each in suites]
    ids = {case_id for _, case_id in left.digests} & {case_id for _, case_id in right.digests}
    hint = (
        f"; {many(len(ids), 'id')} of theirs are alike, but cases pair by suite and id: import one of them again under "
        f"the other's name (--suite {names[0]})"
        if ids
        else ""
    )
    return f"{left.name} ({names[0]}) and {right.name} ({names[1]}) have no case in common{hint}"
