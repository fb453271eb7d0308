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
from noisy_jax.validation.arrays import check_axes, check_made_for, check_shape, real, real_numbers
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import ArrayLike, concrete


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """A clean kernel k and its surrogate k̂ under one distribution of noise; `world_of` makes one.

        E k̂(x + n, a) = k(x, a)   for all points x and a, and noise n

    So values of the surrogate at noisy copies are right on average: learners in a world
    (`learners.parallel_worlds`) evaluate k̂ at noisy copies, and predict with k at clean instances.
    The world is right only for the noise it was made for. Below, a function u = Σ_i a_i k(z_i, ·)
    has the counterpart û = Σ_i a_i k̂(z_i, ·) in the surrogate's Hilbert space, whose norm is
    ‖û‖² = Σ_ij a_i a_j k̂(z_i, z_j). Ψ(z) = k(z, ·) and Ψ̂(z) = k̂(z, ·) are the feature maps.

    Attributes:
        dim: d, the number of features.
        kernel: k, a `Kernel`, for clean data.
        surrogate: k̂, `(x[n, d], z[m, d]) -> [n, m]`, values between noisy copies.
        diagonal: `[]`, R² ≥ k̂(x̃, x̃) = ‖Ψ̂(x̃)‖² for all x̃, which `bounds.parallel_worlds`
            takes.
        ratio: `[]`, κ with 0 < k̂ ≤ κ k everywhere, so that ‖û‖² ≤ κ(‖u₊‖² + ‖u₋‖²) for the parts
            u₊ and −u₋ of u with positive and with negative a_i; infinite where there is no such κ.
        approximation_error: `[]`, the largest |k − g|, where k is what is left of a kernel g whose
            narrow parts were cut off (`worlds.rational`, `laplacian`, `matern`); zero otherwise.
        noise: distribution of the noise in each copy; `None` if it is not known.
        spectrum: `(key, n) -> omega[n, d]`, draws of frequencies from the surrogate's spectral
            density, normalised to a probability, for `worlds.fourier`; `None` where there is no
            sampler.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> points = jnp.zeros((1, 2))
        >>> print(world.diagonal, world.surrogate(points, points))
        2.0 [[2.]]
    """

    dim: int
    kernel: Kernel
    surrogate: Callable[[jax.Array, jax.Array], jax.Array]
    diagonal: ArrayLike
    ratio: ArrayLike
    approximation_error: ArrayLike
    noise: Noise | None
    spectrum: Callable[[jax.Array, int], jax.Array] | None

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        function("surrogate", self.surrogate, "(x[n, d], z[m, d]) -> [n, m]")
        object.__setattr__(self, "dim", whole("dim", self.dim))
        for name in ("diagonal", "approximation_error"):
            object.__setattr__(self, name, non_negative(name, getattr(self, name)))
        check_axes("ratio", self.ratio, "[]")
        number = real_numbers("ratio", self.ratio)  # `None` if it is traced
        if number is None or number != np.inf:
            object.__setattr__(self, "ratio", positive("ratio", self.ratio))
        if self.noise is not None:
            instance("noise", self.noise, Noise, "noise.Gaussian(0.1) is one")
        if self.spectrum is not None:
            function("spectrum", self.spectrum, "(key, n) -> omega[n, d]")

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises ValueError if data `[..., d]` do not have the world's dimension."""
        check_made_for(self.dim, tuple(shape))


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
    """Makes the `World` of a kernel k and a surrogate k̂ of your own.

        E k̂(x + n, a) = k(x, a)   for all points x and a, and noise n

    You must know that this holds, and that R² and κ are right: nothing is checked but shapes and
    signs.

    Args:
        kernel: k, a `Kernel`, such as one of `kernels`, for clean data.
        surrogate: k̂, `(x[n, d], z[m, d]) -> [n, m]`, values between noisy copies; positive
            definite.
        dim: d ≥ 1, the number of features.
        diagonal: `[]`, R² ≥ k̂(x̃, x̃) for all x̃.
        ratio: `[]`, κ with 0 < k̂ ≤ κ k everywhere, for `bounds.surrogate_radius`; infinite, the
            default, if there is none.
        approximation_error: `[]`, at least 0: the largest |k − g|, if k approximates a kernel g; 0
            by default.
        noise: distribution of the noise; unknown by default. With it `rollout` warns if a learner
            in this world runs under other noise.
        spectrum: `(key, n) -> omega[n, d]`, draws of frequencies from the surrogate's spectral
            density, normalised to a probability, which only `worlds.fourier` needs; none by
            default.

    Returns:
        A `World`, whose attributes are these arguments.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> without_noise = nj.worlds.world_of(kernel, kernel.gram, dim=2, diagonal=1.0)
        >>> print(without_noise.surrogate(jnp.zeros((1, 2)), jnp.ones((1, 2))))
        [[0.36787945]]
    """
    function("surrogate", surrogate, "(x[n, d], z[m, d]) -> [n, m]")
    dim = whole("dim", dim)

    def values(x, z):
        x, z = checked_points("x", x, dim), checked_points("z", z, dim)
        gram = surrogate(x, z)
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


def checked_points(name: str, points: Any, dim: int) -> Any:
    """Returns points `[n, d]` as real numbers, if they have the world's dimension."""
    points = real(name, points)
    check_axes(name, points, "[n, d]", f"; one point is {name}[None]")
    check_made_for(dim, points.shape)
    return points


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
