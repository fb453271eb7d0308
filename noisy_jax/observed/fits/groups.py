"""Groups of rows, and the jackknife that leaves out one group at a time.

With the fit β_(g) without group g of G groups,

    Var β̂ = (G − 1)/G Σ_g (β_(g) − mean)(β_(g) − mean)ᵀ.

Source: Shao and Tu, The Jackknife and Bootstrap (1995).
"""

from __future__ import annotations

import itertools

import numpy as np

GROUPS = 32
"""Groups of rows by which risks are cross-fitted, and which the jackknife leaves out."""
LEAST_GROUPS = 8
"""Fewer give standard errors that scatter by more than a quarter."""
_SEED = 0
_COLUMNS = 8  # by which rows of equal y are put into an order


def dealt(x: np.ndarray, y: np.ndarray, clusters: np.ndarray | None = None) -> np.ndarray:
    """The place `[n]` of each row, or cluster, of a table in a random order of them.

    It is the same for the same rows in any order: rows are put into an order by y and, where y is
    equal, by x `[n, …]` first, and then dealt. So no order of the rows makes groups more alike, or
    more different, than groups of independent rows are.
    """
    units = len(y) if clusters is None else int(clusters.max()) + 1
    places = np.random.default_rng(_SEED).permutation(units)
    if clusters is not None:
        return places[clusters]
    labels = np.empty(units, int)
    labels[ordered(y, *x.reshape(units, -1).T[:_COLUMNS])] = places
    return labels


def ordered(first: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Returns the order `[n]` of rows by the first column, and by the next ones where it is equal.

    It is `np.lexsort`, which would sort all rows by each column, also if few values are equal.
    """
    order = np.argsort(first)
    values = first[order]
    new = np.append(True, values[1:] != values[:-1])  # where a run of equal rows begins
    for column in columns:
        places = np.flatnonzero(~new | np.append(~new[1:], False))
        if not places.size:
            break
        rows, runs = order[places], np.cumsum(new[places])
        rows = rows[np.lexsort((rows, column[rows], runs))]
        order[places], values = rows, column[rows]
        before, after = values[:-1], values[1:]
        new[places[1:]] |= ~((before == after) | (np.isnan(before) & np.isnan(after)))
    return order


def labels_of(
    x: np.ndarray, y: np.ndarray, clusters: np.ndarray | None = None, count: int = GROUPS
) -> np.ndarray:
    """The group `[n]` of each row, among at most `count` of equal numbers of rows or clusters."""
    return dealt(x, y, clusters) % count


def streamed_labels(first: int, rows: int) -> np.ndarray:
    """The groups of rows that begin at the place `first` of a table of unknown length, `[rows]`.

    They follow from the places alone, at random, and have about equal numbers of rows.
    """
    return (np.random.PCG64(_SEED).advance(first).random_raw(rows) % GROUPS).astype(np.int64)


def grouped(labels: np.ndarray, count: int = GROUPS) -> tuple[np.ndarray, list[slice]]:
    """Returns an order of the rows with each of `count` groups as one slice; some may be empty."""
    labels = labels.astype(np.uint8)  # of which NumPy sorts many fast
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(count + 1))
    return order, [slice(*pair) for pair in itertools.pairwise(ends)]


def jackknifed(estimates: np.ndarray) -> tuple[np.ndarray, float]:
    """Covariance `[k, k]` and degrees of freedom, from estimates `[G, k]` without each group."""
    apart, freedom = estimates - estimates.mean(axis=0), len(estimates) - 1.0
    return apart.T @ apart * freedom / len(estimates), freedom


def if_counts(weights: np.ndarray | None) -> str:
    """Returns advice for few rows whose weights seem to be numbers of equal rows, or ""."""
    if weights is None or weights.max() <= 1 or not np.array_equal(weights, np.round(weights)):
        return ""
    return (
        "; if weights are counts of equal rows, repeat the rows, as "
        "frame.loc[frame.index.repeat(frame['count'])], and leave out the weights"
    )


def check_clusters(clusters: np.ndarray | None, least: int = LEAST_GROUPS) -> None:
    """Raises ValueError if there are clusters, but fewer than `least`."""
    if clusters is not None and (count := int(clusters.max()) + 1) < least:
        raise ValueError(f"fit needs at least {least} clusters, got {count}")
