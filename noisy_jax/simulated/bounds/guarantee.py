"""What projected online gradient descent guarantees from unbiased gradient estimates.

With G ≥ E‖∇̃_t‖², a ball of radius W and η = W/√(GT), the expected regret on clean data is at most
W √(GT).
"""

from typing import NamedTuple, TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import between, concrete, given, instance, positive


class Guarantee(NamedTuple):
    """What a theorem guarantees for T rounds.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient.
        regret: `[]`, bound on the expected regret on clean data after T rounds.
        second_moment: `[]`, G, bound on E‖∇̃_t‖².
    """

    learning_rate: chex.Array
    regret: chex.Array
    second_moment: chex.Array


class TruncationGuarantee(NamedTuple):
    """What a theorem guarantees for `learners.random_truncation` and T rounds, and what it costs.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient; zero if the moments
            overflow.
        regret: `[]`, bound on the expected regret on clean data; infinite if it overflows.
        second_moment: `[]`, B_g B_Ψ ≥ E‖g̃Ψ̃‖².
        copies: `[]`, average number of noisy copies in a round.
        bias: `[]`, the part of the regret bound that comes from cutting off the series of the
            slope; it does not depend on the learning rate.
        idle: `[]`, bound on the regret of predicting zero for T rounds.
        informative_from: `[]`, the number of rounds from which on the regret bound is smaller than
            `idle`, with the learning rate tuned for each horizon; infinite if it never is.
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
        """`[]`, whether the bound is no better than the bound of predicting zero."""
        return self.regret >= self.idle


AnyGuarantee = TypeVar("AnyGuarantee", Guarantee, TruncationGuarantee)


def at_rate_factor(guarantee: AnyGuarantee, rate_factor: chex.Numeric) -> AnyGuarantee:
    """The guarantee of gradient descent at a multiple of the theorem's learning rate.

        η = mW/√(GT),   W²/(2η) + ηGT/2 = ½(m + 1/m) W√(GT)

    Theorems use the largest possible gradients. Where the actual gradients are much smaller, a
    larger rate learns faster; this is the guarantee that remains. For a `Guarantee` the factor
    ½(m + 1/m) ≥ 1 also multiplies the parts of the bound that do not depend on the rate (the bias
    of `uncorrected`), so the result is still a bound. For a `TruncationGuarantee` the bias is left
    as it is, and `vacuous` and `informative_from` describe the new bound.

    Args:
        guarantee: a `Guarantee` or `TruncationGuarantee` at the theorem's own rate η = W/√(GT), not
            the result of this function.
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


def grown(guarantee: AnyGuarantee, growth: chex.Numeric) -> AnyGuarantee:
    """The guarantee with `growth` times the regret bound; a bias stays the same."""
    if not isinstance(guarantee, (Guarantee, TruncationGuarantee)):
        raise ValueError(
            "guarantee must bound the regret of gradient descent at η = W/√(GT), as those of "
            f"two_copies or parallel_worlds do, got {given(guarantee)}"
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
    horizon: chex.Numeric,
    radius: chex.Numeric,
    failure_probability: chex.Numeric,
) -> Guarantee:
    """The guarantee for one run instead of the mean: it holds with probability 1 − δ.

        regret ≤ guarantee.regret + 2W√(2GT ln(1/δ)),   if ‖∇̃_t‖² ≤ G in every draw of the noise

    Descent has Σ⟨∇̃_t, w_t − u⟩ ≤ `guarantee.regret` in every draw. What is left of the regret is
    the martingale Σ⟨E∇̃_t − ∇̃_t, w_t − u⟩, each term of which lies in an interval of length 4W√G:
    Azuma's inequality. It holds for noise that is drawn independently of a fixed stream, against
    every u that does not depend on the noise, at any learning rate that the guarantee is for.

    G must be a bound and not a mean: give `two_copies` and `known_covariance` the largest ‖x̃‖²,
    ‖x̃‖⁴ and ỹ² that can occur as `DataMoments`. `parallel_worlds` needs the largest ỹ² only, as
    ‖Ψ̂(x̃)‖² ≤ R² under any noise. Gaussian noise in a linear learner has no such G.

    It is loose: quantiles of the regret over seeds are far smaller (`study(…, quantiles=…)`).

    Args:
        guarantee: of `two_copies`, `known_covariance`, `uncorrected` or `parallel_worlds`, also
            `at_rate_factor` or `at_adaptive_rate`, with G as above. Gradient estimates of
            `random_truncation` have no useful largest norm.
        horizon: T, as in the guarantee.
        radius: W, as in the guarantee.
        failure_probability: δ in (0, 1).

    Source: asserted, and not computed, in Learning from Noisy Data under Distributional
    Assumptions, Sec. 2, and Online Learning of Noisy Data with Kernels, after Theorem 4. The
    argument is from Cesa-Bianchi, Conconi and Gentile (2004).

    Example:
        >>> import noisy_jax as nj
        >>> size = {"horizon": 100, "radius": 1.0}
        >>> mean = nj.bounds.parallel_worlds(1.0, y_second_moment=1.0, **size)
        >>> sure = high_probability(mean, failure_probability=0.05, **size)
        >>> print(f"{mean.regret:.0f} on average, {sure.regret:.0f} in 95% of runs")
        40 on average, 236 in 95% of runs
    """
    hint = "such as that of two_copies or parallel_worlds"
    second_moment = instance("guarantee", guarantee, Guarantee, hint).second_moment
    delta = between("failure_probability", failure_probability, 0, 1)
    radius, horizon = positive("radius", radius), positive("horizon", horizon)
    deviation = 2 * radius * jnp.sqrt(second_moment) * jnp.sqrt(-2 * horizon * jnp.log(delta))
    return guarantee._replace(regret=guarantee.regret + deviation)


def gradient_descent(
    second_moment: chex.Numeric, horizon: chex.Numeric, radius: chex.Numeric
) -> Guarantee:
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
