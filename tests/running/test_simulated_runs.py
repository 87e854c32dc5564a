"""The error model in runs of `wide`: what is measured is what the closed form says, and no other driver sees gold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.simulated import Parameters, Simulated, expected, pays_from
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


def chi_square(run: Run, scaffolds: Iterable[str]) -> float:
    """The sum over scaffolds and widths of the squared distance between solved and expected, in standard deviations."""
    found = 0.0
    for scaffold in scaffolds:
        for width in WIDTHS:
            rows = of_width(run, width, scaffold)
            chances = [expected(KNOWN, width, sizes(row["case_id"]), scaffold).success for row in rows]
            beside = sum(row["solved"] for row in rows) - sum(chances)
            found += beside**2 / sum(chance * (1 - chance) for chance in chances)
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
        ([2, 2], "gold.parts: 2 numbers for 1 part"),
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


SCAFFOLDS = ("once", "linear", "fan_out_4")


@pytest.fixture(scope="module")
def ablation() -> Run:
    """Four arms over `wide`."""
    return evaluate(
        "wide", "simulated", scaffolds=[*SCAFFOLDS, "linear:plan"], trials=30, save_run=False, seed=5
    )


@pytest.mark.long
def test_every_scaffold_comes_out_as_the_closed_form_says(ablation: Run) -> None:
    """Success of four arms at five widths: of twenty intervals at 95 %, no more than chance lets out lie beside it, and
    together they are as far off as 20 degrees of freedom are (37.6 is passed once in a hundred)."""
    assert len(outside(ablation, [*SCAFFOLDS, "linear:plan"])) <= 2
    assert chi_square(ablation, [*SCAFFOLDS, "linear:plan"]) < 37.6
    for row in ablation.trials.to_pylist():
        parts = sizes(row["case_id"])
        closed = expected(KNOWN, len(parts), parts, row["scaffold"])
        assert (row["tokens_fresh_input"], row["tokens_output"]) == (
            closed.input_tokens,
            closed.output_tokens,
        )
        assert (row["model_calls"], row["cost_micros"]) == (closed.model_calls, closed.cost_micros)


@pytest.mark.long
def test_decomposition_begins_to_pay_where_the_closed_form_has_it(ablation: Run) -> None:
    """Side by side is better, beyond chance, from width 4 on, and not before."""

    def better(run: Run, width: int) -> bool:
        shares = []
        for scaffold in ("once", "fan_out_4"):
            rows = of_width(run, width, scaffold)
            shares.append((sum(row["solved"] for row in rows) / len(rows), len(rows)))
        (p, n), (q, m) = shares
        return q - p > 1.96 * (p * (1 - p) / n + q * (1 - q) / m) ** 0.5

    narrow = evaluate(
        "wide", "simulated", scaffolds=["once", "fan_out_4"], only="wide-0[124]-*", trials=100, save_run=False
    )
    found = [width for width in (1, 2, 4) if better(narrow, width)]
    found += [width for width in (8, 16) if better(ablation, width)]
    assert found == [4, 8, 16]
    assert pays_from(KNOWN, WIDTHS, 2, "fan_out_4") == 4


@pytest.mark.long
@pytest.mark.parametrize("mutant", ["told=200", "brief=1500", "success=0.985"])
def test_another_model_of_scaffolds_does_not_pass(mutant: str) -> None:
    run = evaluate(
        "wide", f"simulated:{mutant}", scaffolds=["linear", "fan_out_4"], trials=20, save_run=False, seed=5
    )
    assert chi_square(run, ["linear", "fan_out_4"]) > 29.6  # ten degrees of freedom: once in a thousand


def test_a_part_is_asked_for_its_own_calls() -> None:
    """Under a scaffold each worker makes the calls of its part, and the synthesis none."""
    run = evaluate(
        "wide", "simulated:success=1", scaffolds=["linear", "fan_out_2"], only="wide-04-*", save_run=False
    )
    by_trial: dict[tuple[str, str], dict[int, int]] = {}
    for call in run.calls.to_pylist():
        counts = by_trial.setdefault((call["case_id"], call["scaffold"]), {})
        counts[call["worker"]] = counts.get(call["worker"], 0) + 1
    assert len(by_trial) == 12
    for (case_id, _), counts in by_trial.items():
        assert tuple(counts[worker] for worker in sorted(counts)) == sizes(case_id)


def test_a_scaffold_needs_to_know_the_parts(tmp_path: Path) -> None:
    case = json.loads(Path(str(WIDE.path)).read_text(encoding="utf-8").splitlines()[8])
    del case["gold"]["parts"]
    (tmp_path / "wide.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    marina = Path(str(WIDE.path)).parent / "worlds" / "marina.json"
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "marina.json").write_bytes(marina.read_bytes())
    with pytest.raises(LabError, match=r"has no gold\.parts"):
        evaluate(tmp_path / "wide.jsonl", "simulated", scaffolds=["linear"], save_run=False)
    assert evaluate(tmp_path / "wide.jsonl", "simulated", save_run=False).card.counts.judged == 1


@pytest.mark.long
@pytest.mark.parametrize("scaffold", ["once", "linear", "fan_out_4", "durable:linear", "durable:once"])
def test_crashes_cost_what_the_closed_form_says(scaffold: str) -> None:
    """Bare, each crash is a trial lost; durable, it is the cost of the steps that are made again."""
    crash, trials = 0.01, 40
    run = evaluate(
        "wide",
        f"faulty:{crash}:simulated:success=1,attention=1e12",
        scaffolds=[scaffold],
        only="wide-0[148]-*",
        trials=trials,
        save_run=False,
        seed=3,
    )
    chances, costs, spent, solved = [], [], [], 0
    for row in run.trials.to_pylist():
        parts = sizes(row["case_id"])
        known = Parameters(success=1, attention=1e12)
        closed = expected(known, len(parts), parts, scaffold, crash=crash)
        chances.append(closed.success)
        costs.append(closed.cost_micros)
        spent.append(row["cost_micros"])
        solved += row["solved"]
        assert row["outcome"] in ("solved", "driver_error")
    beside = solved - sum(chances)
    # three standard deviations of what chance does
    assert abs(beside) <= 3 * sum(chance * (1 - chance) for chance in chances) ** 0.5 + 1e-9
    if scaffold.startswith("durable"):
        assert solved == len(chances)
    off = [b - a for a, b in zip(costs, spent, strict=True)]
    mean = sum(off) / len(off)
    deviation = (sum((each - mean) ** 2 for each in off) / (len(off) - 1)) ** 0.5
    assert abs(mean) <= 3 * deviation / len(off) ** 0.5
    # and that is narrow enough to tell it from what a trial without crashes costs
    calm = [
        expected(Parameters(), len(sizes(row["case_id"])), sizes(row["case_id"]), scaffold).cost_micros
        for row in run.trials.to_pylist()
    ]
    assert abs(sum(calm) - sum(spent)) / len(spent) > 3 * deviation / len(off) ** 0.5
