"""Streams of clean examples from a teacher: a linear function, or one of a kernel's space."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.validation import (
    check_at_least,
    check_key,
    check_non_negative,
    check_positive,
    concrete,
)


def linear(
    key: chex.PRNGKey,
    horizon: int,
    dim: int,
    *,
    radius: chex.Numeric = 1.0,
    misfit: chex.Numeric = 0.0,
) -> Stream:
    """A linear teacher: y_t = ⟨w, x_t⟩ + m_t, ‖w‖ = radius, x_t uniform in the unit ball.

    Args:
        key: randomness of w, x and m.
        horizon: T ≥ 1 rounds.
        dim: d ≥ 1 dimensions.
        radius: norm of the teacher's weights w.
        misfit: half-width ≥ 0 of the uniform m_t, what no linear predictor can explain.

    Returns:
        A `Stream` with ‖x_t‖ ≤ 1 and |y_t| ≤ radius + misfit.

    Raises:
        ValueError: no key, or a number that is out of range.

    Example:
        >>> import jax
        >>> linear(jax.random.key(0), horizon=5, dim=3).x.shape
        (5, 3)
    """
    check_key(key)
    check_at_least("horizon", horizon, 1, "the number of rounds T")
    check_at_least("dim", dim, 1, "the number of features d")
    check_positive("radius", radius, "the norm of the teacher's weights")
    check_non_negative("misfit", misfit, "it is the half-width of what the teacher cannot explain")
    w_key, x_key, m_key = jax.random.split(key, 3)
    direction = jax.random.normal(w_key, (dim,))
    weights = radius * direction / jnp.linalg.norm(direction)
    x = jax.random.ball(x_key, dim, shape=(horizon,))
    targets = jnp.matmul(x, weights, precision="highest")
    return Stream(x, targets + misfit * jax.random.uniform(m_key, (horizon,), minval=-1))


@jax.default_matmul_precision("highest")
def teacher(
    key: chex.PRNGKey,
    horizon: int,
    dim: int,
    *,
    kernel: Kernel,
    centers: int = 8,
    radius: chex.Numeric = 1.0,
    spread: chex.Numeric = 1.0,
    misfit: chex.Numeric = 0.0,
) -> Stream:
    """A non-linear teacher: y_t = f(x_t) + m_t, f = Σ_j a_j k(c_j, ·), ‖f‖ = √(aᵀKa) = radius.

    Instances x_t and centers c_j are uniform in the ball of radius `spread`; a is normal, scaled
    to the norm.

    Args:
        key: randomness of c, a, x and m.
        horizon: T ≥ 1 rounds.
        dim: d ≥ 1 dimensions.
        kernel: k, any of `kernels`.
        centers: how many c_j.
        radius: norm of f in the space of the kernel.
        spread: largest ‖x_t‖ and ‖c_j‖.
        misfit: half-width ≥ 0 of the uniform m_t, what the teacher cannot explain.

    Returns:
        A `Stream` with |y_t| ≤ radius √k(x_t, x_t) + misfit.

    Raises:
        ValueError: no key, no kernel, or a number that is out of range; where the stream is
            concrete, a kernel that is not finite on the ball.

    Example:
        >>> import jax, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
        >>> teacher(jax.random.key(0), horizon=5, dim=3, kernel=kernel).y.shape
        (5,)
    """
    check_key(key)
    check_at_least("horizon", horizon, 1, "the number of rounds T")
    check_at_least("dim", dim, 1, "the number of features d")
    check_kernel(kernel)
    check_at_least("centers", centers, 1, "the number of kernels that make the teacher")
    check_positive("radius", radius, "the norm of the teacher")
    check_positive("spread", spread, "the radius of the ball that holds the data")
    check_non_negative("misfit", misfit, "it is the half-width of what the teacher cannot explain")
    c_key, a_key, x_key, m_key = jax.random.split(key, 4)
    c = spread * jax.random.ball(c_key, dim, shape=(centers,))
    a = jax.random.normal(a_key, (centers,))
    a = radius * a / jnp.sqrt(a @ kernel(c, c) @ a)
    x = spread * jax.random.ball(x_key, dim, shape=(horizon,))
    values = kernel(x, c) @ a
    known = concrete(values)
    if known is not None and not np.all(np.isfinite(known)):
        raise ValueError(
            f"kernel must be finite on the ball of radius spread = {spread}, but the teacher is "
            "not: a smaller spread would do"
        )
    return Stream(x, values + misfit * jax.random.uniform(m_key, (horizon,), minval=-1))
