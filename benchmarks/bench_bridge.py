"""A call over our HTTP bridge against one over a bare server of the SDK: what tokens, worlds and ledgers cost.

Both are served by the same uvicorn in a process of their own and answer with JSON; the client is the official one.
Ours has a hundred trials open, checks host, origin and token, and keeps a ledger; the bare server adds two numbers.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from common import compare

try:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    print("skipped: the MCP SDK is not installed")
    sys.exit(0)

ROUND_TRIPS = 200
GOAL = 1.2
OURS = """
import sys
sys.path.insert(0, "benchmarks")
from bench_call import WORLD
from agentbench_lab.worlds.mcp_server import HttpBridge
from agentbench_lab.worlds.toolbox import Toolbox
with HttpBridge() as bridge:
    places = [bridge.open(Toolbox(WORLD.fork(), ["add"])) for _ in range(100)]
    print(places[50].url, places[50].token, flush=True)
    sys.stdin.read()
"""
BARE = """
import socket, sys, threading
import uvicorn
from mcp.server import MCPServer
server = MCPServer("sums")
@server.tool()
def add(x: int, y: int) -> int:
    return x + y
bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
bound.bind(("127.0.0.1", 0))
app = server.streamable_http_app(json_response=True)
made = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none"))
threading.Thread(target=made.run, args=([bound],), daemon=True).start()
print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", "none", flush=True)
sys.stdin.read()
"""


async def _trip(url: str, token: str) -> float:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        await client.list_tools()
        await client.call_tool("add", {"x": 1, "y": 2})
        began = time.perf_counter()
        for _ in range(ROUND_TRIPS):
            await client.call_tool("add", {"x": 1, "y": 2})
        return 1e6 * (time.perf_counter() - began) / ROUND_TRIPS


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    running, places = [], []
    try:
        for source in (OURS, BARE):
            process = subprocess.Popen(
                [sys.executable, "-c", source],
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            running.append(process)
            assert process.stdout is not None
            places.append(process.stdout.readline().split())
        time.sleep(0.5)
        ours, bare = places
        return compare(
            lambda: asyncio.run(_trip(*ours)),
            lambda: asyncio.run(_trip(*bare)),
            goal=GOAL,
            unit="µs a call",
        )
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
