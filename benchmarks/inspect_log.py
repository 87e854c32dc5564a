"""Inspect AI's side of bench_inspect_read; run by the Python of its own environment, which has no agentbench_lab.

It evaluates its mock model once over the samples, each with one tool call and an answer (two turns), into a log in the
folder given, and prints the log's name. For every line on stdin it then reads that log whole, with `read_eval_log`, and
prints the seconds.
"""

from __future__ import annotations

import sys
import time

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageTool, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_mock import lookup


def output(messages: list, *_: object) -> ModelOutput:
    """The tool call, then the answer. Each says its usage, else Inspect would download a tokenizer to count."""
    if isinstance(messages[-1], ChatMessageTool):
        made = ModelOutput.from_content("mockllm/model", "It is called by main.")
    else:
        made = ModelOutput.for_tool_call("mockllm/model", "lookup", {"name": "parse"})
    made.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return made


def write(folder: str, count: int) -> str:
    samples = [Sample(input=f"Who calls parse? ({n})", target="main") for n in range(count)]
    task = Task(dataset=samples, solver=[use_tools(lookup()), generate()], scorer=includes())
    model = get_model("mockllm/model", custom_outputs=output, memoize=False)
    (log,) = eval(task, model=model, log_dir=folder, log_realtime=False, display="none")
    if log.status != "success":
        raise SystemExit(f"the evaluation came to {log.status}: {log.error}")
    return log.location


def read(location: str, count: int) -> float:
    began = time.perf_counter()
    log = read_eval_log(location)
    spent = time.perf_counter() - began
    if log.samples is None or len(log.samples) != count:
        raise SystemExit("the log was not read whole")
    return spent


if __name__ == "__main__":
    place = write(sys.argv[2], int(sys.argv[1]))
    print(place, flush=True)
    for _ in sys.stdin:
        print(read(place, int(sys.argv[1])), flush=True)
