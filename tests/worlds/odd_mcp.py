"""An MCP server in the standard library alone, with one oddity that its argument names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

ODD = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"what {name} does", "inputSchema": SCHEMA, **more}


def listed(cursor: str | None) -> dict[str, Any]:
    if ODD == "pages":
        at = int(cursor or 0)
        page: dict[str, Any] = {"tools": [tool(f"t{at}"), tool("shared")]}
        return {**page, "nextCursor": str(at + 1)} if at < 2 else page
    if ODD == "loop":
        return {"tools": [tool(f"t{cursor}")], "nextCursor": "again"}
    if ODD == "twins":
        return {"tools": [tool("same"), tool("same", description="another")]}
    if ODD == "none":
        return {"tools": []}
    if ODD == "pattern":
        words = {
            "type": "object",
            "properties": {"w": {"type": "string", "pattern": "^a+$"}},
            "required": ["w"],
        }
        return {"tools": [tool("count", inputSchema=words), tool("any", inputSchema={"type": "object"})]}
    if ODD == "fickle" and os.path.exists("changed"):
        return {"tools": [tool("other")]}
    return {
        "tools": [
            tool("act", annotations={"readOnlyHint": False}),
            tool("look", annotations={"readOnlyHint": True}),
        ]
    }


CALLS = 0
B11: list[dict[str, Any]] = [
    {"result": {"content": [{"type": "text", "text": "ok, 4 rows"}], "isError": False}},
    {"result": {"content": [{"type": "text", "text": "no such table"}], "isError": True}},
    {"error": {"code": -32602, "message": "bad params"}},
    {"result": {"content": [{"type": "text", "text": '{"status":"error"}'}]}},
]


def answer(id: Any, name: str, arguments: dict[str, Any]) -> None:
    global CALLS
    CALLS += 1
    if ODD == "hang":
        return
    if ODD == "dies":
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if ODD == "noisy":
        sys.stdout.write('INFO: a log line\n{"level": "info"}\n\n')
    if ODD == "flood":
        sys.stdout.write("x" * (17 * 1024 * 1024) + "\n")
        sys.stdout.flush()
    if ODD == "B11":
        say({"jsonrpc": "2.0", "id": id, **B11[arguments["n"] - 1]})
        return
    text = json.dumps(
        {
            "name": name,
            "arguments": arguments,
            "calls": CALLS,
            "pid": os.getpid(),
            "secret": os.environ.get("SECRET"),
            "given": os.environ.get("GIVEN"),
        }
    )
    say({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})


def main() -> None:
    if ODD == "broken":
        sys.exit("cannot find my configuration")
    if ODD == "silent":
        time.sleep(600)
    if ODD == "child":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open("child", "w", encoding="utf-8") as file:
            file.write(str(child.pid))
    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if id is None:
            continue
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "odd", "version": "0"}
            say(
                {
                    "jsonrpc": "2.0",
                    "id": id,
                    "result": {
                        "protocolVersion": version,
                        "capabilities": {"tools": {}},
                        "serverInfo": about,
                    },
                }
            )
        elif method == "tools/list":
            say({"jsonrpc": "2.0", "id": id, "result": listed((message.get("params") or {}).get("cursor"))})
        elif method == "tools/call":
            answer(id, message["params"]["name"], message["params"].get("arguments") or {})
        else:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
    if ODD == "child":
        time.sleep(600)


main()
