"""Whose fault it is when an endpoint fails: tried again, excluded with an owner, judged, or the end of the run."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.drivers.chat_http import ContextFull, failure, seconds
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.running.trial import Retries

from ..agents.openai_server import Answer, Script, Server, calls, fails, says, serving
from ..doing import environment, lab, some, write_suite

QUICK = Retries(times=2, wait_initial_s=0.01, wait_max_s=0.02, wait_jitter_s=0.0)
LOOK = ("tmct_describe", {"symbol": "Cart"})
END = ("answer", {"value": 1})


def run(
    folder: Path, script: Script, *, options: str = "", retries: Retries = QUICK, **more: Any
) -> tuple[Run, Server]:
    suite = write_suite(folder, some(0)[:1])
    with serving(script) as server:
        done = evaluate(suite, f"chat:m@{server.url}{options}", retries=retries, save_run=False, **more)
        return done, server


def row(run: Run) -> dict[str, Any]:
    (only,) = run.trials.to_pylist()
    return dict(only)


def ends(run: Run) -> list[str]:
    return [each["end"] for each in run.attempts.to_pylist()]


FAILURES = {
    "rate limit": fails(429, "slow down"),
    "rate limit with seconds": fails(429, "slow down", Retry_After="0.01"),
    "timeout of a gateway": fails(408),
    "server error": fails(500),
    "overloaded": fails(503, "overloaded"),
    "error page": Answer(b"<html>bad gateway</html>", 502, kind="text/html"),
    "another content": Answer(b"<html>hello</html>", 200, kind="text/html"),
    "half a body": Answer(b'{"choices": [', 200, promised=4_000),
    "no JSON": Answer(b'{"choices": [', 200),
    "an error that says it is a success": Answer({"error": {"code": 502, "message": "upstream"}}),
    "a list": Answer([1]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_before_anything_is_said_the_trial_is_tried_again(tmp_path: Path, name: str) -> None:
    done, server = run(tmp_path, [FAILURES[name], calls(LOOK), calls(END)])
    assert (row(done)["outcome"], row(done)["attempts"]) == ("correct_calls", 2)
    assert ends(done) == ["infrastructure_error", "done"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", FAILURES)
def test_later_the_request_is_sent_again_in_the_same_trial(tmp_path: Path, name: str) -> None:
    done, server = run(tmp_path, [calls(LOOK), FAILURES[name], calls(END)])
    assert (row(done)["outcome"], row(done)["attempts"]) == ("correct_calls", 1)
    assert server.requests[1] == server.requests[2], "the very same request"
    assert row(done)["working_s"] < row(done)["wall_s"], "what was waited is not worked"


@pytest.mark.parametrize("name", FAILURES)
def test_in_the_end_the_trial_is_excluded(tmp_path: Path, name: str) -> None:
    done, server = run(tmp_path, lambda number, body: FAILURES[name])
    assert row(done)["excluded_owner"] == "environment" and row(done)["outcome"] is None
    assert ends(done) == ["infrastructure_error"] * 3 and len(server.requests) == 3
    done, server = run(
        tmp_path, lambda number, body: FAILURES[name] if number else calls(LOOK), options="?retries=1"
    )
    assert row(done)["excluded_owner"] == "environment" and row(done)["attempts"] == 1
    assert len(server.requests) == 3, "one answer, one failure, and one try more"


WIDE = {
    "linear": ("part 2", "Who are the callers"),
    "fan_out_2": ("part 2", "Who are the callers"),
    "fan_out_1": ("part 2", "Who are the callers"),
    "linear:plan": ("part 1", "Describe Cart"),
}


@pytest.mark.parametrize("name", ["overloaded", "rate limit with seconds", "half a body"])
@pytest.mark.parametrize("scaffold", WIDE)
def test_the_first_request_of_a_later_worker_is_sent_again(tmp_path: Path, scaffold: str, name: str) -> None:
    """Its own model has said nothing, but the trial has begun: to begin it again would draw a second sample."""
    one = some(0)[0]
    parts = ["Describe Cart", "Who are the callers of tax?"]
    suite = write_suite(tmp_path, [{**one, "request": " ".join(parts), "parts": parts}])
    failed: list[str] = []

    def script(number: int, body: dict[str, Any]) -> Answer:
        asked = body["messages"][-1]
        if asked["role"] == "tool":
            return calls(END)
        now = asked["content"].rpartition("Now: ")[2]
        if "Take the following request apart" in now:
            return calls(("answer", {"value": parts}))
        if now.startswith(WIDE[scaffold][1]) and not failed:
            failed.append(now)
            return FAILURES[name]
        return calls(LOOK) if now == parts[0] else calls(END)

    with serving(script) as server:
        done = evaluate(
            suite, f"chat:m@{server.url}", scaffolds=scaffold, retries=QUICK, save_run=False,
            only="t0-cart",
        )  # fmt: skip
    assert failed and (row(done)["excluded"], row(done)["attempts"]) == (None, 1)
    assert row(done)["outcome"] == "correct_calls"
    assert row(done)["working_s"] < row(done)["wall_s"], "what was waited is not worked"


def test_a_trial_that_was_tried_again_is_one_sample(tmp_path: Path) -> None:
    """Two cases, one repeat, a failure before any output: two trials, one retry, one success of two."""
    suite = write_suite(tmp_path, some(0))
    script = [fails(503), calls(LOOK), calls(END), says("no idea")]
    with serving(script) as server:
        done = evaluate(suite, f"chat:m@{server.url}", retries=QUICK, save_run=False)
    found = done.trials.to_pylist()
    assert [each["outcome"] for each in found] == ["correct_calls", "no_answer"]
    assert [each["attempts"] for each in found] == [2, 1]
    assert (done.card.counts.asked, done.card.counts.judged, done.card.counts.excluded) == (2, 2, 0)
    assert [each["solved"] for each in found] == [True, False]
    tries = done.attempts.to_pylist()
    assert [(each["case_id"], each["end"]) for each in tries] == [
        ("t0-cart", "infrastructure_error"),
        ("t0-cart", "done"),
        ("t0-order", "done"),
    ]
    assert [each["tokens_output"] for each in tries] == [0, 20, 10], (
        "the one that was turned away used nothing"
    )
    assert [each["tokens_output"] for each in found] == [20, 10]


def test_a_lost_answer_leaves_the_usage_unknown(tmp_path: Path) -> None:
    done, _ = run(tmp_path, [calls(LOOK), Answer(b"{", 200, promised=99), calls(END)])
    assert (row(done)["tokens_output"], row(done)["model_calls"]) == (None, 3)
    done, _ = run(tmp_path, [calls(LOOK), fails(429), calls(END)])
    assert (row(done)["tokens_output"], row(done)["model_calls"]) == (20, 2)


def test_a_socket_that_hangs(tmp_path: Path) -> None:
    done, server = run(tmp_path, [Answer(hang=True), calls(END)], options="?timeout=0.3")
    assert ends(done) == ["infrastructure_error", "done"] and len(server.requests) == 2
    done, server = run(tmp_path, [calls(LOOK), Answer(hang=True), calls(END)], options="?timeout=0.3")
    assert row(done)["outcome"] == "correct_calls" and row(done)["attempts"] == 1


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    suite = write_suite(tmp_path, some(0)[:1])
    done = evaluate(suite, f"chat:m@http://127.0.0.1:{port}/v1", retries=QUICK, save_run=False)
    assert row(done)["excluded_owner"] == "environment" and "cannot connect" in row(done)["excluded"]


def test_a_long_retry_after_is_not_waited_for_within_a_trial(tmp_path: Path) -> None:
    done, server = run(tmp_path, [calls(LOOK), fails(429, Retry_After="3600")])
    assert row(done)["excluded_owner"] == "environment" and len(server.requests) == 2


@pytest.mark.parametrize("status", [401, 402, 403, 404])
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_wrong_key_or_model_stops_the_run(tmp_path: Path, status: int, executor: str) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    with serving(lambda number, body: fails(status, "no such thing")) as server:
        with pytest.raises(LabError) as error:
            evaluate(suite, f"chat:m@{server.url}", retries=QUICK, executor=executor, out=tmp_path / "run")
        assert str(error.value).startswith(
            f"chat:m@{server.url}: the endpoint answers {status}: no such thing"
        )
    assert len(server.requests) <= 2, "one for each worker at most"


def test_the_stopped_run_goes_on_once_it_is_put_right(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    with serving([calls(END), fails(401), calls(END)]) as server:
        name = f"chat:m@{server.url}"
        stopped = lab("run", str(suite), "--driver", name, "--out", "run", cwd=tmp_path)
        assert stopped.returncode != 0 and "Traceback" not in stopped.stderr
        assert "the endpoint answers 401" in stopped.stderr and "AGENTBENCH_LAB_API_KEY" in stopped.stderr
        assert len(stopped.stderr.strip().splitlines()) <= 3
        assert "1 finished trial is kept in run; the `agentbench-lab run` command" in " ".join(
            stopped.stderr.split()
        )
        left = load_run(tmp_path / "run")
        assert (left.trials.num_rows, left.card.complete) == (1, False)
        assert "the endpoint answers 401" in str(left.card.stopped)
        shown = lab("show", "run", cwd=tmp_path)
        assert "the endpoint answers 401" in " ".join((shown.stdout + shown.stderr).split())
        again = lab("run", str(suite), "--driver", name, "--out", "run", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == 3, "what was finished is kept"


def test_a_request_that_is_turned_down_excludes_its_trial_alone(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    with serving([fails(400, "bad schema"), calls(END)]) as server:
        done = evaluate(suite, f"chat:m@{server.url}", retries=QUICK, save_run=False)
    first, second = done.trials.to_pylist()
    assert first["excluded_owner"] == "environment" and "400: bad schema" in first["excluded"]
    assert first["attempts"] == 1 and second["excluded"] is None


@pytest.mark.parametrize(
    "answer",
    [
        fails(400, "too long", "context_length_exceeded"),
        fails(400, "This model's maximum context length is 4096 tokens"),
        fails(413, "payload too large"),
    ],
)
def test_a_full_context_is_judged(tmp_path: Path, answer: Answer) -> None:
    done, server = run(tmp_path, [calls(LOOK), answer])
    assert (row(done)["outcome"], row(done)["stop"], row(done)["excluded"]) == ("budget", "budget", None)
    assert row(done)["note"].startswith("the context is full") and len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "", InfrastructureError),
        (400, "model_not_found", Misconfigured),
        (400, "billing_hard_limit_reached", Misconfigured),
        (401, "", Misconfigured),
        (402, "", Misconfigured),
        (403, "", Misconfigured),
        (404, "", Misconfigured),
        (410, "", Misconfigured),
        (408, "", InfrastructureError),
        (413, "", ContextFull),
        (422, "context_length_exceeded", ContextFull),
        (429, "", InfrastructureError),
        (429, "insufficient_quota", Misconfigured),
        (301, "", Misconfigured),
        (503, "", InfrastructureError),
    ],
)
def test_what_a_status_stands_for(status: int, code: str, kind: type[Exception]) -> None:
    error = failure(status, "7", b'{"error": {"message": "no", "code": "%s"}}' % code.encode())
    assert type(error) is kind
    if isinstance(error, InfrastructureError):
        assert error.final == (status == 400) and error.retry_after == (None if error.final else 7.0)


@pytest.mark.parametrize(
    ("status", "said", "stops"),
    [
        (400, "gpt-9 is not a valid model ID", True),
        (400, "The model `gpt-9` does not exist or you do not have access to it", True),
        (400, "model 'gpt-9' not found, try pulling it first", True),
        (422, "Unknown model: gpt-9", True),
        (400, "tools[0].name is not valid", False),
        (400, "this model wants another schema", False),
        (400, "what the model called was not found among the tools", False),
        (403, "Your chosen model requires moderation and your input was flagged", False),
    ],
)
def test_a_refusal_that_every_trial_would_meet_is_told_apart(status: int, said: str, stops: bool) -> None:
    error = failure(status, "", json.dumps({"error": {"message": said}}).encode())
    assert type(error) is (Misconfigured if stops else InfrastructureError)
    assert stops or (isinstance(error, InfrastructureError) and error.final)


@pytest.mark.parametrize("name", ["httpx2", "httpcore2"])
def test_without_the_extra_nothing_is_begun(tmp_path: Path, name: str) -> None:
    suite = write_suite(tmp_path, some(0))
    code = (
        f"import sys; sys.modules[{name!r}] = None; from agentbench_lab.cli import main; "
        f"sys.argv[1:] = ['run', {str(suite)!r}, '--driver', 'chat:m@http://127.0.0.1:9/v1', '--out', 'run']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    (line,) = done.stderr.splitlines()
    assert "pip install 'agentbench-lab[live]'" in line


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        ("", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-1", None),
        ("inf", None),
        ("soon", None),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
        ("Fri, 02 Jan 2026 04:04:35 +0100", 30.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str, waits: float | None) -> None:
    assert seconds(header, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == waits
