"""Losses with kinks, for online learning with kernels; random truncation cannot estimate them.

Source: Online Learning with Kernels, Eqs. 13, 22, 23.
"""

import chex
import jax.numpy as jnp

from noisy_jax.losses.loss import Loss, shown
from noisy_jax.validation import non_negative, positive


def soft_margin(*, margin: chex.Numeric = 1.0) -> Loss:
    """Soft-margin (hinge) loss ℓ(p, y) = max(0, ρ − yp), y = ±1.

    The derivative at the kink yp = ρ is −1: with ρ = 0 the zero function is corrected, as in the
    perceptron.

    Args:
        margin: ρ ≥ 0.

    Example:
        >>> print(soft_margin()(0.25, 1.0))
        0.75
    """
    margin = non_negative("margin", margin)
    return Loss(
        f"soft_margin(margin={shown(margin)})",
        "margin",
        lambda a: jnp.maximum(margin - a, 0.0),
        lambda a: -jnp.where(a <= margin, 1.0, 0.0),
        analytic="smoothed_hinge",
    )


def epsilon_insensitive(*, epsilon: chex.Numeric = 0.1) -> Loss:
    """ε-insensitive loss ℓ(p, y) = max(0, |p − y| − ε); the absolute loss for ε = 0.

    The derivative at the kinks |p − y| = ε is 0.

    Args:
        epsilon: ε ≥ 0, half the width of the tube in which errors cost nothing.

    Example:
        >>> print(epsilon_insensitive(epsilon=0.5)(1.0, 3.0))
        1.5
    """
    epsilon = non_negative("epsilon", epsilon)
    return Loss(
        f"epsilon_insensitive(epsilon={shown(epsilon)})",
        "residual",
        lambda a: jnp.maximum(jnp.abs(a) - epsilon, 0.0),
        lambda a: jnp.where(jnp.abs(a) > epsilon, jnp.sign(a), 0.0),
        analytic="smoothed_absolute",
    )


def huber(*, width: chex.Numeric = 1.0) -> Loss:
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
        f"huber(width={shown(width)})",
        "residual",
        value,
        lambda a: jnp.clip(a / width, -1.0, 1.0),
        analytic="smoothed_absolute",
    )
