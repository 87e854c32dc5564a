"""A work folder that is reached through one descriptor, so that no path leaves it, whoever changes it meanwhile.

Every path is walked name by name from the descriptor of the folder above, and no name is followed by the kernel: a
symbolic link is read and its target walked in turn, `..` goes back to a descriptor that is held, and what would lead
out is refused. This is what `openat2` does with RESOLVE_BENEATH, without needing it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from agentbench_lab.worlds.sandbox_names import (
    CHUNK,
    FOLDER,
    MOST_DEEP,
    UNSEEN,
    Kind,
    PathRefused,
    as_text,
    kind_of,
    kind_words,
    link_target,
    lstat,
    open_file,
    read_bytes,
    remove,
    said,
    short,
    walk,
    write_all,
)

MOST_LINKS = 40
"""Symbolic links that one path may lead over, as in the kernel."""


Written = Literal["created", "changed", "unchanged"]
"""What writing a file came to."""


class Stored(Struct, frozen=True):
    """A file to put into a folder: its bytes, and its mode."""

    data: bytes
    mode: int = 0o644


class Entry(Struct, frozen=True):
    """What lies in a folder: the path from its top, what it is, and the bytes of a file."""

    path: str
    kind: Kind
    size: int = 0


class Full(Exception):
    """The folder could not be copied whole: what there was too much of."""


class Folder:
    """The folder behind `fd`. `shown` is the absolute path by which an agent knows it; paths may begin with it.

    `owner` is given what is written (user and group id), where the writer is another.
    """

    def __init__(self, fd: int, shown: str, owner: int | None = None) -> None:
        self.fd = fd
        self.shown = shown.rstrip("/")
        self._owner = owner

    # ---- one path

    def read(self, path: str, most: int) -> tuple[bytes, int]:
        """At most `most` bytes of a regular file, and how many it has."""
        with self._parent(path) as (at, name):
            fd = open_file(name, os.O_RDONLY, at, path)
            try:
                return read_bytes(fd, most), os.fstat(fd).st_size
            finally:
                os.close(fd)

    def ends(self, path: str, first: int, last: int) -> tuple[bytes, bytes, int]:
        """At most the `first` and the `last` bytes of a regular file, none of them twice, and how many it has."""
        with self._parent(path) as (at, name):
            fd = open_file(name, os.O_RDONLY, at, path)
            try:
                size = os.fstat(fd).st_size
                begins = read_bytes(fd, first)
                os.lseek(fd, max(len(begins), size - last), os.SEEK_SET)
                return begins, read_bytes(fd, last), size
            finally:
                os.close(fd)

    def write(self, path: str, data: bytes, mode: int | None = None) -> Written:
        """Make a regular file of these bytes, and the folders above it; what that came to.

        Where it fails nothing has changed: the folders that were made for it are taken away again.
        """
        made: list[tuple[int, str]] = []
        try:
            return self._write(path, data, mode, made)
        except BaseException:
            for at, name in reversed(made):
                with contextlib.suppress(OSError):  # somebody else has put something in
                    os.rmdir(name, dir_fd=at)
            raise
        finally:
            for at, _ in made:
                os.close(at)

    def _write(self, path: str, data: bytes, mode: int | None, made: list[tuple[int, str]]) -> Written:
        with self._parent(path, make=made) as (at, name):
            there = lstat(name, at)
            if there is not None and not stat.S_ISREG(there.st_mode):
                raise PathRefused(f"{path}: is {kind_words(there.st_mode)}, not a file")
            if there is not None and mode in (None, stat.S_IMODE(there.st_mode)) and _holds(name, at, data):
                return "unchanged"
            # a file of its own that takes the place of the other: never half written, never through a link
            fresh = f".{secrets.token_hex(8)}~"
            try:
                fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=at)
            except OSError as error:
                raise PathRefused(f"{path}: {said(error)}") from None
            try:
                write_all(fd, data)
                self._give(fd)
                os.fchmod(fd, mode if mode is not None else stat.S_IMODE(there.st_mode) if there else 0o644)
                os.rename(fresh, name, src_dir_fd=at, dst_dir_fd=at)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(fresh, dir_fd=at)
                raise PathRefused(f"{path}: {said(error)}") from None
            finally:
                os.close(fd)
            return "created" if there is None else "changed"

    def kind(self, path: str) -> Kind | None:
        """What lies at a path, its last name not followed; None when nothing does.

        Raises PathRefused where that cannot be told: the way leads out, or through a folder that cannot be entered.
        """
        try:
            with self._parent(path, last=False) as (at, name):
                there = lstat(name, at)
        except PathRefused as error:
            if error.missing:
                return None
            raise
        return None if there is None else kind_of(there.st_mode)

    def target(self, path: str) -> str:
        """Where the symbolic link at a path points, as it is written there."""
        with self._parent(path, last=False) as (at, name):
            return os.readlink(name, dir_fd=at)

    def entries(self, path: str = ".", *, most: int) -> tuple[tuple[Entry, ...], bool]:
        """What lies in a folder and below it, sorted by path, at most `most` entries; whether that is all."""
        found: list[Entry] = []
        whole = True
        with self._folder(path) as fd:
            for _, name, prefix, there in walk(fd):
                if len(found) >= most:
                    whole = False
                    break
                if there is None:
                    whole = False
                    continue
                kind = kind_of(there.st_mode)
                found.append(Entry(as_text(f"{prefix}{name}"), kind, there.st_size if kind == "file" else 0))
        return tuple(sorted(found, key=lambda entry: entry.path)), whole

    # ---- the whole

    def states(self) -> Iterator[tuple[str, os.stat_result]]:
        """The path and the state of everything in the folder, as far down as is looked."""
        for _, name, prefix, there in walk(self.fd):
            if there is not None:
                yield as_text(f"{prefix}{name}"), there

    def seed(self, files: Mapping[str, Stored]) -> None:
        """Put these files in, whatever lies in their place: a link, a folder, another file."""
        for path, file in files.items():
            self._clear(path)
            self.write(path, file.data, file.mode)

    def copy_to(self, other: Folder, *, most_bytes: int, most_entries: int) -> None:
        """Copy files, folders and links with their modes into another folder. Pipes, sockets and devices stay behind.

        Raises Full when there is more than may be copied, or than the other one takes.
        """
        left, entries = most_bytes, most_entries
        for at, name, prefix, there in walk(self.fd):
            path = f"{prefix}{name}"
            if there is None:
                raise Full(f"{short(path)}: {UNSEEN}")
            entries -= 1
            if entries < 0:
                raise Full(f"more than {most_entries} files and folders")
            try:
                with other._parent(path, last=False) as (to, last):
                    if stat.S_ISDIR(there.st_mode):
                        os.mkdir(last, 0o700, dir_fd=to)
                        fd = os.open(last, FOLDER, dir_fd=to)
                        try:
                            other._give(fd)
                            os.fchmod(fd, stat.S_IMODE(there.st_mode) | 0o700)
                        finally:
                            os.close(fd)
                    elif stat.S_ISLNK(there.st_mode):
                        os.symlink(os.readlink(name, dir_fd=at), last, dir_fd=to)
                    elif stat.S_ISREG(there.st_mode):
                        left -= _copy_file(name, at, last, to, left, other)
            except (OSError, PathRefused) as error:
                raise Full(f"{path}: {said(error) if isinstance(error, OSError) else error}") from None

    # ---- putting back: names that are not there yet, each in a folder that is

    def make(self, path: str, mode: int) -> None:
        """Make a folder."""
        with self._parent(path, last=False) as (at, name):
            os.mkdir(name, mode, dir_fd=at)
            fd = os.open(name, FOLDER, dir_fd=at)
            try:
                self._give(fd)
            finally:
                os.close(fd)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, wherever it points."""
        with self._parent(path, last=False) as (at, name):
            os.symlink(target, name, dir_fd=at)

    def put(self, path: str, data: bytes, mode: int, mtime: float) -> None:
        """Make a file with its mode and time."""
        with self._parent(path, last=False) as (at, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            fd = os.open(name, flags, 0o600, dir_fd=at)
            try:
                write_all(fd, data)
                self._settle(fd, mode, mtime)
            finally:
                os.close(fd)

    def settle(self, path: str, mode: int, mtime: float) -> None:
        """Give a folder its mode and time; it stays one that we can enter."""
        with self._parent(path, last=False) as (at, name):
            fd = os.open(name, FOLDER, dir_fd=at)
            try:
                self._settle(fd, mode | 0o700, mtime)
            finally:
                os.close(fd)

    def _settle(self, fd: int, mode: int, mtime: float) -> None:
        self._give(fd)
        os.fchmod(fd, mode & 0o777)
        os.utime(fd, (mtime, mtime))

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    # ---- the walk

    def _parts(self, path: str) -> list[str]:
        if "\0" in path:
            raise PathRefused("a path cannot have a NUL in it")
        if path == self.shown or path.startswith(f"{self.shown}/"):
            path = path[len(self.shown) :].lstrip("/")
        elif path.startswith("/"):
            raise PathRefused(f"{short(path)}: leads out of the work folder")
        return [part for part in path.split("/") if part not in ("", ".")]

    @contextlib.contextmanager
    def _folder(self, path: str, *, make: list[tuple[int, str]] | None = None) -> Iterator[int]:
        stack = self._down(self._parts(path), path, make=make)
        try:
            yield stack[-1]
        finally:
            for fd in stack:
                os.close(fd)

    @contextlib.contextmanager
    def _parent(
        self, path: str, *, make: list[tuple[int, str]] | None = None, last: bool = True
    ) -> Iterator[tuple[int, str]]:
        """The descriptor of the folder in which a path's last name lies, and that name.

        With `last`, a link that stands there is followed too, within the folder.
        """
        parts = self._parts(path)
        for _ in range(MOST_LINKS):
            if not parts or parts[-1] == "..":
                raise PathRefused(f"{short(path)}: is a folder, not a file")
            stack = self._down(parts[:-1], path, make=make)
            try:
                target = link_target(parts[-1], stack[-1]) if last else None
                if target is None:
                    yield stack[-1], parts[-1]
                    return
            finally:
                for fd in stack:
                    os.close(fd)
            try:
                below = self._parts(target)
            except PathRefused:
                raise PathRefused(f"{short(path)}: leads out of the work folder") from None
            parts = below if target.startswith("/") else [*parts[:-1], *below]
        raise PathRefused(f"{short(path)}: too many symbolic links")

    def _down(self, parts: list[str], path: str, *, make: list[tuple[int, str]] | None) -> list[int]:
        """The descriptors of the folders along a way, from the top to its end; the caller closes them."""
        stack = [os.dup(self.fd)]
        try:
            todo = list(reversed(parts))
            links = 0
            while todo:
                name = todo.pop()
                if name == "..":
                    if len(stack) == 1:
                        raise PathRefused(f"{short(path)}: leads out of the work folder")
                    os.close(stack.pop())
                    continue
                if len(stack) > MOST_DEEP:
                    raise PathRefused(f"{short(path)}: folders nested deeper than {MOST_DEEP}")
                try:
                    stack.append(os.open(name, FOLDER, dir_fd=stack[-1]))
                    continue
                except OSError as error:
                    if error.errno == errno.ENOENT and make is not None:
                        self._make(name, stack[-1], path, make)
                        todo.append(name)
                        continue
                    if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                        raise PathRefused(
                            f"{short(path)}: {said(error)}", missing=error.errno == errno.ENOENT
                        ) from None
                target = link_target(name, stack[-1])
                if target is None:
                    raise PathRefused(f"{short(path)}: {short(name)} is no folder", missing=True)
                links += 1
                if links > MOST_LINKS:
                    raise PathRefused(f"{short(path)}: too many symbolic links")
                try:
                    below = self._parts(target)
                except PathRefused:
                    raise PathRefused(f"{short(path)}: leads out of the work folder") from None
                if target.startswith("/"):
                    while len(stack) > 1:
                        os.close(stack.pop())
                todo += reversed(below)
            return stack
        except BaseException:
            for fd in stack:
                os.close(fd)
            raise

    def _make(self, name: str, at: int, path: str, made: list[tuple[int, str]]) -> None:
        """Make a folder, and note the descriptor above it (a new one) and its name."""
        try:
            os.mkdir(name, 0o755, dir_fd=at)
            made.append((os.dup(at), name))
            fd = os.open(name, FOLDER, dir_fd=at)
        except FileExistsError:
            return
        except OSError as error:
            raise PathRefused(f"{short(path)}: {said(error)}") from None
        try:
            self._give(fd)
        finally:
            os.close(fd)

    def _give(self, fd: int) -> None:
        if self._owner is not None:
            os.fchown(fd, self._owner, self._owner)

    def _clear(self, path: str) -> None:
        """Take away whatever on the way to a path is no folder, and whatever lies at its end."""
        stack = [os.dup(self.fd)]
        try:
            *above, last = path.split("/")
            for name in above:
                there = lstat(name, stack[-1])
                if there is None:
                    return
                if not stat.S_ISDIR(there.st_mode):
                    os.unlink(name, dir_fd=stack[-1])
                    return
                # an agent may have taken its own permission away
                stack.append(os.open(name, FOLDER, dir_fd=stack[-1]))
            remove(last, stack[-1], MOST_DEEP)
        finally:
            for fd in stack:
                os.close(fd)


def _holds(name: str, at: int, data: bytes) -> bool:
    """Whether a regular file has exactly these bytes; one that cannot be read is held to have others."""
    try:
        fd = open_file(name, os.O_RDONLY, at, name)
    except PathRefused:
        return False
    try:
        return os.fstat(fd).st_size == len(data) and read_bytes(fd, len(data) + 1) == data
    finally:
        os.close(fd)


def _copy_file(name: str, at: int, last: str, to: int, left: int, other: Folder) -> int:
    source = open_file(name, os.O_RDONLY, at, name)
    try:
        there = os.fstat(source)
        if there.st_size > left:
            raise Full("more bytes than the work folder may hold")
        target = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=to)
        try:
            copied = 0
            while copied <= left and (chunk := os.read(source, CHUNK)):
                write_all(target, chunk)
                copied += len(chunk)
            other._give(target)
            os.fchmod(target, stat.S_IMODE(there.st_mode) & 0o777)
            return copied
        finally:
            os.close(target)
    finally:
        os.close(source)


__all__ = ["Entry", "Folder", "Full", "PathRefused", "Stored", "Written"]
