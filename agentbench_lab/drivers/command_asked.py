"""What is asked for by `command:ARGV`: the text taken apart, and what is wrong with it said before the run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.worlds.mcp_client import needs_sdk

DIALECTS = ("jsonl", "spawn", "agentd")
WORDS = (*DIALECTS, "here")
KEYS = ("env", "model")
NATIVE = "{native}"
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""What a program gets of our environment, where it is set there."""
_FOR_A_SHELL = ("|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", ">&2")
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_INTERPRETERS = (
    "python",
    "pypy",
    "node",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ruby",
    "perl",
    "bun",
    "php",
    "lua",
)
"""Without the numbers of their versions."""
_SWITCH = re.compile(r"-|-[A-Za-z]|--[a-z-]*")
"""An argument that names nothing to run."""


class Program(Struct, frozen=True):
    """What was asked for: the arguments with the program's path in full, the dialect, and the options."""

    text: str
    argv: tuple[str, ...]
    dialect: str = "jsonl"
    env: tuple[str, ...] = ()
    model: str | None = None
    here: bool = False


def parse(text: str) -> Program:
    """The program that a text names. Raises LabError for options that are none and for a program that is not there."""
    options, line = "", text
    if text.startswith("[") and "]:" in text:
        options, _, line = text[1:].partition("]:")
    dialect, env, model, here = "", [], None, False
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, equals, value = option.partition("=")
        if equals and key == "env":
            if value not in os.environ:
                raise LabError(f"command: env={value}: there is no such variable")
            env.append(value)
        elif equals and key == "model":
            model = value
        elif option == "here":
            here = True
        elif option in DIALECTS:
            if dialect not in ("", option):
                raise LabError(f"command: {dialect} and {option} exclude each other")
            dialect = option
        else:
            hint = did_you_mean(key, [*WORDS, *(f"{known}=" for known in KEYS)])
            raise LabError(f"command: no option {option!r}{hint}")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise LabError(f"command: {line!r}: {str(error).lower()}") from None
    if NATIVE in line:
        raise LabError(f"command: {NATIVE} is filled in by a scaffold native:NAME, and none is given")
    if not words:
        raise LabError(
            "command: which program? For example command:./agent, or command[spawn]:python3 agent.py"
        )
    _check_shell(line, words)
    if dialect == "agentd":
        needs_sdk("command[agentd]")
    argv = (_found(words[0]), *map(_in_full, words[1:]))
    _check_script(words)
    return Program(text, argv, dialect or "jsonl", tuple(env), model or model_of(words), here)


def _check_shell(line: str, words: Sequence[str]) -> None:
    """Whether a line of these words asks for what only a shell does."""
    bare = shlex.split(_QUOTED.sub("_", line))  # the same words, so that '|' is told from |
    for number, (word, unquoted) in enumerate(zip(words, bare, strict=True)):
        if unquoted in _FOR_A_SHELL or (number == 0 and unquoted.startswith(("~", "$"))):
            raise LabError(f"command: no shell runs it, and {word!r} is for one; a shell does in sh -c '...'")


def _found(word: str) -> str:
    """The program's path in full."""
    path = Path(word)
    if os.sep not in word:
        on_path = shutil.which(word)
        if on_path is not None:
            return str(Path(on_path).absolute())
        near = f" (did you mean './{word}'?)" if path.is_file() else did_you_mean(word, _on_path(), most=0)
        raise LabError(f"command: no program {word!r} on PATH{near}")
    if not path.is_file():
        siblings = [str(path.parent / file) for file in _names(path.parent)]
        raise LabError(f"command: there is no program {word!r}{did_you_mean(word, siblings, most=0)}")
    if not os.access(path, os.X_OK):
        raise LabError(
            f"command: {word!r} is not executable; make it so (chmod +x), or name what runs it first"
        )
    _check_start(path, word)
    return str(path.absolute())


def _check_start(path: Path, word: str) -> None:
    """Whether the system can start a script: it names what runs it, and that is there."""
    try:
        with open(path, "rb") as opened:
            head = opened.read(256)
    except OSError:
        return  # it may be run and not read
    if head.startswith(b"#!"):
        runs = head[2:].split(b"\n")[0].split()
        named = os.fsdecode(runs[0]) if runs else ""
        if not Path(named).is_file():
            raise LabError(
                f"command: {word!r} is run by {named!r}, by its first line, and there is no such program"
            )
    elif head and b"\0" not in head:
        raise LabError(
            f"command: {word!r} is a text whose first line names no program (#!); name what runs it first"
        )


def _in_full(word: str) -> str:
    """An argument; one that names a file here, or ends with one (`--config=FILE`), names it from everywhere."""
    name, file = _parted(word)
    with contextlib.suppress(OSError, ValueError):
        if file and Path(file).is_file():
            return name + str(Path(file).absolute())
    return word


def _parted(word: str) -> tuple[str, str]:
    """What stands before the file that an argument may name, and the file."""
    if not word.startswith("-"):
        return "", word
    name, equals, file = word.partition("=")
    return name + equals, file


def _check_script(words: Sequence[str]) -> None:
    """Whether an interpreter has something to run, and the script is there that it is given first."""
    if not _is(words[0], *_INTERPRETERS):
        return
    if all(_SWITCH.fullmatch(word) for word in words[1:]):
        raise LabError(
            f"command: {words[0]} has nothing to run, and would take what it is told for its program; "
            f"name a script, as in command:{words[0]} agent"
        )
    script = words[1]
    if not script.startswith("-") and not Path(script).is_file():
        near = did_you_mean(
            script, (str(Path(script).parent / name) for name in _names(Path(script).parent)), most=0
        )
        raise LabError(f"command: there is no file {script!r} for {words[0]} to run{near}")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _on_path() -> list[str]:
    return [
        name
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder
        for name in _names(Path(folder))
    ]


def model_of(words: Sequence[str]) -> str | None:
    """The model that the program itself is told, where it is told in the usual way."""
    for at, word in enumerate(words):
        if word == "--model" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--model="):
            return word.removeprefix("--model=")
    return None


@lru_cache(maxsize=64)
def _digest_of(file: str, size: int, changed: int) -> bytes:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def version_of(program: Program) -> str:
    """The digest of the text, of the program's bytes, of the files among its arguments, and of the module that it runs."""
    whole = hashlib.sha256(program.text.encode())
    files = [file for _, file in map(_parted, program.argv) if Path(file).is_absolute()]
    for file in (*files, *_files_of_module(program)):
        with contextlib.suppress(OSError, ValueError):
            status = os.stat(file)
            if Path(file).is_file():
                whole.update(_digest_of(file, status.st_size, status.st_mtime_ns))
    return whole.hexdigest()[:16]


def _files_of_module(program: Program) -> list[str]:
    """The files of the module that `python -m NAME` runs: of a package all that is Python. Raises LabError where the
    interpreter finds no such module from where the program runs; it is asked, and imports nothing."""
    argv, at = program.argv, _at_module(program.argv)
    if not at:
        return []
    with tempfile.TemporaryDirectory() as empty:
        try:
            said = subprocess.run(
                [*argv[:at], "-c", _FIND, argv[at + 1]],
                cwd=None if program.here else empty,
                env=environment_of(program),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_FIND_S,
            )
            found: list[str] = json.loads(said.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return []  # no such Python as we know: it shows when it runs
    if not found:
        where = "the working folder" if program.here else "an empty folder, where it runs (here: in this one)"
        raise LabError(f"command: {Path(argv[0]).name} finds no module {argv[at + 1]!r} from {where}")
    return sorted(found)


_FIND_S = 20.0
_FIND = """
import json, os, sys
path, spec, name = None, None, ""
for part in sys.argv[1].split("."):
    name = name + "." + part if name else part
    found = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    spec = next((spec for spec in found if spec), None)
    path = list(spec.submodule_search_locations or ()) if spec else []
    if spec is None:
        break
files = [] if spec is None else [spec.origin or ""]
for top in path:
    files += [os.path.join(at, file) for at, _, some in os.walk(top) for file in some if file.endswith(".py")]
print(json.dumps(files))
"""


def _at_module(argv: Sequence[str]) -> int:
    """The place of `-m` among the options of a Python; 0 where it runs no module."""
    if not _is(argv[0], "python", "pypy"):
        return 0
    for at, word in enumerate(argv[:-1]):
        if word == "-m":
            return at
        if at and not word.startswith("-") and argv[at - 1] not in ("-W", "-X"):
            break
    return 0


def environment_of(program: Program) -> dict[str, str]:
    """What of our environment a program gets."""
    return {name: os.environ[name] for name in (*ENVIRONMENT, *program.env) if name in os.environ}


def _is(word: str, *names: str) -> bool:
    """Whether a program is one of these, of whatever version."""
    return Path(word).name.rstrip("0123456789.") in names


__all__ = ["ENVIRONMENT", "NATIVE", "Program", "environment_of", "model_of", "parse", "version_of"]
