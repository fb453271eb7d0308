"""Linear fits: units, replicates, weights, estimated matrices, and simulated coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.errors import linear_errors
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import SHIFT
from tests.observed.fits.test_methods import table
from tests.observed.rows import covered, gaussians


def test_weights_and_clusters_are_repeated_rows():
    """A row of weight two, and a row that stands twice in a cluster, give the same fit."""
    x, y = table(60)
    twice = np.concatenate([np.arange(60), np.arange(10)])
    clustered = nj.fit(from_arrays(x[twice], y[twice], noise=0.0), clusters=twice)
    weights = np.where(np.arange(60) < 10, 2.0, 1.0)
    weighted = nj.fit(from_arrays(x, y, noise=0.0), weights=weights, clusters=np.arange(60))
    np.testing.assert_allclose(clustered.coefficients, weighted.coefficients, rtol=1e-9)
    np.testing.assert_allclose(clustered.covariance, weighted.covariance, rtol=1e-7)


@pytest.mark.slow
def test_rows_of_weight_zero_do_not_count():
    x, y = table(200)
    cov = np.linspace(0.0, 0.2, 200)[:, None] * [1.0, 30.0, 0.01]
    weights = np.where((np.arange(200) % 3 == 0) | (np.arange(200) // 20 == 2), 0.0, 1.5)
    clusters, kept = np.arange(200) // 4, weights > 0  # some clusters have no weight

    def fitted(rows, **options):
        return nj.fit(from_arrays(x[rows], y[rows], noise=gaussians(cov[rows])), **options)

    everyone = slice(None)
    for options in ({}, {"clusters": clusters}, {"clusters": clusters, "errors": "jackknife"}):
        own = {k: v[kept] if k == "clusters" else v for k, v in options.items()}
        found = fitted(everyone, weights=weights, **options)
        assert str(found) == str(fitted(kept, weights=weights[kept], **own))
    x[:, 1] = np.where(kept, 5.0, x[:, 1])
    raises("column 'x2' is constant: drop it", fitted, everyone, weights=weights)
    raises(r"more than d \+ 1 = 4 rows, got 3", fitted, everyone, weights=np.arange(200) < 3)


def test_errors_of_rows_are_on_average_those_on_clean_rows():
    """(f(x) − y)² + Var ε for y + ε with ε = 0.8 n, over both signs of the noise n in x."""
    noise = np.array([-0.5, 0.5])
    rows = from_arrays(1.2 + noise[:, None], 0.3 + 0.8 * noise, noise=0.25, cross_cov=[0.8 * 0.25])
    clean = (0.1 - 0.7 * 1.2 - 0.3) ** 2 + 0.8**2 * 0.25
    np.testing.assert_allclose(linear_errors(np.array([0.1, -0.7]), rows).mean(), clean)


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 60)])
@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_scores_of_all_rows_add_up_to_zero(weights, share):
    """At the solution, also where each row has a covariance, and one with the noise of y."""
    x, y = table(60)
    cov = np.linspace(0.0, 0.2, 60)[:, None, None] * np.diag(x.var(axis=0))
    cross = 0.1 * cov.sum(axis=2)
    known = from_arrays(x, y, noise=gaussians(cov), cross_cov=cross)
    equations = LinearEquations.of_sample(Sample.of_table(known), weights)
    theta = equations.solution(equations.whole, share)
    ((scores, jacobians),) = equations.blocks(theta, share)
    for total in (scores.sum(axis=0), equations.at(theta, share).score):
        np.testing.assert_allclose(total, 0, atol=1e-9 * np.abs(scores).sum(axis=0).max())
    (total,) = jacobians.summed(np.arange(60), np.array([0]))
    size = np.sqrt(np.diag(total))
    found = (total + equations.at(theta, share).jacobian) / np.outer(size, size)
    np.testing.assert_allclose(found, 0, atol=1e-9)


def test_the_table_says_which_features_the_uncorrected_fit_is_for():
    x, y = table(200)
    copies = x[:, None] + np.random.default_rng(0).normal(size=(200, 4, 3)) * [0.2, 2, 0.01]
    words = " ".join(str(nj.fit(from_arrays(copies, y))).split())
    assert "means of 4 copies that are as noisy as these" in words
    assert "features that are as noisy" in str(nj.fit(from_arrays(x, y, noise=1e-4)))


def test_units_do_not_matter():
    x, y = table()
    cov = np.array([[0.2, 0.1, 0], [0.1, 5.0, 0], [0, 0, 0.001]])
    noisy = x + np.random.default_rng(1).multivariate_normal(np.zeros(3), cov, len(y))
    fit = nj.fit(from_arrays(noisy, y, noise=cov))
    units = np.array([1e6, 1e-3, 1.0])
    other = nj.fit(from_arrays(noisy * units, 1e4 * y, noise=cov * np.outer(units, units)))
    np.testing.assert_allclose(other.coefficients, 1e4 * fit.coefficients / units, rtol=1e-8)
    np.testing.assert_allclose(other.std_error[1:], 1e4 * fit.std_error[1:] / units, rtol=1e-6)
    np.testing.assert_allclose(other.reliability, fit.reliability, rtol=1e-8)


def settings(setting, rng):
    n = 300
    x = rng.normal(size=(n, 2))
    y = x @ [1.0, -0.5] + 0.5 * rng.normal(size=n)
    if setting == "one covariance a row":
        cov = rng.uniform(0.1, 0.6, size=n)[:, None, None] * np.array([[1, 0.3], [0.3, 1]])
        noise = np.einsum("nij,nj->ni", np.linalg.cholesky(cov), rng.normal(size=(n, 2)))
        return from_arrays(x + noise, y, noise=gaussians(cov))
    if setting == "replicates":
        return from_arrays(x[:, None] + 0.6 * rng.normal(size=(n, 2, 2)), y)
    return from_arrays(x + 0.4 * rng.laplace(size=x.shape), y, noise=nj.noise.Laplace(0.4))


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("setting", ["one covariance a row", "replicates", "laplace"])
def test_intervals_cover(setting):
    rng = np.random.default_rng(3 + 1000 * SHIFT)
    fits = [nj.fit(settings(setting, rng)) for _ in range(400)]
    coverage, plain = covered(fits, np.array([1, -0.5]))
    assert np.all(np.abs(coverage - 0.95) < 5 * (0.95 * 0.05 / 400) ** 0.5)
    assert plain[0] < 0.5
    slopes, errors = zip(*((fit.values, fit.std_error) for fit in fits), strict=True)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(slopes, axis=0), rtol=0.2)


def test_what_is_not_identified_is_named():
    x, y = table()
    message = "column '{}' varies no more than its error"
    raises(message.format("x3"), nj.fit, from_arrays(x, y, noise=[0.1, 0.1, 1.0]))
    chance = nj.fit(from_arrays(x, y, noise=[1.03 * x[:, 0].var(), 0.1, 0.0]))
    assert chance.reliability[0] < 0 < chance.share < 1  # not more than chance explains
    raises(message.format("x1"), nj.fit, from_arrays(x, y, noise=[1.5 * x[:, 0].var(), 0.1, 0.0]))
    twin = np.column_stack([x[:, 0], x[:, 0] + 0.01 * x[:, 1]])
    raises(r"told apart, as .*·x1 .*·x2 varies no more", nj.fit, from_arrays(twin, y, noise=0.2))
    twin[:, 1] = 2 * twin[:, 0]
    raises("does not vary: drop one", nj.fit, from_arrays(twin, y, noise=0.0))


@pytest.mark.statistical
def test_estimated_errors_on_clean_data_are_right():
    """The estimate, from noisy rows alone, against errors at the clean rows."""
    rng = np.random.default_rng(4 + 1000 * SHIFT)
    x = rng.normal(size=(20_000, 2))
    y = x @ [1.0, 1.0] + rng.normal(size=20_000)
    fit = nj.fit(from_arrays(x + rng.normal(size=x.shape), y, noise=1.0))
    for made, name in ((fit, "corrected"), (fit.uncorrected, "uncorrected")):
        value, error = (getattr(fit.risk, name + end) for end in ("", "_std_error"))
        assert abs(np.mean((made.predict(x) - y) ** 2) - value) < 5 * error
    assert fit.risk.verdict() == "the correction helps"
