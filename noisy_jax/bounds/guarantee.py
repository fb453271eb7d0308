"""What projected online gradient descent guarantees from unbiased gradient estimates.

With G ≥ E‖∇̃_t‖², a ball of radius W and η = W/√(GT), the expected regret on clean data is at most
W √(GT).
"""

from typing import NamedTuple, TypeVar

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import check_positive, check_radius, concrete


class Guarantee(NamedTuple):
    """What a theorem promises for T rounds.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient.
        regret: `[]`, bound on the expected regret on clean data after T rounds.
        second_moment: `[]`, G, bound on E‖∇̃_t‖².
    """

    learning_rate: chex.Array
    regret: chex.Array
    second_moment: chex.Array


class TruncationGuarantee(NamedTuple):
    """What a theorem promises of `learners.random_truncation` for T rounds, and what it costs.

    Attributes:
        learning_rate: `[]`, η, the factor that multiplies the gradient; zero where the moments
            overflow.
        regret: `[]`, bound on the expected regret on clean data; infinite where it overflows.
        second_moment: `[]`, B_g B_Ψ ≥ E‖g̃Ψ̃‖².
        copies: `[]`, noisy copies that a round uses on average.
        inner_products: `[]`, how many inner products of instances the run takes,
            (2 + G) J T²/2 with G values of f in a slope and J factors in a stored estimate.
        bias: `[]`, the part of the bound that a slope which is cut off costs, at any rate.
        idle: `[]`, bound on the regret of playing zero for T rounds.
        informative_from: `[]`, the horizon from which on the bound says more than that, with the
            learning rate tuned for each; infinite where it never does.
    """

    learning_rate: chex.Numeric
    regret: chex.Numeric
    second_moment: chex.Numeric
    copies: chex.Numeric
    inner_products: chex.Numeric
    bias: chex.Numeric
    idle: chex.Numeric
    informative_from: chex.Numeric

    @property
    def vacuous(self) -> chex.Numeric:
        """`[]`, whether playing zero keeps as much regret away."""
        return self.regret >= self.idle


_Guarantee = TypeVar("_Guarantee", Guarantee, TruncationGuarantee)


def at_rate_factor(guarantee: _Guarantee, rate_factor: chex.Numeric) -> _Guarantee:
    """The guarantee of gradient descent at a multiple of the theorem's own learning rate, once.

        η = mW/√(GT),   W²/(2η) + ηGT/2 = ½(m + 1/m) W√(GT)

    Theorems reckon with the largest gradients that can be; where those met are far smaller, a
    larger rate learns faster, and this is what it stakes. A part of the bound that does not depend
    on the rate is multiplied as well in a `Guarantee`, as that of `uncorrected`: ½(m + 1/m) ≥ 1
    keeps it a bound. In a `TruncationGuarantee` it is not, and `vacuous` and `informative_from` are
    those of the new bound.

    Args:
        guarantee: of the theorem's own rate η = W/√(GT): a `Guarantee` or `TruncationGuarantee` as
            the theorem gives it, not one that this function gave.
        rate_factor: m > 0.

    Returns:
        The guarantee with learning rate mη and ½(m + 1/m) times the regret bound.

    Raises:
        ValueError: a factor that is not positive, or a guarantee of another kind: of mistakes, or
            of `regularized_risk`, which takes its learning rate itself.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(theory.regret, at_rate_factor(theory, 2.0).regret)
        40.0 50.0
    """
    check_positive("rate_factor", rate_factor, "the learning rate over the theorem's")
    if not isinstance(guarantee, (Guarantee, TruncationGuarantee)):
        raise ValueError(
            "guarantee must bound the regret of gradient descent at η = W/√(GT), as those of "
            f"two_copies or parallel_worlds do, got {type(guarantee).__name__}"
        )
    stake = (rate_factor + 1 / rate_factor) / 2
    learning_rate = rate_factor * guarantee.learning_rate
    if isinstance(guarantee, Guarantee):
        return guarantee._replace(learning_rate=learning_rate, regret=stake * guarantee.regret)
    with np.errstate(over="ignore"):
        return guarantee._replace(
            learning_rate=learning_rate,
            regret=stake * (guarantee.regret - guarantee.bias) + guarantee.bias,
            informative_from=stake**2 * guarantee.informative_from,
        )


def gradient_descent(second_moment, horizon, radius) -> Guarantee:
    """η = W/√(GT) and the bound W√(GT), from G and the radius W."""
    check_positive("horizon", horizon, "the number of rounds T")
    check_radius(radius)
    moment = concrete(second_moment)
    if moment is not None and not 0 < moment < jnp.inf:
        raise ValueError(
            f"the second moment of the gradient estimate must be positive and finite, got {moment}:"
            " the data are all zero, a moment is negative, the data or R² overflow float32, or the"
            " noise has no finite moment of the order that this learner needs (two_copies needs the"
            " second only, known_covariance and uncorrected the fourth)"
        )
    root = jnp.sqrt(second_moment) * jnp.sqrt(horizon)  # apart, as the product may overflow
    return Guarantee(radius / root, radius * root, jnp.asarray(second_moment))
