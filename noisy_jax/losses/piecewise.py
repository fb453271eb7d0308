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
    """Returns the hinge loss ℓ(p, y) = max(0, ρ − yp) of a prediction p for a label y = ±1.

    The derivative ∂ℓ/∂p is −y where yp ≤ ρ, the kink yp = ρ included, and 0 elsewhere. So with ρ =
    0 a learner that starts at the zero function makes a step, as the perceptron does.

    Args:
        margin: ρ ≥ 0, the value of yp from which on the loss is 0; 1 by default.

    Source: Online Learning with Kernels, where it is called the soft margin loss.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.hinge()(0.25, 1.0))
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
    """Returns the absolute loss ℓ(p, y) = |p − y| of a prediction p for a number y.

    Its derivative at p = y is taken as 0. It is `epsilon_insensitive` with ε = 0;
    `smoothed_absolute` is a smooth approximation, which random truncation needs.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.absolute()(1.0, 3.0))
        2.0
    """
    return epsilon_insensitive(epsilon=0.0)._replace(name="absolute()")


def epsilon_insensitive(*, epsilon: ArrayLike = 0.1) -> Loss:
    """Returns the ε-insensitive loss max(0, |p − y| − ε) of a prediction p for a number y.

    Its derivative at the kinks |p − y| = ε is taken as 0.

    Args:
        epsilon: ε ≥ 0, half the width of the tube in which errors cost nothing; 0.1 by default. It
            has the unit of y.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.epsilon_insensitive(epsilon=0.5)(1.0, 3.0))
        1.5
    """
    width = non_negative("epsilon", epsilon)
    return Loss(
        f"epsilon_insensitive(epsilon={parameter_text(width)})",
        "residual",
        lambda a: jnp.maximum(jnp.abs(a) - width, 0.0),
        lambda a: jnp.where(jnp.abs(a) > width, jnp.sign(a), 0.0),
        analytic="smoothed_absolute",
        kinks=(-width, width),
    )


def smoothed(loss: Loss, *, width: ArrayLike) -> Loss:
    """Averages a piecewise linear loss over Gaussian noise: φ_δ(a) = E φ(a + z), z ~ N(0, δ²).

    φ is the given loss as a function of the margin or residual a (see `Loss`). φ_δ is smooth, and
    φ ≤ φ_δ ≤ φ + δ/√(2π) times the number of kinks of φ: 1 for `hinge`, 2 for
    `epsilon_insensitive`.

    Use it where a loss must have a correction for noise in x (`losses.corrected`): if Gaussian
    noise of variance v < δ² is added to a, the mean of φ_√(δ² − v) is φ_δ. For `absolute()` and
    `hinge()` it equals `smoothed_absolute` and `smoothed_hinge` of sharpness 1/(δ√2). Those have a
    power series besides, which random truncation needs.

    Args:
        loss: a loss that `hinge`, `absolute` or `epsilon_insensitive` returns; any other raises
            ValueError.
        width: δ > 0, the standard deviation of z, in the unit of a.

    Returns:
        A `Loss` of the same kind, "margin" or "residual".

    Example:
        >>> import noisy_jax as nj
        >>> loss = nj.losses.epsilon_insensitive(epsilon=1.0)
        >>> for width in (0.01, 0.5):
        ...     print(f"{nj.losses.smoothed(loss, width=width)(1.0, 0.0):.3f}")
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
    """Returns Huber's loss of the residual a = p − y: a²/(2σ) for |a| ≤ σ, and |a| − σ/2 beyond.

    This is 1/σ times the form with a²/2 in the middle, so that its slope never exceeds 1.

    Args:
        width: σ > 0, the residual at which the loss turns from quadratic to linear, in the unit of
            y; 1 by default.

    Source: Online Learning with Kernels, Eq. 23.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.huber(width=2.0)(1.0, 0.0))
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
