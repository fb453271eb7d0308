"""Learners tuned for a horizon by the theorem that belongs to them, for `study`."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import chex

import noisy_jax.learners as learners
import noisy_jax.simulated.bounds as bounds
from noisy_jax.base import Learner
from noisy_jax.simulated.bounds import DataMoments, at_adaptive_rate, at_rate_factor

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
            kernel learner that takes a `horizon`, such as
            `functools.partial(learners.parallel_worlds, world)`.
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
    expected = _BOUNDS.get(learner, theorem)
    if theorem in _BOUNDS.values() and theorem is not expected:
        raise ValueError(
            f"bound must be bounds.{expected.__name__} for learners.{learner.__name__}, got "
            f"bounds.{theorem.__name__}, which holds for another learner"
        )
    return _Tuned(factory, bound, moments, rate_factor, options)


tuned_kernel_learner = tuned
"""Another name of `tuned`."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Tuned:
    """What `tuned` returns; its `repr` stands in a study's `config.json`."""

    factory: Callable[..., Learner]
    bound: Callable[..., Any]
    moments: DataMoments | None
    rate_factor: chex.Numeric | None
    options: dict[str, Any]

    def __call__(self, horizon: Any, room: int | None = None) -> tuple[Learner, Any]:
        linear = self.moments is not None  # linear learners have room for any number of rounds
        theory = self.bound(*[self.moments] * linear, horizon=horizon, **self.options)
        guarantee = guarantee_at(theory, self.rate_factor)
        size = {} if linear else {"horizon": horizon if room is None else room}
        rate = None if self.rate_factor is None else guarantee.learning_rate
        learner = self.factory(learning_rate=rate, **size, **self.options)
        if _without_partial(self.factory) is learners.uncorrected_kernel:
            guarantee = guarantee._replace(regret=math.nan)  # the theorem is on unbiased gradients
        return learner, guarantee


def guarantee_at(theory: Any, rate_factor: chex.Numeric | None) -> Any:
    """The guarantee at a multiple of the theorem's rate, or at the adaptive one (`None`)."""
    return at_adaptive_rate(theory) if rate_factor is None else at_rate_factor(theory, rate_factor)


def _without_partial(function):
    while isinstance(function, functools.partial):
        function = function.func
    return function
