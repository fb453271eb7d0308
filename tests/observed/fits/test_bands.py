"""Bands of kernel fits: as in plain NumPy, at their level, and over the clean curve."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.observed.fits import trials
from noisy_jax.observed.fits.bands import calibrated, half_widths
from noisy_jax.observed.fits.choices import undersmoothed
from noisy_jax.observed.fits.groups import labels_of
from noisy_jax.observed.fits.trials import FACTORS
from tests.errors import raises

GROUPS = 16
NOISE = 1 / 3
"""Variance of the noise. That of the clean rows is 4/3, so that the reliability is .8."""


def rows(rng, n=2000):
    """Noisy copies of clean rows that are uniform on [−2, 2], and y = sin x + noise."""
    x = rng.uniform(-2, 2, (n, 1))
    return x + NOISE**0.5 * rng.normal(size=x.shape), np.sin(x[:, 0]) + 0.3 * rng.normal(size=n)


def fitted(x, y, num_features=32, variance=NOISE, length_scale: Any = 1.5) -> Any:
    noise = None if variance is None else nj.noise.Gaussian(variance)
    table = nj.observations.from_arrays(x, y, noise=noise)
    return nj.fit(table, nj.methods.Fourier(length_scale=length_scale, num_features=num_features))


def not_calibrated(whole, left_out, both, features):
    """The plain jackknife, in place of `bands.calibrated`."""
    return left_out


@pytest.mark.parametrize("known", [True, False])
def test_a_band_is_the_jackknife_in_plain_numpy(rng, known, monkeypatch):
    """From the corrected moments of all groups of rows, and of all but one, in float64.

    Without known noise φ is estimated from the two copies of all rows, and of all but a group.
    """
    monkeypatch.setattr(trials, "calibrated", not_calibrated)
    noisy, y = rows(rng)
    n, places = len(y), np.array([[-1.0], [0.3], [2.0]])
    half = NOISE**0.5 * rng.normal(size=(n, 1))
    copies = np.stack([noisy - half, noisy + half], axis=1)
    fit = fitted(noisy if known else copies, y, 8, NOISE if known else None)
    assert "fit.band takes the curve to be no rougher" in " ".join(str(fit).split())
    omega = fit.omega[:, 0]

    def characteristic(frequencies, seen):
        if known:
            return np.exp(-NOISE * frequencies**2 / 2)
        return np.cos(np.multiply.outer(half[seen, 0], frequencies)).mean(axis=0)

    def waves(x):
        angles = (x[:, :1] - noisy.mean()) * omega
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / 2  # of 4 frequencies

    def moments(part, seen):
        """E z zᵀ of clean rows by cos a cos b = (cos(a − b) + cos(a + b))/2, and so on."""
        angles = (noisy[part] - noisy.mean()) * omega
        target = (y[part] - y.mean()) / y.std()

        def clean(frequencies, sums):
            phi = characteristic(frequencies, seen)
            return sums * phi / (phi**2 + 4 / n)

        first, second = angles[:, :, None], angles[:, None]
        apart = clean(omega[:, None] - omega[None], np.exp(1j * (first - second)).sum(axis=0))
        total = clean(omega[:, None] + omega[None], np.exp(1j * (first + second)).sum(axis=0))
        cc, sc, ss = (apart + total).real / 2, (apart + total).imag / 2, (apart - total).real / 2
        cross = clean(omega, target @ np.exp(1j * angles))
        return np.block([[cc, sc.T], [sc, ss]]) / 4, np.append(cross.real, cross.imag) / 2

    groups = labels_of(noisy if known else copies, y, count=GROUPS)
    parts = [moments(groups == g, slice(None)) for g in range(GROUPS)]
    gram, cross = sum(a for a, _ in parts), sum(b for _, b in parts)
    apart = [a - gram * np.mean(groups == g) for g, (a, _) in enumerate(parts)]
    spread = np.linalg.eigvalsh(sum(a @ a for a in apart))[-1] ** 0.5 * (16 / 15) ** 0.5
    (factor,) = np.flatnonzero(np.isclose(FACTORS, fit.candidates[0].factor))
    factor = FACTORS[undersmoothed(factor)]

    def values(gram, cross, count):
        penalty = factor * spread * (count / n) ** 0.5 + 1e-6 * count
        eigenvalues, vectors = np.linalg.eigh(gram)
        weights = vectors @ (vectors.T @ cross / (np.maximum(eigenvalues, 0) + penalty))
        return waves(places) @ weights * y.std() + y.mean()

    others = [groups != g for g in range(GROUPS)]
    left_out = np.array([values(*moments(one, one), one.sum()) for one in others])
    std_error = np.sqrt(15 * left_out.var(axis=0))
    low, high = fit.band(places, 0.9)
    np.testing.assert_allclose((low + high) / 2, values(gram, cross, n), atol=1e-4)
    np.testing.assert_allclose((high - low) / 2, stats.t.ppf(0.95, 15) * std_error, rtol=1e-3)


@pytest.mark.parametrize("points", [1, 9])
def test_at_points_with_independent_errors_it_is_the_largest_of_so_many(rng, points):
    """Errors N and 15 s² with χ² of 15 degrees of freedom at each point, drawn by NumPy alone."""
    centred, sizes = rng.normal(size=(GROUPS, points)), np.arange(1, points + 1)
    left_out = np.linalg.qr(centred - centred.mean(axis=0))[0] * sizes
    variance = 15 / GROUPS * sizes**2

    def moderated(square):
        return 0.8 * square + 0.2 * np.median(square, axis=-1)[..., None]

    draws = np.random.default_rng(1)
    errors = draws.normal(size=(100_000, points)) ** 2 * variance
    squares = draws.chisquare(15, size=errors.shape) / 15 * variance
    quantile = np.quantile(np.sqrt(np.max(errors / moderated(squares), axis=1)), 0.95)
    point = stats.t.ppf(0.975, 15) * np.sqrt(variance)
    expected = np.maximum(point, quantile * np.sqrt(moderated(variance)))
    np.testing.assert_allclose(half_widths(left_out, 0.95, False), point)
    rtol = 0.05 if points > 1 else 0.04  # of 4,096 draws
    np.testing.assert_allclose(half_widths(left_out, 0.95, True), expected, rtol=rtol)
    apart = np.outer(left_out[:, 0], [1.0, 1.0, 3.0])  # at the largest they agree, up to draws
    assert np.all(half_widths(apart, 0.95, True) >= half_widths(apart, 0.95, False))
    # Each point twice is the same curve, and a point that never moves adds nothing.
    more = np.concatenate([left_out, left_out, np.ones((GROUPS, 1))], axis=1)
    again = half_widths(more, 0.95, True)
    np.testing.assert_allclose(again[:points], half_widths(left_out, 0.95, True))
    assert again[-1] == 0
    assert not half_widths(np.ones((GROUPS, points)), 0.95, True).any()


@pytest.mark.parametrize(("steep", "low", "high"), [(1, 1, 1), (4, 0.55, 0.95), (60, 1 / 3, 1 / 3)])
def test_a_jackknife_that_counts_high_orders_too_often_is_calibrated(steep, low, high):
    """Of f = v̄ + exp(steep · v̄) with the mean v̄ over groups, whose higher orders grow with it."""
    v = np.random.default_rng(0).normal(size=(GROUPS, 5))

    def fit(*left_out):
        mean = np.mean(np.delete(v, left_out, axis=0), axis=0)
        return mean + np.exp(steep * mean)

    left_out = np.array([fit(g) for g in range(GROUPS)])
    pairs = [(g, (g + 5) % GROUPS) for g in range(GROUPS)]
    found = calibrated(fit(), left_out, np.array([fit(*pair) for pair in pairs]), np.eye(5))
    interactions = [fit() - fit(g) - fit(h) + fit(g, h) for g, h in pairs]
    square, interacting = 15 * left_out.var(axis=0), 120 / 16 * np.square(interactions).sum(axis=0)
    share = np.clip(np.median(square / (2 * interacting)), 1 / 3, 1.0)
    assert low <= share <= high
    mean = left_out.mean(axis=0)
    np.testing.assert_allclose(found, mean + share**0.5 * (left_out - mean), rtol=1e-10)


def test_a_band_goes_down_to_a_tenth_of_the_regularization():
    found = FACTORS[[undersmoothed(k) for k in (8, 5, 2, 1, 0)]]
    assert found.tolist() == [0.3, 0.01, 3e-4, 3e-4, 3e-4]


@pytest.mark.slow
def test_a_band_is_of_a_length_scale_of_at_most_half_the_chosen_one(rng):
    noisy, y = rows(rng, 400)
    table = nj.observations.from_arrays(noisy, y, noise=nj.noise.Gaussian(NOISE))
    tried = [2.0, 1.9, 1.0, 0.9]
    fit: Any = nj.fit(
        table, [nj.methods.Fourier(length_scale=one, num_features=16) for one in tried]
    )
    chosen = fit.candidates[0].length_scale
    band = max([scale for scale in tried if scale <= chosen / 2], default=chosen)
    np.testing.assert_allclose(fit.undersmoothed.omega * band, fit.omega * chosen, rtol=1e-5)
    alone: Any = nj.fit(table, nj.methods.Fourier(length_scale=band, num_features=16))
    np.testing.assert_allclose(alone.band([[0.5]]), fit.band([[0.5]]), rtol=1e-4)


def test_a_band_has_the_shape_of_predictions(rng):
    fit = fitted(*rows(rng, 400), 16)
    grid = rng.normal(size=(2, 3, 1))
    low, high = fit.band(grid)
    assert low.shape == high.shape == (2, 3)
    raises(r"^x must be \[\.\.\., 1\], got \[3, 2\]", fit.band, np.zeros((3, 2)))
    raises(r"^level must be above 0 and below 1, got 95$", fit.band, grid, 95)
    raises("^simultaneous must be True or False", fit.band, grid, simultaneous="all")
    raises(r"^x must be concrete.*outside jit", jax.jit(fit.band), grid)
