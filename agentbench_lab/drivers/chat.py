"""A chat model as a driver: a tool loop over any endpoint of OpenAI's chat completions API.

`chat:MODEL@BASE_URL[?option=value&...]`; the options are those of `chat_options.Options`. The key comes from the
environment (AGENTBENCH_LAB_API_KEY, else OPENAI_API_KEY) and is written nowhere.

Whose fault what is:

- no answer, 408, 409, 425, 429, 5xx, a connection that breaks: the endpoint's. Before anybody has said anything the
  runner tries the trial again; later (in a second turn, in one of several parts) the request is sent again, which draws
  no second sample, since no answer came.
- a wrong key, a model or a path that is not there, a quota or credit that is used up: the user's. The run stops with that one line.
- a request that the endpoint turns down for another reason (400): the trial is excluded, and the reason says why.
- a dialogue that is longer than what the model reads, an answer cut off, arguments that are no JSON, an answer without a
  choice: the agent's, and judged.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers import chat_http, chat_words, keys
from agentbench_lab.drivers.chat_options import Options, parse
from agentbench_lab.drivers.chat_usage import usage_of
from agentbench_lab.drivers.chat_words import Asked
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.errors import counted
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

LONGEST_WAIT_S = 20.0
"""A Retry-After beyond this is not waited for within a trial, whose own time runs on."""


class Reply(Struct, frozen=True):
    """One answer of the model: its message (None where there is no choice), why it ended, and what it used."""

    message: dict[str, Any] | None
    finish: str
    model: str
    usage: Usage
    trouble: str = ""
    cached: bool = False


class Talk(Struct):
    """A trial as it goes: the dialogue, how it is asked for, the calls that went well, and what is to be noted."""

    messages: list[dict[str, Any]]
    asked: dict[str, Any]
    calls: list[Call]
    notes: list[str]
    cached: bool = False


def make(text: str) -> Any:
    """The driver behind `chat:TEXT`. Raises LabError for a text that is none and where the extra is missing."""
    options = parse(text)
    chat_http.check_installed()
    keys.api_key()
    driver: Any = functools.partial(_drive, options)
    driver.evidence, driver.model, driver.version = "live", options.model, options.version
    driver.name = f"chat:{text}"
    driver.close = chat_http.close
    return driver


async def _drive(options: Options, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    offered = tools.tools
    names = chat_words.api_names(offered)
    schema = options.calls == "schema"
    fixed = _fixed(options, ctx)
    asked = {"model": options.model, **fixed}
    talk = Talk(chat_words.opening(task, offered, schema=schema), asked, [], [])
    if not offered:
        # a simulated user has no tool, and an endpoint refuses an empty list of them
        turn = _plain_turn
    elif schema:
        turn = _schema_turn
        shape = chat_words.one_call(offered)
        fixed["response_format"] = (
            {"type": "json_object", "schema": shape}
            if options.format == "json_object"
            else {"type": "json_schema", "json_schema": {"name": "call", "schema": shape}}
        )
    else:
        turn = _native_turn
        fixed["tools"] = chat_words.offered(offered, names)
    parameters = msgspec.json.encode(fixed)
    try:
        for number in range(options.turns):
            reply = await _asked(options, talk, parameters, number, tools, ctx)
            text = _heard(options, talk, reply, ctx)
            if reply.message is None or turn(talk, reply, names, tools) or tools.ending.used:
                return _transcript(talk, tools, text=text)
    except BudgetSpent as spent:
        talk.notes.append(str(spent))
    except chat_http.ContextFull as full:
        talk.notes.append(f"the context is full: {full}")
    else:
        talk.notes.append(f"{counted(options.turns, 'turn')}, and no end")
    return _transcript(talk, tools, stopped=True)


def _fixed(options: Options, ctx: Context) -> dict[str, Any]:
    """The parameters that are the same in every request of a trial."""
    fixed = {name: getattr(options, name) for name in ("temperature", "top_p", "max_tokens")}
    if options.seed is not None:
        own = hashlib.sha256(f"{options.seed}:{ctx.seed}".encode()).digest()
        fixed["seed"] = int.from_bytes(own[:4], "big") >> 1
    return {name: value for name, value in fixed.items() if value is not None}


def _heard(options: Options, talk: Talk, reply: Reply, ctx: Context) -> str:
    """Note what is to be said of an answer, and account for it; gives back what it says in words."""
    notes = [reply.trouble] if reply.trouble else []
    if reply.model and reply.model != options.model:
        talk.asked["answered_by"] = reply.model
    if reply.message is None:
        notes.append("the endpoint answers without a choice")
    elif reply.finish == "length":
        notes.append("an answer was cut off at its greatest length")
    elif reply.finish == "content_filter":
        notes.append("an answer was held back by the endpoint's filter")
    talk.notes += [note for note in notes if note not in talk.notes]
    talk.cached = talk.cached or reply.cached
    text = chat_words.words(reply.message) if reply.message is not None else ""
    try:
        ctx.spend(reply.usage)
    except BudgetSpent:
        # what was said counts as said, though nothing is done about it any more
        talk.messages.append({"role": "assistant", "content": text})
        raise
    return text


def _plain_turn(talk: Talk, reply: Reply, names: dict[str, str], tools: Toolbox) -> bool:
    """Take down the words, which end the turn."""
    assert reply.message is not None
    talk.messages.append({"role": "assistant", "content": chat_words.words(reply.message)})
    return True


def _native_turn(talk: Talk, reply: Reply, names: dict[str, str], tools: Toolbox) -> bool:
    """Run the calls of an answer in order; true when there is none, which ends the turn."""
    assert reply.message is not None
    asked = chat_words.native_calls(reply.message, names)
    talk.messages.append(chat_words.echoed(reply.message, asked))
    for call in asked:
        said = _called(talk, call, tools)
        talk.messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    return not asked


def _schema_turn(talk: Talk, reply: Reply, names: dict[str, str], tools: Toolbox) -> bool:
    """Run the one call that an answer is; true when it is plain words, which ends the turn."""
    assert reply.message is not None
    text = chat_words.words(reply.message)
    talk.messages.append({"role": "assistant", "content": text})
    call = chat_words.schema_call(text)
    if call is None:
        return True
    if isinstance(call, str):
        said = f"error: {call}"
        talk.notes.append(call)
    else:
        said = f"{call.name}: {_called(talk, call, tools)}"
    talk.messages.append({"role": "user", "content": said})
    return False


def _called(talk: Talk, call: Asked, tools: Toolbox) -> str:
    """Run one call, and what the model is told of it."""
    clean = functools.partial(keys.without, secrets=keys.of_endpoints())
    call = msgspec.structs.replace(call, name=clean(call.name), input=keys.without_in(call.input, clean))
    if isinstance(call.input, str):
        # text is no object: the ledger keeps it as it came, and nothing is run
        seen = tools.call(call.name, call.input)
        return f"error: {call.wrong}; nothing was run" if call.name in tools.names else f"error: {seen.text}"
    seen = tools.call(call.name, call.input)
    if seen.ok and call.name in tools.names:
        talk.calls.append(Call(call.name, call.input))
    return seen.text if seen.ok else f"error: {seen.text}"


def _transcript(talk: Talk, tools: Toolbox, *, text: str = "", stopped: bool = False) -> Transcript:
    """The trial's transcript. Who refuses or names a goal has looked about before, and claims none of what it read."""
    ending, calls, looked = tools.ending, talk.calls, None
    if ending.used and not ending.answered:
        known = tools.registry.by_name
        looked = tuple(call for call in calls if known[call.name].read_only)
        calls = [call for call in calls if not known[call.name].read_only]
    return Transcript(
        calls=tuple(calls),
        candidate_results=looked or None,
        text=text,
        terminated=not stopped,
        stop="budget" if stopped else "done",
        driver="chat",
        # what was asked for stands once, with the words that the dialogue begins with
        messages=({**talk.messages[0], "asked": talk.asked}, *talk.messages[1:]),
        notes=tuple(talk.notes),
        cached=talk.cached,
        heard=True,
    )


# ---- asking


async def _asked(
    options: Options, talk: Talk, parameters: bytes, number: int, tools: Toolbox, ctx: Context
) -> Reply:
    """The model's answer to the dialogue as it stands; from the cache where it is kept there."""
    dialogue = msgspec.json.encode({"model": options.model, "messages": talk.messages})
    body = dialogue[:-1] + b"," + parameters[1:] if parameters != b"{}" else dialogue
    if not options.cache:
        return await _sent(options, body, tools, ctx)
    # the trial's own seed is in it: an answer that two trials share would make them one
    key = msgspec.json.encode([ctx.seed, ctx.trial, number, options.endpoint, body.decode()])
    kept = chat_http.cached(options.cache, key)
    if kept is not None:
        try:
            return msgspec.structs.replace(_read(kept), cached=True)
        except InfrastructureError:
            pass  # half a file, or none of ours
    return await _sent(options, body, tools, ctx, keep=key)


async def _sent(options: Options, body: bytes, tools: Toolbox, ctx: Context, keep: bytes = b"") -> Reply:
    async def once() -> Reply:
        answer = await chat_http.post(options.endpoint, body, options.timeout)
        reply = _read(answer)
        if keep:
            chat_http.keep(options.cache, keep, answer)
        return reply

    try:
        return await once()
    except Misconfigured as error:
        raise Misconfigured(f"chat:{options.model}@{options.url}: {error}") from None
    except InfrastructureError as error:
        if error.final or options.retries == 0 or not _begun(tools, ctx):
            # nobody has spoken: the runner begins the trial again, and its row says so
            raise
        first = error
    return await _again(options, once, first, ctx)


def _begun(tools: Toolbox, ctx: Context) -> bool:
    """Whether anybody may have said anything in this trial: this worker, another one, or the agent of a user."""
    # a simulated user, who has no tools, speaks after the agent
    return bool(
        ctx.spent.model_calls or ctx.spent.output or tools.ledger or ctx.workers > 1 or not tools.tools
    )


async def _again(
    options: Options, once: Callable[[], Awaitable[Reply]], first: InfrastructureError, ctx: Context
) -> Reply:
    """Send a request again whose answer never came, a few times; what was lost is accounted for."""
    import stamina

    # logging that is set up gets a line for each retry; a terminal need not
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    pending: InfrastructureError | None = first
    with ExitStack() as waits:
        async for attempt in stamina.retry_context(
            on=_pause,
            attempts=options.retries + 1,
            timeout=None,
            wait_initial=0.2,
            wait_max=LONGEST_WAIT_S,
            wait_jitter=0.2,
        ):
            with attempt:
                waits.close()
                try:
                    failed, pending = pending, None
                    if failed is not None:
                        raise failed
                    return await once()
                except InfrastructureError as error:
                    if error.usage is not None:
                        usage, error.usage = error.usage, None
                        ctx.spend(usage)
                    waits.enter_context(ctx.waiting())
                    raise
    raise AssertionError("stamina ends by an answer or an error")


def _pause(error: BaseException) -> bool | float:
    """Whether to send a request again, and after how many seconds where the endpoint named them."""
    if not isinstance(error, InfrastructureError) or error.final:
        return False
    if error.retry_after is None:
        return True
    return error.retry_after if error.retry_after <= LONGEST_WAIT_S else False


_decode = msgspec.json.Decoder().decode


def _read(answer: bytes) -> Reply:
    """An answer's bytes as a reply. Raises InfrastructureError for what is no answer of this API."""
    try:
        value = _decode(answer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        start = " ".join(answer[:80].decode(errors="replace").split())
        raise InfrastructureError(f"the answer is no JSON: {start!r}", usage=chat_http.LOST) from None
    if not isinstance(value, dict):
        raise InfrastructureError("the answer is no JSON object", usage=chat_http.LOST)
    if value.get("error") and not value.get("choices"):
        # gateways report a failure behind them with the status of a success
        error = value["error"]
        status = error.get("code") if isinstance(error, dict) else None
        raise chat_http.failure(status if type(status) is int and status >= 400 else 502, "", answer)
    usage, trouble = usage_of(value.get("usage"))
    model = value.get("model")
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    finish = choice.get("finish_reason") if isinstance(choice, dict) else None
    return Reply(
        message if isinstance(message, dict) else None,
        finish if isinstance(finish, str) else "",
        model if isinstance(model, str) else "",
        usage,
        trouble,
    )
