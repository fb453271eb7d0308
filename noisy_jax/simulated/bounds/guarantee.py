"""Guarantees of projected online gradient descent from unbiased gradient estimates.

With G ≥ E‖∇̃_t‖², a ball of radius W, T rounds and η = W/√(GT), the expected regret on clean data is
at most W √(GT).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.validation.arrays import real
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import between, non_negative, positive
from noisy_jax.validation.objects import function, instance
from noisy_jax.validation.values import Array, ArrayLike, concrete


@plain_signature
class Guarantee(NamedTuple):
    """The learning rate of a theorem for T rounds, and its bound on the regret at this rate.

    Bounds such as `bounds.two_copies` return it, and `tuned` gives its rate to a learner. The
    regret is the learner's loss on clean data, summed over all T rounds, minus the loss of the best
    fixed predictor in a ball. All fields are numbers `[]`.

    Attributes:
        learning_rate: η, the constant factor that multiplies each gradient estimate ∇̃_t. NaN at an
            adaptive rate (`bounds.at_adaptive_rate`).
        regret: bound on the expected regret; on the regret of one run from
            `bounds.high_probability`.
        second_moment: G ≥ E‖∇̃_t‖² in every round t.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(theory.learning_rate, theory.regret, theory.second_moment)
        0.025 40.0 16.0
    """

    learning_rate: Array
    regret: Array
    second_moment: Array


class TruncationGuarantee(NamedTuple):
    """A `Guarantee` of learning from a random number of copies, with its cost; all `[]`.

    Attributes:
        learning_rate: η; zero if the moments overflow.
        regret: bound on the expected regret on clean data; infinite if it overflows.
        second_moment: B_g B_Ψ ≥ E‖g̃Ψ̃‖².
        copies: average number of noisy copies in a round.
        bias: the part of the bound that is due to a bias, at any learning rate.
        idle: bound on the regret of predicting zero for T rounds.
        informative_from: the least number of rounds such that, at this and longer horizons, the
            bound at the rate tuned for the horizon is smaller than `idle`; infinite if none is.
    """

    learning_rate: jax.Array | float
    regret: jax.Array | float
    second_moment: jax.Array | float
    copies: jax.Array | float
    bias: jax.Array | float
    idle: jax.Array | float
    informative_from: jax.Array | float

    @property
    def vacuous(self) -> jax.Array | bool:
        """Returns `[]`, true if the bound is no better than the bound of predicting zero."""
        return self.regret >= self.idle


AnyGuarantee = TypeVar("AnyGuarantee", Guarantee, TruncationGuarantee)


def at_rate_factor(guarantee: AnyGuarantee, rate_factor: ArrayLike) -> AnyGuarantee:
    """Returns the guarantee of gradient descent at a multiple of the theorem's learning rate.

        η = mW/√(GT),   W²/(2η) + ηGT/2 = ½(m + 1/m) W√(GT)

    Theorems use the largest possible gradients; where the actual ones are much smaller, a larger
    rate learns faster. The factor ½(m + 1/m) ≥ 1 also multiplies the bias of `uncorrected`, so that
    the result is still a bound; the `bias` of random truncation stays as it is.

    Args:
        guarantee: at the theorem's own rate η = W/√(GT), not the result of this function.
        rate_factor: m > 0.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(theory.regret, at_rate_factor(theory, 2.0).regret)
        40.0 50.0
    """
    rate_factor = positive("rate_factor", rate_factor)
    guarantee = grown(guarantee, (rate_factor + 1 / rate_factor) / 2)
    return guarantee._replace(learning_rate=rate_factor * guarantee.learning_rate)


def rate_of(bound: Callable[..., Any]) -> Callable[..., Any]:
    """Turns a bound into a function that gives its learning rate, and NaN for its regret bound.

    It is for a learner for which the bound is not proved, such as `learners.uncorrected_kernel`:
    `tuned` gives this learner the rate of a theorem, and a study shows no bound for it.

    Args:
        bound: a function that returns a `Guarantee` or another tuple with fields `learning_rate`
            and `regret`, such as `bounds.parallel_worlds`.

    Returns:
        A function of the same arguments as `bound`, which returns the same tuple with `regret` NaN.

    Example:
        >>> import functools, noisy_jax as nj
        >>> rate = nj.bounds.rate_of(nj.bounds.parallel_worlds)
        >>> theory = rate(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(theory.learning_rate, theory.regret)
        0.025 nan
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> make = nj.tuned(
        ...     functools.partial(nj.learners.uncorrected_kernel, kernel),
        ...     functools.partial(rate, 1.0, y_second_moment=1.0), radius=1.0)
        >>> learner, theory = make(100)  # for 100 rounds
    """
    function("bound", bound, "such as nj.bounds.two_copies, not the guarantee that it returns")
    return functools.partial(_rate_of, bound)


def _rate_of(bound, *arguments, **options):
    guarantee = bound(*arguments, **options)
    kind = "a guarantee with a learning_rate"
    instance("what bound returns", guarantee, kind, attribute="learning_rate")
    return guarantee._replace(regret=math.nan)


def grown(guarantee: AnyGuarantee, growth: ArrayLike) -> AnyGuarantee:
    """Returns the guarantee with `growth` times the regret bound, but for its bias."""
    if not isinstance(guarantee, (Guarantee, TruncationGuarantee)):
        raise ValueError(
            "guarantee must bound the regret of gradient descent at η = W/√(GT), as those of "
            f"two_copies or parallel_worlds do, got {given(guarantee)}"
        )
    guarantee = guarantee._replace(
        learning_rate=real("guarantee.learning_rate", guarantee.learning_rate),
        regret=real("guarantee.regret", guarantee.regret),
    )
    rate = concrete(guarantee.learning_rate)
    if rate is not None and np.any(np.isnan(rate)):
        raise ValueError("guarantee must be at the theorem's own rate, got one at an adaptive rate")
    if isinstance(guarantee, Guarantee):
        return guarantee._replace(regret=growth * guarantee.regret)
    with np.errstate(over="ignore"):
        return guarantee._replace(
            regret=growth * (guarantee.regret - guarantee.bias) + guarantee.bias,
            informative_from=growth**2 * guarantee.informative_from,
        )


def high_probability(
    guarantee: Guarantee,
    *,
    horizon: ArrayLike,
    radius: ArrayLike,
    failure_probability: ArrayLike,
) -> Guarantee:
    """Turns a bound on the expected regret into one that a single run keeps with probability 1 − δ.

        regret ≤ guarantee.regret + 2W√(2GT ln(1/δ)),   if ‖∇̃_t‖² ≤ G in every draw of the noise

    ∇̃_t is the gradient estimate of round t and G is `guarantee.second_moment`. It must bound every
    draw, not only the mean. So give `bounds.two_copies` and `bounds.known_covariance`, as
    `DataMoments`, the largest values of ‖x̃‖², ‖x̃‖⁴ and ỹ² that can occur, and
    `bounds.parallel_worlds` the largest ỹ². There is no such G for Gaussian noise in a linear
    learner, nor for `bounds.random_truncation`.

    The bound holds for noise that is drawn independently of a fixed stream, against every predictor
    u in the ball that does not depend on the noise. It is loose: quantiles of the regret over seeds
    (`study(…, quantiles=…)`) are far smaller.

    Proof: Σ⟨∇̃_t, w_t − u⟩ ≤ `guarantee.regret` in every draw. The rest, Σ⟨E∇̃_t − ∇̃_t, w_t − u⟩,
    is a martingale with terms in intervals of length 4W√G, so that Azuma's inequality applies.

    Args:
        guarantee: a `Guarantee`, at any learning rate.
        horizon: T > 0, the number of rounds that the guarantee is for.
        radius: W > 0, the radius that the guarantee is for.
        failure_probability: δ in (0, 1).

    Returns:
        The `Guarantee` with a larger `regret`; rate and second moment stay the same.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: asserted in Learning from Noisy Data under Distributional Assumptions, Sec. 2, and
    Online Learning of Noisy Data with Kernels, after Theorem 4; Cesa-Bianchi, Conconi and Gentile
    (2004).

    Example:
        >>> import noisy_jax as nj
        >>> size = {"horizon": 100, "radius": 1.0}
        >>> mean = nj.bounds.parallel_worlds(1.0, y_second_moment=1.0, **size)
        >>> sure = nj.bounds.high_probability(mean, failure_probability=0.05, **size)
        >>> print(f"{mean.regret:.0f} on average, {sure.regret:.0f} in 95% of runs")
        40 on average, 236 in 95% of runs
    """
    hint = "such as that of two_copies or parallel_worlds"
    guarantee = instance("guarantee", guarantee, Guarantee, hint)
    regret, name = real("guarantee.regret", guarantee.regret), "guarantee.second_moment"
    second_moment = real(name, non_negative(name, guarantee.second_moment, shape=None))
    delta = between("failure_probability", failure_probability, 0, 1)
    radius, horizon = positive("radius", radius), positive("horizon", horizon)
    deviation = 2 * radius * jnp.sqrt(second_moment) * jnp.sqrt(-2 * horizon * jnp.log(delta))
    return guarantee._replace(regret=regret + deviation)


def gradient_descent(second_moment: ArrayLike, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """η = W/√(GT) and the bound W√(GT), from G, the number of rounds T and the radius W."""
    horizon, radius = positive("horizon", horizon), positive("radius", radius)
    second_moment = positive(
        "the second moment of the gradient estimate",
        second_moment,
        "the data are all zero, the data or R² overflow float32, or the noise has no finite moment "
        "(two_copies needs the second, known_covariance and uncorrected the fourth)",
    )
    root = jnp.sqrt(second_moment) * jnp.sqrt(horizon)  # the product under one root may overflow
    return Guarantee(radius / root, radius * root, jnp.asarray(second_moment))
