"""Moments of noisy rows: exact expectations over all signs of the noise."""

import itertools

import numpy as np
import pytest

from noisy_jax.observed.fits.linear_moments import linear_moments

X = np.array([[0.5, 1.0], [-1.0, 0.3], [2.0, -0.4], [0.1, 0.7]])
Y = np.array([1.0, -0.5, 2.0, 0.3])
SIZES = np.array([0.5, 1.0, 0.2, 0.8])
DIRECTION = np.array([1.0, -0.6])  # the noise of row i is ± SIZES[i] times this
SIGNS = np.array(list(itertools.product([-1, 1], repeat=4)))


@pytest.mark.parametrize("weights", [None, np.array([1.0, 3.0, 0.5, 2.0])])
@pytest.mark.parametrize("same", [True, False], ids=["one covariance", "one a row"])
def test_moments_have_the_clean_ones_as_expectations(weights, same):
    """Also about the weighted mean of the noisy rows, which has an error of its own."""
    sizes = np.full(4, 0.7) if same else SIZES
    cov = sizes[:, None, None] ** 2 * np.outer(DIRECTION, DIRECTION)
    cov = cov[0] if same else cov
    w = np.ones(4) if weights is None else weights
    center = w @ X / w.sum()
    gram = (X - center).T @ (w[:, None] * (X - center))
    cross = (X - center).T @ (w * Y)
    beta = np.array([0.4, -1.1])
    found = [linear_moments(X + np.outer(s * sizes, DIRECTION), Y, cov, weights) for s in SIGNS]
    np.testing.assert_allclose(np.mean([m.centred()[0] for m in found], axis=0), gram, rtol=1e-12)
    np.testing.assert_allclose(np.mean([m.centred()[1] for m in found], axis=0), cross, rtol=1e-12)
    risks = [m.clean_error(0.2, beta) for m in found]
    np.testing.assert_allclose(np.mean(risks), w @ (Y - 0.2 - X @ beta) ** 2, rtol=1e-12)
