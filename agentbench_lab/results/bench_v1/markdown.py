"""A file, and a comparison of files, as Markdown. Cells are not escaped: a bar in a reason breaks its row."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from agentbench_lab.outcomes import Outcome, Taxonomy
from agentbench_lab.results.bench_v1.model import (
    INT64_MAX,
    INT64_MIN,
    Summary,
    Trial,
    grouped,
    moment,
    summarize,
)
from agentbench_lab.results.bench_v1.writing import compact

if TYPE_CHECKING:
    from agentbench_lab.results.bench_v1.file import BenchFile, Column

NONE = "—"
_NUMBERS = "Steps | Tool calls | Policy denials | Model calls | Tokens in/out | Cost (USD) | Wall"
_NUMBERS_ALIGNED = "---:|---:|---:|---:|---:|---:|---:|"
_RUNS = re.compile(rb"[0-9]+|[^0-9]")


def file_markdown(file: BenchFile) -> str:
    """A file: its provenance, a section for each mode and model, its notes."""
    at = f" at commit {file.commit}" if file.commit else ", no commit recorded"
    options = _options(file.options)
    lines = [
        f"# Results: {file.taxonomy.name}",
        "",
        f"Started {moment(file.started_at).utc()}{at}." + (f" Options: {options}." if options else ""),
        "",
    ]
    for (mode, model), trials in grouped(file.trials or ()).items():
        lines += _section(file.taxonomy, summarize(file.taxonomy, mode, model, trials), trials)
    for note in file.notes:
        lines += [note, ""]
    return "\n".join(lines)


def _section(taxonomy: Taxonomy, s: Summary, trials: Sequence[Trial]) -> list[str]:
    excluded = f", {s.excluded} excluded and in no denominator" if s.excluded else ""
    disqualified = f" **Disqualified: {s.unsafe} unsafe outcome(s).**" if s.disqualified else ""
    return [
        f"## {name(s.mode, s.model)}",
        "",
        f"{s.trials} trials over {s.scenarios} scenarios, {s.judged} judged{excluded}.{disqualified}",
        "",
        "| Outcome | Class | Trials | Denominator |",
        "|---|---|---:|---|",
        *(
            f"| {_label(outcome)} | {c.cls} | {c.n} | {c.of} "
            + (f"trials expecting {c.over} |" if c.over else "judged trials |")
            for outcome, c in zip(taxonomy.outcomes, s.counts, strict=True)
        ),
        f"| Unsafe, any | unsafe | {s.unsafe} | {s.judged} judged trials |",
        "",
        f"- policy denials: {s.policy_denials}",
        *(f"- {key}: {s.totals[key]}" for key in sorted(s.totals)),
        f"- model calls: {s.model_calls}, tokens {s.input_tokens} in / {s.output_tokens} out",
        f"- cost: ${_money(s.cost_micros)}",
        f"- mean steps per judged trial: {s.mean_steps:.1f}",
        f"- wall time: {duration(float(s.wall_ns))}",
        "",
        f"| Scenario | Repeat | Reached | Outcome | {_NUMBERS} |",
        f"|---|---:|---|---|{_NUMBERS_ALIGNED}",
        *(
            f"| {t.scenario} | {t.repeat} | {t.reached or NONE} | {t.outcome or _excluded(t)} | {t.steps} | {t.tool_calls} | "
            f"{t.policy_denials} | {t.model_calls} | {t.input_tokens}/{t.output_tokens} | {_money(t.cost_micros)} | "
            f"{duration(float(t.wall_ns))} |"
            for t in trials
        ),
        "",
    ]


def comparison(columns: Sequence[Column], commits: Sequence[str], link_prefix: str) -> str:
    """Columns of one taxonomy side by side. `commits` are the names of their commits, in order."""
    taxonomy = columns[0].file.taxonomy
    by_file = {id(c.file): grouped(c.file.trials or ()) for c in columns}
    trials = [by_file[id(c.file)].get((c.mode, c.model), []) for c in columns]
    cells = [_by_scenario(rows) for rows in trials]
    headers = [f"{c.name} @ {commit_name(c.file.commit)}" for c in columns]
    scenarios = sorted(dict.fromkeys(scenario for cell in cells for scenario in cell), key=natural)
    lines: list[str] = []
    if len(commits) > 1:
        lines += [
            f"**These columns come from {len(commits)} commits ({', '.join(commits)}) and are not comparable as like "
            "for like.** Each column names its commit.",
            "",
        ]
    lines += [f"{_denominators(taxonomy)} A mode with any unsafe outcome is disqualified.", ""]
    lines += _row("Column", "Commit", *map(_label, taxonomy.outcomes), *_OVERVIEW)
    lines += ["|" + "---|" * (2 + len(taxonomy.outcomes) + len(_OVERVIEW))]
    for column, rows in zip(columns, trials, strict=True):
        lines += _row(*_overview(column, summarize(taxonomy, column.mode, column.model, rows), link_prefix))
    lines += ["", "Per scenario, what each repetition reached and its outcome:", ""]
    lines += _row("Scenario", *headers)
    lines += ["|" + "---|" * (1 + len(columns))]
    for scenario in scenarios:
        lines += _row(scenario, *(_matrix_cell(cell.get(scenario, ())) for cell in cells))
    lines += ["", "Means across repetitions:", ""]
    lines += [
        f"| Scenario | Column | Outcome | Reached | {_NUMBERS} |",
        f"|---|---|---|---|{_NUMBERS_ALIGNED}",
    ]
    for scenario in scenarios:
        for header, cell in zip(headers, cells, strict=True):
            if scenario in cell:
                lines += _row(scenario, header, *_mean_cells(taxonomy, cell[scenario]))
    lines += ["", "Provenance:", ""]
    for column in columns:
        lines += _provenance(column)
    return "\n".join([*lines, ""])


_OVERVIEW = ("Unsafe", "Excluded", "Model calls", "Cost (USD)", "File")


def _row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def _overview(column: Column, s: Summary, link_prefix: str) -> Iterable[str]:
    repeats = f", {s.repeats} repeats" if s.repeats > 1 else ""
    source = column.file.source
    return (
        column.name + repeats + (" (disqualified)" if s.disqualified else ""),
        commit_name(column.file.commit),
        *(f"{count.n}/{count.of}" for count in s.counts),
        f"{s.unsafe}/{s.judged}",
        f"{s.excluded}/{s.trials}",
        str(s.model_calls),
        _money(s.cost_micros),
        f"[{source}]({link_prefix}{source})" if source and link_prefix else source or NONE,
    )


def _denominators(taxonomy: Taxonomy) -> str:
    labels: dict[str, list[str]] = defaultdict(list)
    for outcome in taxonomy.outcomes:
        labels[outcome.over].append(_label(outcome))
    parts = (
        f"{', '.join(some)} over " + (f"trials expecting {over}" if over else "every judged trial")
        for over, some in labels.items()
    )
    return (
        f"Each cell is a count over its denominator: {'; '.join(parts)}. Outcomes are never added together."
    )


def _by_scenario(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = defaultdict(list)
    for t in trials:
        found[t.scenario].append(t)
    for group in found.values():
        group.sort(key=lambda t: t.repeat)
    return dict(found)


def _matrix_cell(group: Sequence[Trial]) -> str:
    if not group:
        return NONE
    cells = [f"{t.reached or NONE} ({t.outcome})" if t.outcome else _excluded(t) for t in group]
    if len(set(cells)) > 1:
        return f"mixed: {'<br>'.join(cells)}"
    return cells[0] if len(cells) == 1 else f"{cells[0]} ×{len(cells)}"


def _mean_cells(taxonomy: Taxonomy, group: Sequence[Trial]) -> Iterable[str]:
    judged = [t for t in group if t.outcome]
    if not judged:
        return (_excluded(group[0]), *[NONE] * 8)
    excluded = f" ({len(group) - len(judged)} excluded)" if len(judged) < len(group) else ""
    return (
        _outcomes(taxonomy, [t.outcome for t in judged]) + excluded,
        _reached([t.reached or NONE for t in judged]),
        number(_mean([t.steps for t in judged])),
        number(_mean([t.tool_calls for t in judged])),
        number(_mean([t.policy_denials for t in judged])),
        number(_mean([t.model_calls for t in judged])),
        f"{number(_mean([t.input_tokens for t in judged]))}/{number(_mean([t.output_tokens for t in judged]))}",
        f"{_mean([t.cost_micros for t in judged]) / 1e6:.4f}",
        duration(_mean([t.wall_ns for t in judged])),
    )


def _outcomes(taxonomy: Taxonomy, names: Sequence[str]) -> str:
    counts = Counter(names)
    if len(counts) == 1:
        return f"`{names[0]}`"
    return "mixed: " + ", ".join(f"`{o.name}`×{counts[o.name]}" for o in taxonomy.outcomes if counts[o.name])


def _reached(states: Sequence[str]) -> str:
    counts = Counter(states)
    if len(counts) == 1:
        return states[0]
    return "mixed: " + ", ".join(f"{state}×{counts[state]}" for state in sorted(counts))


def _provenance(column: Column) -> Iterable[str]:
    file = column.file
    source = f", file {file.source}" if file.source else ""
    options = _options(file.options)
    return [
        f"- **{column.name}**: commit {commit_name(file.commit)}, started {moment(file.started_at).utc()}{source}"
        + (f"; {options}." if options else "."),
        *(f"  - {note}" for note in file.notes),
    ]


def name(mode: str, model: str) -> str:
    """The mode, and the model where there is one."""
    return f"{mode} {model}" if model else mode


def commit_name(commit: str) -> str:
    """The commit, or the words for none."""
    return commit or "no commit recorded"


def natural(text: str) -> list[tuple[int, int, bytes]]:
    """A sort key: runs of digits as numbers, every other byte by itself, so that S2 comes before S10 and S4 before S4M."""
    key = []
    for run in _RUNS.findall(text.encode("utf-8", "surrogatepass")):
        digits = run.lstrip(b"0") if run.isdigit() else b""
        key.append((ord("0") if run.isdigit() else run[0], len(digits), digits))
    return key


def number(value: float) -> str:
    """A mean: whole where it is whole, else with one decimal."""
    return str(int(value)) if value == _int64(value) else f"{value:.1f}"


def duration(nanoseconds: float) -> str:
    """A duration to the millisecond below one second, else to the second: 6ms, 1m19s, 1h0m0s."""
    exact = _int64(nanoseconds)
    rounded = _rounded(exact, 1_000_000 if exact < 1_000_000_000 else 1_000_000_000)
    sign, size = ("-" if rounded < 0 else ""), abs(rounded)
    if size < 1_000_000_000:
        return f"{sign}{size // 1_000_000}ms" if size else "0s"
    seconds, rest = divmod(size, 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    hours = f"{minutes // 60}h" if minutes >= 60 else ""
    return f"{sign}{hours}" + (f"{minutes % 60}m" if minutes else "") + f"{seconds}{fraction}s"


def _rounded(value: int, unit: int) -> int:
    """To the nearest multiple, halves away from zero; the 64-bit limit where that is beyond it."""
    nearest = (abs(value) + unit // 2) // unit * unit
    return max(INT64_MIN, -nearest) if value < 0 else min(INT64_MAX, nearest)


def _int64(value: float) -> int:
    """Truncated to a 64-bit integer; what does not fit is the lowest one, as on the machines the format comes from."""
    whole = int(value)
    return whole if INT64_MIN <= whole <= INT64_MAX else INT64_MIN


def _mean(values: Sequence[int]) -> float:
    total = float(sum(values))
    if total > 2**53:  # then the sum of floats, one by one, is another number
        total = 0.0
        for value in values:
            total += value
    return total / len(values)


def _money(micros: int) -> str:
    return f"{micros / 1e6:.4f}"


def _excluded(t: Trial) -> str:
    return f"_excluded: {t.excluded}_"


def _label(outcome: Outcome) -> str:
    return outcome.label or outcome.name


def _options(options: Mapping[str, Raw]) -> str:
    return ", ".join(f"{key}={compact(options[key])}" for key in sorted(options))
