"""Cases of the Berkeley Function Calling Leaderboard: question and possible-answer files, judged in mode `bfcl`.

Source: the data files of bfcl-eval 2026.3.23 (Apache-2.0). Both files are JSON Lines whatever they are called, and belong
together line by line: ids of live answers may differ. What can be loaded are the single-turn categories that calls
alone decide; the others need the benchmark's own classes or a judge.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.benchmarks.reading import read_bytes
from agentbench_lab.cases import Call, Case, Expect, Gold, Suite, Task
from agentbench_lab.errors import LabError, counted, did_you_mean
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl import language_of
from agentbench_lab.values import NotJson, digest, plain
from agentbench_lab.worlds.statestore import BadWorld, StateWorld

CATEGORIES = (
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "irrelevance",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance",
)  # fmt: skip
"""The categories that can be loaded."""
UNANSWERED = ("irrelevance", "live_irrelevance", "live_relevance")
"""Those without a possible-answer file: whether anything is called is all that counts."""

_JSON_TYPES = {
    "string": "string", "integer": "integer", "float": "number", "boolean": "boolean", "array": "array",
    "tuple": "array", "dict": "object",
}  # fmt: skip


def load_cases(question: str | Path, answers: str | Path | None = None) -> Suite:
    """The suite of a question file and its possible answers, by default `possible_answer/<the same name>` beside it.

    The name of the file says the category: `BFCL_v4_<category>.json`, as the leaderboard names it. Raises LabError for
    another name, a category that cannot be loaded, files that do not belong together, and, with `file:line`,
    a row that is not of the format.
    """
    path = Path(question)
    data = read_bytes(path)
    category = re.sub(r"^BFCL_v\d+_", "", path.stem)
    if category == path.stem and category not in CATEGORIES:
        raise LabError(
            f"{path}: its name does not say which category it is of: the file has to be named "
            f"BFCL_v4_<category>.json, such as BFCL_v4_simple_python.json{did_you_mean(category, CATEGORIES)}"
        )
    if category not in CATEGORIES:
        raise LabError(
            f"{path}: category {category!r} is not judged by its calls{did_you_mean(category, CATEGORIES)}"
        )
    rows = _rows(path, data)
    truths: list[tuple[int, Any]] = []
    if category not in UNANSWERED:
        key = Path(answers) if answers is not None else path.parent / "possible_answer" / path.name
        answered = read_bytes(key)
        truths = _rows(key, answered)
        data += answered
        if len(truths) != len(rows):
            raise LabError(
                f"{key}: {counted(len(truths), 'answer')} for {counted(len(rows), 'question')} of {path}"
            )
    cases = []
    first: dict[str, int] = {}
    for at, (line, row) in enumerate(rows):
        truth = ()
        if truths:
            number, answer = truths[at]
            truth = _field(answer, "ground_truth", f"{key}:{number}")
        cases.append(_case(row, truth, category, path, line))
        if first.setdefault(cases[-1].id, line) != line:
            raise LabError(f"{path}:{line}: id {cases[-1].id!r} is on line {first[cases[-1].id]} already")
    name = path.stem
    return Suite(name, tuple(cases), hashlib.sha256(data).hexdigest(), path)


def _rows(path: Path, data: bytes) -> list[tuple[int, Any]]:
    found = []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not raw.strip():
            continue
        try:
            found.append((number, plain(msgspec.json.decode(raw))))
        except (msgspec.DecodeError, NotJson, RecursionError) as error:
            raise LabError(f"{path}:{number}: {error}") from None
    return found


def _field(row: Any, key: str, where: str) -> Any:
    if not isinstance(row, dict) or key not in row:
        raise LabError(f"{where}: no {key}")
    return row[key]


def _case(row: Any, truth: Any, category: str, path: Path, line: int) -> Case:
    where = f"{path}:{line}"
    functions = _field(row, "function", where)
    try:
        known = msgspec.convert(
            {"category": category, "functions": functions, "ground_truth": truth}, BfclTruth
        )
    except msgspec.ValidationError as error:
        raise LabError(f"{where}: {error}") from None
    faults = list(known.faults())
    if faults:
        raise LabError(f"{where}: {faults[0]}")
    said = _turns(_field(row, "question", where), where)
    request = "\n".join(text for role, text in said if role == "user")
    policy = "\n".join(text for role, text in said if role == "system")
    tools = _tools(known)
    names = tuple(tool["name"] for tool in tools)
    # a question that offers nothing still needs a world; nobody is shown its tool
    world = {"kind": "state", "state": {}, "tools": tools or [{"name": "nothing"}]}
    try:
        StateWorld.of(world, name=where)
    except BadWorld as error:
        raise LabError(f"{where}: {error.problems[0]}") from None
    expect = Expect(bfcl=known)
    task = Task(request, names, policy=policy)
    key = digest({"row": row, "ground_truth": truth})
    identity = _field(row, "id", where)
    if not isinstance(identity, str):
        raise LabError(f"{where}: id: must be text")
    return Case(
        identity, category, task, expect, world, path.stem, digest=key, file=str(path), line=line,
        taxonomy="outcome-graded", gold=Gold(reference(known)),
    )  # fmt: skip


def _turns(question: Any, where: str) -> list[tuple[str, str]]:
    try:
        found = [(message["role"], message["content"]) for turn in question for message in turn]
    except (TypeError, KeyError):
        found = [("", None)]
    if not all(isinstance(text, str) for _, text in found):
        raise LabError(f"{where}: question: must be turns of messages with role and content")
    return found


# ---- calls that follow from a ground truth


def reference(truth: BfclTruth) -> tuple[Call, ...]:
    """The calls of a ground truth, of each parameter the first acceptable value, left out where that is first; a
    required one is only left out when it has no other.

    Java and JavaScript values are written as text. The benchmark's own checker rejects a few of these."""
    functions = {function["name"]: function for function in reversed(truth.functions)}
    language = language_of(truth.category)
    calls = []
    for each in truth.ground_truth:
        for name, answers in each.items():
            parameters = functions[name]["parameters"] if name in functions else {}
            properties, required = parameters.get("properties", {}), parameters.get("required", ())
            input = {}
            for key, options in answers.items():
                given = next((option for option in options if option != ""), "")
                if given == "" or (options[0] == "" and key not in required):
                    continue
                declared = properties.get(key, {})
                value = _first(given, declared.get("type") == "dict" or _entry(declared) == "dict")
                input[key] = value if language == "python" else _written(value, declared, language)
            calls.append(Call(name, input))
    return tuple(calls)


def _entry(declared: Any) -> Any:
    items = declared.get("items")
    return items.get("type") if isinstance(items, dict) else None


def _first(value: Any, listed: bool) -> Any:
    """A value with the first of the alternatives at each key of an object."""
    if isinstance(value, dict):
        return {
            key: options[0] if isinstance(options, list) and options else options
            for key, options in value.items()
            if not (listed and isinstance(options, list) and options and options[0] == "")
        }
    if isinstance(value, list):
        return [_first(each, listed) for each in value]
    return value


def _written(value: Any, declared: Any, language: str) -> str:
    """A value as Java or JavaScript text of the declared type."""
    kind, inner = declared.get("type"), {"type": _entry(declared)}
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        # of an array of text the checker keeps each entry as it stands, quotes and all
        bare = language == "java" and kind == "Array" and inner["type"] in ("String", "any", "char")
        entry = _written if bare else _quoted
        entries = [entry(each, inner, language) for each in value]
        if language == "javascript":
            return f"[{', '.join(entries)}]"
        if kind == "ArrayList":
            return f"new ArrayList<>(Arrays.asList({', '.join(entries)}))" if entries else "new ArrayList<>()"
        return f"new Object[]{{{', '.join(entries)}}}"
    if isinstance(value, dict):
        if language == "javascript":
            pairs = [f"{key}: {_quoted(each, {}, language)}" for key, each in value.items()]
            return "{" + ", ".join(pairs) + "}"
        puts = [f'put("{key}", {_quoted(each, {}, language)});' for key, each in value.items()]
        return f"new HashMap<>() {{{{ {' '.join(puts)} }}}}" if puts else "new HashMap<>()"
    if kind in ("integer", "byte", "short", "long", "Bigint"):
        return f"{value}{ {'long': 'L', 'Bigint': 'n'}.get(kind, '') }"
    return f"{value}f" if kind == "float" and language == "java" else str(value)


def _quoted(value: Any, declared: Any, language: str) -> str:
    """An entry of a list or object, where text stands in quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    return _written(value, declared, language)


# ---- the functions as tools


def _tools(truth: BfclTruth) -> list[dict[str, Any]]:
    """Tools that take what is called and give nothing back; what they are called with is all that counts."""
    language = language_of(truth.category)
    tools: dict[str, dict[str, Any]] = {}
    for function in truth.functions:
        parameters = function["parameters"]
        properties = {key: _schema(each, language) for key, each in parameters["properties"].items()}
        required = [key for key in parameters.get("required", ()) if key in properties]
        tools.setdefault(
            function["name"],
            {
                "name": function["name"],
                "description": str(function.get("description", "")),
                "input_schema": {"type": "object", "properties": properties, "required": required},
            },
        )
    return list(tools.values())


def _schema(declared: Any, language: str) -> dict[str, Any]:
    """A parameter as JSON Schema, as far as the tools check it; Java and JavaScript values are text."""
    said = str(declared.get("description", ""))
    if language != "python":
        kind = {"java": "Java", "javascript": "JavaScript"}[language]
        return {
            "type": "string",
            "description": f"{said} ({kind} {declared['type']}, written as text)".strip(),
        }
    found: dict[str, Any] = {"description": said} if said else {}
    if declared.get("type") in _JSON_TYPES:
        found["type"] = _JSON_TYPES[declared["type"]]
    if isinstance(declared.get("items"), dict):
        found["items"] = _schema(declared["items"], language)
    if isinstance(declared.get("properties"), dict):
        found["properties"] = {key: _schema(each, language) for key, each in declared["properties"].items()}
    return found


__all__ = ["CATEGORIES", "UNANSWERED", "load_cases", "reference"]
