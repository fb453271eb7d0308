"""Equations of logistic and Poisson regression on noisy features.

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
k, such that E u_c(k) is 1 for the true combination and 0 for all other ones
(`noise.Misclassified`), then for any scores ψ

    Σ_c u_c(k) ψ(θ; c)   has the mean   ψ(θ; true combination)

over what is recorded, whatever the other columns and their noise are. With a share s of the
misclassification taken away, the weights are (1 − s) r_c + s u_c, where r_c is 1 for the recorded
combination.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.special is imported when it is used

from noisy_jax.observed.fits.roots import Sums
from noisy_jax.observed.fits.sandwich import Block, blocks_of
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.rows import Rows

_MOST = 64
"""Combinations of true categories and labels."""


class Scores(NamedTuple):
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


def conditional_score(
    theta: np.ndarray, rows: Rows, share: float = 1.0, by_row: bool = False
) -> Scores:
    """(y − σ(a + ⟨w, c⟩)) (1, c) with c = x̃ + (y − ½)Cw, y in {0, 1}, and a share of C."""
    half, noise = rows.y - 0.5, share * (rows.cov @ theta[1:])
    c = rows.x + half[:, None] * noise
    mean = scipy.special.expit(theta[0] + c @ theta[1:])
    weights = 1.0 if rows.weights is None else rows.weights
    residual, slope = weights * (rows.y - mean), weights * mean * (1 - mean)
    design, moves = _with_one(c), _with_one(c + half[:, None] * noise)
    jacobian = -_products(design * slope[:, None], moves, by_row)
    jacobian[..., 1:, 1:] += _weighted(rows.cov, share * residual * half, by_row)
    squared = -design.T @ (slope * half)
    return Scores(design * residual[:, None], jacobian, squared, float(residual @ half))


def corrected_score(
    theta: np.ndarray, rows: Rows, share: float = 1.0, by_row: bool = False
) -> Scores:
    """y (1, x̃) − m (1, x̃ − Cw) with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw), and a share of C."""
    noise = share * (rows.cov @ theta[1:])
    design = _with_one(rows.x - noise)
    weights = 1.0 if rows.weights is None else rows.weights
    mean = weights * np.exp(theta[0] + (rows.x - noise / 2) @ theta[1:])
    scores = _with_one(rows.x) * (weights * rows.y)[:, None] - design * mean[:, None]
    jacobian = -_products(design * mean[:, None], design, by_row)
    jacobian[..., 1:, 1:] += _weighted(rows.cov, share * mean, by_row)
    return Scores(scores, jacobian, design.T @ mean / 2, float(mean.sum()))


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


class Family(NamedTuple):
    """The differences between logistic and Poisson regression."""

    scores: Callable[..., Scores]
    link: Callable[[Any], Any]  # of the mean of y: a + ⟨w, x⟩
    targets: str
    allowed: Callable[[np.ndarray], np.ndarray]
    words: str
    no_root: str  # why there may be no fit with the whole noise taken away


_TOO_NOISY = (
    "the noise is smaller than stated, or the rows are too few for so much of it: drop columns, "
    "add rows or replicates, or take the uncorrected fit, with noise=0"
)
MODELS = {
    "logistic": Family(
        scores=conditional_score,
        link=lambda mean: scipy.special.logit(mean),
        targets="0 or 1",
        allowed=lambda y: (y == 0) | (y == 1),
        words="Corrected logistic regression: consistent under the logistic model",
        no_root="perhaps the noisy columns predict y as well as if the clean ones predicted it "
        f"perfectly, when slopes have no finite value; or {_TOO_NOISY}",
    ),
    "poisson": Family(
        scores=corrected_score,
        link=np.log,
        targets="counts of at least 0",
        allowed=lambda y: y >= 0,
        words="Corrected Poisson regression: consistent under the log-linear model",
        no_root=f"perhaps {_TOO_NOISY}",
    ),
}
"""The models of `nj.fit` by name, beside "linear"."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreEquations:
    """The equations of a logistic or Poisson regression on a standardized table.

    The rows are in each of C combinations of their true categories and labels; the equations are a
    weighted sum over these; C is 1 where these are known.

    Attributes:
        family: whose scores are summed.
        rows: C times the n rows. Their `cov` is `[d, d]` or `[n, d, d]`.
        unbiased: `[C, n]`, the weights u_c, times the weights of the rows.
        recorded: `[C, n]`, the weights r_c, likewise.
        estimates: `[n, d, d]`, where covariances of rows are estimates with the mean `cov`, as
            scores are not linear in the covariance; or `None`.
        weights: `[n]`, weights of their mean.
    """

    family: Family
    rows: tuple[Rows, ...]
    unbiased: np.ndarray
    recorded: np.ndarray
    estimates: np.ndarray | None
    weights: np.ndarray

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """See `roots.Equations`."""
        scores = self.scores(theta, share)
        return Sums(scores.score, scores.jacobian)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """See `roots.Equations`."""
        return share * self.scores(theta, share).in_covariance(theta[1:])

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """See `roots.Equations`; ψ_i contains the effect of row i on the mean covariance."""
        slope = self.in_covariance(theta, share)
        weights = self.weights / self.weights.sum()
        for part in blocks_of(len(weights), len(theta)):
            terms = self.scores(theta, share, part, by_row=True)
            scores = terms.scores
            if self.estimates is not None:  # the mean covariance is Σ_i weight_i estimate_i
                moved = (self.estimates[part] - self.rows[0].cov) * weights[part, None, None]
                scores = scores + np.tensordot(moved, slope, ((1, 2), (1, 2)))
            yield Block(scores, -terms.jacobian)

    def some(self, which: np.ndarray) -> ScoreEquations:
        """See `roots.Equations`; the mean of the covariances is of these rows."""
        rows, estimates = tuple(part.some(which) for part in self.rows), self.estimates
        weights = self.weights[which]
        if estimates is not None:
            estimates = estimates[which]
            cov = np.average(estimates, axis=0, weights=weights)
            rows = tuple(part._replace(cov=cov) for part in rows)
        shares = self.unbiased[:, which], self.recorded[:, which]
        return ScoreEquations(self.family, rows, *shares, estimates, weights)

    def scores(self, theta, share, which=slice(None), *, by_row: bool = False) -> Scores:
        """The scores of some rows, summed over the combinations."""
        weights = self.recorded + share * (self.unbiased - self.recorded)
        parts = [
            self.family.scores(
                theta, rows._replace(weights=of_combination).some(which), share, by_row
            )
            for rows, of_combination in zip(self.rows, weights, strict=True)
        ]
        return Scores._make(map(sum, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def score_equations(
    family: Family,
    rows: Rows,
    units: Units,
    observations: Observations,
    labels: np.ndarray | None,
    weights: np.ndarray,
) -> ScoreEquations:
    """The equations of a table; ValueError if it has more than 64 combinations of categories.

    Args:
        family: one of the values of `MODELS`.
        rows: of the table, standardized.
        units: of the rows.
        observations: the table.
        labels: `[2, 2]`, whose row l has the probabilities that the label l is recorded as 0 and as
            1; `None` if labels are right.
        weights: `[n]`, of the rows, without their exposures.
    """
    n = len(rows.y)
    x, columns = observations.means().x, observations.categories
    shares = [(column.recodings(x), column.recorded(x)) for column in columns]
    if labels is not None:
        recorded = np.eye(2)[rows.y.astype(int)]
        shares.append((recorded @ np.linalg.inv(labels), recorded))
    count = int(np.prod([recoded.shape[1] for recoded, _ in shares]))
    if count > _MOST:
        raise ValueError(
            f"logistic and Poisson fits take at most {_MOST} combinations of misclassified "
            f"categories, but there are {count}: merge categories, or drop columns"
        )
    places = [place for column in columns for place in column.places]
    cov = rows.cov.copy()
    cov[..., places, :] = 0.0
    cov[..., places] = 0.0
    estimates = cov if observations.cov is None else None
    if estimates is not None:
        cov = np.average(cov, axis=0, weights=weights)
    elif places and (cov == cov[0]).all():
        cov = cov[0]
    combinations, both = [], np.ones((2, count, n))
    both *= 1.0 if rows.weights is None else rows.weights
    for c, combination in enumerate(
        itertools.product(*(range(recoded.shape[1]) for recoded, _ in shares))
    ):
        values, y = rows.x.copy(), rows.y
        for column, k in zip(columns, combination, strict=False):
            own = list(column.places)
            indicators = np.eye(len(column.labels))[k, 1:]
            values[:, own] = (indicators - units.center[own]) / units.scale[own]
        if labels is not None:
            y = np.full(n, float(combination[-1]))
        for (unbiased, recorded), k in zip(shares, combination, strict=True):
            both[:, c] *= unbiased[:, k], recorded[:, k]
        combinations.append(Rows(values, y, cov))
    return ScoreEquations(family, tuple(combinations), both[0], both[1], estimates, weights)
