"""Files of other projects: read whole, with an error that says where; small conversions that every format needs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.errors import LabError, did_you_mean


def read_bytes(path: Path) -> bytes:
    """The file's bytes; raises LabError with the system's reason."""
    try:
        return path.read_bytes()
    except IsADirectoryError:
        raise LabError(f"{path}: is a folder; name the file in it") from None
    except OSError as error:
        beside = (
            path.parent.iterdir() if isinstance(error, FileNotFoundError) and path.parent.is_dir() else ()
        )
        hint = did_you_mean(path.name, [one.name for one in beside], most=0)
        raise LabError(f"{path}: cannot be read: {error.strerror}{hint}") from None


def read_json(path: Path, kind: Any = Any) -> Any:
    """The file's JSON, decoded into `kind` (a msgspec Struct names the fields that are needed; others are skipped).

    Raises LabError with the file and the place in the document (`$.results[3].task_id`) that does not fit.
    """
    return decode_json(read_bytes(path), kind, str(path))


def decode_json(data: bytes, kind: Any, where: str, *, one_line: bool = False) -> Any:
    """As `read_json`, for bytes in hand; `where` names them in an error. A byte order mark is skipped.

    `one_line` is for the line of a file, whose number `where` has already.
    """
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        told = 0 if one_line else _position(error)
        line = f":{data.count(10, 0, told) + 1}" if told else ""
        raise LabError(f"{where}{line}: {error}") from None


def _position(error: Exception) -> int:
    """The byte that a parser stopped at, where its message names one."""
    _, found, tail = str(error).rpartition("byte ")
    return int(tail.split(")")[0]) if found and tail.split(")")[0].isdigit() else 0


def digest_of(files: Iterable[Path], root: Path) -> str:
    """SHA-256 over the names (relative to `root`) and bytes of these files, in the order of their names."""
    found = hashlib.sha256()
    for file in sorted(files):
        name = file.name if file == root else file.relative_to(root).as_posix()
        found.update(name.encode() + b"\0" + hashlib.sha256(read_bytes(file)).digest())
    return found.hexdigest()


def micros(dollars: float | int | str | None) -> int | None:
    """Millionths of a dollar, half to even; None stays None. Raises ValueError for what is negative or no number."""
    if dollars is None:
        return None
    amount = Decimal(str(dollars))
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{dollars} is no amount of money")
    return int((amount * 1_000_000).to_integral_value(ROUND_HALF_EVEN))


def exact_usd(dollars: float | int | None) -> dict[str, float | int]:
    """`{"cost_usd": dollars}` for a trial's `extra` when micros do not hold the figure to its last digit, else `{}`."""
    whole = micros(dollars)
    return {} if dollars is None or whole is None or whole / 1_000_000 == dollars else {"cost_usd": dollars}


def decimals(printed: float | int) -> int:
    """How many digits a figure is printed with after the point: 64.93 has 2, 65.0 has 1, 7 has 0."""
    exponent = Decimal(str(printed)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def is_one(reward: float | None) -> bool:
    """Whether a reward is a full success: within 1e-6 of 1. Half rewards never add up to one."""
    return reward is not None and math.isfinite(reward) and abs(reward - 1) <= 1e-6


def agrees(published: float, rows: float, digits: int) -> bool:
    """Whether a published figure follows from the rows: it is what they round to at `digits` decimals."""
    return abs(published - rows) <= 0.5 * 10.0**-digits + 1e-9
