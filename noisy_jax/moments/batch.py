"""Unbiased first and second moments of clean features, from noisy ones, summed in float64.

For a row with noisy features x̃ = x + n, E n = 0 and Cov n = Σ, and a target ỹ of mean y,

    E[x̃x̃ᵀ − Σ] = xxᵀ      and      E[ỹ x̃] = y x.

Sums of these over rows are the moments that least squares on the clean rows would use. They can be
merged: moments of two parts of a table add up to those of the whole.

Source: corrected least squares (Fuller, Measurement Error Models, 1987, Sec. 2.2; Nakamura, 1990).
"""

from typing import NamedTuple

import numpy as np


class LinearMoments(NamedTuple):
    """Weighted sums over rows; w_i is the weight of row i.

    Attributes:
        weight: Σ w.
        x: `[d]`, Σ w x̃.
        xx: `[d, d]`, Σ w x̃x̃ᵀ.
        y: Σ w ỹ.
        xy: `[d]`, Σ w x̃ỹ.
        yy: Σ w ỹ².
        cov: `[d, d]`, Σ w Σ_i.
        squared_cov: `[d, d]`, Σ w² Σ_i, the error that centring brings in.
    """

    weight: float
    x: np.ndarray
    xx: np.ndarray
    y: float
    xy: np.ndarray
    yy: float
    cov: np.ndarray
    squared_cov: np.ndarray

    def plus(self, other: "LinearMoments", sign: float = 1.0) -> "LinearMoments":
        """The moments of both parts together; with sign −1, of this one without the other."""
        return LinearMoments._make(a + sign * b for a, b in zip(self, other, strict=True))

    def centred(self, *, corrected: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The moments about the means: an unbiased Gram matrix `[d, d]` and cross moment `[d]`.

        The mean of the noisy rows has an error of covariance Σ w²Σ_i/(Σ w)², so that

            E[Σ w (x̃ − x̄)(x̃ − x̄)ᵀ] = Σ w (x − x̄)(x − x̄)ᵀ + Σ w Σ_i − Σ w² Σ_i/Σ w,

        and what is taken away is the last two terms; n − 1 times Σ with equal weights.

        Args:
            corrected: False leaves the noise in, as ordinary least squares does.
        """
        gram = self.xx - np.outer(self.x, self.x) / self.weight
        if corrected:
            gram = gram - (self.cov - self.squared_cov / self.weight)
        return gram, self.xy - self.x * self.y / self.weight

    def solution(self, *, corrected: bool = True) -> tuple[float, np.ndarray]:
        """Intercept and coefficients `[d]` that solve the normal equations."""
        beta = np.linalg.solve(*self.centred(corrected=corrected))
        return float(self.y - self.x @ beta) / self.weight, beta

    def clean_error(self, intercept: float, beta: np.ndarray) -> float:
        """Σ w (ỹ − a − ⟨β, x̃⟩)² − w βᵀΣβ, unbiased for a fixed predictor's error on clean rows."""
        a, total = intercept, self.yy - 2 * self.xy @ beta + beta @ (self.xx - self.cov) @ beta
        return float(total + a * (a * self.weight - 2 * self.y + 2 * self.x @ beta))


def linear_moments(
    x: np.ndarray, y: np.ndarray, cov: np.ndarray, weights: np.ndarray | None = None
) -> LinearMoments:
    """The moments of rows of noisy features.

    Args:
        x: `[n, d]` noisy features; for exact digits centred and scaled to about one.
        y: `[n]` targets.
        cov: `[d, d]` or `[n, d, d]`, covariance of the error in a row of x.
        weights: `[n]` non-negative weights of the rows; 1 by default.

    Returns:
        `LinearMoments` in float64.
    """
    if weights is None:
        total = squared = float(len(y))
        weighted, weighted_y = x, y
    else:
        total, squared = float(weights.sum()), float(weights @ weights)
        weighted, weighted_y = x * weights[:, None], y * weights
    if cov.ndim == 2:
        cov_sum, squared_sum = total * cov, squared * cov
    elif weights is None:
        cov_sum = squared_sum = cov.sum(axis=0)
    else:
        cov_sum = np.tensordot(weights, cov, axes=1)
        squared_sum = np.tensordot(weights**2, cov, axes=1)
    return LinearMoments(
        weight=total,
        x=weighted.sum(axis=0),
        xx=weighted.T @ x,
        y=float(weighted_y.sum()),
        xy=weighted.T @ y,
        yy=float(weighted_y @ y),
        cov=cov_sum,
        squared_cov=squared_sum,
    )
