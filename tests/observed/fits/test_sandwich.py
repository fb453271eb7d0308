"""Variances of linear fits: leaving out rows by hand, degrees of freedom, coverage."""

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.keys import SHIFT
from tests.observed.fits.test_methods import table
from tests.observed.rows import gaussians, numbers


@pytest.mark.slow
@pytest.mark.parametrize("weights", [np.ones(60), np.linspace(0.5, 2.0, 60)])
def test_it_is_the_jackknife_that_leaves_out_one_row(weights):
    """To first order in the noise's covariance of a row, which the leverage leaves out."""
    rng = np.random.default_rng(0)
    x, noise = rng.lognormal(size=(60, 2)), rng.uniform(0.1, 0.4, size=60)[:, None] * np.ones(2)
    y = x @ [1.0, -0.5] + x[:, 0] * rng.normal(size=60)
    noisy = x + noise**0.5 * rng.normal(size=x.shape)

    def fitted(rows, **options):
        options["weights"], known = weights[rows], gaussians(noise[rows])
        return nj.fit(from_arrays(noisy[rows], y[rows], noise=known), **options)

    everyone = np.arange(60)
    left = [fitted(np.delete(everyone, row)) for row in everyone]
    fits = [fitted(everyone), fitted(everyone, clusters=everyone), *left]
    for corrected, rtol in ((True, 0.01), (False, 1e-6)):
        all_rows, alone, *others = (fit if corrected else fit.uncorrected for fit in fits)
        apart = np.array([numbers(fit) for fit in others]) - numbers(all_rows)
        expected = (apart**2).sum(axis=0)
        np.testing.assert_allclose(np.diag(all_rows.covariance), expected, rtol=2 * rtol)
        assert (np.diag(alone.covariance) < 0.81 * expected).any()  # without leverage: too small


@pytest.mark.parametrize("clustered", [False, True])
def test_degrees_of_freedom_are_satterthwaites(clustered, monkeypatch):
    """From the fourth moments of what rows, or clusters, add to least squares, in parts."""
    for module in ("sandwich", "units"):
        monkeypatch.setattr(f"noisy_jax.observed.fits.{module}.ROWS", 16)
    x, y = table(60)
    fit = nj.fit(from_arrays(x, y, noise=0.0), clusters=np.arange(60) // 3 if clustered else None)
    z = np.column_stack([np.ones(60), x])
    hat = np.linalg.pinv(z)
    moves = hat.T * (y - z @ hat @ y)[:, None]
    if clustered:
        moves, most = moves.reshape(20, 3, 4).sum(axis=1), 19
    else:
        moves, most = moves / (1 - np.diag(z @ hat))[:, None], 56
    n, total = len(moves), (moves**2).sum(axis=0)
    expected = 2 * total**2 / ((moves**4).sum(axis=0) - total**2 / n)
    assert (expected < most).any()
    np.testing.assert_allclose(fit.degrees_of_freedom, np.minimum(expected, most), rtol=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("clusters", [None, np.arange(300) // 3])
def test_a_category_of_one_row_has_the_error_of_a_row(clusters):
    """The intercept is its mean. Without this row the other indicators add up to 1."""
    rng, covered, errors = np.random.default_rng(1000 * SHIFT), 0, []
    for _ in range(100):
        x, category = rng.normal(size=300), np.append(0, rng.integers(1, 3, size=299))
        y, noisy = x + 0.5 * rng.normal(size=300), x + 0.6 * rng.normal(size=300)
        columns = np.column_stack([noisy, category == 1, category == 2])
        fit = nj.fit(from_arrays(columns, y, noise=[0.36, 0.0, 0.0]), clusters=clusters)
        low, high = fit.intercept_interval()
        covered += low < 0 < high
        errors.append(fit.intercept_std_error)
    assert covered >= 90
    np.testing.assert_allclose(np.median(errors), (0.5**2 + 0.6**2) ** 0.5, rtol=0.1)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("reliability", [0.6, 0.8, 1.0])
def test_intervals_cover_with_skewed_columns_and_unequal_variances(reliability):
    """x is lognormal, and the standard deviation of y is in proportion to it; truth 1."""
    rng, covered, variance = np.random.default_rng(7 + 1000 * SHIFT), 0, 1 / reliability - 1
    for _ in range(600):
        x = rng.lognormal(size=(300, 1))
        x = (x - np.exp(0.5)) / np.sqrt(np.e * (np.e - 1))
        y = x[:, 0] + 0.5 * np.abs(x[:, 0]) * rng.normal(size=300)
        noisy = x + variance**0.5 * rng.normal(size=x.shape)
        low, high = nj.fit(from_arrays(noisy, y, noise=variance)).interval()
        covered += low[0] < 1 < high[0]
    assert covered >= 0.91 * 600  # about 0.955; 0.85 without leverage
