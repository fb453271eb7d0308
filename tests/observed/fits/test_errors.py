"""Errors at clean rows of functions that are only called, extended from noisier rows.

Errors of linear and kernel fits are tested with these fits.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

import noisy_jax as nj
from noisy_jax.observed.cross_fitting import units_of
from noisy_jax.observed.fits.errors import extended_errors
from noisy_jax.observed.observations import from_arrays
from tests.keys import SHIFT, key
from tests.quadrature import gauss_hermite

CLEAN, Y, VARIANCE = 0.7, 0.2, 0.3


def square(z):
    """Its mean squared error under noise of variance v is 3v² + (6x² − 2y)v + (x² − y)²."""
    return z[:, 0] ** 2


@pytest.mark.statistical
def test_a_loss_that_is_quadratic_in_the_variance_is_unbiased():
    """By quadrature over the noise of a row, and by many draws of the added noise."""
    many, (errors, chances) = 5000, gauss_hermite(6, np.array([[VARIANCE]]))
    x = np.repeat(CLEAN + errors, many, axis=0)

    def found(x, seed):
        return extended_errors(square, from_arrays(x, Y + 0 * x[:, 0], noise=VARIANCE), seed)

    each = [found(x, seed).errors.reshape(6, many).mean(axis=1) @ chances for seed in range(8)]
    # Of one seen x̃ the mean over the added noise alone is a polynomial.
    slopes = [found(np.full((many, 1), CLEAN), seed).slope[0, 0] / many for seed in range(8)]
    slope = 6 * VARIANCE - (6 * CLEAN**2 - 2 * Y)
    for values, expected in ((each, (CLEAN**2 - Y) ** 2), (slopes, slope)):
        error = np.std(values, ddof=1) / 8**0.5
        assert abs(np.mean(values) - expected) < 5 * error < 0.2


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_copies_need_no_variance(copies):
    """Exactly, by quadrature over the noise of all copies."""
    errors, chances = gauss_hermite(4, VARIANCE * np.eye(copies))
    x = CLEAN + errors[:, :, None]
    found = extended_errors(square, from_arrays(x, np.full(len(x), Y)), 0)
    mean = chances @ np.stack([found.errors, found.last], axis=1)
    # One order less has 3v² Σ_j w_j/m_j² too much, for means of m copies: −3v² over both m.
    last = 3 * VARIANCE**2 / (copies * (copies // 2))
    np.testing.assert_allclose(mean, [(CLEAN**2 - Y) ** 2, last], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["known", "replicates"])
def test_risks_of_a_forest_and_of_neighbours_are_near_the_true_ones(kind):
    """The error on noisy rows is outside of the interval, and the true one inside."""
    rng = np.random.default_rng((5, SHIFT))
    x = rng.normal(size=(1200, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    noisy = x[:, None] + 0.5 * rng.normal(size=(1200, 1 if kind == "known" else 2, 2))
    seen = y + 0.3 * rng.normal(size=1200)
    rows = from_arrays(noisy, seen, noise=nj.noise.Gaussian(0.25) if kind == "known" else None)
    candidates = {
        "line": nj.fit,
        "forest": RandomForestRegressor(10, min_samples_leaf=10, random_state=0),
        "neighbours": KNeighborsRegressor(20),
    }
    found = nj.select(candidates, rows, key(0))
    low, high = found.interval()
    means = noisy.mean(axis=1)
    for k, name in enumerate(found.names[1:], start=1):
        clean, naive = np.zeros((2, 1200))
        for fold in range(5):
            held_out = units_of(rows, None, 5) % 5 == fold
            made = candidates[name].fit(means[~held_out], seen[~held_out])
            clean[held_out] = (made.predict(x[held_out]) - y[held_out]) ** 2 + 0.09
            naive[held_out] = (made.predict(means[held_out]) - seen[held_out]) ** 2
        middle, half = (low[k] + high[k]) / 2, (high[k] - low[k]) / 2
        assert abs(clean.mean() - middle) < 1.8 * half  # 3.5 standard errors
        assert high[k] < naive.mean()
        assert half < 0.225
    assert found.approximate == ("forest", "neighbours")
    assert found.best != "line"
    text = str(found)
    assert text.count("  approximate") == 2
    assert "Approximate risks are extended to no noise" in text
    assert "under skewed noise these risks are mostly too high" in text


def test_a_logistic_fit_is_judged_by_its_probabilities():
    """A loss that has no closed form; the covariance of the noise is an estimate."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(1000, 1))
    y = 1.0 * (x[:, 0] + rng.logistic(size=1000) > 0)
    noisy = x + 0.4 * rng.normal(size=x.shape)
    fits, widths = {"logistic": lambda some: nj.fit(some, model="logistic")}, []
    for error in (0.0, 0.1):
        noise = nj.noise.CovarianceEstimate(jnp.array([[0.16]]), jnp.array([[error]]))
        found = nj.select(fits, from_arrays(noisy, y, noise=noise), jax.random.key(0))
        clean = np.mean((found.refit().predict(x) - y) ** 2)
        assert abs(found.risk[0] - clean) < 2 * found.std_error[0] + found.bias[0]
        widths.append(found.std_error[0])
    assert 1.02 < widths[1] / widths[0] < 2


def test_noise_that_cannot_be_added_is_told():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    candidates = {"a": KNeighborsRegressor(5)}
    cross = from_arrays(x, y, noise=0.1, cross_cov=[0.01, 0.0])
    with pytest.raises(ValueError, match=r"'a': its predictions are not affine in x, and .* corr"):
        nj.select(candidates, cross, jax.random.key(0))
    factors = from_arrays(x, y, noise=nj.noise.Multiplicative(0.04))
    with pytest.raises(ValueError, match="not affine in x, and under Multiplicative"):
        nj.select(candidates, factors, jax.random.key(0))
