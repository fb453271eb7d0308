"""Gradient estimates by random truncation at the same number of copies, measured; both tables."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.learners.random_truncation import random_truncation
from noisy_jax.noise import Noise
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated.bounds.guarantee import TruncationGuarantee
from noisy_jax.simulated.montecarlo import Estimate, monte_carlo
from noisy_jax.simulated.rollouts import rollout
from noisy_jax.unbiased.truncation.gradients import GradientEstimator
from noisy_jax.validation.values import ArrayLike

_STANDSTILL = 1e-12
"""A learning rate so small that f does not change, while coefficients still show the gradients."""


def both_distributions(
    make: Callable[..., GradientEstimator],
) -> tuple[GradientEstimator, GradientEstimator, float]:
    """Estimators by the optimal and by the geometric distribution with the same mean copies, and p.

    Args:
        make: `unbiased.kernel_gradient` but for the arguments `distribution` and `p`.
    """
    optimal = make(distribution="optimal")
    p = base_for(lambda p: make(p=p).mean_copies, optimal.mean_copies)
    return optimal, make(p=p), p


def base_for(mean_copies: Callable[[float], ArrayLike], budget: ArrayLike) -> float:
    """The base p > 1 at which a geometric distribution takes `budget` copies.

    `mean_copies` must decrease with p.
    """
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
    learning_rate: float | None,
    stream: Stream,
    distribution: Noise,
    key: jax.Array,
    *,
    num_seeds: int,
) -> Estimate:
    """Copies and moments of the gradient estimates at a function that was learned.

    A run learns on the stream, then goes through it again with a fixed function: each round of this
    second pass gives a new estimate g̃Ψ̃ of the clean gradient ∇ at that function.

    Args:
        estimator: of the clean gradient.
        learning_rate: of the first half, in which the learner learns; `None` for the adaptive.
        stream: T clean rounds, gone through twice.
        distribution: of the noise.
        key: a key of `jax.random.key`.
        num_seeds: S.

    Returns:
        Means over the rounds, and over seeds: `copies` used in a round; `second_moment`, E‖g̃Ψ̃‖²;
        `variance`, E‖g̃Ψ̃ − ∇‖² = E‖g̃Ψ̃‖² − ‖∇‖².
    """
    run = functools.partial(_one_run, estimator, learning_rate)
    run = jax.tree_util.Partial(run, stream, distribution)
    return monte_carlo(run, num_seeds, key, mesh="all")


def _one_run(estimator, learning_rate, stream, distribution, key) -> dict[str, jax.Array]:
    rounds = len(stream.y)
    learns, stands = (
        random_truncation(estimator, horizon=2 * rounds, learning_rate=rate)
        for rate in (learning_rate, _STANDSTILL)
    )
    state = rollout(learns, stream, distribution, key).state._replace(rule=())
    run = rollout(stands, stream, distribution, key, state=state, first_round=rounds)
    kept = run.state.atoms, run.state.weights
    atoms, weights = jax.tree.map(lambda leaf: leaf[rounds : 2 * rounds], kept)
    squared_norms = jnp.prod(jnp.sum(atoms.factors**2, axis=2), axis=1)
    second_moment = jnp.mean((weights / _STANDSTILL) ** 2 * squared_norms)
    slopes = estimator.loss.gradient(run.predictions, stream.y)
    clean = jnp.mean(slopes**2 * estimator.maps.kernel.diagonal(stream.x))
    copies = jnp.mean(run.state.atoms.copies[: 2 * rounds])
    return {"copies": copies, "second_moment": second_moment, "variance": second_moment - clean}


def estimate_row(
    kernel: str, learner: str, estimate: Estimate, theory: TruncationGuarantee
) -> dict[str, Any]:
    """A row of `estimates_table`, from what `measured` returns and what the theorem promises."""
    row: dict[str, Any] = {"kernel": kernel, "learner": learner, "num_seeds": estimate.num_seeds}
    row["copies"] = float(theory.copies)
    for name in ("copies", "second_moment", "variance"):
        column = "copies_used" if name == "copies" else name
        row[column] = float(estimate.mean[name])
        row[f"{name}_std_error"] = float(estimate.std_error[name])
    promised = {
        "bound_second_moment": theory.second_moment,
        "bound": theory.regret,
        "informative_from": theory.informative_from,
    }
    return row | {name: float(number) for name, number in promised.items()}


def estimates_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Gradient estimates as measured, beside what the theorem assumes of them."""
    columns = [
        ("kernel", "{kernel}"),
        ("learner", "{learner}"),
        ("copies", "{copies:.3f}"),
        ("used", "{copies_used:.3f}"),
        ("E‖gΨ‖²", "{second_moment:.3g}"),
        ("± 95%", plus_minus("second_moment_std_error", ".2g")),
        ("variance", "{variance:.3g}"),
        ("± 95%", plus_minus("variance_std_error", ".2g")),
        ("B_g B_Ψ", "{bound_second_moment:.4g}"),
        ("informative from T", "{informative_from:,.0f}"),
    ]
    return Table(rows, columns, "measured gradient estimates, and the theorem's bounds")


def exponents_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Growth of regret beside the bounds of the theorems."""
    columns = [
        ("kernel", "{kernel}"),
        ("learner", "{learner}"),
        ("T", "{horizon:,}"),
        ("a", "{exponent:.3f}"),
        ("interval", "[{low:.3f}, {high:.3f}]"),
        ("regret", "{regret:.1f}"),
        ("± 95%", plus_minus("std_error", ".1f")),
        ("bound", "{bound:.1f}"),
        ("closed form", lambda row: f"{row['closed_form']:.1f}".replace("nan", "")),
        ("predicting 0", "{idle:.1f}"),
        ("", lambda row: "informative" if row["informative"] else "vacuous"),
    ]
    title = "growth of regret like T^a, and the theorems' bounds, like T^0.5, at the rate used"
    return Table(rows, columns, title)
