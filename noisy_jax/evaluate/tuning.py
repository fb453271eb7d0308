"""Learners tuned for a horizon by the theorem that goes with them, as studies take them."""

import functools
from collections.abc import Callable
from typing import Any

import chex

from noisy_jax.base import Learner
from noisy_jax.bounds import Guarantee, Moments, TruncationGuarantee, at_rate_factor

MakeLearner = Callable[[int], tuple[Learner, Guarantee | TruncationGuarantee | None]]
"""`horizon -> (learner, guarantee)`: a learner tuned for a horizon, and what is promised of it,
`None` where nothing is."""


def tuned(
    factory: Callable[..., Learner],
    bound: Callable[..., Guarantee],
    moments: Moments,
    *,
    radius: chex.Numeric,
    rate_factor: chex.Numeric = 1.0,
    **options: Any,
) -> MakeLearner:
    """For `study`: a linear learner whose learning rate is the theorem's for each horizon.

    Args:
        factory: such as `learners.two_copies`.
        bound: the guarantee that goes with it, such as `bounds.two_copies`.
        moments: of the noisy data, by `bounds.moments`.
        radius: B_w > 0.
        rate_factor: m > 0, a multiple of the theorem's learning rate: `bounds.at_rate_factor`.
        **options: handed to both, so both must take them, as those of `known_covariance` take
            `as_printed=True`. One for the bound alone goes with it, in a `functools.partial`.

    Returns:
        `horizon -> (learner, guarantee)`.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.Moments(1.0, 1.0, 1.0, 0.1)
        >>> make = tuned(nj.learners.two_copies, nj.bounds.two_copies, moments, radius=1.0)
        >>> print(make(100)[1].learning_rate)
        0.025
    """
    return tuned_kernel_learner(
        functools.partial(_of_any_horizon, factory),
        functools.partial(bound, moments),
        radius=radius,
        rate_factor=rate_factor,
        **options,
    )


def tuned_kernel_learner(
    factory: Callable[..., Learner],
    bound: Callable[..., Guarantee | TruncationGuarantee],
    *,
    rate_factor: chex.Numeric = 1.0,
    **options: Any,
) -> MakeLearner:
    """For `study`: a learner with room for each horizon, at the theorem's learning rate or faster.

    Args:
        factory: `(*, horizon, learning_rate, **options) -> Learner`, such as
            `functools.partial(learners.parallel_worlds, world)`.
        bound: `(*, horizon, **options) -> ` the guarantee that goes with it, such as
            `functools.partial(bounds.parallel_worlds, world.diagonal, y_second_moment=1.0)`.
        rate_factor: m > 0, a multiple of the theorem's learning rate, which is far on the safe side
            for kernels: `bounds.at_rate_factor`.
        **options: handed to both, such as `radius=2.0`; random truncation has none.

    Returns:
        `horizon -> (learner, guarantee)`.

    Example:
        >>> import functools, noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> learner = functools.partial(nj.learners.parallel_worlds, world)
        >>> bound = functools.partial(nj.bounds.parallel_worlds, world.diagonal, y_second_moment=4.0)
        >>> tuned_kernel_learner(learner, bound, radius=1.0, rate_factor=8.0)(100)[0].horizon
        100
    """
    return functools.partial(_tuned, factory, bound, rate_factor, options)


def _tuned(factory, bound, rate_factor, options, horizon):
    guarantee = at_rate_factor(bound(horizon=horizon, **options), rate_factor)
    learner = factory(horizon=horizon, learning_rate=guarantee.learning_rate, **options)
    return learner, guarantee


def _of_any_horizon(factory, *, horizon, **tuning) -> Learner:
    del horizon  # linear learners have room for any
    return factory(**tuning)
