"""Inspect AI's side of bench_inspect; run by the Python of its own environment, which has no agentbench_lab.

For every line on stdin it evaluates its mock model with one tool call, and prints the milliseconds a sample took.
"""

from __future__ import annotations

import sys
import tempfile
import time

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import Tool, tool

SAMPLES = int(sys.argv[1])


@tool
def lookup() -> Tool:
    async def execute(name: str) -> str:
        """Look a name up.

        Args:
            name: What is looked up.
        """
        return f"{name} is called by main"

    return execute


def outputs() -> list[ModelOutput]:
    """Two turns of the model: the tool call, then the answer. Each says its usage, else Inspect would download a
    tokenizer to count."""
    made = []
    for _ in range(SAMPLES):
        call = ModelOutput.for_tool_call("mockllm/model", "lookup", {"name": "parse"})
        answer = ModelOutput.from_content("mockllm/model", "It is called by main.")
        call.usage = answer.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
        made += [call, answer]
    return made


def measure() -> float:
    samples = [Sample(input=f"Who calls parse? ({n})", target="main") for n in range(SAMPLES)]
    task = Task(dataset=samples, solver=[use_tools(lookup()), generate()], scorer=includes())
    model = get_model("mockllm/model", custom_outputs=outputs(), memoize=False)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        (log,) = eval(task, model=model, log_dir=folder, display="none")
        spent = time.perf_counter() - began
    if log.status != "success" or log.results is None or log.results.completed_samples != SAMPLES:
        raise SystemExit(f"the evaluation came to {log.status}: {log.error}")
    return 1e3 * spent / SAMPLES


if __name__ == "__main__":
    for _ in sys.stdin:
        print(measure(), flush=True)
