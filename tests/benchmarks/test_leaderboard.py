"""A published table beside the rows: what follows, what was rounded, what does not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from agentbench_lab.benchmarks.leaderboard import check_published, with_published
from agentbench_lab.benchmarks.totals import Tally, pass_at_k, pass_hat_k, standard_error
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Run
from agentbench_lab.transcripts import Usage


def trial(driver: str, case: str, number: int, solved: bool, cost: int | None = None) -> SourceTrial:
    return SourceTrial(
        case_id=case, driver=driver, model="m", trial=number, solved=solved, usage=Usage(cost_micros=cost)
    )


@pytest.fixture
def run() -> Run:
    """x: 2 of 3 runs solve both of 2 tasks, the third one of them: 5 of 6. y: 1 of 2, of unknown cost."""
    trials = [
        trial("x", case, number, not (case == "b" and number == 3), 500_000)
        for case in "ab"
        for number in (1, 2, 3)
    ]
    trials += [trial("y", "a", 1, True, 1), trial("y", "b", 1, False)]
    return imported_run(suite="s", trials=trials, imported=Imported(format="csv", file="f"))


def said(run: Run, text: str, tmp_path: Path, **columns: str) -> list[str]:
    file = tmp_path / "board.csv"
    file.write_text(text, encoding="utf-8")
    return [str(each) for each in check_published(run, file, columns)]


def test_a_long_table(run: Run, tmp_path: Path) -> None:
    """Runs of x are 1, 1 and 1/2: mean 5/6, sample SD .288675, over the root of 3 .166667. pass^2 is (1 + 1/3) / 2."""
    text = (
        "driver,model,metric,unit,value\n"
        "x,m,accuracy,share,0.833\n"
        "x,m,stderr,percent,16.67\n"
        "x,m,pass^2,share,0.6667\n"
        "x,m,pass@2,,1.0\n"
        "x,m,cost,usd,$3.00\n"
        "x,m,cost_per_trial,usd,0.7\n"
        "x,m,trials,,6\n"
        "x,m,pass^4,,0.5\n"
        "y,m,cost,usd,1\n"
    )
    assert said(run, text, tmp_path) == [
        "x m: accuracy: published 83.3%, rows give 83.33% (follows)",
        "x m: stderr: published 16.67%, rows give 16.67% (follows)",
        "x m: pass^2: published 66.67%, rows give 66.67% (follows)",
        "x m: pass@2: published 100%, rows give 100% (follows)",
        "x m: cost: published $3, rows give $3 (follows)",
        "x m: cost_per_trial: published $0.7, rows give $0.5",
        "x m: trials: published 6 trials, rows give 6 trials (follows)",
        "x m: pass^4: published 50%, rows do not give it",
        "y m: cost: published $1, rows do not give it",
    ]


def test_a_wide_table_under_its_own_headers(run: Run, tmp_path: Path) -> None:
    text = "\ufeffAgent,date,resolved,se\r\nx,2025-01-01,83.34%,\r\ny,,0.49,0.1\r\n"
    assert said(run, text, tmp_path, driver="Agent", accuracy="resolved", stderr="se") == [
        "x m: accuracy: published 83.34%, rows give 83.33% (follows) (rounded up)",
        "y m: accuracy: published 49%, rows give 50%",
        "y m: stderr: published 10%, rows do not give it",
    ]


@pytest.mark.parametrize("printed", ["0,5", "1,23", "1,2345", "1234,567", ",5"])
def test_a_comma_that_parts_no_thousands_is_refused(run: Run, printed: str) -> None:
    """`0,5` is half a dollar to one reader and nothing to another; it was read as 5."""
    row = {"driver": "x", "metric": "cost", "value": printed}
    with pytest.raises(
        LabError, match=f"published:1: cost: '{printed}' is no number: a comma parts thousands only"
    ):
        check_published(run, [row])


def test_a_comma_parts_thousands(run: Run) -> None:
    row = {"driver": "x", "metric": "cost", "value": "$1,234,567.50"}
    assert check_published(run, [row])[0].published == 1_234_567.5


def test_rounding(run: Run) -> None:
    """5/6 is .8333...: cut or raised in the last of two printed digits is forgiven and said; of one digit it is not."""
    printed = ["0.8333", "0.833", "0.834", "0.832", "0.83", "0.84", "0.82", "0.8", "0.9", "8.3333e-1", "1"]
    claims = check_published(run, [{"driver": "x", "accuracy": text} for text in printed])
    assert [(each.follows, each.note) for each in claims] == [
        (True, ""),
        (True, ""),
        (True, "rounded up"),
        (False, ""),
        (True, ""),
        (True, "rounded up"),
        (False, ""),
        (True, ""),
        (False, ""),
        (True, ""),
        (True, ""),
    ]


def test_they_go_on_the_card(run: Run) -> None:
    claims = check_published(run, [{"driver": "x", "metric": "solved", "value": 5}])
    once = with_published(run, claims)
    assert once.card.imported is not None
    assert [(c.metric, c.published, c.rows, c.follows) for c in once.card.imported.published] == [
        ("solved", 5.0, 5, True)
    ]
    twice = with_published(once, claims)
    assert twice.card.imported is not None
    assert len(twice.card.imported.published) == 2


BAD: dict[str, tuple[str, dict[str, str], str]] = {
    "no driver": ("agnt,accuracy\nx,1\n", {}, "no column driver"),
    "nothing to check": ("driver,model\nx,m\n", {}, "neither columns metric and value"),
    "no such arm": ("driver,accuracy\nqq,1\n", {}, ":2: the run has no driver 'qq' (there is: x, y)"),
    "no such model": ("driver,model,accuracy\nx,n,1\n", {}, ":2: x has no model 'n' (there is: m)"),
    "no such metric": (
        "driver,metric,value\nx,acuracy,1\n",
        {},
        "no metric 'acuracy' (did you mean 'accuracy'?)",
    ),
    "another unit": ("driver,metric,unit,value\nx,cost,share,1\n", {}, "cost: is in usd, not in share"),
    "no unit": ("driver,metric,unit,value\nx,cost,usdd,1\n", {}, "no unit 'usdd' (did you mean 'usd'?)"),
    "a last place beyond all numbers": ("driver,cost\ny,0e999\n", {}, ":2: cost: '0e999' is no number"),
    "no number": ("driver,accuracy\ny,1\nx,n/a\n", {}, ":3: accuracy: 'n/a' is no number"),
    "not finite": ("driver,accuracy\nx,inf\n", {}, "'inf' is no number"),
    "mapping to nothing": (
        "driver,acc\nx,1\n",
        {"accuracy": "ac"},
        "has no column 'ac' (did you mean 'acc'?)",
    ),
    "mapping of nothing": (
        "driver,acc\nx,1\n",
        {"acuracy": "acc"},
        "no column 'acuracy' (did you mean 'accuracy'?)",
    ),
    "ragged": ("driver,accuracy\nx\n", {}, ":2: 1 cells under 2 column names"),
    "twice": ("driver,driver,accuracy\nx,x,1\n", {}, ":1: column 'driver' stands twice"),
    "no rows": ("driver,accuracy\n", {}, "no rows"),
    "a value of nothing": ("driver,metric,value\nx,,1\n", {}, "a value without a metric"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables(run: Run, tmp_path: Path, name: str) -> None:
    text, columns, message = BAD[name]
    with pytest.raises(LabError) as caught:
        said(run, text, tmp_path, **columns)
    assert message in str(caught.value)
    assert "board.csv" in str(caught.value)


def test_a_table_that_is_no_text(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"driver,accuracy\n\xff,1\n")
    with pytest.raises(LabError, match="not UTF-8 at byte 16"):
        check_published(run, tmp_path / "b.csv")


def test_estimators() -> None:
    """4 tasks x 4 trials with 4, 2, 1 and 0 successes: pass^2 = (1 + 1/6) / 4, pass@2 = (1 + 5/6 + 1/2) / 4."""
    by_case = {case: Tally(solved, 4) for case, solved in zip("abcd", (4, 2, 1, 0), strict=True)}
    assert pass_hat_k(by_case, 2) == pytest.approx(7 / 24)
    assert pass_at_k(by_case, 2) == pytest.approx(7 / 12)
    assert pass_hat_k(by_case, 5) is None
    assert standard_error({1: Tally(1, 2)}) is None
    assert standard_error({1: Tally(2, 4), 2: Tally(3, 4)}) == pytest.approx(
        math.sqrt(0.03125) / math.sqrt(2)
    )
