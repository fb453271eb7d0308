"""Estimates from rows to which noise is added, at several levels of its variance.

At the level λ, draw b of B adds √λ u_bi to row i, with u_bi ~ N(0, C_i) and C_i the covariance of
the error in the row. The same draws serve all levels, so that estimates are smooth in λ. With the
estimates θ_b(λ) and their estimated covariances V_b(λ), what is kept of each level is

    the mean over b of θ_b(λ),    and    mean of V_b(λ) − covariance of θ_b(λ) over b.

Least squares needs sums over rows only. If all rows share C = LLᵀ, the sums are drawn from their
exact joint law, without a draw for each row: with Z = (1, x, y) = QR, k columns in Q, and rows
u_i = L g_i,

    ZᵀG = Rᵀ(QᵀG),    GᵀG = (QᵀG)ᵀ(QᵀG) + W,

where the entries of QᵀG are independent N(0, 1), and W is an independent Wishart matrix with n − k
degrees of freedom. Otherwise noise is drawn for each row.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.observed.fits.approximate import NoisyTable
from noisy_jax.observed.fits.sandwich import LEVERAGE
from noisy_jax.observed.fits.units import Rows

_NUMBERS = 1 << 20  # of noisy rows that are in memory at once
_STEPS, _HALVINGS, _SMALL = 50, 30, 1e-8

Refit = Callable[[np.ndarray, np.ndarray, Any], tuple[np.ndarray, np.ndarray | None]]
"""From noisy rows `[b, n, d]`, y `[n]` and starts `[b, p]` to estimates `[b, p]` and covariances
`[b, p, p]`, if there are any."""


class AtLevels(NamedTuple):
    """Estimates at K levels."""

    estimates: np.ndarray  # [K, p], means over the draws
    covariances: np.ndarray | None  # [K, p, p], their mean less the covariance over draws


class AddedNoise:
    """B ≥ 2 draws of noise for the rows of a table, and what one estimator makes of them.

    `groups` has the numbers of the rows in each of G groups.
    """

    def __init__(self, table: NoisyTable, draws: int, seed: int, groups: Sequence[np.ndarray]):
        self.table, self.draws, self.seed, self.groups = table, draws, seed, groups
        cov = table.some(slice(None)).cov
        self.shared = cov.ndim == 2
        variances = np.atleast_2d(np.diagonal(cov, axis1=-2, axis2=-1))
        self.noisy = np.flatnonzero(variances.any(axis=0))

    def at(self, levels: np.ndarray, *, without: int | None = None, cov=None) -> AtLevels:
        """Estimates at levels λ ≥ 0, of which the first is 0.

        Args:
            levels: `[K]`.
            without: the group of rows that is left out, if any.
            cov: `[d, d]` in place of the covariance of the table.
        """
        raise NotImplementedError

    def rows(self, without: int | None) -> tuple[np.ndarray | slice, Rows]:
        """Which rows are kept without a group, and these rows."""
        kept: Any = slice(None)
        if without is not None:
            kept = np.delete(np.arange(len(self.table.rows.y)), self.groups[without])
        return kept, self.table.some(kept)

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
        size = len(self.table.rows.y), len(self.noisy)
        return np.random.default_rng((self.seed, draw)).standard_normal(size)


class LinearRegression(AddedNoise):
    """Least squares with an intercept, whose covariance is the residual variance times (XᵀX)⁻¹."""

    def __init__(self, table: NoisyTable, draws: int, seed: int, groups: Sequence[np.ndarray]):
        super().__init__(table, draws, seed, groups)
        x, y = table.rows.x, table.rows.y
        z = np.column_stack([np.ones(len(y)), x, y])
        parts = [z[group] for group in groups]
        made = self._law_of_sums(parts) if self.shared else self._sums(z)
        # The sums ZᵀZ `[G, k, k]`, ZᵀG `[G, B, k, m]` and GᵀG `[G, B, m, m]` of groups.
        self.sums = np.array([part.T @ part for part in parts]), *made

    def at(self, levels: np.ndarray, *, without: int | None = None, cov=None) -> AtLevels:
        """See `AddedNoise.at`."""
        _, rows = self.rows(without)
        gram, mixed, own = (
            leaf.sum(axis=0) - (0 if without is None else leaf[without]) for leaf in self.sums
        )
        count, size = len(self.noisy), len(gram)
        place = np.zeros((size, count))
        cov = rows.cov if cov is None else cov
        place[1 + self.noisy] = self.root(cov) if self.shared else np.eye(count)
        cross = mixed @ place.T
        square = levels[:, None, None, None]
        moments = square**0.5 * (cross + np.swapaxes(cross, 1, 2))
        moments += gram + square * (place @ own @ place.T)
        inverse = np.linalg.inv(moments[..., :-1, :-1])
        theta = np.einsum("kbij,kbj->kbi", inverse, moments[..., :-1, -1])
        squares = moments[..., -1, -1] - np.sum(theta * moments[..., :-1, -1], axis=-1)
        variance = np.maximum(squares, 0) / (len(rows.y) - size + 1)
        return _summed(theta, variance[..., None, None] * inverse)

    def _law_of_sums(self, parts):
        """ZᵀG and GᵀG, drawn from their joint law for each group."""
        random, count, mixed, own = np.random.default_rng(self.seed), len(self.noisy), [], []
        for part in parts:
            root: Any = np.linalg.qr(part, mode="r")
            inside = random.standard_normal((self.draws, len(root), count))
            outside = _wishart_root(random, len(part) - len(root), self.draws, count)
            mixed.append(root.T @ inside)
            own.append(sum(np.swapaxes(one, 1, 2) @ one for one in (inside, outside)))
        return np.array(mixed), np.array(own)

    def _sums(self, z):
        """ZᵀU and UᵀU, with noise for each row; the covariances of rows are inside."""
        root = self.root(self.table.rows.cov)
        mixed, own = [], []
        for draw in range(self.draws):
            noise = self.noise(root, self.normal(draw))
            parts = [(z[group], noise[group]) for group in self.groups]
            mixed.append([one.T @ u for one, u in parts])
            own.append([u.T @ u for _, u in parts])
        return np.swapaxes(mixed, 0, 1), np.swapaxes(own, 0, 1)


def _wishart_root(random, freedom: int, draws: int, size: int) -> np.ndarray:
    """`[B, ., m]` matrices T for which TᵀT has the Wishart law with this freedom, by Bartlett."""
    if freedom < size:
        return random.standard_normal((draws, freedom, size))
    root = np.triu(random.standard_normal((draws, size, size)), 1)
    place = np.arange(size)
    root[:, place, place] = np.sqrt(random.chisquare(freedom - place, (draws, size)))
    return root


class Refitted(AddedNoise):
    """Any estimator, `refit`, which is called again for each level and draw.

    It begins at `start` `[1, p]`, or `None`, for the rows themselves. `advance` is called with the
    number of estimates that were made.
    """

    def __init__(self, table, draws, seed, groups, refit: Refit, start, advance):
        super().__init__(table, draws, seed, groups)
        self.refit, self.start, self.advance = refit, start, advance

    def at(self, levels: np.ndarray, *, without: int | None = None, cov=None) -> AtLevels:
        """See `AddedNoise.at`."""
        kept, rows = self.rows(without)
        root = self.root(rows.cov if cov is None else cov)
        plain = self.refit(rows.x[None], rows.y, self.start)
        self.advance(1)
        blocks, size = [], max(1, _NUMBERS // rows.x.size)
        for first in range(0, self.draws, size):
            block = range(first, min(first + size, self.draws))
            noise = self.noise(root, np.array([self.normal(draw)[kept] for draw in block]))
            made = [[None if one is None else np.repeat(one, len(block), 0) for one in plain]]
            for level in levels[1:]:
                x = np.repeat(rows.x[None], len(block), axis=0)
                x[..., self.noisy] += level**0.5 * noise
                made.append(list(self.refit(x, rows.y, made[-1][0])))
                self.advance(len(block))
            blocks.append(made)
        theta, spread = (
            None
            if plain[part] is None
            else np.concatenate([[one[part] for one in made] for made in blocks], axis=1)
            for part in (0, 1)
        )
        return _summed(theta, spread)


def _summed(theta: Any, covariances: Any) -> AtLevels:
    """From estimates `[K, B, p]` and covariances `[K, B, p, p]`, or `None`."""
    means = theta.mean(axis=1)
    if covariances is None:
        return AtLevels(means, None)
    apart = theta - means[:, None]
    over_draws = np.swapaxes(apart, 1, 2) @ apart / (theta.shape[1] - 1)
    return AtLevels(means, covariances.mean(axis=1) - over_draws)


def likelihood_refit(model: str) -> Refit:
    """Maximum likelihood of logistic or Poisson regression, with the sandwich covariance.

    Scores are divided by 1 − h with the leverage h of their row, as in `sandwich` (HC3). Newton's
    method runs on all draws at once. Steps are halved until their score falls.
    """
    inverse_link = {"logistic": scipy.special.expit, "poisson": np.exp}[model]

    def refit(x, y, start):
        design = np.concatenate([np.ones((*x.shape[:2], 1)), x], axis=2)
        theta = start

        def equations(theta):
            with np.errstate(over="ignore"):
                mean = inverse_link(np.matmul(design, theta[..., None])[..., 0])
            return mean, np.matmul((y - mean)[:, None], design)[:, 0]

        mean, score = equations(theta)
        for _ in range(_STEPS):
            slope = mean * (1 - mean) if model == "logistic" else mean
            information = np.swapaxes(design * slope[..., None], 1, 2) @ design
            try:
                step = np.linalg.solve(information, score[..., None])[..., 0]
            except np.linalg.LinAlgError:
                break
            least = _SMALL * np.maximum(1, np.abs(theta).max(axis=1))
            done = np.abs(step).max(axis=1) <= least
            if done.all():
                bread = np.linalg.inv(information)
                leverage = slope * np.sum((design @ bread) * design, axis=2)
                scores = design * ((y - mean) / (1 - np.minimum(leverage, LEVERAGE)))[..., None]
                moves = scores @ bread
                return theta + step, np.swapaxes(moves, 1, 2) @ moves
            length, before = np.ones(len(theta)), np.linalg.norm(score, axis=1)
            for _ in range(_HALVINGS):
                tried = theta + length[:, None] * step
                mean, score = equations(tried)
                better = done | (np.linalg.norm(score, axis=1) < before)
                if better.all():
                    break
                length = np.where(better, length, length / 2)
            theta = tried
        raise ValueError(
            f"the {model} regression has no finite solution with noise added to the columns: drop "
            "a column, or add rows"
        )

    return refit
