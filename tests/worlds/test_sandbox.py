"""The sandbox world: files by the byte, tools, calls that end, and what is read off it at the end."""

from __future__ import annotations

import base64
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.expect_work import ExpectedCommand, ExpectedFile, ExpectedOutput
from agentbench_lab.grading.command import wrong_command
from agentbench_lab.grading.files import wrong_file
from agentbench_lab.transcripts import Observation
from agentbench_lab.worlds import sandbox_levels
from agentbench_lab.worlds.sandbox import TOOLS, BadSandbox, Sandbox
from agentbench_lab.worlds.sandbox_bwrap import answer_folders, system_call_filter, system_words
from agentbench_lab.worlds.sandbox_levels import Bounds, Level, default_level, parse_level, unavailable
from agentbench_lab.worlds.seen_work import KEPT
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

sys.path.insert(0, str(Path(__file__).parent))

import sandbox_image

NAMES = ("local", "bubblewrap", pytest.param("container", marks=pytest.mark.long))


def level_of(name: str) -> Level:
    of, why = sandbox_image.level() if name == "container" else (Level(name), unavailable(Level(name)))
    if why is not None:
        pytest.skip(f"{name} does not work here: {why}")
    return of


class Trial:
    """One trial's world, by its tools."""

    def __init__(self, name: str, **declared: Any) -> None:
        self.world = Sandbox.of({"kind": "sandbox", **declared}, name="w", level=level_of(name)).fork()
        self.toolbox = Toolbox(self.world, list(TOOLS))

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.toolbox.release()

    def call(self, name: str, **input: Any) -> Observation:
        return self.toolbox.call(name, input)

    def bash(self, command: str, **more: Any) -> dict[str, Any]:
        seen = self.call("bash", command=command, **more)
        assert seen.ok, seen.text
        value: dict[str, Any] = seen.value
        return value


@pytest.fixture(params=NAMES)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    level_of(request.param)
    yield request.param


# ---- arguments


@pytest.mark.parametrize(
    ("name", "input", "status"),
    [
        ("bash", {"command": ""}, "ok"),
        ("bash", {"command": " \n"}, "ok"),
        ("read_file", {"path": ""}, "tool_error"),
        ("write_file", {"path": "", "content": "x"}, "tool_error"),
        ("write_file", {"path": "a", "content": ""}, "ok"),
        ("list_files", {"path": ""}, "ok"),
        ("bash", {}, "malformed"),
        ("bash", {"command": None}, "malformed"),
        ("bash", {"command": []}, "schema_error"),
    ],
)
def test_a_blank_text_is_given_and_no_invented_call(name: str, input: dict[str, Any], status: str) -> None:
    """A shell takes an empty command; only what is not there at all cannot bind."""
    with Trial("local") as trial:
        assert trial.call(name, **input).status == status


# ---- the folder


def test_files_are_there_byte_by_byte(level: str) -> None:
    """Line ends stay as they are, no newline is added, bytes that are no text come through, and modes count."""
    files = {
        "unix": "a\nb\n",
        "dos": "a\r\nb",
        "deep/er/raw": {"base64": base64.b64encode(bytes(range(256))).decode()},
        "run.sh": {"text": "echo ran\n", "mode": "755"},
        "empty": "",
    }
    with Trial(level, files=files) as trial:
        out = trial.bash("cat unix; wc -c < dos; wc -c < deep/er/raw; ./run.sh; wc -c < empty")["stdout"]
        assert out.split() == ["a", "b", "4", "256", "ran", "0"]
        seen = trial.world.look({path: ExpectedFile() for path in files})
        assert {path: one.blob.data for path, one in seen.files.items() if one.blob} == {
            "unix": b"a\nb\n",
            "dos": b"a\r\nb",
            "deep/er/raw": bytes(range(256)),
            "run.sh": b"echo ran\n",
            "empty": b"",
        }


def test_what_a_tool_writes_a_command_can_change_and_the_other_way_round(level: str) -> None:
    with Trial(level) as trial:
        assert (
            trial.call("write_file", path="a/b.txt", content="one\r\ntwo").text == "created: a/b.txt, 8 bytes"
        )
        assert trial.bash("od -An -c a/b.txt; echo three >> a/b.txt; mkdir a/c")["exit"] == 0
        assert trial.call("read_file", path="a/b.txt").value == "one\r\ntwothree\n"
        assert trial.call("write_file", path="a/b.txt", content="new\n").text == "changed: a/b.txt, 4 bytes"
        assert trial.bash("cat a/b.txt")["stdout"] == "new\n"
        assert trial.call("list_files").text == "a/\na/b.txt  4\na/c/"
        assert trial.call("write_file", path="nothing").text == "created: nothing, 0 bytes"


def test_an_absolute_path_of_the_folder_is_the_same_file(level: str) -> None:
    with Trial(level, files={"d/a": "x"}) as trial:
        here = trial.bash("pwd")["stdout"].strip()
        assert trial.call("read_file", path=f"{here}/d/a").value == "x"
        assert trial.bash(f"ln -s {here}/d/a over; ln -s d way; ln -s ../d/a d/round")["exit"] == 0
        for path in ("over", "way/a", "d/round", "d/../d/a", "./d//a"):
            assert trial.call("read_file", path=path).value == "x", path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../x", "leads out of the work folder"),
        ("d/../../x", "leads out of the work folder"),
        ("/etc/hostname", "leads out of the work folder"),
        ("out/hostname", "leads out of the work folder"),
        ("up/x", "leads out of the work folder"),
        ("none", "there is no such file"),
        ("d", "is a folder, not a file"),
        ("d/a/b", "a is no folder"),
        ("pipe", "is a pipe, not a file"),
        ("loop", "too many symbolic links"),
        ("a\0b", "cannot have a NUL"),
        (".", "is a folder, not a file"),
    ],
)
def test_a_path_that_cannot_be_read_is_an_error_the_agent_sees(path: str, said: str) -> None:
    with Trial("local", files={"d/a": "x"}) as trial:
        trial.bash("ln -s /etc out; ln -s .. up; mkfifo pipe; ln -s loop loop")
        seen = trial.call("read_file", path=path)
        assert (seen.status, said in seen.text) == ("tool_error", True), seen.text
        assert trial.toolbox.ledger[-1].text == seen.text


def test_a_long_file_is_read_by_lines() -> None:
    with Trial("local", files={"long": "".join(f"line {n}\n" for n in range(1, 20_001))}) as trial:
        assert "ask for lines" in trial.call("read_file", path="long").text
        assert trial.call("read_file", path="long", line=3, lines=2).value == "line 3\nline 4\n"
        assert trial.call("read_file", path="long", line=20_000).value == "line 20000\n"
        assert trial.call("read_file", path="long", line=90_000).value == ""


def test_a_trial_has_a_folder_of_its_own(level: str) -> None:
    with Trial(level, files={"a": "1"}) as one:
        other = one.world.fork()
        one.bash("echo 2 > a")
        assert other.look({"a": ExpectedFile()}).files["a"].blob.text == "1"  # type: ignore[union-attr]
        other.close()


# ---- commands


def test_a_command_is_told_by_its_exit_and_both_streams(level: str) -> None:
    with Trial(level) as trial:
        assert trial.bash("echo out; echo err >&2; exit 3") == {
            "exit": 3,
            "stdout": "out\n",
            "stderr": "err\n",
        }
        seen = trial.call("bash", command="true")
        assert (seen.text, seen.status) == ("[exit 0]", "ok")
        assert trial.call("bash", command="echo x; exit 2").text == "x\n[exit 2]"


def test_the_environment_is_clean(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    with Trial(level) as trial:
        lines = trial.bash("env")["stdout"].splitlines()
        names = {line.partition("=")[0] for line in lines}
        assert "A_SECRET" not in names
        assert {"PATH", "HOME", "LANG", "TZ"} <= names
        assert trial.bash("echo $TZ $LANG; cd; touch in-home")["stdout"] == "UTC C.UTF-8\n"


def test_the_folder_is_kept_from_call_to_call_and_the_shell_is_not(level: str) -> None:
    with Trial(level) as trial:
        trial.bash("X=1; mkdir d; cd d; echo x > y")
        assert trial.bash("echo [$X]; cat d/y")["stdout"] == "[]\nx\n"


def test_a_call_that_takes_too_long_is_ended_with_what_it_started(level: str) -> None:
    with Trial(level, limits={"wall_s": 1}) as trial:
        began = time.monotonic()
        value = trial.bash("sleep 300 & sleep 300 & echo begun; wait")
        assert time.monotonic() - began < 60
        assert (value["exit"], value["stdout"], value["ended"]) == (None, "begun\n", "timed out")
        # what the agent asks for may be less, never more
        assert trial.bash("sleep 300", timeout_s=9_000)["ended"] == "timed out"
        assert trial.bash("echo on")["stdout"] == "on\n"


def test_long_output_keeps_its_beginning_and_its_end(level: str) -> None:
    with Trial(level) as trial:
        out = trial.bash("seq 1 20000")["stdout"]
        assert out.startswith("1\n2\n") and out.endswith("\n20000\n")
        assert "characters left out" in out
        assert len(out) < 4_000


def test_what_a_command_changed_stands_in_the_ledger() -> None:
    """A command that only looks has changed nothing."""
    with Trial("local", files={"a": "1", "b": "2", "c": "3"}) as trial:
        trial.bash("cat a; ls")
        trial.bash("echo 9 > a; rm b; chmod 600 c; mkdir d; echo x > d/e")
        looked, changed = trial.toolbox.ledger
        assert (looked.changes, looked.diff) == (False, {})
        assert (changed.changes, changed.diff) == (
            True,
            {"created": ["d", "d/e"], "changed": ["a", "c"], "removed": ["b"]},
        )


def test_a_trial_that_ends_ends_its_command_and_runs_no_other(level: str) -> None:
    with Trial(level, files={"a": "1"}) as trial:
        went: list[Any] = []
        # a container's output takes a way of its own: it has a second to arrive before the file tells to go on
        thread = threading.Thread(
            target=lambda: went.append(trial.bash("echo begun; sleep 1; echo 2 > a; sleep 300"))
        )
        thread.start()
        until = time.monotonic() + 60
        while trial.world.look({"a": ExpectedFile()}).files["a"].blob.text != "2\n":  # type: ignore[union-attr]
            assert time.monotonic() < until
            time.sleep(0.02)
        began = time.monotonic()
        ledger = trial.toolbox.close()
        assert time.monotonic() - began < 60  # not the command's five minutes, however busy the machine
        thread.join(60)
        assert went == [{"exit": None, "stdout": "begun\n", "stderr": "", "ended": "the trial is over"}]
        assert [row.value for row in ledger] == went
        with pytest.raises(BudgetSpent):
            trial.call("bash", command="true")
        # the folder can still be read
        assert trial.world.look({"a": ExpectedFile()}).files["a"].blob.text == "2\n"  # type: ignore[union-attr]


def test_a_trial_that_ends_while_its_folder_is_made_runs_no_command_in_it(level: str) -> None:
    with Trial(level, files={"a": "1"}) as trial:
        trial.world.stop()
        ran = trial.world.run("bash", {"command": "echo 2 > a"})
        assert ran.value["ended"] == "the trial is over"
        assert trial.world.look({"a": ExpectedFile()}).files["a"].blob.text == "1"  # type: ignore[union-attr]


def test_a_closed_world_leaves_nothing_behind() -> None:
    with Trial("local", files={"a": "1"}) as trial:
        here = Path(trial.bash("mkdir -p d/e; chmod 0 d; pwd")["stdout"].strip())
        assert here.is_dir()
    assert not here.parent.exists()
    with pytest.raises(OSError, match="closed"):
        trial.world.run("list_files", {})


def test_a_world_that_is_forgotten_is_closed() -> None:
    trial = Trial("local", files={"a": "1"})
    here = Path(trial.bash("pwd")["stdout"].strip())
    del trial
    assert not here.exists()


# ---- bubblewrap alone


def test_bubblewrap_has_the_system_and_nothing_else() -> None:
    with Trial("bubblewrap") as trial:
        value = trial.bash(
            "ls /; id -u; hostname 2>/dev/null || cat /proc/sys/kernel/hostname; ls /home /root /run"
        )
        names = value["stdout"].split()
        assert {"usr", "work", "tmp", "proc", "dev", "etc"} <= set(names)
        assert not {"home", "root", "run", "srv", "mnt", "sys", "var"} & set(names)
        assert names[-2:] == ["1000", "sandbox"]


def test_no_file_of_memory_can_be_made_that_no_limit_counts() -> None:
    script = (
        "import ctypes, os\n"
        "try:\n    os.memfd_create('x')\nexcept PermissionError as error:\n    print(error)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall(447, 0), ctypes.get_errno())\n"
    )
    with Trial("bubblewrap", files={"a.py": script}) as trial:
        said = trial.bash("python3 a.py")["stdout"]
        assert said == "[Errno 1] Operation not permitted\n-1 1\n"


def test_bubblewrap_refuses_a_processor_whose_calls_it_does_not_know() -> None:
    with pytest.raises(OSError, match="no system call filter for a sparc"):
        system_call_filter("sparc")
    assert len(system_call_filter("x86_64")) % 8 == 0


def test_many_processes_that_hold_too_much_together_are_ended() -> None:
    hold = "x=bytearray(b'x')*(60<<20); import time; time.sleep(300)"
    with Trial("bubblewrap", limits={"memory_mb": 200}) as trial:
        began = time.monotonic()
        value = trial.bash(f'for n in 1 2 3 4 5 6; do python3 -c "{hold}" & done; wait')
        assert time.monotonic() - began < 60
        assert value["exit"] is None
        assert "200 are allowed" in value["ended"]


def test_without_root_bubblewrap_works_too(tmp_path: Path) -> None:
    """A runner with no privilege at all: the same level, by namespaces of its own."""
    level_of("bubblewrap")
    if os.geteuid() != 0:
        pytest.skip("the other tests have shown it")
    import subprocess

    paths = os.pathsep.join(path for path in sys.path if path)
    script = (
        "from agentbench_lab.worlds.sandbox_levels import *\n"
        "place = open_place(Level('bubblewrap'), Bounds())\n"
        "place.folder.write('a', b'1')\n"
        "done = place.run('id -u; cat a; echo 2 > b; ls /home', timeout_s=20)\n"
        "print(done.stdout, place.folder.read('b', 9))\n"
        "place.close()\n"
    )
    python = Path("/usr/bin/python3")
    version = f"import sys; print(sys.version_info[:2] == {sys.version_info[:2]!r})"
    if (
        not python.exists()
        or subprocess.run([python, "-c", version], capture_output=True).stdout != b"True\n"
    ):
        pytest.skip("no Python of this version that another user can run")
    drop = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "env", f"PYTHONPATH={paths}"]
    done = subprocess.run(
        [*drop, "PYTHONDONTWRITEBYTECODE=1", python, "-c", script], capture_output=True, text=True, cwd="/"
    )
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("another user cannot read this checkout")
    assert done.stdout == "b'1000\\n1' (b'2\\n', 2)\n", done.stderr


# ---- the end


CHECK = "import sys\nsys.exit(0 if open('answer').read() == '42' else 3)\n"


def test_the_check_runs_in_a_restored_copy(level: str) -> None:
    files = {"check.py": CHECK, "answer": "", "bin/x": {"text": "#!/bin/sh\necho x\n", "mode": "755"}}
    command = ExpectedCommand(
        run="sh ./judge; cat check.py | wc -l; ls", files={"judge": "bin/x\ncat answer\n"}
    )
    with Trial(level, files=files, protected=["check.py"]) as trial:
        trial.bash("printf 42 > answer; rm check.py; ln -s answer check.py; ln -s bin way; mkfifo pipe")
        trial.world.stop()
        seen = trial.world.look({"answer": ExpectedFile(), "judge": ExpectedFile()}, command)
        assert seen.command is not None
        assert (seen.command.exit, seen.command.timed_out) == (0, False)
        lines = (seen.command.stdout.text or "").split()
        assert lines == ["x", "422", "answer", "bin", "check.py", "judge", "way"]
        assert seen.files["judge"].what == "nothing"
        assert seen.level == str(trial.world.level)
        # the folder itself is as the agent left it
        assert trial.world.look({"check.py": ExpectedFile()}).files["check.py"].blob.text == "42"  # type: ignore[union-attr]


def test_a_check_that_hangs_or_prints_much_is_bounded(level: str) -> None:
    with Trial(level) as trial:
        command = ExpectedCommand(run="yes; true", timeout_s=1.0)
        seen = trial.world.look(None, command).command
        assert seen is not None
        kept = len(seen.stdout.data) + len(seen.stdout.end)
        assert (seen.exit, seen.timed_out, kept) == (None, True, KEPT)
        assert seen.stdout.size > 1_200_000 and seen.stdout.sha256 is None


def test_what_a_check_prints_last_is_evidence_too() -> None:
    with Trial("local") as trial:
        seen = trial.world.look(
            None, ExpectedCommand(run="yes | head -c 3000000; echo; echo 12 passed")
        ).command
        assert seen is not None
        assert (seen.stdout.size, seen.stdout.whole) == (3_000_011, False)
        for line, passes in (("12 passed", True), ("13 passed", False)):
            command = ExpectedCommand(run="t", stdout=ExpectedOutput(line=line))
            assert (wrong_command(command, seen) is None) == passes


def test_a_folder_that_cannot_be_copied_is_told_and_no_fault_of_ours() -> None:
    with Trial("local", limits={"disk_mb": 1}) as trial:
        trial.bash("head -c 3000000 /dev/zero > big")
        seen = trial.world.look(None, ExpectedCommand(run="true")).command
        assert seen is not None
        assert seen.not_run == "the work folder cannot be copied: more bytes than the work folder may hold"


def test_a_long_file_is_known_by_its_digest() -> None:
    import hashlib

    with Trial("local") as trial:
        trial.bash("yes | head -c 600000 > long; ln -s long link; ln -s /etc/hostname out; mkdir d")
        seen = trial.world.look(dict.fromkeys(("long", "link", "out", "d", "no"), ExpectedFile())).files
        assert seen["long"].blob is not None
        kept = len(seen["long"].blob.data) + len(seen["long"].blob.end)
        assert (seen["long"].blob.size, kept) == (600_000, KEPT)
        assert seen["long"].blob.sha256 == hashlib.sha256(b"y\n" * 300_000).hexdigest()
        assert [seen[path].what for path in ("link", "out", "d", "no")] == [
            "file",
            "link",
            "folder",
            "nothing",
        ]


def test_nothing_is_absent_behind_a_way_that_cannot_be_walked(level: str) -> None:
    """A link that leads out, links without an end, a link that hangs: only what is proven to be nothing is absent."""
    absent = ExpectedFile(absent=True)
    with Trial(level, files={"a": "1"}) as trial:
        trial.bash("ln -s /etc out; ln -s .. up; ln -s round round; ln -s nowhere hangs; mkdir d")
        asked = ("out/none", "up/none", "round/none", "hangs/none", "hangs", "a/none", "d/none", "none/none")
        seen = trial.world.look(dict.fromkeys(asked, absent)).files
        wrong = {path: wrong_file(absent, seen[path]) for path in asked}
        assert [path for path in asked if wrong[path] is None] == [
            "hangs/none",
            "a/none",
            "d/none",
            "none/none",
        ]
        looked = "there must be nothing, and there is a path that cannot be looked at"
        assert wrong["out/none"] == f"{looked} (out/none: leads out of the work folder)"
        assert wrong["up/none"] == f"{looked} (up/none: leads out of the work folder)"
        assert wrong["round/none"] == f"{looked} (round/none: too many symbolic links)"
        assert wrong["hangs"] == "there must be nothing, and there is a symbolic link"


@pytest.mark.parametrize(
    ("printed", "expected", "said"),
    [
        (
            r"port=8080\r\n",
            ExpectedFile(exact="port=8080\n"),
            r"line endings only: \r\n where \n is expected",
        ),
        (r"port=8080", ExpectedFile(exact="port=8080\n"), "the newline at the end is missing"),
        (r"port=80801\n", ExpectedFile(contains="port=8080"), None),
        (r"port=80801\n", ExpectedFile(line="port=8080"), "no line is 'port=8080'"),
    ],
    ids="abcd",
)
def test_b04_only_the_line_endings_differ(
    printed: str, expected: ExpectedFile, said: str | None, level: str
) -> None:
    """Bytes are compared and the difference is told; a seeded script has no byte more than the case gives it."""
    script = "#!/bin/sh\nset -e\n"
    with Trial(level, files={"deploy.sh": script}) as trial:
        trial.bash(f"printf '{printed}' > app.conf")
        seen = trial.world.look({"app.conf": expected, "deploy.sh": ExpectedFile()}).files
        assert wrong_file(expected, seen["app.conf"]) == said
        assert seen["deploy.sh"].blob is not None
        assert (seen["deploy.sh"].blob.data, seen["deploy.sh"].blob.size) == (script.encode(), 17)


def test_writing_says_what_it_came_to() -> None:
    with Trial("local", files={"a": "1"}) as trial:
        for path, content in (("b/c", "x"), ("a", "2"), ("a", "2"), ("b/c", "x")):
            trial.call("write_file", path=path, content=content)
        assert [(row.diff, row.changes) for row in trial.toolbox.ledger] == [
            ({"created": ["b/c"]}, True),
            ({"changed": ["a"]}, True),
            ({}, False),
            ({}, False),
        ]
        assert trial.call("write_file", path="a", content="2").text == "unchanged: a, 1 bytes"


def test_a_file_that_cannot_be_written_leaves_no_folder_behind() -> None:
    with Trial("local", files={"d/a": "x"}) as trial:
        trial.bash("ln -s /etc out; mkdir -p e/full")
        deep = "/".join(["n"] * 150)
        for path in (
            f"new/{'y' * 300}",
            f"new/{deep}/x",
            "d/f/../../e/full",
            "d/g/../../out/x",
            "e/h/../../../x",
        ):
            assert not trial.call("write_file", path=path, content="x").ok, path
        assert trial.call("list_files").text == "d/\nd/a  1\ne/\ne/full/\nout  (link)"
        assert trial.call("write_file", path="d/f/../../e/i/a", content="x").ok
        assert trial.bash("ls d/f e/i")["stdout"] == "d/f:\n\ne/i:\na\n"


# ---- what a case declares


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"files": {"../x": ""}}, "files: '../x' leads out with '..'"),
        ({"files": {"/x": ""}}, "files: '/x' must be relative to the work folder"),
        ({"files": {"a//b": ""}}, "files: 'a//b' has an empty name or '.' in it"),
        ({"files": {"a": "", "a/b": ""}}, "files: 'a/b' lies in 'a', which is a file"),
        ({"files": {"a": {"base64": "!"}}}, "files: a: base64 is no base64"),
        ({"files": {"a": {"text": "x", "base64": "eA=="}}}, "files: a: needs one of text, base64"),
        ({"files": {"a": {"text": "x", "mode": "9"}}}, "files: a: mode '9' must be three octal digits, such as 755"),
        ({"files": {"check.py": ""}, "protected": ["chek.py"]}, "protected: 'chek.py' is not in files (did you mean 'check.py'?)"),
        ({"tools": ["bsh"]}, "tools: no tool 'bsh' (did you mean 'bash'?)"),
        ({"tools": []}, "tools: names no tool"),
        ({"limits": {"memory": 3}}, "limits: unknown key 'memory'"),
        ({"limits": {"disk_mb": 0}}, "limits.disk_mb: expected `int` >= 1".replace("`", "'")),
        ({"fils": {}}, "unknown key 'fils'"),
        ({"files": {"a": "x" * (2 << 20)}, "limits": {"disk_mb": 1}}, "files: 2097152 bytes, more than limits.disk_mb holds"),
    ],
)  # fmt: skip
def test_a_sandbox_that_means_nothing_says_what_is_wrong(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSandbox) as error:
        Sandbox.of({"kind": "sandbox", **declared}, name="w")
    assert said in error.value.problems


def test_levels_by_name() -> None:
    assert parse_level("local") == Level("local")
    assert str(parse_level("container:alpine:3")) == "container:alpine:3"
    for text, said in (
        ("docker", "no sandbox level 'docker'"),
        ("bubblewarp", "did you mean 'bubblewrap'"),
        ("container", "needs an image"),
        ("local:x", "takes no image"),
    ):
        with pytest.raises(LabError, match=said):
            parse_level(text)


def test_nothing_weaker_is_taken_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bubblewrap is not installed, the default is an error that says so."""
    from agentbench_lab.worlds import sandbox_bwrap

    monkeypatch.setattr(sandbox_bwrap, "_PATH", "/nowhere")
    sandbox_levels.unavailable.cache_clear()
    try:
        with pytest.raises(LabError, match=r"not installed: bwrap, .*choose container:IMAGE, or local"):
            default_level()
    finally:
        sandbox_levels.unavailable.cache_clear()


def test_answers_below_a_bound_folder_are_hidden() -> None:
    """The outer folder of two, and nothing that is not below a bound one, nor such a one itself."""
    hidden = [
        Path(p) for p in ("/usr/src/lab/agentbench_lab", "/usr/src/lab", "/home/lab", "/usr", "/usrlab")
    ]
    shown, words = system_words([]), system_words(hidden)
    assert words[: len(shown)] == shown
    assert words[len(shown) :] == [
        *("--size", "4096", "--tmpfs", "/usr/src/lab", "--remount-ro", "/usr/src/lab"),
    ]


def test_a_checkout_is_hidden_whole_and_any_other_folder_in_part(tmp_path: Path) -> None:
    root, package = tmp_path / "lab", tmp_path / "packages" / "agentbench_lab"
    (root / "data" / "cases").mkdir(parents=True)
    (root / "bin").mkdir()
    package.mkdir(parents=True)
    assert answer_folders(root, package) == [root / "data", package]
    (root / "pyproject.toml").touch()
    assert answer_folders(root, package) == [root, package]
    assert Path("/usr") not in answer_folders(Path("/usr"), package)


def test_the_level_is_part_of_the_experiment() -> None:
    world = Sandbox.of({"files": {"a": "1"}}, name="w", level=Level("local"))
    assert world.digest == world.fork().digest == pickle.loads(pickle.dumps(world)).digest
    assert world.digest != world.at(Level("bubblewrap")).digest
    other = Sandbox.of({"files": {"a": "2"}}, name="w", level=Level("local"))
    assert world.digest != other.digest


def test_an_image_that_is_not_there_is_told() -> None:
    of, why = sandbox_image.level()
    if why is not None:
        pytest.skip(f"container does not work here: {why}")
    del of
    said = unavailable(Level("container", "localhost/no-such-image:0"))
    assert said is not None and "no-such-image" in said


def test_bounds_are_what_a_process_gets() -> None:
    with Trial("bubblewrap", limits={"cpu_s": 7, "file_mb": 3, "processes": 33, "memory_mb": 512}) as trial:
        got = trial.bash("ulimit -t; ulimit -f; ulimit -u; ulimit -v; ulimit -n; df -k /work | tail -1")
        *limits, _disk = got["stdout"].splitlines()
        assert limits == ["7", "3072", "33", str(512 * 1024), "1024"]
    assert Bounds().rlimits()["core"] == 1
