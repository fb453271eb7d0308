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
    """The result of `engine.Rule.update` in round t, where f_{t+1} = c_t f_t + α_t φ_t.

    f_t is the learner's function, and φ_t the atom, the function that the round adds.

    Attributes:
        coefficient: α_t, `[]`; `[K]`, one for each atom, if the memory has `width=K`.
        decay: c_t, `[]`, the factor of f_t; 1 for no decay.
        state: the rule's own state after the round, a pytree as `Rule.init` returns it.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.engine.Update(coefficient=0.5, decay=0.99, state=()))
        Update(coefficient=0.5, decay=0.99, state=())
    """

    coefficient: jax.Array
    decay: ArrayLike
    state: Any


@plain_signature
class Rule(NamedTuple):
    """The update of a learner in `engine.expansion`: f_{t+1} = c_t f_t + α_t φ_t.

    f_t is the learner's function, and φ_t the atom, the function that round t adds, such as
    k(x̃_t, ·). From a few values of f_t a rule computes the coefficient α_t and the decay factor
    c_t. This is the part that most learners define.

    Attributes:
        init: `() -> state`, the rule's own state before round 0, a pytree of arrays such as an
            offset or a count; `()` for none.
        update: `(state, values, target, t, square) -> Update`, run in a scan over rounds t = 0, 1,
            … (a whole number `[]`). `values` `[1 + P]` holds f_t at the atom's point, then at the P
            query points; `target` is `Round.target`; `square` `[]` is ‖φ_t‖². If the memory has
            `width=K`, `values` is `[K + P]`, and `square` the inner products `[K, K]` of the atoms.
        output: `(state, values[...]) -> [...]`, predictions from values of f_t, for a rule with an
            offset or a threshold. It must be linear in state and values together, so that
            `wrappers.averaged` can average both. `None`, the default, if f_t is the prediction.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> def update(state, values, y, t, square):  # a gradient step on |f(x) − y|
        ...     return nj.engine.Update(-0.1 * jnp.sign(values[-1] - y), 1.0, state)
        >>> space = nj.engine.function_space(nj.kernels.gaussian(length_scale=1.0), buffer=200)
        >>> learner = space.learner(nj.engine.Rule(lambda: (), update))
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=2)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> print(f"mean absolute error {jnp.abs(run.predictions - stream.y).mean():.2f}")
        mean absolute error 0.11

    """

    init: Callable[[], Any]
    update: Callable[[Any, jax.Array, Any, jax.Array, jax.Array], Update]
    output: Callable[[Any, jax.Array], jax.Array] | None = None

    def outputs(self, state: Any, values: jax.Array) -> jax.Array:
        """Returns predictions `[...]` for values `[...]` of f_t, with the rule's own state."""
        return values if self.output is None else self.output(state, values)

    def linear_part(self) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
        """Returns `(weights, with_weights)`, two fields of the `Learner` that this rule makes.

        They read and replace the weights of f, together with the rule's state if there is an
        `output`.
        """
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
