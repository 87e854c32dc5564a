"""Counts in words: one is one."""

from __future__ import annotations

from agentbench_lab.charts.words import in_points
from agentbench_lab.errors import counted, wanted


def test_one_is_not_many() -> None:
    assert [counted(n, "case") for n in (0, 1, 2, 1200)] == ["0 cases", "1 case", "2 cases", "1,200 cases"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
    assert [wanted(n, 3 - n, "call") for n in (1, 2)] == [
        "1 call where 2 are expected",
        "2 calls where 1 is expected",
    ]
    assert [in_points(share) for share in (0.01, 0.02, 0.005, 0.0)] == [
        "1 point",
        "2 points",
        "0.5 points",
        "0 points",
    ]
