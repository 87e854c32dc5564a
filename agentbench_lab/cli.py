"""The command line: lint, run, show, report, drivers, notebooks.

Exit codes: 0 done; 1 `--gate` and the gate failed; 2 a mistake of the caller's; 3 an incomplete run; 130 Ctrl-C.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agentbench_lab.errors import LabError

if TYPE_CHECKING:
    from agentbench_lab.results.run import Run

EXIT_GATE, EXIT_MISTAKE, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 1, 2, 3, 130
WIDTH = 100


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, option, wanted: _version(context) if wanted else None,
    help="Show the version and exit.",
)
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
            _say(str(problem))
        if not problems:
            from agentbench_lab.cases import load_suite

            _say(f"{suite}: {_many(len(load_suite(suite).cases), 'case')}, no problem")
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
    from agentbench_lab.running.runner import DEFAULT_WALL_S, Incomplete, Interrupted, evaluate

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
        except Incomplete as error:
            _mistake(str(error))
            sys.exit(EXIT_INCOMPLETE)
    _print_run(finished, as_json)
    if interrupted:
        sys.exit(EXIT_INTERRUPTED)
    if not finished.card.complete:
        sys.exit(EXIT_INCOMPLETE)
    shut = [envelope for envelope in finished.card.envelope if envelope.gated_at is not None]
    if gate and shut:
        for envelope in shut:
            click.echo(f"gate failed: {envelope.driver}: {envelope.gated_at}", err=True)
        sys.exit(EXIT_GATE)


@cli.command()
@click.argument("run_folder", metavar="RUN")
@click.option("--failed", is_flag=True, help="Also list every trial that was not solved, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def show(run_folder: str, failed: bool, as_json: bool) -> None:
    """Print a finished run again: the metric pair, the gate, the outcomes."""
    from agentbench_lab.results.run import load_run

    found = load_run(run_folder)
    _print_run(found, as_json, failed=failed)
    if not found.card.complete:
        sys.exit(EXIT_INCOMPLETE)


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
    _say(f"report: {_near(page)}")


@cli.command()
def drivers() -> None:
    """List the drivers that have a name."""
    from agentbench_lab.drivers import known_drivers, load_driver

    for name in sorted(known_drivers()):
        try:
            loaded = load_driver(name)
        except LabError as error:
            _say(f"{name:12} cannot be loaded: {error}")
            continue
        about = (loaded.function.__doc__ or "").strip().splitlines() or [""]
        line = f"{name:12} {loaded.evidence:10} {about[0]}"
        _say(click.wrap_text(line, WIDTH, subsequent_indent=" " * 24))
    _say("Your own: package.module:name, a function of (task, tools, ctx).")


@cli.command()
def notebooks() -> None:
    """List the notebooks with their questions and parameters."""
    from agentbench_lab import reports

    for line in reports.notebook_list():
        _say(line)


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
        _say(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        return
    banner = str(tables.banner(finished))
    if banner:
        _say(click.wrap_text(banner, WIDTH))
    _say(str(tables.ladder(pair)))
    _say(str(tables.gate(gates)))
    if failed:
        strip = metrics.strip(finished.trials, finished.cases)
        _say(str(tables.failures(strip, most=strip.height)))
    counts = finished.card.counts
    _say(
        f"asked {counts.asked}, judged {counts.judged}, excluded {counts.excluded}, missing {counts.missing}"
    )
    if finished.path is not None:
        _say(f"run: {_near(finished.path)}")


class _Progress:
    """A bar on a terminal, silence elsewhere."""

    def __enter__(self) -> _Progress:
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


def _say(text: str) -> None:
    """Print; a reader that has gone away (`| head -1`) changes nothing, least of all the exit code."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(context: click.Context) -> None:
    from agentbench_lab.results.provenance import package_version

    _say(f"agentbench-lab {package_version()}")
    context.exit()


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a sign shows its number
            stream.reconfigure(errors="backslashreplace")
    code = _guarded(lambda: cli.main(prog_name="agentbench-lab", standalone_mode=False))
    if threading.active_count() > 1:
        # threads that a driver left behind: Python would wait for some of them, for ever if they hang
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _guarded(call: Callable[[], Any]) -> int:
    try:
        try:
            result = call()
        except SystemExit as left:
            result = left.code
        return result if isinstance(result, int) else 0
    except LabError as error:
        return _mistake(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_MISTAKE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "agentbench-lab"
        return _mistake(f"{' '.join(error.format_message().split())} (see {command} --help)")
    except click.ClickException as error:
        return _mistake(error.format_message())
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED


def _mistake(message: str) -> int:
    """One clear line; several problems keep a line each."""
    lines = message.splitlines() or ["?"]
    click.echo(f"error: {lines[0]}", err=True)
    for line in lines[1:]:
        click.echo(f"       {line}", err=True)
    return EXIT_MISTAKE


if __name__ == "__main__":
    main()
