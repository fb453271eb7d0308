"""`Fourier(length_scale="auto")`: what it tries, what it chooses, and the error that it states."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import noisy_jax as nj
from noisy_jax.observed.fits.fourier import length_scales
from noisy_jax.observed.fits.hidden import places
from tests.keys import SHIFT

AUTO: Any = nj.methods.Fourier(length_scale="auto", num_features=16)


@pytest.mark.statistical
def test_they_are_multiples_of_the_median_distance_between_clean_rows(rng):
    """Within 5 standard errors of noisy rows, which without correction are 1.12 times as far."""
    ratios, dim = [], 4
    for _ in range(10):
        clean = rng.normal(size=(4000, dim))
        exact = length_scales(clean, np.zeros((dim, dim)))
        median = np.median(pdist(places(clean)))
        np.testing.assert_allclose(exact, median * np.array([0.25, 0.5, 1, 2, 4]), rtol=1e-3)
        found = length_scales(clean + 0.5 * rng.normal(size=clean.shape), 0.25 * np.eye(dim))
        larger = np.array([scale for scale in exact if scale > 0.65])
        np.testing.assert_allclose(found[-len(larger) :], found[-1] / exact[-1] * larger)
        ratios.append(found[-1] / exact[-1])
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


def test_none_is_below_the_noise_and_equal_rows_do_not_count(rng):
    found = length_scales(rng.normal(size=(1000, 2)), 0.8 * np.eye(2))
    assert found[0] == pytest.approx(0.8**0.5)
    assert len(found) < 5
    most = np.where(np.arange(1000) % 7 == 0, 1.0, 0.0)[:, None]  # most distances are 0
    assert length_scales(most, np.zeros((1, 1))) == [0.25, 0.5, 1, 2, 4]


@pytest.mark.slow
def test_all_of_them_are_candidates(rng):
    x = rng.normal(size=(300, 1))
    table = nj.observations.from_arrays(x, np.sin(x[:, 0]), noise=nj.noise.Gaussian(0.01))
    fit = nj.fit(table, AUTO)
    tried = length_scales(x / x.std(), np.array([[0.01]]) / x.var())
    found = sorted(one.length_scale for one in fit.candidates)  # type: ignore[union-attr]
    np.testing.assert_allclose(found, tried, rtol=1e-5)


@pytest.mark.long
@pytest.mark.statistical
def test_the_choice_is_nearly_the_best():
    """The true error is at most twice that of the length scale that is best on average.

    The smallest and the three largest are the same multiples in all tables; one more is tried where
    it is above the noise.
    """
    rng, errors = np.random.default_rng(1000 * SHIFT), []
    for _ in range(20):
        clean = rng.normal(size=(2000, 1))
        noisy, y = clean + 0.5 * rng.normal(size=clean.shape), np.sin(2 * clean[:, 0])
        noise = nj.noise.Gaussian(0.25)
        table = nj.observations.from_arrays(noisy, y + 0.3 * rng.normal(size=2000), noise=noise)
        auto: Any = nj.fit(table, AUTO)
        scales = sorted(one.length_scale for one in auto.candidates)
        others = [
            nj.fit(table, nj.methods.Fourier(length_scale=v, num_features=16))
            for v in (scales[0], *scales[-3:])
        ]
        errors.append([np.mean((fit.predict(clean) - y) ** 2) for fit in (auto, *others)])
    mean = np.mean(errors, axis=0)
    assert mean[0] < 2 * mean[1:].min()
