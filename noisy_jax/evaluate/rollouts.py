"""Rollouts: one learner through one stream, under one draw of the noise."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, State, Stream, check_is_stream, check_learner, unrolled
from noisy_jax.losses import Loss
from noisy_jax.noise import Noise, PerRound, observe
from noisy_jax.noise.distribution import check_noise
from noisy_jax.validation import check_at_least, check_key, check_one_number, concrete

BLOCK = 128
"""Rounds whose noise is drawn at once: it bounds memory and changes no number."""


class Rollout(NamedTuple):
    """What came of T rounds.

    Attributes:
        state: the learner's state after the last round.
        predictions: `[T]` (or `[T, L]` for `wrappers.paired`), made on clean instances before each
            step.
        diverged_at: `[]` (or `[L]`), the first round whose prediction is not finite, counted from
            the first of this stream; T where only the final state is not, −1 where all is finite.
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

    Call it under `jax.jit`, which compiles it once (bare, every call compiles anew), and under
    `jax.vmap` over keys for many draws.

    Args:
        learner: any learner.
        stream: T clean rounds; `[T, d]` and `[T]`.
        noise: distribution of the noise in each copy of x, or `noise.PerRound` of T distributions. It is not compared
            with the one that the learner was built for (`Learner.noise`).
        key: a key of `jax.random.key`.
        y_noise: scalar distribution of the noise in y; none by default.
        state: where to start; `learner.init(d)` by default.
        first_round: number of the stream's first round, for a run that is continued; by it the
            keys are numbered, while `state` itself counts the rounds that it holds.

    Returns:
        A `Rollout`.

    Raises:
        ValueError: what is no learner, stream, noise distribution or key; shapes of stream, noise and state
            that do not match, NaN or infinity in a stream, or more rounds, with those that a
            concrete `state` counts in a field `round`, than the learner's horizon.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=0.05)
        >>> run = jax.jit(lambda key: rollout(learner, stream, nj.noise.Gaussian(0.1), key))
        >>> print(run(jax.random.key(1)).diverged_at)
        -1
    """
    state, blocks = _through_blocks(
        learner, stream, noise, key, lambda predictions, _: predictions,
        y_noise=y_noise, state=state, first_round=first_round,
    )  # fmt: skip
    predictions = jnp.concatenate([p.reshape(-1, *p.shape[2:]) for p in blocks])
    after = learner.predict(state, stream.x[-1])
    broken = ~jnp.isfinite(jnp.concatenate([predictions, after[None]]))
    diverged_at = jnp.where(broken.any(axis=0), jnp.argmax(broken, axis=0), -1)
    return Rollout(state, predictions, diverged_at)


@jax.default_matmul_precision("highest")
def final_regret(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
    *,
    loss: Loss,
    comparator: chex.Array,
    y_noise: Noise | None = None,
) -> chex.Array:
    """Regret after the last round, of the rollout under the same key, with predictions not kept.

    Differences of losses are summed, not sums subtracted, and in blocks, so that float32 holds the
    result over long streams.

    Args:
        learner: any learner.
        stream: T clean rounds.
        noise: as in `rollout`.
        key: as in `rollout`.
        loss: by which predictions on clean data are judged.
        comparator: `[T]` predictions of the comparator.
        y_noise: as in `rollout`.

    Returns:
        `[]` (or `[L]` for `wrappers.paired`); NaN or infinite where the learner diverged.

    Raises:
        ValueError: shapes of stream and noise that do not match.
    """

    def excess(predictions, block):
        clean, best = block
        columns = (-1,) + (1,) * (predictions.ndim - 1)
        own = loss(predictions, jnp.reshape(clean.y, columns))
        return jnp.sum(own - jnp.reshape(loss(best, clean.y), columns), axis=0)

    _, blocks = _through_blocks(
        learner, stream, noise, key, excess, y_noise=y_noise, comparator=comparator
    )
    return jnp.concatenate(blocks).sum(axis=0)


def _through_blocks(
    learner, stream, noise, key, judge, *, y_noise, state=None, first_round=0, comparator=None
):
    """Runs the rounds in blocks; `judge(predictions, (clean, comparator))` makes the output of one.

    Returns the last state and a list of arrays with a leading axis of blocks: one for the whole
    blocks, one for the rest.
    """
    check_learner(learner)
    check_is_stream(stream)
    check_noise(noise, y_noise, len(stream.y))
    check_key(key)
    horizon, dim = stream.x.shape
    _check_rounds(first_round, horizon, learner.horizon, state)
    rounds = first_round + jnp.arange(horizon)
    per_round = isinstance(noise, PerRound)

    def block(state, inputs):
        (clean, best), rounds, distributions = inputs
        keys = jax.vmap(lambda t: jax.random.split(jax.random.fold_in(key, t)))(rounds)
        samples = jax.vmap(
            lambda key, x, y, distribution: observe(
                key, x, y, distribution, copies=learner.copies, y_noise=y_noise
            ),
            in_axes=(0, 0, 0, 0 if per_round else None),
        )(keys[:, 0], clean.x, clean.y, distributions if per_round else noise)
        state, predictions = unrolled(learner)(state, samples, clean.x, keys[:, 1])
        return state, judge(predictions, (clean, best))

    state = learner.init(dim) if state is None else state
    inputs = ((stream, comparator), rounds, noise.distribution if per_round else None)
    whole = horizon - horizon % BLOCK
    outputs = []
    if whole:
        blocks = jax.tree.map(lambda a: a[:whole].reshape(-1, BLOCK, *a.shape[1:]), inputs)
        state, output = jax.lax.scan(block, state, blocks)
        outputs.append(output)
    if whole < horizon:
        state, output = block(state, jax.tree.map(lambda a: a[whole:], inputs))
        outputs.append(output[None])
    return state, outputs


def _check_rounds(first_round, horizon, room, state) -> None:
    """Refuses a first round that is none, and runs that outlive the learner."""
    check_one_number("first_round", first_round)
    first = concrete(first_round)
    if first is not None:
        check_at_least("first_round", first.item(), 0, "the number of rounds before")
    # Not every state counts its rounds; arrays have a method of that name.
    count = concrete(state.round) if "round" in getattr(state, "_fields", ()) else None
    played = 0 if count is None else count.item()
    if room is not None and played + horizon > room:
        before = f" after {played} others" if played else ""
        raise ValueError(
            f"the stream has {horizon} rounds{before}, but the learner has room for {room}: build "
            f"it with horizon={played + horizon}"
        )
