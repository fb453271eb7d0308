"""What a study compiles: the runs of its learners, in one program for all horizons if possible."""

import functools
from collections.abc import Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream, check_learner
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.losses import Loss
from noisy_jax.noise import Noise
from noisy_jax.simulated.rollouts import BLOCK, final_regret
from noisy_jax.simulated.tuning import MakeLearner
from noisy_jax.validation import given


class Always:
    """The same learner at each horizon, without a guarantee before the run."""

    def __init__(self, learner: Learner):
        self.learner = learner

    def __call__(self, horizon: int) -> tuple[Learner, None]:
        """The learner."""
        return self.learner, None

    def __eq__(self, other) -> bool:  # so that another study with the learner compiles nothing
        return isinstance(other, Always) and other.learner is self.learner

    def __hash__(self) -> int:
        return id(self.learner)

    def __repr__(self) -> str:
        return (
            f"a learner of {self.learner.needs.copies} copies, noise = {self.learner.needs.noise!r}"
        )


class Runs:
    """The runs of one seed, for each horizon of a study.

    Learners that are the same at all horizons, but for the rate and the room of `tuned` and
    `tuned_kernel_learner`, share one program: it goes through the longest stream as far as it is
    told.
    """

    def __init__(
        self,
        makers: tuple[MakeLearner, ...],
        horizons: Sequence[int],
        loss: Loss,
        data: tuple[Stream, Any, Any],
    ):
        self._makers, self._loss, self._data = makers, loss, data
        self._first, self._size = horizons[0], -(-horizons[-1] // BLOCK) * BLOCK
        self._shared = all(_shareable(makers, horizon, horizons[0]) for horizon in horizons)
        if self._shared:
            self._data = _first_of(horizons[-1], data, self._size)

    def at(self, horizon: int, best: chex.Array) -> jax.tree_util.Partial:
        """The run `key -> (regret, difference, diverged)`, against the comparator's predictions."""
        if self._shared:
            program = _program(self._makers, self._first, self._size, self._loss)
            rounds = np.int32(horizon)
            data = *self._data, first(horizon, best, self._size)
        else:
            program, rounds = _program(self._makers, horizon, horizon, self._loss), None
            data = *_first_of(horizon, self._data), best
        return jax.tree_util.Partial(program, *data, rounds, _rates(self._makers, horizon))


def first(rounds: int, tree, size: int | None = None):
    """The first rounds of a stream or of noise by rounds; the last is repeated up to `size`."""
    kept = np.minimum(np.arange(size or rounds), rounds - 1)
    # On the host, where nothing is compiled for each number of rounds.
    return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[kept], tree))


def _first_of(rounds, data, size=None):
    return [one if isinstance(one, Noise | None) else first(rounds, one, size) for one in data]


def _shareable(makers, horizon, other) -> bool:
    """Whether learners differ from those of another horizon only in `_rates`."""
    learners = zip(made(makers, horizon), made(makers, other), _rates(makers, horizon), strict=True)
    return all(
        rate is not None or (a.needs.horizon is None and a is b)
        for (a, _), (b, _), rate in learners
    )


def _rates(makers, horizon) -> list[Any]:
    """The rates of the learners in which only the rate is tuned, `None` for others."""
    return [
        guarantee.learning_rate if getattr(make, "only_rate_differs", False) else None
        for make, (_, guarantee) in zip(makers, made(makers, horizon), strict=True)
    ]


@functools.lru_cache(maxsize=64)
def made(makers: tuple[MakeLearner, ...], horizon: int) -> list[tuple[Learner, Any]]:
    """Learners and guarantees, made once and outside every trace: makers may look at numbers."""
    made = [make(horizon) for make in makers]
    for pair in made:
        if isinstance(pair, Learner) or not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                "learners must be functions horizon -> (learner, guarantee), with None if there is "
                f"no guarantee, but one returned {given(pair)}"
            )
        learner, guarantee = pair
        check_learner(learner, "the first of (learner, guarantee)")
        if not (guarantee is None or hasattr(guarantee, "regret")):
            raise ValueError(f"guarantee must be one of bounds, or None, got {given(guarantee)}")
    return made


@functools.lru_cache(maxsize=64)
def _program(makers: tuple[Any, ...], horizon: int, room: int, loss: Loss):
    """The run of one seed; cached, so that JAX compiles it once for several studies.

    Learners that are rebuilt at a rate have room for `room` rounds.
    """
    pairs = made(makers, horizon)

    def run(stream, noise, y_noise, best, rounds, rates, key):
        learner = paired(
            *(
                learner if rate is None else make.at(rate, room)
                for make, (learner, _), rate in zip(makers, pairs, rates, strict=True)
            )
        )
        regret: Any = final_regret(
            learner, stream, noise, key, loss=loss, comparator=best, y_noise=y_noise, rounds=rounds
        )
        return regret, regret - regret[0], ~jnp.isfinite(regret)

    return run
