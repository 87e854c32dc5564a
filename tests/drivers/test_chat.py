"""The chat driver's loop against a scripted endpoint over real HTTP: what is asked, what is run, and how a trial ends."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Call, Goal, Limits, Message, Task
from agentbench_lab.conversation import user_policy
from agentbench_lab.drivers import chat_http, chat_options, chat_words
from agentbench_lab.drivers.chat_options import DIALECT, parse
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.toolbox import Tool, Toolbox

from ..agents.openai_server import Answer, Script, Server, calls, completion, says, serving
from ..doing import some, tiny_world, write_suite


def run(
    folder: Path, script: Script, *, options: str = "", only: str = "t0-cart", **more: Any
) -> tuple[Run, Server]:
    suite = write_suite(folder, some(0, 1, 2, 3, 7, 8, 9))
    with serving(script) as server:
        return evaluate(suite, f"chat:m@{server.url}{options}", only=only, save_run=False, **more), server


def rows(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def ledger(run: Run) -> list[tuple[str, str, str]]:
    return [(row["name"], row["input"], row["status"]) for row in run.calls.to_pylist()]


DESCRIBE = ("tmct_describe", {"symbol": "Cart"})
END = ("answer", {"value": "done", "status": "success"})


def test_a_call_and_an_answer(tmp_path: Path) -> None:
    done, server = run(tmp_path, [calls(DESCRIBE), calls(END)], options="?temperature=0&seed=7")
    (row,) = rows(done)
    assert (row["outcome"], row["evidence"], row["model"]) == ("correct_calls", "live", "m")
    assert row["driver"] == f"chat:m@{server.url}?temperature=0&seed=7"
    assert (row["model_calls"], row["tokens_fresh_input"], row["tokens_output"]) == (2, 200, 20)
    assert (row["cost_micros"], row["cached"], row["attempts"]) == (None, False, 1)
    first, second = server.requests
    assert first["temperature"] == 0 and first["model"] == "m"
    offered = [tool["function"]["name"] for tool in first["tools"]]
    assert offered == ["tmct_describe", "refuse", "answer", "goal"]
    assert first["messages"][1] == {"role": "user", "content": "Describe Cart"}
    told = second["messages"][-1]
    assert told["role"] == "tool" and told["tool_call_id"] == "c0" and "app/cart.py" in told["content"]
    messages = json.loads(done.transcripts["messages"][0].as_py())
    assert messages[0]["asked"] == {"model": "m", "temperature": 0.0, "seed": first["seed"]}
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert json.loads(done.transcripts["answer"][0].as_py()) == "done"


def test_trials_of_a_case_have_seeds_of_their_own(tmp_path: Path) -> None:
    script = lambda number, body: calls(END)  # noqa: E731
    _, server = run(tmp_path, script, options="?seed=7", trials=3)
    seeds = [request["seed"] for request in server.requests]
    assert len(set(seeds)) == 3
    _, again = run(tmp_path, script, options="?seed=8", trials=3)
    assert not set(seeds) & {request["seed"] for request in again.requests}
    _, without = run(tmp_path, script)
    assert "seed" not in without.requests[0] and "temperature" not in without.requests[0]


def test_parallel_calls_run_in_their_order(tmp_path: Path) -> None:
    both = [("tmct_members", {"class": "Cart"}), ("tmct_subclasses", {"class": "Cart"})]
    done, server = run(tmp_path, [calls(*both), says("That is all.")], only="t3-two")
    assert rows(done)[0]["outcome"] == "correct_calls"
    assert [name for name, _, _ in ledger(done)] == ["tmct_members", "tmct_subclasses"]
    told = [one for one in server.requests[1]["messages"] if one["role"] == "tool"]
    assert [one["tool_call_id"] for one in told] == ["c0", "c1"]
    assert "Cart.total" in told[0]["content"] and "GiftCart" in told[1]["content"]


def test_nothing_runs_after_the_end(tmp_path: Path) -> None:
    done, server = run(tmp_path, [calls(END, DESCRIBE)])
    assert ledger(done) == [("tmct_describe", '{"symbol":"Cart"}', "protocol_error")]
    assert rows(done)[0]["outcome"] == "false_success" and len(server.requests) == 1


@pytest.mark.parametrize("raw", ['{"symbol": "Ca', "", "null", '["Cart"]', '"Cart"', "{'symbol': 'Cart'}"])
def test_arguments_that_are_no_object_are_kept_as_they_came(tmp_path: Path, raw: str) -> None:
    """They are never run as `{}`, the model hears of it, and the ledger has the text."""
    done, server = run(tmp_path, [calls(("tmct_describe", raw)), calls(DESCRIBE), calls(END)])
    kept = [(name, json.loads(given), status) for name, given, status in ledger(done)]
    assert kept == [("tmct_describe", raw, "malformed"), ("tmct_describe", {"symbol": "Cart"}, "ok")]
    told = server.requests[1]["messages"][-1]["content"]
    assert told.startswith("error: the arguments are no JSON") and told.endswith("nothing was run")
    echoed = server.requests[1]["messages"][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(echoed) == {"malformed": raw}
    assert rows(done)[0]["outcome"] == "hallucinated_call"


def test_a_tool_that_is_not_offered(tmp_path: Path) -> None:
    done, server = run(tmp_path, [calls(("tmct_burn", {})), says("oh")])
    assert [status for _, _, status in ledger(done)] == ["undeclared"]
    assert rows(done)[0]["outcome"] == "hallucinated_call"
    assert server.requests[1]["messages"][-1]["content"].startswith("error: ")


def test_words_alone_end_the_trial(tmp_path: Path) -> None:
    done, server = run(tmp_path, [says("It is a class.")])
    (row,) = rows(done)
    assert (row["outcome"], row["stop"], row["terminated"], row["note"]) == ("no_answer", "done", True, None)
    assert ledger(done) == [] and len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (says("It is a cl", "length"), "an answer was cut off at its greatest length"),
        (says("", "content_filter"), "an answer was held back by the endpoint's filter"),
        (Answer({"choices": [], "usage": {}}), "the endpoint answers without a choice"),
        (Answer({"choices": None}), "the endpoint answers without a choice"),
        (Answer({"choices": [{"message": None}]}), "the endpoint answers without a choice"),
    ],
)
def test_an_answer_that_is_none_is_judged_and_says_why(tmp_path: Path, answer: Answer, note: str) -> None:
    done, _ = run(tmp_path, [answer])
    (row,) = rows(done)
    assert (row["outcome"], row["excluded"], row["note"]) == ("no_answer", None, note)


def test_a_call_cut_off_at_the_limit_is_malformed(tmp_path: Path) -> None:
    done, _ = run(tmp_path, [calls(("tmct_describe", '{"sym'), finish="length"), says("oh")])
    assert [status for _, _, status in ledger(done)] == ["malformed"]
    assert rows(done)[0]["note"] == "an answer was cut off at its greatest length"


def test_refusing_after_a_look_is_a_refusal(tmp_path: Path) -> None:
    look = ("tmct_describe", {"symbol": "Ledger"})
    other = ("tmct_describe", {"symbol": "Cart"})
    done, _ = run(
        tmp_path, [calls(look), calls(other), calls(("refuse", {"reason": "no Ledger"}))], only="t2-scope"
    )
    (row,) = rows(done)
    assert (row["outcome"], row["note"], row["tool_calls"]) == ("correct_refusal", "no Ledger", 2)


def test_tied_candidates_are_read_and_named(tmp_path: Path) -> None:
    reads = [("tmct_describe", {"symbol": f"{name}.total"}) for name in ("Cart", "Order")]
    done, _ = run(tmp_path, [calls(*reads), calls(("refuse", {"reason": "two"}))], only="t8-tied")
    assert rows(done)[0]["outcome"] == "correct_refusal"


def test_goals_stand_in_the_request(tmp_path: Path) -> None:
    done, server = run(tmp_path, [calls(("goal", {"id": "goal:coverage-gap"}))], only="t9-goal")
    assert rows(done)[0]["outcome"] == "correct_goal"
    asked = server.requests[0]["messages"][-1]["content"]
    assert '- tmct_impact {"module":"app/money.py"}' in asked and "- goal:coverage-gap: " in asked


def test_limits_end_a_trial_and_keep_what_was_said(tmp_path: Path) -> None:
    script = lambda number, body: calls(DESCRIBE)  # noqa: E731
    done, server = run(tmp_path, script, limits=Limits(steps=3))
    (row,) = rows(done)
    assert (row["outcome"], row["stop"], len(server.requests)) == ("budget", "budget", 4)
    assert done.transcripts["messages"][0].as_py() is not None
    done, server = run(tmp_path, script, limits=Limits(tokens=250))
    assert (rows(done)[0]["stop"], len(server.requests)) == ("budget", 3)
    done, server = run(tmp_path, script, options="?turns=2")
    assert (rows(done)[0]["stop"], rows(done)[0]["note"]) == ("budget", "2 turns, and no end")
    assert len(server.requests) == 2


def test_calls_as_objects_of_a_schema(tmp_path: Path) -> None:
    first = json.dumps({"tool": "tmct_describe", "input": {"symbol": "Cart"}})
    last = json.dumps({"tool": "answer", "input": {"value": 1, "status": "success"}})
    done, server = run(tmp_path, [says(first), says(f"```json\n{last}\n```")], options="?calls=schema")
    assert rows(done)[0]["outcome"] == "correct_calls"
    request = server.requests[1]
    assert "tools" not in request and request["response_format"]["type"] == "json_schema"
    shapes = request["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [one["properties"]["tool"]["const"] for one in shapes] == [
        "tmct_describe",
        "refuse",
        "answer",
        "goal",
    ]
    assert "- tmct_describe: " in request["messages"][0]["content"]
    assert request["messages"][-1]["role"] == "user"
    assert request["messages"][-1]["content"].startswith("tmct_describe: Cart: Class")
    _, plain = run(tmp_path, [says(last)], options="?calls=schema&format=json_object")
    assert sorted(plain.requests[0]["response_format"]) == ["schema", "type"]


def test_the_shape_of_a_call_leaves_out_which_arguments_go_together() -> None:
    """Grammars that do not know such a rule would be none at all."""
    either = [{"required": ["a"]}, {"required": ["b"]}]
    kinds = [{"type": "string"}, {"type": "null"}]
    schema = {"type": "object", "properties": {"a": {"anyOf": kinds}}, "anyOf": either}
    (shape,) = chat_words.one_call([Tool("t", "", schema)])["anyOf"]
    assert shape["properties"]["input"] == {"type": "object", "properties": {"a": {"anyOf": kinds}}}
    assert schema["anyOf"] == either


def test_a_schema_that_is_not_kept(tmp_path: Path) -> None:
    cut = '{"tool": "tmct_describe", "input": {"sym'
    nothing = '{"tool": "tmct_describe"}'
    nameless = '{"name": "tmct_describe", "arguments": {}}'
    done, server = run(
        tmp_path, [says(cut), says(nothing), says(nameless), says("Well.")], options="?calls=schema"
    )
    assert [(name, json.loads(given), status) for name, given, status in ledger(done)] == [
        ("tmct_describe", cut, "malformed"),
        ("tmct_describe", nothing, "malformed"),
    ]
    assert 'names no "tool"' in server.requests[3]["messages"][-1]["content"]


def test_policy_and_history_are_what_they_are() -> None:
    """Seen without a runner: the driver is a coroutine function of a task, a toolbox and a context."""
    task = Task(
        "And now?", ("tmct_describe",), policy="Be brief.",
        history=(Message("user", "Hello"), Message("assistant", "Hi")),
    )  # fmt: skip
    box = Toolbox(tiny_world(), task.tools)
    with serving([says("Goodbye")]) as server:
        driver = load_driver(f"chat:m@{server.url}/")
        told = asyncio.run(driver.function(task, box, Context(box, task, seed="s", trial=1)))
    assert told.text == "Goodbye" and told.calls == ()
    system, *rest = server.requests[0]["messages"]
    assert system["content"].endswith("The policy that you keep:\n\nBe brief.")
    assert rest == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "And now?"},
    ]
    assert server.headers[0]["path"] == "/v1/chat/completions"


def test_it_works_in_other_processes_and_leaves_nothing_open(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    with serving(lambda number, body: calls(("refuse", {"reason": "x"}))) as server:
        name = f"chat:m@{server.url}"
        done = evaluate(suite, name, executor="processes", workers=2, save_run=False)
    assert [row["outcome"] for row in rows(done)] == ["over_refusal"] * 4
    driver = pickle.loads(pickle.dumps(load_driver(name)))
    assert (driver.model, driver.evidence, driver.version) == ("m", "live", load_driver(name).version)


def test_side_by_side_shares_connections(tmp_path: Path) -> None:
    done, server = run(tmp_path, lambda n, body: calls(END), trials=40, workers=8)
    assert len(rows(done)) == 40 and server.connections <= 8


def test_a_run_that_has_ended_is_held_by_no_connection(tmp_path: Path) -> None:
    """Nor is its loop: what is held for each would keep the run, and its worlds, for as long as the process lives."""
    for number in range(2):
        run(tmp_path, lambda number, body: calls(END), trials=4, workers=4)
        gc.collect()
        assert not [loop for loop in chat_http._open if loop.is_closed()], f"run {number}"


@pytest.mark.parametrize(
    ("scaffold", "options", "most"),
    [
        ("linear", {}, 1),
        ("fan_out_2", {}, 2),
        ("durable:linear", {}, 1),
        ("once", {"executor": "processes"}, 1),
        ("linear", {"workers": 3}, 3),
    ],
)
def test_parts_and_trials_share_connections(
    tmp_path: Path, scaffold: str, options: dict[str, Any], most: int
) -> None:
    """Each part has an event loop of its own, and each trial in a process; a connection outlives them."""
    parts = ["Describe", "Cart"]
    suite = write_suite(tmp_path, [{**some(0)[0], "parts": parts}])
    with serving(lambda n, body: calls(END)) as server:
        name = f"chat:m@{server.url}"
        done = evaluate(suite, name, scaffolds=scaffold, trials=6, save_run=False, **options)
        assert len(server.requests) == {"once": 6, "fan_out_2": 18}.get(scaffold, 12)
        assert len(rows(done)) == 6 and 1 <= server.connections <= most
        before = server.connections
        evaluate(suite, name, scaffolds=scaffold, save_run=False, **options)
        assert server.connections > before, "a run gives its connections back as it ends"


def test_whom_tls_trusts_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = chat_http._Open("https://one.example/v1")._trusted
    assert chat_http._Open("https://two.example/v1")._trusted is first
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    assert chat_http._Open("https://one.example/v1")._trusted is not first


def test_the_cache_keeps_answers_of_a_trial_for_that_trial(tmp_path: Path) -> None:
    script = lambda number, body: calls(("refuse", {"reason": f"number {number}"}))  # noqa: E731
    suite = write_suite(tmp_path, some(0))
    with serving(script) as server:
        name = f"chat:m@{server.url}?cache={tmp_path / 'kept'}"
        first = evaluate(suite, name, trials=2, save_run=False)
        assert len(server.requests) == 4
        again = evaluate(suite, name, trials=2, save_run=False)
        assert len(server.requests) == 4, "all of it was kept"
        more = evaluate(suite, name, trials=3, save_run=False)
        assert len(server.requests) == 6, "a third trial is a new sample"
        other = evaluate(suite, name, trials=2, seed=1, save_run=False)
        assert len(server.requests) == 10, "and so is another seed"
    assert [row["cached"] for row in rows(first)] == [False] * 4
    assert [row["cached"] for row in rows(again)] == [True] * 4
    assert [row["note"] for row in rows(again)] == [row["note"] for row in rows(first)]
    assert sorted(row["cached"] for row in rows(more)) == [False] * 2 + [True] * 4
    assert not any(row["cached"] for row in rows(other))
    assert {row["tokens_output"] for row in rows(again)} == {10}
    for file in (tmp_path / "kept").rglob("*.json"):
        file.write_bytes(file.read_bytes()[:20])
    with serving(script) as server:
        pass  # gone: what is broken in the cache would have to be asked again
    half = evaluate(suite, name, trials=1, retries=0, save_run=False)
    assert {row["excluded_owner"] for row in rows(half)} == {"environment"}


def test_answers_of_other_shapes_are_read(tmp_path: Path) -> None:
    parts = completion({"content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]})
    done, _ = run(tmp_path, [parts])
    assert json.loads(done.transcripts["messages"][0].as_py())[-1]["content"][0]["text"] == "One "
    assert chat_words.words({"content": None, "refusal": "I will not"}) == "I will not"
    odd = completion(
        {"content": None, "tool_calls": [{"function": {"name": "refuse", "arguments": {}}}, 7, {}]}
    )
    done, _ = run(tmp_path, [odd, says("?")])
    assert rows(done)[0]["outcome"] == "over_refusal"


def test_the_model_that_answered_is_recorded(tmp_path: Path) -> None:
    done, _ = run(tmp_path, [says("x", model="m-2026-01")])
    assert json.loads(done.transcripts["messages"][0].as_py())[0]["asked"]["answered_by"] == "m-2026-01"


def test_names_that_the_api_does_not_take() -> None:
    tools = [Tool(name, "", {}) for name in ("math.hypot", "math_hypot", "ok", "math hypot", "ü", "x" * 70)]
    names = chat_words.api_names(tools)
    assert sorted(names.values()) == sorted(tool.name for tool in tools)
    assert all(chat_words._NAME.match(name) for name in names) and names["ok"] == "ok"
    assert names["math_hypot"] == "math_hypot" and names["math_hypot_2"] == "math.hypot"
    message = {"tool_calls": [{"id": "1", "function": {"name": "math_hypot_2", "arguments": "{}"}}]}
    assert chat_words.native_calls(message, names)[0].name == "math.hypot"


WORDS = {"1": "79024a0fc8b9bacf"}
"""The digest of what a model is sent in the dialogues below, by the version that stands in every chat arm's own."""


def test_other_words_are_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who changes what a model is told counts DIALECT up: a run must not go on with other words than it began with."""
    look, odd, unknown = ("tmct_describe", {"symbol": "Cart"}), ("tmct_describe", "{"), ("tmct_burn", {})
    said: dict[str, list[Answer]] = {
        "native": [calls(look, odd, unknown, ("tmct_describe", {"symbl": 1}), ("goal", {})), says("Done.")],
        "schema": [
            says(json.dumps({"tool": name, "input": given}))
            for name, given in (look, unknown, ("tmct_describe", {"symbl": 1}))
        ]
        + [
            says('{"tool": "tmct_describe", "input": {'),
            says('{"tool": "tmct_describe"}'),
            says("{}"),
            says("Done."),
        ],
    }
    task = Task(
        "And now?", ("tmct_describe",), policy="Be brief.",
        history=(Message("user", "Hello"), Message("assistant", "Hi")),
        trace=(Call(*look),), goals=(Goal("goal:one", ("tmct_describe",)),),
    )  # fmt: skip
    sent = []
    for way, script in said.items():
        box = Toolbox(tiny_world(), task.tools)
        with serving(script) as server:
            driver = load_driver(f"chat:m@{server.url}?calls={way}")
            asyncio.run(driver.function(task, box, Context(box, task, seed="s", trial=1)))
        assert len(server.requests) == len(script)
        sent += server.requests
    sent.append({"user": user_policy("A scenario.")})
    # not the words of the library that reads JSON
    text = json.dumps(sent, sort_keys=True).replace("Input data was truncated", "")
    found = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert {DIALECT: found} == WORDS, "count DIALECT up, and put the new pair here"
    before = parse("m@http://h/v1").version
    monkeypatch.setattr(chat_options, "DIALECT", "another")
    assert parse("m@http://h/v1").version != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a chat driver is chat:MODEL@BASE_URL"),
        ("gpt", "a chat driver is chat:MODEL@BASE_URL"),
        ("@http://h/v1", "a chat driver is chat:MODEL@BASE_URL"),
        ("m@http://", "the base URL is none"),
        ("m@http://h:port/v1", "the base URL is none"),
        ("m@http://h/v1#x", "has a fragment"),
        ("m@http://h/v1?temprature=0", "did you mean 'temperature'?"),
        ("m@http://h/v1?calls=nativ", "did you mean 'native'?"),
        ("m@http://h/v1?temperature=warm", "temperature=warm is no number"),
        ("m@http://h/v1?temperature=-1", "it is a number from 0"),
        ("m@http://h/v1?timeout=0", "it is a number from 0.001"),
        ("m@http://h/v1?timeout=nan", "it is a number from 0.001"),
        ("m@http://h/v1?seed=1&seed=2", "seed is given twice"),
    ],
)
def test_what_is_wrong_with_a_name(text: str, said: str) -> None:
    with pytest.raises(LabError) as error:
        load_driver(f"chat:{text}")
    assert said in str(error.value)


def test_names_are_taken_apart() -> None:
    options = parse("@cf/meta@7b@https://host/v1/?temperature=0.5&max_tokens=9&calls=schema")
    assert (options.model, options.url) == ("@cf/meta@7b", "https://host/v1")
    assert (options.temperature, options.max_tokens, options.calls) == (0.5, 9, "schema")
    assert parse("m@http://h/v1/chat/completions").endpoint == "http://h/v1/chat/completions"
    same = parse("m@http://h/v1?timeout=5&retries=1&cache=x")
    assert same.version == parse("m@http://h/v1").version != parse("m@http://h/v1?temperature=0").version
