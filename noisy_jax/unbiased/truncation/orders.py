"""Distributions of the random order at which a power series is cut off.

The estimate (γ_N/p_N) x̃_1 ⋯ x̃_N of Σ_n γ_n (E X)^n is unbiased for every distribution p of N with
p_n > 0 for each order with γ_n ≠ 0. Orders with γ_n = 0 have p_n = 0: their copies would be wasted.

Source: Online Learning of Noisy Data with Kernels, Sec. 3.2; the optimal distribution is ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.draws import categorical
from noisy_jax.validation.arrays import check_axes, real_array
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import between, number, positive
from noisy_jax.validation.values import ArrayLike, array_module


class OrderDistribution(NamedTuple):
    """A distribution of the random order N on {0, …, order}.

    Attributes:
        log_probabilities: `[order + 1]`, log P(N = n), −∞ for orders that are never drawn.
    """

    log_probabilities: jax.Array

    @property
    def probabilities(self) -> jax.Array:
        """`[order + 1]`, P(N = n)."""
        return array_module(self.log_probabilities).exp(self.log_probabilities)

    @property
    def mean(self) -> ArrayLike:
        """`[]`, E N."""
        return self.probabilities @ np.arange(len(self.probabilities), dtype=float)

    def draw(self, key: jax.Array) -> jax.Array:
        """One order, `[]`, a whole number."""
        key = parsed_key(key)
        return categorical(key, self.log_probabilities)


def geometric(coefficients: jax.Array, *, p: ArrayLike) -> OrderDistribution:
    """Makes the distribution P(N = n) ∝ p^(−n) of a random order N, where γ_n ≠ 0.

    A `MeanEstimator` draws the order N, the number of copies that one estimate of
    Σ_n γ_n (E X − c)^n uses, with the center c of the series. The paper's distribution,
    P(N = n) = (p − 1)/p^(n+1), is on all orders n ≥ 0; this is its conditional distribution, given
    that n is an order of the finite series with γ_n ≠ 0.

    Args:
        coefficients: `[order + 1]`, γ_n for n = 0 to the largest order, not all zero.
        p: base p > 1; 2 in the paper. Larger means fewer copies and (mostly) more variance.

    Returns:
        An `OrderDistribution` with `probabilities` and `log_probabilities`, `[order + 1]`, the
        `mean` E N, and `draw(key)`, one order.

    Raises:
        ValueError: p ≤ 1, or all coefficients are zero.

    Source: Online Learning of Noisy Data with Kernels, Lemma 1.

    Example:
        >>> import noisy_jax as nj
        >>> orders = nj.unbiased.truncation.geometric([1.0, 1.0, 1.0], p=2.0)
        >>> print(orders.probabilities.round(3))
        [0.571 0.286 0.143]
    """
    p = base(p)
    coefficients = _parsed(coefficients)
    xp = array_module(coefficients, p)
    coefficients = xp.asarray(coefficients, float)
    n = np.arange(len(coefficients))
    return _normalized(coefficients, -n * xp.log(xp.asarray(p, float)))


def optimal(coefficients: jax.Array, *, second_moment: ArrayLike) -> OrderDistribution:
    """Makes the distribution P(N = n) ∝ |γ_n| B^(n/2) of a random order N.

    A `MeanEstimator` draws the order N, the number of copies that one estimate θ of
    Σ_n γ_n (E X − c)^n uses, with the center c of the series. With B = E(X − c)² this distribution
    has the smallest E θ² of all, (Σ_n |γ_n| B^(n/2))², by the Cauchy-Schwarz inequality. A wrong
    guess of B costs variance, never bias.

    Args:
        coefficients: `[order + 1]`, γ_n for n = 0 to the largest order, not all zero.
        second_moment: B > 0, E(X − c)² or a guess of it.

    Returns:
        An `OrderDistribution` with `probabilities` and `log_probabilities`, `[order + 1]`, the
        `mean` E N, and `draw(key)`, one order.

    Raises:
        ValueError: B is not positive, or all coefficients are zero.

    Source: not in the papers; the optimum follows from the Cauchy-Schwarz inequality.

    Example:
        >>> import noisy_jax as nj
        >>> orders = nj.unbiased.truncation.optimal([1.0, 0.0, 0.25], second_moment=4.0)
        >>> print(orders.probabilities)
        [0.5 0.  0.5]
    """
    second_moment = positive("second_moment", second_moment)
    coefficients = _parsed(coefficients)
    xp = array_module(coefficients, second_moment)
    coefficients = xp.asarray(coefficients, float)
    with np.errstate(divide="ignore"):
        sizes = xp.log(xp.abs(coefficients))
    n = np.arange(len(coefficients))
    return _normalized(coefficients, sizes + n * xp.log(xp.asarray(second_moment, float)) / 2)


def base(p: ArrayLike) -> ArrayLike:
    """The base p of the geometric distribution, if it is above 1."""
    return between("p", p, 1, np.inf, "P(N = n) ∝ p^(−n); the paper takes 2")


def _parsed(coefficients) -> Any:
    coefficients = real_array("coefficients", coefficients)
    check_axes("coefficients", coefficients, "[order + 1]")
    return coefficients


def _normalized(coefficients, log_weights) -> OrderDistribution:
    coefficients = number("coefficients", coefficients, shape=None)
    xp = array_module(coefficients, log_weights)
    if xp is np and not np.any(coefficients):
        raise ValueError("coefficients must not all be zero")
    log_weights = xp.where(coefficients != 0, log_weights, -xp.inf)
    log_weights = log_weights - xp.max(log_weights)
    return OrderDistribution(log_weights - xp.log(xp.sum(xp.exp(log_weights))))
