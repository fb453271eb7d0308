"""Kernels: a Gram closure, its diagonal, and its power series where it has one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.series import PowerSeries
from noisy_jax.validation.arrays import check_axes, real
from noisy_jax.validation.numbers import between, positive
from noisy_jax.validation.objects import function, instance, switch
from noisy_jax.validation.values import Array, ArrayLike


class Envelope(NamedTuple):
    """The factor h of a kernel k(x, z) = h(x) h(z) Q(⟨x, z⟩), a function of b = ‖x‖².

    Attributes:
        value: `b[...] -> [...]`, at most 1.
        series: `order -> PowerSeries` of h in b.
    """

    value: Callable[[Array], Array]
    series: Callable[[int], PowerSeries]


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """A positive definite kernel k(x, z); call `kernel(x, z)` for a Gram matrix.

    Functions of `kernels` make such objects. A kernel of your own is `Kernel(gram, diagonal)`, of
    functions written in `jax.numpy`; the other fields are optional, and functions that need one
    raise ValueError without it.

    Attributes:
        gram: `(x[n, d], z[m, d]) -> [n, m]`, k(x_i, z_j) for all rows x_i and z_j.
        diagonal: `x[n, d] -> [n]`, k(x_i, x_i).
        series: for a kernel k(x, z) = h(x) h(z) Q(⟨x, z⟩) a function `order -> PowerSeries` with
            the coefficients β_0, …, β_order ≥ 0 of Q, as `series.power_series` makes it; `None`,
            the default, for all other kernels. `unbiased.kernel_gradient` needs it.
        envelope: the factor h, as a function of ‖x‖² with a power series of its own; `None`, the
            default, where h is 1.
        spectrum: `(key, n, dim) -> omega[n, dim]`, frequencies ω with E cos⟨ω, x − z⟩ = k(x, z);
            `None`, the default, where there is no sampler. `fourier_features` needs it.
        entire: `(x[n, d], z[m, d]) -> [n, m]`, an equal form of `gram` for points near the origin,
            in operations that are entire functions of x and z (equal to their power series
            everywhere); `None`, the default, where `gram` has this form or k is not entire.
        linear: True if k(x, z) = ⟨x, z⟩, so that a learner's function is one vector `[d]`; False by
            default.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> cosine = nj.kernels.Kernel(
        ...     lambda x, z: jnp.cos(x - z.T), lambda x: jnp.ones(len(x)))  # of one feature
        >>> print(cosine(jnp.zeros((1, 1)), jnp.array([[0.0], [jnp.pi]])))
        [[ 1. -1.]]
    """

    gram: Callable[[Array, Array], jax.Array]
    diagonal: Callable[[Array], jax.Array]
    series: Callable[[int], PowerSeries] | None = None
    envelope: Envelope | None = None
    spectrum: Callable[[jax.Array, int, int], jax.Array] | None = None
    entire: Callable[[Array, Array], jax.Array] | None = None
    linear: bool = False

    def __post_init__(self) -> None:
        function("gram", self.gram, "(x[n, d], z[m, d]) -> [n, m]")
        function("diagonal", self.diagonal, "x[n, d] -> [n]")
        for name in ("series", "spectrum", "entire"):
            if (value := getattr(self, name)) is not None:
                function(name, value)
        if self.envelope is not None:
            instance("envelope", self.envelope, Envelope)
        switch("linear", self.linear)

    def __call__(self, x: Array, z: Array) -> jax.Array:
        """Returns the Gram matrix k(x_i, z_j) `[n, m]` of the rows of x `[n, d]` and z `[m, d]`."""
        return self.gram(x, z)


def inner_products(x: Array, z: Array) -> jax.Array:
    """Returns the inner products `[n, m]`, ⟨x_i, z_j⟩, of the rows of x `[n, d]` and z `[m, d]`."""
    x, z = _points(x, z)
    return jnp.matmul(x, z.T, precision="highest")


def squared_distances(x: Array, z: Array) -> jax.Array:
    """Returns the matrix `[n, m]` of ‖x_i − z_j‖² between the rows of x `[n, d]` and z `[m, d]`.

    The entries are computed by one matrix product, and are never negative. Their rounding error is
    relative to the squared distances between rows of z, not to the distance of the data from the
    origin: first a point near z is subtracted from all rows.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> z = jnp.array([[3.0, 4.0], [0.0, 1.0]])
        >>> print(nj.kernels.squared_distances(jnp.zeros((1, 2)), z))
        [[25.  1.]]
    """
    return expanded_distances(*near_origin(x, z))


def near_origin(x: Array, z: Array) -> tuple[jax.Array, jax.Array]:
    """Returns x `[n, d]` and z `[m, d]` minus one common point, so that z lies close to the origin.

    The rounding error of ‖x‖² + ‖z‖² − 2⟨x, z⟩ is relative to ‖z‖². Far from the origin it can be
    larger than the distances themselves. The point that is subtracted is the one in z's bounding
    box that is closest to the origin. It is zero if the box contains the origin, and no row of z
    moves away from the origin. The point depends on z only, because rows of x may be slots of a
    buffer that are still zero.
    """
    return _near_origin(*_points(x, z))


@functools.partial(jax.jit, inline=True)
def _near_origin(x, z):
    z = jnp.asarray(z, jnp.result_type(z, float))
    not_nan = ~jnp.isnan(z)  # a row of NaN must not spread to the others
    low = jnp.min(z, axis=0, initial=jnp.inf, where=not_nan)
    high = jnp.max(z, axis=0, initial=-jnp.inf, where=not_nan)
    # Distances do not depend on the point, hence neither do their derivatives.
    point = jax.lax.stop_gradient(jnp.maximum(low, 0) + jnp.minimum(high, 0))[None]
    return jnp.asarray(x) - point, z - point


@functools.partial(jax.jit, inline=True)
def expanded_distances(x: Array, z: Array) -> jax.Array:
    """Returns ‖x‖² + ‖z‖² − 2⟨x, z⟩, at least zero, for points that are `near_origin` already."""
    products = jnp.matmul(-2 * x, z.T, precision="highest")
    return jnp.maximum(products + jnp.sum(x**2, axis=1)[:, None] + jnp.sum(z**2, axis=1)[None], 0)


def _points(x, z) -> tuple[Array, Array]:
    """Returns the points as arrays of floating point."""
    x, z = real("x", x), real("z", z)
    check_axes("x", x, "[n, d]", "; one point is x[None]")
    check_axes("z", z, "[m, d]", "; one point is z[None]")
    if (dim := x.shape[1]) != z.shape[1]:
        raise ValueError(f"points of dimension {z.shape[1]} do not fit those of dimension {dim}")
    return x, z


def length_scale_of(value: ArrayLike) -> ArrayLike:
    """Returns ℓ if it is positive and its square neither underflows nor overflows."""
    value = positive("length_scale", value)
    dtype = jnp.finfo(jax.dtypes.canonicalize_dtype(float))
    low, high = float(dtype.tiny) ** 0.5, float(dtype.max) ** 0.5
    hint = f"{dtype.dtype} must hold its square; measure the features in another unit"
    return between("length_scale", value, low, high, hint)


def check_kernel(kernel: Kernel) -> None:
    """Raises ValueError if `kernel` is not a `Kernel`."""
    instance("kernel", kernel, Kernel, "kernels.gaussian(length_scale=1.0) makes one")
