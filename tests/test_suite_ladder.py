"""The ladder suite: its shape, and that what each case expects follows from its world."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from agentbench_lab.cases import RUNGS, Call, Case, ExpectedCall, Suite, Task, load_suite
from agentbench_lab.ladder import Cell
from agentbench_lab.running.lint import lint_cases
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.graphfile import is_test_path
from agentbench_lab.worlds.toolbox import Ran, Toolbox

SUITE = Path(__file__).parent.parent / "data" / "cases" / "ladder.jsonl"
WORLDS = {name: CodeGraph.load(SUITE.parent / "worlds" / f"{name}.json") for name in ("shop", "ipywidgets")}
CASES = load_suite(SUITE).cases
KEYS = ("id", "rung", "world", "request", "tools", "trace", "note", "compose", "expect")


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(SUITE)


def of_rung(rung: str) -> list[Case]:
    return [case for case in CASES if case.group == rung]


def named(*words: str) -> list[Case]:
    """The cases whose `compose` starts with one of the words."""
    return [case for case in CASES if case.compose.split()[:1] and case.compose.split()[0] in words]


def by_id(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


def world_of(case: Case) -> CodeGraph:
    assert case.world is not None
    return WORLDS[case.world]


def pinned(call: ExpectedCall) -> dict[str, Any]:
    """The arguments of the reference answer."""
    return {**{key: values[0] for key, values in call.accept.items()}, **call.input}


def ran(case: Case) -> list[Ran]:
    """What the expected calls really give, in order."""
    return [world_of(case).run(call.name, pinned(call)) for call in case.expect.expected_calls]


# -- the shape of the suite


def test_there_are_enough_cases_on_every_rung_and_in_both_worlds() -> None:
    """At least 130 cases, twelve a rung, and three of each world on every rung."""
    assert len(CASES) >= 130
    rungs = Counter(case.group for case in CASES)
    assert set(rungs) == set(RUNGS)
    assert min(rungs.values()) >= 12
    both = Counter((case.group, case.world) for case in CASES)
    assert all(both[rung, world] >= 3 for rung in RUNGS for world in WORLDS)


def test_every_rung_has_easy_and_hard_cases_and_says_why_each_is_there() -> None:
    """A note begins with easy or hard, and a rung has at least three of each."""
    difficulty = Counter()
    for case in CASES:
        word, _, why = case.note.partition(": ")
        assert word in ("easy", "hard"), case.id
        assert len(why) >= 10, case.id
        difficulty[case.group, word] += 1
    assert all(difficulty[rung, word] >= 3 for rung in RUNGS for word in ("easy", "hard"))


def test_the_card_counts_what_is_there() -> None:
    """The card's table states the number of cases, per world and difficulty, of every rung."""
    card = SUITE.with_suffix(".md").read_text(encoding="utf-8")
    for rung in RUNGS:
        cases = of_rung(rung)
        counts = [
            len(cases),
            *(sum(case.world == world for case in cases) for world in WORLDS),
            *(sum(case.note.startswith(word) for case in cases) for word in ("easy", "hard")),
        ]
        row = re.search(rf"^\| {rung} \|[^|]*\|([ 0-9|]+)\|$", card, re.MULTILINE)
        assert row, rung
        assert [int(cell) for cell in row[1].split("|")] == counts, rung
    assert f"{len(CASES)} cases" in card
    assert f"| {len(CASES)} |" in SUITE.with_name("README.md").read_text(encoding="utf-8")


def test_ids_name_the_rung_and_requests_are_told_apart() -> None:
    """An id is `t3-some-words`, and no two cases are the same to a driver."""
    for case in CASES:
        assert re.fullmatch(rf"t{RUNGS.index(case.group)}(-[a-z0-9]+)+", case.id), case.id
    asked = [(case.task.request, case.task.tools, case.task.trace) for case in CASES]
    assert all(asked.count(one) == 1 for one in asked)


def test_paraphrases_say_the_same_in_other_words() -> None:
    """Ids that end in -a, -b share a stem: same world, tools, trace and expectation, another request."""
    stems: dict[str, list[Case]] = defaultdict(list)
    for case in CASES:
        if re.search(r"-[ab]$", case.id):
            stems[case.id[:-2]].append(case)
    for stem, (first, *others) in stems.items():
        assert len(others) == 1, f"{stem} has no pair"
        other = others[0]
        assert other.expect == first.expect, stem
        assert (other.world, other.task.tools, other.task.trace, other.compose) == (
            first.world,
            first.task.tools,
            first.task.trace,
            first.compose,
        ), stem
        words = [set(re.findall(r"[\w./]+", case.task.request.lower())) for case in (first, other)]
        assert len(words[0] ^ words[1]) >= 4, f"{stem}: hardly other words"
    rungs = Counter(pair[0].group for pair in stems.values())
    assert all(rungs[rung] >= 2 for rung in RUNGS)


def test_the_declared_sets_are_of_many_sizes_and_a_third_asks_for_proof() -> None:
    """Every size from one to eight occurs."""
    assert {len(case.task.tools) for case in CASES} == set(range(1, 9))
    proofs = sum(case.expect.proof for case in CASES)
    assert 0.25 <= proofs / len(CASES) <= 0.45


def test_the_file_is_written_plainly() -> None:
    """One object a line, keys in the agreed order, ASCII, no tab."""
    text = SUITE.read_bytes()
    assert text.isascii() and b"\r" not in text and b"\t" not in text and text.endswith(b"}\n")
    for line in text.splitlines():
        keys = [key for key in msgspec.json.decode(line) if key in KEYS]
        assert keys == [key for key in KEYS if key in keys]
        assert set(msgspec.json.decode(line)) <= set(KEYS)


def test_no_request_is_the_original_ladders(peers: Path) -> None:
    """The wording is our own."""
    lines = (peers / "tmct" / "cases.jsonl").read_bytes().splitlines()
    theirs = {_folded(msgspec.json.decode(line)["request"]) for line in lines if line.strip()}
    assert not theirs & {_folded(case.task.request) for case in CASES}


def _folded(request: str) -> str:
    return " ".join(re.findall(r"\w+", request.lower()))


def test_the_suite_lints_clean(suite: Suite) -> None:
    """Every literal binds, and every reference answer passes its own grader while every mutant of it fails."""
    assert lint_cases(suite) == ()


# -- what calls are pinned to

_PINNED = [
    (case, number, call, key, value)
    for case in CASES
    for number, call in enumerate(case.expect.expected_calls, start=1)
    for key, value in call.input.items()
    if world_of(case).registry.by_name[call.name].required == (key,)
]


@pytest.mark.parametrize(
    ("case", "call", "key", "value"),
    [(case, call, key, value) for case, _, call, key, value in _PINNED],
    ids=[f"{case.id}-{number}" for case, number, *_ in _PINNED],
)
def test_every_spelling_that_binds_to_the_same_entity_is_accepted(
    case: Case, call: ExpectedCall, key: str, value: str
) -> None:
    """An agent that writes a module by its stem, or a method by its short name where that is unique, is not punished."""
    world = world_of(case)
    kind = next(p.kind for p in world.registry.by_name[call.name].parameters if p.name == key)
    if kind == "mgx:MemoryTerm":
        return
    entity = world.bind(value, kind)
    if isinstance(entity, str):
        assert case.expect.recover is not None and case.expect.recover.after == call.name, entity
        return
    assert value == entity.label
    spellings = {
        spelling
        for index in (world._exact, world._ends)
        for keys in index.values()
        for spelling, n in keys
        if world.entities[n] is entity and world.bind(spelling, kind) is entity
    }
    accepted = set(call.accept.get(key, ()))
    assert accepted >= spellings - {value}
    assert all(world.bind(other, kind) is entity for other in accepted)


# -- compositions, recomputed


class Seen(NamedTuple):
    """The expected calls of a case and what each gave (None for a call that failed)."""

    world: CodeGraph
    calls: tuple[Call, ...]
    values: tuple[list[str] | None, ...]

    def sets(self) -> list[set[str]]:
        return [set(value or ()) for value in self.values]


def last(seen: Seen) -> set[str]:
    return seen.sets()[-1]


def union(seen: Seen) -> set[str]:
    return set().union(*seen.sets())


def intersect(seen: Seen) -> set[str]:
    return set.intersection(*seen.sets())


def difference(seen: Seen) -> set[str]:
    first, *others = seen.sets()
    return first.difference(*others)


def _guard(seen: Seen, met: bool) -> set[str]:
    """A second call only where the condition on the first is met; nothing otherwise."""
    assert len(seen.calls) == 1 + met
    return seen.sets()[-1] if met else set()


def guard_if_empty(seen: Seen) -> set[str]:
    return _guard(seen, not seen.values[0])


def guard_if_any(seen: Seen) -> set[str]:
    return _guard(seen, bool(seen.values[0]))


def guard_if_over(seen: Seen, limit: str) -> set[str]:
    return _guard(seen, len(seen.sets()[0]) > int(limit))


def guard_if_has(seen: Seen, label: str) -> set[str]:
    return _guard(seen, label in seen.sets()[0])


def fallback_if_empty(seen: Seen) -> set[str]:
    """The first that is not empty; none is asked after it."""
    *before, found = seen.values
    assert not any(before)
    assert found
    return set(found)


def either_if_empty(seen: Seen, then: str, otherwise: str) -> set[str]:
    _, second = seen.calls
    assert second.name == (otherwise if seen.values[0] else then)
    return seen.sets()[-1]


def member_filter(seen: Seen, target: str) -> set[str]:
    """The methods of the class of the first call that call the target; each is looked at, in alphabetical order."""
    owner = seen.calls[0].input["class"]
    labels = [f"{owner}.{name}" for name in seen.values[0] or ()]
    methods = [label for label in labels if seen.world.kind_of(label) == "Method"]
    assert seen.calls[1:] == tuple(Call("tmct_callees", {"symbol": label}) for label in methods)
    return {label for label, found in zip(methods, seen.sets()[1:], strict=True) if target in found}


def coverage_gap(seen: Seen) -> set[str]:
    """What a change of a module puts at risk unseen: itself and all that it reaches, as far as untested."""
    assert [call.name for call in seen.calls] == ["tmct_impact", "tmct_untested"]
    reached, untested = seen.sets()
    return ({seen.calls[0].input["module"]} | reached) & untested


def cochange_risk(seen: Seen) -> set[str]:
    """What should change along and is watched by no test."""
    assert [call.name for call in seen.calls] == ["tmct_cochanges", "tmct_untested"]
    return intersect(seen)


def keystone(seen: Seen) -> set[str]:
    """Of the modules that the first call gives, the one whose change reaches most."""
    assert seen.calls[1:] == tuple(Call("tmct_impact", {"module": label}) for label in seen.values[0] or ())
    reach = {
        call.input["module"]: len(found) for call, found in zip(seen.calls[1:], seen.sets()[1:], strict=True)
    }
    most = max(reach.values())
    found = {label for label, size in reach.items() if size == most}
    assert len(found) == 1
    return found


def _subclasses_by_member(seen: Seen, member: str, there: bool) -> set[str]:
    assert seen.calls[1:] == tuple(Call("tmct_members", {"class": label}) for label in seen.values[0] or ())
    return {
        call.input["class"]
        for call, members in zip(seen.calls[1:], seen.sets()[1:], strict=True)
        if (member in members) is there
    }


def override(seen: Seen, member: str) -> set[str]:
    """The subclasses that bring the member themselves."""
    return _subclasses_by_member(seen, member, True)


def inherit(seen: Seen, member: str) -> set[str]:
    """The subclasses that do not."""
    return _subclasses_by_member(seen, member, False)


def reached_tests(seen: Seen) -> set[str]:
    """The test modules within reach of a change."""
    return {label for label in last(seen) if is_test_path(label)}


COMPOSE: dict[str, Callable[..., set[str]]] = {
    "last": last,
    "union": union,
    "intersect": intersect,
    "difference": difference,
    "guard-if-empty": guard_if_empty,
    "guard-if-any": guard_if_any,
    "guard-if-over": guard_if_over,
    "guard-if-has": guard_if_has,
    "fallback-if-empty": fallback_if_empty,
    "either-if-empty": either_if_empty,
    "member-filter": member_filter,
    "goal:coverage-gap": coverage_gap,
    "goal:cochange-risk": cochange_risk,
    "goal:keystone": keystone,
    "goal:override": override,
    "goal:inherit": inherit,
    "goal:tests-to-run": reached_tests,
    "goal:call-sites": last,
    "goal:still-used": last,
    "goal:test-home": last,
}


def composed(case: Case) -> set[str]:
    """The result that a case's calls give, put together as its `compose` says."""
    word, *arguments = case.compose.split()
    calls = tuple(Call(call.name, pinned(call)) for call in case.expect.expected_calls)
    values = tuple(None if one.error is not None else one.value for one in ran(case))
    return COMPOSE[word](Seen(world_of(case), calls, values), *arguments)


@by_id([case for case in CASES if case.expect.result is not None])
def test_a_result_follows_from_the_world(case: Case) -> None:
    """The expected set is what the expected calls really give, put together as `compose` says."""
    assert case.expect.result is not None
    assert len(set(case.expect.result)) == len(case.expect.result)
    assert set(case.expect.result) == composed(case)


def test_every_set_that_is_composed_is_expected() -> None:
    """A `compose` of a case with calls comes with a result, unless its last call gives names that are no labels."""
    for case in CASES:
        if case.expect.key == "calls" and case.compose:
            assert case.compose.split()[0] in COMPOSE, case.id
            assert case.expect.result is not None, case.id
        if case.group in ("TOOL-4", "TOOL-5") and case.expect.key == "calls":
            assert case.expect.result is not None, case.id
    empty = [case for case in CASES if case.expect.result == ()]
    assert len(empty) >= 5, "an empty set is an answer too"


# -- rung by rung


@by_id(of_rung("TOOL-3"))
def test_a_sequence_threads_a_result_or_an_anaphor(case: Case) -> None:
    """Each later argument is found only in an earlier answer, or is that of an earlier call again."""
    world, answers = world_of(case), ran(case)
    assert len(answers) >= 2
    calls = [pinned(call) for call in case.expect.expected_calls]
    for at in range(1, len(calls)):
        (term,) = calls[at].values()
        entity = world.entity(term)
        assert entity is not None
        before = "\n".join(answer.text for answer in answers[:at]).lower()
        again = any(term in earlier.values() for earlier in calls[:at])
        spellings = {term.lower(), entity.short.lower()}
        assert again or any(spelling in before for spelling in spellings), term
        asked = set(re.findall(r"[\w./]+", case.task.request.lower()))
        assert again or not {spelling.rstrip(".") for spelling in spellings} & asked, f"{term} is given away"


def test_conditions_are_decided_both_ways() -> None:
    """Of every kind of condition there are cases in which the second step is taken, and in which it is not."""
    ways: dict[str, set[int]] = defaultdict(set)
    for case in of_rung("TOOL-4"):
        word = case.compose.split()[0]
        taken = len(case.expect.expected_calls)
        if word == "either-if-empty":
            taken = 1 if ran(case)[0].value else 2
        ways[word].add(min(taken, 2))
    assert set(ways) >= {
        "guard-if-empty",
        "guard-if-any",
        "guard-if-over",
        "guard-if-has",
        "fallback-if-empty",
    }
    assert all(found == {1, 2} for found in ways.values()), ways


@by_id([case for case in CASES if case.expect.recover is not None])
def test_the_step_to_recover_from_comes_back_empty_or_failed(case: Case) -> None:
    """The step really fails or gives nothing in the world, and the last step gives something."""
    recover = case.expect.recover
    assert recover is not None and case.group == "TOOL-7"
    names = [call.name for call in case.expect.expected_calls]
    answers = ran(case)
    first = answers[names.index(recover.after)]
    assert first.error is not None or not first.value
    assert answers[-1].error is None and answers[-1].text
    assert names.index(recover.fallback) > names.index(recover.after)


def test_recovery_is_from_empty_answers_and_from_failures() -> None:
    """Both occur, three times at least."""
    failed = [next(iter(ran(case))).error is not None for case in of_rung("TOOL-7")]
    assert failed.count(True) >= 3
    assert failed.count(False) >= 3
    assert len([case for case in of_rung("TOOL-7") if case.expect.recover]) == len(failed)


@by_id(named("tied"))
def test_the_candidates_are_all_readings(case: Case) -> None:
    """The tied readings are those of the world, no more and no less, and the request names none of them in full."""
    _, term = case.compose.split()
    world, found = world_of(case), case.expect.candidate_results
    assert found is not None
    (name,) = {call.name for call in found}
    (parameter,) = world.registry.by_name[name].parameters
    labels = world.candidates(term, parameter.kind)
    assert len(labels) >= 2
    assert [call.input for call in found] == [{parameter.name: label} for label in labels]
    assert term.lower() in case.task.request.lower()
    assert not any(label in case.task.request for label in labels)
    assert isinstance(world.bind(term, parameter.kind), str)


def test_the_rung_of_ambiguity_has_readings_to_list_controls_and_nothing_to_list() -> None:
    """Most cases tie; some only look ambiguous and are to be answered; some have nothing to point at."""
    cases = of_rung("TOOL-8")
    assert len(named("tied")) >= 8
    assert sum(case.expect.key == "calls" for case in cases) >= 3
    assert sum(case.compose == "refuse:no-referent" for case in cases) >= 2


@by_id(of_rung("TOOL-9"))
def test_a_trace_has_the_answer_that_the_declared_goals_give(case: Case) -> None:
    """One goal fits, none, or all the named ones; and the observed calls could really have been made."""
    world = world_of(case)
    trace = [call.name for call in case.task.trace]
    fitting = [goal.id for goal in world.goals(case.task.tools) if goal.fits(trace)]
    expect = case.expect
    assert expect.reject is (None if fitting else True)
    assert expect.inferred_goal == (fitting[0] if len(fitting) == 1 else None)
    assert sorted(expect.ambiguous_goals or ()) == (fitting if len(fitting) > 1 else [])
    assert all(world.run(call.name, call.input).error is None for call in case.task.trace)


def test_recognition_has_all_three_answers() -> None:
    """Fits one goal, fits several, fits none: four of each."""
    expects = [case.expect for case in of_rung("TOOL-9")]
    assert sum(expect.inferred_goal is not None for expect in expects) >= 4
    assert sum(expect.ambiguous_goals is not None for expect in expects) >= 4
    assert sum(expect.reject is True for expect in expects) >= 4


# -- refusals

REFUSALS = (
    "refuse:unresolved",
    "refuse:kind",
    "refuse:undeclared",
    "refuse:fact",
    "refuse:excluded",
    "refuse:outside",
    "refuse:no-referent",
)


@by_id(
    [
        case
        for case in CASES
        if case.expect.refuse and not case.task.trace and not case.expect.candidate_results
    ]
)
def test_no_declared_tool_answers_a_request_to_be_refused(case: Case) -> None:
    """The reason that `compose` gives for a refusal holds in the world."""
    word, *arguments = case.compose.split()
    assert word in REFUSALS
    _REFUSAL[word](case, world_of(case), *arguments)


def _unresolved(case: Case, world: CodeGraph, term: str) -> None:
    """The entity is in the request, and no declared tool that needs one binds it."""
    assert term in case.task.request
    asked = [world.registry.by_name[name] for name in case.task.tools]
    tried = [world.run(tool.name, {tool.required[0]: term}) for tool in asked if tool.required]
    assert tried and all(one.error is not None for one in tried)
    assert not world.candidates(term)


def _kind(case: Case, world: CodeGraph, name: str, term: str) -> None:
    """The entity is there, and is of a kind that the fitting tool does not take."""
    assert name in case.task.tools and term in case.task.request and world.candidates(term) == [term]
    error = world.run(name, {world.registry.by_name[name].required[0]: term}).error
    assert error is not None and "is asked for" in error


def _undeclared(case: Case, world: CodeGraph, name: str, *terms: str) -> None:
    """The fitting tool would answer, and is not declared."""
    assert name not in case.task.tools
    answer = world.run(name, dict(zip(world.registry.by_name[name].required, terms, strict=True)))
    assert answer.error is None and answer.value


def _fact(case: Case, world: CodeGraph, name: str, term: str) -> None:
    """The fitting tool is declared, and the world lacks the facts that it reads."""
    assert name in case.task.tools
    answer = world.run(name, {world.registry.by_name[name].required[0]: term})
    assert answer.error is not None and answer.facts[0].ok is False


def _excluded(case: Case, world: CodeGraph, name: str) -> None:
    """The tool that would answer is kept out of the registry."""
    assert name in world.registry.excluded and name not in world.registry.by_name
    assert set(case.task.tools) <= set(world.registry.names)


def _outside(case: Case, world: CodeGraph, topic: str) -> None:
    """Nothing in the registry is about it, and a change is out of reach of tools that only read."""
    topics = {effect.topic for tool in world.registry.capabilities for effect in tool.effects}
    assert topic not in topics
    assert all(world.registry.by_name[name].read_only for name in case.task.tools)


def _no_referent(case: Case, world: CodeGraph) -> None:
    """No word of the request names anything in the world."""
    words = re.findall(r"[\w./]+", case.task.request)
    assert not [word for word in words if world.candidates(word.strip("."))]


_REFUSAL: dict[str, Callable[..., None]] = dict(
    zip(
        REFUSALS,
        (_unresolved, _kind, _undeclared, _fact, _excluded, _outside, _no_referent),
        strict=True,
    )
)


def test_refusals_tempt_in_every_way() -> None:
    """On TOOL-2 every reason occurs; refusals stand on higher rungs too; and calls are never all that is asked."""
    reasons = Counter(case.compose.split()[0] for case in of_rung("TOOL-2"))
    assert set(reasons) == set(REFUSALS) - {"refuse:no-referent"}
    assert all(case.expect.refuse for case in of_rung("TOOL-2"))
    assert sum(case.expect.refuse for case in of_rung("TOOL-6")) >= 2
    assert not any(case.expect.refuse for rung in ("TOOL-0", "TOOL-1") for case in of_rung(rung))


# -- who climbs how high


def cells(driver: Any) -> dict[str, Cell]:
    """The counts of one driver on every rung."""
    trials = evaluate(SUITE, driver, save_run=False).trials.to_pylist()
    found = {}
    for rung in RUNGS:
        rows = [row for row in trials if row["group"] == rung]
        completed, hallucinated = (sum(row[mark] for row in rows) for mark in ("completed", "hallucinated"))
        found[rung] = Cell(rung, len(of_rung(rung)), len(rows), completed, hallucinated)
    return found


def reference(task: Task, tools: Toolbox, ctx: Any) -> Transcript:
    """Makes the calls that the case expects, through the real toolbox, and says what came of them."""
    (case,) = (
        case
        for case in CASES
        if (case.task.request, case.task.tools, case.task.trace) == (task.request, task.tools, task.trace)
    )
    expect = case.expect
    calls = tuple(Call(call.name, pinned(call)) for call in expect.expected_calls)
    for call in (*calls, *(expect.candidate_results or ())):
        tools.call(call.name, call.input)
    return Transcript(
        calls=calls,
        refused=expect.refuse,
        result=None if expect.result is None else tuple(sorted(composed(case))),
        candidate_results=expect.candidate_results,
        inferred_goal=expect.inferred_goal,
        reject=expect.reject is True,
        ambiguous_goals=expect.ambiguous_goals,
    )


def test_a_reference_answerer_solves_all() -> None:
    """The expected calls, really made, pass every case, with the composed result: the suite can be climbed."""
    run = evaluate(SUITE, reference, save_run=False)
    unsolved = [
        row["case_id"] for row in run.trials.to_pylist() if not (row["solved"] and row["result_completed"])
    ]
    assert unsolved == []


def test_the_stub_is_a_floor() -> None:
    """It climbs the first rungs, not all of them whole, and is stopped at TOOL-3 at the latest."""
    found = cells("stub")
    assert found["TOOL-0"].failure() is None
    assert not any(cell.hallucinated for cell in found.values())
    low = [found[rung] for rung in RUNGS[:3]]
    assert sum(cell.completed for cell in low) < sum(cell.judged for cell in low)
    assert all(cell.completed for cell in low)
    stopped = next(rung for rung in RUNGS if found[rung].failure())
    assert stopped <= "TOOL-3"
    assert all(
        found[rung].failure()
        for rung in ("TOOL-3", "TOOL-4", "TOOL-5", "TOOL-6", "TOOL-7", "TOOL-8", "TOOL-9")
    )


def test_refusing_all_fails_the_gate_on_completion() -> None:
    """Nothing hallucinated, nothing done."""
    cell = cells("refuse_all")["TOOL-0"]
    assert cell.hallucinated == 0
    assert "completion" in (cell.failure() or "")


def test_recklessness_fails_the_gate_on_hallucination() -> None:
    """It hallucinates on every case of the first rung."""
    cell = cells("reckless")["TOOL-0"]
    assert cell.hallucinated == cell.judged > 0
    assert "hallucination" in (cell.failure() or "")
