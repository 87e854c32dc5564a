"""640 chat trials, 64 side by side, against an endpoint that answers in 50 ms: at least 95 % of a bare loop.

Both sides ask the same endpoint, which has a process of its own, with the same HTTP client and the same bytes: one
request a trial. The bare loop sends each, reads its answer as JSON and does nothing else; it encodes its request from an
object, as anybody does who has a dialogue to send. Ours is timed from the first driver's start to the last trial in the
journal: prompts, tools, the loop, the ledger, the grade and the journal are in it. Of both the client is new in every
round, and its connections are made within what is timed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
from chat_stub import WAIT_S
from common import compare

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers import chat_http
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

WORKERS = 64
CASES = load_suite("ladder").cases[:160]
TRIALS = 4
COUNT = len(CASES) * TRIALS
GOAL = 1 / 0.95


begun: list[float] = []


def bodies(url: str) -> list[Any]:
    """What ours sends, one request for each case."""
    kept: list[Any] = []
    post = chat_http.post

    async def seen(url: str, body: bytes, timeout: float) -> bytes:
        kept.append(json.loads(body))
        return await post(url, body, timeout)

    chat_http.post = seen
    try:
        evaluate(CASES, f"chat:stub@{url}", workers=WORKERS, save_run=False)
    finally:
        chat_http.post = post
    return kept


def ours(url: str) -> float:
    chat = load_driver(f"chat:stub@{url}").function

    async def timed(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        begun.append(time.perf_counter())
        return await chat(task, tools, ctx)

    begun.clear()
    ended: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = evaluate(
            CASES,
            timed,
            trials=TRIALS,
            workers=WORKERS,
            out=Path(folder) / "run",
            progress=lambda done, asked: ended.append(time.perf_counter()),
        )
    assert run.card.counts.judged == COUNT and run.trials["model_calls"].to_pylist() == [1] * COUNT
    return ended[-1] - begun[0]


def bare(url: str, asked: list[Any]) -> float:
    async def all_of_them() -> float:
        left = asked * TRIALS
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        began = time.perf_counter()
        async with httpx2.AsyncClient(limits=limits, timeout=60, verify=False) as client:

            async def lane() -> None:
                while left:
                    answer = await client.post(f"{url}/chat/completions", json=left.pop())
                    assert answer.json()["choices"]

            await asyncio.gather(*(lane() for _ in range(WORKERS)))
            return time.perf_counter() - began

    return asyncio.run(all_of_them())


if __name__ == "__main__":
    stub = [sys.executable, str(Path(__file__).with_name("chat_stub.py"))]
    with subprocess.Popen(stub, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None and endpoint.stdin is not None
        base = f"http://127.0.0.1:{int(endpoint.stdout.readline())}/v1"
        same = bodies(base)
        assert len(same) == len(CASES)
        print(f"{COUNT} trials of one request, answered in {WAIT_S * 1000:g} ms, {WORKERS} side by side")
        missed = compare(lambda: ours(base), lambda: bare(base, same), goal=GOAL, unit="s", rounds=7)
        endpoint.stdin.close()
    sys.exit(missed)
