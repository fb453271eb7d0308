"""Estimates from rows to which noise is added, at several levels of its variance.

At the level λ, draw b of B adds √λ u_bi to row i, with u_bi ~ N(0, C_i) and C_i the covariance of
the error in the row. The same draws serve all levels, so that estimates are smooth in λ. With the
estimates θ_b(λ) and their estimated covariances V_b(λ), each level keeps

    the mean over b of θ_b(λ),    and    mean of V_b(λ) − covariance of θ_b(λ) over b.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.observations.rows import Rows

_NUMBERS = 1 << 20  # of noisy rows that are in memory at once

Refit = Callable[[np.ndarray, np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray | None]]
"""Maps noisy rows `[b, n, d]`, y `[n]` and weights `[n]`, or `None`, to estimates `[b, p]` and, if
there are any, covariances `[b, p, p]`."""


class AtLevels(NamedTuple):
    """Estimates at K levels."""

    estimates: np.ndarray  # [K, p], means over the draws
    covariances: np.ndarray | None  # [K, p, p], their mean less the covariance over draws


class AddedNoise:
    """B ≥ 2 draws of noise for the rows of a table, and the estimates from them.

    Args:
        rows: of the table, which may have weights.
        estimated: whether their covariances are estimates, in whose place their mean is taken.
        draws: B.
        seed: of the draws.
        refit: the estimator, which is called again for each level and draw.
        advance: called with the number of estimates that were made.
    """

    def __init__(
        self,
        rows: Rows,
        estimated: bool,
        draws: int,
        seed: int,
        refit: Refit,
        advance: Callable[[int], None],
    ):
        self.rows, self.estimated, self.draws, self.seed = rows, estimated, draws, seed
        self.refit, self.advance = refit, advance
        self.cov = cov = self._some(slice(None)).cov
        self.shared = cov.ndim == 2
        variances = np.atleast_2d(np.diagonal(cov, axis1=-2, axis2=-1))
        self.noisy = np.flatnonzero(variances.any(axis=0))

    def at(self, levels: np.ndarray, *, kept: Any = slice(None), cov=None) -> AtLevels:
        """Estimates at levels λ ≥ 0, of which the first is 0.

        Args:
            levels: `[K]`.
            kept: the places of the rows that are taken; all by default.
            cov: `[d, d]` in place of the covariance of the table.
        """
        rows = self._some(kept)
        root = self.root(rows.cov if cov is None else cov)
        plain = self.refit(rows.x[None], rows.y, rows.weights)
        self.advance(1)
        blocks, size = [], max(1, _NUMBERS // rows.x.size)
        for first in range(0, self.draws, size):
            block = range(first, min(first + size, self.draws))
            noise = self.noise(root, np.array([self.normal(draw)[kept] for draw in block]))
            made = [[None if one is None else np.repeat(one, len(block), 0) for one in plain]]
            for level in levels[1:]:
                x = np.repeat(rows.x[None], len(block), axis=0)
                x[..., self.noisy] += level**0.5 * noise
                made.append(list(self.refit(x, rows.y, rows.weights)))
                self.advance(len(block))
            blocks.append(made)
        theta, spread = (
            None
            if plain[part] is None
            else np.concatenate([[one[part] for one in made] for made in blocks], axis=1)
            for part in (0, 1)
        )
        return _summed(theta, spread)

    def _some(self, kept: Any) -> Rows:
        rows = self.rows.some(kept)
        if not self.estimated or rows.cov.ndim == 2:
            return rows
        return rows._replace(cov=np.average(rows.cov, axis=0, weights=rows.weights))

    def root(self, cov: np.ndarray) -> np.ndarray:
        """The symmetric root `[..., m, m]` of the covariance of the noisy columns.

        It is smooth in the covariance. Negative directions of an estimate count as zero.
        """
        block = cov[..., self.noisy[:, None], self.noisy]
        values, axes = np.linalg.eigh(block)
        return (axes * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(axes, -1, -2)

    def noise(self, root: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Noise `[b, n, m]` with this root of its covariance, from N(0, 1)."""
        return normal @ root if self.shared else np.matmul(root, normal[..., None])[..., 0]

    def normal(self, draw: int) -> np.ndarray:
        """The draw of this number, `[n, m]` of N(0, 1)."""
        size = len(self.rows.y), len(self.noisy)
        return np.random.default_rng((self.seed, draw)).standard_normal(size)


def _summed(theta: Any, covariances: Any) -> AtLevels:
    """Means of estimates `[K, B, p]`, and of their covariances `[K, B, p, p]`, if there are any."""
    means = theta.mean(axis=1)
    if covariances is None:
        return AtLevels(means, None)
    apart = theta - means[:, None]
    over_draws = np.swapaxes(apart, 1, 2) @ apart / (theta.shape[1] - 1)
    return AtLevels(means, covariances.mean(axis=1) - over_draws)
