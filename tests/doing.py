"""A tiny world, a small suite with a case of every rung, drivers that know it, and the command line as a process."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.graphfile import Entity, Graph
from agentbench_lab.worlds.toolbox import Toolbox

ROOT = Path(__file__).resolve().parent.parent


def tiny_world() -> CodeGraph:
    """Four modules, three classes, two methods called `total`, one function that they call."""
    modules = ["app/cart.py", "app/money.py", "app/shop.py", "tests/test_cart.py"]
    entities = [Entity(path, "Module", path=path) for path in modules]
    entities += [
        Entity(label, kind, path=path, lines=(line, line + 5), doc=f"the {label}")
        for line, (label, kind, path) in enumerate(
            [
                ("Cart", "Class", "app/cart.py"),
                ("Cart.add", "Method", "app/cart.py"),
                ("Cart.total", "Method", "app/cart.py"),
                ("GiftCart", "Class", "app/cart.py"),
                ("Order", "Class", "app/shop.py"),
                ("Order.total", "Method", "app/shop.py"),
                ("tax", "Function", "app/money.py"),
            ],
            start=1,
        )
    ]
    edges: dict[str, list[tuple[str, str]]] = {
        "imports": [("app/cart.py", "app/money.py"), ("app/shop.py", "app/cart.py")],
        "callsSymbol": [("Cart.total", "tax"), ("Order.total", "tax"), ("Cart.add", "tax")],
        "contains": [("Cart", "Cart.add"), ("Cart", "Cart.total"), ("Order", "Order.total")],
        "inherits": [("GiftCart", "Cart")],
        "tests": [("tests/test_cart.py", "app/cart.py")],
        "defines": [("app/cart.py", "Cart"), ("app/shop.py", "Order"), ("app/money.py", "tax")],
    }
    memory = (("basket", "synonym", "cart"),)
    return CodeGraph(Graph("tiny", tuple(entities), edges, memory=memory))


def call(name: str, **input: str) -> dict[str, Any]:
    return {"name": f"tmct_{name}", "input": input}


def case(id: str, rung: str, request: str, tools: str, **expect: Any) -> dict[str, Any]:
    trace = {"trace": expect.pop("trace")} if "trace" in expect else {}
    names = [f"tmct_{name}" for name in tools.split()]
    return {
        "id": id,
        "rung": rung,
        "request": request,
        "tools": names,
        "world": "tiny",
        **trace,
        "expect": {"terminates": True, **expect},
    }


CASES: list[dict[str, Any]] = [
    case("t0-cart", "TOOL-0", "Describe Cart", "describe", calls=[call("describe", symbol="Cart")], proof=True),
    case("t0-order", "TOOL-0", "Describe Order", "describe", calls=[call("describe", symbol="Order")]),
    case("t1-callers", "TOOL-1", "Who are the callers of tax?", "callers callees", calls=[call("callers", symbol="tax")]),
    case("t1-callees", "TOOL-1", "The callees of Cart.add", "callers callees", calls=[call("callees", symbol="Cart.add")]),
    case("t2-scope", "TOOL-2", "Describe the Ledger", "describe", refuse=True),
    case(
        "t3-two", "TOOL-3", "Its members, then what extends it: Cart", "members subclasses",
        calls=[call("members", **{"class": "Cart"}), call("subclasses", **{"class": "Cart"})], proof=True,
    ),
    case("t4-either", "TOOL-4", "If Cart is tested, by what?", "tests_for impact", calls=[call("tests_for", symbol="Cart")]),
    case(
        "t5-reach", "TOOL-5", "What breaks with app/money.py", "impact",
        calls=[call("impact", module="app/money.py")], result=["app/cart.py", "app/shop.py"],
    ),
    case("t6-gap", "TOOL-6", "Where are we blind?", "untested impact", calls=[call("untested")], result=["app/money.py", "app/shop.py"]),
    case(
        "t7-empty", "TOOL-7", "Who needs Cart.add, or else what does it need", "callers callees",
        calls=[call("callers", symbol="Cart.add"), call("callees", symbol="Cart.add")],
        recover={"after": "tmct_callers", "fallback": "tmct_callees"},
    ),
    case(
        "t8-tied", "TOOL-8", "Describe total", "describe", refuse=True,
        candidateResults=[call("describe", symbol="Cart.total"), call("describe", symbol="Order.total")],
    ),
    case(
        "t9-goal", "TOOL-9", "What was this for?", "impact untested", inferredGoal="goal:coverage-gap", proof=True,
        trace=[call("impact", module="app/money.py"), call("untested")],
    ),
    case(
        "t9-none", "TOOL-9", "And this?", "impact untested", refuse=True, reject=True,
        trace=[call("untested"), call("impact", module="app/money.py")],
    ),
    case(
        "t9-tied", "TOOL-9", "And that?", "impact untested", refuse=True,
        ambiguousGoals=["cap:untested", "goal:coverage-gap"], trace=[call("untested")],
    ),
]  # fmt: skip
"""At least one case of every rung, all sound; every kind of expectation occurs."""


def some(*rungs: int) -> list[dict[str, Any]]:
    """A private copy of the cases of these rungs."""
    return copy.deepcopy([one for one in CASES if int(one["rung"][-1]) in rungs])


def write_suite(folder: Path, cases: Sequence[dict[str, Any]] = CASES, *, name: str = "small") -> Path:
    """A case file with its world beside it."""
    (folder / "worlds").mkdir(parents=True, exist_ok=True)
    (folder / "worlds" / "tiny.json").write_bytes(tiny_world().to_bytes())
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in cases), encoding="utf-8", newline="\n")
    return path


def knows(task: Task, tools: Toolbox, ctx: Any) -> Transcript:
    """The best driver there can be: it has read the answers, and really makes the calls."""
    expect = next(one["expect"] for one in CASES if one["request"] == task.request)
    for one in (*expect.get("calls", ()), *expect.get("candidateResults", ())):
        tools.call(one["name"], one["input"])
    said = {
        key: expect[key]
        for key in ("calls", "result", "candidateResults", "inferredGoal", "reject", "ambiguousGoals")
        if key in expect
    }
    from agentbench_lab.drivers.returned import as_transcript

    return as_transcript({**said, "refused": expect.get("refuse", False), "recovered": "recover" in expect})


knows.evidence = "simulated"  # type: ignore[attr-defined]


def write_driver(folder: Path, source: str, *, name: str = "mine") -> None:
    """A module of drivers, to be found in the working folder."""
    (folder / f"{name}.py").write_text(source, encoding="utf-8", newline="\n")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentbench_lab.cli", *arguments]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100", **more}


def lab(*arguments: str, cwd: Path, timeout: float = 60, **more: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
    )


@contextmanager
def begun(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block. One whose block fails is killed: Popen alone would wait for it for ever."""
    with subprocess.Popen(command, **how) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def said(done: subprocess.CompletedProcess[str]) -> Iterable[str]:
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]
