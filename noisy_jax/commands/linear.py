"""The command `linear`, and the one that runs where none is named: linear learners on real data."""

import argparse
import functools
from collections.abc import Callable, Mapping

import jax

from noisy_jax import bounds, comparators, learners, streams
from noisy_jax.commands import experiment
from noisy_jax.evaluate.results import Study
from noisy_jax.evaluate.studies import study
from noisy_jax.evaluate.tuning import MakeLearner, tuned
from noisy_jax.validation import writable_folder

SUMMARY = "regret of linear learners (runs where no command is named)"

DESCRIPTION = """\
How much regret, on clean data, does a linear learner pay that only sees noisy copies?

Runs each learner on a data set drawn with replacement, under many draws of the noise, and
writes results.csv, config.json and regret.png.
"""

EXAMPLES = """\
  python -m noisy_jax
  python -m noisy_jax --data breast_cancer --noise laplace --variance 0.02
  python -m noisy_jax --data houses.csv --target price --horizons 1024 4096 16384 --seeds 64
"""

LEARNERS: Mapping[str, Callable[..., MakeLearner]] = {
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
"""Learners by name, `(moments, radius=…) -> (horizon -> (learner, guarantee))`."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--data", default="diabetes", metavar="NAME|FILE.csv",
        help=f"{', '.join(streams.DATASETS)}, or a numeric CSV file (default: diabetes)")
    add("--variance", type=float, default=0.1, metavar="V",
        help="noise variance on each feature; rows have norm at most 1 (default: 0.1)")
    add("--horizons", type=int, nargs="+", default=[1024, 4096, 16384, 65536, 262144], metavar="T",
        help="numbers of rounds, increasing (default: 1024 to 262144 by factors of 4)")
    add("--seeds", type=int, default=32, metavar="N", help="independent noise draws (default: 32)")
    add("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS), metavar="NAME",
        help="known_covariance (one copy; 2Σw taken away), two_copies, as_printed (one copy; Σw "
        "taken away, as the paper prints it), uncorrected (one copy, trusted) (default: all)")
    add("--radius", type=float, default=1.0, metavar="B",
        help="norm of the largest weights that compete (default: 1)")
    # fmt: on
    experiment.add_options(parser, noises=list(experiment.NOISES))
    experiment.add_checkpoint(parser)


def run(options: argparse.Namespace) -> Study:
    """Runs the study that the options ask for, prints it, and saves it."""
    experiment.require_plots()
    experiment.check_study(options)
    distribution = experiment.distribution(options.noise, options.variance)
    folder = writable_folder(options.out)
    table = experiment.load(options.data, options.target)
    stream_key, noise_key = jax.random.split(jax.random.key(options.seed))
    stream = streams.resampled(stream_key, table, max(options.horizons))
    moments = bounds.moments(stream, distribution)
    with experiment.progress_bar("noisy rounds") as progress:
        result = study(
            {name: LEARNERS[name](moments, radius=options.radius) for name in options.learners},
            stream,
            distribution,
            noise_key,
            num_seeds=options.seeds,
            horizons=options.horizons,
            comparator=functools.partial(comparators.linear_ball, radius=options.radius),
            mesh=experiment.mesh(),
            progress=progress,
            checkpoint=options.checkpoint,
            parameters={"command": vars(options)},
        )
    experiment.report(
        f"{options.data}: {len(table.y):,} rows, {table.x.shape[1]} features; {options.noise} "
        f"noise of variance {options.variance} on each feature; {options.seeds} noise draws",
        result,
        folder,
    )
    return result
