"""Projected online gradient descent on linear weights, from an estimate of the clean gradient.

    w_1 = 0,   w_{t+1} = P(w_t − η_t ∇̃_t),   P the projection on {‖w‖ ≤ B_w}

The learners for linear predictors differ in the estimate ∇̃_t alone. For ‖u‖ ≤ B_w and a constant
η, Σ_t ⟨∇̃_t, w_t − u⟩ ≤ ‖u‖²/(2η) + (η/2) Σ_t ‖∇̃_t‖², whence every regret bound of `bounds`.

Source: Learning from Noisy Data under Distributional Assumptions, Eqs. 2-3 and Lemma 3 (the
recursion is printed with w_t on both sides; w_{t+1} is meant).
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample, check_sample
from noisy_jax.engine.rules import sound_rate
from noisy_jax.validation import check_at_least, check_dimension, check_radius, check_shape, given

Gradient = Callable[[chex.Array, Sample], chex.Array]
"""`(weights[d], sample) -> [d]`, an estimate of the gradient of the clean loss."""


class GradientDescentState(NamedTuple):
    """State of a linear learner.

    Attributes:
        weights: `[d]`, w_t; predictions are linear in them.
        optimizer: state of the optax transformation.
    """

    weights: chex.Array
    optimizer: optax.OptState


def gradient_descent(
    gradient: Gradient,
    *,
    copies: int,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Learner:
    """Projected online gradient descent on the weights of a linear predictor.

    A run whose weights overflow, or whose traced rate is not positive, ends in NaN, never in
    weights that look sound, so that `Rollout.diverged_at` can name the round.

    Args:
        gradient: the estimate ∇̃ of the clean gradient, `(weights[d], sample) -> [d]`.
        copies: V, the number of noisy copies that `gradient` reads.
        radius: B_w > 0, the norm of the largest predictor that competes.
        learning_rate: η > 0 that multiplies the gradient, or an optax schedule of the round,
            counted from 0.
        optimizer: any optax transformation that needs no loss value instead; give either this or
            `learning_rate`.

    Returns:
        A `Learner` with `GradientDescentState`.

    Raises:
        ValueError: radius or rate not one positive number, a radius whose square overflows, both or
            neither of rate and optimizer, or what is none; and at the first step a sample of
            another dimension, or with fewer copies than the learner reads, or a gradient of another
            shape than the weights.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> def gradient(weights, sample):  # of the absolute loss, on one noisy copy
        ...     return jnp.sign(sample.x[0] @ weights - sample.y) * sample.x[0]
        >>> gradient_descent(gradient, copies=1, radius=1.0, learning_rate=0.1).copies
        1
    """
    check_radius(radius)
    if (learning_rate is None) == (optimizer is None):
        raise ValueError("give either learning_rate or optimizer, not both and not neither")
    if optimizer is None:
        optimizer = optax.sgd(sound_rate(learning_rate))
    elif not all(callable(getattr(optimizer, name, None)) for name in ("init", "update")):
        raise ValueError(f"optimizer must be such as optax.adam(0.1) gives, got {given(optimizer)}")

    def init(dim: int) -> GradientDescentState:
        check_at_least("dim", dim, 1, "the number of features")
        weights = jnp.zeros(dim)
        return GradientDescentState(weights, optimizer.init(weights))

    def step(state: GradientDescentState, sample: Sample, key: chex.PRNGKey):
        del key  # the estimate has no randomness of its own
        check_sample(sample, copies)
        check_dimension("the learner's weights", state.weights, sample.x.shape)
        estimate = gradient(state.weights, sample)
        check_shape("gradient", estimate, state.weights.shape, "as the weights")
        updates, optimizer_state = optimizer.update(estimate, state.optimizer, state.weights)
        weights = optax.apply_updates(state.weights, updates)
        projected = optax.projections.projection_l2_ball(weights, radius)
        # Where a square overflows, the projection would quietly give zero.
        squares = optax.tree.norm(weights, squared=True) + jnp.square(radius)
        sound = jnp.isfinite(squares) & (radius > 0)
        return GradientDescentState(jnp.where(sound, projected, jnp.nan), optimizer_state)

    def predict(state: GradientDescentState, x: chex.Array) -> chex.Array:
        check_dimension("the learner's weights", state.weights, jnp.shape(x))
        return x @ state.weights

    return Learner(init, step, predict, copies)
