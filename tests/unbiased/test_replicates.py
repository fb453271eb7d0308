"""Copies of any noise, with the bias removed to an order: by enumeration."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.quadrature import gauss_hermite
from tests.unbiased.cases import SKEWED, enumerated, mean_at, wave

pytestmark = pytest.mark.usefixtures("x64")


def over_gaussian(g, copies, sigma, nodes):
    """The exact mean of g under Gaussian noise at x = .7."""
    errors, weights = gauss_hermite(nodes, sigma**2 * np.eye(copies))
    return weights @ np.asarray(jax.jit(jax.vmap(g))(0.7 + errors))


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize(
    ("copies", "order", "weights"),
    [
        (2, 0, {2: 1}),
        (2, 1, {2: 2, 1: -1}),
        (3, 1, {3: 3 / 2, 1: -1 / 2}),
        (4, 1, {4: 2, 2: -1}),
        (6, 2, {6: 12 / 5, 3: -3 / 2, 1: 1 / 10}),
    ],
)
def test_replicates_extrapolates_the_means_of_blocks(copies, order, weights):
    found = enumerated(nj.unbiased.replicates(wave, order=order), SKEWED, copies, 0.4)
    expected = sum(w * mean_at(SKEWED, size, 0.4) for size, w in weights.items())
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("order", [1, 2])
def test_replicates_is_exact_for_polynomials(order):
    """Of degree k + 1 under skewed noise, and of degree 2k + 1 under Gaussian noise."""
    g = nj.unbiased.replicates(lambda x: x ** (order + 1), order=order)
    np.testing.assert_allclose(enumerated(g, SKEWED, 2**order, 0.9), 0.7 ** (order + 1), rtol=1e-10)
    g = nj.unbiased.replicates(lambda x: x ** (2 * order + 1), order=order)
    found = over_gaussian(g, 2**order, 0.9, 4)
    np.testing.assert_allclose(found, 0.7 ** (2 * order + 1), rtol=1e-9)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("order", [1, 2])
def test_the_bias_of_replicates_falls_with_the_noise_as_its_order_says(order):
    """Halving σ divides it by 2^(k + 2), and by 2^(2k + 2) under Gaussian noise."""
    g, copies, sigmas = nj.unbiased.replicates(wave, order=order), 2**order, (0.04, 0.02)
    skewed = [enumerated(g, SKEWED, copies, sigma) - wave(0.7, np) for sigma in sigmas]
    gaussian = [over_gaussian(g, copies, sigma, 6) - wave(0.7, np) for sigma in sigmas]
    np.testing.assert_allclose(skewed[0] / skewed[1], 2 ** (order + 2), rtol=0.15)
    np.testing.assert_allclose(gaussian[0] / gaussian[1], 2 ** (2 * order + 2), rtol=0.15)
