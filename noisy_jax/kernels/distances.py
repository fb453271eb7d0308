"""Kernels of the distance ‖x − z‖, with k(x, x) = 1. The Gaussian kernel has a power series too."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from noisy_jax.draws import gamma, normal
from noisy_jax.kernels.kernel import (
    Envelope,
    Kernel,
    expanded_distances,
    length_scale_of,
    near_origin,
    squared_distances,
)
from noisy_jax.kernels.products import exponential_series
from noisy_jax.linalg.ball import root
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import ArrayLike


def gaussian(*, length_scale: ArrayLike) -> Kernel:
    """Returns the Gaussian kernel k(x, z) = exp(−‖x − z‖²/(2ℓ²)), scikit-learn's `RBF`.

    It is e^(−‖x‖²/(2ℓ²)) e^(−‖z‖²/(2ℓ²)) exp(⟨x, z⟩/ℓ²): two factors times a power series in ⟨x,
    z⟩, which `unbiased.kernel_gradient` uses.

    Args:
        length_scale: ℓ > 0, in the unit of x. The `gamma` of scikit-learn's `SVC` and `RBFSampler`
            is 1/(2ℓ²).

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.kernels.gaussian(length_scale=1.0)(jnp.zeros((1, 2)), jnp.ones((1, 2))))
        [[0.36787945]]
    """
    length_scale = length_scale_of(length_scale)
    rate = 1 / length_scale**2

    def scaled(x, z):  # points are fewer than pairs: scale those
        scale = math.sqrt(0.5) / jnp.asarray(length_scale, float)
        return x * scale, z * scale

    def gram(x, z):
        return jnp.exp(-expanded_distances(*scaled(*near_origin(x, z))))

    def entire(x, z):
        x, z = scaled(x, z)
        squares = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(z**2, axis=1)[None]
        return jnp.exp(jnp.matmul(2 * x, z.T, precision="highest") - squares)

    return Kernel(
        gram,
        lambda x: jnp.ones(x.shape[:-1], x.dtype),
        series=lambda order: exponential_series(rate, order),
        envelope=Envelope(
            lambda squared_norm: jnp.exp(-rate / 2 * squared_norm),
            lambda order: exponential_series(-rate / 2, order),
        ),
        spectrum=_spectrum(lambda key, n: jnp.full(n, rate / 2)),
        entire=entire,
    )


def rational(*, length_scale: ArrayLike, alpha: ArrayLike = 1.0) -> Kernel:
    """Returns the rational quadratic kernel k(x, z) = (1 + ‖x − z‖²/(2αℓ²))^(−α).

    It is scikit-learn's `RationalQuadratic`. For large α it tends to `gaussian`.

    Args:
        length_scale: ℓ > 0, in the unit of x.
        alpha: α > 0; 1 by default. The smaller it is, the slower the kernel decays.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.kernels.rational(length_scale=1.0)(jnp.zeros((1, 2)), jnp.ones((1, 2))))
        [[0.5]]
    """
    length_scale = length_scale_of(length_scale)
    power = positive("alpha", alpha)
    scale = 2 * power * length_scale**2
    return _of_distance(
        lambda r2: (1 + r2 / scale) ** -power,
        lambda key, n: gamma(key, power, (n,)) / scale,
    )


def laplacian(*, length_scale: ArrayLike) -> Kernel:
    """Returns the Laplacian kernel k(x, z) = exp(−‖x − z‖/ℓ), scikit-learn's `Matern` with ν = ½.

    The distance is Euclidean; scikit-learn's `laplacian_kernel` uses the l1 distance instead.

    Args:
        length_scale: ℓ > 0, in the unit of x.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> kernel = nj.kernels.laplacian(length_scale=5.0)
        >>> print(kernel(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0]])))
        [[0.36787945]]
    """
    length_scale = length_scale_of(length_scale)
    return _of_distance(
        lambda r2: jnp.exp(-root(r2) / length_scale), _matern_rates(0.5, length_scale)
    )


def matern(*, nu: float, length_scale: ArrayLike) -> Kernel:
    """Returns the Matérn kernel of smoothness ν = 3/2 or 5/2, scikit-learn's `Matern`.

    With q = √(2ν) ‖x − z‖/ℓ it is k(x, z) = (1 + q)e^(−q) for ν = 3/2, and (1 + q + q²/3)e^(−q) for
    ν = 5/2.

    Args:
        nu: ν, 1.5 or 2.5; `laplacian` is the kernel of ν = 0.5. Other values raise ValueError.
        length_scale: ℓ > 0, in the unit of x.

    Returns:
        A `Kernel`: `kernel(x, z)` is `[n, m]` for points x `[n, d]` and z `[m, d]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> kernel = nj.kernels.matern(nu=1.5, length_scale=1.0)
        >>> print(kernel(jnp.zeros((1, 1)), jnp.ones((1, 1))).round(4))
        [[0.4834]]
    """
    length_scale = length_scale_of(length_scale)
    nu = choice("nu", nu, (1.5, 2.5))

    def value(r2):
        q = math.sqrt(2 * nu) * root(r2) / length_scale
        return (1 + q + (0 if nu == 1.5 else q**2 / 3)) * jnp.exp(-q)

    return _of_distance(value, _matern_rates(nu, length_scale))


def _matern_rates(nu, length_scale):
    return lambda key, n: nu / (2 * length_scale**2 * gamma(key, nu, (n,)))


def _of_distance(value, rates) -> Kernel:
    """A kernel from its value as a function of r², with k(x, x) = 1, and `rates` of `_spectrum`."""

    def gram(x, z):
        return value(squared_distances(x, z))

    return Kernel(gram, lambda x: jnp.ones(x.shape[:-1], x.dtype), spectrum=_spectrum(rates))


def _spectrum(rates):
    """Draws ω ~ N(0, 2uI), where k = E exp(−u r²) and `rates(key, n)` draws u, `[n]`."""

    def spectrum(key, n, dim):
        rate_key, key = jax.random.split(key)
        draws = normal(key, (n, dim))
        return jnp.sqrt(2 * jnp.asarray(rates(rate_key, n), draws.dtype))[:, None] * draws

    return spectrum
