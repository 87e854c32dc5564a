"""Any toolbox over MCP, for an agent that is another program: on stdio for one trial, by HTTP for many at once.

The official SDK speaks the protocol; what is called lands in the toolbox, and so in its ledger, as it does in process.
HTTP is for this machine alone: it listens on the loopback address, a trial has its own path and its own token, and a
request by another name of the host or from a page of another origin is refused before it is read.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Observation
from agentbench_lab.worlds.mcp_client import needs_sdk
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

if TYPE_CHECKING:
    import anyio
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolResult

HOST = "127.0.0.1"
CALL_S = 120.0
"""Seconds after which an agent is told that a tool has not answered."""
IDLE_S = 600.0
"""Seconds without a request or an open stream after which a session ends whose agent has left without a word; those of
a trial end with it."""
HEAD_S = 10.0
"""Seconds after which a connection is closed whose request has not got as far as its body."""
MOST_SESSIONS = 500
"""Sessions that a trial has open at most; one more ends its oldest."""
START_S = 30.0
SHUT_S = 5.0
_TRIAL = "agentbench_lab.trial"
_SESSION = b"mcp-session-id"


class Served:
    """A toolbox, and the queue before it: calls of one trial run one after the other, in threads beside the server's.

    A call that has begun is carried out, whoever still waits for it; one that has not when its agent leaves is dropped.
    `instructions` is what an agent is told as it connects: its task, where nothing else tells it.
    """

    def __init__(self, toolbox: Toolbox, *, call_s: float = CALL_S, instructions: str = "") -> None:
        self.toolbox = toolbox
        self.instructions = instructions
        self.call_s = call_s
        self._turn = threading.Lock()
        self._limiter: anyio.CapacityLimiter | None = None

    async def call(self, name: Any, arguments: Any) -> Observation:
        """What the toolbox answers; what it refuses (its limit is spent, the trial is over) is an answer too."""
        import anyio
        import anyio.to_thread

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(1)
        left = threading.Event()
        try:
            with anyio.move_on_after(self.call_s):
                return await anyio.to_thread.run_sync(
                    self._call, name, arguments, left, abandon_on_cancel=True, limiter=self._limiter
                )
        finally:
            left.set()
        return Observation("tool_error", f"{name} gave no answer within {self.call_s:g} s")

    def _call(self, name: Any, arguments: Any, left: threading.Event) -> Observation:
        with self._turn:
            if left.is_set():
                return Observation("tool_error", "nobody waits for this call")
            try:
                return self.toolbox.call(name, arguments)
            except BudgetSpent as error:
                return Observation("protocol_error", str(error))


def server(find: Callable[[ServerRequestContext[Any, Any]], Served]) -> Server[Any]:
    """The SDK's server for toolboxes; `find` gives the one that a request is for."""
    import mcp_types as types
    from mcp.server import Server

    async def listed(ctx: ServerRequestContext[Any, Any], params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema)
                for tool in find(ctx).toolbox.tools
            ]
        )

    async def called(
        ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return result_of(await find(ctx).call(params.name, params.arguments))

    async def malformed(ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
        """A call of a shape that the SDK refuses is a call that was made: it stands in the ledger all the same."""
        if ctx.method == "tools/call":
            given: dict[str, Any] = dict(ctx.params or {})
            name, arguments = given.get("name"), given.get("arguments")
            if type(name) is not str or not (arguments is None or type(arguments) is dict):
                await find(ctx).call(name, arguments)
        return await call_next(ctx)

    made: Server[Any] = Server(
        "agentbench-lab",
        version=version("agentbench-lab"),
        on_list_tools=listed,
        on_call_tool=called,
        # no argument of ours travels in a header; without this the SDK lists all tools at every call
        get_tool_input_schema=lambda name: None,
    )

    async def instructed(ctx: ServerRequestContext[Any, Any], call_next: Any) -> Any:
        """The handshakes of both eras say what this trial's agent is to do; the SDK has one text for all."""
        answer = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover") and (said := find(ctx).instructions):
            return {**answer, "instructions": said}
        return answer

    made.middleware += [malformed, instructed]
    return made


def result_of(seen: Observation) -> CallToolResult:
    """An observation as MCP says it: its text, its value where it has one, `isError` unless it is ok."""
    import mcp_types as types

    structured = None
    if seen.ok and seen.value is not None:
        # the protocol knows objects only; this is how the SDK wraps what is none
        structured = seen.value if type(seen.value) is dict else {"result": seen.value}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=seen.text)],
        structured_content=structured,
        is_error=not seen.ok,
    )


def take_stdout() -> int:
    """A descriptor of what is stdout now; from here on whatever prints, prints on stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    return wire


def serve_stdio(toolbox: Toolbox, wire: int, *, call_s: float = CALL_S, instructions: str = "") -> None:
    """Serve one trial on stdin and the descriptor `wire` (of `take_stdout`), until stdin ends.

    `instructions` is what its agent is told as it connects.
    """
    needs_sdk("the bridge")
    import anyio
    from mcp.server.stdio import stdio_server

    served = Served(toolbox, call_s=call_s, instructions=instructions)

    async def serve() -> None:
        made = server(lambda ctx: served)
        out = io.TextIOWrapper(os.fdopen(wire, "wb", closefd=False), encoding="utf-8", newline="\n")
        async with stdio_server(stdout=anyio.wrap_file(out)) as (read, write):
            await made.run(read, write, made.create_initialization_options())

    anyio.run(serve)


def _of_request(ctx: ServerRequestContext[Any, Any]) -> Served:
    """The trial whose path and token the request came with."""
    assert ctx.request is not None
    served: Served = ctx.request.scope[_TRIAL]
    return served


class Address(Struct, frozen=True):
    """Where a trial is served: its URL, and the bearer token that opens it."""

    url: str
    token: str

    @property
    def url_with_token(self) -> str:
        """One text that opens it where the token may come in the URL; whoever can read the text can use it."""
        return f"{self.url}?token={self.token}"

    @property
    def path(self) -> str:
        return "/" + self.url.split("/", 3)[3]


class HttpBridge:
    """Toolboxes over streamable HTTP on the loopback address, as many as there are trials.

    `with HttpBridge() as bridge: address = bridge.open(toolbox)`. The server runs in a thread of its own; it is
    started once, and a trial costs an entry in a table. Port 0 takes a free one.
    """

    def __init__(
        self, *, port: int = 0, call_s: float = CALL_S, idle_s: float = IDLE_S, head_s: float = HEAD_S
    ) -> None:
        self._wanted = port
        self._head_s = head_s
        self._call_s = call_s
        self._idle_s = idle_s
        self._gate: _Gate | None = None
        self._served: dict[str, tuple[str, Served, bool]] = {}
        self._uvicorn: Any = None
        self._thread: threading.Thread | None = None
        self.port = 0

    def __enter__(self) -> HttpBridge:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Listen. Raises LabError where the port is taken, or the SDK is not installed."""
        needs_sdk("the bridge")
        import uvicorn

        # with its protocol named, asyncio turns off the delay that costs 40 ms an answer
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, self._wanted))
        except (OSError, OverflowError) as error:
            bound.close()
            raise LabError(f"--port {self._wanted}: {getattr(error, 'strerror', None) or error}") from None
        self.port = bound.getsockname()[1]
        self._gate = _Gate(self._served, self.port, self._idle_s)
        config = uvicorn.Config(
            self._gate,
            http=_bounded(self._head_s),
            log_config=None,
            log_level="critical",
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._uvicorn.run, args=([bound],), name="mcp bridge", daemon=True
        )
        self._thread.start()
        until = time.monotonic() + START_S
        while not self._uvicorn.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise LabError("the MCP server did not start")
            time.sleep(0.005)

    def open(
        self,
        toolbox: Toolbox,
        *,
        path: str = "",
        token: str = "",
        in_url: bool = False,
        instructions: str = "",
    ) -> Address:
        """Serve a toolbox under `path` (default a random one) to whoever has the token (default a new one).

        `instructions` is what its agent is told as it connects.

        With `in_url` the token may also come as `?token=...`, for a client that takes a URL and no header.
        """
        path = f"/{path.strip('/') or secrets.token_hex(8)}/mcp"
        if path in self._served:
            raise ValueError(f"{path} is served already")
        token = token or secrets.token_urlsafe(32)
        self._served[path] = (
            token,
            Served(toolbox, call_s=self._call_s, instructions=instructions),
            in_url,
        )
        return Address(f"http://{HOST}:{self.port}{path}", token)

    def shut(self, address: Address) -> None:
        """Serve a toolbox no longer, and end the sessions of those who used it. The toolbox itself stays open."""
        self._served.pop(address.path, None)
        if self._gate is not None:
            self._gate.shut(address.path)

    def close(self) -> None:
        """Stop listening, and end what is under way."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join(SHUT_S)
        self._served.clear()


def _bounded(head_s: float) -> type[asyncio.Protocol]:
    """The protocol of a connection, with bounds for who has shown no token yet: a head of 64 KiB, within `head_s` seconds
    (uvicorn's own waits for ever)."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._late = self.loop.call_later(head_s, self._close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._answering:
                self._in_time()
            elif self._late is None:
                self._late = self.loop.call_later(head_s, self._close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._in_time()
            super().connection_lost(exc)

        @property
        def _answering(self) -> bool:
            cycle: Any = self.cycle  # None before the first request
            return cycle is not None and not cycle.response_complete

        def _in_time(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _close(self) -> None:
            self._late = None
            if not self._answering:
                self.transport.close()

    return Bounded


class _Gate:
    """The ASGI application: who may not come in is refused here, who may is handed to the SDK."""

    def __init__(self, served: dict[str, tuple[str, Served, bool]], port: int, idle_s: float) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings

        names = (f"{HOST}:{port}", f"localhost:{port}")
        self._served = served
        self._security = TransportSecurityMiddleware(
            TransportSecuritySettings(
                allowed_hosts=list(names), allowed_origins=[f"http://{name}" for name in names]
            )
        )
        self._manager = StreamableHTTPSessionManager(
            server(_of_request), json_response=True, session_idle_timeout=idle_s
        )
        # of each path, in the order in which they were begun
        self._sessions: dict[str, dict[bytes, None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def shut(self, path: str) -> None:
        """End the sessions of a trial, from another thread than the server's."""
        if self._loop is None:
            return
        ending = self._end(path)
        try:
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(SHUT_S)
        except RuntimeError:  # the server has stopped, and its sessions with it
            ending.close()
        except TimeoutError:  # they end when they are idle
            pass

    async def _end(self, path: str) -> None:
        """End each session that was begun on a path."""
        for session in self._sessions.pop(path, ()):
            await self._end_one(path, session)

    async def _end_one(self, path: str, session: bytes) -> None:
        """Ask the SDK to end a session, as its client would; one that has ended already is not found."""

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            pass

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "DELETE",
            "path": path,
            "query_string": b"",
            "headers": [(_SESSION, session)],
            "user": _owner(path),
        }
        await self._manager.handle_request(scope, receive, send)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            async with self._manager.run():
                self._loop = asyncio.get_running_loop()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self._loop = None
            await send({"type": "lifespan.shutdown.complete"})
            return
        from starlette.requests import Request
        from starlette.responses import Response

        request = Request(scope)
        path = scope["path"]
        refused = await self._security.validate_request(request)
        # looked up once: a trial may end at any moment
        found = self._served.get(path)
        if refused is None and found is None:
            refused = Response("no trial is served here", 404)
        if refused is None and found is not None:
            token, _, in_url = found
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            if in_url and not scheme:
                scheme, given = "bearer", request.query_params.get("token", "")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
                refused = Response("a bearer token is needed", 401, {"WWW-Authenticate": "Bearer"})
        if refused is not None or found is None:
            assert refused is not None
            await refused(scope, receive, send)
            return

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                mine = self._sessions.setdefault(path, {})
                mine.update(
                    dict.fromkeys(
                        value for name, value in message.get("headers", ()) if name.lower() == _SESSION
                    )
                )
            await send(message)

        await self._manager.handle_request({**scope, _TRIAL: found[1], "user": _owner(path)}, receive, noted)
        mine = self._sessions.get(path, {})
        if scope["method"] == "DELETE":
            mine.pop(request.headers.get(_SESSION.decode(), "").encode(), None)
        while len(mine) > MOST_SESSIONS:
            oldest = next(iter(mine))
            del mine[oldest]
            await self._end_one(path, oldest)
        if path not in self._served:  # it was shut while this was under way
            await self._end(path)


def _owner(path: str) -> Any:
    """Whose a session is: the trial's that began it. With the token of another it is not found."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="-", client_id=path, scopes=[]))


__all__ = ["CALL_S", "Address", "HttpBridge", "Served", "result_of", "serve_stdio", "server", "take_stdout"]
