"""Characteristic functions of the independent distributions, exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.noise import Gaussian, Laplace, Rademacher, Uniform
from tests.residuals import signs


@pytest.mark.parametrize(
    ("distribution", "density"),
    [
        (Laplace(0.6), lambda n: np.exp(-np.abs(n) / 0.6) / 1.2),
        (Uniform(1.5), lambda n: (np.abs(n) <= 1.5) / 3.0),
        (Gaussian(0.49), lambda n: np.exp(-(n**2) / 0.98) / np.sqrt(2 * np.pi * 0.49)),
    ],
    ids=["laplace", "uniform", "gaussian"],
)
def test_log_characteristic_exactly_by_quadrature(x64, distribution, density):
    # Gauss–Legendre on pieces that end where the density has kinks.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = np.array([-30, -10, -5, -1.5, 0, 1.5, 5, 10, 30.0])
    half = np.diff(edges)[:, None] / 2
    n = (edges[:-1, None] + half * (nodes[None] + 1)).ravel()
    w = (half * weights[None]).ravel()
    for omega in (0.3, 1.1, 2.5, 4.0):
        phi = np.sum(w * density(n) * np.exp(1j * omega * n))
        log_phi = np.asarray(distribution.log_characteristic(jnp.array([omega])))
        np.testing.assert_allclose(np.exp(log_phi), phi, atol=1e-9)


def test_rademacher_characteristic_by_enumeration(x64):
    distribution, omega = Rademacher(jnp.array([0.5, 2.0])), jnp.array([1.0, 1.3])
    phi = np.mean(np.exp(1j * (signs(2) * [0.5, 2.0]) @ np.asarray(omega)))
    np.testing.assert_allclose(np.exp(distribution.log_characteristic(omega)), phi, atol=1e-12)


@pytest.mark.claim("EXT-GeneralNoise")
def test_uniform_characteristic_has_zeros():
    at_zero = Uniform(1.0).log_characteristic(jnp.array([jnp.pi]))
    assert float(at_zero.real) < -15


@pytest.mark.parametrize("size", [1, 3, 9, 10, 15, 16, 17])
def test_numbers_that_fill_vectors_do_not_change_the_draws(size):
    """Of shapes that the compiler treats badly, more is drawn, and the first ones are used."""
    half = -(-size // 2)

    @jax.jit
    def drawn(key):
        x = jnp.zeros((1, size))
        ours = (noise.centred(key, x)[0] for noise in (Laplace(1.0), Gaussian(1.0)))
        return *ours, jax.random.laplace(key, (size,)), jax.random.bits(key, (2 * half,))

    laplace, gaussian, expected, bits = map(np.asarray, drawn(jax.random.key(3)))
    np.testing.assert_allclose(laplace, expected, rtol=1e-6)
    r = np.sqrt(-2 * np.log((bits[:half].astype(float) + 1) / 2**32))[: size // 2]
    found = gaussian.astype(float)
    np.testing.assert_allclose(np.hypot(found[: size // 2], found[half:]), r, rtol=1e-5)
