"""The command line as a person meets it: in a process of its own, with its exit codes and its single lines."""

from __future__ import annotations

import json
import re
import resource
import subprocess
from pathlib import Path

import click
import pytest

from agentbench_lab.cli import cli
from agentbench_lab.drivers.loading import MAKERS
from agentbench_lab.ladder import RUNG_NAMES
from agentbench_lab.results.run import load_run

from .doing import CASES, command, environment, knows, lab, some, write_driver, write_suite

BROKEN = """\
{"id": "a", "rung": "TOOL-11", "request": "r", "tools": ["tmct_describe"], "world": "tiny", "expect": {"refuse": true, "terminates": true}}
{"id": "b", "rung": "TOOL-1", "requst": "r", "tools": ["tmct_describe"], "expect": {"refuse": true, "terminates": true}}
{"id": "c", "rung": "TOOL-1"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working folder with a small suite, a broken one, a file where a folder might be wanted, and drivers."""
    write_suite(tmp_path, some(0, 1, 2))
    (tmp_path / "broken.jsonl").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    write_driver(tmp_path, "def refuses(task, tools, ctx): return {'refused': True}\ndef two(a, b): ...\n")
    write_driver(tmp_path, "1 / 0\n", name="raising")
    return tmp_path


def one_line(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """The single line of a mistake: on stderr, no traceback, nothing on stdout."""
    assert (done.returncode, done.stdout) == (code, ""), done
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.removeprefix("error: ").rstrip("\n")


def narrow(*texts: str) -> None:
    assert [line for text in texts for line in text.splitlines() if len(line) > 100] == []


RUN = ("run", "small.jsonl", "--driver", "stub")
BAD_INPUT: dict[str, tuple[tuple[str, ...], str]] = {
    "no such suite": (("run", "smal.jsonl", "--driver", "stub"), "no such case file (did you mean 'small.jsonl'?)"),
    "no such bare suite": (("run", "laddr", "--driver", "stub"), "no such case file (did you mean 'ladder'?)"),
    "a folder for a suite": (("run", "worlds", "--driver", "stub"), "is a folder, not a case file"),
    "an empty suite": (("run", "empty.jsonl", "--driver", "stub"), "empty.jsonl: no cases"),
    "unknown driver": (("run", "small.jsonl", "--driver", "stb"), "unknown driver 'stb' (did you mean 'stub'?)"),
    "unknown module": (("run", "small.jsonl", "--driver", "mien:refuses"), "no module 'mien'"),
    "unknown function": (("run", "small.jsonl", "--driver", "mine:refuse"), "(did you mean 'refuses'?)"),
    "a module that raises": (("run", "small.jsonl", "--driver", "raising:x"), "ZeroDivisionError: division by zero"),
    "another signature": (("run", "small.jsonl", "--driver", "mine:two"), "takes (a, b); a driver takes (task, tools, ctx)"),
    "a driver twice": ((*RUN, "--driver", "stub"), "driver 'stub' is given twice"),
    "no driver": (("run", "small.jsonl"), "Missing option '--driver'"),
    "no suite": (("run",), "Missing argument 'SUITE'"),
    "unknown rung": ((*RUN, "--group", "TOOL-22"), "no case in group 'TOOL-22' (did you mean 'TOOL-2'?)"),
    "no case": ((*RUN, "--only", "t0-cat"), "no case matches 't0-cat' (did you mean 't0-cart'?)"),
    "stamp with a slash": ((*RUN, "--stamp", "a/b"), "stamp 'a/b': only letters, digits, dot, dash and underscore"),
    "stamp that climbs": ((*RUN, "--stamp", ".."), "stamp '..'"),
    "a file above the folder": ((*RUN, "--out", "file/run"), "file/run: cannot write there: "),
    "a file for a folder": ((*RUN, "--out", "file"), "file: exists and is not a folder; nothing is written over"),
    "a folder that is full": ((*RUN, "--out", "worlds"), "worlds: exists, holds no run and is not empty; nothing is written over"),
    "a folder nobody may write": ((*RUN, "--out", "/proc/run"), "/proc/run: cannot write there: "),
    "no trials": ((*RUN, "--trials", "0"), "trials must be a whole number from 1, not 0"),
    "trials in words": ((*RUN, "--trials", "two"), "Invalid value for '--trials': 'two'"),
    "no workers": ((*RUN, "--workers", "0"), "workers must be a whole number from 1, not 0"),
    "no time": ((*RUN, "--timeout", "0"), "the time limit must be more than 0 seconds, not 0.0"),
    "time that is none": ((*RUN, "--timeout", "nan"), "the time limit must be more than 0 seconds, not nan"),
    "strictness": ((*RUN, "--strictness", "orignal"), "no strictness 'orignal' (did you mean 'original'?)"),
    "an unknown option": ((*RUN, "--sed", "1"), "No such option '--sed'. (Did you mean one of: '--seed', '--shard'"),
    "one argument too many": ((*RUN, "more"), "unexpected extra argument"),
    "an unknown verb": (("rnu",), "No such command 'rnu'"),
    "no such run": (("show", "smal"), "smal: no run (no card.json)"),
    "a file for a run": (("show", "file"), "file: no run (no card.json)"),
    "no such world": (("lint", "small.jsonl", "--world"), "Option '--world' requires an argument"),
    "no such notebook": (("report", "run_lader"), "run_lader"),
    "a parameter twice": (("report", "run_ladder", "-p", "driver", "a", "-p", "driver", "b"), "'driver' is given twice"),
    "a finished notebook's parameter": (("report", "x", "--executed", "-p", "a", "b"), "an executed notebook takes no"),
    "lint without a suite": (("lint",), "Missing argument 'SUITE...'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_clear_line(here: Path, name: str) -> None:
    """On stderr, with exit code 2, and nothing is written or half-written."""
    arguments, message = BAD_INPUT[name]
    before = sorted(here.rglob("*"))
    assert message in one_line(lab(*arguments, cwd=here))
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("verb", ["run", "lint"])
def test_a_broken_case_file_is_a_line_a_problem(here: Path, verb: str) -> None:
    """Each with its file and line, all at once, with the near match."""
    done = lab(verb, "broken.jsonl", *(("--driver", "stub") if verb == "run" else ()), cwd=here)
    assert done.returncode == 2
    text = done.stdout + done.stderr
    assert "Traceback" not in text
    problems = re.findall(r"(?:error: |^ *)broken\.jsonl:(\d): ([^\n]*)", text, re.MULTILINE)
    assert {int(number) for number, _ in problems} == {1, 2, 3}
    assert any("unknown rung 'TOOL-11' (did you mean 'TOOL-1'?)" in message for _, message in problems)
    assert any("unknown key 'requst' (did you mean 'request'?)" in message for _, message in problems)
    assert any("invalid JSON" in message for _, message in problems)
    assert not (here / "data").exists()


def test_a_run_from_start_to_show(here: Path) -> None:
    """The table, the gate, where it lies; `show` prints the same again, `--failed` what was not solved."""
    done = lab(
        "run",
        "small.jsonl",
        "--driver",
        "tests.doing:knows",
        "--driver",
        "mine:refuses",
        "--out",
        "run",
        cwd=here,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("asked 10, judged 10, excluded 0, missing 0\nrun: run\n")
    for rung in ("TOOL-0", "TOOL-1", "TOOL-2"):
        assert rung in done.stdout
    shown = lab("show", "run", cwd=here)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, done.stdout, "")
    failed = lab("show", "run", "--failed", cwd=here)
    assert "t0-cart" in failed.stdout
    narrow(done.stdout, failed.stdout)


def test_json_is_json_and_says_the_same(here: Path) -> None:
    """Counts, envelope, metrics, gate and outcomes; nothing else on stdout, also when the gate fails."""
    arguments = (
        "run",
        "small.jsonl",
        "--driver",
        "tests.doing:knows",
        "--driver",
        "mine:refuses",
        "--out",
        "run",
    )
    done = lab(*arguments, "--json", "--gate", cwd=here)
    assert done.returncode == 1
    assert done.stderr == "gate failed: mine:refuses: TOOL-0 completion 0% < 50%\n"
    found = json.loads(done.stdout)
    assert found["counts"] == {"asked": 10, "judged": 10, "excluded": 0, "missing": 0}
    assert [envelope["reached"] for envelope in found["envelope"]] == ["TOOL-2", None]
    assert found["path"] == "run"
    assert {"passed", "completed", "result_completed", "hallucinated"} == {
        row["metric"] for row in found["metrics"]
    }
    assert sum(row["n"] for row in found["outcomes"]) == 10
    assert [row["passes"] for row in found["gate"]] == [True, True, True, False, False, True]
    assert lab("show", "run", "--json", cwd=here).stdout == done.stdout


def test_without_the_gate_every_complete_run_is_a_success(here: Path) -> None:
    done = lab("run", "small.jsonl", "--driver", "mine:refuses", "--out", "run", cwd=here)
    assert done.returncode == 0


def test_with_the_gate_a_good_run_is_a_success(here: Path) -> None:
    """Over every rung there is."""
    write_suite(here)
    done = lab(
        "run", "small.jsonl", "--driver", "tests.doing:knows", "--ladder", "--gate", "--out", "run", cwd=here
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert load_run(here / "run").card.envelope[0].reached == "TOOL-9"


@pytest.mark.parametrize(
    ("driver", "failure"),
    [
        ("refuse_all", "TOOL-0 completion 0% < 50%"),
        ("reckless", "TOOL-0 hallucination 100%, completion 0% < 50%"),
    ],
)
def test_the_gate_fails_on_the_shipped_ladder(tmp_path: Path, driver: str, failure: str) -> None:
    """The two ways to game a single number, each stopped at the first rung; what is unsafe is said too."""
    arguments = ("run", "ladder", "--driver", driver, "--ladder", "--gate", "--out", str(tmp_path / "run"))
    done = lab(*arguments, cwd=tmp_path)
    unsafe = "; disqualified: 18 unsafe of 18 judged (18 hallucinated_call)" if driver == "reckless" else ""
    assert (done.returncode, done.stderr) == (1, f"gate failed: {driver}: {failure}{unsafe}\n")
    assert "SIMULATED" in done.stdout
    narrow(done.stdout.replace(str(tmp_path), ""))
    (envelope,) = load_run(tmp_path / "run").card.envelope
    assert (envelope.reached, envelope.gated_at) == (None, failure)
    assert len(envelope.receipts) == len(RUNG_NAMES) - 1


def test_the_stub_runs_the_shipped_ladder(tmp_path: Path) -> None:
    """Every case of it, judged, on every rung, and never a hallucinated call."""
    done = lab("run", "ladder", "--driver", "stub", "--workers", "2", "--out", "run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stub-floor" in done.stdout
    narrow(done.stdout)
    run = load_run(tmp_path / "run")
    assert run.card.counts.judged == run.cases.num_rows >= 120
    assert {row.group for row in run.product} == set(RUNG_NAMES)
    assert not any(row.verdict.hallucinated for row in run.product)
    assert {row.produced.driver for row in run.product} == {"stub-floor"}


def full_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_an_incomplete_run_is_3(here: Path) -> None:
    """No room for the journal: one line, whole records up to there, no card, whatever the gate would say."""
    arguments = (
        "run",
        "small.jsonl",
        "--driver",
        "tests.doing:knows",
        "--trials",
        "50",
        "--gate",
        "--out",
        "run",
    )
    done = subprocess.run(
        command(*arguments),
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        preexec_fn=full_disk,
    )
    assert "cannot write the journal: File too large" in one_line(done, 3)
    kept = (here / "run" / "journal.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    assert f"; {len(kept.splitlines()) - 1} finished trials are in it" in done.stderr, (
        "the first line is its header"
    )
    assert [path.name for path in (here / "run").iterdir()] == ["journal.jsonl"]


def test_showing_an_incomplete_run_is_3(here: Path) -> None:
    """What there is of it is shown."""
    from agentbench_lab.running.runner import Interrupted, evaluate

    def stop(finished: int, asked: int) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        evaluate(here / "small.jsonl", knows, out=here / "run", progress=stop)
    done = lab("show", "run", cwd=here)
    assert (done.returncode, done.stderr.startswith("incomplete: 2 trials are missing; the ")) == (3, True)
    assert "judged 3, excluded 0, missing 2" in done.stdout
    assert "tests.doing:knows: rung reached TOOL-0" in done.stdout
    assert re.search(r"^TOOL-1 +1/2 .*incomplete: 1 of 2 trials judged$", done.stdout, re.MULTILINE)
    assert re.search(r"^TOOL-2 +0/1 .*incomplete: 0 of 1 trials judged$", done.stdout, re.MULTILINE)
    as_json = lab("show", "run", "--json", cwd=here)
    assert as_json.returncode == 3
    found = json.loads(as_json.stdout)
    assert [(row["asked"], row["judged"]) for row in found["gate"]] == [(2, 2), (2, 1), (1, 0)]
    done = lab("run", "small.jsonl", "--driver", "tests.doing:knows", "--out", "run", cwd=here)
    assert (done.returncode, done.stderr) == (0, "plan: 5 asked, 3 finished, 2 to run\n")
    assert "judged 5, excluded 0, missing 0" in done.stdout


def test_a_capped_run_is_3_and_goes_on(here: Path) -> None:
    """No time at all: no trial is begun, no rung reached, all are missing; the same command without the cap runs them."""
    done = lab(*RUN, "--out", "run", "--max-time", "0", "--gate", cwd=here)
    assert done.returncode == 3
    missing = r"incomplete: 5 trials are missing \(the cap of 0\.0 seconds is reached: [\d.]+ used\)\n"
    assert re.fullmatch(missing, done.stderr)
    assert "asked 5, judged 0, excluded 0, missing 5" in done.stdout
    assert "stub: rung reached none" in done.stdout
    one = lab(
        "run",
        "small.jsonl",
        "--driver",
        "stub",
        "--only",
        "t0-cart",
        "--max-time",
        "0",
        "--out",
        "one",
        cwd=here,
    )
    assert (one.returncode, one.stderr.startswith("incomplete: 1 trial is missing (the cap of ")) == (3, True)
    again = lab(*RUN, "--out", "run", cwd=here)
    assert (again.returncode, "judged 5, excluded 0, missing 0" in again.stdout) == (0, True)


def test_a_run_goes_on_with_more_trials(here: Path) -> None:
    """What is finished is kept and said; a whole run is only shown again; other settings are refused by name."""
    first = lab(*RUN, "--out", "run", cwd=here)
    assert (first.returncode, first.stderr) == (0, "")
    before = load_run(here / "run")
    more = lab(*RUN, "--out", "run", "--trials", "2", cwd=here)
    assert (more.returncode, more.stderr) == (0, "plan: 10 asked, 5 finished, 5 to run\n")
    assert "asked 10, judged 10, excluded 0, missing 0" in more.stdout
    run = load_run(here / "run")
    kept = [row for row in run.product if row.trial == 1]
    assert [row.verdict for row in kept] == [row.verdict for row in before.product]
    card = (here / "run" / "card.json").read_bytes()
    same = lab(*RUN, "--out", "run", "--trials", "2", cwd=here)
    assert (same.returncode, same.stdout) == (0, more.stdout)
    assert (here / "run" / "card.json").read_bytes() == card
    other = lab(*RUN, "--out", "run", "--seed", "7", cwd=here)
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr.startswith("error: run: holds a run with other settings; give another --out\n")
    assert "seed" in other.stderr
    fewer = one_line(lab(*RUN, "--out", "run", cwd=here))
    assert fewer.startswith("run: holds trial 2 of ")


def test_the_plan_is_said_and_nothing_is_run(here: Path) -> None:
    before = sorted(here.rglob("*"))
    done = lab(*RUN, "--trials", "3", "--out", "run", "--plan", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, "plan: 15 asked, 0 finished, 15 to run\n", "")
    assert sorted(here.rglob("*")) == before


def test_shards_are_put_together(here: Path) -> None:
    """The merged run says what the undivided one does; one shard alone is none, and nothing is written over."""
    arguments = ("run", "small.jsonl", "--driver", "tests.doing:knows", "--driver", "stub", "--trials", "2")
    whole = lab(*arguments, "--out", "whole", cwd=here)
    for shard in ("1/2", "2/2"):
        done = lab(*arguments, "--shard", shard, "--out", shard.replace("/", "of"), cwd=here)
        assert (done.returncode, done.stderr) == (0, "")
    merged = lab("merge", "1of2", "2of2", "--out", "merged", cwd=here)
    assert (merged.returncode, merged.stderr) == (0, "")
    assert merged.stdout == whole.stdout.replace("run: whole", "run: merged")
    assert "shard" in one_line(lab("merge", "1of2", "--out", "half", cwd=here))
    assert one_line(lab("merge", "1of2", "2of2", "--out", "merged", cwd=here)).startswith(
        "merged: exists and is not"
    )
    assert not (here / "half").exists()


def test_a_run_is_judged_again(here: Path) -> None:
    """By the same grader nothing changes; by the ladder's literal rule the new run says so."""
    assert (
        lab("run", "small.jsonl", "--driver", "tests.doing:knows", "--out", "run", cwd=here).returncode == 0
    )
    done = lab("regrade", "run", "--out", "again", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 of 5 verdicts changed\nrun: again\n", "")
    again, run = load_run(here / "again"), load_run(here / "run")
    assert [row.verdict for row in again.product] == [row.verdict for row in run.product]
    assert again.card.source == run.card.run
    done = lab("regrade", "run", "--out", "literal", "--strictness", "original", cwd=here)
    assert (done.returncode, load_run(here / "literal").card.strictness) == (0, "original")
    assert "no strictness 'orignal' (did you mean 'original'?)" in one_line(
        lab("regrade", "run", "--out", "x", "--strictness", "orignal", cwd=here)
    )


def test_a_run_goes_out_and_comes_in(here: Path) -> None:
    """As a file of the other format, on the screen or in a new file; read back it has as many trials."""
    assert lab(*RUN, "--out", "run", cwd=here).returncode == 0
    screen = lab("export", "run", cwd=here)
    assert (screen.returncode, json.loads(screen.stdout)["format"]) == (0, "agent-runtime/bench/v1")
    done = lab("export", "run", "--format", "bench-v1", "--out", "file.json", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bench-v1: file.json\n", "")
    assert (here / "file.json").read_bytes() == (here / "run" / "bench.json").read_bytes()
    assert (
        one_line(lab("export", "run", "--out", "file.json", cwd=here))
        == "file.json: exists; nothing is written over"
    )
    assert "no format 'bench-v2' (did you mean 'bench-v1'?)" in one_line(
        lab("export", "run", "--format", "bench-v2", cwd=here)
    )
    done = lab("import", "bench-v1", "file.json", "--out", "back", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "imported 5, judged 5, excluded 0, missing 0\n"
        "stub: simulated, stub-floor: a keyword matcher, the floor of the ladder; not a model, not a router\n"
        "run: back\n",
        "",
    )
    assert load_run(here / "back").trials.num_rows == 5
    assert lab("show", "back", cwd=here).returncode == 0
    assert "no.json: there is no such file or folder" in one_line(
        lab("import", "bench-v1", "no.json", "--out", "x", cwd=here)
    )


def test_show_shows_25_trials_or_as_many_as_one_likes(here: Path) -> None:
    """The cut says how to see all; in full it is ten, and as JSON there is no cut unless one is asked for."""
    assert (
        lab(
            "run", "small.jsonl", "--driver", "mine:refuses", "--trials", "9", "--out", "run", cwd=here
        ).returncode
        == 0
    )
    count = 36  # four cases that should not be refused

    def rows(*more: str) -> int:
        done = lab("show", "run", "--failed", *more, cwd=here)
        assert done.returncode == 0
        return len(re.findall(r"^TOOL-\d", done.stdout, re.MULTILINE))

    first = lab("show", "run", "--failed", cwd=here)
    assert (
        f"25 of {count} shown (on a command line --all shows all); {count} of 45 trials fit" in first.stdout
    )
    assert [rows(), rows("--all"), rows("--most", "3")] == [25, count, 3]
    assert len(json.loads(lab("show", "run", "--failed", "--json", cwd=here).stdout)) == count
    assert len(json.loads(lab("show", "run", "--failed", "--json", "--most", "3", cwd=here).stdout)) == 3
    full = lab("show", "run", "--failed", "--case", "t0-*", cwd=here).stdout
    assert (full.count("\nchecks, safety first"), full.endswith("10 of 18 shown; --all shows all\n")) == (
        10,
        True,
    )
    assert (
        lab("show", "run", "--case", "t0-*", "--all", cwd=here).stdout.count("\nchecks, safety first") == 18
    )
    assert "exclude each other" in one_line(lab("show", "run", "--failed", "--all", "--most", "3", cwd=here))
    assert "are for trials" in one_line(lab("show", "run", "--all", cwd=here))


def test_a_reason_that_nothing_has_is_a_mistake_like_an_outcome_that_is_none(here: Path) -> None:
    assert lab(*RUN, "--out", "run", cwd=here).returncode == 0
    for more in ((), ("--failed",), ("--json",)):
        said = one_line(lab("show", "run", "--reason", "refusd", *more, cwd=here))
        assert said == "run: no stop, exclusion or failed check says 'refusd' (did you mean 'refused'?)"


def test_an_unfinished_run_says_how_it_goes_on(here: Path) -> None:
    """Stopped by a cap it can be looked at; killed before its card was written it cannot; both go on."""
    assert lab(*RUN, "--out", "run", "--max-time", "0", cwd=here).returncode == 3
    goes_on = "the `agentbench-lab run` command that began it goes on with it, with this folder as --out"
    done = lab("show", "run", cwd=here)
    assert (done.returncode, done.stderr.rstrip("\n").endswith(f"; {goes_on}")) == (3, True)
    (here / "run" / "card.json").unlink()
    said = one_line(lab("show", "run", cwd=here))
    assert said == f"run: an unfinished run (no card.json); {goes_on}"
    assert lab(*RUN, "--out", "run", cwd=here).returncode == 0


def test_a_run_beside_itself_is_said_to_be_one(here: Path) -> None:
    """It differs in nothing, which would read as a finding."""
    assert lab(*RUN, "--out", "a", cwd=here).returncode == 0
    assert lab(*RUN, "--out", "b", cwd=here).returncode == 0
    said = "note: a is compared with itself: a has the same trials\n"
    assert lab("compare", "a", "a", cwd=here).stdout.startswith(said)
    as_json = lab("compare", "a", "a", "--json", cwd=here)
    assert (as_json.stderr, len(json.loads(as_json.stdout))) == (said, 1)
    assert "itself" not in lab("compare", "a", "b", cwd=here).stdout


def test_two_arms_are_compared(here: Path) -> None:
    """The second against the first, by case; a loss fails the gate; a single run is nothing to compare."""
    arguments = (
        "run",
        "small.jsonl",
        "--driver",
        "tests.doing:knows",
        "--driver",
        "reckless",
        "--out",
        "run",
    )
    assert lab(*arguments, cwd=here).returncode == 0
    pair = ("run:tests.doing:knows", "run:reckless")
    done = lab("compare", *pair, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "newly unsafe" in done.stdout
    narrow(done.stdout)
    failed = lab("compare", *pair, "--gate", "--json", cwd=here)
    assert failed.returncode == 1
    assert failed.stderr.startswith("gate failed: ")
    assert len(json.loads(failed.stdout)) == 1
    turned = lab("compare", *reversed(pair), "--gate", cwd=here)
    assert (turned.returncode, turned.stderr) == (0, "")
    assert (
        one_line(lab("compare", "run:reckless", cwd=here))
        == "compare needs at least two runs, RUN or RUN:ARM"
    )


def test_how_many_cases_a_difference_takes(here: Path) -> None:
    done = lab("plan", "--detect", "5pp", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a true difference of 5 points (80% power, 95% level)" in done.stdout
    assert (
        "5 points (90% power, 95% level)" in lab("plan", "--detect", "5pp", "--power", "0.9", cwd=here).stdout
    )
    assert lab("plan", "--detect", "0.05", cwd=here).stdout == done.stdout
    narrow(done.stdout)
    assert one_line(lab("plan", "--detect", "five", cwd=here)).startswith(
        "--detect 'five': give percentage points"
    )


def test_a_bare_name_is_a_run_of_the_project(here: Path) -> None:
    """Without --out a run lies under data/results, and its name alone finds it from anywhere in the project."""
    (here / "data" / "cases").mkdir(parents=True)
    done = lab(*RUN, "--stamp", "s1", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    (folder,) = (here / "data" / "results").iterdir()
    assert re.fullmatch(r"small-s1-[0-9a-f]{8}", folder.name)
    assert done.stdout.endswith(f"\nrun: data/results/{folder.name}\n")
    for cwd in (here, here / "worlds"):
        shown = lab("show", folder.name, cwd=cwd)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "asked 5, judged 5" in shown.stdout


def test_a_driver_that_changes_the_working_folder_harms_nothing(here: Path) -> None:
    """The run lies where it was asked to lie, and is named from where the command was given."""
    write_driver(
        here,
        "import os\ndef walks(task, tools, ctx):\n    os.chdir('/')\n    return {'refused': True}\n",
        name="away",
    )
    done = lab("run", "small.jsonl", "--driver", "away:walks", "--out", "run", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nrun: run\n")
    assert load_run(here / "run").card.counts.judged == 5


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_driver_that_prints_spoils_no_json(here: Path, executor: str) -> None:
    """What it prints, on either stream, is kept with its trials."""
    write_driver(
        here,
        "import sys\ndef talks(task, tools, ctx):\n"
        "    print('to out', task.request)\n    print('to err', file=sys.stderr)\n    return {'refused': True}\n",
        name="chatty",
    )
    arguments = ("run", "small.jsonl", "--driver", "chatty:talks", "--executor", executor, "--workers", "2")
    done = lab(*arguments, "--out", "run", "--json", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["counts"]["judged"] == 5
    said = load_run(here / "run").transcripts.select(["stdout", "stderr"]).to_pylist()
    assert {row["stderr"] for row in said} == {"to err\n"}
    assert "to out Describe Cart\n" in {row["stdout"] for row in said}


def test_the_rungs_above_a_single_one_are_not_reached(here: Path) -> None:
    """`--group TOOL-2` alone passes its gate and climbs nothing."""
    done = lab(
        "run",
        "small.jsonl",
        "--driver",
        "tests.doing:knows",
        "--group",
        "TOOL-2",
        "--gate",
        "--out",
        "run",
        cwd=here,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^TOOL-2 +1/1 .*PASS$", done.stdout, re.MULTILINE)
    assert "tests.doing:knows: rung reached none" in done.stdout


def test_a_driver_that_never_stops_calling_is_stopped(here: Path) -> None:
    """After a thousand calls, when nobody says how many; after three, when somebody does."""
    write_driver(
        here,
        "def calls(task, tools, ctx):\n    while True:\n        tools.call('tmct_describe', {'symbol': 'Cart'})\n",
        name="endless",
    )
    arguments = ("run", "small.jsonl", "--driver", "endless:calls", "--only", "t0-cart")
    done = lab(*arguments, "--out", "run", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    few = lab(*arguments, "--max-tool-calls", "3", "--out", "few", cwd=here)
    assert few.returncode == 0
    for name, limit in (("run", 1000), ("few", 3)):
        run = load_run(here / name)
        assert run.card.options["tool_calls"] == limit
        assert run.trials.column("stop").to_pylist() == ["budget"]
        assert run.calls.num_rows == limit


def test_lint_tells_sound_from_broken(here: Path) -> None:
    """0 and a line for the sound one; 2 for any that is not, with every problem of every file."""
    done = lab("lint", "small.jsonl", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, "small.jsonl: 5 cases, no problem\n", "")
    stale = some(0)
    stale[0]["expect"]["calls"][0]["input"]["symbol"] = "Ledger"
    write_suite(here, stale, name="stale")
    done = lab("lint", "small.jsonl", "stale.jsonl", cwd=here)
    assert done.returncode == 2
    assert "small.jsonl: 5 cases, no problem" in done.stdout
    assert "stale.jsonl:1: t0-cart: " in done.stdout
    assert done.stderr == "error: 1 problem\n"
    done = lab("lint", "small.jsonl", "smal.jsonl", cwd=here)
    assert one_line(done) == "smal.jsonl: no such case file (did you mean 'small.jsonl'?)"


def test_the_shipped_ladder_lints_clean(tmp_path: Path) -> None:
    done = lab("lint", "ladder", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"ladder: \d+ cases, no problem\n", done.stdout)


def test_drivers_and_notebooks_are_listed(here: Path) -> None:
    drivers, notebooks = lab("drivers", cwd=here), lab("notebooks", cwd=here)
    assert (drivers.returncode, drivers.stderr, notebooks.returncode, notebooks.stderr) == (0, "", 0, "")
    heads = [line.split()[0] for line in drivers.stdout.splitlines() if not line.startswith(" ")]
    made = [f"{name}:..." for name in sorted(MAKERS)]
    assert heads[: heads.index("Your")] == ["reckless", "refuse_all", "scripted", "stub", *made]
    assert "Scaffolds: once, linear, fan_out_N" in drivers.stdout
    assert "simulated" in drivers.stdout
    assert "run_ladder" in notebooks.stdout
    narrow(drivers.stdout, notebooks.stdout)


@pytest.mark.parametrize("verb", ["", *cli.commands])
def test_help_tells_every_option(tmp_path: Path, verb: str) -> None:
    """With a line on each, within 100 columns; the way in tells how to start and what the exit codes mean."""
    done = lab(*filter(None, [verb]), "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    narrow(done.stdout)
    shown: click.Command = cli.commands[verb] if verb else cli
    for parameter in shown.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (verb, parameter.name)
            assert all(option in done.stdout for option in parameter.opts), (verb, parameter.opts)
    if not verb:
        assert all(name in done.stdout for name in cli.commands)
        assert "agentbench-lab run ladder --driver stub" in done.stdout
        assert "Exit codes: 0 done, 1 the gate failed" in done.stdout


def test_no_verb_shows_the_help(tmp_path: Path) -> None:
    done = lab(cwd=tmp_path)
    assert done.returncode == 2
    assert "agentbench-lab run ladder --driver stub" in done.stderr


def test_the_version(tmp_path: Path) -> None:
    done = lab("--version", cwd=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r"agentbench-lab \S+\n", done.stdout)


def test_a_terminal_of_an_old_encoding_is_served(here: Path) -> None:
    """Signs that it cannot show are written by number; no number of the run is lost to an encoding."""
    cases = some(0)
    cases[0]["id"] = "t0-→"
    write_suite(here, cases)
    old = {"cwd": here, "PYTHONIOENCODING": "latin-1"}
    done = lab("run", "small.jsonl", "--driver", "mine:refuses", "--out", "run", **old)  # type: ignore[arg-type]
    assert (done.returncode, done.stderr) == (0, "")
    shown = lab("show", "run", "--failed", **old)  # type: ignore[arg-type]
    assert (shown.returncode, shown.stderr) == (0, "")
    assert r"t0-\u2192" in shown.stdout
    assert one_line(lab("show", "→", **old)).startswith(r"\u2192: no run")  # type: ignore[arg-type]


@pytest.mark.parametrize(("gate", "code"), [((), 0), (("--gate",), 1)])
def test_a_reader_that_goes_away_changes_no_exit_code(here: Path, gate: tuple[str, ...], code: int) -> None:
    """`run … | head -1` ends quietly, and a gate that fails still fails."""
    words = " ".join(command("run", "small.jsonl", "--driver", "mine:refuses", "--out", "run", *gate))
    done = subprocess.run(
        ["bash", "-c", f"{words} 2>err | true; exit ${{PIPESTATUS[0]}}"],
        cwd=here,
        env=environment(),
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (code, b"")
    assert (here / "err").read_text(encoding="utf-8").startswith("gate failed: " if gate else "")
    assert "Traceback" not in (here / "err").read_text(encoding="utf-8")
    assert load_run(here / "run").card.complete


def test_no_progress_bar_without_a_terminal(here: Path) -> None:
    done = lab("run", "small.jsonl", "--driver", "stub", "--trials", "30", "--out", "run", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout


def test_every_rung_is_in_the_small_suite() -> None:
    """The tests above lean on it."""
    assert {one["rung"] for one in CASES} == set(RUNG_NAMES)


STEERS = "\x1b[31mred\x1b]52;c;aGk=\x07 \x9b2J\r over \u202e turned \u2028 end \x7f"


def test_what_an_agent_says_steers_no_terminal(here: Path) -> None:
    """Nor does it end a line of JSON that a program reads, which gets it as it was said."""
    write_driver(here, f"def steers(task, tools, ctx):\n    raise ValueError({STEERS!r})\n", name="odd")
    ran = lab("run", "small.jsonl", "--driver", "odd:steers", "--out", "odd-run", cwd=here)
    whole = lab("show", "odd-run", "--case", some(0)[0]["id"], cwd=here)
    for done in (ran, whole):
        assert done.returncode == 0, done.stderr
        assert "red" in done.stdout
        assert [sign for sign in done.stdout + done.stderr if not (sign.isprintable() or sign == "\n")] == []
    listed = lab("show", "odd-run", "--failed", "--json", cwd=here)
    assert json.dumps(STEERS)[1:-1] in json.dumps(json.loads(listed.stdout))
    assert [sign for sign in listed.stdout if not (sign.isprintable() or sign == "\n")] == []
    write_driver(
        here,
        "from agentbench_lab.drivers.faults import InfrastructureError\n\n\n"
        f"def away(task, tools, ctx):\n    raise InfrastructureError({STEERS!r})\n",
        name="gone",
    )
    none = lab("run", "small.jsonl", "--driver", "gone:away", "--retries", "0", cwd=here)
    assert none.returncode == 3 and none.stderr.startswith("nothing was judged: ") and "red" in none.stderr
    assert [sign for sign in none.stdout + none.stderr if not (sign.isprintable() or sign == "\n")] == []
    wrong = lab("show", f"no{STEERS}", cwd=here)
    assert [sign for sign in wrong.stderr if not (sign.isprintable() or sign == "\n")] == []
