"""Weights and clusters of kernel fits: weights stand for rows, and clusters stay together."""

from typing import Any

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.moments.fourier import gaussian_frequencies
from noisy_jax.observed.fits.trials import WeightedRows, tried
from tests.errors import raises
from tests.observed.fits.test_fourier import fitted, generator, sine, table

FEW: Any = {"length_scale": 1.0, "num_features": 8}


def noisy_rows(n, number):
    noisy, y = sine(n, generator(number), gaussian=0.1)
    return noisy, y + 0.5 * generator(number + 1).normal(size=n), nj.noise.Gaussian(0.1)


@pytest.mark.slow
def test_whole_weights_are_repeated_rows(monkeypatch):
    """With the same frequencies and groups, and as many rows said to be in the table."""
    noisy, y, noise = noisy_rows(400, 50)
    weights, groups = np.arange(400) % 4 + 1.0, np.arange(400) // 10 % 16
    monkeypatch.setattr(WeightedRows, "effective", 500.0)
    with jax.enable_x64(True):
        law = {"length_scale": 1.0, "characteristic": noise}
        drawn = gaussian_frequencies(jax.random.key(0), 8, dim=1, **law)
        once = tried(drawn, WeightedRows(noisy[:, 0], y, weights, groups))
        every = [np.repeat(one, weights.astype(int), 0) for one in (noisy[:, 0], y, groups)]
        many = tried(drawn, WeightedRows(*every[:2], np.ones(len(every[1])), every[2]))
    for name in ("weights", "folds", "risks", "plain_weights", "plain_risks", "count"):
        np.testing.assert_allclose(getattr(once, name), getattr(many, name), rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.statistical
def test_repeated_rows_do_not_narrow_bands_and_intervals_if_they_are_clusters():
    """Six times the same rows, in random order. Without clusters errors are 6^(−1/2) of theirs."""
    places = np.linspace(-1.5, 1.5, 5)[:, None]

    def widths(observations, clusters=None):
        fit = fitted(observations, nj.methods.Fourier(**FEW, clusters=clusters))
        return np.median(np.subtract(*fit.band(places)[::-1])), fit.risk.corrected_std_error

    found = []
    for number in range(6):
        noisy, y, noise = noisy_rows(400, 60 + 3 * number)
        labels = np.repeat(np.arange(400), 6)[generator(62 + 3 * number).permutation(2400)]
        once, many = table(noisy, y, noise), table(noisy[labels], y[labels], noise)
        found.append([widths(once), widths(many, labels), widths(many)])
    once, clustered, naive = np.median(found, axis=0)  # errors have outliers
    assert (np.abs(np.log(clustered / once)) < np.log(2)).all()
    assert (naive < 0.85 * clustered).all()


def test_weights_and_clusters_are_checked():
    noisy, y, noise = noisy_rows(100, 57)
    rows, fourier = table(noisy, y, noise), nj.methods.Fourier
    with pytest.raises(ValueError, match=r"weights must be \[100\], one number a row"):
        nj.fit(rows, fourier(**FEW, weights=np.ones(99)))
    raises("at least 8 clusters, got 7", nj.fit, rows, fourier(**FEW, clusters=np.arange(100) % 7))
    raises("at least 8 rows, got 7", nj.fit, rows, fourier(**FEW, weights=np.arange(100) < 7))
    assert len(nj.methods.OneOf(fourier(**FEW) for _ in range(2)).candidates) == 2
    raises("one or more", nj.methods.OneOf, fourier(**FEW))
    raises("same weights and clusters", nj.fit, rows, [fourier(**FEW, weights=np.ones(100))])
    weights = np.arange(100) % 3 + 1.0
    one = fitted(rows, fourier(**FEW, weights=weights, clusters=np.arange(100) % 8))
    same = fitted(rows, nj.methods.OneOf([fourier(**FEW)], weights, np.arange(100) % 8))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert one.risk.degrees_of_freedom == 7
