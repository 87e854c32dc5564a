"""Trials whose agent is another program, which reaches its tools over MCP: what the ledger says of them, and the grade.

Such an agent hands in no transcript. What it called, how it ended and what it answered is read from the toolbox alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Case, Suite
from agentbench_lab.drivers.chat_words import opening
from agentbench_lab.drivers.returned import ended
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.grading import Grade
from agentbench_lab.grading.heard import calls_of, claimed
from agentbench_lab.running.trial import collect, judge
from agentbench_lab.transcripts import Stop, Transcript
from agentbench_lab.worlds.toolbox import Ending, LedgerRow, Toolbox, World


class Ended(Struct, frozen=True):
    """A trial that was served and is over. `grade` is None where none was asked for."""

    case: str
    trial: int
    ledger: tuple[LedgerRow, ...]
    ending: Ending
    stop: Stop
    fault: str = ""
    grade: Grade | None = None


class Trial:
    """One trial to be served: a fresh world, and the toolbox that an agent is to reach."""

    def __init__(self, case: Case, world: World, number: int = 1, *, tool_calls: int | None = None) -> None:
        self.case = case
        self.number = number
        self._task = (
            msgspec.structs.replace(case.task, goals=world.goals(case.task.tools))
            if case.task.trace
            else case.task
        )
        own = case.task.limits.tool_calls
        self.toolbox = Toolbox(world.fork(), case.task.tools, tool_calls=tool_calls if own is None else own)

    @property
    def instructions(self) -> str:
        """The task in the words that a chat model is given: how a task is ended, the policy, the request."""
        *system, request = opening(self._task, self.toolbox.tools, schema=False)
        return "\n\n".join([*(said["content"] for said in system), "The task:", request["content"]])

    def end(self, *, grading: bool = True, strictness: str = "strict") -> Ended:
        """Close the toolbox, judge what its ledger says, and give back what the world holds."""
        box = self.toolbox
        ledger = box.close()
        try:
            # the ladder judges calls that are claimed; elsewhere the grader reads the ledger where nothing is
            calls = calls_of(ledger, self.case.expect) if self.case.taxonomy == "ladder" else ()
            transcript = ended(Transcript(calls=calls, driver="mcp", heard=True), box)
            if box.spent:
                transcript = msgspec.structs.replace(transcript, terminated=False, stop="budget")
            transcript = claimed(self.case, transcript, ledger)
            evidence = collect(self.case, self._task, transcript, ledger, box)
        finally:
            box.release()
        verdict = judge(self.case, transcript, evidence, strictness) if grading else None
        return Ended(self.case.id, self.number, ledger, box.ending, transcript.stop, box.fault, verdict)


def chosen(suite: Suite, ids: Sequence[str]) -> list[Case]:
    """The cases of these ids, in the order asked; raises LabError with the nearest id."""
    known = {case.id: case for case in suite.cases}
    for id in ids:
        if id not in known:
            raise LabError(f"{suite.name} has no case {id!r}{did_you_mean(id, known)}")
    return [known[id] for id in dict.fromkeys(ids)]


def write_ledgers(file: Path, suite: Suite, trials: Sequence[Ended], sandbox: str = "") -> None:
    """All trials as one JSON file, whole or not at all. `sandbox` is the level of their work folders, where they have
    some."""
    value: dict[str, Any] = {"suite": suite.name, "suite_digest": suite.digest}
    if sandbox:
        value["sandbox"] = sandbox
    value["trials"] = list(trials)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise LabError(f"--ledger {file}: {error.strerror}") from None


__all__ = ["Ended", "Trial", "chosen", "write_ledgers"]
