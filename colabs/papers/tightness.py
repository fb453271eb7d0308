"""How close the worst streams that are found come to each guarantee."""

import dataclasses
import functools
import sys
from collections.abc import Iterator
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, picture, progress_bar, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.tables import Table
from noisy_jax.simulated import bounds
from noisy_jax.simulated.adversaries import ascend, structured_starts
from noisy_jax.simulated.adversaries.search import (
    bound_and_half_width,
    check_memory,
    chosen,
    four_keys,
    stack,
)
from noisy_jax.simulated.rollouts import rollout
from noisy_jax.validation.arrays import check_axes
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import choice
from tightness_learners import Case, Family, families
from tightness_picture import draw_ratios
from tightness_regrets import counted

DRAWS = 8  # of the noise in a step of the ascent


def _variances(name: str, values: Any) -> None:
    non_negative(name, values, shape=None)
    check_axes(name, values, "[N]")
    whole(f"number of {name}", len(values))


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """How close the worst streams that are found come to each guarantee.

    Are the bounds loose, or are random streams easier than the worst ones?

    For each learner with a guarantee, gradient ascent looks for streams with |x| <= 1 and |y| <= Y
    of large expected regret (`adversaries.worst`), at each horizon and each variance of ±σ noise
    (one variance of Gaussian noise with kernels, where 128 rounds are the most; none for norma and
    parameter_free). Bounds on mistakes are compared with the mistakes on orthogonal instances.

    A bound is false if the ratio is above 1 by more than the interval of the regret minus the
    guarantee, "± 95%", and rounding: those are bounds as papers and textbooks print them. Writes
    tightness.csv, config.json and tightness.png.

    Examples:
      python colabs/papers/tightness.py
      python colabs/papers/tightness.py --horizons 16 256 4096 --steps 200
    """

    horizons: tuple[int, ...] = regret.horizons((16, 128, 2048), fast=(4,))
    variances: tuple[float, ...] = option(
        (0.0, 1.0, 4.0), "variances of the noise", "V", _variances, fast=(1.0,)
    )
    learners: tuple[str, ...] = option(
        (), "learners to try, by the names in the table (default: all)", "NAME", may_be_empty=True,
        fast=("two_copies", "norma"),
    )  # fmt: skip
    y_size: float = option(2.0, "size of the largest target", "Y", positive)
    steps: int = option(60, "steps of the ascent", "N", at_least(1), fast=2)
    seeds: int = option(
        128, "draws of the noise for each regret in the table", "N", INTERVALS, fast=2
    )


def run(settings: Settings) -> Iterator[Report]:
    """All learners at all horizons and noise levels."""
    every = families(settings.y_size)
    names = dict.fromkeys(family.cases[0].learner for family in every)
    for name in settings.learners:
        choice("each of --learners", name, tuple(names))
    every = [each for each in every if each.cases[0].learner in (settings.learners or names)]
    counts = [row for horizon in settings.horizons for row in of_counts(horizon)]
    with progress_bar("streams", "program") as progress:
        rows = []
        for number, family in enumerate(every):
            for horizon in settings.horizons:
                rows += found(settings, family, horizon)
            progress(number + 1, len(every))
    columns = [
        ("learner", "{learner}"),
        ("bound", "{bound}"),
        ("radius", "{radius:g}"),
        ("variance", "{variance:g}"),
        ("T", "{horizon:,}"),
        ("worst regret", "{regret:.2f}"),
        ("± 95%", "{half_width:.2f}"),
        ("/ √T", "{per_root:.2f}"),
        ("guarantee", "{guarantee:.2f}"),
        ("ratio", "{ratio:.3f}"),
        ("random signs", "{random:.3f}"),
    ]
    rows += counts
    words = "expected regret, or number of mistakes, on the worst stream found, over the guarantee"
    table = Table(rows, columns, words)
    draw = picture(draw_ratios, rows)
    yield Report(None, {"tightness": table}, {"tightness": draw})


def found(settings: Settings, family: Family, horizon: int) -> list[dict[str, Any]]:
    """The rows of a family at one horizon."""
    if horizon > (family.largest or horizon):
        return []
    variances = family.variances or settings.variances
    pairs = [(case, variance) for variance in variances for case in family.cases]
    pairs = [pair for pair in pairs if pair[1] or pair[0].share == 1]  # else the same without noise
    limits = [limit(case, variance, horizon, settings.y_size) for case, variance in pairs]
    numbers = jnp.array(
        [
            (case.radius, float(bound.learning_rate), variance, case.share * variance)
            for (case, variance), bound in zip(pairs, limits, strict=True)
        ]
    )
    key = jax.random.fold_in(jax.random.key(settings.seed), horizon)
    start_key, *_, held_out_key = four_keys(key)
    named = structured_starts(start_key, horizon, 1, y_size=settings.y_size)
    longest = max(t for t in settings.horizons if t <= (family.largest or t))
    room = [(0, 0), (0, longest - horizon), (0, 0)]
    starts = Stream(*(jnp.pad(leaf, room[: leaf.ndim]) for leaf in stack(named.values())))
    search = _program(
        family.build, family.noise, family.regret, settings.y_size, settings.steps,
        settings.seeds, len(pairs), longest,
    )  # fmt: skip
    streams, scores = search(numbers, starts, np.int32(horizon), key)
    every, means = np.arange(len(pairs)), np.asarray(scores.mean)
    best, random = np.argmax(means, axis=1), np.full(len(pairs), [*named].index("random"))
    compared = means.shape[1]
    errors = np.asarray(scores.std_error)[every, best]
    halves = half_width(errors, settings.seeds - 1, comparisons=compared)
    bounds_at = bounds_of_random = np.array([float(bound.regret) for bound in limits])
    if family.after is not None:
        after = _after(family, settings.seeds)

        def known_after(k):
            shown = jax.tree.map(lambda leaf: leaf[every, k, :horizon], streams)
            values, regrets = after(numbers, shown, held_out_key)
            return bound_and_half_width(values, regrets, compared)

        (bounds_at, halves), (bounds_of_random, _) = known_after(best), known_after(random)
    ratios_of_random = means[every, random] / bounds_of_random
    regrets = means[every, best]
    return [
        row(case.learner, case.bound, case.radius, variance, horizon, *figures)
        for (case, variance), *figures in zip(
            pairs, regrets, halves, bounds_at, ratios_of_random, strict=True
        )
    ]


def row(learner, bound, radius, variance, horizon, regret, half, guarantee, random):
    """A row of the table; `random` is the ratio on random signs."""
    return {
        "learner": learner,
        "bound": bound,
        "radius": radius,
        "variance": variance,
        "horizon": horizon,
        "regret": float(regret),
        "half_width": float(half),
        "per_root": float(regret) / horizon**0.5,
        "guarantee": float(guarantee),
        "ratio": float(regret / guarantee),
        "random": float(random),
    }


def limit(case: Case, variance: float, horizon: int, y_size: float) -> Any:
    """The bound of a case, which holds for all streams with |x| ≤ 1 and |y| ≤ `y_size`."""
    fourth = 1 + 6 * variance + variance**2  # E(1 ± σ)⁴, where |x| = 1
    moments = bounds.DataMoments(1 + variance, fourth, y_size**2, variance)
    return case.guarantee(moments, horizon=horizon, radius=case.radius)


def of_counts(horizon: int) -> list[dict[str, Any]]:
    """The rows of the guarantees that bound a number of mistakes, which nothing searches for."""
    return [
        row(name, "corrected", 1.0, 0.0, horizon, number, 0.0, bound, np.nan)
        for name, number, bound in counted(horizon)
    ]


@functools.lru_cache(maxsize=1)  # for all horizons of a family
def _program(build, noise_of, regret_of, y_size, steps, seeds, cases, longest):
    """`(numbers [N, 4], starts, horizon, key)` to streams and scores `[N, R + 1, ...]`."""

    def one(numbers, starts, horizon, key):
        radius, rate, variance, told = numbers
        learner, noise = build(radius, rate, told), noise_of(variance)

        def regret(stream, key):
            return regret_of(learner, stream, noise, key, radius=radius, rounds=horizon)

        used = jnp.where(jnp.arange(longest) < horizon, 1.0, 0.0)
        climb_key = four_keys(key)[1]
        found, _ = ascend(
            regret, starts, climb_key, y_size=y_size, steps=steps, draws=DRAWS, used=used
        )
        streams, _, scores = chosen(regret, starts, found, key, seeds)
        return streams, scores

    key = jax.random.key(0)
    starts = stack(structured_starts(key, longest, 1).values())
    program = jax.jit(jax.vmap(one, (0, None, None, None)))
    if not cast(Any, jax.config).jax_disable_jit:
        program = program.lower(jnp.zeros((cases, 4)), starts, np.int32(1), key).compile()
        check_memory(program, f"{longest} rounds and {seeds} seeds")
    return program


def _after(family: Family, seeds: int):
    """`(numbers [N, 4], streams, key)` to bounds after a run and regrets, `[N, seeds]` each."""
    after: Any = family.after

    def one(numbers, stream, key):
        radius, rate, variance, told = numbers
        learner, noise = family.build(radius, rate, told), family.noise(variance)

        def pair(key):
            state = rollout(learner, stream, noise, key).state
            state = state if learner.finish is None else learner.finish(state)
            options = {"radius": radius, "rounds": len(stream.y)}
            return after(state, radius), family.regret(learner, stream, noise, key, **options)

        return jax.vmap(pair)(jax.random.split(key, seeds))

    return jax.jit(jax.vmap(one, (0, 0, None)))


if __name__ == "__main__":
    sys.exit(script(Settings, run))
