"""The three linear learners against NumPy loops, exact expectations and each other."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.learners import known_covariance, two_copies, uncorrected
from tests.errors import one_line_error, raises, told
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


def estimate(name, weights, copies, y, cov):
    """∇̃ as the learner computes it, read off one unprojected step of rate 1."""
    learner = MAKE[name](radius=1e6, learning_rate=1.0)
    state = learner.init(len(weights))._replace(weights=weights)
    return weights - learner.step(state, nj.Sample(copies, y, cov), jax.random.key(0)).weights


# Bias of each estimate of the clean gradient, in units of Σw.
BIAS = {"two_copies": 0, "known_covariance": 0, "as_printed": 1, "uncorrected": 2}


@pytest.mark.slow
@pytest.mark.claim("DA-Lemma1", "DA-Lemma2", "DA-short")
@pytest.mark.parametrize("name", MAKE)
def test_bias_exactly_by_enumeration(x64, rng, name):
    """Estimates are quadratic in the noise: their mean depends on its covariance alone."""
    dim = 3
    w, x, y = rng.normal(size=dim), rng.normal(size=dim), 0.3
    root = rng.normal(size=(dim, dim))  # noise root @ signs has covariance root rootᵀ
    cov, copies = root @ root.T, jnp.asarray(x + signs(2 * dim).reshape(-1, 2, dim) @ root.T)
    mean = jax.vmap(lambda c: estimate(name, jnp.asarray(w), c, y, cov))(copies).mean(axis=0)
    clean = 2 * (w @ x - y) * x
    np.testing.assert_allclose(mean - clean, BIAS[name] * cov @ w, atol=1e-12)


SHAPES = {
    "scalar": lambda rng, d: np.asarray(0.3),
    "diagonal": lambda rng, d: rng.uniform(0.1, 0.5, size=d),
    "full": lambda rng, d: np.cov(rng.normal(size=(d, 3 * d))),
}


def rate_at(t):
    return 0.2 / (1.0 + t) ** 0.5


@pytest.mark.claim("DA-Eq2/3", "DA-Alg1-left", "DA-Alg1-right")
@pytest.mark.parametrize(
    ("shape", "changing"), [("scalar", True), ("diagonal", False), ("full", True)]
)
@pytest.mark.slow
def test_equals_numpy_loop(x64, rng, shape, changing):
    # 300 rounds are two blocks of the rollout and a rest.
    horizon, dim = 300, 3
    stream = nj.streams.linear(jax.random.key(0), horizon, dim, label_noise=0.1)
    covs = np.stack([SHAPES[shape](rng, dim) for _ in range(horizon)])
    if changing:
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(jnp.asarray(covs)))
    else:
        covs[:] = covs[0]
        noise = nj.noise.Gaussian(jnp.asarray(covs[0]))
    y_noise, key = nj.noise.Uniform(0.2), jax.random.key(1)
    cases = list(itertools.product(MAKE, [0.1, 50.0]))  # projected often, and never
    learners = (MAKE[name](radius=radius, learning_rate=rate_at) for name, radius in cases)
    result = nj.rollout(nj.wrappers.paired(*learners), stream, noise, key, y_noise=y_noise)

    samples, _ = observations(stream, noise, key, copies=2, y_noise=y_noise)
    full = [np.diag(np.broadcast_to(c, (dim,))) if c.ndim < 2 else c for c in covs]
    for i, (name, radius) in enumerate(cases):
        predictions, weights, projected = projected_gradient_descent(
            name, *map(np.asarray, (stream.x, stream.y, samples.x, samples.y)), full, radius,
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
    learners = [TWO, *(two_copies(radius=1.0, optimizer=each) for each in optimizers)]
    rate, sgd, adam, steps = (nj.rollout(each, stream, noise, key) for each in learners)
    chex.assert_trees_all_equal(rate.predictions, sgd.predictions)
    chex.assert_trees_all_close(rate.predictions, steps.predictions, atol=1e-6)
    assert not np.allclose(rate.predictions, adam.predictions)
    assert float(jnp.linalg.norm(adam.state.weights)) <= 1 + 1e-6


@pytest.mark.parametrize("optimizer", [optax.polyak_sgd(), optax.lbfgs()], ids=["polyak", "lbfgs"])
def test_an_optimizer_that_needs_the_loss_raises_a_clear_error(optimizer):
    learner = two_copies(radius=1.0, optimizer=optimizer)
    raises(r"must work from gradients alone.* missing .* 'value", learner.init, 3)


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


def sample_of(shape, cov=None):
    return nj.Sample(jnp.ones(shape), jnp.zeros(shape[:-2]), cov)


def descent(gradient):
    return nj.learners.gradient_descent(gradient, copies=1, radius=1.0, learning_rate=0.1)


TWO = two_copies(radius=1.0, learning_rate=0.1)
KNOWN = known_covariance(radius=1.0, learning_rate=0.1)
FALLING = two_copies(radius=1.0, learning_rate=lambda count: jnp.ones(3))
ONE = sample_of((1, 3))


@pytest.mark.parametrize(
    ("learner", "sample", "message"),
    [
        (TWO, ONE, r"reads 2 independent noisy copies .* sample has 1"),
        (TWO, sample_of((5, 2, 3)), r"sample\.x must be \[V, d\], got \[5, 2, 3\]"),
        (KNOWN, sample_of((1, 2), cov=0.1), r"weights of shape \[3\] does not fit .* dimension 2"),
        (KNOWN, sample_of((1, 3), cov=jnp.ones(2)), r"sample\.cov of shape \[2\] does not fit"),
        (KNOWN, ONE, r"needs sample\.cov"),
        (FALLING, sample_of((2, 3)), r"learning_rate must be \[\], .* got \[3\]"),
        (descent(lambda w, sample: 1.0), ONE, r"gradient must be \[3\], .* got \[\]"),
        (descent(lambda w, sample: sample.x), ONE, r"gradient must be \[3\], .* got \[1, 3\]"),
        (descent(lambda w, sample: None), ONE, r"gradient must be \[3\], .* got \[\]"),
    ],
)
def test_what_does_not_fit_is_rejected(learner, sample, message):
    with one_line_error(message):
        learner.step(learner.init(3), sample, None)


def test_a_prediction_of_another_dimension_is_rejected():
    with pytest.raises(ValueError, match=r"weights of shape \[3\] does not fit .* dimension 2"):
        KNOWN.predict(KNOWN.init(3), jnp.ones(2))


def test_a_negative_variance_is_rejected_or_ends_in_nan():
    learner = nj.learners.known_covariance(radius=1.0)
    for cov in (-5.0, np.array([0.1, -5.0]), np.diag([0.1, -5.0])):

        def step(cov):
            sample = nj.Sample(jnp.ones((1, 2)), jnp.ones(()), cov=cov)
            return learner.step(learner.init(2), sample, jax.random.key(0)).weights

        raises(r"sample\.cov must be finite and >= 0", step, cov)
        assert np.isnan(jax.jit(step)(cov)).any()
        assert np.isfinite(jax.jit(step)(np.abs(cov))).all()


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


def test_dimensions_that_are_none_are_rejected():
    raises("dim must be a whole number of at least 1, got 2.5", TWO.init, 2.5)


def test_lists_are_instances_and_no_samples():
    learner, kernel = two_copies(radius=1.0), nj.kernels.gaussian(length_scale=1.0)
    sample = nj.Sample([[1.0, 0.0]] * 2, 1.0, 0.1)  # type: ignore[arg-type]
    ring = nj.learners.norma(kernel, nj.losses.hinge(), regularization=0.1, buffer=2)
    leader = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    for one in learner, ring, leader, nj.wrappers.paired(learner, leader):
        assert np.all(one.predict(one.init(2), [0.0, 1.0]) == 0)
        with told("sample must be a Sample, got tuple"):
            one.step(one.init(2), (jnp.zeros((2, 2)), 0.0), key(0))
    for one in learner, ring, leader:
        with told("sample.x must be an array, got list"):
            one.step(one.init(2), sample, key(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient": "squared"}, "gradient must be a function"),
        ({"gradient": two_copies(radius=1.0)}, "gradient must be a function"),
        ({"labels": "yes"}, "labels must be True or False"),
    ],
)
def test_a_gradient_is_a_function(options, message):
    given = {"gradient": lambda weights, sample: weights, "copies": 1, "radius": 1.0, **options}
    with told(message):
        nj.learners.gradient_descent(**given)
