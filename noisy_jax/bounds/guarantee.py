"""What projected online gradient descent guarantees from unbiased gradient estimates.

With G ≥ E‖∇̃_t‖², a ball of radius W and η = W/√(GT), the expected regret on clean data is at most
W √(GT).
"""

from typing import NamedTuple

import chex
import jax.numpy as jnp

from noisy_jax.validation import check_positive, check_radius, concrete


class Guarantee(NamedTuple):
    """What a theorem promises for T rounds.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient.
        regret: `[]`, bound on the expected regret on clean data after T rounds.
        second_moment: `[]`, G, bound on E‖∇̃_t‖².
    """

    learning_rate: chex.Array
    regret: chex.Array
    second_moment: chex.Array


def gradient_descent(second_moment, horizon, radius) -> Guarantee:
    """η = W/√(GT) and the bound W√(GT), from G and the radius W."""
    check_positive("horizon", horizon, "the number of rounds T")
    check_radius(radius)
    moment = concrete(second_moment)
    if moment is not None and not 0 < moment < jnp.inf:
        raise ValueError(
            f"the second moment of the gradient estimate must be positive and finite, got {moment}:"
            " the data are all zero, a moment is negative, the data or R² overflow float32, or the"
            " noise has no finite moment of the order that this learner needs (two_copies needs the"
            " second only, known_covariance and noise_blind the fourth)"
        )
    root = jnp.sqrt(second_moment) * jnp.sqrt(horizon)  # apart, as the product may overflow
    return Guarantee(radius / root, radius * root, jnp.asarray(second_moment))
