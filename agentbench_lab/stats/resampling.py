"""Bootstraps that draw whole cases: trials of one case depend on each other, cases are assumed not to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bootstrap_over_cases(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """The percentile interval of the pooled rate sum(successes) / sum(trials), resampling whole cases; None without.

    `successes` and `trials` are one number a case. Trials of one case are not independent, cases are assumed to be:
    so cases are drawn with replacement and bring all their trials, by kinds (`resample_kinds`), which is exact. Source: Efron and Tibshirani, "An Introduction to
    the Bootstrap" (1993), section 13; for clustered evaluation data Miller, "Adding error bars to evals" (2024).
    """
    c, n = _two(successes, trials, "successes and trials")
    if (c < 0).any() or (c > n).any():
        raise ValueError("a case has more successes than trials")
    if not n.any():
        return None
    # in the order of trials, then successes: that of the kinds of pass^k, so that both draw the same
    kinds, cases = np.unique(np.column_stack([n, c])[n > 0], axis=0, return_counts=True)
    drawn = resample_kinds(cases, kinds, seed=seed, resamples=resamples)
    low, high = percentile_interval((drawn[:, 1] / drawn[:, 0])[:, None], level)
    return float(low[0]), float(high[0])


def ratio_over_cases(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """The percentile interval of sum(numerator) / sum(denominator), resampling whole cases.

    One number a case each, such as what a case cost and how often it was solved; the denominators must not be negative.
    A resample in which the denominators sum to 0 is not left out: the ratio is infinite there, so that `high` is `inf`
    where more than the upper tail of the resamples are such (only 0 / 0 counts for nothing). None without a case and
    where all denominators are 0. Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.
    """
    x, y = _two(numerator, denominator, "numerator and denominator")
    if not (y >= 0).all():
        raise ValueError("a denominator is negative")
    if not y.any():
        return None
    ratios = np.empty(resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, drawn in _draws(x.size, seed, resamples):
            ratios[part] = x[drawn].sum(axis=1) / y[drawn].sum(axis=1)
    low, high = percentile_interval(ratios[:, None], level)
    return float(low[0]), float(high[0])


def paired_over_cases(
    a: npt.ArrayLike, b: npt.ArrayLike, *, seed: int = 0, resamples: int = 10_000, level: float = 0.95
) -> tuple[float, float] | None:
    """The percentile interval of mean(b - a) over paired cases, resampling whole cases; None without a case.

    `a` and `b` are one number a case (the mean over its trials), in the same order. Pairing takes the difficulty of
    the cases out of the difference. Cases are assumed independent. Source: Efron and Tibshirani, "An Introduction to
    the Bootstrap" (1993); for evaluation data Miller, "Adding error bars to evals" (2024), section on paired analysis.
    """
    d = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    if d.ndim != 1:
        raise ValueError("a and b must be two lists of one length")
    if d.size == 0:
        return None
    means = np.empty(resamples)
    for part, drawn in _draws(d.size, seed, resamples):
        means[part] = d[drawn].mean(axis=1)
    low, high = percentile_interval(means[:, None], level)
    return float(low[0]), float(high[0])


def bootstrap_over_kinds(
    cases: npt.ArrayLike,
    values: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> tuple[Floats, Floats]:
    """The percentile intervals of several means over cases at once, resampling whole cases of a few kinds.

    The two ends, one number a column of `values`; NaN for a column that no case knows. See `resample_kinds`.
    """
    return percentile_interval(resample_kinds(cases, values, known, seed=seed, resamples=resamples), level)


def resample_kinds(
    cases: npt.ArrayLike,
    values: npt.ArrayLike,
    known: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
    resamples: int = 10_000,
) -> Floats:
    """Means over cases in resamples of whole cases, where a case enters only by its kind: resamples x columns.

    `cases` counts the cases of each kind (such as: 3 of 8 trials solved), `values` has a row a kind and a column a
    statistic (such as pass^1 to pass^8), `known` says in the same shape which kinds a statistic is a mean over (all,
    where it is left out); a mean over no case is NaN. Drawing cases with replacement makes the counts of the kinds
    multinomial: that is what is drawn, so the resamples are those of drawing cases one by one, exactly in distribution,
    at the price of the kinds rather than of the cases. Two arms on common cases are one kind for each pair of counts.
    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 6.
    """
    count = np.asarray(cases, dtype=np.int64)
    v = np.asarray(values, dtype=np.float64)
    m = np.ones_like(v) if known is None else np.asarray(known, dtype=np.float64)
    if count.ndim != 1 or v.ndim != 2 or v.shape[0] != count.size or m.shape != v.shape:
        raise ValueError("cases must have one number a kind, values and known one row a kind")
    if (count < 0).any():
        raise ValueError("counts must not be negative")
    total = int(count.sum())
    if not total:
        return np.full((resamples, v.shape[1]), np.nan)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(total, count / total, size=resamples).astype(np.float64)
    if known is None:
        return drawn @ v / total
    with np.errstate(invalid="ignore"):
        return np.asarray((drawn @ (v * m)) / (drawn @ m))


def percentile_interval(resampled: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """The ends that leave (1 - level) / 2 of the resamples outside on either side, by column of resamples x columns.

    NaN counts for nothing; a column of nothing else has NaN ends. An end among infinite resamples is infinite.
    """
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    ends = np.full((2, resampled.shape[1]), np.nan)
    for column, line in enumerate(np.sort(resampled.T, axis=1)):
        line = line[: np.searchsorted(line, np.nan)]  # NaN is sorted last
        if line.size and np.isfinite(line[[0, -1]]).all():
            ends[:, column] = np.quantile(line, tails)
        elif line.size:
            # interpolating next to an infinite value would give NaN
            ends[:, column] = np.quantile(line, tails, method="inverted_cdf")
    return ends[0], ends[1]


def _two(a: npt.ArrayLike, b: npt.ArrayLike, names: str) -> tuple[Floats, Floats]:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"{names} must be two lists of one length")
    return x, y


def _draws(cases: int, seed: int, resamples: int) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    """The cases of each resample, some resamples at a time: that bounds the memory for large suites."""
    rng = np.random.default_rng(seed)
    block = max(1, 2_000_000 // cases)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        yield slice(start, stop), rng.integers(0, cases, size=(stop - start, cases))


def resample_sums(values: npt.ArrayLike, *, seed: int = 0, resamples: int = 10_000) -> Floats:
    """The sums over cases in resamples of whole cases, where a case enters by any numbers: resamples x columns.

    `values` has a row a case and a column a number, and all columns see the same resamples, which are those of
    `ratio_over_cases`. Whole numbers add up exactly, below 2^53.
    """
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 2 or not v.shape[0]:
        raise ValueError("values must have one row a case, and a case")
    sums = np.empty((resamples, v.shape[1]))
    for part, drawn in _draws(v.shape[0], seed, resamples):
        # how often each case was drawn says it all, and serves every column
        drawn += np.arange(drawn.shape[0])[:, None] * v.shape[0]
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        sums[part] = times.astype(np.float64) @ v
    return sums


def ratios_over_cases(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> list[tuple[float, float] | None]:
    """`ratio_over_cases` of many pairs of a numerator and a denominator, each over its own cases, at a fraction of the
    time: pairs over equally many cases share their resamples, and what is divided by the same is summed once."""
    found: list[tuple[float, float] | None] = [None] * len(pairs)
    read = [_two(x, y, "numerator and denominator") for x, y in pairs]
    if not all((y >= 0).all() for _, y in read):
        raise ValueError("a denominator is negative")
    for size in sorted({y.size for _, y in read if y.any()}):
        mine = [at for at, (_, y) in enumerate(read) if y.size == size and y.any()]
        columns: dict[bytes, Floats] = {line.tobytes(): line for at in mine for line in read[at]}
        place = {key: at for at, key in enumerate(columns)}
        sums = resample_sums(np.column_stack(list(columns.values())), seed=seed, resamples=resamples)
        over, under = ([place[read[at][side].tobytes()] for at in mine] for side in (0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = percentile_interval(sums[:, over] / sums[:, under], level)
        for column, at in enumerate(mine):
            found[at] = float(low[column]), float(high[column])
    return found
