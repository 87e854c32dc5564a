"""Commands about suites, drivers and notebooks: lint, drivers, notebooks, report, publish."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from agentbench_lab.cli.common import EXIT_INCOMPLETE, WIDTH, near, say
from agentbench_lab.errors import LabError, counted


@click.command()
@click.argument("suites", nargs=-1, required=True, metavar="SUITE...")
@click.option("--world", default="", metavar="PATH", help="World of the cases that name none.")
@click.option("--sandbox", default="", metavar="LEVEL", help="Level of work folders; see run --help.")
def lint(suites: Sequence[str], world: str, sandbox: str) -> None:
    """Prove case files: their shape, that every call binds and runs, and that each case's reference
    answer passes its own grader while every changed value fails."""
    from agentbench_lab.cases import find_suite
    from agentbench_lab.running.lint import lint_suite

    found = 0
    for suite in suites:
        find_suite(suite)
    for suite in suites:
        problems = lint_suite(suite, world=world or None, sandbox=sandbox)
        wrong = sum(not problem.warning for problem in problems)
        found += wrong
        for problem in problems:
            say(str(problem))
        if not wrong:
            from agentbench_lab.cases import load_suite

            said = f", {counted(len(problems), 'warning')}" if problems else ""
            say(f"{suite}: {counted(len(load_suite(suite).cases), 'case')}, no problem{said}")
    if found:
        raise LabError(counted(found, "problem"))


ISOLATED = click.option(
    "--isolated",
    is_flag=True,
    help="Run each notebook in a kernel of its own instead of this process; slower.",
)


@click.command()
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
@ISOLATED
def report(
    notebook: str, parameters: Sequence[tuple[str, str]], out: str, executed: bool, isolated: bool
) -> None:
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
        done, page = reports.report(notebook, given, out=Path(out) if out else None, isolated=isolated)
    for folder in dict.fromkeys(reports.runs_of(done)):
        say(f"run: {near(folder)}")
    say(f"report: {near(page)}")


@click.command()
@click.argument("notebooks", nargs=-1, metavar="[NOTEBOOK]...")
@click.option("--out", default="", metavar="FOLDER", help="Where the pages go; default reports.")
@click.option(
    "--jobs", default=1, show_default=True, metavar="N", help="Notebooks side by side, in N processes."
)
@ISOLATED
def publish(notebooks: Sequence[str], out: str, jobs: int, isolated: bool) -> None:
    """Execute notebooks, by default all, with their own default parameters, and publish them with an
    index by question. One that fails does not stop the others: its older page stays, the index says
    so, and the exit code is 3."""
    from agentbench_lab import reports

    def told(one: reports.Reported) -> None:
        if one.page is None:
            say(f"failed: {one.problem}", err=True)
        else:
            say(f"{one.seconds:6.2f} s  {near(one.page)}")

    done, index = reports.report_all(
        notebooks, folder=Path(out) if out else None, isolated=isolated, jobs=jobs, each=told
    )
    failed = sum(one.page is None for one in done)
    say(f"index: {near(index)} ({counted(len(done) - failed, 'report')} made, {failed} failed)")
    if failed:
        sys.exit(EXIT_INCOMPLETE)


@click.command()
def drivers() -> None:
    """List the drivers that have a name, and the scaffolds."""
    from agentbench_lab.drivers import known_drivers, load_driver
    from agentbench_lab.drivers.loading import MAKERS
    from agentbench_lab.scaffolds import NAMES

    for name in sorted(known_drivers()):
        try:
            loaded = load_driver(name)
        except LabError as error:
            say(f"{name:12} cannot be loaded: {error}")
            continue
        about = (loaded.function.__doc__ or "").strip().splitlines() or [""]
        line = f"{name:12} {loaded.evidence:10} {about[0]}"
        say(click.wrap_text(line, WIDTH, subsequent_indent=" " * 24))
    for head, where in sorted(MAKERS.items()):
        try:
            about = (importlib.import_module(where.partition(":")[0]).__doc__ or "").strip().splitlines()
        except ImportError as error:
            about = [f"cannot be loaded: {error}"]
        line = f"{f'{head}:...':23} {about[0] if about else ''}"
        say(click.wrap_text(line, WIDTH, subsequent_indent=" " * 24))
    say("Your own: package.module:name, a function of (task, tools, ctx).")
    say(click.wrap_text(f"Scaffolds: {', '.join(NAMES)}, package.module:name.", WIDTH))


@click.command()
def notebooks() -> None:
    """List the notebooks with their questions and parameters."""
    from agentbench_lab import reports

    for line in reports.notebook_list():
        say(line)


COMMANDS = (lint, drivers, notebooks, report, publish)
