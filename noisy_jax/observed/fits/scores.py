"""Estimating equations of logistic and Poisson regression on noisy features.

With Gaussian noise of covariance C in x̃, and w, a such that P(y = 1 | x) = σ(a + ⟨w, x⟩), the
distribution of y given the statistic c = x̃ + (y − ½)Cw, which is sufficient for x, does not depend
on x: P(y = 1 | x̃ + yCw) = σ(a + ⟨w, x̃ + yCw⟩ − ½wᵀCw), and the conditional score

    (y − σ(a + ⟨w, c⟩)) (1, c)

has the mean 0 at the true a and w, whatever the x are. For counts of mean exp(a + ⟨w, x⟩) the loss
exp(a + ⟨w, x̃⟩ − ½wᵀCw) − y(a + ⟨w, x̃⟩) has the mean of the loss at x, and the corrected score is
its gradient with the sign reversed: with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw),

    y (1, x̃) − m (1, x̃ − Cw).

Where the true categories or labels of rows are not known, the scores are summed over all of them.
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
from typing import Any, NamedTuple

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.observed.fits.units import Rows, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import array_module

_MOST = 64
"""Combinations of true categories and labels."""


class Equations(NamedTuple):
    """The scores of the rows at some θ = (a, w), and the derivatives of their sum."""

    scores: np.ndarray  # [n, 1 + d]
    jacobian: np.ndarray  # [1 + d, 1 + d], or [n, 1 + d, 1 + d] if it is wanted by row
    squared: np.ndarray  # [1 + d]
    linear: float

    @property
    def score(self) -> np.ndarray:
        """`[1 + d]`, the sum over the rows."""
        return self.scores.sum(axis=0)

    def in_covariance(self, w: np.ndarray) -> np.ndarray:
        """`[1 + d, d, d]`, the sum's derivative in C: `squared` w_i w_j + `linear` w_j e_(1+i)."""
        moves = self.squared[:, None, None] * np.outer(w, w)
        moves[1:] += self.linear * np.eye(len(w))[:, :, None] * w
        return moves


def conditional_score(theta: np.ndarray, rows: Rows, by_row: bool = False) -> Equations:
    """(y − σ(a + ⟨w, c⟩)) (1, c) with c = x̃ + (y − ½)Cw, y in {0, 1}."""
    half, noise = rows.y - 0.5, rows.cov @ theta[1:]
    c = rows.x + half[:, None] * noise
    mean = scipy.special.expit(theta[0] + c @ theta[1:])
    weights = 1.0 if rows.weights is None else rows.weights
    residual, slope = weights * (rows.y - mean), weights * mean * (1 - mean)
    design, moves = _with_one(c), _with_one(c + half[:, None] * noise)
    jacobian = -_products(design * slope[:, None], moves, by_row)
    jacobian[..., 1:, 1:] += _weighted(rows.cov, residual * half, by_row)
    squared = -design.T @ (slope * half)
    return Equations(design * residual[:, None], jacobian, squared, float(residual @ half))


def corrected_score(theta: np.ndarray, rows: Rows, by_row: bool = False) -> Equations:
    """y (1, x̃) − m (1, x̃ − Cw) with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw)."""
    noise = rows.cov @ theta[1:]
    design = _with_one(rows.x - noise)
    weights = 1.0 if rows.weights is None else rows.weights
    mean = weights * np.exp(theta[0] + (rows.x - noise / 2) @ theta[1:])
    scores = _with_one(rows.x) * (weights * rows.y)[:, None] - design * mean[:, None]
    jacobian = -_products(design * mean[:, None], design, by_row)
    jacobian[..., 1:, 1:] += _weighted(rows.cov, mean, by_row)
    return Equations(scores, jacobian, design.T @ mean / 2, float(mean.sum()))


class Model(NamedTuple):
    """What differs between the models."""

    equations: Callable[..., Equations]
    mean: Callable[[Any], Any]  # of y, from a + ⟨w, x⟩
    link: Callable[[Any], Any]  # its inverse
    unit: str  # of which exp(w_j) is a ratio
    targets: str
    allowed: Callable[[np.ndarray], np.ndarray]
    words: str
    no_root: str  # what it may mean that the corrected equations have no root


MODELS = {
    "logistic": Model(
        conditional_score,
        lambda a: array_module(a).exp(-array_module(a).logaddexp(0.0, -a)),
        lambda p: scipy.special.logit(p),
        "odds",
        "0 or 1",
        lambda y: (y == 0) | (y == 1),
        "Logistic regression by the conditional score: consistent under the logistic model",
        "the noisy columns predict y as well as if the clean ones predicted it perfectly, when "
        "slopes have no finite value; or the noise is smaller than given, or the rows are too few",
    ),
    "poisson": Model(
        corrected_score,
        lambda a: array_module(a).exp(a),
        np.log,
        "rate",
        "counts of at least 0",
        lambda y: y >= 0,
        "Poisson regression by the corrected score: consistent under the log-linear model",
        "the noise is smaller than given, or the rows are too few for so much of it",
    ),
}
"""The models of `nj.fit` by name, beside "linear"."""


def _with_one(columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns)), columns])


def _products(left: np.ndarray, right: np.ndarray, by_row: bool) -> np.ndarray:
    """Σ_i l_i r_iᵀ, `[p, p]`, or its terms `[n, p, p]`."""
    return left[:, :, None] * right[:, None] if by_row else left.T @ right


def _weighted(cov: np.ndarray, weights: np.ndarray, by_row: bool) -> np.ndarray:
    """Σ_i weight_i C_i, `[d, d]`, or its terms `[n, d, d]`."""
    if by_row:
        return weights[:, None, None] * cov
    return weights.sum() * cov if cov.ndim == 2 else np.tensordot(weights, cov, 1)


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
    equations: Callable[..., Equations],
) -> Callable[..., Equations]:
    """The weighted sum of the equations over the combinations."""

    def total(theta, rows, by_row=False):
        first, *others = (equations(theta, one, by_row) for one in rows.rows)
        for one in others:
            first = Equations._make(a + b for a, b in zip(first, one, strict=True))
        return first

    return total
