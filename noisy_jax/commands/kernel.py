"""The command `kernel`: kernel learners under known noise, on real data and a teacher."""

import argparse
import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from noisy_jax import bounds, comparators, kernels, streams, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.commands import data_sets, experiment
from noisy_jax.commands.data_sets import DataSet
from noisy_jax.evaluate.results import Study
from noisy_jax.evaluate.tuning import MakeLearner, tuned_kernel_learner
from noisy_jax.learners import cloned, noiseless, parallel_worlds, uncorrected_kernel

SUMMARY = "regret of kernel learners, against learning from clean data"

DESCRIPTION = """\
What does noise cost a kernel learner, in regret on clean data, and what a learner that does not
correct for it?

Runs each learner on each data set, drawn with replacement, under many draws of the noise, and
writes results.csv, config.json and regret.png into a folder for each data set.
"""

EXAMPLES = """\
  python -m noisy_jax kernel
  python -m noisy_jax kernel --data diabetes --noise laplace --variance 0.1
  python -m noisy_jax kernel --data houses.csv --target price --length-scale 1 --radius 3
"""

LEARNERS = ("parallel_worlds", "cloned", "uncorrected_kernel", "clean")
"""Learners by name. The last one knows the clean data: what it pays is no price of the noise."""


class Case(NamedTuple):
    """One data set, ready to be run.

    Attributes:
        data: the data set.
        heading: what it is, in words.
        comparator: `stream -> KernelBall`.
        learners: by name, all tuned.
    """

    data: DataSet
    heading: str
    comparator: data_sets.Comparator
    learners: Mapping[str, MakeLearner]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--variance", type=float, metavar="V",
        help="noise variance on each feature; rows have norm at most 1, the teacher's 2 (default: "
        "0.1, the teacher's 0.3)")
    add("--length-scale", type=float, default=1.0, metavar="L",
        help="ℓ of the kernel exp(−r²/2ℓ²), ℓ² above V for Gaussian noise, above 2V for cloned "
        "(default: 1)")
    add("--learners", nargs="+", choices=LEARNERS, metavar="NAME",
        help="parallel_worlds (two copies), cloned (one copy, made into two; Gaussian noise only), "
        "uncorrected_kernel (one copy, trusted), clean (sees clean data) (default: all that the "
        "noise allows)")
    # fmt: on
    data_sets.add_options(
        parser,
        data=["diabetes", "teacher"],
        radius=1.2,
        rate_factor=8.0,
        horizons=[1024, 4096, 16384],
        seeds=6,
    )


def run(options: argparse.Namespace) -> dict[str, Study]:
    """Runs the studies that the options ask for, one a data set, prints and saves them."""
    experiment.require_plots()
    loaded = data_sets.load(options, _teacher, variance=0.1, teacher_variance=0.3)
    cases = [_case(options, data) for data in loaded]  # refuses before the work
    return {case.data.name: _run(options, case) for case in cases}


def _run(options, case) -> Study:
    result = data_sets.regret(options, case.data, case.learners, case.comparator)
    experiment.report(case.heading, result, case.data.folder)
    return result


def _teacher(key) -> Stream:
    """500 rows of a teacher outside the ball that competes: inside, lifted norms explode."""
    kernel = kernels.gaussian(length_scale=1.0)
    return streams.teacher(key, 500, 2, kernel=kernel, centers=8, radius=1.6, spread=2.0)


def _case(options, data) -> Case:
    """Builds the world, and tunes the learners."""
    dim = data.stream.x.shape[1]
    world = worlds.gaussian(dim=dim, length_scale=options.length_scale, noise=data.distribution)
    comparator = data_sets.Remembered(_comparator(options, world))
    learners, radii = _learners(options, data, world, comparator)
    heading = (
        f"{data.words}\nkernel exp(−r²/2ℓ²) with ℓ = {options.length_scale:g}; functions of norm at "
        f"most {options.radius:g} compete, for which learners take the radius W: {radii}"
    )
    return Case(data, heading, comparator, learners)


def _comparator(options, world) -> data_sets.Comparator:
    return functools.partial(comparators.world_ball, world=world, radius=options.radius)


def _learners(options, data, world, comparator) -> tuple[dict[str, MakeLearner], str]:
    """The learners, and the radii that they take for the largest horizon, in words."""
    y_second_moment = float(np.max(data.stream.y**2))
    blind = functools.partial(uncorrected_kernel, world.kernel)
    makers, radii = {}, {}
    for name in _names(options):
        match name:
            case "parallel_worlds":
                factory = functools.partial(parallel_worlds, world)
                lifted, ball = world, comparator
            case "cloned":
                lifted = _cloned_world(options, world.dim, data.distribution)
                factory = functools.partial(_cloned, lifted, data.distribution)
                ball = _comparator(options, lifted)
            case "uncorrected_kernel":
                factory, lifted = blind, None
            case "clean":
                factory, lifted = lambda **tuning: noiseless(blind(**tuning), data.stream), None
        if lifted is None:
            diagonal, radii[name] = 1.0, dict.fromkeys(options.horizons, options.radius)
        else:
            diagonal = float(lifted.diagonal)
            radii[name] = data_sets.lifted_norms(ball, data.stream, options.horizons)
        bound = functools.partial(bounds.parallel_worlds, diagonal, y_second_moment=y_second_moment)
        makers[name] = functools.partial(_tuned, factory, bound, radii[name], options.rate_factor)
    words = ", ".join(f"{name} {radius[max(radius)]:.3g}" for name, radius in radii.items())
    return makers, words


def _tuned(factory, bound, radii, rate_factor, horizon):
    """With room for the function that is best for this horizon."""
    make = tuned_kernel_learner(factory, bound, rate_factor=rate_factor, radius=radii[horizon])
    return make(horizon)


def _names(options) -> list[str]:
    """The learners asked for, or all that the noise allows."""
    gaussian = options.noise == "gaussian"
    if options.learners is None:
        return [name for name in LEARNERS if gaussian or name != "cloned"]
    if "cloned" in options.learners and not gaussian:
        raise ValueError(
            f"cloned needs --noise gaussian, got {options.noise}; {_without_cloned(LEARNERS)}"
        )
    return sorted(set(options.learners), key=LEARNERS.index)


def _without_cloned(names) -> str:
    others = [name for name in names if name != "cloned"]
    return f"leave it out: --learners {' '.join(others or ['parallel_worlds'])}"


def _cloned_world(options, dim, distribution) -> worlds.World:
    try:
        return worlds.gaussian(
            dim=dim, length_scale=options.length_scale, noise=distribution.cloned(2)
        )
    except ValueError as error:
        raise ValueError(
            f"cloned learns under twice the noise: {error}. Or {_without_cloned(_names(options))}"
        ) from error


def _cloned(world, distribution, **tuning) -> Learner:
    return cloned(parallel_worlds(world, **tuning), distribution)
