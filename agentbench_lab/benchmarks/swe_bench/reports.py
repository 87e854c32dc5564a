"""What SWE-bench's reports say of instances: run reports of the harness and of sb-cli, and per-instance reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentbench_lab.benchmarks.reading import decode_json, micros, read_bytes
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCase
from agentbench_lab.results.run import Published


def repository(instance_id: str) -> str:
    """`django/django` of `django__django-11099`; "" where the id does not follow this form."""
    name, found, _ = instance_id.rpartition("-")
    return name.replace("__", "/", 1) if found and "__" in name else ""


def some(names: Sequence[str], of: str = "") -> str:
    """`12 of 40 trajectories (a, b, c, d, e and 7 more)`."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{len(names)}{of} ({', '.join(names[:5])}{more})"


def case_of(instance_id: str) -> SourceCase:
    """What the id tells of its case: the repository is the group."""
    return SourceCase(group=repository(instance_id))


def cost_micros(dollars: float | None, where: str) -> int | None:
    """As `micros`; raises LabError with the place for what is no amount of money."""
    try:
        found = micros(dollars)
    except ValueError as error:
        raise LabError(f"{where}: {error}") from None
    if found is not None and found >= 2**63:
        raise LabError(f"{where}: {dollars} is too much money")
    return found


# ---- run reports -------------------------------------------------------------------------------------------------


MOST = 1_000_000
"""Instances that a report can have been asked for: beyond, the count is a mistake, and all of them would be missing."""


class RunReport(Struct, frozen=True):
    """A run report of the harness (schema 2), or of sb-cli, which has `pending_ids` and `failed_ids` instead."""

    total_instances: Annotated[int, Meta(ge=0, le=MOST)]
    resolved_ids: list[str]
    unresolved_ids: list[str] = []
    empty_patch_ids: list[str] = []
    error_ids: list[str] = []
    failed_ids: list[str] = []
    infra_failure_ids: list[str] = []
    ambiguous_failure_ids: list[str] = []
    incomplete_ids: list[str] = []
    pending_ids: list[str] = []
    submitted_ids: list[str] = []
    failure_reasons: dict[str, str] = {}
    resolved_instances: int | None = None
    unresolved_instances: int | None = None
    empty_patch_instances: int | None = None
    error_instances: int | None = None
    failed_instances: int | None = None
    infra_failure_instances: int | None = None
    pending_instances: int | None = None
    schema_version: int | None = None


class Verdict(Struct, frozen=True):
    """What a report says of one instance."""

    solved: bool
    reasons: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}


_UNSOLVED = {
    "unresolved_ids": "",
    "empty_patch_ids": "the patch is empty",
    "error_ids": "the evaluation ended in an error",
    "failed_ids": "the evaluation failed",
}
_DOUBTS = {
    "infra_failure_ids": "the infrastructure of the evaluation failed",
    "ambiguous_failure_ids": "the failure may be the infrastructure's",
}
"""Said of an instance beside its outcome, or instead of one."""

_COUNTED = ("resolved", "unresolved", "empty_patch", "error", "failed", "infra_failure", "pending")


def verdicts(report: RunReport, where: str) -> dict[str, Verdict]:
    """What the report decides, in the order of its lists. Raises LabError where two of them contradict each other."""
    if report.schema_version not in (None, 1, 2):
        raise LabError(f"{where}: schema_version {report.schema_version} is not 2, the one that is known")
    found: dict[str, tuple[str, str]] = {}
    for name in ("resolved_ids", *_UNSOLVED):
        for instance in getattr(report, name):
            if instance in found and {name, found[instance][0]} != {"error_ids", "failed_ids"}:
                raise LabError(f"{where}: {instance} is both in {found[instance][0]} and in {name}")
            found.setdefault(instance, (name, _UNSOLVED.get(name, "")))
    doubts: dict[str, list[str]] = {}
    for name, text in _DOUBTS.items():
        for instance in dict.fromkeys(getattr(report, name)):
            found.setdefault(instance, (name, ""))
            reason = report.failure_reasons.get(instance)
            doubts.setdefault(instance, []).append(f"{text}: {reason}" if reason else text)
    waiting = {*report.incomplete_ids, *report.pending_ids}
    for instance, (name, _) in found.items():
        if instance in waiting:
            raise LabError(f"{where}: {instance} is in {name}, yet incomplete or pending")
    if report.total_instances < len(found):
        raise LabError(f"{where}: total_instances is {report.total_instances}, but {len(found)} are listed")
    return {
        instance: Verdict(name == "resolved_ids", tuple(filter(None, (text, *doubts.get(instance, ())))))
        for instance, (name, text) in found.items()
    }


def counts_published(report: RunReport, driver: str, model: str | None) -> tuple[Published, ...]:
    """The report's own counts beside the lengths of its lists."""
    made = []
    for name in _COUNTED:
        count = getattr(report, f"{name}_instances")
        if count is not None:
            rows = len(set(getattr(report, f"{name}_ids")))
            made.append(Published(driver, model, f"{name}_instances", "trials", count, rows, count == rows))
    return tuple(made)


# ---- per-instance reports ----------------------------------------------------------------------------------------


class _Split(Struct, frozen=True):
    success: list[str] = []
    failure: list[str] = []


class _Report(Struct, frozen=True):
    resolved: bool
    patch_is_None: bool | None = None
    patch_exists: bool | None = None
    patch_successfully_applied: bool | None = None
    infra_failure: bool | None = None
    tests_status: dict[str, _Split] | None = None


def instance_reports(file: Path) -> dict[str, Verdict]:
    """The verdicts of one report.json: `{instance id: report}`, or the bare report in a folder named by the id."""
    data = read_bytes(file)
    keys = decode_json(data, dict[str, msgspec.Raw], str(file))
    if "resolved" in keys:
        return {file.absolute().parent.name: _verdict(decode_json(data, _Report, str(file)))}
    if not keys:
        raise LabError(f"{file}: a report of nothing")
    reports = decode_json(data, dict[str, _Report], str(file))
    return {instance: _verdict(report) for instance, report in reports.items()}


def _verdict(report: _Report) -> Verdict:
    reasons = []
    if report.patch_is_None or report.patch_exists is False:
        reasons.append("there is no patch")
    elif report.patch_successfully_applied is False:
        reasons.append("the patch does not apply")
    if report.infra_failure:
        reasons.append(_DOUBTS["infra_failure_ids"])
    extra = {}
    for name, split in (report.tests_status or {}).items():
        key = name.lower()
        if split.success or split.failure or key in ("fail_to_pass", "pass_to_pass"):
            extra[f"{key}_passed"] = len(split.success)
            extra[f"{key}_failed"] = len(split.failure)
    for name in ("fail_to_pass", "pass_to_pass"):
        failed = extra.get(f"{name}_failed", 0)
        if failed:
            total = failed + extra[f"{name}_passed"]
            reasons.append(f"{failed} of {total} {name.upper()} tests fail")
    return Verdict(report.resolved, tuple(reasons), extra)
