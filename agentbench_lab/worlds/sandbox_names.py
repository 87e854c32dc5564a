"""One name at a time: what the walk over a work folder is made of. No function here follows a name that is a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Literal

MOST_DEEP = 100
"""Folders that may lie in one another before a copy or a listing stops."""
UNSEEN = f"cannot be looked into, or is nested deeper than {MOST_DEEP} folders"
"""What a walk that gives no state says of a path."""
CHUNK = 1 << 20
"""Bytes that are read at once."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened: never through a link."""

Kind = Literal["file", "folder", "link", "other"]


class PathRefused(Exception):
    """Why a path of the folder cannot be used: in one line, for the agent to read.

    `missing` is whether it is proven that nothing lies there; otherwise nobody could look.
    """

    def __init__(self, told: str, *, missing: bool = False) -> None:
        super().__init__(told)
        self.missing = missing


def walk(top: int) -> Iterator[tuple[int, str, str, os.stat_result | None]]:
    """Everything below a folder, folders before what is in them: descriptor above, name, path above, and its state.

    The state is None where more lies than is looked at: in a folder too deep, or behind permissions that an agent took away.
    """
    stack: list[tuple[int, str, list[str]]] = []
    try:
        fd = os.dup(top)
        stack.append((fd, "", _names(fd)))
        while stack:
            at, prefix, names = stack[-1]
            if not names:
                os.close(at)
                stack.pop()
                continue
            name = names.pop()
            try:
                there = lstat(name, at)
            except PathRefused:
                yield at, name, prefix, None
                continue
            if there is None:
                continue
            if not stat.S_ISDIR(there.st_mode):
                yield at, name, prefix, there
                continue
            if len(stack) > MOST_DEEP:
                yield at, name, prefix, None
                continue
            yield at, name, prefix, there
            try:
                fd = os.open(name, FOLDER, dir_fd=at)
            except PermissionError:
                yield at, name, prefix, None
                continue
            except OSError:  # it has gone, or is no folder any more
                continue
            stack.append((fd, f"{prefix}{name}/", _names(fd)))
    finally:
        for fd, _, _ in stack:
            os.close(fd)


def _names(fd: int) -> list[str]:
    """The names in a folder, the first one last."""
    try:
        return sorted(os.listdir(fd), reverse=True)
    except OSError:
        return []


def remove(name: str, at: int, deep: int) -> None:
    """Take a name away, and all that lies below it, at most `deep` folders down."""
    there = lstat(name, at)
    if there is None:
        return
    if not stat.S_ISDIR(there.st_mode):
        os.unlink(name, dir_fd=at)
        return
    if not deep:
        raise PathRefused(f"{short(name)}: folders nested deeper than {MOST_DEEP}")
    fd = os.open(name, FOLDER, dir_fd=at)
    try:
        for inner in os.listdir(fd):
            remove(inner, fd, deep - 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=at)


def open_file(name: str, flags: int, at: int, path: str) -> int:
    """A regular file, opened so that a pipe or a device in its place neither blocks nor notices."""
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        raise PathRefused(f"{short(path)}: {said(error)}") from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise PathRefused(f"{short(path)}: is {kind_words(mode)}, not a file")
    return fd


def read_bytes(fd: int, most: int) -> bytes:
    """At most so many bytes from a descriptor."""
    found = bytearray()
    while len(found) < most and (chunk := os.read(fd, min(CHUNK, most - len(found)))):
        found += chunk
    return bytes(found)


def write_all(fd: int, data: bytes) -> None:
    """Every byte to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def lstat(name: str, at: int) -> os.stat_result | None:
    """The state of a name itself; None when there is nothing."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PathRefused(f"{short(name)}: {said(error)}") from None


def link_target(name: str, at: int) -> str | None:
    """Where the link of this name points; None when it is no link."""
    try:
        return os.readlink(name, dir_fd=at)
    except OSError:
        return None


def kind_of(mode: int) -> Kind:
    """What a mode says that something is."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def kind_words(mode: int) -> str:
    """The same for a person to read."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a symbolic link" if stat.S_ISLNK(mode) else "a device"


def said(error: OSError) -> str:
    """Why the kernel refused, in an agent's words."""
    known = {
        errno.ENOENT: "there is no such file",
        errno.ELOOP: "is a symbolic link that was changed meanwhile",
        errno.ENOSPC: "the work folder is full",
        errno.ENXIO: "is a pipe or a socket, not a file",
    }
    return known.get(error.errno or 0) or (error.strerror or "cannot be used").lower()


def as_text(path: str) -> str:
    """A path as JSON can hold it, whatever bytes are in its names."""
    return os.fsencode(path).decode(errors="backslashreplace")


def short(path: str) -> str:
    """As much of a path as a message should have, with nothing in it that cannot be printed."""
    path = ascii(path)[1:-1] if not path.isprintable() else path
    return path if len(path) <= 200 else f"{path[:199]}…"
