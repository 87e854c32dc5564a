"""Programs as drivers over lines of JSON: real agents climb, and hostile ones are judged, each in its own trial only."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task, load_suite
from agentbench_lab.drivers import command
from agentbench_lab.drivers.command import Command, make
from agentbench_lab.drivers.command_asked import ENVIRONMENT
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.drivers.loading import load_driver
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
        assert len([line for line in text.splitlines() if line.strip() and line[0] not in "#/"]) <= 10
        assert text in page


SCAFFOLDS = ("once", "linear", "fan_out_4", "durable:linear")
WORDS = {
    "first_tool.sh": "{0}/first_tool.sh",
    "first_tool.mjs": "node {0}/first_tool.mjs",
    "first_tool.py": "{1} {0}/first_tool.py",
    "climb.sh": "{0}/climb.sh",
    "climb.mjs": "node {0}/climb.mjs",
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_the_examples_run_under_every_scaffold(name: str, scaffold: str) -> None:
    """On a request of one part, and on one of four: each part calls what it would call alone, and no worker fails."""
    if name.endswith(".mjs") and NODE is None:
        pytest.skip("node is not installed: an agent in JavaScript cannot run")
    driver = f"command:{WORDS[name].format(EXAMPLES, PYTHON)}"
    parts = 4 if scaffold != "once" else 1
    run = evaluate("wide", driver, scaffolds=[scaffold], only="wide-01-a,wide-04-a", save_run=False)
    assert [row.produced.stop for row in run.product] == ["done" if "first" in name else "refused"] * 2
    called = [[entry.name for entry in row.produced.ledger] for row in run.product]
    assert called == ([["find_boat"], ["find_boat"] * parts] if "first" in name else [[], []])


@pytest.mark.parametrize("scaffold", SCAFFOLDS[1:])
def test_an_agent_in_shell_climbs_under_every_scaffold(scaffold: str) -> None:
    driver = f"command:{EXAMPLES}/climb.sh"
    run = evaluate("ladder", driver, scaffolds=[scaffold], group="TOOL-0,TOOL-1", ladder=True, save_run=False)
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 40
    assert run.card.envelope[0].reached == "TOOL-1"


ROLES = """\
import json, sys
known = json.load(open(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    if "task" not in message:
        continue
    task = message["task"]
    whole = next(one for one in known if set(task["parts"]) <= set(one["parts"]))["calls"]
    mine = {"": whole, "part": [whole[task["part"] or 0]], "synthesis": []}[task["role"]]
    for name, given in sum(mine, []):
        print(json.dumps({"call": {"name": name, "input": given}}), flush=True)
        sys.stdin.readline()
    assert (task["role"] == "synthesis") == (task["tools"] == [])
    print(json.dumps({"final": {}}), flush=True)
"""


@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_a_program_is_told_its_role_and_its_part(tmp_path: Path, scaffold: str) -> None:
    """One that does what its part is for, and nothing else, solves every width; a synthesis calls nothing."""
    cases = [case for case in load_suite("wide").cases if case.id.endswith("-a")]
    known = []
    for case in cases:
        assert case.gold is not None
        made = iter([call.name, call.input] for call in case.gold.calls)
        calls = [[next(made) for _ in range(count)] for count in case.gold.parts]
        known.append({"parts": case.task.parts, "calls": calls})
    (tmp_path / "known.json").write_text(json.dumps(known), encoding="utf-8")
    (tmp_path / "agent.py").write_text(ROLES, encoding="utf-8")
    driver = f"command:{PYTHON} {tmp_path}/agent.py {tmp_path}/known.json"
    run = evaluate("wide", driver, scaffolds=[scaffold], only="*-a", save_run=False)
    assert {row.case_id: row.verdict.outcome for row in run.product} == {case.id: "solved" for case in cases}


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
    "a final that is none": ("driver_error", "wrote a final that is no object: {\"answer\": \"42\"} is one"),
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
    outcome, why = MOODS[mood]
    limits = Limits(wall_s=0.8 if outcome == "timeout" else 20, tokens=100, tool_calls=2500)
    # those that are waited for are waited for together
    workers = 3 if outcome == "timeout" or mood == "closes stdout" else 1
    driver = moody(mood, way, str(tmp_path))
    run = evaluate(suite, driver, trials=3, workers=workers, limits=limits, save_run=False)
    for row in run.product:
        if row.case_id == "t0-order":
            assert row.verdict.outcome == "correct_calls", row.produced.why
        else:
            assert row.verdict.outcome == outcome, row.produced.why
            assert why in (row.produced.why or "")
    assert len(run.product) == 6
    assert gone(str(tmp_path))


CLUMSY = """\
import sys, time
for line in sys.stdin:
    id = line.split('"id":"')[1].split('"')[0]
    sys.stdout.buffer.write(eval(sys.argv[1]).replace(b"ID", id.encode()))
    sys.stdout.buffer.flush()
    time.sleep(30)
"""
WRITES: dict[bytes, tuple[str, str]] = {
    b"": ("timeout", "out of time after 1.5 s; it had written nothing on stdout (is each line flushed?); it was"),
    b'{"id": "ID", "final": {"refused": true}}': ("timeout", "it began a line on stdout and did not end it"),
    b"INFO: I think\nhm\n": ("timeout", "it wrote no message, and what it wrote is skipped (the last begins 'hm')"),
    b'{"id": "ID", "call": {"name": "tmct_describe", "input": {"symbol": "Cart"}}}\nhm\n': ("timeout", "1.5 s; it was"),
    b'\xef\xbb\xbf{"id": "ID", "final": {"refused": true}}\n': ("over_refusal", ""),
    b'{"final": {"refused": true}}\n': ("over_refusal", ""),
    b"{'id': 'ID'}\n": ("driver_error", "line 1 column 2 (char 1) (it begins \"{'id': '"),
    b'{\n  "id": "ID"\n}\n': ("driver_error", "(it begins '{'); a message is one line"),
    b'{"id": "ID", "type": "answer"}\n': ("driver_error", "failed (it begins '{\"id\": \"ID\", \"type\": \"answer\"}')"),
    b'{"level": "info"}\n': ("timeout", "the last begins '{\"level\": \"info\"}'"),
    b'{"id": 1, "final": {"refused": true}}\n': ("driver_error", "wrote a final with an id that is not the task's"),
    b'{"id": "ID", "final": "42"}\n': ("driver_error", 'wrote a final that is no object: {"answer": "42"} is one'),
    b'{"id": "ID", "call": "x"}\n': ("driver_error", 'no object: {"name": "a_tool", "input": {}} is one'),
    b'{"id": "ID", "spend": 5}\n': ("driver_error", 'wrote a spend that is no object: {"output": 12} is one'),
    b'{"id": "ID", "call": {"function": {}}}\n': ("driver_error", "not {name, input}; it has 'function'"),
    b'{"id": "ID", "failed": {"mesage": "down"}}\n': ("driver_error", "the key 'mesage' (did you mean 'message'?)"),
    b'{"id": "ID", "failed": {"retry_after": "soon"}}\n': ("driver_error", "retry_after is no number of seconds"),
    b'{"id": "ID", "failed": "down"}\n': ("excluded", "infrastructure: down"),
}  # fmt: skip


@pytest.mark.parametrize("written", WRITES)
def test_what_a_clumsy_program_did_is_said(tmp_path: Path, written: bytes) -> None:
    """And played back from a recording it is the same."""
    (tmp_path / "agent.py").write_text(CLUMSY, encoding="utf-8")
    suite = write_suite(tmp_path, some(0)[:1])
    driver = f"command:{PYTHON} {tmp_path / 'agent.py'} {shlex.quote(repr(written))}"
    outcome, why = WRITES[written]
    limits = Limits(wall_s=1.5 if outcome == "timeout" else 20)
    tape = tmp_path / "tape.jsonl"
    ((_, (found, said)),) = told(
        evaluate(suite, driver, limits=limits, retries=0, record=tape, save_run=False)
    ).items()
    assert found == outcome and why in said
    assert told(evaluate(suite, f"replay:{tape}", limits=limits, retries=0, save_run=False)) == {
        "t0-cart": (found, said)
    }


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
def test_b12_the_limit_of_time_is_a_bound(tmp_path: Path, way: str) -> None:
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
        said = "it wrote no message, and what it wrote is skipped (the last begins 'started')"
        assert row.produced.why == f"out of time after 1 s; {said}; it was ended: exit null"
        assert kept["stdout"] == "started\n"  # and no file of the trial before


def test_b12_the_command_as_reported(tmp_path: Path) -> None:
    mark = f"5{os.getpid()}"
    driver = f"command:sh -c 'sleep {mark} & echo started; wait'"
    began = time.monotonic()
    run = evaluate(write_suite(tmp_path, some(0)[:1]), driver, limits=Limits(wall_s=1.0), save_run=False)
    assert time.monotonic() - began < 3.0
    (row,), (kept,), (trial,) = run.product, run.transcripts.to_pylist(), run.trials.to_pylist()
    assert (row.verdict.outcome, trial["excluded"], kept["stdout"]) == ("timeout", None, "started\n")
    assert row.produced.why.endswith("; it was ended: exit null")
    assert alive(f"sleep {mark}") == []


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
    task = json.loads(kept["stderr"])["task"]
    assert list(task)[:2] == ["request", "tools"]  # as the examples in shell rely on
    assert set(task) == {
        "request", "tools", "role", "part", "schemas", "policy", "history", "parts", "trace", "goals", "limits", "seed", "trial",
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
    "command:./agent.sh | tee log": "no shell runs it, and '|' is for one; a shell does in sh -c '...'",
    "command:cd there && ./agent.sh": "no shell runs it, and '&&' is for one",
    "command:./agent.sh --pattern='x | y' > log": "no shell runs it, and '>' is for one",
    "command:~/agent.sh": "no shell runs it, and '~/agent.sh' is for one",
    "command:$HOME/agent.sh": "no shell runs it, and '$HOME/agent.sh' is for one",
    "command:sh agnt.sh": "there is no file 'agnt.sh' for sh to run (did you mean 'agent.sh'?)",
    "command[jsnl]:./agent.sh": "no option 'jsnl' (did you mean 'jsonl'?)",
    "command[modle=x]:./agent.sh": "no option 'modle=x' (did you mean 'model='?)",
    "command[spawn,agentd]:./agent.sh": "spawn and agentd exclude each other",
    "command[env=NOT_SET_HERE]:./agent.sh": "env=NOT_SET_HERE: there is no such variable",
    "command:./agent.sh --mode {native}": "{native} is filled in by a scaffold native:NAME",
    "command:sh": "sh has nothing to run, and would take what it is told for its program",
    "command:/bin/sh": "/bin/sh has nothing to run",
    "command[spawn]:bash -": "bash has nothing to run",
    "command:python3 -u": "python3 has nothing to run",
    "command:python3 -m no_such_one": "python3 finds no module 'no_such_one' from an empty folder",
    "command:python3 -W ignore -m own": "python3 finds no module 'own' from an empty folder, where it runs (here:",
    "command[here]:python3 -m own.no": "python3 finds no module 'own.no' from the working folder",
    "comand:./agent.sh": "no module 'comand'",
}


@pytest.mark.parametrize(
    "more",
    [
        "'|'",
        r'"a\"b"',
        "'a | b'",
        "x&y",
        "#",
        "~",
        '--pattern="x | y"',
        "--sep=' ; '",
        r'-e"a\" > b"',
        r"a\ \| b",
        "--x='|' '||'",
    ],
)
def test_what_is_in_quotes_is_for_no_shell(tmp_path: Path, more: str) -> None:
    agent = program(tmp_path, "#!/bin/sh\n")
    found = make(f"{agent} {more}")
    assert found.program.argv == (str(agent), *shlex.split(more))


@pytest.mark.parametrize("text", ASKED)
def test_what_is_wrong_is_said_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "#!/bin/sh\n")
    program(tmp_path, "echo\n", "bare")
    program(tmp_path, "#!/no/such/thing -x\n", "odd")
    (tmp_path / "plain.txt").write_text("")
    (tmp_path / "own").mkdir()
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


def test_its_version_is_all_that_it_is_told_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file behind an option, a module, a package; of a variable handed on its name, and nothing of its value."""
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "#!/bin/sh\n")
    made = [tmp_path / name for name in ("some.toml", "one.py", "many/__init__.py", "many/within.py")]
    made[2].parent.mkdir()
    for file in made:
        file.write_text("0")

    def versions() -> dict[str, str]:
        texts = (
            ":./agent.sh --config=some.toml",
            ":python3 -m one",
            ":python3 -m many",
            ":python3 -u -m many.within",
        )
        return {text: load_driver(f"command[here]{text}").version for text in texts}

    seen = versions()
    assert seen == versions()
    for file, changed in zip(made, ([0], [1], [2], [2, 3]), strict=True):
        file.write_text("1" * (2 + len(seen)))
        now = versions()
        assert [at for at, text in enumerate(now) if now[text] != seen[text]] == changed
        seen = now
    assert (
        load_driver("command:./agent.sh --config=some.toml").function.program.argv[1] == f"--config={made[0]}"
    )
    monkeypatch.setenv("HANDED_ON", "first-value")
    first = load_driver("command[env=HANDED_ON]:./agent.sh").version
    monkeypatch.setenv("HANDED_ON", "second-value")
    assert load_driver("command[env=HANDED_ON]:./agent.sh").version == first
    assert load_driver("command:./agent.sh").version != first


# ---- what this machine lacks

SHORT = """
import os, resource, sys
sys.path.insert(0, {root!r})
from agentbench_lab.drivers.command import make
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.cases import Task
class Tools:
    names = (); tools = ()
driver = make({text!r})
def once():
    task = Task("Describe Cart", ("tmct_describe",))
    try:
        return driver(task, Tools(), Context(None, task, seed="0", trial=1)).stop
    except InfrastructureError as error:
        return str(error)
    finally:
        driver.close()
assert once() == "refused"
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
while len(held) < 64:
    try:
        held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        break
for free in range(12):
    print(free, once())
    os.close(held.pop())
print("more", [once() for _ in range(3)])
"""


@pytest.mark.parametrize("options", ["", "[spawn]:"])
def test_a_lack_of_this_machine_is_not_the_agents(tmp_path: Path, options: str) -> None:
    """A real limit of open files, with none left, one left, and so on: no trial is judged by it, and none lost."""
    agent = program(tmp_path, REFUSES)
    script = SHORT.format(root=str(ROOT), text=f"{options}{agent}")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    said = [line.partition(" ")[2] for line in lines]
    assert set(said) == {f"command: {agent} cannot be started: Too many open files", "refused"}
    assert said == sorted(said), "first it is short, and then there is enough"
    assert last == "more ['refused', 'refused', 'refused']"


REFUSES = """#!/bin/sh
while read -r line; do id=${line#*\\"id\\":\\"} id=${id%%\\"*}
echo "{\\"id\\":\\"$id\\",\\"final\\":{\\"refused\\":true}}"; done
"""


def test_without_a_folder_to_run_in_it_is_tried_again_and_excluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, f"command:{program(tmp_path, REFUSES)}", retries=1, save_run=False)
    (row,) = run.product
    assert (row.verdict.owner, run.attempts.num_rows) == ("environment", 2)
    assert "command: no folder to run in: No such file or directory" in str(row.verdict.excluded)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (lambda agent: agent.unlink(), "No such file or directory"),
        (lambda agent: agent.write_bytes(b"\0\1\2"), "Exec format error"),
    ],
)
def test_a_program_that_went_after_it_was_named_stops_the_run(tmp_path: Path, after: Any, why: str) -> None:
    agent = program(tmp_path, REFUSES)
    made = make(str(agent))
    after(agent)
    with pytest.raises(LabError) as raised:
        evaluate(write_suite(tmp_path, some(0)), made, save_run=False)
    assert str(raised.value) == f"command: {agent} cannot be started: {why}"


# ---- its end


def test_it_is_closed_and_begun_from_many_threads(tmp_path: Path) -> None:
    """Closed again and again while trials begin: nothing is left behind, at the end of the process neither."""
    agent = program(tmp_path, REFUSES, f"many{os.getpid()}.sh")
    made, before = make(str(agent)), atexit._ncallbacks()
    went: list[str] = []

    class Tools:
        names = tools = ()

    def trials() -> None:
        for _ in range(25):
            task = Task("Describe Cart", ("tmct_describe",))
            try:
                went.append(made(task, Tools(), Context(None, task, seed="0", trial=1)).stop)  # type: ignore[arg-type]
            except InfrastructureError as error:
                went.append(str(error).partition(":")[0])

    threads = [threading.Thread(target=trials) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        made.close()
    for thread in threads:
        thread.join()
    made.close()
    assert len(went) == 100 and set(went) <= {"refused", "driver_error", "command"}
    assert alive(agent.name) == []
    assert atexit._ncallbacks() <= before + 1 and made not in command._begun


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
from agentbench_lab.drivers.context import Context
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
        moody("good", "jsonl", str(tmp_path)),
        trials=3,
        workers=2,
        executor="processes",
        save_run=False,
    )
    assert [row.verdict.outcome for row in run.product] == ["correct_calls"] * 6
    assert gone(str(tmp_path))


def test_called_outside_a_run_it_speaks_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    from agentbench_lab.drivers.context import Context
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
