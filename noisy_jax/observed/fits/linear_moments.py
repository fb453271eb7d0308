"""Unbiased first and second moments of clean features, from noisy ones, summed in float64.

For a row with noisy features x̃ = x + n, E n = 0 and Cov n = Σ, and a target ỹ of mean y,

    E[x̃x̃ᵀ − Σ] = xxᵀ      and      E[ỹ x̃ − c] = y x,

with the covariance c of n and the noise in ỹ, which is usually 0.

Sums of these over rows are the moments that least squares on the clean rows would use. They can be
merged: moments of two parts of a table add up to the moments of the whole. Moments of groups of
rows have a leading axis of groups.

Source: corrected least squares (Fuller, Measurement Error Models, 1987, Sec. 2.2; Nakamura, 1990).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.observations.rows import Rows

ROWS = 8192
"""Rows of a part that fits into a processor's cache."""
_SINGULAR = 1e-13  # share of the largest pivot, which rounding may leave


class LinearMoments(NamedTuple):
    """Weighted sums over rows, or over each of G groups of rows; w_i is the weight of row i."""

    weight: Any  # Σ w
    x: np.ndarray  # [d], Σ w x̃
    xx: np.ndarray  # [d, d], Σ w x̃x̃ᵀ
    y: Any  # Σ w ỹ
    xy: np.ndarray  # [d], Σ w x̃ỹ
    yy: Any  # Σ w ỹ²
    cov: np.ndarray  # [d, d], Σ w Σ_i
    squared_cov: np.ndarray  # [d, d], Σ w² Σ_i, the error that centring brings in
    cross: np.ndarray  # [d], Σ w c_i
    squared_cross: np.ndarray  # [d], Σ w² c_i

    def plus(self, other: LinearMoments, sign: float = 1.0) -> LinearMoments:
        """The moments of both parts together; with sign −1, of this one without the other."""
        return LinearMoments._make(a + sign * b for a, b in zip(self, other, strict=True))

    def total(self) -> LinearMoments:
        """The moments of all groups together."""
        return LinearMoments._make(leaf.sum(axis=0) for leaf in self)

    def with_rows(self) -> LinearMoments:
        """The moments of the groups that have rows."""
        return LinearMoments._make(leaf[self.weight > 0] for leaf in self)

    def moved(self, scale, center, y_scale: float, y_center: float) -> LinearMoments:
        """The moments of scale ∘ x̃ + center and of y_scale ỹ + y_center, also of several parts."""
        weight: Any = self.weight
        y: Any = y_scale * self.y
        x, products = scale * self.x, np.multiply.outer(scale, scale)
        mixed = x[..., None] * center
        mixed = mixed + np.swapaxes(mixed, -1, -2)
        return LinearMoments(
            weight=self.weight,
            x=x + np.multiply.outer(weight, center),
            xx=products * self.xx + mixed + np.multiply.outer(weight, np.outer(center, center)),
            y=y + y_center * weight,
            xy=scale * y_scale * self.xy
            + x * y_center
            + np.multiply.outer(y + y_center * weight, center),
            yy=y_scale**2 * self.yy + y_center * (2 * y + y_center * weight),
            cov=products * self.cov,
            squared_cov=products * self.squared_cov,
            cross=scale * y_scale * self.cross,
            squared_cross=scale * y_scale * self.squared_cross,
        )

    def centred(self, *, share: Any = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Moments about the means: an unbiased Gram matrix `[..., d, d]`, and `[..., d]` with y.

        The mean of the noisy rows has an error of covariance Σ w²Σ_i/(Σ w)², so that

            E[Σ w (x̃ − x̄)(x̃ − x̄)ᵀ] = Σ w (x − x̄)(x − x̄)ᵀ + Σ w Σ_i − Σ w² Σ_i/Σ w,

        and `share` times the last two terms are taken away; with equal weights n − 1 times
        Σ. The same holds for c. The share 0 leaves the noise in, as ordinary least squares does.
        """
        return self.about(self, share=share)

    def about(self, whole: LinearMoments, *, share: Any = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """The part of `whole.centred(share=share)` of these rows, which are some of its rows."""
        (weight, own_y), (total, y) = (
            (np.asarray(one.weight)[..., None], np.asarray(one.y)[..., None])
            for one in (self, whole)
        )
        x, y, share = whole.x / total, y / total, np.asarray(share)[..., None]
        moved = self.x[..., :, None] * x[..., None, :]
        gram = self.xx - moved - np.swapaxes(moved, -1, -2)
        gram += (weight * x)[..., :, None] * x[..., None, :]
        cross = self.xy - self.x * y - (own_y - weight * y) * x
        gram -= share[..., None] * (self.cov - self.squared_cov / total[..., None])
        cross -= share * (self.cross - self.squared_cross / total)
        return gram, cross

    def solution(self, *, share: Any = 1.0) -> tuple[Any, np.ndarray]:
        """Intercept and coefficients `[..., d]` that solve the normal equations.

        Where they are singular, as without the only row of a category, the shortest coefficients.
        """
        gram, cross = self.centred(share=share)
        try:
            pivots = np.diagonal(np.linalg.cholesky(gram), axis1=-2, axis2=-1) ** 2
            singular = (pivots.min(axis=-1) < _SINGULAR * pivots.max(axis=-1)).any()
        except np.linalg.LinAlgError:
            singular = True
        if singular:
            inverse = np.linalg.pinv(gram, _SINGULAR, hermitian=True)
            beta = (inverse @ cross[..., None])[..., 0]
        else:
            beta = np.linalg.solve(gram, cross[..., None])[..., 0]
        return (self.y - np.sum(self.x * beta, axis=-1)) / self.weight, beta

    def clean_error(self, intercept: Any, beta: np.ndarray) -> Any:
        """Σ w (ỹ − a − ⟨β, x̃⟩)² − w βᵀΣβ + 2w βᵀc, unbiased for a predictor's error on clean rows.

        It contains the variance of the noise in ỹ.
        """
        square = np.einsum("...i,...ij,...j->...", beta, self.xx - self.cov, beta)
        total = self.yy - 2 * np.sum((self.xy - self.cross) * beta, axis=-1) + square
        x = np.sum(self.x * beta, axis=-1)
        return total + intercept * (intercept * self.weight - 2 * self.y + 2 * x)


def clean_errors(
    x: np.ndarray, y: np.ndarray, cov: np.ndarray, cross: np.ndarray | None, intercept, beta
) -> np.ndarray:
    """The terms `[n]` of `LinearMoments.clean_error`, (ỹ − a − ⟨β, x̃⟩)² − βᵀΣ_iβ + 2βᵀc_i."""
    errors = (y - intercept - x @ beta) ** 2 - (cov @ beta) @ beta
    return errors if cross is None else errors + 2 * cross @ beta


def linear_moments(
    x: np.ndarray,
    y: np.ndarray,
    cov: np.ndarray,
    weights: np.ndarray | None = None,
    cross: np.ndarray | None = None,
) -> LinearMoments:
    """The moments of noisy rows, in float64, of exact digits if x is centred and of size about one.

    Args:
        x: `[n, d]`.
        y: `[n]`.
        cov: `[d, d]` or `[n, d, d]`, covariance of the error in a row of x.
        weights: `[n]`, at least 0; 1 by default.
        cross: `[d]` or `[n, d]`, covariance of the errors in a row of x and in y; 0 by default.
    """
    if weights is None:
        total = squared = float(len(y))
        weighted, weighted_y = x, y
    else:
        total, squared = float(weights.sum()), float(weights @ weights)
        weighted, weighted_y = x * weights[:, None], y * weights

    def sums(values, rank):
        """Σ w v_i and Σ w² v_i, of values for all rows or one a row."""
        if values.ndim == rank:
            return total * values, squared * values
        if weights is None:
            return 2 * (values.sum(axis=0),)
        return np.tensordot(weights, values, axes=1), np.tensordot(weights**2, values, axes=1)

    cov_sum, squared_sum = sums(cov, 2)
    cross_sum, squared_cross = sums(np.zeros(x.shape[1]) if cross is None else cross, 1)
    return LinearMoments(
        weight=total,
        x=np.ones(len(y)) @ weighted,  # `sum` is slow for every 32nd row
        xx=weighted.T @ x,
        y=float(weighted_y.sum()),
        xy=weighted.T @ y,
        yy=float(weighted_y @ y),
        cov=cov_sum,
        squared_cov=squared_sum,
        cross=cross_sum,
        squared_cross=squared_cross,
    )


def moments_of(rows: Rows, which: slice = slice(None)) -> LinearMoments:
    """The moments of a slice of the rows, in blocks that fit into a processor's cache."""
    start, stop, _ = which.indices(len(rows.y))
    ends = itertools.pairwise([start, *range(start + ROWS, stop, ROWS), stop])
    blocks = (linear_moments(*rows.some(slice(*pair))) for pair in ends)
    return functools.reduce(LinearMoments.plus, blocks)


def moments_by_group(rows: Rows, groups: Sequence[slice]) -> LinearMoments:
    """The moments of each group of rows, with a leading axis."""
    parts = [moments_of(rows, group) for group in groups]
    return LinearMoments._make(map(np.array, zip(*parts, strict=True)))
