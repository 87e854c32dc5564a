"""The bridge as a person starts it: served to the official client, ended, its ledger written and its grade printed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from agentbench_lab.drivers.context import Context
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.mcp_server import HttpBridge

from .doing import begun, command, environment, lab
from .states import STATE, TOOLS, line

DESK = {"kind": "state", "state": STATE, "tools": TOOLS}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    lines = [line(world=DESK), line(id="d", world=DESK)]
    (tmp_path / "desk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return tmp_path


async def cancels(client: Client) -> None:
    await client.call_tool("cancel", {"id": "W00"})
    await client.call_tool("cancel", {"id": "W77"})


async def over_http(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await cancels(client)


def test_a_trial_on_stdio_leaves_a_ledger_and_a_grade(here: Path) -> None:
    """The agent's client ends the session; what it called is what is judged."""
    asked = ["bridge", "desk.jsonl", "--case", "c", "--stdio", "--ledger", "out.json", "--grade"]
    there = StdioServerParameters(
        command=sys.executable, args=command(*asked)[1:], env=environment(), cwd=str(here)
    )

    async def work() -> None:
        with open(here / "err", "w", encoding="utf-8") as err:
            async with Client(stdio_client(there, errlog=err)) as client:
                await cancels(client)

    asyncio.run(work())
    (trial,) = json.loads((here / "out.json").read_text(encoding="utf-8"))["trials"]
    assert [(row["name"], row["input"]["id"], row["status"]) for row in trial["ledger"]] == [
        ("cancel", "W00", "tool_error"),
        ("cancel", "W77", "ok"),
    ]
    said = json.loads((here / "err").read_text(encoding="utf-8"))
    assert (said["case"], said["grade"]["outcome"], said["grade"]["solved"]) == ("c", "solved", True)
    assert trial["grade"] == said["grade"]


def test_a_work_folder_is_served_at_the_level_that_was_asked_for(here: Path) -> None:
    """`local` has its folder under the temporary one of this machine; the ledger says at which level it was."""
    case = line(
        world={"kind": "sandbox"},
        tools=["bash"],
        expect={"files": {"a": {"line": "1"}}},
        gold={"calls": [{"name": "bash", "input": {"command": "echo 1 > a"}}]},
    )
    (here / "files.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    asked = ["bridge", "files.jsonl", "--case", "c", "--stdio", "--sandbox", "local"]
    there = StdioServerParameters(
        command=sys.executable,
        args=command(*asked, "--ledger", "out.json", "--grade")[1:],
        env=environment(),
        cwd=str(here),
    )

    async def work() -> str:
        with open(here / "err", "w", encoding="utf-8") as err:
            async with Client(stdio_client(there, errlog=err)) as client:
                seen = await client.call_tool("bash", {"command": "pwd; echo 1 > a"})
        return seen.content[0].text  # type: ignore[union-attr]

    folder = asyncio.run(work())
    assert folder.endswith("/work") and folder != "/work"
    said = json.loads((here / "out.json").read_text(encoding="utf-8"))
    assert said["sandbox"] == "local"
    (trial,) = said["trials"]
    assert trial["grade"]["solved"] is True


def test_a_trial_in_which_nothing_was_called_is_not_solved(here: Path) -> None:
    asked = command("bridge", "desk.jsonl", "--case", "c", "--stdio", "--grade")
    done = subprocess.run(asked, cwd=here, env=environment(), input=b"", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads(done.stderr)["grade"]["outcome"] == "no_answer"


def test_what_an_agent_calls_steers_no_terminal(here: Path) -> None:
    """The grade names it, in JSON that holds it as it was."""
    odd = "gone \x9b2J \u202e"
    asked = ["bridge", "desk.jsonl", "--case", "c", "--stdio", "--grade"]
    there = StdioServerParameters(
        command=sys.executable, args=command(*asked)[1:], env=environment(), cwd=str(here)
    )

    async def work() -> None:
        with open(here / "err", "w", encoding="utf-8") as err:
            async with Client(stdio_client(there, errlog=err)) as client:
                with contextlib.suppress(MCPError):
                    await client.call_tool(odd, {})

    asyncio.run(work())
    said = (here / "err").read_text(encoding="utf-8")
    assert odd in json.dumps(json.loads(said), ensure_ascii=False)
    assert [sign for sign in said if not (sign.isprintable() or sign == "\n")] == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_agent_is_told_its_task_as_it_connects(here: Path, mode: str) -> None:
    """The request and the policy of the case, by the official client, in the handshakes of both eras."""
    cases = [
        line(world=DESK, policy="Cancel only what is pending."),
        line(id="d", world=DESK, request="Stop W78"),
    ]
    (here / "desk.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cases), encoding="utf-8")
    for case, policy, request in (
        ("c", "The policy that you keep:\n\nCancel only", "Cancel W77"),
        ("d", "", "Stop W78"),
    ):
        there = StdioServerParameters(
            command=sys.executable,
            args=command("bridge", "desk.jsonl", "--case", case, "--stdio")[1:],
            env=environment(),
            cwd=str(here),
        )

        async def work(there: StdioServerParameters = there) -> str | None:
            async with Client(stdio_client(there), mode=mode) as client:
                return client.instructions

        told = asyncio.run(work())
        assert told is not None and told.endswith(f"The task:\n\n{request}")
        assert "`refuse`" in told and policy in told and ("policy" in told) is bool(policy)


def test_many_trials_over_http(here: Path) -> None:
    """Two trials of two cases behind one server: each has its own token, ledger and grade."""
    asked = command(
        *("bridge", "desk.jsonl", "--case", "c", "--case", "d", "--trials", "2", "--http"),
        *("--addresses", "where", "--ledger", "out.json", "--grade"),
    )
    with begun(asked, cwd=here, env=environment(), stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        places = waited(here / "where", process)
        assert stat.S_IMODE((here / "where").stat().st_mode) == 0o600
        assert [(one["case"], one["trial"]) for one in places] == [("c", 1), ("c", 2), ("d", 1), ("d", 2)]
        asyncio.run(over_http(places[1]["url"], places[1]["token"]))
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read().decode()
    assert process.returncode == 0
    assert [json.loads(text)["grade"]["solved"] for text in errors.splitlines()] == [
        False,
        True,
        False,
        False,
    ]
    trials = json.loads((here / "out.json").read_text(encoding="utf-8"))["trials"]
    assert [len(one["ledger"]) for one in trials] == [0, 2, 0, 0]


def waited(file: Path, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    until = time.monotonic() + 60
    while not file.exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    return [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]


def test_a_token_from_the_environment_is_printed_nowhere(here: Path) -> None:
    token = "a-token-of-my-own-making"
    asked = command("bridge", "desk.jsonl", "--case", "c", "--http")
    with begun(
        asked, cwd=here, env=environment(AGENTBENCH_LAB_TOKEN=token), stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        place = json.loads(first)
        assert place.keys() == {"case", "trial", "url"}
        asyncio.run(over_http(place["url"], token))
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_sigterm_on_stdio_still_writes_the_ledger(here: Path) -> None:
    asked = command("bridge", "desk.jsonl", "--case", "c", "--stdio", "--ledger", "out.json")
    with begun(asked, cwd=here, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        ask = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        process.stdin.write(json.dumps(ask).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert json.loads((here / "out.json").read_text(encoding="utf-8"))["trials"][0]["ledger"] == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--case", "c"), "give either --stdio or --http"),
        (("--case", "c", "--stdio", "--http"), "give either --stdio or --http"),
        (
            ("--case", "c", "--case", "d", "--stdio"),
            "--stdio serves one trial of one case; give --http for more",
        ),
        (("--case", "cc", "--stdio"), "desk has no case 'cc' (did you mean 'c'?)"),
        (("--case", "c", "--http", "--trials", "0"), "--trials must be at least 1, not 0"),
        (
            ("--case", "c", "--stdio", "--max-tool-calls", "-1"),
            "--max-tool-calls must be a whole number from 0, not -1",
        ),
        (("--case", "c", "--http", "--port", "99999"), "--port must be 0 to 65535, not 99999"),
        (
            ("--case", "c", "--stdio", "--sandbox", "bubblewarp"),
            "no sandbox level 'bubblewarp' (did you mean 'bubblewrap'?)",
        ),
        (("--case", "c", "--stdio", "--ledger", "no/x"), "--ledger no/x: there is no such folder"),
    ],
)
def test_mistakes_are_one_line(here: Path, asked: tuple[str, ...], said: str) -> None:
    done = lab("bridge", "desk.jsonl", *asked, cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {said}\n")


def test_a_driver_may_put_its_toolbox_on_a_bridge(here: Path) -> None:
    """One server for a whole run; the agent behind it is judged like any other."""
    with HttpBridge() as bridge:

        def driver(task: Any, tools: Any, ctx: Context) -> Transcript:
            address = bridge.open(tools)
            asyncio.run(over_http(address.url, address.token))
            bridge.shut(address)
            return Transcript()

        run = evaluate(here / "desk.jsonl", driver, trials=2, out=here / "out")
    assert run.trials["outcome"].to_pylist() == ["solved"] * 4
    assert run.calls["status"].to_pylist() == ["tool_error", "ok"] * 4


@pytest.mark.long
def test_a_case_whose_world_is_somebody_elses_server(here: Path) -> None:
    """Linted, run by a driver in process, and no process is left behind."""
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu"}
    case = line(
        world={"kind": "mcp", "command": ["mcp-server-time", "--local-timezone", "UTC"]},
        tools=["convert_time"],
        request="What time is it in Kathmandu when it is noon in UTC?",
        expect={"answer": {"contains": "17:45"}, "calls": [{"name": "convert_time", "input": asked}]},
        gold={"answer": "17:45"},
    )
    (here / "time.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    done = lab("lint", "time.jsonl", cwd=here)
    assert (done.returncode, done.stderr) == (0, ""), done

    def driver(task: Any, tools: Any, ctx: Context) -> Transcript:
        seen = tools.call("convert_time", asked)
        return Transcript(answer=f"At {seen.value['target']['datetime'][11:16]}.")

    run = evaluate(here / "time.jsonl", driver, out=here / "out")
    assert run.trials["outcome"].to_pylist() == ["solved"]
    (world,) = run.card.worlds
    assert world.kind == "mcp"
    left = [
        entry
        for entry in Path("/proc").glob("[0-9]*/stat")
        if f" {os.getpid()} " in _read(entry) and b"mcp-server-time" in _bytes(entry.with_name("cmdline"))
    ]
    assert left == []


def _read(file: Path) -> str:
    return _bytes(file).decode(errors="replace")


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
