"""Local differential privacy: clip instances, then release them with noise for a privacy budget.

A mechanism M is (ε, δ)-private if P(M(x) ∈ A) ≤ e^ε P(M(x') ∈ A) + δ for all x, x' and every A.
Locally, x and x' are any two values that one person may have. If their norm is at most c, they are
at most 2c apart; this is the sensitivity Δ. Released is x + n, with noise of mean zero and a known
distribution, so that `learners` can correct for it.

Releasing V copies reveals more than one: Laplace budgets add up, and V Gaussian copies reveal as
much as their mean, one copy with variance σ²/V. The mechanisms take the number of copies
(`Needs.copies`) and return the noise of each, so that all copies together keep to the budget.

The guarantees hold for real numbers: floating-point samples have gaps, and an attacker who sees all
their digits may learn more from them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm as normal

from noisy_jax.noise import Flip, Gaussian, Laplace
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.numbers import between, check_finite, positive, whole, within
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import Array, ArrayLike, array_module, check_concrete

__all__ = ["clipped", "gaussian_mechanism", "laplace_mechanism", "randomized_response"]


def clipped(x: Array, norm: ArrayLike, *, order: int = 2) -> Array:
    """Returns each instance scaled to a norm of at most c: x min(1, c/‖x‖).

    Clip before a mechanism adds noise: any two results are at most 2c apart, which is the
    sensitivity of the mechanism. The computed ‖x‖ is multiplied by 1 + (d/2 + 4)u with the machine
    precision u of x's type. This is more than its rounding error, so that no norm exceeds c.

    Args:
        x: `[..., d]` finite instances; each row is scaled by itself.
        norm: c > 0, the largest norm, in the units of x; at least 1.2e-38, the smallest that
            float32 holds.
        order: 2 (the default) for ‖x‖₂, as `gaussian_mechanism` needs, or 1 for ‖x‖₁, as
            `laplace_mechanism` needs.

    Returns:
        `[..., d]`, in JAX's default precision.

    Raises:
        ValueError: x is not finite or has no features, or the norm is not in its range.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> x = jnp.array([[3.0, 4.0], [0.25, 0.5]])
        >>> print(nj.privacy.clipped(x, 2.5).round(4).tolist())
        [[1.5, 2.0], [0.25, 0.5]]
    """
    norm, order = _representable("norm", positive("norm", norm)), choice("order", order, (1, 2))
    x = real_array("x", x)
    check_finite("x", x)
    x = jnp.asarray(x, float)
    if x.shape[-1:] in ((), (0,)):
        raise ValueError(f"x must be [..., d] with d >= 1 features, got {list(x.shape)}")
    # Scaled before squaring: squares of small numbers underflow, and nothing would be clipped.
    largest = jnp.max(jnp.abs(x), axis=-1, keepdims=True)
    unit = x / jnp.where(largest > 0, largest, 1)
    # A row of zeros stays as it is; its norm, whose gradient is NaN, is not used.
    size = jnp.linalg.norm(jnp.where(largest > 0, unit, 1), ord=order, axis=-1, keepdims=True)
    size *= 1 + (x.shape[-1] / 2 + 4) * jnp.finfo(x.dtype).eps  # more than what rounding takes away
    # If a traced `norm` is NaN, the result is NaN, not the unclipped x.
    return jnp.where(largest * size <= norm, x, unit * (norm / size))


def _representable(name: str, value):
    """Returns the value if the default precision neither rounds it to zero nor overflows."""
    limits = jnp.finfo(jax.dtypes.canonicalize_dtype(float))
    hint = f"outside the range of {limits.dtype}; rescale the data"
    return within(name, value, float(limits.tiny), float(limits.max), hint)


def laplace_mechanism(*, epsilon: ArrayLike, l1_sensitivity: ArrayLike, copies: int = 1) -> Laplace:
    """Returns the Laplace noise that makes V released copies x + n together (ε, 0)-private.

    A release M(x) is (ε, δ)-private if P(M(x) ∈ A) ≤ e^ε P(M(x') ∈ A) + δ for every set A and any
    two values x, x' that a person may have. The noise on every coordinate has the scale b = VΔ/ε
    (its standard deviation is √2 b): the log ratio of the densities of the copies from x and from
    x' is at most V‖x − x'‖₁/b ≤ ε, and this is attained. Each single copy is (ε/V, 0)-private.

    Args:
        epsilon: ε > 0, of all copies together; smaller is more private.
        l1_sensitivity: Δ > 0, the largest ‖x − x'‖₁, in the units of x; 2c after
            `clipped(x, c, order=1)`.
        copies: V ≥ 1, the number of released copies of each x (`Needs.copies`); 1 by default.

    Returns:
        `noise.Laplace` with the scale b, the noise of each copy.

    Source: Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data
    analysis (2006).

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.privacy.laplace_mechanism(epsilon=4.0, l1_sensitivity=2.0, copies=2)
        >>> print(noise.scale)
        1.0
    """
    distance = positive("l1_sensitivity", l1_sensitivity)
    scale = whole("copies", copies) * distance / positive("epsilon", epsilon)
    return Laplace(_representable("the scale of the noise", scale))


def gaussian_mechanism(
    *, epsilon: ArrayLike, delta: ArrayLike, l2_sensitivity: ArrayLike, copies: int = 1
) -> Gaussian:
    """Returns the smallest Gaussian noise that makes V released copies (ε, δ)-private together.

    A release M(x) is (ε, δ)-private if P(M(x) ∈ A) ≤ e^ε P(M(x') ∈ A) + δ for every set A and any
    two values x, x' that a person may have. The copies are x + n, with independent noise of
    variance σ² on every coordinate. With the standard normal distribution function Φ, they are
    (ε, δ(u))-private, and for no smaller δ, where u = σ/(√V Δ) and

        δ(u) = Φ(1/(2u) − εu) − e^ε Φ(−1/(2u) − εu).

    δ(u) decreases in u; σ solves δ(u) = δ, by bisection in float64. The classical
    σ = Δ√(2 log(1.25/δ))/ε of one copy is larger, and valid for ε ≤ 1 only.

    Args:
        epsilon: ε > 0, of all copies together; smaller is more private. It is not traced, nor are
            the next two: call it outside `jit`.
        delta: δ in (0, 1), of all copies together; choose it well below 1/(number of people).
        l2_sensitivity: Δ > 0, the largest ‖x − x'‖₂, in the units of x; 2c after `clipped(x, c)`.
        copies: V ≥ 1, the number of released copies of each x (`Needs.copies`); 1 by default.

    Returns:
        `noise.Gaussian` with the covariance σ² on every coordinate, the noise of each copy.

    Source: Balle and Wang, Improving the Gaussian mechanism for differential privacy: analytical
    calibration and optimal denoising (2018), Theorem 8.

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.privacy.gaussian_mechanism(epsilon=1.0, delta=1e-5, l2_sensitivity=1.0)
        >>> print(f"{noise.cov**0.5:.4f}")
        3.7306
    """
    numbers = {"epsilon": epsilon, "delta": delta, "l2_sensitivity": l2_sensitivity}
    for name, value in numbers.items():
        check_concrete(name, value, "the noise is calibrated on the host")
    epsilon, distance = positive("epsilon", epsilon), positive("l2_sensitivity", l2_sensitivity)
    delta = between("delta", delta, 0, 1, "for δ = 0 use laplace_mechanism")
    copies = whole("copies", copies)
    with jax.enable_x64(True):
        noise_to_distance = float(_calibrated(float(epsilon), float(delta)))
    variance = copies * (noise_to_distance * float(distance)) ** 2
    return Gaussian(_representable("the variance of the noise", variance))


def randomized_response(*, epsilon: ArrayLike) -> Flip:
    """Returns the random flips that make a released label y = ±1 (ε, 0)-private.

    The label is released as ỹ = −y with probability ρ = 1/(1 + e^ε), else as ỹ = y. Then
    P(ỹ | y) ≤ e^ε P(ỹ | −y) for both values of ỹ, which is (ε, 0)-privacy, with equality for ỹ = y:
    no smaller ρ is (ε, 0)-private. If x is released as well, the budgets add up to ε_x + ε_y.

    Args:
        epsilon: ε > 0, of one label, released once; smaller is more private.

    Returns:
        `noise.Flip` with both rates ρ, for the argument `y_noise` of `rollout` and `study`. Losses
        `losses.flipped(loss, ρ)` learn from such labels.

    Source: Warner, Randomized response: a survey technique for eliminating evasive answer bias
    (1965).

    Example:
        >>> import noisy_jax as nj
        >>> print(f"{nj.privacy.randomized_response(epsilon=1.0).rate[0]:.3f}")
        0.269
    """
    epsilon = positive("epsilon", epsilon)
    xp = array_module(epsilon)
    return Flip(xp.exp(-xp.logaddexp(0.0, epsilon)))


_BISECTIONS = 60
"""Enough for all digits of float64, with some more for a solution far below the first bracket."""


@jax.jit
def _calibrated(epsilon, delta):
    """Returns the least u with δ(u) ≤ δ."""
    log_inverse = -jnp.log(delta)
    enough = (jnp.sqrt(log_inverse + epsilon) + jnp.sqrt(log_inverse)) / (jnp.sqrt(2.0) * epsilon)

    def halve(_, bracket):
        low, high = bracket
        middle = (low + high) / 2
        private = _log_delta(middle, epsilon) <= -log_inverse
        return jnp.where(private, low, middle), jnp.where(private, middle, high)

    return jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(enough), enough))[1]


def _log_delta(u, epsilon):
    """log δ(u), by logarithms: e^ε overflows, and both terms may be far below δ's own rounding."""
    first = normal.logcdf(0.5 / u - epsilon * u)
    second = epsilon + normal.logcdf(-0.5 / u - epsilon * u)
    return first + jnp.log(-jnp.expm1(second - first))


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
