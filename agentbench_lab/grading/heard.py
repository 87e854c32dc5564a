"""What agents have claimed whose calls are the ledger: those that act through chat, MCP or a program.

Such an agent names no calls of its own. What it is taken to claim is what the toolbox saw it do (house rule: claims and
the ledger), and what it composed is what it answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Case, Expect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import LedgerRow


def calls_of(ledger: Sequence[LedgerRow], expect: Expect) -> tuple[Call, ...]:
    """The calls that went well, and those of the tool that a case expects to fail over (`recover.after`), in order."""
    failing = expect.recover.after if expect.recover is not None else None
    return tuple(
        Call(row.name, row.input)
        for row in ledger
        if isinstance(row.input, dict)
        and (row.status == "ok" or (row.status == "tool_error" and row.name == failing))
    )


def claimed(case: Case, transcript: Transcript, ledger: Sequence[LedgerRow]) -> Transcript:
    """The transcript as the ladder judges it: with the call that failed as it should, and the result that was answered.

    Only where the agent's calls were `heard`; who refuses, or names a goal, has claimed nothing.
    """
    if not transcript.heard or case.taxonomy != "ladder":
        return transcript
    changes: dict[str, Any] = {}
    acted = not transcript.refused and transcript.inferred_goal is None
    if case.expect.recover is not None and acted:
        changes["calls"] = calls_of(ledger, case.expect)
    answer = transcript.answer
    if transcript.result is None and isinstance(answer, list) and all(type(each) is str for each in answer):
        changes["result"] = tuple(answer)
    return msgspec.structs.replace(transcript, **changes) if changes else transcript


__all__ = ["calls_of", "claimed"]
