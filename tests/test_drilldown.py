"""From a number to its trials: every trial is counted, failures come first, and nothing of a trial's own is markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import agentbench_lab as lab
from agentbench_lab.drilldown import DRILL_MIME, Cell, Drill, Line, Repeated, _dialogue, drill
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, check_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.tables.dialogue import message as words_of
from agentbench_lab.transcripts import Transcript

from .doing import knows, write_suite
from .drawing import NASTY


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def two(suite: Path) -> Run:
    """14 cases by the best driver and by one that refuses all (3 of them rightly), twice each."""
    return lab.evaluate(suite, [knows, "refuse_all"], trials=2, save_run=False)


class Parsed(HTMLParser):
    """Ids, links, and elements of a section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.folded: dict[str, int] = {}
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.classes: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        said = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(said)
        self.classes |= {said["class"]} if "class" in said else set()
        self.open.append(tag)
        if "id" in said:
            self.ids.append(said["id"])
            self.folded[said["id"]] = self.open.count("details")
        if "href" in said:
            self.links.append(said["href"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_trial_is_counted_and_can_be_reached(two: Run) -> None:
    """Each link leads to an id of the section, each trial has one, and lies folded in its rung's list."""
    found = drill(two)
    assert found.trials == len(found.lines) == 56
    assert found.note == "56 trials, all of them in full."
    assert sum(cell.trials for cell in found.cells) == 56
    arms = [cell.arm for cell in found.cells]
    assert len(set(arms)) == 2
    assert found.cells[0] == Cell(
        arms[0], "TOOL-0", trials=4, judged=4, solved=4, completed=4, hallucinated=0
    )
    read = Parsed(found.html("d7"))
    assert len(read.ids) == len(set(read.ids))
    assert {link.removeprefix("#") for link in read.links} <= set(read.ids)
    trials = [name for name in read.ids if name.startswith("d7-t")]
    assert len(trials) == 56
    assert {read.folded[name] for name in trials} == {2}
    linked = [link for link in read.links if link.startswith("#d7-t")]
    assert len(linked) == 2 * 56  # by outcome, and by case


def test_failures_come_first_and_what_is_left_out_is_said(two: Run) -> None:
    """With little room only failures are there, in turn from each rung."""
    failed = sum(not each for each in two.trials.column("solved").to_pylist())
    assert failed == 26  # refuse_all is right in one case of 14
    small = drill(two, most_bytes=24_000)
    assert len(small.html().encode()) <= 24_000
    kinds = [line.cls for line in small.lines]
    assert kinds == sorted(kinds, key=["unsafe", "safe_non_success", "excluded", "success"].index)
    assert "success" not in kinds
    # every rung but TOOL-2 has failures: one of each before the second of any
    assert len({line.group for line in small.lines[:9]}) == 9
    full = sum(line.full is not None for line in small.lines)
    assert 0 < full < len(small.lines) < 26
    left = 56 - len(small.lines)
    assert small.note == (
        f"56 trials: {len(small.lines)} listed, {full} of them in full, failures first. "
        f"{left} are left out, to keep this page small. The run was not saved."
    )
    assert f"{len([line for line in small.lines if line.group == 'TOOL-0'])} of 4 listed" in small.html()
    assert [cell.trials for cell in small.cells] == [cell.trials for cell in drill(two).cells]


def test_words_of_tables_lead_to_their_arm(two: Run) -> None:
    """A rung, an outcome, a case and a trial; without an arm, the first that has it."""
    found = drill(two)
    names = found.names("d1")
    first, second = dict.fromkeys(cell.arm for cell in found.cells)
    cells = [(cell.arm, cell.group) for cell in found.cells]
    assert names["group", second, "TOOL-3"] == f"d1-g{cells.index((second, 'TOOL-3'))}"
    assert names["group", "", "TOOL-3"] == names["group", first, "TOOL-3"] != names["group", second, "TOOL-3"]
    assert names["outcome", second, "over_refusal"].startswith("d1-o")
    assert ("outcome", first, "over_refusal") not in names
    assert (names["arm", first, first], names["arm", "", second]) == ("d1-a0", "d1-a1")
    assert 'id="d1-a1"' in found.html()
    numbers = {f"d1-t{line.number}": (line.arm, line.case, line.trial) for line in found.lines}
    assert numbers[names["case", second, "t3-two #2"]] == (second, "t3-two", 2)


def test_it_survives_the_notebook_it_is_kept_in(two: Run) -> None:
    """As JSON and back: the page makes the same section of it."""
    found = drill(two)
    data = msgspec.json.decode(msgspec.json.encode(found._repr_mimebundle_()[DRILL_MIME]))
    assert msgspec.convert(data, Drill).html() == found._repr_html_()


def talks(task: Any, tools: Any, ctx: Any) -> Transcript:
    messages = [{"role": "user", "content": task.request}]
    messages += [{"role": "assistant", "content": f"{n} {NASTY} {'x' * 2000}"} for n in range(9)]
    print("printed")
    return Transcript(refused=True, messages=(*messages, {"role": "tool", "content": "", "calls": [1]}))


def test_what_was_said_is_there_bounded_and_harmless(suite: Path) -> None:
    """Messages and prints; the rest is counted; text of a case is text."""
    run = lab.evaluate(suite, talks, group="TOOL-0", save_run=False)
    found = drill(run)
    rows = [row for row in found.lines[0].full or () if not isinstance(row, str)]
    said = [text for who, text in rows if who == "assistant"]
    # the request, how it began, and from the end backwards what fits into 6000 signs: "", 1500 and 1500
    assert [len(text) for text in said] == [1500] * 3
    assert [text[:2] for text in said] == ["0 ", "7 ", "8 "]
    assert said[0].startswith(f"0 {NASTY}")
    assert ("…", "6 more messages in transcripts.parquet of the run's folder") in rows
    assert rows[-2] == ("tool", '{"calls": [1], "content": "", "role": "tool"}')
    assert ("stdout", "printed\n") in rows
    read = Parsed(found.html())
    assert not read.tags & {"script", "img"}


@pytest.mark.parametrize(
    ("message", "who", "text"),
    [
        ({"role": "user", "content": "hi", "id": "x", "source": "input"}, "user", "hi"),
        (  # Inspect: parts, and calls that name their function
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look"}],
                "tool_calls": [{"id": "1", "function": "web", "arguments": {"q": 1}, "type": "function"}],
                "model": "m",
            },
            "assistant",
            'hm\nI look\n→ web {"q": 1}',
        ),
        ({"role": "tool", "content": "5", "tool_call_id": "1", "function": "web"}, "tool web", "5"),
        (  # OpenAI: the arguments are text
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
            },
            "assistant",
            "→ f {}",
        ),
        (  # Anthropic: calls and results are parts
            {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]},
            "assistant",
            '→ f {"a": 1}',
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}],
            },
            "user",
            "ok",
        ),
        ("bare", "message 3", "bare"),
        ({"odd": 1}, "message 3", '{"odd": 1}'),
    ],
)
def test_a_message_is_told_as_text_whoever_wrote_it(message: Any, who: str, text: str) -> None:
    assert words_of(message, 3) == (who, text)


def test_a_long_policy_leaves_room_for_the_dialogue_and_its_end() -> None:
    """As tau-bench begins each: 8,000 signs of policy, and the end says why it failed."""
    turns = [{"role": "system", "content": "p" * 8000}, {"role": "user", "content": "my wish"}]
    turns += [{"role": "assistant", "content": f"turn {n} " + "x" * 500} for n in range(30)]
    rows = [row for row in _dialogue({"messages": json.dumps(turns)}) if not isinstance(row, str)]
    assert [rows[0][1], rows[1][1]] == ["p" * 299 + "…", "my wish"]
    # 6000 - 300 - 7 = 5693 signs hold eleven turns of 508
    assert rows[2] == ("…", "19 more messages in transcripts.parquet of the run's folder")
    assert [text.split()[1] for _, text in rows[3:]] == [str(n) for n in range(19, 30)]


def test_an_imported_run_has_the_calls_that_its_file_has(two: Run) -> None:
    """With their status; what the file does not have is named and not made up."""
    silent = two.transcripts.slice(0, 0)
    found = drill(msgspec.structs.replace(two, product=(), transcripts=silent))
    assert found.trials == len(found.lines) == 56
    asked = two.calls.to_pylist()[0]
    line = next(
        line
        for line in found.lines
        if (line.case, line.trial) == (asked["case_id"], asked["trial"]) and "knows" in line.arm
    )
    rows = [row for row in line.full or () if not isinstance(row, str)]
    words = f"{asked['name']} {json.dumps(json.loads(asked['input']))}"
    assert rows[rows.index(("call 1", words)) + 1] == (asked["status"], asked["observed"])
    none = drill(msgspec.structs.replace(two, product=(), transcripts=silent, calls=two.calls.slice(0, 0)))
    (line,) = [each for each in none.lines if each.number == line.number]
    told = dict(row for row in line.full or () if not isinstance(row, str))
    assert told["nothing of"] == "the calls themselves"


def test_what_was_not_measured_is_not_zero(two: Run) -> None:
    """An imported run may not know of hallucinations: then nothing is said of them."""
    at = two.trials.schema.get_field_index("hallucinated")
    field = two.trials.schema.field(at)
    trials = two.trials.set_column(at, field, pa.nulls(two.trials.num_rows, field.type))
    found = drill(msgspec.structs.replace(two, trials=trials))
    assert {cell.hallucinated for cell in found.cells} == {None}
    assert "4 of 4 solved; 4 completed</summary>" in found.html()


def test_what_some_trials_do_not_say_is_not_counted_from_the_others(two: Run) -> None:
    """One judged trial of TOOL-0 whose hallucination nobody measured: its cell says nothing of it, the others do."""
    at = two.trials.schema.get_field_index("hallucinated")
    field = two.trials.schema.field(at)
    values = pa.array([None, *two.trials.column("hallucinated").to_pylist()[1:]], field.type)
    found = drill(msgspec.structs.replace(two, trials=two.trials.set_column(at, field, values)))
    unsaid = [(cell.group, cell.hallucinated) for cell in found.cells if cell.hallucinated is None]
    assert unsaid == [(two.trials.column("group")[0].as_py(), None)]


MARKED = 'x" onmouseover="hit()"><script>hit()</script><img src=x>'


def test_no_text_of_a_section_becomes_markup() -> None:
    """Every text field of it, also those out of closed sets: a notebook's output, and a run's table, are files."""
    line = Line(
        0, MARKED, MARKED, MARKED, 1, MARKED, MARKED, MARKED, (MARKED, (MARKED, MARKED)), ended=MARKED
    )
    cell = Cell(MARKED, MARKED, 1, 1, 1, 1, 1)
    folded = msgspec.structs.replace(line, number=1, full=None)
    texts = {field.name for field in msgspec.structs.fields(Line) if field.type is str}
    assert all(getattr(line, name) == MARKED for name in texts)
    found = Drill(MARKED, False, MARKED, 2, (cell,), (line, folded), (Repeated(MARKED, MARKED, 1, 1),))
    read = Parsed(found.html())
    assert not read.tags & {"script", "img"}
    assert read.attributes == {"class", "aria-label", "id", "tabindex", "href", "colspan", "scope"}
    assert read.classes == {"drill", "opened", "other"}


def test_a_class_that_there_is_not_is_refused_where_the_run_is_read(two: Run, tmp_path: Path) -> None:
    """One line that names the table, the column and the nearest class."""
    at = two.trials.schema.get_field_index("outcome_class")
    values = pa.array(["succes", *two.trials.column(at).to_pylist()[1:]], two.trials.schema.field(at).type)
    wrong = msgspec.structs.replace(
        two, trials=two.trials.set_column(at, two.trials.schema.field(at), values)
    )
    with pytest.raises(LabError, match=r"outcome_class 'succes' is none of .*did you mean 'success'"):
        check_run(wrong)


def test_repeats_are_counted_over_all_trials_of_the_case(two: Run) -> None:
    """Whether they are listed or not: the list alone, failures first, would make each case look hopeless."""
    small, whole = drill(two, most_bytes=24_000), drill(two)
    assert {(each.judged, each.solved) for each in whole.repeated} == {(2, 0), (2, 2)}
    assert len(whole.repeated) == 28
    assert set(small.repeated) < set(whole.repeated)
    assert "solved in 0 of 2 judged trials" in small.html()


def test_excluded_trials_have_their_place(two: Run) -> None:
    """After the failures, with the reason and its owner, and out of what was judged."""
    trials = two.trials
    count = trials.num_rows
    for name, value in {"excluded": "no disk", "excluded_owner": "harness"}.items():
        at = trials.schema.get_field_index(name)
        trials = trials.set_column(at, trials.schema.field(name), pa.array([value] + [None] * (count - 1)))
    for name in ("outcome", "outcome_class", "solved", "completed", "hallucinated"):
        at = trials.schema.get_field_index(name)
        values = [None, *trials.column(name).to_pylist()[1:]]
        trials = trials.set_column(
            at, trials.schema.field(name), pa.array(values, trials.schema.field(name).type)
        )
    found = drill(msgspec.structs.replace(two, trials=trials))
    (line,) = [line for line in found.lines if line.cls == "excluded"]
    assert (line.outcome, line.why) == ("excluded", "no disk")
    assert "excluded by harness: no disk" in line.ended
    assert sum(cell.judged for cell in found.cells) == 55
    assert re.search(r"1 excluded", found.html())


def test_groups_of_a_width_stand_by_width() -> None:
    """One part, two, four, eight, sixteen: not in the order of their letters."""
    run = evaluate("wide", "refuse_all", save_run=False)
    groups = [cell.group for cell in drill(run).cells]
    assert groups == ["one part", "two parts", "four parts", "eight parts", "sixteen parts"]
