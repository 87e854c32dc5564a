#!/usr/bin/env python3
"""A stand-in for agentd 1.x: its arguments, its telemetry, its exit codes, and its built-in scripted models.

The standard library alone. Facts: RFC 0011 and RFC 0024 of agentd-dev/source-code. `--intelligence mock:NAME` is a script
(final, read, mcp-call, shell-call, slow, hang, down, refuse, crash, ...); `mock:auto` takes the one that fits the tools.
`--mode once` is one loop; `workflow` the loop as a node of a graph; `fanout-N` the same N times over.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

IN, CALLING, LAST = 11, 7, 5
SCRIPTS = {
    "read": ("resource.read", {"uri": "file:///in.json"}, "read complete"),
    "mcp-call": ("bench_echo", {"query": "ping"}, "bench tool called"),
    "shell-call": ("bash", {"command": "echo pong > out.txt"}, "ran the command"),
}
LEVELS = ("error", "warn", "info", "debug", "trace")


class Ends(Exception):
    """The agent ends here, with this status."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instruction", required=True)
    parser.add_argument("--intelligence", required=True)
    parser.add_argument("--model")
    parser.add_argument("--mode", default="once")
    parser.add_argument("--mcp", action="append", default=[])
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--deadline")
    parser.add_argument("--log-level", default="info", choices=LEVELS)
    parser.add_argument("--log-content", action="store_true")
    return parser.parse_args()


def log(level: str, event: str, **fields: object) -> None:
    if LEVELS.index(level) <= LEVELS.index(OPTIONS.log_level):
        said = {"level": level, "event": event, **fields}
        print(json.dumps(said, separators=(",", ":")), file=sys.stderr, flush=True)


class Server:
    """An MCP server over HTTP, spoken to with the URL as it was given."""

    def __init__(self, url: str) -> None:
        self.url, self.session, self.number = url, None, 0
        about = {"name": "stand-in", "version": "0"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.tell("notifications/initialized")
        self.tools = [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def post(self, message: dict) -> dict:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        request = urllib.request.Request(self.url, json.dumps(message).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            self.session = answer.headers.get("Mcp-Session-Id") or self.session
            body = answer.read()
        return json.loads(body) if body else {}

    def ask(self, method: str, **params: object) -> dict:
        self.number += 1
        return self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})["result"]

    def tell(self, method: str) -> None:
        self.post({"jsonrpc": "2.0", "method": method})


def loop(servers: list[Server]) -> str:
    """One agent: a turn of the model, the tool that it asks for, and the last turn."""
    name = OPTIONS.intelligence.removeprefix("mock:")
    offered = [tool for server in servers for tool in server.tools]
    if name == "auto":
        name = next((name for name, (tool, *_) in SCRIPTS.items() if tool in offered), "final")
    steps = tokens = 0

    def turn(out: int) -> None:
        nonlocal steps, tokens
        for used, most, status in (
            (steps, OPTIONS.max_steps, "exhausted_steps"),
            (tokens, OPTIONS.max_tokens, "exhausted_tokens"),
        ):
            if most is not None and used >= most:
                log("warn", "loop.final", status=status, steps=steps, tokens=tokens)
                raise Ends(status)
        steps, tokens = steps + 1, tokens + IN + out
        log("debug", "intel.result", tool_calls=int(out == CALLING), tokens_in=IN, tokens_out=out)

    if name in ("slow", "hang"):
        time.sleep(5 if name == "slow" else 12)
    tool, arguments, words = SCRIPTS.get(name, ("", {}, "mock-llm done"))
    if tool:
        turn(CALLING)
        more = {"args": json.dumps(arguments)} if OPTIONS.log_content else {}
        log("info", "tool.call", tool=tool, id="1", **more)
        server = next((server for server in servers if tool in server.tools), None)
        if server is None:
            log("info", "tool.result", tool=tool, is_error=True, bytes=0)
        else:
            answer = server.ask("tools/call", name=tool, arguments=arguments)
            size = len(json.dumps(answer["content"]))
            log("info", "tool.result", tool=tool, is_error=bool(answer.get("isError")), bytes=size)
    turn(LAST)
    if name == "helper":
        subprocess.Popen(["sleep", "300"])
        print("started", flush=True)
        time.sleep(300)
    ends = {"refuse": "refused", "stall": "stalled", "late": "deadline", "crash": "crashed"}
    status = ends.get(name, "completed")
    log("info", "loop.final", status=status, steps=steps, tokens=tokens)
    if status != "completed":
        raise Ends(status)
    return words


CODES = {
    "refused": 5, "exhausted_steps": 7, "exhausted_tokens": 7, "deadline": 7, "stalled": 3,
    "loop_detected": 3, "cancelled": 1, "crashed": 1,
}  # fmt: skip


def main() -> int:
    if OPTIONS.intelligence == "mock:down":
        log("error", "intel.unavailable")
        return 4
    if OPTIONS.intelligence.startswith("exit:"):
        return int(OPTIONS.intelligence.removeprefix("exit:"))
    if OPTIONS.intelligence == "kill:":
        os.kill(os.getpid(), 9)
    try:
        servers = [Server(spec.partition("=")[2]) for spec in OPTIONS.mcp]
    except (OSError, urllib.error.URLError, KeyError) as error:
        log("error", "mcp.down", msg=str(error))
        return 6
    mode = OPTIONS.mode
    times = int(mode.removeprefix("fanout-")) if mode.startswith("fanout-") else 1
    if mode not in ("once", "workflow") and not mode.startswith("fanout-"):
        log("error", "config.invalid", msg=f"no mode {mode}")
        return 2
    try:
        said = [loop(servers) for _ in range(times)]
    except Ends as ends:
        return CODES[str(ends)]
    print(said[-1])
    return 0


if __name__ == "__main__":
    OPTIONS = options()
    sys.exit(main())
