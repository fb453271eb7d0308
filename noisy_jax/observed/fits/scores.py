"""Estimating equations of logistic and Poisson regression on noisy features.

With Gaussian noise of covariance C in x̃, and w, a such that P(y = 1 | x) = σ(a + ⟨w, x⟩), the
distribution of y given the statistic c = x̃ + (y − ½)Cw, which is sufficient for x, does not depend
on x: P(y = 1 | x̃ + yCw) = σ(a + ⟨w, x̃ + yCw⟩ − ½wᵀCw), and the conditional score

    (y − σ(a + ⟨w, c⟩)) (1, c)

has the mean 0 at the true a and w, whatever the x are. For counts of mean exp(a + ⟨w, x⟩) the loss
exp(a + ⟨w, x̃⟩ − ½wᵀCw) − y(a + ⟨w, x̃⟩) has the mean of the loss at x, and the corrected score is
its gradient with the sign reversed: with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw),

    y (1, x̃) − m (1, x̃ − Cw).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.observed.fits.units import Rows
from noisy_jax.validation import array_module


class Equations(NamedTuple):
    """The scores of the rows at some θ = (a, w), and the derivatives of their sum."""

    scores: np.ndarray  # [n, 1 + d]
    jacobian: np.ndarray  # [1 + d, 1 + d]
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


def conditional_score(theta: np.ndarray, rows: Rows) -> Equations:
    """(y − σ(a + ⟨w, c⟩)) (1, c) with c = x̃ + (y − ½)Cw, y in {0, 1}."""
    half, noise = rows.y - 0.5, rows.cov @ theta[1:]
    c = rows.x + half[:, None] * noise
    mean = scipy.special.expit(theta[0] + c @ theta[1:])
    weights = 1.0 if rows.weights is None else rows.weights
    residual, slope = weights * (rows.y - mean), weights * mean * (1 - mean)
    design, moves = _with_one(c), _with_one(c + half[:, None] * noise)
    jacobian = -(design * slope[:, None]).T @ moves
    jacobian[1:, 1:] += _weighted(rows.cov, residual * half)
    squared = -design.T @ (slope * half)
    return Equations(design * residual[:, None], jacobian, squared, float(residual @ half))


def corrected_score(theta: np.ndarray, rows: Rows) -> Equations:
    """y (1, x̃) − m (1, x̃ − Cw) with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw)."""
    noise = rows.cov @ theta[1:]
    design = _with_one(rows.x - noise)
    weights = 1.0 if rows.weights is None else rows.weights
    mean = weights * np.exp(theta[0] + (rows.x - noise / 2) @ theta[1:])
    scores = _with_one(rows.x) * (weights * rows.y)[:, None] - design * mean[:, None]
    jacobian = -(design * mean[:, None]).T @ design
    jacobian[1:, 1:] += _weighted(rows.cov, mean)
    return Equations(scores, jacobian, design.T @ mean / 2, float(mean.sum()))


class Model(NamedTuple):
    """What differs between the models."""

    equations: Callable[[np.ndarray, Any], Equations]
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


def _weighted(cov: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ_i weight_i C_i, `[d, d]`."""
    return weights.sum() * cov if cov.ndim == 2 else np.tensordot(weights, cov, 1)
