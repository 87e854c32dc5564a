"""Two drivers or scaffolds that differ never share a name and a version; one that is the same has the same ones in every
process, and after it was called."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faulty import faulty
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.drivers.simulated import Parameters, Simulated
from agentbench_lab.errors import LabError
from agentbench_lab.running.runner import evaluate
from agentbench_lab.scaffolds import durable, fan_out, linear, load_scaffold
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import ROOT, environment, knows, some, tiny_world, write_suite


def asked(words: str, task: Task, tools: Toolbox, ctx: Context, *, more: Any = None) -> Transcript:
    return knows(task, tools, ctx)


asked.evidence, asked.model, asked.banner = "simulated", "m", "not a model"  # type: ignore[attr-defined]


def closed(temperature: Any) -> Callable[..., Any]:
    def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript(notes=(str(temperature),))

    return driver


def defaulted(temperature: float) -> Callable[..., Any]:
    def driver(task: Task, tools: Toolbox, ctx: Context, temperature: float = temperature) -> Transcript:
        return Transcript(notes=(str(temperature),))

    return driver


@dataclasses.dataclass(frozen=True)
class Frozen:
    temperature: float

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript()

    def run(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Transcript()


def halves(agent: Any, task: Task, tools: Toolbox, ctx: Context) -> list[str]:
    return list(task.parts)


def thirds(agent: Any, task: Task, tools: Toolbox, ctx: Context) -> list[str]:
    return list(task.parts)


def splits(agent: Any, task: Task, tools: Toolbox, ctx: Context, *, into: int) -> list[str]:
    return list(task.parts)


DRIVERS: dict[str, Callable[[Any], Any]] = {
    "the error model": lambda n: Simulated(Parameters(turn=n)),
    "a partial, by place": lambda n: functools.partial(asked, f"{n}"),
    "a partial, by name": lambda n: functools.partial(asked, "x", more={"n": [n], "sets": {"b", "a"}}),
    "a partial of a partial": lambda n: functools.partial(functools.partial(asked, more=n), "x"),
    "a partial with a function": lambda n: functools.partial(asked, "x", more=(halves, thirds)[n % 2]),
    "a closure": closed,
    "a default": defaulted,
    "a frozen object": Frozen,
    "a frozen object's method": lambda n: Frozen(n).run,
    "crashes by lot, of others": lambda n: faulty((knows, closed(1))[n % 2], 0.1),
    "crashes by lot, more often": lambda n: faulty(knows, n / 1_000_000_000),
    "crashes by lot, of closures": lambda n: faulty(closed(n), 0.1),
    "lambdas of one line": lambda n: (lambda t, s, c: {}, lambda t, s, c: None)[n % 2],
}
SCAFFOLDS: dict[str, Callable[[Any], Any]] = {
    "another decompose": lambda n: fan_out(4, decompose=(halves, thirds)[n % 2]),
    "a decompose given more": lambda n: fan_out(4, decompose=functools.partial(splits, into=n)),
    "lambdas": lambda n: fan_out(4, decompose=(lambda *a: ["x"], lambda *a: ["y"])[n % 2]),
    "a partial": lambda n: functools.partial(linear, decompose=(halves, thirds)[n % 2]),
    "durable": lambda n: durable(fan_out(4, decompose=functools.partial(splits, into=n))),
    "durable of a partial": lambda n: durable(functools.partial(linear, decompose=(halves, thirds)[n % 2])),
}


def keys() -> dict[str, list[str]]:
    """The key of each, made anew with 2 and with 3."""
    found = {}
    for name, make in DRIVERS.items():
        found[name] = [f"{one.name} {one.version}" for one in (load_driver(make(2)), load_driver(make(3)))]
    for name, make in SCAFFOLDS.items():
        several = load_scaffold(make(2)), load_scaffold(make(3))
        found[f"scaffold: {name}"] = [f"{one.name} {one.version}" for one in several]
    return found


def test_what_differs_has_another_key_and_what_is_the_same_the_same() -> None:
    found = keys()
    assert [name for name, (one, other) in found.items() if one == other] == []
    assert keys() == found
    assert not [key for pair in found.values() for key in pair if " at 0x" in key or "unknown" in key]


def test_another_process_gives_the_same_keys() -> None:
    """Also one that hashes texts in another order."""
    program = "import json; from tests.drivers.test_identity import keys; print(json.dumps(keys()))"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment(PYTHONPATH=str(ROOT), PYTHONHASHSEED=seed),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        assert json.loads(done.stdout) == keys()


def test_what_it_counts_up_is_no_part_of_a_driver() -> None:
    """An object, a list that it closes over, a number of its own: after a trial it is the same driver."""

    def counting() -> Callable[..., Any]:
        count, seen = 0, []

        def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
            nonlocal count
            count += 1
            seen.append(task)
            return driver and Transcript()

        return driver

    def with_helpers() -> Callable[..., Any]:
        count, last = 0, ""

        def bump() -> None:
            def really() -> None:
                nonlocal count
                count += 1

            really()

        def remember(task: Task) -> None:
            nonlocal last
            last = task.request
            bump()

        def told() -> str:
            return f"{count} {last}"

        def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
            remember(task)
            return Transcript(notes=(told(), str(count)))

        return driver

    class Counts:
        def __init__(self) -> None:
            self.calls, self.last = 0, None

        def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
            self.calls, self.last = self.calls + 1, task  # type: ignore[assignment]
            return Transcript()

    wrapped = functools.partial(lambda driver, *given: driver(*given), with_helpers())
    for driver in (counting(), Counts(), faulty(counting(), 0.1), with_helpers(), wrapped):
        before = load_driver(driver).version
        task = Task("r", ())
        box = Toolbox(tiny_world(), ())
        driver(task, box, Context(box, task, seed="s", trial=1))
        assert load_driver(driver).version == before


def test_names_are_those_that_they_give_themselves() -> None:
    """And those of the command line, where there is one."""
    partial: Any = functools.partial(asked, "x")
    assert load_driver(partial).name == f"{__name__}:asked"
    partial.name = "mine"
    mine = load_driver(partial)
    assert (mine.name, mine.evidence, mine.model, mine.banner) == ("mine", "simulated", "m", "not a model")
    assert load_driver(Simulated()).name == "simulated"
    for text in ("simulated:turn=3,output=7", "faulty:0.1:stub", "command:true x"):
        given = load_driver(text)
        assert load_driver(given.function).name == text
        assert load_driver(given.function).version == given.version
    assert load_scaffold(fan_out(4, decompose=halves)).name == f"fan_out_4:{__name__}:halves"
    for odd in ("", "two\nlines", 7, "x" * 201):
        partial.name = odd
        with pytest.raises(LabError, match="a name is one line"):
            load_driver(partial)


def test_what_cannot_be_told_apart_needs_a_name(tmp_path: Path) -> None:
    """A client, say: one line that says so; with a name it is taken as it is."""
    one: Any = functools.partial(asked, "x", more=object())
    with pytest.raises(LabError) as caught:
        load_driver(one)
    assert str(caught.value) == (
        f"'{__name__}:asked' is given a value of the type object, which cannot be told from another of its kind: give what is made of both "
        "a name (made.name = 'mine')"
    )
    one.name = "mine"
    assert load_driver(one).name == "mine"
    with pytest.raises(LabError, match="give what is made of both a name"):
        fan_out(4, decompose=functools.partial(splits, into=object()))  # type: ignore[arg-type]


class Splits:
    """A decompose that is an object."""

    def __init__(self, into: int) -> None:
        self.into = into

    def __call__(self, agent: Any, task: Task, tools: Toolbox, ctx: Context) -> list[str]:
        return list(task.parts)


def test_a_decompose_that_cannot_be_told_apart_needs_a_name() -> None:
    """It is what is to be named: nobody has made the scaffold yet."""
    mine: Any = Splits(2)
    with pytest.raises(LabError) as caught:
        fan_out(4, decompose=mine)
    assert str(caught.value) == (
        "the decompose of fan_out is a value of the type Splits, which cannot be told from another of its kind: give "
        "decompose a name (decompose.name = 'mine')"
    )
    mine.name = "halving"
    assert load_scaffold(fan_out(4, decompose=mine)).name == "fan_out_4:halving"


def test_two_arms_of_one_name_are_one_line(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    line = f"two drivers have the name '{__name__}:closed.<locals>.driver': give each its own, by an attribute (made.name = 'mine')"
    with pytest.raises(LabError, match=f"^{re.escape(line)}$"):
        evaluate(suite, [closed(1), closed(2)], save_run=False)
    with pytest.raises(LabError, match="is given twice"):
        evaluate(suite, [knows, knows], save_run=False)
    with pytest.raises(LabError, match="two scaffolds have the name"):
        several = [functools.partial(linear, decompose=each) for each in (halves, thirds)]
        evaluate(suite, knows, scaffolds=several, save_run=False)
    named = [Simulated(), Simulated(Parameters(turn=7))]
    assert [load_driver(one).name for one in named] == ["simulated", "simulated:turn=7"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (functools.partial(asked, "x"), functools.partial(asked, "y")),
        (closed(0), closed(1)),
        (Frozen(0), Frozen(1)),
    ],
    ids=["partial", "closure", "frozen"],
)
def test_a_run_is_not_gone_on_with_by_another(tmp_path: Path, one: Any, other: Any) -> None:
    suite, out = write_suite(tmp_path, some(0)), tmp_path / "run"
    evaluate(suite, one, out=out)
    evaluate(suite, one, out=out, trials=2)
    with pytest.raises(LabError):
        evaluate(suite, other, out=out, trials=3)
