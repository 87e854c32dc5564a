"""A folder that no path leaves, whatever lies in it."""

from __future__ import annotations

import os
import resource
import signal
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.worlds.sandbox_folder import Folder, Full, PathRefused, Stored
from agentbench_lab.worlds.sandbox_pack import pack

NAMES = st.sampled_from(["a", "b", "c", "..", ".", "over"])
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
TARGETS = st.one_of(PATHS, PATHS.map(lambda path: f"/{path}"), PATHS.map(lambda path: f"TOP/{path}"))


def folder(path: Path) -> Folder:
    return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY), str(path))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(PATHS, TARGETS), max_size=6), PATHS)
def test_a_path_is_what_the_kernel_says_or_refused(links: list[tuple[str, str]], asked: str) -> None:
    """Against os.path.realpath: what lies within is read as it is, what lies without is never read."""
    with tempfile.TemporaryDirectory() as made:
        outer = Path(made).resolve()
        top = outer / "top"
        for path in ("a/a", "a/b/c", "b/a"):
            file = top / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"inside {path}", encoding="utf-8")
        for name in ("a", "b", "c"):
            if not (outer / name).exists():
                (outer / name).write_text("outside", encoding="utf-8")
        for path, target in links:
            at = Path(os.path.normpath(top / path))
            free = at.is_relative_to(top) and at.parent.is_dir() and not os.path.lexists(at)
            if free and Path(os.path.realpath(at.parent)).is_relative_to(top):
                at.symlink_to(target.replace("TOP", str(top)))
        inside = folder(top)
        try:
            real = Path(os.path.realpath(top / asked))
            try:
                data, size = inside.read(asked, 100)
            except PathRefused:
                # what is refused is outside, missing, no file, or goes out on its way and comes back
                return
            assert size == len(data)
            assert real.is_relative_to(top)
            assert data == real.read_bytes() != b"outside"
        finally:
            inside.close()


def test_a_way_that_goes_out_and_comes_back_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x", encoding="utf-8")
    inside = folder(tmp_path)
    with pytest.raises(PathRefused, match="leads out"):
        inside.read(f"../{tmp_path.name}/a", 9)
    inside.close()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    inside = folder(tmp_path)
    inside.seed({"a/b/c": Stored(b"x"), "d": Stored(b"y", 0o600)})
    (tmp_path / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/b/c", "a/../d", "out/x", "../x", "none/x", "a", "a/b/c/d"):
        for do in (lambda p: inside.read(p, 9), lambda p: inside.write(p, b"z"), inside.kind):
            try:
                do(path)
            except PathRefused:
                continue
    inside.entries(most=2)
    assert len(os.listdir("/proc/self/fd")) == before
    inside.close()


def test_what_is_written_is_whole_and_has_its_mode(tmp_path: Path) -> None:
    inside = folder(tmp_path)
    assert inside.write("x/run.sh", b"one", 0o755) == "created"
    assert inside.write("x/run.sh", b"two") == "changed"
    found = tmp_path / "x" / "run.sh"
    assert (found.read_bytes(), stat.S_IMODE(found.stat().st_mode)) == (b"two", 0o755)
    (tmp_path / "link").symlink_to("x/run.sh")
    inside.write("link", b"three")
    assert (tmp_path / "link").is_symlink()
    assert found.read_bytes() == b"three"
    assert os.listdir(tmp_path / "x") == ["run.sh"]
    inside.close()


def test_the_cases_files_take_the_place_of_whatever_is_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept", encoding="utf-8")
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(outside / "kept")
    (top / "way").symlink_to(outside)
    (top / "deep" / "er").mkdir(parents=True)
    (top / "file").write_text("x", encoding="utf-8")
    inside = folder(top)
    inside.seed(
        {"link": Stored(b"1"), "way/kept": Stored(b"2"), "deep": Stored(b"3"), "file/a": Stored(b"4")}
    )
    assert {path: (top / path).read_bytes() for path in ("link", "way/kept", "deep", "file/a")} == {
        "link": b"1",
        "way/kept": b"2",
        "deep": b"3",
        "file/a": b"4",
    }
    assert (outside / "kept").read_text(encoding="utf-8") == "kept"
    inside.close()


def test_a_copy_has_files_folders_links_and_modes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    source, target = folder(one), folder(two)
    source.seed({"a/b": Stored(b"x", 0o640), "c": Stored(b"\xff" * 100)})
    (one / "empty").mkdir(mode=0o700)
    (one / "link").symlink_to("/etc/passwd")
    os.mkfifo(one / "pipe")
    source.copy_to(target, most_bytes=1_000, most_entries=100)
    assert sorted(path.relative_to(two).as_posix() for path in two.rglob("*")) == [
        "a",
        "a/b",
        "c",
        "empty",
        "link",
    ]
    assert stat.S_IMODE((two / "a/b").stat().st_mode) == 0o640
    assert os.readlink(two / "link") == "/etc/passwd"
    for bounds, said in (((10, 100), "c: |more bytes"), ((1_000, 2), "more than 2 files")):
        three = tmp_path / f"three-{bounds[1]}"
        three.mkdir()
        with pytest.raises(Full, match=said):
            source.copy_to(folder(three), most_bytes=bounds[0], most_entries=bounds[1])
    source.close()
    target.close()


def test_folders_nested_without_end_are_told(tmp_path: Path) -> None:
    inside = folder(tmp_path)
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(150):
        os.mkdir("d", dir_fd=at)
        deeper = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = deeper
    os.close(at)
    entries, whole = inside.entries(most=1_000)
    assert (len(entries), whole) == (100, False)
    two = tmp_path.parent / "copy"
    two.mkdir()
    with pytest.raises(Full, match="nested deeper than 100"):
        inside.copy_to(folder(two), most_bytes=10, most_entries=1_000)
    with pytest.raises(PathRefused, match="nested deeper"):
        inside.read("d/" * 140 + "x", 9)
    inside.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody whom a folder shuts out")
def test_what_lies_behind_a_folder_that_cannot_be_entered_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o700)
    (tmp_path / "shut" / "a").write_text("x", encoding="utf-8")
    tmp_path.chmod(0o777)
    inside = folder(tmp_path)
    try:
        assert (inside.kind("shut/a"), inside.kind("shut/b"), inside.kind("no/a")) == ("file", None, None)
        os.seteuid(65_534)
        try:
            for path in ("shut/a", "shut/b"):
                with pytest.raises(PathRefused, match="permission denied"):
                    inside.kind(path)
            assert inside.kind("no/a") is None
        finally:
            os.seteuid(0)
    finally:
        inside.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody whom a folder shuts out")
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100])
def test_a_folder_that_an_agent_closed_is_told_and_shuts_nobody_out(tmp_path: Path, mode: int) -> None:
    """A listing goes on without what cannot be seen; a copy, which would lack it, is refused as the agent's doing."""
    for path in ("work", "work/shut", "other"):
        (tmp_path / path).mkdir()
        os.chown(tmp_path / path, 65_534, 65_534)
    (tmp_path / "work" / "shut" / "a").write_text("x", encoding="utf-8")
    (tmp_path / "work" / "shut").chmod(mode)
    inside, other = folder(tmp_path / "work"), folder(tmp_path / "other")
    try:
        os.seteuid(65_534)
        try:
            entries, whole = inside.entries(most=9)
            assert {entry.path for entry in entries} == {"shut"}
            assert not whole
            assert {path for path, _ in inside.states()} == {"shut"}
            with pytest.raises(Full, match=r"shut.*cannot be looked into"):
                inside.copy_to(other, most_bytes=9, most_entries=9)
            with pytest.raises(Full, match=r"shut.*cannot be looked into"):
                pack(inside, most_bytes=9, most_entries=9)
            os.chmod("shut", 0o700, dir_fd=inside.fd)
            assert inside.entries(most=9)[1]
        finally:
            os.seteuid(0)
    finally:
        inside.close()
        other.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody whom a file shuts out")
def test_a_file_that_an_agent_closed_cannot_be_packed_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "shut").write_text("x", encoding="utf-8")
    (tmp_path / "shut").chmod(0)
    tmp_path.chmod(0o777)
    inside = folder(tmp_path)
    os.seteuid(65_534)
    try:
        with pytest.raises(Full, match="shut: permission denied"):
            pack(inside, most_bytes=9, most_entries=9)
    finally:
        os.seteuid(0)
        inside.close()


def test_folders_are_taken_away_again_where_the_file_finds_no_room(tmp_path: Path) -> None:
    inside = folder(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(PathRefused, match="file too large"):
            inside.write("a/b/c", b"x" * 11)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, was)
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before
    assert inside.write("a/b/c", b"x") == "created"
    assert inside.write("a/b/c", b"x") == "unchanged"
    assert inside.write("a/b/c", b"x", 0o755) == "changed"
    assert stat.S_IMODE((tmp_path / "a/b/c").stat().st_mode) == 0o755
    inside.close()


@given(st.binary(max_size=30), st.integers(0, 12), st.integers(0, 12))
def test_both_ends_of_a_file_are_given_and_nothing_twice(data: bytes, first: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "a").write_bytes(data)
        inside = folder(Path(made))
        begins, ends, size = inside.ends("a", first, last)
        inside.close()
    assert begins == data[:first]
    assert ends == data[first:][-last:] if last else ends == b""
    assert size == len(data)
