"""Members of an `.eval` file: a zip whose members are stored, deflated or, in today's logs, Zstandard (method 93).

Python reads method 93 only from 3.14 on, so the members are taken here by the directory's offsets and checked by their
CRC-32. Zstandard frames may stand one after the other in one stream: many small members are decompressed by one call,
which costs a third of one call each.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from agentbench_lab.errors import LabError

STORED, DEFLATED, ZSTANDARD = 0, 8, 93
_LOCAL = struct.Struct("<4s22xHH")
_MEMBERS, _BYTES = (
    64,
    8_000_000,
)  # of one call: enough to spread its cost, little enough to stay in the caches
_AHEAD = 1

MEMBER = 1 << 30
"""Bytes that one member may unpack to. A sample with all its events is a few tens of megabytes."""
RATIO, FLOOR = 200, 256 << 20
"""All members together may unpack to so many times the file, and to so many bytes however small it is. Dialogues that
repeat themselves shrink a hundredfold; what shrinks a thousandfold is made to fill a memory."""

Content: TypeAlias = "bytes | memoryview"


class Archive:
    """The members of a zip in memory, by name; of several with one name the last counts, as Inspect reads them.

    Raises LabError for what is no zip, and for one that would unpack to more than is reasonable (`MEMBER`, `RATIO`,
    `FLOOR`): the directory says how much, and more than it says is not unpacked. `where` names the file in errors.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self._data = memoryview(data)
        self._where = where
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as found:
                self._members = {member.filename: member for member in found.infolist()}
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, OSError, struct.error):
            # a file cut short has lost its directory, which stands at its end
            raise LabError(f"{where}: no whole zip file: damaged or cut short") from None

        self._check_size(len(data))

    def _check_size(self, packed: int) -> None:
        largest = max(self._members.values(), key=lambda member: member.file_size, default=None)
        if largest is None:
            return
        if largest.file_size > MEMBER:
            raise LabError(
                f"{self._where}: {largest.filename}: unpacks to {largest.file_size:,} bytes; {MEMBER:,} are the most"
            )
        total, most = sum(member.file_size for member in self._members.values()), max(FLOOR, RATIO * packed)
        if total > most:
            raise LabError(
                f"{self._where}: its {packed:,} bytes unpack to {total:,}, the largest part of them {largest.filename}; "
                f"{most:,} are the most"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def read(self, name: str) -> bytes:
        """One member's bytes. Raises LabError, naming it, for a damaged one."""
        return bytes(self._one(self._members[name]))

    def read_all(self, names: Sequence[str]) -> Iterator[tuple[str, Content]]:
        """Each member's name and bytes, in order; the next ones are decompressed while these are in use."""
        batches = self._batches([self._members[name] for name in names])
        workers = min(2, os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            ahead: deque[tuple[list[zipfile.ZipInfo], Future[list[Content]]]] = deque(
                (batch, pool.submit(self._many, batch)) for batch in islice(batches, workers + _AHEAD)
            )
            while ahead:
                batch, contents = ahead.popleft()
                done = contents.result()
                for following in islice(batches, 1):
                    ahead.append((following, pool.submit(self._many, following)))
                yield from zip((member.filename for member in batch), done, strict=True)

    @staticmethod
    def _batches(members: list[zipfile.ZipInfo]) -> Iterator[list[zipfile.ZipInfo]]:
        batch: list[zipfile.ZipInfo] = []
        size = 0
        for member in members:
            if batch and (len(batch) == _MEMBERS or size + member.file_size > _BYTES):
                yield batch
                batch, size = [], 0
            batch.append(member)
            size += member.file_size
        if batch:
            yield batch

    def _many(self, batch: list[zipfile.ZipInfo]) -> list[Content]:
        if len(batch) == 1 or any(member.compress_type != ZSTANDARD for member in batch):
            return [self._one(member) for member in batch]
        frames = b"".join(self._compressed(member) for member in batch)
        try:
            whole = memoryview(
                pa.Codec("zstd").decompress(frames, decompressed_size=sum(m.file_size for m in batch))
            )
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
            return [self._one(member) for member in batch]  # this one says which is damaged
        contents: list[Content] = []
        at = 0
        for member in batch:
            content = whole[at : at + member.file_size]
            at += member.file_size
            if zlib.crc32(content) != member.CRC:
                return [self._one(member) for member in batch]
            contents.append(content)
        return contents

    def _one(self, member: zipfile.ZipInfo) -> Content:
        compressed = self._compressed(member)
        try:
            content = _decompress(compressed, member)
        except (pa.ArrowException, zlib.error, OSError, ValueError, OverflowError, MemoryError):
            raise self._damaged(member, "cannot be decompressed") from None
        if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
            raise self._damaged(member, "has other content than its checksum says")
        return content

    def _compressed(self, member: zipfile.ZipInfo) -> memoryview:
        if member.compress_type not in (STORED, DEFLATED, ZSTANDARD):
            raise LabError(
                f"{self._where}: {member.filename}: compressed by method {member.compress_type}; "
                f"{STORED} (stored), {DEFLATED} (deflate) and {ZSTANDARD} (Zstandard) can be read"
            )
        if member.flag_bits & 1:
            raise LabError(f"{self._where}: {member.filename}: encrypted")
        at = member.header_offset
        if at < 0 or at + _LOCAL.size > len(self._data):
            raise self._damaged(member, "lies outside the file")
        signature, name, extra = _LOCAL.unpack_from(self._data, at)
        start = at + _LOCAL.size + name + extra
        if signature != b"PK\x03\x04" or start + member.compress_size > len(self._data):
            raise self._damaged(member, "does not lie where the directory says")
        return self._data[start : start + member.compress_size]

    def _damaged(self, member: zipfile.ZipInfo, what: str) -> LabError:
        return LabError(f"{self._where}: {member.filename}: {what}")


def _decompress(compressed: memoryview, member: zipfile.ZipInfo) -> Content:
    if member.compress_type == STORED:
        return compressed
    if member.compress_type == DEFLATED:
        # one byte more than there should be, so that a longer member is noticed and a bomb is not unpacked
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed, member.file_size + 1)
    if not member.file_size:
        return b""
    return memoryview(pa.Codec("zstd").decompress(compressed, decompressed_size=member.file_size))
