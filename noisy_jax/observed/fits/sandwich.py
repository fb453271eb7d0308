"""The covariance of a linear fit, from what each row adds to its equations.

A row of weight w, with z = (1, x̃ − x̄), residual r and noise of covariance Σ and of covariance c
with y, adds to the equations of the mean of y and of the slopes β the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. With K the block diagonal matrix of W and of
the corrected Gram matrix, the fit without this row differs by about

    v = (K − w zzᵀ)⁻¹ ψ,

and the covariance is Σ vvᵀ. Without noise v = K⁻¹ψ/(1 − h) with the leverage h = w zᵀK⁻¹z, which
is HC3. Scores of clusters are added up, and then divided by K alone.

Source: MacKinnon and White, Journal of Econometrics 29 (1985); for corrected scores Carroll et al.,
Measurement Error in Nonlinear Models (2006), App. A.6.
"""

import numpy as np

from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.units import Rows

_ROWS = 4096
LEVERAGE = 0.95
"""Larger leverages count as this."""


def sandwich(
    whole: LinearMoments, share: float, rows: Rows, clusters, jacobian: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance `[1 + d, 1 + d]` of the mean of y and of β, and degrees of freedom `[1 + d]`.

    The degrees of freedom belong to the variances of intercept and coefficients, which are sums
    of squares v². With independent v of variance σ² and fourth moment μ the relative variance of
    such a sum is (μ − σ⁴)/(n σ⁴), which is 2 over Satterthwaite's degrees of freedom:
    2 (Σ v²)² / (Σ v⁴ − (Σ v²)²/n), at most n − 1 − d, or the number of clusters less 1.

    Args:
        whole: moments of all rows.
        share: of the noise that is taken away.
        rows: of which `whole` are the moments.
        clusters: `[n]` whole numbers from 0, or `None`.
        jacobian: `[1 + d, 1 + d]`, of intercept and coefficients in the mean of y and β.
    """
    n, dim = rows.x.shape
    count = n if clusters is None else int(clusters.max()) + 1
    squares, fourth = np.zeros((1 + dim, 1 + dim)), np.zeros(1 + dim)
    sums = np.zeros((0 if clusters is None else count, 1 + dim))
    for start in range(0, n, _ROWS):  # in parts that fit into a processor's cache
        part = slice(start, start + _ROWS)
        moves = influences(whole, share, rows.some(part), clusters is None)
        if clusters is None:
            squares += moves.T @ moves
            fourth += (((moves @ jacobian.T) ** 2) ** 2).sum(axis=0)
        else:
            np.add.at(sums, clusters[part], moves)
    most = n - 1 - dim
    if clusters is not None:
        most, sums = count - 1, sums * (count / (count - 1)) ** 0.5
        squares, fourth = sums.T @ sums, ((sums @ jacobian.T) ** 4).sum(axis=0)
    total = np.diag(jacobian @ squares @ jacobian.T) ** 2
    spread = np.maximum(fourth - total / count, 2 * total / most)
    return squares, 2 * total / np.where(spread > 0, spread, 2.0 / most)


def of_scores(scores: np.ndarray, jacobian: np.ndarray, clusters=None) -> np.ndarray:
    """A⁻¹ (Σ_i ψ_iψ_iᵀ) A⁻ᵀ n/(n − p), `[p, p]`, for equations Σψ = 0 with A = −∂Σψ/∂θ.

    Args:
        scores: `[n, p]`, ψ.
        jacobian: `[p, p]`, −A.
        clusters: `[n]` whole numbers from 0, by which ψ are added up first, or `None`.
    """
    if clusters is not None:
        sums = np.zeros((int(clusters.max()) + 1, scores.shape[1]))
        np.add.at(sums, clusters, scores)
        scores = sums
    moves = scores @ np.linalg.inv(-jacobian).T
    n, size = moves.shape
    return moves.T @ moves * (n / (n - size))


def influences(whole: LinearMoments, share: float, rows: Rows, leverage: bool) -> np.ndarray:
    """`[n, 1 + d]`, v of the rows; without `leverage` K⁻¹ψ, which add up to 0."""
    gram = whole.centred(share=share)[0]
    beta, inverse = whole.solution(share=share)[1], np.linalg.inv(gram)
    x = rows.x - whole.x / whole.weight
    residual = rows.y - whole.y / whole.weight - x @ beta
    weights = 1.0 if rows.weights is None else rows.weights[:, None]
    noise = rows.cov @ beta - (0.0 if rows.cross is None else rows.cross)
    by_row = x @ inverse
    moves = np.empty((len(x), 1 + len(beta)))
    moves[:, 0] = residual / whole.weight
    np.multiply(by_row, residual[:, None], out=moves[:, 1:])
    moves[:, 1:] += share * (noise @ inverse) * (1 - weights / whole.weight)
    moves *= weights
    if leverage:
        size = weights * (1 / whole.weight + np.einsum("ni,ni->n", by_row, x)[:, None])
        total = moves[:, :1] + np.einsum("ni,ni->n", x, moves[:, 1:])[:, None]
        total *= weights / (1 - np.minimum(size, LEVERAGE))
        moves[:, :1] += total / whole.weight
        moves[:, 1:] += total * by_row
    return moves
