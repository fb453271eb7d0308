"""The command `kernel`: kernel learners under known noise, on real data and a teacher."""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from noisy_jax import bounds, comparators, kernels, streams, worlds
from noisy_jax.base import Learner, Stream, unrolled
from noisy_jax.commands import experiment
from noisy_jax.learners import cloned, noise_blind_kernel, parallel_worlds
from noisy_jax.noise import Noise
from noisy_jax.results import Study
from noisy_jax.studies import MakeLearner, study
from noisy_jax.validation import check_at_least, check_positive, writable_folder

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
  python -m noisy_jax kernel --data houses.csv --target price --squared-width 2 --radius 3
"""

DATASETS = ("teacher", *streams.DATASETS)
"""Names that `--data` knows; the teacher is synthetic."""

LEARNERS = ("parallel_worlds", "cloned", "noise_blind_kernel", "clean")
"""Learners by name. The last one knows the clean data: what it pays is no price of the noise."""


@dataclasses.dataclass(frozen=True, eq=False)
class Competitor:
    """`comparators.world_ball` for the first rounds of one stream, found once for each number."""

    world: worlds.World = dataclasses.field(repr=False)
    radius: float
    found: dict[int, comparators.KernelBall] = dataclasses.field(default_factory=dict, repr=False)

    def __call__(self, past: Stream) -> comparators.KernelBall:
        """The best function for all of `past`, some first rounds of the stream."""
        rounds = len(past.y)
        if rounds not in self.found:
            self.found[rounds] = comparators.world_ball(past, self.world, self.radius)
        return self.found[rounds]

    def lifted_norms(self, stream: Stream, horizons: Sequence[int]) -> dict[int, float]:
        """Its norm in the surrogate's space for each horizon: what W must reach."""
        pasts = {rounds: Stream(stream.x[:rounds], stream.y[:rounds]) for rounds in horizons}
        return {rounds: float(self(past).lifted_norm) for rounds, past in pasts.items()}


class Case(NamedTuple):
    """One data set under one noise law, ready to be run.

    Attributes:
        heading: what it is, in words.
        folder: for its results.
        stream: clean rounds, as many as the largest horizon.
        law: of the noise.
        key: of the noise.
        comparator: `stream -> KernelBall`.
        learners: by name, all tuned.
    """

    heading: str
    folder: Path
    stream: Stream
    law: Noise
    key: jax.Array
    comparator: Competitor
    learners: Mapping[str, MakeLearner]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--data", nargs="+", default=["diabetes", "teacher"], metavar="NAME|FILE.csv",
        help=f"{', '.join(DATASETS)}, or numeric CSV files (default: diabetes teacher)")
    add("--variance", type=float, metavar="V",
        help="noise variance on each feature; rows have norm at most 1, the teacher's 2 (default: "
        "0.1, the teacher's 0.3)")
    add("--squared-width", type=float, default=2.0, metavar="S",
        help="s² of the kernel exp(−r²/s²), above 2V for Gaussian noise, 4V for cloned (default: "
        "2)")
    add("--radius", type=float, default=1.2, metavar="B",
        help="norm of the largest functions that compete (default: 1.2)")
    add("--rate-factor", type=float, default=8.0, metavar="M",
        help="times the theory's learning rate, which is far on the safe side; multiplies the "
        "bounds by (M + 1/M)/2 (default: 8)")
    add("--horizons", type=int, nargs="+", default=[1024, 4096, 16384], metavar="T",
        help="numbers of rounds, increasing (default: 1024 4096 16384)")
    add("--seeds", type=int, default=6, metavar="N", help="independent noise draws (default: 6)")
    add("--learners", nargs="+", choices=LEARNERS, metavar="NAME",
        help="parallel_worlds (two copies), cloned (one copy, made into two; Gaussian noise only), "
        "noise_blind_kernel (one copy, trusted), clean (sees clean data) (default: all that the "
        "noise allows)")
    # fmt: on
    experiment.add_options(parser, noises=["gaussian", "laplace"])


def run(options: argparse.Namespace) -> dict[str, Study]:
    """Runs the studies that the options ask for, one a data set, prints and saves them."""
    experiment.require_plots()
    check_positive("--rate-factor", options.rate_factor, "the learning rate over the theory's")
    for horizon in options.horizons:
        check_at_least("each horizon", horizon, 1, "a number of rounds")
    names = [_name(data) for data in options.data]
    if len(set(names)) < len(names):
        raise ValueError(f"--data must differ in name, got {' '.join(names)}: each names a folder")
    cases = [_case(options, data) for data in options.data]
    return {name: _run(options, case) for name, case in zip(names, cases, strict=True)}


def _run(options, case) -> Study:
    with experiment.progress_bar("rounds") as progress:
        result = study(
            case.learners,
            case.stream,
            case.law,
            case.key,
            num_seeds=options.seeds,
            horizons=options.horizons,
            comparator=case.comparator,
            progress=progress,
            parameters={"command": vars(options)},
        )
    experiment.report(case.heading, result, case.folder)
    return result


def _name(data) -> str:
    return Path(data).stem if experiment.is_csv(data) else data


def _case(options, data) -> Case:
    """Loads the data, draws the stream, builds the world, and tunes the learners."""
    folder = writable_folder(Path(options.out) / _name(data))
    teacher_key, stream_key, noise_key = jax.random.split(jax.random.key(options.seed), 3)
    if data == "teacher":
        table, variance = _teacher(teacher_key), 0.3
    else:
        table, variance = _load(options, data), 0.1
    variance = variance if options.variance is None else options.variance
    law = experiment.law(options.noise, variance)
    stream = streams.resampled(stream_key, table, max(options.horizons))
    dim = stream.x.shape[1]
    world = worlds.gaussian(dim=dim, squared_width=options.squared_width, noise=law)
    comparator = Competitor(world, options.radius)
    learners, radii = _tuned_learners(options, stream, law, comparator)
    return Case(
        f"{data}: {len(table.y):,} rows, {dim} features; {options.noise} noise of variance "
        f"{variance} on each feature; {options.seeds} noise draws\n"
        f"kernel exp(−r²/{options.squared_width:g}); functions of norm at most "
        f"{options.radius:g} compete, for which learners take the radius W: {radii}",
        folder,
        stream,
        law,
        noise_key,
        comparator,
        learners,
    )


def _teacher(key) -> Stream:
    """500 rows of a teacher outside the ball that competes: inside, lifted norms explode."""
    kernel = kernels.gaussian(squared_width=2.0)
    return streams.teacher(key, 500, 2, kernel=kernel, centers=8, radius=1.6, spread=2.0)


def _load(options, data) -> Stream:
    files = any(experiment.is_csv(other) for other in options.data)
    target = None if files and not experiment.is_csv(data) else options.target
    return experiment.load(data, target, known=DATASETS)


def _tuned_learners(options, stream, law, comparator) -> tuple[dict[str, MakeLearner], str]:
    """The learners, and the radii that they take for the largest horizon, in words."""
    world, horizons = comparator.world, options.horizons
    y_second = float(np.max(stream.y**2))
    makers, radii = {}, {}
    for name in _names(options):
        match name:
            case "parallel_worlds":
                factory, diagonal = functools.partial(parallel_worlds, world), world.diagonal
                radii[name] = comparator.lifted_norms(stream, horizons)
            case "cloned":
                wide = _cloned_world(options, world.dim, law)
                factory, diagonal = functools.partial(_cloned, wide, law), wide.diagonal
                radii[name] = Competitor(wide, options.radius).lifted_norms(stream, horizons)
            case "noise_blind_kernel" | "clean":
                factory, diagonal = functools.partial(noise_blind_kernel, world.kernel), 1.0
                radii[name] = dict.fromkeys(horizons, options.radius)
        if name == "clean":
            factory = functools.partial(told, stream, factory)
        makers[name] = _Tuned(factory, float(diagonal), radii[name], y_second, options.rate_factor)
    words = ", ".join(f"{name} {radius[horizons[-1]]:.3g}" for name, radius in radii.items())
    return makers, words


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


def _cloned_world(options, dim, law) -> worlds.World:
    try:
        return worlds.gaussian(dim=dim, squared_width=options.squared_width, noise=law.cloned(2))
    except ValueError as error:
        raise ValueError(
            f"cloned learns under twice the noise: {error}. Or {_without_cloned(_names(options))}"
        ) from error


def _cloned(world, law, **tuning) -> Learner:
    return cloned(parallel_worlds(world, **tuning), law)


def told(stream, factory, **tuning) -> Learner:
    """A learner that knows the clean instances of the stream: a reference for what noise costs.

    Nothing in it depends on the noise, so that JAX runs it once for all seeds of a batch.
    """
    learner = factory(**tuning)

    def step(state, sample, key):
        return learner.step(state, sample._replace(x=stream.x[state.round][None]), key)

    def unroll(state, samples, x, keys):
        clean = jax.lax.dynamic_slice_in_dim(stream.x, state.round, len(x))
        return unrolled(learner)(state, samples._replace(x=clean[:, None]), x, keys)

    return learner._replace(step=step, unroll=unroll)


@dataclasses.dataclass(frozen=True, eq=False)
class _Tuned:
    """`horizon -> (learner, guarantee)`, at a multiple of the theory's learning rate."""

    factory: Callable[..., Learner] = dataclasses.field(repr=False)
    diagonal: float
    radii: Mapping[int, float]
    y_second: float
    rate_factor: float

    def __call__(self, horizon: int) -> tuple[Learner, bounds.Guarantee]:
        radius = self.radii[horizon]
        theory = bounds.parallel_worlds(
            self.diagonal, horizon=horizon, radius=radius, y_second=self.y_second
        )
        guarantee = faster(theory, self.rate_factor)
        rate = guarantee.learning_rate
        return self.factory(horizon=horizon, radius=radius, learning_rate=rate), guarantee


def faster(guarantee: bounds.Guarantee, factor: float) -> bounds.Guarantee:
    """The guarantee at a multiple of its learning rate.

    η = mW/√(GT) in W²/(2η) + ηGT/2 gives ½(m + 1/m) W√(GT).
    """
    return guarantee._replace(
        learning_rate=factor * guarantee.learning_rate,
        regret=(factor + 1 / factor) / 2 * guarantee.regret,
    )
