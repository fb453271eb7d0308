"""The study `one-copy`: the impossibility theorem as an experiment."""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp

from noisy_jax import learners, losses, plots
from noisy_jax.base import Learner
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, over_seeds, picture
from noisy_jax.command.settings import INTERVALS, SeededSettings, option
from noisy_jax.learners import wrappers
from noisy_jax.simulated import bounds, comparators, streams
from noisy_jax.simulated.rollouts import final_regret
from noisy_jax.tables import Table, plus_minus

RADIUS = 1.5
"""B of the learners and of the weights that compete: both minimisers are inside."""

MOMENTS = bounds.Moments(
    x_second_moment=9.0, x_fourth_moment=81.0, y_second_moment=1.0, noise_norm=4.0
)
"""They hold under both adversaries, so that learning rates do not tell which one it is."""

HEDGE = 5 - 5**0.5
"""The noise variance that, assumed under both, leads to 1/√5: (5 − v)w = 1 without noise."""

LOSSES = {
    "squared": losses.squared(),
    "hinge": losses.soft_margin(),
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
      python -m noisy_jax one-copy
      python -m noisy_jax one-copy --horizons 1000 10000 100000 --seeds 100
    """

    horizons: tuple[int, ...] = regret.horizons((256, 1024, 4096, 16384, 65536))
    seeds: int = option(32, "independent draws of data and noise", "N", INTERVALS)


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
    draw = picture(plots.one_copy, rows, LOSSES, radius=RADIUS)
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
