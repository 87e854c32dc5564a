"""Verdicts of Inspect's scorers: which of several counts, what a value is as a number, and its published figures.

The rules are those of `inspect_ai.scorer` (value_to_float, the reducers over epochs, accuracy, mean, stderr, std, var),
checked against version 0.3.285.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentbench_lab.benchmarks.inspect.log import EvalScore, Log, Metric, Sample
from agentbench_lab.benchmarks.reading import agrees
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.run import Published
from agentbench_lab.stats import pass_at_k, pass_hat_k, standard_error
from agentbench_lab.values import a_kind

_ONE = "score"  # what the one score of a log of 2023 is called where its results have no name for it


class Chosen(Struct, frozen=True):
    """The scorer whose values are the verdicts, the key within them where they are dicts, and what else there was."""

    scorer: str
    key: str = ""
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.scorer}.{self.key}" if self.key else self.scorer


def choose(log: Log, wanted: str, where: str) -> Chosen | None:
    """The scorer to judge by: the one that is `wanted`, else the only one, else the one that the log gives as its
    result, else its first. None for a log without any score.

    `wanted` is a scorer's name, or NAME.KEY where its values are dicts. Raises LabError for a name that is not there.
    """
    names = _names(log)
    if not names:
        return None
    found = {name: keys for name, keys in names.items() if wanted == name or wanted.startswith(f"{name}.")}
    everything = [f"{name}.{key}" if key else name for name, keys in names.items() for key in keys or ("",)]
    if wanted and not found:
        raise LabError(f"{where}: no scorer {wanted!r}{did_you_mean(wanted, everything, most=20)}")
    if wanted:
        scorer = max(found, key=len)
        key = wanted[len(scorer) + 1 :]
        if key and key not in names[scorer]:
            raise LabError(f"{where}: {scorer} has no {key!r}{did_you_mean(key, names[scorer], most=20)}")
    else:
        scorer, key = _headline(log, names)
    key = key or next(iter(names[scorer]), "")
    chosen = f"{scorer}.{key}" if key else scorer
    return Chosen(scorer, key, tuple(name for name in everything if name != chosen))


def _names(log: Log) -> dict[str, tuple[str, ...]]:
    """The scorers that some sample has a score of, in the order of the results, with the keys of dicts of values."""
    results = log.header.results
    figures = results.figures() if results is not None else []
    for sample in log.samples:
        if sample.score is not None:
            sample.scores = {figures[0].name if figures else _ONE: sample.score}
            sample.score = None
    keys: dict[str, dict[str, None]] = {}
    for sample in log.samples:
        for name, score in (sample.scores or {}).items():
            known = keys.setdefault(name, {})
            if type(score.value) is dict:
                known.update(dict.fromkeys(map(str, score.value)))
    order = list(dict.fromkeys(figure.scorer or figure.name for figure in figures))
    ordered = [name for name in order if name in keys] + [name for name in keys if name not in order]
    return {name: tuple(keys[name]) for name in ordered}


def _headline(log: Log, names: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    results = log.header.results
    headline = results.headline if results is not None else None
    if headline is not None and headline.scorer in names:
        key = headline.score or ""
        return headline.scorer or "", key if key in names[headline.scorer or ""] else ""
    return next(iter(names)), ""


def value_of(sample: Sample, chosen: Chosen, where: str) -> tuple[Any, str | None]:
    """The value that the chosen scorer gave, or None and why there is none.

    Raises LabError for a list, and for a dict that lacks the key: they are no single verdict.
    """
    score = (sample.scores or {}).get(chosen.scorer)
    if score is None:
        return None, f"no score by {chosen.scorer}"
    value = score.value
    if type(value) is dict:
        if chosen.key not in value:
            raise LabError(f"{where}: the score by {chosen.scorer} has no {chosen.key!r}")
        value = value[chosen.key]
    if value is None:
        return None, f"not scored by {chosen}" + (f": {score.reason}" if score.reason else "")
    if type(value) not in (str, int, float, bool):
        raise LabError(f"{where}: the score by {chosen} is {a_kind(type(value).__name__)}, no single verdict")
    return value, None


_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def number(value: str | float) -> float | None:
    """A value as Inspect counts it: C 1, P 0.5, I and N 0, yes and true 1, no and false 0, numbers as they are.

    None is other text, which Inspect counts as 0.
    """
    if isinstance(value, str):
        if value in _LETTERS:
            return _LETTERS[value]
        if value.lower() in _WORDS:
            return _WORDS[value.lower()]
        try:
            found = float(value)
        except ValueError:
            return None
        return found if math.isfinite(found) else None
    try:
        return float(value)
    except OverflowError:
        return None


class Figures:
    """The values of one log's samples by case, and the figures that follow from them."""

    def __init__(self, values: Mapping[str, Sequence[Any]]) -> None:
        self._values = [list(case) for case in values.values() if case]
        self._numbers = [[number(each) or 0.0 for each in case] for case in self._values]
        self.share = all(0 <= each <= 1 for case in self._numbers for each in case)
        self._reduced: dict[str | None, list[list[float]]] = {}

    def reductions(self, reducer: str | None) -> list[list[float]]:
        """One number a case, none where a case has too few values. Without a reducer's name it is the mean; or,
        reduction being off, every value for itself. Empty for a reducer that is not known."""
        if reducer not in self._reduced:
            self._reduced[reducer] = self._reduce(reducer)
        return self._reduced[reducer]

    def _reduce(self, reducer: str | None) -> list[list[float]]:
        if reducer is None:
            each = [value for case in self._numbers for value in case]
            return [list(map(statistics.fmean, self._numbers)), each]
        if reducer == "mode":
            return [[number(Counter(case).most_common(1)[0][0]) or 0.0 for case in self._values]]
        if reducer in _REDUCERS:
            return [list(map(_REDUCERS[reducer], self._numbers))]
        parts = re.fullmatch(r"(pass_at|pass_k|at_least)_(\d{1,6})", reducer)
        if parts is None or not int(parts[2]):
            return []
        kind, k = _PASSES[parts[1]], int(parts[2])
        found = (kind(sum(each >= 1 for each in case), len(case), k) for case in self._numbers)
        return [[each for each in found if each is not None]]


def published(log: Log, chosen: Chosen, figures: Figures, driver: str, note: str) -> list[Published]:
    """The figures that the log's results give for the chosen scorer, each with what the values give."""
    results = log.header.results
    wanted = {chosen.key or chosen.scorer, str(chosen)}
    return [
        _claim(score, name, metric, metric.value, figures, driver, log.header.eval.model, note)
        for score in (results.figures() if results is not None else ())
        if (score.scorer or score.name) == chosen.scorer and score.name in wanted
        for name, metric in score.metrics.items()
        if metric.value is not None
    ]


def _claim(
    score: EvalScore,
    name: str,
    metric: Metric,
    value: float,
    figures: Figures,
    driver: str,
    model: str,
    note: str,
) -> Published:
    rows = None
    statistic = _STATISTICS.get(metric.name.rpartition("/")[2])
    if statistic is not None and not metric.params and not metric.options:
        given = [statistic(numbers) for numbers in figures.reductions(score.reducer) if numbers]
        rows = next((each for each in given if agrees(value, each, 9)), given[0] if given else None)
    if rows is None:
        note = "; ".join(filter(None, ("not computed here", note)))
    return Published(
        driver=driver,
        model=model,
        metric=f"{score.name} {name}" + (f" ({score.reducer})" if score.reducer else ""),
        unit="share" if figures.share and rows is not None else "score",
        published=value,
        rows=rows,
        follows=rows is not None and agrees(value, rows, 9),
        note=note,
    )


_REDUCERS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "max": max,
}


_PASSES: dict[str, Callable[[int, int, int], float | None]] = {
    "pass_at": pass_at_k,
    "pass_k": pass_hat_k,
    "at_least": lambda solved, n, k: float(solved >= k),
}


def _spread(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


_STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "accuracy": statistics.fmean,
    "mean": statistics.fmean,
    "stderr": lambda values: standard_error(values) or 0.0,
    "std": _spread,
    "var": lambda values: _spread(values) ** 2,
}
