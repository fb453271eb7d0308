"""NORMA as a novelty detector, on digits and on clusters with outliers."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated.streams.tables import bundled
from noisy_jax.validation.numbers import between
from novelty_detection import (
    DECAYS,
    FALLING,
    FLOORS,
    RULES,
    Rate,
    Rule,
    auc,
    detector,
    effective_terms,
    watched,
)
from novelty_pictures import draw_alarm_rates, draw_rejections

NUS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""ν on digits."""

CLUSTER_NUS, CLUSTER_RATES = (0.01, 0.05), (FALLING, Rate(0.002, falling=False))
"""ν and learning rates on clusters."""

DIM, CLUSTERS, SPREAD, OUTLIER_SPREAD, OUTLIERS = 16, 6, 0.5, 2.0, 0.02
"""Of `clusters`: dimensions, clusters, deviations in a cluster and of outliers, their share."""

Measured = Mapping[str, Mapping[str, jax.Array]]
"""By decay and name, `[R, N, F]` for the learning rates, ν and `FLOORS`."""

SHOWN = {"always": Rule("always", -np.inf), "on_alarms": Rule("on_update", 0.0)}
"""The detectors whose rejections are shown: that of Eq. 20, and the one that keeps to ν."""


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Odd digits that NORMA finds, and how its alarms depend on decay.

    Which digits look odd to a detector that sees each digit once? Is the share of alarms equal to
    ν?

    Shows scikit-learn's digits (8 by 8 pixels, scaled to [-1, 1]) to novelty detectors in random
    order, and points of six clusters with 2% outliers. The detectors differ in when old terms
    decay, and in whether the threshold may fall below zero. Where f always decays, a ν below 25ηλ
    leaves fewer than 25 support vectors in memory, too few to tell outliers from inliers.
    Writes digits.csv, clusters.csv, config.json, alarms.png, and the first alarms and worst digits
    of two detectors, rejections_*.png. All terms are kept.

    Examples:
      python colabs/papers/novelty.py
      python colabs/papers/novelty.py --nu 0.1 --train 800
    """

    nu: float = option(
        0.05, "ν of the digits shown, in (0, 1)", "V", functools.partial(between, low=0, high=1)
    )
    train: int = option(1297, "digits that are seen, of 1,797", "T", at_least(1), fast=128)
    rounds: int = option(5000, "points of a stream of clusters", "T", at_least(500), fast=500)
    seeds: int = option(20, "orders of the digits, and streams", "N", INTERVALS, fast=2)


def run(settings: Settings) -> Iterator[Report]:
    """The detectors on digits and on clusters."""
    images, train, seeds = jnp.asarray(digits()[0], float), settings.train, settings.seeds
    if train >= len(images):
        raise ValueError(
            f"--train must be below {len(images)}, got {train}: some digits must be unseen"
        )
    order_key, stream_key = jax.random.split(jax.random.key(settings.seed))
    of_digits = functools.partial(on_digits, images, train, NUS)
    of_clusters = functools.partial(on_clusters, settings.rounds, CLUSTER_NUS, CLUSTER_RATES)
    alarms = over_seeds(of_digits, order_key, seeds, "orders", batch_size=10)
    separated = over_seeds(of_clusters, stream_key, seeds, "streams", batch_size=10)
    titles = (
        f"digits: shares of alarms in {train:,} rounds, mean of {seeds} orders",
        f"clusters: shares of alarms in the later half of {settings.rounds:,} rounds, "
        f"{OUTLIERS:.0%} outliers, mean of {seeds} streams",
    )
    measures = ("alarms", "unseen"), ("inliers", "outliers", "auc")
    tables = {
        "digits": _table(titles[0], alarms, measures[0], NUS, (FALLING,)),
        "clusters": _table(titles[1], separated, measures[1], CLUSTER_NUS, CLUSTER_RATES),
    }
    mean, half = (by_rule(part, "alarms") for part in (alarms.mean, alarms.half_width))
    rates = {name: (mean[name], mean[name] - half[name], mean[name] + half[name]) for name in mean}
    title = f"{train:,} digits, η = t^(−1/2), {seeds} orders"
    figures = {"alarms": picture(draw_alarm_rates, NUS, rates, title=title)}
    first_order = jax.random.fold_in(order_key, 0)
    for name, rule in SHOWN.items():
        galleries = rejections(rule, train, settings.nu, first_order)
        title = f"{rule.name}, ν = {settings.nu:g}"
        figures[f"rejections_{name}"] = picture(draw_rejections, galleries, title=title)
    yield Report(None, tables, figures)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels `[1797, 64]` in [−1, 1], dark to bright, and digits `[1797]`, of scikit-learn."""
    images, labels = bundled("digits")
    return images / 8 - 1, labels


def clusters(key: jax.Array, rounds: int) -> tuple[jax.Array, jax.Array]:
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


def on_digits(images: jax.Array, train: int, nus: Sequence[float], key: jax.Array) -> Measured:
    """What detectors do with digits, at η = t^(−1/2) and the random order of the key.

    Returns:
        `alarms`, the share of the rounds with f(x) ≤ ρ; `unseen`, the same share of the other
        digits after the last round.
    """
    shown = images[jax.random.permutation(key, len(images))]

    def measure(learner, played):
        unseen = learner.predict(played.state, shown[train:])
        return {"alarms": jnp.mean(played.predictions <= 0), "unseen": jnp.mean(unseen <= 0)}

    return _measured(measure, shown[:train], nus, (FALLING,))


def on_clusters(
    rounds: int, nus: Sequence[float], rates: Sequence[Rate], key: jax.Array
) -> Measured:
    """What detectors do with `clusters`, in the second half of the rounds.

    Returns:
        `inliers` and `outliers`, shares of alarms among them; `auc`, the probability that an
        outlier's f(x) − ρ is below an inlier's.
    """
    x, outlier = clusters(key, rounds)
    late = outlier[rounds // 2 :]

    def measure(_, played):
        scores = played.predictions[rounds // 2 :]
        return {
            "inliers": jnp.mean(scores <= 0, where=~late),
            "outliers": jnp.mean(scores <= 0, where=late),
            "auc": auc(-scores, late),
        }

    return _measured(measure, x, nus, rates)


def _measured(measure, x, nus, rates) -> Measured:
    """Measurements of all settings on the same points, which share a Gram matrix.

    To each `support_vectors` are added, their effective number after the last round.
    """

    def one(decay, rate, nu, floor):
        rate = jax.tree.map(lambda leaf: leaf[rate], stacked)
        learner = detector(Rule(decay, floor), nu, rate, horizon=len(x), dim=x.shape[1])
        played = watched(learner, x)
        return {
            **measure(learner, played),
            "support_vectors": effective_terms(played.state.weights),
        }

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rates)
    places = jnp.arange(len(rates))
    settings = jnp.meshgrid(places, jnp.array(nus), jnp.array(FLOORS), indexing="ij")

    def every(decay):
        return jax.vmap(jax.vmap(jax.vmap(functools.partial(one, decay))))(*settings)

    return {decay: every(decay) for decay in DECAYS}


def rejections(
    rule: Rule, train: int, nu: float, key: jax.Array, *, count: int = 50
) -> dict[str, tuple[np.ndarray, list[str]]]:
    """The galleries of Figure 3, at η = t^(−1/2) and the random order of the key.

    Returns:
        By title, up to `count` images and their captions, as `draw_rejections` takes them: the
        first alarms; of the digits that were seen, and of those that were not, those with the
        lowest f(x) − ρ in the end, worst first.
    """
    pixels, labels = digits()
    images = jnp.asarray(pixels, float)
    order = np.asarray(jax.random.permutation(key, len(images)))

    @jax.jit
    def one_pass(nu):
        # ν is traced, so that none is rejected as too small for the decay: the pictures show it.
        learner = detector(rule, nu, FALLING, horizon=train, dim=images.shape[1])
        played = watched(learner, images[order[:train]])
        return played.predictions, learner.predict(played.state, images)

    predictions, scores = jax.device_get(one_pass(nu))

    def gallery(rows, notes):
        captions = [f"{labels[row]:.0f}, {note}" for row, note in zip(rows, notes, strict=True)]
        return pixels[rows].reshape(-1, 8, 8), captions

    def worst(rows):
        rows = rows[np.argsort(scores[rows])][:count]
        return gallery(rows, [f"{score:.3f}".replace("-", "−") for score in scores[rows]])

    alarms = np.flatnonzero(predictions <= 0)[:count]
    return {
        f"first {len(alarms)} alarms (digit, round)": gallery(
            order[alarms], [f"{t + 1:,}" for t in alarms]
        ),
        "worst training digits (digit, f − ρ)": worst(order[:train]),
        "worst unseen digits (digit, f − ρ)": worst(order[train:]),
    }


def by_rule(part: Measured, name: str, rate: int = 0) -> dict[str, np.ndarray]:
    """One measurement of each detector, `[N]` by ν, at the learning rate of this index."""
    return {
        rule.name: np.asarray(part[rule.decay][name])[rate, :, FLOORS.index(rule.floor)]
        for rule in RULES
    }


def _table(title, estimate: Any, names, nus: Sequence[float], rates: Sequence[Rate]) -> Table:
    """A row for each detector in each setting: measurements of these names, support vectors."""
    every, rows = (*names, "support_vectors"), []
    parts = estimate.mean, estimate.std_error
    for r, rate in enumerate(rates):
        mean, error = ({name: by_rule(part, name, r) for name in every} for part in parts)
        for (n, nu), rule in itertools.product(enumerate(nus), RULES):
            row = {"learning_rate": rate.name, "nu": nu}
            row["num_seeds"] = estimate.num_seeds
            row |= rule._asdict() | {name: float(mean[name][rule.name][n]) for name in every}
            row |= {f"{name}_std_error": float(error[name][rule.name][n]) for name in every}
            rows.append(row)
    columns: list[tuple[str, Any]] = [("η", "{learning_rate}"), ("ν", "{nu:g}")]
    columns.append(("detector", lambda row: Rule(row["decay"], row["floor"]).name))
    for name in names:
        columns += [(name, f"{{{name}:.4f}}"), ("± 95%", plus_minus(f"{name}_std_error", ".4f"))]
    return Table(rows, [*columns, ("support vectors", "{support_vectors:.1f}")], title)


if __name__ == "__main__":
    sys.exit(script(Settings, run))
