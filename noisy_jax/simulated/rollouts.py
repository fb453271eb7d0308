"""Rollouts: one learner through one stream, under one draw of the noise."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import (
    Learner,
    State,
    Stream,
    check_learner,
    check_targets_of,
    exportable,
    has_flips,
    in_this_precision,
    sound_stream,
    unrolled,
    warn_of_sizes,
)
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.noise import Correlated, Flip, Noise, PerRound
from noisy_jax.noise.observation import BLOCK, observe_block, scan_in_blocks
from noisy_jax.noise.rounds import by_round, check_noise, differs
from noisy_jax.validation import (
    check_labels,
    check_shape,
    concrete,
    number,
    parsed_key,
    whole,
    within,
)
from noisy_jax.varying import by_compiler, zeros_like
from noisy_jax.warning import warn


@exportable
class Rollout(NamedTuple):
    """The result of T rounds.

    Attributes:
        state: the learner's state after the last round.
        predictions: `[T]` (or `[T, L]` for `wrappers.paired`), made on clean instances before each
            step.
        diverged_at: `[]` (or `[L]`), the first round of this stream whose prediction is not
            finite; T if only predictions of the last state are not, −1 if all are finite.
    """

    state: State
    predictions: jax.Array
    diverged_at: jax.Array


@jax.default_matmul_precision("highest")
def rollout(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
    *,
    y_noise: Noise | PerRound | None = None,
    state: State | None = None,
    first_round: chex.Numeric = 0,
) -> Rollout:
    """In each round, predicts on the clean instance, then steps on its noisy copies.

    The randomness of round t depends on the key and on t only: all learners see the same noise
    under the same key, and a run continued with `state` and `first_round` equals one that was not
    interrupted.

    Call it under `jax.jit`, which compiles it once (without it, every call compiles again), and
    under `jax.vmap` over keys for many draws.

    Forward and reverse mode differentiate it, also by parameters of the noise. A Gaussian copy is
    x + √v n, so that its derivative by the variance v is infinite at v = 0, and NaN by s at v = s².
    A distribution whose parameter is the scale has a derivative there: see the second example.

    Args:
        learner: any learner.
        stream: T clean rounds, `[T, d]` and `[T]`; at most the learner's horizon, together with the
            rounds that `state` counts.
        noise: distribution of the noise in each copy of x, or `noise.PerRound` of T distributions.
            A learner built for another distribution (`Needs.noise`) runs with a warning.
        key: a key of `jax.random.key`. One of another kind than JAX's default, such as "rbg", gives
            way to a threefry key that follows from it.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound` of T of them; none by
            default.
        state: where to start; `learner.init(d)` by default. Where the precision has changed since
            it was made (`jax_enable_x64`), it is converted.
        first_round: number of the stream's first round, for a run that is continued. Only the
            random keys use it; the state has its own round counter.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = jax.jit(lambda key: rollout(learner, stream, nj.noise.Gaussian(0.1), key))
        >>> print(run(jax.random.key(1)).diverged_at)
        -1
        >>> @nj.noise.register_distribution
        ... class Scaled(nj.noise.Noise):
        ...     scale: jax.Array | float
        ...     mean = 0.0
        ...     cov = property(lambda self: self.scale**2)
        ...     def centred(self, key, x):
        ...         return x + self.scale * jax.random.normal(key, x.shape)
        >>> @jax.jit
        ... def mean_loss(scale):
        ...     run = rollout(learner, stream, Scaled(scale), jax.random.key(1))
        ...     return jax.numpy.mean((run.predictions - stream.y) ** 2)
        >>> print(jax.numpy.isfinite(jax.grad(mean_loss)(0.0)))
        True
    """
    key = parsed_key(key)
    stream = _checked(learner, stream, noise, y_noise)
    if concrete(number("first_round", first_round)) is not None:
        first_round = whole("first_round", np.asarray(first_round).item(), 0)

    def run(stream, noise, key, y_noise, state, first_round) -> Rollout:
        state, blocks = _through_blocks(
            learner, stream, noise, key, lambda predictions, _: predictions,
            y_noise=y_noise, state=state, first_round=first_round,
        )  # fmt: skip
        predictions = jnp.concatenate([p.reshape(-1, *p.shape[2:]) for p in blocks])
        after = jnp.asarray(learner.predict(state, jnp.asarray(stream.x)[-1]))
        broken = ~jnp.isfinite(jnp.concatenate([predictions, after[None]]))
        diverged_at = jnp.where(broken.any(axis=0), jnp.argmax(broken, axis=0), -1)
        return Rollout(state, predictions, diverged_at)

    return by_compiler(run, stream, noise, key, y_noise, state, first_round)


@jax.default_matmul_precision("highest")
def final_regret(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    key: chex.PRNGKey,
    *,
    loss: Loss,
    comparator: chex.Array,
    y_noise: Noise | PerRound | None = None,
    rounds: chex.Numeric | None = None,
) -> jax.Array:
    """Regret after the last round of the rollout under the same key, without its predictions.

    The differences of losses on clean data are summed in blocks, so that float32 is precise over
    long streams. The run goes through 1 to T `rounds` of the stream, by default all; if they are
    traced, one program serves any number. `comparator` are predictions `[T]`; the other arguments
    are those of `rollout`. The regret, `[]` or `[L]` for `wrappers.paired`, is NaN or infinite if
    the learner diverged.
    """
    key = parsed_key(key)
    stream = _checked(learner, stream, noise, y_noise)
    check_loss(loss, flips=False)
    check_shape("comparator", comparator, np.shape(stream.y), "one prediction for each round")
    count = len(stream.y) if rounds is None else rounds
    sound = within("rounds", count, 1, len(stream.y))

    def run(stream, noise, key, y_noise, comparator, count, rounds, sound) -> jax.Array:
        def excess(predictions, block):
            (clean, best), t = block
            columns = (-1,) + (1,) * (predictions.ndim - 1)
            own = loss(predictions, jnp.reshape(clean.y, columns))
            each = own - jnp.reshape(loss(best, clean.y), columns)
            return jnp.sum(jnp.where(t.reshape(columns) < count, each, 0), axis=0)

        _, blocks = _through_blocks(
            learner, stream, noise, key, excess,
            y_noise=y_noise, comparator=comparator, count=rounds,
        )  # fmt: skip
        regret = jnp.concatenate(blocks).sum(axis=0)
        return jnp.where(jnp.isnan(sound), jnp.nan, regret)

    return by_compiler(run, stream, noise, key, y_noise, comparator, count, rounds, sound)


def warn_of_other_noise(learner: Learner, noise: Noise | PerRound, name: str = "learner") -> None:
    """Warns if a learner was built for another noise than it runs under, if both are concrete.

    It does not warn for `wrappers.assuming`, where the difference is intended.
    """
    built = learner.needs.noise
    if built is None or isinstance(built, Assumed):
        return
    # The class alone, of a learner that reads the covariance of that noise from samples.
    other = isinstance(built, type) and not isinstance(by_round(noise)[0], built)
    if other or (not isinstance(built, type) and differs(built, noise)):
        warn(
            f"{name} was built for other noise than it runs under, and does not correct for it: "
            f"build it for this {type(noise).__name__} noise, unless the difference is intended",
        )


def warn_of_other_flips(learner: Learner, y_noise: Any, name: str = "learner") -> None:
    """Warns if labels are flipped with other probabilities than a learner corrects for.

    It does not if either is traced, or flips have no effect on the learner.
    """
    noise, (built, seen) = by_round(y_noise)[0], [learner.needs.flips, (0.0, 0.0)]
    if not built or not isinstance(noise, Flip | None):
        return
    seen = seen if noise is None else noise.rate
    pairs = [[concrete(rate) for rate in rates] for rates in (built, seen)]
    if any(rate is None for rates in pairs for rate in rates):
        return
    if not all(np.allclose(own, other, atol=1e-6) for own, other in zip(*pairs, strict=True)):
        corrects = "corrects for other rates" if has_flips(built) else "does not correct for it"
        flipped = "are not flipped" if noise is None else "are flipped"
        warn(
            f"labels {flipped}, and {name} {corrects}: give losses.flipped(loss, rate) the rate of "
            "y_noise=noise.Flip(rate), unless the difference is intended",
        )


def _checked(learner, stream, noise, y_noise) -> Stream:
    """The stream, of arrays, if everything fits together."""
    check_learner(learner)
    stream = sound_stream(stream)
    check_noise(noise, y_noise, len(stream.y))
    if learner.needs.targets == "exact" and y_noise is not None:
        raise ValueError("y_noise must be None: this learner is biased if the targets are noisy")
    if isinstance(by_round(y_noise)[0], Flip):
        check_labels("stream.y", stream.y)
        if learner.needs.flips is False:
            raise ValueError(
                "y_noise is noise.Flip, under which this learner is biased: use a learner of "
                "labels, such as norma with losses.flipped"
            )
    if isinstance(by_round(y_noise)[0], Correlated) and learner.needs.targets != "any":
        raise ValueError(
            "y_noise must be independent of the noise in x for this learner; two_copies, "
            "known_covariance and the linear moments of corrected_ftrl correct for noise.Correlated"
        )
    check_targets_of(learner, "stream.y", stream.y)
    warn_of_other_noise(learner, noise)
    warn_of_other_flips(learner, y_noise)
    warn_of_sizes(learner, stream.x)
    return stream


def _through_blocks(
    learner,
    stream,
    noise,
    key,
    judge,
    *,
    y_noise,
    state=None,
    first_round: Any = 0,
    comparator=None,
    count=None,
):
    """Runs the rounds in blocks, whose output is `judge(predictions, ((clean, comparator), t))`.

    Blocks without any of the first `count` rounds are left out: their output is zero. Returns as
    `scan_in_blocks`.
    """
    horizon, dim = stream.x.shape
    _check_room(learner.needs.horizon, horizon, state)
    rounds = first_round + jnp.arange(horizon)
    offset = first_round % BLOCK
    changing = [one if isinstance(one, PerRound) else None for one in (noise, y_noise)]

    def block(state, inputs):
        told, rounds, changing = inputs
        clean, _ = told
        samples, keys = observe_block(
            key, rounds, offset, clean.x, clean.y, changing[0] or noise, changing[1] or y_noise,
            copies=learner.needs.copies,
        )  # fmt: skip
        state, predictions, _ = unrolled(learner)(state, samples, clean.x, keys)
        return state, judge(predictions, (told, rounds))

    def block_or_none(state, inputs):
        own = jax.jit(block)  # traced once for both
        zero = zeros_like(jax.eval_shape(own, state, inputs)[1])
        return jax.lax.cond(
            inputs[1][0] < count, own, lambda state, _: (state, zero), state, inputs
        )

    state = learner.init(dim) if state is None else in_this_precision(learner.init, state, dim)
    inputs = ((stream, comparator), rounds, changing)
    return scan_in_blocks(block if count is None else block_or_none, state, inputs)


def _check_room(room, horizon, state) -> None:
    """Raises ValueError if a run has more rounds than the learner has room for."""
    # Not every state counts its rounds, and arrays have a method of that name.
    count = concrete(state.round) if "round" in getattr(state, "_fields", ()) else None
    played = 0 if count is None else count.item()
    if room is not None and played + horizon > room:
        before = f" after {played} others" if played else ""
        raise ValueError(
            f"the stream has {horizon} rounds{before}, but the learner has room for {room}: build "
            f"it with horizon={played + horizon}"
        )
