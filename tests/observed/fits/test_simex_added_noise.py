"""Estimates with added noise against plain loops over the same draws."""

import numpy as np
import pytest

from noisy_jax.observed.fits.simex import SIMEX, Simulation
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.observations import from_arrays
from tests.observed.rows import gaussians

LEVELS = np.array([0.0, 0.5, 1.0, 2.0])
COV = np.array([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0], [0.1, 0.0, 0.2]])
N, DRAWS = 200, 6
GROUPS = [np.arange(g, N, 4) for g in range(4)]


def simulation(rng, by_row, **options):
    """Of a table with one covariance, or with one for each row."""
    x = rng.normal(size=(N, 3))
    y = 0.3 + x @ [1.0, -0.5, 0.4] + rng.normal(size=N)
    noise = gaussians(rng.uniform(0.2, 1, (N, 1, 1)) * COV) if by_row else COV
    sample = Sample.of_table(from_arrays(x, y, noise=noise))
    return Simulation(sample, SIMEX(least_squares, levels=LEVELS[1:], draws=DRAWS, **options))


def symmetric_root(cov):
    values, axes = np.linalg.eigh(cov)
    return (axes * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(axes, -1, -2)


def least_squares(x, y):
    design = np.column_stack([np.ones(len(y)), x])
    theta, squares = np.linalg.lstsq(design, y)[:2]
    return theta, squares[0] / (len(y) - design.shape[1]) * np.linalg.inv(design.T @ design)


def by_loop(fit, x, y, cov, draws, noisy):
    """Means, and mean covariances less those over draws; `draws` are of N(0, 1)."""
    scale = symmetric_root(cov[..., noisy[:, None], noisy])
    estimates, spreads = [], []
    for level in LEVELS:
        found = []
        for normal in draws:
            moved = x.copy()
            moved[:, noisy] += level**0.5 * (scale @ normal[:, :, None])[:, :, 0]
            found.append(fit(moved, y))
        theta = np.array([one for one, _ in found])
        estimates.append(theta.mean(axis=0))
        spreads.append(np.mean([one for _, one in found], axis=0) - np.cov(theta, rowvar=False))
    return np.array(estimates), np.array(spreads)


def check(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    assert np.abs(expected[0][-1] - expected[0][0]).max() > 0.05


@pytest.mark.parametrize(("by_row", "without"), [(False, None), (True, 1)])
def test_estimates_are_those_of_a_loop_over_draws_and_levels(rng, by_row, without):
    calls = []
    found = simulation(rng, by_row, seed=5, progress=lambda *one: calls.append(one))
    draws = np.array([found.normal(b) for b in range(DRAWS)])
    kept = np.arange(N) if without is None else np.delete(np.arange(N), GROUPS[without])
    x, y, cov = found.rows.some(kept)[:3]
    check(found.at(kept), by_loop(least_squares, x, y, cov, draws[:, kept], found.noisy))
    assert calls == [(1 + 3 * draw, 1 + 3 * DRAWS) for draw in range(DRAWS + 1)]
