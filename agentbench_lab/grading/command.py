"""The check command of a case against how it ended: exit, output, time."""

from __future__ import annotations

import signal

from agentbench_lab.expect_work import ExpectedCommand, ExpectedOutput, texts
from agentbench_lab.grading.files import wrong_content
from agentbench_lab.grading.grade import Check, cut
from agentbench_lab.patterns import unfit
from agentbench_lab.worlds.seen_work import Blob, CommandSeen


def command_checks(expected: ExpectedCommand, seen: CommandSeen | None) -> list[Check]:
    """One check: the command ended as it has to. It says every way in which it did not."""
    wrong = wrong_command(expected, seen)
    return [Check("command", wrong is None, wrong or "")]


def wrong_command(expected: ExpectedCommand, seen: CommandSeen | None) -> str | None:
    """What is wrong with how the command ended, or None."""
    name = cut(expected.run)
    if seen is None:
        return f"{name}: was not run"
    if seen.not_run:
        return f"{name}: could not be run: {seen.not_run}"
    if seen.timed_out:
        return f"{name}: ran longer than {expected.timeout_s:g} s"
    if seen.ended:
        return f"{name}: was ended: {seen.ended}"
    said = []
    if expected.exit is not None and seen.exit != expected.exit:
        said.append(f"{_exit(seen.exit)}; expected exit {expected.exit}{_last_line(seen)}")
    for stream, output, blob in (
        ("stdout", expected.stdout, seen.stdout),
        ("stderr", expected.stderr, seen.stderr),
    ):
        if output is not None:
            said += [f"{stream}: {text}" for text in _wrong_output(output, blob)]
    return f"{name}: {'; '.join(said)}" if said else None


def _wrong_output(expected: ExpectedOutput, seen: Blob) -> list[str]:
    said = list(wrong_content(seen, expected.exact, texts(expected.contains), texts(expected.line)))
    if expected.regex is not None:
        text = seen.data.decode(errors="replace")
        if not seen.whole:
            said.append(f"{expected.regex!r} cannot be judged: {seen.cut}")
        elif unfitting := unfit(expected.regex, text, cut(repr(text))):
            said.append(unfitting)
    return said


def _exit(code: int | None) -> str:
    if code is None:
        return "no exit"
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    try:
        return f"exit {code} ({signal.Signals(number).name})" if number else f"exit {code}"
    except ValueError:
        return f"exit {code}"


def _last_line(seen: CommandSeen) -> str:
    """The last thing that the command said, which most often says why."""
    for blob in (seen.stderr, seen.stdout):
        lines = [
            line for line in (blob.end or blob.data).decode(errors="replace").splitlines() if line.strip()
        ]
        if lines:
            return f" ({cut(lines[-1].strip(), 200)})"
    return ""


__all__ = ["command_checks", "wrong_command"]
