"""Novelty detectors by NORMA, and measures of detectors.

All detectors are NORMA with λ = 1, as in the paper, and the kernel exp(−‖x − z‖²/2ℓ²), ℓ = √d/2.
No terms are dropped. A `Rule` says in which rounds f decays, and how low the threshold ρ may fall.

Since f ≥ 0, there is no alarm while ρ < 0. From ρ_1 = 0 with η_t = t^(−1/2), the alarm of round 1
takes ρ to ν − 1, and each quiet round adds ν/√t, so that the next alarm comes when 2ν√t exceeds
about 1. If ρ is kept at 0 or above, it follows projected descent (no best ρ is negative), and more
than a share ν of the rounds may be alarms.

Source: Online Learning with Kernels, Eq. 20 with the signs that descend, and Figure 3.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Stream
from noisy_jax.engine import everything
from noisy_jax.kernels import gaussian
from noisy_jax.learners.norma import norma
from noisy_jax.losses import novelty
from noisy_jax.noise import Gaussian
from noisy_jax.simulated.rollouts import Rollout, rollout
from noisy_jax.validation.values import ArrayLike

DECAYS = ("always", "on_update")
"""Rounds in which f decays, as in `learners.norma`."""

FLOORS = (-np.inf, 0.0)
"""The smallest values that ρ may take."""


class Rate(NamedTuple):
    """A learning rate: η_t = η_1 t^(−1/2), or constant.

    Attributes:
        first: η_1.
        falling: whether it falls.
    """

    first: ArrayLike
    falling: ArrayLike

    @property
    def name(self) -> str:
        """In a table."""
        return "t^(−1/2)" if self == FALLING else f"{self.first:g}"

    def __call__(self, t: Any) -> Any:
        """η_{t + 1}, for t = 0, 1, …."""
        return self.first * jnp.where(self.falling, (t + 1.0) ** -0.5, 1.0)


FALLING = Rate(1.0, falling=True)
"""The learning rate of the paper."""


class Rule(NamedTuple):
    """What distinguishes one detector from another.

    Attributes:
        decay: one of `DECAYS`.
        floor: one of `FLOORS`.
    """

    decay: Literal["always", "on_update"]
    floor: Any

    @property
    def name(self) -> str:
        """In a table or a picture."""
        decay = {"always": "decay always", "on_update": "decay on alarms"}[self.decay]
        return decay + (", ρ ≥ 0" if self.floor == 0 else "")


RULES = tuple(Rule(decay, floor) for decay in DECAYS for floor in FLOORS)
"""All rules."""


def detector(rule: Rule, nu: ArrayLike, learning_rate: Rate, *, horizon: int, dim: int) -> Learner:
    """NORMA for novelty under a rule."""
    return norma(
        gaussian(length_scale=dim**0.5 / 2),
        novelty(nu=nu, smallest=rule.floor),
        learning_rate=learning_rate,
        regularization=1.0,
        buffer=everything(horizon),
        decay=rule.decay,
    )


def watched(learner: Learner, x: jax.Array) -> Rollout:
    """One pass through x; predictions are f(x) − ρ before each step."""
    return rollout(learner, Stream(x, jnp.zeros(len(x))), Gaussian(0.0), jax.random.key(0))


def auc(scores: jax.Array, positive: jax.Array) -> jax.Array:
    """Probability that a positive's score is above a negative's, ties counted half.

    Args:
        scores: `[n]`.
        positive: `[n]`, bool.

    Returns:
        `[]`, the area under the receiver operating characteristic.

    Example:
        >>> auc(jnp.array([0.1, 0.4, 0.3, 0.9]), jnp.array([False, True, False, True]))
        Array(1., dtype=float32)
    """
    count = jnp.sum(positive).astype(float)
    mean_rank = jnp.mean(jax.scipy.stats.rankdata(scores), where=positive)
    return (mean_rank - (count + 1) / 2) / (len(scores) - count)


def effective_terms(weights: jax.Array) -> jax.Array:
    """The effective number of terms, (Σ_i α_i)²/Σ_i α_i², of coefficients α ≥ 0 `[n]`.

    It is the number of coefficients if all are equal, and 0 if all are 0.

    Example:
        >>> effective_terms(jnp.array([2.0, 2.0, 0.0, 2.0]))
        Array(3., dtype=float32)
    """
    largest = jnp.max(weights)
    shares = weights / jnp.where(largest > 0, largest, 1)  # their squares do not underflow
    return jnp.sum(shares) ** 2 / jnp.maximum(jnp.sum(shares**2), 1)
