"""The command that serves the tools of a case to an agent that is another program: bridge."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agentbench_lab.cli.common import say_json_line
from agentbench_lab.errors import LabError

if TYPE_CHECKING:
    from agentbench_lab.running.bridged import Trial

TOKEN = "AGENTBENCH_LAB_TOKEN"


@click.command()
@click.argument("suite")
@click.option("--case", "ids", multiple=True, required=True, metavar="ID", help="Repeatable with --http.")
@click.option("--trials", default=1, show_default=True, metavar="N", help="Trials a case, with --http.")
@click.option("--stdio", is_flag=True, help="Serve one trial on stdin and stdout, until stdin ends.")
@click.option("--http", is_flag=True, help="Serve on 127.0.0.1, until SIGTERM or Ctrl-C.")
@click.option("--port", default=0, metavar="N", help="Port of --http; default a free one.")
@click.option(
    "--addresses", default="", metavar="FILE", help="Write URLs and tokens here, for you alone (0600)."
)
@click.option("--ledger", default="", metavar="FILE", help="Write what was called here, as JSON, at the end.")
@click.option("--grade", is_flag=True, help="At the end print each trial's grade on stderr, as JSON.")
@click.option("--world", default="", metavar="PATH", help="World of the cases that name none.")
@click.option("--sandbox", default="", metavar="LEVEL", help="Level of work folders; see run --help.")
@click.option("--max-tool-calls", type=int, metavar="N", help="Calls a trial; default as a run has it.")
@click.option(
    "--call-timeout", default=120.0, show_default=True, metavar="S", help="Seconds a call may take."
)
def bridge(
    suite: str,
    ids: Sequence[str],
    trials: int,
    stdio: bool,
    http: bool,
    port: int,
    addresses: str,
    ledger: str,
    grade: bool,
    world: str,
    sandbox: str,
    max_tool_calls: int | None,
    call_timeout: float,
) -> None:
    """Serve the tools of a case over MCP, each trial in a world of its own; what is called stands in a ledger.

    With --http every trial has a path and a bearer token; they are printed on stderr, a JSON line each, unless
    --addresses names a file for them. Of one trial the token can be given as AGENTBENCH_LAB_TOKEN. With --stdio nothing
    but the protocol is written to stdout: what a world prints goes to stderr.
    """
    if stdio == http:
        raise LabError("give either --stdio or --http")
    if trials < 1:
        raise LabError(f"--trials must be at least 1, not {trials}")
    if not 0 <= port <= 65_535:
        raise LabError(f"--port must be 0 to 65535, not {port}")
    if not 0 < call_timeout <= 86_400:
        raise LabError(f"--call-timeout must be seconds above 0, not {call_timeout:g}")
    if max_tool_calls is not None and max_tool_calls < 0:
        raise LabError(f"--max-tool-calls must be a whole number from 0, not {max_tool_calls}")
    if stdio and (trials > 1 or len(ids) > 1):
        raise LabError("--stdio serves one trial of one case; give --http for more")
    if ledger and not Path(ledger).absolute().parent.is_dir():
        raise LabError(f"--ledger {ledger}: there is no such folder")
    from agentbench_lab.worlds.mcp_server import take_stdout

    wire = take_stdout() if stdio else -1
    from agentbench_lab.cases import load_suite
    from agentbench_lab.running.asked import DEFAULT_TOOL_CALLS, check_sandboxes, level_asked
    from agentbench_lab.running.bridged import Trial, chosen, write_ledgers
    from agentbench_lab.worlds.find import Worlds

    loaded = load_suite(suite)
    worlds = Worlds(loaded, world or None, sandbox=level_asked(sandbox))
    placed = [(case, worlds.of(case)) for case in chosen(loaded, ids)]
    level = check_sandboxes(placed)
    most = DEFAULT_TOOL_CALLS if max_tool_calls is None else max_tool_calls
    served = [
        Trial(case, on, number, tool_calls=most) for case, on in placed for number in range(1, trials + 1)
    ]
    done = threading.Event()
    _until_told(done)
    try:
        if stdio:
            _stdio(served[0], wire, call_timeout, done)
        else:
            _http(served, port, addresses, call_timeout, done)
    finally:
        ended = [trial.end(grading=grade) for trial in served]
    if ledger:
        write_ledgers(Path(ledger), loaded, ended, level)
    if grade:
        for one in ended:
            line: dict[str, Any] = {"case": one.case, "trial": one.trial, "grade": one.grade}
            say_json_line(line, err=True)


def _stdio(trial: Trial, wire: int, call_s: float, done: threading.Event) -> None:
    from agentbench_lab.worlds.mcp_server import serve_stdio

    failed: list[Exception] = []

    def serve() -> None:
        try:
            serve_stdio(trial.toolbox, wire, call_s=call_s, instructions=trial.instructions)
        except Exception as error:
            failed.append(error)
        finally:
            done.set()

    # a thread, because one that waits for a line of stdin can be left behind, and cannot be interrupted
    threading.Thread(target=serve, name="mcp stdio", daemon=True).start()
    done.wait()
    if failed:
        raise failed[0]


def _http(trials: Sequence[Trial], port: int, file: str, call_s: float, done: threading.Event) -> None:
    from agentbench_lab.worlds.mcp_server import HttpBridge

    given = os.environ.get(TOKEN, "")
    if given and len(trials) > 1:
        raise LabError(f"{TOKEN} is the token of one trial, and {len(trials)} are served; unset it")
    if given and (len(given) < 16 or not given.isascii() or not given.isprintable() or " " in given):
        raise LabError(f"{TOKEN} must be at least 16 characters of ASCII without blanks")
    with HttpBridge(port=port, call_s=call_s) as bridge:
        lines = []
        for trial in trials:
            # a path that says nothing: a case's id may tell what is expected
            address = bridge.open(trial.toolbox, token=given, instructions=trial.instructions)
            # a token that was given is known to whom it concerns
            token = {} if given else {"token": address.token}
            lines.append({"case": trial.case.id, "trial": trial.number, "url": address.url, **token})
        if file:
            _write_private(file, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        else:
            for line in lines:
                say_json_line(line, err=True)
        done.wait()


def _write_private(file: str, text: bytes) -> None:
    """A file for its owner alone, also where one of that name was there before."""
    temporary = f"{file}.{os.getpid()}"
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(text)
        os.replace(temporary, file)
    except OSError as error:
        raise LabError(f"--addresses {file}: {error.strerror}") from None


def _until_told(done: threading.Event) -> None:
    """SIGTERM and Ctrl-C end the serving, and then what there is is written."""

    def told(number: int, frame: FrameType | None) -> None:
        done.set()

    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)


COMMANDS = (bridge,)
