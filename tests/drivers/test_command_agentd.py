"""Programs with agentd's contract, through a stand-in: arguments, tools over MCP, telemetry, exit codes."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from agentbench_lab.cases import Limits, Message, Task
from agentbench_lab.drivers.command_agentd import EXITS, Heard, instruction
from agentbench_lab.drivers.command_said import Said
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.mcp_server import HttpBridge
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

from ..doing import ROOT, some, tiny_world, write_suite
from .test_command import alive, gone, program

STAND_IN = ROOT / "tests" / "agents" / "agentd_standin.py"


def agentd(model: str, *more: str, options: str = "agentd") -> str:
    return f"command[{options}]:{sys.executable} -I -S {STAND_IN} --intelligence {model} {' '.join(more)}"


STATE = {
    "id": "record", "group": "g", "request": "Record the query.", "tools": ["bench_echo"],
    "world": {
        "kind": "state", "state": {"last": None},
        "tools": [{
            "name": "bench_echo", "description": "record", "effects": [{"set": "last", "value": "{query}"}],
            "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        }],
    },
    "expect": {"state": {"last": "ping"}},
}  # fmt: skip


def suite_of(folder: Path, *cases: dict[str, object]) -> Path:
    path = folder / "recorded.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases or (STATE,)), encoding="utf-8")
    return path


def one(folder: Path, driver: str, **more: object) -> tuple[object, dict[str, object], Run]:
    run = evaluate(suite_of(folder), driver, save_run=False, **more)  # type: ignore[arg-type]
    (row,), (trial,) = run.product, run.trials.to_pylist()
    return row, trial, run


def test_it_acts_over_mcp_and_its_ledger_is_the_evidence(tmp_path: Path) -> None:
    row, trial, run = one(tmp_path, agentd("mock:mcp-call", "--model", "small"))
    assert row.verdict.outcome == "solved"
    assert [(call.name, call.input) for call in row.produced.ledger] == [("bench_echo", {"query": "ping"})]
    assert row.produced.answer == "bench tool called"
    assert (trial["tokens_fresh_input"], trial["tokens_output"], trial["model_calls"]) == (22, 12, 2)
    assert trial["tokens_estimated"] and trial["cost_micros"] is None
    assert trial["model"] == "small"
    (kept,) = run.transcripts.to_pylist()
    assert '"event":"tool.call"' in kept["stderr"] and "token=" not in kept["stderr"]
    assert run.card.arms[0].evidence == "live"


def test_tokens_are_summed_over_all_that_it_started(tmp_path: Path) -> None:
    row, trial, _ = one(tmp_path, agentd("mock:mcp-call", "--mode", "fanout-3"))
    assert row.verdict.outcome == "solved"
    assert (trial["tokens_fresh_input"] + trial["tokens_output"], trial["tool_calls"]) == (102, 3)


def test_without_the_parts_of_its_tokens_they_are_unknown(tmp_path: Path) -> None:
    """A log that tells the total only: the total is a note, and no bucket is made up."""
    agent = program(
        tmp_path,
        "#!/bin/sh\n"
        'echo \'{"event":"loop.final","status":"completed","steps":2,"tokens":34}\' >&2\n'
        'echo \'{"event":"loop.final","status":"completed","steps":1,"tokens":6}\' >&2\n'
        "echo done\n",
    )
    _, trial, run = one(tmp_path, f"command[agentd]:{agent}")
    assert (trial["tokens_fresh_input"], trial["tokens_output"], trial["model_calls"]) == (None, None, 3)
    (kept,) = run.transcripts.to_pylist()
    assert list(kept["notes"]) == ["it counts 40 tokens, and does not say which of them are input"]


def test_what_its_arguments_say(tmp_path: Path) -> None:
    agent = program(tmp_path, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    limits = Limits(wall_s=9.5, steps=7, tokens=500)
    (row,) = evaluate(
        suite_of(tmp_path, {**STATE, "policy": "Be kind."}),
        f"command[agentd,model=big]:{agent} --intelligence http://127.0.0.1:1/v1 --mode once",
        limits=limits,
        save_run=False,
    ).product
    words = row.produced.answer.split("\n")
    at = words.index("--mcp")
    assert words[:at] == [
        "--intelligence", "http://127.0.0.1:1/v1", "--mode", "once",
        "--log-level", "debug", "--log-content", "--model", "big",
    ]  # fmt: skip
    assert words[at + 1].startswith("env=http://127.0.0.1:") and "/mcp?token=" in words[at + 1]
    assert words[at + 2 :] == [
        "--max-tokens", "500", "--max-steps", "7", "--deadline", "9500ms",
        "--instruction", "Be kind.", "", "Record the query.",
    ]  # fmt: skip


def test_a_conversation_is_told_in_one_text() -> None:
    task = Task("No, the other one.", (), policy="Be kind.")
    assert instruction(task) == "Be kind.\n\nNo, the other one."
    said = (Message("user", "Cancel it."), Message("assistant", "This one?"))
    assert instruction(Task("No, the other one.", (), policy="Be kind.", history=said)) == (
        "Be kind.\n\nConversation so far:\nUser: Cancel it.\nAssistant: This one?\nUser: No, the other one.\n\n"
        "Answer the user's latest message; use the tools as needed."
    )


ENDS: dict[str, tuple[str, str, str]] = {
    "exit:0": ("done", "no_answer", ""),
    "exit:1": ("driver_error", "driver_error", "it failed (exit 1)"),
    "exit:2": ("driver_error", "driver_error", "it does not take these arguments (exit 2)"),
    "exit:3": ("driver_error", "driver_error", "it ended with a part of the task, or stalled (exit 3)"),
    "exit:5": ("refused", "over_refusal", "it refused (exit 5)"),
    "exit:7": ("budget", "budget", "its budget is used up (exit 7)"),
    "exit:9": ("driver_error", "driver_error", "it failed (exit 9)"),
    "exit:124": ("timeout", "timeout", "out of time after 60 s"),
    "exit:137": ("driver_error", "driver_error", "it was killed (out of memory?) (exit 137)"),
    "exit:143": ("driver_error", "driver_error", "it was told to end from outside (exit 143)"),
    "kill:": ("driver_error", "driver_error", "it was killed (out of memory?) (exit 137)"),
    "mock:refuse": ("refused", "over_refusal", "it refused (exit 5)"),
    "mock:stall": ("driver_error", "driver_error", "or stalled (exit 3)"),
    "mock:late": ("timeout", "timeout", "out of time"),
    "mock:crash": ("driver_error", "driver_error", "it failed (exit 1)"),
}  # fmt: skip


@pytest.mark.parametrize("model", ENDS)
def test_its_exit_code_says_how_it_ended(tmp_path: Path, model: str) -> None:
    row, _, _ = one(tmp_path, agentd(model))
    stop, outcome, why = ENDS[model]
    assert (row.produced.stop, row.verdict.outcome) == (stop, outcome)
    assert why in row.produced.why


@pytest.mark.parametrize(
    ("model", "why"), [("mock:down", "its model could not be reached"), ("exit:6", "MCP server")]
)
def test_what_it_needs_and_cannot_reach_is_nobodys_fault(tmp_path: Path, model: str, why: str) -> None:
    row, _, run = one(tmp_path, agentd(model), retries=1)
    assert why in row.verdict.excluded and row.verdict.owner == "environment"
    assert run.attempts.num_rows == 2


def test_every_exit_code_stands_in_the_docs() -> None:
    page = (ROOT / "docs" / "drivers.md").read_text(encoding="utf-8")
    for code, (stop, why) in EXITS.items():
        assert f"| {code} | {why} | `{stop}` |" in page


def test_its_limits_are_the_trials(tmp_path: Path) -> None:
    for limits in (Limits(tokens=20), Limits(steps=1)):
        row, trial, _ = one(tmp_path, agentd("mock:mcp-call", "--mode", "fanout-9"), limits=limits)
        assert row.verdict.outcome == "budget"
        assert trial["tokens_fresh_input"] is not None
    row, trial, _ = one(tmp_path, agentd("mock:mcp-call", "--mode", "fanout-9"), limits=Limits(tool_calls=2))
    assert (row.verdict.outcome, trial["tool_calls"]) == ("budget", 2)


def test_the_limit_of_time_keeps_what_it_has_cost(tmp_path: Path) -> None:
    """Both it and the helper that it began are ended, and what its models answered until then is counted."""
    began = time.monotonic()
    row, trial, run = one(tmp_path, agentd("mock:helper"), limits=Limits(wall_s=1.5))
    assert time.monotonic() - began < 5
    assert row.verdict.outcome == "timeout"
    assert (trial["tokens_fresh_input"], trial["tokens_output"]) == (11, 5)
    (kept,) = run.transcripts.to_pylist()
    assert kept["stdout"] == "started\n"
    assert "exit null" in str(kept["notes"])
    assert gone(str(STAND_IN))


def test_on_the_ladder_what_went_well_is_claimed(tmp_path: Path) -> None:
    """A program in shell that calls one tool over plain HTTP, as any MCP client may."""
    agent = program(tmp_path, AGENT, "agent.py")
    suite = write_suite(tmp_path, some(0))
    run = evaluate(suite, f"command[agentd]:{sys.executable} {agent}", workers=2, trials=2, save_run=False)
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 4


AGENT = f"""
import sys, argparse
sys.path.insert(0, {str(STAND_IN.parent)!r})
import agentd_standin as it
asked = dict(zip(sys.argv[1:], sys.argv[2:]))
server = it.Server(asked["--mcp"].partition("=")[2])
server.ask("tools/call", name="tmct_describe", arguments={{"symbol": asked["--instruction"].split()[-1]}})
"""


def test_the_control_tools_end_a_task_over_mcp_too(tmp_path: Path) -> None:
    agent = program(
        tmp_path,
        AGENT.replace(
            'name="tmct_describe", arguments={"symbol": asked["--instruction"].split()[-1]}',
            'name="answer", arguments={"value": 5, "status": "success"}',
        )
        + "\nprint('as I said')\n",
        "agent.py",
    )
    (row,) = evaluate(
        write_suite(tmp_path, some(6)), f"command[agentd]:{sys.executable} {agent}", save_run=False
    ).product
    assert row.produced.answer == 5


# ---- telemetry


class Told:
    """Stands for a trial's context: what it was told to spend, and when it has enough."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def spend(self, usage: object) -> None:
        self.used += usage.fresh_input + usage.output  # type: ignore[attr-defined]
        if self.used > self.most:
            raise BudgetSpent("enough")


def test_telemetry_is_read_in_any_pieces_and_nonsense_is_left_aside() -> None:
    lines = [
        b'{"event":"intel.result","tokens_in":3,"tokens_out":4}',
        b"not json", b"{half", b'{"event":"intel.result","tokens_in":"3","tokens_out":4}', b"\xff\xfe",
        b'{"event":"intel.result","tokens_in":-3,"tokens_out":4}', b'{"event":"loop.final","status":"completed","steps":1,"tokens":7}',
        b'{"x":"' + b"y" * 3_000_000 + b'"}',
        b'{"event":"loop.final","status":"cancelled","steps":2}', b'{"event":"tool.call"}',
        b'{"event":"intel.result","tokens_in":5,"tokens_out":1}',
    ]  # fmt: skip
    whole = b"\n".join(lines)
    for size in (1_000, 65_536, len(whole)):
        ctx = Told(1_000)
        heard = Heard(ctx, Said())  # type: ignore[arg-type]
        for at in range(0, len(whole), size):
            heard.hear(whole[at : at + size])
        heard.end()
        assert (ctx.used, heard.answers, heard.ends, heard.steps, heard.tokens) == (13, 2, 2, 3, None)


def test_a_budget_that_is_over_is_said_once_and_the_rest_is_still_counted() -> None:
    ctx = Told(10)
    heard = Heard(ctx, Said())  # type: ignore[arg-type]
    line = b'{"event":"intel.result","tokens_in":6,"tokens_out":6}\n'
    with pytest.raises(BudgetSpent):
        heard.hear(line * 3)
    heard.hear(line)
    assert ctx.used == 48


# ---- the token in the URL


def test_only_a_trial_that_says_so_takes_its_token_in_the_url() -> None:
    def answer(url: str, **headers: str) -> int:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(urllib.request.Request(url, body, {**kind, **headers}), timeout=10) as got:
                return got.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with HttpBridge() as bridge:
        box = Toolbox(tiny_world(), ["tmct_untested"])
        closed, opened = bridge.open(box), bridge.open(box, in_url=True)
        refused = [
            answer(closed.url), answer(closed.url_with_token), answer(opened.url), answer(f"{opened.url}?token="),
            answer(f"{opened.url}?token={closed.token}"),
            answer(opened.url_with_token, Authorization="Bearer wrong"),
        ]  # fmt: skip
        assert refused == [401] * 6
        for url, headers in (
            (opened.url_with_token, {}),
            (opened.url, {"Authorization": f"Bearer {opened.token}"}),
        ):
            assert answer(url, **headers) != 401
        bridge.shut(opened)
        assert answer(opened.url_with_token) == 404


def test_the_server_ends_with_the_run(tmp_path: Path) -> None:
    import threading

    one(tmp_path, agentd("mock:final"))
    assert [thread.name for thread in threading.enumerate() if thread.name == "mcp bridge"] == []
    assert alive(str(STAND_IN)) == []
    assert os.getpid()


def test_a_task_too_long_for_an_argument_is_its_own_limit(tmp_path: Path) -> None:
    """It takes its task as an argument: to try again would be the same, and another machine the same too."""
    agent = program(tmp_path, "#!/bin/sh\necho done\n")
    case = {**STATE, "policy": "x" * 3_000_000}
    run = evaluate(suite_of(tmp_path, case), f"command[agentd]:{agent}", save_run=False)
    assert run.product[0].verdict.outcome == "driver_error"
    assert "cannot be started: Argument list too long" in str(run.product[0].produced.why)
    assert run.attempts.num_rows == 1
