"""The covariance of a linear fit, from what each row adds to its equations.

A row of weight w, with z = (1, x̃ − x̄), residual r and noise of covariance Σ and of covariance c
with y, adds to the equations of the mean of y and of the slopes β the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. With K the block diagonal matrix of W and of
the corrected Gram matrix, the fit without this row differs by about

    v = (K − w zzᵀ)⁻¹ ψ,

and the covariance is Σ vvᵀ. Without noise v = K⁻¹ψ/(1 − h) with the leverage h = w zᵀK⁻¹z, which
is HC3. Scores of clusters are added up, and then divided by K alone.

A row that alone has some category has the leverage 1 and the residual 0, which say nothing of its
error. So with h ≥ ½ a row counts as left out in clusters too, and r/(1 − h) as no smaller than the
root of the mean squared residual of all rows.

Source: MacKinnon and White, Journal of Econometrics 29 (1985); for corrected scores Carroll et al.,
Measurement Error in Nonlinear Models (2006), App. A.6.
"""

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS, LinearMoments
from noisy_jax.observed.fits.units import Rows, Units

LEVERAGE = 0.95
"""Larger leverages count as this."""


def sandwich(
    whole: LinearMoments, share: float, rows: Rows, units: Units, clusters, jacobian: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance `[1 + d, 1 + d]` of the mean of y and of β, and degrees of freedom `[1 + d]`.

    The degrees of freedom belong to the variances of intercept and coefficients, which are sums
    of squares v². With independent v of variance σ² and fourth moment μ the relative variance of
    such a sum is (μ − σ⁴)/(n σ⁴), which is 2 over Satterthwaite's degrees of freedom:
    2 (Σ v²)² / (Σ v⁴ − (Σ v²)²/n), at most n − 1 − d, or the number of clusters less 1.

    `whole` are the moments of the rows in these units; the rows are in original ones. `clusters`
    `[n]` are whole numbers from 0, or `None`. `jacobian` `[1 + d, 1 + d]` is of intercept and
    coefficients in the mean of y and β.
    """
    n, dim = rows.x.shape
    count = n if clusters is None else int(clusters.max()) + 1
    equations = Scores(whole, share)
    inverse, moved = equations.inverse, jacobian @ equations.inverse
    squares, fourth = np.zeros((1 + dim, 1 + dim)), np.zeros(1 + dim)
    sums = np.zeros((0 if clusters is None else count, 1 + dim))
    for start in range(0, n, ROWS):
        part = slice(start, start + ROWS)
        scores = equations.of(units.standardized(rows.some(part)), clusters is None)
        if clusters is None:
            squares += scores @ scores.T
            own = moved @ scores
            own *= own
            fourth += np.einsum("in,in->i", own, own)
        else:
            np.add.at(sums, clusters[part], scores.T)
    most, squares = n - 1 - dim, inverse @ squares @ inverse
    if clusters is not None:
        most, sums = count - 1, sums @ inverse * (count / (count - 1)) ** 0.5
        squares, fourth = sums.T @ sums, ((sums @ jacobian.T) ** 4).sum(axis=0)
    total = np.diag(jacobian @ squares @ jacobian.T) ** 2
    spread = np.maximum(fourth - total / count, 2 * total / most)
    return squares, 2 * total / np.where(spread > 0, spread, 2.0 / most)


def of_scores(scores: np.ndarray, jacobian: np.ndarray, clusters=None) -> np.ndarray:
    """A⁻¹ (Σ_i ψ_iψ_iᵀ) A⁻ᵀ n/(n − p), `[p, p]`, for equations Σψ = 0 with A = −∂Σψ/∂θ.

    From ψ `[n, p]`, and `jacobian`, −A. ψ are added up by `clusters`, whole numbers from 0, first.
    """
    if clusters is not None:
        sums = np.zeros((int(clusters.max()) + 1, scores.shape[1]))
        np.add.at(sums, clusters, scores)
        scores = sums
    moves = scores @ np.linalg.inv(-jacobian).T
    n, size = moves.shape
    return moves.T @ moves * (n / (n - size))


class Scores:
    """What rows add to the equations at their solution, and `inverse`, K⁻¹ `[1 + d, 1 + d]`."""

    def __init__(self, whole: LinearMoments, share: float):
        gram, self._beta = whole.centred(share=share)[0], whole.solution(share=share)[1]
        self._whole, self._share = whole, share
        noisy, cross = whole.centred(share=0.0)
        square = (
            whole.yy - whole.y**2 / whole.weight - (2 * cross - noisy @ self._beta) @ self._beta
        )
        self._typical = max(square / whole.weight, 0.0) ** 0.5
        self.inverse = np.zeros(np.add(gram.shape, 1))
        self.inverse[0, 0], self.inverse[1:, 1:] = 1 / whole.weight, np.linalg.inv(gram)

    def of(self, rows: Rows, leverage: bool) -> np.ndarray:
        """`[1 + d, n]`, ψ of rows in the units of the moments; with `leverage`, or h ≥ ½, Kv.

        With s = w (r + t/(1 − h)), t = zᵀK⁻¹ψ, this is sz + w (0, κ(1 − w/W)(Σβ − c)).
        """
        weight, weights = self._whole.weight, 1.0 if rows.weights is None else rows.weights
        z = np.ones((1 + rows.x.shape[1], len(rows.y)))
        np.subtract(rows.x.T, (self._whole.x / weight)[:, None], out=z[1:])
        residual = rows.y - self._whole.y / weight - self._beta @ z[1:]
        noise = rows.cov @ self._beta - (0.0 if rows.cross is None else rows.cross)
        noise = self._share * noise.reshape(-1, len(self._beta)).T * (weights - weights**2 / weight)
        by_row = self.inverse @ z
        size = weights * (by_row * z).sum(axis=0)
        moved = (by_row[1:] * noise).sum(axis=0)
        left_out = residual + (residual * size + moved) / (1 - np.minimum(size, LEVERAGE))
        large = np.copysign(np.maximum(np.abs(left_out), self._typical), left_out)
        others = left_out if leverage else residual
        residual = np.where(size > 0.5 - 1e-9, large, others)
        z *= weights * residual
        z[1:] += noise
        return z
