"""Any MCP server as a world: its tools as capabilities, its answers as observations.

A trial has a connection of its own, and so, where the server is a command, a process of its own; both are made when
the first tool is called. What a server keeps elsewhere (a file, a service) is not fresh, and cannot be seen.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Expect, Goal
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.values import NotJson, canonical, digest, plain
from agentbench_lab.worlds.arguments import UnsupportedSchema, compile_schema
from agentbench_lab.worlds.capabilities import Capability, Parameter, Registry
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.toolbox import Ran

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_types import CallToolResult

    from agentbench_lab.worlds.mcp_session import Session

START_S = 30.0
"""Seconds that a server has to start and to list its tools."""
CALL_S = 30.0
"""Seconds that a call may take; then it counts as a tool's error, and the server is told that nobody waits."""
KEPT = 20_000
"""Characters up to which the ledger keeps what a call gave back; an agent is given all of it."""
_KEYS = ("kind", "command", "url", "env", "token_env", "start_s", "call_s", "description")


class BadServer(LabError):
    """What is wrong with the declaration of a server, one text each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class Link(Struct, frozen=True):
    """How a server is reached: a command and its extra environment, or a URL.

    `token_env` names the environment variable that has the bearer token of a URL: a token stands in no file. A command
    is looked for beside this Python first (so `python` is this one), then on PATH, and runs in `folder`. It gets the
    few variables that any program needs (PATH, HOME, ...) and those of `env`, no others.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    token_env: str = ""
    token: str = ""
    folder: str = ""
    start_s: float = START_S
    call_s: float = CALL_S

    def __repr__(self) -> str:  # which a log may show: without the token
        return f"Link({str(self)!r})"

    def __str__(self) -> str:
        return self.url or " ".join(self.command)

    def program(self) -> str:
        """The file to run. Raises LabError where there is none."""
        here = str(Path(sys.executable).parent)
        found = shutil.which(
            self.command[0], path=os.pathsep.join([here, os.environ.get("PATH", os.defpath)])
        )
        if found is None and self.folder:
            found = shutil.which(str(Path(self.folder) / self.command[0]))
        if found is None:
            raise LabError(f"no program {self.command[0]!r}: not beside this Python, and not on PATH")
        return found

    def bearer(self) -> str:
        """The token to send. Raises LabError where the variable that should have it is not set."""
        if self.token_env and not os.environ.get(self.token_env):
            raise LabError(f"the environment variable {self.token_env} has no token for {self.url}")
        return self.token or os.environ.get(self.token_env, "")


class Listed(Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    read_only: bool = False


class McpWorld:
    """An MCP server's tools. `fork` gives a trial a connection of its own; nothing is connected before it is used.

    `unchecked` names the arguments (`tool.key`) whose schema our check does not understand: the server judges them.
    """

    kind = "mcp"
    labels: frozenset[str] = frozenset()

    def __init__(self, link: Link, *, name: str = "", tools: Sequence[Listed] | None = None) -> None:
        """Asks the server for its tools unless they are given. Raises LabError where it cannot be reached."""
        self.name = name or str(link)
        self.link = link
        if tools is None:
            with _connect(link) as session:
                tools = session.tools
        self.tools = tuple(tools)
        self.registry, self.unchecked = _registered(self.tools)
        self.digest = digest(
            {
                "kind": "mcp",
                "command": list(link.command),
                "url": link.url,
                "env": link.env,
                "tools": msgspec.to_builtins(self.tools),
            }
        )
        self._session: Session | None = None
        self._stopped = False

    @classmethod
    def of(cls, declared: dict[str, Any], *, name: str, folder: Path) -> McpWorld:
        """The world of a declaration, `{"kind": "mcp", "command": [...]}` or with a `url`. Raises BadServer."""
        link = _link(declared, folder)
        try:
            return cls(link, name=name)
        except LabError as error:
            raise BadServer([str(error)]) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.link, self.name, self.tools)

    def fork(self) -> McpWorld:
        return McpWorld(self.link, name=self.name, tools=self.tools)

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        """Ask the server to run one tool. Raises where the server is gone, which is no fault of the agent's."""
        if self._stopped:
            return Ran(None, "", error="the trial is over")
        try:
            if self._session is None:
                self._session = _connect(self.link)
                # a world that nobody closes takes its server with it
                weakref.finalize(self, self._session.kill)
                if self._session.tools != self.tools:
                    raise LabError("the server lists other tools than before")
                if self._stopped:  # the trial ended while the server started
                    self._session.close()
                    return Ran(None, "", error="the trial is over")
            return self._session.call(name, input)
        except LabError:
            if self._stopped:
                return Ran(None, "", error="the trial is over")
            raise

    @property
    def noise(self) -> int:
        """Lines on the server's stdout that were no messages, in this trial."""
        return self._session.noise if self._session is not None else 0

    @property
    def noise_lines(self) -> tuple[str, ...]:
        """The first of them."""
        return self._session.noise_lines if self._session is not None else ()

    def stop(self) -> None:
        """End a call that is under way."""
        self._stopped = True
        if self._session is not None:
            self._session.kill()

    def close(self) -> None:
        """End the connection and, of a command, every process of its group."""
        self._stopped = True
        if self._session is not None:
            self._session.close()

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        return ()

    def seen(self, expect: Expect) -> Seen | None:
        return None


def ran(result: CallToolResult) -> Ran:
    """What a server's answer comes to: `isError` is the tool's error, and the body is not guessed at."""
    text = "\n".join(_text(block) for block in result.content).encode(errors="replace").decode()
    if result.is_error:
        return Ran(None, "", error=text or "the tool failed and does not say why")
    value = result.structured_content
    try:
        value = text if value is None else plain(value)
    except NotJson:
        value = text
    kept = len(text) <= KEPT and (type(value) is str or len(canonical(value)) <= KEPT)
    return Ran(value, text, empty=not text and not value, kept=kept)


def _text(block: Any) -> str:
    """A block of content in words; pictures and sound are named, not shown."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        inner = block.resource
        held = getattr(inner, "text", None)
        return str(held) if held is not None else f"[{inner.mime_type or 'data'}: {inner.uri}]"
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    return f"[{block.type}: {block.mime_type}, {len(block.data)} characters of base64]"


def needs_sdk(what: str) -> None:
    """Raises LabError, saying how to install it, where the MCP SDK is not there."""
    if importlib.util.find_spec("mcp") is None:
        raise LabError(f"{what} needs the MCP SDK: pip install 'agentbench-lab[mcp]'")


def _connect(link: Link) -> Session:
    needs_sdk("a world of kind mcp")
    from agentbench_lab.worlds.mcp_session import Session

    return Session(link)


def _again(link: Link, name: str, tools: tuple[Listed, ...]) -> McpWorld:
    return McpWorld(link, name=name, tools=tools)


def _registered(tools: Sequence[Listed]) -> tuple[Registry, tuple[str, ...]]:
    """The tools as capabilities, and the arguments that only the server can check.

    Keys that a tool does not declare are refused, as for any world, unless it declares none at all.
    """
    capabilities, unchecked = [], []
    for tool in tools:
        schema = dict(tool.input_schema)
        properties = schema.get("properties")
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) or ("properties" not in schema and extra is None):
            schema["additionalProperties"] = True
        required = schema.get("required") or ()
        parameters = []
        for key, declared in (properties if isinstance(properties, dict) else {}).items():
            known = declared if _understood(declared) else None
            if known is None:
                unchecked.append(f"{tool.name}.{key}")
            parameters.append(Parameter(key, "value", key in required, schema=known))
        capabilities.append(
            Capability(
                tool.name,
                tool.name,
                tool.description,
                tuple(parameters),
                read_only=tool.read_only,
                schema=schema,
            )
        )
    return Registry(tuple(capabilities)), tuple(unchecked)


def _understood(schema: Any) -> bool:
    try:
        compile_schema(schema)
    except (UnsupportedSchema, TypeError, AttributeError, KeyError, ValueError):
        return False
    return True


def _link(declared: dict[str, Any], folder: Path) -> Link:
    odd = [f"unknown key {key!r}{did_you_mean(key, _KEYS)}" for key in declared if key not in _KEYS]
    if not odd and ("command" in declared) == ("url" in declared):
        odd.append("needs either a command or a url")
    given = {key: value for key, value in declared.items() if key in Link.__struct_fields__}
    if not odd:
        if "command" in given and not given["command"]:
            odd.append("command: must be a list of texts, the program first")
        if "url" in given and "env" in given:
            odd.append("env: goes with a command")
        if "command" in given and "token_env" in given:
            odd.append("token_env: goes with a url")
        for key in ("start_s", "call_s"):
            value = given.get(key, 1)
            if type(value) is bool or not isinstance(value, int | float) or not 0 < value <= 3600:
                odd.append(f"{key}: must be seconds, above 0 and at most 3600")
    if odd:
        raise BadServer(odd)
    try:
        return msgspec.convert({**given, "folder": str(folder)}, Link)
    except msgspec.ValidationError as error:
        raise BadServer([str(error)]) from None


__all__ = ["BadServer", "Link", "Listed", "McpWorld", "needs_sdk", "ran"]
