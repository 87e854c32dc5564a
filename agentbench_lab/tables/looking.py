"""Looking at trials: a list of them, and each in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.errors import LabError, counted, did_you_mean
from agentbench_lab.tables.dialogue import about_user, dialogue
from agentbench_lab.tables.table import Table, short

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.results.run import Run


def looked(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
) -> list[dict[str, Any]]:
    """Trials as plain data: what was asked, expected, called and observed, and how each check came out.

    `failed`: only judged trials without success. `outcome`: an outcome or a class. `reason`: text that the stop, the
    reason of an exclusion or the failed checks contain, in any case of letters. `case`: a case id, or a pattern with
    `*`. They are ANDed; empty is no condition. Raises LabError, with the near match, for an outcome or a case that is
    none of the run's, and for a reason that no trial of the run has.

    For an imported run, `called` and `checks` are null, as no file has them; `observed` are the calls that its source
    tells of, [] where it says that none was made and null where it does not say. `said` is what its source says of the
    trial beside that: score, calls, tokens, cost and time, where they are known, and whatever it has of its own.
    `messages` is the dialogue, null where there is none; `talk` how a conversation ended, and what its user used.
    """
    from agentbench_lab.analysis.metrics import frame

    trials = frame(run.trials).with_row_index("at")
    narrowed = failed or outcome or case
    for keep in _wanted(run, failed=failed, outcome=outcome, case=case):
        trials = trials.filter(keep)
    keys = ["suite", "case_id"]
    cases = {(row["suite"], row["case_id"]): row for row in frame(run.cases).iter_rows(named=True)}
    arm = [*keys, "driver", "model", "scaffold", "trial"]
    near = frame(run.calls).join(trials.select(arm), on=arm, how="semi", nulls_equal=True)
    calls: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in near.iter_rows(named=True):
        calls.setdefault(tuple(row[name] for name in arm), []).append(row)
    words = _words(run, trials["at"].to_list())
    found = []
    for row in trials.iter_rows(named=True):
        ledger = calls.get(tuple(row[name] for name in arm), [])
        one = _looked(run, row, cases[row["suite"], row["case_id"]], ledger)
        one["messages"] = words.get(row["at"])
        if not reason or reason.casefold() in _why(one).casefold():
            found.append(one)
    if reason and not found and not (narrowed and looked(run, reason=reason)):
        _no_reason(run, reason)
    return found


def _no_reason(run: Run, reason: str) -> None:
    """Say that no trial ended so, and the nearest of the ways in which they did."""
    stops = {stop for stop in run.trials.column("stop").to_pylist() if stop}
    checks = {
        each.name for row in run.product for each in row.verdict.checks if each.gates and not each.passed
    }
    near = did_you_mean(reason, stops | checks)
    raise LabError(f"{run.card.run}: no stop, exclusion or failed check says {reason!r}{near}")


def _words(run: Run, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """The dialogues of these trials, where the run has one transcript a trial."""
    if run.transcripts.num_rows != run.trials.num_rows:
        return {}
    texts = run.transcripts.column("messages").take(numbers).to_pylist() if numbers else []
    return {at: json.loads(text) for at, text in zip(numbers, texts, strict=True) if text}


def _wanted(run: Run, *, failed: bool, outcome: str | None, case: str | None) -> list[pl.Expr]:
    import fnmatch

    import polars as pl

    found = []
    if failed:
        found.append(pl.col("outcome_class").is_not_null() & (pl.col("outcome_class") != "success"))
    if outcome:
        outcomes = run.card.outcome_set.outcomes
        names, classes = {each.name for each in outcomes}, {each.cls for each in outcomes}
        if outcome not in names | classes:
            raise LabError(f"{run.card.run}: no outcome {outcome!r}{did_you_mean(outcome, names | classes)}")
        found.append(pl.col("outcome" if outcome in names else "outcome_class") == outcome)
    if case:
        ids = [str(each) for each in run.cases.column("case_id").to_pylist()]
        fits = [each for each in ids if each == case] or fnmatch.filter(ids, case)
        if not fits:
            raise LabError(f"{run.card.run}: no case {case!r}{did_you_mean(case, ids)}")
        found.append(pl.col("case_id").is_in(fits))
    return found


def _looked(
    run: Run, row: Mapping[str, Any], case: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    import msgspec

    made = run.product[row["at"]] if run.product else None
    produced = None if made is None else made.produced
    return {
        **{name: row[name] for name in ("suite", "case_id", "group", "driver", "model", "scaffold", "trial")},
        "evidence": row["evidence"],
        "outcome": row["outcome"],
        "outcome_class": row["outcome_class"],
        "excluded": row["excluded"],
        "excluded_owner": row["excluded_owner"],
        "stop": row["stop"],
        "asked": {
            "request": case["request"],
            "tools": case["tools"],
            "trace": None if case["trace"] is None else json.loads(case["trace"]),
            "policy": case["policy"],
            "user": None if case["user"] is None else json.loads(case["user"]),
        },
        "expected": json.loads(case["expectation"]),
        "called": None if produced is None else list(msgspec.to_builtins(produced.calls)),
        "observed": None
        if produced is None and not (made is None and (calls or row["tool_calls"] == 0))
        else [
            {
                **{name: call[name] for name in ("step", "name", "status", "observed")},
                "input": json.loads(call["input"]),
            }
            for call in calls
        ],
        "refused": row["refused"],
        "answer": None if produced is None else produced.answer,
        "checks": None
        if made is None
        else [
            {"name": check.name, "passed": check.passed, "gates": check.gates, "detail": check.detail}
            for check in made.verdict.checks
        ],
        "reasons": row["reasons"],
        "note": row["note"],
        "said": _said(row) if made is None else None,
        "talk": json.loads(row["extra"]) if made is not None and row["extra"] else None,
    }


_SAID = {
    "score": "score",
    "steps": "steps",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "tokens_fresh_input": "tokens, fresh input",
    "tokens_cache_read": "tokens, cache read",
    "tokens_cache_write": "tokens, cache write",
    "tokens_output": "tokens, output",
    "wall_s": "seconds",
}


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the source of an imported trial says of it beside its verdict and its calls."""
    from agentbench_lab.analysis.metrics.spending import is_only_a_floor

    found = {words: row[name] for name, words in _SAID.items() if row[name] is not None}
    extra = json.loads(row["extra"] or "{}")
    if row["cost_micros"] is not None and "cost_usd" not in extra:
        found["cost_usd, at least" if is_only_a_floor(row) else "cost_usd"] = row["cost_micros"] / 1_000_000
    return {**found, **extra}


def _why(one: Mapping[str, Any]) -> str:
    """Where `reason` looks."""
    failed = [check["name"] for check in one["checks"] or () if check["gates"] and not check["passed"]]
    return "\n".join([one["stop"] or "", one["excluded"] or "", *failed, *one["reasons"]])


def trials(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
    most: int = 25,
) -> Table:
    """The trials that `looked` finds, a line each, with why they ended as they did; at most `most`."""
    found = looked(run, failed=failed, outcome=outcome, reason=reason, case=case)
    arms = {_arm(one) for one in found}
    rows = []
    for one in found[:most]:
        ended = one["outcome"] or f"excluded ({one['excluded_owner'] or 'no owner said'})"
        why = one["excluded"] or next(iter(one["reasons"]), "")
        cells = [
            one["group"],
            f"{one['case_id']} #{one['trial']}",
            _arm(one),
            one["stop"] or "not said",
            ended,
        ]
        cells += [short(why), short(one["asked"]["request"])]
        rows.append(cells if len(arms) > 1 else [*cells[:2], *cells[3:]])
    columns = [
        "group",
        "case #trial",
        *(["arm"] if len(arms) > 1 else []),
        "stop",
        "outcome",
        "why",
        "request",
    ]
    counts = run.card.counts
    cut = " (on a command line --all shows all)" if len(rows) < len(found) else ""
    notes = [f"{len(rows)} of {len(found)} shown{cut}; {len(found)} of {run.trials.num_rows} trials fit"]
    if failed and counts.excluded:
        many = f"{counted(counts.excluded, 'excluded trial')} {'is' if counts.excluded == 1 else 'are'}"
        notes.append(f"{many} no failure of the agent's and not among them; for example: {_excluded(run)}")
    return Table("Trials", columns, rows, notes)


def _excluded(run: Run) -> str:
    """The first excluded trial: which it is, whose fault that was, and why."""
    import polars as pl

    from agentbench_lab.analysis.metrics import frame

    one = frame(run.trials).filter(pl.col("excluded").is_not_null()).row(0, named=True)
    owner = one["excluded_owner"] or "no owner said"
    return f"{one['case_id']} #{one['trial']} ({owner}): {short(one['excluded'], _LONGEST)}"


def trial(run: Run, case_id: str, arm: str = "", trial: int = 1, *, suite: str = "") -> Table:
    """One trial in full: asked, expected, called, observed step by step, and every check.

    `arm` is its driver, or driver+model+scaffold as far as needed; empty for the only one. Raises LabError, with the
    near match, for a case, an arm or a trial that is not there.
    """
    from agentbench_lab.analysis.compare import side

    label = side(run, arm).name
    ids = [str(each) for each in run.cases.column("case_id").to_pylist()]
    if case_id not in ids:
        raise LabError(f"{run.card.run}: no case {case_id!r}{did_you_mean(case_id, ids)}")
    of_case = [one for one in looked(run, case=case_id) if one["case_id"] == case_id and _arm(one) == label]
    suites = {one["suite"] for one in of_case}
    if suite or len(suites) > 1:
        if suite not in suites:
            raise LabError(f"{case_id!r} stands in several suites{did_you_mean(suite, suites)}")
        of_case = [one for one in of_case if one["suite"] == suite]
    for one in of_case:
        if one["trial"] == trial:
            return _told(one, label)
    there = ", ".join(str(one["trial"]) for one in of_case) or "none"
    raise LabError(f"{run.card.run}: no trial {trial} of {case_id!r} by {label} (there is: {there})")


def first_trial(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
) -> Table:
    """The first of the trials that `looked` finds, in full."""
    found = in_full(run, failed=failed, outcome=outcome, reason=reason, case=case, most=1)
    return found[0] if found else Table("No such trial", ["what", "how it was"], [], ["nothing to look at"])


def in_full(
    run: Run,
    *,
    failed: bool = False,
    outcome: str | None = None,
    reason: str | None = None,
    case: str | None = None,
    most: int = 10,
    said: bool = True,
) -> list[Table]:
    """The trials that `looked` finds, each as `trial` shows it; at most `most`, and with `said` false without the
    dialogue."""
    found = looked(run, failed=failed, outcome=outcome, reason=reason, case=case)
    return [_told(one, _arm(one), said=said) for one in found[:most]]


def _arm(one: Mapping[str, Any]) -> str:
    from agentbench_lab.analysis.compare import arm_label

    return arm_label(one["driver"], one["model"], one["scaffold"])


_LONGEST = 600
"""Signs of a value that are shown in full before it is cut; `looked` has all of it."""
_POLICY = 300
"""The same of a policy, which many trials have in common."""


def _told(one: Mapping[str, Any], label: str, *, said: bool = True) -> Table:
    """One trial as a table of two columns."""
    rows: list[Sequence[str] | str] = ["asked"]
    rows.append(["request", short(one["asked"]["request"], _LONGEST) or "not in the file"])
    if one["asked"]["policy"]:
        rows.append(["policy", short(one["asked"]["policy"], _POLICY)])
    if one["asked"]["tools"]:
        rows.append(["tools", ", ".join(one["asked"]["tools"])])
    rows += [[f"trace {n}", _called(call)] for n, call in enumerate(one["asked"]["trace"] or (), start=1)]
    if one["asked"]["user"]:
        rows += ["the simulated user, of whom the driver knows nothing", *_user(one["asked"]["user"])]
    rows.append("expected")
    for name, value in one["expected"].items():
        calls = value if name in ("calls", "candidateResults") and value else None
        rows += (
            [[f"{name} {n}", _called(call)] for n, call in enumerate(calls, start=1)]
            if calls
            else [[name, _json(value)]]
        )
    if one["said"] is not None:
        rows = [*_imported(one, rows)]
    else:
        rows += _called_and_checked(one)
    if one["talk"] is not None:
        rows += ["the conversation", *_talked(one["talk"])]
    if said and one["messages"]:
        rows += ["what was said", *map(list, dialogue(one["messages"], turns=one["talk"] is not None))]
    ended = f"outcome {one['outcome']} ({one['outcome_class']})"
    if one["excluded"] is not None:
        ended = f"excluded by {one['excluded_owner'] or 'an owner that is not said'}: {one['excluded']}"
    notes = [f"{ended}; stop: {one['stop'] or 'not said'}; evidence: {one['evidence']}"]
    return Table(
        f"{one['case_id']} [{label} #{one['trial']}], {one['group']}",
        ["what", "how it was"],
        rows,
        notes,
        verbatim=True,
    )


def _user(user: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """The simulated user, as far as a line has room."""
    import msgspec

    from agentbench_lab.users import User

    yield from ([name, short(text, _LONGEST)] for name, text in about_user(msgspec.convert(user, User)))


def _talked(talk: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """How a conversation ended, and who played the user, at what cost."""
    yield ["turns of the agent", str(talk["turns"])]
    yield ["ended by", talk.get("ended_by") or "being cut off"]
    user = talk["user"]
    used = {name: value for name, value in user.get("usage", {}).items() if value}
    yield ["the user", f"{user['driver']}, used {_json(used)}" if used else user["driver"]]


def _called_and_checked(one: Mapping[str, Any]) -> list[Sequence[str] | str]:
    rows: list[Sequence[str] | str] = []
    rows.append("called, as the driver says")
    rows += [[f"call {n}", _called(call)] for n, call in enumerate(one["called"] or (), start=1)]
    said = {"refused": one["refused"] or None, "answer": one["answer"], "note": one["note"]}
    rows += [[name, _json(value)] for name, value in said.items() if value is not None]
    if isinstance(rows[-1], str):
        rows.append(["nothing", "" if one["called"] is not None else "not in the file"])
    rows.append("observed, as the toolbox saw it")
    for step in one["observed"] or ():
        rows.append([f"step {step['step']}", _called(step)])
        rows.append([step["status"], short(step["observed"], _LONGEST)])
    if not one["observed"]:
        rows.append(["nothing", "" if one["observed"] is not None else "not in the file"])
    rows.append("checks, safety first")
    first = True
    for check in one["checks"] or ():
        words = "passed" if check["passed"] else "FAILED" if check["gates"] else "not so, and decides nothing"
        if check["gates"] and not check["passed"] and first:
            first, words = False, "FAILED first"
        rows.append(
            [check["name"], ": ".join(part for part in (words, short(check["detail"], _LONGEST)) if part)]
        )
    if not one["checks"]:
        rows += [["reason", short(reason, _LONGEST)] for reason in one["reasons"]] or [["none", ""]]
    return rows


def _imported(one: Mapping[str, Any], asked: Sequence[Sequence[str] | str]) -> Iterator[Sequence[str] | str]:
    """A trial of another harness: what its file has, and in one row what it has not."""
    absent = [] if one["asked"]["request"] else ["the request"]
    known = [row for row in asked if isinstance(row, str) or row[1] != "not in the file"]
    for at, row in enumerate(known):
        if not isinstance(row, str) or (at + 1 < len(known) and not isinstance(known[at + 1], str)):
            yield row
    if not one["expected"]:
        absent.append("what was expected")
    counted = one["said"].get("tool calls")
    if one["observed"] is None:
        absent.append("the calls" if counted is None else "the calls themselves")
    else:
        yield "called, and what came of it"
        for step in one["observed"]:
            called = _called(step) if step["input"] not in ({}, None) else step["name"]
            if step["observed"]:
                yield [f"call {step['step']}", called]
                yield [step["status"], short(step["observed"], _LONGEST)]
            else:
                yield [f"call {step['step']}: {step['status']}", called]
        if not one["observed"]:
            yield ["nothing", "the file says that no tool was called"]
    said = {"refused": one["refused"] or None, "note": one["note"], **one["said"]}
    said = {name: value for name, value in said.items() if value is not None}
    if said:
        yield "what else the file says"
    yield from ([name, _json(value)] for name, value in said.items())
    if one["reasons"]:
        yield "why"
    yield from (["reason", short(reason, _LONGEST)] for reason in one["reasons"])
    if absent:
        yield "not in this run"
        yield ["nothing of", ", ".join(absent)]


def _called(call: Mapping[str, Any]) -> str:
    more = {name: call[name] for name in ("accept", "optional") if call.get(name)}
    text = f"{call['name']} {json.dumps(call.get('input', {}), ensure_ascii=False)}"
    return short(f"{text} {json.dumps(more, ensure_ascii=False)}" if more else text, _LONGEST)


def _json(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return short(text, _LONGEST)
