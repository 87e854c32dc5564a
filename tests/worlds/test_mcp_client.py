"""MCP servers as worlds: a hand-written one with every oddity, and one of somebody else's from the package index."""

from __future__ import annotations

import gc
import json
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.worlds.find import load_world
from agentbench_lab.worlds.mcp_client import BadServer, Link, McpWorld
from agentbench_lab.worlds.toolbox import Toolbox

ODD = Path(__file__).with_name("odd_mcp.py")
Open = Callable[..., tuple[McpWorld, Toolbox]]


def link(odd: str = "", **keys: Any) -> Link:
    return Link(command=(sys.executable, str(ODD), odd), **keys)


@pytest.fixture
def opened() -> Iterator[Open]:
    """Makes a world and a toolbox over a fork of it, and gives both back at the end."""
    boxes: list[Toolbox] = []

    def make(odd: str = "", **keys: Any) -> tuple[McpWorld, Toolbox]:
        world = McpWorld(link(odd, **keys))
        fork = world.fork()
        boxes.append(Toolbox(fork, world.registry.names))
        return fork, boxes[-1]

    yield make
    for box in boxes:
        box.close()
        box.release()


def told(box: Toolbox, **input: Any) -> dict[str, Any]:
    seen = box.call("act", {"n": 1, **input})
    assert seen.ok, seen
    found: dict[str, Any] = json.loads(seen.text)
    return found


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be reaped."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_b11_the_four_answers_of_a_server(opened: Open) -> None:
    """isError is kept, an error of the protocol is one, an absent isError is ok and the body is not guessed at."""
    _, box = opened("B11")
    seen = [box.call("act", {"n": n}) for n in (1, 2, 3, 4)]
    assert [one.status for one in seen] == ["ok", "tool_error", "protocol_error", "ok"]
    assert [one.text for one in seen] == ["ok, 4 rows", "no such table", "bad params", '{"status":"error"}']
    assert [row.status for row in box.ledger] == ["ok", "tool_error", "protocol_error", "ok"]
    assert sum(row.status != "ok" for row in box.ledger) / len(box.ledger) == 2 / 4
    # no fault of the world's: the trial is judged
    assert box.fault == ""


def test_every_page_is_read_and_a_tool_listed_twice_is_one() -> None:
    assert McpWorld(link("pages")).registry.names == ("t0", "shared", "t1", "t2")


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("loop", "the server's list of tools repeats its cursor 'again'"),
        ("twins", "the server lists two different tools called 'same'"),
        ("none", "the server lists no tool"),
        ("broken", "cannot find my configuration"),
    ],
)
def test_a_list_that_cannot_be_right_is_an_error(odd: str, said: str) -> None:
    with pytest.raises(LabError) as error:
        McpWorld(link(odd))
    assert said in str(error.value)


def test_a_server_that_does_not_start_in_time() -> None:
    with pytest.raises(LabError, match=r"has not listed its tools within 0\.5 s"):
        McpWorld(link("silent", start_s=0.5))


def test_noise_on_stdout_is_skipped_and_counted(opened: Open) -> None:
    world, box = opened("noisy")
    assert (told(box)["calls"], told(box)["calls"]) == (1, 2)
    # two lines a call; the blank one is none
    assert world.noise == 4
    assert world.noise_lines == ("INFO: a log line", '{"level": "info"}') * 2


def test_a_call_that_hangs_is_a_tools_error_and_the_next_is_asked(opened: Open) -> None:
    _, box = opened("hang", call_s=0.3)
    for _ in range(2):
        seen = box.call("act", {"n": 1})
        assert (seen.status, seen.text) == ("tool_error", "act gave no answer within 0.3 s")
    assert box.fault == ""


def test_a_call_that_hangs_ends_with_the_trial(opened: Open) -> None:
    _, box = opened("hang", call_s=60)
    caller = threading.Thread(target=box.call, args=("act", {"n": 1}))
    caller.start()
    time.sleep(0.5)
    began = time.monotonic()
    box.close()
    caller.join(30)
    assert not caller.is_alive()
    assert time.monotonic() - began < 30
    # it is not the world's fault that the trial is over
    assert box.fault == ""


def test_a_server_that_dies_is_the_worlds_fault_and_the_next_trial_has_another(opened: Open) -> None:
    world, box = opened("dies")
    seen = box.call("act", {"n": 1})
    assert (seen.status, seen.text) == ("protocol_error", "the tool could not be run")
    assert "ended during act" in box.fault and "out of cheese" in box.fault
    again = world.fork()
    with pytest.raises(LabError, match="ended during look"):
        again.run("look", {"n": 1})
    again.close()


def test_a_line_without_end_ends_the_server(opened: Open) -> None:
    _, box = opened("flood")
    assert box.call("act", {"n": 1}).status == "protocol_error"
    assert "a line of more than" in box.fault


def test_each_trial_has_a_process_of_its_own_and_none_of_our_secrets(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "key of a model")
    world, box = opened("", env={"GIVEN": "this"})
    first = told(box)
    fork = world.fork()
    other = Toolbox(fork, world.registry.names)
    second = told(other)
    assert first["pid"] != second["pid"]
    assert (first["calls"], second["calls"]) == (1, 1)
    assert (first["secret"], first["given"]) == (None, "this")
    other.close()
    other.release()
    assert ended(second["pid"])
    assert told(box)["calls"] == 2


def test_a_world_that_nobody_closes_takes_its_server_with_it() -> None:
    world = McpWorld(link()).fork()
    pid = json.loads(world.run("act", {"n": 1}).text)["pid"]
    del world
    gc.collect()
    assert ended(pid)


def test_the_whole_process_group_ends_at_close(tmp_path: Path) -> None:
    """Also a child, and a server that will not go when its stdin ends."""
    world = McpWorld(link("child", folder=str(tmp_path)), tools=McpWorld(link()).tools)
    server = json.loads(world.run("act", {"n": 1}).text)["pid"]
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    world.close()
    assert ended(server)
    assert ended(child)
    world.close()


def test_arguments_are_checked_by_the_declared_schema(opened: Open) -> None:
    _, box = opened()
    assert box.call("act", {"n": "1"}).status == "schema_error"
    assert box.call("act", {}).status == "malformed"
    assert box.call("act", {"n": 1, "m": 2}).status == "malformed"
    assert box.call("nothing", {}).text == "unknown-tool: nothing"
    # what only reads cannot have changed anything; of the rest that is not known
    assert (box.call("look", {"n": 1}).ok, box.call("act", {"n": 1}).ok) == (True, True)
    assert [row.changes for row in box.ledger[-2:]] == [False, True]


def test_a_schema_that_our_check_does_not_understand_is_the_servers_to_judge(opened: Open) -> None:
    world, box = opened("pattern")
    assert world.unchecked == ("count.w",)
    assert box.call("count", {"w": "bbb"}).ok
    assert box.call("count", {}).status == "malformed"
    # a tool that declares no key takes any
    assert box.call("any", {"x": 1}).ok


def test_a_server_that_lists_other_tools_than_before_is_at_fault(tmp_path: Path) -> None:
    world = McpWorld(link("fickle", folder=str(tmp_path)))
    (tmp_path / "changed").touch()
    box = Toolbox(world.fork(), world.registry.names)
    assert box.call("act", {"n": 1}).status == "protocol_error"
    assert "lists other tools than before" in box.fault
    box.release()


def test_a_world_travels_without_its_process(opened: Open) -> None:
    world, box = opened()
    told(box)
    again = pickle.loads(pickle.dumps(world))
    assert (again.digest, again.tools) == (world.digest, world.tools)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"kind": "mcp"}, "needs either a command or a url"),
        ({"kind": "mcp", "command": ["x"], "url": "http://127.0.0.1:1"}, "needs either a command or a url"),
        ({"kind": "mcp", "comand": ["x"]}, "unknown key 'comand' (did you mean 'command'?)"),
        ({"kind": "mcp", "command": []}, "command: must be a list of texts, the program first"),
        ({"kind": "mcp", "command": "x"}, "Expected `array`, got `str` - at `$.command`"),
        ({"kind": "mcp", "command": ["x"], "call_s": 0}, "call_s: must be seconds, above 0 and at most 3600"),
        ({"kind": "mcp", "command": ["x"], "token_env": "T"}, "token_env: goes with a url"),
        ({"kind": "mcp", "command": ["no-such-program-here"]}, "no program 'no-such-program-here'"),
        ({"kind": "mcp", "url": "ftp://x"}, "'ftp://x' is no http or https URL"),
        ({"kind": "mcp", "url": "http://127.0.0.1:1/mcp"}, "cannot be used"),
        (
            {"kind": "mcp", "url": "http://127.0.0.1:1", "token_env": "NOT_SET_HERE"},
            "NOT_SET_HERE has no token",
        ),
    ],
)
def test_what_is_wrong_with_a_declaration_is_one_line(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(BadServer) as error:
        McpWorld.of(declared, name="w", folder=Path())
    assert said in str(error.value)
    assert len(error.value.problems) == 1
    assert "\n" not in str(error.value)


def test_a_token_is_shown_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Link(url="http://192.0.2.1/mcp", token="hush-hush")
    assert "hush" not in repr(secret) + str(secret)
    with pytest.raises(LabError, match=r"a token is not sent to http://192\.0\.2\.1/mcp") as error:
        McpWorld(secret)
    assert "hush" not in str(error.value)


def test_somebody_elses_server_is_a_world(tmp_path: Path) -> None:
    """mcp-server-time, as the package index has it; Nepal is 5:45 ahead of UTC, all year."""
    file = tmp_path / "time.json"
    command = ["mcp-server-time", "--local-timezone", "UTC"]
    file.write_text(json.dumps({"kind": "mcp", "command": command}), encoding="utf-8")
    world = load_world(file)
    assert isinstance(world, McpWorld)
    assert (world.kind, world.name) == ("mcp", "time")
    assert world.registry.names == ("get_current_time", "convert_time")
    box = Toolbox(world.fork(), ["convert_time"])
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu"}
    seen = box.call("convert_time", asked)
    assert (seen.ok, seen.value["time_difference"]) == (True, "+5.75h")
    assert "T17:45:00" in seen.value["target"]["datetime"]
    wrong = box.call("convert_time", {**asked, "target_timezone": "Asia/Nowhere"})
    assert wrong.status == "tool_error"
    assert "No time zone found" in wrong.text
    assert box.call("get_current_time", {"timezone": "UTC"}).status == "undeclared"
    assert [row.status for row in box.close()] == ["ok", "tool_error", "undeclared"]
    box.release()
