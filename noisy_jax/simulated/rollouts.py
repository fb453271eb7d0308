"""Rollouts: one learner through one stream, under one draw of the noise."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    plain_signature,
    sound_stream,
    unrolled,
    warn_of_sizes,
)
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_clean_targets, check_loss
from noisy_jax.noise import Correlated, Flip, Noise, PerRound
from noisy_jax.noise.observation import BLOCK, observe_block, scan_in_blocks
from noisy_jax.noise.rounds import by_round, check_noise, differs
from noisy_jax.validation.arrays import check_shape, real_array
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_labels, number, whole, within
from noisy_jax.validation.values import Array, ArrayLike, concrete
from noisy_jax.varying import by_compiler, of_this_device
from noisy_jax.warning import warn


@plain_signature
@exportable
class Rollout(NamedTuple):
    """The result of T rounds, as `rollout` returns it.

    Attributes:
        state: the learner's state after the last round. It is not finished: to predict from it,
            take `learner.finish(run.state)` where `learner.finish` is not `None`.
        predictions: `[T]` (or `[T, L]` for `wrappers.paired` of L learners); number t is of the
            clean instance x_t, by the state before round t.
        diverged_at: `[]` (or `[L]`), a whole number: −1 if all predictions are finite; else the
            first round, counted from 0 in this stream, whose prediction is NaN or infinite; T if
            only the prediction of the last state, at the last instance, is.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> print(run.predictions.shape, run.diverged_at)
        (100,) -1
    """

    state: State
    predictions: jax.Array
    diverged_at: jax.Array


@jax.default_matmul_precision("highest")
def rollout(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    key: jax.Array,
    *,
    y_noise: Noise | PerRound | None = None,
    state: State | None = None,
    first_round: ArrayLike = 0,
) -> Rollout:
    """Runs a learner on a stream: predicts on each clean instance, then steps on its noisy copies.

    Round t draws V = `learner.needs.copies` noisy copies x̃_t = x_t + n_t of the instance, each with
    independent noise. This randomness depends on the key and on t only: all learners see the same
    noise under the same key, and a run continued with `state` and `first_round` equals one that was
    not interrupted.

    Call it under `jax.jit`, which compiles it once (without it, every call compiles again), and
    under `jax.vmap` over keys for many draws.

    Forward and reverse mode differentiate it, also by parameters of the noise. A Gaussian copy is
    x + √v z with z ~ N(0, 1), so that its derivative by the variance v is infinite at v = 0; with
    v = s² the derivative by s is NaN at s = 0. The derivative by the scale of another distribution,
    such as `noise.Laplace`, is finite at 0, too: see the second example.

    Args:
        learner: any learner.
        stream: T clean rounds, `[T, d]` and `[T]`. A learner with a limit (`Needs.horizon`) needs
            room for them, and for the rounds that `state` has already seen.
        noise: distribution of the noise in each copy of x, such as `noise.Gaussian(0.1)`, or
            `noise.PerRound` of T distributions. A learner built for another distribution
            (`Needs.noise`) runs with a warning.
        key: a key of `jax.random.key`. A key of another kind than JAX's default, such as "rbg", is
            replaced by a threefry key that follows from it.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound` of T of them; none by
            default. For labels −1 and +1 it is `noise.Flip`; `noise.Correlated` depends on the
            noise in x.
        state: state to start from; `learner.init(d)` by default. Where the precision has changed
            since it was made (`jax_enable_x64`), it is converted.
        first_round: number ≥ 0 of the stream's first round, for a run that is continued; 0 by
            default. Only the random draws use it; the state has its own round counter.

    Returns:
        A `Rollout`: predictions, and the last state. The state is not finished: to predict from it,
        take `learner.finish(run.state)` where `learner.finish` is not `None`, as for
        `corrected_ftrl`.

    Raises:
        ValueError: the learner has no room for the rounds, cannot take noise in y of this kind
            (`Needs.targets`, `Needs.flips`), or needs labels and the targets are none; or `state`
            is not of this learner.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = jax.jit(lambda key: nj.rollout(learner, stream, nj.noise.Gaussian(0.1), key))
        >>> print(run(jax.random.key(1)).diverged_at)
        -1
        >>> def mean_loss(scale):
        ...     run = nj.rollout(learner, stream, nj.noise.Laplace(scale), jax.random.key(1))
        ...     return jax.numpy.mean((run.predictions - stream.y) ** 2)
        >>> print(jax.numpy.isfinite(jax.jit(jax.grad(mean_loss))(0.0)))
        True
    """
    key, stream = parsed_key(key), sound_stream(stream)
    check_noise(noise, y_noise, len(stream.y))
    check_run(learner, stream, noise, y_noise)
    if concrete(number("first_round", first_round)) is not None:
        first_round = whole("first_round", np.asarray(first_round).item(), 0)
    elif not np.issubdtype(jnp.result_type(first_round), np.integer):
        raise ValueError(f"first_round must be a whole number, got {given(first_round)}")

    if state is not None:
        first = jax.eval_shape(lambda: learner.init(np.shape(stream.x)[-1]))
        if jax.tree.structure(first) != jax.tree.structure(state):
            raise ValueError(
                "state must be one of this learner, as its init(d) or an earlier run's state, got "
                f"{given(state)}"
            )
    _check_room(learner.needs.horizon, len(stream.y), state)

    def run(stream, noise, key, y_noise, state, first_round) -> Rollout:
        play, dim = _player(learner, noise, y_noise, key, first_round), stream.x.shape[-1]
        state = learner.init(dim) if state is None else in_this_precision(learner.init, state, dim)
        rounds = first_round + jnp.arange(len(stream.y))
        state, blocks = scan_in_blocks(
            play, state, _Block(stream, rounds, *_changing(noise, y_noise))
        )
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
    key: jax.Array,
    *,
    loss: Loss,
    comparator: Array,
    y_noise: Noise | PerRound | None = None,
    rounds: ArrayLike | None = None,
) -> jax.Array:
    """Runs a learner on a stream as `rollout` does, and returns its regret after the last round.

        Σ_t ℓ(f_t(x_t), y_t) − ℓ(q_t, y_t)

    f_t(x_t) are the learner's predictions on clean instances, and q_t the comparator's. It is the
    regret of one run, under one draw of the noise, the same draw as in `rollout` under the same
    key. No predictions are stored. The differences are summed in blocks, so that float32 is precise
    over long streams. For many draws use `jax.vmap` over keys, or `nj.study`.

    Args:
        learner: any learner.
        stream: T clean rounds, `[T, d]` and `[T]`.
        noise: distribution of the noise in each copy of x, or `noise.PerRound` of T distributions.
        key: a key of `jax.random.key`, for the noise and for the learner's own randomness.
        loss: ℓ, any of `losses` but a `flipped` one, and an adaptive loss as `.at(scale)`.
        comparator: q, `[T]`, predictions of the comparator, such as
            `comparators.linear_ball(stream, radius).predictions`.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound` of T of them; none by
            default.
        rounds: number of rounds to run, from 1 to T; T by default. If it is traced, one program
            serves any number.

    Returns:
        The regret, `[]`, or `[L]` for the L learners of `wrappers.paired`; NaN or infinite if the
        learner diverged.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> best = nj.comparators.linear_ball(stream, radius=1.0).predictions
        >>> found = nj.simulated.final_regret(
        ...     nj.learners.two_copies(radius=1.0), stream, nj.noise.Gaussian(0.1),
        ...     jax.random.key(1), loss=nj.losses.squared(), comparator=best)
        >>> print(found.shape)
        ()
    """
    key, stream = parsed_key(key), sound_stream(stream)
    check_noise(noise, y_noise, len(stream.y))
    check_run(learner, stream, noise, y_noise)
    check_loss(loss, flips=False)
    check_clean_targets(loss, stream.y)
    comparator = real_array("comparator", comparator)
    check_shape("comparator", comparator, np.shape(stream.y), "one prediction for each round")
    count = len(stream.y) if rounds is None else rounds
    sound = within("rounds", count, 1, len(stream.y))
    if (array := concrete(count)) is not None and array % 1:
        raise ValueError(f"rounds must be a whole number, got {given(count)}")
    regret = checked_regret(learner, stream, noise, y_noise, comparator, count, key, loss=loss)
    return jnp.where(jnp.isnan(sound), jnp.nan, regret)


@jax.default_matmul_precision("highest")
def checked_regret(
    learner: Learner,
    stream: Stream,
    noise: Noise | PerRound,
    y_noise: Noise | PerRound | None,
    comparator: Array,
    count: ArrayLike,
    key: jax.Array,
    *,
    loss: Loss,
) -> jax.Array:
    """Computes `final_regret` of the first `count` rounds, from checked arguments (`check_run`)."""
    _check_room(learner.needs.horizon, len(stream.y), None)

    def run(stream, noise, y_noise, comparator, count, key) -> jax.Array:
        play, state = _player(learner, noise, y_noise, key, 0), learner.init(stream.x.shape[-1])
        columns = jax.eval_shape(learner.predict, state, stream.x[0]).shape

        def excess(state, inputs):
            """Returns the learner's loss minus the comparator's, summed over rounds that count."""
            block, best = inputs
            state, predictions = play(state, block)
            along = (-1,) + (1,) * len(columns)
            losses = loss(predictions, jnp.reshape(block.clean.y, along))
            excesses = losses - jnp.reshape(loss(best, block.clean.y), along)
            counts = jnp.reshape(block.rounds, along) < count
            return state, jnp.sum(jnp.where(counts, excesses, 0), axis=0, dtype=float)

        def none(state, _):
            return state, of_this_device(jnp.zeros(columns))

        def excess_or_none(state, inputs):
            return jax.lax.cond(inputs[0].rounds[0] < count, excess, none, state, inputs)

        rounds = jnp.arange(len(stream.y))
        blocks = _Block(stream, rounds, *_changing(noise, y_noise)), comparator
        every = isinstance(count, int) and count == len(stream.y)
        _, sums = scan_in_blocks(excess if every else excess_or_none, state, blocks)
        return jnp.concatenate(sums).sum(axis=0)

    return by_compiler(run, stream, noise, y_noise, comparator, count, key)


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
    noise, built = by_round(y_noise)[0], learner.needs.flips
    if not built or not isinstance(noise, Flip | None):
        return
    flipped = (0.0, 0.0) if noise is None else noise.rate
    pairs: Any = [(concrete(a), concrete(b)) for a, b in zip(built, flipped, strict=True)]
    if any(rate is None for pair in pairs for rate in pair):
        return
    if not all(np.allclose(a, b, atol=1e-6) for a, b in pairs):
        corrects = "corrects for other rates" if has_flips(built) else "does not correct for it"
        are = "are not flipped" if noise is None else "are flipped"
        warn(
            f"labels {are}, and {name} {corrects}: give losses.flipped(loss, rate) the rate of "
            "y_noise=noise.Flip(rate), unless the difference is intended",
        )


def check_run(
    learner: Learner, stream: Stream, noise: Any, y_noise: Any, name: str = "learner"
) -> None:
    """Raises ValueError if a learner cannot learn from a sound stream under sound noise.

    It warns if it can, but is built for something else.
    """
    check_learner(learner, name)
    needs, of_targets = learner.needs, by_round(y_noise)[0]
    if needs.targets == "exact" and y_noise is not None:
        raise ValueError("y_noise must be None: this learner is biased if the targets are noisy")
    if isinstance(of_targets, Flip):
        check_labels("stream.y", stream.y)
        if needs.flips is False:
            raise ValueError(
                "y_noise is noise.Flip, under which this learner is biased: use a learner of "
                "labels, such as norma with losses.flipped"
            )
    if isinstance(of_targets, Correlated) and needs.targets != "any":
        raise ValueError(
            "y_noise must be independent of the noise in x for this learner; two_copies, "
            "known_covariance and the linear moments of corrected_ftrl correct for noise.Correlated"
        )
    check_targets_of(learner, "stream.y", stream.y)
    warn_of_other_noise(learner, noise, name)
    warn_of_other_flips(learner, y_noise, name)
    warn_of_sizes(learner, stream.x)


class _Block(NamedTuple):
    """Successive rounds; all rounds of a run before `scan_in_blocks` divides them.

    Attributes:
        clean: `[m, d]` instances and `[m]` targets.
        rounds: `[m]`, their numbers.
        noise: their distributions, if these change from round to round, else `None`.
        y_noise: the same for the noise in y.
    """

    clean: Stream
    rounds: jax.Array
    noise: PerRound | None
    y_noise: PerRound | None


def _changing(*noises: Any) -> list[PerRound | None]:
    """Returns distributions that change from round to round; `None` in place of constant ones."""
    return [noise if isinstance(noise, PerRound) else None for noise in noises]


def _player(learner, noise, y_noise, key, first_round):
    """Returns a function `(state, block) -> (state after it, the block's predictions)`."""
    offset = first_round % BLOCK

    def play(state, block: _Block):
        noises = [
            constant if rows is None else rows
            for rows, constant in ((block.noise, noise), (block.y_noise, y_noise))
        ]
        samples, keys = observe_block(
            key, block.rounds, offset, *block.clean, *noises, copies=learner.needs.copies
        )
        state, predictions, _ = unrolled(learner)(state, samples, block.clean.x, keys)
        return state, predictions

    return play


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
