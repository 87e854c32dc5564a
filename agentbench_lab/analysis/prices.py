"""What tokens cost, at analysis time: the prices of a day, and the cost of trials whose source gives none."""

from __future__ import annotations

import csv
import fnmatch
import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa

GENAI = "genai"
"""The word for the prices of the package genai-prices, where a file of prices could be named."""
PLACES = 9
"""Decimal places of a price in dollars per million tokens that are kept; more is refused."""

BUCKETS = {
    "tokens_fresh_input": "input",
    "tokens_cache_read": "cache_read",
    "tokens_cache_write": "cache_write",
    "tokens_output": "output",
    "model_calls": "model_call",
}
"""What is paid for: the column of `trials`, and the price of it."""
_INPUT = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write")
_COLUMNS = ("model", "from", "input", "cache_read", "cache_write", "output")
_TOTAL = "input_total"
"""The column of a file of prices that may be left out."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one model costs: dollars per million tokens, which is micros of a dollar per token. None is no such price.

    `input_total` is what an input token is taken to cost where a source tells only how many there were, cached or not:
    an assumption, so that it is never the default. `model_call` is in micros per call. Cached tokens without a price of their own cost as much as fresh ones where
    `cached_as_fresh`, else their cost is unknown. `up_to` is the input of one call, in tokens, above which other rates
    hold; None where there is no such step.
    """

    input: Decimal | None
    cache_read: Decimal | None
    cache_write: Decimal | None
    output: Decimal | None
    model_call: Decimal = Decimal(0)
    cached_as_fresh: bool = False
    up_to: int | None = None
    input_total: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a day. `find` gives a model's rates, or says in a few words why there are none."""

    name: str
    on: date
    find: Callable[[str], Rates | str]


def load(source: str, on: date) -> Prices:
    """The prices that held `on` a day: from the package genai-prices for `genai`, else from a file of prices."""
    return from_genai(on) if source == GENAI else from_file(source, on)


def from_file(path: str | Path, on: date) -> Prices:
    """The prices that held `on` a day, from a CSV file.

    Its columns are model, from, input, cache_read, cache_write and output. `model` is a name or a pattern with `*` and
    `?`; a name goes before patterns, and of patterns the one that comes first in the file. `from` is the first day on
    which the row holds (2025-01-31). The prices are dollars per million tokens; 0 is free of charge, or a kind of tokens
    that there is not, and an empty cell is a price that is not known. A seventh column, input_total, may be left out:
    what a token of input is taken to cost where only their total is known. Blank lines and lines that begin with # say nothing. Raises LabError with
    `file:line` for every row that cannot be read.
    """
    file = shown(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LabError(f"{file}: {error.strerror or error}{_meant(str(path))}") from None
    except UnicodeDecodeError:
        raise LabError(f"{file}: is not UTF-8 text") from None
    by_model = _read(text, file)

    def find(model: str) -> Rates | str:
        names = [model] if model in by_model else [n for n in by_model if fnmatch.fnmatchcase(model, n)]
        if not names:
            return f"{file} has no price for {model}"
        holding = [(since, rates) for since, rates in by_model[names[0]].items() if since <= on]
        if not holding:
            return f"{file} has no price for {model} on {on}"
        return max(holding, key=lambda each: each[0])[1]

    return Prices(file, on, find)


def _meant(path: str) -> str:
    return did_you_mean(path, [GENAI], most=0)


def _read(text: str, file: str) -> dict[str, dict[date, Rates]]:
    """By model, in the order of the file: the rates from each day on."""
    # as many lines stay as there were, so that the reader's count of them is the file's
    kept = "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))
    reader = csv.reader(io.StringIO(kept, newline=""), strict=True)
    problems: list[Problem] = []
    found: dict[str, dict[date, Rates]] = {}
    header: list[str] | None = None
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            line = reader.line_num
            if not any(cells):
                continue
            if header is None:
                header = _header(cells, file, line)
                continue
            try:
                if len(cells) != len(header):
                    raise ValueError(f"{len(cells)} cells for {len(header)} columns")
                row = dict(zip(header, cells, strict=True))
                if not row["model"]:
                    raise ValueError("names no model")
                since = _day(row["from"])
                one, read, write, out = (_price(name, row[name]) for name in _COLUMNS[2:])
                whole = _price(_TOTAL, row.get(_TOTAL, ""))
                if since in found.setdefault(row["model"], {}):
                    raise ValueError(f"a second row for {row['model']} from {since}")
                found[row["model"]][since] = Rates(one, read, write, out, input_total=whole)
            except ValueError as error:
                problems.append(Problem(file, line, str(error)))
    except csv.Error as error:
        problems.append(Problem(file, reader.line_num, str(error)))
    if problems:
        raise ProblemsError(problems)
    if not found:
        raise LabError(f"{file}: holds no prices")
    return found


def _header(cells: list[str], file: str, line: int) -> list[str]:
    for name in cells:
        if name not in (*_COLUMNS, _TOTAL):
            near = did_you_mean(name, (*_COLUMNS, _TOTAL))
            raise ProblemsError([Problem(file, line, f"no column {name!r}{near}")])
    odd = [name for name in _COLUMNS if cells.count(name) != 1]
    odd += [_TOTAL] if cells.count(_TOTAL) > 1 else []
    if odd:
        raise ProblemsError([Problem(file, line, f"each column once, please: {', '.join(odd)}")])
    return cells


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"from is {text!r}, not a day such as 2025-01-31") from None


def _price(name: str, text: str) -> Decimal | None:
    if not text:
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or price < 0 or price >= 10**PLACES:
        raise ValueError(f"{name} is {text!r}, not a price in dollars per million tokens")
    if price != round(price, PLACES):
        raise ValueError(f"{name} has more than {PLACES} decimal places")
    return price


def _priced(model: str, on: date) -> str:
    """Under what other name genai-prices may know the model: a provider that stands before an underscore, or none."""
    import genai_prices

    for name in (model.replace("_", "/", 1), model.partition("_")[2], model.rpartition("/")[2]):
        if name and name != model:
            try:
                genai_prices.calc_price(
                    genai_prices.Usage(),
                    name,
                    provider_id="litellm" if "/" in name else None,
                    genai_request_timestamp=datetime.combine(on, time(), UTC),
                )
            except LookupError:
                continue
            return f", but for {name}: import it under that name, or give a file of prices with {model} in it"
    return ": give a file of prices with it"


def from_genai(on: date) -> Prices:
    """The prices that held `on` a day, from the data within the package genai-prices; nothing is fetched.

    A model's name may have its provider before a slash. Only tokens and calls are priced: what a provider asks for its
    own searches or for storage is not in it, and all tokens count as text.
    Raises LabError when the package is not installed.
    """
    try:
        import genai_prices
    except ImportError:
        raise LabError("prices genai need the extra: pip install 'agentbench-lab[prices]'") from None
    name = f"genai-prices {metadata.version('genai-prices')}"

    def of(model: str, at: datetime) -> Rates | str:
        # "litellm" is that package's word for: the provider stands before the slash
        found = genai_prices.calc_price(
            genai_prices.Usage(),
            model,
            provider_id="litellm" if "/" in model else None,
            genai_request_timestamp=at,
        )
        return _genai_rates(found.model_price, name, model)

    def find(model: str) -> Rates | str:
        try:
            # some models are cheaper at night; the hour of a trial is not known
            every_hour = [
                of(model, datetime.combine(on, time(hour, minute), UTC))
                for hour in range(24)
                for minute in (0, 30)
            ]
        except LookupError:
            return f"{name} has no price for {model}{_priced(model, on)}"
        if len(set(every_hour)) > 1:
            return f"{name}: the price of {model} depends on the hour"
        return every_hour[0]

    return Prices(name, on, find)


def _genai_rates(found: Any, name: str, model: str) -> Rates | str:
    """The package's price of a model; one without any price is free of charge there."""
    priced = {key: value for key, value in vars(found).items() if value is not None}
    if not priced:
        return Rates(Decimal(0), Decimal(0), Decimal(0), Decimal(0))
    if "input_mtok" not in priced and "output_mtok" not in priced:
        return f"{name} has no price by the token for {model}"
    steps: list[int] = []

    def base(key: str) -> Decimal | None:
        price = priced.get(key)
        if price is None or isinstance(price, Decimal):
            return price
        steps.extend(tier.start for tier in price.tiers)
        return Decimal(price.base)

    per_thousand = base("requests_kcount")
    return Rates(
        base("input_mtok"),
        base("cache_read_mtok"),
        base("cache_write_mtok"),
        base("output_mtok"),
        Decimal(0) if per_thousand is None else per_thousand * 1000,
        cached_as_fresh=True,
        up_to=min(steps, default=None),
    )


def priced(trials: pa.Table | pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """The trials with the cost of those whose source gives none, by their model's price and their tokens.

    A source's own cost stays. A cost is worked out only where everything that the price asks for is known: a null
    stays null for a model without a price, and for unknown tokens unless they are free of charge. Where a source tells
    only the total of the input (`tokens_input_total` in `extra`), the cost is worked out by `input_total` alone, and is
    null without that price. A price that steps
    up with the input of one call holds only for trials whose whole input stays below the step. The sum is exact, and
    rounded to whole micros, halves to even. Two columns are added: `cost_source` (reported, priced, `assumed` for
    one whose input takes the price of a total, or null without a cost), and `cost_note` (why there is none). Raises LabError for a negative count of tokens.
    """
    table = trials if isinstance(trials, pl.DataFrame) else pl.DataFrame(trials)
    _no_negatives(table)
    if "cost_source" not in table.columns:  # else it has been priced before
        reported = pl.when(pl.col("cost_micros").is_not_null()).then(pl.lit("reported"))
        table = table.with_columns(cost_source=reported)
    models = table.filter(pl.col("cost_micros").is_null())["model"].unique(maintain_order=True).to_list()
    worked = (
        table.select("model", "cost_micros", *BUCKETS, _input_total(table))
        .join(_rates(models, prices), on="model", how="left", nulls_equal=True, maintain_order="left")
        .select(micros=_micros(), note=_note(), assumed=_by_total())
    )
    unknown = pl.col("cost_micros").is_null()
    return table.with_columns(
        cost_micros=pl.col("cost_micros").fill_null(worked["micros"]),
        cost_source=pl.when(unknown & worked["micros"].is_not_null())
        .then(pl.when(worked["assumed"]).then(pl.lit("assumed")).otherwise(pl.lit("priced")))
        .otherwise("cost_source"),
        cost_note=pl.when(unknown & worked["micros"].is_null()).then(worked["note"]),
    )


def _no_negatives(table: pl.DataFrame) -> None:
    for column in BUCKETS:
        wrong = table[column] < 0
        if wrong.any():
            row = table.row(int(wrong.arg_true()[0]), named=True)
            raise LabError(
                f"{row['suite']}/{row['case_id']}, {row['driver']}, trial {row['trial']}: "
                f"{column} is {row[column]}, which is less than none"
            )


def _rates(models: list[str | None], prices: Prices) -> pl.DataFrame:
    """A row a model: its rates as whole numbers of 10^-PLACES micros, and why there are none."""
    rows = []
    for model in models:
        found = "no model is named" if model is None else prices.find(model)
        row: dict[str, Any] = {"model": model, "why": found if isinstance(found, str) else None}
        if not isinstance(found, str):
            if found.cached_as_fresh:
                row |= {"cache_read_as": _whole(found.input), "cache_write_as": _whole(found.input)}
            row |= {rate: _whole(getattr(found, rate)) for rate in BUCKETS.values()}
            row |= {"up_to": found.up_to, _TOTAL: _whole(found.input_total)}
        rows.append(row)
    rates = (*BUCKETS.values(), "cache_read_as", "cache_write_as", _TOTAL)
    schema = {"model": pl.String, "why": pl.String, "up_to": pl.Int64, **dict.fromkeys(rates, pl.Int128)}
    return pl.DataFrame(rows, schema=schema)


def _whole(price: Decimal | None) -> int | None:
    return None if price is None else int(price.scaleb(PLACES).to_integral_exact())


def _charged(rate: str) -> pl.Expr:
    """What a token of the bucket costs: its own price, or that of fresh input."""
    own = pl.col(rate)
    return pl.coalesce(own, f"{rate}_as") if rate.startswith("cache_") else own


def _input_total(table: pl.DataFrame) -> pl.Expr:
    """How many tokens of input a trial had in all, where the source tells no more of them."""
    if "extra" not in table.columns:
        return pl.lit(None, pl.Int64).alias("tokens_input_total")
    total = pl.col("extra").str.json_path_match("$.tokens_input_total").cast(pl.Int64, strict=False)
    return total.alias("tokens_input_total")


def _by_total() -> pl.Expr:
    """Whether the input takes the price of a total: its parts are unknown, the total and its price are not."""
    known = pl.col("tokens_input_total").is_not_null() & (pl.col("tokens_input_total") >= 0)
    return known & pl.col("tokens_fresh_input").is_null() & pl.col(_TOTAL).is_not_null()


def _free(column: str, rate: str) -> pl.Expr:
    """Whether these tokens cost nothing: there are none, or each is free of charge, however many there are."""
    tokens = pl.col(column)
    return (tokens == 0).fill_null(False) | (tokens.is_null() & (_charged(rate) == 0).fill_null(False))


def _step() -> pl.Expr:
    """Whether some call may lie above the step up to which the rates hold."""
    above = pl.sum_horizontal(_INPUT, ignore_nulls=False) > pl.col("up_to")
    return pl.col("up_to").is_not_null() & above.fill_null(True)


def _micros() -> pl.Expr:
    """The cost in whole micros; null where it is unknown."""
    zero, unit = pl.lit(0, pl.Int128), pl.lit(10**PLACES, pl.Int128)
    parts = []
    for column, rate in BUCKETS.items():
        part = pl.col(column).cast(pl.Int128) * _charged(rate)
        if column in _INPUT:
            total = pl.col("tokens_input_total").cast(pl.Int128) * pl.col(_TOTAL)
            part = (
                pl.when(_by_total())
                .then(total if column == _INPUT[0] else zero)
                .otherwise(pl.when(_free(column, rate)).then(zero).otherwise(part))
            )
        else:
            part = pl.when(_free(column, rate)).then(zero).otherwise(part)
        parts.append(part)
    # without a price every part of a trial that used nothing would be 0
    total = pl.when(pl.col("why").is_null() & ~_step()).then(pl.sum_horizontal(parts, ignore_nulls=False))
    whole, rest = total // unit, total % unit
    up = (rest * 2 > unit) | ((rest * 2 == unit) & (whole % 2 == 1))
    return (whole + up.cast(pl.Int128)).cast(pl.Int64)


def _note() -> pl.Expr:
    """Why there is no cost: the first of the reasons that holds."""
    notes = [
        pl.col("why"),
        pl.when(_step()).then(
            pl.format("calls above {} input tokens cost more, and the calls' own are not known", "up_to")
        ),
    ]
    for column, rate in BUCKETS.items():
        tokens = pl.col(column)
        missing = tokens.is_null() & ~_free(column, rate)
        unpriced = (tokens > 0) & _charged(rate).is_null()
        if column in _INPUT:
            missing, unpriced = missing & ~_by_total(), unpriced & ~_by_total()
        if column == _INPUT[0]:
            only = missing & pl.col("tokens_input_total").is_not_null()
            notes.append(pl.when(only).then(pl.lit("only the total of the input is known, and has no price")))
        notes.append(pl.when(missing).then(pl.lit(f"{column} is unknown")))
        notes.append(pl.when(unpriced).then(pl.lit(f"no price for {column}")))
    return pl.coalesce(notes)
