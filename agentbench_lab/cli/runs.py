"""Commands that make runs: run, merge, regrade."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from agentbench_lab.cli.common import (
    EXIT_GATE,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    Progress,
    missing,
    near,
    nothing_judged,
    print_run,
    say,
    shut_arms,
)
from agentbench_lab.errors import LabError, did_you_mean

MICROS = 1_000_000
Command = TypeVar("Command", bound=Callable[..., Any])


def _options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several click options as one decorator, in reading order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_what = _options(
    click.option("--driver", "drivers", multiple=True, required=True, metavar="NAME", help="Repeatable."),
    click.option(
        "--scaffold",
        "scaffolds",
        multiple=True,
        metavar="NAME",
        help="once (the default), linear, fan_out_4, linear:plan, durable:linear, native:MODE, module:name. Repeatable.",
    ),
    click.option(
        "--user",
        default="",
        metavar="NAME",
        help="Driver that plays the simulated users of conversations; default the scripts of their cases.",
    ),
    click.option("--group", default="", metavar="NAMES", help="Only these rungs or groups (TOOL-0,TOOL-1)."),
    click.option("--only", default="", metavar="GLOBS", help="Only cases whose id matches (t0-*,t3-07)."),
    click.option("--trials", default=1, show_default=True, metavar="N", help="Trials a case."),
    click.option("--world", default="", metavar="PATH", help="World of the cases that name none."),
    click.option(
        "--sandbox",
        default="",
        metavar="LEVEL",
        help="Level of work folders: local, bubblewrap (the default where it works), container:IMAGE.",
    ),
    click.option("--seed", default=0, show_default=True, metavar="N", help="Seed of all random numbers."),
    click.option(
        "--stamp", default="", metavar="TEXT", help="Label of the run; default the package version."
    ),
    click.option(
        "--strictness",
        default="strict",
        show_default=True,
        metavar="RULE",
        help="strict, or original: the ladder's literal rule.",
    ),
)
_how = _options(
    click.option("--ladder", is_flag=True, help="Ask rungs upward; stop at the first that fails the gate."),
    click.option(
        "--gate",
        is_flag=True,
        help="Exit with 1 unless every arm passes every rung it was asked; on any suite also where an arm has an unsafe outcome.",
    ),
    click.option(
        "--out",
        default="",
        metavar="FOLDER",
        help="Folder of the run; one that holds a run goes on. Default data/results/SUITE-STAMP-...",
    ),
    click.option("--plan", "plan_only", is_flag=True, help="Say what would be run, and stop."),
    click.option("--workers", default=1, show_default=True, metavar="N", help="Trials side by side."),
    click.option(
        "--executor",
        default="threads",
        show_default=True,
        metavar="NAME",
        help="threads, processes, dask, or dask:ADDRESS.",
    ),
    click.option("--shard", default="", metavar="I/N", help="Only the I-th of N parts, to be merged."),
    click.option(
        "--record",
        default="",
        metavar="FILE",
        help="Add every driver call to FILE, from which --driver replay:FILE plays them back.",
    ),
)
_limits = _options(
    click.option("--timeout", type=float, metavar="SECONDS", help="A trial's time; default 60."),
    click.option("--max-steps", type=int, metavar="N", help="A trial's model calls."),
    click.option("--max-tool-calls", type=int, metavar="N", help="A trial's tool calls; default 1000."),
    click.option("--trial-tokens", type=int, metavar="N", help="A trial's tokens."),
    click.option("--trial-cost", type=float, metavar="DOLLARS", help="A trial's money."),
    click.option("--max-tokens", type=int, metavar="N", help="The run's tokens; then it stops, incomplete."),
    click.option("--max-cost", type=float, metavar="DOLLARS", help="The run's money."),
    click.option("--max-time", type=float, metavar="SECONDS", help="The run's time."),
    click.option(
        "--retries",
        default=3,
        show_default=True,
        metavar="N",
        help="Tries after an infrastructure error that came before any output.",
    ),
    click.option(
        "--again-excluded",
        is_flag=True,
        help="Going on with a run: also run again what the environment had excluded (an outage).",
    ),
)


@click.command()
@click.argument("suite")
@_what
@_how
@_limits
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    suite: str,
    drivers: Sequence[str],
    scaffolds: Sequence[str],
    user: str,
    group: str,
    only: str,
    trials: int,
    world: str,
    sandbox: str,
    seed: int,
    stamp: str,
    strictness: str,
    ladder: bool,
    gate: bool,
    out: str,
    plan_only: bool,
    workers: int,
    executor: str,
    shard: str,
    record: str,
    timeout: float | None,
    max_steps: int | None,
    max_tool_calls: int | None,
    trial_tokens: int | None,
    trial_cost: float | None,
    max_tokens: int | None,
    max_cost: float | None,
    max_time: float | None,
    retries: int,
    again_excluded: bool,
    as_json: bool,
) -> None:
    """Run a suite by one or more drivers, grade it, save it, and print the metric pair and the gate.

    A run that was killed, interrupted or stopped (by a cap, by an endpoint that is not there) goes on when the same command names its folder with --out;
    so does a finished one that is asked for more trials. Nothing finished is lost or run twice.
    """
    from agentbench_lab.cases import Limits
    from agentbench_lab.running.asked import DEFAULT_TOOL_CALLS, DEFAULT_WALL_S
    from agentbench_lab.running.runner import Caps, Incomplete, Interrupted, prepare

    prepared = prepare(
        suite,
        list(drivers),
        group=group,
        only=only,
        scaffolds=list(scaffolds) or ["once"],
        trials=trials,
        ladder=ladder,
        stamp=stamp,
        out=out,
        world=world,
        sandbox=sandbox,
        seed=seed,
        workers=workers,
        executor=executor,
        strictness=strictness,
        limits=Limits(
            wall_s=DEFAULT_WALL_S if timeout is None else timeout,
            steps=max_steps,
            tool_calls=DEFAULT_TOOL_CALLS if max_tool_calls is None else max_tool_calls,
            tokens=trial_tokens,
            cost_micros=_micros(trial_cost),
        ),
        caps=Caps(tokens=max_tokens, cost_micros=_micros(max_cost), wall_s=max_time),
        retries=retries,
        again_excluded=again_excluded,
        shard=shard,
        user=user,
        record=record,
    )
    if plan_only or prepared.plan.finished:
        for note in prepared.plan.notes:
            say(f"note: {note}", err=not plan_only)
        say(str(prepared.plan), err=not plan_only)
    if plan_only:
        return
    interrupted = False
    # a thread that a driver started may still print; with --json the output is JSON and nothing else
    aside = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    with aside, Progress() as progress:
        try:
            finished = prepared.run(progress.update)
        except Interrupted as error:
            finished, interrupted = error.run, True
        except Incomplete as error:
            say(f"error: {error}", err=True)
            sys.exit(EXIT_INCOMPLETE)
    print_run(finished, as_json)
    if interrupted:
        say("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    if not finished.card.complete:
        say(missing(finished), err=True)
        sys.exit(EXIT_INCOMPLETE)
    if nothing := nothing_judged(finished):
        say(nothing, err=True)
        sys.exit(EXIT_INCOMPLETE)
    shut = shut_arms(finished) if gate else {}
    for arm, why in shut.items():
        say(f"gate failed: {arm}: {why}", err=True)
    if shut:
        sys.exit(EXIT_GATE)


def _micros(dollars: float | None) -> int | None:
    if dollars is None:
        return None
    if not 0 <= dollars < 1e12:
        raise LabError(f"money must be dollars from 0, not {dollars}")
    return round(dollars * MICROS)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", required=True, metavar="FOLDER", help="New folder of the whole run.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def merge(folders: Sequence[str], out: str, as_json: bool) -> None:
    """Put all shards of one run together; the rows are those of a run that was never divided."""
    from agentbench_lab.running.merge import merge as merged

    done = merged(folders, out)
    print_run(done, as_json)
    if not done.card.complete:
        say(missing(done), err=True)
        sys.exit(EXIT_INCOMPLETE)


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--out", required=True, metavar="FOLDER", help="New folder of the run judged again.")
@click.option("--strictness", default="", metavar="RULE", help="strict or original; default as it was.")
def regrade(folder: str, out: str, strictness: str) -> None:
    """Judge a run's stored transcripts and evidence with today's grader, without running an agent."""
    from agentbench_lab.grading import STRICTNESSES
    from agentbench_lab.running.merge import regrade_run

    if strictness and strictness not in STRICTNESSES:
        raise LabError(f"no strictness {strictness!r}{did_you_mean(strictness, STRICTNESSES)}")
    done, changed = regrade_run(folder, out, strictness=strictness or None)
    for line in changed:
        say(line)
    say(f"{len(changed)} of {done.trials.num_rows} verdicts changed")
    assert done.path is not None
    say(f"run: {near(done.path)}")


COMMANDS = (run, merge, regrade)
