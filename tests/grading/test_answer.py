"""Answers: exact, parts, words, patterns, numbers, and the quasi-exact rule of GAIA with its corners."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentbench_lab.expect import ExpectedAnswer
from agentbench_lab.grading.answer import gaia_equal, has_tokens, wrong_answer

from ..states import call, case, failed, judge, line, problems_of


@pytest.mark.parametrize(
    ("expected", "answer", "says"),
    [
        ({"exact": "Paris"}, "Paris", None),
        ({"exact": "Paris"}, "paris", "exact: expected 'Paris', got 'paris' (differs only in upper and lower case)"),
        ({"exact": "Paris"}, "Paris\n", "exact: expected 'Paris', got 'Paris\\n' (differs only in white space around it)"),
        ({"exact": 3}, 3.0, None),
        ({"exact": 3}, "3", 'exact: type: answer: expected 3, got "3" (stringified_arg)'),
        ({"exact": 1}, True, "exact: type: answer: expected 1, got true"),
        ({"exact": {"a": [1]}}, {"a": [2]}, "exact: value: answer.a[0]: expected 1, got 2"),
        ({"exact": False}, False, None),
        ({"exact": "x"}, None, "no answer was given"),
        ({"exact": ""}, "", None),
        ({"contains": "10"}, "at 10:45", None),
        ({"contains": ["W77", "27.99"]}, "W77 is off", "contains: '27.99' is not in 'W77 is off'"),
        ({"contains": "77"}, {"order": "W77"}, None),
        ({"tokens": "10"}, "at 10:45", "tokens: '10' is no word of 'at 10:45', though it occurs within longer words"),
        ({"tokens": ["10", "May"]}, "It is (10), on 3 May.", None),
        ({"tokens": "3 May"}, "on 3\nMay, at noon", None),
        ({"tokens": "3 May"}, "May 3", "tokens: '3 May' is no word of 'May 3'"),
        ({"regex": r"^W\d+$"}, "W77", None),
        ({"regex": r"^W\d+$"}, "W77\nW78", r"regex: '^W\\d+$' does not fit 'W77\nW78'"),
        ({"number": 27.99}, 27.99, None),
        ({"number": 27.99, "tol": 0.01}, "28.00", None),
        ({"number": 27.99, "tol": 0.01}, 28.001, "number: expected 27.99 within 0.01, got 28.001"),
        ({"number": 3}, True, "number: expected 3, got true, which is no number"),
        ({"number": 3}, "3 apples", 'number: expected 3, got "3 apples", which is no number'),
        ({"number": 3}, "nan", 'number: expected 3, got "nan", which is no number'),
        ({"number": 3}, " 3e0 ", None),
        ({"number": 3}, "4", "number: expected 3, got 4"),
        ({"number": 0.5}, ".5", None),
        ({"number": 3}, "3" * 200_000, "number: expected 3, got " + '"' + "3" * 78 + "…, which is no number"),
        ({"number": 9007199254740993}, 9007199254740992, "number: expected 9007199254740993, got 9007199254740992"),
        ({"gaia": "17"}, "17", None),
        ({"gaia": "17"}, None, "gaia: 'null' is not '17' by the quasi-exact rule"),
        ({"exact": "a", "number": 1}, "a", 'number: expected 1, got "a", which is no number'),
    ],
)  # fmt: skip
def test_each_rule_and_what_it_says(expected: dict[str, Any], answer: Any, says: str | None) -> None:
    assert wrong_answer(msgspec.convert(expected, ExpectedAnswer), answer) == says


@pytest.mark.parametrize(
    ("text", "words", "has"),
    [
        ("It is 10.", "10", True),
        ("10", "10", True),
        ("10:45", "10", False),
        ("$10", "10", False),
        ("$10", "$10", True),
        ("-10", "10", False),
        ("**10**", "10", True),
        ("'ten'", "'ten'", True),
        ("110", "10", False),
        ("10%", "10", False),
        ("", "10", False),
        ("a b c", "b c", True),
        ("a b c", "a c", False),
    ],
)
def test_words_stand_between_white_space(text: str, words: str, has: bool) -> None:
    assert has_tokens(text, words) is has


@pytest.mark.parametrize(
    ("truth", "answer", "equal"),
    [
        # a truth that reads as a float is a number; the answer loses $ % and ,
        ("17", "17", True),
        ("17", "17.0", True),
        ("17", "$17", True),
        ("17", "17%", True),
        ("1000", "1,000", True),
        ("17", "17 apples", False),
        ("17", "seventeen", False),
        ("0.5", ".5", True),
        ("1e3", "1000", True),
        # "1,000" reads as no float: it is a list of 1 and 000
        ("1,000", "1,000", True),
        ("1,000", "1000", False),
        ("1,000", "1;0", True),
        # nan is a number that equals nothing, inf what an unreadable answer counts as
        ("nan", "nan", False),
        ("inf", "inf", True),
        ("inf", "no idea", True),
        # lists, split at , and ; with numbers and texts entry by entry; punctuation stays
        ("apple, pear", "Apple,Pear", True),
        ("apple; pear", "apple, pear", True),
        ("apple, pear", "pear, apple", False),
        ("apple, pear", "apple", False),
        ("3, pear", "$3, p e a r", True),
        ("a.b, c", "ab, c", False),
        # texts without white space, punctuation and case
        ("St. Petersburg", "st petersburg", True),
        ("sea gull", "Seagull!", True),
        ("colour", "color", False),
        # no answer is the text None
        ("None", None, True),
        ("17", None, False),
        ("17", 17, True),
    ],
)
def test_the_quasi_exact_rule(truth: str, answer: Any, equal: bool) -> None:
    assert gaia_equal(truth, answer) is equal


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, "needs one of exact, contains, tokens, regex, number, gaia"),
        ({"contains": " "}, "contains: a blank text is in every answer"),
        ({"regex": "("}, "regex: missing ), unterminated subpattern at position 0"),
        ({"regex": "a*"}, "regex: fits the empty text, and so every answer"),
        ({"exact": "a", "tol": 1}, "tol belongs to number"),
        ({"number": 1, "tol": -1}, "tol must be a number from 0"),
        ({"exact": None}, "exact: null is no answer"),
        ({"gaia": " "}, "gaia must not be blank"),
    ],
)
def test_an_expectation_that_means_nothing_is_a_fault_of_the_case(answer: Any, says: str) -> None:
    assert problems_of(line(expect={"answer": answer}, gold=None)) == [
        f"desk.jsonl:1: c: expect.answer: {says}"
    ]


def test_an_answer_is_what_the_control_tool_was_told() -> None:
    of = case(answer={"number": 27.99}, state_equals={})
    look = call("get", id="W77")
    assert judge(of, look, answer=27.99).outcome == "solved"
    assert judge(of, call("answer", value=27.99)).outcome == "no_answer"  # only the runner hands this on
    assert (judge(of, look).outcome, failed(judge(of, look))) == (
        "no_answer",
        {"answer": "no answer was given"},
    )
    assert judge(of, look, answer=28).outcome == "unsolved"
    assert judge(of, look, answer=28, status="success").outcome == "false_success"
