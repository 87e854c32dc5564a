"""The checks of a work folder: its files, and the command that is run in a copy of it."""

from __future__ import annotations

from agentbench_lab.cases import Expect
from agentbench_lab.grading.command import command_checks
from agentbench_lab.grading.files import file_checks
from agentbench_lab.grading.grade import Check
from agentbench_lab.worlds.seen import LOST, Seen


def work_checks(expect: Expect, seen: Seen | None) -> list[Check]:
    """The checks `files` and `command`, those of them that the case declares."""
    if not expect.of_work:
        return []
    found = None if seen is None else seen.work
    if found is None:
        names = [name for name in ("files", "command") if getattr(expect, name) is not None]
        why = LOST if seen is not None and seen.lost else "nothing could be seen of a work folder"
        return [Check(name, False, why) for name in names]
    checks = [] if expect.files is None else file_checks(expect.files, found.files)
    return checks + ([] if expect.command is None else command_checks(expect.command, found.command))


__all__ = ["work_checks"]
