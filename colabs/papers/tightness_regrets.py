"""What the guarantees of `tightness` bound, beside the regret for the squared loss."""

from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax import engine, kernels, learners, losses
from noisy_jax.base import Sample, Stream
from noisy_jax.losses import Loss
from noisy_jax.noise import Gaussian
from noisy_jax.simulated import bounds
from noisy_jax.simulated.rollouts import final_regret, rollout

MOST_COUNTED = 4096  # rounds, as each has a dimension of its own
_HALVINGS = 40

ABSOLUTE, LINEAR = losses.epsilon_insensitive(epsilon=0.0), kernels.linear()
VECTOR = engine.weight_vector()
"""The memory of learners with the kernel `LINEAR`."""


def absolute_regret(learner, stream, noise, key, *, radius, rounds):
    """Regret for the absolute loss against the best linear function of one feature in a ball."""
    best = best_weight(ABSOLUTE, stream, radius)
    return final_regret(
        learner, stream, noise, key, loss=ABSOLUTE, comparator=best * stream.x[:, 0], rounds=rounds
    )


def risk_regret(learner, stream, noise, key, *, radius, rounds):
    """Σ_t [ℓ(f_t(x_t), y_t) + ½λ‖f_t‖²] − min_w Σ_t [ℓ(w x_t, y_t) + ½λw²], λ = 1/`radius`.

    ℓ is the absolute loss and f_t is linear in one feature, so that ‖f_t‖ = |f_t(1)|. x and y are
    seen without noise.
    """

    def risk(value, weight, y):
        return ABSOLUTE(value, y) + weight**2 / (2 * radius)

    def one_round(state, shown):
        x, y = shown
        value, weight = learner.predict(state, jnp.stack([x, jnp.ones(1)]))
        return learner.step(state, Sample(x[None], y), key), risk(value, weight, y)

    _, risks = jax.lax.scan(one_round, learner.init(1), stream)
    best = best_weight(ABSOLUTE, stream, radius, rounds / radius)
    excess = risks - risk(best * stream.x[:, 0], best, stream.y)
    return jnp.sum(jnp.where(jnp.arange(len(stream.y)) < rounds, excess, 0))


def best_weight(loss: Loss, stream: Stream, radius: Any, weight: Any = 0.0) -> jax.Array:
    """argmin_{|w| ≤ `radius`} Σ_t ℓ(w x_t, y_t) + ½ `weight` w² for one feature, by bisection.

    It is a constant for derivatives: those of the minimum are right by the envelope theorem.
    """
    x, y = jax.lax.stop_gradient((stream.x[:, 0], stream.y))

    def halved(_, ends):
        low, high = ends
        middle = (low + high) / 2
        rising = jnp.sum(loss.gradient(middle * x, y) * x) + weight * middle > 0
        return jnp.where(rising, low, middle), jnp.where(rising, middle, high)

    high = jax.lax.stop_gradient(jnp.asarray(radius, float))
    low, high = jax.lax.fori_loop(0, _HALVINGS, halved, (-high, high))
    return (low + high) / 2


def counted(horizon: int) -> list[tuple[str, float, float]]:
    """Learners whose guarantee bounds a number of rounds: name, number and bound.

    A number of mistakes has no gradient. Instead of a search there is one stream, of n orthogonal
    instances of norm one with label 1, on which a function of norm one has the margin μ = 1/√n.
    Each instance is shown as often as it is an error. There are none for one round, or for more
    than `MOST_COUNTED`.
    """
    if not 2 <= horizon <= MOST_COUNTED:
        return []

    def norma(rate, margin):
        return learners.norma(
            LINEAR, losses.hinge(margin=margin), learning_rate=rate, regularization=0.0,
            buffer=VECTOR,
        )  # fmt: skip

    def errors(learner, shown, margin):
        x = jnp.repeat(jnp.eye(horizon // shown), shown, axis=0)
        stream, key = Stream(x, jnp.ones(len(x))), jax.random.key(0)
        run = jax.jit(lambda: rollout(learner, stream, Gaussian(0.0), key).predictions)
        return float(jnp.sum(run() <= margin))

    def theorem(formula, instances, **options):
        still = bounds.Drift(norm=1.0, length=0.0, squared_length=0.0)
        options |= {"comparator_margin": instances**-0.5, "comparator_loss": 0.0}
        return formula(1.0, still, horizon=horizon, **options)

    margin = 0.5 * (horizon // 2) ** -0.5
    of_margin = theorem(bounds.margin_errors, horizon // 2, margin=margin)
    of_alma = bounds.alma(threshold=0.0, comparator_margin=horizon**-0.5)
    return [
        (name, errors(learner, shown, margin), float(bound))
        for name, learner, shown, margin, bound in [
            ("perceptron, mistakes", learners.perceptron(LINEAR, buffer=VECTOR), 1, 0.0,
             theorem(bounds.mistakes, horizon).mistakes),
            ("norma, margin errors", norma(of_margin.learning_rate, margin), 2, margin,
             of_margin.mistakes),
            ("alma, mistakes", learners.alma(LINEAR, threshold=0.0, buffer=VECTOR), 1, 0.0,
             of_alma),
        ]
    ]  # fmt: skip
