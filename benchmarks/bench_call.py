"""A tool call in process, with its arguments checked and kept in the ledger, against one over the official stdio bridge.

Ours: `Toolbox.call` on a state world, schema checks on, as every driver in process calls.
The other side: the same call of a server and a client of the official SDK, over stdio.
"""

from __future__ import annotations

import asyncio
import sys
import time

from common import compare

try:
    from mcp import Client, StdioServerParameters
except ImportError:
    print("skipped: the MCP SDK is not installed")
    sys.exit(0)

from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

TIMES, ROUND_TRIPS = 5_000, 300
GOAL = 0.02
ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x", "y"],
    },
    "effects": [{"return": "sum"}],
}
WORLD = StateWorld("sums", {"sum": 3}, [ADD])
SERVER = """
from mcp.server import MCPServer
server = MCPServer("sums")
@server.tool()
def add(x: int, y: int) -> int:
    return x + y
server.run("stdio")
"""


def ours() -> float:
    tools = Toolbox(WORLD.fork(), ["add"])
    began = time.perf_counter()
    for _ in range(TIMES):
        tools.call("add", {"x": 1, "y": 2})
    spent = time.perf_counter() - began
    assert len(tools.ledger) == TIMES and tools.ledger[0].value == 3
    return 1e6 * spent / TIMES


async def _official() -> float:
    there = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    async with Client(there, cache=None) as client:
        await client.list_tools()
        await client.call_tool("add", {"x": 1, "y": 2})
        began = time.perf_counter()
        for _ in range(ROUND_TRIPS):
            await client.call_tool("add", {"x": 1, "y": 2})
        return 1e6 * (time.perf_counter() - began) / ROUND_TRIPS


def official() -> float:
    return asyncio.run(_official())


if __name__ == "__main__":
    sys.exit(compare(ours, official, goal=GOAL, unit="µs a call", rounds=5))
