"""Rules of the engine: they compute α_t and c_t of f_{t+1} = P(c_t f_t + α_t φ_t)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from noisy_jax.base import exportable, field_weights, plain_signature, with_field_weights
from noisy_jax.validation.arrays import check_shape
from noisy_jax.validation.numbers import between, positive
from noisy_jax.validation.values import ArrayLike


@plain_signature
class Update(NamedTuple):
    """Result of a rule in one round.

    Attributes:
        coefficient: `[]`, α_t; `[K]` if the memory has a `width`.
        decay: c_t, the factor on f_t.
        state: the rule's own state after the round.
    """

    coefficient: jax.Array
    decay: ArrayLike
    state: Any


@plain_signature
class Rule(NamedTuple):
    """Computes the update of f from values of f_t. This is the part that most learners define.

    Attributes:
        init: `() -> state`, a pytree of arrays such as offsets, margins, counts; `()` for none.
        update: `(state, values[1 + P], target, t, square) -> Update`: `values` holds f_t at the
            atom, then at the query points, and `square` is ‖φ_t‖². If the memory has a `width` K,
            `values` is `[K + P]`, and `square` the Gram matrix `[K, K]` of the atoms. It runs in a
            scan: use arithmetic on few numbers only.
        output: `(state, values[...]) -> [...]`, predictions from values of f_t, for a rule with an
            offset or a threshold; linear in both, so that `wrappers.averaged` averages both. `None`
            if predictions are the values of f_t.
    """

    init: Callable[[], Any]
    update: Callable[[Any, jax.Array, Any, jax.Array, jax.Array], Update]
    output: Callable[[Any, jax.Array], jax.Array] | None = None

    def outputs(self, state: Any, values: jax.Array) -> jax.Array:
        """Predictions `[...]` from values `[...]` of f_t."""
        return values if self.output is None else self.output(state, values)

    def linear_part(self) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
        """`Learner.weights` and `with_weights` of f, and of the rule if it has an `output`."""
        if self.output is None:
            return field_weights, with_field_weights

        def with_both(state, weights):
            return state._replace(weights=weights[0], rule=weights[1])

        return lambda state: (state.weights, state.rule), with_both


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


def parsed_radius(radius: ArrayLike, *, squared: bool = False) -> Any:
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


def schedule(learning_rate: optax.ScalarOrSchedule) -> Callable[[ArrayLike], Any]:
    """η_t as a function of the round t = 0, 1, …, from a number η > 0 or an optax schedule."""
    rate = parsed_rate(learning_rate)
    return rate if callable(rate) else optax.constant_schedule(rate)


@exportable
class AdaptiveState(NamedTuple):
    """State of an adaptive rate.

    Attributes:
        squares: `[]`, Σ ‖g_s‖² of the gradients so far.
    """

    squares: jax.Array


class Rate(NamedTuple):
    """A learning rate for each round.

    Attributes:
        init: `() -> state`.
        at: `(state, t, square) -> (η_t, state)`, where square is ‖g_t‖² of the round's gradient.
    """

    init: Callable[[], Any]
    at: Callable[[Any, ArrayLike, jax.Array], tuple[Any, Any]]


def rate_of(learning_rate: optax.ScalarOrSchedule | None, radius: ArrayLike | None = None) -> Rate:
    """The rate that an argument `learning_rate` stands for: a number, a schedule, or adaptive.

    `None` stands for the adaptive rate in a ball of radius B,

        η_t = √2 B/√(Σ_{s ≤ t} ‖g_s‖²),   Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t ‖g_t‖²)

    for all vectors g_t and all w_t and u in the ball (`bounds.adaptive_rate`). It is zero before
    the first gradient that is not zero, and NaN if the sum overflows.

    Source: Streeter and McMahan, Less regret via online conditioning (2010); Duchi, Hazan and
    Singer, Adaptive subgradient methods (2011), with one rate for all coordinates.
    """
    if learning_rate is not None:
        constant = schedule(learning_rate)
        return Rate(lambda: (), lambda state, t, square: (constant(t), state))
    if radius is None:
        raise ValueError("radius must be given for the adaptive rate (learning_rate=None)")
    ball = parsed_radius(radius)

    def at(state: AdaptiveState, t, square):
        del t
        squares = state.squares + square
        positive = squares > 0  # False with NaN
        rate = 2**0.5 * ball * jax.lax.rsqrt(jnp.where(positive, squares, 1))
        rate = jnp.where(squares < jnp.inf, jnp.where(positive, rate, 0), jnp.nan)
        return rate, AdaptiveState(squares)

    return Rate(lambda: AdaptiveState(jnp.zeros(())), at)


def squared_loss(
    learning_rate: optax.ScalarOrSchedule | None = None, *, radius: ArrayLike | None = None
) -> Rule:
    """The rule of the squared loss: α_t = −2η_t(v − y_t), with y_t the target of the round.

    v is the value of f_t at the last query point, or at the atom if there are no query points.

    Args:
        learning_rate: as in `rate_of`.
        radius: B > 0, the radius of the ball in `expansion`; only the adaptive rate uses it.
    """
    rate = rate_of(learning_rate, radius)

    def update(state, values, target, t, square) -> Update:
        derivative = 2 * (values[-1] - target)
        eta, state = rate.at(state, t, derivative**2 * square)
        return Update(-eta * derivative, 1.0, state)

    return Rule(rate.init, update)
