"""Unbiased estimates of a function of a mean, from a random number of independent copies.

    θ = (γ_N/p_N) (X_1 − c) ⋯ (X_N − c),   f(a) = Σ_n γ_n (a − c)^n,   P(N = n) = p_n

has the mean f(E X), which differs from E f(X).

Source: Online Learning of Noisy Data with Kernels, Sec. 3.2 and Lemma 1; other distributions and
centers here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.series import PowerSeries, absolute_terms, floating
from noisy_jax.unbiased.truncation.orders import OrderDistribution
from noisy_jax.validation.arrays import check_axes
from noisy_jax.validation.values import Array, ArrayLike, array_module


@plain_signature
class MeanEstimator(NamedTuple):
    """Estimates f(E X) without bias from independent copies of a random number X.

    With the power series f(a) = Σ_n γ_n (a − c)^n around the center c, a random order N is drawn
    with the probabilities P(N = n) = p_n, and the estimate uses N copies X_1, …, X_N:

        θ = (γ_N/p_N) (X_1 − c) ⋯ (X_N − c),   E θ = Σ_n γ_n (E X − c)^n.

    The mean E θ is the series up to its last order (up to `bias` f(E X)), and not E f(X).

    Attributes:
        series: the power series of f, up to the largest order that is drawn: `series.coefficients`
            are γ_n, `series.center` is c, and `series(a)` evaluates it.
        orders: distribution of the order N, by `truncation.geometric` or `truncation.optimal`;
            `orders.probabilities` are p_n.

    Source: Online Learning of Noisy Data with Kernels, Sec. 3.2 and Lemma 1; other distributions
    and centers here.

    Example:
        >>> import jax.numpy as jnp, numpy as np, noisy_jax as nj
        >>> series = nj.kernels.exponential().series(3)  # 1 + a + a²/2 + a³/6
        >>> orders = nj.unbiased.truncation.geometric(series.coefficients, p=2.0)
        >>> estimator = nj.unbiased.truncation.MeanEstimator(series, orders)
        >>> estimates = [float(estimator.estimate(n, jnp.full(3, 0.5))) for n in range(4)]
        >>> print(np.round(estimates, 3), np.round(estimator.orders.probabilities @ estimates, 3))
        [1.875 1.875 0.938 0.312] 1.646
        >>> print(np.round(series(0.5), 3))
        1.646
    """

    series: PowerSeries
    orders: OrderDistribution

    @property
    def copies(self) -> int:
        """The most copies that an estimate uses, the largest order."""
        return len(self.series.coefficients) - 1

    @property
    def weights(self) -> jax.Array:
        """`[order + 1]`, γ_n/p_n; zero where p_n = 0, infinite where p_n underflows to 0."""
        xp = array_module(self.series.coefficients, self.orders.log_probabilities)
        drawn = self.orders.log_probabilities > -xp.inf
        chances = xp.where(drawn, self.orders.probabilities, 1)
        with np.errstate(divide="ignore", over="ignore"):
            return xp.where(drawn, self.series.coefficients / chances, 0)

    def weight(self, order: jax.Array, dtype: Any) -> jax.Array:
        """Returns γ_N/p_N for a given order N, `[]`, in this type of numbers."""
        with np.errstate(over="ignore"):  # at orders too rare to be drawn
            return jnp.asarray(self.weights, dtype)[order]

    def estimate(self, order: jax.Array, copies: Array) -> jax.Array:
        """Returns θ for a given order N, from the first N of the copies.

        Args:
            order: `[]`, N, a whole number from 0 to the property `copies`.
            copies: `[n]`, independent copies of X, n at least the property `copies`. Only the first
                N are used; the rest may be any finite numbers.

        Returns:
            θ, `[]`.
        """
        copies = first_copies(copies, self.copies, "[n]")
        used = jnp.where(jnp.arange(self.copies) < order, copies - self.series.center, 1)
        return self.weight(order, copies.dtype) * jnp.prod(used)

    def draw(self, key: jax.Array, copies: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns θ at a random order N drawn with the key, and N, the copies used; both `[]`."""
        order = self.orders.draw(key)
        return self.estimate(order, copies), order

    def second_moment(self, second_moment: ArrayLike) -> ArrayLike:
        """Returns E θ² = Σ_n (γ_n²/p_n) B^n, for B = `second_moment` = E(X − c)²."""
        return absolute_terms(self.series.coefficients * self.weights, second_moment).sum()

    def bias(self, radius: ArrayLike) -> ArrayLike:
        """Returns a bound on |E θ − f(E X)| for |E X − c| ≤ radius: the series' remainder."""
        return self.series.remainder(radius)


def first_copies(copies: Array, needed: int, axes: str) -> jax.Array:
    """Returns the first copies, as many as the largest order needs, in floating point."""
    check_axes("copies", copies, axes)
    if (count := np.shape(copies)[0]) < needed:
        raise ValueError(f"the largest order needs {needed} independent copies, got {count}")
    return floating(copies)[:needed]
