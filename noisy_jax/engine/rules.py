"""Rules of the engine: from values of f_t to its change, f_{t+1} = P(c_t f_t + α_t φ_t)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from noisy_jax.validation import between, check_shape, positive


class Update(NamedTuple):
    """What a rule computes in one round.

    Attributes:
        coefficient: `[]`, α_t.
        decay: c_t, the factor on f_t.
        state: the rule's own state after the round.
    """

    coefficient: jax.Array
    decay: chex.Numeric
    state: Any


class Rule(NamedTuple):
    """From values of f_t to the change of f: where most learners differ.

    Attributes:
        init: `() -> state`, a pytree of arrays such as offsets, margins, counts; `()` for none.
        update: `(state, values[1 + P], target, t) -> Update`; values are those of f_t at the atom,
            then at the query points. It runs in a scan: use arithmetic on scalars only.
        output: `(state, values[...]) -> [...]`, predictions from values of f_t. By default f_t
            itself; a rule with an offset or a threshold adds it here. (`averaged` averages f only.)
    """

    init: Callable[[], Any]
    update: Callable[[Any, jax.Array, Any, jax.Array], Update]
    output: Callable[[Any, jax.Array], jax.Array] = lambda state, values: values


def parsed_rate(learning_rate: optax.ScalarOrSchedule) -> Any:
    """η > 0 or a schedule, checked; NaN if a traced η is not positive, or a schedule negative."""
    if isinstance(learning_rate, optax.GradientTransformation):
        raise ValueError(
            "learning_rate must be a number or a schedule, got an optimizer: pass it to a linear "
            "learner as optimizer; other learners take none"
        )
    if not callable(learning_rate):
        return positive("learning_rate", learning_rate, "η, the factor of the gradient")

    def rate(t):
        eta: Any = learning_rate(t)
        check_shape("learning_rate", eta, (), "one number in each round")
        return jnp.where(eta >= 0, eta, jnp.nan)

    return rate


def parsed_radius(radius: chex.Numeric, *, squared: bool = False) -> Any:
    """W > 0, checked; NaN where a traced one is not positive or out of the range of floats.

    If `squared`, its square must have full precision as well.
    """
    radius = positive("radius", radius, "the norm of the largest predictor that competes")
    limits = np.finfo(jax.dtypes.canonicalize_dtype(float))
    low, high = float(limits.tiny), float(limits.max)
    if squared:
        low, high = (low / float(limits.eps)) ** 0.5, high**0.5
    reason = (
        f"{limits.dtype} cannot hold others{' or their squares' if squared else ''}; change units"
    )
    return between("radius", radius, low, high, reason)


def schedule(learning_rate: optax.ScalarOrSchedule) -> Callable[[chex.Numeric], Any]:
    """η_t as a function of the round t = 0, 1, …, from a number η > 0 or an optax schedule."""
    rate = parsed_rate(learning_rate)
    return rate if callable(rate) else optax.constant_schedule(rate)


def squared_loss(learning_rate: optax.ScalarOrSchedule) -> Rule:
    """The rule of the squared loss: α_t = −2η_t(v − y_t), with y_t the target of the round.

    v is the value of f_t at the last query point, or at the atom if there are no query points. The
    learning rate is η > 0, or an optax schedule of rounds 0, 1, …
    """
    rate = schedule(learning_rate)

    def update(state, values, target, t) -> Update:
        return Update(-2 * rate(t) * (values[-1] - target), 1.0, state)

    return Rule(lambda: (), update)
