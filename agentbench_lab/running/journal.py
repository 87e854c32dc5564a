"""The journal: one line a finished trial, so that a run that is killed loses nothing it had finished.

The first line says what every trial of the run shares. A run goes on only with the same settings; a last line that was
cut off is dropped, and its trial run again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.errors import LabError, shown
from agentbench_lab.results.run import write_file
from agentbench_lab.running.trial import Record

FORMAT = "agentbench-lab/journal/v1"
SYNC_S = 0.9
"""Seconds within which the disk is made to follow a line."""
_encoder = msgspec.json.Encoder()


class Settings(Struct, frozen=True):
    """The run key: what every trial of a run shares. Neither the number of trials nor the grader is in it.

    `cases` gives the digests of each case and of its world, `arms` each driver's version; `user` is who plays the
    simulated users, with its version.
    """

    suite: str
    stamp: str
    seed: int
    strictness: str
    limits: dict[str, float | int | None]
    arms: dict[str, str]
    cases: dict[str, tuple[str, str]]
    ladder: bool = False
    shard: str = ""
    user: str = ""


class Header(Struct, frozen=True):
    """The first line of a journal."""

    format: str
    settings: Settings
    grader: str
    commit: str
    started_at: str
    source: str | None = None


class Found(Struct, frozen=True):
    """What a journal holds: its header, its whole records, and what had to be left out, in words."""

    header: Header
    records: tuple[Record, ...]
    notes: tuple[str, ...]


def differences(old: Settings, new: Settings) -> list[str]:
    """What differs between two settings, a line each, the old side first."""
    found = []
    for name in ("suite", "stamp", "seed", "strictness", "ladder", "shard", "user"):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            found.append(f"{name}: {a!r} is now {b!r}")
    found += _of("limit", old.limits, new.limits)
    found += _of("driver", old.arms, new.arms, "version")
    for case in sorted(old.cases.keys() | new.cases.keys()):
        a, b = old.cases.get(case), new.cases.get(case)
        if a == b:
            continue
        if a is None or b is None:
            found.append(f"case {case!r} {'is new' if a is None else 'is no longer asked'}")
        else:
            found.append(f"{'case' if a[0] != b[0] else 'the world of case'} {case!r} has changed")
    return found


def _of(what: str, old: dict[str, Any], new: dict[str, Any], of: str = "") -> list[str]:
    found = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            found.append(f"{what} {name!r} is no longer asked")
        elif name not in old:
            found.append(f"{what} {name!r} is new")
        elif old[name] != new[name]:
            found.append(f"{what} {name!r}:{f' {of}' if of else ''} {old[name]} is now {new[name]}")
    return found


class Journal:
    """Append-only records of a run that is under way; removed when the run's own files hold all of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # unbuffered: a line is with the system when add returns. A kill within the write of a large one can still leave
        # a part of it, which read_journal drops
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close
        self._size = self._file.tell()
        self._sync: threading.Thread | None = None
        self._wake, self._closed = threading.Event(), threading.Event()
        self._waiting = False
        self._failed: OSError | None = None

    @classmethod
    def begin(cls, path: Path, header: Header, records: Iterable[Record] = ()) -> Journal:
        """A journal with a header, and with records that were finished before; all of it or nothing."""
        lines = [_encoder.encode(header), *map(_encoder.encode, records)]
        write_file(path, b"".join(line + b"\n" for line in lines))
        return cls(path)

    def add(self, record: Record) -> None:
        """Hand one line to the system; the disk is made to follow once a second, while trials go on.

        Raises OSError when the line, or one of those before it, did not get there.
        """
        if self._failed is not None:
            raise self._failed
        line = _encoder.encode(record) + b"\n"
        size = len(line)
        try:
            while (written := self._file.write(line)) < len(line):
                line = line[written:]
        except OSError:
            # a full disk may have taken half of the line
            self._file.truncate(self._size)
            raise
        self._size += size
        if not self._waiting:
            # one line begins the second within which the disk follows, whether or not another line comes
            self._waiting = True
            self._wake.set()
            if self._sync is None:
                self._sync = threading.Thread(target=self._follow, daemon=True, name="agentbench-lab journal")
                self._sync.start()

    def _follow(self) -> None:
        while not self._closed.is_set():
            self._wake.wait()
            self._closed.wait(SYNC_S)
            self._wake.clear()
            self._waiting = False
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                self._failed = error

    def close(self) -> None:
        """Make the disk follow, and let go of the file."""
        self._closed.set()
        self._wake.set()
        if self._sync is not None:
            self._sync.join()
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        """The run's own files hold all of it now."""
        self._path.unlink(missing_ok=True)


_header_decoder = msgspec.json.Decoder(Header)
_record_decoder = msgspec.json.Decoder(Record)


def read_journal(path: Path) -> Found | None:
    """What a journal holds; None when it has not even a whole header, so that nothing was finished.

    A last line that was cut off is dropped. A damaged line in the middle is left out and named; the journal is then
    kept beside itself as `journal.jsonl.damaged`. Raises LabError for a journal of another format.
    """
    data = path.read_bytes()
    lines = data.split(b"\n")
    cut = lines.pop()
    if not lines:
        return None
    try:
        header = _header_decoder.decode(lines[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LabError(f"{shown(path)}:1: not the header of a journal: {error}") from None
    if header.format != FORMAT:
        raise LabError(f"{shown(path)}:1: format {header.format!r} is not {FORMAT!r}")
    records: list[Record] = []
    notes = ["the last line was cut off; its trial is run again"] if cut else []
    damaged = 0
    for number, line in enumerate(lines[1:], start=2):
        try:
            records.append(_record_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged += 1
            notes.append(f"line {number} is damaged; its trial is run again")
    if damaged:
        write_file(path.with_name(path.name + ".damaged"), data)
    return Found(header, tuple(records), tuple(notes))
