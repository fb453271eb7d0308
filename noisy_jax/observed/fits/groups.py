"""Weights, clusters and groups of rows, and the jackknife that leaves out one group at a time.

With the fit β_(g) without group g of G groups,

    Var β̂ = (G − 1)/G Σ_g (β_(g) − mean)(β_(g) − mean)ᵀ.

Source: Shao and Tu, The Jackknife and Bootstrap (1995).
"""

import itertools

import numpy as np

from noisy_jax.observed.observations import Observations

GROUPS = 32
"""Groups of rows by which risks are cross-fitted, and which the jackknife leaves out."""
LEAST_GROUPS = 8
"""Fewer give standard errors that scatter by more than a quarter."""
BLOCK = 64
"""Consecutive rows that stay together, since neighbouring rows may depend on each other."""


def blocks_of_rows(rows: int, groups: int) -> np.ndarray:
    """The number of the block of each row `[n]`: of at most 64, so that there are `groups`."""
    return np.arange(rows) // max(1, min(BLOCK, rows // groups))


def grouped(labels: np.ndarray, count: int) -> tuple[np.ndarray, list[slice]]:
    """An order of the rows in which each of the groups `labels % count` is one slice."""
    groups = labels % count
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    return order, [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def groups_of(rows: int, clusters=None, count: int = GROUPS) -> list[np.ndarray]:
    """The rows of each group that the jackknife leaves out: blocks of rows, or whole clusters."""
    labels = blocks_of_rows(rows, count) if clusters is None else clusters
    order, groups = grouped(labels, count)
    return [order[group] for group in groups]


def jackknifed(found: np.ndarray) -> tuple[np.ndarray, float]:
    """Covariance `[k, k]` and degrees of freedom, from estimates `[G, k]` without each group."""
    apart, freedom = found - found.mean(axis=0), len(found) - 1.0
    return apart.T @ apart * freedom / len(found), freedom


def with_weight(
    observations: Observations,
) -> tuple[Observations, np.ndarray | None, np.ndarray | None]:
    """The rows of positive weight, their weights and their clusters, if there are any.

    These are in `observations.beside`, where `one_table` put them.
    """
    own = {role: one.values for role, one in observations.beside.items()}
    weights, clusters = own.get("weights"), own.get("clusters")
    if clusters is not None:  # some may have no rows in a part of a table
        clusters = np.unique(clusters, return_inverse=True)[1]
    if weights is None or weights.all():
        return observations, weights, clusters
    return some_rows(weights > 0, observations, weights, clusters)


def check_clusters(clusters: np.ndarray | None, least: int = LEAST_GROUPS) -> None:
    """Raises ValueError if there are clusters, but fewer than `least`."""
    if clusters is not None and (count := int(clusters.max()) + 1) < least:
        raise ValueError(f"fit needs at least {least} clusters, got {count}")


def some_rows(kept: np.ndarray, observations: Observations, weights, clusters):
    """Some rows, their weights and their clusters, numbered anew."""
    clusters = None if clusters is None else np.unique(clusters[kept], return_inverse=True)[1]
    return observations.rows(kept), None if weights is None else weights[kept], clusters
