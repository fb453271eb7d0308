"""The study `linear`: linear learners on real data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping

import jax

from noisy_jax import learners, moments
from noisy_jax.base import Learner
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, report_of
from noisy_jax.command.settings import option
from noisy_jax.simulated import bounds, comparators
from noisy_jax.simulated.entries import MakeLearner, tuned


def _leader(_, *, radius) -> Learner:
    """The corrected leader, solved every 64 rounds, which needs no bounds on the data."""
    return learners.corrected_ftrl(moments.known_covariance(), radius=radius, solve_every=64)


LEARNERS: Mapping[str, Callable[..., Learner | MakeLearner]] = {
    "corrected_leader": _leader,
    "known_covariance": functools.partial(
        tuned, learners.known_covariance, bounds.known_covariance
    ),
    "two_copies": functools.partial(tuned, learners.two_copies, bounds.two_copies),
    "as_printed": functools.partial(
        tuned,
        functools.partial(learners.known_covariance, as_printed=True),
        bounds.as_printed.known_covariance,
    ),
    "uncorrected": functools.partial(tuned, learners.uncorrected, bounds.uncorrected),
}
"""Learners by name, `(moments, radius=…)` to a learner or `horizon -> (learner, guarantee)`."""


@dataclasses.dataclass(frozen=True)
class Settings(regret.RegretSettings):
    """Regret of linear learners (runs if no study is named).

    How much regret, on clean data, does a linear learner have that sees only noisy copies?

    Runs each learner on a data set drawn with replacement, under many draws of the noise, and
    writes results.csv, config.json and regret.png.

    Examples:
      python -m noisy_jax
      python -m noisy_jax --data breast_cancer --noise laplace --noise-variance 0.02
      python -m noisy_jax --data houses.csv --target price --horizons 1024 4096 --seeds 64
    """

    data: str = option("diabetes", f"{regret.TABLES}, or a numeric CSV file", "NAME|FILE.csv")
    noise: str = option("gaussian", "distribution of the noise", choices=sorted(regret.NOISES))
    noise_variance: float = option(
        0.1, "variance of the noise on each feature; rows have norm at most 1", "V"
    )
    horizons: tuple[int, ...] = regret.horizons((1024, 4096, 16384, 65536, 262144))
    seeds: int = regret.seeds(32)
    learners: tuple[str, ...] = option(
        tuple(LEARNERS),
        "corrected_leader (one copy; least squares on corrected moments), "
        "known_covariance (one copy; subtracts 2Σw), two_copies, as_printed (one copy; subtracts "
        "Σw, as in the paper), uncorrected (one copy, treated as if it were clean)",
        "NAME",
        choices=tuple(LEARNERS),
    )
    radius: float = regret.radius(1.0)


def run(settings: Settings) -> Iterator[Report]:
    """Yields the report of the study of regret."""
    table = regret.load(settings.data, settings.target)
    keys = jax.random.split(jax.random.key(settings.seed))
    data = regret.data_set(settings, settings.data, table, settings.noise_variance, keys)
    data_moments = bounds.moments(data.stream, data.noise)
    result = regret.study_of(
        settings,
        data,
        {name: LEARNERS[name](data_moments, radius=settings.radius) for name in settings.learners},
        comparators.linear_ball(radius=settings.radius),
    )
    yield report_of(result, data.words)
