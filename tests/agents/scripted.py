"""A scripted agent that is another program: it reaches its tools over MCP, with the official SDK, and in no other way.

A job is a line of JSON on stdin: `url` and `token` of a trial, `calls` as `[[name, arguments], ...]`, and the `answer` to
end with (left out: none is given). To each a line comes back on stdout: the names of the tools that it was shown, what
each call gave back as `[is_error, text]`, and the tokens of a model whose turns all have the same length. It ends with
its stdin. In place of `calls` and `answer` a job may name a `script`, one of agentd's built-in models. With `mend`, an
object from paths to texts, it first writes those files that it finds in its work folder.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

Calls = list[tuple[str, dict[str, Any]]]
SCRIPTS: dict[str, tuple[Calls, str]] = {
    "final": ([], "mock-llm done"),
    "read": ([("resource.read", {"uri": "file:///in.json"})], "read complete"),
    "mcp-call": ([("bench_echo", {"query": "ping"})], "bench tool called"),
    "shell-call": ([("bash", {"command": "echo pong > out.txt"})], "ran the command"),
}
"""What agentd's built-in models do, and say when it is done."""
INPUT, CALL_OUTPUT, LAST_OUTPUT = 11, 7, 5
"""Tokens of their turns."""


async def play(job: dict[str, Any]) -> dict[str, Any]:
    """Carry out one job."""
    calls, answer = SCRIPTS[job["script"]] if "script" in job else (job["calls"], job.get("answer"))
    headers = {"Authorization": f"Bearer {job['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(job["url"], http_client=http)) as client,
    ):
        shown = [tool.name for tool in (await client.list_tools()).tools]
        seen: list[tuple[bool, str]] = []

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            text: str = result.content[0].text  # type: ignore[union-attr]
            seen.append((bool(result.is_error), text))
            return text

        if "mend" in job:
            for path in (await call("bash", {"command": "ls"})).split():
                await call("read_file", {"path": path})
                if path in job["mend"]:
                    await call("write_file", {"path": path, "content": job["mend"][path]})
        for name, arguments in calls:
            await call(name, arguments)
        if answer is not None:
            await client.call_tool("answer", {"value": answer})
    turns = len(seen) + 1
    usage = {"input": INPUT * turns, "output": CALL_OUTPUT * len(seen) + LAST_OUTPUT, "turns": turns}
    return {"shown": shown, "seen": seen, "usage": usage}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(asyncio.run(play(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
