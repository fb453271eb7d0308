"""Kernel fits of rows whose noise has a known distribution each: as in NumPy, and better."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.moments.fourier import fourier, gaussian_frequencies
from noisy_jax.observed.fits.errors import fourier_errors
from noisy_jax.observed.fits.row_laws import RowLaws, laws_follow_values
from tests.observed.fits.test_fourier import error_of, features, fitted, generator, table
from tests.observed.rows import gaussians


def rows(n, rng, *, copies=1, follow=False):
    """Uniform x, y = sin 2x + noise, and Gaussian noise of standard deviation .2 or .9."""
    x = rng.uniform(-2, 2, n)
    spread = np.where(x > 0 if follow else rng.random(n) < 0.5, 0.9, 0.2)
    noisy = x[:, None] + spread[:, None] * rng.normal(size=(n, copies))
    return noisy[:, :, None], np.sin(2 * x) + 0.1 * rng.normal(size=n), spread


@pytest.mark.claim("EXT-LawsOfRows")
@pytest.mark.parametrize("copies", [1, 3])
def test_moments_are_weighted_by_the_characteristic_function_of_each_row(rng, copies):
    """In plain NumPy, for a Laplace and a Gaussian column, means of copies, scales and weights."""
    n, scale, weights = 50, np.array([0.5, 2.0]), rng.integers(1, 4, 50).astype(float)
    noisy, y = rng.normal(size=(n, copies, 2)), rng.normal(size=n)
    spread = rng.uniform(0.2, 0.6, n)
    known = {"x1": nj.sd(spread, gaussian=True), "x2": nj.noise.Laplace(0.3)}
    laws: Any = RowLaws.of(table(noisy, y, known), scale)
    drawn = gaussian_frequencies(
        jax.random.key(0), 12, dim=2, length_scale=1.0, characteristic=nj.noise.Gaussian(0.0)
    )
    x, omega = noisy.mean(axis=1) / scale, np.asarray(drawn.omega, float)
    made, sums = laws.sums(drawn, x, y, weights)
    gram, cross = fourier(made, wiener=0.0).corrected(jax.tree.map(jnp.asarray, sums))

    def clean(frequency, values=1.0):
        at = frequency / scale / copies
        phi = (np.exp(-0.5 * (spread * at[0]) ** 2) / (1 + 0.09 * at[1] ** 2)) ** copies
        waves = np.sum(weights * values * phi * np.exp(1j * x @ frequency))
        return waves / np.mean(weights * phi**2) * weights.mean()

    for j, one in enumerate(omega):
        wave = clean(one, y) / 6**0.5
        np.testing.assert_allclose([cross[j], cross[6 + j]], [wave.real, wave.imag], atol=2e-3)
        for k, other in enumerate(omega):
            apart, both = clean(one - other), clean(one + other)
            np.testing.assert_allclose(gram[j, k], (apart + both).real / 12, atol=2e-3)
            np.testing.assert_allclose(gram[6 + j, 6 + k], (apart - both).real / 12, atol=2e-3)
            np.testing.assert_allclose(gram[6 + j, k], (apart + both).imag / 12, atol=2e-3)


@pytest.mark.slow
def test_rows_of_one_law_have_the_fit_of_that_law(rng):
    noisy, y, _ = rows(128, rng)
    same = [nj.noise.Gaussian(0.25), gaussians(np.full(128, 0.25)), nj.sd(0.5, gaussian=True)]
    fits = [fitted(table(noisy, y, one), features(1.0, num_features=8)) for one in same]
    for fit in fits[1:]:
        found, expected = (one.predict(noisy[:9, 0]) for one in (fit, fits[0]))
        np.testing.assert_allclose(found, expected, atol=1e-4)
        np.testing.assert_allclose(fit.risk.corrected, fits[0].risk.corrected, atol=1e-4)
    alone, each = (table(noisy, y, law) for law in same[:2])
    expected, found = (fourier_errors(fits[0], one, one) for one in (alone, each))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.slow
@pytest.mark.statistical
def test_rows_with_small_errors_tell_more():
    """Half of the rows have four times the noise; the others know the mean variance alone."""
    errors = []
    for number in (40, 43, 44):
        noisy, y, spread = rows(4000, generator(number))
        frame = {"x": noisy[:, 0, 0], "e": spread, "y": y}
        known = {"x": nj.sd(column="e", gaussian=True)}
        fit = fitted(nj.table(frame, target="y", noise=known), features(0.7))
        pooled = fitted(table(noisy, y, nj.noise.Gaussian(np.mean(spread**2))), features(0.7))
        errors.append([error_of(fit), error_of(pooled)])
        assert abs(fit.risk.corrected - errors[-1][0] - 0.01) < 2 * fit.risk.half_widths()[0]
    own, common = np.mean(errors, axis=0)
    assert own < 0.6 * common


@pytest.mark.slow
@pytest.mark.statistical
def test_errors_that_follow_values_are_told():
    noisy, y, spread = rows(1000, generator(41))
    assert not laws_follow_values(table(noisy, y, gaussians(spread**2)))
    noisy, y, spread = rows(1000, generator(42), follow=True)
    with pytest.warns(nj.fits.AssumptionWarning, match="known errors of rows are larger") as found:
        fit = fitted(table(noisy, y, gaussians(spread**2)), features(1.0, num_features=8))
    assert len(found) == 1
    assert fit.risk.doubted
