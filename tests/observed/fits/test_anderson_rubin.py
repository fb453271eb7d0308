"""Anderson-Rubin sets against scans of the statistic over coefficients, in plain NumPy."""

import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import SHIFT

NOISE = 1.0


def rows(n, dim, rng, scale=1.0):
    x = scale * rng.normal(size=(n, dim))
    y = 1 + x @ np.linspace(1, -0.5, dim) + 0.5 * rng.normal(size=n)
    return x + NOISE**0.5 * rng.normal(size=x.shape), y


def accepted(x, y, slopes, fit):
    """Which slopes `[..., d]` have a T² below its 95% quantile, from 32 groups of rows."""
    n, k = x.shape
    x, y = x - x.mean(axis=0), y - y.mean()
    group = np.arange(n) % 32
    both = x[:, :, None] * x[:, None] - NOISE * (1 - 1 / n) * np.eye(k)
    parts = [[rows[group == g].sum(axis=0) for g in range(32)] for rows in (x * y[:, None], both)]
    constant, linear = map(np.array, parts)
    scores = constant - np.einsum("gij,...j->...gi", linear, slopes)
    total = scores.sum(axis=-2, keepdims=True)
    apart = scores - np.bincount(group)[:, None] / n * total
    cov = np.einsum("...gi,...gj->...ij", apart, apart) * 32 / 31
    squared = total @ np.linalg.solve(cov, np.swapaxes(total, -1, -2))
    ratio = stats.t(min(31, fit.degrees_of_freedom.min())).ppf(0.975) / stats.t(31).ppf(0.975)
    quantile = stats.f(k, 32 - k).ppf(0.95) * k * 31 / (32 - k)
    return squared[..., 0, 0] <= quantile * ratio**2


@pytest.mark.parametrize(("n", "scale"), [(400, 1.0), (60, 1.2)])
def test_the_set_of_one_slope_is_that_of_a_scan(n, scale):
    x, y = rows(n, 1, np.random.default_rng(0), scale)
    fit = nj.fit(from_arrays(100 + 5 * x, 3 * y, noise=25 * NOISE))
    low, high = (end[0] * 5 / 3 for end in fit.interval(method="anderson-rubin"))
    grid = np.linspace(-20, 20, 8001)
    inside = grid[accepted(x, y, grid[:, None], fit)]
    np.testing.assert_allclose([low, high], [inside[0], inside[-1]], atol=0.006)


def test_the_sets_of_two_slopes_are_projections_of_a_scan():
    x, y = rows(300, 2, np.random.default_rng(1))
    fit = nj.fit(from_arrays(x, y, noise=NOISE))
    low, high = fit.interval(method="anderson-rubin")
    first, second = np.linspace(-1, 4, 126), np.linspace(-3, 2, 126)
    inside = accepted(x, y, np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1), fit)
    for k, (axis, grid) in enumerate(((1, first), (0, second))):
        found = grid[inside.any(axis=axis)]
        np.testing.assert_allclose([low[k], high[k]], [found[0], found[-1]], atol=0.045)


def test_sets_are_unbounded_where_nothing_is_identified():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(60, 1)), rng.normal(size=60)  # a column that is all noise
    fit = nj.fit(from_arrays(x, y, noise=NOISE))
    low, high = fit.interval(method="anderson-rubin")
    assert low[0] == -np.inf
    assert high[0] == np.inf
    for end in (*fit.interval(), *fit.intercept_interval()):
        assert np.isfinite(end).all()


def test_strongly_identified_they_are_near_the_intervals_of_the_fit():
    x, y = rows(20_000, 1, np.random.default_rng(3))
    fit = nj.fit(from_arrays(x, y, noise=NOISE))
    wald, sets = (fit.interval(method=method) for method in ("wald", "anderson-rubin"))
    np.testing.assert_allclose((sets[1] - sets[0]) / (wald[1] - wald[0]), 1, atol=0.4)
    np.testing.assert_allclose(fit.interval(), wald)
    inner = fit.interval(0.5, method="anderson-rubin")
    assert (sets[0] < inner[0]).all()
    assert (inner[1] < sets[1]).all()


def test_an_uncertain_covariance_of_the_noise_makes_them_wider():
    x, y = rows(5000, 1, np.random.default_rng(4))
    errors = (0.0, None), (0.1, None), (0.1, [[[0.06]], [[0.08]]])
    estimates = [nj.noise.CovarianceEstimate([[NOISE]], [[one]], moves) for one, moves in errors]
    fits = (nj.fit(from_arrays(x, y, noise=estimate)) for estimate in estimates)
    widths = [np.diff(fit.interval(method="anderson-rubin"), axis=0)[0, 0] for fit in fits]
    assert widths[1] > 1.5 * widths[0]
    np.testing.assert_allclose(widths[1], widths[2], rtol=1e-6)


@pytest.mark.slow
def test_fits_of_chunks_have_them():
    x, y = rows(600, 2, np.random.default_rng(5))
    for known in (NOISE, nj.noise.CovarianceEstimate(np.eye(2), 0.05 * np.eye(2))):
        chunks = [from_arrays(x[p], y[p], noise=known) for p in (slice(250), slice(250, 600))]
        fit = nj.fit(chunks)
        low, high = fit.interval(method="anderson-rubin")
        assert (low < [1, -0.5]).all()
        assert (high > [1, -0.5]).all()
        low, high = fit.intercept_interval(method="anderson-rubin")
        assert low < 1 < high


def test_messages():
    x, y = rows(200, 31, np.random.default_rng(6), scale=10.0)
    fit = nj.fit(from_arrays(x, y, noise=NOISE))
    raises(r"more groups of rows than d \+ 1 = 32", fit.interval, method="anderson-rubin")
    raises("method must be 'wald' or 'anderson-rubin', got 'ar'", fit.interval, method="ar")
    plain = fit.uncorrected
    raises("method must be 'wald', got 'anderson-rubin'", plain.interval, method="anderson-rubin")


@pytest.mark.slow
@pytest.mark.statistical
def test_sets_cover_at_any_strength():
    """A slope that the table hardly identifies, in tables of 60 rows with reliability 0.2."""
    rng, covered, bounded = np.random.default_rng(9 + 1000 * SHIFT), 0, 0
    for _ in range(150):
        x, y = rows(60, 1, rng, scale=0.5)
        low, high = nj.fit(from_arrays(x, y, noise=NOISE)).interval(method="anderson-rubin")
        covered += low[0] <= 1 <= high[0]
        bounded += np.isfinite(high[0])
    assert covered >= (0.95 - 5 * (0.05 * 0.95 / 150) ** 0.5) * 150
    assert 0 < bounded < 150
