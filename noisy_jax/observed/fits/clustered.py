"""Coefficients that are determined by the rows of a single cluster."""

from __future__ import annotations

import numpy as np

from noisy_jax.observed.fits.doubts import Check, Finding
from noisy_jax.observed.fits.linear_moments import ROWS
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import measured

_ALL = 1 - 1e-6  # share of what determines a combination that counts as the whole
_NONE = 1e-12  # share of the largest eigenvalue that is rounding
_ALONE = 0.75  # leverage from which a row determines a combination nearly alone
_PART = 0.01  # share of a coefficient's variance that counts


def _determined_by_one(
    table: Observations, weights: np.ndarray | None, clusters: np.ndarray | None
) -> list[Finding]:
    """Columns whose coefficients are determined by the rows of one cluster.

    For example, only one cluster has a category. `weights` are `[n]`, and `clusters` `[n]` are
    whole numbers from 0; either may be `None`.

    The equations of all other clusters do not contain some combination of the coefficients, and the
    equations of the cluster add up to 0 in it, so that scores by cluster say nothing of its error.
    With weighted rows Q of (1, x̃), in coordinates where QᵀQ = I, it is an eigenvector of Q_gᵀQ_g of
    the value 1. The trace is then at least 1, as it is of at most 1 + d clusters. Rows with a
    leverage near 1 are left out: the sandwich counts them with the typical residual.

    Source: clusters that determine a coefficient: Hansen, Jackknife standard
    errors for clustered regression (Review of Economic Studies, 2025); leverages of clusters:
    MacKinnon, Nielsen and Webb, Stata Journal 23 (2023).
    """
    if clusters is None or not clusters.any():
        return []
    table = table if table.products is None else measured(table)
    center, n = table.x.mean(axis=(0, 1)), len(table.y)
    size = np.maximum(table.x.max(axis=(0, 1)) - center, center - table.x.min(axis=(0, 1)))
    scale = np.maximum(size, np.finfo(float).tiny)  # in which x̃ is about 1

    def rows(which):
        """Some of the rows of (1, x̃), times the roots of their weights, `[m, 1 + d]`."""
        x = (table.x[which] - center) / scale
        z = np.column_stack([np.ones(len(x)), x[:, 0] if x.shape[1] == 1 else x.mean(axis=1)])
        return z if weights is None else z * np.sqrt(weights[which])[:, None]

    parts = [slice(start, start + ROWS) for start in range(0, n, ROWS)]
    gram = sum(z.T @ z for z in map(rows, parts))
    values, vectors = np.linalg.eigh(gram)
    kept = values > _NONE * values[-1]
    moves = vectors[:, kept] / np.sqrt(values[kept])
    leverage = np.empty(n)
    for part in parts:
        leverage[part] = np.sum((rows(part) @ moves) ** 2, axis=1)
    whole, told = np.sum(moves**2, axis=1), np.zeros(len(moves), bool)
    for cluster in np.flatnonzero(np.bincount(clusters, leverage) > _ALL):
        members = np.flatnonzero((clusters == cluster) & (leverage < _ALONE))
        q = rows(members) @ moves
        values, vectors = np.linalg.eigh(q.T @ q)
        share = np.sum((moves @ vectors[:, values > _ALL]) ** 2, axis=1)
        told |= share > _PART * whole
    return [Finding(name) for name, is_told in zip(table.names, told[1:], strict=True) if is_told]


ONE_CLUSTER = Check(
    _determined_by_one,
    "the coefficients of … are each determined by the rows of one cluster alone, for example a "
    "category that no other cluster has. How much clusters differ cannot be estimated there, so "
    "that standard errors and intervals of these coefficients take this cluster for a typical one, "
    "which the rows cannot show: merge or drop such columns",
    spoils=False,
)
"""Doubt about fits of one coefficient a column: `ONE_CLUSTER.doubts(table, weights, clusters)`."""
