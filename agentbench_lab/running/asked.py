"""What was asked of a run, checked before anything is run or written: each mistake is one clear line."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.cases import RUNGS, Case, Limits, Suite, checked_suite, load_suite, suite_of
from agentbench_lab.conversation import DEFAULT_USER
from agentbench_lab.drivers import keys
from agentbench_lab.drivers.identity import functions_in
from agentbench_lab.drivers.loading import Loaded, load_driver
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results import provenance
from agentbench_lab.results.product import Arm
from agentbench_lab.running.trial import Retries
from agentbench_lab.scaffolds import LoadedScaffold, load_scaffold, scaffolded
from agentbench_lab.values import a_kind
from agentbench_lab.worlds.sandbox import Sandbox
from agentbench_lab.worlds.sandbox_levels import Level, parse_level, unavailable
from agentbench_lab.worlds.toolbox import CONTROL_TOOLS, World

DEFAULT_WALL_S = 60.0
"""Seconds a trial may take when neither the case nor the caller says otherwise."""
DEFAULT_TOOL_CALLS = 1_000
"""Tool calls it may make: far more than any case needs, and an end to a driver that never stops."""

DriverLike = str | Callable[..., Any]
ScaffoldLike = str | Callable[..., Any]
MODE = "{native}"
"""What a native mode takes the place of in a driver's text."""


class Caps(Struct, frozen=True):
    """What a whole run may use: once it has used this much no further trial is begun, and the run is incomplete.

    Tokens and money count what is known of them; None is no cap.
    """

    tokens: int | None = None
    cost_micros: int | None = None
    wall_s: float | None = None


def world_name(world: Any) -> str:
    """The name by which a card speaks of a given world; empty for none."""
    return "" if not world else getattr(world, "name", None) or Path(str(world)).name


def suite_asked(suite: str | Path | Suite | Sequence[Case]) -> Suite:
    """The suite that a path, a bare name, a Suite or some cases mean."""
    if isinstance(suite, str | Path):
        return load_suite(suite)
    if isinstance(suite, Suite):
        return checked_suite(suite)
    if isinstance(suite, list | tuple) and suite and all(isinstance(case, Case) for case in suite):
        return suite_of(suite)
    raise LabError(f"suite must be a path, a name, a Suite or cases, not {a_kind(type(suite).__name__)}")


def words(value: Any, name: str) -> tuple[str, ...]:
    """Names given as a list or as comma-separated text."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    words = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(word, str) for word in words):
        raise LabError(f"{name} must be text, not {value!r}")
    return words


def stamp_asked(stamp: str) -> str:
    """The stamp, or the package's version; only what a file name can hold on any system."""
    if not isinstance(stamp, str):
        raise LabError(
            f"stamp must be text, not the {type(stamp).__name__} {stamp!r} (papermill: give it with -r)"
        )
    stamp = stamp or provenance.package_version()
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", stamp) or stamp.startswith((".", "-")):
        raise LabError(
            f"stamp {stamp!r}: only letters, digits, dot, dash and underscore, and no dot or dash first"
        )
    return stamp


def count(value: int, name: str) -> int:
    """A whole number from 1."""
    if type(value) is not int or value < 1:
        raise LabError(f"{name} must be a whole number from 1, not {value!r}")
    return value


def whole(value: int, name: str) -> int:
    """A whole number."""
    if type(value) is not int:
        raise LabError(f"{name} must be a whole number, not {value!r}")
    return value


def limits_asked(limits: Limits | None) -> Limits:
    """The limits of a trial, or the default ones."""
    if limits is None:
        limits = Limits(wall_s=DEFAULT_WALL_S, tool_calls=DEFAULT_TOOL_CALLS)
    if not isinstance(limits, Limits):
        raise LabError(f"limits must be Limits, not {a_kind(type(limits).__name__)}")
    wall_s = limits.wall_s
    if wall_s is not None and not (type(wall_s) in (int, float) and 0 < wall_s < float("inf")):
        raise LabError(f"the time limit must be more than 0 seconds, not {wall_s!r}")
    for name in ("steps", "tool_calls", "tokens", "cost_micros"):
        most = getattr(limits, name)
        if most is not None and (type(most) is not int or most < 0):
            raise LabError(f"the limit {name} must be a whole number from 0, not {most!r}")
    return limits


def arms_asked(
    driver: DriverLike | Sequence[DriverLike], scaffolds: ScaffoldLike | Sequence[ScaffoldLike]
) -> tuple[list[Arm], list[Loaded]]:
    """Every driver under every scaffold: the arms, and what a trial of each calls.

    A driver with `{native}` in its text has modes of its own, and is made once for each native scaffold.
    """
    drivers: Any = driver if isinstance(driver, list | tuple) else [driver]
    found = scaffolds_asked(scaffolds)
    arms: list[Arm] = []
    loaded: list[Loaded] = []
    named: dict[str, DriverLike] = {}
    for one in drivers:
        modes = isinstance(one, str) and MODE in one
        known = None if modes else load_driver(one)
        name = one if known is None else known.name
        if name in named:
            raise LabError(_twice("driver", name, one, named[name]))
        named[name] = one
        for scaffold in found:
            if scaffold.native and known is not None:
                raise LabError(
                    f"scaffold {scaffold.name!r} needs a driver with {MODE} in its text, which the mode takes the place "
                    f"of; {name!r} has none"
                )
            if known is None and not scaffold.native:
                raise LabError(f"driver {name!r} has {MODE} in it: name its modes with native:NAME scaffolds")
            made = (
                load_driver(one.replace(MODE, scaffold.native))
                if known is None
                else scaffolded(scaffold, known)
            )
            arms.append(Arm(name, made.model, scaffold.name))
            loaded.append(made)
    if not arms:
        raise LabError("no driver given")
    return arms, loaded


def scaffolds_asked(scaffolds: ScaffoldLike | Sequence[ScaffoldLike]) -> list[LoadedScaffold]:
    """Each scaffold once, loaded."""
    several: Any = scaffolds if isinstance(scaffolds, list | tuple) else [scaffolds]
    if not several:
        raise LabError("no scaffold given")
    found: dict[str, LoadedScaffold] = {}
    given: dict[str, ScaffoldLike] = {}
    for one in several:
        scaffold = load_scaffold(one)
        if scaffold.name in found:
            raise LabError(_twice("scaffold", scaffold.name, one, given[scaffold.name]))
        found[scaffold.name], given[scaffold.name] = scaffold, one
    return list(found.values())


def _twice(what: str, name: str, one: object, other: object) -> str:
    if one is other or isinstance(one, str) or isinstance(other, str):
        return f"{what} {name!r} is given twice"
    return f"two {what}s have the name {name!r}: give each its own, by an attribute (made.name = 'mine')"


def user_asked(user: DriverLike, suite: Suite, cases: Sequence[Case]) -> Loaded | None:
    """Who plays the simulated users, loaded; None where no case has one."""
    talking = [case for case in cases if case.user is not None]
    if not talking:
        if user:
            name = user if isinstance(user, str) else load_driver(user).name
            raise LabError(f"user {name!r} speaks in no case: {suite.name} has no conversation")
        return None
    loaded = load_driver(user or DEFAULT_USER)
    if loaded.name == DEFAULT_USER:
        for case in talking:
            if case.user is not None and not case.user.script:
                where = f"{case.file}:{case.line}: " if case.line else ""
                raise LabError(
                    f"{where}{case.id}: its user has a scenario and no script: name who plays it (--user DRIVER)"
                )
    return loaded


def check_talks(suite: Suite, cases: Sequence[Case], arms: Sequence[Arm]) -> None:
    """A conversation has its own order of turns: no scaffold of ours is put around it."""
    for arm in arms:
        own = arm.scaffold == "once" or arm.scaffold.startswith("native:")
        if not own and any(case.user is not None for case in cases):
            raise LabError(
                f"scaffold {arm.scaffold!r}: {suite.name} has conversations, which run under once (or a native mode) alone"
            )


def check_rungs(suite: Suite, cases: Sequence[Case]) -> None:
    """With the ladder every case needs a rung."""
    odd = sorted({case.group for case in cases} - set(RUNGS))
    if odd:
        raise LabError(f"--ladder needs rungs; {suite.name} has the group {odd[0]!r}")


def check_tools(placed: Iterable[tuple[Case, World]]) -> None:
    """Every declared tool is registered in the case's world."""
    for case, world in placed:
        for name in case.task.tools:
            if name not in world.registry.by_name:
                hint = did_you_mean(name, world.registry.names, most=0)
                where = f"{case.file}:{case.line}: " if case.line else ""
                raise LabError(f"{where}{case.id}: world {world.name!r} has no tool {name!r}{hint}")


def check_sandboxes(placed: Iterable[tuple[Case, World]]) -> str:
    """The level of the sandboxes, which has to work here; empty where there is none. A case that looks at a work folder
    acts on one."""
    level = ""
    for case, world in placed:
        if isinstance(world, Sandbox):
            if not level:
                why = unavailable(world.level)
                if why is not None:
                    raise LabError(f"the sandbox level {world.level} does not work here: {why}")
                level = str(world.level)
        elif case.expect.of_work:
            where = f"{case.file}:{case.line}: " if case.line else ""
            raise LabError(
                f"{where}{case.id}: expects files or a command, and world {world.name!r} is a {world.kind}"
            )
    return level


def check_states(placed: Iterable[tuple[Case, World]]) -> None:
    """A case that looks at an end state acts on a world that has one."""
    for case, world in placed:
        if case.expect.of_state and world.kind != "state":
            where = f"{case.file}:{case.line}: " if case.line else ""
            raise LabError(f"{where}{case.id}: expects a state, and world {world.name!r} is a {world.kind}")


def check_handed_on(placed: Sequence[tuple[Case, World]], drivers: Iterable[Loaded]) -> None:
    """What a program is handed on in secret stands in no case and no world of one: taken out of the program's calls and
    answer, it would change the grade."""
    for loaded in drivers:
        for function in functions_in(loaded.function):
            for name in getattr(function, "handed_on", ()):
                secrets = keys.of_variables(name)
                case = _said_in(placed, secrets) if secrets else None
                if case is not None:
                    where = f"{case.file}:{case.line}: " if case.line else ""
                    raise LabError(
                        f"command[env={name}]: its value stands in case {where}{case.id}, where taking it out as a secret "
                        f"would change the grade; what is no secret is handed on openly: command:env {name}=... PROGRAM"
                    )


def _said_in(placed: Sequence[tuple[Case, World]], secrets: keys.Secrets) -> Case | None:
    """The first case that says one of these secrets, to the agent or in what is expected of it."""
    clean = functools.partial(keys.without, secrets=secrets)

    def says(told: Any) -> bool:
        return bool(keys.without_in(told, clean) != told)

    worlds: dict[tuple[int, tuple[str, ...]], bool] = {}
    for case, world in placed:
        if says((case.task, case.expect, case.gold, case.user, case.world)):
            return case
        key = id(world), case.task.tools
        if key not in worlds:
            tools = [world.registry.by_name[name] for name in case.task.tools]
            shown: list[Any] = [(tool.name, tool.question, tool.input_schema()) for tool in tools]
            shown += [(tool.name, tool.input_schema) for tool in CONTROL_TOOLS]
            worlds[key] = says((shown, sorted(world.labels), getattr(world, "declared", None)))
        if worlds[key]:
            return case
    return None


def check_durable(placed: Iterable[tuple[Case, World]]) -> None:
    """Every world can be put back as it was."""
    for case, world in placed:
        if not hasattr(world, "snapshot"):
            where = f"{case.file}:{case.line}: " if case.line else ""
            raise LabError(
                f"{where}{case.id}: durable needs a world that can be put back as it was, and {world.name!r} is a "
                f"{world.kind}"
            )


def level_asked(sandbox: str | Level) -> Level | None:
    """The level of the sandboxes that was asked for; None is the default one."""
    if isinstance(sandbox, Level):
        return sandbox
    if not isinstance(sandbox, str):
        raise LabError(f"sandbox must be local, bubblewrap or container:IMAGE, not {sandbox!r}")
    return parse_level(sandbox) if sandbox else None


def caps_asked(caps: Caps | None) -> Caps:
    """The caps of a run, or none."""
    caps = Caps() if caps is None else caps
    if not isinstance(caps, Caps):
        raise LabError(f"caps must be Caps, not {a_kind(type(caps).__name__)}")
    for name in ("tokens", "cost_micros"):
        most = getattr(caps, name)
        if most is not None and (type(most) is not int or most < 0):
            raise LabError(f"the cap {name} must be a whole number from 0, not {most!r}")
    wall_s = caps.wall_s
    if wall_s is not None and not (type(wall_s) in (int, float) and 0 <= wall_s < float("inf")):
        raise LabError(f"the cap of time must be seconds from 0, not {wall_s!r}")
    return caps


def retries_asked(retries: Retries | int) -> Retries:
    """How an infrastructure error is tried again."""
    found = Retries(times=retries) if type(retries) is int else retries
    if not isinstance(found, Retries) or found.times < 0:
        wrong = retries.times if isinstance(retries, Retries) else retries
        raise LabError(f"retries must be a whole number from 0, not {wrong!r}")
    return found
