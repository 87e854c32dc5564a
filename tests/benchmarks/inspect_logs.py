"""Small Inspect logs, written by the tests: as JSON, and as a zip with members of any of the three methods."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

STORED, DEFLATED, ZSTANDARD = 0, 8, 93


def sample(sample_id: Any = 1, epoch: int = 1, value: Any = "C", **fields: Any) -> dict[str, Any]:
    """A sample that one scorer, `match`, gave this value; without a score for the value `...`."""
    made = {
        "id": sample_id,
        "epoch": epoch,
        "input": f"question {sample_id}",
        "target": "yes",
        "messages": [
            {"role": "user", "content": f"question {sample_id}"},
            {"role": "assistant", "content": "yes"},
        ],
        "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": "yes"}}]},
        "scores": {} if value is ... else {"match": {"value": value}},
        "events": [{"event": "model", "anything": [1, 2, {"deep": None}]}],
        "model_usage": {"mockllm/m": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}},
        "total_time": 2.5,
        "working_time": 1.5,
    }
    made.update(fields)
    return made


def spec(**fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "eval_id": "e1",
        "task_id": "t1",
        "run_id": "r1",
        "created": "2026-01-01T00:00:00+00:00",
        "task": "arith",
        "task_version": 0,
        "model": "mockllm/m",
        "dataset": {},
        "config": {"epochs": 1},
    }
    made.update(fields)
    return made


def log(*samples: dict[str, Any], status: str = "success", **fields: Any) -> dict[str, Any]:
    """A log of these samples; `eval` takes fields of `spec`, the others are the log's own."""
    made: dict[str, Any] = {
        "version": 2,
        "status": status,
        "eval": spec(**fields.pop("eval", {})),
        "plan": {"steps": [{"solver": "use_tools"}, {"solver": "generate"}]},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "stats": {"started_at": "2026-01-01T00:00:01+00:00", "completed_at": "2026-01-01T00:00:09+00:00"},
        "samples": list(samples),
    }
    made.update(fields)
    return made


def figure(value: float, name: str = "accuracy", reducer: str | None = None, **fields: Any) -> dict[str, Any]:
    """One published figure of the scorer `match`."""
    return {
        "name": "match",
        "scorer": "match",
        "reducer": reducer,
        "metrics": {name: {"name": name, "value": value}},
        **fields,
    }


def write_json(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def members(content: Mapping[str, Any]) -> dict[str, bytes]:
    """The members that Inspect would write for a finished log."""
    header = {key: value for key, value in content.items() if key != "samples"}
    made = {"_journal/start.json": {key: header[key] for key in ("version", "eval", "plan")}}
    for each in content["samples"] or ():
        made[f"samples/{each['id']}_epoch_{each['epoch']}.json"] = each
    made["header.json"] = header
    return {name: json.dumps(value).encode() for name, value in made.items()}


def write_eval(path: Path, content: Mapping[str, Any], method: int = ZSTANDARD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zipped(list(members(content).items()), method))
    return path


def compressed(data: bytes, method: int) -> bytes:
    if method == ZSTANDARD:
        return pa.Codec("zstd").compress(data, asbytes=True)
    if method == DEFLATED:
        made = zlib.compressobj(wbits=-15)
        return made.compress(data) + made.flush()
    return data


def zipped(content: Sequence[tuple[str, bytes]], method: int) -> bytes:
    """A zip file: PKWARE's APPNOTE, 4.3.7 (local header), 4.3.12 (directory), 4.3.16 (its end)."""
    body, directory = b"", b""
    for name, data in content:
        packed = compressed(data, method)
        common = struct.pack(
            "<HHHHIIIHH", 0, method, 0, 33, zlib.crc32(data), len(packed), len(data), len(name.encode()), 0
        )
        at = len(body)
        body += b"PK\x03\x04" + struct.pack("<H", 20) + common + name.encode() + packed
        directory += b"PK\x01\x02" + struct.pack("<HH", 20, 20) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, at) + name.encode()
    count = len(content)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end
