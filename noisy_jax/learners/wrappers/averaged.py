"""Online-to-batch conversion: predict with the average of all iterates so far.

    w̄_T = (1/T) Σ_{t=1..T} w_t

On independent examples and for a convex loss, its expected excess risk is at most the expected
regret of the learner over T.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import (
    Learner,
    State,
    check_learner,
    estimates_through,
    exportable,
    finish_of_inner,
    fresh,
)


@exportable
class AveragedState(NamedTuple):
    """State of a learner that `averaged` returns, after t rounds.

    Attributes:
        inner: state of the wrapped learner, with the weights w_{t+1} for the next round.
        mean_weights: w̄_t = (1/t) Σ_{s=1..t} w_s, a pytree as `Learner.weights` of the wrapped
            learner returns it; zero at t = 0.
        excess: rounding error of `mean_weights`, a pytree of the same shapes. The next round
            subtracts it (Kahan summation), so that errors do not add up over 10⁷ rounds or more.
        count: `[]`, t.
    """

    inner: State
    mean_weights: chex.ArrayTree
    excess: chex.ArrayTree
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]


def averaged(learner: Learner) -> Learner:
    """Returns a learner that predicts with the mean of the given learner's weights so far.

        w̄_t = (1/t) Σ_{s=1..t} w_s

    w_s are the weights that the given learner predicts with in round s; its own steps do not
    change. w̄_t predicts round t + 1; before the first round w̄ is zero. On independent examples
    and for a convex loss, the expected loss of w̄_T on a new example exceeds the loss of any fixed
    u by at most the learner's expected regret against u (its total loss minus the total of u),
    divided by T.

    Args:
        learner: a learner with `Learner.weights`, in which its predictions are linear; else
            ValueError. `norma` has them if it keeps all terms of its function, with random features
            or with `buffer=engine.everything(horizon)`. An offset and a threshold are averaged as
            well.

    Returns:
        A `Learner`; `state.mean_weights` is w̄_t, and `state.inner` the state of the given learner.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> last = nj.learners.two_copies(radius=1.0)
        >>> both = nj.wrappers.paired(last, nj.wrappers.averaged(last))
        >>> run = nj.rollout(both, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(((run.predictions - stream.y[:, None]) ** 2)[-5000:].mean(axis=0).round(2))
        [0.01 0.  ]
    """
    check_learner(learner)
    weights, with_weights = learner.weights, learner.with_weights
    if weights is None or with_weights is None:
        raise ValueError(
            "averaged needs a learner whose weights hold all of f (Learner.weights), but this one "
            "has none; norma keeps all of f with buffer=engine.everything(horizon)"
        )

    def init(dim: int) -> AveragedState:
        inner = learner.init(dim)
        zero = jax.tree.map(jnp.zeros_like, weights(inner))
        return fresh(AveragedState(inner, zero, zero, jnp.int32(0)))

    def step(state: AveragedState, sample, key) -> AveragedState:
        count, mean = state.count + 1, state.mean_weights
        # Kahan's summation: each change makes up for the rounding of those before it.
        change = jax.tree.map(
            lambda played, mean, excess: (played - mean) / count.astype(mean.dtype) - excess,
            *(weights(state.inner), mean, state.excess),
        )
        moved = jax.tree.map(jnp.add, mean, change)
        excess = jax.tree.map(lambda new, old, c: (new - old) - c, moved, mean, change)
        return AveragedState(learner.step(state.inner, sample, key), moved, excess, count)

    def predict(state: AveragedState, x):
        return learner.predict(mean(state), x)

    def mean(state: AveragedState):
        return with_weights(state.inner, state.mean_weights)

    clean_estimates = estimates_through(
        learner, lambda state, sample, key: (mean(state), sample, key)
    )
    return learner._replace(
        init=init,
        step=step,
        predict=predict,
        unroll=None,
        clean_estimates=clean_estimates,
        finish=finish_of_inner(learner),
        weights=lambda state: state.mean_weights,
        with_weights=lambda state, weights: state._replace(mean_weights=weights),
    )
