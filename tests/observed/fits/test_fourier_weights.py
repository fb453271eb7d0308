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


def test_weights_and_clusters_are_checked():
    noisy, y, noise = noisy_rows(100, 57)
    rows, fourier = table(noisy, y, noise), nj.methods.Fourier
    with pytest.raises(ValueError, match=r"weights must be \[100\], one number a row"):
        nj.fit(rows, fourier(**FEW, weights=np.ones(99)))
    raises("at least 8 rows, got 7", nj.fit, rows, fourier(**FEW, weights=np.arange(100) < 7))
    assert len(nj.methods.OneOf(fourier(**FEW) for _ in range(2)).candidates) == 2
    raises("one or more", nj.methods.OneOf, fourier(**FEW))
    raises("same weights and clusters", nj.fit, rows, [fourier(**FEW, weights=np.ones(100))])
    weights = np.arange(100) % 3 + 1.0
    one = fitted(rows, fourier(**FEW, weights=weights, clusters=np.arange(100) % 8))
    same = fitted(rows, nj.methods.OneOf([fourier(**FEW)], weights, np.arange(100) % 8))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert one.risk.degrees_of_freedom == 7
