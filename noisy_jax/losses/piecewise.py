"""Losses with kinks, which random truncation cannot estimate, and their Gaussian smoothings.

Source: Online Learning with Kernels, Eqs. 13, 22, 23.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from noisy_jax.losses.loss import Loss, check_loss, parameter_text
from noisy_jax.series import floating
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.values import ArrayLike


def hinge(*, margin: ArrayLike = 1.0) -> Loss:
    """Hinge loss ℓ(p, y) = max(0, ρ − yp), y = ±1, which NORMA's paper calls the soft margin.

    The derivative at the kink yp = ρ is −1: with ρ = 0 the zero function is corrected, as in the
    perceptron.

    Args:
        margin: ρ ≥ 0, the margin yp from which on the loss is 0.

    Example:
        >>> print(hinge()(0.25, 1.0))
        0.75
    """
    margin = non_negative("margin", margin)
    return Loss(
        f"hinge(margin={parameter_text(margin)})",
        "margin",
        lambda a: jnp.maximum(margin - a, 0.0),
        lambda a: -jnp.where(a <= margin, 1.0, 0.0),
        analytic="smoothed_hinge",
        kinks=(margin,),
    )


def absolute() -> Loss:
    """Absolute loss ℓ(p, y) = |p − y|, whose derivative at p = y is taken as 0.

    It is the ε-insensitive loss with ε = 0. `smoothed_absolute` is smooth.

    Example:
        >>> print(absolute()(1.0, 3.0))
        2.0
    """
    return epsilon_insensitive(epsilon=0.0)._replace(name="absolute()")


def epsilon_insensitive(*, epsilon: ArrayLike = 0.1) -> Loss:
    """ε-insensitive loss ℓ(p, y) = max(0, |p − y| − ε).

    The derivative at the kinks |p − y| = ε is 0.

    Args:
        epsilon: ε ≥ 0, half the width of the tube in which errors cost nothing.

    Example:
        >>> print(epsilon_insensitive(epsilon=0.5)(1.0, 3.0))
        1.5
    """
    epsilon = non_negative("epsilon", epsilon)
    return Loss(
        f"epsilon_insensitive(epsilon={parameter_text(epsilon)})",
        "residual",
        lambda a: jnp.maximum(jnp.abs(a) - epsilon, 0.0),
        lambda a: jnp.where(jnp.abs(a) > epsilon, jnp.sign(a), 0.0),
        analytic="smoothed_absolute",
        kinks=(-epsilon, epsilon),
    )


def smoothed(loss: Loss, *, width: ArrayLike) -> Loss:
    """A piecewise linear loss averaged over Gaussian noise: φ_δ(a) = E φ(a + z), z ~ N(0, δ²).

    It is smooth, and φ ≤ φ_δ ≤ φ + δ/√(2π) times the number of kinks. Noise of variance v < δ² in
    the prediction turns φ_√(δ² − v) into φ_δ, which is why `corrected` needs it. For the absolute
    loss and the hinge loss it is `smoothed_absolute` and `smoothed_hinge`, of sharpness
    1/(δ√2), which have a series besides.

    Args:
        loss: `hinge` or `epsilon_insensitive`.
        width: δ > 0, standard deviation of the Gaussian noise z.

    Example:
        >>> import noisy_jax as nj
        >>> loss = nj.losses.epsilon_insensitive(epsilon=1.0)
        >>> for width in (0.01, 0.5):
        ...     print(f"{smoothed(loss, width=width)(1.0, 0.0):.3f}")
        0.004
        0.199
    """
    check_loss(loss)
    if not loss.kinks:
        wanted = "piecewise linear, losses.hinge() or losses.epsilon_insensitive()"
        raise ValueError(f"loss must be {wanted}, got {loss}")
    width = positive("width", width)

    def derivative(a):
        return sum(norm.cdf((floating(a) - kink) / width) for kink in loss.kinks) - 1

    return loss._replace(
        name=f"smoothed({loss}, width={parameter_text(width)})",
        value=lambda a: _smooth(loss.kinks, width, a),
        derivative=derivative,
        analytic=None,
        kinks=(),
        deconvolved=functools.partial(less_smooth, loss.kinks, width * width),
    )


def less_smooth(kinks, variance, a, v):
    """The loss with these kinks, smoothed by N(0, variance − v), at a."""
    hint = "the loss must be smoother: a larger width, a smaller sharpness, or smaller weights"
    left = positive("width² − v = 1/(2 sharpness²) − v", variance - v, hint, shape=None)
    return _smooth(kinks, jnp.sqrt(left), a, _cdf)


def _smooth(kinks, width, a, cdf=norm.cdf):
    """−(a − k_1) + Σ_i E max(0, a + z − k_i), z ~ N(0, width²)."""
    far = [floating(a) - kink for kink in kinks]
    ramps = (u * cdf(u / width) + width * norm.pdf(u / width) for u in far)
    return sum(ramps) - far[0]


@jax.custom_jvp
def _cdf(z):
    """Φ(z), whose derivative in JAX 0.12 cannot be taken inside `jax.shard_map`.

    `jax.experimental.jet`, which corrections for Laplace noise use, does not know this one.
    """
    return norm.cdf(z)


_cdf.defjvps(lambda tangent, value, z: norm.pdf(z) * tangent)


def huber(*, width: ArrayLike = 1.0) -> Loss:
    """Huber's loss of the residual a: a²/(2σ) for |a| ≤ σ, |a| − σ/2 beyond.

    It is σ times the unit Huber function of a/σ, so that |φ'| ≤ 1, and jointly convex in (p, σ).

    Args:
        width: σ > 0, the residual at which the loss turns from quadratic to linear.

    Example:
        >>> print(huber(width=2.0)(1.0, 0.0))
        0.25
    """
    width = positive("width", width)

    def value(a):
        size = jnp.abs(a)
        return jnp.where(size <= width, size**2 / (2 * width), size - width / 2)

    return Loss(
        f"huber(width={parameter_text(width)})",
        "residual",
        value,
        lambda a: jnp.clip(a / width, -1.0, 1.0),
        analytic="smoothed_absolute",
    )
