"""Mode `bfcl` against bfcl-eval's own checker, on every single-turn case that calls decide."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.bfcl_cases import CATEGORIES, UNANSWERED, load_cases, reference
from agentbench_lab.cases import Call, Case, ExpectedCall, Order
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl import Checker, language_of
from agentbench_lab.grading.calls import unmatched

from ..bfcl_oracle import VARIABLE, mutated, their_checker, wheel

Verdict = Callable[[BfclTruth, list[Call]], bool]

REJECTED = {
    "live_multiple_507-149-4": "origin_airport is required, and nothing but leaving it out is acceptable",
    "live_multiple_862-181-3": "answers journey_start_time, which the function does not have",
    "live_multiple_964-207-0": "answers question, where the function has statement, and requires it",
    "live_simple_106-63-0": "auto_loan_payment_start and bank_hours_start are required, and no value is acceptable",
    "live_simple_112-68-0": "acc_routing_start and four more are required, and no value is acceptable",
    "parallel_multiple_26": "answers type, which the function does not have",
}
"""The ground truths in Python that their checker rejects however it is fed, and why; the last is not among them when
what may be left out is."""
REJECTED_JAVA = {
    "simple_java_36": "a number and a truth value in a list of any, whose entries are read as text",
    "simple_java_64": "the alternatives of a key are a bare text, which is gone through letter by letter",
    "simple_java_65": "truth values in a list of any, whose entries are read as text",
}
GIVEN = {"parallel_multiple_12": "permeability, which may be left out, is no parameter of the function"}
"""One more where nothing is left out that has a value."""
LEFT_OUT = {
    "live_multiple_144-56-0": "perPage is required, and leaving it out comes before 100",
    "live_multiple_834-178-9": "track is required, and leaving it out comes before the title",
    "simple_python_200": "fuel_efficiency is required, and leaving it out comes before 25.0",
}
"""Three more where each parameter gets its first alternative, which may be to leave it out."""
MAY_BE_LEFT_OUT = {
    "live_multiple_68-29-0": "port",
    "live_multiple_69-30-0": "port",
    "live_multiple_77-35-1": "port",
    "live_multiple_114-44-1": "port",
    "live_multiple_905-186-2": "number_of_adults",
    "live_multiple_906-186-3": "number_of_adults",
    "parallel_88": "initial_velocity",
    "parallel_multiple_87": "initial_velocity",
    "parallel_multiple_119": "league_name",
    "simple_python_17": "formatted",
}
"""Ten more where whatever may be left out is: the parameter, which the function requires."""
FEEDINGS: dict[str, set[str]] = {
    "nothing is left out that has a value": {*REJECTED, *GIVEN},
    "the first alternative": {*REJECTED, *LEFT_OUT},
    "all is left out that may be": {*REJECTED, *LEFT_OUT, *MAY_BE_LEFT_OUT} - {"parallel_multiple_26"},
}
"""How a ground truth is made into calls, and which of those in Python are rejected then: 7, 9 and 18."""
MUTANTS = 10_000


@pytest.fixture(scope="module")
def theirs() -> Verdict:
    folder = wheel()
    if folder is None:
        pytest.skip(f"{VARIABLE} names no unpacked wheel of bfcl-eval")
    return their_checker(folder)


def cases_of(data: Path) -> list[Case]:
    """All cases with a ground truth whose files are there."""
    answered = [name for name in CATEGORIES if name not in UNANSWERED]
    files = [data / f"BFCL_v4_{name}.json" for name in answered]
    return [case for file in files if file.is_file() for case in load_cases(file).cases]


@pytest.fixture(scope="module")
def cases(peers: Path) -> list[Case]:
    folder = wheel()
    return cases_of(folder / "bfcl_eval" / "data" if folder else peers / "bfcl" / "data")


def truth_of(case: Case) -> BfclTruth:
    assert case.expect.bfcl is not None
    return case.expect.bfcl


def gold_of(case: Case) -> tuple[Call, ...]:
    assert case.gold is not None
    return case.gold.calls


def test_the_peers_are_the_wheels(peers: Path) -> None:
    """The files of the two are the same, so that what holds of the wheel's holds of the peers'."""
    folder = wheel()
    if folder is None:
        pytest.skip(f"{VARIABLE} names no unpacked wheel of bfcl-eval")
    data = peers / "bfcl" / "data"
    ours = cases_of(data)
    assert len(ours) == 1448
    for file in [*data.glob("BFCL_v4_*.json"), *data.glob("possible_answer/*.json")]:
        assert file.read_bytes() == (folder / "bfcl_eval" / "data" / file.relative_to(data)).read_bytes()


def test_every_ground_truth_has_the_same_verdict(cases: list[Case], theirs: Verdict) -> None:
    rejected = set()
    for case in cases:
        truth, gold = truth_of(case), gold_of(case)
        ours = Checker(truth).wrong(gold) is None
        assert ours == theirs(truth, list(gold)), case.id
        if not ours:
            rejected.add(case.id)
    assert len(cases) == 2501
    assert rejected == REJECTED.keys() | REJECTED_JAVA.keys()


def fed(truth: BfclTruth, how: str) -> list[Call]:
    """The calls of a ground truth, with its parameters left out in this way. A required one is left out too."""
    functions = truth.functions
    if "left out that has" not in how:
        functions = tuple({**one, "parameters": {**one["parameters"], "required": []}} for one in functions)

    def options_of(options: list[Any]) -> list[Any]:
        if "nothing" in how:
            return [option for option in options if option != ""] or options
        return ["", *options] if "all" in how and "" in options else options

    calls = tuple(
        {
            name: {key: options_of(options) for key, options in answers.items()}
            for name, answers in one.items()
        }
        for one in truth.ground_truth
    )
    return list(reference(BfclTruth(truth.category, functions, calls)))


@pytest.mark.parametrize("how", FEEDINGS)
def test_which_ground_truths_are_rejected_depends_on_what_is_left_out(
    cases: list[Case], theirs: Verdict, how: str
) -> None:
    rejected = set()
    for case in cases:
        truth = truth_of(case)
        calls = fed(truth, how)
        ours = Checker(truth).wrong(calls) is None
        assert ours == theirs(truth, calls), case.id
        if not ours:
            rejected.add(case.id)
    assert rejected == FEEDINGS[how] | REJECTED_JAVA.keys()


def test_the_numbers_of_the_page_are_these() -> None:
    assert [len(names) for names in FEEDINGS.values()] == [7, 9, 18]
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in (*REJECTED, *GIVEN, *LEFT_OUT, *REJECTED_JAVA))


@pytest.mark.long
def test_mutated_outputs_have_the_same_verdict(cases: list[Case], theirs: Verdict) -> None:
    dice = random.Random(20260323)
    verdicts: Counter[bool] = Counter()
    for number in range(MUTANTS):
        # every case has its turn
        case = cases[number % len(cases)]
        truth = truth_of(case)
        calls = mutated(gold_of(case), truth, dice)
        expected = theirs(truth, calls)
        said = Checker(truth).wrong(calls)
        assert (said is None) == expected, (case.id, calls, said)
        verdicts[expected] += 1
    assert min(verdicts.values()) > MUTANTS / 10


# Where mode `strict` gives another verdict on the same 2,500 outputs, and why.
DIFFERENT = {
    # spelt with other capitals, spaces or marks
    "only strict fails: value": 96,
    # a list where text is declared, which the ground truth has too
    "only strict fails: type": 1,
    # an argument that the ground truth does not name; strict leaves it free
    "only bfcl fails: unexpected": 62,
    "only bfcl fails: type": 5,
    "only bfcl fails: value": 2,
    "only bfcl fails: no partner": 3,
    "only bfcl fails: missing": 1,
}


def whole(option: Any) -> Iterator[Any]:
    """An acceptable value without alternatives within it: each combination of those of an object."""
    if isinstance(option, dict) and all(isinstance(values, list) for values in option.values()):
        for chosen in product(*option.values()):
            yield {key: value for key, value in zip(option, chosen, strict=True) if value != ""}
    elif isinstance(option, list) and any(isinstance(each, dict) for each in option):
        yield from ([*each] for each in product(*(list(whole(each)) for each in option)))
    else:
        yield option


def strictly(case: Case, calls: list[Call]) -> str | None:
    """What mode `strict` says of the calls, with each acceptable value an alternative."""
    expected = []
    for each in truth_of(case).ground_truth:
        for name, answers in each.items():
            accept = {
                key: [each for option in options if option != "" for each in whole(option)]
                for key, options in answers.items()
            }
            pinned = {key: values for key, values in accept.items() if values}
            optional = tuple(key for key in pinned if "" in answers[key])
            expected.append(ExpectedCall(name, {}, pinned, optional))
    order: Order = "any_order" if "parallel" in truth_of(case).category else "positional"
    return unmatched(expected, calls, order)


def test_where_strict_differs_is_counted(cases: list[Case], theirs: Verdict) -> None:
    """On the texts, numbers and lists of the Python categories; the reasons are those of the one that fails."""
    dice = random.Random(7)
    python = [case for case in cases if language_of(case.group) == "python"]
    counted: Counter[str] = Counter()
    for case in python:
        calls = mutated(gold_of(case), truth_of(case), dice)
        bfcl, strict = Checker(truth_of(case)).wrong(calls), strictly(case, calls)
        if (bfcl is None) != (strict is None):
            said = strict if bfcl is None else bfcl
            side = "strict" if bfcl is None else "bfcl"
            reasons = re.findall(r"\b(type|value|missing|unexpected|not expected|not called)\b", said or "")
            counted[f"only {side} fails: {reasons[0] if reasons else 'no partner'}"] += 1
    assert dict(counted) == DIFFERENT


@pytest.mark.parametrize(("category", "n"), [("irrelevance", 240), ("live_relevance", 16)])
def test_whether_anything_is_called_is_all_that_counts(peers: Path, category: str, n: int) -> None:
    suite = load_cases(peers / "bfcl" / "data" / f"BFCL_v4_{category}.json")
    assert len(suite.cases) == n
    for case in suite.cases:
        checker = Checker(truth_of(case))
        assert (checker.wrong(()) is None) == (category == "irrelevance")
        assert (checker.wrong((Call("any", {}),)) is None) == (category == "live_relevance")
