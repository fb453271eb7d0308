"""The doubling trick: a learner for an unknown horizon from one that must be told its horizon.

Phase k lasts 2^k rounds, k = 0, 1, …, and starts a new learner that is tuned for 2^k rounds. If the
regret of such a learner is at most c√(2^k) after any number of rounds of its phase, as the bounds
for gradient descent say, the whole regret is at most c√T · √2/(√2 − 1) for every T.
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
        rounds_left: `[]`, rounds left in this phase, from 2^k down to 1.
    """

    inner: State
    phase_length: jax.Array
    rounds_left: jax.Array


def doubling(make_learner: Callable[[chex.Numeric], Learner]) -> Learner:
    """A learner that needs no horizon, from a factory that does.

    Args:
        make_learner: `horizon -> Learner`. It is called with a traced horizon, so the learning rate
            must be computed with arrays (as `bounds` does), and the shape of the state must not
            depend on the horizon: give every learner room for the whole run.

    Returns:
        A `Learner` that plays a new `make_learner(2^k)` for 2^k rounds, k = 0, 1, …

    Example:
        >>> import jax, noisy_jax as nj
        >>> def make_learner(horizon):
        ...     return nj.learners.two_copies(radius=1.0, learning_rate=0.5 * horizon**-0.5)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> both = nj.wrappers.paired(doubling(make_learner), make_learner(10_000))
        >>> run = nj.rollout(both, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(((run.predictions - stream.y[:, None]) ** 2).mean(axis=0).round(2))
        [0.02 0.01]
    """
    if isinstance(make_learner, Learner) or not callable(make_learner):
        raise ValueError(
            f"make_learner must be a function horizon -> Learner, got {given(make_learner)}"
        )
    first = make_learner(1)
    check_learner(first, "what make_learner returns")
    if first.horizon is not None and first.horizon != make_learner(2).horizon:
        raise ValueError(
            "doubling needs learners whose state has one shape for all horizons, but these have "
            f"room for {first.horizon} and {make_learner(2).horizon} rounds when made for 1 and 2: "
            "give all of them room for the whole run, and let only the rate depend on the horizon"
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

    return first._replace(
        init=init, step=step, predict=predict, unroll=None, read=None, finish=None
    )
