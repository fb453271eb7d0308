"""Whether gaps in a table are random, as is assumed, and whether rows without gaps do better."""

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.observed.fits.doubts import LEVEL, Doubt, doubt_about, scores, tail
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.gaps import unfilled

_SMALLER = 0.9  # ratio of standard errors, from which on rows with gaps are better dropped
_SINGULAR = 1e-9  # smallest eigenvalue of a correlation matrix that is rounding, or of no data


def gaps_and_values(rows: Observations) -> list[Doubt]:
    """Columns and y that differ between rows where another column is missing and others."""
    dim, names = rows.x.shape[2], (*rows.names, rows.target)
    seen = np.asarray(rows.seen).reshape(-1, dim)
    values = np.column_stack([rows.x.reshape(-1, dim), np.repeat(rows.y, rows.x.shape[1])])
    known = np.column_stack([seen, np.ones(len(seen), bool)])
    ranked = np.zeros((2, *values.shape))
    for k, own in enumerate(known.T):
        ranked[0, own, k] = scores(values[own, k])
        ranked[1, own, k] = scores(np.abs(ranked[0, own, k]))
    columns = np.flatnonzero(~seen.all(axis=0))
    missing = (~seen[:, columns]).astype(np.float64)
    without, count = missing.T @ known, known.sum(axis=0)
    variance, largest = without * (count - without) / count, np.abs(ranked).max(axis=1)
    p = np.min(
        [tail(missing.T @ s, variance, m) for s, m in zip(ranked, largest, strict=True)], axis=0
    )
    failed = np.argwhere(p * 2 * len(columns) * dim < LEVEL / 2)
    failed = failed[np.argsort(p[*failed.T], kind="stable")]
    return doubt_about(
        [f"{names[k]!r} where {names[columns[j]]!r} is missing" for j, k in failed],
        "it is assumed that gaps do not depend on values, but values are larger, smaller or "
        "further apart in …: drop the rows with gaps, which is right if gaps depend on the columns "
        f"and not on {rows.target!r} itself",
    )


def pairs_of_gaps(rows: Observations) -> list[Doubt]:
    """Columns that are missing in the same rows more, or less, often than by chance."""
    gaps = ~np.asarray(rows.seen).reshape(-1, rows.x.shape[2])
    n, count = len(gaps), gaps.sum(axis=0)
    some = np.flatnonzero((count > 0) & (count < n))
    i, j = (some[side] for side in np.triu_indices(len(some), 1))
    both = (gaps.T.astype(np.float64) @ gaps)[i, j]
    # The gaps of one column are draws without replacement, whose tails binomial ones bound.
    draws, share = np.minimum(count[i], count[j]), np.maximum(count[i], count[j]) / n
    more = scipy.special.betainc(np.maximum(both, 1), draws - both + 1, share)
    fewer = scipy.special.betaincc(both + 1, np.maximum(draws - both, 1), share)
    p = 2 * np.minimum(np.where(both > 0, more, 1), np.where(both < draws, fewer, 1))
    failed = np.flatnonzero(p * len(p) < LEVEL / 2)
    failed = failed[np.argsort(p[failed], kind="stable")]
    return doubt_about(
        [f"{rows.names[i[m]]!r} and {rows.names[j[m]]!r}" for m in failed],
        "gaps depend on each other in …: corrections use the table's own shares of rows with both",
        spoils=False,
    )


def rows_without_gaps(rows: Observations, std_error: np.ndarray) -> list[Doubt]:
    """Whether least squares on the rows without gaps has smaller errors than `std_error` `[d]`.

    Their values are as they were measured; their errors are corrected for, if they have any.
    """
    if rows.seen is None or rows.x.shape[1] > 1 or rows.cross_cov is not None:
        return []
    whole = np.asarray(rows.seen.all(axis=(1, 2)))
    n, dim = int(whole.sum()), rows.x.shape[2]
    if whole.all() or n <= 4 * (dim + 1):
        return []
    x, cov = unfilled(rows, whole)
    x, y = x - x.mean(axis=0), rows.y[whole] - rows.y[whole].mean()
    gram, size = x.T @ x - cov.sum(axis=0), np.sqrt(np.sum(x**2, axis=0))
    if not size.all() or np.linalg.eigvalsh(gram / np.outer(size, size)).min() < _SINGULAR:
        return []
    inverse = np.linalg.inv(gram)
    beta = inverse @ (x.T @ y)
    scores = (x * (y - x @ beta)[:, None] + cov @ beta) @ inverse
    found = np.sqrt(np.sum(scores**2, axis=0) * n / (n - 1 - dim))
    ratio = np.exp(np.mean(np.log(found / std_error))) if (found > 0).all() else 0.0
    if ratio > _SMALLER:
        return []
    method = "corrected least squares" if rows.only_sums else "least squares"
    return [
        Doubt(
            f"{method} on the {n:,} rows without gaps would have standard errors that are "
            f"smaller, {ratio:.0%} of these on average: drop the other rows",
            spoils=False,
        )
    ]
