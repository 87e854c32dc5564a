"""Programs as drivers over lines of JSON: real agents climb, and hostile ones are judged, each in its own trial only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.base import load_driver
from agentbench_lab.drivers.command import ENVIRONMENT, Command, make
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate

from ..doing import ROOT, some, write_suite

MOODY = ROOT / "tests" / "agents" / "moody.py"
EXAMPLES = ROOT / "examples" / "agents"
PYTHON = f"{sys.executable} -I -S"
NODE = shutil.which("node")
WAYS = ("jsonl", "spawn")


def moody(mood: str, way: str = "jsonl", *more: str) -> str:
    return f"command[{way}]:{PYTHON} {MOODY} '{mood}' {' '.join(more)}"


def alive(pattern: str) -> list[str]:
    """The command lines of the processes that have this in theirs."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if pattern in line:
                found.append(line)
    return found


def gone(pattern: str, within: float = 5.0) -> bool:
    until = time.monotonic() + within
    while alive(pattern):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def program(folder: Path, text: str, name: str = "agent.sh") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def told(run: Run) -> dict[str, tuple[str, str]]:
    """For each case its outcome and why."""
    return {row.case_id: (row.verdict.outcome or "excluded", row.produced.why) for row in run.product}


# ---- agents that climb


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", ["{examples}/climb.sh", "node {examples}/climb.mjs"])
def test_an_agent_in_another_language_climbs_two_rungs(way: str, words: str) -> None:
    if words.startswith("node") and NODE is None:
        pytest.skip("node is not installed: an agent in JavaScript cannot run")
    if words.startswith("node") and way == "spawn":
        group, asked = "TOOL-0", 18  # a process each takes its time
    else:
        group, asked = "TOOL-0,TOOL-1", 40
    driver = f"command[{way}]:{words.format(examples=EXAMPLES)}"
    run = evaluate("ladder", driver, group=group, ladder=True, workers=2, save_run=False)
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * asked
    assert run.card.envelope[0].reached == group.split(",")[-1]
    assert run.card.evidence == ("live",)


@pytest.mark.parametrize("words", ["{0}/first_tool.sh", "node {0}/first_tool.mjs", "{1} {0}/first_tool.py"])
@pytest.mark.parametrize("way", WAYS)
def test_the_examples_of_ten_lines_run(tmp_path: Path, words: str, way: str) -> None:
    if words.startswith("node") and NODE is None:
        pytest.skip("node is not installed: an agent in JavaScript cannot run")
    suite = write_suite(tmp_path, some(6))
    driver = f"command[{way}]:{words.format(EXAMPLES, PYTHON)}"
    for _ in range(2):
        (row,) = evaluate(suite, driver, save_run=False).product
        assert [entry.name for entry in row.produced.ledger] == ["tmct_untested"]
        assert "app/money.py" in row.produced.answer


def test_the_examples_are_ten_lines_and_stand_in_the_docs() -> None:
    page = (ROOT / "docs" / "drivers.md").read_text(encoding="utf-8")
    for name in ("first_tool.sh", "first_tool.mjs", "first_tool.py"):
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert len([line for line in text.splitlines() if line.strip()]) <= 10
        assert text in page


def test_a_worker_serves_many_trials_and_many_at_once(tmp_path: Path) -> None:
    """As many processes as trials at a time, whatever the number of trials; each says who it is."""
    agent = program(
        tmp_path,
        '#!/bin/sh\nwhile read -r line; do id=${line#*\\"id\\":\\"} id=${id%%\\"*}\n'
        'sleep 0.02; echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"notes\\":[\\"$$\\"]}}"; done\n',
    )
    suite = write_suite(tmp_path, some(0))
    run = evaluate(suite, f"command:{agent}", trials=10, workers=3, save_run=False)
    one_each = evaluate(suite, f"command[spawn]:{agent}", trials=2, save_run=False)
    pids = [list(record["notes"]) for record in run.transcripts.to_pylist()]
    assert len(pids) == 20
    assert 1 <= len(set(map(str, pids))) <= 3
    assert len({str(record["notes"]) for record in one_each.transcripts.to_pylist()}) == 4


# ---- hostile ones

MOODS: dict[str, tuple[str, str]] = {
    "good": ("correct_calls", ""),
    "chatter": ("correct_calls", ""),
    "one final too many": ("correct_calls", ""),
    "a late final": ("correct_calls", ""),
    "a late final without an id": ("correct_calls", ""),
    "half a line too many": ("correct_calls", ""),
    "a long call": ("hallucinated_call", ""),
    "a long final": ("driver_error", "at most 500000 are kept"),
    "an endless line": ("driver_error", "wrote a line of more than 4000000 bytes"),
    "no UTF-8": ("driver_error", "wrote a line that is not UTF-8"),
    "a key twice": ("driver_error", "wrote a line that is no JSON: the key 'answer' is given twice"),
    "no JSON": ("driver_error", "wrote a line that is no JSON"),
    "NaN": ("driver_error", "NaN is no JSON number"),
    "deep": ("driver_error", "wrote a line that is no JSON"),
    "a misspelt kind": ("driver_error", "the key 'finale' (did you mean 'final'?)"),
    "two kinds": ("driver_error", "both 'call' and 'final'"),
    "arguments": ("driver_error", "the key 'arguments' (did you mean 'input'?)"),
    "no name": ("driver_error", "a call that is not {name, input}"),
    "a final that is none": ("driver_error", "gave back a int"),
    "an unknown key": ("driver_error", "gave back an unknown key 'anser' (did you mean 'answer'?)"),
    "a lie": ("false_success", ""),
    "crash": ("driver_error", "ended without a final line: exit 3"),
    "signal": ("driver_error", "ended without a final line: ended by signal 11"),
    "closes stdout": ("driver_error", "closed its stdout without a final line"),
    "ignores stdin": ("timeout", "out of time after 0.8 s"),
    "floods stderr": ("correct_calls", ""),
    "never": ("timeout", "out of time after 0.8 s"),
    "spends": ("budget", "the limit of 100 tokens is used up (120 used)"),
    "too many calls": ("budget", "the limit of 2,500 tool calls is used up"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mood", MOODS)
def test_it_is_judged_and_no_other_trial_is_touched(tmp_path: Path, mood: str, way: str) -> None:
    suite = write_suite(tmp_path, some(0))
    limits = Limits(wall_s=0.8 if MOODS[mood][0] == "timeout" else 20, tokens=100, tool_calls=2500)
    run = evaluate(suite, moody(mood, way), trials=3, limits=limits, save_run=False)
    outcome, why = MOODS[mood]
    for row in run.product:
        if row.case_id == "t0-order":
            assert row.verdict.outcome == "correct_calls", row.produced.why
        else:
            assert row.verdict.outcome == outcome, row.produced.why
            assert why in (row.produced.why or "")
    assert len(run.product) == 6
    assert gone(str(MOODY))


def test_what_it_says_beside_its_messages_is_kept_with_the_trial(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0)[:1])
    (noisy,) = evaluate(suite, moody("chatter"), save_run=False).transcripts.to_pylist()
    assert noisy["stdout"] == 'Loading model...\n[1, 2]\n"text"\n{"level": "info"}\n'
    assert "skipped, since no message: 4 lines on stdout" in noisy["notes"]
    (crashed,) = evaluate(suite, moody("crash"), save_run=False).transcripts.to_pylist()
    assert crashed["stderr"].startswith("Traceback\nValueError")
    assert "exit 3; its last words: ValueError: no" in str(crashed["notes"])
    (flood,) = evaluate(suite, moody("floods stderr"), save_run=False).transcripts.to_pylist()
    assert len(flood["stderr"]) == 20_000


def test_what_it_says_after_a_trial_is_no_other_trials(tmp_path: Path) -> None:
    """Neither its meaning nor its text, whenever it comes."""
    for mood in ("one final too many", "a late final"):
        run = evaluate(write_suite(tmp_path, some(0)), moody(mood), trials=4, save_run=False)
        kept = {row["stdout"] for row in run.transcripts.to_pylist() if row["case_id"] == "t0-order"}
        assert kept <= {None, ""}


def test_a_crash_costs_one_trial_and_one_start(tmp_path: Path) -> None:
    """Ten trials of which the first of each case crashes: the worker is begun again, and the others keep theirs."""
    agent = program(
        tmp_path,
        "#!/bin/sh\necho start >> "
        + str(tmp_path / "starts")
        + '\nwhile read -r line; do id=${line#*\\"id\\":\\"} id=${id%%\\"*}\n'
        'case $line in *Cart*\\"trial\\":1}*) exit 9 ;; esac\n'
        'echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"refused\\":true}}"; done\n',
    )
    run = evaluate(write_suite(tmp_path, some(0)), f"command:{agent}", trials=5, save_run=False)
    outcomes = [row.verdict.outcome for row in run.product]
    assert sorted(outcomes) == ["driver_error", *["over_refusal"] * 9]
    assert (tmp_path / "starts").read_text().count("start") == 2


def test_one_that_takes_one_task_and_goes_is_begun_again(tmp_path: Path) -> None:
    once = '#!/bin/sh\nread -r line\nid=${line#*\\"id\\":\\"} id=${id%%\\"*}\n'
    once += 'echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"refused\\":true}}"\n'
    for text in (once, once + "read -r more\n"):
        # the second one goes only when it sees the next task
        agent = program(tmp_path, text)
        run = evaluate(write_suite(tmp_path, some(0)), f"command:{agent}", trials=3, save_run=False)
        assert [row.verdict.outcome for row in run.product] == ["over_refusal"] * 6


@pytest.mark.parametrize("way", WAYS)
def test_a_program_without_ids_is_right_too(tmp_path: Path, way: str) -> None:
    """What cannot be told apart shares no process."""
    run = evaluate(
        write_suite(tmp_path, some(0)),
        moody("one final too many", way, "--without-ids"),
        trials=3,
        save_run=False,
    )
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 6


def test_the_other_side_failed_it(tmp_path: Path) -> None:
    """`failed` is tried again, each time an attempt, and excluded in the end: no fault of the agent's."""
    run = evaluate(write_suite(tmp_path, some(0)[:1]), moody("fails"), retries=2, save_run=False)
    (row,) = run.product
    assert (row.verdict.excluded, row.verdict.owner) == ("infrastructure: 429", "environment")
    assert run.attempts.num_rows == 3


# ---- the limit is a bound


@pytest.mark.parametrize("way", WAYS)
def test_the_limit_of_time_is_a_bound(tmp_path: Path, way: str) -> None:
    """Its helpers end with it, what it printed is kept, no exit code is made up, and the next trial starts afresh."""
    mark = f"3{os.getpid()}.{int(way == 'spawn')}7"  # seconds to sleep, which nobody else sleeps
    text = f"#!/bin/sh\nls; touch left; sleep {mark} &\necho started\nwait\n"
    agent = program(tmp_path, text)
    suite = write_suite(tmp_path, some(0))
    began = time.monotonic()
    run = evaluate(suite, f"command[{way}]:{agent}", limits=Limits(wall_s=1.0), workers=2, save_run=False)
    assert time.monotonic() - began < 3.0
    assert alive(f"sleep {mark}") == []
    for row, kept in zip(run.product, run.transcripts.to_pylist(), strict=True):
        assert row.verdict.outcome == "timeout"
        assert row.produced.why == "out of time after 1 s"
        assert kept["stdout"] == "started\n"  # and no file of the trial before
        assert "it was ended: exit null" in kept["notes"]


def test_a_program_that_went_is_not_waited_for_when_its_helper_stays(tmp_path: Path) -> None:
    """The helper holds both pipes open; the trial ends with the program, and the helper with the trial."""
    mark = f"4{os.getpid()}"
    agent = program(tmp_path, f"#!/bin/sh\nsleep {mark} &\nexit 4\n")
    began = time.monotonic()
    (row,) = evaluate(
        write_suite(tmp_path, some(0)[:1]), f"command:{agent}", limits=Limits(wall_s=30), save_run=False
    ).product
    assert row.verdict.outcome == "driver_error"
    assert "exit 4" in row.produced.why
    assert time.monotonic() - began < 10
    assert gone(f"sleep {mark}")


@pytest.mark.parametrize("way", WAYS)
def test_each_trial_has_an_empty_folder(tmp_path: Path, way: str) -> None:
    agent = program(
        tmp_path,
        '#!/bin/sh\nwhile read -r line; do id=${line#*\\"id\\":\\"} id=${id%%\\"*}\n'
        "n=$(ls -A | wc -l); mkdir -p a/b; touch a/b/c d .e\n"
        'echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"notes\\":[\\"$n\\",\\"$PWD\\"]}}"; done\n',
    )
    run = evaluate(write_suite(tmp_path, some(0)), f"command[{way}]:{agent}", trials=2, save_run=False)
    notes = [list(record["notes"]) for record in run.transcripts.to_pylist()]
    assert [str(found) for found in notes if "'0'" not in str(found) and '"0"' not in str(found)] == []
    assert str(Path.cwd()) not in str(notes)
    (here,) = evaluate(
        write_suite(tmp_path, some(0)[:1]), f"command[{way},here]:{program(tmp_path, WHERE)}", save_run=False
    ).transcripts.to_pylist()
    assert str(Path.cwd()) in str(here["notes"])


WHERE = """#!/bin/sh
read -r line
id=${line#*\\"id\\":\\"} id=${id%%\\"*}
echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"notes\\":[\\"$PWD\\"]}}"
"""


# ---- what it is given


def test_it_is_given_little_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKED_SECRET", "k-123456-marked")
    monkeypatch.setenv("ANOTHER_ONE", "never")
    agent = program(tmp_path, "#!/bin/sh\nenv | sed 's/=.*//' >&2\necho \"$MARKED_SECRET\" >&2\nexit 1\n")
    suite = write_suite(tmp_path, some(0)[:1])

    def names(driver: str) -> set[str]:
        (kept,) = evaluate(suite, driver, save_run=False).transcripts.to_pylist()
        assert "k-123456" not in str(kept)
        return set(kept["stderr"].split())

    assert names(f"command:{agent}") <= {*ENVIRONMENT, "PWD", "SHLVL", "_", "OLDPWD"}
    given = names(f"command[env=MARKED_SECRET]:{agent}")
    assert {"MARKED_SECRET", "«redacted»"} <= given
    assert "ANOTHER_ONE" not in given
    tells = program(tmp_path, WHERE.replace("$PWD", "$MARKED_SECRET"), "tells.sh")
    said = evaluate(suite, f"command[env=MARKED_SECRET]:{tells}", save_run=False)
    assert "k-123456" not in str(said.transcripts.to_pylist()) and "«redacted»" in str(
        said.transcripts.to_pylist()
    )


def test_the_task_says_all_that_a_driver_may_know_and_no_more(tmp_path: Path) -> None:
    agent = program(tmp_path, "#!/bin/sh\nread -r line\nprintf '%s\\n' \"$line\" >&2\nexit 1\n")
    (kept,) = evaluate(
        write_suite(tmp_path, some(9)[:1]), f"command:{agent}", limits=Limits(wall_s=9), save_run=False
    ).transcripts.to_pylist()
    import json

    task = json.loads(kept["stderr"])["task"]
    assert list(task)[:2] == ["request", "tools"]  # as the examples in shell rely on
    assert set(task) == {
        "request", "tools", "schemas", "policy", "history", "parts", "trace", "goals", "limits", "seed", "trial",
    }  # fmt: skip
    assert task["limits"]["wall_s"] == 9
    assert [tool["name"] for tool in task["schemas"]][-3:] == ["refuse", "answer", "goal"]
    assert [call["name"] for call in task["trace"]] == ["tmct_impact", "tmct_untested"]


# ---- what is asked for

ASKED: dict[str, str] = {
    "command:": "which program? For example command:./agent",
    "command": "which program?",
    "command:no-such-agent-anywhere": "no program 'no-such-agent-anywhere' on PATH",
    "command:agent.sh": "no program 'agent.sh' on PATH (did you mean './agent.sh'?)",
    "command:./agnt.sh": "there is no program './agnt.sh' (did you mean 'agent.sh'?)",
    "command:./plain.txt": "'./plain.txt' is not executable",
    "command:./bare": "'./bare' is a text whose first line names no program (#!)",
    "command:./odd": "'./odd' is run by '/no/such/thing', by its first line",
    "command:sh 'agent.sh": "no closing quotation",
    "command:sh agnt.sh": "there is no file 'agnt.sh' for sh to run (did you mean 'agent.sh'?)",
    "command[jsnl]:./agent.sh": "no option 'jsnl' (did you mean 'jsonl'?)",
    "command[modle=x]:./agent.sh": "no option 'modle=x' (did you mean 'model='?)",
    "command[spawn,agentd]:./agent.sh": "spawn and agentd exclude each other",
    "command[env=NOT_SET_HERE]:./agent.sh": "env=NOT_SET_HERE: there is no such variable",
    "command:./agent.sh --mode {native}": "{native} is filled in by a scaffold native:NAME",
    "comand:./agent.sh": "no module 'comand'",
}


@pytest.mark.parametrize("text", ASKED)
def test_what_is_wrong_is_said_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "#!/bin/sh\n")
    program(tmp_path, "echo\n", "bare")
    program(tmp_path, "#!/no/such/thing -x\n", "odd")
    (tmp_path / "plain.txt").write_text("")
    with pytest.raises(LabError) as raised:
        load_driver(text)
    assert ASKED[text] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_its_version_is_its_bytes_and_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "#!/bin/sh\n")
    first = load_driver("command:./agent.sh a")
    assert (first.name, first.evidence, first.model) == ("command:./agent.sh a", "live", None)
    assert load_driver("command:./agent.sh b").version != first.version
    assert load_driver("command:./agent.sh a").version == first.version
    script = load_driver("command:sh agent.sh").version
    program(tmp_path, "#!/bin/sh\n# changed\n")
    assert load_driver("command:./agent.sh a").version != first.version
    assert load_driver("command:sh agent.sh").version != script
    assert load_driver("command[agentd]:./agent.sh --model small").model == "small"
    assert load_driver("command[model=large]:./agent.sh").model == "large"


# ---- its end


def test_nothing_is_left_when_the_run_is_over(tmp_path: Path) -> None:
    made = make(f"[jsonl]:{PYTHON} {MOODY} good {tmp_path}")
    assert isinstance(made, Command)
    suite = write_suite(tmp_path, some(0))
    for _ in range(2):
        run = evaluate(suite, made, trials=2, workers=2, save_run=False)
        assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 4
        assert alive(str(tmp_path)) == []
    made.close()
    run = evaluate(suite, f"command:{program(tmp_path, WHERE)}", save_run=False)
    for kept in run.transcripts.to_pylist():
        where = Path(kept["notes"][-1])
        assert where.parent.name.startswith("agentbench-lab-") and not where.parent.exists()


LAB = """
import os, sys, threading, time
sys.path.insert(0, {root!r})
from agentbench_lab.drivers.command import make
from agentbench_lab.drivers.base import Context
from agentbench_lab.cases import Task
class Tools:
    names = (); tools = ()
def run():
    task = Task("Describe Cart", ("tmct_describe",))
    make({text!r})(task, Tools(), Context(None, task, seed="0", trial=1))
threading.Thread(target=run, daemon=True).start()
sys.stdin.read()
"""


def test_it_ends_with_the_process_that_began_it_however_that_ends(tmp_path: Path) -> None:
    """Also by SIGKILL, when nobody can say a word: the program hears nothing of its stdin, and so does its helper."""
    mark = f"5{os.getpid()}"
    agent = program(tmp_path, f"#!/bin/sh\nsleep {mark} &\nwait\n")
    code = LAB.format(root=str(ROOT), text=str(agent))
    folder = tmp_path / "tmp"
    folder.mkdir()
    env = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=env) as lab:
        until = time.monotonic() + 20
        while not alive(f"sleep {mark}"):
            assert time.monotonic() < until and lab.poll() is None
            time.sleep(0.02)
        assert len(list(folder.glob("agentbench-lab-*"))) == 1
        time.sleep(0.1)  # it is noted once it has begun
        lab.kill()
    assert gone(f"sleep {mark}")
    assert gone(str(agent))
    until = time.monotonic() + 5
    while list(folder.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_it_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    run = evaluate(
        write_suite(tmp_path, some(0)),
        moody("good"),
        trials=3,
        workers=2,
        executor="processes",
        save_run=False,
    )
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 6
    assert gone(str(MOODY))


def test_called_outside_a_run_it_speaks_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    from agentbench_lab.drivers.base import Context
    from agentbench_lab.worlds.toolbox import Toolbox

    from ..doing import tiny_world

    task: Any = Task("Describe Cart", ("tmct_describe",))
    box = Toolbox(tiny_world(), task.tools)
    made = make(f"{PYTHON} {MOODY} chatter")
    try:
        done = made(task, box, Context(box, task, seed="0", trial=1))
    finally:
        made.close()
    assert [call.name for call in done.calls] == ["tmct_describe"]
    assert "Loading model" in capsys.readouterr().out
