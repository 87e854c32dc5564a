"""The two ways to game a single number, which the metric pair and its gate see through."""

from __future__ import annotations

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox


def refuse_all(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Refuse everything: 0 % hallucination at next to no completion."""
    return Transcript(
        refused=True, stop="refused", usage=Usage.zero(), driver="refuse-all", notes=("refuses all",)
    )


def reckless(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Never refuse: call every declared tool on the last word, with an argument that none of them has."""
    words = task.request.split()
    word = words[-1] if words else ""
    calls = []
    for tool in tools.tools:
        if tool.name not in tools.names:
            continue
        keys = tool.input_schema["required"] or ["query"]
        call = Call(tool.name, {**dict.fromkeys(keys, word), "force": "yes"})
        tools.call(call.name, call.input)
        calls.append(call)
    return Transcript(calls=tuple(calls), usage=Usage.zero(), driver="reckless")


for _driver, _banner in (
    (refuse_all, "refuse-all: a floor that games the hallucination rate; not a model"),
    (reckless, "reckless: a floor that games completion; not a model"),
):
    _driver.evidence = "simulated"  # type: ignore[attr-defined]
    _driver.banner = _banner  # type: ignore[attr-defined]
