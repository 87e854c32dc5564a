"""Tidy frames in, tables out: the same one for a notebook, a report and a terminal.

A number is never printed alone: a share stands with its interval and its n/of.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts import arm_labels, percent
from agentbench_lab.ladder import COMPLETION_FLOOR, Cell, climb, in_order

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.analysis.compare import Comparison
    from agentbench_lab.results.run import ArmCard, Envelope, Run

RUN_MIME = "application/vnd.agentbench-lab.run+json"
"""The output type by which a published notebook is traced to its run."""

_WIDTH = 100  # columns of a terminal
_CLASS_WORDS = {"safe_non_success": "safe, no success"}


@dataclass(frozen=True)
class Table:
    """A titled table of text.

    A column whose name begins with ">" is aligned to the right. A row is a sequence of cells, or one string: the
    heading of the rows below it. `data` adds output types (name -> JSON object) to what a notebook keeps of it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str] | str]
    notes: Sequence[str] = ()
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        names = [name.removeprefix(">") for name in self.columns]
        style = ["right" if name.startswith(">") else "left" for name in self.columns]

        def cell(kind: str, text: str, side: str, more: str = "") -> str:
            return f'<{kind}{more} style="text-align: {side}">{escape(text)}</{kind}>'

        head = "".join(cell("th", *pair, ' scope="col"') for pair in zip(names, style, strict=True))
        body = []
        for row in self.rows:
            if isinstance(row, str):
                more = f' scope="colgroup" colspan="{len(names)}"'
                body.append(f"<tr>{cell('th', row, 'left', more)}</tr>")
                continue
            cells = [cell("th", row[0], style[0], ' scope="row"')]
            cells += [
                cell("td", text, side, ' class="pass"' if text == "PASS" else "")
                for text, side in zip(row[1:], style[1:], strict=True)
            ]
            body.append(f"<tr>{''.join(cells)}</tr>")
        span = f' colspan="{len(names)}"'
        notes = "".join(f"<tr>{cell('td', note, 'left', span)}</tr>" for note in self.notes)
        foot = f"<tfoot>{notes}</tfoot>" if notes else ""
        caption = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>{foot}</table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return dict(self.data)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """At most 100 columns wide: what does not fit is set closer, then broken into lines."""
        names = [name.removeprefix(">") for name in self.columns]
        right = [name.startswith(">") for name in self.columns]
        rows = [row if isinstance(row, str) else [_printable(text) for text in row] for row in self.rows]
        cells = [names, *(row for row in rows if not isinstance(row, str))]
        widths = [max(len(row[n]) for row in cells) for n in range(len(names))]
        gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= _WIDTH else 1
        while sum(widths) + gap * (len(widths) - 1) > _WIDTH and max(widths) > 6:
            widths[widths.index(max(widths))] -= 1

        def lines(row: Sequence[str]) -> list[str]:
            wrapped = [textwrap.wrap(text, width) or [""] for text, width in zip(row, widths, strict=True)]
            wrapped = [part + [""] * (max(map(len, wrapped)) - len(part)) for part in wrapped]
            return [
                (" " * gap)
                .join(
                    text.rjust(width) if to_right else text.ljust(width)
                    for text, width, to_right in zip(line, widths, right, strict=True)
                )
                .rstrip()
                for line in zip(*wrapped, strict=True)
            ]

        rule = (" " * gap).join("-" * width for width in widths)
        body = [line for row in rows for line in ([_printable(row)] if isinstance(row, str) else lines(row))]
        notes = [line for note in self.notes for line in textwrap.wrap(_printable(note), _WIDTH)]
        return "\n".join([*textwrap.wrap(_printable(self.title), _WIDTH), *lines(names), rule, *body, *notes])


@dataclass(frozen=True)
class Banner:
    """A line that must not be overlooked; an empty one shows nothing."""

    text: str

    def _repr_html_(self) -> str:
        return f'<p class="banner" role="note"><strong>{escape(self.text)}</strong></p>' if self.text else ""

    def __repr__(self) -> str:
        return self.text


def _printable(text: str) -> str:
    """One line that cannot steer a terminal."""
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(text.split())
    )


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _share(row: Mapping[str, Any] | None) -> str:
    """`92% [65, 99] 11/12` of a row of `metrics.ladder`, or why there is no estimate."""
    if row is None:
        return "–"
    if row["estimate"] is None:
        return row["reason"] or f"– {row['n']}/{row['of']}"
    interval = ""
    if row["low"] is not None and row["high"] is not None:
        interval = f" [{percent(row['low'])[:-1]}, {percent(row['high'])[:-1]}]"
    return f"{percent(row['estimate'])}{interval} {row['n']}/{row['of']}"


def _by_arm(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The frame's arms, each under its short name."""
    import polars as pl

    named = frame.with_columns(pl.Series("arm", arm_labels(frame), dtype=pl.String))
    parts = named.partition_by("arm", maintain_order=True)
    return [(str(part["arm"][0]), part) for part in parts]


def ladder(frame: pl.DataFrame) -> Table:
    """The metric pair and its companions by rung, from a `metrics.ladder`; the last row of an arm is all its rungs."""
    metrics = ("passed", "completed", "result_completed", "hallucinated")
    rows: list[Sequence[str] | str] = []
    same_result = True
    arms = _by_arm(frame)
    for arm, part in arms:
        if len(arms) > 1:
            rows.append(arm)
        found = {(row["group"], row["metric"]): row for row in part.iter_rows(named=True)}
        groups = in_order(set(part["group"]) - {"all"})
        for group in [*groups, *(["all"] if ("all", "completed") in found else [])]:
            by_metric = [found.get((group, metric)) for metric in metrics]
            done, result, bad = by_metric[1], by_metric[2], by_metric[3]
            same_result &= _share(done) == _share(result)
            gate = ""
            if group != "all" and done is not None and bad is not None:
                gate = (
                    "----"
                    if Cell(group, done["asked"], done["of"], done["n"], bad["n"]).failure()
                    else "PASS"
                )
            judged = f"{done['of']}/{done['asked']}" if done is not None else "–"
            rows.append([group, judged, *map(_share, by_metric), gate])
    columns = ["rung", ">judged", ">passed", ">completed", ">result", ">hallucinated", "gate"]
    notes = ["share of judged trials [95% interval] n/judged; judged: of the trials asked"]
    if same_result and rows:
        rows = [row if isinstance(row, str) else [*row[:4], *row[5:]] for row in rows]
        columns.remove(">result")
        notes.append("the composed result was completed exactly where the case was")
    return Table("The metric pair by rung", columns, rows, notes if rows else ["no trials"])


def gate(frame: pl.DataFrame) -> Table:
    """The gate of each rung, from a `metrics.gate`: what passed, what shut it, and a receipt for what was not asked."""
    rows: list[Sequence[str] | str] = []
    reached = []
    arms = _by_arm(frame)
    for arm, part in arms:
        if len(arms) > 1:
            rows.append(arm)
        by_group = {row["group"]: row for row in part.iter_rows(named=True)}
        cells = {}
        for group in in_order(by_group):
            row = by_group[group]
            if row["passes"] is None:
                rows.append([group, "not asked", "", "", "----", row["receipt"] or row["failure"] or ""])
                continue
            cells[group] = Cell(group, row["asked"], row["judged"], row["completed"], row["hallucinated"])
            counts = (f"{row[name]}/{row['judged']}" for name in ("completed", "hallucinated"))
            verdict = "PASS" if row["passes"] else "----"
            why = (row["failure"] or "").removeprefix(f"{group} ") or (
                "asked, though the gate was shut below" if row["receipt"] else ""
            )
            rows.append([group, f"{row['judged']}/{row['asked']}", *counts, verdict, why])
        top = climb(cells, in_order(by_group)).reached
        reached.append(f"{arm}: rung reached {top or 'none'}")
    title = f"The gate: no hallucination, at least {percent(COMPLETION_FLOOR)} completed"
    columns = ["rung", ">judged", ">completed", ">hallucinated", "gate", "why"]
    return Table(title, columns, rows, reached or ["no trials"])


def outcomes(frame: pl.DataFrame) -> Table:
    """How trials ended, from a `metrics.outcomes`: each outcome over the trials that could have ended so."""
    rows: list[Sequence[str] | str] = []
    arms = _by_arm(frame)
    for arm, part in arms:
        if len(arms) > 1:
            rows.append(arm)
        for row in part.iter_rows(named=True):
            if row["n"] or row["over"] != "judged":
                over = "all judged trials" if row["over"] == "judged" else f"cases expecting {row['over']}"
                share = f"{percent(row['n'] / row['of'])} " if row["of"] else "– "
                words = _CLASS_WORDS.get(row["outcome_class"], row["outcome_class"])
                rows.append([row["outcome"], words, f"{share}{row['n']}/{row['of']}", over, row["label"]])
    note = "each outcome over its own denominator: shares of different denominators are never added together"
    columns = ["outcome", "class", ">share", "over", "meaning"]
    return Table("How trials ended", columns, rows, [note if rows else "no trials"])


def failures(strip: pl.DataFrame, most: int = 25) -> Table:
    """The judged trials without success, with the first check that failed, from a `metrics.strip`; at most `most`."""
    import polars as pl

    named = strip.with_columns(pl.Series("arm", arm_labels(strip), dtype=pl.String))
    failed = named.filter(pl.col("outcome_class") != "success")
    arms, trials = named["arm"].n_unique() > 1, named["trial"].n_unique() > 1
    rows: list[Sequence[str] | str] = []
    for row in failed.head(most).iter_rows(named=True):
        case = f"{row['case_id']} #{row['trial']}" if trials else row["case_id"]
        first = (row["reasons"] or "").partition("; ")[0]
        cells = [row["group"], case, row["arm"], row["outcome"], _short(first), _short(row["request"] or "")]
        rows.append(cells if arms else [*cells[:2], *cells[3:]])
    columns = ["rung", "case", *(["arm"] if arms else []), "outcome", "first failed check", "request"]
    judged = strip["outcome_class"].drop_nulls().len()
    notes = [
        f"{len(rows)} of {failed.height} shown; {failed.height} of {judged} judged trials without success"
    ]
    return Table("Trials without success", columns, rows, notes)


# ---- where the numbers come from -----------------------------------------------------------------------------


def run_card(run: Run) -> Table:
    """The provenance of a run as a table; a notebook also keeps it as JSON, so that a report leads to its run."""
    card = run.card

    def arm(item: ArmCard | Envelope) -> str:
        return " + ".join(part for part in (item.driver, item.model, item.scaffold) if part)

    def listed(items: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {value}" for name, value in sorted(items.items())) or "none"

    folder = run.path.name if run.path is not None else "not saved"
    options = {name: value for name, value in card.options.items() if value not in ("", None, [])}
    counts = {name: getattr(card.counts, name) for name in ("asked", "judged", "excluded", "missing")}
    rows = [["stamp", card.stamp], ["commit", card.commit]]
    for suite in card.suites:
        about = ", ".join(part for part in (suite.version, suite.date, f"{suite.cases} cases") if part)
        rows.append(["suite", f"{suite.name} {suite.digest[:16]} ({about})"])
    rows += [["arm", f"{arm(each)}: {each.evidence}, version {each.version[:16]}"] for each in card.arms]
    rows.append(["trials", ", ".join(f"{count} {name}" for name, count in counts.items())])
    rows += [["rung reached", f"{arm(each)}: {each.reached or 'none'}"] for each in card.envelope]
    rows += [["seed", str(card.seed)], ["options", listed(options)], ["versions", listed(card.versions)]]
    rows += [["started", card.started_at], ["run folder", folder]]
    data = {
        "path": str(run.path.resolve()) if run.path is not None else "",
        "stamp": card.stamp,
        "commit": card.commit,
        "suites": [{"name": suite.name, "digest": suite.digest} for suite in card.suites],
        "counts": counts,
        "evidence": list(card.evidence),
        "parameters": {name: str(value) for name, value in options.items()},
        "versions": dict(card.versions),
        "started_at": card.started_at,
    }
    return Table("Run card", ["what", "value"], rows, data={RUN_MIME: data})


def banner(run: Run) -> Banner:
    """A plain, loud line when a run did not ask a model; empty for live evidence."""
    words = {"simulated": "simulated: no model was asked", "replayed": "a replay of recorded answers"}
    lines = [
        f"{arm.evidence.upper()}: driver {arm.driver} is {arm.banner or words[arm.evidence]}"
        for arm in run.card.arms
        if arm.evidence in words
    ]
    return Banner(". ".join(dict.fromkeys(lines)))


# ---- two arms on the same cases ------------------------------------------------------------------------------


def compare(found: Comparison) -> Table:
    """Two arms by rung, from a `compare.compare`: both rates, the paired difference with its interval, what changed."""

    def rate(value: float | None) -> str:
        return percent(value) if value is not None else "–"

    rows: list[Sequence[str]] = [
        [
            row["group"],
            str(row["cases"]),
            rate(row["rate_a"]),
            rate(row["rate_b"]),
            # that no case changed is a count; an interval from 0 to 0 would claim more
            "no change"
            if row["same"] == row["cases"]
            else f"{100 * row['difference']:+.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]",
            str(row["fixes"]),
            str(row["regressions"]),
            str(row["new_unsafe"]),
        ]
        for row in found.by_group().iter_rows(named=True)
    ]
    rates = [f">{found.a.name}", f">{found.b.name}"]
    columns = ["rung", ">cases", *rates, ">difference", ">more often", ">less often", ">new unsafe"]
    notes = [found.sentence, *(note for note in found.notes if note != found.mixed)]
    notes.append(
        f"rates are means over the paired cases; difference: {found.b.name} - {found.a.name} in points [95% interval, "
        f"{found.solved.estimator}]; more and less often: cases by how often {found.b.name} solves them"
    )
    return Table(f"{_mixed(found)}{found.claim}", columns, rows, notes)


def changes(found: Comparison, most: int = 40) -> Table:
    """The cases that became unsafe, worse or better, by name and with both rates; at most `most` of each kind."""
    rows: list[Sequence[str] | str] = []
    shown = 0
    kinds = (
        ("newly unsafe", found.new_unsafe),
        ("less often", found.regressions),
        ("more often", found.fixes),
    )
    for words, pairs in kinds:
        if pairs:
            rows.append(f"{words}: {len(pairs)}" + (f", {most} shown" if len(pairs) > most else ""))
        for pair in pairs[:most]:
            shown += 1
            rates = (f"{pair.n_a}/{pair.of_a}", f"{pair.n_b}/{pair.of_b}")
            rows.append([pair.group, pair.case_id, *rates, ", ".join(pair.unsafe_b)])
    columns = ["rung", "case", f">{found.a.name}", f">{found.b.name}", f"unsafe by {found.b.name}"]
    same = len(found.pairs) - len(found.fixes) - len(found.regressions)
    note = f"solved of judged trials; {same} of {len(found.pairs)} paired cases were solved equally often"
    return Table(f"{_mixed(found)}What changed from {found.a.name} to {found.b.name}", columns, rows, [note])


def unmatched(found: Comparison, most: int = 40) -> Table:
    """The cases that are in no number of a comparison, and why; at most `most`."""
    frame = found.unmatched()
    rows = [
        [row["group"], row["case_id"], row["judged_by"] or "neither", row["reason"], row["unsafe"]]
        for row in frame.head(most).iter_rows(named=True)
    ]
    columns = ["rung", "case", "judged for", "the other", "unsafe"]
    note = f"{len(rows)} of {frame.height} shown; they count neither for nor against anyone"
    return Table("Cases without a counterpart", columns, rows, [note if rows else "every case has one"])


def compare_many(found: Sequence[Comparison]) -> Table:
    """Several arms against one, from a `compare.compare_many`: differences, corrected p-values and verdicts."""
    from agentbench_lab.analysis.compare import p_value

    rows: list[Sequence[str]] = []
    for each in found:
        s = each.solved
        if s.difference is None or s.low is None or s.high is None or s.p is None:
            continue
        verdict = "not decisive" if not each.decisive else "better" if s.difference > 0 else "worse"
        difference = f"{100 * s.difference:+.1f} [{100 * s.low:+.1f}, {100 * s.high:+.1f}]"
        p = s.p if s.adjusted is None else s.adjusted
        rows.append(
            [
                each.b.name,
                str(s.cases),
                difference,
                p_value(p).removeprefix("p ").removeprefix("= "),
                s.test or "",
                verdict,
                str(len(each.new_unsafe)),
            ]
        )
    columns = ["arm", ">cases", ">difference", ">p", "test", "verdict", ">new unsafe"]
    base = found[0].a.name if found else "nothing"
    notes = [
        f"difference to {base} in points [95% interval]; p after Holm's correction for {_arms(len(rows))}"
    ]
    notes += dict.fromkeys(
        f"{each.b.name}: {note}" for each in found for note in each.notes if note != each.mixed
    )
    return Table(f"{_mixed(found[0]) if found else ''}Against {base}", columns, rows, notes)


def detect(frame: pl.DataFrame, delta: float) -> Table:
    """How many cases would show a difference of `delta`, by trials a case, from a `compare.detect`."""
    rows = [
        [f"{row[name]:,}" for name in ("trials", "cases", "trials_an_arm")]
        for row in frame.iter_rows(named=True)
    ]
    title = f"Cases that would show a true difference of {100 * delta:g} points (80% power, 95% level)"
    return Table(title, [">trials a case", ">cases", ">trials an arm"], rows, [])


def _arms(count: int) -> str:
    return f"{count} arm" if count == 1 else f"{count} arms"


def _mixed(found: Comparison) -> str:
    """What has to stand above a table when its commits are mixed."""
    return f"{found.mixed} " if found.mixed else ""
