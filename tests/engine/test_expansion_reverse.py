"""Reverse mode through learners that store atoms: against forward mode and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import engine, kernels, learners, losses, worlds
from noisy_jax.noise import Gaussian
from tests.learners.runs import gradient

T, DIM = 24, 2
KEY = jax.random.key(0)
START = {"rate": 0.3, "variance": 0.05, "length_scale": 1.1}


def parallel_worlds(rate, variance, length_scale):
    noise = Gaussian(variance)
    world = worlds.gaussian(dim=DIM, length_scale=length_scale, noise=noise)
    options = {"horizon": T, "radius": 0.9, "learning_rate": rate, "block": 8}
    return learners.parallel_worlds(world, **options), noise


def norma(buffer, loss, **options):
    """NORMA in a Gaussian kernel's space, with one noisy copy."""

    def built(rate, variance, length_scale):
        learner = learners.norma(
            kernels.gaussian(length_scale=length_scale), loss,
            learning_rate=rate, regularization=rate / 3, buffer=buffer, block=6, **options,
        )  # fmt: skip
        return learner, Gaussian(variance)

    return built


def truncated(rate, variance, length_scale):
    """Random truncation, whose atoms hold whole numbers, too."""
    estimator = nj.unbiased.kernel_gradient(
        kernels.gaussian(length_scale=length_scale), losses.squared(), radius=1.0,
        x_second_moment=1.0, kernel_order=2,
    )  # fmt: skip
    learner = learners.random_truncation(estimator, horizon=T, learning_rate=rate, block=8)
    return learner, Gaussian(variance)


BUILDS = {
    "parallel_worlds": parallel_worlds,
    "norma": norma(8, losses.nu_huber(nu=0.2), offset=True),
    "growing": norma(engine.growing(T, start=6, excess=0.4), losses.huber(width=0.3)),
    "truncation": truncated,
}


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, id=name, marks=pytest.mark.long if name == "truncation" else ())
        for name, build in BUILDS.items()
    ],
)
@pytest.mark.slow
def test_gradients_are_those_of_forward_mode_and_finite_differences(x64, rng, monkeypatch, build):
    monkeypatch.setattr("noisy_jax.engine.memory._CHUNK", 8)  # three chunks of stored atoms
    stream = nj.Stream(rng.normal(size=(T, DIM)), rng.uniform(-1, 1, T))

    def loss(parameters, stream):
        learner, noise = build(**parameters)
        return jnp.mean((nj.rollout(learner, stream, noise, KEY).predictions - stream.y) ** 2)

    reverse = gradient(loss, (START, stream), rng, step=1e-5, rtol=1e-6)
    assert all(np.any(slope != 0) for slope in jax.tree.leaves(reverse))
