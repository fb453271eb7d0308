"""The covariance of the root of an equation Σψ = 0, from what each row adds to it.

With A = −∂Σψ/∂θ and A_i = −∂ψ_i/∂θ the root without row i differs, to one step of Newton's method,
by

    v_i = (A − A_i)⁻¹ψ_i,

and the covariance is Σ vvᵀ. For least squares without noise v = A⁻¹ψ/(1 − h) with the leverage h of
the row, which is HC3. Scores and Jacobians of a cluster are added up, so that v is without the
cluster. No order of the rows matters.

The size of A⁻¹A_i is h = √tr (A⁻¹A_i)², the leverage where A_i has rank 1. A larger one than 0.95
is made 0.95. A row that alone has some category has the leverage 1 and the score 0, which say
nothing of its error. So with h ≥ ½, vᵀAv counts as no smaller than h Σψᵀ A⁻¹ψ/p, which is the
typical one for p parameters.

A linear fit has an A_i that is a product of two vectors, so that no row needs a matrix. A row of
weight w, with z = (1, x̃ − x̄), residual r and noise of covariance Σ and of covariance c with
y, adds to the equations of the mean of y and of the slopes β the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. A is the block diagonal matrix of W and of the
corrected Gram matrix, and A_i = w zzᵀ: the noise of one row is left out of it. Scores of clusters
are added up, and then divided by A alone; with h ≥ ½ a row counts as left out in clusters too, and
r/(1 − h) as no smaller than the root of the mean squared residual of all rows.

Source: MacKinnon and White, Journal of Econometrics 29 (1985); for clusters Bell and McCaffrey,
Survey Methodology 28 (2002); for corrected scores Carroll et al., Measurement Error in Nonlinear
Models (2006), App. A.6.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS, LinearMoments
from noisy_jax.observed.fits.units import Rows, Units

LEVERAGE = 0.95
"""Larger leverages count as this."""
_ALONE = 0.5 - 1e-9  # leverage of a row, from which on its score says little of its error
_AT_ONCE = 1 << 20  # numbers of the Jacobians in memory


class Variance(NamedTuple):
    """Of p parameters."""

    covariance: np.ndarray  # [p, p]
    freedom: np.ndarray  # [k], degrees of freedom of k combinations of them
    wider: float  # largest ratio of a standard error to the one by A in place of A − A_i


def blocks_of(rows: int, size: int) -> Iterator[slice]:
    """Blocks of rows whose Jacobians, `[size, size]` each, fit into memory."""
    step = max(1, min(ROWS, _AT_ONCE // size**2))
    return (slice(start, start + step) for start in range(0, rows, step))


def variance(
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    whole: np.ndarray,
    clusters: np.ndarray | None = None,
    combined: np.ndarray | None = None,
) -> Variance:
    """The covariance of a root, and Satterthwaite's degrees of freedom.

    With independent v of variance σ² and fourth moment μ, the relative variance of a sum of n
    squares v² is (μ − σ⁴)/(n σ⁴), which is 2 over the degrees of freedom:
    2 (Σ v²)² / (Σ v⁴ − (Σ v²)²/n), at most n − p, or the number of clusters less 1.

    Args:
        parts: ψ_i `[m, p]` and A_i `[m, p, p]` of blocks of rows.
        whole: A `[p, p]`.
        clusters: `[n]`, whole numbers from 0, in the order of the rows.
        combined: `[k, p]`, the combinations that have degrees of freedom; by default all θ.
    """
    size, inverse = len(whole), np.linalg.inv(whole)
    combined = np.eye(size) if combined is None else combined
    if clusters is not None:
        parts = [_added_up(parts, clusters, size)]
    squares, plain = np.zeros((2, size, size))
    count, typical, fourth, alone = 0, 0.0, np.zeros(len(combined)), []
    for scores, jacobians in parts:
        moves, leverages = scores @ inverse.T, inverse @ jacobians
        plain += moves.T @ moves
        typical += np.sum(scores * moves) / size
        sizes = np.sqrt(np.maximum(np.einsum("nij,nji->n", leverages, leverages), 0))
        kept = (LEVERAGE / np.maximum(sizes, LEVERAGE))[:, None, None]
        moves = np.linalg.solve(np.eye(size) - kept * leverages, moves[..., None])[..., 0]
        large = sizes > _ALONE
        alone += zip(moves[large], leverages[large], sizes[large], strict=True)
        moves = moves[~large]
        squares += moves.T @ moves
        fourth += ((moves @ combined.T) ** 4).sum(axis=0)
        count += len(scores)
    for move, leverage, own in alone:
        values, vectors = np.linalg.eig(leverage)
        axis = np.real(vectors[:, np.argmax(np.abs(values))])
        least, length = max(own * typical, 0.0), abs(axis @ whole @ axis)
        if move @ whole @ move < least and length > 0:
            move = axis * (least / length) ** 0.5
        squares += np.outer(move, move)
        fourth += (combined @ move) ** 4
    most = count - size if clusters is None else count - 1
    freedom = _freedom(squares, fourth, combined, count, most)
    ratios = np.diag(squares) / np.where(np.diag(plain) > 0, np.diag(plain), np.inf)
    return Variance(squares, freedom, float(np.sqrt(ratios.max())))


def _added_up(parts, clusters: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and Jacobians of whole clusters."""
    count, start = int(clusters.max()) + 1, 0
    scores, jacobians = np.zeros((count, size)), np.zeros((count, size, size))
    for own, slopes in parts:
        labels = clusters[start : start + len(own)]
        np.add.at(scores, labels, own)
        np.add.at(jacobians, labels, slopes)
        start += len(own)
    return scores, jacobians


def _freedom(squares, fourth, combined, count: int, most: float) -> np.ndarray:
    """Satterthwaite's degrees of freedom `[k]`, from Σ vvᵀ and the sums of fourth powers."""
    total = np.diag(combined @ squares @ combined.T) ** 2
    spread = np.maximum(fourth - total / count, 2 * total / most)
    return 2 * total / np.where(spread > 0, spread, 2.0 / most)


def sandwich(
    whole: LinearMoments, share: float, rows: Rows, units: Units, clusters, jacobian: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance `[1 + d, 1 + d]` of the mean of y and of β of a linear fit.

    And the degrees of freedom `[1 + d]` of the variances of intercept and coefficients, as in
    `variance`.

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
    return squares, _freedom(squares, fourth, jacobian, count, most)


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
        residual = np.where(size > _ALONE, large, others)
        z *= weights * residual
        z[1:] += noise
        return z
