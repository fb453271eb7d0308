"""The command `novelty`: which digits NORMA finds odd, how many, and whether they are."""

import argparse
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import plots
from noisy_jax.commands import detectors, experiment
from noisy_jax.commands.detectors import OnClusters, OnDigits, Rule
from noisy_jax.commands.records import save_command, save_table
from noisy_jax.evaluate.montecarlo import Estimate, monte_carlo
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.losses.adaptive import check_nu
from noisy_jax.validation import check_at_least, writable_folder

SUMMARY = "odd digits that NORMA finds, and how its alarms depend on decay"

DESCRIPTION = """\
Which digits look odd to a detector that sees each once, and does it sound as many alarms as asked?

Shows scikit-learn's digits (8 by 8 pixels, scaled to [-1, 1]) to novelty detectors in random order,
and points of six clusters with 2% outliers. The detectors differ in when old terms decay, and in
whether the threshold may fall below zero. Writes digits.csv, clusters.csv, config.json, alarms.png,
and the first alarms and worst digits of two detectors, rejections_*.png. Nothing is truncated.
"""

EXAMPLES = """\
  python -m noisy_jax novelty
  python -m noisy_jax novelty --nu 0.1 --train 800
"""

NUS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""ν on digits."""

CLUSTER_NUS, CLUSTER_RATES = (0.01, 0.05), (detectors.FALLING, 0.002)
"""ν and learning rates on clusters."""

SHOWN = {
    "always": Rule("always", -np.inf),
    "on_alarms": Rule("on_update", 0.0),
}
"""The detectors whose rejections are shown: that of Eq. 20, and the one that keeps to ν."""


class Row(NamedTuple):
    """One detector in one setting.

    Attributes:
        rule: which.
        nu: ν.
        rate: its learning rate.
        mean: over runs.
        error: standard error of the mean.
    """

    rule: Rule
    nu: float
    rate: float
    mean: OnDigits | OnClusters
    error: OnDigits | OnClusters


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--nu", type=float, default=0.05, metavar="V",
        help="ν of the digits shown, in (0, 1) (default: 0.05, for more than 50 alarms)")
    add("--train", type=int, default=1297, metavar="T",
        help="digits that are seen, of 1,797; the others are the unseen ones (default: 1297)")
    add("--rounds", type=int, default=5000, metavar="T",
        help="points of each stream of clusters (default: 5000)")
    add("--seeds", type=int, default=20, metavar="N",
        help="orders of the digits, and streams of clusters (default: 20)")
    # fmt: on
    experiment.add_seed(parser)
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    """Runs the detectors on digits and clusters, prints and saves what came of it."""
    experiment.require_plots()
    check_nu(options.nu)
    check_at_least("--train", options.train, 1, "the number of digits that are seen")
    check_at_least("--rounds", options.rounds, 500, "the number of points, 2% of them outliers")
    check_at_least("--seeds", options.seeds, 2, "the number of runs, of which intervals come")
    pixels, labels = detectors.digits()
    if options.train >= len(pixels):
        raise ValueError(
            f"--train must be below {len(pixels)}, got {options.train}: some digits must be unseen"
        )
    folder = writable_folder(options.out)
    order_key, stream_key = jax.random.split(jax.random.key(options.seed))
    images = jnp.asarray(pixels, float)
    of_digits = functools.partial(detectors.on_digits, images, options.train, NUS)
    of_clusters = functools.partial(
        detectors.on_clusters, options.rounds, CLUSTER_NUS, CLUSTER_RATES
    )
    on_digits = list(
        _rows(_over_seeds("orders", of_digits, order_key, options), NUS, (detectors.FALLING,))
    )
    on_clusters = list(
        _rows(_over_seeds("streams", of_clusters, stream_key, options), CLUSTER_NUS, CLUSTER_RATES)
    )
    print(
        f"\ndigits: shares of alarms in {options.train:,} rounds, η = t^(−1/2), mean of "
        f"{options.seeds} orders\n\n{digits_table(on_digits)}\n\n"
        f"clusters: the later half of {options.rounds:,} rounds, {detectors.OUTLIERS:.0%} "
        f"outliers, mean of {options.seeds} streams\n\n{clusters_table(on_clusters)}\n\n"
        f"{conclusion(on_digits, on_clusters, options.train)}"
    )
    first_order = jax.random.fold_in(order_key, 0)  # that of the first seed
    for name, rule in SHOWN.items():
        found = detectors.rejections(rule, images, options.train, options.nu, first_order)
        axes = plots.rejections(galleries(found, pixels, labels))
        axes[0].figure.suptitle(f"{rule.name}, ν = {options.nu:g}")
        axes[0].figure.savefig(folder / f"rejections_{name}.png", dpi=150)
    save(options, on_digits, on_clusters, folder)
    print(f"\nSaved in {folder}/")
    return on_digits, on_clusters


def _over_seeds(description, run, key, options) -> Estimate:
    with experiment.progress_bar(description) as progress:
        return monte_carlo(
            run, key, options.seeds, batch_size=min(options.seeds, 10), progress=progress
        )


def _rows(estimate: Estimate, nus: Sequence[float], rates: Sequence[float]) -> Iterator[Row]:
    for rate_index, rate in enumerate(rates):
        for nu_index, nu in enumerate(nus):
            for decay in detectors.DECAYS:
                for floor_index, floor in enumerate(detectors.FLOORS):
                    place = floor_index, nu_index, rate_index
                    both = estimate.mean[decay], estimate.std_error[decay]
                    mean, error = jax.tree.map(lambda a: float(a[place]), both)  # noqa: B023
                    yield Row(Rule(decay, floor), nu, rate, mean, error)


def _rate_name(rate: float) -> str:
    return "t^(−1/2)" if rate == detectors.FALLING else f"{rate:g}"


def digits_table(rows: Iterable[Row]) -> str:
    """Shares of alarms, among the digits as they come and among unseen ones in the end."""
    lines = [
        f"{'ν':>6} {'detector':<23} {'alarms':>7} {'± 95%':>7} {'unseen':>7} {'± 95%':>7} "
        f"{'support vectors':>15}"
    ]
    for row in rows:
        mean, half = row.mean, [NORMAL_95 * e for e in row.error]
        lines.append(
            f"{row.nu:>6g} {row.rule.name:<23} {mean.alarms:>7.4f} {half[0]:>7.4f} "
            f"{mean.unseen:>7.4f} {half[1]:>7.4f} {mean.support_vectors:>15.1f}"
        )
    return "\n".join(lines)


def clusters_table(rows: Iterable[Row]) -> str:
    """Shares of alarms among inliers and outliers, and how well f − ρ tells them apart."""
    lines = [
        f"{'η':<8} {'ν':>5} {'detector':<23} {'on inliers':>10} {'on outliers':>11} {'AUC':>6} "
        f"{'± 95%':>6} {'support vectors':>15}"
    ]
    lines += [
        f"{_rate_name(row.rate):<8} {row.nu:>5g} {row.rule.name:<23} {row.mean.inliers:>10.4f} "
        f"{row.mean.outliers:>11.3f} {row.mean.auc:>6.3f} {NORMAL_95 * row.error.auc:>6.3f} "
        f"{row.mean.support_vectors:>15.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def conclusion(on_digits: Sequence[Row], on_clusters: Sequence[Row], horizon: int) -> str:
    """Sentences that say what the tables show, from their numbers."""
    kept = []
    for rule in detectors.RULES:
        missed = [
            row.nu
            for row in on_digits
            if row.rule == rule and abs(row.mean.alarms - row.nu) > row.nu / 5
        ]
        held = [nu for nu in NUS if nu > max(missed, default=0)]
        kept.append(f"{rule.name}, {f'from {held[0]:g} on' if held else 'never'}")
    hardest = {
        row.rule: row.mean
        for row in on_clusters
        if (row.nu, row.rate) == (CLUSTER_NUS[0], CLUSTER_RATES[0])
    }
    printed = hardest[SHOWN["always"]]
    best = max(hardest, key=lambda rule: hardest[rule].auc)
    return (
        f"Alarms keep to ν within a fifth: {'; '.join(kept)}.\n"
        f"At ν = {CLUSTER_NUS[0]:g} and η = {_rate_name(CLUSTER_RATES[0])}, "
        f"{SHOWN['always'].name} tells outliers from inliers with AUC {printed.auc:.2f}, on "
        f"{printed.support_vectors:.1f} support vectors; {best.name} does it best, with "
        f"{hardest[best].auc:.3f}, on {hardest[best].support_vectors:.0f}.\n"
        f"Where f always decays, a ν below 25ηλ leaves fewer than 25 support vectors in memory: "
        f"below {25 / horizon**0.5:.2g} after {horizon:,} rounds of t^(−1/2), "
        f"{25 * CLUSTER_RATES[1]:.2g} at η = {CLUSTER_RATES[1]:g}."
    )


def galleries(
    found: detectors.Rejections, pixels: np.ndarray, labels: np.ndarray
) -> dict[str, tuple[np.ndarray, list[str]]]:
    """The three galleries of Figure 3: first alarms, worst digits seen, worst unseen."""

    def gallery(rows, notes):
        captions = [f"{labels[row]}, {note}" for row, note in zip(rows, notes, strict=True)]
        return pixels[rows].reshape(-1, 8, 8), captions

    def scores(rows):
        return [f"{score:.3f}".replace("-", "−") for score in found.scores[rows]]

    return {
        f"first {len(found.alarms)} alarms (digit, round)": gallery(
            found.alarms, [f"{r:,}" for r in found.rounds]
        ),
        "worst training digits (digit, f − ρ)": gallery(found.seen, scores(found.seen)),
        "worst unseen digits (digit, f − ρ)": gallery(found.unseen, scores(found.unseen)),
    }


def save(
    options: argparse.Namespace,
    on_digits: Sequence[Row],
    on_clusters: Sequence[Row],
    folder: Path,
) -> None:
    """Writes digits.csv, clusters.csv, config.json and alarms.png."""
    for name, rows in {"digits": on_digits, "clusters": on_clusters}.items():
        fields = type(rows[0].mean)._fields
        errors = [f"{field}_std_error" for field in fields]
        save_table(
            folder / f"{name}.csv",
            ["learning_rate", "nu", *Rule._fields, *fields, *errors],
            ([_rate_name(row.rate), row.nu, *row.rule, *row.mean, *row.error] for row in rows),
        )
    save_command(options, folder)
    axes = plots.alarm_rates(NUS, _curves(on_digits))
    axes.set_title(f"{options.train:,} digits, η = t^(−1/2), {options.seeds} orders", fontsize=10)
    axes.figure.savefig(folder / "alarms.png", dpi=150)


def _curves(on_digits: Sequence[Row]) -> Mapping[str, tuple[list[float], list[float]]]:
    of_rule = {rule: [row for row in on_digits if row.rule == rule] for rule in detectors.RULES}
    return {
        rule.name: ([row.mean.alarms for row in rows], [row.error.alarms for row in rows])
        for rule, rows in of_rule.items()
    }
