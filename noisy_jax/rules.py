"""Rules of the engine: from the values of f_t to its change, f_{t+1} = P(c_t f_t + α_t φ_t)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import optax

from noisy_jax.validation import check_positive


class Update(NamedTuple):
    """What a rule makes of one round.

    Attributes:
        coefficient: `[]`, α_t.
        shrink: c_t, the factor on all that came before.
        state: the rule's own state after the round.
    """

    coefficient: chex.Array
    shrink: chex.Numeric
    state: Any


class Rule(NamedTuple):
    """From values of f_t to the change of f: what makes one learner differ from another.

    Attributes:
        init: `() -> state`, a pytree of arrays: offsets, margins, counts; `()` where there is none.
        update: `(state, values[1 + P], facts, t) -> Update`, with f_t at the element, then at the
            probes. It is traced once and runs in a scan: arithmetic on scalars only.
        output: `(state, values[...]) -> [...]`, predictions from values of f_t: f_t itself, unless
            the rule has an offset or a threshold of its own. (`averaged` averages f alone.)
    """

    init: Callable[[], Any]
    update: Callable[[Any, chex.Array, Any, chex.Array], Update]
    output: Callable[[Any, chex.Array], chex.Array] = lambda state, values: values


def schedule(learning_rate: optax.ScalarOrSchedule) -> optax.Schedule:
    """η_t as a function of the round t = 0, 1, ….

    Args:
        learning_rate: η > 0, or an optax schedule of the round.

    Raises:
        ValueError: a rate that is not positive.
    """
    if callable(learning_rate):
        return learning_rate
    check_positive("learning_rate", learning_rate, "the factor of the gradient")
    return optax.constant_schedule(learning_rate)


def squared_loss(learning_rate: optax.ScalarOrSchedule) -> Rule:
    """The rule of the squared loss: α_t = −2η_t(v − y_t), y_t the facts of the round.

    v is the last value that is read: f_t at the last probe, or at the element where no probe is.

    Args:
        learning_rate: η > 0, or an optax schedule of the round.

    Raises:
        ValueError: a rate that is not positive.
    """
    rate = schedule(learning_rate)

    def update(state, values, target, t) -> Update:
        return Update(-2 * rate(t) * (values[-1] - target), 1.0, state)

    return Rule(lambda: (), update)
