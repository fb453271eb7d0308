"""A learner that sees clean data: the reference for what noise costs."""

from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import (
    Learner,
    Sample,
    State,
    Stream,
    check_is_stream,
    check_learner,
    unrolled,
)
from noisy_jax.noise import Noise
from noisy_jax.validation import concrete


class NoiselessState(NamedTuple):
    """State of a learner that is shown a clean stream.

    Attributes:
        inner: the learner's own state.
        round: `[]`, rounds seen.
    """

    inner: State
    round: chex.Array


def noiseless(learner: Learner, stream: Stream) -> Learner:
    """The learner that is shown the clean data of a stream, whatever the noise.

    Its regret is what the learner would pay without noise; what others pay beyond it is the price
    of the noise. Unless the learner draws numbers of its own, nothing in it depends on the key, so
    that `vmap` over keys runs it once for all of them.

    Args:
        learner: any learner that is right under noise of covariance zero, which it is told. All its
            copies are the clean instance.
        stream: the clean rounds of the run, from round 0 on; it may go on for longer.

    Returns:
        A `Learner` with room for the rounds of the stream at most.

    Raises:
        ValueError: what is no learner or stream, or a learner built for noise, such as those in the
            worlds of a noise distribution: it would correct for noise that is not there.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = noiseless(nj.learners.uncorrected(radius=1.0, learning_rate=0.05), stream)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).predictions.shape
        (100,)
    """
    check_learner(learner)
    check_is_stream(stream)
    if has_noise(learner.noise):
        raise ValueError(
            f"noiseless needs a learner that is right on clean data, got one built for "
            f"{learner.noise}: build it for noise.Gaussian(0.0), or take uncorrected_kernel"
        )

    def clean(samples: Sample, rounds: chex.Array) -> Sample:
        # A run that outlives the stream ends in NaN.
        x, y = (jnp.take(jnp.asarray(a), rounds, axis=0, mode="fill") for a in stream)
        copies = jnp.broadcast_to(x[..., None, :], samples.x.shape)
        return Sample(copies, y, jnp.zeros(rounds.shape))

    def init(dim: int) -> NoiselessState:
        return NoiselessState(learner.init(dim), jnp.int32(0))

    def step(state: NoiselessState, sample: Sample, key: chex.PRNGKey) -> NoiselessState:
        inner = learner.step(state.inner, clean(sample, state.round), key)
        return NoiselessState(inner, state.round + 1)

    def predict(state: NoiselessState, x: chex.Array) -> chex.Array:
        return learner.predict(state.inner, x)

    def unroll(state: NoiselessState, samples: Sample, x: chex.Array, keys: chex.PRNGKey):
        rounds = state.round + jnp.arange(len(x), dtype=jnp.int32)
        inner, predictions = unrolled(learner)(state.inner, clean(samples, rounds), x, keys)
        return NoiselessState(inner, state.round + len(x)), predictions

    rooms = [room for room in (learner.horizon, len(stream.y)) if room is not None]
    return learner._replace(
        init=init,
        step=step,
        predict=predict,
        unroll=unroll,
        horizon=min(rooms),
        exact_targets=False,
    )


def has_noise(distribution: Noise | None) -> bool:
    """Whether a learner's distribution is one of noise: its covariance is known not to be zero."""
    cov = None if distribution is None else concrete(distribution.cov)
    return cov is not None and bool(np.any(cov != 0))
