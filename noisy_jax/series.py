"""Power series of analytic functions, cut off at a finite order, with a bound on the rest.

    f(a) = Σ_{n ≤ order} γ_n (a − c)^n + remainder

Random truncation samples from the coefficients of a loss's derivative, and of a kernel as a
function of the inner product. A custom `Loss` or `Kernel` gets its series from `power_series`.
Coefficients are NumPy float64 arrays, readable while JAX traces, unless a parameter is traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.arrays import (
    check_axes,
    check_shape,
    real_array,
    real_numbers,
    widened,
)
from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import number, positive, whole
from noisy_jax.validation.objects import function
from noisy_jax.validation.values import Array, ArrayLike, array_module, concrete

__all__ = ["power_series"]

Coefficients = Callable[[int], jax.Array | np.ndarray]
"""`order -> [order + 1]`, γ_0, …, γ_order."""

Majorant = Callable[[int], tuple[ArrayLike, ArrayLike]]
"""`m -> (log b, log q)` with |γ_n| ≤ b q^(n − m) for every n ≥ m."""

_LOOKED_AT = 32
"""Number of coefficients beyond the order that are summed before the majorant is used."""


class PowerSeries(NamedTuple):
    """The first terms of a power series.

    Attributes:
        coefficients: `[order + 1]`, γ_n.
        remainder: `radius -> []`, a bound on |Σ_{n > order} γ_n (a − c)^n| for |a − c| ≤ radius:
            zero for polynomials, infinite where the series does not converge.
        center: c, the centre of the series.
        convergence: the series holds for |a − c| below this.
        degree: of a polynomial; `None` for an infinite series.
    """

    coefficients: jax.Array | np.ndarray
    remainder: Callable[[ArrayLike], Array]
    center: Any = 0.0
    convergence: ArrayLike = math.inf
    degree: int | None = None

    def __call__(self, a: Array) -> Array:
        """Evaluates Σ_n γ_n (a − c)^n at `a[...]`; NaN at traced points outside of convergence."""
        step = floating(real_array("a", a) - self.center)
        inside = jnp.abs(step) < self.convergence
        if concrete(inside) is not None and not np.all(inside):
            raise ValueError(
                f"the series about {self.center} converges for |a − c| < {self.convergence}, got "
                f"|a − c| = {np.abs(step).max()}: use another center, or the function itself"
            )
        value = jnp.polyval(jnp.asarray(self.coefficients, step.dtype)[::-1], step)
        return jnp.where(inside, value, jnp.nan)

    def absolute(self, radius: ArrayLike) -> Array:
        """Returns an upper bound on f₊(r) = Σ_n |γ_n| r^n: the terms, and the remainder."""
        radius = _radius(radius)
        terms = absolute_terms(self.coefficients, radius)
        return terms.sum() + self.remainder(radius)


def power_series(
    coefficients: Coefficients,
    order: int,
    *,
    majorant: Majorant | None = None,
    center: Any = 0.0,
    convergence: ArrayLike = math.inf,
    degree: int | None = None,
) -> PowerSeries:
    """Returns the first terms of a power series, which evaluate it, with a bound on the rest.

        f(a) = Σ_{n ≤ order} γ_n (a − c)^n + rest

    A `Loss` or `Kernel` of your own gets its series from it, for `unbiased.kernel_gradient`. The
    bound on the rest sums the sizes of the next 32 terms, and a geometric series for all after
    them.

    Args:
        coefficients: `order -> [order + 1]`, a function that returns γ_0, …, γ_order for any order.
        order: the highest power that is kept, at least 0.
        majorant: `m -> (log b, log q)`, a function that returns logarithms of numbers b and q, for
            this m, with |γ_n| ≤ b q^(n − m) for all n ≥ m. It must be given unless `degree` is.
        center: c, 0 by default.
        convergence: radius of convergence, above 0; infinite by default.
        degree: of a polynomial, at least 0; `None`, the default, for an infinite series.

    Returns:
        An object that, called with a `[...]`, returns the sum of the terms kept, `[...]`; with
        |a − c| at or above `convergence` that is a ValueError, or NaN if traced. Its
        `remainder(radius)` is a bound on |rest|, `[]`, for all |a − c| ≤ radius, zero for a
        polynomial of at most this order. Its `absolute(radius)` is a bound on Σ_n |γ_n| radius^n
        over all n. Its fields `coefficients` `[order + 1]`, `center`, `convergence` and `degree`
        are as given.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> halves = nj.series.power_series(  # of 1/(1 − a/2)
        ...     lambda order: 0.5 ** np.arange(order + 1), 3, convergence=2.0,
        ...     majorant=lambda m: (m * np.log(0.5), np.log(0.5)))
        >>> print(halves(1.0), round(float(halves.remainder(1.0)), 6))
        1.875 0.125
    """
    order = whole("order", order, 0)
    center = number("center", center)
    function("coefficients", coefficients, "order -> [order + 1]")
    if majorant is not None:
        function("majorant", majorant, "m -> (log b, log q)")
    if degree is not None:
        degree = whole("degree", degree, 0)
    single = np.ndim(convergence) == 0 and not is_typed_key(convergence)
    if not single or concrete(convergence) is None or concrete(convergence) != np.inf:
        convergence = positive("convergence", convergence)
    if majorant is None and degree is None:
        raise ValueError("majorant must be given where degree is not: an infinite series needs one")

    def remainder(radius):
        radius = _radius(radius)
        last = order + _LOOKED_AT if degree is None else max(degree, order)
        left_out = coefficients(last)
        xp = array_module(radius, left_out, convergence)
        logs = _log_sizes(left_out)[order + 1 :]
        if degree is not None or majorant is None:
            left = _terms(logs, radius, order + 1).sum()
            return xp.where(xp.isnan(radius), xp.nan, left)  # NaN also where no term is left
        if concrete(left_out) is None:
            # Float32 flushes to zero what a large radius brings back.
            bounds = jnp.stack([majorant(n)[0] for n in range(order + 1, last + 1)])
            logs = jnp.where(logs < np.log(jnp.finfo(logs.dtype).tiny), bounds, logs)
        terms = _terms(logs, radius, order + 1)
        with np.errstate(divide="ignore", over="ignore"):
            log_first, log_ratio = majorant(last + 1)
            log_radius = xp.log(xp.asarray(radius, float))
            ratio = xp.exp(log_ratio + log_radius)
            inside = (ratio < 1) & (radius < convergence)
            rest = xp.exp(log_first + (last + 1) * log_radius) / xp.where(inside, 1 - ratio, 1)
            return xp.where(inside, terms.sum() + rest, xp.inf)

    terms = coefficients(order)
    check_shape("coefficients(order)", terms, (order + 1,), f"for order = {order}")
    return PowerSeries(terms, remainder, center, convergence, degree)


def _radius(radius):
    """Returns the radius if it is one number of at least 0, or infinite; NaN if traced and not."""
    check_axes("radius", radius, "[]")
    array = real_numbers("radius", radius)
    if array is not None and not array >= 0:
        raise ValueError(
            f"radius must be at least 0, got {given(radius)}: it is the largest |a − c|"
        )
    return jnp.where(radius >= 0, radius, jnp.nan) if array is None else widened(radius)


def absolute_terms(coefficients: Array, radius: ArrayLike) -> Array:
    """Returns |γ_n| r^n for coefficients γ_0, γ_1, … and a radius r, `[order + 1]`.

    Computed by logarithms, since |γ_n| or r^n alone may overflow where their product does not.
    """
    return _terms(_log_sizes(coefficients), radius, 0)


def _log_sizes(coefficients):
    """Returns log |γ_n|, in the coefficients' own precision: a traced radius does not lower it."""
    xp = array_module(coefficients)
    with np.errstate(divide="ignore"):
        return xp.log(xp.abs(coefficients))


def _terms(log_sizes, radius, first):
    """Returns |γ_n| r^n for n from `first` on."""
    xp = array_module(log_sizes, radius)
    n = first + np.arange(len(log_sizes))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_radius = xp.log(xp.asarray(radius, float))
        # 0⁰ = 1, and no 0 · (−∞).
        powers = xp.where(n == 0, 0.0, xp.where(n == 0, 1, n) * log_radius)
        # A coefficient of zero leaves nothing, whatever the radius.
        return xp.where(log_sizes > -xp.inf, xp.exp(log_sizes + powers), 0.0)


def floating(a: ArrayLike) -> jax.Array:
    """Returns numbers as an array of floats; numbers that are floats keep their precision."""
    return jnp.asarray(a, jnp.result_type(a, float))


def log_factorials(order: int) -> np.ndarray:
    """Returns log n! for n = 0, …, order."""
    return np.array([math.lgamma(n + 1) for n in range(order + 1)])


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
