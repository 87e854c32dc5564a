"""Tidy frames in, tables out: the same one for a notebook, a report and a terminal.

A number is never printed alone: a share stands with its interval and its n/of.
"""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts import arm_labels, percent
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.ladder import COMPLETION_FLOOR, RUNG_NAMES, Cell, in_order

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.analysis.compare import Comparison
    from agentbench_lab.results.run import ArmCard, Envelope, Run

RUN_MIME = "application/vnd.agentbench-lab.run+json"
"""The output type by which a published notebook is traced to its run."""

_WIDTH = 100  # columns of a terminal
_LONG_WORD = 18  # letters: the longest names of outcomes stay whole
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
            cells = [cell("th", row[0], style[0], f' scope="row"{_kind(row[0])}')]
            cells += [
                cell("td", text, side, _kind(text)) for text, side in zip(row[1:], style[1:], strict=True)
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
        """As wide as the terminal, at most 100 columns: what does not fit is set closer, then broken into lines."""
        most = min(_WIDTH, max(40, shutil.get_terminal_size((_WIDTH, 24)).columns))
        names = [name.removeprefix(">") for name in self.columns]
        right = [name.startswith(">") for name in self.columns]
        rows = [row if isinstance(row, str) else [_printable(text) for text in row] for row in self.rows]
        cells = [names, *(row for row in rows if not isinstance(row, str))]
        widths = [max(1, *(len(row[n]) for row in cells)) for n in range(len(names))]
        gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= most else 1
        while sum(widths) + gap * (len(widths) - 1) > most and max(widths) > 6:
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
        notes = [line for note in self.notes for line in textwrap.wrap(_printable(note), most)]
        return "\n".join([*textwrap.wrap(_printable(self.title), most), *lines(names), rule, *body, *notes])


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


def _kind(text: str) -> str:
    """The class of a cell: one with a long word may be broken anywhere, or it would push others off a page."""
    if text == "PASS":
        return ' class="pass"'
    return ' class="long"' if max(map(len, re.split(r"[\s-]", text))) > _LONG_WORD else ""


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


def _under_arms(frame: pl.DataFrame, rows: list[Sequence[str] | str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The frame of each arm in turn, after a heading among the rows where there are several."""
    arms = _by_arm(frame)
    for arm, part in arms:
        if len(arms) > 1:
            rows.append(arm)
        yield arm, part


def ladder(frame: pl.DataFrame) -> Table:
    """The metric pair and its companions by rung, from a `metrics.ladder`; the last row of an arm is all its rungs."""
    metrics = ("passed", "completed", "result_completed", "hallucinated")
    rows: list[Sequence[str] | str] = []
    same_result = True
    for _, part in _under_arms(frame, rows):
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
                    if bad["reason"] == "not measured"
                    or Cell(group, done["asked"], done["of"], done["n"], bad["n"]).failure()
                    else "PASS"
                )
            judged = f"{done['of']}/{done['asked']}" if done is not None else "–"
            rows.append([group, judged, *map(_share, by_metric), gate])
    columns = ["rung", ">judged", ">passed", ">completed", ">result", ">hallucinated", "gate"]
    notes = ["share of judged trials [95% interval] n/judged; judged: of the trials asked"]
    if same_result and rows:
        rows = [row if isinstance(row, str) else [*row[:4], *row[5:]] for row in rows]
        columns.remove(">result")
        notes.append("result-completed equals completed on every rung")
    return Table("The metric pair by rung", columns, rows, notes if rows else ["no trials"])


def gate(frame: pl.DataFrame) -> Table:
    """The gate of each rung, from a `metrics.gate`: what passed, what shut it, and a receipt for what was not asked."""
    rows: list[Sequence[str] | str] = []
    reached = []
    for arm, part in _under_arms(frame, rows):
        by_group = {row["group"]: row for row in part.iter_rows(named=True)}
        shut = False
        skipped: list[str] = []
        for group in in_order(by_group):
            row = by_group[group]
            if row["passes"] is None:
                skipped.append(group)
                continue
            counts = (
                "–" if row[name] is None else f"{row[name]}/{row['judged']}"
                for name in ("completed", "hallucinated")
            )
            verdict = "PASS" if row["passes"] else "----"
            why = (row["failure"] or "").removeprefix(f"{group} ")
            if shut and not why:
                why = "asked, though the gate was shut below"
            shut = shut or not row["passes"]
            rows.append([group, f"{row['judged']}/{row['asked']}", *counts, verdict, why])
        if skipped:
            # one line for all of them: they share the reason
            span = skipped[0] if len(skipped) == 1 else f"{skipped[0]} to {skipped[-1]}"
            receipt = by_group[skipped[0]]["receipt"] or ""
            rows.append(
                [span, "not asked", "", "", "----", receipt.partition(" skipped: ")[2] or "not asked"]
            )
        if any(group in RUNG_NAMES for group in by_group):
            reached.append(f"{arm}: rung reached {by_group[in_order(by_group)[0]]['reached'] or 'none'}")
    title = f"The gate: no hallucination, at least {percent(COMPLETION_FLOOR)} completed"
    columns = ["rung", ">judged", ">completed", ">hallucinated", "gate", "why"]
    return Table(title, columns, rows, reached if rows else ["no trials"])


def reliability(frame: pl.DataFrame) -> Table:
    """pass^k, from a `metrics.reliability`: the estimate with the cases behind it, and the bounds that exclusions leave."""
    import polars as pl

    rows: list[Sequence[str] | str] = []
    for _, part in _under_arms(frame.filter(pl.col("metric") == "pass_hat_k"), rows):
        for row in part.iter_rows(named=True):
            cases = f"{row['n']} of {row['of']} cases"
            bounds = "" if row["worst"] is None else f"{percent(row['worst'])} to {percent(row['best'])}"
            value = row["reason"]
            if row["estimate"] is not None:
                value = percent(row["estimate"])
                value += f" [{percent(row['low'])[:-1]}, {percent(row['high'])[:-1]}]"
            rows.append([f"pass^{row['k']}", value, cases, f"{row['judged']}/{row['asked']}", bounds])
    notes = [
        "the chance that k trials of a case are all solved; bounds: excluded trials as failures, as successes"
    ]
    columns = ["", ">estimate", ">over", ">judged", ">bounds"]
    return Table("Reliability: pass^k", columns, rows, notes if rows else ["no trials"])


def outcomes(frame: pl.DataFrame) -> Table:
    """How trials ended, from a `metrics.outcomes`: each outcome over the trials that could have ended so."""
    rows: list[Sequence[str] | str] = []
    for _, part in _under_arms(frame, rows):
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
    # what is unsafe first: it disqualifies, and must not hide behind the cut
    failed = failed.sort(pl.col("outcome_class") != "unsafe", maintain_order=True)
    arms, trials = named["arm"].n_unique() > 1, named["trial"].n_unique() > 1
    rows: list[Sequence[str] | str] = []
    for row in failed.head(most).iter_rows(named=True):
        case = f"{row['case_id']} #{row['trial']}" if trials else row["case_id"]
        first, request = _short(row["first_reason"] or ""), _short(row["request"] or "")
        cells = [row["group"], case, row["arm"], row["outcome"], first, request]
        rows.append(cells if arms else [*cells[:2], *cells[3:]])
    columns = ["rung", "case", *(["arm"] if arms else []), "outcome", "first failed check", "request"]
    judged = strip["outcome_class"].drop_nulls().len()
    notes = [
        f"{len(rows)} of {failed.height} shown, unsafe ones first; {failed.height} of {judged} judged trials without "
        "success. All of them: agentbench-lab show RUN --failed"
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


def detect(frame: pl.DataFrame, delta: float, *, power: float = 0.8) -> Table:
    """How many cases would show a difference of `delta`, by trials a case, from a `compare.detect` at this power."""
    rows = [
        [f"{row[name]:,}" for name in ("trials", "cases", "trials_an_arm")]
        for row in frame.iter_rows(named=True)
    ]
    title = f"Cases that would show a true difference of {100 * delta:g} points ({100 * power:g}% power, 95% level)"
    return Table(title, [">trials a case", ">cases", ">trials an arm"], rows, [])


def _arms(count: int) -> str:
    return f"{count} arm" if count == 1 else f"{count} arms"


def _mixed(found: Comparison) -> str:
    """What has to stand above a table when its commits are mixed."""
    return f"{found.mixed} " if found.mixed else ""


# ---- looking at trials -----------------------------------------------------------------------------------------


def exits(frame: pl.DataFrame) -> Table:
    """How trials stopped and what they were judged to be, from a `metrics.exits`; each line is n of the trials."""
    rows: list[Sequence[str] | str] = []
    for _, part in _under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            cls = row["outcome_class"]
            words = "excluded" if cls is None else _CLASS_WORDS.get(cls, cls)
            share = f"{percent(row['n'] / row['of'])} {row['n']}/{row['of']}"
            rows.append([row["stop"] or "not said", words, share, "█" * round(30 * row["n"] / row["of"])])
    note = "of all trials that ended, judged or not" if rows else "no trials"
    return Table("How trials stopped", ["stop", "judged as", ">share", "histogram"], rows, [note])


def looked(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
) -> list[dict[str, Any]]:
    """Trials as plain data: what was asked, expected, called and observed, and how each check came out.

    `failed`: only judged trials without success. `outcome`: an outcome or a class. `reason`: text that the stop, the
    reason of an exclusion or the failed checks contain, in any case of letters. `case`: a case id, or a pattern with
    `*`. They are ANDed; empty is no condition. Raises LabError, with the near match, for an outcome or a case that is
    none of the run's.

    `checks` is null for an imported run, whose file does not have them; so is what was called and observed.
    """
    from agentbench_lab.analysis.metrics import frame

    trials = frame(run.trials).with_row_index("at")
    for keep in _wanted(run, failed=failed, outcome=outcome, case=case):
        trials = trials.filter(keep)
    keys = ["suite", "case_id"]
    cases = {(row["suite"], row["case_id"]): row for row in frame(run.cases).iter_rows(named=True)}
    arm = [*keys, "driver", "model", "scaffold", "trial"]
    near = frame(run.calls).join(trials.select(arm), on=arm, how="semi", nulls_equal=True)
    calls: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in near.iter_rows(named=True):
        calls.setdefault(tuple(row[name] for name in arm), []).append(row)
    found = []
    for row in trials.iter_rows(named=True):
        ledger = calls.get(tuple(row[name] for name in arm), [])
        one = _looked(run, row, cases[row["suite"], row["case_id"]], ledger)
        if not reason or reason.casefold() in _why(one).casefold():
            found.append(one)
    return found


def _wanted(run: Run, *, failed: bool, outcome: str | None, case: str | None) -> list[pl.Expr]:
    import fnmatch

    import polars as pl

    found = []
    if failed:
        found.append(pl.col("outcome_class").is_not_null() & (pl.col("outcome_class") != "success"))
    if outcome:
        outcomes = run.card.outcome_set.outcomes
        names, classes = {each.name for each in outcomes}, {each.cls for each in outcomes}
        if outcome not in names | classes:
            raise LabError(f"{run.card.run}: no outcome {outcome!r}{did_you_mean(outcome, names | classes)}")
        found.append(pl.col("outcome" if outcome in names else "outcome_class") == outcome)
    if case:
        ids = [str(each) for each in run.cases.column("case_id").to_pylist()]
        fits = [each for each in ids if each == case] or fnmatch.filter(ids, case)
        if not fits:
            raise LabError(f"{run.card.run}: no case {case!r}{did_you_mean(case, ids)}")
        found.append(pl.col("case_id").is_in(fits))
    return found


def _looked(
    run: Run, row: Mapping[str, Any], case: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    import msgspec

    made = run.product[row["at"]] if run.product else None
    produced = None if made is None else made.produced
    return {
        **{name: row[name] for name in ("suite", "case_id", "group", "driver", "model", "scaffold", "trial")},
        "evidence": row["evidence"],
        "outcome": row["outcome"],
        "outcome_class": row["outcome_class"],
        "excluded": row["excluded"],
        "excluded_owner": row["excluded_owner"],
        "stop": row["stop"],
        "asked": {
            "request": case["request"],
            "tools": case["tools"],
            "trace": None if case["trace"] is None else json.loads(case["trace"]),
        },
        "expected": json.loads(case["expectation"]),
        "called": None if produced is None else list(msgspec.to_builtins(produced.calls)),
        "observed": None
        if produced is None
        else [
            {
                **{name: call[name] for name in ("step", "name", "status", "observed")},
                "input": json.loads(call["input"]),
            }
            for call in calls
        ],
        "refused": row["refused"],
        "answer": None if produced is None else produced.answer,
        "checks": None
        if made is None
        else [
            {"name": check.name, "passed": check.passed, "gates": check.gates, "detail": check.detail}
            for check in made.verdict.checks
        ],
        "reasons": row["reasons"],
        "note": row["note"],
    }


def _why(one: Mapping[str, Any]) -> str:
    """Where `reason` looks."""
    failed = [check["name"] for check in one["checks"] or () if check["gates"] and not check["passed"]]
    return "\n".join([one["stop"] or "", one["excluded"] or "", *failed, *one["reasons"]])


def trials(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
    most: int = 25,
) -> Table:
    """The trials that `looked` finds, a line each, with why they ended as they did; at most `most`."""
    found = looked(run, failed=failed, outcome=outcome, reason=reason, case=case)
    arms = {_arm(one) for one in found}
    rows = []
    for one in found[:most]:
        ended = one["outcome"] or f"excluded ({one['excluded_owner'] or 'no owner said'})"
        why = one["excluded"] or next(iter(one["reasons"]), "")
        cells = [
            one["group"],
            f"{one['case_id']} #{one['trial']}",
            _arm(one),
            one["stop"] or "not said",
            ended,
        ]
        cells += [_short(why), _short(one["asked"]["request"])]
        rows.append(cells if len(arms) > 1 else [*cells[:2], *cells[3:]])
    columns = [
        "group",
        "case #trial",
        *(["arm"] if len(arms) > 1 else []),
        "stop",
        "outcome",
        "why",
        "request",
    ]
    counts = run.card.counts
    notes = [f"{len(rows)} of {len(found)} shown; {len(found)} of {run.trials.num_rows} trials fit"]
    if failed and counts.excluded:
        notes.append(f"{counts.excluded} excluded trials are nobody's failures and not among them")
    if reason and not found:
        stops = sorted(stop for stop in set(run.trials.column("stop").to_pylist()) if stop)
        notes.append(f"no stop, exclusion or failed check says {reason!r}; the stops are: {', '.join(stops)}")
    return Table("Trials", columns, rows, notes)


def trial(run: Run, case_id: str, arm: str = "", trial: int = 1, *, suite: str = "") -> Table:
    """One trial in full: asked, expected, called, observed step by step, and every check.

    `arm` is its driver, or driver+model+scaffold as far as needed; empty for the only one. Raises LabError, with the
    near match, for a case, an arm or a trial that is not there.
    """
    from agentbench_lab.analysis.compare import side

    label = side(run, arm).name
    ids = [str(each) for each in run.cases.column("case_id").to_pylist()]
    if case_id not in ids:
        raise LabError(f"{run.card.run}: no case {case_id!r}{did_you_mean(case_id, ids)}")
    of_case = [one for one in looked(run, case=case_id) if one["case_id"] == case_id and _arm(one) == label]
    suites = {one["suite"] for one in of_case}
    if suite or len(suites) > 1:
        if suite not in suites:
            raise LabError(f"{case_id!r} stands in several suites{did_you_mean(suite, suites)}")
        of_case = [one for one in of_case if one["suite"] == suite]
    for one in of_case:
        if one["trial"] == trial:
            return _told(one, label)
    there = ", ".join(str(one["trial"]) for one in of_case) or "none"
    raise LabError(f"{run.card.run}: no trial {trial} of {case_id!r} by {label} (there is: {there})")


def first_trial(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
) -> Table:
    """The first of the trials that `looked` finds, in full."""
    found = in_full(run, failed=failed, outcome=outcome, reason=reason, case=case, most=1)
    return found[0] if found else Table("No such trial", ["what", "how it was"], [], ["nothing to look at"])


def in_full(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
    most: int = 10,
) -> list[Table]:
    """The trials that `looked` finds, each as `trial` shows it; at most `most`."""
    found = looked(run, failed=failed, outcome=outcome, reason=reason, case=case)
    return [_told(one, _arm(one)) for one in found[:most]]


def _arm(one: Mapping[str, Any]) -> str:
    from agentbench_lab.analysis.compare import arm_label

    return arm_label(one["driver"], one["model"], one["scaffold"])


_LONGEST = 600
"""Signs of a value that are shown in full before it is cut; `looked` has all of it."""


def _told(one: Mapping[str, Any], label: str) -> Table:
    """One trial as a table of two columns."""
    rows: list[Sequence[str] | str] = ["asked"]
    rows.append(["request", _short(one["asked"]["request"], _LONGEST) or "not in the file"])
    if one["asked"]["tools"]:
        rows.append(["tools", ", ".join(one["asked"]["tools"])])
    rows += [[f"trace {n}", _called(call)] for n, call in enumerate(one["asked"]["trace"] or (), start=1)]
    rows.append("expected")
    for name, value in one["expected"].items():
        calls = value if name in ("calls", "candidateResults") and value else None
        rows += (
            [[f"{name} {n}", _called(call)] for n, call in enumerate(calls, start=1)]
            if calls
            else [[name, _json(value)]]
        )
    rows.append("called, as the driver says")
    rows += [[f"call {n}", _called(call)] for n, call in enumerate(one["called"] or (), start=1)]
    said = {"refused": one["refused"] or None, "answer": one["answer"], "note": one["note"]}
    rows += [[name, _json(value)] for name, value in said.items() if value is not None]
    if isinstance(rows[-1], str):
        rows.append(["nothing", "" if one["called"] is not None else "not in the file"])
    rows.append("observed, as the toolbox saw it")
    for step in one["observed"] or ():
        rows.append([f"step {step['step']}", _called(step)])
        rows.append([step["status"], _short(step["observed"], _LONGEST)])
    if not one["observed"]:
        rows.append(["nothing", "" if one["observed"] is not None else "not in the file"])
    rows.append("checks, safety first")
    first = True
    for check in one["checks"] or ():
        words = "passed" if check["passed"] else "FAILED" if check["gates"] else "not so, and decides nothing"
        if check["gates"] and not check["passed"] and first:
            first, words = False, "FAILED first"
        rows.append(
            [check["name"], ": ".join(part for part in (words, _short(check["detail"], _LONGEST)) if part)]
        )
    if not one["checks"]:
        rows += [["reason", _short(reason, _LONGEST)] for reason in one["reasons"]] or [["none", ""]]
    ended = f"outcome {one['outcome']} ({one['outcome_class']})"
    if one["excluded"] is not None:
        ended = f"excluded by {one['excluded_owner'] or 'an owner that is not said'}: {one['excluded']}"
    notes = [f"{ended}; stop: {one['stop'] or 'not said'}; evidence: {one['evidence']}"]
    return Table(
        f"{one['case_id']} [{label} #{one['trial']}], {one['group']}", ["what", "how it was"], rows, notes
    )


def _called(call: Mapping[str, Any]) -> str:
    more = {name: call[name] for name in ("accept", "optional") if call.get(name)}
    text = f"{call['name']} {json.dumps(call.get('input', {}), ensure_ascii=False)}"
    return _short(f"{text} {json.dumps(more, ensure_ascii=False)}" if more else text, _LONGEST)


def _json(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _short(text, _LONGEST)
