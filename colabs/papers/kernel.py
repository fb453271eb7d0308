"""Kernel learners under known noise, on real data and a teacher."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax import kernels, worlds
from noisy_jax.base import Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, report_of, script
from noisy_jax.command.settings import option
from noisy_jax.learners import parallel_worlds, uncorrected_kernel
from noisy_jax.learners.wrappers import cloned, noiseless
from noisy_jax.simulated import bounds, comparators, streams
from noisy_jax.simulated.entries import tuned
from noisy_jax.simulated.programs import first
from noisy_jax.validation.numbers import positive

LEARNERS = ("parallel_worlds", "cloned", "uncorrected_kernel", "clean")
"""Learners by name. The last one sees clean data, so that its regret is not due to noise."""

# Options whose default differs between scripts: functions of it.
data_option = functools.partial(
    option,
    help=f"teacher (synthetic), {regret.TABLES}, or numeric CSV files",
    metavar="NAME|FILE.csv",
)
noise_option = functools.partial(
    option, help="distribution of the noise", choices=("gaussian", "laplace")
)
rate_option = functools.partial(
    option,
    help="learn at M times the theorem's rate, which multiplies the bounds by (M + 1/M)/2 "
    "(default: adaptive rates, which multiply them by 2√2)",
    metavar="M",
    check=positive,
)


@dataclasses.dataclass(frozen=True)
class Settings(regret.RegretSettings):
    """Regret of kernel learners, against learning from clean data.

    How much regret on clean data does noise cost a kernel learner, and how much a learner that
    does not correct for the noise?

    Runs each learner on each data set, drawn with replacement, under many draws of the noise, and
    writes results.csv, config.json and regret.png into a folder for each data set.

    Examples:
      python colabs/papers/kernel.py
      python colabs/papers/kernel.py --data diabetes --noise laplace --noise-variance 0.1
      python colabs/papers/kernel.py --data houses.csv --target price --length-scale 1 --radius 3
      python colabs/papers/kernel.py --data teacher --kernel rational --cutoff 0.4
    """

    data: tuple[str, ...] = data_option(("diabetes", "teacher"))
    noise: str = noise_option("gaussian")
    noise_variance: float | None = option(
        None,
        "variance of the noise on each feature; rows have norm at most 1, the teacher's 2 "
        "(default: 0.1, the teacher's 0.3)",
        "V",
    )
    kernel: str = option(
        "gaussian",
        "gaussian, exp(−r²/2ℓ²); or rational, 1/(1 + r²/d), cut off (Gaussian noise only)",
        choices=("gaussian", "rational"),
    )
    length_scale: float = option(
        1.0,
        "ℓ of the Gaussian kernel; ℓ² above V for Gaussian noise, above 2V for cloned",
        "L",
        positive,
    )
    cutoff: float | None = option(
        None,
        "largest u of the Gaussians exp(−ur²) in the rational kernel, below 1/(4V), for cloned "
        "1/(8V) (default: 1/(10V))",
        "U",
        positive,
    )
    learners: tuple[str, ...] | None = option(
        None,
        "parallel_worlds (two copies), cloned (one copy, made into two; Gaussian noise only), "
        "uncorrected_kernel (one copy, taken to be clean), clean (sees clean data) (default: all "
        "that the noise allows)",
        "NAME",
        choices=LEARNERS,
    )
    radius: float = regret.radius(1.2)
    rate_factor: float | None = rate_option(None)
    horizons: tuple[int, ...] = regret.horizons((1024, 4096, 16384), fast=(64, 256))
    seeds: int = regret.seeds(6, fast=2)


def run(settings: Settings) -> Iterator[Report]:
    """A study of regret for each data set."""
    loaded = load_all(settings, _teacher, variance=0.1, of_teacher=0.3)
    cases = [case(settings, each) for each in loaded]  # bad settings are found before the work
    for each, (learners, comparator, words) in zip(loaded, cases, strict=True):
        result = regret.study_of(settings, each, learners, comparator, part=each.name)
        yield report_of(result, f"{each.words}\n{words}", each.name)


def load_all(
    settings: Any, teacher: Callable[[jax.Array], Stream], *, variance: float, of_teacher: float
) -> list[regret.DataSet]:
    """The data sets of a study on several.

    The teacher's rows are `teacher(key)`. If the settings name no variance of the noise, it is
    `variance`, and `of_teacher` for the teacher.
    """
    names = [regret.folder_of(data) for data in settings.data]
    if len(set(names)) < len(names):
        raise ValueError(f"--data must differ in name, got {' '.join(names)}: each names a folder")
    files = any(map(regret.is_csv, settings.data))
    teacher_key, *keys = jax.random.split(jax.random.key(settings.seed), 3)
    loaded = []
    for data in settings.data:
        if data == "teacher":
            table, usual = teacher(teacher_key), of_teacher
        else:
            target = None if files and not regret.is_csv(data) else settings.target
            known = ("teacher", *streams.DATASETS)
            table, usual = regret.load(data, target, known=known), variance
        chosen = usual if settings.noise_variance is None else settings.noise_variance
        loaded.append(regret.data_set(settings, data, table, chosen, keys))
    return loaded


def _teacher(key) -> Stream:
    """500 rows of a teacher outside the ball that competes: inside, lifted norms explode."""
    kernel = kernels.gaussian(length_scale=1.0)
    return streams.teacher(key, 500, 2, kernel=kernel, centers=8, radius=1.6, spread=2.0)


def case(settings, each):
    """The learners by name, the comparator, and a heading."""
    dim = each.stream.x.shape[1]
    world, words = _world(settings, dim, each.noise, each.noise)
    comparator = WorldBall(world, settings.radius, each.stream)
    y_second_moment = float(np.max(each.stream.y**2))
    uncorrected = functools.partial(uncorrected_kernel, world.kernel)
    makers, radii = {}, {}
    for name in _names(settings):
        # In the kernel's own space, unless the learner is in a surrogate's.
        diagonal, radius = 1.0, dict.fromkeys(settings.horizons, settings.radius)
        if name == "uncorrected_kernel":
            factory = uncorrected
        elif name == "clean":
            factory = functools.partial(_clean, uncorrected, each.stream)
        else:
            lifted, ball = world, comparator
            factory = functools.partial(parallel_worlds, world)
            if name == "cloned":
                lifted = _cloned_world(settings, dim, each.noise)
                ball = WorldBall(lifted, settings.radius, each.stream)
                factory = functools.partial(_cloned, lifted, each.noise)
            diagonal = float(lifted.diagonal)
            radius = ball.lifted_norms(settings.horizons)
        bound = functools.partial(bounds.parallel_worlds, diagonal, y_second_moment=y_second_moment)
        if name == "uncorrected_kernel":
            bound = bounds.rate_of(bound)
        makers[name] = functools.partial(_tuned, factory, bound, radius, settings.rate_factor)
        radii[name] = radius[max(radius)]
    heading = (
        f"{words}; functions of norm at most {settings.radius:g} compete, for which learners take "
        f"the radius W: {', '.join(f'{name} {radius:.3g}' for name, radius in radii.items())}"
    )
    return makers, comparator, heading


def _world(settings, dim, distribution, stated) -> tuple[worlds.World, str]:
    """The world under a distribution of the noise; the default cutoff is for the stated one."""
    if settings.kernel == "gaussian":
        world = worlds.gaussian(dim=dim, length_scale=settings.length_scale, noise=distribution)
        return world, f"Gaussian kernel of length scale {settings.length_scale:g}"
    cutoff = settings.cutoff or 1 / (10 * float(stated.cov))
    world = worlds.rational(dim=dim, noise=distribution, cutoff=cutoff)
    return world, f"kernel 1/(1 + r²/{dim}), cut off at u = {cutoff:.3g}"


def _tuned(factory, bound, radii, rate_factor, horizon):
    """With room for the function that is best for this horizon."""
    make = tuned(factory, bound, rate_factor=rate_factor, radius=radii[horizon])
    return make(horizon)


def _names(settings) -> list[str]:
    """The learners asked for, or all that the noise allows."""
    gaussian = settings.noise == "gaussian"
    if settings.learners is None:
        return [name for name in LEARNERS if gaussian or name != "cloned"]
    if "cloned" in settings.learners and not gaussian:
        raise ValueError(
            f"cloned needs --noise gaussian, got {settings.noise}; {_without_cloned(LEARNERS)}"
        )
    return sorted(set(settings.learners), key=LEARNERS.index)


def _without_cloned(names) -> str:
    others = [name for name in names if name != "cloned"]
    return f"leave it out: --learners {' '.join(others or ['parallel_worlds'])}"


def _cloned_world(settings, dim, distribution) -> worlds.World:
    try:
        return _world(settings, dim, distribution.cloned(2), distribution)[0]
    except ValueError as error:
        raise ValueError(
            f"cloned learns under twice the noise: {error}. Or {_without_cloned(_names(settings))}"
        ) from error


def _cloned(world, distribution, **tuning):
    return cloned(parallel_worlds(world, **tuning), distribution)


def _clean(factory, stream, **tuning):
    return noiseless(factory(**tuning), stream)


class Best:
    """A comparator of one stream that computes each answer once."""

    def __init__(self, comparator: Callable[[Stream], Any], stream: Stream):
        self._comparator = comparator
        self._best = functools.cache(lambda rounds: comparator(first(rounds, stream)))

    def __call__(self, past: Stream) -> Any:
        """The best function for the first rounds of the stream."""
        return self._best(len(past.y))

    def __repr__(self) -> str:
        """That of the comparator, for `config.json`."""
        return repr(self._comparator)


class WorldBall(Best):
    """The comparator `comparators.world_ball` of one stream."""

    def __init__(self, world: worlds.World, radius: float, stream: Stream):
        ball = functools.partial(comparators.world_ball, world=world, radius=radius)
        super().__init__(ball, stream)

    def lifted_norms(self, horizons: Sequence[int]) -> dict[int, float]:
        """Its norm in the surrogate's space for each horizon: what W must reach."""
        return {rounds: float(self._best(rounds).lifted_norm) for rounds in horizons}


if __name__ == "__main__":
    sys.exit(script(Settings, run))
