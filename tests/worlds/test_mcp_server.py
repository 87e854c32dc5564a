"""Our toolboxes over MCP: by HTTP and on stdio, to the official client, and to what is no client at all."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from agentbench_lab.errors import LabError
from agentbench_lab.worlds import mcp_server
from agentbench_lab.worlds.mcp_client import Link, McpWorld
from agentbench_lab.worlds.mcp_server import Address, HttpBridge
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import INPUT_LIMIT, Ran, Toolbox

from ..doing import begun, environment
from ..states import ALL, TOOLS, world

ERAS = ["legacy", "auto"]
"""The handshake of before 2026-07-28, and whatever is newest."""
STEPS = [
    ("cancel", {"id": "W77"}),  # works
    ("cancel", {"id": "W77"}),  # the tool fails: it has left
    ("cancel", {"id": 77}),  # the schema does not allow it
    ("cancel", {}),  # cannot bind
    ("sell", {"id": "W77"}),  # no such tool
    ("get", {"id": "W77"}),  # registered, and not declared for this trial
    ("answer", {"value": 7, "status": "success"}),
]
STATUSES = ["ok", "tool_error", "schema_error", "malformed", "undeclared", "undeclared"]


class Slow(StateWorld):
    """The desk of orders, where every call waits until it is told to go on."""

    __slots__ = ("go",)

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        assert self.go.wait(20)
        return super().run(name, input)


def slow() -> Slow:
    made = Slow("desk", world().state, TOOLS)
    made.go = threading.Event()
    return made


@pytest.fixture(scope="module")
def bridge() -> Iterator[HttpBridge]:
    with HttpBridge(call_s=2) as made:
        yield made


def box(*names: str) -> Toolbox:
    return Toolbox(world().fork(), names or ALL)


async def talk(address: Address, work: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    import httpx2

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {address.token}"}, trust_env=False) as http,
        Client(streamable_http_client(address.url, http_client=http), mode=mode) as client,
    ):
        return await work(client)


async def steps(client: Client) -> list[tuple[bool, str]]:
    results = [await client.call_tool(name, input) for name, input in STEPS]
    return [(bool(result.is_error), result.content[0].text) for result in results]  # type: ignore[union-attr]


def checked(seen: list[tuple[bool, str]]) -> None:
    """Errors are told as such, each in the toolbox's own words."""
    own = box("cancel", "both")
    assert seen == [(not one.ok, one.text) for one in (own.call(name, input) for name, input in STEPS)]
    assert [error for error, _ in seen] == [False, True, True, True, True, True, False]
    assert seen[1][1] == "W77 has left"


def post(address: Address, data: bytes, **headers: str) -> tuple[int, str]:
    """One raw request; a header may replace what a client would send, and an empty one leaves it out."""
    import httpx2

    sent = {
        "Authorization": f"Bearer {address.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    with httpx2.Client(trust_env=False) as http:
        answer = http.post(
            address.url, content=data, headers={k: v for k, v in sent.items() if v}, timeout=10
        )
    return answer.status_code, answer.text


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
).encode()


# ---- by HTTP


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_lists_and_calls(bridge: HttpBridge, mode: str) -> None:
    made = box("cancel", "both")

    async def work(client: Client) -> Any:
        listed = (await client.list_tools()).tools
        return [(tool.name, tool.description, tool.input_schema) for tool in listed], await steps(client)

    listed, seen = asyncio.run(talk(bridge.open(made), work, mode))
    # the declared tools as declared, and the control tools like any other
    assert listed == [(tool.name, tool.description, tool.input_schema) for tool in made.tools]
    assert [name for name, _, _ in listed] == ["cancel", "both", "refuse", "answer", "goal"]
    checked(seen)
    assert [row.status for row in made.ledger] == STATUSES
    assert (made.ending.answer, made.ending.status) == (7, "success")


@pytest.mark.parametrize("mode", ERAS)
def test_each_agent_is_told_its_own_task_as_it_connects(bridge: HttpBridge, mode: str) -> None:
    """One server, three trials: two with a text each, one that is told by its driver."""

    async def told(client: Client) -> str | None:
        return client.instructions

    for text in ("Cancel W77.", "Cancel W78 ✓", ""):
        address = bridge.open(box(), instructions=text)
        assert asyncio.run(talk(address, told, mode)) == (text or None)


def test_the_value_of_an_answer_reaches_the_agent(bridge: HttpBridge) -> None:
    async def work(client: Client) -> Any:
        return await client.call_tool("get", {"id": "W77"}), await client.call_tool("cancel", {"id": "W77"})

    order, text = asyncio.run(talk(bridge.open(box()), work))
    assert order.structured_content["total"] == 27.99
    assert text.structured_content == {"result": "W77 is cancelled"}


def test_trials_are_told_apart_by_path_and_token(bridge: HttpBridge) -> None:
    made = [box() for _ in range(8)]
    addresses = [bridge.open(one) for one in made]

    async def all_at_once() -> None:
        async def work(client: Client, n: int) -> None:
            for _ in range(n + 1):
                await client.call_tool("note", {"id": "W77", "text": str(n)})

        await asyncio.gather(
            *(talk(one, lambda c, n=n: work(c, n)) for n, one in enumerate(addresses))  # type: ignore[misc]
        )

    asyncio.run(all_at_once())
    assert [len(one.ledger) for one in made] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(row.input["text"] == str(n) for n, one in enumerate(made) for row in one.ledger)
    assert len({one.token for one in addresses}) == len({one.url for one in addresses}) == 8
    # the token of one trial does not open another
    assert post(Address(addresses[0].url, addresses[1].token), HELLO)[0] == 401
    bridge.shut(addresses[0])
    assert post(addresses[0], HELLO)[0] == 404


@pytest.mark.parametrize("leaves", [False, True])
def test_the_sessions_of_a_trial_end_with_it(leaves: bool) -> None:
    """An agent that holds a stream open is told at once; one that has left already is forgotten."""
    import httpx2

    with HttpBridge() as bridge, httpx2.Client(trust_env=False, timeout=20) as http:
        address, other = bridge.open(box()), bridge.open(box())
        sessions = []
        for each in (address, other):
            sent = {"Authorization": f"Bearer {each.token}", "Accept": "application/json, text/event-stream"}
            hello = http.post(each.url, json=json.loads(HELLO), headers=sent)
            sessions.append({**sent, "Mcp-Session-Id": hello.headers["mcp-session-id"]})
        ask = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
        if leaves:
            assert http.delete(address.url, headers=sessions[0]).status_code == 200
            bridge.shut(address)
        else:
            with http.stream("GET", address.url, headers=sessions[0]) as stream:
                assert stream.status_code == 200
                bridge.shut(address)
                # a stream that goes on brings a ping sooner or later
                assert next(stream.iter_raw(), b"") == b""
        # the other trial's goes on
        assert post(other, ask, Mcp_Session_Id=sessions[1]["Mcp-Session-Id"])[0] == 200


def new_session(address: Address) -> str:
    """The id of a session that is begun, and left open."""
    import httpx2

    sent = {
        "Authorization": f"Bearer {address.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    with httpx2.Client(trust_env=False) as http:
        return str(http.post(address.url, content=HELLO, headers=sent, timeout=10).headers["mcp-session-id"])


def in_session(address: Address, session: str, method: str = "POST") -> int:
    """How a request in that session is answered."""
    import httpx2

    ping = b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}' if method == "POST" else b""
    sent = {
        "Authorization": f"Bearer {address.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Mcp-Session-Id": session,
    }
    with httpx2.Client(trust_env=False) as http:
        return http.request(method, address.url, content=ping, headers=sent, timeout=10).status_code


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_nothing_can_be_done_to_a_session_of_another_trial(bridge: HttpBridge, method: str) -> None:
    mine, other = bridge.open(box()), bridge.open(box())
    session = new_session(mine)
    assert in_session(other, session, method) == 404
    assert in_session(mine, session) == 200


def test_a_trial_has_so_many_sessions_open_and_no_more(
    bridge: HttpBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that begins one for every call and ends none loses its oldest, and nobody else's."""
    monkeypatch.setattr(mcp_server, "MOST_SESSIONS", 3)
    mine, other = bridge.open(box()), bridge.open(box())
    kept = new_session(other)
    sessions = [new_session(mine) for _ in range(6)]
    new_session(mine)  # by now the oldest have ended
    answers = [in_session(mine, session) for session in sessions]
    assert answers[:3] == [404, 404, 404] and answers[-2:] == [200, 200]
    assert in_session(other, kept) == 200
    # one that its client ends does not count
    assert in_session(mine, sessions[-1], "DELETE") == 200
    new_session(mine)
    assert in_session(mine, sessions[-2]) == 200


@pytest.mark.parametrize(
    "begins",
    [
        b"",
        b"POST / HTTP/1.1\r\nHost: ",
        b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\nGET /",
        b"POST /none HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nx",
    ],
)
def test_a_connection_that_says_nothing_whole_is_closed(begins: bytes) -> None:
    """Whoever has shown no token holds no connection open: without a head, with a part of one, of a body, of a second."""
    with HttpBridge(head_s=0.2) as bridge, socket.create_connection(("127.0.0.1", bridge.port), 10) as held:
        held.sendall(begins)
        stop = threading.Event()

        def trickle() -> None:
            while begins and not stop.wait(0.05):
                try:
                    held.sendall(b"a")
                except OSError:
                    return

        dripping = threading.Thread(target=trickle)
        dripping.start()
        try:
            while held.recv(4096):
                pass
        except ConnectionResetError:
            pass
        finally:
            stop.set()
            dripping.join()


def test_a_call_may_take_longer_than_a_head() -> None:
    made = slow()
    with HttpBridge(head_s=0.1) as bridge:
        threading.Timer(0.5, made.go.set).start()

        async def work(client: Client) -> Any:
            return await client.call_tool("get", {"id": "W77"})

        answer = asyncio.run(talk(bridge.open(Toolbox(made, ALL)), work))
    assert not answer.is_error


@pytest.mark.parametrize(
    "data",
    [
        b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["get"]}',
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\udfff"}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get", "arguments": {"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}}",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get", "arguments": {"id": ' + b"9" * 5_000 + b"}}}",
    ],
    ids=["a batch", "a list of parameters", "half a character", "half a name", "a deep list", "a long number"],
)  # fmt: skip
def test_what_the_protocol_does_not_know_reaches_no_tool(bridge: HttpBridge, data: bytes) -> None:
    made = box()
    address = bridge.open(made)
    assert post(address, data)[0] == 400
    assert made.ledger == ()
    assert post(address, HELLO)[0] == 200


def test_a_session_that_is_left_without_a_word_ends_when_it_is_idle() -> None:
    import httpx2

    with HttpBridge(idle_s=0.2) as bridge, httpx2.Client(trust_env=False, timeout=20) as http:
        address = bridge.open(box())
        sent = {"Authorization": f"Bearer {address.token}", "Accept": "application/json, text/event-stream"}
        hello = http.post(address.url, json=json.loads(HELLO), headers=sent)
        ask = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
        until = time.monotonic() + 20
        while post(address, ask, Mcp_Session_Id=hello.headers["mcp-session-id"])[0] == 200:
            assert time.monotonic() < until
            time.sleep(0.5)
        # the trial itself is served on
        assert post(address, HELLO)[0] == 200


class Fleeting(dict[str, Any]):
    """Trials of which each ends just after somebody has looked whether it is there."""

    def __contains__(self, key: object) -> bool:
        there = super().__contains__(key)
        self.pop(str(key), None)
        return there


def test_a_trial_that_ends_while_somebody_comes_in_is_no_fault_of_the_servers() -> None:
    bridge = HttpBridge()
    bridge._served = Fleeting()
    with bridge:
        address = bridge.open(box())
        assert post(address, HELLO)[0] in (200, 404)
        assert post(address, HELLO)[0] == 404


def test_who_may_not_come_in_is_refused(bridge: HttpBridge) -> None:
    made = box()
    address = bridge.open(made)
    assert post(address, HELLO)[0] == 200
    assert post(address, HELLO, Origin=f"http://localhost:{bridge.port}")[0] == 200
    assert post(address, HELLO, Authorization="")[0] == 401
    assert post(address, HELLO, Authorization="Bearer wrong")[0] == 401
    assert post(address, HELLO, Authorization=f"Basic {address.token}")[0] == 401
    assert post(address, HELLO, Origin="http://evil.example")[0] == 403
    assert post(address, HELLO, Origin="null")[0] == 403
    assert post(address, HELLO, Origin=f"http://127.0.0.1:{bridge.port + 1}")[0] == 403
    assert post(address, HELLO, Host="evil.example")[0] == 421
    assert post(address, HELLO, Host=f"evil.example:{bridge.port}")[0] == 421
    assert made.ledger == ()
    with pytest.raises((MCPError, ExceptionGroup)):
        asyncio.run(talk(Address(address.url, "wrong"), lambda client: client.list_tools()))


def test_only_the_loopback_address_listens(bridge: HttpBridge) -> None:
    """127.0.0.2 is another interface's address as far as listening goes; the machine's own is another one for real."""
    others = ["127.0.0.2"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            others.append(probe.getsockname()[0])
        except OSError:
            pass  # no network here at all
    for host in others:
        with socket.socket() as tried, pytest.raises(ConnectionRefusedError):
            tried.settimeout(5)
            tried.connect((host, bridge.port))


def test_what_is_no_call_is_refused_and_the_server_stays(bridge: HttpBridge) -> None:
    made = box()
    address = bridge.open(made)
    code, text = post(address, b'{"jsonrpc": "2.0", "id": 1, "method"')
    assert (code, "-32700" in text) == (400, True)
    assert post(address, b"x" * 5_000_000)[0] == 413
    assert post(address, HELLO, Content_Type="text/plain")[0] in (400, 415)
    assert made.ledger == ()

    async def huge(client: Client) -> Any:
        return await client.call_tool("note", {"id": "W77", "text": "x" * (INPUT_LIMIT + 1)})

    answer = asyncio.run(talk(address, huge))
    assert (answer.is_error, answer.content[0].text) == (True, f"arguments: more than {INPUT_LIMIT} bytes")
    assert [row.status for row in made.ledger] == ["malformed"]


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_of_a_wrong_shape_stands_in_the_ledger(bridge: HttpBridge, mode: str) -> None:
    """The SDK refuses it as the protocol asks; that it was made is not lost."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult
    from pydantic import TypeAdapter

    made = box()

    async def work(client: Client) -> None:
        params = CallToolRequestParams.model_construct(name="get", arguments=["W77"])
        with pytest.raises(MCPError):
            await client.session.send_request(
                CallToolRequest.model_construct(method="tools/call", params=params),
                TypeAdapter(CallToolResult),
            )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the client's, about what it is made to send
        asyncio.run(talk(bridge.open(made), work, mode))
    assert [(row.name, row.status) for row in made.ledger] == [("get", "malformed")]


def test_the_limit_of_calls_and_the_end_of_a_trial_are_told(bridge: HttpBridge) -> None:
    made = Toolbox(world().fork(), ALL, tool_calls=1)
    address = bridge.open(made)

    async def work(client: Client) -> list[Any]:
        found = [await client.call_tool("get", {"id": "W77"}) for _ in range(2)]
        made.close()
        return [*found, await client.call_tool("get", {"id": "W77"})]

    found = asyncio.run(talk(address, work))
    assert [one.is_error for one in found] == [False, True, True]
    assert found[1].content[0].text == "the limit of 1 tool call is used up"
    assert found[2].content[0].text == "the trial is over"
    assert made.spent


def test_a_tool_that_hangs_holds_up_its_own_trial_alone(bridge: HttpBridge) -> None:
    hanging = slow()
    made, quick = Toolbox(hanging, ALL), box()
    address, other = bridge.open(made), bridge.open(quick)

    async def twice(client: Client) -> list[Any]:
        calls = (client.call_tool("get", {"id": id}) for id in ("W77", "W78"))
        return await asyncio.gather(*calls)

    async def both() -> tuple[Any, list[Any]]:
        stuck = asyncio.ensure_future(talk(address, twice))
        await asyncio.sleep(0.2)
        passed = await talk(other, lambda c: c.call_tool("get", {"id": "W77"}))
        assert not stuck.done()
        return passed, await stuck

    passed, stuck = asyncio.run(both())
    assert not passed.is_error
    assert [one.is_error for one in stuck] == [True, True]
    assert stuck[0].content[0].text == "get gave no answer within 2 s"
    # what had begun is carried out, and stands in the ledger; what had not is dropped
    hanging.go.set()
    until = time.monotonic() + 5
    while not made.ledger and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    assert [(row.input["id"], row.status) for row in made.ledger] == [("W77", "ok")]


def test_a_client_that_leaves_in_the_middle_of_a_call(bridge: HttpBridge) -> None:
    """The call is carried out and stands in the ledger; the trial can go on with another client."""
    hanging = slow()
    made = Toolbox(hanging, ALL)
    address = bridge.open(made)

    async def leaves() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await talk(address, lambda c: c.call_tool("cancel", {"id": "W77"}))

    asyncio.run(leaves())
    hanging.go.set()
    answer = asyncio.run(talk(address, lambda c: c.call_tool("cancel", {"id": "W77"})))
    assert answer.content[0].text == "W77 has left"
    assert [row.status for row in made.ledger] == ["ok", "tool_error"]


@pytest.fixture
def patient() -> Iterator[HttpBridge]:
    """A bridge on which no call is given up before its test is over."""
    with HttpBridge() as made:
        yield made


def test_a_call_that_its_agent_cancels(patient: HttpBridge) -> None:
    """It is answered at once. The one that runs is carried out, one that waits for it is dropped, and others go on."""
    made = slow()
    tools = Toolbox(made, ALL)
    address = patient.open(tools)
    session = new_session(address)

    def call(number: int) -> tuple[int, str]:
        params = {"name": "get", "arguments": {"id": "W77"}}
        asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return post(address, json.dumps(asked).encode(), Mcp_Session_Id=session)

    def cancel(number: int) -> None:
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        assert post(address, json.dumps(told).encode(), Mcp_Session_Id=session)[0] == 202

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(call, 1)
        while not tools._lock.locked():  # it runs
            time.sleep(0.01)
        second = pool.submit(call, 2)
        for number, asked in ((2, second), (1, first)):
            while not asked.done():  # the server knows the call as soon as it has been read
                cancel(number)
                time.sleep(0.05)
        assert all("cancelled" in asked.result()[1] for asked in (first, second))
        assert tools.ledger == ()
        made.go.set()
        assert '"isError":false' in call(3)[1]
    assert [row.status for row in tools.ledger] == ["ok", "ok"]


def test_a_bridge_that_is_started_again_knows_nothing_of_before() -> None:
    first = HttpBridge()
    first.start()
    old = first.open(box(), path="case/1")
    world_there = McpWorld(Link(url=old.url, token=old.token))
    trial = Toolbox(world_there.fork(), world_there.registry.names)
    assert trial.call("get", {"id": "W77"}).ok
    first.close()
    with HttpBridge(port=first.port) as second:
        new = second.open(box(), path="case/1")
        assert new.url == old.url
        assert post(old, HELLO)[0] == 401
        # the world of the trial that was under way is gone, and that is nobody's failure but the world's
        seen = trial.call("cancel", {"id": "W77"})
        assert seen.status == "protocol_error"
        assert trial.fault != ""
        again = McpWorld(Link(url=new.url, token=new.token)).fork()
        assert again.run("cancel", {"id": "W77"}).text == "W77 is cancelled"
        again.close()
    trial.close()
    trial.release()


def test_a_url_in_a_case_names_the_variable_of_its_token(
    bridge: HttpBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = bridge.open(box())
    monkeypatch.setenv("DESK_TOKEN", address.token)
    declared = {"kind": "mcp", "url": address.url, "token_env": "DESK_TOKEN"}
    there = McpWorld.of(declared, name="desk", folder=Path())
    assert there.registry.names[: len(ALL)] == tuple(ALL)


def test_our_client_on_our_bridge_sees_what_the_toolbox_says(bridge: HttpBridge) -> None:
    made = box("cancel", "both")
    address = bridge.open(made)
    there = McpWorld(Link(url=address.url, token=address.token))
    trial = Toolbox(there.fork(), ["cancel", "both"])
    seen = [trial.call(name, input) for name, input in STEPS[:3]]
    assert [one.status for one in seen] == ["ok", "tool_error", "schema_error"]
    # a schema error does not travel: it is found before
    assert [row.status for row in made.ledger] == ["ok", "tool_error"]
    trial.close()
    trial.release()


def test_a_trial_that_is_served_no_longer_is_the_worlds_fault(bridge: HttpBridge) -> None:
    address = bridge.open(box())
    there = McpWorld(Link(url=address.url, token=address.token))
    trial = Toolbox(there.fork(), there.registry.names)
    assert trial.call("get", {"id": "W77"}).ok
    bridge.shut(address)
    assert trial.call("get", {"id": "W77"}).status == "protocol_error"
    assert trial.fault.endswith(f"the MCP server {address.url} answers HTTP 404")
    trial.release()
    with pytest.raises(LabError, match=r"cannot be used: .*\(HTTP 401\)"):
        McpWorld(Link(url=bridge.open(box()).url, token="wrong"))


def test_a_port_that_is_taken_is_one_line(bridge: HttpBridge) -> None:
    with pytest.raises(LabError, match=f"--port {bridge.port}: Address already in use"):
        HttpBridge(port=bridge.port).start()


# ---- on stdio

LOUD = """
import os, sys
from agentbench_lab.worlds.mcp_server import serve_stdio, take_stdout
wire = take_stdout()
print("printed before")
from agentbench_lab.worlds.toolbox import Toolbox
from tests.states import ALL, world
class Loud(type(world())):
    __slots__ = ()
    def run(self, name, input):
        print("printed by a world")
        os.write(1, b"written past Python\\n")
        return super().run(name, input)
desk = world()
loud = Loud("desk", desk.state, desk._declared["tools"])
serve_stdio(Toolbox(loud, ALL), wire)
print("printed after")
"""


def test_stdout_carries_nothing_but_messages() -> None:
    call = {"name": "cancel", "arguments": {"id": "W77"}}
    said = [
        json.loads(HELLO),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    lines = [json.dumps(one).encode() for one in said]
    lines.insert(2, b'{"jsonrpc": "2.0", "id": 9, "meth')
    lines.insert(3, b"what is this")
    with begun(
        [sys.executable, "-c", LOUD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        answers = []
        while not any(one.get("id") == 2 for one in answers):
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest, errors = process.stdout.read(), process.stderr.read().decode()
    assert rest == b""
    assert process.returncode == 0, errors
    assert all(one["jsonrpc"] == "2.0" for one in answers)
    done = next(one for one in answers if one.get("id") == 2)
    assert done["result"]["content"][0]["text"] == "W77 is cancelled"
    for text in ("printed before", "printed by a world", "written past Python", "printed after"):
        assert text in errors


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_on_stdio(mode: str) -> None:
    source = LOUD.replace("ALL), wire", '["cancel", "both"]), wire')
    there = StdioServerParameters(command=sys.executable, args=["-c", source], env=environment())

    async def work() -> Any:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            from mcp.client.stdio import stdio_client

            async with Client(stdio_client(there, errlog=nowhere), mode=mode) as client:
                return [tool.name for tool in (await client.list_tools()).tools], await steps(client)

    listed, seen = asyncio.run(work())
    assert listed == ["cancel", "both", "refuse", "answer", "goal"]
    checked(seen)
