"""The corrected leader against gradient learners, and where it does badly."""

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

import kernel
import one_copy
from noisy_jax import learners, moments, noise, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, report_of, script
from noisy_jax.command.settings import at_least, option
from noisy_jax.learners.wrappers import assuming, noiseless
from noisy_jax.reports.tables import Table, plus_minus
from noisy_jax.simulated import bounds, comparators, streams
from noisy_jax.simulated.entries import MakeLearner, tuned
from noisy_jax.simulated.programs import first
from noisy_jax.simulated.results import Study
from noisy_jax.validation.numbers import positive

PARTS = ("linear", "kernel", "stress")
"""Parts of the study."""

SOLVE_EVERY = {"linear": 4, "fourier": 128}
"""Rounds between two solutions of the corrected leader; a solution costs D³."""


@dataclasses.dataclass(frozen=True)
class Settings(regret.RegretSettings):
    """Regret of the corrected leader, which needs no tuning.

    Does least squares on corrected moments, from one copy and without a learning rate, a radius or
    a horizon, lose less than gradient learners?

    Part `linear`: the leader in the ball and without one, against the linear learners at the
    theorems' learning rates. Part `kernel`: the leader on Fourier features, against the kernel
    learners at adaptive rates. Both also measure regret against the best predictor without a ball,
    which is larger by a constant. Part `stress`: settings in which the leader does badly. Writes
    results.csv, unconstrained.csv, config.json and regret.png into a folder for each of the first
    two, and stress.csv.

    Examples:
      python colabs/papers/leader.py
      python colabs/papers/leader.py --noise-variance 0.2 --parts kernel
      python colabs/papers/leader.py --data houses.csv --target price --parts linear --seeds 32
    """

    data: str = option("diabetes", f"{regret.TABLES}, or a numeric CSV file", "NAME|FILE.csv")
    noise: str = kernel.noise_option("gaussian")
    noise_variance: float = option(
        0.1, "variance of the noise on each feature; rows have norm at most 1", "V"
    )
    parts: tuple[str, ...] = option(
        PARTS, "what to run", "PART", choices=PARTS, fast=("kernel", "stress")
    )
    horizons: tuple[int, ...] = regret.horizons((1024, 4096, 16384), fast=(64,))
    seeds: int = regret.seeds(8, fast=2)
    radius: float = regret.radius(1.0)
    kernel_radius: float = option(1.2, "norm of the largest function that competes", "B", positive)
    features: int = option(128, "D of Fourier features, even", "D", at_least(2), fast=8)
    length_scale: float = option(
        1.0, "ℓ of the kernel exp(−r²/2ℓ²), ℓ² above V, for cloned above 2V", "L", positive
    )
    rate_factor: float | None = kernel.rate_option(None)


def run(settings: Settings) -> Iterator[Report]:
    """A report for each part."""
    table = regret.load(settings.data, settings.target)
    keys = jax.random.split(jax.random.key(settings.seed))
    data = regret.data_set(settings, settings.data, table, settings.noise_variance, keys)
    parts = {"linear": _linear, "kernel": _kernel}
    made = {name: parts[name](settings, data) for name in parts if name in settings.parts}
    for name, part in made.items():
        result = regret.study_of(settings, data, part.learners, part.comparator, part=name)
        yield _report(settings, data, part, result, name)
    if "stress" in settings.parts:
        yield _stress(settings, data)


class _Part(NamedTuple):
    """Learners by name, the comparator in a ball, features of the other one, and a heading."""

    learners: Mapping[str, Learner | MakeLearner]
    comparator: Callable[[Stream], Any]
    features: Callable[[Any], Any]
    heading: str


def _linear(settings, data) -> _Part:
    known = bounds.moments(data.stream, data.noise)
    tune = {"moments": known, "radius": settings.radius}
    leader = functools.partial(
        learners.corrected_ftrl, moments.known_covariance(), solve_every=SOLVE_EVERY["linear"]
    )
    in_ball = leader(radius=settings.radius)
    return _Part(
        {
            "two_copies": tuned(learners.two_copies, bounds.two_copies, **tune),
            "known_covariance": tuned(learners.known_covariance, bounds.known_covariance, **tune),
            "uncorrected": tuned(learners.uncorrected, bounds.uncorrected, **tune),
            "leader, in the ball": in_ball,
            "leader": leader(),
            "leader on clean data": noiseless(in_ball, data.stream),
        },
        comparators.linear_ball(radius=settings.radius),
        np.asarray,
        f"linear predictors; those of norm at most {settings.radius:g} compete",
    )


def _kernel(settings, data) -> _Part:
    shared = {f.name: getattr(settings, f.name) for f in dataclasses.fields(regret.RegretSettings)}
    rivals, comparator, words = kernel.case(
        kernel.Settings(
            **shared,
            data=(settings.data,),
            noise=settings.noise,
            length_scale=settings.length_scale,
            radius=settings.kernel_radius,
            rate_factor=settings.rate_factor,
            horizons=settings.horizons,
        ),
        data,
    )
    features, leader = _fourier_leader(settings, data.noise, data.stream)
    clean = _fourier_leader(settings, noise.Gaussian(0.0), data.stream)[1]
    return _Part(
        {
            **rivals,
            "leader, Fourier": leader,
            "leader on clean data": noiseless(clean, data.stream),
        },
        comparator,
        features,
        f"{words}; the leader has {settings.features} Fourier features",
    )


def _fourier_leader(settings, distribution, stream):
    """The features, and the leader on them."""
    frequencies = moments.gaussian_frequencies(
        jax.random.key(settings.seed),
        settings.features,
        dim=stream.x.shape[1],
        length_scale=settings.length_scale,
        characteristic=distribution,
    )
    made = moments.fourier(frequencies)
    return made.features, learners.corrected_ftrl(made, solve_every=SOLVE_EVERY["fourier"])


def _report(settings, data, part: _Part, result: Study, name: str) -> Report:
    report = report_of(result, f"{data.words}\n{part.heading}", name)
    more = {}
    for horizon in settings.horizons:
        past = first(horizon, data.stream)
        ball = np.asarray(part.comparator(past).predictions, np.float64)
        more[horizon] = _loss(ball, past) - _loss(_least_squares(part.features, past), past)
    rows = [
        {
            "learner": row.learner,
            "horizon": row.horizon,
            "num_seeds": row.num_seeds,
            "regret": row.regret + more[row.horizon],
            "std_error": row.std_error,
        }
        for row in result.rows
    ]
    title = "regret against the best predictor without a ball:"
    table = Table(rows, _REGRETS, title)
    return report._replace(
        text=f"{report.text}\n\n{table}", tables={**report.tables, "unconstrained": table}
    )


def _least_squares(features, past: Stream) -> np.ndarray:
    z = np.asarray(features(past.x), np.float64)
    return z @ np.linalg.lstsq(z, np.asarray(past.y, np.float64), rcond=1e-7)[0]


def _loss(predictions, past: Stream) -> float:
    return float(np.sum((predictions - np.asarray(past.y, np.float64)) ** 2))


_REGRETS = (
    ("learner", "{learner}"),
    ("T", "{horizon:,}"),
    ("regret", "{regret:.1f}"),
    ("± 95%", plus_minus("std_error", ".1f")),
)


def _stress(settings, data) -> Report:
    """Settings in which the leader does badly, beside a gradient learner and predicting zero."""
    key = jax.random.fold_in(data.key, 1)
    rounds = max(settings.horizons)
    variance = settings.noise_variance
    switching = Stream(data.stream.x, data.stream.y * (-1.0) ** (np.arange(rounds) // 1024))
    heavy = noise.StudentT(df=3.0, scale=(variance / 3) ** 0.5)
    wide = noise.Gaussian(0.8 * settings.length_scale**2)
    few = first(min(64, rounds), data.stream)
    a, b = streams.one_copy_adversaries(key, rounds)
    linear: list[tuple[str, Stream, noise.Noise]] = [
        ("one-copy adversary A", a.stream, a.noise),
        ("one-copy adversary B", b.stream, b.noise),
        ("target changes its sign every 1,024 rounds", switching, data.noise),
        ("Student noise, 3 degrees of freedom", data.stream, heavy),
        ("64 rounds", few, data.noise),
    ]
    rows = []
    for case, stream, distribution in linear:
        known = bounds.moments(stream, distribution)
        leader = learners.corrected_ftrl(moments.known_covariance())
        compared = {
            "two_copies": tuned(
                learners.two_copies, bounds.two_copies, known, radius=settings.radius
            ),
            "leader": leader,
        }
        if case.startswith("one-copy"):
            compared["leader, told neither"] = assuming(leader, one_copy.HEDGE)
        ball = comparators.linear_ball(radius=settings.radius)
        rows += _case(settings, case, stream, distribution, key, compared, ball)
    for case, stream, distribution in (
        ("Fourier features, noise variance 0.8ℓ²", data.stream, wide),
        ("Fourier features, 64 rounds", few, data.noise),
    ):
        clean = worlds.gaussian(
            dim=stream.x.shape[1], length_scale=settings.length_scale, noise=noise.Gaussian(0.0)
        )
        compared = {"leader": _fourier_leader(settings, distribution, stream)[1]}
        ball = comparators.world_ball(world=clean, radius=settings.kernel_radius)
        rows += _case(settings, case, stream, distribution, key, compared, ball)
    columns = (("setting", "{setting}"), *_REGRETS)
    title = "where the leader does badly: regret against the best predictor in the ball"
    table = Table(rows, columns, title)
    return Report(str(table), {"stress": table}, {}, {}, "stress")


def _case(settings, case, stream, distribution, key, compared, comparator) -> list[dict]:
    horizon = len(stream.y)
    part = dataclasses.replace(settings, horizons=(horizon,), checkpoint=None)
    data = regret.DataSet(case, "", stream, distribution, key)
    result = regret.study_of(part, data, compared, comparator)
    idle = _loss(0.0, stream) - float(comparator(stream).loss)
    shown = ("learner", "num_seeds", "regret", "std_error")
    found = [{column: getattr(row, column) for column in shown} for row in result.rows]
    exact = dict(zip(shown, ("predicting 0", math.inf, idle, 0.0), strict=True))
    return [{"setting": case, "horizon": horizon, **row} for row in (*found, exact)]


if __name__ == "__main__":
    sys.exit(script(Settings, run))
