"""The tools of a code graph as those see them who call them: what each asks for and tells, and the goals they serve."""

from __future__ import annotations

from agentbench_lab.worlds.capabilities import (
    Capability,
    Effect,
    Goal,
    Parameter,
    Precondition,
    Registry,
)
from agentbench_lab.worlds.graphfile import KINDS


def _needs(parameter: Parameter, loaded: str = "cap:graph-loaded") -> tuple[Precondition, ...]:
    return (Precondition(loaded), Precondition("cap:resolves", parameter.name, parameter.kind))


def _about(name: str, label: str, question: str, topic: str, parameter: Parameter) -> Capability:
    effect = Effect(topic, f"?{parameter.name}")
    return Capability(name, label, question, (parameter,), _needs(parameter), (effect,))


_symbol = Parameter(
    "symbol",
    "seon:CodeEntity",
    True,
    "the file path of a module, or the name of a class, function, method (Class.method), attribute or global",
)
_class = Parameter("class", "seon:ClassType", True, "the name of a class")
_term = Parameter("term", "mgx:MemoryTerm", True, "an everyday word or term; no name from the code")
_sprite_class = Parameter("class", "mgx:MemoryTerm", True, "an everyday word or term; no name from the code")


REGISTRY = Registry(
    (
        Capability(
            "tmct_search",
            "search",
            "Find entities by words in their name or description. Give query, kind, or both.",
            (
                Parameter(
                    "query", "cap:FreeText", note="words that all have to occur; needed unless kind is given"
                ),
                Parameter("kind", "cap:KindFilter", note=f"only this kind: {', '.join(KINDS)}"),
                Parameter("name", "cap:FreeText", note="only entities whose own name holds this text"),
                Parameter(
                    "decorator", "cap:FreeText", note="only entities with a decorator that holds this text"
                ),
            ),
            (
                Precondition("cap:graph-loaded"),
                Precondition("cap:any-present", params=("query", "kind")),
            ),
            (Effect("matches", "?query"),),
        ),
        _about(
            "tmct_describe",
            "describe",
            "What an entity is: its kind, place, signature, description, and everything it is joined to.",
            "description",
            _symbol,
        ),
        _about(
            "tmct_signature",
            "signature",
            "The signature of a function, method or class, and nothing else.",
            "signature",
            _symbol,
        ),
        _about(
            "tmct_impact",
            "impact",
            "Which modules a change would reach: everything that imports or calls the module or symbol, "
            "directly or through others.",
            "impact",
            Parameter(
                "module",
                "seon:CodeEntity",
                True,
                "the file path of a module, or the name of a function or method; for those the modules "
                "that call it are followed",
            ),
        ),
        _about("tmct_members", "members", "The methods and attributes of a class.", "members", _class),
        _about(
            "tmct_subclasses",
            "subclasses",
            "The classes that extend a class, directly or through others.",
            "subclasses",
            _class,
        ),
        _about(
            "tmct_exports",
            "exports",
            "The names that a module offers to others by re-exporting them.",
            "exports",
            Parameter("module", "mgx:Module", True, "the file path of a module"),
        ),
        _about(
            "tmct_callers",
            "callers",
            "Who calls a function or method. For a module, class, attribute or global: which modules call "
            "into its module.",
            "callers",
            _symbol,
        ),
        _about(
            "tmct_callees",
            "callees",
            "What a function or method calls. For a module, class, attribute or global: which modules its "
            "module calls into.",
            "callees",
            _symbol,
        ),
        _about(
            "tmct_calls",
            "calls",
            "The call edges out of an entity, each with the place that it leads to.",
            "calls",
            _symbol,
        ),
        _about(
            "tmct_tests_for",
            "tests",
            "The test modules that cover an entity's module.",
            "tests",
            _symbol,
        ),
        Capability(
            "tmct_untested",
            "untested",
            "All modules that no test covers. Takes no arguments.",
            (),
            (Precondition("cap:graph-loaded"),),
            (Effect("untested"),),
        ),
        _about(
            "tmct_history",
            "history",
            "The commits that touched an entity, with author, date and message.",
            "history",
            _symbol,
        ),
        _about(
            "tmct_cochanges",
            "cochanges",
            "The modules that usually change in the same commit as an entity's module.",
            "cochanges",
            _symbol,
        ),
        Capability(
            "tmct_architecture",
            "arch",
            "An overview: packages with their sizes, and the modules most imported.",
            (Parameter("package", "cap:PackageName", note="only this folder, for instance src/cart"),),
            (Precondition("cap:graph-loaded"),),
            (Effect("architecture", "?package"),),
        ),
        Capability(
            "tmct_related",
            "related",
            "Synonyms and related words of an everyday term, from remembered facts and not from the code.",
            (_term,),
            _needs(_term, "cap:memory-facts"),
            (Effect("related", "?term"),),
        ),
        Capability(
            "tmct_sprite",
            "sprite",
            "A picture of what a term stands for.",
            (
                _sprite_class,
                Parameter("expression", "cap:KindFilter", note="the mood it shows, in one word"),
                Parameter("size", "cap:KindFilter", note="how large it is drawn, in one word"),
            ),
            _needs(_sprite_class, "cap:memory-facts"),
            (Effect("sprite", "?class"),),
        ),
    ),
    excluded={
        "tmct_context": "gives source from many files at once, without bound; has to be given a size limit first",
        "tmct_context_more": "goes on where tmct_context stopped, and is as unbounded",
        "tmct_snippet": "reads source files from the disk; has to be given a precondition on the file and its span",
        "tmct_ask": "takes a whole question in plain words, so it would answer in place of the agent",
        "tmct_export": "gives every remembered fact at once; there is no argument to ask for less",
        "tmct_ingest": "writes remembered facts; every capability here only reads",
        "tmct_file_history": "tmct_history for modules only; nothing in a request tells the two apart",
        "tmct_method_history": "tmct_history for methods only; nothing in a request tells the two apart",
        "tmct_class_history": "tmct_history for classes only; nothing in a request tells the two apart",
    },
)
"""The seventeen capabilities, in the order in which plans are searched, and the nine tools left out.

Of those nine only `tmct_snippet` is dispatched here (see `codegraph.DISPATCH`): it is there, and it is out of bounds.
"""

GOALS = tuple(
    sorted(
        [
            Goal("goal:coverage-gap", ("tmct_impact", "tmct_untested")),
            Goal("goal:cochange-risk", ("tmct_cochanges", "tmct_untested")),
            *(Goal(f"cap:{c.effects[0].topic}", (c.name,)) for c in REGISTRY.capabilities),
        ],
        key=lambda goal: goal.id,
    )
)
"""The goals that a trace of calls may serve: one per capability, and the two that take two tools. Sorted by id."""
