"""Which world a case acts on, and one copy of each in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Case, Suite, project_root
from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean, shown
from agentbench_lab.values import canonical
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.mcp_client import BadServer, McpWorld
from agentbench_lab.worlds.sandbox import BadSandbox, Sandbox
from agentbench_lab.worlds.sandbox_levels import Level
from agentbench_lab.worlds.statestore import BadWorld, StateWorld
from agentbench_lab.worlds.toolbox import World


class Worlds:
    """The worlds of one suite: a case's own by name or as it stands in the case, else the one given, else the one
    named like the suite.

    Names are files under worlds/ beside the suite. Each world is read once. `sandbox` is the level of the sandboxes
    among them; None is the default one.
    """

    def __init__(
        self, suite: Suite, given: str | Path | World | None = None, *, sandbox: Level | None = None
    ) -> None:
        self._suite = suite
        self._given = given
        self._sandbox = sandbox
        self._loaded: dict[Path | bytes, World | LabError] = {}

    def of(self, case: Case) -> World:
        """The world of a case. Raises LabError with `file:line` of the case when there is none, or what is wrong
        with it."""
        name = case.world
        if isinstance(name, dict):
            return self._inline(case, name)
        if name is None and self._given is not None:
            if not isinstance(self._given, str | Path):
                return self._given
            return self._load(Path(self._given))
        name = name or self._suite.name
        folder = self._folder / "worlds"
        file = folder / f"{name}.json"
        if file not in self._loaded and not file.is_file():
            known = [path.stem for path in folder.glob("*.json")]
            hint = did_you_mean(name, known) if case.world else "; give one with --world PATH"
            where = f"{case.file}:{case.line}: {case.id}" if case.line else case.id
            raise LabError(f"{where}: no world {name!r}{hint}")
        return self._load(file)

    @property
    def _folder(self) -> Path:
        return self._suite.path.parent if self._suite.path else project_root() / "data" / "cases"

    def _load(self, file: Path) -> World:
        return self._once(file, lambda: load_world(file))

    def _inline(self, case: Case, declared: dict[str, Any]) -> World:
        """A world that stands in its case. Cases with the same one share it."""
        kind = declared.get("kind")
        if kind not in INLINE:
            said = f"{case.id}: world: unknown kind {kind!r}{did_you_mean(str(kind), INLINE)}"
            raise ProblemsError([Problem(case.file or case.id, case.line, said)])

        def make() -> World:
            return INLINE[kind](declared, f"{self._suite.name}:{case.id}", self._folder)

        try:
            return self._once(canonical(declared), make)
        except BadWorldError as error:
            raise ProblemsError(
                [
                    Problem(case.file or case.id, case.line, f"{case.id}: world: {text}")
                    for text in error.problems
                ]
            ) from None

    def _once(self, key: Path | bytes, make: Callable[[], World]) -> World:
        if key not in self._loaded:
            try:
                world = make()
                if self._sandbox is not None and isinstance(world, Sandbox):
                    world = world.at(self._sandbox)
                self._loaded[key] = world
            except LabError as error:
                self._loaded[key] = error
        found = self._loaded[key]
        if isinstance(found, LabError):
            raise found
        return found


class BadWorldError(LabError):
    """A world that stands in a case has faults."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class _Kind(Struct):
    """The one key that tells the kind of a world file; the graph files have none."""

    kind: Any = None


def load_world(file: Path) -> World:
    """The world of a file, of whatever kind; raises LabError with the file and what is wrong with it."""
    if not file.is_file():
        near = did_you_mean(file.name, (p.name for p in file.parent.glob("*.json")), most=0)
        raise LabError(f"{file}: no such world file{near}")
    try:
        data = file.read_bytes()
        kind = msgspec.json.decode(data, type=_Kind).kind
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # the reader of graphs says what is wrong with a file that is none
        return CodeGraph.load(file)
    if kind is None or kind == "codegraph":
        return CodeGraph.load(file)
    if kind not in FILES:
        raise LabError(f"{shown(file)}: unknown kind {kind!r}{did_you_mean(str(kind), KINDS)}")
    return FILES[kind](data, file.stem, shown(file.resolve()))


def _state_inline(declared: dict[str, Any], name: str, folder: Path) -> World:
    try:
        return StateWorld.of(declared, name=name)
    except BadWorld as error:
        raise BadWorldError(error.problems) from None


def _sandbox_inline(declared: dict[str, Any], name: str, folder: Path) -> World:
    try:
        return Sandbox.of(declared, name=name)
    except BadSandbox as error:
        raise BadWorldError(error.problems) from None


def _sandbox_file(data: bytes, name: str, file: str) -> World:
    try:
        return Sandbox.of(msgspec.json.decode(data, type=dict[str, Any]), name=name)
    except BadSandbox as error:
        raise ProblemsError([Problem(file, 0, text) for text in error.problems]) from None


def _mcp_inline(declared: dict[str, Any], name: str, folder: Path) -> World:
    try:
        return McpWorld.of(declared, name=name, folder=folder)
    except BadServer as error:
        raise BadWorldError(error.problems) from None


def _mcp_file(data: bytes, name: str, file: str) -> World:
    folder = Path(file).absolute().parent
    try:
        return McpWorld.of(msgspec.json.decode(data, type=dict[str, Any]), name=name, folder=folder)
    except BadServer as error:
        raise ProblemsError([Problem(file, 0, text) for text in error.problems]) from None


def _graph_inline(declared: dict[str, Any], name: str, folder: Path) -> World:
    odd = [
        f"unknown key {key!r}{did_you_mean(key, ('kind', 'graph'))}"
        for key in declared
        if key not in ("kind", "graph")
    ]
    graph = declared.get("graph")
    if not isinstance(graph, str):
        odd.append("graph must name a file beside the suite")
    if odd:
        raise BadWorldError(tuple(odd))
    return CodeGraph.load(folder / str(graph))


INLINE: dict[str, Callable[[dict[str, Any], str, Path], World]] = {
    "codegraph": _graph_inline,
    "sandbox": _sandbox_inline,
    "mcp": _mcp_inline,
    "state": _state_inline,
}
"""How a world that stands in a case is made, by kind: from the object, a name, and the folder of the suite."""
FILES: dict[str, Callable[[bytes, str, str], World]] = {
    "sandbox": _sandbox_file,
    "mcp": _mcp_file,
    "state": lambda data, name, file: StateWorld.from_bytes(data, name=name, file=file),
}
"""How a world file is read, by kind: from its bytes, the name, and the file as a person writes it."""
KINDS = tuple(sorted({*INLINE, *FILES}))


__all__ = ["FILES", "INLINE", "KINDS", "Worlds", "load_world"]
