"""The command line: lint, run, show, report, drivers, notebooks.

Exit codes: 0 done; 1 `--gate` and the gate failed; 2 a mistake of the caller's; 3 an incomplete run; 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agentbench_lab.errors import LabError

if TYPE_CHECKING:
    from agentbench_lab.results.run import Run

EXIT_GATE, EXIT_MISTAKE, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 1, 2, 3, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="agentbench-lab", prog_name="agentbench-lab")
def cli() -> None:
    """Measure agents with numbers that can be checked.

    \b
    Start here:
      agentbench-lab run ladder --driver stub        climb the TOOL ladder with the floor driver
      agentbench-lab run ladder --driver my_agent:answer --ladder --gate
      agentbench-lab show data/results/RUN           look at a finished run again
      agentbench-lab report run_ladder -p driver stub   the same as a published page

    A suite is a case file, or the bare name of one under data/cases. A driver is stub, refuse_all,
    reckless, an installed entry point, or your own function as package.module:name (found on
    PYTHONPATH and in the working folder).

    Exit codes: 0 done, 1 the gate failed (only with --gate), 2 a mistake in what was asked,
    3 an incomplete run, 130 interrupted.
    """


@cli.command()
@click.argument("suites", nargs=-1, required=True, metavar="SUITE...")
@click.option("--world", default="", metavar="PATH", help="World of the cases that name none.")
def lint(suites: Sequence[str], world: str) -> None:
    """Prove case files: their shape, that every call binds and runs, and that each case's reference
    answer passes its own grader while every changed value fails."""
    from agentbench_lab.running.lint import lint_suite

    found = 0
    for suite in suites:
        problems = lint_suite(suite, world=world or None)
        found += len(problems)
        for problem in problems:
            click.echo(str(problem))
        if not problems:
            from agentbench_lab.cases import load_suite

            click.echo(f"{suite}: {_many(len(load_suite(suite).cases), 'case')}, no problem")
    if found:
        raise LabError(_many(found, "problem"))


@cli.command()
@click.argument("suite")
@click.option("--driver", "drivers", multiple=True, required=True, metavar="NAME", help="Repeatable.")
@click.option("--group", default="", metavar="NAMES", help="Only these rungs or groups (TOOL-0,TOOL-1).")
@click.option("--only", default="", metavar="GLOBS", help="Only cases whose id matches (shop-*,t3-07).")
@click.option("--trials", default=1, show_default=True, metavar="N", help="Trials a case.")
@click.option("--ladder", is_flag=True, help="Ask rungs upward and stop at the first that fails the gate.")
@click.option("--gate", is_flag=True, help="Exit with 1 unless every arm passes every rung it was asked.")
@click.option("--stamp", default="", metavar="TEXT", help="Label of the run; default the package version.")
@click.option("--out", default="", metavar="FOLDER", help="New folder; default data/results/SUITE-STAMP-...")
@click.option("--world", default="", metavar="PATH", help="World of the cases that name none.")
@click.option("--workers", default=1, show_default=True, metavar="N", help="Trials side by side.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Seed of all random numbers.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit of one trial; default 60.")
@click.option(
    "--strictness",
    default="strict",
    show_default=True,
    metavar="RULE",
    help="strict, or original: the ladder's literal rule.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    suite: str,
    drivers: Sequence[str],
    group: str,
    only: str,
    trials: int,
    ladder: bool,
    gate: bool,
    stamp: str,
    out: str,
    world: str,
    workers: int,
    seed: int,
    timeout: float | None,
    strictness: str,
    as_json: bool,
) -> None:
    """Run a suite by one or more drivers, grade it, save it, and print the metric pair and the gate."""
    from agentbench_lab.cases import Limits
    from agentbench_lab.running.runner import DEFAULT_WALL_S, Interrupted, evaluate

    with _Progress() as progress:
        try:
            finished = evaluate(
                suite,
                list(drivers),
                group=group,
                only=only,
                trials=trials,
                ladder=ladder,
                stamp=stamp,
                out=out,
                world=world,
                seed=seed,
                workers=workers,
                strictness=strictness,
                limits=Limits(wall_s=DEFAULT_WALL_S if timeout is None else timeout),
                progress=progress.update,
            )
            interrupted = False
        except Interrupted as error:
            finished, interrupted = error.run, True
    _print_run(finished, as_json)
    if interrupted:
        sys.exit(EXIT_INTERRUPTED)
    if not finished.card.complete:
        sys.exit(EXIT_INCOMPLETE)
    if gate and any(envelope.gated_at is not None for envelope in finished.card.envelope):
        sys.exit(EXIT_GATE)


@cli.command()
@click.argument("run_folder", metavar="RUN")
@click.option("--failed", is_flag=True, help="Also list every trial that was not solved, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def show(run_folder: str, failed: bool, as_json: bool) -> None:
    """Print a finished run again: the metric pair, the gate, the outcomes."""
    from agentbench_lab.results.run import load_run

    _print_run(load_run(run_folder), as_json, failed=failed)


@cli.command()
@click.argument("notebook")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter of the notebook; its declared type decides how VALUE is read.",
)
@click.option("--out", default="", metavar="FILE", help="The page; default reports/NOTEBOOK.html.")
@click.option("--executed", is_flag=True, help="NOTEBOOK is already executed: only publish it.")
def report(notebook: str, parameters: Sequence[tuple[str, str]], out: str, executed: bool) -> None:
    """Execute a notebook and publish it as one HTML page that needs no network."""
    from agentbench_lab import reports

    given: dict[str, str] = {}
    for name, value in parameters:
        if name in given:
            raise LabError(f"parameter {name!r} is given twice")
        given[name] = value
    if executed:
        if given:
            raise LabError("an executed notebook takes no parameters")
        done = Path(notebook)
        page = reports.publish(done, Path(out) if out else None)
    else:
        done, page = reports.report(notebook, given, out=Path(out) if out else None)
    for folder in reports.runs_of(done):
        from agentbench_lab.results.run import load_run

        _print_run(load_run(folder), as_json=False)
    click.echo(f"report: {page}")


@cli.command()
def drivers() -> None:
    """List the drivers that have a name."""
    from agentbench_lab.drivers import known_drivers, load_driver

    for name in sorted(known_drivers()):
        try:
            loaded = load_driver(name)
        except LabError as error:
            click.echo(f"{name:12} cannot be loaded: {error}")
            continue
        about = (loaded.function.__doc__ or "").strip().splitlines() or [""]
        click.echo(f"{name:12} {loaded.evidence:10} {about[0]}")
    click.echo("Your own: package.module:name, a function of (task, tools, ctx).")


@cli.command()
def notebooks() -> None:
    """List the notebooks with their questions and parameters."""
    from agentbench_lab import reports

    for line in reports.notebook_list():
        click.echo(line)


def _print_run(finished: Run, as_json: bool, *, failed: bool = False) -> None:
    from agentbench_lab import tables
    from agentbench_lab.analysis import metrics

    pair = metrics.ladder(finished.trials)
    gates = metrics.gate(finished.trials, finished.card)
    if as_json:
        summary = {
            "run": finished.card.run,
            "path": None if finished.path is None else str(finished.path),
            "counts": finished.card.counts,
            "evidence": finished.card.evidence,
            "envelope": finished.card.envelope,
            "metrics": pair.to_dicts(),
            "gate": gates.to_dicts(),
            "outcomes": metrics.outcomes(finished.trials).to_dicts(),
        }
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        return
    banner = str(tables.banner(finished))
    if banner:
        click.echo(banner)
    click.echo(str(tables.ladder(pair)))
    click.echo(str(tables.gate(gates)))
    if failed:
        strip = metrics.strip(finished.trials, finished.cases)
        click.echo(str(tables.failures(strip, most=strip.height)))
    counts = finished.card.counts
    click.echo(
        f"asked {counts.asked}, judged {counts.judged}, excluded {counts.excluded}, missing {counts.missing}"
    )
    if finished.path is not None:
        click.echo(f"run: {_near(finished.path)}")


class _Progress:
    """A bar on a terminal, silence elsewhere."""

    def __enter__(self) -> _Progress:
        self._bar: Any = None
        return self

    def update(self, finished: int, asked: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=asked, unit="trial", disable=None, leave=False, file=sys.stderr)
        self._bar.total = asked
        self._bar.update(finished - self._bar.n)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _near(path: Path) -> str:
    """A path relative to the working folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def main() -> None:
    """The command line, with every mistake of the caller's as one clear line."""
    sys.exit(_guarded(lambda: cli.main(prog_name="agentbench-lab", standalone_mode=False)))


def _guarded(call: Callable[[], Any]) -> int:
    try:
        result = call()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except LabError as error:
        return _mistake(str(error))
    except click.ClickException as error:
        error.show()
        return EXIT_MISTAKE
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _mistake(message: str) -> int:
    """One clear line; several problems keep a line each."""
    lines = message.splitlines() or ["?"]
    click.echo(f"error: {lines[0]}", err=True)
    for line in lines[1:]:
        click.echo(f"       {line}", err=True)
    return EXIT_MISTAKE


if __name__ == "__main__":
    main()
