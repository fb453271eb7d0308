"""The learners of a study, tuned for its horizons, and the programs that run them.

A study compiles one program for all its horizons where every learner can be made for a traced one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax.learners as learners
import noisy_jax.simulated.bounds as bounds
from noisy_jax.base import Learner, Stream, check_learner
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.losses import Loss
from noisy_jax.noise import Noise
from noisy_jax.noise.observation import BLOCK
from noisy_jax.simulated.bounds import DataMoments, at_adaptive_rate
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from noisy_jax.simulated.rollouts import checked_regret
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import function, instance, switch
from noisy_jax.validation.values import Array, ArrayLike

MakeLearner = Callable[[Any], tuple[Learner, Any]]
"""`make(horizon)`, which returns a learner for so many rounds and its guarantee, or `None`.

A study calls it with each of its horizons, and compiles a program for each; with `AnyHorizon`, one
program for all of them.
"""


@dataclasses.dataclass(frozen=True)
class AnyHorizon:
    """A function that makes a learner for any horizon, also for a traced one.

    Studies compile one program for all their horizons if each of their learners is one of these, or
    a `Learner`.

    Args:
        make: `make(horizon, room) -> (learner, guarantee)`: a learner that is tuned for `horizon`
            rounds, with room for `room`, an int, and the theorem's guarantee, or `None`.

    Example:
        >>> import noisy_jax as nj
        >>> def make(horizon, room):
        ...     return nj.learners.two_copies(radius=1.0, learning_rate=horizon**-0.5), None
        >>> learner, _ = AnyHorizon(make)(100)
    """

    make: Callable[[Any, int], tuple[Learner, Any]]

    def __call__(self, horizon: Any, room: int | None = None) -> tuple[Learner, Any]:
        """Returns the learner for a horizon, with room for its rounds, and its guarantee."""
        if room is None and not isinstance(horizon, jax.Array):
            exact = isinstance(horizon, float) and horizon.is_integer()
            horizon = whole("horizon", int(horizon) if exact else horizon)
        rounds: Any = horizon if room is None else room
        return self.make(horizon, rounds)


_BOUNDS = {
    learners.two_copies: bounds.two_copies,
    learners.known_covariance: bounds.known_covariance,
    learners.uncorrected: bounds.uncorrected,
    learners.parallel_worlds: bounds.parallel_worlds,
    learners.fourier_worlds: bounds.parallel_worlds,
    learners.uncorrected_kernel: None,
    learners.random_truncation: bounds.random_truncation,
}
"""The bound that is proved for each learner of the library."""


def tuned(
    factory: Callable[..., Learner],
    bound: Callable[..., Any],
    moments: DataMoments | None = None,
    *,
    rate_factor: ArrayLike | None = 1.0,
    room: bool | None = None,
    **options: Any,
) -> AnyHorizon:
    """Makes a learner for `study`, at the theorem's learning rate for each horizon.

    Learners without a learning rate, such as `learners.corrected_ftrl`, enter a study as they are.

    Args:
        factory: of a linear learner, such as `learners.two_copies`; or, without `moments`, of a
            kernel learner, such as `functools.partial(learners.parallel_worlds, world)`. It takes a
            `learning_rate`, which may be traced; one that looks at the number is called by a
            function of your own, `horizon -> (learner, guarantee)`.
        bound: the guarantee for this learner, such as `bounds.two_copies`, or for a kernel learner
            `functools.partial(bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)`. The
            bound of another learner of the library is an error; `bounds.rate_of(bound)` gives a
            learner its rate where no bound is proved, as for `learners.uncorrected_kernel`.
        moments: of the noisy data, by `bounds.moments`, for linear learners. They are the first
            argument of the bound.
        rate_factor: m > 0, a multiple of the theorem's learning rate, with its bound;
            `None` for the adaptive rate and its guarantee (`bounds.at_adaptive_rate`), which is
            usually far better for kernels.
        room: whether the factory takes the number of rounds to have room for, as `horizon=`; by
            default those without `moments` do. `False` for `learners.fourier_worlds`, which has
            room for any number.
        **options: passed to the factory and to the bound, such as `radius=1.0`; random truncation
            has none. If only the factory (or only the bound) takes an option, bind it first with
            `functools.partial`.

    Returns:
        A function of the horizon, which returns the learner and its guarantee.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.1)
        >>> make = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> print(make(100)[1].learning_rate)
        0.025
    """
    function("factory", factory, "such as nj.learners.two_copies, not the learner that it makes")
    function("bound", bound, "such as nj.bounds.two_copies, not the guarantee that it returns")
    if moments is not None:
        instance("moments", moments, DataMoments, "bounds.moments(stream, noise) makes one")
    room = None if room is None else switch("room", room)
    learner, theorem = _without_partial(factory), _without_partial(bound)
    proved = _BOUNDS.get(learner, theorem)
    if theorem in _BOUNDS.values() and theorem is not proved:
        right = (
            "of the form bounds.rate_of(bound)" if proved is None else f"bounds.{proved.__name__}"
        )
        raise ValueError(
            f"bound must be {right} for learners.{learner.__name__}, got "
            f"bounds.{theorem.__name__}, which holds for another learner"
        )
    known = () if moments is None else (moments,)
    room = moments is None if room is None else room
    return AnyHorizon(functools.partial(_tuned, factory, bound, known, rate_factor, room, options))


def _tuned(factory, bound, moments, rate_factor, needs_room, options, horizon, room):
    """Returns the learner and the guarantee of `tuned` for a horizon."""
    guarantee = guarantee_at(bound(*moments, horizon=horizon, **options), rate_factor)
    rate = None if rate_factor is None else guarantee.learning_rate
    size = {"horizon": room} if needs_room else {}
    return factory(learning_rate=rate, **size, **options), guarantee


def guarantee_at(theory: Any, rate_factor: ArrayLike | None) -> Any:
    """Returns the guarantee at a multiple of the theorem's rate, or at the adaptive (`None`)."""
    return at_adaptive_rate(theory) if rate_factor is None else at_rate_factor(theory, rate_factor)


def _without_partial(function):
    while isinstance(function, functools.partial):
        function = function.func
    return function


class Entry:
    """A learner of a study, or a function that makes it for each horizon.

    Entries of the same learner or function are equal, so that another study compiles nothing.
    """

    def __init__(self, name: str, entered: Any):
        self.name, self._entered = name, entered
        self.any_horizon = isinstance(entered, Learner | AnyHorizon)
        same = entered.make if isinstance(entered, AnyHorizon) else entered
        self._key = self.any_horizon, id(same)  # of an object that lives as long as the entry
        if isinstance(entered, Learner):
            return
        if not callable(entered):
            raise ValueError(
                f"learners[{name!r}] must be a Learner, or a function horizon -> (learner, "
                f"guarantee) such as tuned returns, got {given(entered)}"
            )
        for made in learners.__all__:
            if entered is vars(learners)[made]:
                raise ValueError(
                    f"learners[{name!r}] must be a Learner, got the function {made}, which makes "
                    f"one: call it, as {made}(radius=…), or use tuned({made}, …)"
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        if not isinstance(self._entered, Learner):
            return repr(self._entered)
        needs = self._entered.needs
        return f"a learner of {needs.copies} copies, noise = {needs.noise!r}"

    def at(self, horizon: Any, room: int) -> tuple[Learner, Any]:
        """Returns the learner and its guarantee, with room for more rounds where it can be made."""
        if isinstance(self._entered, Learner):
            return self._entered, None
        own = isinstance(self._entered, AnyHorizon)
        pair = self._entered(horizon, room) if own else self._entered(horizon)
        if isinstance(pair, Learner) or not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                "learners must be functions horizon -> (learner, guarantee), with None if there is "
                f"no guarantee, but one returned {given(pair)}"
            )
        learner, guarantee = pair
        check_learner(learner, "the first of (learner, guarantee)")
        if not (guarantee is None or hasattr(guarantee, "regret")):
            raise ValueError(f"guarantee must be one of bounds, or None, got {given(guarantee)}")
        return learner, guarantee

    def most_rounds(self, horizon: int, room: int) -> int:
        """Returns the number of rounds, at most `room`, that the learner for a horizon can run.

        Some have fewer than they are made with room for, such as `noiseless`, which knows the rows
        of one stream.
        """
        limit = self.at(horizon, room)[0].needs.horizon
        return room if limit is None else min(room, int(limit))


@dataclasses.dataclass(frozen=True)
class _Program:
    """The run of one seed: `(stream, noise, y_noise, best, rounds, key)` to three `[L]` arrays.

    Programs of equal entries are equal, so that JAX compiles one of them for several studies.

    Attributes:
        entries: entries of the study.
        horizon: horizon of the learners; `None` if the program makes them, for its `rounds`.
        room: number of rounds that there is room for.
        loss: loss of the regret.
        learners: the learners, if there is a horizon.
    """

    entries: tuple[Entry, ...]
    horizon: int | None
    room: int
    loss: Loss
    learners: tuple[Learner, ...] = dataclasses.field(compare=False, default=())

    def __call__(self, stream, noise, y_noise, best, rounds, key):
        """Returns each learner's regret, the same minus the first one's, and if it diverged."""
        own, rounds = self.learners, rounds if self.horizon is None else self.horizon
        if self.horizon is None:
            horizon = jnp.asarray(rounds, float)
            own = [each.at(horizon, self.room)[0] for each in self.entries]
        regret: Any = checked_regret(
            paired(*own), stream, noise, y_noise, best, rounds, key, loss=self.loss
        )
        diverged = ~jnp.isfinite(regret)
        regret = jnp.where(diverged, jnp.nan, regret)
        return regret, regret - regret[0], diverged


def programs(
    entries: tuple[Entry, ...],
    made: Sequence[Sequence[Learner]],
    bests: Sequence[Array],
    horizons: Sequence[int],
    loss: Loss,
    data: tuple[Stream, Any, Any],
) -> list[jax.tree_util.Partial]:
    """Returns the run of one seed, `key -> (regret, difference, diverged)`, for each horizon.

    If all entries serve any horizon, they share one compiled program, which runs on the longest
    stream and stops after its number of rounds.

    Args:
        entries: of the study.
        made: learners for each horizon.
        bests: predictions of the comparator for each horizon.
        horizons: of the study.
        loss: of the regret.
        data: stream, noise and noise of the targets.
    """
    every = zip(horizons, made, bests, strict=True)
    if not all(entry.any_horizon for entry in entries):
        return [
            jax.tree_util.Partial(
                _Program(entries, horizon, horizon, loss, tuple(own)),
                *_first_of(horizon, data), best, None,
            )
            for horizon, own, best in every
        ]  # fmt: skip
    last = horizons[-1]
    whole_blocks = -(-last // BLOCK) * BLOCK  # so that other horizons of as many share the program
    room = max(last, min(entry.most_rounds(last, whole_blocks) for entry in entries))
    program, longest = _Program(entries, None, room, loss), _first_of(last, data, room)
    return [
        jax.tree_util.Partial(program, *longest, first(horizon, best, room), np.int32(horizon))
        for horizon, _, best in every
    ]


def first(rounds: int, tree, size: int | None = None):
    """Returns the first rounds of a stream or of noise; the last is repeated up to `size`."""
    kept = np.minimum(np.arange(size or rounds), rounds - 1)
    # On the host, where nothing is compiled for each number of rounds.
    return jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[kept], tree))


def _first_of(rounds, data, size=None):
    return [one if isinstance(one, Noise | None) else first(rounds, one, size) for one in data]
