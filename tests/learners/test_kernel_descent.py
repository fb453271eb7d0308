"""The kernel learners against plain loops, and what the noise does to those that ignore it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests.keys import key
from tests.learners import references
from tests.learners.runs import both_ways, unrolled

T, DIM, LENGTH_SCALE = 75, 2, 1.5**0.5
COV = np.array([[0.5, 0.2], [0.2, 0.3]])


def noisy(rng, cov=COV, rounds=T, copies=2):
    x = rng.normal(size=(rounds, len(cov)))
    noise = rng.multivariate_normal(np.zeros(len(cov)), cov, size=(rounds, copies))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=rounds)
    return x, x[:, None] + noise, y


@pytest.mark.slow
@pytest.mark.claim("DA-Alg2", "EXT-IncrementalNorm")
@pytest.mark.parametrize(
    ("corrects", "radius", "rate", "many"),
    [(True, 1.0, 0.3, True), (True, 50.0, 0.05, False), (False, 1.0, 0.3, True)],
)
def test_equals_the_loop_with_the_double_sum(x64, rng, corrects, radius, rate, many):
    """In a world, and of one copy that is used twice with the kernel itself."""
    x, copies, y = noisy(rng)
    kernel = references.gaussian_kernel(LENGTH_SCALE)
    options = {"horizon": T, "radius": radius, "learning_rate": rate, "block": 16}
    if corrects:
        surrogate, noise = references.gaussian_surrogate(LENGTH_SCALE, COV), nj.noise.Gaussian(COV)
        world = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=noise)
        learner = nj.learners.parallel_worlds(world, **options)
    else:
        surrogate, copies = kernel, copies[:, [0, 0]]
        ours = nj.kernels.gaussian(length_scale=LENGTH_SCALE)
        learner = nj.learners.uncorrected_kernel(ours, **options)
    predictions, alpha, squared_norm, projected = references.parallel_worlds(
        surrogate, kernel, x, copies, y, radius, rate
    )
    assert projected > T // 2 if many else projected == 0
    for state, made in both_ways(learner, x, y, copies=copies[:, : learner.needs.copies]):
        np.testing.assert_allclose(made, predictions, atol=1e-11)
        np.testing.assert_allclose(state.weights, alpha, atol=1e-11)
        np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-10)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("EXT-FourierParallelWorlds")
def test_fourier_worlds_converge_to_parallel_worlds(rng):
    x, copies, y = (a.astype(np.float32) for a in noisy(rng))
    noise = nj.noise.Gaussian(COV.astype(np.float32))
    world = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=noise)
    options = {"radius": 1.0, "learning_rate": 0.3}
    parallel = nj.learners.parallel_worlds(world, horizon=T, **options)
    _, exact = unrolled(parallel, x, y, copies=copies)
    errors = []
    for num_features in (64, 1024):

        def error(key, num_features=num_features):
            features = nj.worlds.fourier(key, world, num_features)
            _, made = unrolled(nj.learners.fourier_worlds(features, **options), x, y, copies=copies)
            return jnp.sqrt(jnp.mean((made - exact) ** 2))

        errors.append(np.sqrt(np.mean(jax.lax.map(error, jax.random.split(key(1), 8)) ** 2)))
    ratios = np.array(errors[:-1]) / errors[1:]  # 1/√D: 4 for 16 times the features
    assert np.all((ratios > 2.5) & (ratios < 6.5)), errors
