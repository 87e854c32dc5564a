"""What an imported run keeps of texts: bounded, and without what looks like a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCall, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Run
from agentbench_lab.transcripts import Usage

KEY = "sk-ant-api03-" + "a1B2" * 8


def run(**fields: Any) -> Run:
    trial = SourceTrial("a", "d", True, **fields)
    return imported_run(suite="s", trials=[trial], imported=Imported("csv", "f"))


def said(messages: Any) -> str:
    text = run(messages=messages).transcripts.column("messages")[0].as_py()
    assert isinstance(text, str)
    return text


def test_what_came_back_for_a_call_is_bounded_whatever_the_format() -> None:
    made = run(calls=(SourceCall("f", {}, "ok", "x" * 8_001), SourceCall("f", {}, "ok", "y" * 8_000)))
    long, short = made.calls.column("observed").to_pylist()
    assert long == "x" * 7_999 + "…"
    assert short == "y" * 8_000


def test_a_dialogue_within_the_limit_is_kept_as_it_is() -> None:
    messages = [{"role": "user", "content": "x" * 190_000}]
    assert json.loads(said(messages)) == messages


def test_of_a_longer_dialogue_the_long_texts_are_bounded_first() -> None:
    """One text of 300,000 characters and two short ones: all three messages stay."""
    messages = [{"role": "user", "content": text} for text in ("first", "x" * 300_000, "last")]
    kept = json.loads(said(messages))
    assert [len(each["content"]) for each in kept] == [5, 8_000, 4]


def test_what_is_long_and_no_list_is_one_message() -> None:
    (kept,) = json.loads(said({str(number): "x" for number in range(50_000)}))
    assert kept["role"] == "message" and kept["content"].startswith('{"0":"x","1":"x"')


def test_secrets_are_in_no_table() -> None:
    made = run(
        messages=[{"role": "user", "content": f"my key:\n{KEY}"}],
        answer=f"OPENAI_API_KEY={KEY}",
        calls=(SourceCall("bash", {"command": f"export OPENAI_API_KEY={KEY}"}, "ok", f"Bearer {KEY}"),),
    )
    for grain in ("calls", "transcripts"):
        assert KEY not in json.dumps(getattr(made, grain).to_pylist())
    call, transcript = made.calls.to_pylist()[0], made.transcripts.to_pylist()[0]
    assert json.loads(call["input"]) == {"command": "export OPENAI_API_KEY=«redacted»"}
    assert call["observed"] == "Bearer «redacted»"
    assert json.loads(transcript["messages"])[0]["content"] == "my key:\n«redacted»"
    assert json.loads(transcript["answer"]) == "OPENAI_API_KEY=«redacted»"


@pytest.mark.parametrize(
    ("case_id", "driver", "what"), [("", "d", "case without"), ("a", "", "driver without")]
)
def test_a_trial_of_nothing_is_refused(case_id: str, driver: str, what: str) -> None:
    """No file of results can hold it."""
    with pytest.raises(LabError, match=f"f: a trial of a {what}"):
        imported_run(suite="s", trials=[SourceTrial(case_id, driver, True)], imported=Imported("csv", "f"))


@pytest.mark.parametrize("seconds", [1e300, -1.0, float("inf"), float("nan")])
def test_seconds_that_cannot_be_are_refused(seconds: float) -> None:
    """Files of results count nanoseconds in 64 bits."""
    with pytest.raises(LabError, match=r"f: trial 1 of 'a' took .* seconds"):
        run(usage=Usage(wall_s=seconds))


def test_more_failed_calls_than_calls_are_refused() -> None:
    with pytest.raises(LabError, match=r"f: trial 1 of 'a' has 5 failed calls of 3"):
        run(tool_calls=3, tool_errors=5)
