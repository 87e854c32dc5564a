"""A code graph that agents ask about: modules, classes, functions, how they are joined, and seventeen read-only tools.

A graph is read from a file (`CodeGraph.load`: our own compact format, or the graph file of the original TOOL ladder as
it is), or built from an installed Python package (`CodeGraph.from_package`). It never changes, so trials share it.

The value of a call is a set of labels, sorted by code point. `impact`, `subclasses`, `exports`, `callers`, `callees`,
`tests_for`, `untested` and `cochanges` give the labels that they found; `members` gives the short names, as the class
sees them; `describe`, `signature`, `calls`, `history` and a `search` that names an entity give the one label that they
are about; `architecture` and `related` give none, for what they tell are no labels of the graph. The text says more.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from agentbench_lab.cases import Expect
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.values import a_kind, canonical
from agentbench_lab.worlds.capabilities import Goal, Registry
from agentbench_lab.worlds.codetools import GOALS, REGISTRY
from agentbench_lab.worlds.graphfile import (
    FACTS,
    KINDS,
    KINDS_OF,
    PREDICATES,
    Edge,
    Entity,
    Graph,
    is_test_path,
    read_graph,
    remembered,
    write_graph,
)
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.toolbox import Fact, Ran

MAX_DEPTH = 8
"""How many edges `impact` and `subclasses` follow."""

# -- the graph

Answer = tuple[list[str], str]
Read = Callable[["CodeGraph", Entity], Answer]
_Near = list[tuple[int, int]]


class CodeGraph:
    """A code graph as a world. It only reads: every trial may have the same one.

    With `enforce_kinds` a term binds to an entity of the declared kind by its exact label or id, else by a unique end of
    its path or dotted name; without, to whatever is most alike, as in the original ladder. `root` is the folder that
    the paths start from, where the source is at hand. `digest` is that of the compact format when it is not given.

    Raises LabError for two entities of one id or, without a digest, of one label, and for an edge to an entity that is
    not there.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        enforce_kinds: bool = True,
        root: Path | None = None,
        digest: str | None = None,
    ) -> None:
        self.kind = "codegraph"
        self.name = graph.name
        self.graph = graph
        self.enforce_kinds = enforce_kinds
        self.root = root
        self._entities = tuple(e if e.id else msgspec.structs.replace(e, id=e.label) for e in graph.entities)
        self._by_id = {e.id: n for n, e in enumerate(self._entities)}
        if len(self._by_id) != len(self._entities):
            twice = next(i for i, count in Counter(e.id for e in self._entities).items() if count > 1)
            raise LabError(f"{self.name}: two entities have the id {twice!r}")
        self._by_label: dict[str, list[int]] = {}
        for n, entity in enumerate(self._entities):
            self._by_label.setdefault(entity.label, []).append(n)
        self._out: dict[str, dict[int, _Near]] = {predicate: {} for predicate in PREDICATES}
        self._in: dict[str, dict[int, _Near]] = {predicate: {} for predicate in PREDICATES}
        for predicate, pairs in graph.edges.items():
            if predicate not in PREDICATES:
                near = did_you_mean(predicate, PREDICATES)
                raise LabError(f"{self.name}: no edge is called {predicate!r}{near}")
            self._join(predicate, pairs)
        self.has = frozenset(self._found() if graph.has is None else graph.has)
        self._answers: dict[tuple[str, str], Answer] = {}
        self._bound: dict[tuple[str, str], Entity | str] = {}
        self._searches: dict[tuple[str, str, str, str], Answer] = {}
        self.digest = hashlib.sha256(self.to_bytes()).hexdigest() if digest is None else digest

    def _join(self, predicate: str, pairs: Iterable[Edge]) -> None:
        joined: dict[tuple[int, int], int] = {}
        for pair in pairs:
            for end in pair[:2]:
                if end not in self._by_id:
                    near = did_you_mean(str(end), self._by_id, most=0)
                    raise LabError(f"{self.name}: {predicate} leads to {end!r}, which is no entity{near}")
            ends = self._by_id[pair[0]], self._by_id[pair[1]]
            joined[ends] = max(joined.get(ends, 0), pair[2] if len(pair) == 3 else 1)
        for (subject, object_), weight in joined.items():
            self._out[predicate].setdefault(subject, []).append((object_, weight))
            self._in[predicate].setdefault(object_, []).append((subject, weight))

    def _found(self) -> set[str]:
        has = {"imports", "calls", "inheritance", "exports", "tests"}
        if self.graph.memory:
            has.add("memory")
        if self._out["touches"] or self._out["touchesSymbol"]:
            has |= {"history", "cochange"}
        if self._out["cochange"]:
            has.add("cochange")
        return has

    # what a world is

    @property
    def registry(self) -> Registry:
        return REGISTRY

    def fork(self) -> CodeGraph:
        """The graph itself, for it never changes."""
        return self

    def snapshot(self) -> bytes:
        return b""

    def restore(self, snapshot: bytes) -> None:
        """Nothing has changed."""

    def seen(self, expect: Expect) -> Seen | None:
        """Nothing: a graph never changes."""
        return None

    def run(self, name: str, input: Mapping[str, Any]) -> Ran:
        """Run one tool of the dispatch table. What went wrong stands in the result's `error`."""
        dispatch = DISPATCH.get(name)
        if dispatch is None:
            return Ran(None, "", error=f"no tool is called {name!r}{did_you_mean(name, DISPATCH)}")
        return dispatch(self, input)

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        """The goals whose whole plan can be carried out with the declared tools, sorted by id."""
        return tuple(goal for goal in GOALS if set(goal.plan) <= set(declared))

    # looking things up

    @property
    def entities(self) -> tuple[Entity, ...]:
        return self._entities

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of all entities."""
        return frozenset(self._by_label)

    def entity(self, label: str) -> Entity | None:
        """The entity of exactly this label."""
        found = self._by_label.get(label)
        return None if found is None else self._entities[found[0]]

    def kind_of(self, label: str) -> str | None:
        """The kind of the entity of exactly this label."""
        entity = self.entity(label)
        return None if entity is None else entity.kind

    def edges(self, predicate: str) -> list[tuple[str, str, int]]:
        """The edges of a predicate as (subject label, object label, weight), sorted."""
        label = [entity.label for entity in self._entities]
        return sorted(
            (label[subject], label[object_], weight)
            for subject, near in self._out[predicate].items()
            for object_, weight in near
        )

    def candidates(self, term: str, kind: str | None = None) -> list[str]:
        """The labels of all entities that `term` names equally well: none, the one it binds to, or those that are tied.

        `kind` is a parameter's declared kind (`mgx:Module`); None admits every entity, commits too. Entities that
        share a label are listed by id.
        """
        if kind == "mgx:MemoryTerm":
            found = self._terms.get(term.strip().lower())
            return [] if found is None else [found]
        admitted = KINDS_OF[kind] if kind is not None else None
        return sorted(self._handle(n) for n in self._tied(term.strip(), admitted))

    def bind(self, term: str, kind: str) -> Entity | str:
        """The entity that `term` names, or a sentence that says why there is none."""
        key = (kind, term)
        found = self._bound.get(key)
        if found is None:
            if len(self._bound) > 4 * len(self._entities) + 4096:
                self._bound.clear()
            found = self._bind(term, kind) if self.enforce_kinds else self._bind_loosely(term)
            self._bound[key] = found
        return found

    def _handle(self, n: int) -> str:
        entity = self._entities[n]
        return entity.label if len(self._by_label[entity.label]) == 1 else entity.id

    def _tied(self, term: str, admitted: frozenset[str] | None) -> list[int]:
        for index in (self._exact, self._ends):
            found = index.get(term.lower(), ())
            fitting = [(key, n) for key, n in found if admitted is None or self._entities[n].kind in admitted]
            if fitting:
                literal = {n for key, n in fitting if key == term}
                return sorted(literal or {n for _, n in fitting})
        return []

    def _bind(self, term: str, kind: str) -> Entity | str:
        tied = self._tied(term, KINDS_OF[kind])
        if len(tied) == 1:
            return self._entities[tied[0]]
        if tied:
            labels = sorted(map(self._handle, tied))
            more = f" and {len(labels) - 8} more" if len(labels) > 8 else ""
            return f'"{term}" may mean any of {len(labels)}: {", ".join(labels[:8])}{more}; name one of them in full'
        other = self._tied(term, None)
        if other:
            entity = self._entities[other[0]]
            wanted = {"mgx:Module": "a Module", "seon:ClassType": "a Class"}.get(kind, "a piece of code")
            return f'"{term}" is {a_kind(entity.kind)} ({self._handle(other[0])}), and {wanted} is asked for'
        near = self._alike(term, KINDS_OF[kind])
        return f'nothing in the graph is called "{term}"' + (f"; nearest: {', '.join(near)}" if near else "")

    def _bind_loosely(self, term: str) -> Entity | str:
        """The original's dispatch: exact 100, end of path, basename or stem 80, part of a label by what is left over."""
        wanted = term.lower()
        best: tuple[int, int, int, str] | None = None
        chosen = None
        for entity in self._entities:
            label = entity.label.lower()
            if wanted in (label, entity.id.lower()):
                score = 100
            elif label.endswith(f"/{wanted}") or wanted in _stems(label):
                score = 80
            elif wanted in label:
                score = max(10, 50 - (len(label) - len(wanted)))
            else:
                continue
            rank = (-score, -entity.mentions, len(label), entity.label)
            if best is None or rank < best:
                best, chosen = rank, entity
        return chosen if chosen is not None else f'nothing in the graph is like "{term}"'

    @cached_property
    def _exact(self) -> dict[str, list[tuple[str, int]]]:
        index: dict[str, list[tuple[str, int]]] = {}
        for n, entity in enumerate(self._entities):
            for key in {entity.label, entity.id}:
                index.setdefault(key.lower(), []).append((key, n))
        return index

    @cached_property
    def _ends(self) -> dict[str, list[tuple[str, int]]]:
        index: dict[str, list[tuple[str, int]]] = {}
        for n, entity in enumerate(self._entities):
            for key in _ends(entity):
                index.setdefault(key.lower(), []).append((key, n))
        return index

    @cached_property
    def _grams(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = {}
        for n, entity in enumerate(self._entities):
            for gram in sorted(_grams(entity.label) | _grams(entity.short)):
                index.setdefault(gram, []).append(n)
        return index

    def _alike(self, term: str, admitted: frozenset[str]) -> list[str]:
        """The labels most like a term that names nothing, at most three, the nearest first."""
        shared = Counter(
            n
            for gram in sorted(_grams(term))
            for n in self._grams.get(gram, ())
            if self._entities[n].kind in admitted
        )
        shortlist = sorted(shared, key=lambda n: (-shared[n], len(self._entities[n].label), self._handle(n)))
        matcher = difflib.SequenceMatcher(b=term.lower())
        near = []
        for n in shortlist[:32]:
            entity = self._entities[n]
            ratio = 0.0
            for name in {entity.label, PurePosixPath(entity.label).name, entity.short}:
                matcher.set_seq1(name.lower())
                ratio = max(ratio, matcher.ratio())
            if ratio >= 0.6:
                near.append((-ratio, self._handle(n)))
        return [label for _, label in sorted(near)[:3]]

    # walking

    @cached_property
    def _modules(self) -> dict[str, int]:
        return {e.label: n for n, e in enumerate(self._entities) if e.kind == "Module"}

    def _index(self, entity: Entity) -> int:
        return self._by_id[entity.id]

    def _module_of(self, entity: Entity) -> int | None:
        """The module that an entity stands in: itself, or the one at the path of its site."""
        return self._index(entity) if entity.kind == "Module" else self._modules.get(entity.path)

    def _next(self, index: Mapping[int, _Near], n: int | None) -> list[str]:
        """The labels one edge away, sorted and each once."""
        if n is None:
            return []
        return sorted({self._entities[other].label for other, _ in index.get(n, ())})

    @cached_property
    def _dependents(self) -> dict[int, set[int]]:
        """The modules that depend directly on a module, or on a function or method that another module calls."""
        dependents: dict[int, set[int]] = {}
        for predicate in ("imports", "calls"):
            for object_, near in self._in[predicate].items():
                dependents.setdefault(object_, set()).update(subject for subject, _ in near)
        for callee, near in self._in["callsSymbol"].items():
            home = self._module_of(self._entities[callee])
            for caller, _ in near:
                module = self._module_of(self._entities[caller])
                if module is not None and module != home:
                    dependents.setdefault(callee, set()).add(module)
                    if home is not None:
                        dependents.setdefault(home, set()).add(module)
        return dependents

    def _reached(self, seed: int, steps: Callable[[int], Iterable[int]]) -> list[str]:
        """The labels of all that is reached from `seed` in at most MAX_DEPTH steps, without the seed."""
        seen, edge = {seed}, [seed]
        for _ in range(MAX_DEPTH):
            edge = sorted({other for n in edge for other in steps(n)} - seen)
            seen.update(edge)
        return sorted({self._entities[n].label for n in seen - {seed}})

    @cached_property
    def _untested(self) -> list[str]:
        joined = {n for index in (self._out["tests"], self._in["tests"]) for n in index}
        return sorted(
            label for label, n in self._modules.items() if n not in joined and not is_test_path(label)
        )

    # remembered terms

    @cached_property
    def _concepts(self) -> dict[str, str]:
        """Each term and its concept: terms joined by synonymy are one, named by the smallest of them."""
        parent = {term: term for fact in self.graph.memory for term in (fact[0], fact[2])}

        def root(term: str) -> str:
            while parent[term] != term:
                term = parent[term]
            return term

        for subject, predicate, object_ in self.graph.memory:
            if predicate == "synonym":
                low, high = sorted((root(subject), root(object_)))
                parent[high] = low
        return {term: root(term) for term in parent}

    @cached_property
    def _terms(self) -> dict[str, str]:
        return {term.lower(): term for term in sorted(self._concepts, reverse=True)}

    def related_to(self, term: str) -> tuple[str, list[str], list[str]]:
        """The concept of a remembered term, its synonyms, and the concepts related to it, sorted."""
        concept = self._concepts[term]
        synonyms = sorted(t for t, c in self._concepts.items() if c == concept and t != term)
        related = set()
        for subject, predicate, object_ in self.graph.memory:
            ends = {self._concepts[subject], self._concepts[object_]}
            if predicate != "synonym" and concept in ends:
                related |= ends - {concept}
        return concept, synonyms, sorted(related)

    # files

    @classmethod
    def from_package(cls, name: str, *, enforce_kinds: bool = True) -> CodeGraph:
        """The graph of an installed Python package, read from its source; the package is neither imported nor run.

        Raises LabError when there is no such package, or no Python source of it. See `agentbench_lab.worlds.pygraph`.
        """
        from agentbench_lab.worlds.pygraph import build

        graph, root = build(name)
        return cls(graph, enforce_kinds=enforce_kinds, root=root)

    @classmethod
    def load(
        cls, path: str | Path, *, enforce_kinds: bool = True, memory: Iterable[Sequence[str]] = ()
    ) -> CodeGraph:
        """Read a graph file: the compact format of `to_bytes`, or the original ladder's graph file as it is.

        `memory` adds facts about terms, which the original's file has no place for. The digest is that of the file's
        bytes; memory given here, and kinds that are not enforced, go into it, because they change what calls give.

        Raises LabError with the file and all that is wrong with it.
        """
        where = Path(path)
        try:
            data = where.read_bytes()
        except FileNotFoundError:
            beside = [p.name for p in where.parent.glob("*.json")] if where.parent.is_dir() else []
            raise LabError(f"{path}: no such file{did_you_mean(where.name, beside)}") from None
        except OSError as error:
            raise LabError(f"{path}: cannot be read ({error.strerror})") from None
        graph = read_graph(data, path)
        extra = tuple(remembered(fact) for fact in memory)
        sha = hashlib.sha256(data)
        if extra or not enforce_kinds:
            sha.update(canonical({"enforce_kinds": enforce_kinds, "memory": extra}))
        if extra:
            has = None if graph.has is None else tuple({*graph.has, "memory"})
            graph = msgspec.structs.replace(graph, memory=(*graph.memory, *extra), has=has)
        try:
            return cls(graph, enforce_kinds=enforce_kinds, digest=sha.hexdigest())
        except LabError as error:
            raise LabError(f"{path}: {error}") from None

    def to_bytes(self) -> bytes:
        """The graph in the compact format. The same graph gives the same bytes (see `graphfile.write_graph`)."""
        return write_graph(msgspec.structs.replace(self.graph, has=tuple(sorted(self.has))))


def _stems(path: str) -> tuple[str, str, str]:
    """The basename of a path, without its last extension, and without the mark of a test: `b.test.mjs`, `b.test`, `b`."""
    base = path.rpartition("/")[2]
    stem = base.rpartition(".")[0] or base
    return base, stem, re.sub(r"[._-](test|spec)$", "", stem)


def _ends(entity: Entity) -> set[str]:
    """The ends of an entity's path or dotted name by which it may be called, beside its label and id."""
    keys = set()
    if entity.kind == "Module":
        parts = entity.label.split("/")
        for n in range(len(parts)):
            end = "/".join(parts[n:])
            keys |= {end, end.rpartition(".")[0] or end}
        keys.add(_stems(entity.label)[2])
    else:
        keys |= _dotted_ends(entity.label)
    if "." in entity.id and "/" not in entity.id:
        keys |= _dotted_ends(entity.id.replace(":", "."))
    return keys - {entity.label, entity.id}


def _dotted_ends(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[n:]) for n in range(len(parts))}


def _grams(text: str) -> set[str]:
    padded = f" {text.lower()} "
    return {padded[n : n + 3] for n in range(len(padded) - 2)}


# -- the tools


def _listing(head: str, labels: Sequence[str], none: str = "none") -> str:
    return f"{head}: {none}" if not labels else "\n".join([f"{head} ({len(labels)}):", *labels])


def _title(entity: Entity) -> str:
    at = f" at {entity.site}" if entity.path and entity.kind != "Module" else ""
    return f"{entity.label}: {entity.kind}{at}"


def _describe(graph: CodeGraph, entity: Entity) -> Answer:
    lines = [_title(entity), *(f"@{decorator}" for decorator in entity.decorators)]
    lines += [line for line in (entity.signature, entity.doc) if line]
    if entity.author:
        lines.append(f"by {entity.author}, {entity.date}")
    n = graph._index(entity)
    for predicate, relation in PREDICATES.items():
        forward, backward = graph._next(graph._out[predicate], n), graph._next(graph._in[predicate], n)
        if relation.forward == relation.backward:
            forward, backward = sorted({*forward, *backward}), []
        for word, labels in ((relation.forward, forward), (relation.backward, backward)):
            if labels:
                lines.append(f"{word} ({len(labels)}): {', '.join(labels)}")
    return [entity.label], "\n".join(lines)


def _signature(graph: CodeGraph, entity: Entity) -> Answer:
    return [entity.label], f"{_title(entity)}\n{entity.signature or 'it has no signature'}"


def _impact(graph: CodeGraph, entity: Entity) -> Answer:
    dependents = graph._dependents
    found = graph._reached(graph._index(entity), lambda n: dependents.get(n, ()))
    return found, _listing(f"a change of {entity.label} reaches", found, "no other module")


def _members(graph: CodeGraph, entity: Entity) -> Answer:
    inside = [graph._entities[n] for n, _ in graph._out["contains"].get(graph._index(entity), ())]
    lines = sorted(f"{e.short} ({e.kind} {e.label})" for e in inside)
    return sorted({e.short for e in inside}), _listing(f"members of {entity.label}", lines)


def _subclasses(graph: CodeGraph, entity: Entity) -> Answer:
    below = graph._in["inherits"]
    found = graph._reached(graph._index(entity), lambda n: [other for other, _ in below.get(n, ())])
    return found, _listing(f"classes that extend {entity.label}", found)


def _exports(graph: CodeGraph, entity: Entity) -> Answer:
    found = graph._next(graph._out["reexports"], graph._index(entity))
    return found, _listing(f"{entity.label} exports", found, "nothing")


def _is_callable(entity: Entity) -> bool:
    return entity.kind in ("Function", "Method")


def _callers(graph: CodeGraph, entity: Entity) -> Answer:
    if _is_callable(entity):
        found = graph._next(graph._in["callsSymbol"], graph._index(entity))
        return found, _listing(f"callers of {entity.label}", found)
    found = graph._next(graph._in["calls"], graph._module_of(entity))
    return found, _listing(f"modules that call into {entity.path or entity.label}", found)


def _callees(graph: CodeGraph, entity: Entity) -> Answer:
    if _is_callable(entity):
        found = graph._next(graph._out["callsSymbol"], graph._index(entity))
        return found, _listing(f"{entity.label} calls", found, "nothing in this graph")
    found = graph._next(graph._out["calls"], graph._module_of(entity))
    return found, _listing(f"{entity.path or entity.label} calls into", found, "no other module")


def _calls(graph: CodeGraph, entity: Entity) -> Answer:
    near = graph._out["callsSymbol"].get(graph._index(entity), ())
    near = near or graph._out["calls"].get(graph._index(entity), ())
    lines = sorted(_title(graph._entities[n]) for n, _ in near)
    return [entity.label], _listing(f"call edges out of {entity.label}", lines)


def _tests_for(graph: CodeGraph, entity: Entity) -> Answer:
    found = graph._next(graph._in["tests"], graph._module_of(entity))
    return found, _listing(f"tests that cover {entity.path or entity.label}", found)


def _history(graph: CodeGraph, entity: Entity) -> Answer:
    n = graph._index(entity)
    commits = [graph._entities[c] for p in ("touches", "touchesSymbol") for c, _ in graph._in[p].get(n, ())]
    commits.sort(key=lambda c: (c.date, c.label), reverse=True)
    lines = [f"{c.label} {c.date[:10]} {c.author}: {c.doc}" for c in commits]
    return [entity.label], _listing(f"commits that touched {entity.label}", lines)


def _cochanges(graph: CodeGraph, entity: Entity) -> Answer:
    module = graph._module_of(entity)
    weights: dict[str, int] = {}
    if module is not None:
        for index in (graph._out["cochange"], graph._in["cochange"]):
            for n, weight in index.get(module, ()):
                label = graph._entities[n].label
                weights[label] = max(weight, weights.get(label, 0))
    found = sorted(weights)
    lines = [f"{label} ({weights[label]} times)" for label in sorted(found, key=lambda x: (-weights[x], x))]
    return found, _listing(f"modules that change together with {entity.path or entity.label}", lines)


def _snippet(graph: CodeGraph, entity: Entity) -> Answer:
    if graph.root is None or not entity.path:
        return [entity.label], f"{_title(entity)}\nthe source is not at hand"
    try:
        text = (graph.root / entity.path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        return [entity.label], f"{_title(entity)}\nthe source cannot be read ({error.strerror})"
    first, last = entity.lines or (1, len(text))
    return [entity.label], "\n".join([_title(entity), *text[first - 1 : last]])


Dispatch = Callable[[CodeGraph, Mapping[str, Any]], Ran]


def _text(input: Mapping[str, Any], key: str) -> str:
    value = input.get(key)
    return "" if value is None else str(value).strip()


def _loaded(graph: CodeGraph, fact: str | None, pred: str = "cap:graph-loaded") -> Fact:
    """Whether the facts that a tool reads are there; the value names those that are not."""
    return Fact(pred, True) if fact is None or fact in graph.has else Fact(pred, False, None, fact)


def _lacks(graph: CodeGraph, name: str, fact: str) -> str:
    return f"{name} cannot run: the graph {graph.name} holds no {FACTS[fact]}"


def _on_entity(name: str, key: str, kind: str, fact: str | None, read: Read) -> Dispatch:
    """A tool about one entity: the argument that names it, its kind, the facts it needs, and what it reads."""

    def dispatch(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
        term = _text(input, key)
        bound = graph.bind(term, kind) if term else f"{key} is required"
        loaded = _loaded(graph, fact)
        facts = (loaded, Fact("cap:resolves", type(bound) is Entity, key, term))
        if not term or (loaded.ok and type(bound) is str):
            return Ran(None, "", facts, error=str(bound))
        if fact is not None and not loaded.ok:
            return Ran(None, "", facts, error=_lacks(graph, name, fact))
        assert isinstance(bound, Entity)
        answer = graph._answers.get((name, bound.id))
        if answer is None:
            answer = graph._answers[name, bound.id] = read(graph, bound)
        return Ran(list(answer[0]), answer[1], facts)

    return dispatch


def _run_search(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
    asked = _search_terms(input)
    query, kind = asked[:2]
    facts = (_loaded(graph, None), Fact("cap:any-present", bool(query or kind), None, ["query", "kind"]))
    if not query and not kind:
        return Ran(None, "", facts, error="query is required, or kind")
    if kind and kind.lower() not in _FOLDED_KINDS:
        return Ran(None, "", facts, error=f"kind: {kind!r} is no kind{did_you_mean(kind, KINDS)}")
    if not graph.enforce_kinds and query:
        bound = graph.bind(query, "")
        found = [bound.label] if isinstance(bound, Entity) else []
        return Ran(found, _listing(f'"{query}"', found, "nothing matches"), facts)
    answer = graph._searches.get(asked)
    if answer is None:
        if len(graph._searches) > 4096:
            graph._searches.clear()
        answer = graph._searches[asked] = _search(graph, *asked)
    return Ran(list(answer[0]), answer[1], facts)


_FOLDED_KINDS = {word.lower(): word for word in KINDS}


def _search_terms(input: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return _text(input, "query"), _text(input, "kind"), _text(input, "name"), _text(input, "decorator")


def _search(graph: CodeGraph, query: str, kind: str, name: str, decorator: str) -> Answer:
    """The entities in whose label or description all words occur; of those the one that the query names, if it does."""
    words = query.lower().split()
    matches = [
        n
        for n, entity in enumerate(graph.entities)
        if (not kind or entity.kind == _FOLDED_KINDS[kind.lower()])
        and name.lower() in entity.short.lower()
        and (not decorator or any(decorator.lower() in d.lower() for d in entity.decorators))
        and all(word in f"{entity.label} {entity.doc}".lower() for word in words)
    ]
    named = set(graph._tied(query, None)).intersection(matches) if query else set()
    found = sorted({graph.entities[n].label for n in (named if len(named) == 1 else matches)})
    lines = sorted(f"{_title(graph.entities[n])} {graph.entities[n].doc}".rstrip() for n in matches)
    if len(lines) > 40:
        lines = sorted(graph.entities[n].label for n in matches)
    asked = " ".join(part for part in (kind, f'"{query}"' if query else "", name, decorator) if part)
    return found, _listing(f"matches of {asked}", lines)


def _run_untested(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
    facts = (_loaded(graph, "tests"),)
    if not facts[0].ok:
        return Ran(None, "", facts, error=_lacks(graph, "tmct_untested", "tests"))
    return Ran(list(graph._untested), _listing("modules that no test covers", graph._untested), facts)


def _run_architecture(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
    package = _text(input, "package").rstrip("/")
    facts = (_loaded(graph, None),)
    folders: dict[str, list[int]] = {}
    for label, n in sorted(graph._modules.items()):
        folders.setdefault(label.rpartition("/")[0], []).append(n)
    if package:
        wanted = package if "/" in package or "." not in package else package.replace(".", "/")
        inside = {f: m for f, m in folders.items() if f == wanted or f"/{f}/".find(f"/{wanted}/") >= 0}
        if not inside:
            near = did_you_mean(package, folders)
            return Ran(None, "", facts, error=f'no package is called "{package}"{near}')
        folders = inside
    importers = {n: len(graph._in["imports"].get(n, ())) for modules in folders.values() for n in modules}
    hubs = sorted(importers, key=lambda n: (-importers[n], graph.entities[n].label))[:8]
    packages = [f"{folder or '.'} ({len(modules)} modules)" for folder, modules in folders.items()]
    most = [f"{graph.entities[n].label} ({importers[n]} importers)" for n in hubs if importers[n]]
    text = "\n".join(
        [_listing(f"packages of {package or graph.name}", packages), _listing("most imported", most)]
    )
    return Ran([], text, facts, empty=False)


def _on_term(
    name: str, key: str, fact: str, graph: CodeGraph, term: str
) -> Ran | tuple[str, tuple[Fact, ...]]:
    """The remembered term and the preconditions that held, or how the call failed."""
    found = graph._terms.get(term.lower())
    loaded = _loaded(graph, fact, "cap:memory-facts")
    facts = (loaded, Fact("cap:resolves", found is not None, key, term))
    if not term:
        return Ran(None, "", facts, error=f"{key} is required")
    if not loaded.ok:
        return Ran(None, "", facts, error=f'{_lacks(graph, name, fact)}, so none about "{term}"')
    if found is None:
        near = did_you_mean(term, graph._concepts, most=0)
        return Ran(None, "", facts, error=f'no remembered fact is about "{term}"{near}')
    return found, facts


def _run_related(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
    found = _on_term("tmct_related", "term", "memory", graph, _text(input, "term"))
    if isinstance(found, Ran):
        return found
    term, facts = found
    concept, synonyms, related = graph.related_to(term)
    text = f"{term} (concept {concept})\nsynonyms: {', '.join(synonyms) or 'none'}"
    return Ran([], f"{text}\nrelated: {', '.join(related) or 'none'}", facts, empty=False)


def _run_sprite(graph: CodeGraph, input: Mapping[str, Any]) -> Ran:
    term, expression, size = (_text(input, key) for key in ("class", "expression", "size"))
    found = _on_term("tmct_sprite", "class", "sprites", graph, term)
    ran = found if isinstance(found, Ran) else Ran(None, "", found[1], error=f'no sprite shows "{term}"')
    asked = "".join(f", {word}" for word in (expression, size) if word)
    return msgspec.structs.replace(ran, error=f"{ran.error}{asked}")


DISPATCH: dict[str, Dispatch] = {
    "tmct_search": _run_search,
    "tmct_describe": _on_entity("tmct_describe", "symbol", "seon:CodeEntity", None, _describe),
    "tmct_signature": _on_entity("tmct_signature", "symbol", "seon:CodeEntity", None, _signature),
    "tmct_impact": _on_entity("tmct_impact", "module", "seon:CodeEntity", "imports", _impact),
    "tmct_members": _on_entity("tmct_members", "class", "seon:ClassType", None, _members),
    "tmct_subclasses": _on_entity("tmct_subclasses", "class", "seon:ClassType", "inheritance", _subclasses),
    "tmct_exports": _on_entity("tmct_exports", "module", "mgx:Module", "exports", _exports),
    "tmct_callers": _on_entity("tmct_callers", "symbol", "seon:CodeEntity", "calls", _callers),
    "tmct_callees": _on_entity("tmct_callees", "symbol", "seon:CodeEntity", "calls", _callees),
    "tmct_calls": _on_entity("tmct_calls", "symbol", "seon:CodeEntity", "calls", _calls),
    "tmct_tests_for": _on_entity("tmct_tests_for", "symbol", "seon:CodeEntity", "tests", _tests_for),
    "tmct_untested": _run_untested,
    "tmct_history": _on_entity("tmct_history", "symbol", "seon:CodeEntity", "history", _history),
    "tmct_cochanges": _on_entity("tmct_cochanges", "symbol", "seon:CodeEntity", "cochange", _cochanges),
    "tmct_architecture": _run_architecture,
    "tmct_related": _run_related,
    "tmct_sprite": _run_sprite,
    "tmct_snippet": _on_entity("tmct_snippet", "symbol", "seon:CodeEntity", None, _snippet),
}
"""Every tool that a graph really runs: the registered ones, and `tmct_snippet`, which no agent may call."""
