"""The covariance of the root of an equation Σψ = 0, from the terms of the rows.

With A = −∂Σψ/∂θ and A_i = −∂ψ_i/∂θ the root without row i differs, to one step of Newton's method,
by

    v_i = (A − A_i)⁻¹ψ_i,

and the covariance is Σ vvᵀ. For least squares without noise v = A⁻¹ψ/(1 − h) with the leverage h of
the row, which is HC3. Scores and Jacobians of a cluster are added up, so that v is without the
cluster. No order of the rows matters.

In a linear fit A_i is a product of two vectors, w zzᵀ, and v follows without a matrix for each row
(Sherman and Morrison):

    v = A⁻¹ψ + A⁻¹z w zᵀA⁻¹ψ/(1 − h),    h = w zᵀA⁻¹z.

The size of A⁻¹A_i is h = √tr (A⁻¹A_i)², the leverage where A_i has rank 1. A larger one than 0.95
is made 0.95. A row that alone has some category has the leverage 1 and the score 0, which say
nothing of its error. So with h ≥ ½, vᵀAv counts as no smaller than h Σψᵀ A⁻¹ψ/p, which is the
typical one for p parameters.

Source: MacKinnon and White, Journal of Econometrics 29 (1985); for clusters Bell and McCaffrey,
Survey Methodology 28 (2002); for corrected scores Carroll et al., Measurement Error in Nonlinear
Models (2006), App. A.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS

LEVERAGE = 0.95
"""Larger leverages count as this."""
_ALONE = 0.5 - 1e-9  # leverage of a row, from which on its score says little of its error
_ROUNDING = 1e-15  # of an iteration, relative to the largest score
_HALVINGS = 60  # of what the iteration still changes, at most
_AT_ONCE = 1 << 20  # numbers of the Jacobians in memory


class Outer(NamedTuple):
    """The Jacobians w zzᵀ − t (0, C) of m rows, with the covariance C of the last d parameters.

    The noise of single rows is left out of their leverages, to first order in 1/n: it has rank d.
    """

    z: np.ndarray  # [m, p]
    weight: np.ndarray | float  # [m] or [], w
    taken: np.ndarray | float  # [m] or [], t
    cov: np.ndarray  # [d, d] or [m, d, d]

    @classmethod
    def joined(cls, parts: Sequence[Outer]) -> Outer:
        """The Jacobians of all rows, from parts of them."""
        by_row = [(part.z, part._each(part.weight), part._each(part.taken)) for part in parts]
        covs = [part.cov for part in parts]
        cov = covs[0] if covs[0].ndim == 2 else np.concatenate(covs)
        z, weight, taken = map(np.concatenate, zip(*by_row, strict=True))
        return cls(z, weight, taken, cov)

    def summed(self, order: np.ndarray, firsts: np.ndarray) -> np.ndarray:
        """`[c, p, p]`, the sums over c clusters that begin at `firsts` in an order of the rows."""
        z, weight, taken = self.z[order].T, self._each(self.weight), self._each(self.taken)
        size, upper = len(z), np.triu_indices(len(z))
        sums = np.empty((len(firsts), size, size))
        products = np.add.reduceat((weight[order] * z)[upper[0]] * z[upper[1]], firsts, axis=1)
        sums[:, upper[0], upper[1]] = sums[:, upper[1], upper[0]] = products.T
        noise = self.cov[order] if self.cov.ndim == 3 else self.cov
        if self.cov.ndim == 3:
            noise = np.add.reduceat(taken[order, None, None] * noise, firsts)
        else:
            noise = np.add.reduceat(taken[order], firsts)[:, None, None] * noise
        first = size - noise.shape[-1]
        sums[:, first:, first:] -= noise
        return sums

    def _each(self, values: np.ndarray | float) -> np.ndarray:
        return np.broadcast_to(values, len(self.z))


class Block(NamedTuple):
    """Scores and Jacobians of m rows, or clusters."""

    scores: np.ndarray  # [m, p], ψ_i
    jacobians: np.ndarray | Outer  # [m, p, p], A_i


class Variance(NamedTuple):
    """Covariance of p parameters."""

    covariance: np.ndarray  # [p, p]
    freedom: np.ndarray | float  # [k] or [], degrees of freedom of k combinations of them
    wider: float  # largest ratio of a standard error to the one by A in place of A − A_i


def blocks_of(rows: int, size: int) -> Iterator[slice]:
    """Blocks of rows whose Jacobians, `[size, size]` each, fit into memory."""
    step = max(1, min(ROWS, _AT_ONCE // size**2))
    return (slice(start, start + step) for start in range(0, rows, step))


def variance(
    blocks: Iterable[Block | tuple[np.ndarray, np.ndarray]],
    whole: np.ndarray,
    clusters: np.ndarray | None = None,
    combined: np.ndarray | None = None,
) -> Variance:
    """The covariance of a root, and Satterthwaite's degrees of freedom.

    With independent v of variance σ² and fourth moment μ, the relative variance of a sum of n
    squares v² is (μ − σ⁴)/(n σ⁴), which is 2 over the degrees of freedom:
    2 (Σ v²)² / (Σ v⁴ − (Σ v²)²/n), at most n − p, or the number of clusters less 1.

    Args:
        blocks: ψ_i `[m, p]` and A_i of blocks of rows, A_i as `[m, p, p]` or `Outer`.
        whole: A `[p, p]`.
        clusters: `[n]`, whole numbers from 0, in the order of the rows.
        combined: `[k, p]`, the combinations that have degrees of freedom; by default all θ.
    """
    size, inverse = len(whole), np.linalg.inv(whole)
    combined = np.eye(size) if combined is None else combined
    if clusters is not None:
        blocks = _of_clusters(blocks, clusters, size)
    squares, plain = np.zeros((2, size, size))
    count, moved, fourth, alone = 0, combined @ inverse, np.zeros(len(combined)), []
    for scores, jacobians in blocks:
        plain += scores.T @ scores
        if isinstance(jacobians, Outer):
            left_out, sizes, axis = _without_vectors(scores, jacobians, inverse)
        else:
            left_out, sizes, axis = _without_matrices(scores, jacobians, inverse)
        large = np.flatnonzero(sizes > _ALONE)
        if large.size:
            alone += [(inverse @ left_out[row], axis(row), sizes[row]) for row in large]
            left_out[large] = 0
        squares += left_out.T @ left_out
        fourth += _fourth_powers((moved @ left_out.T).T)
        count += len(scores)
    squares, typical = inverse @ squares @ inverse.T, np.sum(inverse * plain) / size
    for move, axis, leverage in alone:
        least, length = max(leverage * typical, 0.0), abs(axis @ whole @ axis)
        if move @ whole @ move < least and length > 0:
            move = axis * (least / length) ** 0.5
        squares += np.outer(move, move)
        fourth += _fourth_powers((combined @ move)[None])
    plain = np.diag(inverse @ plain @ inverse.T)
    most = count - size if clusters is None else count - 1
    total = np.diag(combined @ squares @ combined.T)
    freedom = satterthwaite(total, fourth, count, most)
    ratios = np.diag(squares) / np.where(plain > 0, plain, np.inf)
    return Variance(squares, freedom, float(np.sqrt(ratios.max())))


def _without_vectors(scores: np.ndarray, rows: Outer, inverse: np.ndarray):
    """Av `[m, p]`, h `[m]`, and a function that gives the axis of a row's leverage."""
    by_row = (inverse.T @ rows.z.T).T  # long rows in memory are fast
    sizes = rows.weight * np.einsum("ni,ni->n", rows.z, by_row)
    kept = LEVERAGE / np.maximum(sizes, LEVERAGE)
    back = rows.weight * kept * np.einsum("ni,ni->n", scores, by_row) / (1 - kept * sizes)
    left_out = np.multiply(rows.z, back[:, None], out=by_row)
    left_out += scores
    return left_out, sizes, lambda row: inverse @ rows.z[row]


def _without_matrices(scores: np.ndarray, jacobians: np.ndarray, inverse: np.ndarray):
    """Does the same as `_without_vectors`, where each row, or cluster, has a matrix.

    Where ‖A_i‖‖A⁻¹‖ is below ½, so is h, and w = Av follows from w = ψ_i + A_iA⁻¹w by iteration.
    For the other rows, `far`, a system is solved and the size computed; the sizes of near rows
    stay 0, as only those from ½ on are used.
    """
    sizes = np.linalg.norm(jacobians, axis=(1, 2)) * np.linalg.norm(inverse)
    far = np.flatnonzero(~(sizes < _ALONE))
    near, sizes = scores.copy(), np.zeros(len(scores))
    near[far] = 0.0
    left_out = near
    for _ in range(_HALVINGS):
        before = left_out
        left_out = near + np.matmul(jacobians, (before @ inverse.T)[..., None])[..., 0]
        if not np.abs(left_out - before).max() > _ROUNDING * np.abs(left_out).max():
            break
    leverages = inverse @ jacobians[far]
    sizes[far] = np.sqrt(np.maximum(np.einsum("nij,nji->n", leverages, leverages), 0))
    kept = (LEVERAGE / np.maximum(sizes[far], LEVERAGE))[:, None]
    apart = np.eye(len(inverse)) - kept[..., None] * leverages
    moves = np.linalg.solve(apart, (scores[far] @ inverse.T)[..., None])
    left_out[far] = scores[far] + kept * (jacobians[far] @ moves)[..., 0]

    def axis(row):
        values, vectors = np.linalg.eig(inverse @ jacobians[row])
        return np.real(vectors[:, np.argmax(np.abs(values))])

    return left_out, sizes, axis


def _of_clusters(blocks, clusters: np.ndarray, size: int) -> Iterator[Block]:
    """Scores and Jacobians of whole clusters."""
    count, start = int(clusters.max()) + 1, 0
    scores, jacobians, outers = np.zeros((count, size)), None, []
    for of_rows, slopes in blocks:
        labels = clusters[start : start + len(of_rows)]
        order, firsts = _by_label(labels)
        scores[labels[order[firsts]]] += np.add.reduceat(of_rows[order], firsts)
        if isinstance(slopes, Outer):
            outers.append(slopes)
        else:
            jacobians = np.zeros((count, size, size)) if jacobians is None else jacobians
            jacobians[labels[order[firsts]]] += np.add.reduceat(slopes[order], firsts)
        start += len(of_rows)
    order, firsts = _by_label(clusters)
    ends, rows = np.append(firsts, len(clusters)), Outer.joined(outers) if outers else None
    for part in blocks_of(count, size):
        if rows is not None:
            of_rows = order[ends[part.start] : ends[min(part.stop, count)]]
            yield Block(scores[part], rows.summed(of_rows, firsts[part] - firsts[part.start]))
        elif jacobians is not None:
            yield Block(scores[part], jacobians[part])


def _by_label(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order of the rows by label, and where in it each label begins."""
    order = np.argsort(labels, kind="stable")
    return order, np.flatnonzero(np.diff(labels[order], prepend=-1))


def satterthwaite(square, fourth, count: float, most: float) -> np.ndarray:
    """Degrees of freedom of Σ v² of `count` numbers v, from it and from Σ v⁴; at most `most`."""
    total = np.square(square)
    spread = np.maximum(fourth - total / count, 2 * total / most)
    return 2 * total / np.where(spread > 0, spread, 2.0 / most)


def _fourth_powers(values: np.ndarray) -> np.ndarray:
    """Sums over rows `[k]`, of `[m, k]`."""
    values *= values
    return np.einsum("nk,nk->k", values, values)
