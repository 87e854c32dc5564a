"""What a file or folder of results looks like, for an error that names the format that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

_KEYS: dict[str, tuple[str, ...]] = {
    "tau2": ("simulations", "tasks"),
    "hal": ("raw_eval_results", "config"),
    "inspect": ("eval", "version"),
    "terminal-bench": ("results", "n_resolved"),
    "harbor": ("trial_name", "task_name"),
    "mini-swe-agent": ("messages", "info"),
    "bench-v1": ("format", "trials"),
}
"""Keys of one JSON object that together are a format's own."""

_FILES: dict[str, tuple[str, ...]] = {
    "inspect": ("*.eval",),
    "mini-swe-agent": ("*.traj.json", "*/*.traj.json"),
    "hal": ("*_UPLOAD.json",),
    "swe-bench": ("*/report.json",),
}
"""Names of files that are a format's own in a folder."""


def looks_like(path: Path) -> str | None:
    """The format whose shape a file or folder has, None when it has none that is known. Nothing of it is checked."""
    if path.is_dir():
        return next(_folder(path), None)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"PK"):
        return "inspect" if path.suffix == ".eval" else None
    first = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return _json(data) if first in (b"{", b"[") else _table(data)


def _folder(path: Path) -> Iterator[str]:
    if (path / "result").is_dir() and (path / "score").is_dir():
        yield "bfcl"
    for form, patterns in _FILES.items():
        if any(next(path.glob(pattern), None) for pattern in patterns):
            yield form
    for name in ("results.json", "result.json"):
        if (path / name).is_file() and (found := looks_like(path / name)):
            yield found


def _json(data: bytes) -> str | None:
    kind = dict[str, msgspec.Raw] | list[msgspec.Raw]
    try:
        found: Any = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _lines(data)
    if isinstance(found, Mapping):
        if found.keys() & {"leaderboards", "resolved_ids"}:
            return "swe-bench"
        return next((form for form, keys in _KEYS.items() if found.keys() >= set(keys)), None)
    try:
        one = msgspec.json.decode(found[0], type=dict[str, msgspec.Raw]) if found else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return "tau-bench" if one.keys() >= {"task_id", "traj", "reward"} else None


def _lines(data: bytes) -> str | None:
    """JSON lines, by the first two of them."""
    try:
        for line in data.split(b"\n", 2)[:2]:
            msgspec.json.decode(line or b"{}", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return "jsonl"


def _table(data: bytes) -> str | None:
    heading = data.split(b"\n", 1)[0]
    return "csv" if b"," in heading and b"\0" not in heading else None
