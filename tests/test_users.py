"""The simulated user of a case: which line is said when, and what nobody but the user is told."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.cases import Case, Task, parse_cases
from agentbench_lab.users import STOP_TOKEN, Line, User, When, next_line, without_stop

from .states import line


def read(**keys: object) -> Case:
    cases, problems = parse_cases(json.dumps(line(**keys)).encode(), name="desk", file="desk.jsonl")
    assert problems == []
    return cases[0]


def test_a_case_has_a_user_and_four_turns_where_it_does_not_say() -> None:
    one = read(
        user={"scenario": "You lost W77.", "script": ["Please.", {"when": {"turn": 2}, "say": "Now!"}]}
    )
    assert one.user == User("You lost W77.", ("Please.", Line(When(turn=2), "Now!")))
    assert one.max_turns == 4
    assert read(user={"scenario": "s"}, max_turns=7).max_turns == 7
    assert read().user is None


def test_nothing_of_the_user_is_in_the_task() -> None:
    told = {"scenario": "SECRET wish", "script": ["SECRET line"]}
    task = read(user=told).task
    assert task == read().task
    assert "SECRET" not in msgspec.json.encode(task).decode()
    assert set(Task.__struct_fields__) == {
        "request", "tools", "trace", "goals", "limits", "policy", "parts", "history",
    }  # fmt: skip


def test_plain_lines_are_said_in_order_and_then_it_is_over() -> None:
    script = ("one", "two")
    assert [next_line(script, ["?"] * turn) for turn in (1, 2, 3, 4)] == ["one", "two", None, None]
    assert next_line((), ["hello"]) is None


def test_a_line_waits_for_what_it_is_said_to() -> None:
    mail = Line(When(contains="E-MAIL"), "a@b.example")
    script = (mail, Line(When(regex=r"\?$"), "Yes."), "I insist.")
    assert next_line(script, ["Your e-mail, please?"]) == "a@b.example"
    assert next_line(script, ["Are you sure?"]) == "Yes."
    assert next_line(script, ["No."]) == "I insist."
    # each is said once, whatever is asked again
    assert next_line(script, ["Your e-mail?", "Your e-mail?"]) == "Yes."
    assert next_line(script, ["Your e-mail?", "Your e-mail?", "Your e-mail?"]) == "I insist."
    assert next_line(script, ["No.", "No."]) is None


def test_all_conditions_of_a_line_hold_together() -> None:
    when = When(contains=("red", "hat"), regex="^Is", turn=2)
    assert when.fits("Is it the RED hat?", 2)
    assert not when.fits("Is it the RED hat?", 1)
    assert not when.fits("Is it the red cap?", 2)
    assert not when.fits("So it is the red hat?", 2)


@given(st.lists(st.sampled_from(["a?", "b", "mail"]), max_size=6), st.integers(0, 4))
def test_no_entry_is_said_twice(heard: list[str], plain: int) -> None:
    script = (
        Line(When(regex=r"\?"), "asked"),
        Line(When(contains="mail"), "mailed"),
        *map(str, range(plain)),
    )
    said = [next_line(script, heard[:turn]) for turn in range(1, len(heard) + 1)]
    spoken = [words for words in said if words is not None]
    assert len(spoken) == len(set(spoken))
    # once it has nothing to say to all that was heard, it says nothing more
    if None in said:
        assert set(said[said.index(None) :]) == {None}


def test_the_stop_token_is_no_part_of_what_is_said() -> None:
    assert without_stop(f"Thank you! {STOP_TOKEN}") == ("Thank you!", True)
    assert without_stop(STOP_TOKEN) == ("", True)
    assert without_stop(" It works. ") == ("It works.", False)
