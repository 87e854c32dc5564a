"""Our line protocol: one JSON object a line over stdin and stdout, in any language.

    to the program     {"id": "7", "task": {"request": "...", "tools": ["..."], ...}}
    from it            {"id": "7", "call": {"name": "...", "input": {...}}}
    to it              {"id": "7", "result": {"status": "ok", "text": "...", "value": ...}}
    from it            {"id": "7", "spend": {"output": 12, "model_calls": 1}}
    from it            {"id": "7", "final": {"answer": "..."}}

`id` tells the trials of a worker apart: what comes late from one is never taken for another's. docs/drivers.md says all
of it.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.child import Child, Late, TooLong
from agentbench_lab.drivers.command_said import Said, how
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Nonsense, OutOfTime
from agentbench_lab.drivers.returned import as_transcript, checked_usage
from agentbench_lab.errors import did_you_mean, nearest
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

KINDS = ("call", "final", "spend", "failed")
FAILED = ("message", "retry_after", "usage")
FORMS = {"call": '{"name": "a_tool", "input": {}}', "final": '{"answer": "42"}', "spend": '{"output": 12}'}
"""What each kind of message holds, by an example."""
SHOWN = 60
"""Characters of a line that a reason shows."""
DYING_S = 0.5
"""How long a program that has closed its stdout is given to end, so that its exit code is known."""
_encode = msgspec.json.Encoder().encode


class LeftBefore(Exception):
    """A worker that had trials before is no good for this one, about which it has said nothing yet; the text says why."""


class _Wrong(Exception):
    """What the program wrote is no message; the text says why."""


class Talk:
    """One trial over a program's pipes.

    `strict`: the program has had trials before, so that a line without an id may be one of theirs, and is skipped.
    `reusable` says afterwards whether it may have another one.
    """

    def __init__(self, child: Child, said: Said, *, strict: bool) -> None:
        self._child, self._said, self._strict = child, said, strict
        self._id = secrets.token_hex(4)
        self._heard = False
        self._skipped = ""
        self._done: list[Call] = []
        self.reusable = False

    def run(self, task: Task, tools: Toolbox, ctx: Context, deadline: float) -> Transcript:
        """The task given, its calls answered, its last word. Raises OutOfTime, BudgetSpent and InfrastructureError as
        drivers do, and LeftBefore."""
        self._send({"task": _task(task, tools, ctx)})
        self._named = True
        try:
            while True:
                message = self._next(deadline)
                if message is None:
                    return self._failed(self._ended())
                if "call" in message:
                    self._send({"result": self._called(message["call"], tools)})
                elif "final" in message:
                    return self._final(message["final"])
                elif "spend" in message:
                    ctx.spend(_usage(message["spend"]))
                else:
                    raise _infrastructure(message["failed"], self._said)
        except Late:
            code = self._child.end()
            raise OutOfTime(*self._noted(f"{self._silent()}{how(code)}")) from None
        except (TooLong, _Wrong) as error:
            if self._strict and not self._heard:
                # it may be what was left of another trial, or begin with that
                raise LeftBefore(f"it was begun again, since it wrote {error}") from None
            return self._failed(f"wrote {error}")
        except Nonsense as error:
            return self._failed(str(error))

    # ---- lines

    def _send(self, message: dict[str, Any]) -> None:
        self._child.send(_encode({"id": self._id, **message}) + b"\n")

    def _next(self, deadline: float) -> dict[str, Any] | None:
        """The next message of this trial; None where stdout has ended. Raises _Wrong."""
        while (line := self._child.line(deadline)) is not None:
            message = self._message(line)
            if message is not None:
                return message
        return None

    def _message(self, line: bytes) -> dict[str, Any] | None:
        """A line as a message of this trial; None for one that is to be skipped, which is kept as noise."""
        line = line.removeprefix(b"\xef\xbb\xbf")  # a byte order mark, which some systems begin a stream with
        if line.lstrip()[:1] != b"{":
            if line.strip():
                self._noise(line)
            return None
        try:
            text = line.decode()
            message: dict[str, Any] = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        except UnicodeDecodeError as error:
            raise _Wrong(f"a line that is not UTF-8 (byte {error.start})") from None
        except (ValueError, RecursionError) as error:
            lines = "; a message is one line" if line.strip() == b"{" else ""
            raise _Wrong(f"a line that is no JSON: {error} (it begins {self._begin(line)}){lines}") from None
        kinds = [kind for kind in KINDS if kind in message]
        ours = message.get("id")
        if ours is not None and ours != self._id and self._strict:
            return None  # another trial's, and nothing of this one's
        if ours is None and self._strict:
            self._noise(line)
            return None
        if ours is not None and ours != self._id and kinds:
            raise _Wrong(f"a {kinds[0]} with an id that is not the task's (it begins {self._begin(line)})")
        if not kinds:
            for key in message:
                meant = nearest(key, KINDS)
                if meant is not None:
                    raise _Wrong(f"a line with the key {key!r} (did you mean {meant!r}?)")
            if ours == self._id:
                raise _Wrong(f"a message that is none of {', '.join(KINDS)} (it begins {self._begin(line)})")
            self._noise(line)
            return None
        if len(kinds) > 1:
            raise _Wrong(f"a line with both {kinds[0]!r} and {kinds[1]!r}")
        told = message[kinds[0]]
        if not isinstance(told, dict) and kinds[0] != "failed":
            raise _Wrong(f"a {kinds[0]} that is no object: {FORMS[kinds[0]]} is one")
        for key in message:
            if key not in ("id", kinds[0]):
                raise _Wrong(f"a {kinds[0]} with the key {key!r} beside it")
        self._named = self._named and ours is not None
        self._heard = True
        if self._said.without_own(text) != text:
            message[kinds[0]] = self._cleaned(message[kinds[0]])
        return message

    def _noise(self, line: bytes) -> None:
        self._skipped = self._begin(line)
        self._said.noise(line)

    def _begin(self, line: bytes) -> str:
        """How a line begins, in quotes, as a person finds it again. The id of the task is drawn anew each time, and a reason
        is the same each time."""
        text = self._said.clean(line.decode(errors="replace")).strip().replace(self._id, "ID")
        return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")

    def _silent(self) -> str:
        """What a program that is out of time may have done wrong, as far as that is seen."""
        if self._child.so_far().strip():
            return "it began a line on stdout and did not end it; "
        if self._heard:
            return ""
        if self._skipped:
            return f"it wrote no message, and what it wrote is skipped (the last begins {self._skipped}); "
        return "it had written nothing on stdout (is each line flushed?); "

    def _cleaned(self, told: Any) -> Any:
        """What a message says, without the program's secrets; the names of its fields stay."""
        if not isinstance(told, dict):
            return self._said.without_own_in(told)
        return {key: self._said.without_own_in(value) for key, value in told.items()}

    # ---- messages

    def _called(self, call: Any, tools: Toolbox) -> dict[str, Any]:
        if "name" not in call:
            has = f"; it has {', '.join(map(repr, call))}" if call else ""
            raise _Wrong(f"a call that is not {{name, input}}{has}")
        for key in call:
            if key not in ("name", "input"):
                meant = " (did you mean 'input'?)" if key in ("arguments", "args", "parameters") else ""
                raise _Wrong(f"a call with the key {key!r}{meant}; it is {{name, input}}")
        seen = tools.call(call["name"], call.get("input"))
        if seen.ok and call["name"] in tools.names:
            self._done.append(Call(call["name"], call.get("input") or {}))
        return {"status": seen.status, "text": seen.text, "value": seen.value}

    def _final(self, final: Any) -> Transcript:
        if isinstance(final, dict) and "calls" not in final:
            # who claims nothing has done what it was seen to do
            calls = [{"name": call.name, "input": call.input} for call in self._done]
            final = {**final, "calls": calls, "heard": True}
        done = as_transcript(final)
        notes = (*self._said.notes(), *done.notes)
        self.reusable = self._named
        self._child.look()
        return msgspec.structs.replace(done, notes=notes) if notes else done

    def _failed(self, why: str) -> Transcript:
        return Transcript(
            calls=tuple(self._done), heard=True, terminated=False, stop="driver_error", notes=self._noted(why)
        )

    def _noted(self, why: str) -> tuple[str, ...]:
        """The reason comes last: it is the one that a row tells."""
        return (*self._said.notes(), self._said.with_last(why))

    def _ended(self) -> str:
        """Why there is no further line. Raises LeftBefore."""
        code = self._child.end(time.monotonic() + DYING_S)
        if self._strict and not self._heard and code == 0:
            raise LeftBefore("it was begun again, since it had gone")
        if code is None:
            return f"closed its stdout without a final line, and went on; {how(code)}"
        return f"ended without a final line: {how(code)}"


def _task(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    """All that a driver may know of its task."""
    return {
        "request": task.request,
        "tools": task.tools,
        "role": ctx.role,
        "part": ctx.part,
        "schemas": tools.tools,
        "policy": task.policy,
        "history": task.history,
        "parts": task.parts,
        "trace": task.trace,
        "goals": task.goals,
        "limits": {name: getattr(ctx.limits, name) for name in ctx.limits.__struct_fields__},
        "seed": ctx.seed,
        "trial": ctx.trial,
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _usage(given: Any) -> Usage:
    return as_transcript({"usage": given}).usage


def _infrastructure(given: Any, said: Said) -> InfrastructureError:
    """`{"failed": {"message": ..., "retry_after": seconds, "usage": {...}}}`: the other side failed the program."""
    if not isinstance(given, dict):
        given = {"message": given}
    for key in given:
        if key not in FAILED:
            raise _Wrong(
                f"a failed with the key {key!r}{did_you_mean(key, FAILED, most=0)}; it is {{message, retry_after, usage}}"
            )
    retry, usage = given.get("retry_after"), given.get("usage")
    if retry is not None and (isinstance(retry, bool) or not isinstance(retry, int | float) or retry < 0):
        raise _Wrong("a failed whose retry_after is no number of seconds")
    return InfrastructureError(
        said.clean(str(given.get("message", "it says no more")))[:500],
        retry_after=retry,
        usage=checked_usage(usage) if usage is not None else None,
    )


__all__ = ["LeftBefore", "Talk"]
