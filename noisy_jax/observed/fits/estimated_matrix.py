"""Linear fits whose probabilities of wrong categories are estimated from replicates.

The recodings of all rows move with the estimated matrix. So the standard errors of coefficients and
of estimated errors are from the jackknife over groups of rows, with another matrix without each.
"""

import dataclasses

import numpy as np

from noisy_jax.observed.fits.groups import GROUPS, LEAST_GROUPS, groups_of, jackknifed, some_rows
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.normal_equations import linear_fit
from noisy_jax.observed.observations import Observations


def has_estimated_matrix(observations: Observations) -> bool:
    """Whether the matrix of a misclassified column is estimated from its replicates."""
    return any(one.records is not None for one in observations.categories)


def check_known_matrix(part: Observations) -> None:
    """Raises ValueError if a part of a table would have to estimate such a matrix."""
    if has_estimated_matrix(part):
        raise ValueError(
            "probabilities of wrong categories are estimated from one table: for chunks give the "
            "matrix, as nj.noise.Misclassified(matrix)"
        )


def fit_by_records(
    observations: Observations, weights: np.ndarray | None, clusters: np.ndarray | None
) -> LinearFit:
    """The linear fit of a table with such columns, without Anderson-Rubin sets."""
    n = len(observations.y)
    made = linear_fit(observations, weights, clusters)
    groups = groups_of(n, clusters, min(n, GROUPS))
    if len(groups) < LEAST_GROUPS:
        kind = "rows" if clusters is None else "clusters"
        raise ValueError(f"fit needs at least {LEAST_GROUPS} {kind}, got {len(groups)}")
    found = []
    for group in groups:
        kept = np.delete(np.arange(n), group)
        one = linear_fit(*some_rows(kept, observations, weights, clusters))
        risks = one.risk.corrected, one.risk.uncorrected, one.risk.difference
        found.append([one.intercept, *one.coefficients, *risks])
    cov, freedom = jackknifed(np.array(found))
    size, errors = 1 + len(made.coefficients), np.sqrt(np.diag(cov)).tolist()
    names = [f"{name}_std_error" for name in ("corrected", "uncorrected", "difference")]
    risk = dict(zip(names, errors[size:], strict=True))
    return dataclasses.replace(
        made,
        covariance=cov[:size, :size],
        degrees_of_freedom=freedom,
        risk=dataclasses.replace(made.risk, **risk, degrees_of_freedom=freedom),
        equations=None,
    )
