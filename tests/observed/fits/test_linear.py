"""Linear fits: units, replicates, weights, estimated matrices, and simulated coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.clean_errors import linear_errors
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.fits.test_methods import table
from tests.observed.rows import agree, gaussians


def test_weights_and_clusters_are_repeated_rows():
    """A row of weight two, and a row that stands twice in a cluster, give the same fit."""
    x, y = table(60)
    twice, weights = np.append(np.arange(60), np.arange(10)), 1.0 + (np.arange(60) < 10)
    clustered = nj.fit(from_arrays(x[twice], y[twice], noise=0.0), clusters=twice)
    weighted = nj.fit(from_arrays(x, y, noise=0.0), weights=weights, clusters=np.arange(60))
    agree(clustered, weighted, "coefficients", "covariance", rtol=1e-7)


def test_rows_of_weight_zero_do_not_count():
    """Nor do clusters of which all rows have none."""
    x, y = table(200)
    weights = np.where((np.arange(200) % 3 == 0) | (np.arange(200) // 20 == 2), 0.0, 1.5)
    rows, clusters, kept = (
        from_arrays(x, y, noise=[0.1, 3.0, 0.001]),
        np.arange(200) // 4,
        weights > 0,
    )
    for errors in ("sandwich", "jackknife"):
        found = nj.fit(rows, weights=weights, clusters=clusters, errors=errors)
        options = {"weights": weights[kept], "clusters": clusters[kept], "errors": errors}
        assert str(found) == str(nj.fit(rows.rows(kept), **options))
    x[:, 1] = np.where(kept, 5.0, x[:, 1])
    rows = from_arrays(x, y, noise=0.001)
    raises("column 'x2' is constant: drop it", nj.fit, rows, weights=weights)
    raises(r"more than d \+ 1 = 4 rows, got 3", nj.fit, rows, weights=np.arange(200) < 3)


def test_errors_of_rows_are_on_average_those_on_clean_rows():
    """(f(x) − y)² + Var ε for y + ε with ε = 0.8 n, over both signs of the noise n in x."""
    noise = np.array([-0.5, 0.5])
    rows = from_arrays(1.2 + noise[:, None], 0.3 + 0.8 * noise, noise=0.25, cross_cov=[0.8 * 0.25])
    clean = (0.1 - 0.7 * 1.2 - 0.3) ** 2 + 0.8**2 * 0.25
    np.testing.assert_allclose(linear_errors(np.array([0.1, -0.7]), rows).mean(), clean)


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 60)])
@pytest.mark.parametrize("share", [0.0, 0.7])
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
