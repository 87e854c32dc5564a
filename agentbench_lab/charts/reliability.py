"""How reliably arms solve their cases: pass^k against k."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.theme import (
    APART,
    INK,
    MOST_ARMS,
    MOST_MARKS,
    WIDTH,
    dodged,
    headline,
    looks,
    nothing,
    sentence,
    themed,
    told_apart,
)
from agentbench_lab.charts.words import (
    counted,
    evidence,
    interval,
    listed,
    marked,
    percent,
    points,
    short_names,
    text_width,
    tied,
)

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.charts.theme import Drawing

_HEIGHT = 340
_MOST_KS = 50  # of a curve: a line has no more to show
_ENOUGH = 600  # points of all curves, where some have to be left out
_NAMED = 4  # arms with their numbers in a sentence; the table has all of more
_ALIKE = 0.9  # of each arm's cases have to be shared by all, or their order says nothing
_PANEL, _PANEL_TEXT = 236, 10.5  # pixels: a panel's share of the width, and the letters above it
_PAIRS = 3  # crossing pairs that stand out where arms are many


def reliability(
    frame: pl.DataFrame,
    crossings: pl.DataFrame | None = None,
    *,
    doubted: Collection[tuple[str, str | None]] = (),
) -> Drawing:
    """pass^k by arm: the share of cases that an arm solves in all of k trials, with 95 % bands, from 0 to 100 %.

    `frame` is a `metrics.reliability`; its rows of pass@k are not drawn. A k without an estimate has no mark, and a
    hollow mark stands over fewer cases than were asked. More than six arms are drawn thin, each also in a panel of its
    own with its band; the pairs that cross most surely (`crossings`, a `metrics.crossings`) stand out, or else the best.
    Arms that were tried on other cases are not ranked in the title. An arm that is `doubted` (driver and model, see
    `tables.doubted`) has a dagger.
    """
    import polars as pl

    asked = frame.height
    frame, said = marked(frame.filter(pl.col("metric") == "pass_hat_k"), doubted)
    known = frame.filter(pl.col("estimate").is_not_null())
    if frame.is_empty():
        return nothing("there is no pass^k to draw")
    if known.is_empty():
        why = listed(list(frame["reason"].drop_nulls().unique(maintain_order=True))) or "nothing was judged"
        return sentence("pass^k is not known", f"no arm has an estimate: {why}")
    if known["k"].max() == 1:
        return sentence(
            "How reliably is not known: no case has more than one judged trial",
            f"pass^1 is the share of cases solved once ({_once(known)}); what repeating does to it needs several trials a case",
        )
    known, cut = _fewer(known, asked)
    last = known.group_by("arm", maintain_order=True).agg(pl.all().sort_by("k").last())
    order = list(last.sort("k", "estimate", descending=True, maintain_order=True)["arm"])
    drawn = known.select(
        "arm", "k", pl.col("estimate", "low", "high").round(5), pl.format("{} of {} cases", "n", "of").alias("cases"), "complete"
    )  # fmt: skip
    loud = order if len(order) <= APART else _loud(order, crossings, frame)
    pairs = [pair for _, pair in _crossed(crossings, frame)]
    banded = (
        loud if len(order) <= APART else [arm for arm in loud if arm in (pairs[0] if pairs else loud[:2])]
    )
    claims = _claims(known, crossings, frame)
    subtitle = [
        "pass^k: the chance that k trials of a case are all solved, as a mean over cases. Bands: 95% interval "
        f"({_intervals(known)}). {_cases(known)}"
        + (" Hollow: not every case has k judged trials." if not known["complete"].all() else "")
        + (f" Coloured: the curves that cross, or the best; bands: {' and '.join(banded)}, and each arm below." if len(order) > APART else ""),
        *_gaps(frame),
        *([cut] if cut else []),
        *said,
        evidence(known),
    ]  # fmt: skip
    main = _curves(drawn, order, loud, banded)
    chart: Drawing = main
    if len(order) > APART:
        import altair as alt

        chart = alt.vconcat(main, _panels(drawn, order, loud), spacing=18).resolve_scale(color="independent")
    chart = chart.properties(title=headline(claims, subtitle))
    return themed(chart, f"{'; '.join(claims)}. {_spoken(frame)} {evidence(known)}.")


def _once(known: pl.DataFrame) -> str:
    """pass^1 by arm, or its range where arms are many."""
    rows = known.sort("estimate", maintain_order=True).rows(named=True)
    if len(rows) > _NAMED:
        ends = [f"{percent(row['estimate'])} by {row['arm']}" for row in (rows[0], rows[-1])]
        return f"{len(rows)} arms, from {ends[0]} to {ends[1]}; the table has all of them"
    each = known.iter_rows(named=True)
    return "; ".join(
        f"{row['arm']} {percent(row['estimate'])}{interval(row['low'], row['high'], percent)}" for row in each
    )


def _intervals(known: pl.DataFrame) -> str:
    """How the intervals were made, the usual way first; where there are several, of how many points."""
    found = [each.partition(", ")[2] or each for each in known["estimator"].drop_nulls()]
    ways = Counter(found).most_common()
    rest = [f"{way} at {counted(count, 'point')}" for way, count in ways[1:]]
    return "; ".join([*(way for way, _ in ways[:1]), *rest])


def _fewer(known: pl.DataFrame, asked: int) -> tuple[pl.DataFrame, str]:
    """At most as many arms and points as a chart may hold, and the words for what is left out."""
    import polars as pl

    arms, words = known["arm"].n_unique(), []
    if arms > MOST_ARMS:
        best = (
            known.group_by("arm", maintain_order=True)
            .agg(pl.col("estimate").sort_by("k").last())
            .sort("estimate", descending=True, maintain_order=True)["arm"]
            .head(MOST_ARMS)
        )
        known = known.filter(pl.col("arm").is_in(best.implode()))
        words.append(f"the best {MOST_ARMS} of {arms:,} arms")
    ks = sorted(known["k"].unique())
    steps = max(2, min(_MOST_KS, MOST_MARKS // known["arm"].n_unique()))
    if len(ks) > steps and known.height > _ENOUGH:
        steps = max(2, min(steps, _ENOUGH // known["arm"].n_unique()))
        kept = {ks[round((len(ks) - 1) * n / (steps - 1))] for n in range(steps)}
        known = known.filter(pl.col("k").is_in(sorted(kept)))
        words.append(f"{len(kept)} of {len(ks)} values of k")
    return (
        known,
        f"Drawn: {', '.join(words)}; {asked:,} rows in, {known.height:,} points drawn." if words else "",
    )


def _loud(order: list[str], crossings: pl.DataFrame | None, frame: pl.DataFrame) -> list[str]:
    """The arms that stand out among many: those of the surest crossings, or the best three."""
    pairs = _crossed(crossings, frame)[:_PAIRS]
    found = list(dict.fromkeys(arm for _, pair in pairs for arm in pair if arm in order))[:APART]
    return [arm for arm in order if arm in found] or order[:3]


def _crossed(
    crossings: pl.DataFrame | None, frame: pl.DataFrame
) -> list[tuple[dict[str, Any], tuple[str, str]]]:
    """The crossings, surest first, each with the names that its arms have in this chart."""
    if crossings is None or crossings.is_empty():
        return []
    arm = ("driver", "model", "scaffold")
    names = {tuple(row[name] for name in arm): row["arm"] for row in frame.iter_rows(named=True)}
    rows = crossings.sort("decided", "share", descending=True, nulls_last=True, maintain_order=True)
    found = []
    for row in rows.iter_rows(named=True):
        a, b = (tuple(row[f"{name}_{side}"] for name in arm) for side in "ab")
        if a in names and b in names:
            found.append((row, (names[a], names[b])))
    return found


def _claims(known: pl.DataFrame, crossings: pl.DataFrame | None, frame: pl.DataFrame) -> list[str]:
    import polars as pl

    k_last = min(known.group_by("arm").agg(pl.col("k").max())["k"])  # that every arm has
    first, last = (
        known.filter(pl.col("k") == k).sort("estimate", descending=True, maintain_order=True)
        for k in (1, k_last)
    )
    if first.is_empty() or last.is_empty():
        return ["pass^k by arm"]
    top, end = first.row(0, named=True), last.row(0, named=True)
    if first.height == 1:
        return [
            f"{top['arm']} solves {percent(top['estimate'])} of its cases in one trial, {percent(end['estimate'])} in {k_last} of {k_last}"
        ]
    ahead, behind = (
        tied([row["arm"] for row in rows.iter_rows(named=True) if row["estimate"] == best["estimate"]])
        for rows, best in ((first, top), (last, end))
    )
    once, often = percent(top["estimate"]), percent(end["estimate"])
    if ahead == behind:
        claims = [f"Most solved by {ahead}: {once} in one trial, {often} in {k_last} of {k_last}"]
    else:
        claims = [
            f"Most solved in one trial by {ahead} ({once}), in {k_last} of {k_last} by {behind} ({often})"
        ]
    if k_last == 1:
        claims = [f"Most solved in one trial by {ahead}: {once}"]
    common, of = int(frame["common"][0]), frame["of"]
    if common < _ALIKE * int(of.max()):  # type: ignore[arg-type]
        least, most = int(of.min()), int(of.max())  # type: ignore[arg-type]
        each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        claims = [
            f"The {first.height} arms were tried on other cases: all share {common:,} of {each}, so that their order says little"
        ]
    crossed = _crossed(crossings, frame)
    if crossed:
        row, (a, b) = crossed[0]
        ends = [
            points(row[end]) + interval(row[f"{end}_low"], row[f"{end}_high"], points)
            for end in ("first", "last")
        ]
        sure = "" if row["share"] is None else f" (in {percent(row['share'])} of resamples)"
        change = "change places" if row["decided"] else "may change places, which is not decided"
        claims.append(f"{a} and {b} {change}: {ends[0]} points at k=1, {ends[1]} at k={row['k_last']}{sure}")
        if len(crossed) > 1:
            sure_ones = sum(bool(each["decided"]) for each, _ in crossed[1:])
            claims[-1] += f"; {counted(len(crossed) - 1, 'more pair')}, {sure_ones or 'none'} decided"
    elif crossings is not None:
        claims.append("No curves cross")
    return claims  # fmt: skip


def _cases(known: pl.DataFrame) -> str:
    counts = known["of"].to_list()
    most, least, common = max(counts), min(counts), int(known["common"][0])
    shared = f", of which all arms share {common:,}" if common < most else ""
    return f"{most:,} cases{shared}." if most == least else f"{least:,} to {most:,} cases an arm{shared}."


def _gaps(frame: pl.DataFrame) -> list[str]:
    """What is not drawn, and why; the first few."""
    import polars as pl

    missing = frame.filter(pl.col("estimate").is_null())
    found = [
        f"Not drawn: {arm}, k = {ks[0]}{f' to {ks[-1]}' if len(ks) > 1 else ''}: {reason or 'not known'}."
        for arm, ks, reason in missing.group_by("arm", maintain_order=True)
        .agg(pl.col("k"), pl.col("reason").first())
        .iter_rows()
    ]
    return found[:2] + ([f"Nor {counted(len(found) - 2, 'more arm')}."] if len(found) > 2 else [])


def _curves(drawn: pl.DataFrame, order: list[str], loud: list[str], banded: list[str]) -> Drawing:
    """All curves in one panel, named at their ends; a few with their bands."""
    import altair as alt
    import polars as pl

    short = short_names(order, 32)
    longest = max(map(len, short.values()))
    margin = 60 + min(6.3 * longest, 220)
    width = round(WIDTH - margin - 40)
    k_last = int(drawn["k"].max())  # type: ignore[arg-type]
    colour, shape, dash = told_apart(loud)
    pad = (k_last - 1) * 0.03
    x = alt.X("k:Q", title="k: trials of a case that all have to be solved").scale(
        domain=[1 - pad, k_last + pad], nice=False
    )
    x = x.axis(values=_ticks(k_last), format="d", grid=False)
    y = (
        alt.Y("estimate:Q", title=None)
        .scale(domain=[0, 1], nice=False)
        .axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    )
    tips = [alt.Tooltip("arm:N"), alt.Tooltip("k:Q")]
    tips += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("estimate", "low", "high")]
    tips += [alt.Tooltip("cases:N", title="over")]
    of_loud = pl.col("arm").is_in(loud)
    layers = []
    quiet = drawn.filter(~of_loud)
    if quiet.height:
        base = alt.Chart(quiet).encode(x=x, y=y, detail="arm:N")
        layers += [
            base.mark_line(color=INK, opacity=0.32, strokeWidth=1.1),
            base.mark_point(color=INK, filled=True, size=12, opacity=0.5).encode(tooltip=tips),
        ]
    mine = drawn.filter(of_loud)
    base = alt.Chart(mine).encode(x=x, color=colour)
    filled = alt.condition(
        "datum.complete",
        alt.Fill("arm:N", legend=None, sort=loud).scale(domain=loud, range=looks(loud)["color"]),
        alt.value("transparent"),
    )
    ends_of = {"y": alt.Y("low:Q"), "y2": "high:Q", "detail": "arm:N"}
    band = alt.Chart(mine.filter(pl.col("arm").is_in(banded))).mark_area(
        opacity=0.13 if len(banded) > 2 else 0.18
    )
    layers.append(band.encode(x=x, color=colour, **ends_of))
    alone = mine.filter(pl.len().over("arm") == 1)  # a band has no width at one point
    if alone.height:
        layers.append(
            alt.Chart(alone).mark_rule(strokeWidth=2.2, opacity=0.5).encode(x=x, color=colour, **ends_of)
        )
    layers += [
        base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash),
        base.mark_point(size=58, opacity=1, strokeWidth=1.8).encode(
            y=y, shape=shape, fill=filled, tooltip=tips
        ),
    ]
    ends = drawn.group_by("arm", maintain_order=True).agg(pl.all().sort_by("k").last())
    at = dodged([-row * _HEIGHT for row in ends["estimate"]], 14.5, -_HEIGHT - 4.0, 4.0)
    labels = ends.with_columns(pl.Series("place", [-each / _HEIGHT for each in at]))
    words = [_end(row, short[row["arm"]], k_last) for row in labels.iter_rows(named=True)]
    labels = labels.with_columns(pl.Series("words", words), pl.lit(k_last + 0.4 * pad).alias("from"))
    labels = labels.select("arm", "from", "estimate", "place", "words")
    for part, strong in ((labels.filter(~of_loud), False), (labels.filter(of_loud), True)):
        if part.is_empty():
            continue
        names = alt.Chart(part)
        leader = names.mark_rule(strokeWidth=1, opacity=0.8 if strong else 0.3, color=INK).encode(
            x=alt.X("from:Q"), x2=alt.value(width + 14), y=alt.Y("estimate:Q"), y2="place:Q"
        )
        text = names.mark_text(
            align="left",
            baseline="middle",
            color=INK,
            fontSize=11,
            fontWeight=600 if strong and quiet.height else "normal",
            opacity=1 if strong else 0.8,
        )
        layers.append(leader.encode(color=colour) if strong else leader)
        if strong:
            layers.append(
                names.mark_point(filled=True, size=46, opacity=1).encode(
                    x=alt.value(width + 22), y=alt.Y("place:Q"), color=colour, shape=shape
                )
            )
        layers.append(text.encode(x=alt.value(width + 32), y=alt.Y("place:Q"), text="words:N"))
    return alt.layer(*layers).properties(width=width, height=_HEIGHT)


def _end(row: dict[str, Any], name: str, k_last: int) -> str:
    at = f" at k={row['k']}" if row["k"] < k_last else ""
    return f"{percent(row['estimate'])}{at}  {name}"


def _ticks(k_last: int) -> list[int]:
    step = max(1, -(-k_last // 12))
    return sorted({1, *range(step, k_last + 1, step), k_last} if step > 1 else set(range(1, k_last + 1)))


def _panels(drawn: pl.DataFrame, order: list[str], loud: list[str]) -> alt.FacetChart:
    """A small panel for each arm, with its band, best first."""
    import altair as alt
    import polars as pl

    k_last = int(drawn["k"].max())  # type: ignore[arg-type]
    columns = 3
    curves = drawn.group_by("arm").agg(pl.col("estimate").sort_by("k"))
    ends = {arm: f"{percent(each[0])} → {percent(each[-1])}" for arm, each in curves.iter_rows()}
    titles = _titles(ends, order)
    drawn = drawn.with_columns(pl.col("arm").replace_strict(order, titles).alias("panel"))
    colour = alt.Color("panel:N", legend=None).scale(
        domain=titles, range=[looks(loud)["color"][loud.index(arm)] if arm in loud else INK for arm in order]
    )
    x = (
        alt.X("k:Q", title=None)
        .scale(domain=[1, k_last], nice=False)
        .axis(values=[1, k_last], format="d", grid=False, labelFontSize=10)
    )
    y = (
        alt.Y("estimate:Q", title=None)
        .scale(domain=[0, 1], nice=False)
        .axis(format=".0%", values=[0, 0.5, 1], labelFontSize=10)
    )
    base = alt.Chart().encode(x=x, color=colour)
    plot = alt.layer(
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(strokeWidth=1.6).encode(y=y),
        data=drawn.select("panel", "k", "estimate", "low", "high"),
    ).properties(width=(WIDTH - 40) / columns - 22, height=84)
    header = alt.Header(
        title=None,
        labelColor=INK,
        labelFontSize=_PANEL_TEXT,
        labelAnchor="start",
        labelPadding=4,
        labelLimit=_PANEL,
    )
    chart: alt.FacetChart = plot.facet(
        facet=alt.Facet("panel:N", sort=titles, header=header),
        columns=columns,
        spacing={"row": 10, "column": 22},
    ).resolve_axis(x="independent")  # a shared one stands below empty places, too
    return chart


def _titles(ends: dict[str, str], order: list[str]) -> list[str]:
    """What stands above each panel: its numbers first, which nothing may cut, and as much of its name as has room."""
    titles: list[str] = []
    for most in range(40, 9, -1):
        short = short_names(order, most)
        titles = [f"{ends[arm]}  {short[arm]}" for arm in order]
        if max(text_width(title, _PANEL_TEXT) for title in titles) <= _PANEL:
            break
    return titles


def _spoken(frame: pl.DataFrame) -> str:
    words = []
    for row in frame.head(400).iter_rows(named=True):
        if row["estimate"] is None:
            value = f"no estimate ({row['reason'] or 'nothing judged'})"
        else:
            value = f"{percent(row['estimate'])}{interval(row['low'], row['high'], percent)} over {row['n']} of {row['of']} cases"
        words.append(f"{row['arm']} pass^{row['k']}: {value}.")
    more = [f"And {frame.height - 400:,} more values."] if frame.height > 400 else []
    return " ".join(words + more)
