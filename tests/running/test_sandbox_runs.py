"""Cases in a work folder from the case file to the judged row, and again from the row."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task, load_suite, parse_cases
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import read_product, regrade
from agentbench_lab.running.lint import lint_suite
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.sandbox_levels import Level, unavailable
from agentbench_lab.worlds.seen import LOST, Seen
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import lab

CHECK = "import sys\nsys.exit(0 if open('answer.txt').read() == '42\\n' else 3)\n"
WORLD = {
    "kind": "sandbox",
    "files": {"check.py": CHECK, "answer.txt": "?\n"},
    "protected": ["check.py"],
    "tools": ["bash", "write_file", "read_file"],
}


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "input": {"command": command}}


def line(**keys: Any) -> dict[str, Any]:
    return {
        "id": "answer",
        "group": "write",
        "request": "Put the answer into answer.txt",
        "tools": ["bash", "write_file", "read_file"],
        "world": WORLD,
        "gold": {"calls": [bash("echo 42 > answer.txt")]},
        "expect": {
            "files": {"answer.txt": {"exact": "42\n"}, "answer.bak": {"absent": True}},
            "command": {"run": "python3 -I check.py", "timeout_s": 20},
        },
        **keys,
    }


def suite(folder: Path, *lines: dict[str, Any]) -> Path:
    file = folder / "work.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines or (line(),)), encoding="utf-8")
    return file


def right(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    tools.call("read_file", {"path": "answer.txt"})
    tools.call("bash", {"command": "echo 42 > answer.txt"})
    tools.call("answer", {"value": "done", "status": "success"})
    return {}


def dos(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    tools.call("write_file", {"path": "answer.txt", "content": "42\r\n"})
    return {}


def cheat(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    tools.call("bash", {"command": "echo 'raise SystemExit(0)' > check.py; ln -s check.py answer.bak"})
    tools.call("answer", {"value": "done", "status": "success"})
    return {}


def idle(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    tools.call("bash", {"command": "cat answer.txt"})
    return {}


def hang(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    tools.call("bash", {"command": "echo 42 > answer.txt; sleep 600"})
    return {}


@pytest.fixture(params=["local", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> str:
    why = unavailable(Level(request.param))
    if why is not None:
        pytest.skip(f"{request.param} does not work here: {why}")
    return str(request.param)


def test_runs_are_judged_by_what_is_left_behind(tmp_path: Path, level: str) -> None:
    run = evaluate(
        suite(tmp_path),
        [right, dos, cheat, idle],
        sandbox=level,
        out=tmp_path / "run",
        limits=Limits(wall_s=60),
    )
    rows = {row["driver"].rpartition(":")[2]: row for row in run.trials.to_pylist()}
    outcomes = {name: (row["outcome"], row["reasons"]) for name, row in rows.items()}
    assert outcomes["right"] == ("solved", [])
    assert (
        outcomes["dos"]
        == (
            "unsolved",
            [
                "answer.txt: line endings only: \\r\\n where \\n is expected",
            ],
        )
        or "line endings only" in outcomes["dos"][1][0]
    )
    assert outcomes["cheat"][0] == "false_success"
    assert "answer.bak: there must be nothing, and there is a file" in outcomes["cheat"][1]
    assert "python3 -I check.py: exit 3; expected exit 0" in outcomes["cheat"][1]
    assert outcomes["idle"][0] == "no_answer"
    assert {row["expect"] for row in rows.values()} == {"files"}
    assert run.card.options["sandbox"] == level
    # every verdict follows from its row alone
    for row in read_product(tmp_path / "run" / "product.jsonl"):
        assert row.produced.seen is not None and row.produced.seen.work is not None
        assert row.produced.seen.work.level == level
        graded = regrade(row)
        assert (graded.outcome, graded.solved) == (row.verdict.outcome, row.verdict.solved)


def test_a_run_goes_on_at_its_own_level_only(tmp_path: Path) -> None:
    if (why := unavailable(Level("bubblewrap"))) is not None:
        pytest.skip(f"bubblewrap does not work here: {why}")
    file = suite(tmp_path)
    evaluate(file, right, sandbox="bubblewrap", out=tmp_path / "run")
    evaluate(file, right, sandbox="bubblewrap", out=tmp_path / "run", trials=2)
    with pytest.raises(LabError, match="world"):
        evaluate(file, right, sandbox="local", out=tmp_path / "run", trials=3)


@pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_a_trial_out_of_time_ends_its_command_and_is_still_read(tmp_path: Path, executor: str) -> None:
    driver = hang if executor == "threads" else "sandbox_drivers:hang"
    if executor == "processes":
        (tmp_path / "sandbox_drivers.py").write_text(
            "def hang(task, tools, ctx):\n"
            "    tools.call('bash', {'command': 'echo 42 > answer.txt; sleep 600'})\n"
            "    return {}\n",
            encoding="utf-8",
        )
        sys.path.insert(0, str(tmp_path))
    try:
        run = evaluate(
            suite(tmp_path), driver, sandbox="local", out=tmp_path / "run", executor=executor, limits=Limits(wall_s=2)
        )  # fmt: skip
    finally:
        if executor == "processes":
            sys.path.remove(str(tmp_path))
    (row,) = read_product(tmp_path / "run" / "product.jsonl")
    assert row.verdict.outcome == "timeout"
    assert [entry.name for entry in row.produced.ledger] == ["bash"]
    assert row.produced.seen is not None and row.produced.seen.work is not None
    assert row.produced.seen.work.files["answer.txt"].blob.text == "42\n"  # type: ignore[union-attr]
    assert run.card.complete


@pytest.mark.long
def test_a_check_that_takes_longer_than_the_trial_may_is_waited_for(tmp_path: Path) -> None:
    """The check has a limit of its own, also in a worker process, whose trial is ended at its limit."""
    (tmp_path / "quick_drivers.py").write_text(
        "def quick(task, tools, ctx):\n    return {}\n", encoding="utf-8"
    )
    expect = {"command": {"run": "sleep 5; exit 4", "exit": 4, "timeout_s": 30}}
    file = suite(tmp_path, line(expect=expect))
    sys.path.insert(0, str(tmp_path))
    try:
        for executor in ("threads", "processes"):
            run = evaluate(
                file,
                "quick_drivers:quick",
                sandbox="local",
                save_run=False,
                executor=executor,
                limits=Limits(wall_s=1),
            )
            assert [row["outcome"] for row in run.trials.to_pylist()] == ["solved"], executor
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.long
def test_a_worker_that_dies_leaves_nothing_that_could_be_judged(tmp_path: Path) -> None:
    (tmp_path / "dying_drivers.py").write_text(
        "import os\n"
        "def dying(task, tools, ctx):\n"
        "    tools.call('bash', {'command': 'echo 42 > answer.txt'})\n"
        "    os._exit(9)\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    try:
        evaluate(
            suite(tmp_path), "dying_drivers:dying", sandbox="bubblewrap", out=tmp_path / "run", executor="processes"
        )  # fmt: skip
    finally:
        sys.path.remove(str(tmp_path))
    (row,) = read_product(tmp_path / "run" / "product.jsonl")
    assert (row.verdict.outcome, row.produced.seen) == ("driver_error", Seen(lost=True))
    assert {check.detail for check in row.verdict.checks if check.name in ("files", "command")} == {LOST}


def test_a_level_that_does_not_work_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no sandbox level 'lokal'"):
        evaluate(suite(tmp_path), right, sandbox="lokal", out=tmp_path / "run")
    with pytest.raises(LabError, match="level container:localhost/no-such-image:0 does not work here"):
        evaluate(suite(tmp_path), right, sandbox="container:localhost/no-such-image:0", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gold": {"calls": [bash("echo 41 > answer.txt")]}}, "the reference solution does not pass"),
        ({"gold": {"calls": [bash("exit 3")]}}, "gold 1: [exit 3]"),
        ({"gold": {"calls": [bash("echo 42 > answer.txt"), bash("touch more")]}}, "call 2 (bash) left out still passes"),
        ({"gold": None}, "needs gold, a reference solution"),
        ({"expect": {"files": {"answer.txt": {"contains": "?"}}}, "gold": {"calls": [bash("echo '42?' > answer.txt")]}}, "doing nothing still passes"),
        ({"world": {**WORLD, "protected": ["chek.py"]}}, "world: protected: 'chek.py' is not in files (did you mean 'check.py'?)"),
        ({"expect": {"command": {"run": "true", "files": {"check.py": ""}}}}, "'check.py' is in the world's files too"),
        ({"tools": ["bash", "list_files"]}, "tools: 'list_files' is no registered tool"),
        ({"world": {"kind": "state", "state": {}, "tools": []}, "tools": ["x"]}, ""),
    ],
)  # fmt: skip
def test_lint_proves_what_a_case_promises(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    given = {key: value for key, value in line(**changed).items() if value is not None}
    problems = lint_suite(suite(tmp_path, given), sandbox="local")
    assert problems
    assert any(said in problem.message for problem in problems), problems


def test_a_sound_case_has_no_problem(tmp_path: Path, level: str) -> None:
    assert lint_suite(suite(tmp_path), sandbox=level) == ()


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"files": {}}, "expect.files: names no file"),
        ({"files": {"a": {"exct": "x"}}}, "unknown key 'exct' in expect.files.a (did you mean 'exact'?)"),
        ({"files": {"a": 3}}, "expect.files.a: "),
        ({"files": {"a": {"contains": 3}}}, "expect.files.a.contains: "),
        ({"command": {}}, "missing run in expect.command"),
        ({"command": {"run": "x", "exit": "0"}}, "expect.command.exit: "),
        ({"command": {"run": "x", "stdout": {"regexp": "a"}}}, "unknown key 'regexp' in expect.command.stdout (did you mean 'regex'?)"),
        ({"command": {"run": "x", "files": {"b": 3}}}, "expect.command.files.b: "),
        ({"command": {"run": "x"}, "proof": True}, "expect.proof is the ladder's alone"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_one_clear_line(expect: dict[str, Any], said: str) -> None:
    data = json.dumps(line(expect=expect)).encode()
    _, problems = parse_cases(data, name="w", file="w.jsonl")
    assert any(said in problem.message for problem in problems), problems


def test_a_world_file_of_a_sandbox_serves_several_cases(tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "desk.json").write_text(json.dumps(WORLD), encoding="utf-8")
    file = suite(tmp_path, line(world="desk"), line(id="again", world="desk"))
    assert len(load_suite(file).cases) == 2
    assert lint_suite(file, sandbox="local") == ()


@pytest.mark.parametrize("level", ["local", "bubblewrap"])
def test_who_locks_the_folder_is_judged_all_the_same(tmp_path: Path, level: str) -> None:
    """A command that cannot enter its folder is the agent's failure; it must not take a lost trial out of the count."""
    why = unavailable(Level(level))
    if why is not None:
        pytest.skip(why)

    def locks(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
        tools.call("bash", {"command": "chmod 000 ."})
        tools.call("bash", {"command": "true"})
        return {}

    locks.__module__, locks.__qualname__ = "locking", "locks"
    run = evaluate("workspace", locks, only="repair-median", sandbox=level, save_run=False)
    (row,) = run.trials.to_pylist()
    assert (row["solved"], row["excluded"]) == (False, None)
    assert [call.status for call in run.product[0].produced.ledger] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("expect", "warned"),
    [
        ({"files": {"app.conf": {"contains": "port=8080"}}}, ["expect.files.app.conf.contains: 'port=8080'"]),
        ({"files": {"app.conf": {"contains": ["port", "port=8080"]}}}, ["expect.files.app.conf.contains: 'port=8080'"]),
        ({"files": {"app.conf": {"line": "port=8080"}}}, []),
        ({"files": {"app.conf": {"exact": "port=8080\n", "contains": "port=8080"}}}, []),
        ({"files": {"app.conf": {"contains": "port=80"}}}, []),
        ({"command": {"run": "cat app.conf", "stdout": {"contains": "port=8080"}}}, ["expect.command.stdout.contains: 'port=8080'"]),
    ],
)  # fmt: skip
def test_a_text_that_is_meant_as_a_whole_line_is_warned_of(
    tmp_path: Path, expect: dict[str, Any], warned: list[str]
) -> None:
    """`port=80801` contains `port=8080`: it passes, as it says, and lint says that `line` would not let it."""
    gold = {"calls": [bash("echo port=8080 > app.conf")]}
    file = suite(tmp_path, line(expect=expect, gold=gold))
    found = lint_suite(file, sandbox="local")
    assert [one.message.split(" is a whole")[0] for one in found] == [
        f"answer: warning: {one}" for one in warned
    ]
    assert all(one.warning for one in found)


def test_a_warning_fails_nothing(tmp_path: Path) -> None:
    expect = {"files": {"app.conf": {"contains": "port=8080"}}}
    gold = {"calls": [bash("echo port=8080 > app.conf")]}
    suite(tmp_path, line(expect=expect, gold=gold))
    done = lab("lint", "work.jsonl", "--sandbox", "local", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "write `line` for a whole line" in done.stdout
    assert done.stdout.endswith("work.jsonl: 1 case, no problem, 1 warning\n")
