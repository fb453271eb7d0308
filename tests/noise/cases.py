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


def assert_mean_is(values, truth, largest_error):
    """|mean − truth| < 5·SE, where SE is small enough for the test to be able to fail."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.all(error < largest_error)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - truth), 5 * error + 1e-7)


def per_round(make, *parameters):
    return nj.noise.PerRound(jax.vmap(make)(*parameters))
