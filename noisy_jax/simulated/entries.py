"""Learners of a study, and functions that make them for its horizons, as `tuned` does."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax

import noisy_jax.learners as learners
import noisy_jax.simulated.bounds as bounds
from noisy_jax.base import Learner, check_learner
from noisy_jax.simulated.bounds import DataMoments, at_adaptive_rate
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import positive, whole
from noisy_jax.validation.objects import function, instance, switch
from noisy_jax.validation.values import ArrayLike

MakeLearner = Callable[[Any], tuple[Learner, Any]]
"""Type of a function `make(horizon) -> (learner, guarantee)`, which `study` takes as a learner.

The learner is tuned for so many rounds; the guarantee is a result of `bounds`, or `None`. A study
calls it with each of its horizons, and compiles a program for each; with `AnyHorizon`, one program
for all of them.
"""


@dataclasses.dataclass(frozen=True)
class AnyHorizon:
    """A function that makes a learner for any number of rounds, also for a traced one.

    `study` takes it in place of a learner, if the learner depends on the number of rounds. It
    compiles one program for all its horizons if each of its learners is an `AnyHorizon` or a
    `Learner`; for another function (`MakeLearner`) it compiles one for each horizon. `tuned`
    returns an `AnyHorizon`.

    Args:
        make: `make(horizon, room) -> (learner, guarantee)`. `horizon`, a number that may be traced,
            is the number of rounds that the learner is tuned for; `room`, an int of at least
            `horizon`, the number of rounds that its state must have space for. `guarantee` is a
            result of `bounds`, or `None`.

    Raises:
        ValueError: `make` is not a function.

    Example:
        >>> import jax, noisy_jax as nj
        >>> def make(horizon, room):
        ...     return nj.learners.two_copies(radius=1.0, learning_rate=horizon**-0.5), None
        >>> learners = {"own rate": nj.simulated.AnyHorizon(make)}
        >>> learner, guarantee = learners["own rate"](100)  # as a study calls it
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=64, dim=3)
        >>> found = nj.study(
        ...     learners, stream, nj.noise.Gaussian(0.1), jax.random.key(1), num_seeds=4,
        ...     horizons=[32, 64], comparator=nj.comparators.linear_ball(radius=1.0))
    """

    make: Callable[[Any, int], tuple[Learner, Any]]

    def __post_init__(self) -> None:
        function("make", self.make, "make(horizon, room) -> (learner, guarantee)")

    def __call__(self, horizon: Any, room: int | None = None) -> tuple[Learner, Any]:
        """Returns learner and guarantee for `horizon` rounds; `room` is `horizon` by default."""
        if room is None and not isinstance(horizon, jax.Array):
            exact = isinstance(horizon, float) and horizon.is_integer()
            horizon = whole("horizon", int(horizon) if exact else horizon)
        rounds: Any = horizon if room is None else whole("room", room)
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
    """Makes an entry of `study`: a learner at the theorem's learning rate for each horizon.

    For a horizon T it computes `guarantee = bound(moments, horizon=T, **options)` and the learner
    `factory(learning_rate=guarantee.learning_rate, **options)`. The guarantee has the learning rate
    η that a theorem asks for, `learning_rate`, and the theorem's bound on the expected regret after
    T rounds, `regret`. Learners without a learning rate, such as `learners.corrected_ftrl`, enter a
    study as they are.

    Args:
        factory: the function that makes a linear learner, such as `learners.two_copies`; or,
            without `moments`, a kernel learner, such as
            `functools.partial(learners.parallel_worlds, world)`. It takes a `learning_rate`, which
            may be traced. For a factory that needs its value, write a function
            `horizon -> (learner, guarantee)` in place of `tuned`.
        bound: the theorem of this learner, such as `bounds.two_copies`, or for a kernel learner
            `functools.partial(bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)`. The
            bound of another learner of the library is an error. `bounds.rate_of(bound)` gives a
            learner a rate without a bound, where none is proved, as for
            `learners.uncorrected_kernel`.
        moments: `bounds.moments(stream, noise)`, the first argument of the bound of a linear
            learner; `None`, the default, for kernel learners.
        rate_factor: m > 0, a multiple of the theorem's learning rate, with the bound at this rate;
            1 by default. `None` takes the adaptive rate and its guarantee
            (`bounds.at_adaptive_rate`), which is usually far better for kernels.
        room: whether the factory takes the number of rounds to have room for, as `horizon=`; by
            default true without `moments`, and false with them. Give `False` for
            `learners.fourier_worlds`, which has room for any number.
        **options: passed to both the factory and the bound, such as `radius=1.0` (random truncation
            takes none). If only one of them takes an option, bind it first with
            `functools.partial`.

    Returns:
        A function `horizon -> (learner, guarantee)`, a `simulated.AnyHorizon`: a study whose
        learners are all of this kind compiles one program for all horizons.

    Raises:
        TypeError: the factory or the bound does not take the options.
        ValueError: the bound is known to be of another learner, or `rate_factor` is not positive.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0], [-1.0]], [1.0, 0.0])
        >>> moments = nj.bounds.moments(stream, nj.noise.Gaussian(0.1))
        >>> make = nj.tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> learner, guarantee = make(100)
        >>> print(f"{guarantee.learning_rate:.3f} {guarantee.regret:.0f}")
        0.023 43
    """
    function("factory", factory, "such as nj.learners.two_copies, not the learner that it makes")
    function("bound", bound, "such as nj.bounds.two_copies, not the guarantee that it returns")
    rate_factor = None if rate_factor is None else positive("rate_factor", rate_factor)
    if moments is not None:
        instance("moments", moments, DataMoments, "bounds.moments(stream, noise) makes one")
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
    of_data = () if moments is None else (moments,)
    needs_room = moments is None if room is None else switch("room", room)
    size = {"horizon": None} if needs_room else {}
    _check_takes("factory", factory, (), {"learning_rate": None, **size, **options})
    _check_takes("bound", bound, of_data, {"horizon": None, **options})
    # Options are given by position: a checkpoint knows its study again by the text of this partial.
    return AnyHorizon(
        functools.partial(_tuned, factory, bound, of_data, rate_factor, needs_room, options)
    )


def _check_takes(name, function, arguments, options) -> None:
    """Raises TypeError unless the signature of a function, if it has one, takes these arguments."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # such as of a function written in C
        return
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        hint = "bind an option of one of factory and bound first, with functools.partial"
        raise TypeError(f"{name} must take the options of tuned, but {error}; {hint}") from None


def _tuned(factory, bound, of_data, rate_factor, needs_room, options, horizon, room):
    """Returns the learner and the guarantee of `tuned` for a horizon."""
    guarantee = guarantee_at(bound(*of_data, horizon=horizon, **options), rate_factor)
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
        factory = getattr(entered, "__name__", "")
        if factory in learners.__all__ and entered is getattr(learners, factory):
            raise ValueError(
                f"learners[{name!r}] must be a Learner, got the function {factory}, which makes "
                f"one: call it, as {factory}(radius=…), or use tuned({factory}, …)"
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
        told_room = isinstance(self._entered, AnyHorizon)
        pair = self._entered(horizon, room) if told_room else self._entered(horizon)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                "learners must be functions horizon -> (learner, guarantee), with None if there is "
                f"no guarantee, but one returned {given(pair)}"
            )
        learner, guarantee = pair
        check_learner(learner, "the first of (learner, guarantee)")
        if not (guarantee is None or hasattr(guarantee, "regret")):
            raise ValueError(f"guarantee must be one of bounds, or None, got {given(guarantee)}")
        return learner, guarantee
