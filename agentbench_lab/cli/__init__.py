"""The command line.

Exit codes: 0 done; 1 `--gate` and the gate failed; 2 a mistake of the caller's; 3 an incomplete run, or one
in which nothing was judged; 130 Ctrl-C.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import click

from agentbench_lab.cli import bridging, exchange, looking, publishing, runs
from agentbench_lab.cli.common import EXIT_INTERRUPTED, EXIT_MISTAKE, WIDTH, say
from agentbench_lab.errors import LabError


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
    3 an incomplete run or one in which nothing was judged, 130 interrupted.
    """


for command in (
    *runs.COMMANDS,
    *bridging.COMMANDS,
    *exchange.COMMANDS,
    *looking.COMMANDS,
    *publishing.COMMANDS,
):
    cli.add_command(command)


def _version(context: click.Context) -> None:
    from agentbench_lab.results.provenance import package_version

    say(f"agentbench-lab {package_version()}")
    context.exit()


def main() -> None:
    """The command line, with every mistake of the caller's as one clear line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a sign shows its number
            stream.reconfigure(errors="backslashreplace")
    code = _guarded(lambda: cli.main(prog_name="agentbench-lab", standalone_mode=False))
    if threading.active_count() == 1:
        # threads that a driver left behind might hold up what is to be done at the end, for ever if they hang
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    # Python's own end waits for such threads, and aborts the process where one of a library's still gives back what it read
    os._exit(code)


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
        say("interrupted", err=True)
        return EXIT_INTERRUPTED


def _mistake(message: str) -> int:
    """One clear line; several problems keep a line each."""
    lines = message.splitlines() or ["?"]
    say(f"error: {lines[0]}", err=True)
    for line in lines[1:]:
        say(f"       {line}", err=True)
    return EXIT_MISTAKE
