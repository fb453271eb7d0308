"""The normal equations of a linear fit, from moments of groups of rows, and what each row adds.

With the means x̄ of the columns, θ are the prediction at x̄ and the slopes β. A row of weight w, with
z = (1, x̃ − x̄), residual r and noise of covariance Σ, and of covariance c with y, adds the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. −∂Σψ/∂θ is the block diagonal matrix of W and
of the corrected Gram matrix, and −∂ψ/∂θ = w zzᵀ − κw(1 − w/W)(0, Σ). Σψ is linear in θ, and follows
from moments without the rows.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS, LinearMoments
from noisy_jax.observed.fits.roots import Sums
from noisy_jax.observed.fits.sandwich import Block, Outer
from noisy_jax.observed.observations.rows import Rows


@dataclasses.dataclass(frozen=True, eq=False)
class LinearEquations:
    """The equations of groups of standardized rows.

    Attributes:
        parts: the moments of each group, with a leading axis.
        rows: all rows, or `None` where only their moments are kept, as of chunks.
    """

    parts: LinearMoments
    rows: Rows | None = None

    @functools.cached_property
    def whole(self) -> LinearMoments:
        """The moments of all groups."""
        return self.parts.total()

    @functools.cached_property
    def center(self) -> np.ndarray:
        """`[d]`, x̄."""
        return self.whole.x / self.whole.weight

    def root(self, moments: LinearMoments, share: Any) -> np.ndarray:
        """θ `[..., 1 + d]` that solves the equations with these moments, of all groups or some."""
        intercept, beta = moments.solution(share=share)
        return np.concatenate([(intercept + beta @ self.center)[..., None], beta], axis=-1)

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """Σψ and ∂Σψ/∂θ, from the moments."""
        (gram, cross), whole = self.whole.centred(share=share), self.whole
        jacobian = np.zeros(np.add(gram.shape, 1))
        jacobian[0, 0], jacobian[1:, 1:] = -whole.weight, -gram
        return Sums(np.append(whole.y, cross) + jacobian @ theta, jacobian)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """`[1 + d, d, d]`, ∂Σψ/∂Σ: the Gram matrix is κWΣ smaller than with the noise."""
        dim = len(theta) - 1
        found = np.zeros((1 + dim, dim, dim))
        found[1:] = share * self.whole.weight * np.eye(dim)[:, :, None] * theta[1:]
        return found

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """ψ and −∂ψ/∂θ of blocks of rows, at the root θ."""
        if self.rows is None:
            raise ValueError("the rows are gone, of which only moments are kept")
        beta, total, center = theta[1:], self.whole.weight, self.center[:, None]
        for start in range(0, len(self.rows.y), ROWS):
            rows = self.rows.some(slice(start, start + ROWS))
            weight = 1.0 if rows.weights is None else rows.weights
            z = np.ones((1 + rows.x.shape[1], len(rows.y)))  # long rows are fast
            np.subtract(rows.x.T, center, out=z[1:])
            scores = z * (weight * (rows.y - theta @ z))
            taken = share * (weight - weight**2 / total)
            noise = rows.cov @ beta - (0.0 if rows.cross is None else rows.cross)
            scores[1:] += noise.reshape(-1, len(beta)).T * taken
            yield Block(scores.T, Outer(z.T, weight, taken, rows.cov))
