"""The linear learners against NumPy loops, exact expectations and each other."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.learners import known_covariance, several_copies, two_copies, uncorrected
from tests.keys import key
from tests.learners.references import projected_gradient_descent
from tests.residuals import signs
from tests.rounds import observations

MAKE = {
    "two_copies": two_copies,
    "known_covariance": known_covariance,
    "as_printed": lambda **options: known_covariance(as_printed=True, **options),
    "uncorrected": uncorrected,
}
ESTIMATES = MAKE | {"several_copies": functools.partial(several_copies, copies=3)}


def estimate(name, weights, copies, y, cov):
    """∇̃ as the learner computes it, read off one unprojected step of rate 1."""
    learner = ESTIMATES[name](radius=1e6, learning_rate=1.0)
    state = learner.init(len(weights))._replace(weights=weights)
    return weights - learner.step(state, nj.Sample(copies, y, cov), jax.random.key(0)).weights


# Bias of each estimate of the clean gradient, in units of Σw.
BIAS = {"two_copies": 0, "several_copies": 0, "known_covariance": 0}
BIAS |= {"as_printed": 1, "uncorrected": 2}


@pytest.mark.slow
@pytest.mark.claim("DA-Lemma1", "DA-Lemma2", "DA-short")
@pytest.mark.parametrize("name", ESTIMATES)
def test_bias_exactly_by_enumeration(x64, rng, name):
    """Estimates are quadratic in the noise: their mean depends on its covariance alone."""
    dim = 3
    w, x, y = rng.normal(size=dim), rng.normal(size=dim), 0.3
    root = rng.normal(size=(dim, dim))  # noise root @ signs has covariance root rootᵀ
    cov, copies = root @ root.T, jnp.asarray(x + signs(3 * dim).reshape(-1, 3, dim) @ root.T)
    mean = jax.vmap(lambda c: estimate(name, jnp.asarray(w), c, y, cov))(copies).mean(axis=0)
    clean = 2 * (w @ x - y) * x
    np.testing.assert_allclose(mean - clean, BIAS[name] * cov @ w, atol=1e-12)


def rate_at(t):
    return 0.2 / (1.0 + t) ** 0.5


@pytest.mark.claim("DA-Eq2/3", "DA-Alg1-left", "DA-Alg1-right")
@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.slow
def test_equals_numpy_loop(x64, rng, changing):
    """Under one diagonal covariance, and under a full one that is another in each round."""
    horizon, dim = 300, 3  # two blocks of the rollout and a rest
    stream = nj.streams.linear(jax.random.key(0), horizon, dim, label_noise=0.1)
    if changing:
        covs = np.stack([np.cov(rng.normal(size=(dim, 3 * dim))) for _ in range(horizon)])
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(jnp.asarray(covs)))
    else:
        variances = rng.uniform(0.1, 0.5, size=dim)
        covs = np.tile(np.diag(variances), (horizon, 1, 1))
        noise = nj.noise.Gaussian(jnp.asarray(variances))
    y_noise, key = nj.noise.Uniform(0.2), jax.random.key(1)
    cases = list(itertools.product(MAKE, [0.1, 50.0]))  # projected often, and never
    learners = (MAKE[name](radius=radius, learning_rate=rate_at) for name, radius in cases)
    result = nj.rollout(nj.wrappers.paired(*learners), stream, noise, key, y_noise=y_noise)

    samples, _ = observations(stream, noise, key, copies=2, y_noise=y_noise)
    for i, (name, radius) in enumerate(cases):
        predictions, weights, projected = projected_gradient_descent(
            name, *map(np.asarray, (stream.x, stream.y, samples.x, samples.y)), covs, radius,
            rate_at,
        )  # fmt: skip
        np.testing.assert_allclose(result.predictions[:, i], predictions, atol=1e-10)
        np.testing.assert_allclose(result.state[i].weights, weights, atol=1e-10)
        assert projected > 20 if radius < 1 else projected == 0


@pytest.mark.slow
def test_any_optimizer_drives_the_same_estimates():
    stream = nj.streams.linear(jax.random.key(0), 100, 3)
    noise, key = nj.noise.Gaussian(0.1), jax.random.key(1)
    optimizers = optax.sgd(0.1), optax.adam(0.1), optax.MultiSteps(optax.sgd(0.1), 1)
    learners = [
        two_copies(radius=1.0, learning_rate=0.1),
        *(two_copies(radius=1.0, optimizer=each) for each in optimizers),
    ]
    rate, sgd, adam, steps = (nj.rollout(each, stream, noise, key) for each in learners)
    chex.assert_trees_all_close(rate.predictions, sgd.predictions, atol=1e-6)
    chex.assert_trees_all_close(rate.predictions, steps.predictions, atol=1e-6)
    assert not np.allclose(rate.predictions, adam.predictions)
    assert float(jnp.linalg.norm(adam.state.weights)) <= 1 + 1e-6


@pytest.mark.parametrize("radius", [1e-30, 1e30])
def test_weights_stay_in_balls_of_extreme_size(radius):
    """In units of the radius, every radius gives the same run."""
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32)

    def run(radius):
        learner, weights = two_copies(radius=radius, learning_rate=0.1), []
        state = learner.init(3)
        for row, target in zip(x, y, strict=True):
            sample = nj.Sample(jnp.stack([row, row]), jnp.float32(target) * radius)
            state = learner.step(state, sample, None)
            weights.append(state.weights / np.float32(radius))
        return np.array(weights)

    expected = run(1.0)
    assert np.sum(np.linalg.norm(expected, axis=1) > 1 - 1e-5) > 5  # the ball is felt
    np.testing.assert_allclose(run(radius), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("DA-Thm1", "DA-Thm2")
def test_corrected_regret_grows_as_its_root_and_the_others_linearly():
    """The bound holds, and without the correction it is seen to fail, in one run."""
    stream = nj.streams.linear(key(0), 32768, 5, label_noise=0.3)
    noise = nj.noise.Gaussian(0.36)
    moments = nj.bounds.moments(stream, noise)
    bounds = {
        "two_copies": nj.bounds.two_copies,
        "known_covariance": nj.bounds.known_covariance,
        "uncorrected": nj.bounds.uncorrected,
        "as_printed": nj.bounds.as_printed.known_covariance,
    }
    makers = {name: nj.tuned(MAKE[name], bounds[name], moments, radius=1.0) for name in bounds}
    result = nj.study(
        makers, stream, noise, key(1), num_seeds=16, horizons=[2048, 8192, 32768],
        comparator=lambda past: nj.comparators.linear_ball(past, 1.0),
    )  # fmt: skip
    for name in ("two_copies", "known_covariance"):
        assert result.growth[name].high < 0.6
        assert all(row.high < row.bound for row in result.rows if row.learner == name)
    assert result.growth["as_printed"].low > 0.75
    assert result.growth["uncorrected"].low > 0.85
    last = {row.learner: row.regret for row in result.rows}
    assert last["uncorrected"] > 3 * last["known_covariance"]
