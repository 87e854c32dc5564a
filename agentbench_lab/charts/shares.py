"""The outcomes of many trials, put together before they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.theme import CLASSES, INK, SOFT, WIDTH, class_words, headline, themed
from agentbench_lab.charts.words import evidence, short_names
from agentbench_lab.ladder import in_order

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.charts.theme import Drawing

_MOST_BARS = 60  # with more of them an arm's groups are put together
_JUDGED = ("success", "safe_non_success", "unsafe")


def shares(frame: pl.DataFrame, claims: Sequence[str]) -> Drawing:
    """A bar an arm and group: which share of its judged trials ended in which class, with the intervals of both ends.

    `frame` is a strip with the columns `arm` and `kind`.
    """
    import altair as alt
    import polars as pl

    from agentbench_lab.analysis.metrics import class_shares

    asked = frame.height
    groups, arms = in_order(frame["group"]), _best_first(frame)
    together = len(groups) > 1 and len(groups) * len(arms) > _MOST_BARS
    if together:
        frame, groups = frame.with_columns(pl.lit("all").alias("group")), ["all"]
    dropped = arms[_MOST_BARS:]
    arms = arms[:_MOST_BARS]
    rows, words = [], []
    named_classes = class_words(frame)
    unsafe = ", {unsafe}/{judged} unsafe" if "unsafe" in named_classes else ""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in class_shares(frame, ("arm", "group")).iter_rows(named=True):
        found.setdefault((row["arm"], row["group"]), {})[row["outcome_class"]] = row
    for arm in arms:
        for group in groups:
            if (arm, group) in found:
                rows.append({"arm": arm, "group": group, **_bar(found[arm, group])})
    space = 96 if len(groups) > 1 else 190
    for row in rows:
        ends = (
            [row["arm"]]
            if len(groups) == 1
            else [row["group"]]
            if len(arms) == 1
            else [row["arm"], row["group"]]
        )
        row["label"] = " · ".join(ends)
        row["count"] = f"{row['success']:,} of {row['judged']:,}"
        row["count"] += f", {row['excluded']:,} excluded" if row["excluded"] else ""
        words.append(
            f"{row['arm']} {row['group']}: {row['success']}/{row['judged']} success{unsafe.format(**row)}."
        )
    short = short_names([row["label"] for row in rows], 44 if len(groups) > 1 and len(arms) > 1 else 34)
    for row in rows:
        row["label"] = short[row["label"]]
        space = max(space, round(6.2 * len(row["label"])) + 14)
    order = [row["label"] for row in rows]
    width = WIDTH - min(space, 330) - 130
    parts = [
        {
            "label": row["label"],
            "kind": kind,
            "from": row[f"{kind}_from"],
            "to": row[f"{kind}_to"],
            "n": row[kind],
            "of": row["judged"],
        }
        for row in rows
        for kind in _JUDGED
        if row[kind]
    ]
    kinds = [kind for kind in _JUDGED if any(row[kind] for row in rows) or kind != "unsafe"]
    names = [named_classes[kind] for kind in kinds]
    for segment in parts:
        segment["class"] = named_classes[str(segment["kind"])]
    y = alt.Y("label:N", sort=order, title=None).axis(
        labelColor=INK, labelOpacity=1, labelLimit=320, grid=False
    )
    x = (
        alt.X("from:Q", title="share of judged trials")
        .scale(domain=[0, 1], nice=False)
        .axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    )
    key = alt.Legend(title=None, orient="top", symbolStrokeWidth=0, labelLimit=240)
    fill = alt.Fill("class:N", sort=names, legend=key).scale(
        domain=names, range=[CLASSES[kind][1] for kind in kinds]
    )
    base = alt.Chart(alt.InlineData(parts)).encode(y=y)
    whole = alt.Chart(
        alt.InlineData(
            [
                {
                    "label": row["label"],
                    "count": row["count"],
                    **{name: row[name] for name in ("low", "high", "bad_low", "bad_high")},
                }
                for row in rows
            ]
        )
    ).encode(y=y)
    layers = [
        base.mark_bar(height=alt.RelativeBandSize(0.62)).encode(
            x=x,
            x2="to:Q",
            fill=fill,
            tooltip=[
                alt.Tooltip("label:N"),
                alt.Tooltip("class:N"),
                alt.Tooltip("n:Q", format=","),
                alt.Tooltip("of:Q", format=","),
            ],
        ),
        whole.mark_rule(strokeWidth=2, color="#0c4a36", yOffset=-3 if "unsafe" in kinds else 0).encode(
            x=alt.X("low:Q"), x2="high:Q"
        ),
        whole.mark_text(align="left", dx=10, fontSize=11, color=INK, opacity=SOFT).encode(
            x=alt.value(width), text="count:N"
        ),
    ]
    if "unsafe" in kinds:
        layers.insert(
            2,
            whole.mark_rule(strokeWidth=2, color="#5c0c18", yOffset=3).encode(
                x=alt.X("bad_low:Q"), x2="bad_high:Q"
            ),
        )
    chart = alt.layer(*layers).properties(width=width, height={"step": 22})
    about = "Bars: shares of the judged trials; lines: 95% intervals of the share of successes"
    about += " and of unsafe trials" if "unsafe" in kinds else ""
    about += " (Wilson over cases). Right: successes of judged trials."
    about += "" if unsafe else " Nothing is known of safety."
    put = "All groups together. " if together else ""
    cut = f" The best {len(arms)} of {len(arms) + len(dropped)} arms." if dropped else ""
    subtitle = [
        about,
        f"{put}Too many to draw one by one: {asked:,} rows in, {len(parts):,} points drawn.{cut}",
        evidence(frame),
    ]
    totals = "; ".join(
        f"{word} {int((frame['kind'] == kind).sum())} of {asked}" for kind, word in named_classes.items()
    )
    chart = chart.properties(title=headline(claims, subtitle))
    return themed(chart, f"{'; '.join(claims)}. {totals}. {' '.join(words)} {subtitle[-1]}.")  # fmt: skip


def _best_first(frame: pl.DataFrame) -> list[str]:
    """The arms by their share of successes among judged trials; those of which none was judged stand last."""
    import polars as pl

    judged = pl.col("kind").is_in(_JUDGED)
    rate = (judged & (pl.col("kind") == "success")).sum() / judged.sum()
    rates = frame.group_by("arm", maintain_order=True).agg(rate.fill_nan(-1.0).alias("rate"))
    return list(rates.sort("rate", descending=True, maintain_order=True)["arm"])


def _bar(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The counts of one bar, where its segments lie, and the intervals of its two ends, from its shares by class."""
    good, bad = found["success"], found["unsafe"]
    bar: dict[str, Any] = {kind: found[kind]["n"] for kind in _JUDGED}
    bar |= {"judged": good["of"], "excluded": good["excluded"], "low": good["low"], "high": good["high"]}
    before = 0
    for kind in _JUDGED:
        both = (before, before + bar[kind])
        bar[f"{kind}_from"], bar[f"{kind}_to"] = (n / good["of"] if good["of"] else 0.0 for n in both)
        before += bar[kind]
    # the unsafe ones stand at the right end, so their share is counted from there
    bar["bad_low"], bar["bad_high"] = (None if end is None else 1 - end for end in (bad["high"], bad["low"]))
    return bar
