"""How much of a dialogue is kept: laws of its bound, and that no secret is cut in half."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentbench_lab.results.dialogues import DIALOGUE_LIMIT, kept_dialogue
from agentbench_lab.results.redaction import redact
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import canonical

from ..doing import some, write_suite


def size(messages: Any) -> int:
    return len(canonical(messages).decode())


def texts(letters: str, *sizes: int) -> tuple[Any, ...]:
    """A message for each size, of these letters, which tells its place."""
    return tuple(
        {"role": ("user", "assistant")[number % 2], "content": f"{number:05}" + letters * size}
        for number, size in enumerate(sizes)
    )


def test_beginning_and_end_stay_and_what_is_left_out_is_counted() -> None:
    messages = texts("x", *[990] * 1_000)
    kept = kept_dialogue(messages)
    at = next(number for number, message in enumerate(kept) if message["role"] == "note")
    last = len(kept) - at - 1
    assert kept[:at] == messages[:at] and kept[at + 1 :] == messages[1_000 - last :]
    assert 185 <= at + last <= 200 and abs(at - last) <= 1
    left = sum(size(message) for message in messages[at : 1_000 - last])
    assert kept[at]["content"] == (
        f"the dialogue is longer than what is kept: {1_000 - at - last} of 1000 messages ({left} characters) "
        "are left out here"
    )


SIZES = st.one_of(
    st.lists(st.integers(0, 30_000), max_size=60),
    st.lists(st.sampled_from([0, 1, 7_990, 8_001, 199_000, 300_000]), max_size=60),
)


@settings(max_examples=30, deadline=None)
@given(SIZES, st.sampled_from(["x", "é", '"', "\\", "\n", "\x01", "\u2028", "😀"]))
@example([300_000], "x")
@example([0, *[8_000] * 50, 0], "\x01")
def test_a_kept_dialogue_obeys_its_laws(sizes: list[int], letters: str) -> None:
    messages = texts(letters, *sizes)
    kept = kept_dialogue(messages)
    assert size(kept) <= DIALOGUE_LIMIT
    if size(messages) <= DIALOGUE_LIMIT:
        assert kept is messages
    elif kept:
        for end in (0, -1):
            assert kept[end]["role"] == messages[end]["role"]
            begin = kept[end]["content"]
            assert messages[end]["content"][:5] in begin
    assert kept_dialogue(kept) == kept
    notes = [message for message in kept if message["role"] == "note"]
    assert len(notes) == (len(kept) - len(notes) < len(messages))


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(NESTED, min_size=1, max_size=6), st.integers(1, 30_000))
def test_messages_of_any_shape_stay_within_the_bound(messages: list[Any], times: int) -> None:
    kept = kept_dialogue(tuple(messages * (times // len(messages) + 1)))
    assert size(kept) <= DIALOGUE_LIMIT
    assert kept[0] == messages[0] and kept[-1] == messages[-1]


def test_a_message_of_very_many_texts_is_told_by_its_beginning() -> None:
    calls = [{"name": "f", "arguments": {"n": number}} for number in range(40_000)]
    first, second, last = kept_dialogue(
        (
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "tool_calls": calls},
            {"role": "user", "content": "Bye."},
        )
    )
    assert (first["content"], last["content"]) == ("Do it.", "Bye.")
    assert second["role"] == "assistant"
    assert second["content"].startswith('{"role":"assistant","tool_calls":[{"arguments":{"n":0},"name":"f"}')
    assert len(second["content"]) == 8_000 and second["content"].endswith("…")


KEY = "sk-ant-api03-" + "a1B2" * 8


@pytest.mark.parametrize("at", range(7_950, 8_001, 7))
def test_a_secret_is_never_cut_in_half(at: int) -> None:
    """It stands where a long text is cut."""
    messages = ({"role": "user", "content": "." * at + KEY + "." * 250_000},)
    (kept,) = kept_dialogue(messages)
    assert "sk-ant" not in kept["content"]
    assert redact(json.dumps(kept)) == json.dumps(kept)


def test_a_run_keeps_the_ends_of_a_long_dialogue_and_its_recording_too(tmp_path: Path) -> None:
    messages = texts("y", 10, *[5_000] * 200, 20)
    hidden = ({"role": "user", "content": "." * 7_990 + KEY + "." * 5_000},)

    def talks(task: Any, tools: Any, ctx: Any) -> Transcript:
        return Transcript(refused=True, messages=messages[:1] + hidden + messages[1:])

    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, talks, record=tmp_path / "tape.jsonl", out=tmp_path / "run")
    (text,) = run.transcripts["messages"].to_pylist()
    said = json.loads(text)
    assert (said[0], said[-1]) == (messages[0], messages[-1])
    assert "of 203 messages" in str(said) and len(text) <= DIALOGUE_LIMIT
    played = evaluate(suite, f"replay:{tmp_path / 'tape.jsonl'}", save_run=False)
    assert played.transcripts["messages"].to_pylist() == [text]
    for file in [tmp_path / "tape.jsonl", *(tmp_path / "run").iterdir()]:
        assert b"sk-ant" not in file.read_bytes()
