"""Inspect logs as runs: files of our own, by the documented format, with the corners that real ones have."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Published, Run

from .inspect_logs import (
    DEFLATED,
    STORED,
    ZSTANDARD,
    figure,
    log,
    members,
    sample,
    spec,
    write_eval,
    write_json,
    zipped,
)


def run(tmp_path: Path, *samples: dict[str, Any], scorer: str = "", **fields: Any) -> Run:
    return load(write_json(tmp_path / "a.json", log(*samples, **fields)), scorer=scorer)


def load(path: Path, *, scorer: str = "", **options: Any) -> Run:
    return load_results("inspect", path, Options(columns={"scorer": scorer} if scorer else {}, **options))


def trials(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def one(run: Run) -> dict[str, Any]:
    (trial,) = trials(run)
    return trial


def extra(trial: dict[str, Any]) -> dict[str, Any]:
    return json.loads(trial["extra"] or "{}")


def claims(run: Run) -> dict[str, Published]:
    assert run.card.imported is not None
    return {claim.metric: claim for claim in run.card.imported.published}


def notes(run: Run) -> str:
    assert run.card.imported is not None
    return "\n".join(run.card.imported.notes)


def test_a_sample_is_a_trial(tmp_path: Path) -> None:
    found = run(tmp_path, sample("q1", turn_count=1, uuid="u1"))
    trial = one(found)
    assert (trial["suite"], trial["case_id"], trial["group"], trial["trial"]) == ("arith", "q1", "arith", 1)
    assert (trial["driver"], trial["model"], trial["scaffold"]) == (
        "use_tools+generate",
        "mockllm/m",
        "once",
    )
    assert (trial["solved"], trial["score"], trial["stop"], trial["terminated"]) == (True, 1.0, "done", True)
    assert trial["evidence"] == "imported"
    assert (trial["tokens_fresh_input"], trial["tokens_cache_read"]) == (10, 0)
    assert (trial["tokens_cache_write"], trial["tokens_output"]) == (0, 5)
    assert (trial["cost_micros"], trial["model_calls"], trial["seed"]) == (None, None, None)
    assert (trial["wall_s"], trial["working_s"], trial["attempts"], trial["steps"]) == (2.5, 1.5, 1, 1)
    assert extra(trial) == {"uuid": "u1", "value": "C"}
    (case,) = found.cases.to_pylist()
    assert (case["request"], json.loads(case["expectation"])) == ("question q1", {"target": "yes"})
    (transcript,) = found.transcripts.to_pylist()
    assert (json.loads(transcript["answer"]), len(json.loads(transcript["messages"]))) == ("yes", 2)


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_eval_and_json_give_the_same_run(tmp_path: Path, method: int) -> None:
    content = log(*(sample(f"q{n}", epoch, "CI"[n % 2]) for epoch in (1, 2) for n in range(100)))
    as_json = load(write_json(tmp_path / "x.json", content), name="x")
    as_eval = load(write_eval(tmp_path / "x.eval", content, method), name="x")
    assert as_eval.trials.num_rows == 200
    for grain in ("cases", "trials", "attempts", "calls", "transcripts"):
        assert getattr(as_eval, grain).equals(getattr(as_json, grain))


def test_the_card_says_where_it_comes_from(tmp_path: Path) -> None:
    revision = {"type": "git", "origin": "here", "commit": "abc", "dirty": True}
    found = run(tmp_path, sample(), eval={"revision": revision, "task_version": 3, "task_args": {"n": 2}})
    card = found.card
    assert card.imported is not None
    assert (card.imported.format, card.imported.file) == ("inspect", "a.json")
    assert card.imported.digest == hashlib.sha256((tmp_path / "a.json").read_bytes()).hexdigest()
    assert (card.commit, card.suites[0].version) == ("abc+dirty", "3")
    assert (card.started_at, card.finished_at) == ("2026-01-01T00:00:01+00:00", "2026-01-01T00:00:09+00:00")
    assert card.options == {"task_args": {"n": 2}, "epochs": 1}


@pytest.mark.parametrize(
    ("value", "solved", "score"),
    [
        ("C", True, 1.0),
        ("I", False, 0.0),
        ("P", False, 0.5),
        ("N", False, 0.0),
        (1, True, 1.0),
        (0.9999999, True, 0.9999999),
        (0.99999, False, 0.99999),
        (0.5, False, 0.5),
        (True, True, 1.0),
        (False, False, 0.0),
        ("Yes", True, 1.0),
        ("false", False, 0.0),
        ("1.0", True, 1.0),
        ("0.25", False, 0.25),
        (5, False, 5.0),
    ],
)
def test_values(tmp_path: Path, value: Any, solved: bool, score: float) -> None:
    trial = one(run(tmp_path, sample(value=value)))
    assert (trial["solved"], trial["score"]) == (solved, score)


def test_text_that_is_no_value_is_not_solved_as_in_inspect(tmp_path: Path) -> None:
    found = run(tmp_path, sample(1, value="C"), sample(2, value="maybe"))
    assert [(trial["solved"], trial["score"]) for trial in trials(found)] == [(True, 1.0), (False, None)]
    assert "1 trial: the value is text that is neither" in notes(found)


def test_a_scorer_that_says_only_other_text_gives_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"a\.json: the values by match, such as 'A', are no verdicts"):
        run(tmp_path, sample(1, value="A"), sample(2, value="B"))


def test_a_list_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"sample '1', epoch 1: the score by match is a list"):
        run(tmp_path, sample(value=["C", "I"]))


def test_what_was_not_scored_is_excluded_and_so_is_an_error(tmp_path: Path) -> None:
    content = json.dumps(
        log(
            sample(1),
            sample(2, value="NAN", note="a NaN in text stays"),
            sample(3, value=...),
            sample(4, value=..., error={"message": "Boom\nat line 3", "traceback": "t"}),
        )
    ).replace('"NAN"', "NaN")
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    found = load(path)
    assert [(t["solved"], t["excluded"], t["excluded_owner"], t["stop"]) for t in trials(found)] == [
        (True, None, None, "done"),
        (None, "not scored by match", "grader", "done"),
        (None, "no score by match", "grader", "done"),
        (None, "error: Boom", "harness", None),
    ]
    counts = found.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (4, 1, 3, 0)


def test_an_error_with_a_score_is_judged_as_inspect_does(tmp_path: Path) -> None:
    found = run(tmp_path, sample(value="I", error={"message": "late"}))
    trial = one(found)
    assert (trial["solved"], trial["excluded"], trial["stop"]) == (False, None, None)
    assert trial["note"] == "error: late"
    assert "1 trial: an error ended the trial, yet it has a score" in notes(found)


@pytest.mark.parametrize(
    ("limit", "stop"),
    [
        ("time", "timeout"),
        ("working", "timeout"),
        ("token", "budget"),
        ("message", "budget"),
        ("context", "budget"),
        ("turn", "budget"),
        ("cost", "budget"),
        ("custom", "budget"),
        ("operator", None),
    ],
)
def test_a_limit_ends_a_trial_that_is_judged_by_its_score(
    tmp_path: Path, limit: str, stop: str | None
) -> None:
    trial = one(run(tmp_path, sample(value="C", limit={"type": limit, "limit": 3})))
    assert (trial["solved"], trial["stop"], trial["terminated"]) == (True, stop, False)
    assert extra(trial)["limit"] == limit


def test_several_scorers(tmp_path: Path) -> None:
    scores = {"first": {"value": "I"}, "second": {"value": "C"}}
    results = {
        "total_samples": 1,
        "scores": [{"name": "second", "scorer": "second"}, {"name": "first", "scorer": "first"}],
    }
    both = sample(scores=scores)
    found = run(tmp_path, both, results=results)
    assert one(found)["solved"] is True  # the first of the results
    assert extra(one(found))["other_scores"] == {"first": "I"}
    assert "a.json: judged by second; --map scorer=NAME takes another: first." in notes(found)
    assert one(run(tmp_path, both, results=results, scorer="first"))["solved"] is False
    headline = {**results, "headline": {"scorer": "first", "metric": "accuracy"}}
    assert one(run(tmp_path, both, results=headline))["solved"] is False
    with pytest.raises(LabError, match=r"a\.json: no scorer 'secnod' \(did you mean 'second'\?\)"):
        run(tmp_path, both, scorer="secnod")
    with pytest.raises(
        LabError, match=r"--map scorrer: inspect takes nothing of that name \(did you mean 'scorer'\?\)"
    ):
        load_results("inspect", tmp_path / "a.json", Options(columns={"scorrer": "first"}))


def test_a_dict_of_values_is_judged_by_one_key(tmp_path: Path) -> None:
    both = sample(value={"safe": 0, "right": 1})
    found = run(tmp_path, both)
    assert one(found)["solved"] is False
    assert "judged by match.safe; --map scorer=NAME takes another: match.right." in notes(found)
    results = {"total_samples": 1, "scores": [figure(1.0, name="mean") | {"name": "right"}]}
    chosen = run(tmp_path, both, scorer="match.right", results=results)
    assert one(chosen)["solved"] is True
    assert claims(chosen)["right mean"].follows
    with pytest.raises(LabError, match=r"match has no 'rihgt' \(did you mean 'right'\?\)"):
        run(tmp_path, both, scorer="match.rihgt")


def test_published_figures_stand_beside_what_the_rows_give(tmp_path: Path) -> None:
    """Two cases by four epochs: 2 of 4 and 4 of 4.

    mean (.5 + 1) / 2; pass@2 of 2 in 4: 1 - C(2,2)/C(4,2) = 5/6; pass^2: C(2,2)/C(4,2) = 1/6; at least 3: 0 and 1;
    standard error of (.5, 1): sqrt(.125)/sqrt(2) = .25.
    """
    values = [sample("a", n, "CICI"[n - 1]) for n in (1, 2, 3, 4)] + [sample("b", n) for n in (1, 2, 3, 4)]
    wanted = [
        figure(0.75, reducer="mean"),
        figure(0.25, "stderr", reducer="mean"),
        figure(11 / 12, reducer="pass_at_2"),
        figure(7 / 12, reducer="pass_k_2"),
        figure(0.5, reducer="at_least_3"),
        figure(0.75, "mean", reducer="median"),
        figure(1.0, reducer="max"),
        figure(1.0, "inspect_ai/accuracy", reducer="mode"),
    ]
    found = run(tmp_path, *values, results={"total_samples": 8, "completed_samples": 8, "scores": wanted})
    assert {name: (claim.rows, claim.follows) for name, claim in claims(found).items()} == {
        "match accuracy (mean)": (0.75, True),
        "match stderr (mean)": (pytest.approx(0.25), True),
        "match accuracy (pass_at_2)": (pytest.approx(11 / 12), True),
        "match accuracy (pass_k_2)": (pytest.approx(7 / 12), True),
        "match accuracy (at_least_3)": (0.5, True),
        "match mean (median)": (0.75, True),
        "match accuracy (max)": (1.0, True),
        "match inspect_ai/accuracy (mode)": (1.0, True),
        "completed": (8, True),
    }


def test_a_figure_that_does_not_follow_or_is_unknown_is_said_so(tmp_path: Path) -> None:
    wanted = [figure(0.9), figure(0.3, "f1"), figure(0.4, reducer="best_of")]
    clustered = figure(0.1, "stderr")
    clustered["metrics"]["stderr"]["params"] = {"cluster": "topic"}
    results = {"total_samples": 2, "scores": [*wanted, clustered]}
    found = claims(run(tmp_path, sample(1), sample(2, value="I"), results=results))
    assert (found["match accuracy"].rows, found["match accuracy"].follows) == (0.5, False)
    assert found["match f1"].rows is None
    assert found["match accuracy (best_of)"].note == "not computed here"
    assert found["match stderr"].rows is None


def test_tokens_lie_in_disjoint_buckets(tmp_path: Path) -> None:
    """Inspect's input leaves cached tokens out; an older one left them in, which the total tells."""
    today = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 45,
        "input_tokens_cache_read": 20,
        "input_tokens_cache_write": 10,
    }
    older = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_tokens_cache_read": 60}
    found = run(
        tmp_path, sample(1, model_usage={"mockllm/m": today}), sample(2, model_usage={"mockllm/m": older})
    )
    buckets = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
    assert [tuple(t[name] for name in buckets) for t in trials(found)] == [(10, 20, 10, 5), (40, 60, 0, 5)]
    assert "1 trial: cached tokens were counted within the input" in notes(found)


def test_unknown_usage_stays_unknown(tmp_path: Path) -> None:
    zero = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    found = run(tmp_path, sample(1, model_usage={"mockllm/m": zero}), sample(2, model_usage={}))
    assert [t["tokens_output"] for t in trials(found)] == [None, None]
    assert [t["tokens_fresh_input"] for t in trials(found)] == [None, None]


def test_cost_is_that_of_all_models_but_the_grader(tmp_path: Path) -> None:
    def used(tokens: int, cost: float | None) -> dict[str, Any]:
        return {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1, "total_cost": cost}

    known = {"mockllm/m": used(10, 0.1), "other": used(20, 0.2000004)}
    found = run(
        tmp_path,
        sample(1, model_usage=known),
        sample(2, model_usage={"mockllm/m": used(10, 0.1), "other": used(20, None)}),
        sample(3, model_usage=known, role_usage={"grader": used(20, 0.2000004)}),
    )
    first, second, third = trials(found)
    assert (first["cost_micros"], first["tokens_fresh_input"]) == (300000, 30)
    assert extra(first)["cost_usd"] == 0.3000004
    assert second["cost_micros"] is None
    assert (third["cost_micros"], third["tokens_fresh_input"], third["tokens_output"]) == (100000, 10, 1)
    assert "3 trials: the usage is that of other models too" in notes(found)
    with pytest.raises(LabError, match="the grader used more tokens than the sample did"):
        run(tmp_path, sample(role_usage={"grader": used(99, None)}))


def test_failed_attempts_are_attempts_and_their_usage_is_unknown(tmp_path: Path) -> None:
    usage = {"mockllm/m": {"input_tokens": 30, "output_tokens": 10, "total_tokens": 40}}
    found = run(tmp_path, sample(error_retries=[{"message": "first"}]), stats={"model_usage": usage})
    trial = one(found)
    assert (trial["attempts"], trial["tokens_output"], trial["wall_s"]) == (2, None, None)
    assert extra(trial)["last_attempt"]["output"] == 5
    assert found.attempts.num_rows == 2
    tokens = claims(found)["tokens"]
    assert (tokens.published, tokens.rows, tokens.follows) == (40, 15, False)
    assert tokens.note == "the log's total has the failed attempts too"


def test_wall_time_from_instants_where_there_is_no_other(tmp_path: Path) -> None:
    instants = {"started_at": "2026-01-01T00:00:00+00:00", "completed_at": "2026-01-01T00:00:04.5+00:00"}
    assert one(run(tmp_path, sample(total_time=None, **instants)))["wall_s"] == 4.5


def test_tool_calls_and_their_answers(tmp_path: Path) -> None:
    def asked(*calls: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": identity, "function": name, "arguments": arguments, **more}
                for identity, name, arguments in calls
            ],
        }

    def told(identity: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": identity, "content": content, **more}

    parts = [{"type": "text", "text": "seen"}, {"type": "image", "image": "data:x"}]
    messages = [
        {"role": "user", "content": "go"},
        asked(("1", "look", {"at": "a"}), ("2", "look", {"at": "b"})),
        told("2", "B"),  # answered in another order
        told("1", parts),
        asked(("1", "cut", {})),  # the same id again
        told("1", "", error={"type": "permission", "message": "no"}),
        asked(("3", "cut", {}), parse_error="no JSON"),
        told("3", "", error={"type": "parsing", "message": "no JSON"}),
        asked(("4", "fly", {})),
        told("4", "", error={"type": "parsing", "message": "Tool fly not found"}),
        asked(("5", "cut", {"x": 1})),
        told("5", "", error={"type": "parsing", "message": "'x' is not a number"}),
        asked(("6", "old", {})),
        told("6", "", tool_error="an old log's error"),
        asked(("7", "last", {})),
    ]
    found = run(tmp_path, sample(messages=messages))
    assert [
        (c["name"], json.loads(c["input"]), c["status"], c["observed"]) for c in found.calls.to_pylist()
    ] == [
        ("look", {"at": "a"}, "ok", "seen\n[image]"),
        ("look", {"at": "b"}, "ok", "B"),
        ("cut", {}, "tool_error", "no"),
        ("cut", {}, "malformed", "no JSON"),
        ("fly", {}, "undeclared", "Tool fly not found"),
        ("cut", {"x": 1}, "schema_error", "'x' is not a number"),
        ("old", {}, "tool_error", "an old log's error"),
    ]
    trial = one(found)
    assert (trial["tool_calls"], trial["tool_errors"]) == (7, 5)
    assert extra(trial)["unanswered_calls"] == 1
    assert "1 trial: the last tool calls were not answered" in notes(found)


def test_attachments_stand_in_their_places(tmp_path: Path) -> None:
    attachments = {"h1": "a long question", "h2": "data:image/png;base64,AAAA", "h3": "a long answer"}
    content = sample(
        input=[{"role": "user", "content": "attachment://h1"}],
        messages=[
            {"role": "user", "content": "attachment://h1"},
            {"role": "user", "content": [{"type": "image", "image": "attachment://h2"}]},
            {"role": "user", "content": "attachment://gone"},
        ],
        output={"choices": [{"message": {"content": "attachment://h3"}}]},
        attachments=attachments,
    )
    older = sample(2, input="tc://h1", transcript={"events": [], "content": attachments})
    found = run(tmp_path, content, older)
    assert [case["request"] for case in found.cases.to_pylist()] == ["a long question"] * 2
    first = found.transcripts.to_pylist()[0]
    assert json.loads(first["answer"]) == "a long answer"
    assert [message["content"] for message in json.loads(first["messages"])] == [
        "a long question",
        [{"type": "image", "image": "attachment://h2"}],
        "attachment://gone",
    ]


def test_a_log_of_2023_with_one_score_a_sample(tmp_path: Path) -> None:
    older = sample(score={"value": "C"})
    del older["scores"]
    results = {
        "total_samples": 1,
        "scorer": {"name": "match"},
        "metrics": {"accuracy": {"name": "accuracy", "value": 1.0}},
    }
    found = run(tmp_path, older, results=results)
    assert one(found)["solved"] is True
    assert claims(found)["match accuracy"].follows


def test_missing_samples_are_counted(tmp_path: Path) -> None:
    selected = {"dataset": {"samples": 100, "sample_ids": ["a", "b"]}, "config": {"epochs": 3}}
    content = log(
        sample("a", 1), status="error", results=None, error={"message": "stopped\nthere"}, eval=selected
    )
    found = load(write_json(tmp_path / "a.json", content))
    counts = found.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (6, 1, 5)
    assert notes(found) == "a.json: its status is error (stopped), 5 of 6 samples are missing."
    assert [case["case_id"] for case in found.cases.to_pylist()] == ["a", "b"]


@pytest.mark.parametrize(("limit", "missing"), [(None, 9), (4, 3), ([2, 7], 4), (50, 9)])
def test_missing_samples_where_the_selection_has_no_ids(tmp_path: Path, limit: Any, missing: int) -> None:
    started = {"dataset": {"samples": 10}, "config": {"limit": limit}}
    found = run(tmp_path, sample(), status="cancelled", results=None, eval=started)
    assert found.card.counts.missing == missing


def test_an_unfinished_eval_has_no_header_yet(tmp_path: Path) -> None:
    content = members(log(sample("a"), eval={"dataset": {"sample_ids": ["a", "b"]}}))
    del content["header.json"]
    path = tmp_path / "a.eval"
    path.write_bytes(zipped(list(content.items()), ZSTANDARD))
    found = load(path)
    assert (found.card.counts.judged, found.card.counts.missing) == (1, 1)
    assert "its status is started" in notes(found)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"samples": None}, "no sample in it; only the header of the log was kept"),
        (
            {"samples": [], "status": "error", "error": {"message": "no key"}},
            "no sample in it; its status is error: no key",
        ),
        ({"samples": [sample(value=...)]}, "no sample was scored"),
        ({"samples": [sample(1), sample("1")]}, "the number 1 and the text '1' are both ids"),
        ({"samples": [sample(1), sample(1)]}, "sample '1', epoch 1: comes twice"),
        ({"version": 3}, "format version 3 is not known"),
        ({"status": "odd"}, "status 'odd' is none of"),
        ({"samples": [sample(epoch=0)]}, r"Expected `int` >= 1 - at `\$\.samples\[0\]\.epoch`"),
        ({"samples": [sample(total_time=-1)]}, r"Expected `float` >= 0.0 - at"),
        ({"samples": [sample(messages=[{"content": "x"}])]}, r"sample '1', epoch 1: messages: .*`role`"),
        ({"eval": {"task": "x"}}, r"missing required field `model` - at `\$\.eval`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    content = log(sample())
    content.update(fields)
    path = write_json(tmp_path / "a.json", content)
    with pytest.raises(LabError, match=rf"^{path}.*{message}"):
        load(path)


def test_a_selected_id_may_collide_too(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the number 7 and the text '7'"):
        run(tmp_path, sample("7"), eval={"dataset": {"sample_ids": [7]}})


def test_a_log_cut_short_within_a_text_full_of_quotes_is_told_at_once(tmp_path: Path) -> None:
    """Looking for the end of that text from each of its quotes would take hours."""
    path = tmp_path / "a.json"
    whole = json.dumps(log(sample(input='"NaN"' * 200_000)))
    path.write_text(whole[:1_000_000], encoding="utf-8")
    with pytest.raises(LabError, match=rf"^{path}: Input data was truncated"):
        load(path)


def damaged(content: dict[str, bytes], method: int, member: str, *, at: int) -> bytes:
    """The zip with one byte of a member's compressed content changed."""
    whole = bytearray(zipped(list(content.items()), method))
    start = whole.index(member.encode()) + len(member)
    whole[start + at] ^= 0x55
    return bytes(whole)


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_a_damaged_member_is_named(tmp_path: Path, method: int) -> None:
    content = members(log(*(sample(f"q{n}") for n in range(5))))
    path = tmp_path / "a.eval"
    path.write_bytes(damaged(content, method, "samples/q3_epoch_1.json", at=40))
    with pytest.raises(LabError, match=rf"^{path}: samples/q3_epoch_1\.json: (cannot be|has other)"):
        load(path)


def test_zips_that_are_no_logs(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    content = members(log(sample()))
    whole = zipped(list(content.items()), ZSTANDARD)
    for data, message in (
        (whole[: len(whole) // 2], "no whole zip file: damaged or cut short"),
        (zipped([("a.txt", b"a")], STORED), r"without header\.json or _journal/start\.json"),
        (zipped([*content.items(), ("samples/x_epoch_1/sample.json", b"{}")], STORED), "a sample in chunks"),
        (
            zipped(list(content.items()), STORED).replace(b"\0\0\0\0!\0", b"\x0c\0\0\0!\0"),
            "compressed by method 12",
        ),
        (b"", "Input data was truncated"),
    ):
        path.write_bytes(data)
        with pytest.raises(LabError, match=rf"^{path}.*{message}"):
            load(path)


def test_a_small_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """Two members of 140 MB of zeros each are a few thousand bytes as a file; nothing of them is unpacked."""
    zeros = bytes(140_000_000)
    path = tmp_path / "a.eval"
    path.write_bytes(
        zipped([*members(log(sample())).items(), *((f"samples/{n}.json", zeros) for n in "ab")], ZSTANDARD)
    )
    assert path.stat().st_size < 100_000
    with pytest.raises(
        LabError, match=r"a\.eval: its [\d,]+ bytes unpack to 280,.*largest.*samples/[ab]\.json"
    ):
        load(path)


def test_a_member_that_says_it_is_too_large_is_named(tmp_path: Path) -> None:
    whole = zipped(list(members(log(sample())).items()), STORED)
    at = whole.rindex(b"samples/1_epoch_1.json") - 46 + 24  # the size in the directory
    path = tmp_path / "a.eval"
    path.write_bytes(whole[:at] + struct.pack("<I", 2**31) + whole[at + 4 :])
    with pytest.raises(LabError, match=r"samples/1_epoch_1\.json: unpacks to 2,147,483,648 bytes"):
        load(path)


def test_an_attachment_that_is_named_again_and_again_is_refused(tmp_path: Path) -> None:
    """65 references to 1,000,000 characters: a file of 1 MB, and text of 65 MB in the tables."""
    named = [{"role": "user", "content": "attachment://a1"}] * 65
    with pytest.raises(
        LabError, match=r"sample 1, epoch 1: attachments.*more than 64,000,000 characters.*'a1'"
    ):
        run(tmp_path, sample(messages=named, attachments={"a1": "x" * 1_000_000}))
    run(tmp_path, sample(messages=named[:3], attachments={"a1": "x" * 1_000_000}))


def test_of_two_members_of_one_name_the_last_counts(tmp_path: Path) -> None:
    content = list(members(log(sample(value="I"))).items())
    again = ("samples/1_epoch_1.json", json.dumps(sample(value="C")).encode())
    path = tmp_path / "a.eval"
    path.write_bytes(zipped([*content, again], ZSTANDARD))
    assert one(load(path))["solved"] is True


def test_a_large_member_of_many_frames(tmp_path: Path) -> None:
    """Inspect splits members above 200 MB into frames that stand one after the other."""
    large = sample(messages=[{"role": "user", "content": "x" * 150_000}])
    content = members(log(large))
    data = content["samples/1_epoch_1.json"]
    path = tmp_path / "a.eval"
    whole = zipped(list(content.items()), ZSTANDARD)
    single = pa.Codec("zstd").compress(data, asbytes=True)
    frames = b"".join(
        pa.Codec("zstd").compress(part, asbytes=True) for part in (data[:9], data[9:100_000], data[100_000:])
    )
    assert whole.count(single) == 1
    # the sizes in both headers and the offsets behind it move by the difference
    shift = len(frames) - len(single)
    packed = struct.pack("<II", len(single), len(data))
    whole = whole.replace(packed, struct.pack("<II", len(frames), len(data)))
    at = whole.index(b"PK\x05\x06")
    directory, start = struct.unpack_from("<II", whole, at + 12)
    entry = whole.index(b"PK\x01\x02", whole.rindex(b"samples/1_epoch_1.json"))
    (offset,) = struct.unpack_from("<I", whole, entry + 42)
    made = bytearray(whole)
    struct.pack_into("<I", made, entry + 42, offset + shift)
    struct.pack_into("<II", made, at + 12, directory, start + shift)
    path.write_bytes(bytes(made).replace(single, frames))
    assert len(json.loads(load(path).transcripts.to_pylist()[0]["messages"])[0]["content"]) == 150_000


def test_a_folder_is_one_run_with_an_arm_a_model(tmp_path: Path) -> None:
    write_eval(tmp_path / "logs/a.eval", log(sample(1), sample(2, value="I"), eval={"model": "one/m"}))
    write_json(
        tmp_path / "logs/deep/b.json",
        log(sample(1), sample(2), eval={"model": "two/m", "eval_id": "e2", "task_id": "t2"}),
    )
    write_json(tmp_path / "logs/listing.json", {"a.eval": {}})
    write_json(tmp_path / "logs/.hidden.json", log(sample(1)))
    found = load(tmp_path / "logs")
    assert [(t["case_id"], t["model"], t["solved"]) for t in trials(found)] == [
        ("1", "one/m", True),
        ("1", "two/m", True),
        ("2", "one/m", False),
        ("2", "two/m", True),
    ]
    assert (found.card.suites[0].name, len(found.card.arms)) == ("arith", 2)
    assert notes(found).startswith("Left out, no Inspect log: listing.json.\n4 trials: ")


def test_several_tasks_are_groups(tmp_path: Path) -> None:
    write_json(tmp_path / "logs/a.json", log(sample(1)))
    write_json(
        tmp_path / "logs/b.json",
        log(sample(1, input="other"), eval={"task": "lib/geo", "eval_id": "e2", "task_id": "t2"}),
    )
    found = load(tmp_path / "logs")
    assert [(t["case_id"], t["group"]) for t in trials(found)] == [
        ("arith/1", "arith"),
        ("lib/geo/1", "lib/geo"),
    ]
    assert found.card.suites[0].name == "logs"


def again(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "eval_id": f"e{number}",
        "task_id": f"t{number}",
        "created": f"2026-01-0{number}T00:00:00+00:00",
        **fields,
    }


def test_the_same_arm_again_gives_further_trials(tmp_path: Path) -> None:
    first = log(sample(1, 1, "I"), sample(1, 2, "I"), eval=again(1))
    write_json(tmp_path / "logs/z.json", first)
    write_json(tmp_path / "logs/a.json", log(sample(1, 1, "C"), eval=again(2)))
    found = load(tmp_path / "logs")
    assert [(t["trial"], t["solved"]) for t in trials(found)] == [(1, False), (2, False), (3, True)]
    assert "a.json: the same arm as z.json; its trials follow that one's." in notes(found)


def test_the_same_arm_with_other_settings_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "logs/a.json", log(sample(1), eval=again(1)))
    write_json(
        tmp_path / "logs/b.json", log(sample(1), eval=again(2, model_generate_config={"temperature": 1}))
    )
    with pytest.raises(
        LabError,
        match=r"b\.json: the same task, solver and model as a\.json, but another model_generate_config",
    ):
        load(tmp_path / "logs")


def test_an_id_that_means_two_things_is_refused(tmp_path: Path) -> None:
    """Ids that Inspect numbers itself mean other samples once the dataset is shuffled."""
    write_json(tmp_path / "logs/a.json", log(sample(1), eval=again(1)))
    write_json(tmp_path / "logs/b.json", log(sample(1, input="another"), eval=again(2, model="x/y")))
    with pytest.raises(LabError, match=r"b\.json: sample '1', epoch 1: asks or wants something else"):
        load(tmp_path / "logs")


def test_of_a_log_that_was_tried_again_the_later_counts(tmp_path: Path) -> None:
    write_json(tmp_path / "logs/a.json", log(sample(1, value="I", uuid="u"), status="error", eval=again(1)))
    write_json(tmp_path / "logs/b.json", log(sample(1, uuid="u"), eval=again(2, task_id="t1")))
    found = load(tmp_path / "logs")
    assert one(found)["solved"] is True
    assert "Left out: a.json, which b.json tried again." in notes(found)


def test_copies_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "one/a.json", log(sample(1)))
    write_eval(tmp_path / "one/b.eval", log(sample(1)))
    with pytest.raises(LabError, match=r"b\.eval: the same evaluation as a\.json"):
        load(tmp_path / "one")
    write_json(tmp_path / "two/a.json", log(sample(1, uuid="u"), eval=again(1)))
    write_json(tmp_path / "two/b.json", log(sample(1, uuid="u"), eval=again(2)))
    with pytest.raises(LabError, match=r"b\.json: sample '1', epoch 1: is also in .*a\.json"):
        load(tmp_path / "two")


def test_a_folder_without_logs(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no Inspect log"):
        load(tmp_path)


def test_names_of_the_caller_fill_in(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", log(sample(), plan={"steps": []}))
    found = load(path, suite="mine", driver="agent", model="unused")
    assert (found.card.suites[0].name, found.card.arms[0].driver) == ("mine", "agent")
    assert found.card.arms[0].model == "mockllm/m"
    given_solver = write_json(tmp_path / "b.json", log(sample(), eval={"solver": "react"}))
    assert load(given_solver, driver="unused").card.arms[0].driver == "react"


RICH = log(
    sample(1, uuid="u1", turn_count=2),
    sample(
        "b",
        2,
        {"x": 1.0, "y": None},
        attachments={"h": "text"},
        messages=[
            {"role": "user", "content": "attachment://h"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "function": "f", "arguments": {"a": 1}}],
            },
            {
                "role": "tool",
                "tool_call_id": "1",
                "content": [{"type": "text", "text": "t"}],
                "error": {"type": "parsing"},
            },
        ],
        error_retries=[{"message": "m"}],
        limit={"type": "time", "limit": 1},
        role_usage={"grader": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "total_cost": 0.1}},
    ),
    sample(3, 1, ..., error={"message": "m"}),
    results={
        "total_samples": 3,
        "completed_samples": 2,
        "scores": [figure(0.5, reducer="pass_k_2"), figure(0.5, "stderr")],
        "headline": {"scorer": "match", "score": "x"},
    },
    eval=spec(
        dataset={"samples": 3, "sample_ids": [1, "b", 3]},
        config={"epochs": 2, "limit": [0, 3]},
        revision={"commit": "c"},
    ),
)


QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
THOROUGH = settings(QUICK, max_examples=1500)


def never_more_than_an_error(path: Path) -> None:
    try:
        found = load(path)
    except LabError as error:
        assert str(error).startswith(str(path))
    else:
        counts = found.card.counts
        assert counts.judged + counts.excluded + counts.missing == counts.asked


def test_the_rich_log_is_a_log(tmp_path: Path) -> None:
    assert load(write_json(tmp_path / "a.json", RICH)).card.counts.judged == 2


FLIPS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4)
WHOLE = {method: zipped(list(members(RICH).items()), method) for method in (STORED, DEFLATED, ZSTANDARD)}


def flipped(method: int, flips: list[tuple[float, int]], length: float) -> bytes:
    data = bytearray(WHOLE[method])
    for place, byte in flips:
        data[int(place * len(data))] = byte
    return bytes(data[: int(length * len(data))] if length < 0.9 else data)


ARCHIVES = (st.sampled_from([STORED, DEFLATED, ZSTANDARD]), FLIPS, st.floats(0, 1))


@QUICK
@given(*ARCHIVES)
def test_flipped_bytes_never_raise_anything_else(
    tmp_path: Path, method: int, flips: list[tuple[float, int]], length: float
) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(flipped(method, flips, length))
    never_more_than_an_error(path)


@pytest.mark.long
@THOROUGH
@given(*ARCHIVES)
def test_many_flipped_bytes_never_raise_anything_else(
    tmp_path: Path, method: int, flips: list[tuple[float, int]], length: float
) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(flipped(method, flips, length))
    never_more_than_an_error(path)


@pytest.mark.long
@THOROUGH
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3))
def test_flipped_bytes_of_json_never_raise_anything_else(
    tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(json.dumps(RICH).encode())
    for place, byte in flips:
        data[place % len(data)] = byte
    path = tmp_path / "a.json"
    path.write_bytes(bytes(data))
    never_more_than_an_error(path)
