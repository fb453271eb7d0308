"""Projected online gradient descent on linear weights, along an estimate of the clean gradient.

    w_1 = 0,   w_{t+1} = P(w_t − η_t ∇̃_t),   P the projection on {‖w‖ ≤ B_w}

Learners of linear predictors differ only in the estimate ∇̃_t. The rate is adaptive by default,
η_t = √2 B_w/√(Σ_{s ≤ t} ‖∇̃_s‖²), which needs no horizon and no moments of the data
(`bounds.adaptive_rate`). For ‖u‖ ≤ B_w and constant η,
Σ_t ⟨∇̃_t, w_t − u⟩ ≤ ‖u‖²/(2η) + (η/2) Σ_t ‖∇̃_t‖². The theorems' rates follow from this bound.

Source: Learning from Noisy Data under Distributional Assumptions, Eqs. 2-3 and Lemma 3 (which
prints w_t on both sides of the recursion; w_{t+1} is meant).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import (
    Learner,
    Needs,
    Sample,
    check_sample,
    exportable,
    field_weights,
    fresh,
    with_field_weights,
)
from noisy_jax.engine.rules import parsed_radius, parsed_rate, rate_of
from noisy_jax.moments import online
from noisy_jax.validation.arrays import check_dimension, check_shape, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import function, switch
from noisy_jax.validation.values import ArrayLike
from noisy_jax.xla import total

Gradient = Callable[[jax.Array, Sample], jax.Array]
"""`(weights[d], sample) -> [d]`, an estimate of the gradient of the clean loss."""


@exportable
class GradientDescentState(NamedTuple):
    """State of a linear learner.

    Attributes:
        weights: `[d]`, w_t; the prediction at x is ⟨w_t, x⟩.
        optimizer: state of the rate or of the optax transformation.
    """

    weights: jax.Array
    optimizer: optax.OptState


def gradient_descent(
    gradient: Gradient,
    *,
    copies: int,
    radius: ArrayLike,
    learning_rate: optax.ScalarOrSchedule | None = None,
    optimizer: optax.GradientTransformation | None = None,
    labels: bool = False,
) -> Learner:
    """Projected online gradient descent on the weights of a linear predictor.

        w_1 = 0,   w_{t+1} = P(w_t − η_t ∇̃_t),   P the projection on the ball {‖w‖ ≤ B_w}

    Columns of x should have similar sizes, because one radius and one rate serve all of them:
    without `optimizer`, `rollout` warns where one is 20 times as large as another.

    Args:
        gradient: `(weights[d], sample) -> [d]`, the estimate ∇̃_t of the gradient of the loss at
            the clean x_t, from a `Sample` of noisy copies.
        copies: V ≥ 1, number of noisy copies that `gradient` reads.
        radius: B_w > 0. Regret is the learner's total loss on clean data over T rounds minus the
            total of the best predictor in this ball.
        learning_rate: η > 0, or an optax schedule of rounds t = 0, 1, …; `None`, the default, for
            the adaptive rate η_t = √2 B_w/√(Σ_{s≤t} ‖∇̃_s‖²).
        optimizer: an optax transformation that works from gradients alone (such as `optax.adam`),
            in place of a learning rate; the projection stays. Both together raise ValueError.
        labels: True if targets must be labels −1 and +1; False by default.

    Returns:
        A `Learner` of V copies, which predicts ⟨w_t, x⟩; `state.weights` is w_t `[d]`. It has
        `clean_estimates` (unbiased estimates of f(x) and f(x)² at the clean x) from two copies, or
        from one with `sample.cov`; otherwise they are NaN. If ∇̃ is unbiased and the loss convex,
        its expected regret at the adaptive rate is at most 2√2 B_w √(E Σ_t ‖∇̃_t‖²)
        (`bounds.adaptive_rate`). A run ends in NaN if squares of the weights overflow, or if a
        traced rate or radius is not positive; `Rollout.diverged_at` then names the round.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> def gradient(weights, sample):  # of the absolute loss, on one noisy copy
        ...     return jnp.sign(sample.x[0] @ weights - sample.y) * sample.x[0]
        >>> learner = nj.learners.gradient_descent(gradient, copies=1, radius=1.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> print(f"mean loss {jnp.mean(jnp.abs(run.predictions - stream.y)):.2f}")
        mean loss 0.16
    """
    function("gradient", gradient, "(weights, sample) -> [d]")
    copies, labels = whole("copies", copies), switch("labels", labels)
    radius = parsed_radius(radius)
    if learning_rate is not None and optimizer is not None:
        raise ValueError("give learning_rate or optimizer, not both")
    method = descent(radius, optimizer)
    if learning_rate is not None:
        method = _at_rate(learning_rate)

    def init(dim: int) -> GradientDescentState:
        weights = jnp.zeros(whole("dim", dim, 1, "number of features"))
        return fresh(GradientDescentState(weights, started(method, weights)))

    def step(state: GradientDescentState, sample: Sample, key: jax.Array):
        del key  # it draws nothing
        check_sample(sample, copies, labels=labels)
        check_dimension("the learner's weights", state.weights, sample.x.shape)
        estimate = gradient(state.weights, sample)
        check_shape("gradient", estimate, state.weights.shape, "as the weights")
        updates, optimizer_state = method.update(estimate, state.optimizer, state.weights)
        weights = projected(optax.apply_updates(state.weights, updates), radius)
        return GradientDescentState(weights, optimizer_state)

    def predict(state: GradientDescentState, x: jax.Array) -> jax.Array:
        x = jnp.asarray(real_array("x", x))
        check_dimension("the learner's weights", state.weights, x.shape)
        return x @ state.weights

    def clean_estimates(state: GradientDescentState, sample: Sample, key: jax.Array):
        del key
        if copies > 1:
            return online.two_copies(copies).clean_estimates(state.weights, sample)
        if sample.cov is None:
            return jnp.array(jnp.nan), jnp.array(jnp.nan)
        return online.known_covariance().clean_estimates(state.weights, sample)

    return Learner(
        init,
        step,
        predict,
        Needs(copies, labels=labels, one_scale=optimizer is None),
        clean_estimates=clean_estimates,
        weights=field_weights,
        with_weights=with_field_weights,
    )


def descent(radius: ArrayLike | None, optimizer: Any) -> optax.GradientTransformation:
    """Checks and returns the optimizer; `None` gives descent at the adaptive rate of the ball."""
    if optimizer is not None:
        if not all(callable(getattr(optimizer, name, None)) for name in ("init", "update")):
            raise ValueError(
                "optimizer must be a transformation such as optax.adam(0.1), got "
                f"{given(optimizer)}"
            )
        return optimizer
    rate = rate_of(None, radius)

    def update(updates, state, params=None):
        del params
        eta, state = rate.at(state, 0, _sum(jax.tree.map(jnp.square, updates)))
        return jax.tree.map(lambda leaf: -eta * leaf, updates), state

    return optax.GradientTransformation(lambda params: rate.init(), update)


def _at_rate(learning_rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
    """Returns descent at a given rate. The state of a schedule is the number of the round, `[]`.

    A number has no state: a counter is one more operation of a round (`noisy_jax.xla.total`).
    """
    rate = parsed_rate(learning_rate)

    def update(updates, state: Any, params=None):
        del params
        eta = rate(state) if callable(rate) else rate
        moves = jax.tree.map(lambda leaf: -jnp.asarray(eta, leaf.dtype) * leaf, updates)
        return moves, optax.safe_increment(state) if callable(rate) else state

    return optax.GradientTransformation(
        lambda params: jnp.int32(0) if callable(rate) else (), update
    )


def started(method: optax.GradientTransformation, params: Any) -> optax.OptState:
    """Returns the optimizer's first state, if updates need only gradients and parameters."""
    state = method.init(params)
    try:
        jax.eval_shape(method.update, params, state, params)
    except TypeError as error:
        raise ValueError(
            "optimizer must work from gradients alone, such as optax.adam(0.1); a noisy round "
            f"has no value of the clean loss, but its update says: {error}"
        ) from error
    return state


def projected(weights: Any, radius: ArrayLike) -> Any:
    """Returns the nearest weights in the ball; NaN if the radius is, or if a square overflows.

    Weights are any pytree of arrays, as one vector. In units of the radius, the squares of small
    weights in a small ball do not vanish.
    """
    size = sum(leaf.size for leaf in jax.tree.leaves(weights))

    def squares(leaf):
        square = (leaf / radius) ** 2
        return jnp.where(square < jnp.finfo(square.dtype).max / size, square, jnp.nan)

    scale = jax.lax.rsqrt(jnp.maximum(_sum(jax.tree.map(squares, weights)), 1))
    return jax.tree.map(lambda leaf: (leaf * scale).astype(leaf.dtype), weights)


def _sum(tree: Any) -> jax.Array:
    """Returns the sum of all numbers in a pytree."""
    return functools.reduce(jnp.add, [total(jnp.ravel(leaf)) for leaf in jax.tree.leaves(tree)])
