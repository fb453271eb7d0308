"""Rollouts: one learner through one stream, under one draw of the noise."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, State, Stream, unrolled
from noisy_jax.noise import Noise, PerRound, observe

BLOCK = 512
"""Rounds whose noise is drawn at once: it bounds memory and changes no number."""


class Rollout(NamedTuple):
    """What came of T rounds.

    Attributes:
        state: the learner's state after the last round.
        predictions: `[T]` (or `[T, L]` for `learners.paired`), made on clean instances before each
            step.
        diverged_at: `[]` (or `[L]`), the first round whose prediction is not finite, T where only
            the final state is not, −1 where all is finite.
    """

    state: State
    predictions: chex.Array
    diverged_at: chex.Array


@jax.default_matmul_precision("highest")
def rollout(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
    *,
    y_noise: Noise | None = None,
    state: State | None = None,
    first_round: chex.Numeric = 0,
) -> Rollout:
    """Predicts on the clean instance, then steps on its noisy copies, for each round of a stream.

    The randomness of round t is `fold_in(key, t)`: all learners see the same noise under the same
    key, and a run continued with `state` and `first_round` equals one that was not interrupted.

    Trace it under `jax.jit` to compile it once, and under `jax.vmap` over keys for many draws.

    Args:
        learner: any learner.
        stream: T clean rounds; `[T, d]` and `[T]`.
        noise: law of the noise in each copy of x, or `noise.PerRound` of T laws.
        key: a key of `jax.random.key`.
        y_noise: scalar law of the noise in y; none by default.
        state: where to start; `learner.init(d)` by default.
        first_round: number of the stream's first round, for a run that is continued.

    Returns:
        A `Rollout`.

    Raises:
        ValueError: shapes of stream and noise that do not match.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=0.05)
        >>> print(rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).diverged_at)
        -1
    """
    _check(stream, noise)
    horizon, dim = stream.x.shape
    rounds = first_round + jnp.arange(horizon)
    laws, law_axis = (noise.law, 0) if isinstance(noise, PerRound) else (None, None)

    def block(state, inputs):
        x, y, rounds, laws = inputs
        noise_keys, step_keys = jnp.moveaxis(
            jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t)))(rounds), 1, 0
        )
        samples = jax.vmap(
            lambda key, x, y, law: observe(
                key, x, y, law, views=learner.views, y_noise=y_noise
            ),
            in_axes=(0, 0, 0, law_axis),
        )(noise_keys, x, y, noise if laws is None else laws)
        return unrolled(learner)(state, samples, x, step_keys)

    state = learner.init(dim) if state is None else state
    inputs = (stream.x, stream.y, rounds, laws)
    whole = horizon - horizon % BLOCK
    parts = []
    if whole:
        blocks = jax.tree.map(lambda a: a[:whole].reshape(-1, BLOCK, *a.shape[1:]), inputs)
        state, predictions = jax.lax.scan(block, state, blocks)
        parts.append(predictions.reshape(whole, *predictions.shape[2:]))
    if whole < horizon:
        state, predictions = block(state, jax.tree.map(lambda a: a[whole:], inputs))
        parts.append(predictions)
    predictions = jnp.concatenate(parts)
    after = learner.predict(state, stream.x[-1])
    broken = ~jnp.isfinite(jnp.concatenate([predictions, after[None]]))
    diverged_at = jnp.where(broken.any(axis=0), jnp.argmax(broken, axis=0), -1)
    return Rollout(state, predictions, diverged_at)


def _check(stream: Stream, noise: Noise | PerRound) -> None:
    x, y = jnp.shape(stream.x), jnp.shape(stream.y)
    if len(x) != 2 or len(y) != 1 or x[0] != y[0] or 0 in x:
        raise ValueError(
            "a stream has x [T, d] and y [T] with the same T >= 1, "
            f"got x {list(x)} and y {list(y)}; batch streams with jax.vmap"
        )
    if isinstance(noise, PerRound):
        lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(noise.law)}
        if lengths != {(x[0],)}:
            raise ValueError(
                f"noise.PerRound needs every parameter stacked along the {x[0]} rounds of the "
                f"stream, got shapes {[jnp.shape(leaf) for leaf in jax.tree.leaves(noise.law)]}; "
                "build it as PerRound(jax.vmap(Gaussian)(covs))"
            )
