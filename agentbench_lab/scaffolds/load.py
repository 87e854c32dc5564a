"""Scaffolds by name, and a driver under one."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, replace
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.identity import layers, name_of, source_digest, version_of
from agentbench_lab.drivers.loading import Loaded, import_function
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.scaffolds.agent import Agent, Run, Scaffold
from agentbench_lab.scaffolds.ship import fan_out, given_parts, linear, once, plan_parts, whole
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import a_kind
from agentbench_lab.worlds.toolbox import Toolbox


def durable(scaffold: Scaffold) -> Scaffold:
    """The same scaffold, gone on with after a crash: see docs/scaffolds.md. Each `ctx.step` that it has finished is on
    disk with the world as it then was, and is neither repeated nor paid for again."""
    inner = load_scaffold(scaffold)
    version = inner.version or source_digest(once)
    return _Durable(scaffold if inner.wraps else whole, f"durable:{inner.name}", version)


class _Durable:
    durable = True

    def __init__(self, scaffold: Scaffold, name: str, version: str) -> None:
        self.scaffold, self.name, self.version, self.behind = scaffold, name, version, (scaffold,)

    def __call__(self, agent: Agent) -> Run:
        return self.scaffold(agent)


@dataclass(frozen=True)
class LoadedScaffold:
    """A scaffold that was found: the name of its arms, the function, and what its rows are stamped with.

    `native` is the mode of a harness of its own, which no scaffold of ours wraps. A `durable` one is begun again from
    its last finished step when its driver crashes.
    """

    name: str
    function: Scaffold = once
    version: str = ""
    native: str = ""
    durable: bool = False

    @property
    def wraps(self) -> bool:
        return self.function is not once


NAMES = ("once", "linear", "fan_out_N", "linear:plan", "fan_out_N:plan", "durable:NAME", "native:NAME")
"""The names that `load_scaffold` knows; your own is package.module:name."""


def load_scaffold(scaffold: str | Scaffold) -> LoadedScaffold:
    """A scaffold by name (`NAMES`, or `package.module:name`), or a function given as it is.

    Raises LabError with the near match.
    """
    if callable(scaffold):
        return _checked("once" if scaffold is once else name_of(scaffold), scaffold)
    if not isinstance(scaffold, str):
        raise LabError(f"a scaffold is a name or a function, not {a_kind(type(scaffold).__name__)}")
    head, _, rest = scaffold.partition(":")
    if head == "native":
        if not rest:
            raise LabError("scaffold 'native:' needs the mode of the driver's own, as in native:workflow")
        return LoadedScaffold(scaffold, native=rest)
    if head == "durable":
        if not rest:
            raise LabError(f"scaffold {scaffold!r} needs the one that is to be durable, as in durable:linear")
        inner = load_scaffold(rest)
        if inner.native or inner.durable:
            raise LabError(f"scaffold {scaffold!r}: durable takes a scaffold of ours or yours, not {rest!r}")
        return _checked(scaffold, durable(inner.function))
    found = _shipped(scaffold)
    if found is not None:
        return _checked(scaffold, found)
    if not rest or head in ("once", "linear") or head.startswith("fan_out"):
        raise LabError(
            f"unknown scaffold {scaffold!r}{_near(scaffold)}; your own is given as package.module:name"
        )
    return _checked(scaffold, import_function(scaffold, head, rest, kind="scaffold"))


def _near(name: str) -> str:
    return did_you_mean(name, [known.replace("_N", "_4") for known in NAMES])


def _shipped(name: str) -> Scaffold | None:
    head, _, plan = name.partition(":")
    if plan not in ("", "plan") or (head == "once" and plan):
        return None
    decompose = plan_parts if plan else given_parts
    if head == "once":
        return once
    if head == "linear":
        return functools.partial(linear, decompose=decompose) if plan else linear
    digits = head.removeprefix("fan_out_")
    if head.startswith("fan_out_") and digits.isascii() and digits.isdigit():
        return fan_out(int(digits), decompose=decompose)
    return None


def _checked(name: str, function: Any) -> LoadedScaffold:
    *_, bare = layers(function)
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise LabError(
            f"scaffold {name!r} takes {inspect.signature(function)}; a scaffold takes (agent)"
        ) from None
    except ValueError:
        pass
    if inspect.iscoroutinefunction(bare):
        raise LabError(
            f"scaffold {name!r} is an async function; a scaffold is a plain one (its drivers may be async)"
        )
    version = "" if function is once else version_of(function)
    return LoadedScaffold(name, function, version, durable=bool(getattr(function, "durable", False)))


class Scaffolded:
    """A driver under a scaffold: what a trial calls."""

    def __init__(self, scaffold: Scaffold, driver: Loaded) -> None:
        self.scaffold, self.driver, self.behind = scaffold, driver, (driver.function, scaffold)

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return self.scaffold(Agent(self.driver))(task, tools, ctx)


def scaffolded(scaffold: LoadedScaffold, driver: Loaded) -> Loaded:
    """The driver under the scaffold, with the marks of both; under `once` and a native mode the driver itself.

    Raises LabError for a scaffold that gives back no function to call.
    """
    if not scaffold.wraps:
        return driver
    _check_run(scaffold, driver)
    return replace(
        driver,
        function=Scaffolded(scaffold.function, driver),
        ladder_shaped=False,
        version=f"{driver.version}+{scaffold.version}",
        durable=scaffold.durable,
    )


def _check_run(scaffold: LoadedScaffold, driver: Loaded) -> None:
    """What a scaffold gives back can be called with a task, which is better known before a run than in each trial."""
    who = f"scaffold {scaffold.name!r}"
    try:
        run = scaffold.function(Agent(driver))
    except LabError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise LabError(f"{who} failed before it had a task: {type(error).__name__}: {said}") from error
    needed = "a scaffold gives back the function that does a task: run(task, tools, ctx)"
    if not callable(run):
        what = "nothing" if run is None else a_kind(type(run).__name__)
        raise LabError(
            f"{who} gave back {what}; {needed}{' (is a `return` missing?)' if run is None else ''}"
        )
    if inspect.iscoroutinefunction(run):
        raise LabError(
            f"{who} gave back an async function; a scaffold's is a plain one (its drivers may be async)"
        )
    try:
        inspect.signature(run).bind(None, None, None)
    except TypeError:
        raise LabError(f"{who} gave back a function that takes {inspect.signature(run)}; {needed}") from None
    except ValueError:
        pass
