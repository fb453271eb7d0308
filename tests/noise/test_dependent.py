"""Noise whose variance depends on x: exact means over all copies that can be drawn."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.learners.known_covariance import gradient_estimate
from noisy_jax.noise import (
    Attributes,
    Gaussian,
    Misclassified,
    Missing,
    Multiplicative,
    Poisson,
    Product,
    Rademacher,
    observe,
)
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import FOUR, TWO, fit_by_numpy

X, W, Y = np.array([0.7, -1.2, 0.4]), np.array([0.5, 0.3, -1.0]), 0.6
COUNTS = np.array([0.7, 1.2, 2.0])
KEEP, SPREAD = np.array([0.5, 0.8, 1.0]), np.array([0.3, 0.0, 0.6])


class Case(NamedTuple):
    """A distribution, an instance, and all its noisy copies `[m, 3]` with their probabilities."""

    noise: nj.noise.Noise
    x: np.ndarray
    copies: np.ndarray
    weights: np.ndarray
    extra: Callable = lambda copies: 0.0
    """What is added to ‖x̃‖⁴ in the fourth moment of the bounds, so that it bounds ‖x̃x̃ᵀ − Σ̂‖²."""

    @property
    def fourth(self):
        return np.sum(self.copies**2, axis=1) ** 2 + self.extra(self.copies)


def product(values, probabilities):
    """All combinations of the values `[3][m]` of independent coordinates."""
    copies = np.array(list(itertools.product(*values)))
    return copies, np.array([np.prod(p) for p in itertools.product(*probabilities)])


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
    seen = 1.5 * np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]) * X
    return Case(
        Attributes(2), X, seen, np.full(3, 1 / 3), lambda x: np.sum(x**2, axis=1) ** 2 * 7 / 9
    )


def binary_columns():
    x = [1, 0, 1]
    copies, weights = product(3 * [np.linalg.inv(TWO)[:, 1]], TWO[x])
    return Case(Misclassified(TWO), np.array(x), copies, weights, lambda x: np.sum(x**2, axis=1))


def category(true):
    x = np.eye(4)[true, 1:]
    copies = np.linalg.inv(FOUR)[:, 1:]
    return Case(Misclassified(FOUR), x, copies, FOUR[true], lambda x: np.sum(x**2, axis=1))


def mixed_columns():
    noise, x = Product((Rademacher(0.5), Misclassified(TWO), Gaussian(0.0))), [0.3, 1.0, -0.7]
    values = [-0.2, 0.8], np.linalg.inv(TWO)[:, 1], [-0.7]
    copies, weights = product(values, [[0.5, 0.5], TWO[1], [1.0]])
    return Case(noise, np.array(x), copies, weights, lambda x: x[:, 1] ** 2)


CASES = {
    "missing": missing,
    "multiplicative": multiplicative,
    "poisson": poisson,
    "attributes": attributes,
    "misclassified columns": binary_columns,
    "first of four categories": lambda: category(0),
    "third of four categories": lambda: category(2),
    "columns of different kinds": mixed_columns,
}


@pytest.fixture(params=CASES, ids=str, name="case")
def case_(request):
    return CASES[request.param]()


def full(cov):
    cov = np.asarray(cov)
    return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(3)


@pytest.mark.slow
@pytest.mark.claim("EXT-DependentNoise", "EXT-Misclassified")
def test_estimated_covariances_moments_and_gradients_are_unbiased(x64, case):
    """E Σ̂ = Var(x̃ | x), and with it what is estimated from one copy has the clean mean."""
    noise, x, copies, p, _ = case
    np.testing.assert_allclose(p @ copies, x, atol=1e-10)
    variance = np.einsum("m,mi,mj->ij", p, copies - x, copies - x)
    estimates = full(jax.jit(jax.vmap(noise.estimated_cov))(copies))
    np.testing.assert_allclose(np.tensordot(p, estimates, 1), variance, atol=1e-9)
    np.testing.assert_allclose(noise.covariance_at(x), variance, atol=1e-9)
    moments = nj.moments.known_covariance()

    @jax.jit
    def means(samples, p):
        each = moments.clean_estimates, gradient_estimate
        found = [jax.vmap(estimate, (None, 0))(W, samples) for estimate in each]
        gram, _ = moments.corrected(moments.sums(samples, p))
        return gram, *jax.tree.map(lambda leaf: p @ leaf, found)

    gram, read, gradient = means(nj.Sample(copies[:, None], np.full(len(p), Y), estimates), p)
    np.testing.assert_allclose(gram, np.outer(x, x), atol=1e-9)
    np.testing.assert_allclose(read, [W @ x, (W @ x) ** 2], atol=1e-9)
    if getattr(noise, "matrix", TWO) is not FOUR:  # of which estimated variances are negative
        np.testing.assert_allclose(gradient, 2 * (W @ x - Y) * x, atol=1e-9)


@pytest.mark.slow
@pytest.mark.claim("EXT-DependentNoise")
def test_moments_of_the_bound_contain_the_exact_ones(x64, case):
    noise, x, copies, p, _ = case
    known = nj.bounds.moments(nj.Stream(x[None], np.array([0.5])), noise)
    np.testing.assert_allclose(known.x_second_moment, p @ np.sum(copies**2, axis=1), rtol=1e-9)
    np.testing.assert_allclose(known.x_fourth_moment, p @ case.fourth, rtol=1e-9)
    estimates = full(jax.vmap(noise.estimated_cov)(copies))
    off = np.einsum("mi,mj->mij", copies, copies) - estimates
    assert np.all(np.linalg.norm(off, ord=2, axis=(1, 2)) <= np.sqrt(case.fourth) + 1e-9)


@pytest.mark.slow
@pytest.mark.statistical
def test_copies_have_the_enumerated_moments(case):
    noise, x, copies, p, _ = case
    rows = np.tile(x, (40_000, 1)).astype(np.float32)
    drawn = np.asarray(jax.jit(noise.sample)(key(), rows), np.float64)
    truth, squares = (np.einsum("m,mi,mj->ij", p, copies**k, copies**k) for k in (1, 2))
    for found, mean, square in (
        (drawn.mean(axis=0), x, np.diag(truth)),
        (drawn.T @ drawn / len(drawn), truth, squares),
    ):
        error = np.sqrt(np.maximum(square - mean**2, 0) / len(drawn))
        assert np.all(np.abs(found - mean) <= 5 * error + 1e-5)
    if not isinstance(noise, Multiplicative):
        assert np.all(np.any(np.isclose(drawn[:200, None], copies, atol=1e-5).all(-1), axis=1))


@pytest.mark.slow
def test_learners_get_the_estimate_under_vmap_over_the_parameter_and_nan_for_bad_ones():
    stream = nj.streams.linear(jax.random.key(0), 20, 3)
    learner = nj.learners.known_covariance(radius=1.0)
    noise = Multiplicative(SPREAD)
    sample = observe(key(), jnp.asarray(X), 0.0, noise, copies=2)
    np.testing.assert_allclose(sample.cov, noise.estimated_cov(sample.x[0]), rtol=1e-6)
    changing = nj.noise.PerRound(jax.vmap(Missing)(jnp.linspace(0.5, 1.0, 20)))
    assert nj.rollout(learner, stream, changing, key()).diverged_at == -1
    run = jax.vmap(lambda keep: nj.rollout(learner, stream, Missing(keep), key()).diverged_at)
    assert run(jnp.array([0.5, 0.0, 1.5])).tolist() == [-1, 1, 1]
    of_some = jax.vmap(lambda k: nj.rollout(learner, stream, Attributes(k), key()).predictions)
    plain = nj.rollout(learner, stream, Gaussian(0.0), key()).predictions
    found = of_some(jnp.array([2, 3]))
    np.testing.assert_allclose(found[1], plain, rtol=1e-4)  # all attributes are seen: no noise
    assert np.abs(found[0] - plain).max() > 0.01
    assert np.isnan(Poisson().centred(key(), jnp.asarray(X))).tolist() == [False, True, False]


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
@pytest.mark.claim("EXT-DependentNoise")
@pytest.mark.parametrize("noise", [Poisson(), Multiplicative(0.1)])
def test_fits_of_tables_are_those_of_numpy_with_the_estimates_and_learners_come_near(rng, noise):
    x = rng.gamma(4.0, 2.0, size=(2_000, 3))
    y = 1 + x @ [0.5, -0.4, 0.3] + 0.1 * rng.normal(size=len(x))
    factors = 1 + 0.1**0.5 * rng.normal(size=x.shape)
    shown = 1.0 * rng.poisson(x) if isinstance(noise, Poisson) else x * factors
    table = from_arrays(shown, y, noise=noise)
    fit = nj.fit(table)
    covs = np.asarray(jax.vmap(noise.estimated_cov)(shown), np.float64)
    beta, covariance = fit_by_numpy(shown, y, covs)
    np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-5)
    np.testing.assert_allclose(fit.covariance[1:, 1:], covariance, rtol=1e-5)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    learned = nj.learn(learner, table, key())
    np.testing.assert_allclose(learned.predict(x[:50]), fit.predict(x[:50]), atol=0.3)
