"""Rules of the engine: from the values of f_t to its change, f_{t+1} = P(c_t f_t + α_t φ_t)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import optax

from noisy_jax.validation import check_one_number, check_positive, check_shape, concrete


class Update(NamedTuple):
    """What a rule makes of one round.

    Attributes:
        coefficient: `[]`, α_t.
        decay: c_t, the factor on all that came before.
        state: the rule's own state after the round.
    """

    coefficient: chex.Array
    decay: chex.Numeric
    state: Any


class Rule(NamedTuple):
    """From values of f_t to the change of f: what makes one learner differ from another.

    Attributes:
        init: `() -> state`, a pytree of arrays: offsets, margins, counts; `()` where there is none.
        update: `(state, values[1 + P], target, t) -> Update`, with f_t at the atom, then at the
            query_points. It is traced once and runs in a scan: arithmetic on scalars only.
        output: `(state, values[...]) -> [...]`, predictions from values of f_t: f_t itself, unless
            the rule has an offset or a threshold of its own. (`averaged` averages f alone.)
    """

    init: Callable[[], Any]
    update: Callable[[Any, chex.Array, Any, chex.Array], Update]
    output: Callable[[Any, chex.Array], chex.Array] = lambda state, values: values


def schedule(learning_rate: optax.ScalarOrSchedule) -> optax.Schedule:
    """η_t as a function of the round t = 0, 1, …; arguments are those of `sound_rate`."""
    rate = sound_rate(learning_rate)
    return rate if callable(rate) else optax.constant_schedule(rate)


def sound_rate(learning_rate: optax.ScalarOrSchedule) -> optax.ScalarOrSchedule:
    """The learning rate; NaN where a traced one is not positive, or one of a schedule negative.

    Args:
        learning_rate: η > 0, or an optax schedule of the round, counted from 0.

    Raises:
        ValueError: a rate that is not one positive number, or an optimizer; from a schedule, when
            it runs, what is not one number.
    """
    if isinstance(learning_rate, optax.GradientTransformation):
        raise ValueError(
            "learning_rate must be a number or a schedule, got an optimizer: learners of linear "
            "predictors take it as optimizer, others take none"
        )
    if callable(learning_rate):

        def rate(t):
            eta = learning_rate(t)
            check_shape("learning_rate", eta, (), "one number in each round")
            return jnp.where(eta >= 0, eta, jnp.nan)

        return rate
    check_one_number("learning_rate", learning_rate)
    check_positive("learning_rate", learning_rate, "the factor of the gradient")
    if concrete(learning_rate) is not None:
        return learning_rate
    return jnp.where(learning_rate > 0, learning_rate, jnp.nan)


def squared_loss(learning_rate: optax.ScalarOrSchedule) -> Rule:
    """The rule of the squared loss: α_t = −2η_t(v − y_t), y_t the target of the round.

    v is the last value that is read: f_t at the last probe, or at the atom where no probe is.

    Args:
        learning_rate: η > 0, or an optax schedule of the round, counted from 0.

    Raises:
        ValueError: a rate that is not positive.
    """
    rate = schedule(learning_rate)

    def update(state, values, target, t) -> Update:
        return Update(-2 * rate(t) * (values[-1] - target), 1.0, state)

    return Rule(lambda: (), update)
