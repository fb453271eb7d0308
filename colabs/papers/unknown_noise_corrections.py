"""Estimates of the whole gradient against the mean of as many copies, and where the mean wins."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from kernel import Best, WorldBall
from noisy_jax import kernels, losses, noise, worlds
from noisy_jax.base import Learner, Stream
from noisy_jax.command import regret
from noisy_jax.command.runner import Report, picture, report_of
from noisy_jax.learners import unknown_noise
from noisy_jax.learners.wrappers import noiseless
from noisy_jax.simulated import streams
from noisy_jax.simulated.comparators import convex_ball
from noisy_jax.unbiased import Multilevel, Transformed, multilevel, pair, replicates
from unknown_noise_picture import draw_price

ESTIMATES: Mapping[str, Callable[..., Transformed]] = {
    "mean_of_2": partial(replicates, order=0, copies=2),
    "replicates_of_2": replicates,
    "pair": pair,
    "multilevel": multilevel,
    "mean_of_4": partial(replicates, order=0, copies=4),
    "replicates_of_4": partial(replicates, copies=4),
    "second_order_of_4": partial(replicates, order=2),
    "multilevel_of_base_2": partial(multilevel, levels=4, base=2),
}
"""Estimates of `learners.unknown_noise` by name; the mean of the copies is not corrected."""

MOONS_LENGTH_SCALE, MOONS_RADIUS, MOONS_VARIANCE = 0.5, 20.0, 0.2


def best_in_ball(world: Any, loss: losses.Loss, radius: float, stream: Stream) -> Best:
    """The best function in the ball, by the exact solution for the squared loss."""
    if loss.name == "squared()":
        return WorldBall(world, radius, stream)
    options = {"loss": loss, "radius": radius, "kernel": world.kernel}
    return Best(partial(convex_ball, **options), stream)


def mean_copies(estimate: Callable[..., Transformed]) -> float:
    """Noisy copies a round, on average."""
    g = estimate(lambda x: x)
    return g.mean_copies if isinstance(g, Multilevel) else float(g.copies)


def _learners(
    kernel, loss, horizon, radius, clean: Stream, *, gaussian: bool
) -> dict[str, Learner]:
    """All of them, and one that sees clean data."""
    make = partial(unknown_noise, kernel, loss, radius=radius, horizon=horizon)
    chosen = {name: each for name, each in ESTIMATES.items() if gaussian or name != "pair"}
    learners = {name: make(estimate=each) for name, each in chosen.items()}
    return learners | {"clean": noiseless(make(estimate=partial(replicates, order=0)), clean)}


def whole_gradients(settings: Any, data: regret.DataSet, loss: losses.Loss) -> Iterator[Report]:
    """Regret of each estimate of the whole gradient, over rounds and over copies."""
    kernel = kernels.gaussian(length_scale=settings.length_scale)
    dim = data.stream.x.shape[1]
    world = worlds.world_of(kernel, kernel.gram, dim=dim, diagonal=1.0, noise=noise.Gaussian(0.0))
    comparator = best_in_ball(world, loss, settings.radius, data.stream)
    heading = (
        f"{data.words}\nGaussian kernel of length scale {settings.length_scale:g}, functions of "
        f"norm at most {settings.radius:g}; the whole gradient from one set of copies"
    )
    gaussian = settings.noise == "gaussian"  # which is all that `pair` must know
    made = data, kernel, loss, settings.radius, comparator, heading, gaussian
    yield from _reports(settings, *made)


def averaging(settings: Any) -> Iterator[Report]:
    """Two moons and the logistic loss: a large ball, in which variance costs more than bias."""
    from sklearn.datasets import make_moons  # an extra

    x, y = make_moons(500, noise=0.1, random_state=settings.seed)
    x = np.asarray(x)
    table = streams.from_arrays(x - x.mean(axis=0), np.where(y, 1.0, -1.0))
    keys = jax.random.split(jax.random.key(settings.seed))
    stream = streams.resampled(keys[0], table, max(settings.horizons))
    law = regret.NOISES["laplace"](MOONS_VARIANCE)
    words = f"two moons: laplace noise of variance {MOONS_VARIANCE} on each feature"
    data = regret.DataSet("moons", words, stream, law, keys[1])
    kernel, loss = kernels.gaussian(length_scale=MOONS_LENGTH_SCALE), losses.logistic()
    comparator = Best(partial(convex_ball, loss=loss, radius=MOONS_RADIUS, kernel=kernel), stream)
    heading = (
        f"{words}\nGaussian kernel of length scale {MOONS_LENGTH_SCALE:g}, functions of norm at "
        f"most {MOONS_RADIUS:g}, logistic loss: variance costs more than bias"
    )
    yield from _reports(settings, data, kernel, loss, MOONS_RADIUS, comparator, heading, False)


def _reports(
    settings, data, kernel, loss, radius, comparator, heading, gaussian
) -> Iterator[Report]:
    horizon = max(settings.horizons)
    learners = _learners(kernel, loss, horizon, radius, data.stream, gaussian=gaussian)
    copies = {name: mean_copies(ESTIMATES[name]) for name in learners if name in ESTIMATES}
    folder = f"{data.name}/whole_gradient"
    result = regret.study_of(
        settings, data, learners, comparator, loss=loss, part=folder, copies=copies
    )
    report = report_of(result, heading, folder)
    draw = picture(draw_price, {"whole gradient": result}, {"whole gradient": copies})
    yield report._replace(figures={**report.figures, "price": draw})
