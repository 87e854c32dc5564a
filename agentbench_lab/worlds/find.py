"""Which world a case acts on, and one copy of each in memory."""

from __future__ import annotations

from pathlib import Path

from agentbench_lab.cases import Case, Suite, project_root
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.toolbox import World


class Worlds:
    """The worlds of one suite: a case's own by name, else the one given, else the one named like the suite.

    Names are files under worlds/ beside the suite. Each world is read once.
    """

    def __init__(self, suite: Suite, given: str | Path | World | None = None) -> None:
        self._suite = suite
        self._given = given
        self._loaded: dict[Path, World] = {}

    def of(self, case: Case) -> World:
        """The world of a case. Raises LabError with `file:line` of the case when there is none."""
        name = case.world
        if name is None and self._given is not None:
            if not isinstance(self._given, str | Path):
                return self._given
            return self._load(Path(self._given))
        name = name or self._suite.name
        beside = self._suite.path.parent if self._suite.path else project_root() / "data" / "cases"
        folder = beside / "worlds"
        file = folder / f"{name}.json"
        if file not in self._loaded and not file.is_file():
            known = [path.stem for path in folder.glob("*.json")]
            hint = did_you_mean(name, known) if case.world else "; give one with --world PATH"
            where = f"{case.file}:{case.line}: {case.id}" if case.line else case.id
            raise LabError(f"{where}: no world {name!r}{hint}")
        return self._load(file)

    def _load(self, file: Path) -> World:
        if file not in self._loaded:
            if not file.is_file():
                near = did_you_mean(file.name, (p.name for p in file.parent.glob("*.json")), most=0)
                raise LabError(f"{file}: no such world file{near}")
            self._loaded[file] = CodeGraph.load(file)
        return self._loaded[file]
