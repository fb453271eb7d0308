"""The contract of the library: what a round shows, and what a learner is.

Letters used for shapes everywhere: T rounds, d dimensions, V copies (independent noisy copies of one
example), S seeds. All functions are unbatched; batch them with `jax.vmap`.

The path of the data in round t::

    clean (x_t, y_t) ──► noise ──► Sample ──► Learner.step ──► state
           └──────────► Learner.predict(state, x_t) ──► loss on clean data

Clean data reach `predict` only, to be judged; `step` has no argument that could carry them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import chex
import jax

from noisy_jax.validation import check_axes, check_copies_given, check_stream, given

State: TypeAlias = Any
"""What a learner carries between rounds: a NamedTuple of arrays of fixed shapes, without a key."""


class Stream(NamedTuple):
    """Clean examples, chosen in advance by the adversary.

    Attributes:
        x: `[T, d]` instances.
        y: `[T]` targets.
    """

    x: chex.Array
    y: chex.Array


class Sample(NamedTuple):
    """All that one round shows a learner.

    Attributes:
        x: `[V, d]` independent noisy copies of the instance; known noise means are subtracted.
        y: `[]` noisy target.
        cov: covariance Σ_t of the noise in each copy, as `[]` (σ² on every coordinate), `[d]`
            (diagonal) or `[d, d]`; `None` where nothing is known.
    """

    x: chex.Array
    y: chex.Array
    cov: chex.Array | None = None


class Learner(NamedTuple):
    """One online learning algorithm as pure functions of one round.

    Rounds go `predict`, then `step`. Every callable can be traced by `jit`, `scan` and `vmap`, and
    the hyper-parameters inside a learner may themselves be tracers.

    Attributes:
        init: `(dim) -> state`, the state before round 0.
        step: `(state, sample, key) -> state`, one round. The key is for the learner's own
            randomness; a learner without any ignores it.
        predict: `(state, x[..., d]) -> [...]`, predictions on clean instances.
        copies: how many independent noisy copies of the instance `step` reads.
        unroll: optional faster way through many rounds, `(state, samples, x[T, d], keys[T]) ->
            (state, predictions[T])` with every leaf of `samples` stacked along a leading axis T.
            It gives the numbers of predict-then-step round by round, to rounding.
        horizon: how many rounds the state has room for; `None` for any number.
        noise: distribution of the noise that the copies are taken to have; `None` where it plays no part. It
            is not compared with a rollout's: under another distribution the learner is one that errs.
        exact_targets: whether noise in the targets would make the learner biased.
    """

    init: Callable[[int], State]
    step: Callable[[State, Sample, chex.PRNGKey], State]
    predict: Callable[[State, chex.Array], chex.Array]
    copies: int
    unroll: Callable[[State, Sample, chex.Array, chex.PRNGKey], tuple[State, chex.Array]] | None = (
        None
    )
    horizon: int | None = None
    noise: Any = None
    exact_targets: bool = False


def unrolled(learner: Learner) -> Callable[..., tuple[State, chex.Array]]:
    """The learner's way through many rounds: its own `unroll`, or a scan of predict-then-step.

    Args:
        learner: any learner.

    Returns:
        `(state, samples, x[T, d], keys[T]) -> (state, predictions[T])`, as `Learner.unroll`.
    """
    if learner.unroll is not None:
        return learner.unroll

    def unroll(state, samples, x, keys):
        def one_round(state, inputs):
            sample, x, key = inputs
            prediction = learner.predict(state, x)
            return learner.step(state, sample, key), prediction

        return jax.lax.scan(one_round, state, (samples, x, keys))

    return unroll


def check_learner(learner: Learner, name: str = "learner") -> None:
    """Refuses what is no `Learner`, such as the function that makes one."""
    if not isinstance(learner, Learner):
        raise ValueError(
            f"{name} must be a Learner, as learners.two_copies(radius=…, learning_rate=…) builds "
            f"it, got {given(learner)}"
        )


def check_is_stream(stream: Stream) -> None:
    """Refuses what is no `Stream`, and one of wrong shapes or numbers (`check_stream`)."""
    if not isinstance(stream, Stream):
        raise ValueError(
            f"stream must be a Stream, got {given(stream)}: streams.from_arrays(x, y) makes one"
        )
    check_stream(*stream)


def check_sample(sample: Sample, copies: int) -> None:
    """Refuses samples of several rounds, and those of fewer copies than the learner reads."""
    check_axes("sample.x", sample.x, "[V, d]", ": V copies of one instance")
    check_axes("sample.y", sample.y, "[]", "; batch rounds with jax.vmap")
    check_copies_given(copies, sample.x.shape[0])
