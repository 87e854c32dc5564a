"""What a person did wrong, said in one line, and the nearest right word for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class LabError(Exception):
    """A mistake of the user's: shown as its message, never as a traceback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in one file. `line` counts physical lines from 1; 0 means the file as a whole. A `warning` is of
    what holds, and is likely not what was meant."""

    file: str
    line: int
    message: str
    warning: bool = False

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.message}"


class ProblemsError(LabError):
    """All the problems of one or more files, a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def counted(count: int, noun: str, nouns: str = "") -> str:
    """`1 case`, `1,200 cases`; `nouns` where they are not the noun with an s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def wanted(count: int, expected: int, noun: str) -> str:
    """`1 call where 2 are expected`."""
    return f"{counted(count, noun)} where {expected:,} {'is' if expected == 1 else 'are'} expected"


def shown(path: str | Path) -> str:
    """The path as a person in the working folder would write it: relative where it lies below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere; or the working folder is gone
        return str(path)


def unreadable(file: object, error: Exception, what: str = "") -> LabError:
    """The one line for a file that another library could not read, whatever it raised over it.

    A reader of binary files raises what the damaged byte happens to hit: an error of its own, of the system, of the
    encoding of a name, of a number that does not fit. All of them say the same of the file. `what` is a part of it.
    """
    said = (getattr(error, "strerror", None) or str(error)).splitlines()
    why = said[0] if said and said[0].strip() else type(error).__name__
    return LabError(f"{file}: {f'{what}: ' if what else ''}{why}")


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option most like `word`, or None when none is alike."""
    options = list(options)
    by_folded = {option.casefold(): option for option in reversed(options)}
    found = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, options: Iterable[str], *, most: int = 12) -> str:
    """A tail for an error message: the near match, else the (few) options there are, else nothing."""
    options = sorted(set(options))
    near = nearest(word, options)
    if near is not None:
        return f" (did you mean {near!r}?)"
    if 0 < len(options) <= most:
        return f" (there is: {', '.join(options)})"
    return ""
