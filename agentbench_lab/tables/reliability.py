"""How reliably arms solve their cases: pass^k, the curves that cross, and how often each case is solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts import percent
from agentbench_lab.charts.words import counted, listed, named, points
from agentbench_lab.tables.table import Table, share_of, under_arms

if TYPE_CHECKING:
    import polars as pl

_WIDE = 4  # arms; with more of them an arm has one row, or nobody reads on
_ENDS = 5  # values of k beside each other


def reliability(frame: pl.DataFrame) -> Table:
    """pass^k and pass@k with their intervals and the cases behind them, from a `metrics.reliability`.

    An arm has a row for each k, with the bounds that exclusions leave; where there are more than four arms, a row for
    pass^k at a few values of k, the best at the largest k first.
    """
    if frame.is_empty():
        return Table("Reliability: pass^k", ["", ">pass^k"], [], ["no trials"])
    if frame.select("driver", "model", "scaffold").n_unique() > _WIDE:
        return _wide(frame)
    rows: list[Sequence[str] | str] = []
    ways = _ways(frame)
    for _, part in under_arms(frame, rows):
        any_solved = {row["k"]: row for row in part.iter_rows(named=True) if row["metric"] == "pass_at_k"}
        for row in part.iter_rows(named=True):
            if row["metric"] == "pass_hat_k":
                bounds = "" if row["worst"] is None else f"{percent(row['worst'])} to {percent(row['best'])}"
                cases = f"{row['n']} of {row['of']} cases"
                other = any_solved.get(row["k"])
                same = other is not None and other["estimate"] is None and other["reason"] == row["reason"]
                cells = [_estimate(row, ways), "–" if same else _estimate(other, ways)]
                rows.append([f"k = {row['k']}", *cells, cases, f"{row['judged']}/{row['asked']}", bounds])
    columns = ["", ">pass^k", ">pass@k", ">over", ">judged", ">bounds of pass^k"]
    notes = [*_notes(frame), "bounds: excluded trials counted as failures, and as successes"]
    if frame["judged"].equals(frame["asked"]):  # then the bounds are the estimate
        rows = [row if isinstance(row, str) else row[:-1] for row in rows]
        columns, notes = columns[:-1], notes[:-1]
    return Table("Reliability: pass^k", columns, rows, [*notes, *_short(frame)])


def _estimate(row: Mapping[str, Any] | None, ways: Mapping[str, str]) -> str:
    if row is None:
        return "–"
    if row["estimate"] is None:
        return row["reason"] or "not known"
    return share_of(row["estimate"], row["low"], row["high"]) + ways.get(_way(row["estimator"]), "")


def _way(estimator: str | None) -> str:
    """How an interval was made: what an estimator says after its name."""
    return (estimator or "").partition(", ")[2] or estimator or ""


def _ways(frame: pl.DataFrame) -> dict[str, str]:
    """The ways in which the intervals were made, the usual one first, each with its mark."""
    import polars as pl

    known = frame.filter(pl.col("low").is_not_null())
    ways = Counter(_way(each) for each in known["estimator"].drop_nulls()).most_common()
    return {way: "*" * n for n, (way, _) in enumerate(ways)}


def _notes(frame: pl.DataFrame) -> list[str]:
    import polars as pl

    words = "; ".join(f"{mark}{': ' * bool(mark)}{way}" for way, mark in _ways(frame).items())
    notes = [
        "pass^k: the chance that k trials of a case are all solved; pass@k: that any is; unbiased, mean over cases [95% "
        f"interval{f', {words}' if words else ''}]"
    ]
    known = frame.filter(pl.col("estimate").is_not_null())
    return notes + list(known["reason"].drop_nulls().unique(maintain_order=True))


def _short(frame: pl.DataFrame) -> list[str]:
    """Which cases are missing at which k, said once an arm: the k from which any is."""
    import polars as pl

    rows = named(frame.filter((pl.col("metric") == "pass_hat_k") & (pl.col("short").list.len() > 0)))
    notes = [
        f"{row['arm']}: fewer than {row['k']} judged {'trial' if row['k'] == 1 else 'trials'} in {listed(row['short'])}"
        for row in rows.sort("k", maintain_order=True).unique("arm", keep="first", maintain_order=True).iter_rows(named=True)
    ]  # fmt: skip
    more = (
        [f"and {counted(len(notes) - 5, 'more arm')} with cases that are short of trials"]
        if len(notes) > 5
        else []
    )
    return notes[:5] + more


def _wide(frame: pl.DataFrame) -> Table:
    import polars as pl

    frame = named(frame.filter(pl.col("metric") == "pass_hat_k"))
    ks = sorted(frame["k"].unique())
    shown = ks
    if len(shown) > _ENDS:
        shown = [k for k in ks if k.bit_count() == 1 or k == ks[-1]]  # 1, 2, 4, 8, ... and the last
    if len(shown) > _ENDS:
        shown = [shown[round((len(shown) - 1) * n / (_ENDS - 1))] for n in range(_ENDS)]
    rows = []
    ways = _ways(frame)
    for (arm,), part in frame.group_by("arm", maintain_order=True):
        by_k = {row["k"]: row for row in part.iter_rows(named=True)}
        one = by_k[min(by_k)]
        values = [_estimate(by_k.get(k), ways) for k in shown]
        last = next(
            (by_k[k]["estimate"] for k in reversed(shown) if by_k.get(k) and by_k[k]["estimate"] is not None),
            -1.0,
        )
        over = by_k[max((k for k in by_k if by_k[k]["estimate"] is not None), default=min(by_k))]
        rows.append(
            (last, [str(arm), *values, f"{over['n']}/{over['of']}", f"{one['judged']}/{one['asked']}"])
        )
    rows.sort(key=lambda pair: -pair[0])
    columns = ["arm", *(f">pass^{k}" for k in shown), ">cases", ">judged"]
    notes = [
        *(note.replace("; pass@k: that any is", "") for note in _notes(frame)),
        "cases: with that many judged trials, of those asked",
    ]
    return Table("Reliability: pass^k", columns, [cells for _, cells in rows], [*notes, *_short(frame)])  # fmt: skip


def crossings(frame: pl.DataFrame) -> Table:
    """The pairs of arms whose order turns round between one trial and several, from a `metrics.crossings`: the surest first."""
    from agentbench_lab.analysis.metrics.arms import full_name

    rows = []
    ordered = frame.sort("decided", "share", descending=True, nulls_last=True, maintain_order=True)
    for row in ordered.iter_rows(named=True):
        a, b = (
            full_name(*(row[f"{name}_{side}"] for name in ("driver", "model", "scaffold"))) for side in "ab"
        )
        first = _gap(row["first"], row["first_low"], row["first_high"])
        last = _gap(row["last"], row["last_low"], row["last_high"])
        share = "–" if row["share"] is None else percent(row["share"])
        decided = "decided" if row["decided"] else "not decided"
        rows.append([a, b, str(row["cases"]), first, f"{last} (k = {row['k_last']})", share, decided])
    notes: list[str] = []
    if rows:
        notes.append(
            "differences of pass^k, a − b, in points [95% interval, paired bootstrap over the cases both share]; decided: "
            "neither interval holds 0; the pairs were looked for among all, which no interval here corrects for"
        )
    columns = ["a, ahead first", "b, ahead last", ">cases", ">k = 1", ">largest k", ">reverses", "verdict"]
    return Table("Curves that cross", columns, rows, notes or ["no two curves of pass^k cross"])


def _gap(value: float, low: float | None, high: float | None) -> str:
    return (
        points(value) if low is None or high is None else f"{points(value)} [{points(low)}, {points(high)}]"
    )


def histogram(frame: pl.DataFrame) -> Table:
    """How many cases were solved how often, from a `metrics.histogram`, with the share that is solved every time."""
    import polars as pl

    rows: list[Sequence[str] | str] = []
    frame = named(frame) if frame.height else frame
    most = int(frame["judged"].max() or 0) if frame.height else 0  # type: ignore[arg-type]
    spread = most <= 8
    parts = frame.group_by("arm", "judged", maintain_order=True) if frame.height else ()
    for (arm, judged), part in parts:
        counts = dict(part.select("solved", "cases").iter_rows())
        whole = sum(counts.values())
        never, always = counts.get(0, 0), counts.get(judged, 0)
        each = [str(counts.get(n, 0)) if n <= judged else "" for n in range(most + 1)] if spread else []
        ends = []
        by_solved = {row["solved"]: row for row in part.iter_rows(named=True)}
        for row in (by_solved.get(judged), by_solved.get(0)):
            known = row is not None and row["estimate"] is not None
            ends.append(
                f"{share_of(row['estimate'], row['low'], row['high'])} {row['cases']}/{row['of']}"
                if row and known
                else "–"
            )
        between = f"{whole - always - never}/{whole}" if judged else "–"
        rows.append([str(arm), str(judged), str(whole), *each, ends[0], between, ends[1]])
    columns = ["arm", ">trials", ">cases", *([f">{n}" for n in range(most + 1)] if spread else [])]
    columns += [">every time", ">now and then", ">never"]
    notes = [
        "cases by how many of their judged trials were solved; every time, never: share of cases [95% interval, Wilson]"
    ]
    if rows and frame.filter(pl.col("judged") == 0).height:
        notes.append("cases with 0 judged trials are in no share")
    return Table("How often each case is solved", columns, rows, notes if rows else ["no trials"])  # fmt: skip
