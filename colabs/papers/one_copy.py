"""One noisy copy of unknown noise is not enough: the impossibility theorem as an experiment."""

import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import learners, losses
from noisy_jax.base import Learner
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, option
from noisy_jax.learners import wrappers
from noisy_jax.plots.style import curve, label, legend_above, look, panels, plain, tick_at
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated import bounds, comparators, streams
from noisy_jax.simulated.rollouts import final_regret

RADIUS = 1.5
"""B of the learners and of the weights that compete: both minimisers are inside."""

MOMENTS = bounds.DataMoments(
    x_second_moment=9.0, x_fourth_moment=81.0, y_second_moment=1.0, noise_norm=4.0
)
"""They hold under both adversaries, so that learning rates do not tell which one it is."""

HEDGE = 5 - 5**0.5
"""The noise variance that, assumed under both, leads to 1/√5: (5 − v)w = 1 without noise."""

LOSSES = {
    "squared": losses.squared(),
    "hinge": losses.hinge(),
    "absolute": losses.epsilon_insensitive(epsilon=0.0),
}
"""Losses whose lower bound the picture shows; the learners have the first one."""


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Why one noisy copy of unknown noise is not enough.

    Can a learner do without knowledge of the noise and without a second copy?

    Two adversaries show single copies of the same distribution, 3 or −1 with probability ½ each,
    labelled 1. In A these are the clean data; in B the clean data are 1, and the noise is ±2. The
    best weights differ, 1/5 and 1, and a learner from one copy that is not told which of the two it
    is has an average regret of at least (1 − 1/√5)² under one of them at any T. Runs linear
    learners under both, squared loss, and writes one_copy.csv, config.json and one_copy.png.

    Examples:
      python colabs/papers/one_copy.py
      python colabs/papers/one_copy.py --horizons 1000 10000 100000 --seeds 100
    """

    horizons: tuple[int, ...] = regret.horizons((256, 1024, 4096, 16384, 65536), fast=(256, 1024))
    seeds: int = option(32, "independent draws of data and noise", "N", INTERVALS, fast=4)


def run(settings: Settings) -> Iterator[Report]:
    """Every learner under both adversaries."""
    best = bounds.one_copy_lower_bound(losses.squared(), radius=RADIUS)
    found = {}
    for horizon in settings.horizons:
        key = jax.random.fold_in(jax.random.key(settings.seed), horizon)
        run_one = functools.partial(average_regret, horizon)
        found[horizon] = over_seeds(run_one, key, settings.seeds, f"T = {horizon:,}")
    rows = [
        {"learner": name, "horizon": horizon, "num_seeds": settings.seeds}
        | _worse(estimate.mean[:, i], estimate.std_error[:, i], estimate.half_width[:, i])
        | {"lower_bound": float(best.lower_bound)}
        for i, name in enumerate(tuned(1))
        for horizon, estimate in found.items()
    ]
    columns = [
        ("learner", "{learner}"),
        ("T", "{horizon:,}"),
        ("A: noiseless", "{noiseless:.4f}"),
        ("± 95%", plus_minus("noiseless_std_error", ".4f")),
        ("B: noisy", "{noisy:.4f}"),
        ("± 95%", plus_minus("noisy_std_error", ".4f")),
        ("larger", "{maximum:.4f}"),
        ("interval", "[{low:.4f}, {high:.4f}]"),
    ]
    table = Table(rows, columns, "average regret on clean data, a round, with 95% intervals")
    words = f"lower bound on the larger one, for one copy of unknown noise: {best.lower_bound:.4f}"
    config = {"radius": RADIUS, "moments": MOMENTS._asdict(), "hedge": HEDGE}
    config["lower_bound"] = best._asdict()
    draw = picture(draw_one_copy, rows, LOSSES, radius=RADIUS)
    yield Report(f"{table}\n\n{words}", {"one_copy": table}, {"one_copy": draw}, config)


def tuned(horizon: int) -> dict[str, Learner]:
    """The learners by name, tuned for a horizon; all but the last read one copy.

    `uncorrected` and `hedged` are told nothing: they take the noise to have variance 0, and HEDGE.
    `known_covariance` is told the truth.
    """

    def tuning(bound):
        rate = bound(MOMENTS, horizon=horizon, radius=RADIUS).learning_rate
        return {"radius": RADIUS, "learning_rate": rate}

    informed = learners.known_covariance(**tuning(bounds.known_covariance))
    return {
        "uncorrected": learners.uncorrected(**tuning(bounds.uncorrected)),
        "hedged": wrappers.assuming(informed, HEDGE),
        "known_covariance": informed,
        "two_copies": learners.two_copies(**tuning(bounds.two_copies)),
    }


def average_regret(horizon: int, key: jax.Array) -> jax.Array:
    """Regret over T rounds divided by T, `[2, L]`: under A and under B, of each learner."""
    stream_key, noise_key = jax.random.split(key)
    learner, loss = wrappers.paired(*tuned(horizon).values()), losses.squared()

    def regret_under(stream, noise):
        best = comparators.linear_ball(stream, RADIUS).predictions
        return final_regret(learner, stream, noise, noise_key, loss=loss, comparator=best)

    adversaries = streams.one_copy_adversaries(stream_key, horizon)
    return jnp.stack([regret_under(*adversary) for adversary in adversaries]) / horizon


def _worse(means, errors, halves) -> dict[str, float]:
    """Means and standard errors of the average regret under A and B, and the larger mean.

    `low` and `high` are the larger ends of both 95% intervals. Without knowledge of the noise, the
    expectation of `maximum` is at least the lower bound.
    """
    numbers = {
        "noiseless": means[0],
        "noiseless_std_error": errors[0],
        "noisy": means[1],
        "noisy_std_error": errors[1],
        "maximum": max(means),
        "low": max(means - halves),
        "high": max(means + halves),
    }
    return {name: float(number) for name, number in numbers.items()}


def draw_one_copy(
    rows: Sequence[Mapping[str, Any]],
    by_name: Mapping[str, losses.Loss],
    *,
    radius: float,
    axes=None,
):
    """Average regret under the worse adversary against the horizon, and why it has a lower bound.

    On the left each learner, with 95% intervals, and the lower bound for the first loss. On the
    right, for each loss, what constant weights w lose under A (solid) and under B (dashed): the
    lower bound, marked, is where the two cross.

    Args:
        rows: mappings with `learner`, `horizon`, `maximum`, `low` and `high`, as one_copy.csv
            has them; of learners for the first loss.
        by_name: losses.
        radius: B > 0, of the ball in which learners and competitors are.
        axes: two matplotlib axes to draw on; new ones side by side by default.

    Returns:
        A sequence of the axes, one for each panel.

    Example:
        >>> import noisy_jax as nj
        >>> row = {"learner": "uncorrected", "horizon": 16, "maximum": 0.6, "low": 0.5, "high": 0.7}
        >>> left, right = draw_one_copy([row], {"squared": nj.losses.squared()}, radius=1.5)
        >>> right.get_xlabel()
        'constant weight $w$'
    """
    axes = panels(axes, 2, width=10.5, height=5.2, sharey=True)
    found = {n: bounds.one_copy_lower_bound(loss, radius=radius) for n, loss in by_name.items()}
    _draw_regrets(axes[0], rows, next(iter(found.values())).lower_bound)
    _draw_excesses(axes[1], by_name, found, radius)
    top = max(1, *(1.05 * row["high"] for row in rows))
    titles = (
        f"Learners under the worse adversary, {plain(next(iter(by_name)))} loss",
        "Constant weights under both; marks are lower bounds",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set_ylim(0, top)
        legend_above(ax, title=title, ncols=2)
    return axes


def _draw_regrets(ax, rows, lowest):
    for index, learner in enumerate(dict.fromkeys(row["learner"] for row in rows)):
        horizon, middle, *ends = (
            [row[column] for row in rows if row["learner"] == learner]
            for column in ("horizon", "maximum", "low", "high")
        )
        curve(ax, horizon, middle, ends, label=plain(learner), **look(index))
    ax.axhline(lowest, color="0.2", linestyle=":", label=f"lower bound for one copy: {lowest:.3f}")
    label(ax, "horizon $T$ (rounds)", "expected regret on clean data, a round", log="x")
    tick_at(ax.xaxis, [row["horizon"] for row in rows], most=6)


def _draw_excesses(ax, by_name, found, radius):
    weights = np.linspace(0, min(1.25, radius), 201)
    for index, (name, loss) in enumerate(by_name.items()):
        width = max(2.8 - 0.8 * index, 1)  # later ones thinner, as losses may agree
        weight, lowest = found[name]
        words = f"{plain(name)}: {lowest:.3f} at $w$ = {weight:.3f}"
        for excess, line in zip(
            bounds.one_copy_excess(loss, weights, radius=radius), ("-", "--"), strict=True
        ):
            ax.plot(weights, excess, line, color=look(index)["color"], linewidth=width)
        ax.plot(weight, lowest, label=words, linewidth=width, markersize=7, **look(index))
    ax.plot([], [], "-", color="0.3", label="A: 3 or −1, no noise")
    ax.plot([], [], "--", color="0.3", label="B: always 1, noise ±2")
    label(ax, "constant weight $w$", "expected loss beyond the best weight's, a round")


if __name__ == "__main__":
    sys.exit(script(Settings, run))
