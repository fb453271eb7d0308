"""The kernel learners against plain loops, and what the noise does to those that ignore it."""

import functools

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
    """Both with a world and two copies, and with the kernel itself and one copy used twice."""
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


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("DA-Thm3")
def test_regret_keeps_its_bound_where_that_of_uncorrected_is_linear():
    """At four times the theorem's rate, in the ball of the comparator's norm with the surrogate."""
    table = nj.Stream(jnp.array([[-0.4], [0.4]]), jnp.array([-1.0, 1.0]))
    stream, ends = nj.streams.resampled(key(0), table, 1024), [256, 1024]
    noise = nj.noise.Gaussian(0.35)
    world = nj.worlds.gaussian(dim=1, length_scale=0.5**0.5, noise=noise)
    lifted = float(nj.comparators.world_ball(stream, world, 1.8).lifted_norm)
    bound = functools.partial(nj.bounds.parallel_worlds, y_second_moment=1.0)
    learners = {
        "learner": nj.tuned(
            functools.partial(nj.learners.parallel_worlds, world),
            functools.partial(bound, world.diagonal), radius=lifted, rate_factor=4.0,
        ),
        "blind": nj.tuned(
            functools.partial(nj.learners.uncorrected_kernel, world.kernel),
            nj.bounds.rate_of(functools.partial(bound, 1.0)), radius=1.8, rate_factor=4.0,
        ),
    }  # fmt: skip
    best = nj.comparators.world_ball(world=world, radius=1.8)
    result = nj.study(learners, stream, noise, key(1), num_seeds=16, horizons=ends, comparator=best)
    rows = {(row.learner, row.horizon): row for row in result.rows}
    assert all(rows["learner", t].high < rows["learner", t].bound for t in ends)
    assert result.growth["learner"].high < 0.75 < result.growth["blind"].low
    assert rows["blind", 1024].low > 1.5 * rows["learner", 1024].high
