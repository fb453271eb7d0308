"""The command `unknown-noise`: random truncation, and what not knowing the noise costs."""

import argparse
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from noisy_jax import bounds, estimators, kernels, losses, noise, plots, streams, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.commands import experiment
from noisy_jax.commands.gradients import Figures, both_laws, figures_of, measured, save, table
from noisy_jax.commands.kernel import Competitor, faster, told
from noisy_jax.estimators import GradientEstimator
from noisy_jax.learners import noise_blind_kernel, parallel_worlds, random_truncation
from noisy_jax.regret import NORMAL_95
from noisy_jax.results import Study
from noisy_jax.studies import MakeLearner, study
from noisy_jax.validation import check_at_least, check_positive, writable_folder

SUMMARY = "what it costs not to know the law of the noise"

DESCRIPTION = """\
What does it cost a kernel learner not to know the law of the noise?

Random truncation learns from a random number of noisy copies, by the law of orders with the least
variance or by the paper's geometric one at as many copies. Polynomial kernel: both, against trust
in the noisy copy and against clean data. Gaussian kernel: the better one, against parallel worlds,
which know the law. Writes into a folder for each data set: results.csv, config.json and regret.png
for each kernel; estimates.csv; and price.png, regret against the copies paid for it.
"""

EXAMPLES = """\
  python -m noisy_jax unknown-noise
  python -m noisy_jax unknown-noise --data diabetes --variance 0.02 --seeds 32
"""

DATASETS = ("teacher", *streams.DATASETS)
"""Names that `--data` knows; the teacher is synthetic."""

DEGREE = 2
"""Of the polynomial kernel, and of the teacher."""

COPIES = {"parallel_worlds": 2.0, "noise_blind_kernel": 1.0}
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
    comparator: Competitor
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
    add("--data", nargs="+", default=["teacher", "diabetes"], metavar="NAME|FILE.csv",
        help=f"{', '.join(DATASETS)}, or numeric CSV files (default: teacher diabetes)")
    add("--variance", type=float, metavar="V",
        help="noise variance on each feature; rows have norm at most 1 (default: 0.04, the "
        "teacher's 0.2)")
    add("--offset", type=float, default=1.5, metavar="C",
        help="of the kernel (⟨x, z⟩ + C)², above 1 + dV (default: 1.5)")
    add("--squared-width", type=float, default=8.0, metavar="S",
        help="s² of the kernel exp(−r²/s²), above 2V for Gaussian noise (default: 8)")
    add("--radius", type=float, default=1.0, metavar="B",
        help="norm of the largest functions that compete (default: 1)")
    add("--rate-factor", type=float, default=16.0, metavar="M",
        help="times the theory's learning rate, which is far on the safe side; multiplies the "
        "bounds by (M + 1/M)/2 (default: 16)")
    add("--horizons", type=int, nargs="+", default=[512, 2048, 8192], metavar="T",
        help="numbers of rounds, increasing (default: 512 2048 8192)")
    add("--seeds", type=int, default=8, metavar="N", help="independent noise draws (default: 8)")
    # fmt: on
    experiment.add_options(parser, noises=["gaussian", "laplace"])


def run(options: argparse.Namespace) -> dict[str, dict[str, Study]]:
    """Runs the studies that the options ask for, one a data set and kernel, and saves them."""
    experiment.require_plots()
    check_positive("--rate-factor", options.rate_factor, "the learning rate over the theory's")
    for horizon in options.horizons:
        check_at_least("each horizon", horizon, 1, "a number of rounds")
    names = [Path(data).stem if experiment.is_csv(data) else data for data in options.data]
    if len(set(names)) < len(names):
        raise ValueError(f"--data must differ in name, got {' '.join(names)}: each names a folder")
    for name in names:
        writable_folder(Path(options.out) / name)
    made = [_data(options, data) for data in options.data]  # refuses before the work
    return {name: _run(options, name, *case) for name, case in zip(names, made, strict=True)}


def _data(options, data) -> tuple[str, Stream, noise.Noise, jax.Array, list[Case]]:
    """Words on a data set, its stream, law and key of the noise, and a case for each kernel."""
    teacher_key, stream_key, noise_key = jax.random.split(jax.random.key(options.seed), 3)
    rows = _teacher(teacher_key, options) if data == "teacher" else _load(options, data)
    default = 0.2 if data == "teacher" else 0.04
    variance = default if options.variance is None else options.variance
    law = experiment.law(options.noise, variance)
    stream = streams.resampled(stream_key, rows, max(options.horizons))
    shape = f"{data}: {len(rows.y):,} rows, {rows.x.shape[1]} features"
    noisy = f"{options.noise} noise of variance {variance} on each feature"
    words = f"{shape}; {noisy}; {options.seeds} noise draws"
    cases = [_polynomial(options, stream, law), _gaussian(options, stream, law)]
    return words, stream, law, noise_key, cases


def _run(options, name, words, stream, law, key, cases) -> dict[str, Study]:
    folder = Path(options.out) / name
    print(f"\n{words}")
    results, figures = {}, []
    for case in cases:
        with experiment.progress_bar("rounds") as progress:
            results[case.kernel] = study(
                case.learners,
                stream,
                law,
                key,
                num_seeds=options.seeds,
                horizons=options.horizons,
                comparator=case.comparator,
                progress=progress,
                parameters={"command": vars(options), "copies": case.copies},
            )
        experiment.report(case.heading, results[case.kernel], folder / case.kernel)
        figures += _figures(options, case, stream, law, key)
    save(figures, folder)
    axes = plots.copies(results, {case.kernel: case.copies for case in cases})
    axes[0].figure.savefig(folder / "price.png", dpi=150)
    print(f"\n{table(figures)}\n\n{conclusion(figures, results['gaussian'])}\n")
    print(f"Saved in {folder}/")
    return results


def _teacher(key, options) -> Stream:
    """A quadratic form of two features, in the ball that competes."""
    kernel = kernels.polynomial(degree=DEGREE, offset=0.0)
    return streams.teacher(key, 500, 2, kernel=kernel, radius=options.radius)


def _load(options, data) -> Stream:
    files = any(experiment.is_csv(other) for other in options.data)
    target = None if files and not experiment.is_csv(data) else options.target
    return experiment.load(data, target, known=DATASETS)


def _polynomial(options, stream, law) -> Case:
    """The polynomial kernel: random truncation, the noise-blind learner and a clean reference."""
    moments = bounds.moments(stream, law)
    if moments.x_second >= options.offset:
        raise ValueError(
            f"--offset must be above the largest E‖x̃‖² = {float(moments.x_second):.4g}, got "
            f"{options.offset:g}: below, no geometric law uses as many copies as the optimal one"
        )
    kernel = kernels.polynomial(degree=DEGREE, offset=options.offset)
    diagonal = float(kernel.diagonal(stream.x).max())
    # World without noise: the comparator of any kernel.
    clean = worlds.World(
        stream.x.shape[1], kernel, kernel.gram, diagonal, noise=noise.Gaussian(0.0)
    )
    trusting = functools.partial(noise_blind_kernel, kernel, radius=options.radius)
    bound = functools.partial(
        bounds.parallel_worlds, diagonal, radius=options.radius, y_second=moments.y_second
    )
    others = {
        "noise_blind_kernel": _Tuned(trusting, bound, options.rate_factor),
        "clean": _Tuned(functools.partial(told, stream, trusting), bound, options.rate_factor),
    }
    truncations, words = _truncations(options, kernel, moments)
    return Case(
        "polynomial",
        f"kernel (⟨x, z⟩ + {options.offset:g})^{DEGREE}; functions of norm at most "
        f"{options.radius:g} compete\n{words}",
        Competitor(clean, options.radius),
        truncations,
        {**_tuned(options, truncations), **others},
    )


def _gaussian(options, stream, law) -> Case:
    """The Gaussian kernel: parallel worlds and random truncation by the better law."""
    moments = bounds.moments(stream, law)
    world = worlds.gaussian(dim=stream.x.shape[1], squared_width=options.squared_width, noise=law)
    comparator = Competitor(world, options.radius)
    radius = max(comparator.lifted_norms(stream, options.horizons).values())
    known = _Tuned(
        functools.partial(parallel_worlds, world, radius=radius),
        functools.partial(
            bounds.parallel_worlds, world.diagonal, radius=radius, y_second=moments.y_second
        ),
        options.rate_factor,
    )
    truncations, words = _truncations(options, world.kernel, moments)
    optimal = _tuned(options, {"optimal_truncation": truncations["optimal_truncation"]})
    return Case(
        "gaussian",
        f"kernel exp(−r²/{options.squared_width:g}); functions of norm at most "
        f"{options.radius:g} compete, {radius:.3g} in the world of parallel_worlds, which takes 2 "
        f"copies\n{words}",
        comparator,
        truncations,
        {"parallel_worlds": known, **optimal},
    )


def _truncations(options, kernel, moments) -> tuple[dict[str, GradientEstimator], str]:
    """Estimators by the optimal law and by the geometric one at as many copies, and words on it."""
    make = functools.partial(
        estimators.gradient,
        kernel,
        losses.squared(),
        squared_radius=options.radius**2,
        x_second=float(moments.x_second),
        y_largest=float(moments.y_second) ** 0.5,
    )
    optimal, geometric, p = both_laws(make)
    copies = f"random truncation takes {optimal.mean_copies:.3g} copies a round"
    words = f"{copies}, geometric with p = {p:.4g}"
    return {"optimal_truncation": optimal, "geometric_truncation": geometric}, words


@dataclasses.dataclass(frozen=True, eq=False)
class _Tuned:
    """`horizon -> (learner, guarantee)`, at a multiple of the theory's learning rate."""

    factory: Callable[..., Learner] = dataclasses.field(repr=False)
    bound: Callable[..., bounds.Guarantee] = dataclasses.field(repr=False)
    rate_factor: float

    def __call__(self, horizon: int) -> tuple[Learner, bounds.Guarantee]:
        guarantee = faster(self.bound(horizon=horizon), self.rate_factor)
        return self.factory(horizon=horizon, learning_rate=guarantee.learning_rate), guarantee


def _tuned(options, truncations) -> dict[str, MakeLearner]:
    return {
        name: _Tuned(
            functools.partial(random_truncation, estimator),
            functools.partial(bounds.random_truncation, estimator),
            options.rate_factor,
        )
        for name, estimator in truncations.items()
    }


def _figures(options, case, stream, law, key) -> list[Figures]:
    """What gradient estimates are like at the smallest horizon, and bounds at the largest."""
    rounds = min(options.horizons)
    past, figures = Stream(stream.x[:rounds], stream.y[:rounds]), []
    for name, estimator in case.truncations.items():
        tuned = faster(bounds.random_truncation(estimator, horizon=rounds), options.rate_factor)
        rate = float(tuned.learning_rate)
        estimate = measured(estimator, rate, past, law, key, num_seeds=options.seeds)
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
            f"gradient estimates by the geometric law have {ratio:.2f} ± "
            f"{NORMAL_95 * ratio * math.hypot(*errors):.2f} times the variance of those by the "
            "optimal one."
        )
    last = {row.learner: row for row in price.rows}  # rows of a learner come by horizon
    known, unknown = last["parallel_worlds"], last["optimal_truncation"]
    if known.regret > 0 and math.isfinite(unknown.regret):
        sentences.append(
            f"Not knowing the law of the noise costs {unknown.regret / known.regret:.1f} times the "
            f"regret of knowing it: {unknown.regret:.1f} against {known.regret:.1f} after "
            f"{known.horizon:,} rounds."
        )
    horizon = known.horizon
    vacuous = [f"{row.kernel} {row.learner}" for row in figures if horizon <= row.informative_from]
    verdict = f"vacuous for {', '.join(vacuous)}" if vacuous else "vacuous for none"
    sentences.append(f"At T = {horizon:,} the theorem's bound is {verdict}.")
    return "\n".join(sentences)
