"""What a case declares of a work folder: its files, the tools over it, its bounds; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.errors import did_you_mean
from agentbench_lab.expect_work import Given, content, given_faults, path_faults
from agentbench_lab.worlds.capabilities import Capability, Parameter
from agentbench_lab.worlds.sandbox_folder import Stored
from agentbench_lab.worlds.sandbox_levels import Bounds
from agentbench_lab.worlds.statetools import read_tools
from agentbench_lab.worlds.toolbox import CONTROL_TOOLS

READ_LIMIT = 100_000
"""Bytes that read_file gives at once."""
LIST_LIMIT = 1_000
"""Entries that list_files gives at once."""


_CONTROLS = frozenset(tool.name for tool in CONTROL_TOOLS)


class Renamed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of the tools under a name of the case's own, with its own description and JSON Schema of the arguments.

    Of the arguments `command` (or `cmd`), `path` and `content` are looked at; one that is left out is the empty text.
    Without `input_schema` the arguments are the built-in tool's.
    """

    name: str
    builtin: str
    description: str = ""
    input_schema: dict[str, Any] | None = None

    def faults(self) -> list[str]:
        """Everything that is wrong with it."""
        if self.builtin not in TOOLS:
            return [f"tools: {self.name}: no tool {self.builtin!r}{did_you_mean(self.builtin, TOOLS)}"]
        return read_tools([self._declared()], {}, _CONTROLS)[1]

    def capability(self) -> Capability:
        """What an agent is shown of it. It must be without faults."""
        known = TOOLS[self.builtin]
        if self.input_schema is None:
            question = self.description or known.question
            return msgspec.structs.replace(known, name=self.name, label=self.name, question=question)
        own = read_tools([self._declared()], {}, _CONTROLS)[0][self.name].capability
        return msgspec.structs.replace(own, read_only=known.read_only)

    def _declared(self) -> dict[str, Any]:
        schema = {"type": "object"} if self.input_schema is None else self.input_schema
        return {"name": self.name, "description": self.description, "input_schema": schema}


class Spec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A sandbox as a case declares it: `{"kind": "sandbox", "files": {…}, "protected": […], "tools": […], "limits": {…}}`."""

    files: dict[str, str | Given] = {}
    protected: tuple[str, ...] = ()
    tools: tuple[str | Renamed, ...] = ("bash", "read_file", "write_file", "list_files")
    limits: Bounds = Bounds()

    def faults(self) -> list[str]:
        """Everything that is wrong with it."""
        said = [f"files: {text}" for text in path_faults(self.files)]
        said += given_faults(self.files)
        for path in self.protected:
            if path not in self.files:
                said.append(f"protected: {path!r} is not in files{did_you_mean(path, self.files)}")
        for tool in self.tools:
            if isinstance(tool, Renamed):
                said += tool.faults()
            elif tool not in TOOLS:
                said.append(f"tools: no tool {tool!r}{did_you_mean(tool, TOOLS)}")
        names = [tool if isinstance(tool, str) else tool.name for tool in self.tools]
        if len(set(names)) != len(names):
            said.append("tools: a tool is named twice")
        if not self.tools:
            said.append("tools: names no tool")
        size = sum(len(file.data) for file in stored(self.files).values()) if not said else 0
        if size > self.limits.disk_mb << 20:
            said.append(f"files: {size} bytes, more than limits.disk_mb holds")
        return said


def stored(files: Mapping[str, str | Given]) -> dict[str, Stored]:
    """Files as a case gives them, as bytes with their modes."""
    found = {}
    for path, given in files.items():
        if isinstance(given, Given):
            found[path] = Stored(given.data, int(given.mode, 8))
        else:
            found[path] = Stored(content(given))
    return found


TOOLS = {
    "bash": Capability(
        "bash",
        "Run a command",
        "Run a shell command in the work folder. Each call is a new shell: the folder is kept, variables and background "
        "processes are not. There is no network.",
        (
            Parameter("command", "Command", True, "what to run, as one would type it", blank=True),
            Parameter(
                "timeout_s",
                "Seconds",
                note="end it after so many seconds",
                schema={"type": "number", "minimum": 0.1},
            ),
        ),
        read_only=False,
    ),
    "read_file": Capability(
        "read_file",
        "Read a file",
        f"Read a text file of the work folder, at most {READ_LIMIT} bytes.",
        (
            Parameter("path", "Path", True, "relative to the work folder", blank=True),
            Parameter(
                "line",
                "Line",
                note="the first line to give, from 1",
                schema={"type": "integer", "minimum": 1},
            ),
            Parameter("lines", "Count", note="how many lines", schema={"type": "integer", "minimum": 1}),
        ),
    ),
    "write_file": Capability(
        "write_file",
        "Write a file",
        "Write a text file of the work folder, in place of the one that is there; folders above it are made.",
        (
            Parameter("path", "Path", True, "relative to the work folder", blank=True),
            Parameter("content", "Text", note="all of its text; nothing when left out"),
        ),
        read_only=False,
    ),
    "list_files": Capability(
        "list_files",
        "List files",
        f"List what lies in a folder of the work folder and below it, at most {LIST_LIMIT} entries.",
        (Parameter("path", "Path", note="relative to the work folder; all of it when left out"),),
    ),
}


class BadSandbox(ValueError):
    """A sandbox that a case declares and that means nothing, with every fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


__all__ = ["LIST_LIMIT", "READ_LIMIT", "TOOLS", "BadSandbox", "Renamed", "Spec", "stored"]
