"""A work folder as bytes, and back: files, folders and symbolic links with their modes and times.

Pipes, sockets and devices stay behind; hard links become files of their own.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile

from agentbench_lab.worlds.sandbox_folder import Folder, Full
from agentbench_lab.worlds.sandbox_names import (
    MOST_DEEP,
    UNSEEN,
    PathRefused,
    open_file,
    read_bytes,
    remove,
    short,
    walk,
)


def pack(folder: Folder, *, most_bytes: int, most_entries: int) -> bytes:
    """The folder as a tar archive. Raises Full when there is more than may be packed, or than can be read."""
    out = io.BytesIO()
    left, entries = most_bytes, most_entries
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for at, name, prefix, there in walk(folder.fd):
            if there is None:
                raise Full(f"{short(prefix + name)}: {UNSEEN}")
            entries -= 1
            if entries < 0:
                raise Full(f"more than {most_entries} files and folders")
            entry = tarfile.TarInfo(f"{prefix}{name}")
            entry.mode, entry.mtime = stat.S_IMODE(there.st_mode), there.st_mtime
            data = b""
            if stat.S_ISDIR(there.st_mode):
                entry.type = tarfile.DIRTYPE
            elif stat.S_ISLNK(there.st_mode):
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=at)
            elif stat.S_ISREG(there.st_mode):
                data = _read(name, at, left)
                left -= len(data)
                entry.size = len(data)
            else:
                continue
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _read(name: str, at: int, left: int) -> bytes:
    try:
        fd = open_file(name, os.O_RDONLY, at, name)
    except PathRefused as error:
        raise Full(str(error)) from None
    try:
        data = read_bytes(fd, left + 1)
    finally:
        os.close(fd)
    if len(data) > left:
        raise Full("more bytes than the work folder may hold")
    return data


def unpack(folder: Folder, data: bytes) -> None:
    """Make the folder what it was when it was packed; what lies in it now is taken away."""
    for name in os.listdir(folder.fd):
        remove(name, folder.fd, MOST_DEEP)
    late: list[tarfile.TarInfo] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r") as tar:
        for entry in tar:
            if entry.isdir():
                # folders are closed to writing only when all is in them
                folder.make(entry.name, 0o700)
                late.append(entry)
            elif entry.issym():
                folder.link(entry.name, entry.linkname)
            else:
                file = tar.extractfile(entry)
                folder.put(entry.name, b"" if file is None else file.read(), entry.mode, entry.mtime)
    for entry in reversed(late):
        folder.settle(entry.name, entry.mode, entry.mtime)


__all__ = ["pack", "unpack"]
