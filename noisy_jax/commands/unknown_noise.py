"""The command `unknown-noise`: random truncation, and what not knowing the noise costs."""

import argparse
import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from noisy_jax import bounds, comparators, estimators, kernels, losses, plots, streams, worlds
from noisy_jax.base import Stream
from noisy_jax.commands import data_sets, experiment
from noisy_jax.commands.gradients import Figures, both_laws, figures_of, measured, save, table
from noisy_jax.estimators import GradientEstimator
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.results import Study
from noisy_jax.evaluate.tuning import MakeLearner, tuned_kernel_learner
from noisy_jax.learners import noiseless, parallel_worlds, random_truncation, uncorrected_kernel
from noisy_jax.noise import Gaussian

SUMMARY = "what it costs not to know the distribution of the noise"

DESCRIPTION = """\
What does it cost a kernel learner not to know the distribution of the noise?

Random truncation learns from a random number of noisy copies, by the distribution of orders with the least
variance or by the paper's geometric one at as many copies. Polynomial kernel: both, against trust
in the noisy copy and against clean data. Gaussian kernel: the better one, against parallel worlds,
which know the distribution. Writes into a folder for each data set: results.csv, config.json and regret.png
for each kernel; estimates.csv; and price.png, regret against the copies paid for it.
"""

EXAMPLES = """\
  python -m noisy_jax unknown-noise
  python -m noisy_jax unknown-noise --data diabetes --variance 0.02 --seeds 32
"""

DEGREE = 2
"""Of the polynomial kernel, and of the teacher."""

COPIES = {"parallel_worlds": 2.0, "uncorrected_kernel": 1.0}
"""Noisy copies a round, where their number is fixed."""


class Case(NamedTuple):
    """One kernel on one data set, ready to be run.

    Attributes:
        kernel: its name.
        heading: what it is, in words.
        comparator: `stream -> KernelBall`.
        truncations: estimators of the gradient, by the names of their learners.
        learners: all, by name, tuned.
    """

    kernel: str
    heading: str
    comparator: data_sets.Comparator
    truncations: Mapping[str, GradientEstimator]
    learners: Mapping[str, MakeLearner]

    @property
    def copies(self) -> dict[str, float]:
        """Noisy copies a round on average, of the learners that see any."""
        drawn = {name: float(made.mean_copies) for name, made in self.truncations.items()}
        known = COPIES | drawn
        return {name: known[name] for name in self.learners if name in known}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--variance", type=float, metavar="V",
        help="noise variance on each feature; rows have norm at most 1 (default: 0.04, the "
        "teacher's 0.2)")
    add("--offset", type=float, default=1.5, metavar="C",
        help="of the kernel (⟨x, z⟩ + C)², above 1 + dV (default: 1.5)")
    add("--length-scale", type=float, default=2.0, metavar="L",
        help="ℓ of the kernel exp(−r²/2ℓ²), ℓ² above V for Gaussian noise (default: 2)")
    # fmt: on
    data_sets.add_options(
        parser,
        data=["teacher", "diabetes"],
        radius=1.0,
        rate_factor=16.0,
        horizons=[512, 2048, 8192],
        seeds=8,
    )


def run(options: argparse.Namespace) -> dict[str, dict[str, Study]]:
    """Runs the studies that the options ask for, one a data set and kernel, and saves them."""
    experiment.require_plots()

    def teacher(key):
        """A quadratic form of two features, in the ball that competes."""
        kernel = kernels.polynomial(degree=DEGREE, offset=0.0)
        return streams.teacher(key, 500, 2, kernel=kernel, radius=options.radius)

    loaded = data_sets.load(options, teacher, variance=0.04, teacher_variance=0.2)
    # Refuses before the work.
    cases = [(_polynomial(options, data), _gaussian(options, data)) for data in loaded]
    return {data.name: _run(options, data, pair) for data, pair in zip(loaded, cases, strict=True)}


def _run(options, data, cases) -> dict[str, Study]:
    print(f"\n{data.words}")
    results, figures = {}, []
    for case in cases:
        result = data_sets.regret(
            options, data, case.learners, case.comparator, part=case.kernel, copies=case.copies
        )
        experiment.report(case.heading, result, data.folder / case.kernel)
        results[case.kernel] = result
        figures += _figures(options, data, case)
    save(figures, data.folder)
    axes = plots.copies(results, {case.kernel: case.copies for case in cases})
    axes[0].figure.savefig(data.folder / "price.png", dpi=150)
    print(f"\n{table(figures)}\n\n{conclusion(figures, results['gaussian'])}\n")
    print(f"Saved in {data.folder}/")
    return results


def _polynomial(options, data) -> Case:
    """The polynomial kernel: random truncation, the uncorrected learner and a clean reference."""
    stream, moments = data.stream, bounds.moments(data.stream, data.distribution)
    if moments.x_second_moment >= options.offset:
        raise ValueError(
            f"--offset must be above the largest E‖x̃‖² = {float(moments.x_second_moment):.4g}, got "
            f"{options.offset:g}: below, no geometric distribution uses as many copies as the optimal one. "
            f"It holds {stream.x.shape[1]} times the variance, for as many features: less would do"
        )
    kernel = kernels.polynomial(degree=DEGREE, offset=options.offset)
    diagonal = float(kernel.diagonal(stream.x).max())
    # World without noise: the comparator of any kernel.
    clean = worlds.World(stream.x.shape[1], kernel, kernel.gram, diagonal, noise=Gaussian(0.0))
    blind = functools.partial(uncorrected_kernel, kernel)
    bound = functools.partial(
        bounds.parallel_worlds, diagonal, y_second_moment=moments.y_second_moment
    )
    tuning = {"radius": options.radius, "rate_factor": options.rate_factor}
    truncations, words = _truncations(options, kernel, moments)
    return Case(
        "polynomial",
        f"kernel (⟨x, z⟩ + {options.offset:g})^{DEGREE}; functions of norm at most "
        f"{options.radius:g} compete\n{words}",
        functools.partial(comparators.world_ball, world=clean, radius=options.radius),
        truncations,
        {
            **_tuned(options, truncations),
            "uncorrected_kernel": tuned_kernel_learner(blind, bound, **tuning),
            "clean": tuned_kernel_learner(
                lambda **tuning: noiseless(blind(**tuning), stream), bound, **tuning
            ),
        },
    )


def _gaussian(options, data) -> Case:
    """The Gaussian kernel: parallel worlds and random truncation by the better distribution."""
    moments, dim = bounds.moments(data.stream, data.distribution), data.stream.x.shape[1]
    world = worlds.gaussian(dim=dim, length_scale=options.length_scale, noise=data.distribution)
    comparator = data_sets.Remembered(
        functools.partial(comparators.world_ball, world=world, radius=options.radius)
    )
    radius = max(data_sets.lifted_norms(comparator, data.stream, options.horizons).values())
    known = tuned_kernel_learner(
        functools.partial(parallel_worlds, world),
        functools.partial(
            bounds.parallel_worlds, world.diagonal, y_second_moment=moments.y_second_moment
        ),
        radius=radius,
        rate_factor=options.rate_factor,
    )
    truncations, words = _truncations(options, world.kernel, moments)
    optimal = _tuned(options, {"optimal_truncation": truncations["optimal_truncation"]})
    return Case(
        "gaussian",
        f"kernel exp(−r²/2ℓ²) with ℓ = {options.length_scale:g}; functions of norm at most "
        f"{options.radius:g} compete, {radius:.3g} in the world of parallel_worlds, which takes 2 "
        f"copies\n{words}",
        comparator,
        truncations,
        {"parallel_worlds": known, **optimal},
    )


def _truncations(options, kernel, moments) -> tuple[dict[str, GradientEstimator], str]:
    """Estimators by the optimal distribution and by the geometric one at as many copies, and words on it."""
    make = functools.partial(
        estimators.gradient,
        kernel,
        losses.squared(),
        squared_radius=options.radius**2,
        x_second_moment=float(moments.x_second_moment),
        y_largest=float(moments.y_second_moment) ** 0.5,
    )
    optimal, geometric, p = both_laws(make)
    copies = f"random truncation takes {optimal.mean_copies:.3g} copies a round"
    words = f"{copies}, geometric with p = {p:.4g}"
    return {"optimal_truncation": optimal, "geometric_truncation": geometric}, words


def _tuned(options, truncations) -> dict[str, MakeLearner]:
    return {
        name: tuned_kernel_learner(
            functools.partial(random_truncation, estimator),
            functools.partial(bounds.random_truncation, estimator),
            rate_factor=options.rate_factor,
        )
        for name, estimator in truncations.items()
    }


def _figures(options, data, case) -> list[Figures]:
    """What gradient estimates are like at the smallest horizon, and bounds at the largest."""
    rounds = min(options.horizons)
    past, figures = Stream(data.stream.x[:rounds], data.stream.y[:rounds]), []
    for name, estimator in case.truncations.items():
        theory = bounds.random_truncation(estimator, horizon=rounds)
        rate = options.rate_factor * float(theory.learning_rate)
        estimate = measured(
            estimator, rate, past, data.distribution, data.key, num_seeds=options.seeds
        )
        theory = bounds.random_truncation(estimator, horizon=max(options.horizons))
        figures.append(figures_of(case.kernel, name, estimate, theory))
    return figures


def conclusion(figures: Sequence[Figures], price: Study) -> str:
    """Sentences that say what the tables show, from their numbers.

    Args:
        figures: of an optimal and a geometric truncation for each kernel, in this order.
        price: study of `parallel_worlds` and `optimal_truncation`.
    """
    sentences = []
    for optimal, geometric in zip(figures[::2], figures[1::2], strict=True):
        ratio = geometric.variance / optimal.variance
        errors = (row.variance_std_error / row.variance for row in (optimal, geometric))
        sentences.append(
            f"{optimal.kernel.capitalize()} kernel: at {optimal.copies:.2f} copies a round, "
            f"gradient estimates by the geometric distribution have {ratio:.2f} ± "
            f"{NORMAL_95 * ratio * math.hypot(*errors):.2f} times the variance of those by the "
            "optimal one."
        )
    last = {row.learner: row for row in price.rows}  # rows of a learner come by horizon
    known, unknown = last["parallel_worlds"], last["optimal_truncation"]
    if known.regret > 0 and math.isfinite(unknown.regret):
        sentences.append(
            f"Not knowing the distribution of the noise costs {unknown.regret / known.regret:.1f} times the "
            f"regret of knowing it: {unknown.regret:.1f} against {known.regret:.1f} after "
            f"{known.horizon:,} rounds."
        )
    horizon = known.horizon
    vacuous = [f"{row.kernel} {row.learner}" for row in figures if horizon <= row.informative_from]
    verdict = f"vacuous for {', '.join(vacuous)}" if vacuous else "vacuous for none"
    sentences.append(f"At T = {horizon:,} the theorem's bound is {verdict}.")
    return "\n".join(sentences)
