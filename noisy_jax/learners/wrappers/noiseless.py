"""A learner that sees clean data, to measure the cost of the noise for other learners."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import (
    Learner,
    Sample,
    State,
    Stream,
    check_learner,
    check_targets_of,
    estimates_through,
    exportable,
    finish_of_inner,
    has_flips,
    has_noise,
    sound_stream,
    unrolled,
)


@exportable
class NoiselessState(NamedTuple):
    """State of a learner that is shown a clean stream.

    Attributes:
        inner: the learner's own state.
        round: `[]`, number of rounds seen.
    """

    inner: State
    round: jax.Array


def noiseless(learner: Learner, stream: Stream) -> Learner:
    """Returns the given learner, run on the clean data of a stream instead of noisy copies.

    In round t it steps on the clean (x_t, y_t): each of its copies is x_t, and `sample.cov` is
    zero. Its loss is the loss of learning without noise, and the loss of the same learner on noisy
    copies minus this one is the cost of the noise. Unless the learner draws random numbers itself,
    `vmap` over keys runs it only once.

    Args:
        learner: one that is right on clean data, such as `uncorrected`, `two_copies` or
            `known_covariance`. A learner that is built for noise of a variance above zero, as with
            a world, or for flipped labels raises ValueError.
        stream: the clean rounds of the run, from round 0 on. It may be longer than the run; its
            length becomes the horizon, so that `rollout` raises ValueError for more rounds.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.learners.uncorrected(radius=1.0)
        >>> both = nj.wrappers.paired(learner, nj.wrappers.noiseless(learner, stream))
        >>> run = nj.rollout(both, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> losses = ((run.predictions - stream.y[:, None]) ** 2).mean(axis=0)
        >>> print([f"{loss:.2f}" for loss in losses])
        ['0.10', '0.00']
    """
    check_learner(learner)
    stream = sound_stream(stream)
    if has_noise(learner.needs.noise):
        raise ValueError(
            f"noiseless needs a learner that is right on clean data, got one built for "
            f"{learner.needs.noise}: build it for noise.Gaussian(0.0), or use uncorrected_kernel"
        )

    if has_flips(learner.needs.flips):
        raise ValueError(
            "noiseless needs a learner that is right on clean data, got one with a flipped loss: "
            "give it the loss itself"
        )
    check_targets_of(learner, "stream.y", stream.y)

    def clean(samples: Sample, rounds: jax.Array) -> Sample:
        # A run that is longer than the stream ends in NaN.
        x, y = (jnp.take(jnp.asarray(a), rounds, axis=0, mode="fill") for a in stream)
        copies = jnp.broadcast_to(x[..., None, :], jnp.shape(samples.x))
        return Sample(copies, y, jnp.zeros(rounds.shape))

    def init(dim: int) -> NoiselessState:
        return NoiselessState(learner.init(dim), jnp.int32(0))

    def step(state: NoiselessState, sample: Sample, key: jax.Array) -> NoiselessState:
        inner = learner.step(state.inner, clean(sample, state.round), key)
        return NoiselessState(inner, state.round + 1)

    def predict(state: NoiselessState, x: jax.Array) -> jax.Array:
        return learner.predict(state.inner, x)

    def unroll(state: NoiselessState, samples: Sample, x: jax.Array, keys: jax.Array):
        rounds = state.round + jnp.arange(len(x), dtype=jnp.int32)
        inner, *outputs = unrolled(learner)(state.inner, clean(samples, rounds), x, keys)
        return NoiselessState(inner, state.round + len(x)), *outputs

    def on_clean_data(state: NoiselessState, sample: Sample, key: jax.Array):
        return state.inner, clean(sample, state.round), key

    weights, with_weights = learner.weights, learner.with_weights

    def replaced(state: NoiselessState, new) -> NoiselessState:
        change: Any = with_weights
        return state._replace(inner=change(state.inner, new))

    rooms = [room for room in (learner.needs.horizon, np.shape(stream.y)[0]) if room is not None]
    needs = learner.needs._replace(horizon=min(rooms), noise=None, targets="any", flips=None)
    return learner._replace(
        init=init,
        step=step,
        predict=predict,
        unroll=unroll,
        needs=needs,
        clean_estimates=estimates_through(learner, on_clean_data),
        finish=finish_of_inner(learner),
        weights=weights and (lambda state: weights(state.inner)),
        with_weights=with_weights and replaced,
    )
