"""Streams from which the search for a worst one starts."""

from collections.abc import Mapping

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.draws import normal
from noisy_jax.simulated.streams import one_copy_adversaries
from noisy_jax.validation import check_key, positive, whole


def structured_starts(
    key: chex.PRNGKey,
    horizon: int,
    dim: int,
    *,
    x_norm: chex.Numeric = 1.0,
    y_size: chex.Numeric = 1.0,
) -> Mapping[str, Stream]:
    """Streams of known kinds with ‖x_t‖ ≤ B_x and |y_t| ≤ B_y, by name.

    - "random": x_t uniform on the sphere, y_t = ±B_y at random.
    - "constant": y_t = B_y; this and all others have x_t = B_x e_1, if not said otherwise.
    - "alternating": y_t = ±B_y in turn.
    - "reversal": the sign of y_t changes once, at T/2.
    - "sawtooth": it changes every √T rounds, the time in which descent at the theorems' rates
      goes from the centre of the ball to its boundary. Weights near the boundary then meet the
      targets for which the second moment of the gradient is largest (ỹ = −B_y at w = B_w e_1).
    - "late": it alternates, and is constant for the last √T rounds. For linear losses this attains
      the bound B_w √(GT) of gradient descent.
    - "one copy": the noiseless adversary of `streams.one_copy_adversaries`, x_t = B_x e_1 or
      −B_x e_1/3 at random, y_t = B_y.
    - "small": the clean data of the noisy one, x_t = B_x e_1/3, y_t = B_y.

    Args:
        key: randomness of "random" and "one copy".
        horizon: T ≥ 1 rounds.
        dim: d ≥ 1 features.
        x_norm: B_x > 0.
        y_size: B_y > 0.

    Example:
        >>> import jax
        >>> starts = structured_starts(jax.random.key(0), horizon=6, dim=2)
        >>> print(starts["alternating"].y, starts["sawtooth"].y)
        [ 1. -1.  1. -1.  1. -1.] [ 1.  1. -1. -1.  1.  1.]
    """
    check_key(key)
    horizon, dim = whole("horizon", horizon), whole("dim", dim)
    x_norm, y_size = positive("x_norm", x_norm), positive("y_size", y_size)
    x_key, y_key, copy_key = jax.random.split(key, 3)
    rounds = jnp.arange(horizon)
    directions = normal(x_key, (horizon, dim))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    first = jnp.zeros((horizon, dim)).at[:, 0].set(1.0)
    one_copy = one_copy_adversaries(copy_key, horizon).noiseless.stream.x / 3
    ones, root = jnp.ones(horizon), round(horizon**0.5)

    def signs(half_period):
        return jnp.where(rounds // half_period % 2, -ones, ones)

    units = {
        "random": (directions, jax.random.rademacher(y_key, (horizon,), float)),
        "constant": (first, ones),
        "alternating": (first, signs(1)),
        "reversal": (first, signs((horizon + 1) // 2)),
        "sawtooth": (first, signs(root)),
        "late": (first, jnp.where(rounds < horizon - root, signs(1), 1.0)),
        "one copy": (first * one_copy, ones),
        "small": (first / 3, ones),
    }
    return {name: Stream(x_norm * x, y_size * y) for name, (x, y) in units.items()}
