"""What drivers print: kept with their trial, on no stream of the run, whatever runs the trials."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.results.run import load_run
from agentbench_lab.running.output import OUTPUT_LIMIT, Said, routed, spoken_by
from agentbench_lab.running.runner import evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.transcripts import Transcript

from ..doing import knows, some, write_driver, write_suite

TALKS = """
import sys

def talks(task, tools, ctx):
    print("asked", task.request)
    print("warned", task.request, file=sys.stderr)
    return {"refused": True}
"""


def talks(task: Any, tools: Any, ctx: Any) -> Transcript:
    """Says on both streams what it was asked."""
    print("asked", task.request)
    print("warned", task.request, file=sys.stderr)
    return knows(task, tools, ctx)


async def talks_async(task: Any, tools: Any, ctx: Any) -> Transcript:
    """The same in pieces, between which other trials speak."""
    for word in ("asked ", task.request, "\n"):
        sys.stdout.write(word)
        await asyncio.sleep(0.01)
    print("warned", task.request, file=sys.stderr)
    return knows(task, tools, ctx)


talks.evidence = talks_async.evidence = "simulated"  # type: ignore[attr-defined]


def said(run: Any) -> list[tuple[str | None, str | None]]:
    return [(row["stdout"], row["stderr"]) for row in run.transcripts.to_pylist()]


def wanted(cases: list[dict[str, Any]]) -> list[tuple[str | None, str | None]]:
    return [(f"asked {one['request']}\n", f"warned {one['request']}\n") for one in cases]


@pytest.mark.parametrize("driver", [talks, talks_async])
@pytest.mark.parametrize("workers", [1, 4])
def test_each_trial_keeps_what_it_said(
    tmp_path: Path, driver: Any, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Side by side and in pieces too; nothing of it reaches the streams of the run, and it is in the saved files."""
    cases = some(0, 1, 3)
    run = evaluate(write_suite(tmp_path, cases), driver, workers=workers, out=tmp_path / "run")
    assert said(run) == wanted(cases)
    assert said(load_run(tmp_path / "run")) == wanted(cases)
    assert capsys.readouterr() == ("", "")


def test_a_process_keeps_what_its_trials_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers in processes of their own write on no stream of the run either."""
    monkeypatch.syspath_prepend(tmp_path)
    write_driver(tmp_path, TALKS, name="talker")
    cases = some(0, 1)
    run = evaluate(
        write_suite(tmp_path, cases), "talker:talks", workers=2, executor="processes", save_run=False
    )
    assert said(run) == wanted(cases)
    assert capfd.readouterr() == ("", "")


def test_the_beginning_is_kept(tmp_path: Path) -> None:
    """20,000 characters of each stream, whatever comes after; half a surrogate pair is no obstacle to saving."""

    def shouts(task: Any, tools: Any, ctx: Any) -> Transcript:
        print("\ud800" + "x" * (OUTPUT_LIMIT - 2), end="")
        for _ in range(3):
            print("yz" * OUTPUT_LIMIT, end="")
        return knows(task, tools, ctx)

    assert OUTPUT_LIMIT == 20_000
    run = evaluate(write_suite(tmp_path, some(0)[:1]), shouts, out=tmp_path / "run")
    ((out, err),) = said(load_run(tmp_path / "run"))
    assert out == "?" + "x" * (OUTPUT_LIMIT - 2) + "y"
    assert err is None, "nothing was said"
    assert run.card.counts.judged == 1


def test_a_trial_that_fails_or_is_tried_again_keeps_it_all(tmp_path: Path) -> None:
    """What was said before an error, and by every try."""
    tries = iter(range(2))

    def fails(task: Any, tools: Any, ctx: Any) -> Transcript:
        print("before")
        raise ValueError("no")

    def unlucky(task: Any, tools: Any, ctx: Any) -> Transcript:
        print("try", next(tries))
        if ctx.trial == 1 and "once" not in told:
            told.append("once")
            raise InfrastructureError("no connection")
        return knows(task, tools, ctx)

    told: list[str] = []
    suite = write_suite(tmp_path, some(0)[:1])
    assert said(evaluate(suite, fails, save_run=False)) == [("before\n", None)]
    run = evaluate(
        suite, unlucky, save_run=False, retries=Retries(times=2, wait_initial_s=0.01, wait_jitter_s=0.0)
    )
    assert said(run) == [("try 0\ntry 1\n", None)]


def test_the_streams_are_put_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a run, also when a driver put a stream of its own in their place; and outside a trial they are themselves."""

    def replaces(task: Any, tools: Any, ctx: Any) -> Transcript:
        sys.stdout = sys.__stdout__  # type: ignore[assignment]
        return knows(task, tools, ctx)

    before = sys.stdout, sys.stderr
    evaluate(write_suite(tmp_path, some(0)), replaces, save_run=False)
    assert (sys.stdout, sys.stderr) == before
    with routed():
        trial = Said()
        print("outside")
        with routed(), spoken_by(trial):
            print("inside")
            assert not sys.stdout.isatty()
        print("again")
    assert (sys.stdout, sys.stderr) == before
    assert trial.text("stdout") == "inside\n"
    assert capsys.readouterr().out == "outside\nagain\n"


def test_progress_is_told_on_the_streams_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the caller prints while trials run is the caller's."""
    run = evaluate(
        write_suite(tmp_path, some(0)), talks, save_run=False, progress=lambda n, of: print(f"{n}/{of}")
    )
    assert capsys.readouterr().out == "1/2\n2/2\n"
    assert said(run) == wanted(some(0))


def leaks(task: Any, tools: Any, ctx: Any) -> Transcript:
    """Says a key in every way there is."""
    print(f"OPENAI_API_KEY={KEY}")
    print(f"Bearer {KEY}", file=sys.stderr)
    messages = ({"role": "user", "content": f'use "{KEY}"'},)
    return Transcript(refused=True, messages=messages, notes=(f"wrong key {KEY}",))


def crashes(task: Any, tools: Any, ctx: Any) -> Transcript:
    raise ValueError(f"wrong key {KEY}")


leaks.evidence = crashes.evidence = "simulated"  # type: ignore[attr-defined]
KEY = "sk-proj-" + "a1B2" * 8


@pytest.mark.parametrize("driver", [leaks, crashes])
def test_keys_are_in_no_file_of_a_run(tmp_path: Path, driver: Any) -> None:
    """Neither in tables nor in the product rows: what looks like a key is taken out before a trial is written down."""
    run = evaluate(write_suite(tmp_path, some(0)), driver, out=tmp_path / "run")
    row = {**run.trials.to_pylist()[0], **run.transcripts.to_pylist()[0]}
    assert KEY not in str(row)
    assert "«redacted»" in str(row)
    assert all(KEY.encode() not in file.read_bytes() for file in (tmp_path / "run").iterdir())
    if driver is leaks:
        assert (row["stdout"], row["stderr"]) == ("OPENAI_API_KEY=«redacted»\n", "Bearer «redacted»\n")
        assert row["messages"] == '[{"content":"use \\"«redacted»\\"","role":"user"}]'


WRITES = """
import logging, sys

def writes(task, tools, ctx):
    out = sys.stdout
    out.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    out.buffer.write(b"bytes \\xce\\xbc\\n")
    out.buffer.flush()
    out.writelines(["lines\\n"])
    print("of", out.name, out.encoding, out.errors, out.line_buffering, out.isatty(), out.closed, flush=True)
    out.close()
    print("closed, and goes on")
    logging.StreamHandler(sys.stderr).emit(logging.makeLogRecord({"msg": "logged"}))
    return {"refused": True}
"""


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_stream_does_for_a_driver_what_any_stream_does(
    tmp_path: Path, executor: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that writes bytes, sets an encoding or closes the stream would run without the lab, and does so here."""
    monkeypatch.syspath_prepend(tmp_path)
    write_driver(tmp_path, WRITES, name=f"writer_{executor}")
    run = evaluate(
        write_suite(tmp_path, some(0, 1)),
        f"writer_{executor}:writes",
        executor=executor,
        save_run=False,
    )
    assert {row["traceback"] for row in run.transcripts.to_pylist()} == {None}
    told = "bytes \N{GREEK SMALL LETTER MU}\nlines\nof <stdout> utf-8 replace True False False\nclosed, and goes on\n"
    assert set(said(run)) == {(told, "logged\n")}
    assert capsys.readouterr() == ("", "")


def test_what_no_trial_says_goes_where_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    with routed():
        sys.stdout.write("text\n")
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.close()
        print("more")
    assert capsys.readouterr().out == "text\nbytes\nmore\n"


def test_a_process_without_streams_runs_trials_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    trial = Said()
    with routed():
        print("nowhere", flush=True)
        with spoken_by(trial):
            print("somewhere", flush=True)
    assert trial.text("stdout") == "somewhere\n"
    assert sys.stdout is None
