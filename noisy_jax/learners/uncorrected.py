"""Plain online gradient descent that trusts the noisy copy: the baseline that everybody uses.

    ∇̃_t = 2(⟨w_t, x̃_t⟩ − ỹ_t) x̃_t

has mean ∇_t + 2Σ_t w_t: it descends on ℓ_t(w) + wᵀΣ_t w, the errors-in-variables attenuation, and
its regret on clean data grows linearly wherever the best clean predictor feels that pull.
"""

import chex
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.learners.gradient_descent import gradient_descent


def gradient_estimate(weights: chex.Array, sample: Sample) -> chex.Array:
    """∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃, `[d]`: the gradient on the noisy copy, biased by 2Σw on clean data."""
    copy = sample.x[0]
    return 2 * (jnp.vdot(weights, copy) - sample.y) * copy


def uncorrected(
    *,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """Online linear regression that takes one noisy copy for the truth.

    Args:
        radius: B_w > 0, the norm of the largest predictor that competes.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …; see
            `bounds.uncorrected`.
        optimizer: any `optax.GradientTransformation` that needs no loss value, instead of
            `learning_rate`.

    Returns:
        A `Learner` of 1 copy with O(d) time and memory a round. There is no sub-linear bound on its
        regret on clean data; `bounds.uncorrected` gives the linear one.

    Raises:
        ValueError: see `gradient_descent`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = uncorrected(radius=1.0, learning_rate=0.05)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).predictions.shape
        (100,)
    """
    return gradient_descent(
        gradient_estimate, copies=1, radius=radius, learning_rate=learning_rate, optimizer=optimizer
    )
