"""The driver seam: what a driver is, and how one is found by name.

A driver is a function, sync or async, in one of two shapes:

- `driver(task, tools, ctx) -> Transcript`, where `tools` is the Toolbox and `tools.call(name, input)` runs a tool;
- `driver(request, tools, ctx) -> dict`, the TOOL ladder's own: `tools` is the list of declared names and
  `ctx.dispatch(name, input)` runs one. The first parameter's name, `request`, tells this shape.

A driver may carry attributes: `evidence` ("simulated", "replayed" or "live", which is what is assumed), `name` and
`version` (else what drivers.identity makes of it), `model` (the model it asks, where it asks one), and `banner` (a line
that reports print above its numbers). A method `close()` is called once when a run ends, in every process that loaded
the driver.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.drivers import keys
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.identity import name_of, said_by, version_of
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import a_kind
from agentbench_lab.worlds.toolbox import Toolbox

Driver = Callable[[Task, Toolbox, "Context"], "Transcript | Mapping[str, Any] | Awaitable[Any]"]
BUILT_IN = {
    "stub": "agentbench_lab.drivers.stub:stub",
    "refuse_all": "agentbench_lab.drivers.floors:refuse_all",
    "reckless": "agentbench_lab.drivers.floors:reckless",
    "scripted": "agentbench_lab.drivers.scripted:scripted",
}
MAKERS: dict[str, str] = {
    "faulty": "agentbench_lab.drivers.faulty:make",
    "replay": "agentbench_lab.drivers.replay:make",
    "simulated": "agentbench_lab.drivers.simulated:make",
    "chat": "agentbench_lab.drivers.chat:make",
    "command": "agentbench_lab.drivers.command:make",
}
"""Drivers that are made from the text behind their name and a colon (`name:text`); each maker takes that text. Of
`name[options]:text` it takes all from the bracket on."""
ENTRY_POINTS = "agentbench_lab.drivers"
EVIDENCES = ("simulated", "replayed", "live")


@dataclass(frozen=True)
class Loaded:
    """A driver that was found: its arm name, the function, and what its rows are stamped with."""

    name: str
    function: Callable[..., Any]
    ladder_shaped: bool
    evidence: str
    version: str
    banner: str = ""
    model: str | None = None
    durable: bool = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        keys.remember()  # this may be another process, with an environment of its own

    def start(self, task: Task, toolbox: Toolbox, context: Context) -> Any:
        """What the function gives back: a result, or an awaitable of one."""
        if self.ladder_shaped:
            return self.function(task.request, list(task.tools), context)
        return self.function(task, toolbox, context)


def known_drivers() -> dict[str, str]:
    """Names that load_driver knows without a module: the built-in ones and installed entry points."""
    found = {point.name: point.value for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    return {**found, **BUILT_IN}


def load_driver(driver: str | Callable[..., Any]) -> Loaded:
    """A driver by name (`stub`, an entry point, or `package.module:name`), or a function or object given as it is, whose
    name is its attribute `name` or where it stands.

    Modules are found on PYTHONPATH and in the working folder. Raises LabError with the near match.
    """
    keys.remember()
    if callable(driver):
        return _loaded(name_of(driver), driver)
    if not isinstance(driver, str):
        raise LabError(f"a driver is a name or a function, not {a_kind(type(driver).__name__)}")
    kind = re.split(r"[:\[]", driver, maxsplit=1)[0]
    if kind in MAKERS:
        module_name, _, attribute = MAKERS[kind].partition(":")
        made = import_function(kind, module_name, attribute)(driver[len(kind) :].removeprefix(":"))
        return _loaded(driver, made)
    where = known_drivers().get(driver, driver)
    module_name, colon, attribute = where.partition(":")
    if not colon:
        hint = did_you_mean(driver, [*known_drivers(), *MAKERS])
        raise LabError(f"unknown driver {driver!r}{hint}; your own is given as package.module:name")
    return _loaded(driver, import_function(driver, module_name, attribute))


def import_function(
    spec: str, module_name: str, attribute: str, *, kind: str = "driver"
) -> Callable[..., Any]:
    """The function of that name in a module on PYTHONPATH or in the working folder; LabError for whatever is wrong."""
    here = str(Path.cwd())
    if here not in sys.path and spec not in BUILT_IN and spec not in MAKERS:
        sys.path.append(here)  # last, so that no file there takes the place of an installed library
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        near = ""
        if error.name == module_name:
            near = did_you_mean(module_name, (p.stem for p in Path.cwd().glob("*.py")), most=0)
        missing = f"no module {error.name!r} on PYTHONPATH or in the working folder{near}"
        raise LabError(f"{kind} {spec!r}: {missing}") from None
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise LabError(f"{kind} {spec!r}: importing it failed: {type(error).__name__}: {said}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            inside = getattr(found, "__dict__", {}).items()
            names = [name for name, value in inside if callable(value) and not name.startswith("_")]
            raise LabError(f"{kind} {spec!r}: {module_name} has no {part!r}{did_you_mean(part, names)}")
        found = getattr(found, part)
    if not callable(found):
        raise LabError(f"{kind} {spec!r} is no function but {a_kind(type(found).__name__)}")
    function: Callable[..., Any] = found
    return function


def _loaded(name: str, function: Callable[..., Any]) -> Loaded:
    evidence = said_by(function, "evidence", "live")
    if evidence not in EVIDENCES:
        raise LabError(f"driver {name!r}: evidence {evidence!r}{did_you_mean(str(evidence), EVIDENCES)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        names: list[str] = []
    else:
        names = list(signature.parameters)
        try:
            signature.bind(None, None, None)
        except TypeError:
            bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
            shape = inspect.Signature(bare)
            raise LabError(f"driver {name!r} takes {shape}; a driver takes (task, tools, ctx)") from None
    return Loaded(
        name=name,
        function=function,
        ladder_shaped=names[:1] == ["request"],
        evidence=evidence,
        version=version_of(function),
        banner=str(said_by(function, "banner", "")),
        model=said_by(function, "model", None),
    )
