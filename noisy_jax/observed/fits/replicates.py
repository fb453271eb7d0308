"""Checks of replicates: their means, copies among them, and whether their noise follows values.

Where each row has just two replicates, the noise is assumed to be symmetric as well, because the
difference of two replicates also depends on their mean if the noise is skewed.

Source: differences of replicates against their means: Bland and Altman (1986), and Carroll,
Ruppert, Stefanski and Crainiceanu, Measurement Error in Nonlinear Models (2006), Sec. 1.7.
"""

from __future__ import annotations

import itertools

import numpy as np

from noisy_jax.observed.fits.checked_rows import EACH, FEW, NOISY, CheckedRows, rank_scores, tail
from noisy_jax.observed.fits.doubts import LEVEL, Finding
from noisy_jax.observed.observations import Observations

_ROUNDED = 1e-9  # share of the largest value that is rounding
_SHIFT = 0.01  # square of a difference of means over the variance of the noise


def different_means(checked: CheckedRows) -> list[Finding]:
    """Noisy columns whose replicates have means so different that the estimated noise is larger.

    Differences of one replicate to the mean of a row's have the mean 0. Another mean is told if its
    square is more than 1% of the variance of the noise.
    """
    if not checked.estimated or not checked.noisy.size:
        return []
    copies, noisy = checked.table.copies, checked.noisy
    several = np.sum(~np.isnan(copies), axis=1, keepdims=True) > 1
    apart = np.where(several, copies - np.nanmean(copies, axis=1, keepdims=True), np.nan)
    total, square = np.nansum(apart, axis=0), np.nansum(apart**2, axis=0)
    p = tail(total, square, np.nanmax(np.abs(apart), axis=0, initial=0))[:, noisy]
    means = total / np.maximum(np.sum(~np.isnan(apart), axis=0), 1)
    large = np.max(means**2, axis=0)[noisy] > _SHIFT * checked.variance[noisy]
    failed = noisy[(p.min(axis=0) * p.size < LEVEL) & large]
    return [Finding(checked.table.names[j], f"by up to {np.ptp(means[:, j]):.3g}") for j in failed]


def copied(checked: CheckedRows) -> list[Finding]:
    """Noisy columns with two replicates that are equal in more rows than rounding explains.

    Differences of rounded measurements are 0 about as often as they are the next step to either
    side, and differences of exact measurements hardly ever. The most frequent value (a limit of
    detection) does not count.
    """
    copies, findings = checked.table.copies, []
    for j in checked.noisy.tolist() if checked.estimated else ():
        for first, second in itertools.combinations(range(copies.shape[1]), 2):
            left, right = copies[:, first, j], copies[:, second, j]
            if np.sum(left == right) <= EACH:
                continue
            values, counts = np.unique(left, return_counts=True)
            kept = (left != values[counts.argmax()]) & ~np.isnan(left - right)
            apart = np.round(np.abs(left - right)[kept] / (_ROUNDED * np.abs(values).max()))
            sizes, counts = np.unique(apart, return_counts=True)
            if len(sizes) > FEW and sizes[0] == 0 and counts[0] > 2 * counts[1:].max() + EACH:
                findings.append(Finding(checked.table.names[j], f"{first + 1} and {second + 1}"))
                break
    return findings


def uneven(checked: CheckedRows) -> list[Finding]:
    """Noisy columns whose replicates differ by more, or by less, where some value is larger."""
    findings = []
    for rows in filter(None, (checked, checked.pairs)):
        findings += uneven_spreads(rows, np.setdiff1d(rows.noisy, list(checked.few)))
    return findings


def noise_follows_values(observations: Observations) -> bool:
    """Returns True if replicates differ more at some values: their noise depends on the clean row.

    Rows may have noise of different variances, and skewed noise.
    """
    checked = CheckedRows(observations)
    return bool(uneven_spreads(checked, checked.noisy, alike=False))


def uneven_spreads(checked: CheckedRows, noisy: np.ndarray, *, alike: bool = True) -> list[Finding]:
    """Returns which of the columns in the places `noisy` have replicates that differ unevenly.

    Without dependence, the spread of a row's replicates is independent of exact columns and of y,
    the spread of all replicates but one is independent of that one, and the spread of two is
    uncorrelated with their mean, if the noise has one law in all rows (`alike`). Otherwise means of
    two replicates are not compared, and values of three or more enter as they are, not as scores.
    """
    table = checked.table
    x, copies = table.x[:, :, noisy], table.x.shape[1]
    if copies < 2 or not noisy.size:
        return []
    unit = NOISY * x.std(axis=(0, 1))  # smaller differences are rounding
    if table.cov is not None and table.cov.ndim == 3:
        variances = np.diagonal(table.cov, axis1=1, axis2=2)[:, noisy]
        unit = unit * np.sqrt(np.where(variances > 0, variances, checked.variance[noisy]))
    exact = checked.exact[~checked.differ[checked.exact]]
    names = [f"values of {table.names[k]!r}" for k in exact]
    exact_values = table.x[:, 0, exact]
    if table.cross_cov is None:
        names = [*names, f"values of {table.target!r}"]
        exact_values = np.column_stack([exact_values, table.y])
    spread, ranked = rank_scores(np.round(x.std(axis=1) / unit)), rank_scores(exact_values)
    bounds = []
    largest = np.abs(spread).max(axis=0)[:, None]
    for values in (ranked, rank_scores(np.abs(ranked))):
        size = largest * np.abs(values).max(axis=0, initial=0)
        bounds.append(tail(spread.T @ values, np.sum(spread**2, axis=0)[:, None], size))
    means = [f"means of {table.names[k]!r}" for k in noisy]
    if copies == 2:
        spreads, kinds = [spread], [[x.mean(axis=1) - x.mean(axis=(0, 1))]] if alike else []
    else:
        without = [np.delete(x, v, axis=1).std(axis=1) for v in range(copies)]
        spreads = [rank_scores(np.round(one / unit)) for one in without]
        single = [rank_scores(x[:, v]) for v in range(copies)]
        kinds = [single, [rank_scores(np.abs(one)) for one in single]]
        kinds = kinds if alike else [[x[:, v] - x[:, v].mean(axis=0) for v in range(copies)]]
    for kind in kinds:
        pairs = [(s, v) for s, v in zip(spreads, kind, strict=True)]
        total = sum(s.T @ v for s, v in pairs)
        square = sum((s * t).T @ (v * w) for s, v in pairs for t, w in pairs)
        # Scores of spreads are symmetric, and so are products with them: no term for their size.
        bounds.append(tail(total, square, 0.0))
    names = [*names, *names, *len(kinds) * means]
    p = np.column_stack(bounds)
    failed = np.flatnonzero(p.min(axis=1) * p.size < LEVEL)
    failed = failed[np.argsort(p[failed].min(axis=1), kind="stable")]
    return [Finding(table.names[noisy[j]], f"by {names[p[j].argmin()]}") for j in failed]
