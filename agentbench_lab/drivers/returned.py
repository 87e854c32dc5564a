"""What a driver gave back, as a transcript of private copies; whatever it may be, nothing else is raised than Nonsense."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call
from agentbench_lab.drivers.faults import Nonsense
from agentbench_lab.errors import did_you_mean
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.values import NotJson, a_kind, plain
from agentbench_lab.worlds.toolbox import Toolbox

LARGEST = 10**13
"""The most that a figure of usage may be: what millions of trials add up to still fits into 64 bits."""


def only_in(process: int) -> None:
    """A driver may fork; the child that comes back from it is no second runner, and ends here."""
    if os.getpid() != process:
        os._exit(0)


def ended(transcript: Transcript, toolbox: Toolbox) -> Transcript:
    """What the control tools were told counts like what the transcript says."""
    ending = toolbox.ending
    if not ending.used:
        return transcript
    changes: dict[str, Any] = {}
    if ending.refused is not None:
        changes["refused"] = True
        if not transcript.notes and ending.refused:
            changes["notes"] = (ending.refused,)
    if ending.answered and transcript.answer is None:
        changes["answer"] = ending.answer
        changes["status"] = transcript.status or ending.status
    if ending.goal is not None and transcript.inferred_goal is None:
        changes["inferred_goal"] = ending.goal
    if ending.reject:
        changes["refused"] = changes["reject"] = True
    if ending.ambiguous is not None and transcript.ambiguous_goals is None:
        changes["refused"], changes["ambiguous_goals"] = True, ending.ambiguous
    if changes.get("refused") and transcript.stop == "done":
        changes["stop"] = "refused"
    return msgspec.structs.replace(transcript, **changes) if changes else transcript


_KEYS = {
    "calls": "calls",
    "answer": "answer",
    "text": "text",
    "status": "status",
    "refused": "refused",
    "terminated": "terminated",
    "proof": "proof",
    "usage": "usage",
    "driver": "driver",
    "result": "result",
    "composed": "result",
    "candidate_results": "candidate_results",
    "candidateResults": "candidate_results",
    "recovered": "recovered",
    "inferred_goal": "inferred_goal",
    "inferredGoal": "inferred_goal",
    "reject": "reject",
    "ambiguous_goals": "ambiguous_goals",
    "ambiguousGoals": "ambiguous_goals",
    "messages": "messages",
    "notes": "notes",
    "why": "notes",
    "cached": "cached",
    "heard": "heard",
    "observed": "observed",
    "stop": "stop",
}


def as_transcript(returned: Any) -> Transcript:
    """What a driver gave back, as a transcript of private copies. Raises Nonsense with the reason, and nothing else."""
    try:
        if type(returned) is Transcript:
            copy = _copied(returned)
            if copy is not None:
                return _settled(copy)
            fields: Mapping[str, Any] = {
                name: getattr(returned, name) for name in Transcript.__struct_fields__
            }
        elif isinstance(returned, Mapping):
            fields = _by_field(returned)
        else:
            raise Nonsense(f"gave back {_a(returned)}, not a transcript or an object with calls, refused, …")
        return _settled(_bounded(_checked(fields)))
    except Nonsense:
        raise
    except NotJson as error:
        raise Nonsense(f"gave back what JSON cannot hold: {error}") from None
    except Exception as error:
        # a driver's own objects can fail wherever they are touched
        raise Nonsense(f"gave back what cannot be read: {type(error).__name__} while reading it") from None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Transcript).decode
SIZE_LIMIT = 500_000
"""Bytes of JSON that a transcript may have, its messages left aside."""
_DRIVERS_STOPS = ("done", "refused", "budget", "driver_error")
# digits all alike, and brackets of both kinds: enough to see long numbers, and to bound the depth
_SHAPE = bytes.maketrans(b"123456789{", b"000000000[")
_LONG = b"0" * 19


_UNUSED, _UNKNOWN = Usage.zero(), Usage()


def _copied(transcript: Transcript) -> Transcript | None:
    """A checked private copy through JSON, which is quick; None where only the slow way can say what is wrong. Raises
    Nonsense for figures that are none."""
    try:
        data = _encode(transcript)
        shape = data.translate(_SHAPE)
        if _LONG in shape or shape.count(b"[") > 64 or len(data) > SIZE_LIMIT:
            # an integer may be too long, a value too deep, the whole too large
            return None
        copy = _decode(data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    # what JSON only resembles (a set, bytes, NaN, a key that is a number) comes back as another value
    if copy != transcript or copy.stop not in _DRIVERS_STOPS:
        return None
    if copy.usage != _UNUSED and copy.usage != _UNKNOWN:
        _check_figures(copy.usage)
    return copy


def _bounded(transcript: Transcript) -> Transcript:
    """The transcript, when it is not larger than what is kept; its messages are bounded elsewhere."""
    size = len(_encode(msgspec.structs.replace(transcript, messages=())))
    if size > SIZE_LIMIT:
        raise Nonsense(f"gave back {size} bytes beside its messages; at most {SIZE_LIMIT} are kept")
    return transcript


def _settled(transcript: Transcript) -> Transcript:
    """The transcript with one story: `stop` says what `refused` and `terminated` say."""
    if transcript.refused:
        if transcript.stop == "done":
            return msgspec.structs.replace(transcript, stop="refused")
    elif transcript.stop == "refused":
        raise Nonsense("stop is 'refused', but refused is false")
    if transcript.stop in ("budget", "driver_error") and transcript.terminated:
        return msgspec.structs.replace(transcript, terminated=False)
    return transcript


def _by_field(returned: Mapping[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in returned.items():
        if key not in _KEYS:
            raise Nonsense(f"gave back an unknown key {key!r}{did_you_mean(str(key), _KEYS, most=0)}")
        if value is not None and _KEYS[key] != "observed":
            fields[_KEYS[key]] = value
    return fields


def _checked(fields: Mapping[str, Any]) -> Transcript:
    stop = fields.get("stop", "done")
    if stop not in _DRIVERS_STOPS:
        raise Nonsense(f"stop {stop!r} is not a driver's to give")
    return Transcript(
        calls=_calls(fields.get("calls"), "calls"),
        answer=plain(fields.get("answer")),
        text=_text(fields.get("text"), "text") or "",
        status=_text(fields.get("status"), "status"),
        refused=_flag(fields, "refused", False),
        terminated=_flag(fields, "terminated", True),
        stop=stop,
        proof=_proof(fields.get("proof")),
        usage=read_usage(fields.get("usage")),
        driver=_text(fields.get("driver"), "driver") or "",
        result=_labels(fields.get("result"), "result"),
        candidate_results=(
            None
            if fields.get("candidate_results") is None
            else _calls(fields["candidate_results"], "candidate_results")
        ),
        recovered=_flag(fields, "recovered", False),
        inferred_goal=_text(fields.get("inferred_goal"), "inferred_goal"),
        reject=_flag(fields, "reject", False),
        ambiguous_goals=_labels(fields.get("ambiguous_goals"), "ambiguous_goals"),
        messages=tuple(plain(list(_sequence(fields.get("messages", ()), "messages")))),
        notes=_notes(fields.get("notes")),
        cached=_flag(fields, "cached", False),
        heard=_flag(fields, "heard", False),
    )


def read_usage(given: Any) -> Usage:
    """Usage as a driver gives it. Raises Nonsense, which says what is no figure."""
    if given is None:
        return Usage()
    if isinstance(given, Usage):
        given = msgspec.structs.asdict(given)
    if not isinstance(given, Mapping):
        raise Nonsense(f"usage is {_a(given)}, not an object")
    for key in given:
        if key not in Usage.__struct_fields__:
            near = did_you_mean(str(key), Usage.__struct_fields__, most=0)
            raise Nonsense(f"usage holds an unknown key {key!r}{near}")
    try:
        usage = msgspec.convert(dict(given), Usage)
    except msgspec.ValidationError as error:
        raise Nonsense(f"usage: {error}") from None
    _check_figures(usage)
    return usage


def checked_usage(given: Any) -> Usage:
    """Usage that an error carries; unknown where it is nonsense, for an error must not fail once more."""
    try:
        return read_usage(given)
    except Exception:
        return Usage()


def _check_figures(usage: Usage) -> None:
    for name in Usage.__struct_fields__:
        figure = getattr(usage, name)
        if figure is not None and not (math.isfinite(figure) and figure >= 0):
            raise Nonsense(f"usage: {name} is {figure}; a figure is a number from 0, or null when unknown")
        if figure is not None and figure > LARGEST:
            raise Nonsense(f"usage: {name} is {figure:,}; a trial uses {LARGEST:,} at most")


def _a(value: Any) -> str:
    return "nothing" if value is None else a_kind(type(value).__name__)


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise Nonsense(f"{what} is {_a(value)}, not a list")
    return value


def _calls(value: Any, what: str) -> tuple[Call, ...]:
    if value is None:
        return ()
    return tuple(_call(item, what) for item in _sequence(value, what))


def _call(item: Any, what: str) -> Call:
    name: Any
    given: Any
    if type(item) is Call:
        name, given = item.name, item.input
    elif isinstance(item, Mapping):
        for key in item:
            if key not in ("name", "input"):
                raise Nonsense(
                    f"{what}: a call has an unknown key {key!r}{_meant(key)}; it is {{name, input}}"
                )
        name, given = item.get("name"), item.get("input")
    else:
        raise Nonsense(f"{what} holds {_a(item)}, not calls of the form {{name, input}}")
    if isinstance(given, list | tuple):
        # a list of arguments binds no key: each position becomes an unknown argument, as the grader expects
        given = {str(position): value for position, value in enumerate(given)}
    return Call(
        plain(name) if isinstance(name, str) else "", plain(dict(given)) if isinstance(given, Mapping) else {}
    )


def _meant(key: Any) -> str:
    if key in ("arguments", "args", "parameters", "kwargs"):
        return " (did you mean 'input'?)"
    return did_you_mean(str(key), ("name", "input"), most=0)


def _proof(value: Any) -> tuple[dict[str, Any], ...]:
    if value is None:
        return ()
    steps = tuple(plain(list(_sequence(value, "proof"))))
    if not all(isinstance(step, dict) for step in steps):
        raise Nonsense("proof holds something that is no step object")
    return steps


def _flag(fields: Mapping[str, Any], name: str, default: bool) -> bool:
    value = fields.get(name, default)
    if type(value) is not bool:
        raise Nonsense(f"{name} is {_a(value)}, not true or false")
    return value


def _text(value: Any, what: str) -> str | None:
    if value is not None and type(value) is not str:
        raise Nonsense(f"{what} is {_a(value)}, not text")
    return plain(value) if value is not None else None


def _labels(value: Any, what: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if not all(type(item) is str for item in _sequence(value, what)):
        raise Nonsense(f"{what} holds something that is no text")
    return tuple(plain(list(value)))


def _notes(value: Any) -> tuple[str, ...]:
    return _labels([value] if isinstance(value, str) else value, "notes") or ()
