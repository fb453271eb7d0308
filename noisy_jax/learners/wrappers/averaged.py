"""Online-to-batch conversion: predict with the average of all iterates so far.

    w̄_T = (1/T) Σ_{t=1..T} w_t

On independent examples its expected excess risk is at most the learner's expected regret over T,
for a convex loss.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, State, check_learner


class AveragedState(NamedTuple):
    """State of an averaged learner.

    Attributes:
        inner: the learner's own state, with iterate w_{t+1} after t rounds.
        mean_weights: w̄_t, of the shape of the inner weights; zero before the first round.
        count: `[]`, rounds seen.
    """

    inner: State
    mean_weights: chex.ArrayTree
    count: chex.Array


def averaged(learner: Learner) -> Learner:
    """The learner that plays the running average of another learner's iterates.

    Args:
        learner: any learner whose state has a field `weights` in which `predict` is linear. `norma`
            without offset is one where its memory keeps all, with random features or
            `buffer=lambda space: engine.everything(space, horizon)`.

    Returns:
        A `Learner` that steps as the given one and predicts with w̄_t, the mean of the iterates
        that were played in the rounds seen.

    Raises:
        ValueError: no learner; at `init`, where the learner's state has no `weights`.

    Example:
        >>> import noisy_jax as nj
        >>> averaged(nj.learners.uncorrected(radius=1.0, learning_rate=0.1)).copies
        1
    """
    check_learner(learner)

    def init(dim: int) -> AveragedState:
        inner = learner.init(dim)
        if not hasattr(inner, "weights"):
            raise ValueError(
                "averaged needs a learner whose state has a field 'weights' in which predictions "
                f"are linear; {type(inner).__name__} has none (norma's has, with "
                "buffer=lambda space: engine.everything(space, horizon))"
            )
        return AveragedState(inner, jax.tree.map(jnp.zeros_like, inner.weights), jnp.int32(0))

    def step(state: AveragedState, sample, key) -> AveragedState:
        count = state.count + 1
        mean = jax.tree.map(
            lambda mean, played: mean + (played - mean) / count.astype(mean.dtype),
            state.mean_weights,
            state.inner.weights,
        )
        return AveragedState(learner.step(state.inner, sample, key), mean, count)

    def predict(state: AveragedState, x):
        return learner.predict(state.inner._replace(weights=state.mean_weights), x)

    return learner._replace(init=init, step=step, predict=predict, unroll=None)
