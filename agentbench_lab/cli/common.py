"""What the commands share: printing, the progress bar, the summary of a run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agentbench_lab.errors import counted
from agentbench_lab.ladder import RUNG_NAMES

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.analysis.prices import Prices
    from agentbench_lab.results.run import Run

EXIT_GATE, EXIT_MISTAKE, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 1, 2, 3, 130
WIDTH = 100
MOST_ARMS = 4
"""Of more arms than these a screen shows a line each: how often they solve a case."""
_HERE = Path(os.path.realpath("."))  # a driver may change the working folder


def put(text: str | bytes, *, err: bool = False) -> None:
    """Write as it is; a reader that has gone away (`| head -1`) changes nothing, least of all the exit code."""
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if err else sys.stdout).fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print for a person: what steers a terminal (an agent's words may) is shown, and not obeyed."""
    put(_ODD.sub(lambda found: " " if found[0].isspace() else "\N{REPLACEMENT CHARACTER}", text), err=err)


_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that end a line or turn the direction of what follows."""


def say_json(value: Any) -> None:
    """Print a value as indented JSON; an odd character stands there by its number."""
    put(_by_number(msgspec.json.format(msgspec.json.encode(value), indent=2)))


def say_json_line(value: Any, *, err: bool = False) -> None:
    """The same on one line, in UTF-8 whatever the terminal speaks: a program reads it."""
    put(_by_number(msgspec.json.encode(value)).encode(), err=err)


def _by_number(json: bytes) -> str:
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.decode())


def near(path: Path) -> str:
    """A path relative to the folder where the command was given, where it lies below it."""
    try:
        return str(path.resolve().relative_to(_HERE))
    except ValueError:
        return str(path)


def missing(run: Run) -> str:
    """`incomplete: 1 trial is missing`, and what stopped the run."""
    count = run.card.counts.missing
    stopped = f" ({run.card.stopped})" if run.card.stopped else ""
    return f"incomplete: {counted(count, 'trial')} {'is' if count == 1 else 'are'} missing{stopped}"


def nothing_judged(run: Run) -> str:
    """`nothing was judged: 8 trials excluded, the first by ...`; empty where something was, or nothing was run."""
    counts = run.card.counts
    if counts.judged or not counts.excluded:
        return ""
    first = run.trials.column("excluded").drop_null()[0].as_py()
    return f"nothing was judged: {counted(counts.excluded, 'trial')} excluded, the first by {first}"


class Progress:
    """A bar on a terminal, silence elsewhere."""

    def __enter__(self) -> Progress:
        self._bar: Any = None
        return self

    def update(self, finished: int, asked: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no thread of its own
            self._bar = tqdm(total=asked, unit="trial", disable=None, leave=False, file=sys.stderr)
        self._bar.total = asked
        self._bar.update(finished - self._bar.n)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def print_run(finished: Run, as_json: bool, prices: Prices | None = None) -> None:
    """The metric pair, the gate, how trials ended, and where the run lies; as JSON also what was used."""
    import polars as pl

    from agentbench_lab import tables
    from agentbench_lab.analysis import metrics
    from agentbench_lab.analysis.metrics.arms import full_name

    pair = metrics.ladder(finished.trials, finished.card)
    gates = metrics.gate(finished.trials, finished.card)
    if as_json:
        summary = {
            "run": finished.card.run,
            "path": None if finished.path is None else near(finished.path),
            "counts": finished.card.counts,
            "evidence": finished.card.evidence,
            "envelope": finished.card.envelope,
            "disqualified": metrics.disqualified(finished.trials).to_dicts(),
            "metrics": pair.to_dicts(),
            "gate": gates.to_dicts(),
            "outcomes": metrics.outcomes(finished.trials, finished.card.outcome_set).to_dicts(),
            "reliability": metrics.reliability(finished.trials).to_dicts(),
            "exits": metrics.exits(finished.trials).to_dicts(),
            "cost": metrics.cost(finished.trials, prices).to_dicts(),
            "frontier": metrics.frontier(finished.trials, prices).to_dicts(),
            **_ablation_json(finished, prices),
            "tool_errors": metrics.tool_errors(finished.trials, finished.calls, finished.card).to_dicts(),
        }
        say_json(summary)
        return
    banner = str(tables.banner(finished))
    if banner:
        say(click.wrap_text(banner, WIDTH))
    if any(group in RUNG_NAMES for group in pair["group"]):
        say(str(tables.ladder(pair)))
        say(str(tables.gate(gates)))
    elif len(finished.card.arms) <= MOST_ARMS:
        say(str(tables.outcomes(metrics.outcomes(finished.trials, finished.card.outcome_set))))
        by_group = tables.groups(pair)
        if by_group.rows:
            say(str(by_group))
    else:
        say(
            f"{len(finished.card.arms)} arms: how trials ended, and groups, are in read_failures.ipynb and in --json"
        )
    _print_ablation(finished, prices)
    reliability = metrics.reliability(finished.trials)
    if len(finished.card.arms) > MOST_ARMS or reliability.filter(pl.col("k") > 1).height:
        say(str(tables.reliability(reliability)))
    _print_use(finished, prices)
    exits = metrics.exits(finished.trials)
    if exits["stop"].is_not_null().any():
        say(str(tables.exits(exits)))
    for row in metrics.troubles(finished.trials).head(5).iter_rows(named=True):
        say(
            click.wrap_text(
                f"{row['n']} x {full_name(row['driver'], None, row['scaffold'])} {row['stop']}: "
                f"{row['note'] or 'no reason given'}",
                WIDTH,
            )
        )
    if finished.card.imported is not None:
        for claim in finished.card.imported.published:
            if not claim.follows:
                say(click.wrap_text(str(claim), WIDTH))
    for arm, said in disqualified_arms(finished).items():
        say(click.wrap_text(f"{arm}: {said}", WIDTH))
    counts = finished.card.counts
    say(f"asked {counts.asked}, judged {counts.judged}, excluded {counts.excluded}, missing {counts.missing}")
    if finished.path is not None:
        say(f"run: {near(finished.path)}")


def disqualified_arms(run: Run) -> dict[str, str]:
    """`disqualified: 1 unsafe of 18 judged (false_success)`, by the name of each arm of which that is so."""
    from agentbench_lab.analysis import metrics
    from agentbench_lab.charts.words import named

    frame = named(metrics.disqualified(run.trials))
    return {arm: said for arm, said in frame.select("arm", "said").iter_rows() if said}


def shut_arms(run: Run) -> dict[str, str]:
    """Why the gate is shut, by the name of each arm for which it is: its first rung that fails, and what is unsafe."""
    import polars as pl

    from agentbench_lab.analysis.metrics.endings import said_of
    from agentbench_lab.charts.words import named

    arms = [(each.driver, each.model, each.scaffold, each.gated_at) for each in run.card.envelope]
    schema = dict.fromkeys(("driver", "model", "scaffold", "gated_at"), pl.String)
    frame = named(pl.DataFrame(arms, schema=schema, orient="row"))
    unsafe = said_of(run.trials)
    found = {}
    for *arm, gated_at, name in frame.iter_rows():
        why = [each for each in (gated_at, unsafe.get(tuple(arm))) if each]
        if why:
            found[name] = "; ".join(why)
    return found


def _ablation(
    finished: Run, prices: Prices | None, by: Sequence[str] = ("width",)
) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """What each scaffold gains and costs, and from which width on it pays; None where no driver ran under several."""
    from agentbench_lab.analysis import metrics

    if metrics.default_baseline(finished.trials) is None:
        return None
    return metrics.ablation(finished.trials, prices, by=by), metrics.where_it_pays(finished.trials, prices)


def _ablation_json(finished: Run, prices: Prices | None) -> dict[str, Any]:
    found = _ablation(finished, prices)
    if found is None:
        return {"ablation": [], "where_it_pays": []}
    return {"ablation": found[0].to_dicts(), "where_it_pays": found[1].to_dicts()}


def _print_ablation(finished: Run, prices: Prices | None) -> None:
    from agentbench_lab import tables
    from agentbench_lab.analysis import metrics

    found = _ablation(finished, prices, ("width",) if len(finished.card.arms) <= MOST_ARMS else ())
    if found is None:
        return
    say(str(tables.ablation(found[0])))
    unsafe = metrics.disqualified(finished.trials)
    say(click.wrap_text(tables.ablation_says(*found, unsafe).texts[0], WIDTH))


def _print_use(finished: Run, prices: Prices | None) -> None:
    """What was spent, where that is known of any trial, and how often calls failed, where any was made."""
    import polars as pl

    from agentbench_lab import tables
    from agentbench_lab.analysis import metrics

    cost = metrics.cost(finished.trials, prices)
    spent = cost.filter(pl.col("metric") == "spent")
    # a driver that asks no model has spent nothing, which is known and tells nothing
    told = (spent["estimate"].fill_null(0) > 0) | spent["user_trials"].is_not_null()
    if prices is not None or told.any():
        say(str(tables.cost(cost)))
        if len(finished.card.arms) > 1:
            say(str(tables.frontier(metrics.frontier(finished.trials, prices))))
    failed = metrics.tool_errors(finished.trials, finished.calls, finished.card)
    if finished.card.imported is not None and failed["estimate"].is_not_null().any():
        say(str(tables.tool_errors(failed)))
