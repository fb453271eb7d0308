"""Estimating equations of a model: shares of the noise; the whole of it is in `test_model.py`."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.model_equations import Functions, ModelEquations
from noisy_jax.observed.observations import from_arrays
from noisy_jax.unbiased.estimates import Estimate

COV = np.array([[0.25, 0.05], [0.05, 0.1]])
START = {"a": np.float64(0.3), "w": np.array([0.5, -0.4])}
THETA = np.array([0.3, 0.5, -0.4])


def curve(params, x):
    return params["a"] + jnp.sin(params["w"] @ x)


def squared(prediction, y):
    return (prediction - y) ** 2


KNOWN = functools.partial(nj.unbiased.gaussian, draws=100)
PAIR, ORDER_1 = nj.unbiased.pair, functools.partial(nj.unbiased.replicates, order=1)


def equations(table, estimate, seed=0):
    return ModelEquations.of(Functions(curve, squared, Estimate.of(estimate)), START, table, seed)


def rows(rng, n=100, copies=1):
    return rng.normal(size=(n, copies, 2)), rng.normal(size=n)


def scores(points, y):
    """ψ at points `[n, 2]`, real or complex, in NumPy, `[n, 3]`."""
    angle = points @ THETA[1:]
    slopes = np.column_stack([np.ones(len(y)), np.cos(angle)[:, None] * points])
    return np.real(2 * (y - THETA[0] - np.sin(angle))[:, None] * slopes)


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_share_of_the_noise_of_copies(rng, x64, share):
    x, y = rows(rng, copies=2)
    table, mean, half = from_arrays(x, y), x.mean(axis=1), share**0.5 * (x[:, 0] - x[:, 1]) / 2
    found = equations(table, PAIR).at(np.zeros(3), share)
    np.testing.assert_allclose(found.score, scores(mean + 1j * half, y).sum(axis=0), atol=1e-11)
    found = equations(table, ORDER_1).at(np.zeros(3), share)
    expected = 2 * scores(mean, y) - (scores(mean + half, y) + scores(mean - half, y)) / 2
    np.testing.assert_allclose(found.score, expected.sum(axis=0), atol=1e-11)


def test_a_share_of_known_noise_is_noise_of_that_share(rng, x64):
    x, y = rows(rng)
    share, whole = (equations(from_arrays(x[:, 0], y, noise=cov), KNOWN) for cov in (COV, COV / 4))
    found, wanted = share.at(np.zeros(3), 0.25), whole.at(np.zeros(3), 1.0)
    np.testing.assert_allclose(found.score, wanted.score, rtol=1e-9)
