"""Kernels of the inner product ⟨x, z⟩, with power series of coefficients β_n ≥ 0."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels.kernel import Kernel, inner_products
from noisy_jax.series import PowerSeries, log_factorials, power_series
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.values import ArrayLike, array_module, concrete


def linear() -> Kernel:
    """Returns the linear kernel k(x, z) = ⟨x, z⟩.

    Its functions are f(x) = ⟨w, x⟩: with `buffer=engine.weight_vector()` a learner stores w `[d]`
    only.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> x, z = jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0], [5.0, 6.0]])
        >>> print(nj.kernels.linear()(x, z))
        [[11. 17.]]
    """
    return _of_inner_product(
        lambda a: a, lambda order: _polynomial_series(1, 0.0, order), linear=True
    )


def polynomial(*, degree: int, offset: ArrayLike = 1.0) -> Kernel:
    """Returns the polynomial kernel k(x, z) = (⟨x, z⟩ + c)^s.

    It is the power series Σ_n β_n ⟨x, z⟩^n with β_n = binom(s, n) c^(s − n) for n ≤ s, and 0 for
    n > s. With c = 0 it is homogeneous.

    Args:
        degree: s ≥ 1, a whole number.
        offset: c ≥ 0, in the unit of ⟨x, z⟩; 1 by default. With c < 0 the kernel would not be
            positive definite.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.kernels.polynomial(degree=2)(jnp.ones((1, 2)), jnp.ones((1, 2))))
        [[9.]]
    """
    degree = whole("degree", degree)
    offset = non_negative("offset", offset, "with less, the kernel is not positive definite")

    def series(order):
        return _polynomial_series(degree, offset, order)

    linear = degree == 1 and concrete(offset) == 0
    return _of_inner_product(lambda a: (a + offset) ** degree, series, linear=linear)


def _polynomial_series(degree, offset, order) -> PowerSeries:
    def coefficients(order):
        xp = array_module(offset)
        nonzero = min(order, degree) + 1
        powers = [
            math.comb(degree, n) * xp.asarray(offset, float) ** (degree - n) for n in range(nonzero)
        ]
        return xp.concatenate([xp.stack(powers), xp.zeros(order + 1 - nonzero)])

    return power_series(coefficients, order, degree=degree)


def exponential() -> Kernel:
    """Returns the exponential kernel k(x, z) = exp(⟨x, z⟩).

    It is the power series Σ_n β_n ⟨x, z⟩^n with β_n = 1/n!. Scale the data so that ‖x‖ is of order
    1: there is no length scale, and k(x, x) = exp(‖x‖²).

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.kernels.exponential()(jnp.ones((1, 2)), jnp.zeros((1, 2))))
        [[1.]]
    """
    return _of_inner_product(jnp.exp, lambda order: exponential_series(1.0, order))


def exponential_series(rate, order) -> PowerSeries:
    """Returns the series of exp(rate · a)."""
    xp = array_module(rate)
    log_rate = xp.log(xp.abs(xp.asarray(rate, float)))

    def coefficients(last):
        n = np.arange(last + 1)
        return xp.sign(rate) ** n * xp.exp(n * log_rate - log_factorials(last))

    def majorant(m):
        """Returns (log b, log q) of `power_series`."""
        return m * log_rate - math.lgamma(m + 1), log_rate - math.log(m + 1)

    return power_series(coefficients, order, majorant=majorant)


def binomial(*, alpha: ArrayLike) -> Kernel:
    """Returns the binomial kernel k(x, z) = (1 − ⟨x, z⟩)^(−α), for points of norm below 1.

    It is the power series Σ_n β_n ⟨x, z⟩^n with β_n = Γ(α + n)/(Γ(α) n!).

    Args:
        alpha: α > 0, the exponent.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`, and NaN where
        ⟨x_i, z_j⟩ ≥ 1.

    Source: Online Learning of Noisy Data with Kernels, Sec. 2, corrected. The paper prints
    (1 + ⟨x, z⟩)^(−α), which is not positive definite, since its coefficients alternate in sign.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> x = jnp.full((1, 2), 0.5)
        >>> print(nj.kernels.binomial(alpha=1.0)(x, x))
        [[2.]]
    """
    power = positive("alpha", alpha)

    def series(order):
        xp = array_module(power)

        def coefficients(last):
            n = np.arange(1, last + 1)
            return xp.concatenate([xp.ones(1), xp.cumprod((power + n - 1) / n)])

        def majorant(m):
            """Returns (log b, log q) of `power_series`."""
            largest_ratio = xp.maximum(1.0, (power + m) / (m + 1))
            return xp.log(coefficients(m)[m]), xp.log(largest_ratio)

        return power_series(coefficients, order, majorant=majorant, convergence=1.0)

    def value(a):
        return jnp.where(a < 1, (1 - jnp.minimum(a, 1)) ** -power, jnp.nan)

    return _of_inner_product(value, series)


def _of_inner_product(value, series, linear=False) -> Kernel:
    def gram(x, z):
        return value(inner_products(x, z))

    return Kernel(gram, lambda x: value(jnp.sum(x**2, axis=-1)), series, linear=linear)
