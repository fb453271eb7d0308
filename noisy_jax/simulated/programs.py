"""Learners tuned by their theorems for a horizon, and what a study of such learners compiles.

A study compiles the runs of its learners, in one program for all horizons if possible.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax.learners as learners
import noisy_jax.simulated.bounds as bounds
from noisy_jax.base import Learner, Stream, check_learner
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.losses import Loss
from noisy_jax.noise import Noise
from noisy_jax.simulated.bounds import DataMoments, at_adaptive_rate, at_rate_factor
from noisy_jax.simulated.rollouts import BLOCK, final_regret
from noisy_jax.validation import given

MakeLearner = Callable[..., tuple[Learner, Any]]
"""`make(horizon)` or `make(horizon, room)`, which return a learner tuned for a horizon and the
theorem's guarantee for it, or `None` if there is none.

A function with an argument `room` builds the learner with room for so many rounds. It may get a
traced horizon; a study then compiles one program for all horizons.
"""

_BOUNDS = {
    learners.two_copies: bounds.two_copies,
    learners.known_covariance: bounds.known_covariance,
    learners.uncorrected: bounds.uncorrected,
    learners.parallel_worlds: bounds.parallel_worlds,
    learners.fourier_worlds: bounds.parallel_worlds,
    learners.uncorrected_kernel: bounds.parallel_worlds,
    learners.random_truncation: bounds.random_truncation,
}
"""The bound that belongs to each learner of the library."""


def tuned(
    factory: Callable[..., Learner],
    bound: Callable[..., Any],
    moments: DataMoments | None = None,
    *,
    rate_factor: chex.Numeric | None = 1.0,
    **options: Any,
) -> MakeLearner:
    """A learner for `study`, at the theorem's learning rate for each horizon.

    Args:
        factory: of a linear learner, such as `learners.two_copies`; or, without `moments`, of a
            kernel learner, such as `functools.partial(learners.parallel_worlds, world)` or
            `functools.partial(learners.fourier_worlds, features)`. It takes a `learning_rate`.
        bound: the guarantee for this learner, such as `bounds.two_copies`, or for a kernel learner
            `functools.partial(bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)`. The
            bound of another learner of the library is an error.
        moments: of the noisy data, by `bounds.moments`, for linear learners. They are the first
            argument of the bound.
        rate_factor: m > 0, a multiple of the theorem's learning rate (`bounds.at_rate_factor`).
            `None` for the adaptive rate and its guarantee (`bounds.at_adaptive_rate`), which is
            usually far better for kernels.
        **options: passed to the factory and to the bound, such as `radius=1.0`; random truncation
            has none. If only the factory (or only the bound) takes an option, bind it first with
            `functools.partial`.

    Returns:
        `(horizon, room=horizon) -> (learner, guarantee)`. The bound is NaN for
        `learners.uncorrected_kernel`, whose gradients are biased.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.1)
        >>> make = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> print(make(100)[1].learning_rate)
        0.025
    """
    learner, theorem = _without_partial(factory), _without_partial(bound)
    if not _takes(factory, "learning_rate"):
        raise ValueError(
            "factory must take a learning_rate, such as learners.two_copies, got "
            f"{getattr(learner, '__name__', learner)}: pass a learner that has no rate to study "
            "as it is"
        )
    expected = _BOUNDS.get(learner, theorem)
    if theorem in _BOUNDS.values() and theorem is not expected:
        raise ValueError(
            f"bound must be bounds.{expected.__name__} for learners.{learner.__name__}, got "
            f"bounds.{theorem.__name__}, which holds for another learner"
        )
    return _Tuned(factory, bound, moments, rate_factor, options)


@dataclasses.dataclass(frozen=True, eq=False)
class _Tuned:
    """What `tuned` returns; its `repr` stands in a study's `config.json`."""

    factory: Callable[..., Learner]
    bound: Callable[..., Any]
    moments: DataMoments | None
    rate_factor: chex.Numeric | None
    options: dict[str, Any]

    def __call__(self, horizon: Any, room: int | None = None) -> tuple[Learner, Any]:
        moments = [] if self.moments is None else [self.moments]
        theory = self.bound(*moments, horizon=horizon, **self.options)
        guarantee = guarantee_at(theory, self.rate_factor)
        # Linear learners and those on random features have room for any number of rounds.
        needs_room = self.moments is None and _takes(self.factory, "horizon")
        size = {"horizon": horizon if room is None else room} if needs_room else {}
        rate = None if self.rate_factor is None else guarantee.learning_rate
        learner = self.factory(learning_rate=rate, **size, **self.options)
        if _without_partial(self.factory) is learners.uncorrected_kernel:
            guarantee = guarantee._replace(regret=math.nan)  # the theorem is on unbiased gradients
        return learner, guarantee


def guarantee_at(theory: Any, rate_factor: chex.Numeric | None) -> Any:
    """The guarantee at a multiple of the theorem's rate, or at the adaptive one (`None`)."""
    return at_adaptive_rate(theory) if rate_factor is None else at_rate_factor(theory, rate_factor)


def _takes(factory: Callable[..., Any], name: str) -> bool:
    """Whether a function can be called with an argument of this name."""
    try:
        inspect.signature(factory).bind_partial(**{name: None})
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        pass
    return True


def _without_partial(function):
    while isinstance(function, functools.partial):
        function = function.func
    return function


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
