"""Coefficients that rest on the rows of one cluster."""

import numpy as np

from noisy_jax.observed.fits.doubts import Doubt, listed
from noisy_jax.observed.observations import Observations

_ALL = 1 - 1e-6  # share of what tells a direction that counts as the whole
_NONE = 1e-12  # share of the largest eigenvalue that is rounding


def told_by_one_cluster(observations: Observations, clusters: np.ndarray | None) -> list[Doubt]:
    """Columns whose coefficients only the rows of one cluster tell, such as a category of them.

    Equations of the other clusters do not contain such a direction, and those of the cluster add up
    to 0 in it, so that scores by cluster say nothing of its error. With the rows Q of (1, x̃) in
    coordinates in which QᵀQ = I, it is an eigenvector of Q_gᵀQ_g of the value 1. The trace is then
    at least 1, as it is of at most 1 + d clusters. A direction that a single row tells is left out:
    the sandwich counts such a row with the typical residual.

    Source: clusters without which the coefficients are not determined: Hansen, Jackknife standard
    errors for clustered regression (Review of Economic Studies, 2025); leverages of clusters:
    MacKinnon, Nielsen and Webb, Stata Journal 23 (2023).
    """
    if clusters is None:
        return []
    z = observations.x.mean(axis=1)
    spread = z.std(axis=0)
    z = (z - z.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    z = np.column_stack([np.ones(len(z)), z])
    values, vectors = np.linalg.eigh(z.T @ z)
    kept = values > _NONE * values[-1]
    moves = vectors[:, kept] / np.sqrt(values[kept])
    q = z @ moves
    leverage = np.einsum("ni,ni->n", q, q)
    found: set[int] = set()
    for cluster in np.flatnonzero(np.bincount(clusters, leverage) > _ALL):
        own = clusters == cluster
        if leverage[own].max() > _ALL:
            continue
        values, vectors = np.linalg.eigh(q[own].T @ q[own])
        for direction in np.abs(moves @ vectors[:, values > _ALL])[1:].T:
            found |= set(np.flatnonzero(direction > direction.max() / 10).tolist())
    if not found:
        return []
    columns = [repr(observations.names[j]) for j in sorted(found)]
    return [
        Doubt(
            f"only the rows of one cluster tell the coefficients of {listed(columns)}: how "
            "clusters differ does not show there, and their standard errors are of no use (those "
            "of the sandwich are far too small)",
            spoils=False,
        )
    ]
