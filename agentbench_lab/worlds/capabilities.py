"""What a world's tools can do, declared: parameters, preconditions, effects; and the hallucination check.

The model is closed-world and default-deny. A name that is no registered capability, or is not declared for
the case, or whose arguments cannot bind, is a hallucinated call. Tools that dispatch but are left out of the
registry are listed with a reason, so that the omission reads as a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from agentbench_lab.cases import Goal
from agentbench_lab.values import plain
from agentbench_lab.worlds.arguments import Misfit, compile_schema

Reason = Literal["unknown-tool", "undeclared", "unknown-arg", "missing-arg"]


class BindingProblem(Struct, frozen=True):
    """Why a call cannot bind: one of the four reasons of the ladder, and the tool or `tool.key` it is about."""

    reason: Reason
    detail: str


class Parameter(Struct, frozen=True):
    """One argument of a tool: the key that dispatch reads, the kind of thing it names, whether it must be given, the
    JSON Schema of its value (None is any text), and whether a blank text is a value like any other. It is not where
    the argument names something, as in the ladder's own registry: a blank names nothing, and counts as not given."""

    name: str
    kind: str
    required: bool = False
    note: str = ""
    schema: dict[str, Any] | None = None
    blank: bool = False


class Precondition(Struct, frozen=True, omit_defaults=True):
    """What must hold before the tool can run: `cap:graph-loaded`, `cap:resolves` (param as kind), `cap:any-present`
    (one of params) or `cap:memory-facts`."""

    pred: str
    param: str | None = None
    kind: str | None = None
    params: tuple[str, ...] = ()


class Effect(Struct, frozen=True):
    """What is known after the tool ran: a topic, of the parameter named (`?symbol`) or of nothing (None)."""

    topic: str
    of: str | None = None
    pred: str = "cap:knows"


_TEXT = compile_schema({"type": "string"})


class Capability(Struct, frozen=True, dict=True):
    """One tool: what it is called and asked, what it needs, what it achieves, and whether it only reads.

    `schema` is the JSON Schema of the arguments of a tool that is declared by one: then an argument counts as given
    when its key is there, whatever its value, and keys that are not declared bind where the schema says so.
    """

    name: str
    label: str
    question: str
    parameters: tuple[Parameter, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    effects: tuple[Effect, ...] = ()
    read_only: bool = True
    schema: dict[str, Any] | None = None

    @cached_property
    def open(self) -> bool:
        """Whether keys that are not declared may be given."""
        return self.schema is not None and self.schema.get("additionalProperties") is True

    @cached_property
    def accepted(self) -> frozenset[str]:
        return frozenset(p.name for p in self.parameters)

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.required)

    @cached_property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Groups of arguments of which at least one must be present."""
        return tuple(p.params for p in self.preconditions if p.pred == "cap:any-present")

    @cached_property
    def misfits(self) -> Callable[[dict[str, Any]], list[Misfit]]:
        """What is wrong with the values of a call's arguments; keys are `Registry.problems`' business."""
        checks = {p.name: compile_schema(p.schema) for p in self.parameters if p.schema is not None}

        def check(arguments: dict[str, Any]) -> list[Misfit]:
            found: list[Misfit] = []
            for key, value in arguments.items():
                if key in checks:
                    found += checks[key](value, key)
                elif self.schema is None and type(value) is not str and value is not None:
                    found += _TEXT(value, key)
            return found

        return check

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as an agent is shown it."""
        if self.schema is not None:
            shown: dict[str, Any] = plain(self.schema)
            return shown
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                p.name: {**plain(p.schema or {"type": "string"}), "description": p.note or p.kind}
                for p in self.parameters
            },
            "required": list(self.required),
            "additionalProperties": False,
        }
        if self.alternatives:
            schema["anyOf"] = [{"required": [key]} for group in self.alternatives for key in group]
        return schema


def present(value: Any) -> bool:
    """Whether an argument counts as given: not null and, as text, not blank. 0 and false are given."""
    if type(value) is str:
        return bool(value) and not value.isspace()
    return value is not None and (type(value) is not list or bool(value))


class Registry(Struct, frozen=True, dict=True):
    """The closed set of capabilities of a world, in declaration order, and the tools left out, each with its reason."""

    capabilities: tuple[Capability, ...]
    excluded: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [c.name for c in self.capabilities]
        if len(set(names)) != len(names):
            raise ValueError("a capability is registered twice")
        both = set(names) & set(self.excluded)
        if both:
            raise ValueError(f"registered and excluded at once: {sorted(both)}")
        msgspec.structs.force_setattr(self, "excluded", MappingProxyType(dict(self.excluded)))

    @cached_property
    def by_name(self) -> Mapping[str, Capability]:
        # drivers can reach this: it must not be theirs to change
        return MappingProxyType({c.name: c for c in self.capabilities})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.by_name)

    def problems(self, name: Any, input: Any, declared: Collection[str]) -> tuple[BindingProblem, ...]:
        """Why the call cannot bind under the declared set; empty for a call that is not hallucinated.

        Only the shape is judged: which entity a value names is found out by running the call. Values that are no
        object count as no arguments at all.
        """
        if not isinstance(name, str) or not name:
            return (BindingProblem("unknown-tool", "no tool name"),)
        capability = self.by_name.get(name)
        if capability is None:
            return (BindingProblem("unknown-tool", name),)
        accepted = capability.accepted
        given: Mapping[Any, Any] = input if isinstance(input, dict) else _indexed(input)
        if capability.schema is not None:
            return _unbound(capability, given, name in declared)
        if (
            name in declared
            and accepted.issuperset(given)
            and not capability.alternatives
            and all(present(given.get(key)) for key in capability.required)
        ):
            return ()
        found = []
        if name not in declared:
            found.append(BindingProblem("undeclared", name))
        found += [BindingProblem("unknown-arg", f"{name}.{key}") for key in given if key not in accepted]
        found += [
            BindingProblem("missing-arg", f"{name}.{p.name}")
            for p in capability.parameters
            if p.required and not (present(given.get(p.name)) or (p.blank and given.get(p.name) is not None))
        ]
        found += [
            BindingProblem("missing-arg", f"{name} needs one of {'|'.join(group)}")
            for group in capability.alternatives
            if not any(present(given.get(key)) for key in group)
        ]
        return tuple(found)


def _unbound(capability: Capability, given: Mapping[Any, Any], declared: bool) -> tuple[BindingProblem, ...]:
    """The same for a tool that is declared by a JSON Schema."""
    name = capability.name
    found = [] if declared else [BindingProblem("undeclared", name)]
    if not capability.open:
        found += [
            BindingProblem("unknown-arg", f"{name}.{key}") for key in given if key not in capability.accepted
        ]
    found += [
        BindingProblem("missing-arg", f"{name}.{key}") for key in capability.required if key not in given
    ]
    return tuple(found)


def _indexed(value: Any) -> Mapping[Any, Any]:
    """A list of arguments binds no key: each position is an unknown argument. Any other value is no argument."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return {str(position): item for position, item in enumerate(value)}
    return {}


__all__ = [
    "BindingProblem",
    "Capability",
    "Effect",
    "Goal",
    "Parameter",
    "Precondition",
    "Registry",
    "present",
]
