"""What a study compiles: the runs of its learners, in one program for all horizons if possible."""

import functools
import inspect
from collections.abc import Callable, Sequence
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

    def __call__(self, horizon: Any, room: int | None = None) -> tuple[Learner, None]:
        """The learner."""
        return self.learner, None

    def __eq__(self, other) -> bool:  # so that another study with the learner compiles nothing
        return isinstance(other, Always) and other.learner is self.learner

    def __hash__(self) -> int:
        return id(self.learner)

    def __repr__(self) -> str:
        needs = self.learner.needs
        return f"a learner of {needs.copies} copies, noise = {needs.noise!r}"


def runs(
    makers: tuple[MakeLearner, ...],
    horizons: Sequence[int],
    loss: Loss,
    data: tuple[Stream, Any, Any],
) -> Callable[[int, chex.Array], jax.tree_util.Partial]:
    """A function of a horizon of a study and of the comparator's predictions: the run of one seed.

    The run is `key -> (regret, difference, diverged)`. If each `make` takes a traced horizon and
    `room`, all horizons share one compiled program, which runs on the longest stream and stops
    after `rounds`.
    """
    every = zip(makers, *(made(makers, horizon) for horizon in horizons), strict=True)
    makers = tuple(_constant(pairs) or make for make, *pairs in every)
    room = -(-horizons[-1] // BLOCK) * BLOCK
    shared = all(_serves_any_horizon(make, room) for make in makers)
    longest = _first_of(horizons[-1], data, room) if shared else []

    def run(horizon: int, best: chex.Array) -> jax.tree_util.Partial:
        if shared:
            told = *longest, first(horizon, best, room), np.int32(horizon)
            return jax.tree_util.Partial(_program(makers, None, room, loss), *told)
        program = _program(makers, horizon, horizon, loss)
        return jax.tree_util.Partial(program, *_first_of(horizon, data), best, None)

    return run


def first(rounds: int, tree, size: int | None = None):
    """The first rounds of a stream or of noise by rounds; the last is repeated up to `size`."""
    kept = np.minimum(np.arange(size or rounds), rounds - 1)
    # On the host, where nothing is compiled for each number of rounds.
    return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[kept], tree))


def _first_of(rounds, data, size=None):
    return [one if isinstance(one, Noise | None) else first(rounds, one, size) for one in data]


def takes_room(make: Callable[..., Any]) -> bool:
    """Whether a function has an argument `room`."""
    try:
        return "room" in inspect.signature(make).parameters
    except ValueError:  # a built-in function without a signature
        return False


def _constant(pairs: Sequence[tuple[Learner, Any]]) -> Always | None:
    """The learner that a function of the horizon always returns, if it does."""
    learner = pairs[0][0]
    return Always(learner) if all(each is learner for each, _ in pairs) else None


def _serves_any_horizon(make: MakeLearner, room: int) -> bool:
    """Whether `make` builds a learner with this room for a traced horizon."""
    built = []

    def build(horizon):
        built.append(make(horizon, room=room)[0])

    if not takes_room(make):
        return False
    try:
        jax.eval_shape(build, jax.ShapeDtypeStruct((), jnp.result_type(float)))
    except (TypeError, ValueError):  # it looks at the number
        return False
    size = built[0].needs.horizon
    return size is None or size >= room


@functools.lru_cache(maxsize=64)
def made(makers: tuple[MakeLearner, ...], horizon: int) -> list[tuple[Learner, Any]]:
    """Learners and guarantees, made once and outside every trace: makers may look at numbers."""
    made = [make(horizon, room=horizon) if takes_room(make) else make(horizon) for make in makers]
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
def _program(makers: tuple[MakeLearner, ...], horizon: int | None, room: int, loss: Loss):
    """The run of one seed; cached, so that JAX compiles it once for several studies.

    Without a horizon the learners are built in the program for its traced number of rounds.
    """
    known = None if horizon is None else made(makers, horizon)

    def run(stream, noise, y_noise, best, rounds, key):
        pairs = known or [make(jnp.asarray(rounds, float), room=room) for make in makers]
        learner = paired(*(learner for learner, _ in pairs))
        regret: Any = final_regret(
            learner, stream, noise, key, loss=loss, comparator=best, y_noise=y_noise, rounds=rounds
        )
        diverged = ~jnp.isfinite(regret)
        regret = jnp.where(diverged, jnp.nan, regret)
        return regret, regret - regret[0], diverged

    return run
