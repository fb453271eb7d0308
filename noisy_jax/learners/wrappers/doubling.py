"""The doubling trick: a learner for an unknown horizon from one that must be told it.

Phase k lasts 2^k rounds, k = 0, 1, …, and begins with a fresh learner tuned for 2^k rounds. Where
such a learner's regret is at most c√(2^k) after any number of rounds of its phase, as the bounds
for gradient descent are, the whole is at most c√T · √2/(√2 − 1) for every T at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, State, check_learner
from noisy_jax.validation import given


class DoublingState(NamedTuple):
    """State of a learner that restarts at every power of two.

    Attributes:
        inner: state of the present phase's learner.
        phase_length: `[]`, 2^k.
        rounds_left: `[]`, rounds to go in this phase, from 2^k to 1.
    """

    inner: State
    phase_length: chex.Array
    rounds_left: chex.Array


def doubling(make_learner: Callable[[chex.Numeric], Learner]) -> Learner:
    """A learner that needs no horizon, from a factory that does.

    Args:
        make_learner: `horizon -> Learner`. It is called with a traced horizon, so the learning rate
            must be computed with arrays (as `bounds` does), and the shape of the state must not
            depend on the horizon.

    Returns:
        A `Learner` that plays `make_learner(2^k)` afresh for 2^k rounds, k = 0, 1, …

    Raises:
        ValueError: what makes no learners, or learners whose room for rounds depends on the
            horizon.

    Example:
        >>> import noisy_jax as nj
        >>> def make_learner(horizon):
        ...     return nj.learners.two_copies(radius=1.0, learning_rate=0.1 * horizon**-0.5)
        >>> doubling(make_learner).copies
        2
    """
    if isinstance(make_learner, Learner) or not callable(make_learner):
        raise ValueError(
            f"make_learner must be a function horizon -> Learner, got {given(make_learner)}"
        )
    first = make_learner(1)
    check_learner(first, "what make_learner makes")
    if first.horizon is not None and first.horizon != make_learner(2).horizon:
        raise ValueError(
            "doubling needs learners whose state has one shape for all horizons, but these have "
            f"room for {first.horizon} and {make_learner(2).horizon} rounds when made for 1 and 2: "
            "give all of them room for the whole run, and only the rate the horizon"
        )

    def init(dim: int) -> DoublingState:
        return DoublingState(make_learner(1).init(dim), jnp.int32(1), jnp.int32(1))

    def step(state: DoublingState, sample, key) -> DoublingState:
        horizon = state.phase_length.astype(jnp.result_type(float))
        inner = make_learner(horizon).step(state.inner, sample, key)
        ends = state.rounds_left == 1
        length = jnp.where(ends, 2 * state.phase_length, state.phase_length)
        fresh = make_learner(2 * horizon).init(sample.x.shape[-1])
        inner = jax.tree.map(lambda new, old: jnp.where(ends, new, old), fresh, inner)
        return DoublingState(inner, length, jnp.where(ends, length, state.rounds_left - 1))

    def predict(state: DoublingState, x):
        learner = make_learner(state.phase_length.astype(jnp.result_type(float)))
        return learner.predict(state.inner, x)

    return first._replace(init=init, step=step, predict=predict, unroll=None)
