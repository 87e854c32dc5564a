"""Trajectories of mini-swe-agent as runs: small files in each of their formats, written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def said(text: str, prompt: int = 100, cached: int | None = 40, output: int = 5, at: int = 1000) -> Any:
    """An answer of the model with a fenced command, as format 1 keeps it."""
    details = None if cached is None else {"cached_tokens": cached}
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    return {
        "role": "assistant",
        "content": text,
        "extra": {"response": {"created": at, "usage": usage}},
    }


def bash(command: str, word: str = "bash") -> str:
    return f"I think.\n\n```{word}\n{command}\n```"


def user(text: str, **extra: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **({"extra": extra} if extra else {})}


def trajectory(instance: str, *messages: Any, form: str = "mini-swe-agent-1", **info: Any) -> dict[str, Any]:
    return {
        "info": {
            "exit_status": "Submitted",
            "submission": "diff --git a b",
            "model_stats": {"instance_cost": 0.5, "api_calls": 3},
            "mini_version": "1.15.0",
            "config": {"model": {"model_name": "lab/m"}},
            **info,
        },
        "messages": [{"role": "system", "content": "sys"}, user("Fix the bug"), *messages],
        "trajectory_format": form,
        "instance_id": instance,
    }


FENCED = (
    said(bash("ls"), 100, 0, 5, 1000),
    user("<returncode>0</returncode>\n<output>\na.py\n</output>"),
    said(bash("grep x"), 200, 90, 6, 1010),
    user("<returncode>1</returncode>\n<output>\n</output>"),
    said(bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), 300, 190, 7, 1030),
    user("diff --git a b"),
)


def one(tmp_path: Path, document: Any) -> Run:
    """The run of one trajectory with its verdict beside it."""
    laid_out(tmp_path, document)
    return load_results("mini-swe-agent", tmp_path)


def laid_out(root: Path, document: Any) -> None:
    write(root / "trajs" / "o__r-1" / "o__r-1.traj.json", document)
    write(root / "logs" / "o__r-1" / "report.json", {"resolved": True})


def called(run: Run) -> list[tuple[str, Any, str]]:
    return [(row["name"], json.loads(row["input"]), row["status"]) for row in run.calls.to_pylist()]


# ---- format 1 ------------------------------------------------------------------------------------------------


def test_what_a_trajectory_says_becomes_a_trial(tmp_path: Path) -> None:
    run = one(tmp_path, trajectory("o__r-1", *FENCED))
    (row,) = run.trials.to_pylist()
    assert (row["driver"], row["model"], row["case_id"], row["group"]) == (
        "mini-swe-agent",
        "lab/m",
        "o__r-1",
        "o/r",
    )
    assert (row["solved"], row["stop"], row["terminated"], row["excluded"]) == (True, "done", True, None)
    assert (row["model_calls"], row["cost_micros"], row["steps"], row["wall_s"]) == (3, 500_000, 3, None)
    # 600 input tokens, 280 of them read from a cache; nothing is written to one
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_cache_write"]) == (320, 280, 0)
    assert row["tokens_output"] == 18
    assert json.loads(row["extra"]) == {
        "input_tokens": 600,
        "reasoning_tokens": 6,
        "first_to_last_call_s": 30,
        "exit_status": "Submitted",
        "mini_version": "1.15.0",
    }
    assert (row["tool_calls"], row["tool_errors"]) == (3, 1)
    assert called(run) == [
        ("bash", {"command": "ls"}, "ok"),
        ("bash", {"command": "grep x"}, "tool_error"),
        ("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}, "ok"),
    ]
    (transcript,) = run.transcripts.to_pylist()
    assert json.loads(transcript["answer"]) == "diff --git a b"
    messages = json.loads(transcript["messages"])
    assert [message["role"] for message in messages] == ["system", "user", *["assistant", "user"] * 3]
    assert all("extra" not in message for message in messages)
    assert run.cases.to_pylist()[0]["request"] == "Fix the bug"
    assert run.card.options == {"mini_version": ["1.15.0"]}


@pytest.mark.parametrize(
    ("status", "stop", "terminated"),
    [
        ("Submitted", "done", True),
        ("LimitsExceeded", "budget", False),
        ("TimeExceeded", "timeout", False),
        ("RepeatedFormatError", "driver_error", False),
        ("ContextWindowExceededError", "driver_error", False),
        ("", None, None),
        (None, None, None),
    ],
)
def test_exit_statuses(tmp_path: Path, status: str | None, stop: str | None, terminated: bool | None) -> None:
    (row,) = one(tmp_path, trajectory("o__r-1", *FENCED, exit_status=status)).trials.to_pylist()
    assert (row["stop"], row["terminated"]) == (stop, terminated)


def test_messages_without_exactly_one_block_run_nothing(tmp_path: Path) -> None:
    run = one(
        tmp_path,
        trajectory(
            "o__r-1",
            said("no command"),
            user("Please always provide EXACTLY ONE action"),
            said(bash("a") + "\n" + bash("b")),
            user("Please always provide EXACTLY ONE action"),
            said(bash("sleep 99")),
            user("The last command <command>sleep 99</command> timed out and has been killed."),
        ),
    )
    assert called(run) == [
        ("bash", {"commands": []}, "protocol_error"),
        ("bash", {"commands": ["a", "b"]}, "protocol_error"),
        ("bash", {"command": "sleep 99"}, "tool_error"),
    ]


def test_tokens_are_unknown_where_a_call_has_no_usage_or_the_cache_is_not_told(tmp_path: Path) -> None:
    silent = {"role": "assistant", "content": bash("ls")}
    back = user("<returncode>0</returncode>")
    (row,) = one(
        tmp_path / "a", trajectory("o__r-1", said(bash("ls")), back, silent, back)
    ).trials.to_pylist()
    assert [row[f"tokens_{part}"] for part in ("fresh_input", "cache_read", "output")] == [None] * 3
    assert json.loads(row["extra"])["calls_with_usage"] == 1
    told = [said(bash("ls"), cached=None), back] * 3
    (row,) = one(tmp_path / "b", trajectory("o__r-1", *told)).trials.to_pylist()
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_output"]) == (None, None, 15)
    assert json.loads(row["extra"])["input_tokens"] == 300


def test_written_cache_tokens_lie_within_the_input_too(tmp_path: Path) -> None:
    message = said(bash("ls"), 1000, 700)
    message["extra"]["response"]["usage"]["cache_creation_input_tokens"] = 200
    stats = {"instance_cost": 0.1, "api_calls": 1}
    (row,) = one(tmp_path, trajectory("o__r-1", message, model_stats=stats)).trials.to_pylist()
    assert [row[f"tokens_{part}"] for part in ("fresh_input", "cache_read", "cache_write")] == [100, 700, 200]
    message["extra"]["response"]["usage"]["cache_creation_input_tokens"] = 400
    with pytest.raises(LabError, match=r"messages\[2\]: usage: 1100 cached tokens within an input of 1000"):
        one(tmp_path / "b", trajectory("o__r-1", message))


def test_no_cost_for_calls_that_were_made_is_unknown(tmp_path: Path) -> None:
    stats = {"instance_cost": 0.0, "api_calls": 3}
    (row,) = one(tmp_path, trajectory("o__r-1", *FENCED, model_stats=stats)).trials.to_pylist()
    assert (row["cost_micros"], row["model_calls"]) == (None, 3)
    stats = {"instance_cost": 0.0, "api_calls": 0}
    (row,) = one(tmp_path / "b", trajectory("o__r-1", model_stats=stats)).trials.to_pylist()
    assert (row["cost_micros"], row["model_calls"]) == (0, 0)


# ---- format 1.1, and before there was one --------------------------------------------------------------------


def tool_call(id: str, arguments: str, name: str = "bash") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_tool_calls_of_format_1_1(tmp_path: Path) -> None:
    def answer(*calls: Any) -> dict[str, Any]:
        return {**said(""), "tool_calls": list(calls)}

    def back(id: str, code: int, **extra: Any) -> dict[str, Any]:
        return {
            "role": "tool",
            "tool_call_id": id,
            "content": f"code {code}",
            "extra": {"returncode": code, **extra},
        }

    run = one(
        tmp_path,
        trajectory(
            "o__r-1",
            answer(tool_call("1", '{"command": "ls"}'), tool_call("2", '{"command": "cat a"}')),
            back("2", 1),  # matched by id, not by place
            back("1", 0),
            user("No tool calls found.", interrupt_type="FormatError", response={"usage": {}}),
            answer(tool_call("3", "{broken"), tool_call("4", "{}"), tool_call("5", "{}", "python")),
            user("bad"),
            answer(tool_call("6", '{"command": "sleep 9"}')),
            back("6", -1, exception_info="timed out"),
            answer(tool_call("7", '{"command": "echo COMPLETE"}')),
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
            form="mini-swe-agent-1.1",
        ),
    )
    assert called(run) == [
        ("bash", {"command": "ls"}, "ok"),
        ("bash", {"command": "cat a"}, "tool_error"),
        ("bash", {"commands": []}, "protocol_error"),
        ("bash", "{broken", "malformed"),
        ("bash", {}, "schema_error"),
        ("python", {}, "undeclared"),
        ("bash", {"command": "sleep 9"}, "tool_error"),
        ("bash", {"command": "echo COMPLETE"}, "ok"),
    ]
    assert run.calls.column("observed").to_pylist()[:2] == ["code 0", "code 1"]


def test_fenced_actions_and_response_objects_of_format_1_1(tmp_path: Path) -> None:
    fenced = said(bash("ls", "mswea_bash_command"))
    fenced["extra"]["actions"] = [{"command": "ls"}]
    response = {
        "object": "response",
        "created_at": 1000,
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"command": "pwd"}'},
        ],
        "usage": {"input_tokens": 50, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 10}},
        "extra": {"actions": [{"command": "pwd", "tool_call_id": "c"}]},
    }
    run = one(
        tmp_path,
        trajectory(
            "o__r-1",
            fenced,
            user("out", returncode=0),
            response,
            {"type": "function_call_output", "call_id": "c", "output": "/", "extra": {"returncode": 0}},
            {"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded"}},
            form="mini-swe-agent-1.1",
            model_stats={"instance_cost": 0.5, "api_calls": 2},
        ),
    )
    assert called(run) == [("bash", {"command": "ls"}, "ok"), ("bash", {"command": "pwd"}, "ok")]
    (row,) = run.trials.to_pylist()
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_output"]) == (100, 50, 9)


def test_a_command_that_the_environment_died_of_is_an_error(tmp_path: Path) -> None:
    run = one(
        tmp_path,
        trajectory(
            "o__r-1",
            {**said(""), "tool_calls": [tool_call("1", '{"command": "rm -rf /"}')]},
            {"role": "exit", "content": "gone", "extra": {"exit_status": "RuntimeError"}},
            form="mini-swe-agent-1.1",
        ),
    )
    assert called(run) == [("bash", {"command": "rm -rf /"}, "tool_error")]


def test_a_bare_list_of_messages_is_a_trajectory_from_before_the_formats(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "sys"},
        {"role": "user", "content": "Fix"},
        {"role": "assistant", "content": bash("ls", "mswea_bash_command") + "\n" + bash("not this")},
        {"role": "user", "content": "<returncode>0</returncode>"},
    ]
    run = one(tmp_path, messages)
    (row,) = run.trials.to_pylist()
    unknown = ("model", "stop", "terminated", "model_calls", "cost_micros", "tokens_output", "extra")
    assert [row[name] for name in unknown] == [None] * len(unknown)
    assert called(run) == [("bash", {"command": "ls"}, "ok")]
    run = load_results("mini-swe-agent", tmp_path, Options(model="mine"))
    assert run.card.arms[0].model == "mine"


# ---- verdicts ------------------------------------------------------------------------------------------------


def test_without_a_verdict_the_import_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "o__r-1" / "o__r-1.traj.json", trajectory("o__r-1", *FENCED))
    for each in (path, tmp_path):
        with pytest.raises(LabError, match="does not say whether it solved its task"):
            load_results("mini-swe-agent", each)
    write(tmp_path / "o__r-1" / "report.json", {"o__r-1": {"resolved": True}})
    for each in (path, tmp_path):
        assert load_results("mini-swe-agent", each).card.counts.judged == 1


def test_every_kind_of_report_is_found_and_what_only_it_knows_is_a_bare_trial(tmp_path: Path) -> None:
    for n in (1, 2, 3):
        write(tmp_path / f"o__r-{n}" / f"o__r-{n}.traj.json", trajectory(f"o__r-{n}", *FENCED))
    write(
        tmp_path / "sb-cli-reports" / "x.json",
        {
            "total_instances": 5,
            "resolved_ids": ["o__r-1", "o__r-4"],
            "unresolved_ids": ["o__r-2"],
            "incomplete_ids": ["o__r-5"],
            "resolved_instances": 2,
        },
    )
    write(
        tmp_path / "results_summary.json",
        {
            "total": 3,
            "passed": 2,
            "instances": [
                {"instance_id": "o__r-1", "resolved": True},
                {"instance_id": "o__r-2", "resolved": False},
                {"instance_id": "o__r-4", "resolved": True},
            ],
        },
    )
    write(tmp_path / "preds.json", {"o__r-1": {"model_patch": "diff"}})
    (tmp_path / "other.json").write_text("no JSON", encoding="utf-8")
    run = load_results("mini-swe-agent", tmp_path)
    found = {row["case_id"]: row for row in run.trials.to_pylist()}
    assert {case: row["solved"] for case, row in found.items()} == {
        "o__r-1": True,
        "o__r-2": False,
        "o__r-4": True,
    }
    bare = found["o__r-4"]
    assert (bare["model"], bare["model_calls"], bare["cost_micros"], bare["tool_calls"]) == (
        "lab/m",
        None,
        None,
        None,
    )
    # r-3 has no verdict, r-5 was never submitted
    assert (run.card.counts.asked, run.card.counts.judged, run.card.counts.missing) == (5, 3, 2)
    assert run.card.imported is not None
    assert run.card.imported.notes == (
        "Judged by no report, so left out and counted as missing: 1 of 3 trajectories (o__r-3).",
        "Judged by a report and without a trajectory, so that only the verdict is known: 1 (o__r-4).",
    )
    assert [(p.metric, p.published, p.rows, p.follows) for p in run.card.imported.published] == [
        ("passed", 2, 2, True),
        ("total", 3, 3, True),
        ("resolved_instances", 2, 2, True),
    ]


def test_reports_that_disagree_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "o__r-1" / "o__r-1.traj.json", trajectory("o__r-1", *FENCED))
    write(tmp_path / "o__r-1" / "report.json", {"resolved": False})
    write(tmp_path / "r.json", {"total_instances": 1, "resolved_ids": ["o__r-1"]})
    with pytest.raises(LabError, match=r"r\.json: o__r-1 is resolved, in .*report\.json it is not resolved"):
        load_results("mini-swe-agent", tmp_path)


def test_an_empty_patch_is_not_resolved_as_in_the_harness(tmp_path: Path) -> None:
    """The harness evaluates none, so there is no report of it."""
    write(
        tmp_path / "o__r-2" / "o__r-2.traj.json",
        trajectory("o__r-2", *FENCED, exit_status="LimitsExceeded", submission=""),
    )
    run = one(tmp_path, trajectory("o__r-1", *FENCED))
    found = {row["case_id"]: row for row in run.trials.to_pylist()}
    assert (found["o__r-2"]["solved"], found["o__r-2"]["reasons"]) == (False, ["no patch was submitted"])
    assert found["o__r-2"]["cost_micros"] == 500_000


def test_a_single_trajectory_is_judged_by_what_lies_beside_it(tmp_path: Path) -> None:
    """In its own folder, above trajs/, or as its own report below logs/; what other folders hold is not looked at."""
    file = tmp_path / "run" / "o__r-1.traj.json"
    write(file, trajectory("o__r-1", *FENCED))
    write(tmp_path / "run" / "elsewhere" / "deep" / "report.json", {"o__r-1": {"resolved": True}})
    with pytest.raises(LabError, match="no report there does"):
        load_results("mini-swe-agent", file)
    write(tmp_path / "run" / "r.json", {"resolved_ids": ["o__r-1"], "total_instances": 1})
    assert load_results("mini-swe-agent", file).trials.column("solved").to_pylist() == [True]
    laid_out(tmp_path / "other", trajectory("o__r-1", *FENCED))
    nested = tmp_path / "other" / "trajs" / "o__r-1" / "o__r-1.traj.json"
    assert load_results("mini-swe-agent", nested).trials.column("solved").to_pylist() == [True]


def test_two_trajectories_of_an_instance_are_two_runs(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / run / "o__r-1.traj.json", trajectory("o__r-1", *FENCED))
    with pytest.raises(LabError, match=r"o__r-1 is also in .*; import one run at a time"):
        load_results("mini-swe-agent", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trajectory_format": "mini-swe-agent-2"}, "'mini-swe-agent-2' is not mini-swe-agent-1 or -1.1"),
        ({"messages": None}, r"Expected `array`, got `null` - at `\$\.messages`"),
        ({"info": {"model_stats": {"instance_cost": -1}}}, r"instance_cost: -1\.0 is no amount of money"),
        ({"info": {"model_stats": {"api_calls": -1}}}, "api_calls: -1"),
    ],
)
def test_what_is_no_trajectory_is_refused_with_its_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(LabError, match=message):
        one(tmp_path, {**trajectory("o__r-1", *FENCED), **change})


def test_a_folder_without_trajectories_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no \*\.traj\.json in it"):
        load_results("mini-swe-agent", tmp_path)
