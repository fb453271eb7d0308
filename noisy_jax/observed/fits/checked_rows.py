"""Rows of a table as checks of assumptions see them, and scores of ranks with their bounds."""

from __future__ import annotations

import functools

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations import Observations

ROWS = 16_384
"""Rows, evenly spaced, that are checked."""
EACH = 8
"""Rows from which on equal values are no accident."""
FEW = 10
"""Values that are few."""
NOISY = 1e-6
"""Share of a column's variance, from which on its noise counts."""
_HASH = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 16  # different values
_SHARE = 0.3  # of the rows, with a value that another one has
_SHORT, _OFTEN = 0.15, 0.02  # steps, in medians of those nearby, and their share
_NEAR = 5  # steps on each side
_ENDS = 0.05  # share of the values at each end
_EQUAL = 0.5  # share of these values that are in several rows


class CheckedRows:
    """The rows that checks look at, at most 16,384, and numbers of them that several checks need.

    Attributes:
        table: the rows; with a covariance of the errors as it was given, or as all rows show it.
        x: `[n, d]`, the first copy of all rows, of clusters one each.
        y: `[n]`, of the same.
        estimated: whether replicates show the errors of some columns.
    """

    def __init__(self, table: Observations, clusters: np.ndarray | None = None):
        n = len(table.y)
        kept = np.arange(n) if clusters is None else np.unique(clusters, return_index=True)[1]
        which = slice(None) if len(kept) == n else kept
        self.x, self.y = table.x[which, 0], table.y[which]
        self.estimated = table.copied
        if len(kept) > ROWS:
            kept = kept[np.linspace(0, len(kept) - 1, ROWS).astype(int)]
        plain = table.settled()
        self.table = plain if len(kept) == n else plain.rows(kept)

    @functools.cached_property
    def variance(self) -> np.ndarray:
        """`[d]`, mean variance of the error in one copy."""
        x, cov = self.table.x, self.table.cov
        if cov is None:
            return x.var(axis=1, ddof=1).mean(axis=0)
        return np.diagonal(cov, axis1=-2, axis2=-1).reshape(-1, x.shape[2]).mean(axis=0)

    @functools.cached_property
    def share(self) -> np.ndarray:
        """`[d]`, the share of the variance of the copies that is error."""
        whole = self.table.x.var(axis=(0, 1))
        return np.divide(self.variance, whole, out=np.zeros_like(whole), where=whole > 0)

    @functools.cached_property
    def noisy(self) -> np.ndarray:
        """Places of the columns with errors that are added to them and may be checked."""
        law = by_round(self.table.noise)[0]
        if len(self.table.y) < EACH or (law is not None and law.depends_on_x):
            return np.zeros(0, int)
        return np.setdiff1d(np.flatnonzero(self.share > NOISY), self._recoded)

    @functools.cached_property
    def exact(self) -> np.ndarray:
        """Places of the columns without errors."""
        return np.setdiff1d(np.flatnonzero(self.share <= NOISY), self._recoded)

    @property
    def _recoded(self) -> list[int]:
        return [place for categories in self.table.categories for place in categories.places]

    @functools.cached_property
    def pairs(self) -> CheckedRows | None:
        """Two copies of each row that has them, where the rows are means of copies."""
        copies = self.table.copies
        if self.table.even or copies.shape[1] == 1 or not self.noisy.size:
            return None
        first = np.argsort(np.isnan(copies), axis=1, kind="stable")[:, :2]
        pairs = np.take_along_axis(copies, first, axis=1)
        whole = np.flatnonzero(~np.isnan(pairs).any(axis=(1, 2)))
        if len(whole) < EACH:
            return None
        return CheckedRows(self.table.rows(whole).of_unknown_errors(pairs[whole]))

    @functools.cached_property
    def differ(self) -> np.ndarray:
        """`[d]`, whether replicates of a column differ by more than rounding."""
        x = self.table.x
        return np.ptp(x, axis=1).max(axis=0) > NOISY * x.std(axis=(0, 1))

    @functools.cached_property
    def few(self) -> dict[int, int]:
        """Noisy columns of two values, or of few that are too far apart for noise: how many.

        The sum of two independent variables that vary has at least three values. And where noise of
        variance σ² is rounded to steps above 2σ, the errors of rounding have a variance above σ²/3.
        A column that varies no more than its noise may be a constant and noise.
        """
        table, few = self.table, {}
        for j in self.noisy[self.share[self.noisy] < 1].tolist():
            if len(np.unique(table.x[: EACH * FEW, :, j])) > FEW:
                continue
            values = np.unique(table.x[:, :, j])
            if not 2 <= len(values) <= min(FEW, len(table.y) / EACH):
                continue
            if len(values) == 2 or np.diff(values).min() > 2 * self.variance[j] ** 0.5:
                few[j] = len(values)
        return few | (self.pairs.few if self.pairs else {})

    @functools.cached_property
    def repeated(self) -> dict[int, int]:
        """Noisy columns with one measurement in several rows: how many measurements there are."""
        places = np.setdiff1d(self.noisy, list(self.few))
        places = places[[often_equal(values) for values in with_some_values(self.x, places)]]
        return {j: len(np.unique(self.x[:, j])) for j in places.tolist() if repeats(self.x[:, j])}

    @functools.cached_property
    def targets(self) -> int:
        """Number of values of y, if one value often stands in several rows; else 0."""
        some = with_some_values(self.y[:, None], np.zeros(1, int))[0]
        return len(np.unique(self.y)) if often_equal(some) and repeats(self.y) else 0


def rank_scores(values: np.ndarray) -> np.ndarray:
    """Ranks of each column, the mean rank for ties, in mean 0 and variance 1 (0 if constant)."""
    if values.ndim > 1:
        columns = [rank_scores(column) for column in values.T]
        return np.stack(columns, axis=1) if columns else np.zeros(values.shape)
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ranks -= ranks.mean()
    spread = ranks.std()
    return ranks / spread if spread > 0 else ranks


def tail(total, variance, largest) -> np.ndarray:
    """2 exp(−t²/2(v + mt/3)), which bounds P(|T| ≥ t) for a sum T of terms up to m.

    Source: Bernstein's inequality; for sums over random rows Hoeffding (1963).
    """
    room = 2 * (variance + largest * np.abs(total) / 3)
    return 2 * np.exp(-np.divide(total**2, room, out=np.zeros_like(room), where=room > 0))


def with_some_values(x: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    """Of some columns of x `[n, d]`, all entries with some of the values, about 16,384 of many.

    Values are drawn by a hash of their bits, so that equal ones are drawn together.
    """
    if len(x) <= 2 * ROWS:
        return list(x.T[places])
    largest, parts = np.uint64(2**64 // (len(x) // ROWS)), []
    for start in range(0, len(x), ROWS):
        columns = x[start : start + ROWS].T[places]
        drawn = columns.view(np.uint64) * _HASH < largest
        parts.append([values[kept] for values, kept in zip(columns, drawn, strict=True)])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def often_equal(values: np.ndarray) -> bool:
    """Returns True if a share of 0.3 of the values `[n]` is equal to others."""
    counts = np.unique(values, return_counts=True)[1]
    return bool(counts[counts > 1].sum() >= _SHARE * counts.sum())


def repeats(values: np.ndarray) -> bool:
    """Returns True if values `[n]` are equal more often than by rounding.

    Rows with one measurement share its error, so that they are not independent. Values are also
    equal by chance where they were rounded, or computed from rounded ones; three properties tell
    these apart:

    - Distinct values of rounded measurements are whole steps apart, also (nearly) after a function
      of them. Where many of them are equal, steps between neighbours are hardly longer than the
      shortest ones. Of n independent values without rounding, about 0.1 of the steps are below 0.15
      of their median nearby.
    - Equal by chance are values where there are many, and hardly ever the largest and smallest.
    - The value where measurements are cut off is one of the ends, or the most frequent one.
    """
    different, counts = np.unique(values, return_counts=True)
    kept = np.ones(len(different), bool)
    kept[[0, -1, counts.argmax()]] = False
    different, counts = different[kept], counts[kept]
    if len(different) < _LEAST or counts[counts > 1].sum() < _SHARE * counts.sum():
        return False
    end = max(_NEAR, int(_ENDS * len(counts)))
    low, high = (np.mean(part > 1) for part in (counts[:end], counts[-end:]))
    if min(low, high) < 0.6 * _EQUAL or low + high < 2 * _EQUAL:
        return False
    steps = np.diff(different)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(steps, _NEAR), axis=1)
    nearby = np.minimum(medians[: -_NEAR - 1], medians[_NEAR + 1 :])  # on both sides of a step
    short = np.sum(steps[_NEAR:-_NEAR] < _SHORT * nearby)
    return bool(short >= max(2, _OFTEN * len(nearby)))
