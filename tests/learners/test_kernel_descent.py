"""The kernel learners against plain loops, and what the noise does to those that ignore it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from tests.errors import raises
from tests.keys import key
from tests.learners import references
from tests.learners.runs import both_ways, unrolled

T, DIM, LENGTH_SCALE = 75, 2, 1.5**0.5
COV = np.array([[0.5, 0.2], [0.2, 0.3]])


def check_runs(learner, x, copies, y, cov=None, *, expected):
    """Both ways give these predictions, weights and this squared norm."""
    predictions, alpha, squared_norm = expected
    for state, made in both_ways(learner, x, y, copies=copies, cov=cov):
        np.testing.assert_allclose(made, predictions, atol=1e-11)
        np.testing.assert_allclose(state.weights, alpha, atol=1e-11)
        np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-10)


def noisy(rng, cov=COV, rounds=T, copies=2):
    x = rng.normal(size=(rounds, len(cov)))
    noise = rng.multivariate_normal(np.zeros(len(cov)), cov, size=(rounds, copies))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=rounds)
    return x, x[:, None] + noise, y


@pytest.mark.slow
@pytest.mark.claim("DA-Alg2", "EXT-IncrementalNorm")
@pytest.mark.parametrize(("radius", "rate", "many"), [(1.0, 0.3, True), (50.0, 0.05, False)])
def test_parallel_worlds_equals_the_loop_with_the_double_sum(x64, rng, radius, rate, many):
    x, copies, y = noisy(rng)
    surrogate = references.gaussian_surrogate(LENGTH_SCALE, COV)
    *expected, projected = references.parallel_worlds(
        surrogate, references.gaussian_kernel(LENGTH_SCALE), x, copies, y, radius, rate
    )
    assert projected > T // 2 if many else projected == 0
    world = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=nj.noise.Gaussian(COV))
    options = {"radius": radius, "learning_rate": rate, "block": 16}
    learner = nj.learners.parallel_worlds(world, horizon=T, **options)
    check_runs(learner, x, copies, y, expected=expected)


@pytest.mark.slow
def test_uncorrected_kernel_equals_the_loop(x64, rng):
    x, copies, y = noisy(rng, copies=1)
    kernel = references.gaussian_kernel(LENGTH_SCALE)
    repeated = np.repeat(copies, 2, axis=1)  # one copy used twice
    *expected, _ = references.parallel_worlds(kernel, kernel, x, repeated, y, 1.0, 0.3)
    options = {"radius": 1.0, "learning_rate": 0.3, "block": 16}
    ours = nj.kernels.gaussian(length_scale=LENGTH_SCALE)
    learner = nj.learners.uncorrected_kernel(ours, horizon=T, **options)
    check_runs(learner, x, copies, y, expected=expected)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("EXT-Cloning")
def test_clones_are_independent_copies_of_the_stated_noise(x64):
    shown, copies = [], 3

    def step(state, sample, key):
        shown.append(sample)
        return state

    inner = nj.learners.two_copies(radius=1.0)._replace(step=step, needs=nj.Needs(copies))
    noise, rounds = nj.noise.Gaussian(COV), 20_000

    def clones(key):
        noise_key, clone_key = jax.random.split(key)
        sample = Sample(noise.sample(noise_key, jnp.ones((1, DIM))), jnp.zeros(()), noise.cov)
        nj.wrappers.cloned(inner, noise).step((), sample, clone_key)
        return shown[-1].x - 1, shown[-1].cov

    made, cov = jax.vmap(clones)(jax.random.split(key(0), rounds))
    np.testing.assert_allclose(cov[0], noise.cloned(copies).cov)
    flat = np.asarray(made).reshape(rounds, -1)
    expected = np.kron(np.eye(copies), copies * COV)
    products = flat[:, :, None] * flat[:, None]
    error = products.std(axis=0) / np.sqrt(rounds)
    assert np.all(np.abs(products.mean(axis=0) - expected) < 5 * error)
    assert np.all(error < 0.1 * copies * COV.max())


@pytest.mark.claim("EXT-SingleCopyKernel")
def test_cloned_rejects_what_it_cannot_clone():
    learner = nj.learners.two_copies(radius=1.0, learning_rate=0.1)
    laplace, noise = nj.noise.Laplace(0.1), nj.noise.Gaussian(0.25)
    raises("cloned needs Gaussian noise, got Laplace", nj.wrappers.cloned, learner, laplace)
    world = functools.partial(nj.worlds.gaussian, dim=DIM, length_scale=0.5**0.5)
    raises("length_scale must be above", world, noise=noise.cloned(2))  # 2σ² = ℓ²
    forgotten = nj.learners.parallel_worlds(world(noise=noise), horizon=5, radius=1.0)
    raises(r"build its world with noise\.cloned\(2\)", nj.wrappers.cloned, forgotten, noise)


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


def test_rejects_other_types_than_worlds():
    kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
    world = nj.worlds.gaussian(dim=DIM, length_scale=0.5**0.5, noise=nj.noise.Gaussian(0.1))
    parallel, fourier = nj.learners.parallel_worlds, nj.learners.fourier_worlds
    raises("world must be a World, got Kernel", parallel, kernel, horizon=5, radius=1.0)
    raises("features must be a FourierWorld, got World", fourier, world, radius=1.0)


def test_the_ball_is_needed_with_a_rate_of_ones_own():
    world = nj.worlds.gaussian(dim=DIM, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
    raises(
        "radius must be numbers, got None", nj.learners.parallel_worlds,
        world, horizon=5, radius=None, learning_rate=0.1,
    )  # fmt: skip


def test_rejects_data_of_another_dimension():
    noise = nj.noise.Gaussian(0.1)
    world = nj.worlds.gaussian(dim=3, length_scale=LENGTH_SCALE, noise=noise)
    features = nj.worlds.fourier(jax.random.key(0), world, 8)
    stream, message = nj.streams.linear(jax.random.key(0), 5, DIM), "made for data of dimension 3"
    for learner in (
        nj.learners.parallel_worlds(world, horizon=5, radius=1.0),
        nj.learners.fourier_worlds(features, radius=1.0),
    ):
        raises(message, nj.rollout, learner, stream, noise, jax.random.key(0))
        raises(message, learner.predict, learner.init(3), jnp.ones((4, 2)))
