"""Code graphs as files: what a graph holds, the compact format, and the graph file of the original TOOL ladder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct

from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean
from agentbench_lab.values import a_kind

FORMAT = "agentbench-lab/codegraph/v1"
CODE_KINDS = ("Module", "Class", "Function", "Method", "Attribute", "GlobalVariable")
KINDS = (*CODE_KINDS, "Commit")

_CODE = frozenset(CODE_KINDS)
_MODULE = frozenset({"Module"})
_CLASS = frozenset({"Class"})
KINDS_OF = {"seon:CodeEntity": _CODE, "mgx:Module": _MODULE, "seon:ClassType": _CLASS}
"""The entity kinds that a parameter's declared kind admits."""

FACTS = {
    "imports": "imports between modules",
    "calls": "calls",
    "inheritance": "base classes",
    "exports": "re-exports",
    "tests": "tests",
    "history": "commits",
    "cochange": "modules that change together",
    "memory": "facts about terms",
    "sprites": "sprites",
}
"""What a graph may know beyond its entities, and the words for it: a graph says in `has` which of these it holds."""


class _Relation(Struct, frozen=True):
    fact: str | None
    subjects: frozenset[str]
    objects: frozenset[str]
    forward: str
    backward: str


PREDICATES = {
    "imports": _Relation("imports", _MODULE, _MODULE, "imports", "imported by"),
    "calls": _Relation("calls", _MODULE, _MODULE, "calls into", "called from"),
    "callsSymbol": _Relation(
        "calls",
        frozenset({"Function", "Method"}),
        frozenset({"Function", "Method", "Class"}),
        "calls",
        "called by",
    ),
    "tests": _Relation("tests", _MODULE, _MODULE, "tests", "tested by"),
    "defines": _Relation(
        None, _MODULE, frozenset({"Class", "Function", "GlobalVariable"}), "defines", "defined in"
    ),
    "contains": _Relation(None, _CLASS, frozenset({"Method", "Attribute", "Class"}), "contains", "member of"),
    "inherits": _Relation("inheritance", _CLASS, _CLASS, "extends", "extended by"),
    "reexports": _Relation("exports", _MODULE, _CODE, "re-exports", "re-exported by"),
    "touches": _Relation("history", frozenset({"Commit"}), _MODULE, "touches", "touched by"),
    "touchesSymbol": _Relation("history", frozenset({"Commit"}), _CODE - _MODULE, "touches", "touched by"),
    "cochange": _Relation("cochange", _MODULE, _MODULE, "changes with", "changes with"),
}
"""The edges of a graph: the fact they belong to, the kinds at both ends, and how a text calls them."""

_TEST_PATH = re.compile(r"(^|[/._-])(tests?|specs?|__tests__)([/._-]|$)|(^|/)conftest\.py$")
_SITE = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")


def is_test_path(path: str) -> bool:
    """Whether a file is a test by its path: a part of it is test, tests, spec or specs (`b.test.mjs`, `test_b.py`)."""
    return _TEST_PATH.search(path.lower()) is not None


class Entity(Struct, frozen=True, omit_defaults=True):
    """One thing in the code: its label (what tools take and give), kind, where it stands, and what is known of it.

    `id` is another name that tools take, the label when empty. `lines` are the first and last line in `path`, from 1.
    `mentions` counts how often the graph's source mentions it; it only breaks ties of the original's loose binding.
    """

    label: str
    kind: str
    id: str = ""
    path: str = ""
    lines: tuple[int, int] | None = None
    signature: str = ""
    doc: str = ""
    decorators: tuple[str, ...] = ()
    author: str = ""
    date: str = ""
    mentions: int = 0

    @property
    def short(self) -> str:
        """The name without what it is a member of: `render` of `Widget.render`. A module keeps its path."""
        return self.label if self.kind == "Module" else self.label.rpartition(".")[2]

    @property
    def site(self) -> str:
        """`path:first-last`, or what of it is known."""
        if self.lines is None:
            return self.path
        first, last = self.lines
        return f"{self.path}:{first}" if first == last else f"{self.path}:{first}-{last}"


Edge = tuple[str, str] | tuple[str, str, int]


class Graph(Struct, frozen=True):
    """What a graph file holds. `edges` are, by predicate, pairs of entity ids, with a weight where it counts (cochange).

    `has` lists the facts that the graph knows (see FACTS); None is found out from the edges. `memory` are facts about
    everyday terms: (term, "synonym" | "relatedTo" | "similarTo", term). `notes` say what a reader should know of it.
    """

    name: str
    entities: tuple[Entity, ...]
    edges: Mapping[str, Sequence[Edge]]
    has: tuple[str, ...] | None = None
    memory: tuple[tuple[str, str, str], ...] = ()
    version: str = ""
    licence: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()


def remembered(fact: Sequence[str]) -> tuple[str, str, str]:
    """A fact about terms, its relation without the prefix that the original ladder writes."""
    subject, relation, object_ = fact
    return subject, relation.removeprefix("mgx:"), object_


def read_graph(data: bytes, where: str | Path) -> Graph:
    """Read a graph file of either format; `where` is its path, for messages and for the name of an original's graph.

    Raises LabError with the path and everything that is wrong with the file, a line each.
    """
    try:
        raw = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise LabError(f"{where}: not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise LabError(f"{where}: a graph file holds a JSON object")
    if "format" in raw and raw["format"] != FORMAT:
        near = did_you_mean(str(raw["format"]), [FORMAT])
        raise LabError(f"{where}: the format {raw['format']!r} is not known{near}")
    reader = _Reader(raw)
    if "format" in raw:
        graph = reader.compact()
    elif isinstance(raw.get("individuals"), list) and isinstance(raw.get("objectProperties"), list):
        graph = reader.original(Path(where).stem)
    else:
        keys = ("format", "individuals", "objectProperties")
        near = did_you_mean(next((key for key in raw if key not in keys), ""), keys, most=0)
        wanted = '"format", or "individuals" and "objectProperties"'
        raise LabError(f"{where}: no code graph: it has to have {wanted}{near}")
    if reader.problems:
        raise ProblemsError([Problem(str(where), 0, message) for message in reader.problems])
    return graph


def write_graph(graph: Graph) -> bytes:
    """The graph in the compact format: JSON, an entity or the edges out of one entity a line, all sorted.

    The same graph gives the same bytes. Raises LabError when two entities share a label, by which edges are written.
    """
    label = {entity.id or entity.label: entity.label for entity in graph.entities}
    shared = [name for name, count in Counter(label.values()).items() if count > 1]
    if shared:
        raise LabError(f"{graph.name}: two entities have the label {min(shared)!r}")
    head = {
        "format": FORMAT,
        "name": graph.name,
        "version": graph.version,
        "licence": graph.licence,
        "source": graph.source,
        "has": sorted(graph.has or ()),
        "notes": graph.notes,
    }
    tables = []
    for predicate in PREDICATES:
        out: dict[str, dict[str, int]] = {}
        for edge in graph.edges.get(predicate, ()):
            out.setdefault(label[edge[0]], {})[label[edge[1]]] = edge[2] if len(edge) == 3 else 1
        rows = []
        for subject in sorted(out):
            ends = dict(sorted(out[subject].items()))
            rows.append(f"{_json(subject)}: {_json(ends if predicate == 'cochange' else list(ends))}")
        if rows:
            tables.append(f"{_json(predicate)}: {{{_block(rows, '      ', '    ')}}}")
    entities = [_json(_as_written(entity)) for entity in sorted(graph.entities, key=_in_file_order)]
    lines = [f"  {_json(key)}: {_json(value)}," for key, value in head.items()]
    lines.append(f'  "entities": [{_block(entities)}],')
    lines.append(f'  "edges": {{{_block(tables)}}},')
    lines.append(f'  "memory": [{_block([_json(fact) for fact in sorted(graph.memory)])}]')
    return ("{\n" + "\n".join(lines) + "\n}\n").encode()


def _json(value: Any) -> str:
    """JSON on one line, with a blank after commas and colons."""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _block(lines: Sequence[str], indent: str = "    ", end: str = "  ") -> str:
    rows = ",\n".join(f"{indent}{line}" for line in lines)
    return f"\n{rows}\n{end}" if rows else ""


def _in_file_order(entity: Entity) -> tuple[Any, ...]:
    return (
        entity.kind == "Commit",
        entity.path or entity.label,
        entity.kind != "Module",
        entity.lines or (0, 0),
        entity.label,
    )


def _as_written(entity: Entity) -> Entity:
    """Without what the label says already."""
    return msgspec.structs.replace(
        entity,
        id="" if entity.id == entity.label else entity.id,
        path="" if entity.kind == "Module" else entity.path,
    )


_TOP = ("format", "name", "version", "licence", "source", "has", "notes", "entities", "edges", "memory")
_REQUIRED = ("name", "has", "entities", "edges")
_MEMORY = ("synonym", "relatedTo", "similarTo")


class _Reader:
    """Reads one decoded graph file of either format and notes all that is wrong with it."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.problems: list[str] = []

    def compact(self) -> Graph:
        raw = self.raw
        for key in raw:
            if key not in _TOP:
                self.problems.append(f"unknown key {key!r}{did_you_mean(key, _TOP)}")
        self.problems += [f"{key} is missing" for key in _REQUIRED if key not in raw]
        texts = {key: self._typed(key, str, "") for key in ("name", "version", "licence", "source")}
        notes = [note for note in self._typed("notes", list, []) if isinstance(note, str)]
        entities = list(self._entities(self._typed("entities", list, [])))
        kinds = {entity.label: entity.kind for entity in entities}
        for what in ("label", "id"):
            names = Counter(name for e in entities if (name := getattr(e, what)))
            self.problems += [f"two entities have the {what} {name!r}" for name, n in names.items() if n > 1]
        by_label = {entity.label: entity.id or entity.label for entity in entities}
        edges: dict[str, list[Edge]] = {}
        for predicate, table in self._typed("edges", dict, {}).items():
            edges[predicate] = [
                (by_label[subject], by_label[object_], weight)
                for subject, object_, weight in self._edges(predicate, table, kinds)
            ]
        memory = [fact for fact in self._typed("memory", list, []) if self._is_memory(fact)]
        has = [word for word in self._typed("has", list, []) if isinstance(word, str)]
        for word in has:
            if word not in FACTS:
                self.problems.append(f"has: {word!r} is no fact{did_you_mean(word, FACTS)}")
        held = {PREDICATES[p].fact for p, pairs in edges.items() if pairs and p in PREDICATES}
        held |= {"memory"} if memory else set()
        for fact in sorted(filter(None, held - set(has))):
            self.problems.append(f"has: {fact!r} is not listed, but the file holds {FACTS[fact]}")
        return Graph(
            entities=tuple(entities),
            edges=edges,
            has=tuple(has),
            memory=tuple(map(remembered, memory)),
            notes=tuple(notes),
            **texts,
        )

    def _typed(self, key: str, kind: type, default: Any) -> Any:
        value = self.raw.get(key, default)
        if isinstance(value, kind):
            return value
        word = "text" if kind is str else "a list" if kind is list else "an object"
        self.problems.append(f"{key} must be {word}")
        return default

    def _entities(self, rows: list[Any]) -> Iterator[Entity]:
        fields = Entity.__struct_fields__
        for n, row in enumerate(rows):
            where = f"entities[{n}]"
            if isinstance(row, dict):
                where += f" ({row.get('label')})" if isinstance(row.get("label"), str) else ""
                for key in row:
                    if key not in fields:
                        self.problems.append(f"{where}: unknown key {key!r}{did_you_mean(key, fields)}")
            try:
                entity = msgspec.convert(row, Entity)
            except msgspec.ValidationError as error:
                self.problems.append(f"{where}: {error}")
                continue
            if entity.kind not in KINDS:
                self.problems.append(f"{where}: {entity.kind!r} is no kind{did_you_mean(entity.kind, KINDS)}")
            if not entity.label.strip():
                self.problems.append(f"{where}: the label is empty")
            if entity.kind == "Module":
                entity = msgspec.structs.replace(entity, path=entity.label)
            yield entity

    def _edges(self, predicate: str, table: Any, kinds: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
        if predicate not in PREDICATES:
            self.problems.append(
                f"edges: no edge is called {predicate!r}{did_you_mean(predicate, PREDICATES)}"
            )
            return
        if not isinstance(table, dict):
            self.problems.append(f"edges.{predicate} must be an object")
            return
        relation = PREDICATES[predicate]
        for subject, ends in table.items():
            weights = ends if isinstance(ends, dict) else dict.fromkeys(ends, 1) if _is_texts(ends) else None
            if weights is None or not all(type(weight) is int for weight in weights.values()):
                self.problems.append(
                    f"edges.{predicate}[{subject!r}] must be a list of labels, or labels with weights"
                )
                continue
            sound = self._end(predicate, subject, relation.subjects, kinds)
            for object_, weight in weights.items():
                if self._end(predicate, object_, relation.objects, kinds) and sound:
                    yield subject, object_, weight

    def _end(self, predicate: str, label: str, admitted: frozenset[str], kinds: Mapping[str, str]) -> bool:
        if label not in kinds:
            self.problems.append(
                f"edges.{predicate}: {label!r} is no entity{did_you_mean(label, kinds, most=0)}"
            )
            return False
        if kinds[label] not in admitted:
            wanted = " or ".join(kind for kind in KINDS if kind in admitted)
            self.problems.append(f"edges.{predicate}: {label!r} is {a_kind(kinds[label])}, not {wanted}")
            return False
        return True

    def _is_memory(self, fact: Any) -> bool:
        if not _is_texts(fact) or len(fact) != 3:
            self.problems.append(f"memory: {fact!r} is not [term, relation, term]")
            return False
        if fact[1].removeprefix("mgx:") not in _MEMORY:
            self.problems.append(f"memory: {fact[1]!r} is no relation{did_you_mean(fact[1], _MEMORY)}")
            return False
        return True

    def original(self, name: str) -> Graph:
        entities = []
        schema = set()
        for n, row in enumerate(self.raw["individuals"]):
            if not isinstance(row, dict) or not _is_texts([row.get(k) for k in ("id", "label", "class")]):
                self.problems.append(f"individuals[{n}]: id, label and class must be text")
            elif row["class"] in ("SchemaClass", "SchemaPredicate"):
                schema.add(row["id"])
            else:
                entities.append(_individual(row))
        known = {entity.id for entity in entities}
        edges: dict[str, list[Edge]] = {}
        for n, table in enumerate(self.raw["objectProperties"]):
            predicate = table.get("predicate") if isinstance(table, dict) else None
            rows = table.get("examples") if isinstance(table, dict) else None
            if not isinstance(predicate, str) or not isinstance(rows, list):
                self.problems.append(f"objectProperties[{n}]: predicate must be text, examples a list")
            elif predicate in PREDICATES:
                where = f"objectProperties[{n}] ({predicate})"
                edges.setdefault(predicate, []).extend(self._examples(where, rows, known, schema))
        return Graph(name, tuple(entities), edges)

    def _examples(
        self, where: str, rows: list[Any], known: set[str], schema: set[str]
    ) -> Iterator[tuple[str, str, int]]:
        for row in rows:
            ends = [row.get("subject"), row.get("object")] if isinstance(row, dict) else [None]
            if not _is_texts(ends):
                self.problems.append(f"{where}: subject and object must be ids")
            elif not schema.intersection(ends):
                lost = [end for end in ends if end not in known]
                for end in lost:
                    self.problems.append(
                        f"{where}: {end!r} is no individual{did_you_mean(end, known, most=0)}"
                    )
                weight = row.get("weight", 1)
                if not lost:
                    yield ends[0], ends[1], weight if type(weight) is int else 1


def _is_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _individual(row: Mapping[str, Any]) -> Entity:
    found = {
        a["key"]: a["value"]
        for a in _listed(row.get("attributes"))
        if isinstance(a, dict) and isinstance(a.get("key"), str) and isinstance(a.get("value"), str)
    }
    path = row["label"] if row["class"] == "Module" else ""
    lines: tuple[int, int] | None = None
    if "site" in found:
        site = _SITE.fullmatch(found["site"])
        path = site["path"] if site else found["site"]
        lines = (int(site["first"]), int(site["last"] or site["first"])) if site else None
    signature = ""
    if "params" in found or "returns" in found:
        returns = f" -> {found['returns']}" if found.get("returns") else ""
        signature = f"{row['label'].rpartition('.')[2]}({found.get('params', '')}){returns}"
    return Entity(
        row["label"],
        row["class"],
        id=row["id"],
        path=path,
        lines=lines,
        signature=signature,
        doc=found.get("doc", found.get("message", "")),
        decorators=tuple(part.strip() for part in found.get("decorators", "").split(",") if part.strip()),
        author=found.get("author", ""),
        date=found.get("date", ""),
        mentions=len(_listed(row.get("mentions"))),
    )
