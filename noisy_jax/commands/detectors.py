"""The novelty detectors that the command `novelty` compares, and what they find.

All are NORMA with λ = 1, as in the paper, and exp(−‖x − z‖²/2ℓ²), ℓ² = d/4; nothing is truncated. A
`Rule` says in which rounds f decays, and how low the threshold ρ may fall. As f ≥ 0, no alarm
sounds while ρ < 0, and none from ρ_1 = 0 and η_t = t^(−1/2) before 2ν√t exceeds about 1: the alarm
of round 1 takes ρ to ν − 1, and each quiet round adds ν/√t. Kept at 0 or above, ρ follows projected
descent instead (no best ρ is negative), and more than a share ν of the rounds may be alarms.

Source: Online Learning with Kernels, Eq. 20 with the signs that descend, and Figure 3.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import kernels, learners, losses, noise
from noisy_jax.base import Learner, Stream
from noisy_jax.engine import everything
from noisy_jax.evaluate.rollouts import Rollout, rollout

DECAYS = ("always", "on_update")
"""Rounds in which f decays, as in `learners.norma`."""

FLOORS = (-np.inf, 0.0)
"""Where ρ is kept at or above."""

FALLING = 0.0
"""Stands for the learning rate t^(−1/2) among constant ones."""

DIM, CLUSTERS, SPREAD, OUTLIER_SPREAD, OUTLIERS = 16, 6, 0.5, 2.0, 0.02
"""Of `clusters`: dimensions, clusters, deviations in a cluster and of outliers, their share."""


class Rule(NamedTuple):
    """What distinguishes one detector from another.

    Attributes:
        decay: one of `DECAYS`.
        floor: one of `FLOORS`.
    """

    decay: Literal["always", "on_update"]
    floor: chex.Numeric

    @property
    def name(self) -> str:
        """Of a table or a picture."""
        decay = {"always": "decay always", "on_update": "decay on alarms"}[self.decay]
        return decay + (", ρ ≥ 0" if self.floor == 0 else "")


RULES = tuple(Rule(decay, floor) for decay in DECAYS for floor in FLOORS)
"""All rules."""


class OnDigits(NamedTuple):
    """What a detector makes of digits.

    Attributes:
        alarms: share of the rounds with f(x) ≤ ρ.
        unseen: share of the other digits with f(x) ≤ ρ after the last round.
        support_vectors: `effective_terms`.
    """

    alarms: chex.Array
    unseen: chex.Array
    support_vectors: chex.Array


class OnClusters(NamedTuple):
    """What a detector makes of `clusters`, in the second half of the rounds.

    Attributes:
        inliers: share of alarms among the points of clusters.
        outliers: the same among the others.
        auc: probability that an outlier's f(x) − ρ is below an inlier's.
        support_vectors: `effective_terms` after the last round.
    """

    inliers: chex.Array
    outliers: chex.Array
    auc: chex.Array
    support_vectors: chex.Array


class Rejections(NamedTuple):
    """Digits that a detector finds odd, as their rows.

    Attributes:
        alarms: the first alarms, in order.
        rounds: in which they sounded, from 1 on.
        seen: those of the training part with the lowest f(x) − ρ in the end, worst first.
        unseen: the same of the rest.
        scores: `[n]`, f(x) − ρ of all digits in the end.
    """

    alarms: np.ndarray
    rounds: np.ndarray
    seen: np.ndarray
    unseen: np.ndarray
    scores: np.ndarray


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels `[1797, 64]` in [−1, 1], dark to bright, and digits `[1797]`, of scikit-learn."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images / 8 - 1, labels


def clusters(key: chex.PRNGKey, rounds: int) -> tuple[chex.Array, chex.Array]:
    """Points `[T, 16]` of six round clusters with a few outliers, and which are those, `[T]`.

    Centres are normal, and so are points around their centre, outliers around the origin.
    """
    keys = jax.random.split(key, 4)
    centres = jax.random.normal(keys[0], (CLUSTERS, DIM))
    own = centres[jax.random.randint(keys[1], (rounds,), 0, CLUSTERS)]
    outlier = jax.random.permutation(keys[2], jnp.arange(rounds) < round(OUTLIERS * rounds))
    deviations = jax.random.normal(keys[3], (rounds, DIM))
    x = jnp.where(outlier[:, None], OUTLIER_SPREAD * deviations, own + SPREAD * deviations)
    return x, outlier


def detector(
    rule: Rule, nu: chex.Numeric, learning_rate: chex.Numeric, *, horizon: int, dim: int
) -> Learner:
    """NORMA for novelty under a rule; a learning rate of `FALLING` is t^(−1/2)."""

    def rate(t):
        return jnp.where(learning_rate == FALLING, (t + 1.0) ** -0.5, learning_rate)

    return learners.norma(
        kernels.gaussian(length_scale=dim**0.5 / 2),
        losses.novelty(nu=nu, smallest=rule.floor),
        learning_rate=rate,
        regularization=1.0,
        buffer=lambda space: everything(space, horizon),
        decay=rule.decay,
    )


def watched(learner: Learner, x: chex.Array) -> Rollout:
    """One pass through x; predictions are f(x) − ρ before each step."""
    stream = Stream(x, jnp.zeros(len(x)))
    return rollout(learner, stream, noise.Gaussian(0.0), jax.random.key(0))


def effective_terms(weights: chex.Array) -> chex.Array:
    """(Σα)²/Σα² of coefficients α ≥ 0: their number where all are equal, 0 where all are 0."""
    largest = jnp.max(weights)
    shares = weights / jnp.where(largest > 0, largest, 1)  # their squares do not underflow
    return jnp.sum(shares) ** 2 / jnp.maximum(jnp.sum(shares**2), 1)


def on_digits(
    images: chex.Array, train: int, nus: Sequence[float], key: chex.PRNGKey
) -> Mapping[str, OnDigits]:
    """`OnDigits` by decay, leaves `[F, N, 1]`, at η = t^(−1/2) and the random order of the key."""
    shown = images[jax.random.permutation(key, len(images))]

    def measure(learner: Learner, played: Rollout) -> OnDigits:
        return OnDigits(
            jnp.mean(played.predictions <= 0),
            jnp.mean(learner.predict(played.state, shown[train:]) <= 0),
            effective_terms(played.state.weights),
        )

    return _by_decay(measure, shown[:train], nus, (FALLING,))


def on_clusters(
    rounds: int, nus: Sequence[float], rates: Sequence[float], key: chex.PRNGKey
) -> Mapping[str, OnClusters]:
    """`OnClusters` by decay, leaves `[F, N, R]`, of N ν and R rates on clusters of their own."""
    x, outlier = clusters(key, rounds)
    late = outlier[rounds // 2 :]

    def measure(_: Learner, played: Rollout) -> OnClusters:
        scores = played.predictions[rounds // 2 :]
        return OnClusters(
            jnp.mean(scores <= 0, where=~late),
            jnp.mean(scores <= 0, where=late),
            auc(-scores, late),
            effective_terms(played.state.weights),
        )

    return _by_decay(measure, x, nus, rates)


def auc(scores: chex.Array, positive: chex.Array) -> chex.Array:
    """Probability that a positive's score is above a negative's, ties counted half."""
    count = jnp.sum(positive)
    mean_rank = jnp.mean(jax.scipy.stats.rankdata(scores), where=positive)
    return (mean_rank - (count + 1) / 2) / (len(scores) - count)


def rejections(
    rule: Rule, images: chex.Array, train: int, nu: float, key: chex.PRNGKey, *, count: int = 50
) -> Rejections:
    """Up to `count` digits for each picture, at η = t^(−1/2) and the random order of the key."""
    images = jnp.asarray(images, float)
    order = np.asarray(jax.random.permutation(key, len(images)))

    @jax.jit
    def one_pass(nu):
        # ν is traced: that it is small for the decay is for the pictures to show.
        learner = detector(rule, nu, FALLING, horizon=train, dim=images.shape[1])
        played = watched(learner, images[order[:train]])
        return played.predictions, learner.predict(played.state, images)

    predictions, scores = jax.device_get(one_pass(nu))
    alarms = np.flatnonzero(predictions <= 0)[:count]
    seen, unseen = (
        part[np.argsort(scores[part])][:count] for part in (order[:train], order[train:])
    )
    return Rejections(order[alarms], alarms + 1, seen, unseen, scores)


def _by_decay(
    measure: Callable[[Learner, Rollout], Any],
    x: chex.Array,
    nus: Sequence[float],
    rates: Sequence[float],
) -> dict[str, Any]:
    """What is measured of the detector with each floor, ν and rate, by decay; leaves `[F, N, R]`.

    All settings see the same points: one Gram matrix serves them.
    """

    def one(decay, floor, nu, rate):
        learner = detector(Rule(decay, floor), nu, rate, horizon=len(x), dim=x.shape[1])
        return measure(learner, watched(learner, x))

    def grid(decay):
        one_floor = jax.vmap(functools.partial(one, decay), (None, None, 0))
        one_nu = jax.vmap(one_floor, (None, 0, None))
        return jax.vmap(one_nu, (0, None, None))(*map(jnp.array, (FLOORS, nus, rates)))

    return {decay: grid(decay) for decay in DECAYS}
