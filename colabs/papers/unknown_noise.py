"""Random truncation, and what it costs not to know the distribution of the noise."""

import dataclasses
import functools
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from kernel import Best, WorldBall, data_option, load_all, noise_option, rate_option
from noisy_jax import kernels, losses, noise, unbiased, worlds
from noisy_jax.base import Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, picture, report_of, script
from noisy_jax.command.settings import option
from noisy_jax.learners import parallel_worlds, random_truncation, uncorrected_kernel
from noisy_jax.learners.wrappers import noiseless
from noisy_jax.simulated import bounds, streams
from noisy_jax.simulated.entries import MakeLearner, guarantee_at, tuned
from noisy_jax.simulated.programs import first
from noisy_jax.unbiased.truncation.gradients import GradientEstimator
from noisy_jax.validation.numbers import positive
from unknown_noise_corrections import averaging, best_in_ball, whole_gradients
from unknown_noise_gradients import (
    both_distributions,
    estimate_row,
    estimates_table,
    exponents_table,
    measured,
)
from unknown_noise_picture import draw_price

DEGREE = 2
"""Of the polynomial kernel, and of the teacher."""

LOSSES: Mapping[str, losses.Loss] = {
    "squared": losses.squared(),
    "smoothed_absolute": losses.smoothed_absolute(sharpness=0.5),
    "smoothed_hinge": losses.smoothed_hinge(sharpness=0.5),
}
"""Losses by name, so smooth that random truncation can estimate their gradients in the ball."""


SHOWN = "truncation", "whole", "averaging"


@dataclasses.dataclass(frozen=True)
class Settings(regret.RegretSettings):
    """What it costs not to know the distribution of the noise.

    Random truncation learns from a random number of noisy copies, by the distribution of orders
    with the least variance or by the paper's geometric one at as many copies. Polynomial kernel:
    both, against a learner that takes the noisy copy to be clean, and one that sees clean data.
    Gaussian kernel: the better one, against parallel worlds, which know the distribution. Then
    estimates of the whole gradient from one set of copies, against the mean of as many; and two
    moons, where the mean wins. Writes into a folder for each data set: results.csv, config.json and
    regret.png for each kernel; estimates.csv, measurements of the gradient estimates;
    exponents.csv, growth of regret beside the bounds; price.png, regret against copies.

    With another loss than the squared one only random truncation learns, the geometric one with the
    paper's p = 2. The smoothed hinge predicts whether the target is above its mean.

    A bound is informative at T if it is below the loss of predicting zero: at the theorems' rate
    (--rate-factor 1) after a few thousand rounds, less for a small radius.

    Examples:
      python colabs/papers/unknown_noise.py
      python colabs/papers/unknown_noise.py --data diabetes --noise-variance 0.02 --seeds 32
      python colabs/papers/unknown_noise.py --show whole --data diabetes --length-scale 1
    """

    show: tuple[str, ...] = option(
        SHOWN, "what is compared", choices=SHOWN, fast=("truncation", "averaging")
    )
    data: tuple[str, ...] = data_option(("teacher", "diabetes"), fast=("teacher",))
    noise: str = noise_option("gaussian")
    noise_variance: float | None = option(
        None, "variance on each feature; rows have norm ≤ 1 (default: 0.04, the teacher's 0.2)", "V"
    )
    offset: float = option(1.5, "of the kernel (⟨x, z⟩ + C)², above 1 + dV", "C", positive)
    length_scale: float = option(
        2.0, "ℓ of the kernel exp(−r²/2ℓ²), ℓ² above V for Gaussian noise", "L", positive
    )
    loss: str = option("squared", "by which predictions are judged", choices=tuple(LOSSES))
    radius: float = regret.radius(1.0)
    rate_factor: float | None = rate_option(None)
    horizons: tuple[int, ...] = regret.horizons((512, 2048, 8192), fast=(64,))
    seeds: int = regret.seeds(8, fast=2)


class Truncation(NamedTuple):
    """Random truncation by one distribution of orders."""

    estimator: GradientEstimator
    learner: MakeLearner  # tuned
    p: float | None  # base of the geometric distribution; None for the optimal one


class Case(NamedTuple):
    """One kernel on one data set, ready to be run."""

    kernel: str  # its name
    heading: str  # what it is, in words
    comparator: Best
    truncations: Mapping[str, Truncation]  # by the names of their learners
    learners: Mapping[str, MakeLearner]  # by name, tuned

    @property
    def copies(self) -> dict[str, float]:
        """Noisy copies a round, on average, of the learners that see any."""
        known = {"uncorrected_kernel": 1.0, "parallel_worlds": 2.0}
        known |= {
            name: float(each.estimator.mean_copies) for name, each in self.truncations.items()
        }
        return {name: known[name] for name in self.learners if name in known}


def run(settings: Settings) -> Iterator[Report]:
    """A study of regret for each data set and kernel, then what the truncations have in common."""

    def teacher(key):
        """A quadratic form of two features, in the ball that competes."""
        kernel = kernels.polynomial(degree=DEGREE, offset=0.0)
        return streams.teacher(key, 500, 2, kernel=kernel, radius=settings.radius)

    loss = LOSSES[settings.loss]
    loaded = load_all(settings, teacher, variance=0.04, of_teacher=0.2)
    if loss.kind == "margin":
        loaded = [data._replace(stream=_classes(data.stream)) for data in loaded]
    # Bad settings are found before the work.
    old = loaded if "truncation" in settings.show else []
    cases = [(_polynomial(settings, data), _gaussian(settings, data)) for data in old]
    for data in loaded if "whole" in settings.show else []:
        yield from whole_gradients(settings, data, loss)
    if "averaging" in settings.show:
        yield from averaging(settings)
    for data, pair in zip(old, cases, strict=True):
        results, rows = {}, []
        for case in pair:
            folder = f"{data.name}/{case.kernel}"
            result = regret.study_of(
                settings,
                data,
                case.learners,
                case.comparator,
                loss=loss,
                part=folder,
                copies=case.copies,
            )
            yield report_of(result, f"{data.words}\n{case.heading}", folder)
            results[case.kernel] = result
            rows += [_measured(settings, data, case, name, result) for name in case.truncations]
        estimates, exponents = zip(*rows, strict=True)
        tables = {
            "estimates": estimates_table(estimates),
            "exponents": exponents_table(exponents),
        }
        draw = picture(draw_price, results, {case.kernel: case.copies for case in pair})
        yield Report(None, tables, {"price": draw}, folder=data.name)


def _classes(stream: Stream) -> Stream:
    """Whether the target is above its mean: ±1."""
    return stream._replace(y=np.where(stream.y > stream.y.mean(), 1.0, -1.0).astype(stream.y.dtype))


def _polynomial(settings, data) -> Case:
    """The polynomial kernel: random truncation, the uncorrected learner and a clean reference."""
    stream, moments = data.stream, bounds.moments(data.stream, data.noise)
    dim = stream.x.shape[1]
    if moments.x_second_moment >= settings.offset:
        raise ValueError(
            f"--offset must be above the largest E‖x̃‖² = {float(moments.x_second_moment):.4g}, got "
            f"{settings.offset:g}: below it no geometric distribution uses as many copies as the "
            f"optimal one (E‖x̃‖² contains {dim} times the variance of the noise)"
        )
    kernel = kernels.polynomial(degree=DEGREE, offset=settings.offset)
    diagonal = float(kernel.diagonal(stream.x).max())
    # A world without noise, for the comparator of any kernel.
    clean = worlds.world_of(
        kernel, kernel.gram, dim=dim, diagonal=diagonal, noise=noise.Gaussian(0.0)
    )
    truncations, words = _truncations(settings, kernel, moments)
    uncorrected = functools.partial(uncorrected_kernel, kernel)
    seeing = {
        "uncorrected_kernel": uncorrected,
        "clean": lambda **tuning: noiseless(uncorrected(**tuning), stream),
    }
    learners = {name: truncation.learner for name, truncation in truncations.items()}
    for name, factory in seeing.items() if settings.loss == "squared" else ():
        learners[name] = _tuned(
            settings, factory, diagonal, moments, settings.radius, proved=name == "clean"
        )
    heading = (
        f"kernel (⟨x, z⟩ + {settings.offset:g})^{DEGREE}; functions of norm at most "
        f"{settings.radius:g} compete\n{words}"
    )
    return Case(
        "polynomial",
        heading,
        best_in_ball(clean, LOSSES[settings.loss], settings.radius, stream),
        truncations,
        learners,
    )


def _gaussian(settings, data) -> Case:
    """The Gaussian kernel: parallel worlds and random truncation by the better distribution."""
    moments, dim = bounds.moments(data.stream, data.noise), data.stream.x.shape[1]
    world = worlds.gaussian(dim=dim, length_scale=settings.length_scale, noise=data.noise)
    comparator = best_in_ball(world, LOSSES[settings.loss], settings.radius, data.stream)
    truncations, words = _truncations(settings, world.kernel, moments)
    learners = {name: truncation.learner for name, truncation in truncations.items()}
    heading = (
        f"Gaussian kernel of length scale {settings.length_scale:g}; functions of norm at most "
        f"{settings.radius:g} compete"
    )
    if isinstance(comparator, WorldBall):
        radius = max(comparator.lifted_norms(settings.horizons).values())
        factory = functools.partial(parallel_worlds, world)
        learners = {
            "parallel_worlds": _tuned(settings, factory, world.diagonal, moments, radius),
            "optimal_truncation": truncations["optimal_truncation"].learner,
        }
        heading += f", {radius:.3g} in the world of parallel_worlds, which takes 2 copies"
    return Case("gaussian", f"{heading}\n{words}", comparator, truncations, learners)


def _tuned(settings, factory, diagonal, moments, radius, proved=True) -> MakeLearner:
    bound = functools.partial(
        bounds.parallel_worlds, diagonal, y_second_moment=moments.y_second_moment
    )
    bound = bound if proved else bounds.rate_of(bound)
    return tuned(factory, bound, radius=radius, rate_factor=settings.rate_factor)


def _truncations(settings, kernel, moments) -> tuple[dict[str, Truncation], str]:
    """By the optimal distribution, and by the geometric one at as many copies; words on both."""
    make = functools.partial(
        unbiased.kernel_gradient,
        kernel,
        LOSSES[settings.loss],
        radius=settings.radius,
        x_second_moment=float(moments.x_second_moment),
        y_largest=float(moments.y_second_moment) ** 0.5,
    )
    if settings.loss == "squared":
        optimal, geometric, p = both_distributions(make)
    else:  # may need more copies than any geometric distribution takes
        optimal, geometric, p = make(distribution="optimal"), make(), 2.0

    def truncation(estimator, p=None):
        learner = tuned(
            functools.partial(random_truncation, estimator),
            functools.partial(bounds.random_truncation, estimator),
            rate_factor=settings.rate_factor,
        )
        return Truncation(estimator, learner, p)

    both = {
        "optimal_truncation": truncation(optimal),
        "geometric_truncation": truncation(geometric, p),
    }
    copies = f"random truncation takes {optimal.mean_copies:.3g} copies a round"
    return both, f"{copies}, geometric with p = {p:.4g} takes {geometric.mean_copies:.3g}"


def _measured(settings, data, case, name, result) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of both tables: gradient estimates of a truncation, and the growth of its regret.

    Estimates are measured at the smallest horizon; bounds are those at the largest. Where the study
    of regret leaves the truncation out, it has a study of its own here.
    """
    estimator, learner, p = case.truncations[name]
    rounds, horizon = min(settings.horizons), max(settings.horizons)
    rate = settings.rate_factor
    if rate is not None:
        rate *= float(bounds.random_truncation(estimator, horizon=rounds).learning_rate)
    past, seeds = first(rounds, data.stream), settings.seeds
    estimate = measured(estimator, rate, past, data.noise, data.key, num_seeds=seeds)
    theory, closed = bounds.random_truncation(estimator, horizon=horizon), math.nan
    if name not in case.learners:
        part = f"{data.name}/{case.kernel}/{name}"
        own, best = {name: learner}, case.comparator
        result = regret.study_of(settings, data, own, best, loss=estimator.loss, part=part)
    (last,) = (row for row in result.rows if (row.learner, row.horizon) == (name, horizon))
    if p is not None:
        form = bounds.random_truncation(estimator, horizon=horizon, closed_form=True, p=p)
        closed = float(guarantee_at(form, settings.rate_factor).regret)
    # A bound ∝ √T that is m times as large is informative from m² times the horizon on.
    informative = float(theory.informative_from) * (last.bound / float(theory.regret)) ** 2
    shown = ("learner", "horizon", "num_seeds", "regret", "std_error", "bound")
    return estimate_row(case.kernel, name, estimate, theory), {
        "kernel": case.kernel,
        **{column: getattr(last, column) for column in shown},
        "closed_form": closed,
        "idle": float(theory.idle),
        "informative_from": informative,
        "informative": horizon > informative,
        **result.growth[name]._asdict(),
    }


if __name__ == "__main__":
    sys.exit(script(Settings, run))
