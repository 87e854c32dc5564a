"""Reading case files: bytes to cases, all problems at once, selection, and the JSON Schema."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import structs

from agentbench_lab.cases import (
    RUNGS,
    Call,
    Case,
    Expect,
    ExpectedCall,
    Goal,
    Suite,
    case_schema,
    checked_suite,
    find_suite,
    load_suite,
    parse_cases,
    project_root,
    select,
    suite_of,
)
from agentbench_lab.errors import LabError, ProblemsError
from agentbench_lab.running.runner import evaluate

from . import doing
from .helpers import call, case, expected, line, to_bytes


def problems_of(data: bytes) -> list[str]:
    return [str(problem) for problem in parse_cases(data, name="s", file="s.jsonl")[1]]


def problems_in(**keys: Any) -> list[str]:
    """What is wrong with one line, without where."""
    return [
        text.removeprefix("s.jsonl:1: ").removeprefix("c: ") for text in problems_of(to_bytes(line(**keys)))
    ]


# -- lines


def _rest() -> bytes:
    return b'"rung":"TOOL-0","tools"' + json.dumps(line()).encode().split(b'"tools"', 1)[1]


# id and request are bytes as reported; the other required keys are added so that the lines are whole cases
REPORTED = (
    b'\xef\xbb\xbf{"id":"c1","request":"first\xe2\x80\xa8second",' + _rest() + b"\r\n"
    b"\r\n"
    b'{"id":"c2","request":"tab\xc2\x85end",' + _rest() + b"\n"
    b'{"id":"c3","request":"last",' + _rest()
)


def test_b01_separators_inside_text_do_not_end_a_line() -> None:
    """A BOM, CRLF, a blank line, U+2028 and U+0085 in strings, no last newline: three cases, no problem (B01)."""
    cases, problems = parse_cases(REPORTED, name="s", file="s.jsonl")
    assert problems == []
    assert [one.id for one in cases] == ["c1", "c2", "c3"]
    assert [len(one.task.request) for one in cases] == [12, 7, 4]
    assert [one.line for one in cases] == [1, 3, 4]
    assert cases[0].task.request == "first\u2028second"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\n\n%s\n \t\r\n%s\n", [3, 5]),
        (b"%s\r\n%s\r\n", [1, 2]),
        (b"  %s \n\t%s", [1, 2]),
        (b"\xef\xbb\xbf\n%s\n%s", [2, 3]),
    ],
)
def test_blank_lines_are_skipped_and_counted(data: bytes, lines: list[int]) -> None:
    cases, problems = parse_cases(
        data % (to_bytes(line(id="a")).strip(), to_bytes(line(id="b")).strip()), name="s", file="f"
    )
    assert problems == []
    assert [(one.id, one.line) for one in cases] == list(zip("ab", lines, strict=True))


@pytest.mark.parametrize("data", [b"", b"\n\r\n  \n", b"\xef\xbb\xbf"])
def test_a_file_without_cases_is_a_problem_of_the_file(data: bytes) -> None:
    assert problems_of(data) == ["s.jsonl: no cases"]


def _with_input(text: bytes) -> bytes:
    return to_bytes(line(expect=expected(call("any", a="@")))).replace(b'"@"', text)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"not json", "invalid JSON: invalid character (byte 4)"),
        (b'{"id":12, nope', "invalid JSON: object keys must be strings"),
        (b"{", "invalid JSON: input data was truncated"),
        (b"{} {}", "invalid JSON: trailing characters"),
        (b"[]", "a case must be a JSON object"),
        (b"7", "a case must be a JSON object"),
        (b"null", "a case must be a JSON object"),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"id":1}', "invalid JSON: "),
        (b"[" * 100_000, "invalid JSON: nested too deeply"),
        (b'{"id":0012}', "invalid JSON: "),
        (b"{'id':1}", "invalid JSON: "),
        (_with_input(b"NaN"), "invalid JSON: "),
        (_with_input(b"Infinity"), "invalid JSON: "),
        (_with_input(b"1e999"), "invalid JSON: a number is out of range"),
        (_with_input(b"9" * 5000), "invalid JSON: a number is out of range"),
        (
            _with_input(b"18446744073709551616"),
            "expect.calls[0].input.a: the integer does not fit into 64 bits",
        ),
        (_with_input(b'"\xff"'), "invalid JSON: invalid UTF-8 encoded string"),
        (_with_input(b'"\\ud800"'), "invalid JSON: "),
        (_with_input(b"[" * 200 + b"]" * 200), "nested deeper than 100 levels"),
        (_with_input(b'{"x":1,"x":1}'), "key 'x' is given twice"),
        (to_bytes(line()).replace(b'"id"', b'"request": "r", "id"'), "key 'request' is given twice"),
    ],
)
def test_what_is_no_json_is_said_with_its_line(data: bytes, says: str) -> None:
    """One problem on line 3, and the sound case after it is still read."""
    cases, problems = parse_cases(
        b"\n\n" + data.strip() + b"\n" + to_bytes(line(id="sound")), name="s", file="s.jsonl"
    )
    assert [str(problem)[: len("s.jsonl:3")] for problem in problems] == ["s.jsonl:3"]
    assert says in str(problems[0])
    assert cases[-1].id == "sound"


# -- shapes: what is wrong with a single value; the JSON Schema has to refuse the same

SHAPES: list[tuple[dict[str, Any], list[str]]] = [
    ({"id": 12}, ["id: expected text, got a whole number"]),
    ({"id": None}, ["id: expected text, got null"]),
    ({"request": ["r"]}, ["request: expected text, got a list"]),
    ({"tools": "look"}, ["tools: expected a list, got text"]),
    ({"tools": ["look", 7, "near", None]}, ["tools[1]: expected text, got a whole number", "tools[3]: expected text, got null"]),
    ({"rung": 3}, ["rung: expected text or null, got a whole number"]),
    ({"expect": []}, ["expect: expected an object, got a list"]),
    ({"expect": "refuse"}, ["expect: expected an object, got text"]),
    ({"reqest": "r"}, ["unknown key 'reqest' (did you mean 'request'?)"]),
    ({"zzz": 1}, ["unknown key 'zzz'"]),
    ({"it's - at `$.id`": 1}, ['unknown key "it\'s - at `$.id`"']),
    ({"expect": expected(refuze=True)}, ["unknown key 'refuze' in expect (did you mean 'refuse'?)"]),
    ({"expect": expected(refuse="yes")}, ["expect.refuse: expected true or false, got text"]),
    ({"expect": expected(refuse=1)}, ["expect.refuse: expected true or false, got a whole number"]),
    ({"expect": expected(terminates="yes")}, ["expect.terminates: expected true or false or null, got text"]),
    ({"expect": expected(proof=0)}, ["expect.proof: expected true or false, got a whole number"]),
    ({"expect": expected(calls={"name": "look"})}, ["expect.calls: expected a list, got an object"]),
    ({"expect": expected(calls=None)}, ["expect.calls: expected a list, got null"]),
    (
        {"expect": expected(calls=["look", {"name": "look", "inptu": {}}, {"input": []}])},
        [
            "expect.calls[0]: expected an object, got text",
            "unknown key 'inptu' in expect.calls[1] (did you mean 'input'?)",
            "expect.calls[2].input: expected an object, got a list",
            "missing name in expect.calls[2]",
        ],
    ),
    (
        # alternatives are a list: a text would be taken apart into letters
        {"expect": expected(calls=[{"name": "look", "accept": {"what": ["oak"], "how": "john"}}])},
        ["expect.calls[0].accept.how: expected a list, got text"],
    ),
    ({"expect": expected(calls=[{"name": "look", "optional": "what"}])}, ["expect.calls[0].optional: expected a list, got text"]),
    ({"expect": expected(order="any_ordr")}, ["expect.order: 'any_ordr' is not known (did you mean 'any_order'?)"]),
    ({"expect": {"state": [1]}}, ["expect.state: expected an object or null, got a list"]),
    ({"expect": {"answer": {"exat": 1}}}, ["unknown key 'exat' in expect.answer (did you mean 'exact'?)"]),
    ({"expect": {"answer": {"number": "1"}}}, ["expect.answer.number: expected a whole number or a number or null, got text"]),
    ({"gold": {"calls": [{"nam": "look"}]}}, ["unknown key 'nam' in gold.calls[0] (did you mean 'name'?)"]),
    ({"expect": expected(forbid="paint")}, ["expect.forbid: expected a list, got text"]),
    ({"expect": expected(result="oak")}, ["expect.result: expected a list or null, got text"]),
    ({"expect": expected(result=["oak", 7])}, ["expect.result[1]: expected text, got a whole number"]),
    ({"expect": expected(recover=True)}, ["expect.recover: expected an object or null, got true or false"]),
    ({"expect": expected(recover={"after": "near"})}, ["missing fallback in expect.recover"]),
    ({"expect": expected(recover={"after": 1, "fallback": "look"})}, ["expect.recover.after: expected text, got a whole number"]),
    ({"expect": expected(candidateResults=[{"nme": "look"}])}, ["unknown key 'nme' in expect.candidateResults[0] (did you mean 'name'?)"]),
    ({"expect": expected(inferredGoal=["g"])}, ["expect.inferredGoal: expected text or null, got a list"]),
    ({"expect": expected(ambiguousGoals="g")}, ["expect.ambiguousGoals: expected a list or null, got text"]),
    ({"trace": [{"name": 7}]}, ["trace[0].name: expected text, got a whole number"]),
    ({"floorExpect": {"refuse": 1}}, ["floorExpect.refuse: expected true or false, got a whole number"]),
    ({"limits": {"wall": 3}}, ["unknown key 'wall' in limits (did you mean 'wall_s'?)"]),
    ({"limits": {"wall_s": 0}}, ["limits.wall_s: expected a number > 0.0"]),
    ({"limits": {"tool_calls": -1}}, ["limits.tool_calls: expected a whole number >= 0"]),
    ({"note": 7}, ["note: expected text, got a whole number"]),
    ({"overfitProne": "no"}, ["overfitProne: expected true or false, got text"]),
    ({"world": 7}, ["world: expected text or an object or null, got a whole number"]),
    ({"user": "rude"}, ["user: expected an object or null, got text"]),
    ({"user": {"scenari": "s"}}, ["unknown key 'scenari' in user (did you mean 'scenario'?)"]),
    ({"user": {"script": "No!"}}, ["user.script: expected a list, got text"]),
    ({"user": {"script": [7]}}, ["user.script[0]: expected text or an object, got a whole number"]),
    ({"user": {"script": ["a", {"when": {"turn": 1}}]}}, ["missing say in user.script[1]"]),
    ({"user": {"script": [{"say": "b"}]}}, ["missing when in user.script[0]"]),
    ({"user": {"script": [{"when": {"contain": "x"}, "say": "b"}]}}, ["unknown key 'contain' in user.script[0].when (did you mean 'contains'?)"]),
    ({"user": {"script": [{"when": {"turn": 0}, "say": "b"}]}}, ["user.script[0].when.turn: expected a whole number >= 1"]),
    ({"user": {"scenario": "s"}, "max_turns": 0}, ["max_turns: expected a whole number >= 1"]),
]  # fmt: skip
SCHEMA = Draft202012Validator(case_schema())


@pytest.mark.parametrize(("keys", "says"), SHAPES, ids=[" & ".join(says) for _, says in SHAPES])
def test_each_fault_of_shape_is_said_in_words_and_the_schema_refuses_it_too(
    keys: dict[str, Any], says: list[str]
) -> None:
    assert sorted(problems_in(**keys)) == sorted(says)
    assert not SCHEMA.is_valid(line(**keys))


@pytest.mark.parametrize("key", ["id", "request", "tools", "expect"])
def test_a_missing_key_is_named(key: str) -> None:
    without = line()
    del without[key]
    assert problems_of(to_bytes(without)) == [f"s.jsonl:1: missing {key}"]
    assert not SCHEMA.is_valid(without)


# -- rules between keys

look, near = call("look", what="oak"), call("near", what="ash")
TRACE = [{"name": "near", "input": {"what": "elm"}}]
REFUSE = {"terminates": True, "refuse": True}
TALK: dict[str, Any] = {
    "script": ["Please!", {"when": {"contains": ["who", "?"], "regex": "^W", "turn": 1}, "say": "Me."}]
}


def _goal(**expect: Any) -> dict[str, Any]:
    return {"terminates": True, "inferredGoal": "cap:near", **expect}


def _call(**keys: Any) -> dict[str, Any]:
    return expected(calls=[{"name": "look", "input": {"what": "oak"}, **keys}])


RULES: list[tuple[dict[str, Any], str]] = [
    ({"id": " "}, "id must not be blank"),
    ({"request": " \n"}, "request must not be blank"),
    ({"rung": "TOOL-10"}, "unknown rung 'TOOL-10' (did you mean 'TOOL-1'?)"),
    ({"rung": "TOOL3"}, "unknown rung 'TOOL3' (did you mean 'TOOL-3'?)"),
    ({"rung": "A0"}, "unknown rung 'A0' (there is: TOOL-0, TOOL-1,"),
    ({"rung": None}, "a case has either a rung (TOOL-0 to TOOL-9) or a group"),
    ({"group": "retail"}, "a case has either a rung (TOOL-0 to TOOL-9) or a group"),
    ({"rung": None, "group": " "}, "group must not be blank"),
    ({"world": {"state": {}}}, "world: an object needs its kind, a text"),
    ({"tools": []}, "tools must name at least one declared tool"),
    ({"tools": ["look", "near", "look"]}, "tools: 'look' is declared twice"),
    ({"expect": {"calls": [{"name": "look"}]}}, "expect.terminates must be true or false"),
    ({"expect": {"terminates": None, "refuse": True}}, "expect.terminates must be true or false"),
    ({"expect": expected()}, "expect.calls must name at least one call"),
    ({"expect": expected(calls=[])}, "expect.calls must name at least one call"),
    ({"expect": expected(look, refuse=True)}, "a refuse case must not have expect.calls"),
    ({"expect": {**REFUSE, "calls": []}}, "a refuse case must not have expect.calls"),
    ({"expect": _goal(calls=[]), "trace": TRACE}, "a recognition case (expect.inferredGoal) must not have expect.calls"),
    ({"expect": expected(call("lock", what="oak"))}, "call 1: 'lock' is not in tools (did you mean 'look'?)"),
    ({"expect": expected(look, call("near", what="oak")), "tools": ["look"]}, "call 2: 'near' is not in tools"),
    ({"expect": _call(accept={"what": []})}, "call 1: accept.what lists no alternative"),
    ({"expect": _call(optional=["how"])}, "call 1: optional 'how' is pinned nowhere"),
    ({"expect": expected(look, forbid=["look"])}, "expect.forbid: 'look' is an expected call"),
    ({"expect": expected(look, forbid=["pain"])}, "expect.forbid: 'pain' is not in tools (did you mean 'paint'?)"),
    ({"expect": {**REFUSE, "recover": {"after": "near", "fallback": "look"}}}, "a refuse case must not have expect.recover"),
    ({"expect": expected(near, look, recover={"after": "neer", "fallback": "look"})}, "expect.recover.after: 'neer' is not in tools (did you mean 'near'?)"),
    ({"expect": expected(near, look, recover={"after": "near", "fallback": "lok"})}, "expect.recover.fallback: 'lok' is not in tools (did you mean 'look'?)"),
    ({"expect": expected(look, near, recover={"after": "near", "fallback": "look"})}, "expect.recover: the fallback must follow the step it falls back from"),
    ({"expect": expected(look, recover={"after": "near", "fallback": "look"})}, "expect.recover.after must be among expect.calls"),
    ({"expect": _goal(recover={"after": "near", "fallback": "look"}), "trace": TRACE}, "expect.recover needs expect.calls"),
    ({"expect": expected(look, candidateResults=[{"name": "look"}])}, "expect.candidateResults belongs to a refuse case"),
    ({"expect": {**REFUSE, "candidateResults": []}}, "expect.candidateResults must name at least one call"),
    ({"expect": {**REFUSE, "candidateResults": [{"name": "lok"}]}}, "expect.candidateResults: 'lok' is not in tools (did you mean 'look'?)"),
    ({"expect": {**REFUSE, "result": ["oak"]}}, "a refuse case must not have expect.result"),
    ({"expect": expected(look, result=["oak", " "])}, "expect.result: a label must not be blank"),
    ({"floorExpect": {"refuse": False}}, 'floorExpect must be {"refuse": true}'),
    ({"floorExpect": {"refuse": True, "proof": True}}, 'floorExpect must be {"refuse": true}'),
    ({"floorExpect": {}}, 'floorExpect must be {"refuse": true}'),
    ({"trace": []}, "trace must name at least one observed call"),
    ({"trace": [{"name": "nea"}]}, "trace: 'nea' is not in tools (did you mean 'near'?)"),
    ({"expect": _goal()}, "expect.inferredGoal needs a trace"),
    ({"expect": _goal(), "trace": []}, "expect.inferredGoal needs a trace"),
    ({"expect": _goal(refuse=True), "trace": TRACE}, "expect.inferredGoal and expect.refuse exclude each other"),
    ({"expect": _goal(reject=True), "trace": TRACE}, "expect.reject belongs to a refuse case"),
    ({"expect": {**REFUSE, "reject": False}, "trace": TRACE}, "expect.reject, when given, is true"),
    ({"expect": expected(look, reject=True), "trace": TRACE}, "expect.reject belongs to a refuse case"),
    ({"expect": {**REFUSE, "reject": True}}, "expect.reject needs a trace"),
    ({"expect": {**REFUSE, "ambiguousGoals": ["a", "b"]}}, "expect.ambiguousGoals needs a trace"),
    ({"expect": _goal(ambiguousGoals=["a", "b"]), "trace": TRACE}, "expect.ambiguousGoals belongs to a refuse case"),
    ({"expect": {**REFUSE, "ambiguousGoals": ["a"]}, "trace": TRACE}, "expect.ambiguousGoals must name at least two goals"),
    ({"expect": {**REFUSE, "ambiguousGoals": ["a", "a"]}, "trace": TRACE}, "expect.ambiguousGoals must name at least two goals"),
    ({"expect": {**REFUSE, "reject": True, "ambiguousGoals": ["a", "b"]}, "trace": TRACE}, "expect.reject and expect.ambiguousGoals exclude each other"),
    ({"expect": expected(look, near), "limits": {"tool_calls": 1}}, "limits.tool_calls is 1, with 2 calls expected"),
    ({"max_turns": 2}, "max_turns needs a user"),
    ({"user": {}}, "user: has neither a scenario nor a script"),
    ({"user": {"scenario": " ", "script": []}}, "user: has neither a scenario nor a script"),
    ({"user": {"script": ["a", "b"]}, "max_turns": 2}, "user: script: 2 lines, and in 2 turns of the agent the user speaks 1 time"),
    ({"user": {"script": ["a", " "]}}, "user: script 2: says nothing"),
    ({"user": {"script": [{"when": {}, "say": "a"}]}}, "user: script 1: when has no condition"),
    ({"user": {"script": [{"when": {"contains": []}, "say": "a"}]}}, "user: script 1: when has no condition"),
    ({"user": {"script": [{"when": {"contains": ["x", ""]}, "say": "a"}]}}, "user: script 1: when.contains: a text must not be blank"),
    ({"user": {"script": [{"when": {"turn": 4}, "say": "a"}]}}, "user: script 1: when.turn is 4, and the user speaks last after turn 3"),
    ({"user": {"script": [{"when": {"regex": "("}, "say": "a"}]}}, "user: script 1: when.regex: missing )"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "says"), RULES, ids=[says for _, says in RULES])
def test_each_rule_between_keys_is_kept(keys: dict[str, Any], says: str) -> None:
    found = [text.removeprefix(f"{keys.get('id')}: ") for text in problems_in(**keys)]
    assert any(text.startswith(says) for text in found), found


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"rung": None, "group": "retail"},
        {"expect": REFUSE},
        {"expect": {"terminates": False, "refuse": True}},
        {"rung": None, "group": "retail", "expect": {"refuse": True}},
        {"rung": None, "group": "retail", "expect": {"calls": [{"name": "look", "input": {"what": "oak"}}]}},
        {"expect": {**REFUSE, "candidateResults": [{"name": "look", "input": {"what": "oak"}}]}},
        {"expect": _goal(proof=True), "trace": TRACE},
        {"expect": {**REFUSE, "reject": True}, "trace": TRACE},
        {"expect": {**REFUSE, "ambiguousGoals": ["b", "a"]}, "trace": TRACE},
        {"expect": expected(near, look, recover={"after": "near", "fallback": "look"}, result=[])},
        {"expect": _call(accept={"how": ["near", "far"]}, optional=["how"])},
        {"expect": expected(look, forbid=["paint"], order="positional", proof=False)},
        {"expect": expected(call("all"))},
        {"limits": {"wall_s": 60, "tool_calls": 1}, "world": "garden", "note": "n", "compose": "x"},
        {"floorExpect": {"refuse": True}, "overfitProne": True},
        {"user": {"scenario": "You are in a hurry."}},
        {"user": TALK, "max_turns": 2, "policy": "Be kind."},
    ],
)
def test_a_sound_case_has_no_problem_and_the_schema_takes_it(keys: dict[str, Any]) -> None:
    one = {key: value for key, value in line(**keys).items() if value is not None}
    assert problems_of(to_bytes(one)) == []
    assert SCHEMA.is_valid(one)


# -- the whole file


def test_all_problems_of_a_file_are_reported_at_once_in_the_order_of_its_lines(tmp_path: Path) -> None:
    """Nine lines, eight of them wrong in different ways, one of them in four ways at once."""
    lines = [
        b"not json",
        to_bytes(line(id="a")),
        b"",
        to_bytes(line(id="a", rung="TOOL3")),
        to_bytes(line(id="d", reqest="x", expect=expected(refuse=1, proof="x"), note=[])),
        to_bytes(line(id="e", zzz=1, request=" ")),
        to_bytes(line(id="e", tools="look")),
        b'{"id":"f","id":"f"}',
        to_bytes(line(id=8)),
    ]
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b"\n".join(text.strip() for text in lines))
    with pytest.raises(ProblemsError) as error:
        load_suite(file)
    assert [str(problem).removeprefix(str(tmp_path)) for problem in error.value.problems] == [
        "/bad.jsonl:1: invalid JSON: invalid character (byte 4)",
        "/bad.jsonl:4: id 'a' is already on line 2",
        "/bad.jsonl:4: a: unknown rung 'TOOL3' (did you mean 'TOOL-3'?)",
        "/bad.jsonl:5: expect.refuse: expected true or false, got a whole number",
        "/bad.jsonl:5: expect.proof: expected true or false, got text",
        "/bad.jsonl:5: unknown key 'reqest' (did you mean 'request'?)",
        "/bad.jsonl:5: note: expected text, got a list",
        "/bad.jsonl:6: unknown key 'zzz'",
        "/bad.jsonl:6: e: request must not be blank",
        "/bad.jsonl:7: tools: expected a list, got text",
        "/bad.jsonl:7: id 'e' is already on line 6",
        "/bad.jsonl:8: key 'id' is given twice",
        "/bad.jsonl:8: missing request",
        "/bad.jsonl:8: missing tools",
        "/bad.jsonl:8: missing expect",
        "/bad.jsonl:9: id: expected text, got a whole number",
    ]
    assert str(error.value).count("\n") == 15


def test_a_path_below_the_working_folder_is_shown_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "x.jsonl").write_bytes(b"{")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProblemsError, match=r"^cases/x\.jsonl:1: invalid JSON"):
        load_suite(tmp_path / "cases" / "x.jsonl")


def test_a_suite_carries_its_name_the_digest_of_its_bytes_and_its_cards_words(tmp_path: Path) -> None:
    data = to_bytes(line(id="a"), line(id="b"))
    file = tmp_path / "small.jsonl"
    file.write_bytes(data)
    assert load_suite(file).version is None
    file.with_suffix(".md").write_text(
        "# small\n\nversion: 3\ndate: 2026-11-29\n", encoding="utf-8", newline="\n"
    )
    suite = load_suite(str(file))
    assert (suite.name, suite.version, suite.date) == ("small", "3", "2026-11-29")
    assert suite.digest == hashlib.sha256(data).hexdigest()
    assert [(one.id, one.suite, one.file, one.line) for one in suite.cases] == [
        ("a", "small", str(file), 1),
        ("b", "small", str(file), 2),
    ]


def test_a_suite_is_found_by_its_bare_name_from_any_folder_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "cases"
    folder.mkdir(parents=True)
    (folder / "ladder.jsonl").write_bytes(to_bytes(line()))
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert project_root() == tmp_path
    for name in ("ladder", "ladder.jsonl", "../data/cases/ladder.jsonl"):
        assert find_suite(name).resolve() == folder / "ladder.jsonl"
    for wrong, says in [
        ("lader", r"^lader: no such case file \(did you mean 'ladder'\?\)$"),
        ("../data/cases/lader.jsonl", r"no such case file \(did you mean 'ladder.jsonl'\?\)$"),
        ("..", r"^\.\.: is a folder, not a case file$"),
    ]:
        with pytest.raises(LabError, match=says):
            load_suite(wrong)


def test_a_case_falls_into_what_a_driver_sees_and_what_only_the_grader_sees() -> None:
    one = case(
        rung="TOOL-9", trace=TRACE, limits={"wall_s": 5}, note="hidden", compose="none", world="garden",
        expect=_goal(proof=True), floorExpect={"refuse": True},
    )  # fmt: skip
    assert one.task.trace == (Call("near", {"what": "elm"}),)
    assert (one.task.limits.wall_s, one.task.limits.tool_calls) == (5.0, None)
    assert (one.group, one.world, one.note, one.compose, one.floor_expect) == (
        "TOOL-9",
        "garden",
        "hidden",
        "none",
        True,
    )
    assert one.expect.inferred_goal == "cap:near"
    assert not {"expect", "note", "inferred_goal", "id"} & set(one.task.__struct_fields__)


def test_a_call_without_arguments_has_none_and_what_is_expected_of_a_case_has_a_key() -> None:
    assert case(expect=expected(calls=[{"name": "all"}])).expect.expected_calls == (ExpectedCall("all"),)
    keys = [
        case(expect=expected(look)).expect.key,
        case(expect=REFUSE).expect.key,
        case(expect=_goal(), trace=TRACE).expect.key,
    ]
    assert keys == ["calls", "refuse", "goal"]


def test_the_digest_of_a_case_knows_its_content_and_not_its_layout() -> None:
    one = line(expect=expected(call("look", what="oak", how="é")))
    text = json.dumps(
        dict(reversed(list(one.items()))), ensure_ascii=False, indent=None, separators=(" , ", ":")
    )
    same, other = (
        parse_cases(to_bytes(one), name="a", file="a"),
        parse_cases(text.encode(), name="b", file="b"),
    )
    assert same[0][0].digest == other[0][0].digest != case().digest


# -- choosing


def _cases() -> tuple[Case, ...]:
    ids = [("7", "TOOL-0"), ("07", "TOOL-0"), ("0012", "TOOL-1"), ("ab-x", "TOOL-1"), ("ab-y", "TOOL-2"), ("a[1]", "retail")]  # fmt: skip
    lines = [line(id=id, **({"rung": g} if g in RUNGS else {"group": g, "rung": None})) for id, g in ids]
    return tuple(parse_cases(to_bytes(*lines), name="s", file="s")[0])


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({}, ["7", "07", "0012", "ab-x", "ab-y", "a[1]"]),
        ({"only": ["7"]}, ["7"]),
        ({"only": ["07"]}, ["07"]),
        ({"only": ["0*"]}, ["07", "0012"]),
        ({"only": "0012"}, ["0012"]),
        ({"only": ["ab-?", "7"]}, ["7", "ab-x", "ab-y"]),
        ({"only": ["[0-9]*"]}, ["7", "07", "0012"]),
        ({"only": ["a[1]"]}, ["a[1]"]),
        ({"groups": ["TOOL-1", "retail"]}, ["0012", "ab-x", "a[1]"]),
        ({"groups": "tool-1"}, ["0012", "ab-x"]),
        ({"groups": ["TOOL-1", "TOOL-2"], "only": ["ab-*"]}, ["ab-x", "ab-y"]),
    ],
)
def test_cases_are_chosen_by_group_and_by_globs_of_ids_as_text(
    chosen: dict[str, Any], ids: list[str]
) -> None:
    assert [one.id for one in select(_cases(), **chosen)] == ids


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"only": ["12"]}, r"^no case matches '12' \(did you mean '0012'\?\)$"),
        ({"only": ["7", "zzz-*"]}, "^no case matches 'zzz-\\*'"),
        ({"only": ["AB-X"]}, r"no case matches 'AB-X' \(did you mean 'ab-x'\?\)"),
        ({"only": [""]}, "no case matches ''"),
        ({"groups": ["TOOL-3"]}, r"no case in group 'TOOL-3' \(did you mean 'TOOL-[012]'\?\)"),
        ({"groups": ["TOOL-0"], "only": ["ab-x"]}, "no case matches 'ab-x'"),
    ],
)
def test_choosing_nothing_is_an_error_with_the_near_match(chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(LabError, match=says):
        select(_cases(), **chosen)


@pytest.mark.parametrize(
    ("trace", "fits"),
    [("ab", True), ("a", True), ("c", True), ("ac", True), ("ca", False), ("aa", False), ("abc", True), ("abcd", False), ("", True)],
)  # fmt: skip
def test_a_trace_fits_a_plan_that_it_is_a_subsequence_of(trace: str, fits: bool) -> None:
    assert Goal("g", ("a", "b", "c")).fits(list(trace)) is fits


# -- the JSON Schema


def test_chosen_cases_are_a_suite_of_their_own(tmp_path: Path) -> None:
    """Named as the file they came from, with its path for the worlds beside it; its digest is that of the choice."""
    whole = load_suite(doing.write_suite(tmp_path))
    chosen = suite_of(select(whole.cases, groups=["TOOL-2", "TOOL-3"]))
    assert (chosen.name, chosen.part, whole.part) == ("small", True, False)
    assert chosen.path is not None
    assert chosen.path.samefile(whole.path or "")
    assert [one.id for one in chosen.cases] == ["t2-scope", "t3-two"]
    assert chosen.digest == suite_of(list(chosen.cases)).digest
    assert (
        len({chosen.digest, whole.digest, suite_of(whole.cases).digest, suite_of(whole.cases[:1]).digest})
        == 4
    )


def test_cases_that_no_file_could_hold_are_refused(tmp_path: Path) -> None:
    """An id given twice or blank, nothing expected, cases of several suites, no cases at all."""
    one, two = load_suite(doing.write_suite(tmp_path)).cases[:2]
    for wrong, says in (
        ([one, one], "small: id 't0-cart' is given twice"),
        ([structs.replace(one, id="")], "small: id '' is blank"),
        (
            [one, structs.replace(two, expect=Expect())],
            "small: t0-order: expects neither calls nor a refusal nor a goal",
        ),
        (
            [one, structs.replace(two, suite="other")],
            "cases of several suites (other, small) cannot be run as one",
        ),
        ([], "no cases to run"),
    ):
        with pytest.raises(LabError) as caught:
            suite_of(wrong)
        assert str(caught.value) == says
        if wrong and len({each.suite for each in wrong}) == 1:
            with pytest.raises(LabError) as caught:
                checked_suite(Suite("small", tuple(wrong), "0"))
            assert str(caught.value) == says


def test_chosen_cases_run_as_they_do_from_the_file(tmp_path: Path) -> None:
    """The same verdicts; the card does not say how large the suite is, and no rung counts below which others may lie."""
    path = doing.write_suite(tmp_path)
    whole = load_suite(path)
    by_name = evaluate(path, doing.knows, group="TOOL-2", save_run=False)
    chosen = evaluate(select(whole.cases, groups=["TOOL-2"]), doing.knows, save_run=False)
    assert [row.verdict for row in chosen.product] == [row.verdict for row in by_name.product]
    assert (by_name.card.suites[0].cases, by_name.card.suites[0].of) == (1, len(doing.CASES))
    assert (chosen.card.suites[0].cases, chosen.card.suites[0].of) == (1, None)
    assert [run.card.envelope[0].reached for run in (by_name, chosen)] == [None, None]
    below = evaluate(select(whole.cases, groups=["TOOL-0", "TOOL-1"]), doing.knows, save_run=False)
    assert below.card.envelope[0].reached == "TOOL-1"
    with pytest.raises(LabError, match="small: id 't0-cart' is given twice"):
        evaluate([*whole.cases[:1], *whole.cases[:1]], doing.knows, save_run=False)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"driver": 42}, "a driver is a name or a function, not an int"),
        ({"limits": 5}, "limits must be Limits, not an int"),
        ({"suite": 42}, "suite must be a path, a name, a Suite or cases, not an int"),
        ({"suite": []}, "suite must be a path, a name, a Suite or cases, not a list"),
        ({"suite": ["ladder"]}, "suite must be a path, a name, a Suite or cases, not a list"),
        ({"world": doing.tiny_world()}, "world 'tiny' serves no case: each case of small names its own"),
    ],
)
def test_what_cannot_be_run_is_one_clear_line(tmp_path: Path, keys: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {
        "suite": doing.write_suite(tmp_path),
        "driver": "stub",
        "out": tmp_path / "run",
        **keys,
    }
    with pytest.raises(LabError) as caught:
        evaluate(**given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_world_that_serves_one_case_is_taken(tmp_path: Path) -> None:
    cases = doing.some(0)
    del cases[0]["world"]
    run = evaluate(doing.write_suite(tmp_path, cases), doing.knows, world=doing.tiny_world(), save_run=False)
    assert run.card.counts.judged == 2


def test_the_schema_is_one_and_says_which_rungs_there_are() -> None:
    schema = case_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["rung"]["enum"] == list(RUNGS)
    assert schema["additionalProperties"] is False
    assert not SCHEMA.is_valid(line(rung="TOOL-10"))


def _lines(file: Path) -> list[Any]:
    return [json.loads(text) for text in file.read_bytes().split(b"\n") if text.strip()]


def test_the_schema_takes_every_line_of_our_own_suites() -> None:
    suites = sorted((Path(__file__).parent.parent / "data" / "cases").glob("*.jsonl"))
    lines = [one for suite in suites for one in _lines(suite)] + doing.CASES
    assert [error.message for one in lines for error in SCHEMA.iter_errors(one)] == []


def test_the_schema_takes_the_originals(peers: Path) -> None:
    lines = _lines(peers / "tmct" / "cases.jsonl")
    assert len(lines) == 73
    assert [error.message for one in lines for error in SCHEMA.iter_errors(one)] == []


# -- laws

LINES = [
    line(),
    line(user=TALK, max_turns=3),
    *doing.CASES,
    line(expect=_call(accept={"how": ["a"]}, optional=["how"]), limits={"wall_s": 2}),
]
VALUE = st.sampled_from(
    [None, True, 0, -1, "", "look", "TOOL-1", [], [1], ["look"], {}, {"name": "look"}, {"a": []}, [{}], [[]]]
).map(copy.deepcopy)


@st.composite
def bent(draw: st.DrawFn) -> dict[str, Any]:
    """A sound line in which some places were given other values, other keys, or nothing."""
    one: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(LINES)))
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = one
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = draw(st.sampled_from(keys)) if keys else None
            if (
                key is None
                or not isinstance(holder[key], dict | list)
                or not holder[key]
                or draw(st.booleans())
            ):
                break
            holder = holder[key]
        act = draw(st.sampled_from(["value", "drop", "add"]))
        if act == "add" and isinstance(holder, dict):
            holder[draw(st.sampled_from(["reqest", "input", "name", "accept", "trace", "x y", "a.b", "é", "", "..."]))] = draw(VALUE)  # fmt: skip
        elif key is not None and act == "drop":
            del holder[key]
        elif key is not None:
            holder[key] = draw(VALUE)
    return one


RAW = st.one_of(
    st.binary(max_size=200),
    bent().map(lambda one: json.dumps(one).encode()),
    st.tuples(bent(), st.binary(max_size=4), st.floats(0, 1)).map(
        lambda t: (lambda text, at: text[:at] + t[1] + text[at + len(t[1]) // 2 :])(
            json.dumps(t[0]).encode(), int(t[2] * len(json.dumps(t[0])))
        )
    ),
)
FILES = st.lists(RAW, max_size=3).map(b"\n".join)


def check_that_bytes_give_cases_or_problems(data: bytes) -> None:
    cases, problems = parse_cases(data, name="s", file="s.jsonl")
    assert cases or problems
    physical = data.count(b"\n") + 1
    assert all(0 <= problem.line <= physical and problem.message for problem in problems)
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    str(ProblemsError(problems)).encode()
    if not problems:
        assert len({one.id for one in cases}) == len(cases)
        for one in cases:
            assert SCHEMA.is_valid({"rung": "TOOL-0"}) is False
            assert one.digest


@given(FILES)
@example(b'{"a":' * 3000)
@example(b'{"\xed\xa0\x80":1}')
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    check_that_bytes_give_cases_or_problems(data)


@pytest.mark.long
@given(FILES)
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_bytes_at_all_make_the_reader_raise(data: bytes) -> None:
    check_that_bytes_give_cases_or_problems(data)


@given(bent())
@settings(max_examples=200, deadline=None)
def test_what_the_schema_takes_has_the_right_shape(one: dict[str, Any]) -> None:
    """The schema never lets through a line whose shape the reader refuses: an editor shows what a run would say."""
    found = [
        text for text in problems_of(to_bytes(one)) if not text.startswith(f"s.jsonl:1: {one.get('id')}: ")
    ]
    if SCHEMA.is_valid(one):
        assert found == []


@given(st.lists(bent(), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_the_order_of_keys_does_not_change_what_is_said(lines: list[dict[str, Any]]) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(item) for key, item in reversed(list(value.items()))}
        return [turned(item) for item in value] if isinstance(value, list) else value

    straight, reverse = problems_of(to_bytes(*lines)), problems_of(to_bytes(*map(turned, lines)))
    assert sorted(straight) == sorted(reverse)
