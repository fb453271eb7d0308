"""Parallel worlds as tuples: a clean kernel, and the surrogate kernel for noisy copies.

A learner that only sees noisy copies x̃ = x + n works in the Hilbert space of a *surrogate* kernel
k̂. It is chosen such that noisy inner products are right on average,

    E k̂(x + n, a) = k(x, a)   for all x and a,   with noise in one argument only.

On clean data the learner predicts with the clean kernel k.

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6, Eq. 4.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels import Kernel
from noisy_jax.kernels.kernel import check_kernel
from noisy_jax.noise import Noise
from noisy_jax.validation.arrays import check_axes, check_made_for, check_shape, real_numbers
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import ArrayLike, concrete


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """A clean kernel k and its surrogate k̂ under a noise distribution; `world_of` makes one.

    For noise n, E k̂(x + n, a) = k(x, a): the learner evaluates k̂ on noisy copies, and predicts
    with k. Below, Ψ(z) = k(z, ·) is the feature map of k. The function u = Σ_i a_i Ψ(z_i) has the
    counterpart û = Σ_i a_i Ψ̂(z_i) in the space of the surrogate, whose feature map is Ψ̂.

    Attributes:
        dim: d, the dimension of the data.
        kernel: k, for clean data.
        surrogate: `(x[n, d], z[m, d]) -> [n, m]`, k̂ between noisy copies.
        diagonal: `[]`, R² ≥ k̂(x̃, x̃), the largest squared norm of a noisy copy in the
            surrogate's space.
        ratio: `[]`, κ with 0 < k̂ ≤ κ k everywhere, so that ‖û‖² ≤ κ(‖u₊‖² + ‖u₋‖²) for the parts
            u₊ and u₋ of u with positive and with negative a_i; infinite where k̂ takes negative
            values or no such κ exists.
        approximation_error: `[]`, sup |k − g|, if k is a mixture g that was cut off; zero for other
            worlds.
        noise: distribution of the noise; `None` if it is not known.
        spectrum: `(key, n) -> omega[n, d]`, draws from the surrogate's spectral density, normalised
            to a probability; `None` where there is no sampler.
    """

    dim: int
    kernel: Kernel
    surrogate: Callable[[jax.Array, jax.Array], jax.Array]
    diagonal: ArrayLike
    ratio: ArrayLike
    approximation_error: ArrayLike
    noise: Noise | None
    spectrum: Callable[[jax.Array, int], jax.Array] | None

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError if data `[..., d]` do not have the world's dimension."""
        check_made_for(self.dim, shape)


def world_of(
    kernel: Kernel,
    surrogate: Callable[..., Any],
    *,
    dim: int,
    diagonal: ArrayLike,
    ratio: ArrayLike = math.inf,
    approximation_error: ArrayLike = 0.0,
    noise: Noise | None = None,
    spectrum: Callable[[jax.Array, int], Any] | None = None,
) -> World:
    """Returns the world of a kernel and its surrogate; see `World` for the arguments.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> without_noise = world_of(kernel, kernel.gram, dim=2, diagonal=1.0)
        >>> print(without_noise.surrogate(jnp.zeros((1, 2)), jnp.ones((1, 2))))
        [[0.36787945]]
    """
    check_kernel(kernel)
    function("surrogate", surrogate, "(x[n, d], z[m, d]) -> [n, m]")
    dim, diagonal = whole("dim", dim), non_negative("diagonal", diagonal)
    check_axes("ratio", ratio, "[]")
    number = real_numbers("ratio", ratio)  # `None` if it is traced
    if number is None or number != np.inf:
        ratio = positive("ratio", ratio)
    approximation_error = non_negative("approximation_error", approximation_error)
    if noise is not None:
        instance("noise", noise, Noise, "noise.Gaussian(0.1) is one")
    if spectrum is not None:
        function("spectrum", spectrum, "(key, n) -> omega[n, d]")

    def checked(x):
        check_made_for(dim, jnp.shape(x))
        return x

    def values(x, z):
        gram = surrogate(checked(x), checked(z))
        check_shape("surrogate(x, z)", gram, (len(x), len(z)), "for x [n, d] and z [m, d]")
        return gram

    return World(
        dim=dim,
        kernel=kernel,
        surrogate=values,
        diagonal=diagonal,
        ratio=ratio,
        approximation_error=approximation_error,
        noise=noise,
        spectrum=spectrum,
    )


def check_log_diagonal(at: Callable[[float], Any], advice: str) -> None:
    """Raises ValueError if R⁴, which learners and bounds need, overflows.

    `at` gives log R² if the covariance of the noise is multiplied by a number.
    """
    dtype = jnp.finfo(jax.dtypes.canonicalize_dtype(float))
    limit = np.log(float(dtype.max)) / 2
    with np.errstate(divide="ignore"):
        log_r2 = concrete(at(1.0))
        if log_r2 is not None and not log_r2 <= limit:
            most = max((share for share in np.linspace(0, 1, 101) if at(share) <= limit), default=0)
            raise ValueError(
                f"R² = exp({log_r2:.4g}) is too large: its square overflows {dtype.dtype} above R² "
                f"= exp({limit:.4g}); {most:.2g} times this noise covariance, or {advice}, would do"
            )


def check_world(world: World) -> None:
    """Raises ValueError if `world` is not a `World`."""
    instance("world", world, World, "worlds.gaussian makes one")
