"""Projected gradient ascent on streams."""

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Stream
from noisy_jax.validation import check_axes, positive, whole


def ascend(
    regret: Callable[[Stream, chex.PRNGKey], jax.Array],
    starts: Stream,
    key: chex.PRNGKey,
    *,
    x_norm: Any = 1.0,
    y_size: Any = 1.0,
    steps: int = 100,
    draws: int = 16,
    learning_rate: Any = 0.1,
    used: chex.Array | None = None,
) -> tuple[Stream, jax.Array]:
    """Increases the expected regret of streams, within ‖x_t‖ ≤ B_x and |y_t| ≤ B_y.

    Each step estimates the gradient of the mean regret over new draws of the noise, which all
    streams share. It moves by optax's Adam, whose rate falls to zero by a cosine, and projects each
    x_t and y_t. It works under `jit`, and under `vmap` over what `regret` closes over.

    Args:
        regret: `(stream, key) -> []`, such as `clean_regret` of a learner.
        starts: `[R, T, d]` and `[R, T]`, R streams.
        key: randomness of the noise.
        x_norm: B_x > 0.
        y_size: B_y > 0.
        steps: number of steps.
        draws: draws of the noise in a step.
        learning_rate: of Adam at first, in units of B_x and B_y.
        used: `[T]`, one for the rounds that may change, zero for others; all by default.

    Returns:
        R streams, and `[]`, whether all gradients were finite (others count as zero).

    Source: the gradient of the minimum by the envelope theorem (`clean_regret`); Adam is Kingma and
    Ba (2015).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> starts = Stream(jnp.full((1, 2, 1), 0.5), jnp.full((1, 2), 0.5))
        >>> def regret(stream, key):
        ...     return jnp.sum(stream.x) - jnp.sum(stream.y)
        >>> found, _ = ascend(regret, starts, jax.random.key(0), x_norm=2.0)
        >>> print(found.x.ravel(), found.y.ravel())
        [2. 2.] [-1. -1.]
    """
    check_axes("starts.x", starts.x, "[R, T, d]")
    check_axes("starts.y", starts.y, "[R, T]")
    x_norm, y_size = positive("x_norm", x_norm), positive("y_size", y_size)
    steps, draws = whole("steps", steps), whole("draws", draws)
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))
    mask = jnp.ones(starts.y.shape[1]) if used is None else used

    def loss(units, keys):
        stream = Stream(x_norm * units.x, y_size * units.y)
        return -jnp.mean(jax.vmap(regret, (None, 0))(stream, keys))

    def step(carry, key):
        units, state, sound = carry
        gradients = jax.vmap(jax.grad(loss), (0, None))(units, jax.random.split(key, draws))
        finite = jax.tree.map(jnp.isfinite, gradients)
        sound &= finite.x.all() & finite.y.all()
        gradients = jax.tree.map(lambda g, f: jnp.where(f, g, 0), gradients, finite)
        with jax.numpy_dtype_promotion("standard"):  # which optax needs
            updates, state = optimizer.update(gradients, state)
        return (_projected(optax.apply_updates(units, updates), mask), state, sound), None

    units = Stream(starts.x / x_norm, starts.y / y_size)
    carry = units, optimizer.init(units), jnp.array(True)
    (units, _, sound), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
    return Stream(x_norm * units.x, y_size * units.y), sound


def _projected(units, mask) -> Stream:
    norms = jnp.sqrt(jnp.sum(units.x**2, axis=-1, keepdims=True))
    x = units.x / jnp.maximum(norms, 1) * mask[None, :, None]
    return Stream(x, jnp.clip(units.y, -1, 1) * mask[None])
