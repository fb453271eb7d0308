"""Features that are missing or hidden: noise whose variance depends on the instance.

Tables hold hidden values as NaN. See `dependent.py` for the estimates of the variance.
"""

from collections.abc import Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise.base import register_distribution
from noisy_jax.noise.dependent import Dependent
from noisy_jax.validation import concrete, within

_EXPECTED = 10
"""Expected rows with values of two columns: in a table of more, both are there, or never both."""


def filled(
    x: np.ndarray, pairs: np.ndarray, cov: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Copies `[n, V, d]` of mean x and their covariances `[n, d, d]`, of values seen at random.

    With m_i = 1 where i is seen and 0 otherwise, the probabilities P_ij that i and j are seen,
    p_i = P_ii, and the mean c_i of what is seen, copies are c_i + u_i, and Σ is the covariance of
    the error in a value that is seen:

        u_i = m_i (x̃_i − c_i)/p_i,     Σ̂_ij = (1 − p_i p_j/P_ij) u_i u_j + m_i m_j Σ_ij/P_ij.

    E u_i u_j is P_ij/(p_i p_j) times the mean of (x̃_i − c_i)(x̃_j − c_j), which contains Σ_ij.

    Args:
        x: `[n, V, d]`, NaN where it is not seen.
        pairs: P, `[d, d]`.
        cov: Σ, `[d, d]` or `[n, d, d]`; 0 if values are exact.
    """
    seen = ~np.isnan(x)
    single, center = np.diag(pairs), np.nanmean(x, axis=(0, 1))
    copies = np.where(seen, x - center, 0) / single
    squares, both = (
        np.einsum("nvi,nvj->nij", one, one) / x.shape[1] for one in (copies, seen.astype(float))
    )
    return center + copies, (1 - np.outer(single, single) / pairs) * squares + both * cov / pairs


def shares_of_pairs(seen: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The shares P `[d, d]` of rows with values of two columns, from `seen` `[n, V, d]`."""
    rows = seen.reshape(-1, len(names)).astype(np.float64)
    pairs = rows.T @ rows / len(rows)
    independent = np.outer(np.diag(pairs), np.diag(pairs))
    for i, j in np.argwhere((pairs == 0) & (len(rows) * independent > _EXPECTED)).tolist():
        raise ValueError(
            f"{names[i]!r} and {names[j]!r} never have values in the same row, so that nothing "
            "shows how they depend on each other: drop one of them"
        )
    return np.where(pairs == 0, independent, pairs)  # too few rows to have both


def check_some_seen(seen: np.ndarray, names: Sequence[str]) -> None:
    """Raises ValueError if a column of `seen` `[n, V, d]` has no value at all."""
    for column in np.flatnonzero(~seen.any(axis=(0, 1))).tolist():
        raise ValueError(f"column {names[column]!r} has no value: drop it")


class _Hidden(Dependent):
    """Noise that hides features, which a table holds as NaN."""

    def read_table(self, x: Any, names: tuple[str, ...]) -> Any:
        """As `Dependent.read_table`; see `filled`."""
        self._check_dimension(x.shape[2:])
        seen = ~np.isnan(x)
        check_some_seen(seen, names)
        self._check_table(seen, names)
        return filled(x, self._pairs(seen, names))

    def _pairs(self, seen, names):
        """Probabilities `[d, d]` that two features are seen, from a table `seen` `[n, V, d]`."""
        raise NotImplementedError


@register_distribution
class Missing(_Hidden):
    """Features that are missing at random, each with a known probability: x̃_i = m_i x_i/p_i.

    m_i is 1 with probability p_i and 0 otherwise, independent for all features and of their values.
    Missing features are 0, the others are divided by p_i, so that E x̃ = x. The unbiased estimate of
    the variance is Σ̂ = diag((1 − p_i) x̃_i²). It is smallest for features of mean zero, so that
    `observations.from_arrays`, which reads NaN as missing, puts the means c of the columns there,
    x̃_i = c_i + m_i (x_i − c_i)/p_i. The uncorrected fit is for such x̃, not for rows only filled.

    A table shows how often two features are seen together. So `observations.from_arrays` takes all
    probabilities from the table, p_i and P_ij, and the estimate of the variance with them,
    Σ̂_ij = (1 − p_i p_j/P_ij) x̃_i x̃_j: there the gaps of one row may depend on each other, but not
    on any values. Intervals of `fit` contain the uncertainty of the probabilities.

    Args:
        keep: p in (0, 1], `[]` (the same for all d features) or `[d]`, probability that a feature
            is not missing. If it is not known, take the share that is observed in the table,
            `1 - np.isnan(x).mean(axis=0)`; a table with another share raises ValueError.

    Example:
        >>> import jax, noisy_jax as nj
        >>> sample = nj.noise.observe(
        ...     jax.random.key(1), jax.numpy.ones(5), 1.0, Missing(0.5), copies=1)
        >>> print(sample.x[0], sample.cov)
        [2. 2. 0. 0. 0.] [2. 2. 0. 0. 0.]
    """

    keep: chex.Numeric

    _spread = "keep"

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._parse("keep", within, stacked, 1e-6, 1)

    def _copies(self, key, x):
        draws = jax.random.uniform(key, (x.size,), x.dtype).reshape(x.shape)
        keep = jnp.broadcast_to(self.keep, x.shape)
        return jnp.where(draws < keep, x, 0) / keep

    def estimated_cov(self, copy: Any) -> Any:
        """(1 − p_i) x̃_i², `[d]` (see `Noise.estimated_cov`)."""
        return (1 - jnp.broadcast_to(self.keep, copy.shape)) * copy**2

    def _moments(self, x):
        keep = jnp.broadcast_to(self.keep, x.shape)
        return x**2 / keep, x**4 / keep**3

    def _pairs(self, seen, names):
        return shares_of_pairs(seen, names)

    def _check_table(self, x, names):
        found, keep = x.mean(axis=(0, 1)), np.broadcast_to(self.keep, len(names))
        error = np.sqrt(keep * (1 - keep) / x[..., 0].size)
        for j in np.flatnonzero(np.abs(found - keep) > 6 * error + 1e-6).tolist():
            raise ValueError(
                f"noise.Missing says that a share {keep[j]:.4g} of {names[j]!r} is observed, but "
                f"it is {found[j]:.4g}: missing values must be NaN, and keep their true share"
            )


@register_distribution
class Attributes(_Hidden):
    """Only k of the d features are seen, drawn at random: x̃_i = (d/k) x_i if seen, 0 otherwise.

    Each copy draws its own features, without replacement. With the share of pairs
    r = d(k − 1)/(k(d − 1)), E x̃_i x̃_j = r x_i x_j for i ≠ j and E x̃_i² = (d/k) x_i², so that
    Σ̂_ij = (1 − 1/r) x̃_i x̃_j and Σ̂_ii = (1 − k/d) x̃_i² is the unbiased estimate of the variance.
    One feature shows no product of two: with k = 1 the best linear predictor is not identified.

    Args:
        seen: k ≥ 2, `[]`, the number of features that are seen, at most d.

    Source: Cesa-Bianchi, Shalev-Shwartz and Shamir, Efficient Learning with Partially Observed
    Attributes (2010).

    Example:
        >>> import jax
        >>> print(Attributes(2).centred(jax.random.key(0), jax.numpy.array([1.0, 2.0, 3.0, 4.0])))
        [0. 0. 6. 8.]
    """

    seen: chex.Numeric

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        hint = "one feature a round does not show how two depend on each other"
        self._parse_scalar("seen", within, stacked, 2, np.inf, hint=hint)
        seen = concrete(self.seen)
        if seen is not None and np.any(seen != np.round(seen)):
            raise ValueError(f"Attributes.seen must be a whole number, got {self.seen}")

    def _sizes(self, dim: int):
        """k, d and r, as numbers; ValueError if k > d, NaN if k is traced."""
        seen = concrete(self.seen)
        if seen is not None and np.any(seen > dim):
            raise ValueError(f"Attributes.seen must be at most the {dim} features, got {self.seen}")
        k = jnp.where(jnp.asarray(self.seen) <= dim, self.seen, jnp.nan)
        return k, dim, dim * (k - 1) / (k * max(dim - 1, 1))

    def _copies(self, key, x):
        k, d, _ = self._sizes(x.shape[-1] if x.ndim else 1)
        draws = jax.random.uniform(key, (x.size,)).reshape(x.shape)
        ranks = jnp.argsort(jnp.argsort(draws, axis=-1), axis=-1)
        return (jnp.where(ranks < self.seen, x, 0) * (d / k)).astype(x.dtype)

    def estimated_cov(self, copy: Any) -> Any:
        """Σ̂, `[d, d]` (see `Noise.estimated_cov`)."""
        k, d, pairs = self._sizes(copy.shape[-1])
        shares = jnp.where(jnp.eye(d, dtype=bool), 1 - k / d, 1 - 1 / pairs)
        return shares * jnp.outer(copy, copy)

    def _pairs(self, seen, names):
        k, d, ratio = (float(size) for size in self._sizes(len(names)))
        return np.where(np.eye(len(names), dtype=bool), k / d, ratio * (k / d) ** 2)

    def _check_table(self, x, names):
        self._sizes(len(names))
        for row, copy in np.argwhere(x.sum(axis=2) != self.seen).tolist():
            raise ValueError(
                f"noise.Attributes says that {self.seen} features are seen, but row {row} has "
                f"{x[row, copy].sum()} values that are not NaN"
            )

    def covariance_at(self, x: Any) -> Any:
        """Var(x̃ | x), `[d, d]` (see `Noise.covariance_at`)."""
        k, d, pairs = self._sizes(x.size)
        return jnp.where(jnp.eye(d, dtype=bool), d / k - 1, pairs - 1) * jnp.outer(x, x)

    def square_fourth_moment(self, x: Any) -> Any:
        """E‖x̃‖⁴/r², which bounds E‖x̃x̃ᵀ − Σ̂‖² (see `Noise.square_fourth_moment`)."""
        k, d, pairs = self._sizes(x.size)
        single, square = jnp.sum(x**4), jnp.sum(x**2) ** 2
        return (d / k) ** 4 * (k / d) * (single + (k - 1) / (d - 1) * (square - single)) / pairs**2
