"""A code graph from the source of an installed Python package, by the standard library's parser alone.

The package is neither imported nor run: only its files are read. What is found is what can be told from the text:

- entities: modules, top-level classes, functions and global variables (also under `if`, `try`, `with` and loops), their
  methods, nested classes and attributes (class-level names, and what `__init__` sets on its first argument). Of several
  definitions of one name the first gives the entity. Functions inside functions belong to the function around them.
- labels: a module is called by its path from the folder that holds the package (`pkg/sub/mod.py`), a symbol by its
  name within its module (`Widget`, `Widget.open`). Where several modules define a top-level name, the one module that is
  no test keeps the short label; the others (all of them, when several are no tests) put the module's stem in front
  (`mod.Widget`, with the folder's name for an `__init__.py`), or its whole dotted name where stems are shared too.
- ids: `pkg.sub.mod` for a module, `pkg.sub.mod:Widget.open` for a symbol.
- imports: between modules of the package, wherever the statement stands. `from x import y` imports the module `x.y`
  when y is one, else `x`.
- inherits: base classes of the package, found through imports and re-exports.
- reexports: what `__all__` names, where it is a literal; in an `__init__.py` without one, the public names it imports.
- callsSymbol: calls inside a function or method whose target is certain: a name of the module or of an internal import,
  an attribute of an imported module or of a class, a method of the first argument (`self`, `cls`) or of `super()`
  within the class and its internal bases; calling a class leads to the class. A name that the function binds itself is
  never certain.
- calls: the same between modules, and from calls at the top level of a module or of a class too.
- tests: a test module (by its path) imports a module of the package, or a name that the module defines.

Commits, modules that change together, remembered terms and sprites are not known.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.worlds.graphfile import Edge, Entity, Graph, is_test_path

_Def = ast.FunctionDef | ast.AsyncFunctionDef
_Block = ast.If | ast.Try | ast.TryStar | ast.With | ast.AsyncWith | ast.For | ast.AsyncFor | ast.While
_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)
Target = tuple[str, str]
"""A module's id and the name of a symbol in it; the empty name is the module itself."""


@dataclass(slots=True)
class _Symbol:
    """One named thing in a module. `parts` are its definitions: more than one for overloads and property setters."""

    name: str
    kind: str
    lines: tuple[int, int]
    parts: list[ast.stmt]


@dataclass(slots=True)
class _Import:
    """`name` is bound to `module`, or to `attribute` of it; `name` is * for everything public.

    `named` is the module that the statement names, where that is another: `a.b` of `import a.b`, which binds `a`.
    """

    name: str
    module: str
    attribute: str = ""
    named: str = ""


@dataclass(slots=True)
class _Module:
    id: str
    path: str
    tree: ast.Module
    lines: int
    newlines: int
    is_package: bool
    symbols: dict[str, _Symbol] = field(default_factory=dict)
    imports: dict[str, _Import] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    imported: list[_Import] = field(default_factory=list)
    exported: list[str] | None = None


def build(name: str) -> tuple[Graph, Path]:
    """The graph of the installed package or module `name`, and the folder that its paths start from.

    A file that cannot be parsed is left out and named in the graph's notes. Raises LabError when there is no such package
    or no Python source of it.
    """
    files = _files(name)
    modules: dict[str, _Module] = {}
    notes = []
    for path, file in sorted(files.items()):
        try:
            module = _read(file, path)
        except (SyntaxError, ValueError, RecursionError) as error:
            notes.append(f"{path} cannot be parsed and is left out: {_reason(error)}")
            continue
        if module.id in modules:
            notes.append(f"{modules[module.id].path} is hidden by {path} and is left out")
        modules[module.id] = module
    if not modules:
        raise LabError(f"no file of the package {name!r} can be parsed")
    lines = sum(module.newlines for module in modules.values())
    notes.insert(0, f"{lines} lines in {len(modules)} files")
    version, licence = _distribution(name)
    package = _Package(modules)
    has = ["calls", "exports", "imports", "inheritance"]
    if any(is_test_path(module.path) for module in modules.values()):
        has.append("tests")
    graph = Graph(
        name,
        tuple(package.entities()),
        package.edges(),
        has=tuple(has),
        version=version,
        licence=licence,
        source=f"the source of the installed package {name}",
        notes=tuple(notes),
    )
    first = next(iter(files))
    return graph, files[first].parents[first.count("/")]


def _reason(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _files(name: str) -> dict[str, Path]:
    """The Python files of a package, by their paths from the folder that holds it."""
    if not name.isidentifier():
        raise LabError(f"{name!r} is no name of a top-level Python package")
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:
        spec = None
    if spec is None:
        raise LabError(f"no Python package {name!r} is installed{did_you_mean(name, _installed(), most=0)}")
    files: dict[str, Path] = {}
    if spec.submodule_search_locations is not None:
        for folder in map(Path, reversed(spec.submodule_search_locations)):
            for file in folder.rglob("*.py"):
                parts = file.relative_to(folder).parts
                if file.is_file() and not any(part.startswith(".") for part in parts):
                    files["/".join([name, *parts])] = file
    elif spec.origin is not None and spec.origin.endswith(".py"):
        files[f"{name}.py"] = Path(spec.origin)
    if not files:
        raise LabError(f"the package {name!r} is installed without Python source")
    return files


def _installed() -> Iterator[str]:
    for distribution in importlib.metadata.distributions():
        for file in distribution.files or ():
            top = file.parts[0]
            if top.isidentifier() and len(file.parts) > 1:
                yield top
            elif len(file.parts) == 1 and top.endswith(".py"):
                yield top[:-3]


def _distribution(name: str) -> tuple[str, str]:
    """Version and licence of the distribution that a package comes with; empty where unknown."""
    found = importlib.metadata.packages_distributions().get(name)
    if not found:
        return "", ""
    meta = importlib.metadata.metadata(found[0])
    texts = [*meta.get_all("License-Expression", []), *meta.get_all("License", [])]
    trove = [c for c in meta.get_all("Classifier", []) if c.startswith("License ::")]
    known = [*(text for text in texts if "\n" not in text), *(c.rpartition(" :: ")[2] for c in trove)]
    return importlib.metadata.version(found[0]), next((text.strip() for text in known if text.strip()), "")


# -- one module


def _read(file: Path, path: str) -> _Module:
    data = file.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(data, filename=path)
    parts = path.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__" and len(parts) > 1
    id_ = ".".join(parts[:-1] if is_package else parts)
    newlines = data.count(b"\n")
    module = _Module(id_, path, tree, newlines + (data[-1:] not in (b"", b"\n")), newlines, is_package)
    _define(module.symbols, tree.body, "", "GlobalVariable")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module.imported += _imports(node, module)
    for statement in _flat(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for one in _imports(statement, module):
                if one.name == "*":
                    module.stars.append(one.module)
                else:
                    module.imports[one.name] = one
        elif (names := _literal_all(statement)) is not None:
            added = isinstance(statement, ast.AugAssign)
            module.exported = [*(module.exported or ()), *names] if added else names
    return module


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those of its blocks (`if`, `try`, ...) too."""
    for statement in body:
        yield statement
        if isinstance(statement, _Block):
            for inner in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(statement, inner, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _flat(handler.body)


def _define(symbols: dict[str, _Symbol], body: list[ast.stmt], inside: str, variable: str) -> None:
    """Enter what `body` defines: at the top of a module, or in the class whose name with a dot is `inside`."""

    def enter(name: str, kind: str, statement: ast.stmt) -> _Symbol:
        symbol = symbols.get(inside + name)
        if symbol is None:
            first = statement.lineno
            if isinstance(statement, ast.ClassDef | _Def):
                first = min([first, *(decorator.lineno for decorator in statement.decorator_list)])
            symbol = _Symbol(inside + name, kind, (first, statement.end_lineno or first), [statement])
            symbols[inside + name] = symbol
        elif symbol.kind == kind:
            symbol.parts.append(statement)
        return symbol

    for statement in _flat(body):
        if isinstance(statement, _Def):
            enter(statement.name, "Method" if inside else "Function", statement)
            if inside and statement.name == "__init__":
                for name, assignment in _set_on_self(statement):
                    enter(name, variable, assignment)
        elif isinstance(statement, ast.ClassDef):
            symbol = enter(statement.name, "Class", statement)
            if symbol.parts == [statement]:
                _define(symbols, statement.body, f"{inside}{statement.name}.", "Attribute")
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for name in _names(target):
                    if name != "__all__":
                        enter(name, variable, statement)


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


def _set_on_self(function: _Def) -> Iterator[tuple[str, ast.stmt]]:
    first = _first_argument(function)
    for statement in _flat(function.body):
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == first
                ):
                    yield target.attr, statement


def _first_argument(function: _Def) -> str | None:
    arguments = [*function.args.posonlyargs, *function.args.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
    return arguments[0].arg if arguments and not static else None


def _imports(node: ast.Import | ast.ImportFrom, module: _Module) -> Iterator[_Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield _Import(alias.asname, alias.name) if alias.asname else _Import(top, top, named=alias.name)
        return
    base = node.module or ""
    if node.level:
        parts = module.id.split(".") if module.is_package else module.id.split(".")[:-1]
        if node.level - 1 > len(parts) or not parts:
            return
        parts = parts[: len(parts) - (node.level - 1)]
        base = ".".join([*parts, *filter(None, [base])])
    for alias in node.names:
        yield _Import(alias.asname or alias.name, base, "" if alias.name == "*" else alias.name)


def _literal_all(statement: ast.stmt) -> list[str] | None:
    """The names in `__all__ = [...]` or `__all__ += [...]`; None when the statement is another, or not literal."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
        value: ast.expr | None = statement.value
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        target, value = statement.target, statement.value
    else:
        return None
    if not (
        isinstance(target, ast.Name) and target.id == "__all__" and isinstance(value, ast.List | ast.Tuple)
    ):
        return None
    texts = [element.value for element in value.elts if isinstance(element, ast.Constant)]
    return [text for text in texts if isinstance(text, str)]


# -- all modules together


class _Package:
    """The modules of a package, and what a name in one of them leads to."""

    def __init__(self, modules: dict[str, _Module]) -> None:
        self.modules = modules
        self.labels = self._labels()
        self._bases: dict[Target, list[Target]] = {}

    def _labels(self) -> dict[Target, str]:
        """The label of every symbol, by the rule of this module's docstring."""
        owners: dict[str, list[_Module]] = {}
        for module in self.modules.values():
            for name in module.symbols:
                if "." not in name:
                    owners.setdefault(name, []).append(module)
        stems = Counter(_stem(module) for module in self.modules.values())
        prefix: dict[Target, str] = {}
        for name, found in owners.items():
            own = [module for module in found if not is_test_path(module.path)] or found
            for module in found:
                stem = _stem(module) if stems[_stem(module)] == 1 else module.id
                prefix[module.id, name] = "" if own == [module] else f"{stem}."
        labels: dict[Target, str] = {}
        for module in self.modules.values():
            for name in module.symbols:
                labels[module.id, name] = prefix[module.id, name.partition(".")[0]] + name
        # `stem.Class` of one module may meet `Class.Inner` of another: then both are called by their ids.
        shared = {label for label, count in Counter(labels.values()).items() if count > 1}
        return {t: _id(t) if label in shared else label for t, label in labels.items()}

    # what a name leads to

    def look_up(self, module: str, name: str, seen: frozenset[Target] = frozenset()) -> Target | None:
        """The symbol or module of the package that `name` means at the top of `module`, or None."""
        here = self.modules.get(module)
        if here is None or (module, name) in seen:
            return None
        seen |= {(module, name)}
        if name in here.symbols:
            return module, name
        if name in here.imports:
            return self._imported(here.imports[name], seen)
        for star in here.stars:
            if star in self.modules and self._offers(star, name):
                found = self.look_up(star, name, seen)
                if found is not None:
                    return found
        inside = f"{module}.{name}"
        return (inside, "") if here.is_package and inside in self.modules else None

    def _imported(self, one: _Import, seen: frozenset[Target] = frozenset()) -> Target | None:
        if not one.attribute:
            return (one.module, "") if one.module in self.modules else None
        found = self.look_up(one.module, one.attribute, seen)
        inside = f"{one.module}.{one.attribute}"
        return found or ((inside, "") if inside in self.modules else None)

    def _offers(self, module: str, name: str) -> bool:
        exported = self.modules[module].exported
        return name in exported if exported is not None else not name.startswith("_")

    def _attribute(self, target: Target | None, name: str) -> Target | None:
        """What `.name` of a module or a class of the package leads to."""
        if target is None:
            return None
        if not target[1]:
            return self.look_up(target[0], name)
        return self._member(target, name) if self._kind(target) == "Class" else None

    def _kind(self, target: Target) -> str:
        return self.modules[target[0]].symbols[target[1]].kind if target[1] else "Module"

    def _member(self, cls: Target, name: str, *, beyond: bool = False) -> Target | None:
        """The member `name` of a class or the nearest of its bases; of the bases alone with `beyond`."""
        for owner in self._line(cls)[beyond:]:
            if f"{owner[1]}.{name}" in self.modules[owner[0]].symbols:
                return owner[0], f"{owner[1]}.{name}"
        return None

    def _line(self, cls: Target) -> list[Target]:
        """A class and its bases, depth first and each once; near enough to the order in which Python looks."""
        line: list[Target] = []
        rest = [cls]
        while rest:
            one = rest.pop(0)
            if one not in line:
                line.append(one)
                rest = [*self.bases(one), *rest]
        return line

    def bases(self, cls: Target) -> list[Target]:
        """The base classes of a class that the package defines, in their order."""
        if cls not in self._bases:
            self._bases[cls] = []
            definition = self.modules[cls[0]].symbols[cls[1]].parts[0]
            found = []
            if isinstance(definition, ast.ClassDef):
                scope = _Scope(self, cls[0], cls[1].rpartition(".")[0])
                for base in definition.bases:
                    plain = base.value if isinstance(base, ast.Subscript) else base
                    target = scope.target(plain)
                    if target is not None and target != cls and self._kind(target) == "Class":
                        found.append(target)
            self._bases[cls] = found
        return self._bases[cls]

    # what the graph holds

    def entities(self) -> Iterator[Entity]:
        """All entities, modules first, in the order of the files."""
        for module in self.modules.values():
            doc = _first_line(ast.get_docstring(module.tree))
            yield Entity(module.path, "Module", id=module.id, path=module.path, lines=_whole(module), doc=doc)
            for name, symbol in module.symbols.items():
                part = symbol.parts[0]
                yield Entity(
                    self.labels[module.id, name],
                    symbol.kind,
                    id=f"{module.id}:{name}",
                    path=module.path,
                    lines=symbol.lines,
                    signature=_signature(part, symbol),
                    doc=_first_line(ast.get_docstring(part)) if isinstance(part, ast.ClassDef | _Def) else "",
                    decorators=_decorators(symbol.parts),
                )

    def edges(self) -> dict[str, list[Edge]]:
        """All edges by predicate, each once, sorted, as pairs of ids."""
        found: dict[str, set[tuple[Target, Target]]] = {}

        def add(predicate: str, subject: Target, object_: Target) -> None:
            if subject != object_ or predicate == "callsSymbol":
                found.setdefault(predicate, set()).add((subject, object_))

        for module in self.modules.values():
            me = (module.id, "")
            for one in module.imported:
                target = self._imported(one)
                named = self._named(one)
                if named is not None:
                    add("imports", me, (named, ""))
                if is_test_path(module.path):
                    for tested in (named, target[0] if target else None):
                        if tested is not None and not is_test_path(self.modules[tested].path):
                            add("tests", me, (tested, ""))
            for name, symbol in module.symbols.items():
                owner = name.rpartition(".")[0]
                add("contains" if owner else "defines", (module.id, owner), (module.id, name))
                if symbol.kind == "Class":
                    for base in self.bases((module.id, name)):
                        add("inherits", (module.id, name), base)
            for name in self._reexported(module):
                target = self.look_up(module.id, name)
                if target is not None:
                    add("reexports", me, target)
            for caller, callee in self._calls(module):
                if caller:
                    add("callsSymbol", (module.id, caller), callee)
                if callee[0] != module.id:
                    add("calls", me, (callee[0], ""))
        return {
            predicate: sorted((_id(subject), _id(object_)) for subject, object_ in pairs)
            for predicate, pairs in sorted(found.items())
        }

    def _named(self, one: _Import) -> str | None:
        """The module that an import statement names: `x.y` of `from x import y` when it is one, else `x`."""
        if not one.attribute:
            named = one.named or one.module
            return named if named in self.modules else None
        inside = f"{one.module}.{one.attribute}"
        if inside in self.modules and self.look_up(one.module, one.attribute) in (None, (inside, "")):
            return inside
        return one.module if one.module in self.modules else None

    def _reexported(self, module: _Module) -> list[str]:
        if module.exported is not None:
            return module.exported
        if not module.is_package:
            return []
        names = {name for name in module.imports if not name.startswith("_")}
        for star in module.stars:
            names |= self._public(star, frozenset({module.id}))
        return sorted(names)

    def _public(self, module: str, seen: frozenset[str]) -> set[str]:
        """What `from module import *` brings."""
        if module not in self.modules or module in seen:
            return set()
        here = self.modules[module]
        if here.exported is not None:
            return set(here.exported)
        names = {
            name for name in (*here.symbols, *here.imports) if not name.startswith("_") and "." not in name
        }
        return names.union(*(self._public(star, seen | {module}) for star in here.stars))

    def _calls(self, module: _Module) -> Iterator[tuple[str, Target]]:
        """The certain calls in a module: the function or method that holds the call (or ""), and its target."""
        within: dict[ast.stmt, str] = {}
        for symbol in module.symbols.values():
            if symbol.kind in ("Function", "Method"):
                within.update(dict.fromkeys(symbol.parts, symbol.name))
        for function, name in within.items():
            assert isinstance(function, _Def)
            owner = name.rpartition(".")[0]
            scope = _Scope(self, module.id, owner, function)
            for node in _inner(function):
                if isinstance(node, ast.Call):
                    target = scope.called(node.func)
                    if target is not None:
                        yield name, target
        scope = _Scope(self, module.id)
        for node in _outside(module.tree, within):
            if isinstance(node, ast.Call):
                target = scope.called(node.func)
                if target is not None:
                    yield "", target


class _Scope:
    """What names mean at one place: the top of a module, the body of a class, or a function."""

    def __init__(self, package: _Package, module: str, owner: str = "", function: _Def | None = None) -> None:
        self.package = package
        self.module = module
        self.owner = (module, owner) if owner else None
        self.first = _first_argument(function) if function is not None and owner else None
        self.bound: set[str] = set()
        self.imports: dict[str, _Import] = {}
        if function is not None:
            self._bind(function, package.modules[module])

    def _bind(self, function: _Def, module: _Module) -> None:
        outer: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                self.bound.add(node.id)
            elif isinstance(node, ast.arg):
                self.bound.add(node.arg)
            elif isinstance(node, _NAMED) and node is not function and node.name:
                self.bound.add(node.name)
            elif isinstance(node, ast.Global):
                outer.update(node.names)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.update({one.name: one for one in _imports(node, module)})
        self.bound -= outer

    def target(self, node: ast.expr) -> Target | None:
        """The symbol or module that an expression certainly means, or None."""
        if isinstance(node, ast.Name):
            if node.id in self.bound:
                return None
            if node.id in self.imports:
                return self.package._imported(self.imports[node.id])
            return self.package.look_up(self.module, node.id)
        if isinstance(node, ast.Attribute):
            value = node.value
            if self.owner is not None and isinstance(value, ast.Name) and value.id == self.first:
                return self.package._member(self.owner, node.attr)
            if self.owner is not None and _is_super(value):
                return self.package._member(self.owner, node.attr, beyond=True)
            return self.package._attribute(self.target(value), node.attr)
        return None

    def called(self, node: ast.expr) -> Target | None:
        """The function, method or class that a call certainly leads to."""
        target = self.target(node)
        if target is None or self.package._kind(target) not in ("Function", "Method", "Class"):
            return None
        return target


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and not node.args
    )


def _inner(function: _Def) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)


def _outside(tree: ast.Module, within: dict[ast.stmt, str]) -> Iterator[ast.AST]:
    """The nodes of a tree that stand in no body of a function among `within`; decorators and defaults do."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        yield node
        if isinstance(node, _Def) and node in within:
            rest += [*node.decorator_list, node.args]
        else:
            rest += ast.iter_child_nodes(node)


def _id(target: Target) -> str:
    return f"{target[0]}:{target[1]}" if target[1] else target[0]


def _stem(module: _Module) -> str:
    return module.id.rpartition(".")[2]


def _whole(module: _Module) -> tuple[int, int] | None:
    return (1, module.lines) if module.lines else None


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0].strip()


def _decorators(parts: list[ast.stmt]) -> tuple[str, ...]:
    part = parts[0]
    if not isinstance(part, ast.ClassDef | _Def):
        return ()
    return tuple(ast.unparse(decorator) for decorator in part.decorator_list)


def _signature(part: ast.stmt, symbol: _Symbol) -> str:
    short = symbol.name.rpartition(".")[2]
    if isinstance(part, _Def):
        returns = f" -> {ast.unparse(part.returns)}" if part.returns is not None else ""
        word = "async def " if isinstance(part, ast.AsyncFunctionDef) else "def "
        return f"{word}{short}({ast.unparse(part.args)}){returns}"
    if isinstance(part, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in part.bases)
        return f"class {short}({bases})" if bases else f"class {short}"
    return ""
