"""What agentd's evaluation harness decides, written anew: mode `agentd`.

Source: bench/graders.py and bench/run.py of agentd-dev/source-code at 9ff2f04 (Apache-2.0). Its decisions are kept with
their gaps: signs and decimal points are taken out of texts that are compared, one call may satisfy several matchers,
lists within objects are alternatives, `1 == True` in states, and how a trial ended does not matter unless it is asked.
Two things can only be near: its telemetry is not here, so that `expect.completed` reads how the transcript ended, and
`expect.tool_call` looks for its text in the names, arguments and answers of the calls.

One gap is closed: there the command of a grade runs in the very folder that the agent has left behind, its check script
included. Here it runs in a copy in which the protected files are the case's again, so that a check that was edited to
pass does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agentbench_lab.cases import Call
from agentbench_lab.expect import AgentdGrade
from agentbench_lab.grading.bfcl import standard
from agentbench_lab.grading.command import wrong_command
from agentbench_lab.grading.grade import Evidence, cut
from agentbench_lab.grading.state import brief
from agentbench_lab.paths import ABSENT, join
from agentbench_lab.patterns import unfit
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import canonical
from agentbench_lab.worlds.seen_work import KEPT, FileSeen, WorkSeen

_LAMBDA = re.compile(r"lambda\s+\w+\s*:")


def wrongs(
    asked: AgentdGrade, transcript: Transcript, evidence: Evidence
) -> Iterator[tuple[str, str | None]]:
    """Each part of the grade that is asked, in the harness's order, with what is wrong with it or None."""
    grade = asked.grade
    rows = [row for row in evidence.ledger if not row.late]
    if not asked.conversation:
        yield from _said(grade, _text(transcript.answer))
        if "tool_calls" in grade:
            calls = [Call(row.name, row.input if type(row.input) is dict else {}) for row in rows]
            yield "tool_calls", unmatched(grade["tool_calls"], calls)
    if "state" in grade or "state_absent" in grade:
        values = {} if evidence.seen is None or evidence.seen.state is None else evidence.seen.state.values
        yield from _state(grade, values)
    if asked.conversation:
        return
    if asked.of_work:
        yield from _work(asked, None if evidence.seen is None else evidence.seen.work)
    if asked.expect.get("completed"):
        ended = transcript.terminated and transcript.stop == "done"
        yield "completed", None if ended else f"not completed: stopped by {transcript.stop}"
    if asked.expect.get("tool_call"):
        text = asked.expect["tool_call"]
        seen = [f"{row.name} {canonical(row.input).decode()} {row.text}" for row in rows]
        yield "tool_call", None if any(text in each for each in seen) else f"no call tells of {text!r}"


def _work(asked: AgentdGrade, seen: WorkSeen | None) -> Iterator[tuple[str, str | None]]:
    """The parts `files` and `command` against what was read off the work folder."""
    if seen is None:
        for key in ("files", "command"):
            if key in asked.grade:
                yield key, "nothing could be seen of a work folder"
        return
    if "files" in asked.grade:
        wrong = None
        for path, spec in asked.grade["files"].items():
            wrong = wrong or wrong_file(path, spec, seen.files.get(path, FileSeen("nothing")))
        yield "files", wrong
    if asked.command is not None:
        yield "command", wrong_command(asked.command, seen.command)


def wrong_file(path: str, spec: dict[str, Any], seen: FileSeen) -> str | None:
    """What is wrong with a file that has to be there, to contain a text, or to be one when it is stripped of white
    space; it is read as text, where every end of a line is a newline. None when nothing is wrong."""
    if seen.blob is None:
        return f"{path}: there is {'no such file' if seen.what == 'nothing' else f'a {seen.what}, no file'}"
    text = seen.blob.data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if "contains" in spec and spec["contains"] not in text:
        beyond = "" if seen.blob.whole else f" in the first {KEPT} of its {seen.blob.size} bytes"
        return f"{path}: {cut(repr(spec['contains']))} is not in it{beyond}"
    if "exact" in spec and not (seen.blob.whole and text.strip() == spec["exact"]):
        return f"{path}: expected {cut(repr(spec['exact']))}, got {cut(repr(text.strip()))}"
    return None


def _text(answer: Any) -> str:
    return "" if answer is None else answer if type(answer) is str else canonical(answer).decode()


def _said(grade: dict[str, Any], text: str) -> Iterator[tuple[str, str | None]]:
    if "contains" in grade:
        yield (
            "contains",
            None if grade["contains"] in text else f"{grade['contains']!r} is not in {cut(text)!r}",
        )
    if "exact" in grade:
        fits = text.strip() == grade["exact"]
        yield "exact", None if fits else f"expected {grade['exact']!r}, got {cut(text.strip())!r}"
    if "regex" in grade:
        yield "regex", unfit(grade["regex"], text, repr(cut(text)))


# ---- calls


def unmatched(expected: Any, calls: Sequence[Call]) -> str | None:
    """What is wrong with calls under one matcher, a list of alternatives, or `{"all": [...]}`; None when nothing is."""
    if isinstance(expected, dict) and "all" in expected:
        for matcher in expected["all"]:
            if not any(matches(matcher, call) for call in calls):
                return f"required call not seen: {matcher['name']}"
        return None
    matchers = expected if isinstance(expected, list) else [expected]
    if any(matches(matcher, call) for matcher in matchers for call in calls):
        return None
    got = ", ".join(call.name for call in calls) or "none"
    return f"no call matched {', '.join(matcher['name'] for matcher in matchers)}; got {got}"


def matches(matcher: dict[str, Any], call: Call) -> bool:
    """Whether a call has the name, and of each listed argument one of the accepted values; others are free."""
    if matcher["name"] != call.name:
        return False
    for key, accepted in (matcher.get("args") or {}).items():
        if key not in call.input:
            return False
        options = accepted if isinstance(accepted, list) else [accepted]
        if not any(alike(option, call.input[key]) for option in options):
            return False
    return True


def alike(expected: Any, got: Any) -> bool:
    """Whether two values count as equal."""
    if _is_number(expected) and _is_number(got):
        return bool(expected == got)
    if isinstance(expected, bool) or isinstance(got, bool):
        return isinstance(expected, bool) and isinstance(got, bool) and expected == got
    if expected is None or got is None:
        return expected is None and got is None
    if isinstance(expected, str) and isinstance(got, str):
        return standard(expected) == standard(got) or _formula(expected) == _formula(got)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(alike, expected, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        return _objects_alike(expected, got)
    return bool(expected == got)


def _objects_alike(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    if any(key not in expected for key in got):
        return False
    for key, value in expected.items():
        if key not in got:
            if value != "" and not (isinstance(value, list) and "" in value):
                return False
        elif isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
            if not any(alike(option, got[key]) for option in value if option != ""):
                return False
        elif not alike(value, got[key]):
            return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _formula(text: str) -> str:
    """A text as a formula: no white space, no leading `lambda x:`, powers as `**`."""
    text = text.strip()
    found = _LAMBDA.match(text)
    return "".join((text[found.end() :] if found else text).replace("^", "**").split())


# ---- states


def _state(grade: dict[str, Any], values: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    if "state" in grade:
        wrong = None
        for key, expected in (grade["state"] or {}).items():
            path = join((key,))
            wrong = wrong or within(expected, values.get(path, ABSENT), path)
        yield "state", wrong
    if "state_absent" in grade:
        there = [
            path
            for path in grade["state_absent"] or ()
            if values.get(join(tuple(path.split(".")))) is not None
        ]
        yield "state_absent", f"expected nothing at {', '.join(there)}" if there else None


def within(expected: Any, got: Any, path: str) -> str | None:
    """Where an expected value is not within the one there is: of objects the expected keys, of lists every entry."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, item in expected.items():
            wrong = within(item, got.get(key, ABSENT), f"{path}.{join((key,))}")
            if wrong:
                return wrong
        return None
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for at, (one, other) in enumerate(zip(expected, got, strict=True)):
            wrong = within(one, other, f"{path}.{at}")
            if wrong:
                return wrong
        return None
    fits = not isinstance(expected, dict | list) and got is not ABSENT and expected == got
    return None if fits else f"{path}: expected {brief(expected)}, got {brief(got)}"


__all__ = ["alike", "matches", "unmatched", "within", "wrong_file", "wrongs"]
