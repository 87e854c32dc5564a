"""Scaffolds: what agents are asked and in which order, who pays, and what the whole comes to."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.cases import Call, Limits, Suite, Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, OutOfTime
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.scaffolds import Agent, durable, fan_out, in_ledger_order, linear, load_scaffold
from agentbench_lab.transcripts import Transcript, Usage, Worker, together
from agentbench_lab.worlds.rounds import BudgetSpent, Rounds
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox

from .doing import ROOT, lab

EACH = Usage(100, 0, 0, 10, 1, 7)

TOOL = {
    "name": "add",
    "description": "Add one line.",
    "input_schema": {
        "type": "object",
        "properties": {"line": {"type": "string"}},
        "required": ["line"],
        "additionalProperties": False,
    },
    "effects": [{"append": "lines", "value": "{line}"}],
}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Cases of one, two and five parts, each of which asks for some lines in a list."""
    return lines_suite(tmp_path)


def lines_suite(folder: Path, widths: tuple[int, ...] = (1, 2, 5), lines: int = 2) -> Suite:
    world = {"kind": "state", "state": {"lines": []}, "tools": [TOOL]}
    cases = []
    for width in widths:
        parts = [f"Write {chr(97 + at)}." for at in range(width)]
        wanted = [f"{chr(97 + at)}{n}" for at in range(width) for n in range(lines)]
        cases.append(
            {
                "id": f"w{width}",
                "group": f"{width}",
                "world": world,
                "request": f"Please: {' '.join(parts)}",
                "parts": parts,
                "tools": ["add"],
                "expect": {"state": {"lines": {"value": wanted, "unordered": True}}},
            }
        )
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return load_suite(path)


def writes(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Writes two lines for each part that it is given, and says so."""
    if ctx.role == "synthesis":
        ctx.spend(EACH)
        return Transcript(answer="all is written", status="success")
    calls = []
    for part in task.parts:
        for n in range(2):
            call = Call("add", {"line": f"{part[-2]}{n}"})
            assert tools.call(call.name, call.input).ok
            calls.append(call)
        ctx.spend(EACH)
    return Transcript(calls=tuple(calls), notes=(f"asked: {task.request}",), text="written")


def sleepy(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The same, at a pace that is another each time."""
    for _ in range(1):
        time.sleep(random.random() / 50)
    calls = []
    for part in task.parts if ctx.role != "synthesis" else ():
        for n in range(2):
            time.sleep(random.random() / 100)
            calls.append(Call("add", {"line": f"{part[-2]}{n}"}))
            tools.call(calls[-1].name, calls[-1].input)
    return Transcript(calls=tuple(calls), usage=EACH)


def run(suite: Suite, driver: Any, *scaffolds: Any, **more: Any) -> Run:
    return evaluate(suite, driver, scaffolds=list(scaffolds), save_run=False, **more)


def frame(run: Run, grain: str = "trials") -> pl.DataFrame:
    found = pl.from_arrow(getattr(run, grain))
    assert isinstance(found, pl.DataFrame)
    return found


def workers(run: Run) -> list[list[dict[str, Any]]]:
    return [json.loads(text) if text else [] for text in frame(run, "attempts")["workers"]]


def test_once_is_the_driver_untouched(suite: Suite) -> None:
    plain, once = evaluate(suite, writes, save_run=False), run(suite, writes, "once")
    assert plain.product == once.product
    assert once.card.arms[0].version == plain.card.arms[0].version
    assert frame(once, "attempts")["workers"].null_count() == 3
    assert frame(once, "calls")["worker"].unique().to_list() == [0]


def test_every_scaffold_solves_it_and_pays_for_each_worker(suite: Suite) -> None:
    found = run(suite, writes, "once", "linear", "fan_out_2", "durable:linear", "durable:fan_out_2")
    trials = frame(found)
    assert trials["solved"].all()
    assert trials["scaffold"].unique(maintain_order=True).to_list() == [
        "once", "linear", "fan_out_2", "durable:linear", "durable:fan_out_2",
    ]  # fmt: skip
    assert trials.filter(scaffold="once")["width"].to_list() == [1, 2, 5]
    calls = {(row["scaffold"], row["width"]): row["model_calls"] for row in trials.iter_rows(named=True)}
    for scaffold, more in (("linear", 0), ("fan_out_2", 1), ("durable:linear", 0), ("durable:fan_out_2", 1)):
        # the synthesis is one call more, and there is none for a single part
        assert [calls[scaffold, width] for width in (1, 2, 5)] == [1, 2 + more, 5 + more]


def test_a_trials_cost_is_the_sum_over_its_workers_and_they_are_those_of_the_ledger(suite: Suite) -> None:
    found = run(suite, writes, "fan_out_2")
    trials, calls = frame(found), frame(found, "calls")
    for trial, crew in zip(trials.iter_rows(named=True), workers(found), strict=True):
        assert sum(worker["usage"]["cost_micros"] for worker in crew) == trial["cost_micros"] == 7 * len(crew)
        assert sum(worker["usage"]["fresh_input"] for worker in crew) == trial["tokens_fresh_input"]
        called = calls.filter(case_id=trial["case_id"])["worker"].unique().sort().to_list()
        names = {worker["number"]: worker["name"] for worker in crew}
        assert [names[number] for number in called] == (
            [f"part {n + 1}" for n in range(trial["width"])] if trial["width"] > 1 else ["whole"]
        )
        assert [worker["number"] for worker in crew] == list(range(1, len(crew) + 1))
    waves = [worker.get("wave") for worker in workers(found)[2]]
    assert waves == [1, 1, 2, 2, 3, 4]


def forgetful(agent: Any) -> Any:
    """Throws away what its workers did, and says that nothing was used."""

    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        for _ in range(3):
            agent(task, tools, ctx)
        ctx.spend(Usage(1, 0, 0, 0, 0, 5))
        return Transcript(refused=True, usage=Usage.zero())

    return run


def test_a_scaffold_cannot_forget_a_worker(suite: Suite) -> None:
    found = frame(run(suite, writes, forgetful))
    assert found["cost_micros"].to_list() == [3 * 7 + 5, 3 * 2 * 7 + 5, 3 * 5 * 7 + 5]
    assert found["tokens_fresh_input"].to_list() == [301, 601, 1501]
    assert found["outcome"].unique().to_list() == ["over_refusal"]


def test_what_a_worker_does_not_say_is_unknown_and_never_nothing(suite: Suite) -> None:
    def silent(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(usage=EACH if task.parts == ("Write a.",) else Usage())

    found = frame(run(suite, silent, "linear"))
    assert found["cost_micros"].to_list() == [7, None, None]


def test_linear_threads_what_came_of_the_parts_before(suite: Suite) -> None:
    asked: list[str] = []

    def listens(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        asked.append(task.request)
        assert (ctx.role, ctx.part) == ("part", len(asked) - 1)
        return Transcript(text=f"done with {task.parts[0]}")

    run(suite, listens, "linear", only="w2")
    assert asked[0] == "Write a."
    assert asked[1].endswith("Now: Write b.")
    assert "Asked: Write a." in asked[1] and "What came of it: done with Write a." in asked[1]


def test_the_synthesis_has_no_tools_and_the_last_word(suite: Suite) -> None:
    def speaks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if ctx.role != "synthesis":
            tools.call("refuse", {"reason": "not mine"})
            return Transcript()
        assert "it was refused (not mine)" in task.request and task.request.startswith("Please: ")
        assert [tool.name for tool in tools.tools] == ["refuse", "answer", "goal"]
        assert tools.call("add", {"line": "x"}).status == "undeclared"
        tools.call("answer", {"value": 42, "status": "failure"})
        return Transcript()

    found = run(suite, speaks, "fan_out_4", only="w2")
    (row,) = found.product
    assert (row.produced.answer, row.produced.status, row.produced.refused) == (42, "failure", False)
    assert frame(found, "calls")["worker"].to_list() == [3]
    assert row.verdict.outcome == "hallucinated_call"


def test_linear_is_refused_when_a_part_is(suite: Suite) -> None:
    def picky(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if task.parts == ("Write b.",):
            return Transcript(refused=True, notes=("no b",))
        return writes(task, tools, ctx)

    found = run(suite, picky, "linear", only="w5")
    (row,) = found.product
    assert row.produced.refused and row.produced.stop == "refused"
    assert len(row.produced.calls) == 8  # the others were done all the same
    assert "part 2: no b" in frame(found, "transcripts")["notes"][0].to_list()


def test_the_ledger_of_a_fan_out_does_not_depend_on_who_is_quicker(suite: Suite) -> None:
    products = [run(suite, sleepy, "fan_out_4", workers=2).product for _ in range(6)]
    assert all(product == products[0] for product in products)
    lines = [entry.input["line"] for entry in products[0][2].produced.ledger]
    assert lines == ["a0", "b0", "c0", "d0", "a1", "b1", "c1", "d1", "e0", "e1"]
    assert [call.input["line"] for call in products[0][2].produced.calls] == lines
    assert products[0][2].verdict.solved


def test_rounds_wait_for_those_at_work_and_not_for_those_who_are_through(suite: Suite) -> None:
    """A worker that ends early, one that makes more calls: the order is that of rounds."""

    def uneven(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        for n in range((ctx.part or 0) + 1 if ctx.role == "part" else 0):
            tools.call("add", {"line": f"{ctx.part}.{n}"})
        return Transcript()

    found = run(suite, uneven, "fan_out_8", only="w5").product[0].produced.ledger
    lines = [entry.input["line"] for entry in found]
    assert lines == sorted(lines, key=lambda line: (line[2], line[0])) and len(lines) == 15


async def waits(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """An async driver whose workers meet: it comes to an end only when they really run side by side."""
    ctx.spend(EACH)
    if ctx.role == "part":
        meeting = ctx.config.setdefault("meeting", [])
        meeting.append(ctx.part)
        while len(meeting) < 2:
            await asyncio.sleep(0.001)
    return Transcript(answer=len(task.request))


def test_async_drivers_run_on_loops_of_their_own_side_by_side(suite: Suite) -> None:
    found = run(suite, waits, "fan_out_2", only="w2", limits=Limits(wall_s=20))
    assert found.product[0].produced.stop == "done"
    assert frame(found)["model_calls"].to_list() == [3]


def ladder_shaped(request: str, tools: list[str], ctx: Any) -> dict[str, Any]:
    ctx.dispatch("add", {"line": request[-2] + "0"})
    return {"calls": [{"name": "add", "input": {"line": request[-2] + "0"}}] if tools else []}


def test_a_driver_of_the_ladders_shape_is_an_agent_too(suite: Suite) -> None:
    found = run(suite, ladder_shaped, "linear", only="w2").product[0].produced
    assert [call.input["line"] for call in found.calls] == ["a0", "b0"]


# ---- ends


def fails_at(part: int, error: Any) -> Any:
    def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        ctx.spend(EACH)
        if ctx.part == part:
            raise error
        return writes(task, tools, ctx)

    return driver


@pytest.mark.parametrize("scaffold", ["linear", "fan_out_4"])
def test_errors_in_workers_end_a_trial_as_they_end_a_driver(suite: Suite, scaffold: str) -> None:
    crashed = run(suite, fails_at(1, RuntimeError("oh")), scaffold, only="w5")
    assert frame(crashed)["outcome"].to_list() == ["driver_error"]
    stops = [worker["stop"] for worker in workers(crashed)[0]]
    assert stops == (
        ["done", "driver_error"] if scaffold == "linear" else ["done", "driver_error", "done", "done"]
    )
    paid = 7 + 14 if scaffold == "linear" else 7 + 3 * 14
    assert frame(crashed)["cost_micros"].to_list() == [paid]
    lost = run(suite, fails_at(1, InfrastructureError("down", usage=EACH)), scaffold, only="w5")
    assert frame(lost)["excluded_owner"].to_list() == ["environment"]
    assert frame(lost)["cost_micros"].to_list() == [paid + 7]


def test_infrastructure_that_fails_before_anything_was_said_is_tried_again(suite: Suite) -> None:
    tries = []

    def flaky(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tries.append(ctx.role)
        if len(tries) == 1:
            raise InfrastructureError("busy", retry_after=0)
        return writes(task, tools, ctx)

    found = run(suite, flaky, "linear", only="w2")
    assert frame(found)["solved"].all() and frame(found, "attempts").height == 2
    assert tries == ["part", "part", "part"]


@pytest.mark.parametrize("usage", [None, Usage(cost_micros=0)], ids=["without", "in part unknown"])
def test_a_worker_that_fails_after_output_is_not_drawn_again(suite: Suite, usage: Usage | None) -> None:
    tries = []

    def speaks_and_fails(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tries.append(ctx.attempt)
        ctx.spend(Usage(output=3, cost_micros=70))
        raise InfrastructureError("broken off", retry_after=0, usage=usage)

    found = frame(run(suite, speaks_and_fails, "linear", only="w2"))
    assert (len(tries), found["attempts"].to_list(), found["cost_micros"].to_list()) == (1, [1], [70])


def test_what_a_worker_used_that_ran_out_of_time_is_counted(suite: Suite) -> None:
    found = frame(run(suite, fails_at(1, OutOfTime("stopped", usage=EACH)), "linear", only="w5"))
    assert (found["stop"].to_list(), found["cost_micros"].to_list()) == (["timeout"], [7 + 14 + 7])


@pytest.mark.parametrize("scaffold", ["linear", "fan_out_2"])
def test_limits_are_those_of_all_workers_together(suite: Suite, scaffold: str) -> None:
    few = frame(run(suite, writes, scaffold, only="w5", limits=Limits(tool_calls=5)))
    assert few["stop"].to_list() == ["budget"] and few["tool_calls"].to_list() == [5]

    def tells_late(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(usage=EACH)

    found = run(suite, tells_late, scaffold, only="w5", limits=Limits(steps=2))
    assert frame(found)["stop"].to_list() == ["budget"]
    assert frame(found)["model_calls"].to_list() == [3 if scaffold == "linear" else 4]


@pytest.mark.parametrize("driver", ["loops", "sleeps", "waits"])
@pytest.mark.parametrize("scaffold", ["linear", "fan_out_4"])
def test_a_worker_that_never_ends_is_left_at_the_limit_with_its_thread(
    suite: Suite, scaffold: str, driver: str
) -> None:
    def loops(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        while True:
            time.sleep(0.001)

    def sleeps(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if ctx.part == 1:
            time.sleep(1.5)
        tools.call("add", {"line": "x"})
        return Transcript()

    async def waits(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        await asyncio.sleep(60)
        return Transcript()

    which = {"loops": loops, "sleeps": sleeps, "waits": waits}[driver]
    found = run(suite, which, scaffold, only="w5", limits=Limits(wall_s=0.3))
    assert frame(found)["outcome"].to_list() == ["timeout"]
    until = time.monotonic() + 20
    while time.monotonic() < until and any("agentbench-lab worker" in t.name for t in threading.enumerate()):
        time.sleep(0.02)
    assert not [t for t in threading.enumerate() if "agentbench-lab worker" in t.name]


# ---- plans and names


def plans(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    ctx.spend(EACH)
    if ctx.role == "plan":
        return Transcript(text='Here you are: ["Write a.", "Write b."] [1]')
    return writes(task, tools, ctx)


def test_a_plan_is_asked_for_and_paid(suite: Suite) -> None:
    found = run(suite, plans, "linear:plan", "fan_out_2:plan", only="w2")
    assert frame(found)["solved"].all()
    assert [[worker["name"] for worker in crew] for crew in workers(found)] == [
        ["plan", "part 1", "part 2"],
        ["plan", "part 1", "part 2", "synthesis"],
    ]


@pytest.mark.parametrize("said", ["no list", "[]", "[1, 2]", '[""]', '["a"', json.dumps(["x"] * 65)])
def test_a_plan_that_is_none_is_one_part(suite: Suite, said: str) -> None:
    def odd(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(text=said) if ctx.role == "plan" else writes(task, tools, ctx)

    found = run(suite, odd, "linear:plan", only="w2")
    assert frame(found)["solved"].all()
    assert "the plan gave no list of parts" in frame(found, "transcripts")["notes"][0].to_list()[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lineal", "did you mean 'linear'"),
        ("fan_out", "did you mean 'fan_out"),
        ("fan_out_0", "from 1 to 64"),
        ("fan_out_x", "unknown scaffold"),
        ("once:plan", "unknown scaffold"),
        ("native:", "needs the mode"),
        ("durable:", "needs the one that is to be durable"),
        ("durable", "needs the one that is to be durable"),
        ("durable:native:x", "durable takes"),
        ("durable:durable:linear", "durable takes"),
        ("nowhere:thing", "no module 'nowhere'"),
        ("agentbench_lab.scaffolds:fan_in", "did you mean"),
    ],
)
def test_a_scaffold_that_is_none_is_one_line(name: str, said: str) -> None:
    with pytest.raises(LabError, match=None) as caught:
        load_scaffold(name)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_scaffolds_in_python(suite: Suite) -> None:
    async def late(agent: Any) -> Any: ...

    for bad in (late, lambda: None, 7):
        with pytest.raises(LabError):
            load_scaffold(bad)  # type: ignore[arg-type]
    with pytest.raises(LabError, match="given twice"):
        run(suite, writes, "linear", "linear")
    with pytest.raises(LabError, match="no scaffold"):
        run(suite, writes)
    assert (load_scaffold("fan_out_4").name, load_scaffold(linear).name) == ("fan_out_4", "linear")
    found = run(suite, writes, fan_out(3))
    assert frame(found)["solved"].all() and found.card.arms[0].scaffold == "fan_out_3"


def forgets(agent: Agent) -> Any:
    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return agent(task, tools, ctx)

    assert run


def fails(agent: Agent) -> Any:
    raise ValueError("no\nagent")


def gives_async(agent: Agent) -> Any:
    async def run(task: Task, tools: Toolbox, ctx: Context) -> None: ...

    return run


NO_SCAFFOLDS = {
    forgets: "gave back nothing; a scaffold gives back the function that does a task: run(task, tools, ctx) (is a `return` missing?)",
    fails: "failed before it had a task: ValueError: no agent",
    gives_async: "gave back an async function",
    lambda agent: 7: "gave back an int; a scaffold gives back the function",
    lambda agent: lambda task: None: "gave back a function that takes (task); a scaffold gives back",
    durable(forgets): "gave back nothing",
}


@pytest.mark.parametrize("scaffold", NO_SCAFFOLDS)
def test_a_scaffold_that_gives_no_function_is_one_line_before_the_run(suite: Suite, scaffold: Any) -> None:
    asked: list[Task] = []

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        asked.append(task)
        return Transcript()

    with pytest.raises(LabError) as caught:
        run(suite, driver, scaffold)
    name = load_scaffold(scaffold).name
    assert str(caught.value).startswith(f"scaffold {name!r} {NO_SCAFFOLDS[scaffold]}")
    assert "\n" not in str(caught.value) and asked == []


def test_the_scaffold_of_the_page_works_as_it_stands(
    tmp_path: Path, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, in other processes, durable or not."""
    page = (ROOT / "docs" / "scaffolds.md").read_text(encoding="utf-8")
    source = page.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "page_scaffold.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["page_scaffold:second_look", "durable:page_scaffold:second_look"]
    for executor in ("threads", "processes"):
        found = run(suite, writes, *names, only="w2", executor=executor)
        assert [[worker["name"] for worker in crew] for crew in workers(found)] == [
            ["first", "second look"]
        ] * 2
        assert frame(found)["cost_micros"].to_list() == [28, 28]
        # all was there already: what was done twice is too much
        assert frame(found)["outcome"].to_list() == ["unsolved", "unsolved"]


def test_a_native_mode_takes_its_place_in_the_drivers_text() -> None:
    found = evaluate(
        "ladder",
        ["faulty:0:{native}"],
        scaffolds=["native:stub", "native:refuse_all"],
        group="TOOL-0",
        save_run=False,
    )
    arms = [(arm.driver, arm.scaffold) for arm in found.card.arms]
    assert arms == [("faulty:0:{native}", "native:stub"), ("faulty:0:{native}", "native:refuse_all")]
    assert len({arm.version for arm in found.card.arms}) == 2
    solved = frame(found).group_by("scaffold").agg(pl.col("solved").mean())
    rates = dict(solved.iter_rows())
    assert rates["native:refuse_all"] == 0.0 < 0.5 < rates["native:stub"]
    assert frame(found, "attempts")["workers"].null_count() == frame(found).height


@pytest.mark.parametrize(
    ("driver", "scaffold", "said"),
    [
        ("stub", "native:plain", "'stub' has none"),
        ("faulty:0:{native}", "linear", "native:NAME"),
        ("faulty:0:{native}", "once", "native:NAME"),
        ("faulty:0:{native}", "native:stubb", "did you mean 'stub'"),
    ],
)
def test_modes_that_do_not_fit_are_one_line(driver: str, scaffold: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        evaluate("ladder", driver, scaffolds=[scaffold], save_run=False)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_line_makes_an_arm_of_each(tmp_path: Path) -> None:
    lines_suite(tmp_path, (1, 2))
    (tmp_path / "mine.py").write_text(
        "from agentbench_lab.cases import Call\nfrom agentbench_lab.transcripts import Transcript, Usage\n"
        "def one(task, tools, ctx):\n    return Transcript(usage=Usage.zero())\n"
    )
    arguments = ["run", "lines.jsonl", "--driver", "mine:one", "--driver", "faulty:0.5:stub"]
    done = lab(*arguments, "--scaffold", "once", "--scaffold", "fan_out_2", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = load_run(tmp_path / "out")
    assert [str(arm.driver) + "+" + arm.scaffold for arm in found.card.arms] == [
        "mine:one+once", "mine:one+fan_out_2", "faulty:0.5:stub+once", "faulty:0.5:stub+fan_out_2",
    ]  # fmt: skip
    other = lab(*arguments, "--scaffold", "linear", "--out", "out", cwd=tmp_path)
    assert other.returncode != 0 and "other settings" in other.stderr
    odd = lab("run", "lines.jsonl", "--driver", "mine:one", "--scaffold", "lineal", cwd=tmp_path)
    assert odd.returncode != 0 and "did you mean 'linear'" in odd.stderr


# ---- laws

SOME = st.builds(Usage, *[st.none() | st.integers(0, 10**6)] * 6, st.integers(0, 10**4).map(lambda n: n / 4))


@given(st.lists(st.tuples(SOME, st.integers(1, 4)), max_size=8), st.randoms())
def test_what_workers_use_adds_along_and_across(given_: list[tuple[Usage, int]], lots: random.Random) -> None:
    """Tokens and money are the sum over all; the wall is the longest of each wave, added up; order tells nothing."""
    crew = [Worker(number, "", "done", usage, wave) for number, (usage, wave) in enumerate(given_, start=1)]
    total = together(crew)
    for name in ("fresh_input", "cache_read", "cache_write", "output", "model_calls", "cost_micros"):
        parts = [getattr(usage, name) for usage, _ in given_]
        assert getattr(total, name) == (None if None in parts else sum(parts))
    waves: dict[int, float] = {}
    for usage, wave in given_:
        waves[wave] = max(waves.get(wave, 0.0), usage.wall_s or 0.0)
    assert total.wall_s == sum(waves.values())
    lots.shuffle(crew)
    assert together(crew) == total


@settings(max_examples=20)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=5), st.integers(0, 2**32))
def test_rounds_have_one_order_however_long_anybody_takes(calls: list[int], seed: int) -> None:
    rounds, ledger = Rounds(range(len(calls))), []

    def work(worker: int) -> None:
        lots = random.Random(f"{seed}:{worker}")
        for number in range(calls[worker]):
            time.sleep(lots.random() / 500)
            with rounds.turn(worker):
                ledger.append((number, worker))
        rounds.left(worker)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert ledger == sorted((number, worker) for worker, n in enumerate(calls) for number in range(n))


def test_who_is_through_or_sent_away_gets_no_turn() -> None:
    rounds = Rounds([1, 2])
    rounds.left(1)
    with pytest.raises(BudgetSpent), rounds.turn(1):
        pass
    with rounds.turn(2):
        pass
    came: list[BaseException] = []

    blocked = Rounds([1, 2])

    def blocks() -> None:
        try:
            with blocked.turn(1):
                pass
        except BudgetSpent as error:
            came.append(error)

    thread = threading.Thread(target=blocks)
    thread.start()
    blocked.end()
    thread.join(30)
    assert not thread.is_alive() and len(came) == 1


def test_claims_stand_in_the_order_of_the_ledger() -> None:
    rows = [
        LedgerRow(name, {}, "ok", worker=worker) for name, worker in [("a", 2), ("b", 1), ("a", 1), ("c", 2)]
    ]
    one = Transcript(calls=(Call("b"), Call("x"), Call("a")))
    two = Transcript(calls=(Call("a"), Call("c")))
    found = in_ledger_order([(1, one), (2, two)], rows)
    # what no row bears out comes right after the claim before it
    assert [call.name for call in found] == ["a", "b", "x", "a", "c"]
