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
from noisy_jax.simulated.bounds import (
    Guarantee,
    Moments,
    TruncationGuarantee,
    at_adaptive_rate,
    at_rate_factor,
)

MakeLearner = Callable[[int], tuple[Learner, Guarantee | TruncationGuarantee | None]]
"""`horizon -> (learner, guarantee)`: a learner tuned for a horizon and the theorem's guarantee for
it, or `None` if there is none."""

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

_WITH_ROOM = (learners.parallel_worlds, learners.uncorrected_kernel)
"""Learners that take no longer for a round if they have more room than they need."""


def tuned(
    factory: Callable[..., Learner],
    bound: Callable[..., Guarantee],
    moments: Moments,
    *,
    radius: chex.Numeric,
    rate_factor: chex.Numeric | None = 1.0,
    **options: Any,
) -> MakeLearner:
    """A linear learner for `study`, at the theorem's learning rate for each horizon.

    Args:
        factory: such as `learners.two_copies`.
        bound: the guarantee for this learner, such as `bounds.two_copies`; that of another learner
            of the library is an error.
        moments: of the noisy data, by `bounds.moments`.
        radius: B_w > 0.
        rate_factor: m > 0, a multiple of the theorem's learning rate (`bounds.at_rate_factor`);
            `None` for the adaptive rate and its guarantee (`bounds.at_adaptive_rate`).
        **options: passed to the factory and to the bound. For an option of only one of them, pass
            that one as a `functools.partial`.

    Returns:
        `horizon -> (learner, guarantee)`.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.Moments(1.0, 1.0, 1.0, 0.1)
        >>> make = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> print(make(100)[1].learning_rate)
        0.025
    """
    _check_bound(factory, bound)
    return _Tuned(
        functools.partial(_of_any_horizon, factory),
        functools.partial(bound, moments),
        rate_factor,
        {"radius": radius, **options},
    )


def tuned_kernel_learner(
    factory: Callable[..., Learner],
    bound: Callable[..., Guarantee | TruncationGuarantee],
    *,
    rate_factor: chex.Numeric | None = 1.0,
    **options: Any,
) -> MakeLearner:
    """A kernel learner for `study`, with room for each horizon and tuned for it.

    Args:
        factory: `(*, horizon, learning_rate, **options) -> Learner`, such as
            `functools.partial(learners.parallel_worlds, world)`.
        bound: `(*, horizon, **options) -> guarantee`, the bound that belongs to it, such as
            `functools.partial(bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)`; that
            of another learner of the library is an error.
        rate_factor: as in `tuned`; the adaptive rate is usually far better for kernels.
        **options: passed to the factory and to the bound, such as `radius=2.0`; random truncation
            has none.

    Returns:
        `horizon -> (learner, guarantee)`. The bound is NaN for `learners.uncorrected_kernel`, whose
        gradients are biased.

    Example:
        >>> import functools, noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> learner = functools.partial(nj.learners.parallel_worlds, world)
        >>> bound = functools.partial(
        ...     nj.bounds.parallel_worlds, world.diagonal, y_second_moment=4.0)
        >>> for rate_factor in (1.0, None):
        ...     make = tuned_kernel_learner(learner, bound, radius=1.0, rate_factor=rate_factor)
        ...     print(f"{make(100)[1].regret:.1f}")
        96.6
        273.1
    """
    _check_bound(factory, bound)
    return _Tuned(factory, bound, rate_factor, options)


@dataclasses.dataclass(frozen=True, eq=False)
class _Tuned:
    """`horizon -> (learner, guarantee)`, as `tuned` and `tuned_kernel_learner` make it."""

    factory: Callable[..., Learner]
    bound: Callable[..., Any]
    rate_factor: chex.Numeric | None
    options: dict[str, Any]

    def __call__(self, horizon: int) -> tuple[Learner, Any]:
        guarantee = guarantee_at(self.bound(horizon=horizon, **self.options), self.rate_factor)
        learner = self.at(guarantee.learning_rate, horizon)
        if _without_partial(self.factory) is learners.uncorrected_kernel:
            guarantee = guarantee._replace(regret=math.nan)  # the theorem is on unbiased gradients
        return learner, guarantee

    def at(self, rate: Any, horizon: int | None = None) -> Learner:
        """The learner at a learning rate, which may be traced if `only_rate_differs`."""
        rate = None if self.rate_factor is None else rate
        return self.factory(horizon=horizon, learning_rate=rate, **self.options)

    @property
    def only_rate_differs(self) -> bool:
        """Whether this is a learner of the library, in which the horizon sets rate and room."""
        if getattr(self.factory, "func", None) is _of_any_horizon:
            return _without_partial(self.factory.args[0]) in _BOUNDS
        return _without_partial(self.factory) in _WITH_ROOM


def guarantee_at(theory: Any, rate_factor: chex.Numeric | None) -> Any:
    """The guarantee at a multiple of the theorem's rate, or at the adaptive one (`None`)."""
    return at_adaptive_rate(theory) if rate_factor is None else at_rate_factor(theory, rate_factor)


def _of_any_horizon(factory, *, horizon, **tuning) -> Learner:
    del horizon  # a linear learner has room for any number of rounds
    return factory(**tuning)


def _check_bound(factory, bound) -> None:
    """Raises ValueError if learner and bound are the library's but do not belong together."""
    learner, theorem = _without_partial(factory), _without_partial(bound)
    expected = _BOUNDS.get(learner, theorem)
    if theorem in _BOUNDS.values() and theorem is not expected:
        raise ValueError(
            f"bound must be bounds.{expected.__name__} for learners.{learner.__name__}, got "
            f"bounds.{theorem.__name__}, which holds for another learner"
        )


def _without_partial(function):
    while isinstance(function, functools.partial):
        function = function.func
    return function
