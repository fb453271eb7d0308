"""The characteristic function of unknown noise, estimated from replicates."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.moments.fourier import characteristics, estimated_characteristic


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_all_differences_of_replicates_give_the_characteristic_function_of_their_mean():
    """Noise of −s, 0 and s with probabilities 1/8, 3/4 and 1/8 has φ = (3 + cos sω)/4 > 0."""
    copies, options = 3, {"dim": 1, "length_scale": 1.0, "characteristic": nj.noise.Gaussian(0.0)}
    frequencies = nj.moments.gaussian_frequencies(jax.random.key(0), 8, **options)
    values, shares = 0.7 * np.array([-1.0, 0.0, 1.0]), np.array([1, 6, 1]) / 8
    pairs = np.array(list(itertools.product(range(3), repeat=2)))
    apart = (values[pairs[:, 0]] - values[pairs[:, 1]]) / copies
    samples = Sample(jnp.asarray(apart[:, None, None]), jnp.ones(9))
    sums = nj.moments.fourier(frequencies).sums(samples, jnp.asarray(shares[pairs].prod(axis=1)))
    found = estimated_characteristic(frequencies, sums, copies=copies)

    def phi(omega):
        return ((3 + np.cos(0.7 * omega / copies)) / 4) ** copies

    omega = np.asarray(frequencies.omega)[:, 0]
    np.testing.assert_allclose(found.single, phi(omega), atol=1e-12)
    np.testing.assert_allclose(found.difference, phi(omega[:, None] - omega), atol=1e-12)
    np.testing.assert_allclose(found.total, phi(omega[:, None] + omega), atol=1e-12)
    floored = estimated_characteristic(frequencies, sums, copies=copies, floor=0.999)
    assert float(jnp.abs(floored.difference).min()) >= 0.999**copies - 1e-12


class NoPytree(nj.noise.Noise):
    """A user's distribution without the decorator."""

    cov = np.array([0.3, 0.5])

    def log_characteristic(self, omega):
        return -jnp.sum(jnp.broadcast_to(self.cov, omega.shape) * omega**2, axis=-1) / 2


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("noise", [nj.noise.Gaussian([0.3, 0.5]), NoPytree()], ids=["pytree", "no"])
def test_known_noise_gives_the_characteristic_function_of_the_mean_of_copies(noise, rng):
    omega, scale = rng.normal(size=(3, 2)), np.array([0.5, 2.0])
    found = characteristics(noise, jnp.asarray(omega), scale, 4)
    apart, together = omega[:, None] - omega, omega[:, None] + omega
    for phi, at in zip(found, (omega, apart, together), strict=True):
        expected = np.exp(-np.sum([0.3, 0.5] * (at / scale) ** 2, axis=-1) / 2 / 4)
        np.testing.assert_allclose(phi, expected, rtol=1e-12)
