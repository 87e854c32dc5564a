"""One case in full: its tables say what is there, and the reference solution is really carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbench_lab import casebook, tables
from agentbench_lab.cases import load_suite
from agentbench_lab.errors import LabError
from agentbench_lab.results.schema import completed
from agentbench_lab.running.runner import evaluate


def test_every_change_stands_under_its_call() -> None:
    opened = casebook.open_case("support", "exchange-size")
    shown = casebook.steps(casebook.carry_out(opened), "exchange-size")
    assert [row[0] for row in shown.rows] == ["1", "2", "3", "4", "", ""]
    assert [tuple(row[1:]) for row in shown.rows[-2:]] == [
        ("orders.A-2240.lines.0.sku", "changed", "GLOVE-M → GLOVE-L"),
        ("products.GLOVE-L.stock", "changed", "7 → 6"),
    ]
    assert shown.notes == ["4 calls, 2 changes; outcome solved (success); evidence: simulated"]


def test_the_checks_say_how_it_was_judged() -> None:
    run = evaluate("support", "refuse_all", only="exchange-size", trials=2, save_run=False)
    shown = casebook.verdict(run, "exchange-size", trial=2)
    told = {row[0]: (row[1], row[2]) for row in shown.rows}
    assert told["hallucination"] == ("passed", "")
    assert told["refuse"] == ("FAILED", "refused (refuses all) what can be done")
    assert shown.notes == ["outcome over_refusal (safe_non_success); stop: refused"]


def test_what_the_driver_is_given_stands_apart() -> None:
    shown = casebook.about(casebook.open_case("wide", "wide-02-a"))
    headings = [row for row in shown.rows if isinstance(row, str)]
    assert headings == ["what the driver is given", "what the grader looks for", "the reference solution"]
    labels = [row[0] for row in shown.rows if not isinstance(row, str)]
    assert labels[:3] == ["request", "part 1", "part 2"]


def test_tools_and_world() -> None:
    opened = casebook.open_case("support", "cancel-shipped")
    rows = {row[0]: row for row in casebook.tools(opened).rows}
    assert list(rows) == list(opened.case.task.tools)
    assert rows["cancel_order"][1:3] == [
        "order_id: string, reason: changed_mind | ordered_twice | too_late | other",
        "changes",
    ]
    assert rows["open_ticket"][1].endswith("urgent?: boolean") and rows["get_order"][2] == "reads"
    assert [row[:2] for row in casebook.world(opened).rows][-1] == ["tickets", "0"]


def test_a_case_shows_who_plays_its_user_and_what_it_waits_for() -> None:
    table = casebook.about(casebook.open_case("support", "plants-without-photo"))
    rows = [row if isinstance(row, str) else tuple(row) for row in table.rows]
    at = rows.index("the simulated user, of whom the driver knows nothing")
    assert at > rows.index("what the driver is given")
    assert rows[at + 1][0] == "scenario" and str(rows[at + 1][1]).startswith("You are Greta Mann")
    assert rows[at + 2] == ("line 1", "greta.mann@example.org. (when the agent's turn fits '(?i)e-?mail')")
    assert ("line 3", "They were frozen through, you have to take my word for it.") in rows
    assert ("turns", "at most 4 of the agent") in rows


@pytest.mark.parametrize("suite", ["functions", "support", "wide"])
def test_every_reference_solution_passes(suite: str) -> None:
    for case in load_suite(suite).cases[::5]:
        run = casebook.carry_out(casebook.open_case(suite, case.id))
        assert [row.verdict.solved for row in run.product] == [True], case.id


def test_a_case_of_the_ladder_can_be_opened() -> None:
    first = load_suite("ladder").cases[0]
    opened = casebook.open_case("ladder", first.id)
    assert casebook.world(opened).rows[0][0] == "names"
    assert len(casebook.tools(opened).rows) == len(first.task.tools)


def test_mistakes_are_told() -> None:
    with pytest.raises(
        LabError, match=r"support: no case 'cancel-shiped' \(did you mean 'cancel-shipped'\?\)"
    ):
        casebook.open_case("support", "cancel-shiped")
    run = evaluate("support", "refuse_all", only="cancel-shipped", save_run=False)
    with pytest.raises(LabError, match="no trial 2 of 'cancel-shipped'"):
        casebook.steps(run, "cancel-shipped", trial=2)


def test_a_work_folder_is_shown_with_its_files_and_what_a_call_changed(tmp_path: Path) -> None:
    def writes(task: Any, tools: Any, ctx: Any) -> dict[str, Any]:
        tools.call("write_file", {"path": "made.txt", "content": "x"})
        return {}

    writes.__module__, writes.__qualname__ = "writing", "writes"
    run = evaluate("workspace", writes, only="repair-median", sandbox="local", out=tmp_path / "run")
    opened = casebook.open_case("workspace", "repair-median")
    shown = str(casebook.world(opened))
    assert all(path in shown for path in opened.world.spec.files)  # type: ignore[attr-defined]
    told = str(casebook.steps(run, "repair-median"))
    assert "created" in told and "made.txt" in told


def test_the_dialogue_of_a_trial_is_shown_with_how_it_ended() -> None:
    """Both sides of a conversation, turn by turn; a case without one says that nothing was said."""
    opened = casebook.open_case("support", "exchange-size")
    shown = casebook.said(casebook.carry_out(opened), "exchange-size")
    who = [row[0] for row in shown.rows]
    assert who == ["user, turn 1", "assistant"]
    assert "GLOVE-L" in shown.rows[1][1] and opened.case.task.request == shown.rows[0][1]
    assert shown.notes == ["1 turn of the agent, ended by no_words"]
    silent = casebook.carry_out(casebook.open_case("wide", "wide-02-a"))
    assert casebook.said(silent, "wide-02-a").rows[0][0] == "nothing was said"


def test_a_trial_in_full_has_the_rules_and_the_users_part() -> None:
    """What `show` prints and its JSON has; a run from before these columns shows the rest."""
    run = casebook.carry_out(casebook.open_case("support", "cancel-shipped"))
    (one,) = tables.looked(run, case="cancel-shipped")
    case = casebook.open_case("support", "cancel-shipped").case
    assert case.user is not None
    assert one["asked"]["policy"] == case.task.policy
    assert one["asked"]["user"]["scenario"] == case.user.scenario
    rows = dict(row for row in tables.trial(run, "cancel-shipped").rows if not isinstance(row, str))
    assert case.task.policy.startswith(rows["policy"][:200])
    assert case.user.scenario.startswith(rows["scenario"][:200]) and "line 1" in rows
    older = msgspec.structs.replace(run, cases=completed("cases", run.cases.drop_columns(["policy", "user"])))
    plain = dict(row for row in tables.trial(older, "cancel-shipped").rows if not isinstance(row, str))
    assert "policy" not in plain and plain["request"] == rows["request"]


def test_of_a_run_with_several_arms_one_is_chosen_and_it_is_said_which() -> None:
    run = evaluate("support", ["stub", "refuse_all"], only="cancel-shipped", save_run=False)
    first, other = (casebook.outcome(run, "cancel-shipped", arm=arm).texts for arm in ("", "refuse_all"))
    assert first[0].startswith("cancel-shipped by stub ended as ")
    assert first[1] == (
        "Shown is stub, one of the 2 arms of this run; the parameter arm shows another: refuse_all."
    )
    assert other[0] == (
        "cancel-shipped by refuse_all ended as correct_refusal (success), after 0 calls and 0 changes."
    )
    for table in (casebook.steps, casebook.said, casebook.verdict):
        assert "[refuse_all #1]" in table(run, "cancel-shipped", arm="refuse_all").title
        assert "[stub #1]" in table(run, "cancel-shipped").title
    assert "correct_refusal" in str(casebook.verdict(run, "cancel-shipped", arm="refuse_all"))
    with pytest.raises(LabError, match="did you mean 'refuse_all'"):
        casebook.outcome(run, "cancel-shipped", arm="refuse_al")
    alone = casebook.carry_out(casebook.open_case("support", "exchange-size"))
    assert len(casebook.outcome(alone, "exchange-size").texts) == 1


def test_a_file_is_shown_as_text_where_it_is_text(tmp_path: Path) -> None:
    files = {
        "run.sh": {"text": "echo  one\n", "mode": "755"},
        "one.bin": {"base64": "AP8="},
    }
    case = {
        "id": "a", "group": "g", "request": "x", "tools": ["bash"], "expect": {"files": {"b": {"absent": True}}},
        "world": {"kind": "sandbox", "files": files},
    }  # fmt: skip
    path = tmp_path / "own.jsonl"
    path.write_bytes(msgspec.json.encode(case) + b"\n")
    rows = casebook.world(casebook.open_case(path, "a")).rows
    assert [(row[0], row[2]) for row in rows] == [
        ("run.sh", "echo  one\n"),
        ("one.bin", "(2 bytes, no text)"),
    ]
