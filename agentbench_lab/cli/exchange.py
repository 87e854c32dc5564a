"""Commands that exchange runs with other tools: export, import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agentbench_lab.cli.common import WIDTH, near, put, say
from agentbench_lab.errors import LabError, did_you_mean

EXPORTS = ("bench-v1",)
SHOWN = 10
"""Up to so many published figures are all told; of more, only those that do not follow from the rows."""


@click.command(name="export")
@click.argument("folder", metavar="RUN")
@click.option(
    "--format", "form", default="bench-v1", show_default=True, metavar="FORMAT", help="The only one yet."
)
@click.option("--out", default="", metavar="FILE", help="New file; default the screen.")
def export(folder: str, form: str, out: str) -> None:
    """Write a run in another format: bench-v1 (agent-runtime/bench/v1)."""
    from agentbench_lab.results.bench_io import bench_bytes
    from agentbench_lab.results.run import load_run, write_file

    if form not in EXPORTS:
        raise LabError(f"no format {form!r}{did_you_mean(form, EXPORTS)}")
    data = bench_bytes(load_run(folder))
    if not out:
        put(data.decode().rstrip("\n"))
        return
    file = Path(out)
    if file.exists():
        raise LabError(f"{out}: exists; nothing is written over")
    try:
        write_file(file, data)
    except OSError as error:
        raise LabError(f"{out}: cannot write there: {error.strerror}") from None
    say(f"{form}: {near(file)}")


@click.command(name="import")
@click.argument("form", metavar="FORMAT")
@click.argument("path", metavar="PATH")
@click.option("--out", required=True, metavar="FOLDER", help="New folder of the run.")
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="For csv, jsonl and parquet: which column holds what (case_id=task); ours==VALUE is the same in every row. "
    "For inspect: scorer=NAME.",
)
@click.option("--suite", default="", metavar="NAME", help="Name of the suite; default what the source says.")
@click.option("--driver", default="", metavar="NAME", help="Name of the agent where the source has none.")
@click.option("--model", default="", metavar="NAME", help="Name of the model where the source has none.")
@click.option(
    "--published", default="", metavar="FILE", help="CSV of published results to set beside the rows."
)
@click.option(
    "--published-map",
    "published_columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="Which of its columns holds what (driver=agent, accuracy=resolved).",
)
def import_(
    form: str,
    path: str,
    out: str,
    columns: Sequence[str],
    suite: str,
    driver: str,
    model: str,
    published: str,
    published_columns: Sequence[str],
) -> None:
    """Make a run of the results of another harness or a public benchmark.

    Nothing is judged again: unknown stays null, and a published total that does not follow from the rows
    is reported, never adopted. `agentbench-lab formats` lists the formats.
    """
    from agentbench_lab import tables
    from agentbench_lab.benchmarks import Options, load_results
    from agentbench_lab.benchmarks.leaderboard import check_published, with_published
    from agentbench_lab.running.merge import save_new

    if published_columns and not published:
        raise LabError("--published-map is for the columns of a --published FILE")
    named = _named("--map", columns, "case_id=task")
    theirs = _named("--published-map", published_columns, "driver=agent")
    options = Options(name=Path(out).name, suite=suite, driver=driver, model=model, columns=named)
    run = load_results(form, path, options)
    if published:
        run = with_published(run, check_published(run, published, theirs))
    done = save_new(run, out)
    assert done.path is not None
    banner = str(tables.banner(done))
    if banner:
        say(click.wrap_text(banner, WIDTH))
    counts = done.card.counts
    say(
        f"imported {counts.asked}, judged {counts.judged}, excluded {counts.excluded}, missing {counts.missing}"
    )
    imported = done.card.imported
    assert imported is not None
    for note in imported.notes:
        say(click.wrap_text(note, WIDTH))
    told = [claim for claim in imported.published if not claim.follows or len(imported.published) <= SHOWN]
    for claim in told:
        say(click.wrap_text(str(claim), WIDTH))
    if len(told) < len(imported.published):
        follow = sum(claim.follows for claim in imported.published)
        say(f"{follow} of {len(imported.published)} published figures follow from the rows")
    say(f"run: {near(done.path)}")


def _named(option: str, texts: Sequence[str], example: str) -> dict[str, str]:
    """The pairs OURS=THEIRS of an option."""
    named: dict[str, str] = {}
    for text in texts:
        ours, found, theirs = text.partition("=")
        if not found or not ours or not theirs:
            raise LabError(f"{option} {text!r}: give OURS=THEIRS, such as {example}")
        if ours in named:
            raise LabError(f"{option} {text!r}: {ours} is mapped already, to {named[ours]}")
        named[ours] = theirs
    return named


@click.command()
def formats() -> None:
    """List the formats that can be imported."""
    from agentbench_lab.benchmarks import FORMATS

    for name, each in FORMATS.items():
        say(f"{name:<16} {each.about}")


COMMANDS = (export, import_, formats)
