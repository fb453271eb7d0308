"""Streams of clean examples from a teacher: a linear function, or one of a kernel's space."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.draws import exponential, normal, uniform
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import check_finite, non_negative, positive, whole
from noisy_jax.validation.values import ArrayLike


def linear(
    key: jax.Array,
    horizon: int,
    dim: int,
    *,
    radius: ArrayLike = 1.0,
    label_noise: ArrayLike = 0.0,
) -> Stream:
    """Draws a stream whose clean targets are a linear function of x, up to label noise.

        y_t = ⟨w, x_t⟩ + m_t

    w is a random vector of norm `radius`, drawn once, x_t is uniform in the unit ball, and m_t
    uniform in [−label_noise, label_noise]. The targets y_t, with m_t, are what losses on clean data
    are measured against.

    Args:
        key: a key of `jax.random.key`, for w, x and m.
        horizon: T ≥ 1, number of rounds.
        dim: d ≥ 1, number of features.
        radius: ‖w‖ > 0, 1 by default.
        label_noise: half-width ≥ 0 of the label noise, 0 by default.

    Returns:
        A `Stream` with x `[T, d]`, ‖x_t‖ ≤ 1, and y `[T]`, |y_t| ≤ radius + label_noise. It does
        not hold w.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=5, dim=3)
        >>> print(jax.numpy.linalg.norm(stream.x, axis=1).max() <= 1)
        True
    """
    key = parsed_key(key)
    horizon, dim = whole("horizon", horizon), whole("dim", dim)
    radius, label_noise = positive("radius", radius), non_negative("label_noise", label_noise)
    return _linear(key, radius, label_noise, horizon, dim)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _linear(key, radius, label_noise, horizon: int, dim: int) -> Stream:
    w_key, x_key, m_key = jax.random.split(key, 3)
    direction = normal(w_key, (dim,))
    weights = radius * direction / jnp.linalg.norm(direction)
    x = _ball(x_key, horizon, dim)
    targets = jnp.matmul(x, weights, precision="highest")
    return Stream(x, targets + label_noise * uniform(m_key, (horizon,), minval=-1))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _ball(key, count: int, dim: int) -> jax.Array:
    """Points `[count, dim]`, uniform in the unit ball: x = n/√(‖n‖² + 2e), e exponential.

    `jax.random.ball` has the same distribution, and takes several times as long to compile.

    Source: Barthe, Guédon, Mendelson and Naor, A probabilistic approach to the geometry of the
    ℓ_p^n ball (2005).
    """
    n_key, e_key = jax.random.split(key)
    n = normal(n_key, (count, dim))
    extra = 2 * exponential(e_key, (count, 1))
    return n * jax.lax.rsqrt(jnp.sum(n**2, axis=1, keepdims=True) + extra)


@jax.default_matmul_precision("highest")
def teacher(
    key: jax.Array,
    horizon: int,
    dim: int,
    *,
    kernel: Kernel,
    centers: int = 8,
    radius: ArrayLike = 1.0,
    spread: ArrayLike = 1.0,
    label_noise: ArrayLike = 0.0,
) -> Stream:
    """Draws a stream whose clean targets are a function of a kernel's space, up to label noise.

        y_t = f(x_t) + m_t,   f = Σ_j a_j k(c_j, ·),   ‖f‖ = √(aᵀKa) = radius,   K_ij = k(c_i, c_j)

    f is random and drawn once. Inputs x_t and centers c_j are uniform in the ball of radius
    `spread`; a is normal, scaled so that f has this norm. m_t is uniform in [−label_noise,
    label_noise].

    Args:
        key: a key of `jax.random.key`, for c, a, x and m.
        horizon: T ≥ 1, number of rounds.
        dim: d ≥ 1, number of features.
        kernel: k, one of `kernels`.
        centers: number of centers c_j, at least 1; 8 by default.
        radius: ‖f‖ > 0 in the space of the kernel, 1 by default.
        spread: largest ‖x_t‖ and ‖c_j‖, above 0, 1 by default.
        label_noise: half-width ≥ 0 of the label noise, 0 by default.

    Returns:
        A `Stream` with x `[T, d]` and y `[T]`, |y_t| ≤ radius √k(x_t, x_t) + label_noise. It does
        not hold f.

    Raises:
        ValueError: the kernel is not finite at points of this `spread`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
        >>> nj.streams.teacher(jax.random.key(0), horizon=5, dim=3, kernel=kernel).y.shape
        (5,)
    """
    key = parsed_key(key)
    check_kernel(kernel)
    horizon, dim, centers = whole("horizon", horizon), whole("dim", dim), whole("centers", centers)
    radius, spread = positive("radius", radius), positive("spread", spread)
    label_noise = non_negative("label_noise", label_noise)
    c_key, a_key, x_key, m_key = jax.random.split(key, 4)
    c = spread * _ball(c_key, centers, dim)
    a = normal(a_key, (centers,))
    a = radius * a / jnp.sqrt(a @ kernel(c, c) @ a)
    x = spread * _ball(x_key, horizon, dim)
    values = kernel(x, c) @ a
    hint = f"for spread = {spread} the kernel is not finite; use a smaller spread"
    check_finite("values", values, hint)
    return Stream(x, values + label_noise * uniform(m_key, (horizon,), minval=-1))
