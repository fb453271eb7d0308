"""The normal equations of a linear fit, and what each row adds to them.

With the means x̄ of the columns, θ are the prediction at x̄ and the slopes β. A row of weight w, with
z = (1, x̃ − x̄), residual r and noise of covariance Σ, and of covariance c with y, adds the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. −∂Σψ/∂θ is the block diagonal matrix of W and
of the corrected Gram matrix, and −∂ψ/∂θ = w zzᵀ − κw(1 − w/W)(0, Σ).
"""

from collections.abc import Iterator

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS, LinearMoments
from noisy_jax.observed.fits.sandwich import Block, Outer
from noisy_jax.observed.fits.units import Rows


class LinearEquations:
    """The equations of rows with the moments `whole`, both standardized."""

    def __init__(self, whole: LinearMoments, rows: Rows):
        self.whole, self.rows = whole, rows

    def jacobian(self, share: float) -> np.ndarray:
        """`[1 + d, 1 + d]`, −∂Σψ/∂θ."""
        gram = self.whole.centred(share=share)[0]
        found = np.zeros(np.add(gram.shape, 1))
        found[0, 0], found[1:, 1:] = self.whole.weight, gram
        return found

    def blocks(self, beta: np.ndarray, share: float) -> Iterator[Block]:
        """ψ and −∂ψ/∂θ of blocks of rows, at the slopes β that solve the equations."""
        for start in range(0, len(self.rows.y), ROWS):
            rows, total = self.rows.some(slice(start, start + ROWS)), self.whole.weight
            weight = 1.0 if rows.weights is None else rows.weights
            z = np.ones((1 + rows.x.shape[1], len(rows.y)))  # long rows are fast
            np.subtract(rows.x.T, (self.whole.x / total)[:, None], out=z[1:])
            scores = z * (weight * (rows.y - self.whole.y / total - beta @ z[1:]))
            taken = share * (weight - weight**2 / total)
            noise = rows.cov @ beta - (0.0 if rows.cross is None else rows.cross)
            scores[1:] += noise.reshape(-1, len(beta)).T * taken
            yield Block(scores.T, Outer(z.T, weight, taken, rows.cov))
