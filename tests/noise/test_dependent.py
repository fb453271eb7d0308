"""Noise whose variance depends on x: exact means over all copies that can be drawn."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.learners.known_covariance import gradient_estimate
from noisy_jax.learners.two_copies import gradient_estimate as two_copies_gradient
from noisy_jax.noise import Attributes, Missing, Multiplicative, Poisson
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import Case, W, Y, check_bound, check_unbiased, full, last_errors

X = np.array([0.7, -1.2, 0.4])
COUNTS = np.array([0.7, 1.2, 2.0])
KEEP, SPREAD = np.array([0.5, 0.8, 1.0]), np.array([0.3, 0.0, 0.6])


def product(values, probabilities):
    """All combinations of the values `[3][m]` of independent coordinates."""
    copies = np.array(list(itertools.product(*values)))
    return copies, np.array([np.prod(p) for p in itertools.product(*probabilities)])


def cases() -> dict[str, Callable[[], Case]]:
    def missing():
        values = [(0.0, x / p) for x, p in zip(X, KEEP, strict=True)]
        return Case(Missing(KEEP), X, *product(values, [(1 - p, p) for p in KEEP]))

    def multiplicative():
        nodes, weights = np.polynomial.hermite_e.hermegauss(6)
        values = [x * (1 + v**0.5 * nodes) for x, v in zip(X, SPREAD, strict=True)]
        return Case(Multiplicative(SPREAD), X, *product(values, 3 * [weights / weights.sum()]))

    def poisson():
        counts = [np.arange(n) for n in (16.0, 18.0, 21.0)]
        chances = [stats.poisson.pmf(n, mean) for n, mean in zip(counts, COUNTS, strict=True)]
        return Case(Poisson(), COUNTS, *product(counts, chances))

    def attributes():
        seen = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
        return Case(Attributes(2), X, 1.5 * seen * X, np.full(3, 1 / 3))

    return {f.__name__: f for f in (missing, multiplicative, poisson, attributes)}


@pytest.fixture(params=cases(), ids=str, name="case")
def case_(request):
    return cases()[request.param]()


@pytest.mark.slow
@pytest.mark.claim("EXT-DependentNoise")
def test_estimated_covariances_and_gradients_are_unbiased(x64, case):
    check_unbiased(case, atol=1e-9)
    _, x, copies, p = case
    if len(p) < 20:  # two copies need no estimate
        first, second = (np.repeat(copies, len(p), 0), np.tile(copies, (len(p), 1)))
        pairs = nj.Sample(np.stack([first, second], axis=1), np.full(len(p) ** 2, Y))
        both = jax.jit(jax.vmap(two_copies_gradient, (None, 0)))(W, pairs)
        clean = 2 * (W @ x - Y) * x
        np.testing.assert_allclose(np.outer(p, p).ravel() @ both, clean, atol=1e-9)


@pytest.mark.slow
def test_moments_of_the_bound_contain_the_exact_ones(x64, case):
    noise, _, copies, p = case
    bounds = np.sum(copies**2, axis=1) / (0.75 if isinstance(noise, Attributes) else 1.0)
    known = check_bound(case, bounds**2, bounds, rtol=1e-9)
    guarantee = nj.bounds.known_covariance(known, horizon=1, radius=1.0)
    w, samples = np.array([0.6, 0.0, -0.8]), nj.Sample(copies[:, None], np.full(len(p), 0.5))
    samples = samples._replace(cov=full(jax.vmap(noise.estimated_cov)(copies)))
    gradients = jax.vmap(gradient_estimate, (None, 0))(w, samples)
    assert p @ np.sum(gradients**2, axis=1) <= guarantee.second_moment


@pytest.mark.slow
@pytest.mark.statistical
def test_copies_have_the_enumerated_moments(case):
    noise, x, copies, p = case
    rows = np.tile(x, (40_000, 1)).astype(np.float32)
    drawn = np.asarray(jax.jit(noise.sample)(key(), rows), np.float64)
    for power in (1, 2):
        truth = p @ copies**power
        error = np.sqrt(np.maximum(p @ copies ** (2 * power) - truth**2, 0) / len(drawn))
        assert np.all(np.abs((drawn**power).mean(axis=0) - truth) <= 5 * error + 1e-5)
    if not isinstance(noise, Multiplicative):
        assert np.all(np.any(np.isclose(drawn[:200, None], copies, atol=1e-5).all(-1), axis=1))


@pytest.mark.slow
@pytest.mark.statistical
def test_learners_run_on_it_under_vmap_over_its_parameter():
    stream = nj.streams.linear(key(0), 2_000, 3)
    for make, values in ((Missing, [0.4, 0.6]), (Multiplicative, [0.8, 0.4]), (Attributes, [2, 3])):
        errors = jax.vmap(lambda value, make=make: last_errors(stream, make(value)))
        found = jax.jit(errors)(jnp.array(values))
        assert np.all(np.isfinite(found))
        assert found[0, 0] < 0.5 * found[0, 1]  # corrected beside uncorrected
    assert found[1, 1] < 1e-3  # all attributes are seen: no noise


@pytest.mark.slow
def test_noise_may_change_from_round_to_round_and_bad_parameters_end_in_nan():
    stream = nj.streams.linear(jax.random.key(0), 20, 3)
    noise = nj.noise.PerRound(jax.vmap(Missing)(jnp.linspace(0.5, 1.0, 20)))
    learner = nj.learners.known_covariance(radius=1.0)
    assert nj.rollout(learner, stream, noise, key()).diverged_at == -1
    run = jax.vmap(lambda keep: nj.rollout(learner, stream, Missing(keep), key()).diverged_at)
    assert run(jnp.array([0.5, 0.0, 1.5])).tolist() == [-1, 1, 1]
    assert nj.rollout(learner, stream, Poisson(), key()).diverged_at >= 1  # x is negative


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Missing(0.0), "Missing.keep"),
        (lambda: Missing(np.array([0.5, 1.2])), "Missing.keep"),
        (lambda: Multiplicative(-0.1), "Multiplicative.variance"),
        (lambda: Attributes(1), "two depend on each other"),
        (lambda: Attributes(2.5), "whole number"),
        (lambda: Attributes(4).centred(key(), jnp.ones(3)), "at most the 3 features"),
        (lambda: nj.worlds.gaussian(dim=3, length_scale=1.0, noise=Missing(0.5)), "noise"),
        (lambda: from_arrays([[1.0], [2.5]], [0.0, 1.0], noise=Poisson()), "not a count in row 1"),
        (
            lambda: from_arrays([[np.nan], [1.0]], [0.0, 1.0], noise=Multiplicative(0.1)),
            "nan",
        ),
    ],
)
def test_bad_input_raises(make, message):
    raises(message, make)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-DependentNoise")
@pytest.mark.parametrize("name", ["counts", "factors"])
def test_fit_and_learn_of_tables(rng, name):
    """Intervals contain the truth; least squares on the noisy table is far off."""
    truth, rows = np.array([0.5, -0.4, 0.3]), 20_000
    x = rng.gamma(4.0, 2.0, size=(rows, 3))
    y = 1 + x @ truth + 0.1 * rng.normal(size=rows)
    if name == "counts":
        noise, shown = Poisson(), rng.poisson(x)
    else:
        noise, shown = Multiplicative(0.1), x * (1 + 0.1**0.5 * rng.normal(size=x.shape))
    table = from_arrays(shown, y, noise=noise)
    fit = nj.fit(table)
    assert np.all(np.abs(fit.coefficients - truth) < 5 * fit.std_error[1:])
    assert np.all(fit.std_error[1:] < 0.06)
    assert np.abs(fit.uncorrected.coefficients - truth).max() > 0.1
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    learned = nj.learn(learner, table, key())
    assert learned.risk_interval[0] < 0.1 * y.var()
    np.testing.assert_allclose(learned.predict(x[:50]), fit.predict(x[:50]), atol=0.3)
