"""What projected online gradient descent guarantees from unbiased gradient estimates.

With G ≥ E‖∇̃_t‖², a ball of radius W and η = W/√(GT), the expected regret on clean data is at most
W √(GT).
"""

from typing import NamedTuple, TypeVar

import chex
import jax.numpy as jnp

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


_Guarantee = TypeVar("_Guarantee", bound=NamedTuple)


def at_rate_factor(guarantee: _Guarantee, rate_factor: chex.Numeric) -> _Guarantee:
    """The guarantee of gradient descent at a multiple of the theorem's learning rate.

        η = mW/√(GT),   W²/(2η) + ηGT/2 = ½(m + 1/m) W√(GT)

    Theorems reckon with the largest gradients that can be; where those met are far smaller, a
    larger rate learns faster, and this is what it stakes. A part of the bound that does not depend
    on the rate, such as a bias, is multiplied as well: ½(m + 1/m) ≥ 1 keeps it a bound.

    Args:
        guarantee: a `Guarantee` or `TruncationGuarantee`.
        rate_factor: m > 0.

    Returns:
        The guarantee with learning rate mη and regret bound ½(m + 1/m) times the given one.

    Raises:
        ValueError: a factor that is not positive, or a guarantee that bounds no regret.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second=1.0)
        >>> print(theory.regret, at_rate_factor(theory, 2.0).regret)
        40.0 50.0
    """
    check_positive("rate_factor", rate_factor, "the learning rate over the theorem's")
    if not hasattr(guarantee, "regret"):
        raise ValueError(
            "guarantee must bound the regret of gradient descent, as those of two_copies or "
            f"parallel_worlds do, got {type(guarantee).__name__}"
        )
    return guarantee._replace(
        learning_rate=rate_factor * guarantee.learning_rate,
        regret=(rate_factor + 1 / rate_factor) / 2 * guarantee.regret,
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
            " second only, known_covariance and noise_blind the fourth)"
        )
    root = jnp.sqrt(second_moment) * jnp.sqrt(horizon)  # apart, as the product may overflow
    return Guarantee(radius / root, radius * root, jnp.asarray(second_moment))
