"""Graphs from Python source: a small package whose graph is written down by hand, and the real one that is shipped."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.worlds.codegraph import CodeGraph

WORLDS = Path(__file__).parents[2] / "data" / "cases" / "worlds"

FILES = {
    "inn/__init__.py": '''
        """An inn."""
        from .rooms import Room, Suite as Apartment, _hidden
        from .kitchen import *
        from . import bar
        raise RuntimeError("a graph is built without running anything")
        ''',
    "inn/rooms.py": '''
        """Rooms to let.

        More about them.
        """
        from __future__ import annotations
        import functools
        from .base import Thing
        from inn.bar import serve as pour

        RATE: float = 50.0
        LOW = HIGH = 1
        if RATE:
            _hidden = 2

        class Room(Thing):
            """A room."""
            beds = 1

            def __init__(self, number: int, *, sea: bool = False) -> None:
                super().__init__()
                self.number = number
                if sea:
                    self.view = "sea"

            @property
            def price(self) -> float:
                """What a night costs.

                With breakfast.
                """
                return rate_of(self)

            @price.setter
            def price(self, value):
                self.log(value)

            class Key:
                def turn(self): ...

        class Suite(Room):
            async def clean(self, deep=False):
                self.price()
                self.beds()
                self.open()
                pour()
                unknown()

        def rate_of(room):
            def inner():
                return Suite()
            return inner() or Room.price(room)

        def shadow(pour, Room):
            pour()
            Room()
            serve = 1
            import inn.kitchen as k
            return k.cook()
        ''',
    "inn/base.py": """
        class Thing:
            def open(self): ...
            def log(self, value): ...
            @staticmethod
            def make(kind):
                return kind.open()
        """,
    "inn/bar.py": '''
        """The bar."""
        import inn.kitchen
        from inn import Room
        def serve():
            inn.kitchen.cook()
            return Room(1)
        DRINK = serve()
        class Menu: ...
        ''',
    "inn/kitchen.py": """
        from .rooms import Room
        __all__ = ["cook", "Pan"]
        __all__ += ["missing"]
        def cook(): return Menu()
        def wash(): ...
        class Pan: ...
        class Menu: ...
        """,
    "inn/broken.py": "def f(:\n",
    "inn/tests/__init__.py": "",
    "inn/tests/test_rooms.py": """
        from inn import Apartment
        from ..bar import serve
        class Room: ...
        def test_it():
            Apartment(1).clean()
            Room()
        """,
}


@pytest.fixture
def inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeGraph:
    write(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return CodeGraph.from_package("inn")


def write(folder: Path) -> None:
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8", newline="\n")


def pairs(graph: CodeGraph, predicate: str) -> list[tuple[str, str]]:
    return [(subject, object_) for subject, object_, _ in graph.edges(predicate)]


def test_entities_and_their_labels(inn: CodeGraph) -> None:
    """Short labels; of two modules' `Menu` both take their stems, of `Room` only the test's."""
    assert sorted(e.label for e in inn.entities if e.kind != "Module") == [
        "DRINK",
        "HIGH",
        "LOW",
        "Pan",
        "RATE",
        "Room",
        "Room.Key",
        "Room.Key.turn",
        "Room.__init__",
        "Room.beds",
        "Room.number",
        "Room.price",
        "Room.view",
        "Suite",
        "Suite.clean",
        "Thing",
        "Thing.log",
        "Thing.make",
        "Thing.open",
        "_hidden",
        "bar.Menu",
        "cook",
        "kitchen.Menu",
        "rate_of",
        "serve",
        "shadow",
        "test_it",
        "test_rooms.Room",
        "wash",
    ]
    assert sorted(e.label for e in inn.entities if e.kind == "Module") == sorted(
        set(FILES) - {"inn/broken.py"}
    )


def test_what_is_known_of_an_entity(inn: CodeGraph) -> None:
    room, price, init, clean = (inn.entity(x) for x in ("Room", "Room.price", "Room.__init__", "Suite.clean"))
    assert room is not None and price is not None and init is not None and clean is not None
    assert (room.kind, room.id, room.site) == ("Class", "inn.rooms:Room", "inn/rooms.py:15-38")
    assert (room.signature, room.doc) == ("class Room(Thing)", "A room.")
    assert (price.kind, price.lines, price.decorators) == ("Method", (25, 31), ("property",))
    assert price.doc == "What a night costs."
    assert init.signature == "def __init__(self, number: int, *, sea: bool=False) -> None"
    assert clean.signature == "async def clean(self, deep=False)"
    assert [inn.kind_of(x) for x in ("Room.view", "RATE", "rate_of", "inn/bar.py")] == [
        "Attribute",
        "GlobalVariable",
        "Function",
        "Module",
    ]
    module = inn.entity("inn/rooms.py")
    assert module is not None
    assert (module.id, module.doc, module.lines) == ("inn.rooms", "Rooms to let.", (1, 58))


def test_imports_lead_to_the_module_that_is_named(inn: CodeGraph) -> None:
    """`from . import bar` imports bar; `from inn import Room` imports the package that offers it."""
    assert pairs(inn, "imports") == [
        ("inn/__init__.py", "inn/bar.py"),
        ("inn/__init__.py", "inn/kitchen.py"),
        ("inn/__init__.py", "inn/rooms.py"),
        ("inn/bar.py", "inn/__init__.py"),
        ("inn/bar.py", "inn/kitchen.py"),
        ("inn/kitchen.py", "inn/rooms.py"),
        ("inn/rooms.py", "inn/bar.py"),
        ("inn/rooms.py", "inn/base.py"),
        ("inn/rooms.py", "inn/kitchen.py"),
        ("inn/tests/test_rooms.py", "inn/__init__.py"),
        ("inn/tests/test_rooms.py", "inn/bar.py"),
    ]


def test_inheritance_and_membership(inn: CodeGraph) -> None:
    assert pairs(inn, "inherits") == [("Room", "Thing"), ("Suite", "Room")]
    assert inn.run("tmct_members", {"class": "Room"}).value == [
        "Key",
        "__init__",
        "beds",
        "number",
        "price",
        "view",
    ]
    assert ("inn/rooms.py", "rate_of") in pairs(inn, "defines")
    assert ("Room.Key", "Room.Key.turn") in pairs(inn, "contains")


def test_exports_come_from_all_or_from_what_a_package_imports(inn: CodeGraph) -> None:
    """Through aliases and stars; private names and names that are nothing are left out."""
    assert inn.run("tmct_exports", {"module": "inn/kitchen.py"}).value == ["Pan", "cook"]
    assert inn.run("tmct_exports", {"module": "inn/__init__.py"}).value == [
        "Pan",
        "Room",
        "Suite",
        "cook",
        "inn/bar.py",
    ]
    assert inn.run("tmct_exports", {"module": "inn/rooms.py"}).value == []


def test_calls_are_those_that_are_certain(inn: CodeGraph) -> None:
    """self and super() through internal bases, classes, imported names and modules; nothing that is bound locally."""
    assert pairs(inn, "callsSymbol") == [
        ("Room.price", "Thing.log"),
        ("Room.price", "rate_of"),
        ("Suite.clean", "Room.price"),
        ("Suite.clean", "Thing.open"),
        ("Suite.clean", "serve"),
        ("cook", "kitchen.Menu"),
        ("rate_of", "Room.price"),
        ("rate_of", "Suite"),
        ("serve", "Room"),
        ("serve", "cook"),
        ("shadow", "cook"),
        ("test_it", "Suite"),
        ("test_it", "test_rooms.Room"),
    ]
    assert pairs(inn, "calls") == [
        ("inn/bar.py", "inn/kitchen.py"),
        ("inn/bar.py", "inn/rooms.py"),
        ("inn/rooms.py", "inn/bar.py"),
        ("inn/rooms.py", "inn/base.py"),
        ("inn/rooms.py", "inn/kitchen.py"),
        ("inn/tests/test_rooms.py", "inn/rooms.py"),
    ]


def test_a_test_covers_what_it_imports_and_where_that_is_defined(inn: CodeGraph) -> None:
    assert pairs(inn, "tests") == [
        ("inn/tests/test_rooms.py", "inn/__init__.py"),
        ("inn/tests/test_rooms.py", "inn/bar.py"),
        ("inn/tests/test_rooms.py", "inn/rooms.py"),
    ]
    assert inn.run("tmct_untested", {}).value == ["inn/base.py", "inn/kitchen.py"]


def test_a_file_that_cannot_be_parsed_is_left_out_and_named(inn: CodeGraph) -> None:
    assert inn.graph.notes[0].endswith("lines in 7 files")
    assert len(inn.graph.notes) == 2
    assert inn.graph.notes[1].startswith("inn/broken.py cannot be parsed and is left out: ")
    assert inn.graph.notes[1].endswith("(line 1)")


def test_the_package_is_never_imported(inn: CodeGraph) -> None:
    """Its __init__ raises; and nothing of it is left in sys.modules."""
    assert not any(name == "inn" or name.startswith("inn.") for name in sys.modules)


def test_dotted_names_and_ids_bind(inn: CodeGraph) -> None:
    assert inn.candidates("inn.rooms", "mgx:Module") == ["inn/rooms.py"]
    assert inn.candidates("inn.rooms.Room.price") == ["Room.price"]
    assert inn.candidates("Menu", "seon:ClassType") == ["bar.Menu", "kitchen.Menu"]
    assert inn.candidates("inn", "mgx:Module") == ["inn/__init__.py"]


def test_tools_without_facts_fail_and_the_source_is_at_hand(inn: CodeGraph) -> None:
    assert str(inn.run("tmct_history", {"symbol": "Room"}).error).endswith("the graph inn holds no commits")
    assert str(inn.run("tmct_cochanges", {"symbol": "Room"}).error).startswith("tmct_cochanges cannot run")
    assert str(inn.run("tmct_related", {"term": "room"}).error).startswith("tmct_related cannot run")
    assert str(inn.run("tmct_sprite", {"class": "room"}).error).startswith("tmct_sprite cannot run")
    assert inn.run("tmct_snippet", {"symbol": "serve"}).text.endswith(
        "def serve():\n    inn.kitchen.cook()\n    return Room(1)"
    )


def test_a_package_without_tests_does_not_say_that_all_is_untested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lonely.py").write_text("def f():\n    return f()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    graph = CodeGraph.from_package("lonely")
    assert graph.run("tmct_callers", {"symbol": "f"}).value == ["f"]
    assert (
        str(graph.run("tmct_untested", {}).error)
        == "tmct_untested cannot run: the graph lonely holds no tests"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hypothesiss", r"no Python package 'hypothesiss' is installed \(did you mean 'hypothesis'\?\)"),
        ("sys", "installed without Python source"),
        ("a.b", "is no name of a top-level Python package"),
        ("", "is no name of a top-level Python package"),
    ],
)
def test_what_is_no_package_is_said_in_one_line(name: str, said: str) -> None:
    with pytest.raises(LabError, match=said) as caught:
        CodeGraph.from_package(name)
    assert "\n" not in str(caught.value)


def test_the_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    write(tmp_path)
    code = "import sys; from agentbench_lab.worlds.codegraph import CodeGraph as G; "
    code += "sys.stdout.buffer.write(G.from_package('inn').to_bytes())"
    root = str(Path(__file__).parents[2])
    outputs = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([root, str(tmp_path)])}
        outputs.add(
            subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout
        )
    assert len(outputs) == 1
    assert len(outputs.pop()) > 5_000


def test_the_shipped_world_is_built_again_byte_for_byte() -> None:
    """From the very version of ipywidgets that its card names."""
    try:
        version = importlib.metadata.version("ipywidgets")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("ipywidgets is not installed; the world is built from its source")
    shipped = CodeGraph.load(WORLDS / "ipywidgets.json")
    if version != shipped.graph.version:
        pytest.skip(f"ipywidgets {version} is installed; the world is built from {shipped.graph.version}")
    assert CodeGraph.from_package("ipywidgets").to_bytes() == (WORLDS / "ipywidgets.json").read_bytes()
    assert int(shipped.graph.notes[0].split()[0]) >= 10_000
