"""Gradient estimates of random truncation: made at equal cost, measured, and as a table.

For a measurement a run learns through a stream, then goes through it again with a function that
stands still: what a round then adds is a fresh estimate g̃Ψ̃ of the clean gradient there.
"""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.bounds.unknown_noise import TruncationGuarantee
from noisy_jax.commands.records import save_table
from noisy_jax.estimators import GradientEstimator
from noisy_jax.evaluate.montecarlo import Estimate, monte_carlo
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.rollouts import rollout
from noisy_jax.learners import random_truncation
from noisy_jax.noise import Noise

_STANDSTILL = 1e-12
"""A learning rate that shows gradients and moves nothing."""


class Gradients(NamedTuple):
    """Means over the rounds of a run, all `[]`.

    Attributes:
        copies: noisy copies used in a round.
        second_moment: E‖g̃Ψ̃‖², at the function that was learnt.
        variance: E‖g̃Ψ̃ − ∇‖² = E‖g̃Ψ̃‖² − ‖∇‖² there.
    """

    copies: chex.Array
    second_moment: chex.Array
    variance: chex.Array


class Figures(NamedTuple):
    """One line of the table: what is measured beside what theory has.

    Attributes:
        kernel: name of the kernel.
        learner: name of the learner.
        copies: expected copies a round.
        copies_used: those used, as in `Gradients`; its standard error follows, as with the others.
        second_moment: as in `Gradients`.
        variance: as in `Gradients`.
        bound_second_moment: B_g B_Ψ, what the theorem reckons with.
        bound: the theorem's on the regret, at its own learning rate.
        informative_from: horizon from which on that bound says more than playing zero does.
    """

    kernel: str
    learner: str
    copies: float
    copies_used: float
    copies_std_error: float
    second_moment: float
    second_moment_std_error: float
    variance: float
    variance_std_error: float
    bound_second_moment: float
    bound: float
    informative_from: float


def both_laws(
    make: Callable[..., GradientEstimator],
) -> tuple[GradientEstimator, GradientEstimator, float]:
    """Estimators by the optimal distribution and by the geometric one at as many copies a round, and its p.

    Args:
        make: `estimators.gradient` but for the arguments `distribution` and `p`.
    """
    optimal = make(distribution="optimal")
    p = base_for(lambda p: make(p=p).mean_copies, optimal.mean_copies)
    return optimal, make(p=p), p


def base_for(mean_copies: Callable[[float], float], budget: float) -> float:
    """The base p > 1 at which a geometric distribution takes `budget` copies: fewer, the larger p is."""
    low, high = -30.0, 30.0  # of log(p − 1)
    for _ in range(60):
        middle = (low + high) / 2
        if mean_copies(1 + math.exp(middle)) > budget:
            low = middle
        else:
            high = middle
    return 1 + math.exp(high)


def measured(
    estimator: GradientEstimator,
    learning_rate: float,
    stream: Stream,
    distribution: Noise,
    key: chex.PRNGKey,
    *,
    num_seeds: int,
) -> Estimate:
    """Copies and moments of the gradient estimates, `Gradients` over seeds.

    Args:
        estimator: of the clean gradient.
        learning_rate: of the first half, in which the learner learns.
        stream: T clean rounds, gone through twice.
        distribution: of the noise.
        key: a key of `jax.random.key`.
        num_seeds: S.
    """
    run = functools.partial(_one_run, estimator, learning_rate)
    return monte_carlo(jax.tree_util.Partial(run, stream, distribution), key, num_seeds)


def _one_run(estimator, learning_rate, stream, distribution, key) -> Gradients:
    rounds = len(stream.y)
    learner = random_truncation(
        estimator,
        horizon=2 * rounds,
        learning_rate=lambda t: jnp.where(t < rounds, learning_rate, _STANDSTILL),
    )
    twice = Stream(*(jnp.concatenate([leaf, leaf]) for leaf in stream))
    run = rollout(learner, twice, distribution, key)
    kept = run.state.atoms, run.state.weights
    atoms, weights = jax.tree.map(lambda leaf: leaf[rounds : 2 * rounds], kept)
    squared_norms = jnp.prod(jnp.sum(atoms.factors**2, axis=2), axis=1)
    second_moment = jnp.mean((weights / _STANDSTILL) ** 2 * squared_norms)
    slopes = estimator.loss.gradient(run.predictions[rounds:], stream.y)
    clean = jnp.mean(slopes**2 * estimator.maps.kernel.diagonal(stream.x))
    copies = jnp.mean(run.state.atoms.copies[: 2 * rounds])
    return Gradients(copies, second_moment, second_moment - clean)


def figures_of(
    kernel: str, learner: str, estimate: Estimate, theory: TruncationGuarantee
) -> Figures:
    """The line of one learner, from what `measured` gives and what the theorem promises."""
    pairs = zip(estimate.mean, estimate.std_error, strict=True)
    numbers = [float(number) for pair in pairs for number in pair]
    promised = theory.second_moment, theory.regret, theory.informative_from
    return Figures(kernel, learner, float(theory.copies), *numbers, *map(float, promised))


def table(figures: Sequence[Figures]) -> str:
    """The lines as they are printed."""
    lines = [
        f"{'kernel':<10} {'learner':<20} {'copies':>6} {'used':>6} {'E‖gΨ‖²':>8} {'± 95%':>6} "
        f"{'variance':>8} {'± 95%':>6} {'B_g B_Ψ':>8} {'informative from T':>18}"
    ]
    lines += [
        f"{row.kernel:<10} {row.learner:<20} {row.copies:>6.3f} {row.copies_used:>6.3f} "
        f"{row.second_moment:>8.3g} {NORMAL_95 * row.second_moment_std_error:>6.2g} "
        f"{row.variance:>8.3g} {NORMAL_95 * row.variance_std_error:>6.2g} "
        f"{row.bound_second_moment:>8.4g} {row.informative_from:>18,.0f}"
        for row in figures
    ]
    return "\n".join(lines)


def save(figures: Sequence[Figures], folder: Path) -> None:
    """Writes `estimates.csv`."""
    save_table(folder / "estimates.csv", Figures._fields, figures)
