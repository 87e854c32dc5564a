"""The TOOL ladder's own literal rule, which judges the transcript alone.

It is kept for comparison, with its known gaps: values are compared as trimmed text, a recovery is believed, a proof
is not tied to the calls, candidates escape the hallucination check, and a driver's name can change what is expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from agentbench_lab.cases import Call, Case, Expect, ExpectedCall
from agentbench_lab.grading.grade import (
    STOPS,
    Check,
    Evidence,
    Grade,
    hallucinations,
    judged,
    shown,
)
from agentbench_lab.transcripts import Transcript


def grade_original(case: Case, transcript: Transcript, evidence: Evidence) -> Grade:
    """Judge by the ladder's literal rule (its document, "The grade"; corner cases as its grader decides them)."""
    expect = case.expect
    if case.floor_expect and transcript.driver.startswith("resolver-"):
        expect = Expect(refuse=True, terminates=expect.terminates)
    invented = hallucinations(transcript.calls, evidence.problems)
    checks = [Check("hallucination", not invented, f"hallucinated {', '.join(invented)}" if invented else "")]
    ended = expect.terminates is False or transcript.terminated
    if expect.terminates is not False:
        checks.append(Check("terminated", ended, "" if ended else "the loop did not terminate"))
    wrong, outcome = _outcome(expect, transcript)
    checks.append(Check(expect.key, wrong is None, wrong or ""))
    completed = wrong is None
    proven = not expect.proof or _proof_chain(transcript.proof)
    if expect.proof:
        checks.append(Check("proof", proven, "" if proven else "expected a valid proof chain"))
    result_completed = completed
    if expect.result is not None:
        equal = _same_set(transcript.result, expect.result)
        result_completed = not invented and ended and equal
        checks.append(
            Check("result", equal, "" if equal else _result_detail(transcript, expect), gates=False)
        )
    if invented:
        outcome = "hallucinated_call"
    elif not ended or (wrong is not None and transcript.stop in STOPS):
        outcome = transcript.stop if transcript.stop in STOPS else "budget"
    elif completed and not proven:
        outcome = "unproven"
    return judged(outcome, completed, result_completed, bool(invented), checks)


def _outcome(expect: Expect, transcript: Transcript) -> tuple[str | None, str]:
    """What is wrong with the outcome (None when nothing is), and the outcome's name."""
    calls = transcript.calls
    if expect.key == "goal":
        if transcript.inferred_goal == expect.inferred_goal and not transcript.reject and not calls:
            return None, "correct_goal"
        if transcript.inferred_goal is None:
            return "no goal was named", "over_refusal" if transcript.refused else "no_answer"
        return f"named {transcript.inferred_goal!r}, not {expect.inferred_goal!r}", "wrong_calls"
    if expect.key == "refuse":
        if not transcript.refused or calls:
            return f"expected a refusal, got {shown(calls)}", "wrong_calls" if calls else "no_answer"
        wrong = _annotation(expect, transcript)
        return wrong, "correct_refusal" if wrong is None else "wrong_calls"
    if not _all_match(expect.expected_calls, calls):
        if calls:
            return f"got {shown(calls)}", "wrong_calls"
        return "no call", "over_refusal" if transcript.refused else "no_answer"
    if expect.recover is not None and not transcript.recovered:
        return "no recovery was signalled", "wrong_calls"
    return None, "correct_calls"


def _annotation(expect: Expect, transcript: Transcript) -> str | None:
    if expect.candidate_results is not None:
        wanted = {_key(call) for call in expect.candidate_results}
        produced = transcript.candidate_results
        if produced is None or {_key(call) for call in produced} != wanted:
            return "the candidates differ from expect.candidateResults"
    if expect.reject and not transcript.reject:
        return "refused without rejecting the trace"
    if expect.ambiguous_goals is not None and not _same_set(
        transcript.ambiguous_goals, expect.ambiguous_goals
    ):
        return "the tied goals differ from expect.ambiguousGoals"
    return None


_SPACE = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What the original's language trims."""


def _all_match(expected: Sequence[ExpectedCall], calls: Sequence[Call]) -> bool:
    return len(expected) == len(calls) and all(
        want.name == call.name
        and all(
            _text(call.input.get(key)).strip(_SPACE) == _text(value).strip(_SPACE)
            for key, value in want.input.items()
        )
        for want, call in zip(expected, calls, strict=True)
    )


def _text(value: Any) -> str:
    """The value as the original's language turns it into text: null is empty, objects are all alike."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    if isinstance(value, dict):
        return "[object Object]"
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float) -> str:
    """Number::toString of ECMAScript: every number is a double; below 1e21 and from 1e-6 there is no exponent."""
    if not value:
        return "0"
    if value < 0:
        return f"-{_number(-value)}"
    _, parts, power = Decimal(repr(float(value))).normalize().as_tuple()
    digits = "".join(map(str, parts))
    point = len(digits) + int(power)
    if 0 < point <= 21:
        whole, rest = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{rest}" if rest else whole
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{mantissa}e{point - 1:+d}"


def _key(call: Call) -> tuple[str, tuple[tuple[str, str], ...]]:
    pairs = ((key, "null" if value is None else _text(value)) for key, value in call.input.items())
    return call.name, tuple(sorted(pairs))


def _same_set(produced: Iterable[Any] | None, wanted: Iterable[Any]) -> bool:
    return produced is not None and set(map(_text, produced)) == set(map(_text, wanted))


def _result_detail(transcript: Transcript, expect: Expect) -> str:
    got = "nothing" if transcript.result is None else sorted(map(_text, transcript.result))
    return f"composed {got}, expected {sorted(expect.result or ())}"


def _proof_chain(proof: Sequence[dict[str, Any]]) -> bool:
    """Non-empty, no step that failed, and every causal link from the graph or an earlier step, one from the graph."""
    if not proof or any(step.get("ok") is False for step in proof):
        return False
    producers = [_text(step.get("producer")) for step in proof if step.get("step") == "causal-link"]
    well_formed = all(p == "graph" or re.fullmatch(r"step-[0-9]+", p) for p in producers)
    return well_formed and (not producers or "graph" in producers)
