"""Tools that are declared in data: what a call needs of a JSON state, what it does to it, and what it gives back.

    {"name": "cancel_order", "description": "Cancel an order that is not sent yet.",
     "input_schema": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
     "preconditions": [{"path": "orders.{order_id}.status", "equals": "processing", "error": "…"}],
     "effects": [{"set": "orders.{order_id}.status", "value": "cancelled"}],
     "result": "order {order_id} is cancelled"}

A call is all or nothing: effects are carried out one after the other on a state that nobody else sees, and it takes
the place of the old one only when all of them have worked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from agentbench_lab.errors import did_you_mean
from agentbench_lab.paths import ABSENT, BadPath, Path, join, look, named
from agentbench_lab.values import same
from agentbench_lab.worlds import templates
from agentbench_lab.worlds.arguments import UnsupportedSchema, compile_schema
from agentbench_lab.worlds.capabilities import Capability, Parameter
from agentbench_lab.worlds.effects import Failed, Step, effect_step, read
from agentbench_lab.worlds.places import Place, off_the_map
from agentbench_lab.worlds.templates import Arguments, BadTemplate, Fill, as_text

EFFECTS = ("set", "append", "increment", "delete", "return")
TESTS = ("equals", "not_equals", "in", "exists", "absent", "min", "max")
_WITH = {
    "set": ("value", "from", "if_given"),
    "append": ("value", "from", "if_given"),
    "increment": ("by", "from", "if_given"),
    "delete": ("if_given",),
    "return": (),
}
_TOOL = ("name", "description", "input_schema", "preconditions", "effects", "result")
_SCHEMA = ("type", "properties", "required", "additionalProperties", "description", "title")
_DONE = {"ok": True}

Say = Callable[[str], None]


class StateTool(Struct, frozen=True):
    """One declared tool: what an agent is shown of it, and how a call of it runs."""

    capability: Capability
    defaults: Mapping[str, Any]
    preconditions: tuple[Callable[[Any, Arguments], None], ...]
    steps: tuple[tuple[str, Step], ...]
    result: Fill | None
    places: tuple[Place, ...]

    def run(self, state: Any, given: Arguments) -> tuple[Any, list[Path], Any]:
        """The state after a call, the paths that it touched, and what it gives back; raises Failed."""
        arguments = {**self.defaults, **given} if self.defaults else given
        touched: list[Path] = []
        answer: Any = ABSENT
        try:
            for holds in self.preconditions:
                holds(state, arguments)
            for if_given, step in self.steps:
                if if_given and if_given not in arguments:
                    continue
                state, path, given_back = step(state, arguments)
                if path:
                    touched.append(path)
                else:
                    answer = given_back
        except BadPath as error:
            raise Failed(str(error)) from None
        if answer is ABSENT:
            answer = _DONE if self.result is None else self.result(arguments)
        return state, touched, answer


class _Reader:
    """Reads one tool's declaration and says what is wrong with it."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.known: set[str] = set()
        self.sure: set[str] = set()
        self.places: list[Place] = []

    def within(self, where: str, declared: Any, allowed: Collection[str]) -> bool:
        """Whether this is an object with none but these keys."""
        if not isinstance(declared, dict):
            self.say(f"{where}: must be an object")
            return False
        for key in declared:
            if key not in allowed:
                self.say(f"{where}: unknown key {key!r}{did_you_mean(key, allowed)}")
        return True

    def listed(self, where: str, declared: Any) -> list[Any]:
        if not isinstance(declared, list):
            self.say(f"{where}: must be a list")
            return []
        return declared

    def path(self, where: str, text: Any, use: str, given: str = "") -> Callable[[Arguments], Path] | None:
        try:
            fill, segments, names = templates.path(text, self.known)
        except (BadPath, BadTemplate) as error:
            self.say(f"{where}: {error}")
            return None
        self.places.append(Place(segments, use, where))
        self.surely(where, names, given)
        return fill

    def value(self, where: str, declared: Any, given: str = "") -> Fill:
        try:
            fill, names = templates.value(declared, self.known)
        except BadTemplate as error:
            self.say(f"{where}: {error}")
            return lambda arguments: None
        self.surely(where, names, given)
        return fill

    def surely(self, where: str, names: set[str], given: str) -> None:
        for name in sorted(names - self.sure - {given}):
            self.say(f"{where}: {name!r} may be left out of a call: give it a default, or use if_given")

    # ---- a tool

    def tool(self, declared: Mapping[str, Any]) -> StateTool:
        schema, defaults = self.schema(declared.get("input_schema", {"type": "object"}))
        description = declared.get("description", "")
        if not isinstance(description, str):
            self.say("description: must be text")
            description = ""
        preconditions = [
            self.precondition(f"preconditions[{at}]", one)
            for at, one in enumerate(self.listed("preconditions", declared.get("preconditions", [])))
        ]
        effects = self.listed("effects", declared.get("effects", []))
        steps = [self.effect(f"effects[{at}]", one) for at, one in enumerate(effects)]
        returns = sum(isinstance(one, dict) and "return" in one for one in effects)
        if returns + ("result" in declared) > 1:
            self.say("result: a call gives one thing back: a result, or one return effect")
        result = self.value("result", declared["result"]) if "result" in declared else None
        name = declared["name"]
        reads = all(isinstance(one, dict) and "return" in one for one in effects)
        properties, required = schema["properties"], schema["required"]
        capability = Capability(
            name,
            name,
            description,
            tuple(
                Parameter(
                    key, "", key in required, sub.get("description", "") if isinstance(sub, dict) else "", sub
                )
                for key, sub in properties.items()
            ),
            read_only=reads,
            schema=schema,
        )
        return StateTool(
            capability,
            defaults,
            tuple(one for one in preconditions if one is not None),
            tuple(one for one in steps if one is not None),
            result,
            tuple(self.places),
        )

    def schema(self, declared: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The schema with what it leaves open said: objects are closed unless they say otherwise."""
        whole = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        if not isinstance(declared, dict):
            self.say("input_schema: must be an object")
            return whole, {}
        for key in declared:
            if key not in _SCHEMA:
                near = did_you_mean(key, _SCHEMA, most=0)
                self.say(
                    f"input_schema: keyword {key!r} is not supported at the top of a tool's schema{near}"
                )
        if declared.get("type", "object") != "object":
            self.say("input_schema: the arguments of a tool are an object")
        properties, required = declared.get("properties", {}), declared.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            self.say("input_schema: properties must be an object, required a list")
            return whole, {}
        if not isinstance(declared.get("additionalProperties", False), bool):
            self.say("input_schema: additionalProperties must be true or false")
            return whole, {}
        defaults = {}
        for key, sub in properties.items():
            where = f"input_schema.{key}"
            if not isinstance(sub, dict):
                self.say(f"{where}: must be a schema")
                continue
            try:
                check = compile_schema(sub)
                typed = compile_schema({"type": sub["type"]} if "type" in sub else {})
            except (UnsupportedSchema, AttributeError, KeyError, TypeError, ValueError) as error:
                self.say(f"{where}: {error}" if isinstance(error, ValueError) else f"{where}: is no schema")
                continue
            if not isinstance(sub.get("enum", []), list):
                self.say(f"{where}: enum: must be a list")
                continue
            for option in sub.get("enum", ()):
                for misfit in typed(option, key):
                    self.say(f"{where}: enum: {misfit.detail}")
            if "default" in sub:
                for misfit in check(sub["default"], key):
                    self.say(f"{where}: default: {misfit.detail}")
                if key in required:
                    self.say(f"{where}: has a default, and is required")
                defaults[key] = sub["default"]
        for key in required:
            if not isinstance(key, str) or key not in properties:
                self.say(
                    f"input_schema: requires {key!r}, which it does not declare{did_you_mean(str(key), properties)}"
                )
        required = [key for key in required if isinstance(key, str)]
        self.known = set(properties)
        self.sure = set(required) | set(defaults)
        return {**whole, **_closed({**declared, "properties": properties, "required": required})}, defaults

    # ---- preconditions

    def precondition(self, where: str, declared: Any) -> Callable[[Any, Arguments], None] | None:
        if not self.within(where, declared, ("path", *TESTS, "error", "if_given")):
            return None
        given = self.if_given(where, declared)
        if "path" not in declared:
            self.say(f"{where}: needs a path")
            return None
        at = self.path(f"{where}.path", declared["path"], "precondition", given)
        tests = [
            self.test(f"{where}.{word}", word, declared[word], given) for word in TESTS if word in declared
        ]
        if not tests:
            self.say(f"{where}: needs one of {', '.join(TESTS)}")
        said = self.value(f"{where}.error", declared["error"], given) if "error" in declared else None
        if at is None:
            return None

        def holds(state: Any, arguments: Arguments) -> None:
            if given and given not in arguments:
                return
            path = at(arguments)
            value = look(state, path)
            for test in tests:
                wrong = test(value, arguments)
                if wrong:
                    raise Failed(as_text(said(arguments)) if said else f"{join(path)} {wrong}")

        return holds

    def test(self, where: str, word: str, declared: Any, given: str) -> Callable[[Any, Arguments], str]:
        """A function that gives what is wrong with a value, in words; empty when nothing is."""
        if word in ("exists", "absent"):
            if declared is not True:
                self.say(f"{where}: is true where it is given")
            if word == "exists":
                return lambda value, arguments: "is not there" if value is ABSENT else ""
            return lambda value, arguments: "" if value is ABSENT else "is there already"
        if word == "in" and not isinstance(declared, list):
            self.say(f"{where}: must be a list")
            declared = []
        want = self.value(where, declared, given)

        def check(value: Any, arguments: Arguments) -> str:
            wanted = want(arguments)
            if value is ABSENT:
                return "is not there"
            if word == "equals":
                return "" if same(value, wanted) else f"is {_brief(value)}, and must be {_brief(wanted)}"
            if word == "not_equals":
                return f"is {_brief(value)}" if same(value, wanted) else ""
            if word == "in":
                fits = any(same(value, one) for one in wanted)
                return (
                    "" if fits else f"is {_brief(value)}, and must be one of {', '.join(map(_brief, wanted))}"
                )
            if _order(value) is None or _order(value) != _order(wanted):
                return f"is {named(value)}, which has no order with {named(wanted)}"
            fits = value >= wanted if word == "min" else value <= wanted
            bound = "at least" if word == "min" else "at most"
            return "" if fits else f"is {_brief(value)}, and must be {bound} {_brief(wanted)}"

        return check

    def if_given(self, where: str, declared: Mapping[str, Any]) -> str:
        name = declared.get("if_given", "")
        if not isinstance(name, str) or (name and name not in self.known):
            self.say(f"{where}.if_given: {name!r} is no argument{did_you_mean(str(name), self.known)}")
            return ""
        return name

    # ---- effects

    def effect(self, where: str, declared: Any) -> tuple[str, Step] | None:
        every = {key for keys in _WITH.values() for key in keys}
        if not isinstance(declared, dict):
            self.say(f"{where}: must be an object")
            return None
        words = [word for word in EFFECTS if word in declared]
        if len(words) != 1:
            odd = next((key for key in declared if key not in every and key not in EFFECTS), None)
            if odd is not None and not words:
                self.say(f"{where}: unknown effect {odd!r}{did_you_mean(odd, EFFECTS)}")
            else:
                self.say(f"{where}: needs one of {', '.join(EFFECTS)}")
            return None
        word = words[0]
        self.within(where, declared, (word, *_WITH[word]))
        given = self.if_given(where, declared)
        at = self.path(f"{where}.{word}", declared[word], word, given)
        value: Callable[[Any, Arguments], Any] | None = None
        if word in ("set", "append", "increment"):
            key = "by" if word == "increment" else "value"
            if key in declared and "from" in declared:
                self.say(f"{where}: {key} and from exclude each other")
            if "from" in declared:
                source = self.path(f"{where}.from", declared["from"], "from", given)
                value = None if source is None else read(source)
            elif key in declared or word == "increment":
                fill = self.value(f"{where}.{key}", declared.get(key, 1), given)
                value = lambda state, arguments: fill(arguments)  # noqa: E731
            else:
                self.say(f"{where}: {word} needs a value")
            if value is None:
                return None
        return None if at is None else (given, effect_step(word, at, value))


def _order(value: Any) -> str | None:
    """What a value can be ordered among: numbers, or texts."""
    return "number" if type(value) in (int, float) else "text" if type(value) is str else None


def _brief(value: Any) -> str:
    text = as_text(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _closed(schema: Any) -> Any:
    """The schema, with objects that declare properties closed unless they say otherwise."""
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    if isinstance(schema.get("properties"), dict):
        closed["properties"] = {key: _closed(sub) for key, sub in schema["properties"].items()}
        closed.setdefault("additionalProperties", False)
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    if isinstance(schema.get("anyOf"), list):
        closed["anyOf"] = [_closed(sub) for sub in schema["anyOf"]]
    return closed


def read_tools(
    declared: Any, state: Any, controls: Collection[str]
) -> tuple[dict[str, StateTool], list[str]]:
    """The tools of a declaration by name, and what is wrong with it, each as `tools.NAME.place: what`."""
    problems: list[str] = []
    found: dict[str, StateTool] = {}
    if not isinstance(declared, list):
        return found, ["tools: must be a list"]
    for at, one in enumerate(declared):
        name = one.get("name") if isinstance(one, dict) else None
        where = f"tools.{name}" if isinstance(name, str) and name else f"tools[{at}]"
        reader = _Reader(lambda text, where=where: problems.append(f"{where}.{text}"))  # type: ignore[misc]
        if not isinstance(name, str) or not name.strip():
            problems.append(
                f"{where}: needs a name" if isinstance(one, dict) else f"{where}: must be an object"
            )
            continue
        if name in found:
            problems.append(f"{where}: is declared twice")
        if name in controls:
            problems.append(f"{where}: is the name of a tool that every task has; take another")
        for key in one:
            if key not in _TOOL:
                problems.append(f"{where}: unknown key {key!r}{did_you_mean(key, _TOOL)}")
        found[name] = reader.tool(one)
    places = [
        (name, place)
        for name, tool in found.items()
        for place in tool.places
        if place.use in ("set", "append")
    ]
    for name, tool in found.items():
        for place in tool.places:
            problems += [
                f"tools.{name}.{place.words}: {text}"
                for text in off_the_map(state, place, [other.segments for _, other in places])
            ]
    return found, problems


__all__ = ["EFFECTS", "TESTS", "StateTool", "read_tools"]
