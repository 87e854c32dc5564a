"""What the messages of a mini-swe-agent trajectory tell: tokens and bash commands, in either of its formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCall
from agentbench_lab.transcripts import Status, Usage, disjoint_input


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any, place: str) -> int | None:
    """A number of tokens; None where there is none. Raises LabError for what is no count."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise LabError(f"{place}: {value!r} is no number of tokens")
    return value


def tokens_of(
    messages: Sequence[dict[str, Any]], made: int | None, where: str
) -> tuple[Usage, dict[str, Any]]:
    """The tokens of all model calls, in disjoint buckets; unknown where some call's usage is not in the file.

    Both APIs count cached tokens within their input. A usage that tells of reads from a cache and not of writes to one
    has none of the latter.
    """
    total: Usage | None = None
    inputs = reasoning = known = 0
    times: list[float] = []
    for at, message in enumerate(messages):
        of_message = _dict(message.get("extra"))
        response = message if message.get("object") == "response" else _dict(of_message.get("response"))
        instant = response.get("created", response.get("created_at"))
        if isinstance(instant, int | float) and not isinstance(instant, bool):
            times.append(instant)
        usage = _dict(response.get("usage"))
        if not usage:
            continue
        place = f"{where}: $.messages[{at}]: usage"
        details = _dict(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
        given = _count(usage.get("prompt_tokens", usage.get("input_tokens")), place)
        output = _count(usage.get("completion_tokens", usage.get("output_tokens")), place)
        read = _count(details.get("cached_tokens", usage.get("cache_read_input_tokens")), place)
        written = _count(usage.get("cache_creation_input_tokens", details.get("cache_write_tokens")), place)
        if written is None and read is not None:
            written = 0
        try:
            fresh, read, written = disjoint_input(given, read, written, inclusive=True)
        except ValueError as error:
            raise LabError(f"{place}: {error}") from None
        one = Usage(fresh, read, written, output)
        total = one if total is None else total + one
        known += 1
        inputs += given or 0
        thought = _dict(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
        reasoning += _count(thought.get("reasoning_tokens"), place) or 0
    extra: dict[str, Any] = {}
    if total is None:
        return Usage(), extra
    extra["input_tokens"] = inputs
    if reasoning:
        extra["reasoning_tokens"] = reasoning
    if len(times) > 1:
        extra["first_to_last_call_s"] = max(times) - min(times)
    if made is not None and known < made:
        extra["calls_with_usage"] = known
        return Usage(), extra
    return Usage(total.fresh_input, total.cache_read, total.cache_write, total.output), extra


# ---- calls -------------------------------------------------------------------------------------------------------

_RETURNED = re.compile(r"<returncode>\s*(-?\d{1,9})\s*</returncode>")
_BLOCKS = {
    word: re.compile(rf"```{word}\s*\n(.*?)\n```", re.DOTALL) for word in ("bash", "mswea_bash_command")
}


def text_of(message: Mapping[str, Any]) -> str:
    """What a message says: its content, the text parts of it, or the output of a tool."""
    content = message.get("content", message.get("output"))
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _answers(message: Mapping[str, Any]) -> bool:
    """Whether the model speaks: a chat message of the assistant, or a whole response object."""
    return message.get("role") == "assistant" or message.get("object") == "response"


def calls_of(messages: Sequence[dict[str, Any]]) -> Iterator[SourceCall]:
    """The bash commands, each with what came back: named tool calls, or the one fenced block of a message.

    A message with no block or with several runs nothing and is a `protocol_error`. A command whose return code is not 0,
    or that brought back nothing at all, is a `tool_error`; one without a return code in sight is taken as it stands: ok.
    """
    fenced = any("```mswea_bash_command" in text_of(m) for m in messages if _answers(m))
    block = _BLOCKS["mswea_bash_command" if fenced else "bash"]
    for at, message in enumerate(messages):
        extra = _dict(message.get("extra"))
        if extra.get("interrupt_type") == "FormatError":
            # from 1.1 on such an answer is no message of its own
            yield SourceCall("bash", {"commands": []}, "protocol_error", text_of(message))
        if not _answers(message):
            continue
        after = _after(messages, at)
        named = [item for item in _list(message.get("tool_calls")) if isinstance(item, dict)]
        named += [
            item
            for item in _list(message.get("output"))
            if isinstance(item, dict) and item.get("type") == "function_call"
        ]
        if named:
            yield from _named_calls(named, after)
            continue
        actions = [a for a in _list(extra.get("actions")) if isinstance(a, dict)]
        commands = [action.get("command") for action in actions] or [
            found.strip() for found in block.findall(text_of(message))
        ]
        if len(commands) == 1 or actions:
            for index, command in enumerate(commands):
                answer = after[index] if index < len(after) else None
                yield SourceCall("bash", {"command": command}, *_came_back(answer))
        else:
            observed = text_of(after[0]) if after else ""
            yield SourceCall("bash", {"commands": commands}, "protocol_error", observed)


def _after(messages: Sequence[dict[str, Any]], at: int) -> list[dict[str, Any]]:
    """What came back for the message at this place: all up to the next answer, without how the agent ended."""
    after: list[dict[str, Any]] = []
    for place in range(at + 1, len(messages)):
        later = messages[place]
        if _answers(later):
            break
        interrupted = _dict(later.get("extra")).get("interrupt_type") == "FormatError"
        if not interrupted and (later.get("role") != "exit" or not after):
            after.append(later)
    return after


def _named_calls(calls: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> Iterator[SourceCall]:
    by_id = {
        str(key): later
        for later in after
        if (key := later.get("tool_call_id") or later.get("call_id")) is not None
    }
    for index, call in enumerate(calls):
        function = _dict(call.get("function")) or call
        name, arguments = str(function.get("name") or ""), function.get("arguments")
        answer = by_id.get(str(call.get("call_id") or call.get("id")))
        if answer is None and not by_id and index < len(after):
            answer = after[index]
        status, observed = _came_back(answer)
        try:
            given = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield SourceCall(name, arguments, "malformed", observed)
            continue
        if name != "bash":
            status = "undeclared"
        elif not isinstance(given, dict) or "command" not in given:
            status = "schema_error"
        yield SourceCall(name, given, status, observed)


def _came_back(answer: Mapping[str, Any] | None) -> tuple[Status, str]:
    """The status of a command and what the agent saw of it."""
    if answer is None:
        return "tool_error", ""
    extra, text = _dict(answer.get("extra")), text_of(answer)
    code = extra.get("returncode")
    if code is None:
        shown = _RETURNED.search(text)
        code = int(shown[1]) if shown else None
    failed = (
        code not in (None, 0)
        or bool(extra.get("exception_info"))
        or extra.get("exit_status", "Submitted") != "Submitted"
        or _timed_out(text)
    )
    return "tool_error" if failed else "ok", text


def _timed_out(text: str) -> bool:
    return text.startswith("The last command <command>") and "timed out" in text
