"""Kernels as Gram closures `([n, d], [m, d]) -> [n, m]`, jittable, by matrix products.

Two families: functions of the inner product ⟨x, z⟩ with a power series of non-negative coefficients
(which random truncation samples from), and functions of the distance r = ‖x − z‖. The Gaussian
kernel belongs to both.

Each family of the distance has a length scale of its own. In terms of scikit-learn's `length_scale`
ℓ, they are

- `gaussian(squared_width=s²)`: s² = 2ℓ² of `RBF`,
- `laplacian(scale=s)`: s = ℓ of `Matern` with ν = ½,
- `matern(length=ℓ)`: that of `Matern`,
- `rational(m=m)`: m = 2αℓ² of `RationalQuadratic`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.series import PowerSeries, log_factorials, power_series
from noisy_jax.validation import (
    array_module,
    check_at_least,
    check_axes,
    check_choice,
    check_non_negative,
    check_one_number,
    check_positive,
)

__all__ = [
    "Envelope",
    "Kernel",
    "binomial",
    "exponential",
    "gaussian",
    "inner_products",
    "laplacian",
    "linear",
    "matern",
    "polynomial",
    "rational",
    "squared_distances",
]


class Envelope(NamedTuple):
    """The factor h of a kernel k(x, z) = h(x) h(z) Q(⟨x, z⟩), a function of b = ‖x‖².

    Attributes:
        value: `b[...] -> [...]`, at most 1.
        series: `order -> PowerSeries` of h in b.
    """

    value: Callable[[chex.Array], chex.Array]
    series: Callable[[int], PowerSeries]


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """A positive definite kernel; call it for a Gram matrix.

    Attributes:
        gram: `(x[n, d], z[m, d]) -> [n, m]`, k(x_i, z_j).
        diagonal: `x[n, d] -> [n]`, k(x_i, x_i).
        series: `order -> PowerSeries` of Q with coefficients β_n ≥ 0, as `series.power_series`
            makes it, for kernels k(x, z) = h(x) h(z) Q(⟨x, z⟩); `None` for others.
        envelope: h; `None` where it is 1.
    """

    gram: Callable[[chex.Array, chex.Array], chex.Array]
    diagonal: Callable[[chex.Array], chex.Array]
    series: Callable[[int], PowerSeries] | None = None
    envelope: Envelope | None = None

    def __call__(self, x: chex.Array, z: chex.Array) -> chex.Array:
        """The Gram matrix, `[n, m]`."""
        return self.gram(x, z)


@jax.default_matmul_precision("highest")
def inner_products(x: chex.Array, z: chex.Array) -> chex.Array:
    """⟨x_i, z_j⟩ of `[n, d]` and `[m, d]`, `[n, m]`; refused where their dimensions differ."""
    check_axes("x", x, "[n, d]", "; one point is x[None]")
    check_axes("z", z, "[m, d]", "; one point is z[None]")
    if x.shape[1] != z.shape[1]:
        raise ValueError(
            f"points of dimension {z.shape[1]} do not fit those of dimension {x.shape[1]}: both "
            "must be rows of the same d features"
        )
    return x @ z.T


def squared_distances(x: chex.Array, z: chex.Array) -> chex.Array:
    """‖x_i − z_j‖² of `[n, d]` and `[m, d]`, `[n, m]`, by a matrix product, clipped at zero.

    ‖x‖² + ‖z‖² − 2⟨x, z⟩ loses what is small beside ‖x‖²; shift data that lie far from the origin.
    """
    products = inner_products(-2 * x, z)
    return jnp.maximum(products + jnp.sum(x**2, axis=1)[:, None] + jnp.sum(z**2, axis=1)[None], 0)


def _of_inner_product(value, series) -> Kernel:
    def gram(x, z):
        return value(inner_products(x, z))

    return Kernel(gram, lambda x: value(jnp.sum(x**2, axis=-1)), series)


def _of_distance(value) -> Kernel:
    """A kernel from its value as a function of r², with k(x, x) = 1."""

    def gram(x, z):
        return value(squared_distances(x, z))

    return Kernel(gram, lambda x: jnp.ones(x.shape[:-1], x.dtype))


def linear() -> Kernel:
    """k(x, z) = ⟨x, z⟩.

    Example:
        >>> import jax.numpy as jnp
        >>> print(linear()(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0], [5.0, 6.0]])))
        [[11. 17.]]
    """
    return _of_inner_product(lambda a: a, lambda order: _polynomial_series(1, 0.0, order))


def polynomial(*, degree: int, offset: chex.Numeric = 1.0) -> Kernel:
    """k(x, z) = (⟨x, z⟩ + offset)^degree, homogeneous where the offset is zero.

    β_n = binom(degree, n) offset^(degree − n), zero above the degree.

    Args:
        degree: at least 1.
        offset: at least 0; below, the kernel is not positive definite.

    Raises:
        ValueError: degree or offset out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> polynomial(degree=2)(jnp.ones((1, 2)), jnp.ones((1, 2)))
        Array([[9.]], dtype=float32)
    """
    check_at_least("degree", degree, 1, "the power of the inner product")
    check_non_negative("offset", offset, "with less, the kernel is not positive definite")

    def series(order):
        return _polynomial_series(degree, offset, order)

    return _of_inner_product(lambda a: (a + offset) ** degree, series)


def _polynomial_series(degree, offset, order) -> PowerSeries:
    def coefficients(order):
        xp = array_module(offset)
        known = min(order, degree) + 1
        powers = [
            math.comb(degree, n) * xp.asarray(offset, float) ** (degree - n) for n in range(known)
        ]
        return xp.concatenate([xp.stack(powers), xp.zeros(order + 1 - known)])

    return power_series(coefficients, order, degree=degree)


def exponential() -> Kernel:
    """k(x, z) = exp(⟨x, z⟩), β_n = 1/n!.

    Example:
        >>> import jax.numpy as jnp
        >>> print(exponential()(jnp.ones((1, 2)), jnp.zeros((1, 2))))
        [[1.]]
    """
    return _of_inner_product(jnp.exp, lambda order: _exponential_series(1.0, order))


def _exponential_series(rate, order) -> PowerSeries:
    """The series of exp(rate · a)."""
    xp = array_module(rate)
    log_rate = xp.log(xp.abs(xp.asarray(rate, float)))

    def coefficients(order):
        n = np.arange(order + 1)
        return xp.sign(rate) ** n * xp.exp(n * log_rate - log_factorials(order))

    def majorant(m):
        return m * log_rate - math.lgamma(m + 1), log_rate - math.log(m + 1)

    return power_series(coefficients, order, majorant=majorant)


def binomial(*, alpha: chex.Numeric) -> Kernel:
    """k(x, z) = (1 − ⟨x, z⟩)^(−α) for ‖x‖, ‖z‖ < 1, β_n = Γ(α + n)/(Γ(α) n!).

    Printed as (1 + ⟨x, z⟩)^(−α), whose coefficients alternate in sign: that is not positive
    definite. Source: Online Learning of Noisy Data with Kernels, Sec. 2, corrected.

    Args:
        alpha: α > 0.

    Returns:
        A `Kernel`; NaN or infinite where ⟨x, z⟩ ≥ 1.

    Raises:
        ValueError: α not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> print(binomial(alpha=1.0)(jnp.full((1, 2), 0.5), jnp.full((1, 2), 0.5)))
        [[2.]]
    """
    check_positive("alpha", alpha, "the power of the binomial kernel")

    def series(order):
        xp = array_module(alpha)

        def coefficients(order):
            n = np.arange(1, order + 1)
            return xp.concatenate([xp.ones(1), xp.cumprod((alpha + n - 1) / n)])

        def majorant(m):
            largest = xp.maximum(1.0, (alpha + m) / (m + 1))
            return xp.log(coefficients(m)[m]), xp.log(largest)

        return power_series(coefficients, order, majorant=majorant, convergence=1.0)

    def value(a):
        return jnp.where(a < 1, (1 - jnp.minimum(a, 1)) ** -alpha, jnp.nan)

    return _of_inner_product(value, series)


def gaussian(*, squared_width: chex.Numeric) -> Kernel:
    """k(x, z) = exp(−‖x − z‖²/s²), which is e^(−‖x‖²/s²) e^(−‖z‖²/s²) exp(2⟨x, z⟩/s²).

    Args:
        squared_width: s² > 0; scikit-learn's `gamma` is 1/s².

    Raises:
        ValueError: s² not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> gaussian(squared_width=2.0)(jnp.zeros((1, 2)), jnp.ones((1, 2)))
        Array([[0.36787945]], dtype=float32)
    """
    check_squared_width(squared_width)

    def gram(x, z):  # points are fewer than pairs: scale those
        scale = jax.lax.rsqrt(jnp.asarray(squared_width, float))
        return jnp.exp(-squared_distances(x * scale, z * scale))

    return Kernel(
        gram,
        lambda x: jnp.ones(x.shape[:-1], x.dtype),
        series=lambda order: _exponential_series(2 / squared_width, order),
        envelope=Envelope(
            lambda squared_norm: jnp.exp(-squared_norm / squared_width),
            lambda order: _exponential_series(-1 / squared_width, order),
        ),
    )


def check_squared_width(squared_width: chex.Numeric) -> None:
    """Refuses a squared width that is not one positive number."""
    check_positive("squared_width", squared_width, "s² of exp(−r²/s²)")
    check_one_number("squared_width", squared_width)


def check_kernel(kernel: Kernel) -> None:
    """Refuses what is no `Kernel`."""
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"kernel must be a Kernel, as kernels builds it, got {type(kernel).__name__}"
        )


def rational(*, m: chex.Numeric, alpha: chex.Numeric = 1.0) -> Kernel:
    """k(x, z) = (1 + ‖x − z‖²/m)^(−α).

    Args:
        m: squared length scale, positive.
        alpha: α > 0.

    Raises:
        ValueError: m or α not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> print(rational(m=2.0)(jnp.zeros((1, 2)), jnp.ones((1, 2))))
        [[0.5]]
    """
    check_positive("m", m, "the squared length scale of the rational kernel")
    check_positive("alpha", alpha, "the power of the rational kernel")
    return _of_distance(lambda r2: (1 + r2 / m) ** -alpha)


def laplacian(*, scale: chex.Numeric) -> Kernel:
    """k(x, z) = exp(−‖x − z‖/s).

    Args:
        scale: s > 0.

    Raises:
        ValueError: s not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> print(laplacian(scale=5.0)(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0]])))
        [[0.36787945]]
    """
    check_positive("scale", scale, "s of exp(−r/s)")
    return _of_distance(lambda r2: jnp.exp(-_root(r2) / scale))


def matern(*, nu: float, length: chex.Numeric) -> Kernel:
    """The Matérn kernel of smoothness ν = 3/2 or 5/2.

    With q = √(2ν) r/ℓ: k = (1 + q)e^(−q) for 3/2, k = (1 + q + q²/3)e^(−q) for 5/2.

    Args:
        nu: ν, 1.5 or 2.5.
        length: ℓ > 0.

    Raises:
        ValueError: another ν, or ℓ not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> print(matern(nu=1.5, length=1.0)(jnp.zeros((1, 1)), jnp.ones((1, 1))).round(4))
        [[0.4834]]
    """
    check_positive("length", length, "ℓ of the Matérn kernel")
    check_choice("nu", nu, (1.5, 2.5))

    def value(r2):
        q = math.sqrt(2 * nu) * _root(r2) / length
        return (1 + q + (0 if nu == 1.5 else q**2 / 3)) * jnp.exp(-q)

    return _of_distance(value)


def _root(r2):
    """√r², with derivative zero instead of infinite at zero."""
    positive = r2 > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, r2, 1)), 0)
