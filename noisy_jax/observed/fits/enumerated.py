"""Rows of which the true category or label is not known: equations as sums over all of them.

If u_c(k) are weights of the combinations c of true categories and labels, given the recorded ones
k, such that E u_c(k) is 1 for the true combination and 0 for all others (`noise.Misclassified`),
then for any scores ψ

    Σ_c u_c(k) ψ(θ; c)   has the mean   ψ(θ; true combination)

over what is recorded, whatever the other columns and their noise are. With a share s of the
misclassification taken away, the weights are (1 − s) r_c + s u_c, where r_c is 1 for what was
recorded.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.fits.scores import Equations
from noisy_jax.observed.fits.units import Rows, Units
from noisy_jax.observed.observations import Observations

_MOST = 64
"""Combinations of true categories and labels."""


class Enumerated(NamedTuple):
    """Rows in each of C combinations of true categories and labels."""

    rows: tuple[Rows, ...]  # C of them
    unbiased: np.ndarray  # [C, n], the weights u_c
    recorded: np.ndarray  # [C, n], the weights r_c
    y: np.ndarray  # [n], as it was recorded

    @property
    def cov(self) -> np.ndarray:
        """Covariance of the error in the other columns."""
        return self.rows[0].cov

    def some(self, which) -> "Enumerated":
        """Some of the rows, in some order."""
        rows = tuple(one.some(which) for one in self.rows)
        return Enumerated(rows, self.unbiased[:, which], self.recorded[:, which], self.y[which])

    def with_cov(self, cov: np.ndarray) -> "Enumerated":
        """The rows with another covariance of their noise."""
        return self._replace(rows=tuple(one.with_cov(cov) for one in self.rows))

    def with_share(self, share: float) -> "Enumerated":
        """The rows with a share of their noise, and of the misclassification."""
        weights = self.recorded + share * (self.unbiased - self.recorded)
        rows = (one.with_share(share) for one in self.rows)
        pairs = zip(rows, weights, strict=True)
        return self._replace(rows=tuple(one._replace(weights=w) for one, w in pairs))


def enumerated(
    rows: Rows, units: Units, observations: Observations, labels: np.ndarray | None
) -> Enumerated:
    """The standardized rows of a table in all combinations; ValueError if these are more than 64.

    In row l of `labels` `[2, 2]` are the probabilities that the label l is recorded as 0 and as 1;
    it is `None` if labels are right.
    """
    n = len(rows.y)
    x, columns = observations.averaged()[0], observations.categories
    shares = [(one.recodings(x), one.recorded(x)) for one in columns]
    if labels is not None:
        recorded = np.eye(2)[rows.y.astype(int)]
        shares.append((recorded @ np.linalg.inv(labels), recorded))
    count = int(np.prod([own.shape[1] for own, _ in shares]))
    if count > _MOST:
        raise ValueError(
            f"logistic and Poisson fits take at most {_MOST} combinations of misclassified "
            f"categories, but there are {count}: merge categories, or drop columns"
        )
    places = [place for one in columns for place in one.places]
    cov = rows.cov.copy()
    cov[..., places, :] = 0.0
    cov[..., places] = 0.0
    if places and (cov == cov[0]).all():
        cov = cov[0]
    made, weights = [], np.ones((2, count, n))
    weights *= 1.0 if rows.weights is None else rows.weights
    for c, combination in enumerate(itertools.product(*(range(own.shape[1]) for own, _ in shares))):
        values, y = rows.x.copy(), rows.y
        for one, k in zip(columns, combination, strict=False):
            own = list(one.places)
            indicators = np.eye(len(one.labels))[k, 1:]
            values[:, own] = (indicators - units.center[own]) / units.scale[own]
        if labels is not None:
            y = np.full(n, float(combination[-1]))
        for (unbiased, recorded), k in zip(shares, combination, strict=True):
            weights[:, c] *= unbiased[:, k], recorded[:, k]
        made.append(Rows(values, y, cov, np.ones(n)))
    return Enumerated(tuple(made), weights[0], weights[1], rows.y).with_share(1.0)


def summed(
    equations: Callable[[np.ndarray, Rows], Equations],
) -> Callable[[np.ndarray, Enumerated], Equations]:
    """The weighted sum of the equations over the combinations."""

    def total(theta, rows):
        first, *others = (equations(theta, one) for one in rows.rows)
        for one in others:
            first = Equations._make(a + b for a, b in zip(first, one, strict=True))
        return first

    return total
