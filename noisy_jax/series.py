"""Power series of analytic functions, cut off at a finite order, with a bound on what is left out.

    f(a) = Σ_{n ≤ order} γ_n (a − c)^n + remainder

Random truncation samples from them: the coefficients of a loss's derivative, and of a kernel as a
function of the inner product. Coefficients are NumPy float64 arrays, so that they can be looked at
under a trace too, unless a parameter is traced itself.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import concrete

Coefficients = Callable[[int], chex.Array]
"""`order -> [order + 1]`, γ_0, …, γ_order."""

Majorant = Callable[[int], tuple[chex.Numeric, chex.Numeric]]
"""`m -> (log b, log q)` with |γ_n| ≤ b q^(n − m) for every n ≥ m."""

_LOOKED_AT = 32
"""Coefficients beyond the order that are summed one by one before the majorant takes over."""


class PowerSeries(NamedTuple):
    """The first terms of a power series.

    Attributes:
        coefficients: `[order + 1]`, γ_n.
        remainder: `radius -> []`, a bound on |Σ_{n > order} γ_n (a − c)^n| for |a − c| ≤ radius:
            zero for polynomials, infinite where the series does not converge.
        center: c.
        convergence: the series holds for |a − c| below this.
        degree: of a polynomial; `None` for an infinite series.
    """

    coefficients: chex.Array
    remainder: Callable[[chex.Numeric], chex.Array]
    center: chex.Numeric = 0.0
    convergence: chex.Numeric = math.inf
    degree: int | None = None

    def __call__(self, a: chex.Array) -> chex.Array:
        """Σ_n γ_n (a − c)^n at `a[...]`, by Horner's rule.

        Raises:
            ValueError: a point where the series does not converge.
        """
        far = concrete(abs(a - self.center))
        reach = concrete(self.convergence)
        if far is not None and reach is not None and np.any(far >= reach):
            raise ValueError(
                f"the series about {self.center} converges for |a − c| < {reach}, got |a − c| = "
                f"{far.max()}: take another center, or the function itself"
            )
        return jnp.polyval(jnp.asarray(self.coefficients, float)[::-1], a - self.center)

    def absolute(self, radius: chex.Numeric) -> chex.Array:
        """f₊(r) = Σ_n |γ_n| r^n of the whole series, from above: the terms and the remainder."""
        terms = absolute_terms(self.coefficients, radius)
        return terms.sum() + self.remainder(radius)


def power_series(
    coefficients: Coefficients,
    order: int,
    *,
    majorant: Majorant | None = None,
    center: chex.Numeric = 0.0,
    convergence: chex.Numeric = math.inf,
    degree: int | None = None,
) -> PowerSeries:
    """The terms of a series up to an order.

    The remainder is bounded by the next terms, one by one, and by a geometric series after those.

    Args:
        coefficients: `order -> [order + 1]`.
        order: at least 0.
        majorant: of the coefficients; not needed for a polynomial.
        center: c.
        convergence: radius of convergence.
        degree: of a polynomial.
    """

    def remainder(radius):
        xp = array_module(radius, center, convergence)
        last = order + _LOOKED_AT if degree is None else max(degree, order)
        terms = absolute_terms(coefficients(last), radius)[order + 1 :]
        if degree is not None:
            return terms.sum()
        with np.errstate(divide="ignore", over="ignore"):
            log_first, log_ratio = majorant(last + 1)
            log_radius = xp.log(xp.asarray(radius, float))
            ratio = xp.exp(log_ratio + log_radius)
            inside = (ratio < 1) & (radius < convergence)
            rest = xp.exp(log_first + (last + 1) * log_radius) / xp.where(inside, 1 - ratio, 1)
            return xp.where(inside, terms.sum() + rest, xp.inf)

    return PowerSeries(coefficients(order), remainder, center, convergence, degree)


def absolute_terms(coefficients: chex.Array, radius: chex.Numeric) -> chex.Array:
    """|γ_n| r^n, `[order + 1]`, by logarithms: neither factor overflows alone."""
    xp = array_module(coefficients, radius)
    n = np.arange(len(coefficients))
    with np.errstate(divide="ignore", over="ignore"):
        log_radius = xp.log(xp.asarray(radius, float))
        # 0⁰ = 1, and no 0 · (−∞).
        powers = xp.where(n == 0, 0.0, xp.where(n == 0, 1, n) * log_radius)
        return xp.exp(xp.log(xp.abs(coefficients)) + powers)


def array_module(*values) -> ModuleType:
    """NumPy where every value is concrete, else jax.numpy."""
    return np if all(concrete(value) is not None for value in values) else jnp
