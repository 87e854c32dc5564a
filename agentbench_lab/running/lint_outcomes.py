"""The self-test of a case that is judged by its outcome: its reference solution is really carried out in its world.

The reference is the case's `gold` (calls and an answer), else its `expect.calls`. It has to pass; a trial that does
nothing must not; and with any one expected leaf changed, or a call left out that changes something, it must fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from agentbench_lab.cases import Call, Case, Expect
from agentbench_lab.errors import did_you_mean
from agentbench_lab.expect import ExpectedAnswer, form_of
from agentbench_lab.expect_work import ExpectedFile, ExpectedOutput, texts
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.paths import ABSENT, Change, Path, join, look, split
from agentbench_lab.running.mutants import changed_call, filled, replaced
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import plain
from agentbench_lab.worlds.sandbox import Sandbox
from agentbench_lab.worlds.seen import Seen, StateSeen
from agentbench_lab.worlds.seen_work import Blob, FileSeen, blob
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox, World

_END = {"state": "state", "files": "files", "command": "end of the command"}
_NO_ANSWER = "expect.answer: no text follows from it; give gold.answer, an answer that is right"


def outcome_problems(case: Case, world: World) -> Iterator[str]:
    """What the case promises and does not hold."""
    expect = case.expect
    if expect.mode != "strict":
        # a published rule has its own corners: what it passes is not ours to prove
        return
    if expect.of_state and world.kind != "state":
        yield f"expects a state, and world {world.name!r} is a {world.kind}"
        return
    if expect.key in ("state", "files", "command") and case.gold is None and not expect.expected_calls:
        yield f'needs gold, a reference solution: {{"calls": [...]}} that lead to the expected {_END[expect.key]}'
        return
    if isinstance(world, Sandbox):
        yield from _hidden(case, world)
    answer = reference_answer(case)
    if expect.answer is not None and answer is None:
        yield _NO_ANSWER
        return
    calls = reference_calls(case)
    evidence, failed = _carried_out(case, world, calls)
    yield from failed
    yield from _parents(case, world)
    yield from _alternatives(case, world, calls)
    if failed:
        return
    reference = Transcript(calls=calls, refused=expect.refuse, answer=answer)
    verdict = grade(case, reference, evidence)
    if not verdict.solved:
        reasons = "; ".join(verdict.reasons) or str(verdict.outcome)
        yield f"gold self-test: the reference solution does not pass: {reasons}{_near(case, world)}{_within(case)}"
        return
    for what, graded in _mutants(case, world, reference, evidence):
        if graded.solved:
            yield f"gold self-test: {what} still passes"
    yield from _lax(case, evidence)


class Warns(str):
    """What lint says of something that holds, and is likely not what was meant."""


def _lax(case: Case, evidence: Evidence) -> Iterator[str]:
    """Texts that are expected somewhere, and are a whole line of the reference's: a longer line would pass as well."""
    found = evidence.seen.work if evidence.seen is not None else None
    if found is None:
        return
    places: list[tuple[str, ExpectedFile | ExpectedOutput | None, Blob | None]] = [
        (f"files.{path}", expected, found.files[path].blob)
        for path, expected in (case.expect.files or {}).items()
    ]
    if case.expect.command is not None and found.command is not None:
        for stream in ("stdout", "stderr"):
            places.append(
                (f"command.{stream}", getattr(case.expect.command, stream), getattr(found.command, stream))
            )
    for where, expected, kept in places:
        lines = kept.data.decode(errors="replace").splitlines() if kept is not None else ()
        given = () if expected is None or expected.exact is not None else expected.contains
        for text in texts(given):
            if text in lines:
                yield Warns(
                    f"warning: expect.{where}.contains: {text!r} is a whole line of the reference's, and {text + '1'!r} "
                    "would pass too; write `line` for a whole line"
                )


def reference_calls(case: Case) -> tuple[Call, ...]:
    """The calls of the reference solution: `gold`, else the expected ones with what they leave open filled in."""
    if case.gold is not None and case.gold.calls:
        return case.gold.calls
    return tuple(Call(call.name, filled(call)) for call in case.expect.expected_calls)


def reference_answer(case: Case) -> Any:
    """The reference answer: the one given, else one that follows from what is expected of it."""
    expected = case.expect.answer
    if case.gold is not None and case.gold.answer is not None:
        return case.gold.answer
    if expected is None:
        return None
    if expected.exact is not UNSET:
        return expected.exact
    if expected.number is not None:
        return expected.number
    if expected.gaia is not None:
        return expected.gaia
    return " ".join((*expected.texts, *expected.words)) if expected.regex is None else None


def _carried_out(case: Case, world: World, calls: Sequence[Call]) -> tuple[Evidence, list[str]]:
    """The evidence of a trial that makes these calls, and those of them that fail."""
    toolbox = Toolbox(world.fork(), case.task.tools)
    failed = []
    word = "gold" if case.gold is not None and case.gold.calls else "call"
    for number, call in enumerate(calls, start=1):
        seen = toolbox.call(call.name, call.input)
        if not seen.ok:
            failed.append(f"{word} {number}: {call.name} does not work here: {seen.text}")
        elif isinstance(seen.value, dict) and call.name == "bash" and seen.value.get("exit") != 0:
            failed.append(f"{word} {number}: {seen.text}")
    ledger = toolbox.close()
    evidence = _evidence(ledger, len(calls), toolbox.seen(case.expect))
    toolbox.release()
    if toolbox.fault:
        failed.append(toolbox.fault)
    return evidence, failed


def _alternatives(case: Case, world: World, calls: Sequence[Call]) -> Iterator[str]:
    """Every accepted value works where it stands, after the calls before it."""
    if case.gold is not None and case.gold.calls:
        return
    for at, expected in enumerate(case.expect.expected_calls):
        for key, values in expected.accept.items():
            for value in values:
                toolbox = Toolbox(world.fork(), case.task.tools)
                for call in calls[:at]:
                    toolbox.call(call.name, call.input)
                seen = toolbox.call(expected.name, {**calls[at].input, key: value})
                toolbox.release()
                if not seen.ok:
                    yield f"call {at + 1}: accept.{key}: does not work here: {seen.text}"


def _evidence(ledger: tuple[LedgerRow, ...], calls: int, seen: Seen | None) -> Evidence:
    return Evidence(ledger, ((),) * calls, seen=seen)


def _mutants(
    case: Case, world: World, reference: Transcript, evidence: Evidence
) -> Iterator[tuple[str, Grade]]:
    expect = case.expect
    idle, _ = _carried_out(case, world, ())
    if expect.refuse:
        yield "not refusing", grade(case, msgspec.structs.replace(reference, refused=False), evidence)
    elif expect.calls != () and expect.order != "subset":
        yield "doing nothing", grade(case, Transcript(), idle)
    for number, row in enumerate(evidence.ledger, start=1):
        if not row.changes or expect.refuse or expect.order == "subset":
            continue
        fewer = (*reference.calls[: number - 1], *reference.calls[number:])
        seen, failed = _carried_out(case, world, fewer)
        if not failed:
            left_out = msgspec.structs.replace(reference, calls=fewer)
            yield f"call {number} ({row.name}) left out", grade(case, left_out, seen)
    yield from _of_calls(case, reference, evidence)
    yield from _of_state(case, reference, evidence)
    yield from _of_work(case, reference, evidence)
    if expect.answer is not None:
        for answer in _other_answers(expect.answer):
            other = msgspec.structs.replace(reference, answer=answer)
            yield f"the answer {answer!r}", grade(case, other, evidence)


def _of_calls(case: Case, reference: Transcript, evidence: Evidence) -> Iterator[tuple[str, Grade]]:
    """Each pinned leaf of each expected call changed, the ledger bearing the changed call out."""
    expect = case.expect
    if case.gold is not None and case.gold.calls:
        return
    for at, wanted in enumerate(expect.expected_calls):
        for path, call in changed_call(reference.calls[at], wanted, case.task.tools):
            calls = (*reference.calls[:at], call, *reference.calls[at + 1 :])
            row = msgspec.structs.replace(evidence.ledger[at], name=call.name, input=call.input)
            ledger = (*evidence.ledger[:at], row, *evidence.ledger[at + 1 :])
            other = msgspec.structs.replace(reference, calls=calls)
            yield (
                f"calls[{at}].{path} replaced by another value",
                grade(case, other, _evidence(ledger, len(calls), evidence.seen)),
            )
        if expect.order != "subset":
            calls = reference.calls[:at] + reference.calls[at + 1 :]
            ledger = evidence.ledger[:at] + evidence.ledger[at + 1 :]
            yield (
                f"calls[{at}] left out",
                grade(
                    case,
                    msgspec.structs.replace(reference, calls=calls),
                    _evidence(ledger, len(calls), evidence.seen),
                ),
            )


def _of_state(case: Case, reference: Transcript, evidence: Evidence) -> Iterator[tuple[str, Grade]]:
    """Each expected leaf of the state changed or taken away, each absent path filled, something else changed."""
    expect = case.expect
    found = evidence.seen.state if evidence.seen is not None else None
    if found is None:
        return

    def judged(values: dict[str, Any], changes: tuple[Change, ...] = found.changes) -> Grade:
        seen = Seen(StateSeen(values, changes))
        return grade(case, reference, msgspec.structs.replace(evidence, seen=seen))

    for path, expected in {**(expect.state or {}), **(expect.state_equals or {})}.items():
        for where, value in _wrong_values(found.values[path], expected, path):
            yield f"{where} replaced by another value", judged({**found.values, path: value})
        yield f"{path} taken away", judged({k: v for k, v in found.values.items() if k != path})
    for path in expect.state_absent:
        yield f"{path} there as null", judged({**found.values, path: None})
    if expect.state_equals is not None:
        odd = Change("~", new=0)
        yield "another change beside", judged(dict(found.values), (*found.changes, odd))
        for sibling in _siblings(expect):
            odd = Change(join(sibling), new=0)
            yield f"{odd.path} there too", judged(dict(found.values), (*found.changes, odd))


def _siblings(expect: Expect) -> Iterator[Path]:
    """Keys that nobody asked for: one beside each expected path, and one within each object of which `state` looks at
    some keys. What lies where anything goes is left out."""
    expected = {
        split(text): value for text, value in {**(expect.state or {}), **(expect.state_equals or {})}.items()
    }
    free = [*expected, *map(split, expect.state_absent)]
    found = [(*path[:-1], "~") for path in expected]
    for text, value in (expect.state or {}).items():
        options = form_of(value).options
        if len(options) == 1 and type(options[0]) is dict and options[0]:
            found.append((*split(text), "~"))
            free.remove(split(text))
    for sibling in dict.fromkeys(found):
        if len(sibling) > 1 and not any(sibling[: len(path)] == path for path in free):
            yield sibling


def _hidden(case: Case, world: Sandbox) -> Iterator[str]:
    """What an agent could read or change of its own check."""
    command = case.expect.command
    for path in command.files if command is not None else ():
        if path in world.spec.files:
            yield f"expect.command.files: {path!r} is in the world's files too; make it protected instead"


def _of_work(case: Case, reference: Transcript, evidence: Evidence) -> Iterator[tuple[str, Grade]]:
    """Each expected file taken away or changed at its end, each absent one there, the command ended in another way."""
    expect = case.expect
    found = evidence.seen.work if evidence.seen is not None else None
    if found is None:
        return

    def judged(**changes: Any) -> Grade:
        seen = Seen(work=msgspec.structs.replace(found, **changes))
        return grade(case, reference, msgspec.structs.replace(evidence, seen=seen))

    for path, expected in (expect.files or {}).items():
        other = FileSeen("file", blob(b"")) if expected.absent else FileSeen("nothing")
        word = "there" if expected.absent else "taken away"
        yield f"file {path} {word}", judged(files={**found.files, path: other})
        kept = found.files[path].blob
        if expected.exact is not None and kept is not None:
            longer = FileSeen("file", blob(kept.data + b"~"))
            yield f"file {path} with a character more", judged(files={**found.files, path: longer})
    if expect.command is not None and found.command is not None:
        ended = msgspec.structs.replace(found.command, exit=None, timed_out=True)
        yield "the command out of time", judged(command=ended)
        if expect.command.exit is not None:
            other_exit = msgspec.structs.replace(found.command, exit=expect.command.exit + 1)
            yield "the command with another exit", judged(command=other_exit)
        for stream in ("stdout", "stderr"):
            if getattr(expect.command, stream) is not None:
                silent = msgspec.structs.replace(found.command, **{stream: blob(b"")})
                yield f"the command without its {stream}", judged(command=silent)


def _wrong_values(value: Any, expected: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The value with one expected leaf replaced, each in turn, by something that is not expected there either."""
    form = form_of(expected)
    if len(form.options) > 1:
        yield path, next(other for other in ("~", "~~", ["~"]) if other not in form.options)
        return
    for where, changed in replaced(form.options[0], path):
        for other in changed:
            if form.tol is None:
                yield where, other
                break
            if _far(form.options[0], other, form.tol):
                yield where, other
                break


def _far(a: Any, b: Any, tol: float) -> bool:
    """Whether some number of `b` lies beyond the tolerance, or something else differs."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() != b.keys() or any(_far(a[key], b[key], tol) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(_far(x, y, tol) for x, y in zip(a, b, strict=True))
    if type(a) in (int, float) and type(b) in (int, float):
        return bool(abs(a - b) > 2 * tol)
    return bool(type(a) is not type(b) or a != b)


def _other_answers(expected: ExpectedAnswer) -> Iterator[Any]:
    """Answers that are wrong whatever is expected, and the nearly right ones."""
    if expected.gaia != "None":
        yield None
    yield "~ something else ~"
    yield ""
    if expected.exact is not UNSET:
        for _, changed in replaced(plain(expected.exact), "answer"):
            yield next(iter(changed))
    if expected.number is not None:
        yield expected.number + 2 * expected.tol + 1
        yield expected.number - 2 * expected.tol - 1
        yield True
    if expected.gaia is not None:
        yield f"{expected.gaia}x"
    for text in (*expected.texts, *expected.words):
        yield text[:-1]


def _parents(case: Case, world: World) -> Iterator[str]:
    """`state_equals` is about the world that was given: each path's holder has to be there, so that what is expected
    beside it stays as it was."""
    toolbox = Toolbox(world.fork(), case.task.tools)
    for text in case.expect.state_equals or ():
        path = split(text)
        if len(path) > 1:
            holder = msgspec.structs.replace(
                case.expect, state=None, state_absent=(), state_equals={join(path[:-1]): None}
            )
            seen = toolbox.seen(holder)
            if seen is not None and seen.state is not None and not seen.state.values:
                yield f"expect.state_equals: {text!r}: there is no {join(path[:-1])!r} to begin with; expect that as a whole"


def _near(case: Case, world: World) -> str:
    """The nearest right word for an expected path that leads nowhere."""
    state = getattr(world, "state", None)
    for text in (*(case.expect.state or ()), *(case.expect.state_equals or ())):
        path = split(text)
        for at in range(len(path)):
            if look(state, path[: at + 1]) is ABSENT:
                holder = look(state, path[:at])
                hint = did_you_mean(path[at], holder, most=0) if isinstance(holder, dict) else ""
                if hint:
                    return hint
                break
    return ""


def _within(case: Case) -> str:
    """A hint where an expected value has something in it that looks like a form, and is compared as it stands."""
    expect = case.expect
    for key, expected in (("state", expect.state), ("state_equals", expect.state_equals)):
        for text, value in (expected or {}).items():
            inner = form_of(value).options if key == "state" else (value,)
            for at in inner:
                for path in _forms(at, split(text), itself=key == "state_equals"):
                    return (
                        f" ({key}.{text}: what stands at {join(path)} is compared as it is; tol, unordered and any_of "
                        f"count only for a path of `state`: name {join(path)!r} there)"
                    )
    return ""


def _forms(value: Any, path: Path, *, itself: bool = False) -> Iterator[Path]:
    """The paths within a value at which an object is what would be a form at a path of its own."""
    if isinstance(value, dict):
        keys = value.keys()
        if itself and (
            keys == {"any_of"} or ("value" in keys and {"value"} < keys <= {"value", "tol", "unordered"})
        ):
            yield path
        for key, item in value.items():
            yield from _forms(item, (*path, key), itself=True)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _forms(item, (*path, str(at)), itself=True)


__all__ = ["Warns", "outcome_problems"]
