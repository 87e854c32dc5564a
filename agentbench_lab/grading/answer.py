"""An answer against what is expected of it. Nothing is normalised unless the case asks for it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import UNSET

from agentbench_lab.expect import ExpectedAnswer
from agentbench_lab.grading.calls import difference
from agentbench_lab.grading.grade import cut
from agentbench_lab.patterns import unfit
from agentbench_lab.values import canonical, same

_AROUND = ".,;:!?\"'`()[]{}<>*_"
"""What may stand around a word without being part of it."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_LONGEST = 100
"""Characters of a number that is written as text."""


def wrong_answer(expected: ExpectedAnswer, answer: Any) -> str | None:
    """What is wrong with the answer, or None. An answer that is null was not given."""
    said = list(_wrong(expected, answer))
    return "; ".join(said) if said else None


def _wrong(expected: ExpectedAnswer, answer: Any) -> Iterator[str]:
    # the rule of GAIA has its own word for an answer that was not given
    only_gaia = expected == ExpectedAnswer(gaia=expected.gaia)
    if answer is None and not only_gaia:
        yield "no answer was given"
        return
    text = answer if type(answer) is str else canonical(answer).decode()
    exact = expected.exact
    if exact is not UNSET and not same(exact, answer):
        yield _not_exactly(exact, answer)
    for part in expected.texts:
        if part not in text:
            yield f"contains: {part!r} is not in {cut(text)!r}"
    for part in expected.words:
        if not has_tokens(text, part):
            inside = ", though it occurs within longer words" if part in text else ""
            yield f"tokens: {part!r} is no word of {cut(text)!r}{inside}"
    if expected.regex is not None:
        unfitting = unfit(expected.regex, text, repr(cut(text)))
        if unfitting:
            yield f"regex: {unfitting}"
    if expected.number is not None:
        wrong = _not_number(expected.number, expected.tol, answer)
        if wrong:
            yield wrong
    if expected.gaia is not None and not gaia_equal(expected.gaia, answer):
        yield f"gaia: {cut(text)!r} is not {expected.gaia!r} by the quasi-exact rule"


def _not_exactly(exact: Any, answer: Any) -> str:
    if type(exact) is str and type(answer) is str:
        near = (
            " (differs only in white space around it)"
            if exact.strip() == answer.strip()
            else " (differs only in upper and lower case)"
            if exact.casefold() == answer.casefold()
            else ""
        )
        return f"exact: expected {cut(exact)!r}, got {cut(answer)!r}{near}"
    return f"exact: {difference(exact, answer, 'answer')}"


def has_tokens(text: str, words: str) -> bool:
    """Whether the words occur in the text one after the other, each as a whole word between white space.

    Marks of punctuation around a word are no part of it unless they are asked for: "10" is a word of "It is 10.", and
    none of "10:45", "$10" or "-10".
    """
    wanted = words.split()
    found = [(word, word.strip(_AROUND)) for word in text.split()]
    return any(
        all(want in pair for want, pair in zip(wanted, found[at : at + len(wanted)], strict=True))
        for at in range(len(found) - len(wanted) + 1)
    )


def _not_number(number: int | float, tol: float, answer: Any) -> str:
    within = f" within {tol:g}" if tol else ""
    got: Decimal | None = None
    if type(answer) in (int, float):
        got = Decimal(repr(answer))
    elif type(answer) is str and len(answer) <= _LONGEST and _NUMBER.fullmatch(answer.strip()):
        try:
            got = Decimal(answer.strip())
        except InvalidOperation:
            got = None
    if got is None:
        return f"number: expected {number}{within}, got {cut(canonical(answer).decode())}, which is no number"
    if abs(got - Decimal(repr(number))) > Decimal(repr(tol)):
        return f"number: expected {number}{within}, got {got}"
    return ""


def gaia_equal(truth: str, answer: Any) -> bool:
    """The quasi-exact rule of GAIA (Mialon et al. 2023; its scorer, Apache-2.0), written anew, corners included.

    A truth that Python's `float` reads is a number: the answer loses every `$`, `%` and `,` and has to equal it, and
    an answer that is then no number counts as infinite. Else a truth with a comma or semicolon is a list, so "1,000"
    is one: as many entries, each a number by the same rule or equal without white space and case. Else texts
    are equal without white space, punctuation and case. No answer is the text None.
    """
    text = "None" if answer is None else answer if type(answer) is str else canonical(answer).decode()
    if _float(truth) is not None:
        return _number(text) == float(truth)
    if "," in truth or ";" in truth:
        wanted, given = re.split("[,;]", truth), re.split("[,;]", text)
        return len(wanted) == len(given) and all(map(_entry, wanted, given))
    return _squeezed(text, punctuation=False) == _squeezed(truth, punctuation=False)


def _entry(want: str, got: str) -> bool:
    if _float(want) is not None:
        return _number(got) == float(want)
    return _squeezed(got, punctuation=True) == _squeezed(want, punctuation=True)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _number(text: str) -> float:
    found = _float(text.translate(str.maketrans("", "", "$%,")))
    return float("inf") if found is None else found


def _squeezed(text: str, *, punctuation: bool) -> str:
    text = re.sub(r"\s", "", text)
    return (text if punctuation else text.translate(str.maketrans("", "", string.punctuation))).lower()


__all__ = ["gaia_equal", "has_tokens", "wrong_answer"]
