"""The error model in runs of `wide`: what is measured is what the closed form says, and no other driver sees gold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers.base import Context
from agentbench_lab.drivers.simulated import Parameters, Simulated, expected
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.stats import wilson
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import lab, some, write_suite
from ..states import line, world

WIDE = load_suite("wide")
KNOWN = Parameters()
WIDTHS = (1, 2, 4, 8, 16)


def sizes(case_id: str) -> tuple[int, ...]:
    (gold,) = [case.gold for case in WIDE.cases if case.id == case_id]
    assert gold is not None
    return gold.parts


def of_width(run: Run, width: int, scaffold: str = "once") -> list[dict[str, Any]]:
    columns = ["case_id", "scaffold", "solved", "tokens_fresh_input", "tokens_output", "cost_micros"]
    rows = run.trials.select([*columns, "model_calls"]).to_pylist()
    return [row for row in rows if row["scaffold"] == scaffold and len(sizes(row["case_id"])) == width]


def outside(run: Run, scaffolds: Iterable[str]) -> list[tuple[str, int]]:
    """The scaffolds and widths whose measured share of solved trials has its interval beside what is expected."""
    found = []
    for scaffold in scaffolds:
        for width in WIDTHS:
            rows = of_width(run, width, scaffold)
            chances = [expected(KNOWN, width, sizes(row["case_id"]), scaffold).success for row in rows]
            interval = wilson(sum(row["solved"] for row in rows), len(rows))
            assert interval is not None
            if not interval[0] <= sum(chances) / len(chances) <= interval[1]:
                found.append((scaffold, width))
    return found


def test_gold_says_which_calls_each_part_takes() -> None:
    for case in WIDE.cases:
        assert case.gold is not None
        assert len(case.gold.parts) == case.task.width
        at = 0
        for size, part in zip(case.gold.parts, case.task.parts, strict=True):
            first = case.gold.calls[at]
            assert next(iter(first.input.values())) in part
            at += size
        assert at == len(case.gold.calls)


def test_without_an_error_every_case_is_solved() -> None:
    run = evaluate("wide", "simulated:success=1,attention=1e12", save_run=False)
    assert run.trials["solved"].to_pylist() == [True] * 30
    for row in run.trials.to_pylist():
        parts = sizes(row["case_id"])
        closed = expected(KNOWN, len(parts), parts)
        assert row["tokens_fresh_input"] == closed.input_tokens
        assert row["tokens_output"] == closed.output_tokens
        assert row["model_calls"] == closed.model_calls
        assert row["cost_micros"] == closed.cost_micros


@pytest.mark.long
def test_any_one_error_fails_its_case() -> None:
    """Each step of each case goes wrong alone, left out or made with another value: the closed form counts on it."""
    kinds = set()
    for step in range(max(len(case.gold.calls) for case in WIDE.cases if case.gold)):
        mine = [case for case in WIDE.cases if case.gold is not None and len(case.gold.calls) > step]

        class OneWrong(Simulated):
            def _work(self, solution: Any, part: Any, tools: Toolbox, ctx: Context) -> Transcript:
                self._begins = KNOWN.prompt + KNOWN.part * solution.width
                return super()._work(solution, part, tools, ctx)

            def _sure(self, context: int, step: int = step) -> float:
                return float(context != self._begins + step * KNOWN.turn)

        run = evaluate(mine, OneWrong(), trials=3, save_run=False)
        assert run.trials["solved"].to_pylist() == [False] * (3 * len(mine))
        for row in run.trials.to_pylist():
            kinds.add(
                row["tool_calls"]
                == len(next(c.gold.calls for c in mine if c.id == row["case_id"] and c.gold))
            )
    assert kinds == {True, False}


@pytest.mark.long
def test_once_comes_out_as_the_closed_form_says() -> None:
    """Accuracy within its interval at every width, tokens and cost to the last one, whatever went wrong."""
    run = evaluate("wide", "simulated", trials=60, save_run=False)
    assert outside(run, ["once"]) == []
    for row in run.trials.to_pylist():
        closed = expected(KNOWN, len(sizes(row["case_id"])), sizes(row["case_id"]))
        assert (row["tokens_fresh_input"], row["cost_micros"]) == (closed.input_tokens, closed.cost_micros)
    assert {row["evidence"] for row in run.trials.to_pylist()} == {"simulated"}


@pytest.mark.long
@pytest.mark.parametrize(
    "mutant", ["success=0.99", "window=2800", "window=2300", "attention=16000", "turn=150", "prompt=2200"]
)
def test_another_model_does_not_pass_for_this_one(mutant: str) -> None:
    """The intervals are narrow enough to tell a model with one other parameter."""
    run = evaluate("wide", f"simulated:{mutant}", trials=60, save_run=False)
    assert outside(run, ["once"]) != []


def test_the_seed_decides() -> None:
    first, again, other = (
        evaluate("wide", "simulated", seed=seed, trials=2, save_run=False).trials["solved"].to_pylist()
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_case_without_gold_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"small\.jsonl:1: t0-cart: has no gold"):
        evaluate(write_suite(tmp_path, some(0)), "simulated", save_run=False)


def test_no_other_driver_is_given_gold() -> None:
    """One that asks and is not simulated is refused; one that does not ask gets its task and nothing else."""

    class Curious(Simulated):
        evidence = "live"

    with pytest.raises(LabError, match="asks for the reference solutions and says its evidence is 'live'"):
        evaluate("wide", Curious(), save_run=False)

    seen: list[Any] = []

    def looks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        seen.extend([task, vars(ctx).get("config")])
        return Transcript()

    looks.evidence = "simulated"  # type: ignore[attr-defined]
    evaluate("wide", looks, only="wide-01-a", save_run=False)
    assert "M-215" not in repr(seen)


def test_simulated_alone_cannot_be_called() -> None:
    """Outside a run there is no solution to go by."""

    def calls_it(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return Simulated()(task, tools, ctx)

    run = evaluate("wide", calls_it, only="wide-01-a", save_run=False)
    (row,) = run.trials.to_pylist()
    assert row["outcome"] == "driver_error"


def test_an_answer_and_a_refusal_are_steps_too(tmp_path: Path) -> None:
    """Right where nothing goes wrong, and another answer, or none refused, where it does."""
    right, wrong = (
        evaluate(
            suite_with_answers(tmp_path),
            f"simulated:success={success}",
            trials=4,
            world=world(),
            save_run=False,
        ).trials.to_pylist()
        for success in ("1", "1e-9")
    )
    assert [row["solved"] for row in right] == [True] * 8
    assert [row["solved"] for row in wrong] == [False] * 8


def suite_with_answers(folder: Path) -> Path:
    cases = [
        line(id="asks", expect={"answer": {"exact": 27.99}}, gold={"calls": [], "answer": 27.99}),
        line(id="never", expect={"refuse": True, "state_equals": {}}, gold={"calls": []}),
    ]
    path = folder / "ends.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([2, 2], "gold.parts: 2 numbers for 1 parts"),
        ([3], "gold.parts: they take 3 calls together, and gold has 2"),
        ([-1], "gold.parts: -1 calls"),
    ],
)
def test_lint_checks_the_parts_of_gold(tmp_path: Path, parts: list[int], message: str) -> None:
    path = Path(str(WIDE.path))
    case = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    case["gold"]["parts"] = parts
    (tmp_path / "wide.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    done = lab("lint", "wide.jsonl", cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
