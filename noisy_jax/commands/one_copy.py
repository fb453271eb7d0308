"""The command `one-copy`: the impossibility theorem as an experiment."""

import argparse
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax import bounds, comparators, learners, losses, plots, streams
from noisy_jax.base import Learner
from noisy_jax.commands import experiment
from noisy_jax.commands.records import save_command, save_table
from noisy_jax.evaluate.montecarlo import Estimate, monte_carlo
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.rollouts import final_regret
from noisy_jax.learners import wrappers
from noisy_jax.validation import check_at_least, check_horizons, writable_folder

SUMMARY = "why one noisy copy of unknown noise is not enough"

DESCRIPTION = """\
Can a learner do without knowledge of the noise and without a second copy?

Two adversaries show single copies of the same distribution, 3 or −1 with probability ½ each, labelled 1. In
A these are the clean data; in B the clean data are 1, and the noise is ±2. The best weights differ,
1/5 and 1, and a learner from one copy that is not told which is which pays at least (1 − 1/√5)² a
round under one of the two, for ever. Runs linear learners under both, squared loss, and writes
one_copy.csv, config.json and one_copy.png.
"""

EXAMPLES = """\
  python -m noisy_jax one-copy
  python -m noisy_jax one-copy --horizons 1000 10000 100000 --seeds 100
"""

RADIUS = 1.5
"""B of the learners and of the weights that compete: both minimisers are inside."""

MOMENTS = bounds.Moments(
    x_second_moment=9.0, x_fourth_moment=81.0, y_second_moment=1.0, noise_norm=4.0
)
"""They hold under both adversaries, so that learning rates tell nothing about which it is."""

HEDGE = 5 - 5**0.5
"""The noise variance that, assumed under both, leads to 1/√5: (5 − v)w = 1 without noise."""

SHOWN = {
    "squared": losses.squared(),
    "hinge": losses.soft_margin(),
    "absolute": losses.epsilon_insensitive(epsilon=0.0),
}
"""Losses whose floor the picture shows; the learners have the first one."""


class Row(NamedTuple):
    """Average regret on clean data, a round, of one learner at one horizon.

    Attributes:
        learner: its name.
        horizon: T.
        noiseless: mean over seeds under adversary A.
        noiseless_std_error: of that mean.
        noisy: mean over seeds under adversary B.
        noisy_std_error: of that mean.
        maximum: the larger of the two means.
        low: the larger of the lower ends of their 95% intervals.
        high: the larger of the upper ends.
        floor: what `maximum` cannot be below in expectation for a learner from one copy that is
            told nothing.
    """

    learner: str
    horizon: int
    noiseless: float
    noiseless_std_error: float
    noisy: float
    noisy_std_error: float
    maximum: float
    low: float
    high: float
    floor: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--horizons", type=int, nargs="+", default=[256, 1024, 4096, 16384, 65536], metavar="T",
        help="numbers of rounds, increasing (default: 256 to 65536 by factors of 4)")
    add("--seeds", type=int, default=32, metavar="N",
        help="independent draws of data and noise (default: 32)")
    # fmt: on
    experiment.add_seed(parser)
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> list[Row]:
    """Runs every learner under both adversaries, prints the table, and saves it."""
    experiment.require_plots()
    check_at_least("--seeds", options.seeds, 2, "the number of draws, two for an interval")
    check_horizons("--horizons", options.horizons)
    folder = writable_folder(options.out)
    best = bounds.one_copy_lower_bound(losses.squared(), radius=RADIUS)
    rows, done = [], 0
    with experiment.progress_bar("rounds") as progress:
        total = options.seeds * sum(options.horizons)
        for horizon in options.horizons:
            key = jax.random.fold_in(jax.random.key(options.seed), horizon)
            regret = monte_carlo(functools.partial(average_regret, horizon), key, options.seeds)
            rows += _rows(horizon, regret, best.lower_bound)
            done += options.seeds * horizon
            progress(done, total)
    names = [row.learner for row in rows]
    rows.sort(key=lambda row: names.index(row.learner))
    save_table(folder / "one_copy.csv", Row._fields, rows)
    axes = plots.one_copy(rows, SHOWN, radius=RADIUS)
    axes[0].figure.savefig(folder / "one_copy.png", dpi=150)
    save_command(
        options,
        folder,
        radius=RADIUS,
        moments=MOMENTS._asdict(),
        hedge=HEDGE,
        floor=best._asdict(),
    )
    print(f"\n{table(rows)}\n\n{conclusion(rows)}\n\nSaved in {folder}/")
    return rows


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
    learner = wrappers.paired(*tuned(horizon).values())
    regrets = [
        final_regret(
            learner,
            stream,
            noise,
            noise_key,
            loss=losses.squared(),
            comparator=comparators.linear_ball(stream, RADIUS).predictions,
        )
        for stream, noise in streams.one_copy_adversaries(stream_key, horizon)
    ]
    return jnp.stack(regrets) / horizon


def _rows(horizon: int, regret: Estimate, floor: float) -> list[Row]:
    ends = NORMAL_95 * regret.std_error
    low, high = (regret.mean - ends).max(axis=0), (regret.mean + ends).max(axis=0)
    return [
        Row(
            learner=name,
            horizon=horizon,
            noiseless=float(regret.mean[0, i]),
            noiseless_std_error=float(regret.std_error[0, i]),
            noisy=float(regret.mean[1, i]),
            noisy_std_error=float(regret.std_error[1, i]),
            maximum=float(regret.mean[:, i].max()),
            low=float(low[i]),
            high=float(high[i]),
            floor=floor,
        )
        for i, name in enumerate(tuned(horizon))
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    width = max(len(row.learner) for row in rows)
    lines = [
        "average regret on clean data, a round, with 95% intervals",
        f"{'learner':<{width}} {'T':>9} {'A: noiseless':>17} {'B: noisy':>17} {'larger':>8} "
        f"{'interval':>16}",
    ]
    lines += [
        f"{row.learner:<{width}} {row.horizon:>9,} "
        f"{row.noiseless:>8.4f} ± {NORMAL_95 * row.noiseless_std_error:.4f} "
        f"{row.noisy:>8.4f} ± {NORMAL_95 * row.noisy_std_error:.4f} "
        f"{row.maximum:>8.4f} [{row.low:.4f}, {row.high:.4f}]"
        for row in rows
    ]
    lines += ["", f"floor of the larger one, for one copy of unknown noise: {rows[0].floor:.4f}"]
    return "\n".join(lines)


def conclusion(rows: Sequence[Row]) -> str:
    """One sentence that says what the table shows, from its numbers."""
    last = list({row.learner: row for row in rows}.values())  # rows of a learner come by horizon
    below = [row for row in last if row.high < row.floor]
    others = [row for row in last if row.high >= row.floor]

    def named(rows):
        return ", ".join(f"{row.learner} ({row.maximum:.3f})" for row in rows) or "no learner"

    return (
        f"After {last[0].horizon:,} rounds the average regret under the worse of the two "
        f"adversaries is below {last[0].floor:.4f}, the floor for one copy of unknown noise, for "
        f"{named(below)}; not for {named(others)}."
    )
