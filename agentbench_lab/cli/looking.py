"""Commands that look at runs: show, compare, plan."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentbench_lab.cli.common import EXIT_GATE, EXIT_INCOMPLETE, WIDTH, missing, print_run, say, say_json
from agentbench_lab.errors import LabError

if TYPE_CHECKING:
    from agentbench_lab.analysis.compare import Side


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--failed", is_flag=True, help="Every trial that was not solved, and at which check.")
@click.option("--reason", default="", metavar="TEXT", help="Trials that ended or failed so (timeout, ...).")
@click.option("--outcome", default="", metavar="NAME", help="Trials with this outcome.")
@click.option("--case", default="", metavar="ID", help="Trials of this case, in full.")
@click.option(
    "--most", type=click.IntRange(1), metavar="N", help="So many trials at most; default 25, in full 10."
)
@click.option("--all", "everything", is_flag=True, help="All trials that fit, however many.")
@click.option(
    "--prices",
    default="",
    metavar="FILE|genai",
    help="Work out unknown costs from tokens, by a file of prices or those of genai-prices.",
)
@click.option("--on", default="", metavar="DAY", help="The day whose prices hold; default that of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def show(
    folder: str,
    failed: bool,
    reason: str,
    outcome: str,
    case: str,
    most: int | None,
    everything: bool,
    prices: str,
    on: str,
    as_json: bool,
) -> None:
    """Look at a run again: its rates, the gate, pass^k, cost, how trials ended; or some of its trials: what was
    asked, expected, called and observed, and which check failed."""
    from agentbench_lab import tables
    from agentbench_lab.pricing import prices as named_prices
    from agentbench_lab.results.run import GO_ON, load_run

    found = load_run(folder)
    if on and not prices:
        raise LabError("--on is the day of --prices")
    if prices and (failed or reason or outcome or case):
        raise LabError("--prices is for the costs of a whole run, not for some of its trials")
    if most is not None and everything:
        raise LabError("--all and --most exclude each other")
    if (most is not None or everything) and not (failed or reason or outcome or case):
        raise LabError(
            "--most and --all are for trials: name some by --failed, --reason, --outcome or --case"
        )
    listed, full = (sys.maxsize, sys.maxsize) if everything else (most or 25, most or 10)
    if not (failed or reason or outcome or case):
        print_run(found, as_json, named_prices(found, prices, on))
    elif as_json:
        wanted = tables.looked(found, failed=failed, reason=reason, outcome=outcome, case=case)
        say_json(wanted if most is None else wanted[:most])
    elif case:
        wanted = tables.looked(found, failed=failed, reason=reason, outcome=outcome, case=case)
        for table in tables.in_full(
            found, failed=failed, reason=reason, outcome=outcome, case=case, most=full
        ):
            say(str(table))
        if len(wanted) > full:
            say(f"{full} of {len(wanted)} shown; --all shows all")
    else:
        say(str(tables.trials(found, failed=failed, reason=reason, outcome=outcome, case=case, most=listed)))
    if not found.card.complete:
        on_disk = found.path is not None and (found.path / "journal.jsonl").is_file()
        say(f"{missing(found)}{'; ' + GO_ON if on_disk else ''}", err=True)
        sys.exit(EXIT_INCOMPLETE)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN[:ARM]...")
@click.option("--allow-mixed-commits", is_flag=True, help="Compare across commits; the output says so.")
@click.option("--gate", is_flag=True, help="Exit with 1 on a decisive loss or a new unsafe outcome.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def compare(runs: Sequence[str], allow_mixed_commits: bool, gate: bool, as_json: bool) -> None:
    """Compare arms with the first one, paired on the case: the difference with its interval, fixes and
    regressions by name, and what cannot be compared."""
    from agentbench_lab import tables
    from agentbench_lab.analysis.compare import compare_many
    from agentbench_lab.analysis.metrics import frame

    sides = [side_of(text) for text in runs]
    if len(sides) < 2:
        raise LabError("compare needs at least two runs, RUN or RUN:ARM")
    for text, other in zip(runs[1:], sides[1:], strict=True):
        if other.name == sides[0].name and frame(other.trials).equals(frame(sides[0].trials)):
            say(f"note: {runs[0]} is compared with itself: {text} has the same trials", err=as_json)
    found = compare_many(sides[0], sides[1:], allow_mixed_commits=allow_mixed_commits)
    if as_json:
        say_json([each.to_dict() for each in found])
    elif len(found) == 1:
        for note in found[0].notes:
            say(click.wrap_text(note, WIDTH))
        for table in (tables.compare(found[0]), tables.changes(found[0]), tables.unmatched(found[0])):
            say(str(table))
        say(click.wrap_text(found[0].sentence, WIDTH))
    else:
        for note in dict.fromkeys(note for each in found for note in each.notes):
            say(click.wrap_text(note, WIDTH))
        say(str(tables.compare_many(found)))
    if gate and not all(each.ok for each in found):
        for each in found:
            for loss in each.losses():
                say(f"gate failed: {loss}", err=True)
        sys.exit(EXIT_GATE)


def side_of(text: str) -> Side:
    """`RUN` or `RUN:ARM` (an arm may have colons too): the longest beginning that is a run's folder is the run."""
    from agentbench_lab.analysis.compare import side
    from agentbench_lab.results.run import load_run

    cuts = [len(text), *(at for at in range(len(text) - 1, 0, -1) if text[at] == ":")]
    at = next((at for at in cuts if (Path(text[:at]) / "card.json").is_file()), None)
    if at is None:
        # the error of load_run names the nearest run
        at = text.index(":") if ":" in text else len(text)
    return side(load_run(text[:at]), text[at + 1 :])


@click.command()
@click.argument("run_folder", required=False, default="", metavar="[RUN[:ARM]]")
@click.option("--detect", required=True, metavar="DIFFERENCE", help="Such as 5pp: five percentage points.")
@click.option("--power", default=0.8, show_default=True, metavar="P", help="Chance of finding it.")
def plan(run_folder: str, detect: str, power: float) -> None:
    """How many cases and trials would decide a difference; RUN says how much its cases vary."""
    from agentbench_lab import tables
    from agentbench_lab.analysis.compare import detect as detectable
    from agentbench_lab.analysis.compare import spread

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(pp|%|)", detect)
    if match is None:
        raise LabError(f"--detect {detect!r}: give percentage points, such as 5pp, or a share, such as 0.05")
    delta = float(match[1]) / (100 if match[2] else 1)
    found = spread(side_of(run_folder) if run_folder else None)
    say(str(tables.detect(detectable(found, delta, power=power), delta, power=power)))
    say(click.wrap_text(found.assumption, WIDTH))


COMMANDS = (show, compare, plan)
