import jax
import numpy as np

import noisy_jax as nj
from noisy_jax.noise import (
    ContaminatedGaussian,
    Gaussian,
    Laplace,
    Product,
    Rademacher,
    StudentT,
    Uniform,
)

FULL = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.4]])
DISTRIBUTIONS = {
    "gaussian": Gaussian(0.3),
    "gaussian_diagonal": Gaussian(np.array([0.1, 0.4, 0.9])),
    "gaussian_full": Gaussian(FULL),
    "gaussian_singular": Gaussian(np.full((3, 3), 0.2)),
    "contaminated": ContaminatedGaussian(FULL, probability=0.3),
    "laplace": Laplace(np.array([0.2, 0.5, 1.0])),
    "uniform": Uniform(0.7),
    "rademacher": Rademacher(np.array([0.2, 0.5, 1.0])),
    "student": StudentT(df=9.0, scale=0.4),
    "product": Product((Laplace(0.3, mean=1.0), Uniform(0.7), Gaussian(0.0))),
}
TWO = np.array([[0.9, 0.1], [0.2, 0.8]])
FOUR = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.0, 0.8, 0.2, 0.0], [0.2, 0.1, 0.6, 0.1], [0.05, 0.05, 0.1, 0.8]]
)
"""Probabilities that a category is recorded as each of two, or of four."""


def assert_mean_is(values, truth, largest_error):
    """|mean − truth| < 5·SE, where SE is small enough for the test to be able to fail."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.all(error < largest_error)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - truth), 5 * error + 1e-7)


def per_round(make, *parameters):
    return nj.noise.PerRound(jax.vmap(make)(*parameters))


def fit_by_numpy(x, y, covs, cross=0.0):
    """Coefficients `[d]` and their covariance by the jackknife; variances `[n, d]`, of each row."""
    n, d = x.shape
    taken, cross = (1 - 1 / n) * covs, (1 - 1 / n) * np.broadcast_to(cross, x.shape)
    centred, bread = x - x.mean(axis=0), np.diag([float(n), *d * [0]])
    bread[1:, 1:] = centred.T @ centred - np.diag(taken.sum(axis=0))
    beta = np.linalg.solve(bread[1:, 1:], centred.T @ y - cross.sum(axis=0))
    residuals, z = y - y.mean() - centred @ beta, np.column_stack([np.ones(n), centred])
    scores = np.column_stack([residuals, centred * residuals[:, None] + taken * beta - cross])
    without = bread[None] - z[:, :, None] * z[:, None]  # of all rows but one
    moves = np.linalg.solve(without, scores[:, :, None])[:, 1:, 0]
    return beta, moves.T @ moves
