"""One subprocess with a bound that holds: whatever it starts, prints or leaves behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from agentbench_lab.worlds.process import END_KEPT, run_process


def group_of(pid: int) -> int | None:
    """The process group of a process that is alive (a zombie is not)."""
    try:
        state, _, group = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else int(group)


def alive(pid: int, within: float = 2.0) -> bool:
    """Whether a process is still there, after what a kill needs to be seen."""
    deadline = time.monotonic() + within
    while group_of(pid) is not None:
        if time.monotonic() > deadline:
            return True
        time.sleep(0.01)
    return False


def test_a_helper_that_outlives_its_command_is_ended_at_the_limit(tmp_path: Path) -> None:
    """The command waits for a helper of its own: both end in time, what was printed stays, the exit is unknown."""
    began = time.monotonic()
    done = run_process(["sh", "-c", "sleep 300 & echo started; wait"], timeout_s=1.0, cwd=tmp_path)
    assert 1.0 <= time.monotonic() - began < 3.0
    assert (done.stdout, done.stderr, done.timed_out, done.exit) == (b"started\n", b"", True, None)
    assert 1.0 <= done.wall_s < 3.0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_no_process_of_the_group_is_left(tmp_path: Path) -> None:
    script = "sleep 300 & echo $! $$; sh -c 'trap \"\" TERM; sleep 300' & echo $!; wait"
    done = run_process(["sh", "-c", script], timeout_s=0.5, cwd=tmp_path)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 3
    assert not [pid for pid in pids if alive(pid)]
    groups = {group_of(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
    assert pids[1] not in groups


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    """It exits by itself, with its own code and in its own time."""
    began = time.monotonic()
    done = run_process(["sh", "-c", "sleep 300 & echo $!; exit 3"], timeout_s=30, cwd=tmp_path)
    assert time.monotonic() - began < 3.0
    assert (done.exit, done.timed_out) == (3, False)
    assert not alive(int(done.stdout))


def test_endless_output_is_read_and_bounded() -> None:
    """The first part is kept, what was thrown away is counted, and memory does not grow with it."""
    loop = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    done = run_process([sys.executable, "-c", loop], timeout_s=0.7, output_limit=1000)
    assert done.stdout == b"x" * 1000
    assert done.lost > 1_000_000
    assert (done.timed_out, done.exit) == (True, None)


def test_output_of_both_streams_never_blocks_a_command() -> None:
    both = "import sys\nfor s in (sys.stderr, sys.stdout): s.write('y' * 3_000_000)"
    done = run_process([sys.executable, "-c", both], timeout_s=20, output_limit=2_000_000)
    assert (done.exit, len(done.stdout), len(done.stderr)) == (0, 2_000_000, 2_000_000)
    assert done.stdout_end == done.stderr_end == b"y" * END_KEPT
    assert done.lost == 2 * done.stdout_lost == 2 * (1_000_000 - END_KEPT)


@pytest.mark.parametrize("size", [999, 1_000, 1_001, 1_000 + END_KEPT, 1_001 + END_KEPT, 5_000_000])
def test_of_long_output_the_beginning_and_the_end_are_kept_and_the_rest_is_counted(size: int) -> None:
    script = f"import sys; sys.stdout.buffer.write((b'%09d\\n' * ({size} // 10 + 1) % tuple(range({size} // 10 + 1)))[:{size}])"
    done = run_process([sys.executable, "-c", script], timeout_s=20, output_limit=1_000)
    printed = b"".join(b"%09d\n" % n for n in range(size // 10 + 1))[:size]
    assert done.stdout == printed[:1_000]
    assert done.stdout_end == printed[1_000:][-END_KEPT:]
    assert len(done.stdout) + done.stdout_lost + len(done.stdout_end) == size
    assert done.lost == done.stdout_lost


def test_output_stays_bytes_even_where_it_is_no_utf_8() -> None:
    done = run_process(["printf", r"\377\376 \303"], timeout_s=10)
    assert (done.exit, done.stdout) == (0, b"\xff\xfe \xc3")


def test_standard_input_is_given_and_ends() -> None:
    data = b"a line\n" * 200_000
    done = run_process(["cat"], timeout_s=20, stdin=data, output_limit=2 * len(data))
    assert (done.exit, done.stdout == data) == (0, True)
    assert run_process(["cat"], timeout_s=20).stdout == b""


def test_a_command_that_does_not_read_its_input_is_no_fault() -> None:
    done = run_process(["true"], timeout_s=20, stdin=b"x" * 1_000_000)
    assert (done.exit, done.timed_out) == (0, False)


def test_a_signal_is_a_negative_exit() -> None:
    assert run_process(["sh", "-c", "kill -KILL $$"], timeout_s=20).exit == -9


def test_the_environment_and_the_folder_are_the_callers(tmp_path: Path) -> None:
    done = run_process(
        ["sh", "-c", "echo $ONLY:$HOME; pwd"],
        timeout_s=20,
        cwd=tmp_path,
        env={"ONLY": "this", "PATH": os.environ["PATH"]},
    )
    assert done.stdout.decode().splitlines() == ["this:", str(tmp_path.resolve())]


def test_a_command_that_cannot_be_started_says_so() -> None:
    with pytest.raises(FileNotFoundError):
        run_process(["no-such-command-anywhere"], timeout_s=1)
