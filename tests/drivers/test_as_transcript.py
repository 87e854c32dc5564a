"""What a driver gives back becomes a transcript of private copies, or is nonsense with a reason; never anything else."""

from __future__ import annotations

import datetime
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.cases import Call
from agentbench_lab.drivers import returned
from agentbench_lab.drivers.faults import Nonsense
from agentbench_lab.drivers.returned import as_transcript
from agentbench_lab.transcripts import Transcript, Usage

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


class Hostile:
    """Fails wherever it is touched."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __hash__ = __bool__ = __str__  # type: ignore[assignment]


class HostileMapping(dict[str, Any]):
    def items(self) -> Any:
        raise OSError("no")


def calls_with(value: Any) -> dict[str, Any]:
    return {"calls": [{"name": "a", "input": {"x": value}}]}


NONSENSE: dict[str, tuple[Any, str]] = {
    "nothing": (None, "gave back nothing"),
    "a number": (3, "gave back an int"),
    "text": ("done", "gave back a str"),
    "a list": ([], "gave back a list"),
    "a class": (Transcript, "gave back a StructMeta"),
    "an unknown key": ({"cals": []}, "unknown key 'cals' (did you mean 'calls'?)"),
    "a key that is no text": ({5: []}, "unknown key 5"),
    "calls not a list": ({"calls": "x"}, "calls is a str, not a list"),
    "calls a dict": ({"calls": {"name": "a"}}, "calls is a dict, not a list"),
    "a call that is text": ({"calls": ["describe"]}, "calls holds a str"),
    "a call that is null": ({"calls": [None]}, "calls holds nothing"),
    "NaN": (calls_with(math.nan), "nan is no JSON number"),
    "infinity": (calls_with(math.inf), "inf is no JSON number"),
    "a set": (calls_with({1, 2}), "a set is no JSON value"),
    "bytes": (calls_with(b"x"), "a bytes is no JSON value"),
    "a date": (calls_with(datetime.date(2020, 1, 1)), "a date is no JSON value"),
    "a key that is a number": (calls_with({1: 2}), "a key"),
    "a lone surrogate": (calls_with("\ud800"), "lone surrogate"),
    "a lone surrogate deeper": (calls_with(["é", {"k": "\udfff"}]), "lone surrogate"),
    "a lone surrogate as a key": (calls_with({"\ud800": 1}), "lone surrogate"),
    "a lone surrogate as a name": ({"calls": [{"name": "\ud800"}]}, "lone surrogate"),
    "a lone surrogate as a note": ({"notes": ["\ud800"]}, "lone surrogate"),
    "a huge integer": (calls_with(2**70), "64 bits"),
    "a huge negative integer": (calls_with(-(2**63) - 1), "64 bits"),
    "a list that holds itself": (calls_with(CYCLE), "nested"),
    "refused by a word": ({"refused": "yes"}, "refused is a str, not true or false"),
    "refused by a number": ({"refused": 1}, "refused is an int, not true or false"),
    "terminated by a list": ({"terminated": []}, "terminated is a list"),
    "driver not text": ({"driver": 5}, "driver is an int, not text"),
    "status not text": ({"status": ["ok"]}, "status is a list, not text"),
    "goal not text": ({"inferredGoal": ["g"]}, "inferred_goal is a list, not text"),
    "labels not text": ({"result": ["a", 1]}, "result holds something that is no text"),
    "labels not a list": ({"composed": "a"}, "result is a str, not a list"),
    "labels of a mixed set": ({"result": {"a", 1}}, "result holds something that is no text"),
    "goals not text": ({"ambiguousGoals": [None]}, "ambiguous_goals holds something that is no text"),
    "notes not text": ({"notes": [5]}, "notes holds something that is no text"),
    "messages not a list": ({"messages": 0}, "messages is an int, not a list"),
    "proof not a list": ({"proof": True}, "proof is a bool, not a list"),
    "proof of text": ({"proof": ["because"]}, "no step object"),
    "candidates not a list": ({"candidateResults": 1}, "candidate_results is an int, not a list"),
    "a stop of the runner's": ({"stop": "infrastructure_error"}, "stop 'infrastructure_error' is not a driver's"),
    "another stop of the runner's": ({"stop": "timeout"}, "stop 'timeout' is not a driver's"),
    "an unknown stop": ({"stop": []}, "stop [] is not a driver's"),
    "usage not an object": ({"usage": 3}, "usage is an int, not an object"),
    "usage an empty list": ({"usage": []}, "usage is a list, not an object"),
    "negative usage": ({"usage": {"output": -1}}, "usage: output is -1"),
    "negative time": ({"usage": {"wall_s": -0.5}}, "usage: wall_s is -0.5"),
    "time without end": ({"usage": {"wall_s": math.inf}}, "usage: wall_s is inf"),
    "time that is none": ({"usage": {"wall_s": math.nan}}, "usage: wall_s is nan"),
    "usage in words": ({"usage": {"output": "many"}}, "usage: "),
    "half a token": ({"usage": {"output": 1.5}}, "usage: "),
    "usage that is true": ({"usage": {"output": True}}, "usage: "),
    "usage no column can hold": ({"usage": {"cost_micros": 2**63}}, "cost_micros is 9,223,372,036,854,775,808"),
    "an unknown figure": ({"usage": {"outputs": 1}}, "unknown key 'outputs' (did you mean 'output'?)"),
    "a mapping that fails": (HostileMapping(calls=[]), "OSError while reading it"),
    "an object that fails": ({"driver": Hostile()}, "driver is a Hostile"),
    "a key that fails": ({"result": {"a"}, "notes": [Hostile()]}, "notes holds something"),
    "wrong field: calls": (Transcript(calls="x"), "calls is a str"),  # type: ignore[arg-type]
    "wrong field: usage": (Transcript(usage=Usage(output="x")), "usage: "),  # type: ignore[arg-type]
    "wrong field: no usage object": (Transcript(usage=3), "usage is an int"),  # type: ignore[arg-type]
    "wrong field: negative usage": (Transcript(usage=Usage(cost_micros=-1)), "cost_micros is -1"),
    "wrong field: huge usage": (Transcript(usage=Usage(cost_micros=2**64)), "cost_micros"),
    "wrong field: stop": (Transcript(stop="infrastructure_error"), "is not a driver's"),
    "a call with another word for input": ({"calls": [{"name": "a", "arguments": {}}]}, "did you mean 'input'?"),
    "a call with a key too many": ({"calls": [{"name": "a", "ok": True}]}, "a call has an unknown key 'ok'"),
    "two stories of the end": (Transcript(stop="refused"), "stop is 'refused', but refused is false"),
    "more than is kept": (Transcript(answer="x" * 600_000), "beside its messages; at most 500000 are kept"),
    "more than is kept, in notes": ({"why": ["x" * 400_000] * 2}, "at most 500000 are kept"),
    "wrong field: answer": (Transcript(answer=math.nan), "nan is no JSON number"),
    "wrong field: answer of bytes": (Transcript(answer=[b"x"]), "a bytes is no JSON value"),
    "wrong field: long answer": (Transcript(answer=10**19 * 9), "64 bits"),
    "wrong field: messages": (Transcript(messages=({"at": datetime.time(12)},)), "a time is no JSON value"),
    "wrong field: note": (Transcript(notes=("\udc80",)), "lone surrogate"),
    "wrong field: input": (Transcript(calls=(Call("a", {"x": object()}),)), "an object is no JSON value"),
}  # fmt: skip


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_has_a_reason(name: str) -> None:
    """Each is refused by its own reason, which can be kept in a file."""
    value, reason = NONSENSE[name]
    with pytest.raises(Nonsense) as caught:
        as_transcript(value)
    assert reason in str(caught.value)
    str(caught.value).encode()


def test_an_object_in_the_ladders_own_shape() -> None:
    """Its camelCase keys, `composed`, `why` and `observed`; null is the same as absent."""
    made = as_transcript(
        {
            "calls": [{"name": "a", "input": {"x": 1}}, {"name": "b"}],
            "candidateResults": [{"name": "c", "input": {}}],
            "inferredGoal": "g",
            "ambiguousGoals": ["g", "h"],
            "composed": {"b", "a"},
            "observed": object(),
            "why": "because",
            "proof": None,
            "usage": {"output": 3},
            "refused": None,
        }
    )
    assert made == Transcript(
        calls=(Call("a", {"x": 1}), Call("b")),
        candidate_results=(Call("c"),),
        inferred_goal="g",
        ambiguous_goals=("g", "h"),
        result=("a", "b"),
        notes=("because",),
        usage=Usage(output=3),
    )


def test_snake_and_camel_keys_are_the_same() -> None:
    values = {"candidate_results": [{"name": "c"}], "inferred_goal": "g", "ambiguous_goals": ["g"]}
    camel = {"candidateResults": [{"name": "c"}], "inferredGoal": "g", "ambiguousGoals": ["g"]}
    assert as_transcript(values) == as_transcript(camel)


@pytest.mark.parametrize(
    ("input", "kept"),
    [(["a", 2], {"0": "a", "1": 2}), (("a",), {"0": "a"}), ("a", {}), (None, {}), (7, {})],
)
def test_arguments_that_are_no_object(input: Any, kept: dict[str, Any]) -> None:
    """Positions become unknown arguments, and any other value is no argument: the grader sees what cannot bind."""
    assert as_transcript({"calls": [{"name": "a", "input": input}]}).calls == (Call("a", kept),)


@pytest.mark.parametrize("name", [None, 5, ["a"]])
def test_a_call_without_a_name_is_kept_as_one(name: Any) -> None:
    """So that it is judged hallucinated, and not passed over."""
    assert as_transcript({"calls": [{"name": name, "input": {}}]}).calls == (Call("", {}),)


@pytest.mark.parametrize("shape", ["transcript", "object"])
def test_a_transcript_is_of_private_copies(shape: str) -> None:
    """What the driver does to its own objects afterwards changes nothing."""
    input: dict[str, Any] = {"x": ["a"], "plain": "b"}
    message = {"role": "user", "parts": ["hello"]}
    step = {"step": "effect", "topic": ["t"]}
    if shape == "transcript":
        made = as_transcript(Transcript(calls=(Call("a", input),), messages=(message,), proof=(step,)))
    else:
        made = as_transcript(
            {"calls": [{"name": "a", "input": input}], "messages": [message], "proof": [step]}
        )
    before = msgspec.json.encode(made)
    input["x"].append("b")
    input["plain"] = "c"
    message["parts"].clear()  # type: ignore[attr-defined]
    step["topic"].clear()  # type: ignore[attr-defined]
    step["more"] = "x"
    assert msgspec.json.encode(made) == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
odd_values = st.recursive(
    json_values
    | st.sampled_from([{1}, b"x", (1, "a"), datetime.date(2020, 1, 1), "\ud800", {2: 3}, {None: 1}, object]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
objects = st.dictionaries(st.text(max_size=3), odd_values, max_size=3)
figures = st.none() | st.integers(-2, 2**64) | st.floats() | st.sampled_from([True, "1"])
transcripts = st.builds(
    Transcript,
    calls=st.lists(st.builds(Call, name=st.text(max_size=3), input=objects), max_size=2).map(tuple),
    answer=odd_values,
    stop=st.sampled_from(["done", "refused", "timeout", "budget"]),
    proof=st.lists(objects, max_size=2).map(tuple),
    usage=st.builds(Usage, output=figures, cost_micros=figures, wall_s=figures),
    result=st.none() | st.lists(st.text(max_size=2), max_size=2).map(tuple) | st.just({"b", "a"}),
    messages=st.lists(odd_values, max_size=2).map(tuple),
    notes=st.lists(st.text(max_size=3) | st.just("\udc00"), max_size=2).map(tuple),
)


def slowly(transcript: Transcript) -> Transcript:
    return returned._checked({name: getattr(transcript, name) for name in Transcript.__struct_fields__})


@settings(deadline=None)
@given(transcripts)
def test_the_quick_copy_agrees_with_the_slow_one(transcript: Transcript) -> None:
    """Where the quick way gives a copy, the slow one gives the same; where the slow one refuses, it gives none."""
    try:
        quick = returned._copied(transcript)
    except Nonsense:
        quick = None
    try:
        slow = slowly(transcript)
    except (Nonsense, ValueError):
        assert quick is None
    else:
        assert quick is None or msgspec.json.encode(quick) == msgspec.json.encode(slow)


def test_the_quick_copy_is_used_for_a_usual_transcript() -> None:
    """Or nothing above would be tested."""
    usual = Transcript(calls=(Call("a", {"x": "é"}),), usage=Usage.zero(), notes=("n",))
    assert returned._copied(usual) == usual
