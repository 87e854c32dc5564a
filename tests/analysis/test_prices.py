"""Prices of a day, and what trials cost by them: worked out by hand, and against the package that knows the prices."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.analysis import metrics, prices
from agentbench_lab.analysis.prices import Prices, Rates, priced
from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Usage, disjoint_input

DAY = date(2026, 1, 1)
HEADER = "model,from,input,cache_read,cache_write,output\n"
COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("suite", "case_id", "driver", "model", "scaffold"), pl.String),
    "trial": pl.Int32,
    **dict.fromkeys((*prices.BUCKETS, "cost_micros"), pl.Int64),
    "extra": pl.String,
}
MORE: dict[str, Any] = {
    **dict.fromkeys(("evidence", "excluded"), pl.String),
    **dict.fromkeys(("solved", "cached"), pl.Boolean),
    "tool_calls": pl.Int32,
    "wall_s": pl.Float64,
}


def trials(*rows: Mapping[str, Any], schema: dict[str, Any] = COLUMNS) -> pl.DataFrame:
    """Trials of the model m that used 4,000 fresh, 16,000 cached, no written and 1,000 output tokens in one call."""
    whole = {
        "suite": "s",
        "case_id": "c",
        "driver": "d",
        "model": "m",
        "scaffold": "once",
        "trial": 1,
        "tokens_fresh_input": 4_000,
        "tokens_cache_read": 16_000,
        "tokens_cache_write": 0,
        "tokens_output": 1_000,
        "model_calls": 1,
        "cost_micros": None,
        "extra": None,
    }
    return pl.DataFrame([{**whole, **row} for row in rows], schema=schema)


def rates(input: str, read: str | None, write: str | None, output: str, **more: Any) -> Rates:
    known = [None if price is None else Decimal(price) for price in (read, write)]
    return Rates(Decimal(input), known[0], known[1], Decimal(output), **more)


def only(found: Rates, model: str = "m") -> Prices:
    """The prices of one model."""
    return Prices("by hand", DAY, lambda name: found if name == model else f"by hand has no price for {name}")


def cost(found: Rates, **row: Any) -> tuple[int | None, str | None]:
    (one,) = priced(trials(row), only(found)).iter_rows(named=True)
    assert (one["cost_micros"] is None) == (one["cost_source"] is None) == (one["cost_note"] is not None)
    return one["cost_micros"], one["cost_note"]


def file(folder: Path, text: str, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


# ---- cached tokens charged twice -------------------------------------------------------------------------------


def test_b06_cached_tokens_are_charged_once_however_a_provider_counts_them() -> None:
    """4,000 at 0.50, 16,000 at 0.05 and 1,000 at 3.00 a million are 2,000 + 800 + 3,000 = 5,800 micros, both times."""
    within = disjoint_input(20_000, 16_000, 0, inclusive=True)
    beside = disjoint_input(4_000, 16_000, 0, inclusive=False)
    for fresh, read, write in (within, beside):
        assert (fresh, read, write) == (4_000, 16_000, 0)
        used = {"tokens_fresh_input": fresh, "tokens_cache_read": read, "tokens_cache_write": write}
        assert cost(rates("0.50", "0.05", None, "3.00"), **used) == (5_800, None)
        assert Usage(fresh, read, write, 1_000).tokens == 21_000
    with pytest.raises(ValueError, match="16000 cached tokens within an input of 4000"):
        disjoint_input(4_000, 16_000, 0, inclusive=True)  # a blind subtraction, which would cost -2,200


@pytest.mark.parametrize("column", prices.BUCKETS)
def test_a_negative_bucket_is_an_error_that_names_the_trial(column: str) -> None:
    table = trials({}, {"case_id": "c2", "trial": 3, column: -5})
    with pytest.raises(LabError, match=f"^s/c2, d, trial 3: {column} is -5, which is less than none$"):
        priced(table, only(rates("1", "1", "1", "1")))


# ---- unknown and free ------------------------------------------------------------------------------------------


def test_an_unknown_model_costs_null_and_not_nothing() -> None:
    found = priced(trials({"model": "other"}, {"model": None}), only(rates("1", "1", "1", "1")))
    assert found["cost_micros"].to_list() == [None, None]
    assert found["cost_source"].to_list() == [None, None]
    assert found["cost_note"].to_list() == ["by hand has no price for other", "no model is named"]


def test_a_free_model_costs_nothing_and_not_null() -> None:
    """Whatever it used, known or not."""
    free = rates("0", "0", "0", "0.0")
    assert cost(free) == (0, None)
    assert cost(free, tokens_fresh_input=None, tokens_output=None, model_calls=None) == (0, None)


def test_a_cost_needs_every_bucket_that_its_price_asks_for() -> None:
    """Unknown tokens are null, also at a price that is unknown: the product of two unknowns is not nothing."""
    price = rates("1", "0.1", None, "2")
    assert cost(price) == (4_000 + 1_600 + 2_000, None)
    assert cost(price, tokens_output=None) == (None, "tokens_output is unknown")
    assert cost(price, tokens_cache_read=None) == (None, "tokens_cache_read is unknown")
    assert cost(price, tokens_cache_write=None) == (None, "tokens_cache_write is unknown")
    assert cost(rates("1", "0.1", "0", "2"), tokens_cache_write=None) == (7_600, None)
    unpriced = Rates(Decimal(1), Decimal(0), Decimal(0), None)
    assert cost(unpriced, tokens_output=None) == (None, "tokens_output is unknown")
    assert cost(price, tokens_cache_write=1) == (None, "no price for tokens_cache_write")
    assert cost(price, model_calls=None) == (7_600, None)


def test_a_price_by_the_call_is_added() -> None:
    price = rates("1", "0.1", "0", "2", model_call=Decimal(12_000))
    assert cost(price, model_calls=3) == (7_600 + 36_000, None)
    assert cost(price, model_calls=None) == (None, "model_calls is unknown")


def test_cached_tokens_without_a_discount_cost_as_much_as_fresh_ones() -> None:
    price = rates("1", None, None, "2", cached_as_fresh=True)
    assert cost(price, tokens_cache_write=500) == (4_000 + 16_000 + 500 + 2_000, None)
    assert cost(price, tokens_cache_read=None) == (None, "tokens_cache_read is unknown")
    free = rates("0", None, None, "2", cached_as_fresh=True)
    assert cost(free, tokens_cache_read=None) == (2_000, None)


def test_a_total_of_input_costs_only_what_its_own_price_says() -> None:
    """20,000 tokens of input, nobody says which were cached: at an assumed 0.5 they are 10,000 micros."""
    unsplit: dict[str, Any] = dict.fromkeys(("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write"))
    told: dict[str, Any] = {**unsplit, "extra": '{"tokens_input_total":20000}'}
    reason = "only the total of the input is known, and has no price"
    assert cost(rates("1", "0.1", None, "2"), **told) == (None, reason)
    assumed = rates("1", "0.1", None, "2", input_total=Decimal("0.5"))
    assert cost(assumed, **told) == (10_000 + 2_000, None)
    assert cost(assumed, **told, tokens_output=None) == (None, "tokens_output is unknown")
    # where the parts are known they are what counts
    assert cost(assumed, extra=told["extra"]) == (4_000 + 1_600 + 2_000, None)
    assert cost(assumed, **unsplit) == (None, "tokens_fresh_input is unknown")
    for damaged in ("{", "[]", '{"tokens_input_total":"many"}', '{"tokens_input_total":-1}'):
        assert cost(assumed, **unsplit, extra=damaged)[0] is None
    table = priced(trials({}, told), only(assumed))
    assert table["cost_source"].to_list() == ["priced", "assumed"]
    assert priced(table, only(assumed)).equals(table)


def test_a_price_that_steps_up_holds_only_below_the_step() -> None:
    """20,000 tokens of input may have been one call."""
    assert cost(rates("1", "0", "0", "0", up_to=20_000)) == (4_000, None)
    above = "calls above 19999 input tokens cost more, and the calls' own are not known"
    assert cost(rates("1", "0", "0", "0", up_to=19_999)) == (None, above)
    assert cost(rates("1", "0", "0", "0", up_to=10**9), tokens_cache_read=None)[0] is None


def test_a_cost_of_the_source_is_kept() -> None:
    """Also one of 0; only what is null is worked out, and pricing again changes nothing."""
    given = trials({"cost_micros": 7}, {"cost_micros": 0}, {}, {"tokens_output": None})
    price = only(rates("0.50", "0.05", None, "3.00"))
    found = priced(given, price)
    assert found["cost_micros"].to_list() == [7, 0, 5_800, None]
    assert found["cost_source"].to_list() == ["reported", "reported", "priced", None]
    assert priced(found, price).equals(found)
    assert found.drop("cost_micros", "cost_source", "cost_note").equals(given.drop("cost_micros"))


# ---- exact -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "price", "micros"),
    [(1, "0.5", 0), (3, "0.5", 2), (5, "0.5", 2), (1, "0.500000001", 1), (10**15, "0.000000001", 10**6)],
)
def test_a_cost_is_rounded_once_halves_to_even(tokens: int, price: str, micros: int) -> None:
    used = {"tokens_fresh_input": tokens, "tokens_cache_read": 0, "tokens_output": 0}
    assert cost(rates(price, "0", "0", "0"), **used) == (micros, None)


PRICE = st.decimals(0, 1_000, places=6)
COUNT = st.integers(0, 10**10)


@given(st.lists(PRICE, min_size=4, max_size=4), st.lists(COUNT, min_size=4, max_size=4))
def test_a_cost_is_the_exact_sum_of_its_buckets(four: list[Decimal], used: list[int]) -> None:
    whole = sum(price * count for price, count in zip(four, used, strict=True))
    row = dict(zip(prices.BUCKETS, used, strict=False))
    expected = Decimal(whole).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
    one, read, write, out = four
    assert cost(Rates(one, read, write, out), **row) == (int(expected), None)


# ---- files of prices -------------------------------------------------------------------------------------------

TABLE = """\ufeff# list prices, by hand
model,from,input,cache_read,cache_write,output

small,2025-01-01,0.50,0.05,,3.00
small,2025-07-01,0.40,0.04,0.60,2.00
sm*,2024-01-01,9,9,9,9
*,2024-01-01,0,0,0,0
"""


@pytest.mark.parametrize(
    ("model", "on", "found"),
    [
        ("small", date(2025, 6, 30), rates("0.50", "0.05", None, "3.00")),
        ("small", date(2025, 7, 1), rates("0.40", "0.04", "0.60", "2.00")),
        ("small", date(2026, 1, 1), rates("0.40", "0.04", "0.60", "2.00")),
        ("smaller", DAY, rates("9", "9", "9", "9")),
        ("large", DAY, rates("0", "0", "0", "0")),
        ("small", date(2024, 12, 31), "prices.csv has no price for small on 2024-12-31"),
    ],
)
def test_a_file_of_prices_gives_the_price_that_held_on_the_day(
    model: str, on: date, found: Rates | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name goes before the patterns, the first pattern before the others."""
    monkeypatch.chdir(tmp_path)
    read = prices.load(str(file(tmp_path, TABLE)), on)
    assert read.find(model) == found
    assert (read.name, read.on) == ("prices.csv", on)


def test_a_file_is_read_on_any_system(tmp_path: Path) -> None:
    """Other line ends, another order of columns, quoted cells."""
    text = 'from,model,output,input,cache_write,cache_read\r\n2025-01-01,"a,b",4,1, 3 ,2\r\n'
    assert prices.from_file(file(tmp_path, text), DAY).find("a,b") == rates("1", "2", "3", "4")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "p.csv: holds no prices"),
        (HEADER, "p.csv: holds no prices"),
        (HEADER.replace("input", "inputs"), "p.csv:1: no column 'inputs' (did you mean 'input'?)"),
        (HEADER.replace("input,", ""), "p.csv:1: each column once, please: input"),
        (HEADER + "\n# x\nm,2025-01-01,1,1,1\n", "p.csv:4: 5 cells for 6 columns"),
        (HEADER + "m,2025-13-01,1,1,1,1\n", "p.csv:2: from is '2025-13-01', not a day such as 2025-01-31"),
        (HEADER + "m,2025-01-01,-1,1,1,1\n", "p.csv:2: input is '-1', not a price in dollars per million tokens"),
        (HEADER + "m,2025-01-01,1,1,1,nan\n", "p.csv:2: output is 'nan', not a price in dollars per million tokens"),
        (HEADER + "m,2025-01-01,1,1,1,$1\n", "p.csv:2: output is '$1', not a price in dollars per million tokens"),
        (HEADER + "m,2025-01-01,1,1,1,0.0000000001\n", "p.csv:2: output has more than 9 decimal places"),
        (HEADER + ",2025-01-01,1,1,1,1\n", "p.csv:2: names no model"),
        (HEADER + "m,2025-01-01,1,1,1,1\nm,2025-01-01,1,1,1,1\n", "p.csv:3: a second row for m from 2025-01-01"),
        (HEADER + 'm,2025-01-01,1,1,1,"1\n', "p.csv:2: unexpected end of data"),
        (HEADER + "m,x,1,1,1,1\nm,2025-01-01,1,1,1,x\n", "p.csv:2: from is 'x', not a day such as 2025-01-31\np.csv:3: "),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_said_with_its_line(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError) as caught:
        prices.from_file(file(tmp_path, text, "p.csv"), DAY)
    assert str(caught.value).startswith(says)


def test_a_file_that_is_not_there_or_no_text_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError, match=r"^genia: No such file or directory \(did you mean 'genai'\?\)$"):
        prices.load("genia", DAY)
    (tmp_path / "latin.csv").write_bytes(b"\xe9\xff")
    with pytest.raises(LabError, match=r"^latin\.csv: is not UTF-8 text$"):
        prices.load("latin.csv", DAY)


# ---- the package of prices -------------------------------------------------------------------------------------

genai_prices = pytest.importorskip("genai_prices", reason="the extra prices is not installed")


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "openai/gpt-4o",
        "claude-opus-4-20250514",
        "anthropic/claude-sonnet-4-5",
        "mistral-large-latest",
    ],
)
@pytest.mark.parametrize("write", [0, 700])
def test_a_cost_is_what_the_package_asks_for_one_call(model: str, write: int) -> None:
    """With and without prices for reading and writing a cache, and below the step where there is one."""
    provider, _, name = model.rpartition("/")
    usage = genai_prices.Usage(
        input_tokens=20_000 + write,
        cache_read_tokens=16_000,
        cache_write_tokens=write,
        output_tokens=1_000,
    )
    whole = genai_prices.calc_price(
        usage,
        name,
        provider_id=provider or None,
        genai_request_timestamp=datetime(2026, 1, 1, 12, tzinfo=UTC),
    )
    table = trials({"model": model, "tokens_cache_write": write})
    found = priced(table, prices.load("genai", DAY))
    assert found["cost_micros"].to_list() == [round(whole.total_price * 10**6)]


def test_the_package_knows_what_a_model_cost_on_a_day() -> None:
    """The price of o3 fell in June 2025."""
    before, after = (prices.from_genai(day).find("openai/o3") for day in (date(2025, 6, 1), date(2025, 7, 1)))
    assert isinstance(before, Rates) and isinstance(after, Rates)
    assert (before.input, after.input) == (Decimal(10), Decimal(2))


def test_the_package_says_what_it_does_not_know_and_what_is_free() -> None:
    found = prices.from_genai(DAY)
    assert found.name == f"genai-prices {genai_prices.__version__}"
    for unknown in ("no-such-model", "openai/no-such-model", "no-such-provider/gpt", ""):
        said = found.find(unknown)
        assert isinstance(said, str)
        assert said.startswith(f"{found.name} has no price for {unknown}")
        assert said.endswith("give a file of prices with it")
    assert "no price by the token" in str(found.find("openai/whisper-1"))
    assert "depends on the hour" in str(prices.from_genai(date(2025, 6, 1)).find("deepseek/deepseek-chat"))
    assert found.find("openrouter/glm-4-32b:free") == rates("0", "0", "0", "0")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(LabError, match=r"pip install 'agentbench-lab\[prices\]'"):
        prices.load("genai", DAY)


def test_a_file_may_say_what_a_total_of_input_is_taken_to_cost(tmp_path: Path) -> None:
    """In a column of its own, that most files do without; twice it is refused, as is a near miss."""
    text = f"{HEADER.strip()},input_total\nm,2025-01-01,1,,0,2,0.5\nn,2025-01-01,1,,0,2,\n"
    found = prices.from_file(file(tmp_path, text), DAY)
    assert [each.input_total for each in (found.find("m"), found.find("n")) if isinstance(each, Rates)] == [
        Decimal("0.5"),
        None,
    ]
    with pytest.raises(LabError, match="each column once, please: input_total"):
        prices.from_file(file(tmp_path, f"{HEADER.strip()},input_total,input_total\n"), DAY)
    with pytest.raises(LabError, match=r"no column 'input_totals'.*did you mean 'input_total'"):
        prices.from_file(file(tmp_path, f"{HEADER.strip()},input_totals\n"), DAY)


def test_an_assumed_cost_says_so_where_it_is_counted() -> None:
    """Two trials of 10,000 tokens of input each at an assumed 0.5 a million: $0.005 each, by name an assumption."""
    used: dict[str, Any] = dict.fromkeys(("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write"))
    used |= {"tokens_output": 0, "extra": '{"tokens_input_total":10000}', "model": "m"}
    more = {"evidence": "imported", "excluded": None, "solved": True, "cached": False, "wall_s": None}
    rows = [{**used, **more, "case_id": f"c{n}", "tool_calls": None} for n in (1, 2)]
    table = trials(*rows, schema={**COLUMNS, **MORE})
    assumed = rates("1", "0.1", None, "2", input_total=Decimal("0.5"))
    found = metrics.cost(table, only(assumed))
    one = found.row(by_predicate=pl.col("metric") == "per_trial", named=True)
    assert (one["estimate"], one["n"], one["of"]) == (0.005, 2, 2)
    assert (
        "2 costs by by hand on 2026-01-01, 2 with all input at its price for input_total" in one["estimator"]
    )
    assert "only the total of the input is known" in one["reason"]


@pytest.mark.parametrize(
    ("model", "meant"), [("openai_gpt-4o", "openai/gpt-4o"), ("somewhere/gpt-4o", "gpt-4o")]
)
def test_a_model_under_another_name_is_pointed_out(model: str, meant: str) -> None:
    """As folders of results write a provider: nothing is priced by a guess, but the name that has a price is told."""
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    said = prices.from_genai(date(2025, 11, 1)).find(model)
    assert isinstance(said, str)
    assert f"has no price for {model}, but for {meant}: import it under that name" in said
