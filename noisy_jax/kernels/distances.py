"""Kernels of the distance ‖x − z‖, k(x, x) = 1; the Gaussian one has a power series as well."""

import math

import chex
import jax
import jax.numpy as jnp

from noisy_jax.kernels.kernel import Envelope, Kernel, squared_distances
from noisy_jax.kernels.products import exponential_series
from noisy_jax.validation import check_choice, check_one_number, check_positive


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
        series=lambda order: exponential_series(2 / squared_width, order),
        envelope=Envelope(
            lambda squared_norm: jnp.exp(-squared_norm / squared_width),
            lambda order: exponential_series(-1 / squared_width, order),
        ),
    )


def check_squared_width(squared_width: chex.Numeric) -> None:
    """Refuses a squared width that is not one positive number."""
    check_positive("squared_width", squared_width, "s² of exp(−r²/s²)")
    check_one_number("squared_width", squared_width)


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


def _of_distance(value) -> Kernel:
    """A kernel from its value as a function of r², with k(x, x) = 1."""

    def gram(x, z):
        return value(squared_distances(x, z))

    return Kernel(gram, lambda x: jnp.ones(x.shape[:-1], x.dtype))


def _root(r2):
    """√r², with derivative zero instead of infinite at zero."""
    positive = r2 > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, r2, 1)), 0)
