"""Copies of any noise, with the bias removed to an order: by enumeration."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.quadrature import gauss_hermite
from tests.unbiased.cases import SKEWED, SYMMETRIC, enumerated, mean_at, wave

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("noise", [SYMMETRIC, SKEWED], ids=["symmetric", "skewed"])
@pytest.mark.parametrize(
    ("copies", "order", "weights"),
    [
        (2, 0, {2: 1}),
        (2, 1, {2: 2, 1: -1}),
        (3, 1, {3: 3 / 2, 1: -1 / 2}),
        (4, 1, {4: 2, 2: -1}),
        (4, 2, {4: 8 / 3, 2: -2, 1: 1 / 3}),
        (6, 2, {6: 12 / 5, 3: -3 / 2, 1: 1 / 10}),
    ],
)
def test_replicates_extrapolates_the_means_of_blocks(noise, copies, order, weights):
    found = enumerated(nj.unbiased.replicates(wave, order=order), noise, copies, 0.4)
    expected = sum(w * mean_at(wave, noise, size, 0.4) for size, w in weights.items())
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("order", [1, 2])
def test_replicates_is_exact_for_polynomials(order):
    """Of degree k + 1 under skewed noise, and of degree 2k + 1 under Gaussian noise."""
    g = nj.unbiased.replicates(lambda x: x ** (order + 1), order=order)
    np.testing.assert_allclose(enumerated(g, SKEWED, 2**order, 0.9), 0.7 ** (order + 1), rtol=1e-10)
    degree, copies = 2 * order + 1, 2**order
    errors, weights = gauss_hermite(4, np.eye(copies))
    g = nj.unbiased.replicates(lambda x: x**degree, order=order)
    found = weights @ np.asarray(jax.vmap(g)(0.7 + 0.9 * errors))
    np.testing.assert_allclose(found, 0.7**degree, rtol=1e-9)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize(
    ("order", "noise", "factor"),
    [(1, SKEWED, 8), (2, SKEWED, 16), (2, SYMMETRIC, 16), (1, None, 16), (2, None, 64)],
    ids=["1, skewed", "2, skewed", "2, symmetric", "1, Gaussian", "2, Gaussian"],
)
def test_the_bias_of_replicates_falls_with_the_noise_as_its_order_says(order, noise, factor):
    """Halving σ divides it by 2^(k + 2), and by 2^(2k + 2) under Gaussian noise."""
    g, copies, biases = nj.unbiased.replicates(wave, order=order), 2**order, []
    for sigma in (0.04, 0.02):
        if noise is None:
            errors, weights = gauss_hermite(8, sigma**2 * np.eye(copies))
            found = weights @ np.asarray(jax.vmap(g)(0.7 + errors))
        else:
            found = enumerated(g, noise, copies, sigma)
        biases.append(found - wave(0.7))
    np.testing.assert_allclose(biases[0] / biases[1], factor, rtol=0.15)
