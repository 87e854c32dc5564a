"""Finding a driver, its two shapes, and what it is given."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Call, Goal, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.loading import BUILT_IN, known_drivers, load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import knows, some, tiny_world, write_driver, write_suite

DRIVERS = '''
"""Drivers of every shape."""
from agentbench_lab.cases import Call
from agentbench_lab.transcripts import Transcript

def task_shape(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    return Transcript(calls=(Call("tmct_describe", {"symbol": "Cart"}),))

async def task_shape_async(task, tools, ctx):
    return task_shape(task, tools, ctx)

def task_shape_dict(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    return {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}], "terminated": True}

def ladder_shape(request, tools, ctx):
    assert type(request) is str and tools == ["tmct_describe"], (request, tools)
    seen = ctx.dispatch("tmct_describe", {"symbol": "Cart"})
    assert seen["ok"] and seen["result"] == ["Cart"] and "app/cart.py" in seen["text"], seen
    wrong = ctx.dispatch("tmct_describe", {"symbol": "Ledger"})
    assert sorted(wrong) == ["error", "ok"] and not wrong["ok"], wrong
    return {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}], "driver": "mine"}

async def ladder_shape_async(request, tools, ctx):
    ctx["dispatch"]("tmct_describe", {"symbol": "Cart"})
    return ladder_shape(request, tools, ctx)

class Kept:
    def __call__(self, task, tools, ctx):
        return task_shape(task, tools, ctx)

kept = Kept()
lenient = lambda *args: task_shape(*args)
optional = lambda task, tools, ctx, more=None: task_shape(task, tools, ctx)

def two(task, tools): ...
def four(task, tools, ctx, more): ...
def by_name(task, tools, ctx, *, more): ...
def liar(task, tools, ctx): ...
liar.evidence = "lived"
number = 5
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with `shapes.py`; what it adds to the import system is taken away again."""
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    write_driver(tmp_path, DRIVERS, name="shapes")
    yield tmp_path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


SHAPES = [
    "task_shape",
    "task_shape_async",
    "task_shape_dict",
    "ladder_shape",
    "ladder_shape_async",
    "kept",
    "lenient",
    "optional",
]


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_a_driver_is_driven(here: Path, name: str) -> None:
    """Both signatures, sync and async, a transcript or an object given back: the same calls, the same verdict."""
    suite = write_suite(here, some(0)[:1])
    (row,) = evaluate(suite, f"shapes:{name}", save_run=False).product
    assert (row.verdict.outcome, row.produced.why) == ("correct_calls", "")
    assert row.produced.calls == (Call("tmct_describe", {"symbol": "Cart"}),)
    assert row.arm.driver == f"shapes:{name}"


def test_functions_are_given_as_they_are(here: Path) -> None:
    """Their arm is named by module and name; partials and lambdas too."""
    loaded = load_driver(knows)
    assert loaded.name == f"{knows.__module__}:knows"
    assert loaded.evidence == "simulated"
    with_more = functools.partial(lambda task, tools, ctx, more: Transcript(refused=True), more=1)
    run = evaluate(write_suite(here, some(2)), with_more, save_run=False)
    assert run.product[0].verdict.outcome == "correct_refusal"


WRONG = {
    "stb": "unknown driver 'stb' (did you mean 'stub'?)",
    "": "unknown driver ''",
    "shapes": "unknown driver 'shapes'",
    "shape:kept": "no module 'shape' on PYTHONPATH or in the working folder (did you mean 'shapes'?)",
    "shapes:task_shap": "shapes has no 'task_shap' (did you mean 'task_shape'?)",
    "shapes:number": "is no function but an int",
    "shapes:number.real.of": "shapes has no 'of'",
    "shapes:": "shapes has no ''",
    ":kept": "importing it failed",
    "shapes.sub:kept": "no module 'shapes.sub'",
    "shapes:two": "takes (task, tools); a driver takes (task, tools, ctx)",
    "shapes:four": "takes (task, tools, ctx, more); a driver takes (task, tools, ctx)",
    "shapes:by_name": "takes (task, tools, ctx, *, more); a driver takes (task, tools, ctx)",
    "shapes:liar": "evidence 'lived' (did you mean 'live'?)",
    "raising:x": "importing it failed: ZeroDivisionError: division by zero",
    "exiting:x": "importing it failed: SystemExit: enough",
    "broken:x": "importing it failed: SyntaxError",
    "needing:x": "no module 'no_such_thing' on PYTHONPATH or in the working folder",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_driver_that_is_none_is_one_clear_line(here: Path, name: str) -> None:
    write_driver(here, "1 / 0", name="raising")
    write_driver(here, "raise SystemExit('enough')", name="exiting")
    write_driver(here, "def x(:\n", name="broken")
    write_driver(here, "import no_such_thing", name="needing")
    with pytest.raises(LabError) as caught:
        load_driver(name)
    assert WRONG[name] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("driver", [None, 5, ["stub"], {"driver": "stub"}])
def test_what_is_neither_name_nor_function_is_refused(driver: Any) -> None:
    with pytest.raises(LabError, match="a driver is a name or a function"):
        load_driver(driver)


def test_a_missing_need_of_a_module_gets_no_stray_hint(here: Path) -> None:
    """The module is there; it is what it imports that is not."""
    write_driver(here, "import needin", name="needing")
    with pytest.raises(LabError) as caught:
        load_driver("needing:x")
    assert "did you mean" not in str(caught.value)


def test_modules_are_found_on_pythonpath(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages elsewhere, and the working folder first."""
    package = here / "elsewhere" / "pack"
    package.mkdir(parents=True)
    write_driver(package, "def refuse(task, tools, ctx): ...", name="inner")
    (package / "__init__.py").touch()
    with pytest.raises(LabError, match="no module 'pack'"):
        load_driver("pack.inner:refuse")
    monkeypatch.syspath_prepend(here / "elsewhere")
    assert load_driver("pack.inner:refuse").name == "pack.inner:refuse"


def test_entry_points_have_a_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers a driver is found by the name it gives, under which the arm then goes."""
    info = here / "site" / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[agentbench_lab.drivers]\nplugged = shapes:task_shape\nstub = shapes:kept\nlost = nowhere:x\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(here / "site")
    assert known_drivers()["plugged"] == "shapes:task_shape"
    assert load_driver("plugged").name == "plugged"
    assert load_driver("stub").function.__name__ == "stub", "a package must not take a built-in name"
    with pytest.raises(LabError, match="driver 'lost': no module 'nowhere'"):
        load_driver("lost")
    with pytest.raises(LabError, match="did you mean 'plugged'"):
        load_driver("pluged")


def test_the_built_in_drivers_load() -> None:
    for name in BUILT_IN:
        loaded = load_driver(name)
        assert (loaded.name, loaded.evidence) == (name, "simulated")
        assert loaded.banner
        assert len(loaded.version) == 16


def test_the_version_follows_the_source(here: Path) -> None:
    """Its own attribute, else a digest of the file it stands in; nothing said is live."""
    source = "def x(task, tools, ctx): ...\n"
    write_driver(here, source, name="versioned")
    first = load_driver("versioned:x")
    assert first.evidence == "live"
    assert load_driver("versioned:x").version == first.version
    write_driver(here, source + "# changed\n", name="versioned")
    changed = load_driver("versioned:x")
    assert changed.version != first.version
    del sys.modules["versioned"]
    write_driver(
        here, source + "x.version = 7; x.evidence = 'replayed'; x.banner = 'old'\n", name="versioned"
    )
    own = load_driver("versioned:x")
    assert (own.version, own.evidence, own.banner) == ("7", "replayed", "old")


@pytest.mark.parametrize("name", ["kept", "lenient", "task_shape_async"])
def test_objects_and_lambdas_have_a_version_too(here: Path, name: str) -> None:
    """Of lambdas the place in the file is a part of it."""
    version, of_file = load_driver(f"shapes:{name}").version, load_driver("shapes:task_shape").version
    assert re.fullmatch("[0-9a-f]{16}", version) and (version == of_file) == (name != "lenient")


def test_a_partial_has_the_version_of_its_function() -> None:
    assert load_driver(functools.partial(knows)).version == load_driver(knows).version


def context(task: Task | None = None, *, seed: str = "s") -> tuple[Toolbox, Context]:
    task = task or Task("r", ("tmct_describe",))
    box = Toolbox(tiny_world(), task.tools)
    return box, Context(box, task, seed=seed, trial=3)


def test_the_context_by_attribute_and_by_key() -> None:
    """All it offers, under both ways and in both spellings; nothing private, nothing else."""
    trace = (Call("tmct_untested"),)
    goals = (Goal("g", ("tmct_untested",)),)
    box, ctx = context(Task("r", ("tmct_describe",), trace, goals))
    assert (ctx.trial, ctx["trial"], ctx.trace, ctx["goals"], ctx["config"]) == (3, 3, trace, goals, {})
    capability = ctx.capability_by_name("tmct_describe")
    assert capability is not None
    assert ctx.capabilityByName("tmct_describe") is ctx["capabilityByName"]("tmct_describe") is capability
    assert ctx.capability_by_name("tmct_nothing") is None
    assert ctx["dispatch"]("tmct_describe", {"symbol": "Cart"})["result"] == ["Cart"]
    assert [row.status for row in box.ledger] == ["ok"]
    for key in ("_toolbox", "nothing", 5, None):
        with pytest.raises(KeyError):
            ctx[key]


def test_the_contexts_random_numbers_are_the_trials_own(tmp_path: Path) -> None:
    """The same in a second run and beside other workers; others for each case, trial, arm and seed."""

    def draws(task: Task, tools: Toolbox, ctx: Any) -> Transcript:
        return Transcript(refused=True, answer=[ctx.random.random(), ctx["random"].random(), ctx.seed])

    def draws_too(task: Task, tools: Toolbox, ctx: Any) -> Transcript:
        return draws(task, tools, ctx)

    suite = write_suite(tmp_path, some(0, 1))

    def drawn(driver: Any, **more: Any) -> list[Any]:
        run = evaluate(suite, driver, trials=3, save_run=False, **more)
        return [row.produced.answer for row in run.product]

    first = drawn(draws)
    assert first == drawn(draws) == drawn(draws, workers=3)
    assert first == drawn([draws, draws_too])[:3] + drawn([draws, draws_too])[6:9] + first[6:]
    others = [*first, *drawn(draws_too), *drawn(draws, seed=1)]
    assert len({answer[0] for answer in others}) == len({answer[2] for answer in others}) == len(others)
    assert all(answer[0] != answer[1] for answer in others)
