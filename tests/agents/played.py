"""The scripted agent as a driver: a process beside the run, to which each trial is served by our bridge."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.mcp_server import Address, HttpBridge

from ..doing import environment

PROGRAM = Path(__file__).parent / "scripted.py"
Job = dict[str, Any]
Play = Callable[[Address, Job], dict[str, Any]]


@contextmanager
def agent() -> Iterator[Play]:
    """The agent's process; what is given plays one job on the trial that is served at an address."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    wire, turn = (process.stdin, process.stdout), threading.Lock()

    def play(address: Address, job: Job) -> dict[str, Any]:
        with turn:
            wire[0].write(json.dumps({"url": address.url, "token": address.token, **job}) + "\n")
            wire[0].flush()
            reply: dict[str, Any] = json.loads(wire[1].readline())
        return reply

    try:
        yield play
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.stdout.close()


def driver(
    bridge: HttpBridge, play: Play, job_of: Callable[[Task], Job], replies: list[dict[str, Any]]
) -> Callable[[Task, Any, Any], Transcript]:
    """A driver that hands each trial to the agent; `job_of` tells what to do from what an agent is shown. Its replies
    are added to `replies`. How the trial ends and what is answered stands in the toolbox alone."""

    def scripted(task: Task, tools: Any, ctx: Any) -> Transcript:
        address = bridge.open(tools)
        try:
            reply = play(address, job_of(task))
        finally:
            bridge.shut(address)
        replies.append(reply)
        used = reply["usage"]
        usage = Usage(fresh_input=used["input"], output=used["output"], model_calls=used["turns"])
        return Transcript(usage=usage)

    return scripted
