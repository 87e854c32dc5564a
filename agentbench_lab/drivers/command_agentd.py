"""Programs with agentd's contract: the task as arguments, tools over MCP, telemetry on stderr, an exit code that says how
it ended.

Source: bench/run.py of agentd-dev/source-code at 9ff2f04 and its RFC 0011 section 5 (Apache-2.0). docs/drivers.md has the
arguments and the table of exit codes.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.child import Child, Late
from agentbench_lab.drivers.command_said import Said, how
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, OutOfTime
from agentbench_lab.transcripts import Observation, Stop, Transcript, Usage
from agentbench_lab.worlds.toolbox import BudgetSpent, Tool, Toolbox

SERVER = "env"
"""The name under which it is told our server."""
OUTPUT_LIMIT = 400_000
"""Bytes of its stdout that are kept as its answer."""
LINE_KEPT = 1_000_000
DYING_S = 0.5

EXITS: dict[int, tuple[Stop, str]] = {
    0: ("done", "done"),
    1: ("driver_error", "it failed"),
    2: ("driver_error", "it does not take these arguments"),
    3: ("driver_error", "it ended with a part of the task, or stalled"),
    4: ("infrastructure_error", "its model could not be reached"),
    5: ("refused", "it refused"),
    6: ("infrastructure_error", "a required MCP server could not be reached"),
    7: ("budget", "its budget is used up"),
    124: ("timeout", "its own time is over"),
    137: ("driver_error", "it was killed (out of memory?)"),
    143: ("driver_error", "it was told to end from outside"),
}
"""What its exit codes mean here; any other one is `driver_error`."""


class Recorded:
    """The tools of a trial as they are served, with the calls that went well: what the agent is taken to claim. No call
    holds a secret of the program's."""

    def __init__(self, tools: Toolbox, said: Said) -> None:
        self._tools, self._said = tools, said
        self.done: list[Call] = []

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._tools.tools

    def call(self, name: Any, input: Any = None) -> Observation:
        name, input = self._said.without_own_in(name), self._said.without_own_in(input)
        seen = self._tools.call(name, input)
        if seen.ok and name in self._tools.names:
            self.done.append(Call(name, input or {}))
        return seen

    @property
    def answered(self) -> bool:
        """Whether the control tool was told an answer, which counts before what was printed."""
        return self._tools.ending.answered


def arguments(task: Task, ctx: Context, url: str, model: str) -> list[str]:
    """What follows the program's own arguments. Its log at `debug` is where it tells input and output tokens apart."""
    given = ["--log-level", "debug", "--log-content"]
    if model:
        given += ["--model", model]
    given += ["--mcp", f"{SERVER}={url}"]
    limits = ctx.limits
    if limits.tokens is not None:
        given += ["--max-tokens", str(limits.tokens)]
    if limits.steps is not None:
        given += ["--max-steps", str(limits.steps)]
    if limits.wall_s is not None:
        given += ["--deadline", f"{max(1, int(1000 * limits.wall_s))}ms"]
    return [*given, "--instruction", instruction(task)]


def instruction(task: Task) -> str:
    """The one text that it takes: the policy, what was said before, and the request."""
    if not task.history:
        return "\n\n".join(filter(None, (task.policy, task.request)))
    speakers = {"user": "User", "assistant": "Assistant", "agent": "Assistant"}
    turns = [f"{speakers.get(said.role, said.role)}: {said.text}" for said in task.history]
    turns.append(f"User: {task.request}")
    before = "Conversation so far:\n" + "\n".join(turns)
    return "\n\n".join(
        filter(None, (task.policy, before, "Answer the user's latest message; use the tools as needed."))
    )


class Heard:
    """Its telemetry as it comes, a JSON object a line, of the agent and of all that it started.

    Each answer of a model is spent at once, so that a trial which is cut off has cost what it had cost until then.
    """

    def __init__(self, ctx: Context, said: Said) -> None:
        self._ctx, self._said = ctx, said
        self._rest = b""
        self._skips = self._over = False
        self.told = 0  # tokens by the answers of models
        self.answers = 0
        self.ends = 0
        self.steps: int | None = 0
        self.tokens: int | None = 0
        self.status = ""
        self.calls = 0

    def hear(self, chunk: bytes) -> None:
        """More of stderr. Raises BudgetSpent, once."""
        self._said.hear(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        over: BudgetSpent | None = None
        for line in lines:
            try:
                if not self._skips:
                    self._line(line)
            except BudgetSpent as error:
                # what was said with it has been used as well
                over = error
            self._skips = False
        if len(self._rest) > LINE_KEPT:
            self._rest, self._skips = b"", True
        if over is not None and not self._over:
            self._over = True
            raise over

    def end(self) -> None:
        """There is no more of it."""
        rest, self._rest = self._rest, b""
        if not self._skips:
            self._line(rest)

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            return
        try:
            event = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        kind = event.get("event")
        if kind == "tool.call":
            self.calls += 1
        elif kind == "intel.result":
            into, out = _count(event.get("tokens_in")), _count(event.get("tokens_out"))
            if into is not None and out is not None:
                self.answers += 1
                self.told += into + out
                # what of the input came from a cache it does not say
                self._ctx.spend(Usage(into, 0, 0, out, 1, None, None, estimated=True))
        elif kind == "loop.final":
            self.ends += 1
            self.status = str(event.get("status", ""))
            steps, tokens = _count(event.get("steps")), _count(event.get("tokens"))
            self.steps = None if steps is None or self.steps is None else self.steps + steps
            self.tokens = None if tokens is None or self.tokens is None else self.tokens + tokens

    def usage(self) -> Usage | None:
        """What is known beyond what was spent; None where the answers of the models have told all."""
        if self.answers or not self.ends:
            return None
        return Usage(model_calls=self.steps)

    def notes(self) -> tuple[str, ...]:
        if not self.ends or self.tokens is None or self.tokens == self.told:
            return ()
        if not self.answers:
            return (f"it counts {self.tokens} tokens, and does not say which of them are input",)
        return (f"it counts {self.tokens} tokens in all, and {self.told} by the answers of its models",)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None


def run(child: Child, heard: Heard, tools: Recorded, said: Said, deadline: float) -> Transcript:
    """Its output to the end, and what its exit code makes of it. Raises as drivers do."""
    try:
        out = child.all(deadline, said.limit(OUTPUT_LIMIT, graded=True))
        code = child.end(min(deadline, time.monotonic() + DYING_S))
    except Late:
        code = child.end()
        heard.end()
        said.printed(child.so_far())
        raise OutOfTime(*_noted(heard, said, how(code)), usage=heard.usage()) from None
    heard.end()
    code = 128 - code if code is not None and code < 0 else code
    stop, why = EXITS.get(-1 if code is None else code, ("driver_error", "it failed"))
    if code is None:
        why = "it closed its output and went on"
    if code == 7 and heard.status == "deadline":
        stop = "timeout"
    usage = heard.usage()
    notes = heard.notes() if stop == "done" else _noted(heard, said, f"{why} ({how(code)})")
    if stop == "infrastructure_error":
        raise InfrastructureError("; ".join(notes), usage=usage)
    text = said.begun(out, OUTPUT_LIMIT, graded=True)
    if stop == "timeout":
        said.printed(out)
        raise OutOfTime(*notes, usage=usage)
    # what it prints is its answer, and in a conversation its turn; where it has answered already, it is words beside that
    answers = stop == "done" and bool(text.strip()) and not tools.answered
    return Transcript(
        calls=tuple(tools.done),
        heard=True,
        answer=text.strip() if answers else None,
        text="" if answers else text,
        refused=stop == "refused",
        terminated=stop in ("done", "refused"),
        stop=stop,
        usage=usage or Usage(),
        driver="agentd",
        notes=notes,
    )


def _noted(heard: Heard, said: Said, why: str) -> tuple[str, ...]:
    """The reason comes last: it is the one that a row tells."""
    return (*heard.notes(), why if heard.ends else said.with_last(why))


__all__ = ["EXITS", "Heard", "Recorded", "arguments", "instruction", "run"]
