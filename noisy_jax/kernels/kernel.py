"""What a kernel is: a Gram closure, its diagonal, and its power series where it has one."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.series import PowerSeries
from noisy_jax.validation import check_axes


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


def check_kernel(kernel: Kernel) -> None:
    """Refuses what is no `Kernel`."""
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"kernel must be a Kernel, as kernels builds it, got {type(kernel).__name__}"
        )
