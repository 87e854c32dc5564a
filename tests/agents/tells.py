#!/usr/bin/env python3
"""An agent that says what it was given in secret, in every way it has: over lines of JSON, or as agentd over MCP.

The request's last word says how it ends. The secret is the variable MARKED; it stands nowhere in this file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from typing import Any

SECRET = os.environ["MARKED"]


def murmurs() -> None:
    """On stderr, cut in the middle and after a while, and as JSON within JSON."""
    half = len(SECRET) // 2
    for piece in (
        SECRET[:half],
        SECRET[half:] + "\n",
        json.dumps(json.dumps({"a": SECRET})),
        "\n",
        repr(SECRET),
        "\n",
    ):
        sys.stderr.buffer.write(piece.encode())
        sys.stderr.buffer.flush()
        time.sleep(0.02)


def calls(tool: str) -> list[tuple[Any, Any]]:
    return [
        (tool, {"query": SECRET}),
        (tool, {"query": json.dumps({SECRET: SECRET})}),
        (tool, {SECRET: {SECRET: [SECRET]}}),
        (tool, SECRET),
        (SECRET, {}),
        ([SECRET], {SECRET: 1}),
    ]


def served(url: str, task: str) -> int:
    """As agentd."""
    import agentd_standin

    server = agentd_standin.Server(url)
    murmurs()
    for name, input in calls(server.tools[0]):
        with contextlib.suppress(KeyError):  # it is refused as a shape; the ledger has it
            server.ask("tools/call", name=name, arguments=input)
    if "control" in task:
        server.ask("tools/call", name="answer", arguments={"value": {SECRET: SECRET}, "status": "success"})
    print(json.dumps({"answer": SECRET, SECRET: url}), SECRET, url)
    sys.stderr.write(
        json.dumps({"event": "loop.final", "status": SECRET, "steps": 1, "tokens": 3}) + "\n" + SECRET
    )
    return 4 if "failed" in task else 3 if "crash" in task else 0


def talks() -> None:
    """Over lines of JSON, one task after the other."""
    for line in sys.stdin:
        message = json.loads(line)
        if "task" not in message:
            continue
        about = message["id"], message["task"]["request"].split()[-1]
        murmurs()
        say(about, None)
        for name, input in calls(message["task"]["tools"][0]):
            say(about, {"call": {"name": name, "input": input}})
            sys.stdin.readline()
        ends(*about)


def say(about: tuple[str, str], told: Any) -> None:
    if told is None:
        print("noise", SECRET, json.dumps({"a": SECRET}), flush=True)
    else:
        print(json.dumps({"id": about[0], **told}), flush=True)


def ends(id: str, how: str) -> None:
    about = id, how
    if how == "control":
        say(about, {"call": {"name": "answer", "input": {"value": [SECRET], "status": "success"}}})
        sys.stdin.readline()
    if how == "refuse":
        say(about, {"call": {"name": "refuse", "input": {"reason": SECRET}}})
        sys.stdin.readline()
    if how == "crash":
        sys.stderr.write(SECRET)
        sys.exit(3)
    if how == "failed":
        say(about, {"failed": {"message": SECRET, "retry_after": 0}})
    elif how == "nonsense":
        say(about, {"final": {SECRET: 1}})
    elif how == "misspelt":
        print(json.dumps({"id": id, "final": {}, SECRET: 1}), flush=True)
    elif how == "broken":
        print(json.dumps({"id": id})[:-1], ', "final":', SECRET, flush=True)
    elif how == "hang":
        time.sleep(60)
    else:
        if os.path.isdir("out/checkpoints"):
            shutil.copytree("out", f"midway-{id}")
        within = json.dumps(json.dumps({SECRET: SECRET}))
        answer = {SECRET: [SECRET, within, {"a": {SECRET: within}}]}
        said = [{"role": "assistant", "content": SECRET, SECRET: [within]}]
        say(
            about,
            {
                "final": {
                    "answer": answer,
                    "text": SECRET,
                    "status": SECRET,
                    "notes": [SECRET],
                    "messages": said,
                }
            },
        )


if "--mcp" in sys.argv:
    url = sys.argv[sys.argv.index("--mcp") + 1].removeprefix("env=")
    sys.exit(served(url, sys.argv[-1]))
talks()
