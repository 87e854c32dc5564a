"""The scripted user: it says what a case's script says, offline and the same each time."""

from __future__ import annotations

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.users import STOP_TOKEN, next_line
from agentbench_lab.worlds.toolbox import Toolbox


def scripted(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The user of a conversation: the next line of its script (`ctx.config["script"]`), or the stop token at its end.

    What it has said already is worked out anew from the history, so that it keeps nothing between its turns.
    """
    heard = [message.text for message in task.history if message.role == "user"]
    line = next_line(ctx.config.get("script", ()), [*heard, task.request])
    return Transcript(text=STOP_TOKEN if line is None else line, usage=Usage.zero(), driver="scripted")


scripted.evidence = "simulated"  # type: ignore[attr-defined]
scripted.banner = "scripted: says what a case's script says; not a model"  # type: ignore[attr-defined]
