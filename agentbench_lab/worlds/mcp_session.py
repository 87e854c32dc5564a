"""One connection to an MCP server, for code that is not asynchronous.

The official SDK's client runs on one event loop in a thread of its own, which all connections of a process share. The
pipes to a server's process are ours: a line that is no message is skipped and counted, and when a connection ends so
does the whole process group.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agentbench_lab.errors import LabError
from agentbench_lab.values import NotJson, plain
from agentbench_lab.worlds.mcp_client import Link, Listed, ran
from agentbench_lab.worlds.toolbox import Ran

NOISE_KEPT = 20
LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one line of a server's stdout; a server that writes more is ended."""
PAGES = 1_000
LEAVE_S = 2.0
"""Seconds that a server has to leave after its stdin has ended."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_REFUSALS = frozenset({401, 403, 404, 408, 429, *range(500, 600)})
Got = TypeVar("Got")


class ServerGone(LabError):
    """The server cannot be reached, has ended, or does not keep to the protocol."""


class Session:
    """A live connection. `tools` is all that the server lists, in its order. Raises LabError when it does not start.

    `noise` counts the lines of stdout that were no messages, `noise_lines` has the first of them.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.tools: tuple[Listed, ...] = ()
        self._client: Any = None
        self._pipe = _Pipe(link) if link.command else None
        self._loop = _loop()
        self._ended = asyncio.Event()
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self._pipe is not None:
            self._pipe.program = link.program()
        self._token = link.bearer()
        self._refused: list[int] = []
        self._life = asyncio.run_coroutine_threadsafe(self._live(), self._loop)
        try:
            self._ready.result(link.start_s)
        except concurrent.futures.TimeoutError:
            self.close()
            raise ServerGone(
                f"the MCP server {link} has not listed its tools within {link.start_s:g} s{self._last()}"
            ) from None
        except ServerGone:
            self.close()
            raise
        except BaseException as error:
            self.close()
            status = f" (HTTP {self._refused[-1]})" if self._refused else ""
            raise ServerGone(
                f"the MCP server {link} cannot be used: {_said(error)}{status}{self._last()}"
            ) from None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def noise(self) -> int:
        return self._pipe.noise if self._pipe is not None else 0

    @property
    def noise_lines(self) -> tuple[str, ...]:
        return tuple(self._pipe.noise_lines) if self._pipe is not None else ()

    def call(self, name: str, arguments: dict[str, Any]) -> Ran:
        """Run one tool. An error of the protocol is the call's; raises ServerGone when the server is gone."""
        return self._on_loop(self._call(name, arguments))

    def kill(self) -> None:
        """End a call that is under way, from any thread: the server's processes are ended at once."""
        if self._pipe is not None:
            self._pipe.kill()
        else:
            self._end()

    def close(self) -> None:
        """End the connection, and the server's processes. Twice is once."""
        self._end()
        if not self._ready.done():
            self._life.cancel()  # it waits for a server that does not answer
        with contextlib.suppress(Exception, concurrent.futures.CancelledError):
            self._life.result(2 * LEAVE_S + 1)
        self._life.cancel()
        if self._pipe is not None:
            self._pipe.kill()

    # ---- on the loop

    async def _live(self) -> None:
        """From the first message to the last: what is opened here is closed here, in one task."""
        from mcp import Client
        from mcp_types import Implementation

        transport = self._pipe.open() if self._pipe is not None else self._http()
        about = Implementation(name="agentbench-lab", version="1")
        try:
            client = Client(transport, read_timeout_seconds=self.link.start_s, cache=None, client_info=about)
            async with client:
                self.tools = await _all_tools(client)
                self._client = client
                self._ready.set_result(None)
                await self._ended.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(_first(error))
            elif isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._client = None

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[tuple[Any, Any]]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        link, token = self.link, self._token

        async def noted(response: Any) -> None:
            # an error of the protocol has a body that says so; this is the server as such
            json = response.headers.get("content-type", "").startswith("application/json")
            if response.status_code in _REFUSALS and not json:
                self._refused.append(response.status_code)

        parts = urlsplit(link.url)
        local = parts.hostname in _LOOPBACK
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerGone(f"{link.url!r} is no http or https URL")
        if token and parts.scheme != "https" and not local:
            raise ServerGone(f"a token is not sent to {link.url}: it is neither https nor this machine")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(link.start_s, read=link.call_s + 5)
        async with (
            httpx2.AsyncClient(
                headers=headers, timeout=timeout, trust_env=not local, event_hooks={"response": [noted]}
            ) as http,
            streamable_http_client(link.url, http_client=http) as streams,
        ):
            yield streams

    async def _call(self, name: str, arguments: dict[str, Any]) -> Ran:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        if self._client is None or self._gone:
            raise ServerGone(f"the MCP server {self.link} has ended{self._last()}")
        self._refused.clear()
        try:
            answer = await self._client.call_tool(name, arguments, read_timeout_seconds=self.link.call_s)
        except MCPError as error:
            if error.error.code == REQUEST_TIMEOUT and not self._gone:
                return Ran(None, "", error=f"{name} gave no answer within {self.link.call_s:g} s")
            if error.error.code == CONNECTION_CLOSED or self._gone:
                raise ServerGone(f"the MCP server {self.link} ended during {name}{self._last()}") from None
            if self._refused:
                raise ServerGone(f"the MCP server {self.link} answers HTTP {self._refused[-1]}") from None
            text = str(error.error.message).encode(errors="replace").decode()
            return Ran(None, "", error=text, failed="protocol_error")
        except (ValidationError, RuntimeError, ValueError) as error:
            # an answer, but none that the protocol or the tool's own output schema allows
            return Ran(
                None, "", error=f"the answer breaks the protocol: {_said(error)}", failed="protocol_error"
            )
        return ran(answer)

    @property
    def _gone(self) -> bool:
        return self._life.done() or (self._pipe is not None and self._pipe.gone)

    def _last(self) -> str:
        """What the server said last on stderr, and how it ended."""
        return self._pipe.last() if self._pipe is not None else ""

    def _end(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the interpreter is going
            self._loop.call_soon_threadsafe(self._ended.set)

    def _on_loop(self, work: Coroutine[Any, Any, Got]) -> Got:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            # the SDK keeps its own time; this is for the case that it does not
            return future.result(self.link.call_s + 5)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise ServerGone(f"the MCP server {self.link} does not answer") from None
        except concurrent.futures.CancelledError:
            raise ServerGone(f"the MCP server {self.link} was left") from None
        except LabError:
            raise
        except Exception as error:
            raise ServerGone(f"the MCP server {self.link} failed: {_said(error)}") from None


class _Pipe:
    """A server's process: its pipes as the streams that the SDK's client reads and writes."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.program = ""
        self.noise = 0
        self.noise_lines: list[str] = []
        self.gone = False
        self._process: Any = None
        self._why = ""
        self._errors: deque[str] = deque(maxlen=5)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, Any]]:
        import anyio
        from mcp.client.stdio import get_default_environment

        self._process = process = await asyncio.create_subprocess_exec(
            self.program,
            *self.link.command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**get_default_environment(), **self.link.env},
            cwd=self.link.folder or None,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
        _live_groups.add(process.pid)
        heard, read = anyio.create_memory_object_stream[Any](0)
        write, to_send = anyio.create_memory_object_stream[Any](0)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, heard)
                tasks.start_soon(self._write, to_send, heard)
                tasks.start_soon(self._listen)
                try:
                    yield read, write
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._leave()
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (heard, read, write, to_send):
                stream.close()
            self.kill()

    async def _read(self, heard: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter
        from pydantic import ValidationError

        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                if line.isspace():
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValidationError, ValueError):
                    self.noise += 1
                    if len(self.noise_lines) < NOISE_KEPT:
                        self.noise_lines.append(line[:200].decode(errors="replace").rstrip())
                    continue
                await heard.send(SessionMessage(message))
        except (ValueError, asyncio.LimitOverrunError):
            self._why = f": it wrote a line of more than {LINE_LIMIT} bytes"
            self.kill()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            pass
        finally:
            self.gone = True
            heard.close()

    async def _write(self, to_send: Any, heard: Any) -> None:
        import anyio

        try:
            async for message in to_send:
                data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(data.encode() + b"\n")
                await self._process.stdin.drain()
        except (ConnectionError, anyio.ClosedResourceError, RuntimeError):
            self.gone = True
            heard.close()

    async def _listen(self) -> None:
        """Drain stderr, whose last lines say why a server ended."""
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            if text := line[:300].decode(errors="replace").strip():
                self._errors.append(text)

    async def _leave(self) -> None:
        """Close stdin, let the server go, and end whatever of its group is left."""
        with contextlib.suppress(Exception):
            self._process.stdin.close()
        until = asyncio.get_running_loop().time() + LEAVE_S
        while self._process.returncode is None and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.005)
        self.kill()
        # of the process itself, not of pipes that a stray child may hold open
        until += LEAVE_S
        while self._process.returncode is None and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.005)
        with contextlib.suppress(Exception):
            self._process._transport.close()

    def kill(self) -> None:
        """End the whole process group, once."""
        if self._process is None or self._process.pid not in _live_groups:
            return
        _live_groups.discard(self._process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def last(self) -> str:
        code = self._process.returncode if self._process is not None else None
        how = self._why or (f" (exit {code})" if code is not None else "")
        return f"{how}: {self._errors[-1]}" if self._errors else how


async def _all_tools(client: Any) -> tuple[Listed, ...]:
    """Every page of the list. A cursor that comes again, or two tools of one name, are errors of the server's."""
    found: dict[str, Listed] = {}
    cursors: set[str] = set()
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            notes = tool.annotations
            try:
                schema = plain(tool.input_schema)
            except NotJson as error:
                raise ServerGone(
                    f"the server's tool {tool.name!r} has a schema that is no JSON: {error}"
                ) from None
            listed = Listed(
                tool.name, tool.description or "", schema, bool(notes is not None and notes.read_only_hint)
            )
            if found.setdefault(tool.name, listed) != listed:
                raise ServerGone(f"the server lists two different tools called {tool.name!r}")
        cursor = page.next_cursor
        if cursor is None:
            break
        if cursor in cursors:
            raise ServerGone(f"the server's list of tools repeats its cursor {cursor[:80]!r}")
        cursors.add(cursor)
        if len(cursors) >= PAGES:
            raise ServerGone(f"the server's list of tools has more than {PAGES} pages")
    if not found:
        raise ServerGone("the server lists no tool")
    return tuple(found.values())


def _first(error: BaseException) -> BaseException:
    """The one error behind the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _said(error: BaseException) -> str:
    error = _first(error)
    text = " ".join(str(error).split())[:300]
    return text or type(error).__name__


# ---- one loop a process

_live_groups: set[int] = set()
_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process's connections; a process that was forked off gets its own."""
    with _lock:
        mine = _loops.get(os.getpid())
        if mine is None:
            _loops.clear()
            _live_groups.clear()
            mine = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=mine.run_forever, name="mcp client", daemon=True).start()
            atexit.register(_at_exit, os.getpid())
        return mine


def _at_exit(process: int) -> None:
    """What nobody closed ends with this process."""
    if os.getpid() != process:
        return
    for group in tuple(_live_groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


__all__ = ["ServerGone", "Session"]
